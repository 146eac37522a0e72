package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/internal/testkit/said"
)

// contractFile is the real contract.
const contractFile = "../../../candidates/oauth-events/contract.yaml"

func loadContract(t testing.TB) *Contract {
	t.Helper()
	c, err := Load(os.DirFS(filepath.Dir(contractFile)), File)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The cases that the suite's description demands by name or by kind.
func TestContractIsComplete(t *testing.T) {
	c := loadContract(t)
	hostile, names := 0, map[string]bool{}
	for _, k := range c.Cases {
		names[k.Name] = true
		if k.want.Status == 401 {
			hostile++
		}
	}
	if hostile < 35 {
		t.Errorf("%d cases of hostile tokens, fewer than 35", hostile)
	}
	for _, name := range strings.Fields(`
		auth-good auth-aud-array auth-scope-among-many
		no-token authorization-empty not-a-jwt alg-none hs256-with-public-key rs384 signature-flipped-bit signature-truncated
		foreign-key foreign-key-kid-traversal foreign-key-kid-sql exp-past nbf-future exp-missing exp-string iss-wrong aud-wrong
		aud-array-without-ours sub-missing sub-empty sub-number scope-missing scope-array scope-contains-ours token-16-kib
		bearer-lower-case two-authorization-headers
		read-id-zero read-id-minus-one read-id-fraction read-id-exponent read-id-two-to-the-63 read-id-letters read-id-encoded
		read-id-leading-zeros
		write-not-json write-array write-kind-number write-kind-empty write-payload-array write-payload-string
		write-payload-missing write-64-kib-and-one write-raw-nul-inside write-kind-escaped-nul write-kind-invalid-utf8
		write-duplicate-kind-last-counts write-duplicate-payload-last-bad`) {
		if !names[name] {
			t.Errorf("there is no case %s", name)
		}
	}
	for name := range c.Outcomes {
		used := false
		for _, k := range c.Cases {
			used = used || k.Want == name || k.Again != nil && k.Again.Want == name
		}
		if !used {
			t.Errorf("no case wants %s", name)
		}
	}
}

const (
	head = "version: 1\noutcomes:\n  ok: {status: 200, answer: claims}\n  new: {status: 201, answer: id, rows: 1}\n  row: {status: 200, answer: row, members: [id]}\n  no: {status: 401, answer: error, error: invalid_token}\n  void: {status: 404, answer: none}\ncases:\n"
	one  = "  - name: a\n    why: It is only a test.\n    send: GET /auth\n    want: ok\n"
)

func TestBadContracts(t *testing.T) {
	t.Parallel()
	with := func(lines string) string {
		return head + "  - name: a\n    why: It is only a test.\n" + lines
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "is empty"},
		"spaces":             {" \n\n", "is empty"},
		"not yaml":           {"version: [1\n", ":1:"},
		"a list":             {"- a\n", ":1:"},
		"another version":    {"version: 2\n", "version is 2"},
		"no cases":           {"version: 1\noutcomes: {}\n", "no cases"},
		"unknown key":        {head + one + "    colour: ok\n", `f.yaml:13: the key "colour" is not known here`},
		"unknown key on top": {head + one + "colour: red\n", `f.yaml:13: the key "colour"`},
		"unknown in token":   {with("    send: GET /auth\n    token: {sub: x}\n    want: ok\n"), `:12: the key "sub"`},
		"unknown in outcome": {"version: 1\noutcomes:\n  ok: {status: 200, body: x}\ncases: []\n", `:3: the key "body"`},
		"key twice":          {head + one + "    want: no\n", ":13:"},
		"duplicate name":     {head + one + one, "f.yaml:13: the name a is taken by the case in line 9"},
		"case that is null":  {head + "  -\n" + one, "case 1 is empty"},
		"no name":            {head + "  - why: It is a test.\n    send: GET /auth\n    want: ok\n", ":9: case : name"},
		"capitals in name":   {head + strings.Replace(one, "name: a", "name: Ab", 1), "small letters"},
		"reserved name":      {head + strings.Replace(one, "name: a", "name: rows-in-total", 1), "reserved"},
		"no sentence":        {head + strings.Replace(one, "It is only a test.", "test", 1), "not a sentence"},
		"unknown outcome":    {with("    send: GET /auth\n    want: fine\n"), `want "fine"`},
		"no target":          {with("    send: GET\n    want: ok\n"), "is not a method and a target"},
		"space in target":    {with("    send: GET /a b\n    want: ok\n"), "neither space"},
		"relative target":    {with("    send: GET auth\n    want: ok\n"), "must start with /"},
		"open template":      {with("    send: GET /${now\n    want: ok\n"), "a ${ without its }"},
		"unknown template":   {with("    send: GET /${later}\n    want: ok\n"), "${later} is not one of"},
		"half seconds":       {with("    send: GET /${now+1.5s}\n    want: ok\n"), "whole seconds"},
		"bad hex":            {with("    send: GET /${hex zz}\n    want: ok\n"), "hexadecimal"},
		"bomb":               {with("    send: POST /events\n    body: '${repeat 999999999 x}'\n    want: no\n"), "more than 4194304 bytes"},
		"many bombs":         {with("    send: POST /events\n    body: '" + strings.Repeat("${repeat 4000000 x}", 3) + "'\n    want: no\n"), "grows to more than"},
		"no token to send":   {with("    send: GET /auth\n    token: none\n    headers: ['A: ${token}']\n    want: no\n"), "no token to put"},
		"no claims":          {with("    send: GET /auth\n    token: none\n    want: ok\n"), "no token whose claims"},
		"other word":         {with("    send: GET /auth\n    token: nothing\n    want: no\n"), `f.yaml:12: token is "nothing"`},
		"header line":        {with("    send: GET /auth\n    headers: [x]\n    want: no\n"), "is not a header line"},
		"second line":        {with("    send: GET /auth\n    headers: [\"A: b\\nC: d\"]\n    want: no\n"), "is not a header line"},
		"length":             {with("    send: GET /auth\n    headers: ['Content-Length: 3']\n    want: no\n"), "for the checker to set"},
		"leave out unknown":  {with("    send: GET /auth\n    headers: ['-Cookie']\n    want: no\n"), "not sent anyway"},
		"size without body":  {with("    send: GET /auth\n    size: 3\n    want: no\n"), "need a body"},
		"size without pad":   {with("    send: POST /events\n    body: x\n    size: 3\n    want: no\n"), "go together"},
		"pad without size":   {with("    send: POST /events\n    body: 'x${pad}'\n    want: no\n"), "go together"},
		"size too small":     {with("    send: POST /events\n    body: 'xxxx${pad}'\n    size: 3\n    want: no\n"), "has 4 already"},
		"huge size":          {with("    send: POST /events\n    body: 'x${pad}'\n    size: 99999999\n    want: no\n"), "not between"},
		"nothing to store":   {with("    send: POST /events\n    body: 'x'\n    want: new\n"), "is not JSON"},
		"no kind to store":   {with("    send: POST /events\n    body: '{\"payload\":{}}'\n    want: new\n"), "no kind to store"},
		"no row":             {with("    send: GET /events/01\n    want: row\n"), "names no row"},
		"body for head":      {with("    send: HEAD /auth\n    want: ok\n"), "HEAD has no body"},
		"again never":        {with("    send: GET /auth\n    want: ok\n    again: {after: 2h, want: no}\n"), "up to 1m0s"},
		"again unknown":      {with("    send: GET /auth\n    want: ok\n    again: {after: 2s, want: x}\n"), "again: want"},
		"again mutation":     {with("    send: GET /auth\n    want: ok\n    again: {after: 2s, mutate: [x], want: no}\n"), "mutate"},
		"unknown key name":   {with("    send: GET /auth\n    token: {key: mine}\n    want: no\n"), `key "mine"`},
		"secret for rsa":     {with("    send: GET /auth\n    token: {key: empty}\n    want: no\n"), "is a secret"},
		"rsa for secret":     {with("    send: GET /auth\n    token: {alg: HS256}\n    want: no\n"), "signs with a secret"},
		"unknown signature":  {with("    send: GET /auth\n    token: {alg: rs256}\n    want: no\n"), "no key here signs by"},
		"number without sig": {with("    send: GET /auth\n    token: {alg: 1}\n    want: no\n"), "needs sign"},
		"text without sig":   {with("    send: GET /auth\n    token: {header_text: x}\n    want: no\n"), "needs sign"},
		"two headers":        {with("    send: GET /auth\n    token: {header_text: x, sign: RS256, header: {a: 1}}\n    want: no\n"), "leaves no room"},
		"alg in header":      {with("    send: GET /auth\n    token: {header: {alg: none}}\n    want: no\n"), "key of its own"},
		"two payloads":       {with("    send: GET /auth\n    token: {payload: x, claims: {a: 1}}\n    want: no\n"), "leaves no room"},
		"claim in and out":   {with("    send: GET /auth\n    token: {claims: {sub: x}, without: [sub]}\n    want: no\n"), "both set and left out"},
		"claim twice":        {with("    send: GET /auth\n    token: {claims: {exp: 1}, times: {exp: 1s}}\n    want: no\n"), "under claims and under times"},
		"claim never there":  {with("    send: GET /auth\n    token: {without: [jti]}\n    want: no\n"), "cannot be left out"},
		"bad time":           {with("    send: GET /auth\n    token: {times: {exp: soon}}\n    want: no\n"), "whole seconds"},
		"no json number":     {with("    send: GET /auth\n    token: {claims: {exp: .inf}}\n    want: no\n"), "JSON does not have"},
		"unknown mutation":   {with("    send: GET /auth\n    token: {mutate: [melt]}\n    want: no\n"), `mutate "melt"`},
		"status":             {"version: 1\noutcomes:\n  ok: {status: 99, answer: none}\n" + "cases:\n" + one, "status 99"},
		"answer":             {"version: 1\noutcomes:\n  ok: {status: 200, answer: yes please}\n" + "cases:\n" + one, "answer"},
		"error without":      {"version: 1\noutcomes:\n  ok: {status: 400, answer: error}\n" + "cases:\n" + one, "error names"},
		"rows":               {"version: 1\noutcomes:\n  ok: {status: 200, answer: none, rows: 2}\n" + "cases:\n" + one, "one row or none"},
		"rows without id":    {"version: 1\noutcomes:\n  ok: {status: 200, answer: none, rows: 1}\n" + "cases:\n" + one, "goes with rows: 1"},
		"row without":        {"version: 1\noutcomes:\n  ok: {status: 200, answer: row}\n" + "cases:\n" + one, "members"},
		"member":             {"version: 1\noutcomes:\n  ok: {status: 200, answer: row, members: [x]}\n" + "cases:\n" + one, `member "x"`},
		"header name":        {"version: 1\noutcomes:\n  ok: {status: 200, answer: none, headers: {'a b': x}}\n" + "cases:\n" + one, "not the name of a header"},
		"wrong type":         {head + strings.Replace(one, "want: ok", "want: ok\n    size: much", 1), ":13:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f.yaml", []byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			if !fail.IsInput(err) {
				t.Errorf("%v is not bad input", err)
			}
			if !strings.Contains(said.Err(err), c.want) || !strings.HasPrefix(said.Err(err), "f.yaml") {
				t.Errorf("%q does not say %q", err, c.want)
			}
			if strings.Contains(said.Err(err), "\n") {
				t.Errorf("%q is more than a line", err)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, File)
	if _, err := Load(os.DirFS(dir), File); !fail.IsInput(err) || !strings.Contains(said.Err(err), File) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(missing, make([]byte, yamlfile.MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(os.DirFS(dir), File); !fail.IsInput(err) || !strings.Contains(said.Err(err), "too large for a contract") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	real, err := os.ReadFile(contractFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real[:4000])
	f.Add([]byte(head + one))
	f.Add([]byte(head + one + one))
	f.Add([]byte("version: 1\ncases: &a [*a]\n"))
	f.Add([]byte("a: &a [x,x]\nb: &b [*a,*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Errorf("%v is not bad input", err)
			}
			if strings.ContainsAny(said.Err(err), "\n") {
				t.Errorf("%q is more than a line", err)
			}
			return
		}
		keys, err := sharedKeys()
		if err != nil {
			t.Fatal(err)
		}
		// What is accepted can be sent.
		for _, k := range c.Cases[:min(3, len(c.Cases))] {
			made, err := keys.build(k.Token, testIdentity, testNow)
			if err != nil {
				t.Errorf("case %s: %v", k.Name, err)
				continue
			}
			k.request("app", values{now: testNow, token: made.text, identity: testIdentity, scope: made.scope, keys: keys})
		}
	})
}
