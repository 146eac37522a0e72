//go:build integration

// Package difftest throws the same generated requests at all candidates and holds
// their answers against each other: a reviewer of the contract who never tires. The
// listed cases of contract.yaml say what is right; here it is enough that nobody
// answers alone, that nothing is a server error, and that the same body, written by
// different candidates, reads the same.
package difftest

import (
	"crypto/rsa"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// slow is longer than any answer takes on a busy machine: somebody waits for
// something that does not come.
const slow = 4 * time.Second

var (
	count = flag.Int("requests", 600, "how many requests are generated")
	seed  = flag.Uint64("seed", 1, "seed of the generator")
)

// outcome is what one candidate made of one request.
type outcome struct {
	answer
	row string // the written row as it reads, without id and time
	err error
}

func (o outcome) String() string {
	if o.err != nil {
		return o.err.Error()
	}
	if o.row != "" {
		return o.answer.String() + fmt.Sprintf(", a row that reads %.300q", o.row)
	}
	return o.answer.String()
}

// generate makes the requests of the seed.
func generate(t *testing.T, key *rsa.PrivateKey) (requests []request, readToken string) {
	g := newGenerator(t, *seed, key)
	for range *count {
		requests = append(requests, g.next(t))
	}
	return requests, g.read
}

// ask sends all requests to one candidate, and reads back what they wrote.
func ask(t *testing.T, to *target, requests []request, readToken string) []outcome {
	outcomes := make([]outcome, len(requests))
	failures := 0
	defer to.close()
	for i, r := range requests {
		o := &outcomes[i]
		start := time.Now()
		o.answer, o.err = to.send(t.Context(), r.raw)
		if took := time.Since(start); took > slow {
			t.Errorf("request %d (%s) of seed %d: %s took %s\n%s", i, r.kind, *seed, to.name, took, abridged(r.raw))
		}
		if o.err == nil && o.status == http.StatusCreated {
			o.row, o.err = readBack(t, to, o.body, readToken)
		}
		if o.err != nil {
			if failures++; failures > 20 {
				t.Fatalf("%s does not answer: %v", to.name, o.err)
			}
		}
	}
	return outcomes
}

// readBack reads the row that an answer to a write names.
func readBack(t *testing.T, to *target, written, readToken string) (string, error) {
	id := newID.FindStringSubmatch(written)
	if id == nil {
		return "", fmt.Errorf("%q names no id", written)
	}
	a, err := to.send(t.Context(), get("/events/"+id[1], "Bearer "+readToken))
	if err != nil {
		return "", fmt.Errorf("read row %s back: %w", id[1], err)
	}
	row, found := strings.CutPrefix(a.body, `{"id":`+id[1]+`,`)
	end := strings.LastIndex(row, `,"created_at":"`)
	if a.status != http.StatusOK || !found || end < 0 {
		return "", fmt.Errorf("row %s reads %v", id[1], a)
	}
	return row[:end], nil
}

// compare holds the outcomes of all candidates against each other.
func compare(t *testing.T, requests []request, names []string, outcomes [][]outcome) {
	seen := map[string]int{}
	differences := 0
	for i, r := range requests {
		first := outcomes[0][i]
		seen[fmt.Sprintf("%s %d", r.kind, first.status)]++
		same := first.status < 500
		var report strings.Builder
		for j, name := range names {
			o := outcomes[j][i]
			same = same && o.err == nil && o.comparable() == first.comparable() && o.row == first.row
			fmt.Fprintf(&report, "  %-10s %s\n", name, o)
		}
		if same {
			continue
		}
		t.Errorf("request %d (%s) of seed %d:\n%s\n%s", i, r.kind, *seed, abridged(r.raw), report.String())
		if differences++; differences >= 40 {
			t.Fatal("too many differences")
		}
	}
	for what, n := range seen {
		t.Logf("%6d  %s", n, what)
	}
	// A generator that only makes rubbish compares nothing.
	for _, what := range []string{"body 201", "body 400", "token 200", "token 401", "target 200", "target 404", "framed 201", "framed 400"} {
		if seen[what] < *count/1000 {
			t.Errorf("only %d requests of %d were answered as %q", seen[what], *count, what)
		}
	}
}

var long = regexp.MustCompile(`[A-Za-z0-9_-]{60,}`)

// abridged is a request without the length of its tokens and paddings.
func abridged(raw []byte) string {
	s := long.ReplaceAllStringFunc(string(raw), func(run string) string {
		claims, err := base64.RawURLEncoding.DecodeString(run)
		if err == nil && utf8.Valid(claims) {
			return "<" + string(claims) + ">"
		}
		return run[:8] + "…" + run[len(run)-4:]
	})
	s = fmt.Sprintf("%q", s)
	if len(s) > 1500 {
		s = s[:1000] + " … " + s[len(s)-400:]
	}
	return s
}
