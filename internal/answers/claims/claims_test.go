package claims

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
	data "github.com/percore/percore/results/published"
)

func shipped(t testing.TB) ([]Claim, *figures.Set) {
	t.Helper()
	list, err := Published()
	if err != nil {
		t.Fatal(err)
	}
	set, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	return list, set
}

func TestPublishedFiguresReproduceEveryClaim(t *testing.T) {
	list, set := shipped(t)
	if len(list) < 100 {
		t.Errorf("%d claims", len(list))
	}
	for _, r := range Evaluate(list, set, set) {
		if r.Verdict != Reproduced {
			t.Errorf("%s: %s: %s", r.ID, r.Verdict, r.Reason)
		}
		if r.Basis == "" || len(r.Findings) == 0 || len(r.Marks) > 0 {
			t.Errorf("%s: %+v", r.ID, r)
		}
		for _, f := range r.Findings {
			if f.Measured == nil || f.Published == nil || !f.Measured.Printed {
				t.Errorf("%s: %s: without a measured or a published value", r.ID, f.Text)
			}
		}
	}
}

// Changing one figure changes the verdict of exactly the claims that name it.
// That shows that what they are declared to rest on is right, both ways.
func TestOneChangedFigureChangesExactlyTheClaimsThatRestOnIt(t *testing.T) {
	list, set := shipped(t)
	changes := []func(float64) float64{
		func(v float64) float64 { return v * 10 },
		func(v float64) float64 { return v / 10 },
		func(v float64) float64 { return v + 1 },
		func(v float64) float64 { return v * 1.3 },
		func(v float64) float64 { return v * 0.7 },
	}
	covered := 0
	for _, e := range set.All() {
		rests := map[string]bool{}
		onlyCondition := map[string]bool{}
		for _, c := range list {
			inParts := false
			for _, p := range c.Parts {
				inParts = inParts || slices.ContainsFunc(p.keys(), func(k figures.Key) bool { return resolves(set, k, e.Key) })
			}
			for _, k := range c.RestsOn {
				if resolves(set, k, e.Key) {
					rests[c.ID] = true
					onlyCondition[c.ID] = !inParts
				}
			}
		}
		if len(rests) == 0 {
			t.Errorf("no claim rests on %s", e.Key)
			continue
		}
		covered++
		changed := map[string]bool{}
		for _, change := range changes {
			other := set.Clone()
			x := e
			x.Value = change(e.Value)
			x.Median, x.Lo, x.Hi = x.Value, x.Value, x.Value
			other.Put(x)
			// A changed file of the program itself is judged like a changed copy.
			inPlace := Evaluate(list, other, other)
			for i, r := range Evaluate(list, other, set) {
				if in := inPlace[i]; in.Verdict != r.Verdict || in.Cause != r.Cause || in.Reason != r.Reason {
					t.Errorf("%s changed to %v: %s is %s (%s) over a copy and %s (%s) in place", e.Key, x.Value, r.ID, r.Verdict, r.Reason, in.Verdict, in.Reason)
				}
				if r.Verdict == Reproduced {
					continue
				}
				changed[r.ID] = true
				want := NotReproduced
				if onlyCondition[r.ID] {
					want = Inconclusive
				}
				if r.Verdict != want && !(want == NotReproduced && r.Cause == CauseGiven) {
					t.Errorf("%s changed from %v to %v: %s is %s (%s)", e.Key, e.Value, x.Value, r.ID, r.Verdict, r.Reason)
				}
				if r.Reason == "" {
					t.Errorf("%s: %s without a reason", r.ID, r.Verdict)
				}
			}
		}
		for id := range changed {
			if !rests[id] {
				t.Errorf("%s changed the verdict of %s, which is not declared to rest on it", e.Key, id)
			}
		}
		for id := range rests {
			if !changed[id] {
				t.Errorf("%s is declared to rest on %s, and no change of that changes its verdict", id, e.Key)
			}
		}
	}
	if covered != set.Len() {
		t.Errorf("%d of %d figures have a claim", covered, set.Len())
	}
}

