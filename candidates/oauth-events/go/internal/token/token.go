// Package token verifies the bearer tokens of the suite: compact JWS, RS256, with
// the claims that the contract asks for. Nothing is cached between two calls.
package token

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/percore/percore/candidates/oauth-events/go/internal/strictjson"
)

// latest is the last second of the year 9999: a later NumericDate is refused,
// because not every date library reads one.
const latest = 253402300799

// ErrInvalid is wrapped by every error of Verify.
var ErrInvalid = errors.New("invalid token")

// Identity is what a verified token says.
type Identity struct {
	Subject string
	Scope   string // space-separated
}

// Verifier verifies tokens of one issuer for one audience.
type Verifier struct {
	key      *rsa.PublicKey
	issuer   string
	audience string
	now      func() time.Time
	parser   *jwt.Parser
}

// NewVerifier parses the public key, PEM with an RSA SubjectPublicKeyInfo.
func NewVerifier(publicKey []byte, issuer, audience string) (*Verifier, error) {
	key, err := jwt.ParseRSAPublicKeyFromPEM(publicKey)
	if err != nil {
		return nil, fmt.Errorf("parse the public key: %w", err)
	}
	return &Verifier{
		key:      key,
		issuer:   issuer,
		audience: audience,
		now:      time.Now,
		// The claims are checked by check, whole: the library's own checks
		// allow what the contract does not.
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}),
			jwt.WithStrictDecoding(),
			jwt.WithoutClaimsValidation(),
		),
	}, nil
}

// Verify checks one token, signature and claims, and that its scope holds the
// given one. The error wraps ErrInvalid and names the check that failed.
func (v *Verifier) Verify(token, scope string) (Identity, error) {
	if !isCompact(token) {
		return Identity{}, fmt.Errorf("%w: not three base64url parts", ErrInvalid)
	}
	var c claims
	if _, err := v.parser.ParseWithClaims(token, &c, v.keyFor); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := v.check(&c, scope); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return Identity{Subject: c.subject, Scope: c.scope}, nil
}

// isCompact keeps out what a lenient decoder would skip, line breaks above all.
func isCompact(token string) bool {
	dots := 0
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.':
			dots++
		default:
			return false
		}
	}
	return dots == 2
}

// keyFor checks the header and hands out the one key there is: a key id does not
// choose anything. The library calls it before it verifies the signature.
func (v *Verifier) keyFor(t *jwt.Token) (any, error) {
	encoded, _, _ := strings.Cut(t.Raw, ".")
	header, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("decode the header: %w", err)
	}
	err = strictjson.Object(header, func(string, []byte) {})
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	if _, found := t.Header["crit"]; found {
		return nil, errors.New("header with critical extensions")
	}
	if kid, found := t.Header["kid"]; found {
		if _, ok := kid.(string); !ok {
			return nil, errors.New("key id is not a string")
		}
	}
	return v.key, nil
}

func (v *Verifier) check(c *claims, scope string) error {
	now := float64(v.now().Unix())
	switch {
	case c.issuer != v.issuer:
		return errors.New("wrong iss")
	case !slices.Contains(c.audience, v.audience):
		return errors.New("wrong aud")
	case c.subject == "":
		return errors.New("no sub")
	case !c.hasExpiry || now >= c.expiry:
		return errors.New("expired, or no exp")
	case now < math.Floor(c.notBefore):
		return errors.New("nbf in the future")
	case !hasScope(c.scope, scope):
		return errors.New("scope is missing")
	}
	return nil
}

func hasScope(granted, wanted string) bool {
	for len(granted) > 0 {
		var one string
		one, granted, _ = strings.Cut(granted, " ")
		if one == wanted {
			return true
		}
	}
	return false
}

// claims are the claims that the contract names, with the types it demands.
type claims struct {
	issuer    string
	audience  []string
	subject   string
	scope     string
	expiry    float64
	notBefore float64
	hasExpiry bool
}

// UnmarshalJSON reads the claims set. A claim that comes twice counts the last
// time; one of the wrong type makes the token invalid.
func (c *claims) UnmarshalJSON(data []byte) error {
	wrong := map[string]bool(nil)
	err := strictjson.Object(data, func(name string, value []byte) {
		ok := true
		switch name {
		case "iss":
			c.issuer, ok = strictjson.String(value)
		case "sub":
			c.subject, ok = strictjson.String(value)
		case "scope":
			c.scope, ok = strictjson.String(value)
		case "aud":
			if one, isString := strictjson.String(value); isString {
				c.audience = []string{one}
			} else {
				c.audience, ok = strictjson.Strings(value)
			}
		case "exp":
			c.expiry, ok = numericDate(value)
			c.hasExpiry = ok
		case "nbf":
			c.notBefore, ok = numericDate(value)
		case "iat":
			_, ok = numericDate(value) // required to be a date, compared with nothing
		default:
			return
		}
		if !ok && wrong == nil {
			wrong = map[string]bool{}
		}
		if wrong != nil {
			wrong[name] = !ok
		}
	})
	if err != nil {
		return err
	}
	for name, isWrong := range wrong {
		if isWrong {
			return fmt.Errorf("claim %s has the wrong type", name)
		}
	}
	return nil
}

// numericDate reads seconds since 1970.
func numericDate(value []byte) (float64, bool) {
	if !strictjson.IsNumber(value) {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 || seconds > latest {
		return 0, false
	}
	return seconds, true
}

// The library's view of the claims. It asks for none of them, because its own
// validation is off.

// GetExpirationTime implements jwt.Claims.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuedAt implements jwt.Claims.
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) { return nil, nil }

// GetNotBefore implements jwt.Claims.
func (c *claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuer implements jwt.Claims.
func (c *claims) GetIssuer() (string, error) { return c.issuer, nil }

// GetSubject implements jwt.Claims.
func (c *claims) GetSubject() (string, error) { return c.subject, nil }

// GetAudience implements jwt.Claims.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return c.audience, nil }
