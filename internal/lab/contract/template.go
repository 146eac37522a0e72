package contract

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A template is text with ${…} in it. Paths, header lines, bodies and hand-made
// token parts are templates:
//
//	${now} ${now+10m} ${now-1s}   seconds since 1970, as of when the case starts
//	${hex c3 28}                  bytes
//	${repeat 600 [}               a text many times over
//	${pad}                        as many x as bring the body to its size
//	${token}                      the case's token
//	${sub} ${scope} ${iss} ${aud} what a good token says, escaped for a JSON string
//	${jwk ours} ${jwk foreign}    a public key as a JSON web key
type template []part

type part struct {
	verb  string // "" is literal text
	text  string
	times int
	shift time.Duration
}

const maxRendered = 4 << 20 // bytes a single template may grow to

func parseTemplate(s string) (template, error) {
	var t template
	size := 0
	for s != "" {
		before, rest, found := strings.Cut(s, "${")
		if before != "" {
			t = append(t, part{text: before})
			size += len(before)
		}
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("a ${ without its }")
		}
		p, err := parsePart(inside)
		if err != nil {
			return nil, err
		}
		if p.verb == "repeat" {
			if p.times > maxRendered/max(1, len(p.text)) {
				return nil, fmt.Errorf("${repeat} makes more than %d bytes", maxRendered)
			}
			size += p.times * len(p.text)
		}
		if size > maxRendered {
			return nil, fmt.Errorf("the text grows to more than %d bytes", maxRendered)
		}
		t = append(t, p)
		s = after
	}
	return t, nil
}

func parsePart(s string) (part, error) {
	verb, arg, _ := strings.Cut(s, " ")
	switch verb {
	case "token", "pad", "sub", "scope", "iss", "aud":
		if arg != "" {
			return part{}, fmt.Errorf("${%s} takes nothing after its name", verb)
		}
		return part{verb: verb}, nil
	case "hex":
		b, err := hex.DecodeString(strings.ReplaceAll(arg, " ", ""))
		if err != nil || len(b) == 0 {
			return part{}, fmt.Errorf("${hex} wants pairs of hexadecimal digits")
		}
		return part{text: string(b)}, nil
	case "repeat":
		count, text, _ := strings.Cut(arg, " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || text == "" {
			return part{}, fmt.Errorf("${repeat} wants a positive count and a text")
		}
		return part{verb: verb, text: text, times: n}, nil
	case "jwk":
		if arg != keyOurs && arg != keyForeign {
			return part{}, fmt.Errorf("${jwk} wants %s or %s", keyOurs, keyForeign)
		}
		return part{verb: verb, text: arg}, nil
	}
	if shift, ok := strings.CutPrefix(s, "now"); ok {
		if shift == "" {
			return part{verb: "now"}, nil
		}
		d, err := time.ParseDuration(shift)
		if err == nil && (shift[0] == '+' || shift[0] == '-') && d%time.Second == 0 {
			return part{verb: "now", shift: d}, nil
		}
		return part{}, fmt.Errorf("${now} may be followed by a sign and whole seconds, as in ${now-90s}")
	}
	return part{}, fmt.Errorf("${%s} is not one of now, hex, repeat, pad, token, sub, scope, iss, aud, jwk", clip(s, 40))
}

func (t template) uses(verb string) bool {
	for _, p := range t {
		if p.verb == verb {
			return true
		}
	}
	return false
}

// values is what a template may refer to.
type values struct {
	now      time.Time
	token    string
	identity Identity
	scope    string
	keys     *Keys
	pad      int
	plain    bool // not inside JSON: nothing is escaped
}

func (t template) render(v values) string {
	var b strings.Builder
	for _, p := range t {
		switch p.verb {
		case "":
			b.WriteString(p.text)
		case "repeat":
			b.WriteString(strings.Repeat(p.text, p.times))
		case "pad":
			b.WriteString(strings.Repeat("x", v.pad))
		case "now":
			b.WriteString(strconv.FormatInt(v.now.Add(p.shift).Unix(), 10))
		case "token":
			b.WriteString(v.token)
		case "sub":
			b.WriteString(v.text(v.identity.Subject))
		case "iss":
			b.WriteString(v.text(v.identity.Issuer))
		case "aud":
			b.WriteString(v.text(v.identity.Audience))
		case "scope":
			b.WriteString(v.text(v.scope))
		case "jwk":
			b.WriteString(v.keys.jwk(p.text))
		}
	}
	return b.String()
}

func (v values) text(s string) string {
	if v.plain {
		return s
	}
	return inJSON(s)
}

// inJSON is the text as it stands between the quotes of a JSON string.
func inJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return "" // a string always marshals
	}
	text := b.String()
	return text[1 : len(text)-2] // without the quotes and the line break
}

// clip shortens a text for an error.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