// One figure changed in a file of a copy, up or down, gives "not reproduced" for
// the claims that it takes out of what they accept, and for these alone.
func TestOneFigureChangedInAFile(t *testing.T) {
	list, set := shipped(t)
	for _, c := range []struct {
		file, from, to string
		want           []string
	}{
		{"oauth-events-fixed.yaml", "{auth: 46.5, read: 64.1, write: 95.5}", "{auth: 46.5, read: 90.0, write: 95.5}",
			[]string{"cores-add-up-go-read", "cores-by-cpu-go", "cpu-go-read", "cpu-ratio-frankenphp-read", "cpu-ratio-php-fpm-read", "token-share-73-77", "token-share-go"}},
		{"oauth-events-fixed.yaml", "{auth: 83526, read: 59004, write: 43942}", "{auth: 83526, read: 75000, write: 43942}",
			[]string{"ceiling-go-read", "cores-by-instance-go"}},
		{"oauth-events-fixed.yaml", "{auth: 83526, read: 59004, write: 43942}", "{auth: 83526, read: 59004, write: 20000}",
			[]string{"ceiling-go-write", "ceiling-order-write"}},
		{"oauth-events-fixed.yaml", "{read: 53, write: 81}", "{read: 53, write: 95}", []string{"db-cpu-php-fpm-write"}},
		{"oauth-events-fixed.yaml", "{go: 27, php-fpm: 63, frankenphp: 137}", "{go: 27, php-fpm: 30, frankenphp: 137}", []string{"peak-memory-php-fpm"}},
		{"oauth-events-capacity.yaml", "{1: 16883, 2: 29449, 4: 57321}", "{1: 16883, 2: 29449, 4: 50000}",
			[]string{"capacity-adds-up-go-4", "capacity-go-4", "capacity-go-frankenphp", "capacity-go-php-fpm", "capacity-per-core-go-4", "scaling-efficiency-go", "scaling-go"}},
		{"game-api.yaml", "{php: 50, go: 500}", "{php: 50, go: 400}", []string{"game-limit-go-cpu_bound", "game-ratio-cpu_bound"}},
		{"hello-http.yaml", "go: 106834.75", "go: 136834.75", []string{"hello-2-threads"}},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, data.Files); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, c.file)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), c.from, c.to, 1)
		if text == string(data) {
			t.Fatalf("%s: %q is not in it", c.file, c.from)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		other, err := published.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range Evaluate(list, other, set) {
			switch r.Verdict {
			case NotReproduced:
				got = append(got, r.ID)
			case Inconclusive:
				t.Errorf("%s: %s: inconclusive: %s", c.to, r.ID, r.Reason)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: not reproduced are %q, want %q", c.to, got, c.want)
		}
		// The file alone says nothing about the other studies.
		if other, err = published.Open(name); err != nil {
			t.Fatal(err)
		}
		for _, r := range Evaluate(list, other, set) {
			if slices.Contains(c.want, r.ID) != (r.Verdict == NotReproduced) || r.Verdict == Inconclusive && r.Cause != CauseNotMeasured {
				t.Errorf("%s alone: %s is %s (%s)", c.file, r.ID, r.Verdict, r.Reason)
			}
		}
	}
}

