package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

func TestKeysAreMintedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "keys")
	first, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.signing.Equal(second.signing) || !first.foreign.Equal(second.foreign) {
		t.Error("the second call did not reuse the keys")
	}
	if first.signing.Equal(first.foreign) {
		t.Error("the foreign key is the signing key")
	}
	if n := first.signing.N.BitLen(); n != KeyBits {
		t.Errorf("the key has %d bits", n)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %04o", f.Name(), info.Mode().Perm())
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files are left in the key directory", len(files))
	}
	block, rest := pem.Decode([]byte(first.PublicPEM()))
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) != 0 {
		t.Fatal("the public key is not one PEM block")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil || !first.signing.PublicKey.Equal(public) {
		t.Errorf("the public key does not belong to the signing key (%v)", err)
	}
}

func TestKeysMintedTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	pems := make([]string, 4)
	for i := range pems {
		wg.Go(func() {
			k, err := OpenKeys(dir)
			if err != nil {
				t.Error(err)
				return
			}
			pems[i] = k.PublicPEM()
		})
	}
	wg.Wait()
	for _, p := range pems {
		if p != pems[0] {
			t.Fatal("two that minted at the same time have different keys")
		}
	}
}

func TestBadKeyFiles(t *testing.T) {
	good := t.TempDir()
	if _, err := OpenKeys(good); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(good, signingKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	damaged := bytes.Clone(text)
	damaged[len(damaged)/2] ^= 0x15
	damaged[200] = 'A'
	damaged[201] = 'A'
	for name, c := range map[string]struct {
		content []byte
		mode    os.FileMode
		want    string
	}{
		"readable by others":  {text, 0o644, "chmod 600"},
		"readable by a group": {text, 0o640, "open to others (mode 0640)"},
		"empty":               {nil, 0o600, "is empty"},
		"truncated":           {text[:len(text)/2], 0o600, "cut short"},
		"words":               {[]byte("my key"), 0o600, "not a PEM file"},
		"damaged":             {damaged, 0o600, "signing.pem"},
		"public":              {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte{1}}), 0o600, "another kind of PEM block"},
		"two keys":            {append(bytes.Clone(text), text...), 0o600, "after the key"},
		"elliptic":            {block("PRIVATE KEY", curve), 0o600, "not hold an RSA key"},
		"3072 bits":           {block("PRIVATE KEY", small), 0o600, "3072 bits where the protocol wants 2048"},
		"endless":             {bytes.Repeat([]byte("x"), maxKeyFile+10), 0o600, "far too long"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, signingKeyFile)
			if err := os.WriteFile(path, c.content, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := OpenKeys(dir)
			if err == nil {
				t.Fatal("no error")
			}
			if !fail.IsInput(err) {
				t.Errorf("%v is not bad input", err)
			}
			for _, part := range []string{c.want, path, "remove it"} {
				if !strings.Contains(said.Err(err), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(said.Err(err), "\n") || strings.Contains(said.Err(err), "MII") {
				t.Error("the error is no sentence, or quotes the key")
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, c.content) {
				t.Error("the bad key file was touched")
			}
		})
	}
}

func TestKeyFileThatIsADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, foreignKeyFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); !fail.IsInput(err) {
		t.Errorf("got %v", err)
	}
}

func TestSameKeyTwice(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenKeys(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, signingKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, foreignKeyFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); !fail.IsInput(err) || !strings.Contains(said.Err(err), "the same key") {
		t.Errorf("got %v", err)
	}
}

func TestLoadTokens(t *testing.T) {
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(time.Hour)
	tokens, err := keys.LoadTokens(testIdentity, []string{"events:read", "events:write", "events:read", ""}, expires)
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) != 2 {
		t.Fatalf("%d tokens, want 2", len(tokens))
	}
	for scope, token := range tokens {
		claims := jwt.MapClaims{}
		_, err := jwt.ParseWithClaims(token.Reveal(), claims, func(*jwt.Token) (any, error) { return &keys.signing.PublicKey, nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience(testIdentity.Audience), jwt.WithIssuer(testIdentity.Issuer),
			jwt.WithSubject(testIdentity.Subject), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding())
		if err != nil {
			t.Errorf("%s: %v", scope, err)
		}
		if claims["scope"] != scope || claims["exp"] != float64(expires.Unix()) {
			t.Errorf("scope %v until %v, want %s until %d", claims["scope"], claims["exp"], scope, expires.Unix())
		}
	}
	if _, err := keys.LoadTokens(testIdentity, []string{"events:read"}, time.Now().Add(-time.Second)); err == nil {
		t.Error("a token is signed that has expired already")
	}
}

