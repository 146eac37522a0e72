package contract

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// DefaultScope is the scope of a case's token that does not say otherwise. It
// suffices for every scenario.
const DefaultScope = "events:read events:write"

// defaultLifetime is how long a case's token lives.
const defaultLifetime = 10 * time.Minute

// Names of the keys a token may be signed with.
const (
	keyOurs       = "ours"               // the signing key
	keyForeign    = "foreign"            // an RSA key that no candidate knows
	keyPEM        = "public-pem"         // HMAC secret: the public key as candidates get it
	keyPEMTrimmed = "public-pem-trimmed" // HMAC secret: the same without its last newline
	keyDER        = "public-der"         // HMAC secret: the bytes inside the PEM
	keyEmpty      = "empty"              // HMAC secret: nothing
)

var hmacKeys = []string{keyPEM, keyPEMTrimmed, keyDER, keyEmpty}

// signNone is the name of the signature that is not there.
const signNone = "none"

// TokenSpec says how a case's token is made. The zero value is a good token:
// signed with the signing key by RS256, with iss, aud, sub, DefaultScope, iat
// now and an exp in ten minutes.
type TokenSpec struct {
	None          bool              `yaml:"-"`              // no token at all
	Key           string            `yaml:"key"`            // what signs it
	Alg           any               `yaml:"alg"`            // what the header says
	Sign          string            `yaml:"sign"`           // how it is signed, where that is not what the header says
	Header        map[string]any    `yaml:"header"`         // further header members
	WithoutHeader []string          `yaml:"without_header"` // header members left out
	HeaderText    string            `yaml:"header_text"`    // the whole header as a template
	Claims        map[string]any    `yaml:"claims"`         // claims set, with the type they have in the file
	Times         map[string]string `yaml:"times"`          // claims set to now plus a duration
	Without       []string          `yaml:"without"`        // claims left out
	Payload       string            `yaml:"payload"`        // the whole payload as a template
	Mutate        []string          `yaml:"mutate"`         // what is done to the signed token, in this order

	header, payload template
	times           map[string]time.Duration
	sign            string
}

// mutations are the things done to a signed token. Each takes header, payload
// and signature as they stand in the token.
var mutations = map[string]func(t *parts){
	"truncate-signature": func(t *parts) { t.signature = t.signature[:len(t.signature)-min(len(t.signature), 6)] },
	"flip-signature-bit": func(t *parts) { t.signature = flipBit(t.signature) },
	"flip-payload-bit":   func(t *parts) { t.payload = flipBit(t.payload) },
	"zero-signature":     func(t *parts) { t.signature = encode(make([]byte, KeyBits/8)) },
	"strip-signature":    func(t *parts) { t.signature = "" },
	"drop-signature":     func(t *parts) { t.signature, t.parts = "", 2 },
	"empty-payload":      func(t *parts) { t.payload = "" },
	"empty-header":       func(t *parts) { t.header = "" },
	"swap-subject":       swapSubject,
	"not-base64":         func(t *parts) { t.signature = "!" + t.signature[min(1, len(t.signature)):] },
	"standard-alphabet":  func(t *parts) { t.signature = strings.NewReplacer("-", "+", "_", "/").Replace(t.signature) },
	"padding":            func(t *parts) { t.signature += "==" },
	"trailing-bits":      func(t *parts) { t.signature = trailingBits(t.signature) },
	"extra-part":         func(t *parts) { t.after = ".e30" },
	"space-inside":       func(t *parts) { t.signature = split(t.signature, " ") },
	"tab-inside":         func(t *parts) { t.signature = split(t.signature, "\t") },
	"quoted":             func(t *parts) { t.before, t.after = `"`, `"` },
	"lengthen":           func(t *parts) { t.signature += strings.Repeat("A", max(0, longToken-t.len())) },
	"json-serialisation": func(t *parts) { t.json = true },
}

// longToken is the length of a lengthened token in bytes.
const longToken = 16 << 10

func mutationNames() string {
	return strings.Join(slices.Sorted(maps.Keys(mutations)), ", ")
}

// parts is a token in the making.
type parts struct {
	header, payload, signature string
	before, after              string
	parts                      int
	json                       bool
}