// What the claims expect is what the studies print, and all of it is written
// down: no rule of the shipped claims takes what it expects from the figures
// that it judges.
func TestPrintedFigures(t *testing.T) {
	list, set := shipped(t)
	for k, v := range list[0].printed {
		if e, ok := set.Get(k); !ok || e.Value != v {
			t.Errorf("%s is %v with the claims and %v in the study", k, v, e.Value)
		}
	}
	for _, c := range list {
		for _, p := range c.Parts {
			if p.Op != OpWithin || p.Of != nil {
				continue
			}
			for _, k := range p.Value.keys() {
				if _, ok := c.printed[k]; !ok {
					t.Errorf("%s: %s is not written under printed", c.ID, k)
				}
			}
		}
	}
	for name, lines := range map[string]string{
		"no figure": "{s: 1}", "negative": "{s/p/m/go/r: -1}", "not used": "{s/p/m/other/r: 1}", "words": "{s/p/m/go/r: many}",
		"infinite": "{s/p/m/go/r: .inf}", "twice": "{s/p/m/go/r: 1, s/p/m/go/r: 2}",
	} {
		if _, err := Parse("c.yaml", []byte("printed: "+lines+"\n"+good)); !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// resolves reports whether a key means a figure of the set.
func resolves(set *figures.Set, k, figure figures.Key) bool {
	e, ok := set.Get(k)
	return ok && e.Key == figure
}

const good = `claims:
  - id: a-$x
    says: One $x.
    study: s
    kind: ratio
    for: {x: [go, php]}
    rests_on: ["s/p/m/{$x,c}/r"]
    rule:
      at_least: {value: s/p/m/$x/r / s/p/m/c/r, limit: 2}
`

func TestBadFiles(t *testing.T) {
	list, err := Parse("c.yaml", []byte(good))
	if err != nil || len(list) != 2 || list[0].ID != "a-go" || list[0].Says != "One go." {
		t.Fatalf("%v, %+v", err, list)
	}
	for name, change := range map[string][2]string{
		"unknown key":          {"study: s", "study: s\n    colour: red"},
		"key twice":            {"study: s", "study: s\n    study: t"},
		"no id":                {"id: a-$x", "id: \"\""},
		"id without variable":  {"id: a-$x", "id: a"},
		"unknown variable":     {"One $x.", "One $y."},
		"unknown kind":         {"kind: ratio", "kind: guess"},
		"kind and rule":        {"kind: ratio", "kind: order"},
		"no ratio":             {"s/p/m/$x/r / s/p/m/c/r", "s/p/m/$x/r"},
		"undeclared":           {"{$x,c}", "{c}"},
		"declared and unused":  {"{$x,c}", "{$x,c,d}"},
		"declared twice":       {"{$x,c}", "{$x,c,c}"},
		"no limit":             {", limit: 2", ""},
		"infinite limit":       {"limit: 2", "limit: .inf"},
		"two rules":            {"at_least:", "at_most: {value: s/p/m/$x/r / s/p/m/c/r, limit: 3}\n      at_least:"},
		"no rule":              {"rule:\n      at_least: {value: s/p/m/$x/r / s/p/m/c/r, limit: 2}", ""},
		"bad figure":           {"s/p/m/c/r, limit", "s/p, limit"},
		"bad operator":         {"$x/r / s", "$x/r + s"},
		"ends in operator":     {"/c/r, limit", "/c/r /, limit"},
		"open brace":           {"{$x,c}", "{$x,c"},
		"not YAML":             {"claims:", "claims: ["},
		"no claims":            {good, "claims: []\n"},
		"empty":                {good, ""},
		"bad tolerance":        {"at_least: {value: s/p/m/$x/r / s/p/m/c/r, limit: 2}", "within: {value: s/p/m/$x/r / s/p/m/c/r, tolerance: 1.5}"},
		"empty all":            {"at_least: {value: s/p/m/$x/r / s/p/m/c/r, limit: 2}", "all: []"},
		"order of one":         {"at_least: {value: s/p/m/$x/r / s/p/m/c/r, limit: 2}", "order: {values: [s/p/m/c/r]}"},
		"variable with no use": {"for: {x: [go, php]}", "for: {x: [go, php], y: [b]}"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Errorf("%s: nothing was changed", name)
		}
		_, err := Parse("c.yaml", []byte(text))
		if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") || !strings.HasPrefix(said.Err(err), "c.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read("no/such.yaml"); !fail.IsInput(err) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Read("."); !fail.IsInput(err) {
		t.Errorf("folder: %v", err)
	}
}

// The example in the documentation is one that the reader takes.
func TestDocumentedExample(t *testing.T) {
	text, err := os.ReadFile("../../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("there is no example")
	}
	list, err := Parse("docs/claims.md", []byte(example))
	if err != nil || len(list) != 2 {
		t.Fatalf("%d claims, %v", len(list), err)
	}
	_, set := shipped(t)
	for _, r := range Evaluate(list, set, set) {
		if r.Verdict != Inconclusive && r.Verdict != Reproduced {
			t.Errorf("%s: %s", r.ID, r.Verdict)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("../../../results/published/claims.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(good))
	f.Add([]byte("claims: [{id: x, says: y, study: z, kind: identity, rests_on: [a/b/c], rule: {equal: {left: a/b/c, right: \"2\", tolerance: 0}}}]"))
	base, err := published.Set()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse("fuzz", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		for _, r := range Evaluate(list, base, base) {
			if r.Verdict != Reproduced && r.Reason == "" {
				t.Fatalf("%s: %s without a reason", r.ID, r.Verdict)
			}
		}
	})
}
