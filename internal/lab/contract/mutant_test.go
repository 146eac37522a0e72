package contract

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func newInt(b []byte) *big.Int { return new(big.Int).SetBytes(b) }

// only is the contract reduced to the cases with the names.
func only(t *testing.T, c *Contract, names ...string) *Contract {
	t.Helper()
	out := &Contract{Version: c.Version, Outcomes: c.Outcomes}
	for _, name := range names {
		found := false
		for _, k := range c.Cases {
			if k.Name == name {
				out.Cases = append(out.Cases, k)
				found = true
			}
		}
		if !found {
			t.Errorf("there is no case %s", name)
		}
	}
	return out
}

func TestReferencePasses(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	if len(c.Cases) < 110 {
		t.Errorf("the contract has %d cases, fewer than 110", len(c.Cases))
	}
	report, err := Run(context.Background(), c, startReference(t))
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || len(report.Cases) != len(c.Cases)+1 {
		t.Errorf("the reference does not pass:\n%s", report.Summary())
	}
	checkSilent(t, report)
}

// checkSilent fails when a report holds anything of a token or a key.
func checkSilent(t *testing.T, report Report) {
	t.Helper()
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(b), report.Summary()} {
		for _, secret := range []string{"eyJ", "BEGIN ", keys.publicPEM[40:80], encode([]byte(`{"alg"`))} {
			if strings.Contains(text, secret) {
				t.Fatalf("the report holds a part of a token or key")
			}
		}
	}
}