func (t *parts) len() int { return len(t.header) + len(t.payload) + len(t.signature) + 2 }

func (t *parts) String() string {
	if t.json {
		return fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, t.payload, t.header, t.signature)
	}
	s := t.header + "." + t.payload
	if t.parts == 3 {
		s += "." + t.signature
	}
	return t.before + s + t.after
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// flipBit changes one bit of what a base64url text stands for.
func flipBit(s string) string {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		return s + "A"
	}
	b[len(b)/2] ^= 1
	return encode(b)
}

// trailingBits changes the bits of the last character that stand for nothing:
// a lenient decoder reads the same bytes.
func trailingBits(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if s == "" || len(s)%4 == 0 || len(s)%4 == 1 {
		return s + "A"
	}
	last := strings.IndexByte(alphabet, s[len(s)-1])
	if last < 0 {
		return s + "A"
	}
	return s[:len(s)-1] + string(alphabet[last^1])
}

func split(s, by string) string { return s[:len(s)/2] + by + s[len(s)/2:] }

// swapSubject puts another subject into the claims and leaves the signature.
func swapSubject(t *parts) {
	b, err := base64.RawURLEncoding.DecodeString(t.payload)
	var claims map[string]any
	if err != nil || json.Unmarshal(b, &claims) != nil || claims == nil {
		claims = map[string]any{}
	}
	claims["sub"] = "somebody-else"
	b, err = json.Marshal(claims)
	if err != nil {
		return
	}
	t.payload = encode(b)
}

// prepare checks the specification and keeps what build needs.
func (s *TokenSpec) prepare() error {
	if s.None {
		return nil
	}
	if s.Key == "" {
		s.Key = keyOurs
	}
	if s.Key != keyOurs && s.Key != keyForeign && !slices.Contains(hmacKeys, s.Key) {
		return fmt.Errorf("key %q is not one of %s, %s, %s", clip(s.Key, 40), keyOurs, keyForeign, strings.Join(hmacKeys, ", "))
	}
	if err := s.prepareHeader(); err != nil {
		return err
	}
	if err := s.prepareSignature(); err != nil {
		return err
	}
	if err := s.preparePayload(); err != nil {
		return err
	}
	return checkMutations(s.Mutate)
}

func checkMutations(names []string) error {
	for _, m := range names {
		if mutations[m] == nil {
			return fmt.Errorf("mutate %q is not one of %s", clip(m, 40), mutationNames())
		}
	}
	return nil
}

