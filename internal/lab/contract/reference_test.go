package contract

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// The reference is a strict server of the contract, written without a token
// library. A flaw, named in a test, makes it wrong in one way.
type reference struct {
	rows     *memoryRows
	key      *rsa.PublicKey
	pem      string
	der      []byte
	identity Identity
	flaws    map[string]bool

	mu    sync.Mutex
	cache map[string]verdict
}

type verdict struct {
	claims object
	ok     bool
}

func (s *reference) has(flaw string) bool { return s.flaws[flaw] }

// memoryRows is the events table of the reference.
type memoryRows struct {
	mu   sync.Mutex
	rows []Event
	next int64
}

func newMemoryRows(subject string) *memoryRows {
	m := &memoryRows{next: 1}
	for i := range 5 {
		m.add(subject, fmt.Sprintf("kind-%d", i), json.RawMessage(fmt.Sprintf(`{"n": %d, "nested": {"empty": {}}}`, i)))
	}
	return m
}

func (m *memoryRows) add(subject, kind string, payload json.RawMessage) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.next
	m.next++
	m.rows = append(m.rows, Event{id, subject, kind, payload, time.Now().Truncate(time.Microsecond)})
	return id
}

func (m *memoryRows) Count(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.rows)), nil
}

func (m *memoryRows) Last(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next - 1, nil
}

func (m *memoryRows) After(_ context.Context, id int64) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Event
	for _, e := range m.rows {
		if e.ID > id {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memoryRows) Event(_ context.Context, id int64) (Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.rows {
		if e.ID == id {
			return e, nil
		}
	}
	return Event{}, ErrNoRow
}

func (m *memoryRows) remove(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = slices.DeleteFunc(m.rows, func(e Event) bool { return e.ID == id })
}

// sharedKeys are minted once for all tests.
var sharedKeys = sync.OnceValues(func() (*Keys, error) {
	ours, err := rsa.GenerateKey(rand.Reader, KeyBits)
	if err != nil {
		return nil, err
	}
	foreign, err := rsa.GenerateKey(rand.Reader, KeyBits)
	if err != nil {
		return nil, err
	}
	return newKeys(ours, foreign)
})

var testIdentity = Identity{Issuer: "https://auth.bench.local", Audience: "events-api", Subject: "bench-user"}

// startReference serves the contract with the flaws and returns a target for
// the checker.
func startReference(t testing.TB, flaws ...string) Target {
	t.Helper()
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	s := &reference{
		rows:     newMemoryRows(testIdentity.Subject),
		key:      &keys.signing.PublicKey,
		pem:      keys.publicPEM,
		der:      keys.publicDER,
		identity: testIdentity,
		flaws:    map[string]bool{},
		cache:    map[string]verdict{},
	}
	for _, f := range flaws {
		s.flaws[f] = true
	}
	server := httptest.NewUnstartedServer(s)
	server.Config.MaxHeaderBytes = 44 << 10
	server.Config.DisableGeneralOptionsHandler = true
	server.Start()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	return Target{
		Name: "reference",
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		},
		Rows:     s.rows,
		Keys:     keys,
		Identity: testIdentity,
	}
}

func (s *reference) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if s.has("cleans-paths") {
		path = r.URL.Path
		for strings.Contains(path, "//") {
			path = strings.ReplaceAll(path, "//", "/")
		}
		path = strings.TrimSuffix(strings.TrimPrefix(path, "/x/.."), "/")
	}
	if r.URL.IsAbs() {
		path = strings.TrimPrefix(path, "http://"+r.Host)
	}
	if strings.Contains(path, "%00") || strings.HasPrefix(path, "/../") || r.Method != strings.ToUpper(r.Method) {
		http.Error(w, "400 Bad Request", http.StatusBadRequest)
		return
	}
	get := r.Method == "GET" || r.Method == "HEAD"
	if s.has("order-token-before-route") {
		if _, ok := s.identify(r, ""); !ok {
			s.fail(w, 401, "invalid_token")
			return
		}
	}
	switch {
	case get && path == "/auth", s.has("any-method") && path == "/auth":
		s.auth(w, r)
	case get && strings.HasPrefix(path, "/events/"):
		s.read(w, r, strings.TrimPrefix(path, "/events/"))
	case r.Method == "POST" && path == "/events":
		s.write(w, r)
	case r.Method == "DELETE" && s.has("deletes"):
		s.rows.remove(1)
		s.fail(w, 404, "not_found")
	case s.has("405") && (path == "/auth" || path == "/events"):
		s.fail(w, 405, "not_found")
	default:
		s.fail(w, 404, "not_found")
	}
}