// Each of these servers is wrong in one way, and the cases named beside it have
// to find it out.
func TestFlawsAreCaught(t *testing.T) {
	t.Parallel()
	flaws := map[string][]string{
		// the token's form
		"no-signature":               {"signature-flipped-bit", "signature-stripped", "foreign-key", "payload-swapped", "signature-zeros"},
		"alg-none":                   {"alg-none", "alg-none-capitals", "alg-none-mixed", "alg-none-capitalised", "alg-none-without-last-dot", "alg-none-write"},
		"alg-none-letter-for-letter": {"alg-none", "alg-none-with-signature"},
		"hmac":                       {"hs256-with-public-key", "hs256-with-public-key-trimmed", "hs256-with-public-key-bytes", "hs256-with-empty-secret", "hs256-empty-secret-kid-dev-null", "hs256-with-public-key-write"},
		"any-rsa":                    {"rs384", "ps256"},
		"ignores-alg":                {"rs384-in-name-rs256-in-fact", "alg-missing", "alg-none-with-signature", "alg-empty", "alg-null", "alg-array", "alg-number", "header-duplicate-alg-last-none", "header-alg-in-capitals"},
		"alg-without-case":           {"alg-lower-case"},
		"own-key":                    {"foreign-key-jwk"},
		"ignores-crit":               {"crit-unknown", "crit-exp", "crit-b64", "crit-empty", "crit-null"},
		"any-kid":                    {"kid-number"},
		"padding":                    {"signature-padding"},
		"standard-alphabet":          {"signature-standard-alphabet"},
		"trailing-bits":              {"signature-trailing-bits"},
		"extra-parts":                {"token-extra-part", "token-five-parts"},
		"names-without-case":         {"exp-in-capitals", "header-alg-in-capitals", "scope-under-another-name"},
		"first-duplicate":            {"auth-duplicate-exp-last-good", "exp-duplicate-last-past", "aud-duplicate-last-wrong", "sub-duplicate-last-empty", "header-duplicate-alg-last-none"},
		"any-bytes-in-token":         {"payload-invalid-utf8"},
		"half-surrogates":            {"sub-lone-surrogate", "write-kind-lone-surrogate", "write-payload-lone-high-surrogate", "write-payload-lone-low-surrogate", "write-payload-lone-surrogate-in-name"},
		"nul-escape":                 {"sub-with-nul", "write-kind-escaped-nul", "write-payload-escaped-nul", "write-payload-escaped-nul-in-name"},
		// how it arrives
		"bearer-case":         {"bearer-lower-case", "bearer-upper-case"},
		"one-space":           {"bearer-two-spaces"},
		"any-white-space":     {"bearer-tab", "token-with-parameter"},
		"no-scheme":           {"scheme-missing"},
		"any-scheme":          {"scheme-basic", "scheme-longer"},
		"first-authorization": {"two-authorization-headers", "two-authorization-headers-good-first"},
		"last-authorization":  {"two-authorization-headers-good-last", "two-authorization-headers-two-schemes"},
		"token-in-query":      {"token-in-query"},
		// the claims
		"ignores-exp":        {"exp-past", "exp-a-moment-ago", "exp-zero", "exp-past-write"},
		"exp-optional":       {"exp-missing"},
		"null-is-absent":     {"exp-null", "nbf-null"},
		"times-as-text":      {"exp-string", "nbf-string"},
		"any-time":           {"exp-huge", "exp-twenty-digits", "exp-beyond-floating-point", "exp-after-the-year-9999"},
		"leeway":             {"exp-a-moment-ago"},
		"ignores-nbf":        {"nbf-future", "nbf-future-fraction", "nbf-string", "nbf-true", "nbf-huge"},
		"looks-at-iat":       {"auth-iat-future", "auth-iat-missing"},
		"ignores-iat":        {"iat-string", "iat-null"},
		"any-header-number":  {"header-number-too-large"},
		"ignores-iss":        {"iss-missing", "iss-wrong", "iss-empty", "iss-null", "iss-number"},
		"iss-prefix":         {"iss-longer"},
		"iss-slash":          {"iss-trailing-slash"},
		"iss-array":          {"iss-array"},
		"iss-loose":          {"iss-true"},
		"ignores-aud":        {"aud-missing", "aud-wrong", "aud-array-without-ours", "aud-object", "aud-number", "aud-array-nested", "aud-array-of-true", "aud-empty", "aud-other-case"},
		"aud-optional":       {"aud-missing", "aud-null"},
		"aud-part":           {"aud-longer", "aud-list-in-a-string"},
		"aud-words":          {"aud-list-in-a-string"},
		"aud-text-only":      {"auth-aud-array", "auth-aud-array-of-one"},
		"aud-empty-array":    {"aud-array-empty"},
		"aud-any-array":      {"aud-array-without-ours"},
		"aud-mixed-array":    {"aud-array-with-number"},
		"sub-optional":       {"sub-missing", "sub-null"},
		"sub-of-any-type":    {"sub-number", "sub-number-write"},
		"sub-empty":          {"sub-empty"},
		"sub-falsy":          {"auth-sub-zero"},
		"ignores-scope":      {"scope-missing", "scope-empty", "scope-array", "scope-contains-ours", "scope-write-on-auth", "scope-write-on-read", "scope-read-on-write"},
		"scope-array":        {"scope-array"},
		"scope-part":         {"scope-contains-ours", "scope-ends-like-ours", "scope-comma", "scope-contains-ours-on-write"},
		"scope-white-space":  {"scope-tab", "scope-newline"},
		"scope-without-case": {"scope-other-case"},
		"scope-alone":        {"auth-scope-among-many", "auth-good"},
		"scope-prefix":       {"scope-begins-like-ours"},
		// answers
		"no-www-authenticate":      {"no-token", "exp-past", "method-head-without-token"},
		"www-authenticate-basic":   {"no-token"},
		"error-in-words":           {"no-token", "path-unknown", "write-not-json"},
		"error-with-more":          {"no-token", "path-unknown", "write-not-json"},
		"content-type-html":        {"auth-good", "no-token", "path-unknown", "write-good"},
		"not-json":                 {"auth-good", "no-token", "read-row"},
		"answers-scope-sorted":     {"auth-scope-among-many"},
		"405":                      {"method-options-auth", "method-get-events"},
		"any-method":               {"method-post-auth", "method-options-auth"},
		"order-token-before-route": {"order-route-before-token"},
		"order-id-before-token":    {"order-token-before-id", "order-scope-before-id"},
		"order-body-before-token":  {"order-token-before-body", "order-scope-before-body", "order-token-before-large-body"},
		"cleans-paths":             {"path-double-slash", "path-dot-segments", "path-trailing-slash", "read-id-encoded", "read-id-two-slashes"},
		// rows
		"id-lenient":             {"read-id-plus-one", "read-id-leading-zeros", "read-id-exponent-zero", "read-id-fraction", "read-id-point-zero", "read-id-encoded", "read-id-encoded-space", "read-id-encoded-newline"},
		"id-overflow-is-500":     {"read-id-two-to-the-63", "read-id-two-to-the-64-and-one", "read-id-very-long"},
		"reads-others":           {"read-row-of-another-subject", "read-subject-other-case"},
		"created-at-in-words":    {"read-row"},
		"created-at-now":         {"read-row"},
		"payload-as-text":        {"read-row"},
		"row-with-subject":       {"read-row"},
		"id-as-text":             {"read-row"},
		"deletes":                {"method-delete-event", TotalName},
		"writes-on-400":          {"write-not-json", "write-kind-empty"},
		"writes-on-401":          {"foreign-key-write", "scope-read-on-write", "exp-past-write"},
		"500-on-400":             {"write-payload-escaped-nul"},
		"writes-nothing":         {"write-good"},
		"writes-twice":           {"write-good"},
		"answers-wrong-id":       {"write-good"},
		"created-is-200":         {"write-good"},
		"stores-fixed-subject":   {"write-other-subject"},
		"stores-through-floats":  {"write-payload-large-integer", "write-payload-fractions"},
		"stores-empty-as-array":  {"write-payload-empty-object", "write-payload-nested"},
		"stores-trimmed-kind":    {"write-kind-space"},
		"stores-kind-in-payload": {"write-good"},
		// bodies
		"no-chunks":          {"write-chunked"},
		"wants-content-type": {"write-without-content-type", "write-content-type-form"},
		"limit-one-more":     {"write-64-kib-and-one", "write-64-kib-and-one-chunked", "write-64-kib-and-one-of-white-space"},
		"limit-one-less":     {"write-64-kib", "write-64-kib-chunked"},
		"no-limit":           {"write-2-mib", "write-64-kib-and-one"},
		"any-bytes":          {"write-kind-invalid-utf8", "write-payload-invalid-utf8", "write-payload-overlong-utf8", "write-payload-surrogate-utf8"},
		"any-depth":          {"write-nested-513-levels", "payload-nested-512-levels"},
		"any-exponent":       {"write-payload-exponent-beyond", "write-payload-number-too-large"},
		"cuts-bom":           {"write-byte-order-mark"},
		"struct-decoding":    {"write-kind-other-case", "write-payload-other-case", "write-kind-beside-other-case"},
		"trailing-text":      {"write-trailing-text", "write-two-objects", "write-raw-nul-after"},
		"kind-of-any-type":   {"write-kind-number", "write-duplicate-kind-last-bad"},
		"kind-empty":         {"write-kind-empty"},
		"kind-falsy":         {"write-kind-zero"},
		"payload-array":      {"write-payload-array", "write-payload-empty-array"},
		"payload-not-empty":  {"write-payload-empty-object"},
		// verification remembered
		"caches":        {"exp-passes", "nbf-comes"},
		"caches-good":   {"exp-passes"},
		"caches-bad":    {"nbf-comes"},
		"caches-claims": {"signature-checked-each-time"},
	}
	c := loadContract(t)
	for flaw, names := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			asked := names
			if last := len(names) - 1; names[last] == TotalName {
				asked = names[:last] // always there
			}
			report, err := Run(context.Background(), only(t, c, asked...), startReference(t, flaw))
			if err != nil {
				t.Fatal(err)
			}
			failed := map[string]bool{}
			for _, res := range report.Cases {
				failed[res.Name] = !res.OK
			}
			for _, name := range names {
				if !failed[name] {
					t.Errorf("case %s does not notice", name)
				}
			}
			if report.OK() {
				t.Error("the flaw goes unnoticed")
			}
			checkSilent(t, report)
		})
	}
}

// A row that is written after the answer belongs to no case, and still counts.
func TestLateRowIsCaught(t *testing.T) {
	t.Parallel()
	c := only(t, loadContract(t), "write-good", "signature-checked-each-time")
	report, err := Run(context.Background(), c, startReference(t, "writes-late"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Cases[0].OK {
		t.Error("a good write without a row passes")
	}
	if report.OK() {
		t.Error("the late row goes unnoticed")
	}
}
