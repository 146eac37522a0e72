package token

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	issuer   = "https://auth.bench.local"
	audience = "events-api"
	header   = `{"alg":"RS256","typ":"JWT"}`
)

var now = time.Unix(1_800_000_000, 0)

func newKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newVerifier(t testing.TB, key *rsa.PrivateKey) *Verifier {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), issuer, audience)
	if err != nil {
		t.Fatal(err)
	}
	v.now = func() time.Time { return now }
	return v
}

func sign(t testing.TB, key *rsa.PrivateKey, header, claims string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature, err := jwt.SigningMethodRS256.Sign(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestClaims(t *testing.T) {
	key := newKey(t)
	v := newVerifier(t, key)
	for _, tc := range []struct {
		name   string
		change [2]string // in the good claims: from, to
		good   bool
	}{
		{"good", [2]string{"", ""}, true},
		{"aud array", [2]string{`"aud":"events-api"`, `"aud":["x","events-api"]`}, true},
		{"aud array with a number", [2]string{`"aud":"events-api"`, `"aud":["events-api",1]`}, false},
		{"aud array without ours", [2]string{`"aud":"events-api"`, `"aud":["x"]`}, false},
		{"aud object", [2]string{`"aud":"events-api"`, `"aud":{"0":"events-api"}`}, false},
		{"iss with a slash", [2]string{`local"`, `local/"`}, false},
		{"sub empty", [2]string{`"sub":"me"`, `"sub":""`}, false},
		{"sub number", [2]string{`"sub":"me"`, `"sub":1`}, false},
		{"sub NUL", [2]string{`"sub":"me"`, `"sub":"m\u0000e"`}, false},
		{"sub in capitals", [2]string{`"sub"`, `"SUB"`}, false},
		{"scope longer", [2]string{`events:read x`, `events:readx`}, false},
		{"scope array", [2]string{`"events:read x"`, `["events:read"]`}, false},
		{"scope with a tab", [2]string{`events:read x`, `events:read\tx`}, false},
		{"exp now", [2]string{`1800000100`, `1800000000`}, false},
		{"exp in a second", [2]string{`1800000100`, `1800000001`}, true},
		{"exp in half a second", [2]string{`1800000100`, `1800000000.5`}, true},
		{"exp string", [2]string{`1800000100`, `"1800000100"`}, false},
		{"exp end of time", [2]string{`1800000100`, `253402300799`}, true},
		{"exp after the end of time", [2]string{`1800000100`, `253402300800`}, false},
		{"exp infinite", [2]string{`1800000100`, `1e400`}, false},
		{"exp twice, last good", [2]string{`"exp":`, `"exp":"x","exp":`}, true},
		{"exp twice, last bad", [2]string{`1800000100`, `1800000100,"exp":null`}, false},
		{"nbf now", [2]string{`"exp"`, `"nbf":1800000000.9,"exp"`}, true},
		{"nbf in a second", [2]string{`"exp"`, `"nbf":1800000001,"exp"`}, false},
		{"nbf null", [2]string{`"exp"`, `"nbf":null,"exp"`}, false},
		{"nbf negative", [2]string{`"exp"`, `"nbf":-1,"exp"`}, false},
		{"iat tomorrow", [2]string{`"exp"`, `"iat":1800086400,"exp"`}, true},
		{"iat string", [2]string{`"exp"`, `"iat":"1","exp"`}, false},
		{"literal in capitals", [2]string{`"exp"`, `"x":TRUE,"exp"`}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claims := strings.Replace(`{"iss":"https://auth.bench.local","aud":"events-api","sub":"me","scope":"events:read x","exp":1800000100}`, tc.change[0], tc.change[1], 1)
			who, err := v.Verify(sign(t, key, header, claims), "events:read")
			if (err == nil) != tc.good {
				t.Fatalf("%s: %v", claims, err)
			}
			if err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
			if err == nil && (who.Subject != "me" || !strings.HasPrefix(who.Scope, "events:read")) {
				t.Errorf("got %+v", who)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	key := newKey(t)
	v := newVerifier(t, key)
	claims := `{"iss":"https://auth.bench.local","aud":"events-api","sub":"me","scope":"events:read","exp":1800000100}`
	for text, good := range map[string]bool{
		header:                               true,
		`{"alg":"RS256","kid":"../x"}`:       true,
		`{"alg":"none","alg":"RS256"}`:       true,
		`{"alg":"RS256","enc":"A128GCM"}`:    true,
		`{"alg":"RS256","kid":1}`:            false,
		`{"alg":"RS256","crit":[]}`:          false,
		`{"alg":"RS256","crit":null}`:        false,
		`{"alg":"RS256","x":"\u0000"}`:       false,
		`{"alg":"rs256"}`:                    false,
		`{"alg":"RS384"}`:                    false,
		`{"ALG":"RS256"}`:                    false,
		`{"alg":["RS256"]}`:                  false,
		`[]`:                                 false,
		`{"alg":"RS256"}}`:                   false,
		"{\"alg\":\"RS256\",\"x\":\"\xff\"}": false,
	} {
		if _, err := v.Verify(sign(t, key, text, claims), "events:read"); (err == nil) != good {
			t.Errorf("header %s: %v", text, err)
		}
	}
}

func TestForm(t *testing.T) {
	key := newKey(t)
	v := newVerifier(t, key)
	good := sign(t, key, header, `{"iss":"https://auth.bench.local","aud":"events-api","sub":"me","scope":"events:read","exp":1800000100}`)
	if _, err := v.Verify(good, "events:read"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(good, "events:write"); err == nil {
		t.Error("a scope that was not granted")
	}
	parts := strings.Split(good, ".")
	// 256 bytes end in a digit with four spare bits.
	spare := good[:len(good)-1] + string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", good[len(good)-1])|1])
	for name, token := range map[string]string{
		"empty": "", "dots": "..", "four parts": good + ".x", "two parts": parts[0] + "." + parts[1], "no signature": parts[0] + "." + parts[1] + ".",
		"padding": good + "=", "newline": good[:20] + "\n" + good[20:], "newline at the end": good + "\n", "space": good + " ", "cut": good[:len(good)-4],
		"spare bits": spare, "standard alphabet": parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(parts[2]+"-"),
		"other key": sign(t, newKey(t), header, `{"iss":"https://auth.bench.local","aud":"events-api","sub":"me","scope":"events:read","exp":1800000100}`),
	} {
		if _, err := v.Verify(token, "events:read"); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestNewVerifierRefusesWhatIsNoKey(t *testing.T) {
	if _, err := NewVerifier([]byte("no key"), issuer, audience); err == nil {
		t.Error("no error")
	}
}

// FuzzVerify signs whatever header and claims come: only what says RS256, our
// issuer and our audience may be accepted, and nothing may panic.
func FuzzVerify(f *testing.F) {
	key := newKey(f)
	v := newVerifier(f, key)
	good := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"me","scope":"events:read","exp":1800000100}`, issuer, audience)
	f.Add([]byte(header), []byte(good), "")
	f.Add([]byte(`{"alg":"none"}`), []byte(good), "")
	f.Add([]byte(header), []byte(`{"aud":["x"],"exp":1e400}`), "AA==")
	f.Add([]byte(`null`), []byte(`null`), "")
	f.Fuzz(func(t *testing.T, header, claims []byte, tail string) {
		who, err := v.Verify(sign(t, key, string(header), string(claims))+tail, "events:read")
		if err != nil {
			return
		}
		text := string(header) + string(claims)
		plain := !strings.Contains(text, `\`)
		if who.Subject == "" || !strings.Contains(who.Scope, "events:read") || tail != "" ||
			plain && (!strings.Contains(text, "RS256") || !strings.Contains(text, issuer) || !strings.Contains(text, audience)) {
			t.Fatalf("accepted header %q, claims %q, tail %q as %+v", header, claims, tail, who)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	key := newKey(b)
	v := newVerifier(b, key)
	token := sign(b, key, header, `{"iss":"https://auth.bench.local","aud":"events-api","sub":"me","scope":"events:read","exp":1800000100}`)
	for b.Loop() {
		if _, err := v.Verify(token, "events:read"); err != nil {
			b.Fatal(err)
		}
	}
}