// Neither tokens nor keys may show, however they are printed.
func TestNothingSecretIsPrinted(t *testing.T) {
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	token, err := keys.LoadToken(testIdentity, "events:read", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	target := Target{Name: "go", Keys: keys}
	var shown []string
	for _, v := range []any{keys, *keys, token, &token, map[string]Token{"a": token}, []any{keys, token}, target, &target, struct{ T Token }{token}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
	}
	for _, v := range []any{keys, token, map[string]Token{"a": token}, struct{ T Token }{token}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(b))
	}
	shown = append(shown, fmt.Errorf("wrapped: %v %v", keys, token).Error(), errors.Join(fmt.Errorf("%v", token)).Error())
	secrets := []string{token.Reveal(), token.Reveal()[:30], keys.signing.D.String()[:30], fmt.Sprintf("%x", keys.signing.D.Bytes())[:30], keys.signing.N.String()[:30], "BEGIN"}
	for _, part := range strings.Split(token.Reveal(), ".") {
		secrets = append(secrets, part[:20], fmt.Sprintf("%x", part[:20]))
	}
	for _, s := range shown {
		for _, secret := range secrets {
			if strings.Contains(s, secret) {
				t.Fatalf("a secret shows in a text of %d bytes that begins with %.20q", len(s), s)
			}
		}
	}
}

func TestMutationsBreakTheSignature(t *testing.T) {
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		p := strings.Split(token, ".")
		if len(p) != 3 {
			return false
		}
		sig, err := base64.RawURLEncoding.Strict().DecodeString(p[2])
		if err != nil {
			return false
		}
		d := sha256.Sum256([]byte(p[0] + "." + p[1]))
		return rsa.VerifyPKCS1v15(&keys.signing.PublicKey, 5, d[:], sig) == nil
	}
	for name := range mutations {
		spec := &TokenSpec{Mutate: []string{name}}
		if err := spec.prepare(); err != nil {
			t.Fatal(err)
		}
		made, err := keys.build(spec, testIdentity, time.Now())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if made.text == made.parts.String() {
			t.Errorf("%s changes nothing", name)
		}
		if good(made.text) {
			t.Errorf("%s leaves a good token", name)
		}
		if !good(made.parts.String()) {
			t.Errorf("%s: the token was not good before", name)
		}
	}
	if n := len(mustMutate(t, keys, "lengthen")); n != longToken {
		t.Errorf("a lengthened token has %d bytes, want %d", n, longToken)
	}
}

func mustMutate(t *testing.T, keys *Keys, name string) string {
	t.Helper()
	spec := &TokenSpec{Mutate: []string{name}}
	if err := spec.prepare(); err != nil {
		t.Fatal(err)
	}
	made, err := keys.build(spec, testIdentity, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made.text
}

func FuzzMutations(f *testing.F) {
	f.Add("eyJhbGciOiJSUzI1NiJ9", "eyJzdWIiOiJhIn0", "c2lnbmF0dXJl", uint8(3))
	f.Add("", "", "", uint8(0))
	f.Add("a", "b", "c", uint8(17))
	f.Add("eyJ", "bnVsbA", "_-_-", uint8(9))
	names := strings.Split(mutationNames(), ", ")
	f.Fuzz(func(t *testing.T, header, payload, signature string, which uint8) {
		p := parts{header: header, payload: payload, signature: signature, parts: 3}
		p2 := p
		name := names[int(which)%len(names)]
		mutations[name](&p)
		if len(p.String()) > 2*len(p2.String())+longToken+400 {
			t.Errorf("%s makes %d bytes of %d", name, len(p.String()), len(p2.String()))
		}
	})
}