func (s *TokenSpec) prepareHeader() error {
	if s.HeaderText != "" {
		if s.Alg != nil || s.Header != nil || s.WithoutHeader != nil {
			return errors.New("header_text is the whole header and leaves no room for alg, header or without_header")
		}
		if s.Sign == "" {
			return errors.New("header_text needs sign beside it, which says how the token is signed")
		}
		t, err := parseTemplate(s.HeaderText)
		if err != nil {
			return fmt.Errorf("header_text: %w", err)
		}
		if t.uses("token") || t.uses("pad") {
			return errors.New("header_text cannot hold ${token} or ${pad}")
		}
		s.header = t
		return nil
	}
	for _, name := range s.WithoutHeader {
		if _, both := s.Header[name]; both {
			return fmt.Errorf("header member %s is both set and left out", name)
		}
		if name != "alg" && name != "typ" {
			return fmt.Errorf("without_header can leave out alg or typ, not %q", clip(name, 40))
		}
	}
	if _, twice := s.Header["alg"]; twice {
		return errors.New("alg has a key of its own and does not belong under header")
	}
	if err := checkTemplates(s.Header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if _, err := json.Marshal(s.Header); err != nil {
		return errors.New("header holds a value that JSON does not have")
	}
	if _, err := json.Marshal(s.Alg); err != nil {
		return errors.New("alg holds a value that JSON does not have")
	}
	return nil
}

func (s *TokenSpec) prepareSignature() error {
	s.sign = s.Sign
	if s.sign == "" {
		switch alg := s.Alg.(type) {
		case nil:
			s.sign = jwt.SigningMethodRS256.Alg()
		case string:
			s.sign = alg
		default:
			return errors.New("an alg that is not a string needs sign beside it, which says how the token is signed")
		}
	}
	isHMAC := slices.Contains(hmacKeys, s.Key)
	switch {
	case s.sign == signNone:
		return nil
	case strings.HasPrefix(s.sign, "HS"):
		if !isHMAC {
			return fmt.Errorf("%s signs with a secret, so key must be one of %s", clip(s.sign, 20), strings.Join(hmacKeys, ", "))
		}
	case isHMAC:
		return fmt.Errorf("key %s is a secret and signs by HS256, HS384 or HS512 only", s.Key)
	}
	switch s.sign {
	case "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "HS256", "HS384", "HS512":
		return nil
	}
	return fmt.Errorf("no key here signs by %q: set sign to RS256, RS384, RS512, PS256, PS384, PS512, ES256, HS256, HS384, HS512 or %s", clip(s.sign, 20), signNone)
}

func (s *TokenSpec) preparePayload() error {
	if s.Payload != "" {
		if s.Claims != nil || s.Times != nil || s.Without != nil {
			return errors.New("payload is the whole payload and leaves no room for claims, times or without")
		}
		t, err := parseTemplate(s.Payload)
		if err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		if t.uses("pad") {
			return errors.New("payload cannot hold ${pad}")
		}
		s.payload = t
		return nil
	}
	s.times = map[string]time.Duration{}
	for name, text := range s.Times {
		d, err := time.ParseDuration(text)
		if err != nil || d%time.Second != 0 {
			return fmt.Errorf("times: %s wants whole seconds from now, as in 10m or -1s", clip(name, 40))
		}
		s.times[name] = d
		if _, both := s.Claims[name]; both {
			return fmt.Errorf("claim %s is set under claims and under times", clip(name, 40))
		}
	}
	for _, name := range s.Without {
		_, claim := s.Claims[name]
		_, moment := s.Times[name]
		if claim || moment {
			return fmt.Errorf("claim %s is both set and left out", clip(name, 40))
		}
		if !slices.Contains([]string{"iss", "aud", "sub", "scope", "iat", "exp"}, name) {
			return fmt.Errorf("claim %s cannot be left out: a token does not have it by itself", clip(name, 40))
		}
	}
	if err := checkTemplates(s.Claims); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	if _, err := json.Marshal(s.Claims); err != nil {
		return errors.New("claims holds a value that JSON does not have")
	}
	return nil
}

// checkTemplates checks every string in a value read from YAML.
func checkTemplates(v any) error {
	switch v := v.(type) {
	case string:
		t, err := parseTemplate(v)
		if err == nil && (t.uses("token") || t.uses("pad")) {
			err = errors.New("${token} and ${pad} have no place inside a token")
		}
		return err
	case []any:
		for _, e := range v {
			if err := checkTemplates(e); err != nil {
				return err
			}
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			if err := checkTemplates(v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill renders every string in a value read from YAML.
func fill(v any, with values) any {
	switch v := v.(type) {
	case string:
		t, err := parseTemplate(v)
		if err != nil {
			return v // prepare has checked it
		}
		with.plain = true // the value is marshalled later
		return t.render(with)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fill(e, with)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = fill(e, with)
		}
		return out
	}
	return v
}

// madeToken is a token and what a candidate that accepts it should make of it.
type madeToken struct {
	text    string
	subject string
	scope   string
	parts   parts // before it was mutated
}

// mutated is the same token with something else done to it.
func (m madeToken) mutated(names []string) madeToken {
	t := m.parts
	for _, name := range names {
		mutations[name](&t)
	}
	m.text = t.String()
	return m
}

// build makes the token. Errors never quote it.
func (k *Keys) build(s *TokenSpec, id Identity, now time.Time) (madeToken, error) {
	made := madeToken{subject: id.Subject, scope: DefaultScope}
	if s.None {
		return made, nil
	}
	with := values{now: now, identity: id, scope: DefaultScope, keys: k}

	header, err := s.buildHeader(with)
	if err != nil {
		return made, err
	}
	payload, err := s.buildPayload(with, &made)
	if err != nil {
		return made, err
	}
	if s.payload != nil && s.payload.uses("token") {
		inner, err := k.build(&TokenSpec{Key: keyOurs, sign: "RS256"}, id, now)
		if err != nil {
			return made, err
		}
		with.token = inner.text
		payload = s.payload.render(with)
	}
	t := &parts{header: encode([]byte(header)), payload: encode([]byte(payload)), parts: 3}
	t.signature, err = k.signature(s.sign, s.Key, t.header+"."+t.payload)
	if err != nil {
		return made, err
	}
	// The other alphabet shows only where the signature has such a character.
	for n := 0; slices.Contains(s.Mutate, "standard-alphabet") && !strings.ContainsAny(t.signature, "-_"); n++ {
		if n == 100 {
			return made, errors.New("sign a token whose signature has - or _ in it: none came in 100 tries")
		}
		t.payload = encode([]byte(payload + strings.Repeat(" ", n+1)))
		if t.signature, err = k.signature(s.sign, s.Key, t.header+"."+t.payload); err != nil {
			return made, err
		}
	}
	made.parts = *t
	return made.mutated(s.Mutate), nil
}

func (s *TokenSpec) buildHeader(with values) (string, error) {
	if s.header != nil {
		return s.header.render(with), nil
	}
	header := map[string]any{"alg": "RS256", "typ": "JWT"}
	if s.Alg != nil {
		header["alg"] = s.Alg
	}
	for name, v := range s.Header {
		header[name] = fill(v, with)
		// A public key as a header member is an object, not its text.
		if text, ok := header[name].(string); ok && v != text && strings.HasPrefix(text, "{") {
			header[name] = json.RawMessage(text)
		}
	}
	for _, name := range s.WithoutHeader {
		delete(header, name)
	}
	b, err := json.Marshal(header)
	if err != nil {
		return "", fmt.Errorf("make the header of a token: %w", err)
	}
	return string(b), nil
}

func (s *TokenSpec) buildPayload(with values, made *madeToken) (string, error) {
	if s.payload != nil {
		return s.payload.render(with), nil
	}
	claims := map[string]any{
		"iss":   with.identity.Issuer,
		"aud":   with.identity.Audience,
		"sub":   with.identity.Subject,
		"scope": DefaultScope,
		"iat":   with.now.Unix(),
		"exp":   with.now.Add(defaultLifetime).Unix(),
	}
	for name, v := range s.Claims {
		claims[name] = fill(v, with)
	}
	for name, d := range s.times {
		claims[name] = with.now.Add(d).Unix()
	}
	for _, name := range s.Without {
		delete(claims, name)
	}
	if sub, ok := claims["sub"].(string); ok {
		made.subject = sub
	}
	if scope, ok := claims["scope"].(string); ok {
		made.scope = scope
	}
	b, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("make the claims of a token: %w", err)
	}
	return string(b), nil
}

// signature signs the text and returns the signature as it stands in a token.
func (k *Keys) signature(sign, key, text string) (string, error) {
	if sign == signNone {
		return "", nil
	}
	var with any
	switch key {
	case keyOurs:
		with = k.signing
	case keyForeign:
		with = k.foreign
	case keyPEM:
		with = []byte(k.publicPEM)
	case keyPEMTrimmed:
		with = []byte(strings.TrimSpace(k.publicPEM))
	case keyDER:
		with = k.publicDER
	case keyEmpty:
		with = []byte{}
	}
	if strings.HasPrefix(sign, "ES") {
		with = k.elliptic
	}
	method := jwt.GetSigningMethod(sign)
	if method == nil {
		return "", fmt.Errorf("sign a token: no method is called %q", clip(sign, 20))
	}
	sig, err := method.Sign(text, with)
	if err != nil {
		return "", fmt.Errorf("sign a token by %s: %w", sign, err)
	}
	return encode(sig), nil
}

// jwk is a public key as a JSON web key (RFC 7517, RFC 7518 section 6.3.1).
func (k *Keys) jwk(name string) string {
	key := &k.foreign.PublicKey
	if name == keyOurs {
		key = &k.signing.PublicKey
	}
	return jwkText(key)
}

func jwkText(key *rsa.PublicKey) string {
	return fmt.Sprintf(`{"e":%q,"kty":"RSA","n":%q}`, encode(big.NewInt(int64(key.E)).Bytes()), encode(key.N.Bytes()))
}