func (s *reference) fail(w http.ResponseWriter, status int, code string) {
	if status == 401 && !s.has("no-www-authenticate") {
		v := `Bearer error="invalid_token"`
		if s.has("www-authenticate-basic") {
			v = "Basic"
		}
		w.Header().Set("WWW-Authenticate", v)
	}
	body := map[string]any{"error": code}
	if s.has("error-in-words") {
		body["error"] = "The token is invalid."
	}
	if s.has("error-with-more") {
		body["detail"] = "x"
	}
	s.answer(w, status, body)
}

func (s *reference) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	if s.has("content-type-html") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	w.WriteHeader(status)
	b, _ := json.Marshal(body)
	if s.has("not-json") {
		b = []byte("error")
	}
	_, _ = w.Write(b)
}

func (s *reference) auth(w http.ResponseWriter, r *http.Request) {
	claims, ok := s.identify(r, "events:read")
	if !ok {
		s.fail(w, 401, "invalid_token")
		return
	}
	scope := claims["scope"]
	if s.has("answers-scope-sorted") {
		words := strings.Fields(scope.(string))
		slices.Sort(words)
		scope = strings.Join(words, " ")
	}
	s.answer(w, 200, map[string]any{"sub": claims["sub"], "scope": scope})
}

var canonicalID = regexp.MustCompile(`^[1-9][0-9]*$`)

func (s *reference) read(w http.ResponseWriter, r *http.Request, text string) {
	if s.has("order-id-before-token") && !canonicalID.MatchString(text) {
		s.fail(w, 404, "not_found")
		return
	}
	claims, ok := s.identify(r, "events:read")
	if !ok {
		s.fail(w, 401, "invalid_token")
		return
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if s.has("id-lenient") {
		f, e := strconv.ParseFloat(strings.TrimSpace(r.URL.Path[len("/events/"):]), 64)
		id, err = int64(f), e
	} else if !canonicalID.MatchString(text) {
		s.fail(w, 404, "not_found")
		return
	}
	if err != nil {
		if s.has("id-overflow-is-500") {
			s.fail(w, 500, "server_error")
			return
		}
		s.fail(w, 404, "not_found")
		return
	}
	e, err := s.rows.Event(r.Context(), id)
	if err != nil || e.Subject != claims["sub"] && !s.has("reads-others") {
		s.fail(w, 404, "not_found")
		return
	}
	row := map[string]any{"id": e.ID, "kind": e.Kind, "payload": e.Payload, "created_at": e.CreatedAt.UTC().Format(time.RFC3339Nano)}
	switch {
	case s.has("created-at-in-words"):
		row["created_at"] = e.CreatedAt.Format(time.RFC1123)
	case s.has("created-at-now"):
		row["created_at"] = time.Now().Format(time.RFC3339Nano)
	case s.has("payload-as-text"):
		row["payload"] = string(e.Payload)
	case s.has("row-with-subject"):
		row["subject"] = e.Subject
	case s.has("id-as-text"):
		row["id"] = text
	}
	s.answer(w, 200, row)
}

func (s *reference) write(w http.ResponseWriter, r *http.Request) {
	early := s.has("order-body-before-token")
	body, readErr := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limit()))
	if s.has("no-chunks") && r.ContentLength < 0 {
		s.fail(w, 411, "invalid_request")
		return
	}
	if s.has("wants-content-type") && r.Header.Get("Content-Type") != "application/json" {
		s.fail(w, 415, "invalid_request")
		return
	}
	kind, payload, ok := s.readBody(body)
	ok = ok && readErr == nil
	if early && !ok {
		s.fail(w, 400, "invalid_request")
		return
	}
	claims, allowed := s.identify(r, "events:write")
	if !allowed {
		if s.has("writes-on-401") {
			s.rows.add("x", "x", json.RawMessage(`{}`))
		}
		s.fail(w, 401, "invalid_token")
		return
	}
	if !ok {
		if s.has("writes-on-400") {
			s.rows.add("x", "x", json.RawMessage(`{}`))
		}
		if s.has("500-on-400") {
			s.fail(w, 500, "server_error")
			return
		}
		s.fail(w, 400, "invalid_request")
		return
	}
	subject, _ := claims["sub"].(string)
	if s.has("stores-fixed-subject") {
		subject = s.identity.Subject
	}
	switch {
	case s.has("stores-through-floats"):
		var v any
		_ = json.Unmarshal(payload, &v)
		payload, _ = json.Marshal(v)
	case s.has("stores-empty-as-array") && strings.Contains(string(payload), "{}"):
		payload = json.RawMessage(strings.ReplaceAll(string(payload), "{}", "[]"))
	case s.has("stores-trimmed-kind"):
		kind = strings.TrimSpace(kind)
	case s.has("stores-kind-in-payload"):
		payload = json.RawMessage(`{"kind":"x"}`)
	}
	var id int64
	switch {
	case s.has("writes-nothing"):
		id = 17
	case s.has("writes-late"):
		id = 17
		time.AfterFunc(300*time.Millisecond, func() { s.rows.add(subject, kind, payload) })
	default:
		id = s.rows.add(subject, kind, payload)
	}
	if s.has("writes-twice") {
		s.rows.add(subject, kind, payload)
	}
	if s.has("answers-wrong-id") {
		id++
	}
	status := 201
	if s.has("created-is-200") {
		status = 200
	}
	s.answer(w, status, map[string]any{"id": id})
}

