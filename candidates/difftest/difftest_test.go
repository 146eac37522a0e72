//go:build integration

// Package difftest throws the same generated requests at all candidates and holds
// their answers against each other: a reviewer of the contract who never tires. The
// listed cases of contract.yaml say what is right; here it is enough that nobody
// answers alone, that nothing is a server error, and that rows written by different
// candidates from the same body read the same.
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
	count = flag.Int("requests", 3000, "how many requests are generated")
	seed  = flag.Uint64("seed", 1, "seed of the generator")
)

func compare(t *testing.T, targets []*target, key *rsa.PrivateKey) {
	g := newGenerator(t, *seed, key)
	seen := map[string]int{}
	differences := 0
	for i := range *count {
		r := g.next(t)
		answers := make([]answer, len(targets))
		for j, to := range targets {
			var err error
			start := time.Now()
			answers[j], err = to.send(t.Context(), r.raw)
			if took := time.Since(start); took > slow {
				t.Errorf("request %d (%s) of seed %d: %s took %s\n%s", i, r.kind, *seed, to.name, took, abridged(r.raw))
			}
			if err != nil {
				t.Errorf("request %d (%s) of seed %d: %v\n%s", i, r.kind, *seed, err, abridged(r.raw))
				answers[j].status = -1
			}
		}
		seen[fmt.Sprintf("%s %d", r.kind, answers[0].status)]++
		same := answers[0].status < 500
		for _, a := range answers[1:] {
			same = same && a.comparable() == answers[0].comparable()
		}
		if same && answers[0].status == http.StatusCreated {
			same = sameRows(t, g, targets, answers)
		}
		if same {
			continue
		}
		differences++
		var report strings.Builder
		for j, a := range answers {
			fmt.Fprintf(&report, "  %-10s %s\n", targets[j].name, a)
		}
		t.Errorf("request %d (%s) of seed %d:\n%s\n%s", i, r.kind, *seed, abridged(r.raw), report.String())
		if differences >= 40 {
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

// sameRows reads back what the candidates have written and compares it, each row
// through another candidate than the one that wrote it.
func sameRows(t *testing.T, g *generator, targets []*target, written []answer) bool {
	var first string
	for j := range targets {
		id := newID.FindStringSubmatch(written[j].body)
		if id == nil {
			return false
		}
		reader := targets[(j+1)%len(targets)]
		a, err := reader.send(t.Context(), get("/events/"+id[1], "Bearer "+g.read))
		if err != nil || a.status != http.StatusOK {
			t.Errorf("read row %s back through %s: %v, %v", id[1], reader.name, a, err)
			return false
		}
		row := strings.Replace(a.body, `{"id":`+id[1]+`,`, "", 1)
		row = row[:strings.LastIndex(row, `,"created_at":"`)]
		if j == 0 {
			first = row
		}
		if row != first {
			t.Errorf("rows differ:\n  %.300q\n  %.300q", first, row)
			return false
		}
	}
	return true
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
