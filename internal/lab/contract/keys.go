package contract

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/percore/percore/internal/base/fail"
)

// KeyBits is the size of the RSA keys. It is part of the protocol: another size
// changes what a verification costs.
const KeyBits = 2048

const (
	signingKeyFile = "signing.pem"
	foreignKeyFile = "foreign.pem"
	maxKeyFile     = 64 << 10 // bytes; a 2048-bit key needs under 2 KiB
)

// Keys holds the signing key of a project and a second key that no candidate
// knows. It prints as a placeholder, whatever the verb.
type Keys struct {
	signing   *rsa.PrivateKey
	foreign   *rsa.PrivateKey
	elliptic  *ecdsa.PrivateKey // for tokens with an ES256 signature; lives as long as the process
	publicPEM string
	publicDER []byte
}

// OpenKeys returns the keys kept in the directory. Keys that do not exist yet
// are minted once and written there, readable by their owner alone; two
// processes that mint at the same time end up with the same keys. A key file
// that others can read, or that holds anything but an RSA key of KeyBits bits,
// is bad input.
func OpenKeys(dir string) (*Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the key directory %s: %w", dir, err)
	}
	signing, err := openKey(filepath.Join(dir, signingKeyFile))
	if err != nil {
		return nil, err
	}
	foreign, err := openKey(filepath.Join(dir, foreignKeyFile))
	if err != nil {
		return nil, err
	}
	if signing.Equal(foreign) {
		return nil, fail.Input("%s and %s hold the same key, but the second must be one that no candidate knows", signingKeyFile, foreignKeyFile).Try("remove %s and run the command again", filepath.Join(dir, foreignKeyFile))
	}
	return newKeys(signing, foreign)
}

func newKeys(signing, foreign *rsa.PrivateKey) (*Keys, error) {
	der, err := x509.MarshalPKIXPublicKey(&signing.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("mint an elliptic-curve key: %w", err)
	}
	return &Keys{
		signing:   signing,
		foreign:   foreign,
		elliptic:  curve,
		publicPEM: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		publicDER: der,
	}, nil
}

func openKey(path string) (*rsa.PrivateKey, error) {
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := mintKey(path); err != nil {
		return nil, err
	}
	// Read back what is on disk: another process may have been first.
	return readKey(path)
}

func mintKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, KeyBits)
	if err != nil {
		return fmt.Errorf("mint the key %s: %w", path, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key %s: %w", path, err)
	}
	// CreateTemp makes the file with mode 0600.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".mint-*")
	if err != nil {
		return fmt.Errorf("write the key %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // gone already when it was renamed
	err = pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write the key %s: %w", path, err)
	}
	// A link, unlike a rename, never replaces a key that is already there.
	switch err = os.Link(tmp.Name(), path); {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	}
	// Some file systems have no links.
	if err = os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write the key %s: %w", path, err)
	}
	return nil
}

func readKey(path string) (*rsa.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, fail.Input("the key file %s cannot be read by this user", path).Try("give it back to its owner (chown), or remove it to have a new key minted")
		}
		return nil, fmt.Errorf("open the key file %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the key file %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fail.Input("the key file %s is not a regular file", path).Try("remove it to have a new key minted")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fail.Input("the key file %s is open to others (mode %04o)", path, mode).Try("run chmod 600 %s, or remove it to have a new key minted", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the key file %s: %w", path, err)
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fail.Input("the key file %s %w", path, err).Try("remove it to have a new key minted")
	}
	return key, nil
}

// parseKey reads one PKCS #8 PEM block. Its errors say what is wrong and quote
// nothing of the file.
func parseKey(data []byte) (*rsa.PrivateKey, error) {
	if len(data) == 0 {
		return nil, errors.New("is empty")
	}
	if len(data) > maxKeyFile {
		return nil, errors.New("is far too long for a key")
	}
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, errors.New("is not a PEM file, or was cut short")
	}
	if block.Type != "PRIVATE KEY" {
		return nil, errors.New("holds another kind of PEM block than PRIVATE KEY")
	}
	if len(rest) != 0 {
		return nil, errors.New("holds something after the key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("holds a damaged key")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("does not hold an RSA key")
	}
	if n := key.N.BitLen(); n != KeyBits {
		return nil, fmt.Errorf("holds an RSA key of %d bits where the protocol wants %d", n, KeyBits)
	}
	return key, nil
}

// PublicPEM is the public half of the signing key (SubjectPublicKeyInfo, PEM),
// as candidates get it.
func (k *Keys) PublicPEM() string { return k.publicPEM }

const redactedKeys = "<keys>"

// String returns a placeholder.
func (Keys) String() string { return redactedKeys }

// GoString returns a placeholder.
func (Keys) GoString() string { return redactedKeys }

// Format prints a placeholder for every verb.
func (Keys) Format(f fmt.State, _ rune) { io.WriteString(f, redactedKeys) } //nolint:errcheck // a fmt.State keeps its error

// MarshalJSON returns a placeholder.
func (Keys) MarshalJSON() ([]byte, error) { return json.Marshal(redactedKeys) }

// Identity is what good tokens say: who issued them, for whom, about whom.
type Identity struct {
	Issuer   string
	Audience string
	Subject  string
}

// Token is a signed token. It prints as a placeholder; only Reveal gives its
// text.
type Token struct{ text string }

const redactedToken = "<token>"

// Reveal returns the token's text, to be sent and not to be shown.
func (t Token) Reveal() string { return t.text }

// String returns a placeholder.
func (Token) String() string { return redactedToken }

// GoString returns a placeholder.
func (Token) GoString() string { return redactedToken }

// Format prints a placeholder for every verb.
func (Token) Format(f fmt.State, _ rune) { io.WriteString(f, redactedToken) } //nolint:errcheck // a fmt.State keeps its error

// MarshalJSON returns a placeholder.
func (Token) MarshalJSON() ([]byte, error) { return json.Marshal(redactedToken) }

// LoadToken signs the token that a load generator sends: RS256, issuer,
// audience, subject, one scope, issued now, and the expiry given (whole
// seconds). An expiry that has passed is an error.
func (k *Keys) LoadToken(id Identity, scope string, expires time.Time) (Token, error) {
	now := time.Now()
	if !expires.After(now) {
		return Token{}, fmt.Errorf("sign a token for scope %s: its expiry %s has passed", scope, expires.Format(time.RFC3339))
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss":   id.Issuer,
		"aud":   id.Audience,
		"sub":   id.Subject,
		"scope": scope,
		"iat":   now.Unix(),
		"exp":   expires.Unix(),
	})
	text, err := t.SignedString(k.signing)
	if err != nil {
		return Token{}, fmt.Errorf("sign a token for scope %s: %w", scope, err)
	}
	return Token{text}, nil
}

// LoadTokens signs one token per scope; scopes that are empty or repeated are
// left out.
func (k *Keys) LoadTokens(id Identity, scopes []string, expires time.Time) (map[string]Token, error) {
	tokens := make(map[string]Token, len(scopes))
	for _, scope := range scopes {
		if _, done := tokens[scope]; done || scope == "" {
			continue
		}
		t, err := k.LoadToken(id, scope, expires)
		if err != nil {
			return nil, err
		}
		tokens[scope] = t
	}
	return tokens, nil
}
