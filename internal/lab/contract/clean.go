package contract

import (
	"regexp"
	"strings"
)

// cleaner takes tokens and keys out of what a candidate sent back, before
// anything else looks at it: an error page may well repeat the request.
type cleaner struct{ r *strings.Replacer }

// tokenLike finds what looks like a token or a key, whatever it came from.
var tokenLike = regexp.MustCompile(`eyJ[A-Za-z0-9_\-+/=]{8,}(\.[A-Za-z0-9_\-+/=]*)*|-----BEGIN[^-]*-----[^-]*(-----END[^-]*-----)?`)

func newCleaner(token string, keys *Keys) cleaner {
	pairs := []string{keys.publicPEM, redactedKeys}
	if len(token) > 16 {
		pairs = append(pairs, token, redactedToken)
		for _, part := range strings.Split(token, ".") {
			if len(part) > 16 {
				pairs = append(pairs, part, redactedToken)
			}
		}
	}
	return cleaner{strings.NewReplacer(pairs...)}
}

func (c cleaner) text(s string) string {
	return tokenLike.ReplaceAllString(c.r.Replace(s), redactedToken)
}

func (c cleaner) answer(a *answer) {
	a.body = []byte(c.text(string(a.body)))
	for _, values := range a.header {
		for i, v := range values {
			values[i] = c.text(v)
		}
	}
}
