//go:build integration

package difftest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

// request is one generated request, byte for byte, and what was done to make it.
type request struct {
	kind string
	raw  []byte
}

// generator makes requests, most of them nearly right: what is wrong with a
// request should be one thing, so that the first check does not hide the others.
type generator struct {
	*mathrand.Rand
	key   *rsa.PrivateKey
	read  string // a good token for reading
	write string
}

const (
	issuer   = "https://auth.bench.local"
	audience = "events-api"
	subject  = "bench-client"
)

func newGenerator(t testing.TB, seed uint64, key *rsa.PrivateKey) *generator {
	g := &generator{Rand: mathrand.New(mathrand.NewPCG(seed, 0)), key: key}
	g.read = g.sign(t, `{"alg":"RS256","typ":"JWT"}`, goodClaims("events:read"))
	g.write = g.sign(t, `{"alg":"RS256","typ":"JWT"}`, goodClaims("events:write"))
	return g
}

func goodClaims(scope string) string {
	return fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"scope":%q,"exp":%d}`, issuer, audience, subject, scope, time.Now().Add(time.Hour).Unix())
}

func (g *generator) sign(t testing.TB, header, claims string) string {
	t.Helper()
	text := encode(header) + "." + encode(claims)
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, g.key, crypto.SHA256, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(string(signature))
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// next makes a request of one of the four kinds.
func (g *generator) next(t testing.TB) request {
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		return g.bodyRequest()
	case 4, 5, 6:
		return g.tokenRequest(t)
	case 7, 8:
		return g.targetRequest()
	default:
		return g.framedRequest()
	}
}

func get(target, authorization string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: app\r\nAuthorization: " + authorization + "\r\n\r\n")
}

func post(authorization, headers, body string) []byte {
	return []byte("POST /events HTTP/1.1\r\nHost: app\r\nAuthorization: " + authorization + "\r\n" + headers +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// bodyRequest writes with a good token and a body that was tampered with.
func (g *generator) bodyRequest() request {
	body := g.body()
	headers := g.pick("", "", "Content-Type: application/json\r\n", "Content-Type: application/x-www-form-urlencoded\r\n",
		"Content-Type: multipart/form-data; boundary=x\r\n", "Content-Type: text/xml\r\nContent-Encoding: gzip\r\n", "Expect: 100-continue\r\n")
	return request{"body", post("Bearer "+g.write, headers, body)}
}

func (g *generator) body() string {
	kind := g.pick(`"login"`, `"login"`, `"login"`, g.value(0))
	payload := g.pick(`{"a":1}`, g.object(0), g.object(0), g.value(0))
	body := `{"kind":` + kind + `,"payload":` + payload + `}`
	switch g.IntN(8) {
	case 0:
		body = `{"payload":` + payload + `,"kind":` + kind + `,` + g.name() + `:` + g.value(0) + `}`
	case 1:
		body = `{` + g.name() + `:` + g.value(0) + `,"kind":` + kind + `,` + g.name() + `:` + g.value(0) + `,"payload":` + payload + `}`
	}
	for g.IntN(3) == 0 {
		body = g.mutate(body)
	}
	return body
}

// fragments are what readers of JSON disagree about.
var fragments = []string{
	"{", "}", "[", "]", ",", ":", `"`, `\`, `\"`, `\/`, `\u0000`, `\\u0000`, `\\\u0000`, `\ud800`, `\udc00`, `\ud83d\ude00`, `\ud83d\u0041`, `\uD834\uDD1E`,
	`\u004b`, `\u00e9`, `\U0041`, `\x41`, `\'`, `\a`, `\b\f\n\r\t`, `\`, "\x00", "\x01", "\x1f", "\x7f", "\t", "\n", "\r\n", "\v", "\f", " ", "\u00a0", "\u2028", "\ufeff",
	"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "é", "😀", "\ufffe", "\ufffd",
	"true", "TRUE", "True", "false", "FALSE", "null", "NULL", "Null", "nan", "NaN", "Infinity", "-Infinity", "undefined",
	"0", "-0", "00", "01", "-", "+1", "1.", ".5", "1.0", "1.10", "1e5", "1E+5", "1e-5", "1e05", "1e", "1e+", "0x10", "1_000", "1e308", "1e309", "1e-308", "1e-309", "1e0000308", "1e0000309",
	"1e400", "-1e400", "1e131071", "1e131072", "1e-16383", "1e-20000", "1e99999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
	"123456789012345678901234567890", "0.1", "0.30000000000000004", "1.7976931348623157e308", "4.9e-324", "5e-324", strings.Repeat("9", 400), "0." + strings.Repeat("1", 400),
	"/*x*/", "//x\n", "#x\n", "'kind'", `"kind"`, `"Kind"`, `"kınd"`, `"payload"`, `"\u006bind"`, `"kind\u0000"`, `"\u0000kind"`, `""`, `"kind":1,`, `"payload":{},`, "{}", "[]",
}

func (g *generator) fragment() string { return fragments[g.IntN(len(fragments))] }

func (g *generator) mutate(s string) string {
	at := g.IntN(len(s) + 1)
	switch g.IntN(7) {
	case 0: // leave a byte out
		if at < len(s) {
			return s[:at] + s[at+1:]
		}
		return s[:max(0, at-1)]
	case 1: // change a byte
		if at < len(s) {
			return s[:at] + string([]byte{byte(g.IntN(256))}) + s[at+1:]
		}
		return s + string([]byte{byte(g.IntN(256))})
	case 2: // cut
		return s[:at]
	case 3: // change the case of a letter
		if at < len(s) && (s[at]|32 >= 'a' && s[at]|32 <= 'z') {
			return s[:at] + string([]byte{s[at] ^ 32}) + s[at+1:]
		}
		return s
	case 4: // say something twice
		to := min(len(s), at+g.IntN(20))
		return s[:to] + s[at:]
	case 5: // nest, around the limit
		n := g.pick("1", "3", "509", "510", "511", "512", "513")
		depth, _ := strconv.Atoi(n)
		if g.IntN(2) == 0 {
			return strings.Replace(s, `:1`, `:`+strings.Repeat("[", depth)+strings.Repeat("]", depth), 1)
		}
		return strings.Replace(s, `:1`, `:`+strings.Repeat(`{"a":`, depth)+`1`+strings.Repeat("}", depth), 1)
	default:
		return s[:at] + g.fragment() + s[at:]
	}
}

func (g *generator) name() string {
	switch g.IntN(4) {
	case 0:
		return `"` + g.fragment() + `"`
	case 1:
		return g.pick(`"kind"`, `"payload"`, `"id"`, `"subject"`, `"Kind"`, `"PAYLOAD"`, `"0"`, `"-1"`, `""`)
	default:
		return strconv.Quote(g.pick("a", "b", "c", "x y", "ä"))
	}
}

func (g *generator) value(depth int) string {
	switch n := g.IntN(12); {
	case n < 3 && depth < 4:
		return g.object(depth + 1)
	case n < 5 && depth < 4:
		parts := make([]string, g.IntN(3))
		for i := range parts {
			parts[i] = g.value(depth + 1)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n < 8:
		return `"` + g.fragment() + g.pick("", "text", g.fragment()) + `"`
	case n < 10:
		return g.fragment()
	default:
		return g.pick("1", "true", "false", "null", "0.5", `""`, `" "`)
	}
}

func (g *generator) object(depth int) string {
	parts := make([]string, g.IntN(3))
	for i := range parts {
		parts[i] = g.name() + g.pick(":", ":", ":", " : ", "\n:\t") + g.value(depth+1)
	}
	return g.pick("{", "{", "{ ") + strings.Join(parts, ",") + "}"
}

// tokenRequest asks for /auth with a token that was tampered with, most of the
// time before it was signed.
func (g *generator) tokenRequest(t testing.TB) request {
	header, claims := `{"alg":"RS256","typ":"JWT"}`, goodClaims("events:read")
	now := time.Now().Unix()
	switch g.IntN(9) {
	case 0:
		header = g.mutate(header)
	case 1:
		claims = g.mutate(claims)
	case 2: // a member more, last or first
		member := g.pick(`"exp"`, `"nbf"`, `"iat"`, `"iss"`, `"aud"`, `"sub"`, `"scope"`, `"SUB"`, `"jti"`, g.name()) + ":" + g.claim(now)
		if g.IntN(2) == 0 {
			claims = claims[:len(claims)-1] + "," + member + "}"
		} else {
			claims = "{" + member + "," + claims[1:]
		}
	case 3: // one member replaced
		name := g.pick("iss", "aud", "sub", "scope", "exp")
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(claims), &all); err != nil {
			t.Fatal(err)
		}
		claims = strings.Replace(claims, `"`+name+`":`+string(all[name]), `"`+name+`":`+g.claim(now), 1)
	case 4:
		member := g.pick(`"crit"`, `"kid"`, `"typ"`, `"enc"`, `"zip"`, `"cty"`, `"alg"`, `"Alg"`, `""`, g.name()) + ":" + g.pick(g.value(0), `"RS256"`, `"x"`, "1e400", "null", strings.Repeat("9", 400))
		if g.IntN(2) == 0 {
			header = header[:len(header)-1] + "," + member + "}"
		} else {
			header = "{" + member + "," + header[1:]
		}
	case 5:
		claims = g.value(0)
	case 6:
		claims = claims[:len(claims)-1] + `,"x":` + g.value(0) + `}`
	}
	token := g.sign(t, header, claims)
	if g.IntN(5) == 0 {
		token = g.mutateToken(token)
	}
	authorization := "Bearer " + token
	if g.IntN(8) == 0 {
		authorization = g.pick("bearer "+token, "BEARER  "+token, "Bearer\t"+token, " Bearer "+token+" ", "\tBearer "+token+"\t", token, "Basic "+token, "Bearer "+token+",", "Bearer",
			"Bearer "+token+" x", "Bearer "+token+"\r\nAuthorization: Bearer "+token, "Bearer "+token+"\r\nAuthorization:", "\r\nAuthorization: Bearer "+token, "Bearer "+token+"\r\nauthorization: x",
			"Bearer "+token+"\x01", "Bearer "+token+"\xe9", "Béarer "+token, "Bearer "+token+"\x7f", `Bearer "`+token+`"`, "Bearer="+token)
	}
	return request{"token", get(g.pick("/auth", "/auth", "/auth", "/events/7", "/events/x"), authorization)}
}

func (g *generator) claim(now int64) string {
	n := strconv.FormatInt(now, 10)
	switch g.IntN(4) {
	case 0:
		return g.value(0)
	case 1:
		return g.pick(n, strconv.FormatInt(now+1000, 10), strconv.FormatInt(now-1000, 10), strconv.FormatInt(now+1000, 10)+".5", strconv.FormatInt(now-1000, 10)+".5", "253402300799", "253402300799.5", "253402300800",
			`"`+n+`"`, "0", "-1", "-0", "1e10", "1e11", "1e12", "1e300", "1e400", "-1e400", "1e-400", "99999999999999999999", "["+n+"]", "true", "null", `{"`+n+`":`+n+`}`)
	case 2:
		return g.pick(`"`+audience+`"`, `["`+audience+`"]`, `["x","`+audience+`"]`, `["`+audience+`",1]`, `["`+audience+`",null]`, `{"0":"`+audience+`"}`, `[["`+audience+`"]]`, `[]`, `""`, `"events-api "`, `"Events-Api"`, `"events\u002dapi"`, `["events\u002dapi"]`)
	default:
		return g.pick(`"`+issuer+`"`, `"`+issuer+`/"`, `"events:read"`, `"events:read events:write"`, `"x  events:read "`, `"events:readx"`, `"xevents:read"`, `"events:read,x"`, `"events:read\tx"`, `"events:read\u0020x"`, `["events:read"]`,
			`"bench-client"`, `"<b>&\u2028\u2029\u0007\u007f/\\\"é😀"`, `"\u0000"`, `"0"`, `12345678901234567890123`, `" "`, `"\ud800"`)
	}
}

func (g *generator) mutateToken(token string) string {
	parts := strings.Split(token, ".")
	last := len(token) - 1
	at := g.IntN(len(token))
	switch g.IntN(10) {
	case 0:
		return token[:at] + g.pick("=", "+", "/", " ", "%0A", ".", "\t", "~", "A", "\xff", ",") + token[at:]
	case 1: // the spare bits of the last digit
		return token[:last] + string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[g.IntN(64)])
	case 2:
		return token + g.pick("=", "==", ".", "A", "AA", "AAAA", ".A", "..")
	case 3:
		return token[:at]
	case 4:
		parts[g.IntN(len(parts))] = ""
		return strings.Join(parts, ".")
	case 5:
		i, j := g.IntN(3), g.IntN(3)
		parts[i], parts[j] = parts[j], parts[i]
		return strings.Join(parts, ".")
	case 6:
		return strings.NewReplacer("-", "+", "_", "/").Replace(token)
	case 7:
		return token[:at] + string("AZaz09-_"[g.IntN(8)]) + token[min(len(token), at+1):]
	case 8:
		return parts[0] + "." + parts[1] + "." + parts[2] + strings.Repeat("A", g.IntN(16384))
	default:
		return token + strings.Repeat("=", g.IntN(4))
	}
}

// targetRequest asks for odd addresses by odd methods.
func (g *generator) targetRequest() request {
	target := ""
	switch g.IntN(4) {
	case 0:
		target = "/events/" + g.pick("0", "1", "7", "-1", "+1", "01", "1.0", "1e3", "9223372036854775807", "9223372036854775808", "18446744073709551617", "%31", "1%00", "1%0A", "1/", "1//", "1?", "1?x=%zz", "1#x", "1;x", "1%3F", "%D9%A1", "٣",
			"1%2f", "1%2F..", "..", "../auth", "../../x", "%2e%2e/%2e%2e/x", ".", "./1", "", "/1", "1%", "1%4", "1%zz", "\x80", "1&", "a", "1|x", `1"`, "1<", "1\\", "1^", "1`", "{1}", "*", strings.Repeat("9", g.IntN(3000)+1))
	case 1:
		for range g.IntN(5) + 1 {
			target += g.pick("/", "/", "//", "/auth", "/events", "/events/", "7", "/..", "/.", "%2e", "%2F", "?", "%00", "%zz", "auth", "/healthz", "%20", "+", "é", "/x", "=", "&", "%3f", "%23", "%25", ";")
		}
		if target[0] != '/' {
			target = "/" + target
		}
	case 2:
		target = g.pick("/auth", "/events", "/events/7", "/healthz", "/auth/", "/Auth", "/AUTH", "//auth", "/auth?", "/auth?a=b", "/auth?"+strings.Repeat("a[]=1&", 1500), "/auth#", "/", "*", "/events/7?x", "http://app/auth", "http://app/events/7?x", "http://other/auth", "http://app", "HTTP://app/auth", "/percore/400", "/percore/404", "/percore/500", "/index.php", "/fpm.php", "/worker.php", "/auth/x.php", "/x.php/auth")
	default:
		target = g.pick("/auth", "/events", "/events/7", "/events/x", "/nothing")
	}
	method := "GET"
	if g.IntN(3) == 0 {
		method = g.pick("HEAD", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "Get", "FOO", "PROPFIND", "G-T", "G_T", "M1", "GET1", "QUERY")
	}
	authorization := "Authorization: Bearer " + g.pick(g.read, g.read, g.read, g.write, "x") + "\r\n"
	switch g.IntN(8) {
	case 0:
		authorization = ""
	case 1:
		if strings.Contains(target, "/healthz") {
			break // needs no token; what two of them are to it is nobody's business
		}
		authorization += "Authorization: Bearer " + g.read + "\r\n"
	}
	return request{"target", []byte(method + " " + target + " HTTP/1.1\r\nHost: app\r\n" + authorization + "\r\n")}
}

// framedRequest sends a body of an odd length or in chunks.
func (g *generator) framedRequest() request {
	size := []int{0, 1, 100, 4096, 65535, 65536, 65537, 65600, 70000, 131072, 300000}[g.IntN(11)]
	body := `{"kind":"size","payload":{"p":""}}`
	if size > len(body) {
		pad := size - len(body)
		switch g.IntN(3) {
		case 0:
			body = `{"kind":"size","payload":{"p":"` + strings.Repeat("x", pad) + `"}}`
		case 1:
			body += strings.Repeat(" ", pad)
		default:
			body = strings.Repeat("\n", pad) + body
		}
	} else if size == 0 {
		body = ""
	}
	token := g.pick(g.write, g.write, g.write, g.read, "x")
	line := g.pick("POST /events", "POST /events", "POST /events", "POST /events", "GET /auth", "PUT /events", "POST /nothing", "GET /events/7")
	head := line + " HTTP/1.1\r\nHost: app\r\nAuthorization: Bearer " + token + "\r\n"
	if g.IntN(2) == 0 {
		return request{"framed", []byte(head + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)}
	}
	var b strings.Builder
	b.WriteString(head + g.pick("Transfer-Encoding: chunked\r\n", "transfer-encoding: CHUNKED\r\n") + "\r\n")
	for body != "" {
		n := min(len(body), 1+g.IntN(g.IntN(40000)+1))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\n\r\n")
	return request{"framed", []byte(b.String())}
}
