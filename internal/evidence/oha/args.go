// Package oha knows oha, the load generator: the command line that makes it
// send what the protocol asks for, and the JSON it leaves behind.
package oha

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Program is the file name of the load generator.
const Program = "oha"

// Token is a bearer token. It prints as a placeholder, so that it reaches
// neither a log nor an error by accident.
type Token string

// String returns a placeholder.
func (Token) String() string { return "[token]" }

// GoString returns a placeholder.
func (Token) GoString() string { return "[token]" }

// MarshalText returns a placeholder.
func (Token) MarshalText() ([]byte, error) { return []byte("[token]"), nil }

// Spec is one run of the load generator.
type Spec struct {
	Base        string        // scheme, host and port of the server: http://app:8080
	Method      string        // HTTP method; empty means GET
	Path        string        // of the request, from its first slash
	Random      bool          // whether Path is a pattern that is filled anew for each request
	Body        string        // of the request, empty for none
	ContentType string        // of the body, empty for none
	Token       Token         // bearer token, empty for none
	Connections int           // kept open for the whole run
	Target      int           // requests per second in an open loop, 0 for a closed one
	Duration    time.Duration // nominal window
	Timeout     time.Duration // of each request, 0 for none
	Out         string        // file that receives the JSON, empty for standard output
}

// Check says in one sentence what is wrong with a spec, or nothing.
func (s Spec) Check() error {
	u, err := url.Parse(s.Base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("load generator: the server %q is not an http:// address", s.Base)
	case !strings.HasPrefix(s.Path, "/"):
		return fmt.Errorf("load generator: the path %q does not begin with a slash", s.Path)
	case s.Connections < 1:
		return fmt.Errorf("load generator: %d connections asked for, at least 1 is needed", s.Connections)
	case s.Target < 0:
		return fmt.Errorf("load generator: a target of %d requests per second is below zero", s.Target)
	case s.Duration < time.Millisecond:
		return fmt.Errorf("load generator: a window of %v is shorter than a millisecond", s.Duration)
	case s.Timeout < 0:
		return fmt.Errorf("load generator: a request timeout of %v is below zero", s.Timeout)
	}
	return nil
}

// Args returns oha's arguments for a spec, without the program's name. An open
// loop sends at the target rate and counts latency from when oha's ticker woke for
// a request, which is later than it was due when oha itself is late; a closed loop sends the next request when the last one was answered. In both,
// connections are kept alive and requests open at the end are waited for, so
// that every request sent is counted.
func Args(s Spec) []string {
	method := s.Method
	if method == "" {
		method = "GET"
	}
	args := []string{
		"--no-tui", "--no-color",
		"--output-format", "json",
		"-c", strconv.Itoa(s.Connections),
		"-z", humantime(s.Duration),
		"-w",
		"-m", method,
	}
	if s.Out != "" {
		args = append(args, "-o", s.Out)
	}
	if s.Timeout > 0 {
		args = append(args, "-t", humantime(s.Timeout))
	}
	if s.Target > 0 {
		args = append(args, "-q", strconv.Itoa(s.Target), "--latency-correction")
	}
	if s.Token != "" {
		args = append(args, "-H", authorization+string(s.Token))
	}
	if s.ContentType != "" {
		args = append(args, "-T", s.ContentType)
	}
	if s.Body != "" {
		args = append(args, "-d", s.Body)
	}
	base := strings.TrimSuffix(s.Base, "/")
	if s.Random {
		// The whole URL is a pattern then, in which oha takes a dot for a dot.
		base = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(base)
		args = append(args, "--rand-regex-url")
	}
	return append(args, base+s.Path)
}

const authorization = "Authorization: Bearer "

// String is the command line of a spec as a person would type it, with the
// token left out.
func (s Spec) String() string { return Redacted(Args(s)) }

// Redacted renders oha's arguments as a command line in which every
// authorization header lacks its value.
func Redacted(args []string) string {
	var b strings.Builder
	b.WriteString(Program)
	for _, a := range args {
		b.WriteByte(' ')
		if name, _, ok := strings.Cut(a, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "authorization") {
			a = authorization + Token("").String()
		}
		b.WriteString(quote(a))
	}
	return b.String()
}

// quote puts single quotes around an argument that a shell would not take as
// it is.
func quote(a string) string {
	if a != "" && !strings.ContainsFunc(a, func(r rune) bool {
		return !strings.ContainsRune("-_./:=,@%+", r) &&
			(r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return a
	}
	return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
}

// humantime writes a duration as oha reads it: one number and one unit.
func humantime(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}