func (s *reference) limit() int64 {
	switch {
	case s.has("limit-one-more"):
		return 65537
	case s.has("limit-one-less"):
		return 65535
	case s.has("no-limit"):
		return 1 << 30
	}
	return 65536
}

var (
	escape    = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)
	bigNumber = regexp.MustCompile(`[eE][+-]?0*([0-9]+)`)
	strings1  = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// strictText reports whether a JSON text has no half surrogates and no U+0000.
func (s *reference) strictText(text string) bool {
	high := false
	end := 0
	for _, m := range escape.FindAllStringIndex(text, -1) {
		e := text[m[0]:m[1]]
		var code uint64
		if e[1] == 'u' && len(e) == 6 {
			code, _ = strconv.ParseUint(e[2:], 16, 32)
		} else {
			code = 'x'
		}
		isLow := code >= 0xdc00 && code < 0xe000
		if high != isLow || isLow && m[0] != end {
			return s.has("half-surrogates")
		}
		high = code >= 0xd800 && code < 0xdc00
		end = m[1]
		if code == 0 && !s.has("nul-escape") {
			return false
		}
	}
	return !high || s.has("half-surrogates")
}

func depth(text string) int {
	text = strings1.ReplaceAllString(text, "")
	deepest, now := 0, 0
	for _, c := range text {
		switch c {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

func (s *reference) readBody(body []byte) (kind string, payload json.RawMessage, ok bool) {
	text := string(body)
	if s.has("cuts-bom") {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	if !utf8.ValidString(text) && !s.has("any-bytes") || !s.strictText(text) {
		return "", nil, false
	}
	if depth(text) > 512 && !s.has("any-depth") {
		return "", nil, false
	}
	for _, m := range bigNumber.FindAllStringSubmatch(strings1.ReplaceAllString(text, ""), -1) {
		if n, err := strconv.Atoi(m[1]); (err != nil || n > 308) && !s.has("any-exponent") {
			return "", nil, false
		}
	}
	if s.has("struct-decoding") {
		var v struct {
			Kind    string
			Payload map[string]json.RawMessage
		}
		if json.Unmarshal([]byte(text), &v) != nil || v.Kind == "" || v.Payload == nil {
			return "", nil, false
		}
		payload, _ = json.Marshal(v.Payload)
		return v.Kind, payload, true
	}
	d := json.NewDecoder(strings.NewReader(text))
	var v map[string]json.RawMessage
	if d.Decode(&v) != nil || v == nil {
		return "", nil, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) && !s.has("trailing-text") {
		return "", nil, false
	}
	var k any
	if json.Unmarshal(v["kind"], &k) != nil {
		return "", nil, false
	}
	switch k := k.(type) {
	case string:
		kind = k
	case float64:
		if !s.has("kind-of-any-type") {
			return "", nil, false
		}
		kind = "n"
	default:
		return "", nil, false
	}
	if kind == "" && !s.has("kind-empty") || kind == "0" && s.has("kind-falsy") {
		return "", nil, false
	}
	payload = v["payload"]
	if strings.HasPrefix(string(payload), "[") && s.has("payload-array") {
		return kind, payload, true
	}
	if !strings.HasPrefix(string(payload), "{") {
		return "", nil, false
	}
	if s.has("payload-not-empty") && string(payload) == "{}" {
		return "", nil, false
	}
	return kind, payload, true
}

// identify is the token check. The empty scope asks for a good token only.
func (s *reference) identify(r *http.Request, scope string) (object, bool) {
	headers := r.Header.Values("Authorization")
	if s.has("first-authorization") && len(headers) > 1 {
		headers = headers[:1]
	}
	if s.has("last-authorization") && len(headers) > 1 {
		headers = headers[len(headers)-1:]
	}
	if q := r.URL.Query().Get("access_token"); q != "" && s.has("token-in-query") {
		headers = []string{"Bearer " + q}
	}
	if len(headers) != 1 {
		return nil, false
	}
	scheme, token, found := strings.Cut(strings.Trim(headers[0], " \t"), " ")
	if s.has("any-white-space") {
		if f := strings.Fields(headers[0]); len(f) > 1 {
			scheme, token, found = f[0], f[1], true
		}
	}
	if s.has("no-scheme") && !found {
		scheme, token = "bearer", scheme
	}
	if !strings.EqualFold(scheme, "bearer") && !s.has("any-scheme") || s.has("bearer-case") && scheme != "Bearer" {
		return nil, false
	}
	if !s.has("one-space") {
		token = strings.TrimLeft(token, " ")
	}
	claims, ok := s.cached(token)
	if !ok {
		return nil, false
	}
	return claims, scope == "" || s.hasScope(claims, scope)
}

func (s *reference) cached(token string) (object, bool) {
	key := token
	if s.has("caches-claims") {
		key = token[:strings.LastIndex(token+".", ".")]
		if i := strings.LastIndex(token, "."); i >= 0 {
			key = token[:i]
		}
	}
	s.mu.Lock()
	v, hit := s.cache[key]
	s.mu.Unlock()
	if hit && (s.has("caches") || s.has("caches-good") && v.ok || s.has("caches-bad") && !v.ok || s.has("caches-claims") && v.ok) {
		return v.claims, v.ok
	}
	v.claims, v.ok = s.verify(token)
	s.mu.Lock()
	s.cache[key] = v
	s.mu.Unlock()
	return v.claims, v.ok
}

func (s *reference) decode(part string) ([]byte, bool) {
	if s.has("padding") {
		part = strings.TrimRight(part, "=")
	}
	if s.has("standard-alphabet") {
		part = strings.NewReplacer("+", "-", "/", "_").Replace(part)
	}
	enc := base64.RawURLEncoding.Strict()
	if s.has("trailing-bits") {
		enc = base64.RawURLEncoding
	}
	if strings.ContainsAny(part, "\r\n") {
		return nil, false
	}
	b, err := enc.DecodeString(part)
	return b, err == nil
}

func (s *reference) object(part string) (object, bool) {
	b, ok := s.decode(part)
	if !ok || !utf8.Valid(b) && !s.has("any-bytes-in-token") || !s.strictText(string(b)) || depth(string(b)) > 511 && !s.has("any-depth") {
		return nil, false
	}
	if s.has("first-duplicate") {
		b = firstDuplicate(b)
	}
	v, _, err := parseJSON(b)
	o, isObject := v.(object)
	if s.has("names-without-case") && isObject {
		for name, v := range o {
			o[strings.ToLower(name)] = v
		}
	}
	return o, err == nil && isObject
}

// firstDuplicate renames later members of the same name in a flat object.
func firstDuplicate(b []byte) []byte {
	text := string(b)
	for _, name := range []string{`"exp":`, `"aud":`, `"alg":`, `"sub":`} {
		if i := strings.Index(text, name); i >= 0 {
			rest := strings.ReplaceAll(text[i+len(name):], name, `"x`+name[1:])
			text = text[:i+len(name)] + rest
		}
	}
	return []byte(text)
}

func (s *reference) verify(token string) (object, bool) {
	p := strings.Split(token, ".")
	if s.has("extra-parts") && len(p) > 3 {
		p = p[:3]
	}
	if len(p) == 2 && s.has("alg-none") {
		p = append(p, "")
	}
	if len(p) != 3 {
		return nil, false
	}
	header, ok := s.object(p[0])
	if !ok {
		return nil, false
	}
	claims, ok := s.object(p[1])
	if !ok {
		return nil, false
	}
	sig, ok := s.decode(p[2])
	if !ok {
		return nil, false
	}
	if _, crit := header["crit"]; crit && !s.has("ignores-crit") {
		return nil, false
	}
	for _, v := range header {
		n, isNumber := v.(number)
		if _, err := strconv.ParseFloat(string(n), 64); isNumber && err != nil && !s.has("any-header-number") {
			return nil, false
		}
	}
	if kid, has := header["kid"]; has && !s.has("any-kid") {
		if _, text := kid.(string); !text {
			return nil, false
		}
	}
	return claims, s.signed(header, p[0]+"."+p[1], sig) && s.good(claims)
}

func (s *reference) signed(header object, text string, sig []byte) bool {
	if s.has("no-signature") {
		return true
	}
	alg, _ := header["alg"].(string)
	key := s.key
	if s.has("alg-none") && strings.EqualFold(alg, "none") {
		return true
	}
	if s.has("alg-none-letter-for-letter") && alg == "none" {
		return true
	}
	if s.has("hmac") && alg == "HS256" {
		for _, secret := range []string{s.pem, strings.TrimSpace(s.pem), string(s.der), ""} {
			m := hmac.New(sha256.New, []byte(secret))
			m.Write([]byte(text))
			if hmac.Equal(m.Sum(nil), sig) {
				return true
			}
		}
	}
	if jwk, ok := header["jwk"].(object); ok && s.has("own-key") {
		n, _ := base64.RawURLEncoding.DecodeString(jwk["n"].(string))
		key = &rsa.PublicKey{E: 65537}
		key.N = newInt(n)
	}
	if s.has("any-rsa") {
		switch alg {
		case "RS384":
			d := sha512.Sum384([]byte(text))
			return rsa.VerifyPKCS1v15(key, crypto.SHA384, d[:], sig) == nil
		case "PS256":
			d := sha256.Sum256([]byte(text))
			return rsa.VerifyPSS(key, crypto.SHA256, d[:], sig, nil) == nil
		}
	}
	if alg != "RS256" && !s.has("ignores-alg") && !(s.has("alg-without-case") && strings.EqualFold(alg, "RS256")) {
		return false
	}
	d := sha256.Sum256([]byte(text))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, d[:], sig) == nil
}

func (s *reference) seconds(v any) (float64, bool) {
	n, ok := v.(number)
	if text, isText := v.(string); isText && s.has("times-as-text") {
		n, ok = number(text), true
	}
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if s.has("any-time") {
		return f, true
	}
	return f, err == nil && f >= 0 && f <= 253402300799
}

func (s *reference) good(claims object) bool {
	now := float64(time.Now().UnixNano()) / 1e9
	leeway := 0.0
	if s.has("leeway") {
		leeway = 60
	}
	v, present := claims["exp"]
	exp, ok := s.seconds(v)
	if !ok && !(s.has("exp-optional") && !present) && !(s.has("null-is-absent") && v == nil) || ok && now-leeway >= exp && !s.has("ignores-exp") {
		return false
	}
	if v, present := claims["nbf"]; present && !s.has("ignores-nbf") && !(s.has("null-is-absent") && v == nil) {
		nbf, ok := s.seconds(v)
		if !ok || math.Floor(nbf) > now+leeway {
			return false
		}
	}
	if v, present := claims["iat"]; present || s.has("looks-at-iat") {
		iat, ok := s.seconds(v)
		if !ok && !s.has("ignores-iat") || s.has("looks-at-iat") && iat > now {
			return false
		}
	}
	if !s.issuer(claims["iss"]) || !s.audience(claims["aud"]) {
		return false
	}
	sub, isText := claims["sub"].(string)
	if s.has("sub-optional") && claims["sub"] == nil {
		claims["sub"], sub, isText = "", "x", true
	}
	if n, ok := claims["sub"].(number); ok && s.has("sub-of-any-type") {
		sub, isText = string(n), true
		claims["sub"] = sub
	}
	if !isText || sub == "" && !s.has("sub-empty") || sub == "0" && s.has("sub-falsy") {
		return false
	}
	return true
}

func (s *reference) issuer(v any) bool {
	if list, ok := v.([]any); ok && s.has("iss-array") && len(list) == 1 {
		v = list[0]
	}
	iss, ok := v.(string)
	switch {
	case s.has("ignores-iss"):
		return true
	case s.has("iss-loose") && v == true:
		return true
	case s.has("iss-prefix"):
		return strings.HasPrefix(iss, s.identity.Issuer)
	case s.has("iss-slash"):
		return strings.TrimRight(iss, "/") == s.identity.Issuer
	}
	return ok && iss == s.identity.Issuer
}

func (s *reference) audience(v any) bool {
	ours := s.identity.Audience
	switch {
	case s.has("ignores-aud"):
		return true
	case s.has("aud-optional") && v == nil:
		return true
	}
	switch v := v.(type) {
	case string:
		return v == ours || s.has("aud-part") && strings.Contains(v, ours) || s.has("aud-words") && slices.Contains(strings.Fields(v), ours)
	case []any:
		if s.has("aud-text-only") {
			return false
		}
		if s.has("aud-empty-array") && len(v) == 0 {
			return true
		}
		if s.has("aud-any-array") && len(v) > 0 {
			return true
		}
		found := false
		for _, e := range v {
			text, ok := e.(string)
			if !ok && !s.has("aud-mixed-array") {
				return false
			}
			found = found || text == ours
		}
		return found
	}
	return false
}

func (s *reference) hasScope(claims object, scope string) bool {
	if s.has("ignores-scope") {
		if _, ok := claims["scope"].(string); !ok {
			claims["scope"] = ""
		}
		return true
	}
	if list, ok := claims["scope"].([]any); ok && s.has("scope-array") {
		return slices.Contains(list, any(scope))
	}
	have, ok := claims["scope"].(string)
	switch {
	case !ok:
		return false
	case s.has("scope-part"):
		return strings.Contains(have, scope)
	case s.has("scope-white-space"):
		return slices.Contains(strings.Fields(have), scope)
	case s.has("scope-without-case"):
		return slices.Contains(strings.Split(strings.ToLower(have), " "), scope)
	case s.has("scope-alone"):
		return have == scope
	case s.has("scope-prefix"):
		return slices.ContainsFunc(strings.Split(have, " "), func(one string) bool { return one != "" && strings.HasPrefix(scope, one) })
	}
	return slices.Contains(strings.Split(have, " "), scope)
}
