package published

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
	"github.com/percore/percore/results/published"
)

// leaves flattens nested values to dotted paths.
func leaves(into map[string]string, at string, v any) {
	join := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			leaves(into, join(name), x)
		}
	case []any:
		for i, x := range v {
			leaves(into, join(fmt.Sprint(i)), x)
		}
	default:
		into[at] = fmt.Sprint(v)
	}
}

// rename turns what a file of ours calls otherwise back into the source's words.
var rename = map[string]string{
	"cores_low": "0", "cores_high": "1", "spread_low": "0", "spread_high": "1",
	"worst_pool_at_cores": "at", "worst_pool_factor": "factor",
}

// Every value of the source is in our files, as a figure or as a fact, and
// nothing else is.
func TestSameValuesAsTheSource(t *testing.T) {
	data, err := os.ReadFile("testdata/figures.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var source struct {
		Studies map[string]any `yaml:"studies"`
	}
	if err := yaml.Unmarshal(data, &source); err != nil {
		t.Fatal(err)
	}
	studies, err := Studies()
	if err != nil {
		t.Fatal(err)
	}
	if len(studies) != len(source.Studies) {
		t.Errorf("%d studies, %d in the source", len(studies), len(source.Studies))
	}
	figuresSeen := 0
	for _, s := range studies {
		want := map[string]string{}
		leaves(want, "", source.Studies[s.ID])
		if len(want) == 0 {
			t.Errorf("%s is not in the source", s.ID)
		}
		got := map[string]string{}
		leaves(got, "", s.Facts)
		for _, g := range s.Figures {
			list, err := g.flatten(s.Suite)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				figuresSeen++
				path := g.Source
				for _, p := range f.Path {
					if r, ok := rename[p]; ok {
						p = r
					}
					path += "." + p
				}
				if _, twice := got[path]; twice {
					t.Errorf("%s: %s stands in our file twice", s.ID, path)
				}
				var v any = f.Value
				if f.Value == float64(int64(f.Value)) {
					v = int64(f.Value)
				}
				got[path] = fmt.Sprint(v)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if got[path] != want[path] && !sameNumber(got[path], want[path]) {
				t.Errorf("%s: %s is %q, and %q in the source", s.ID, path, got[path], want[path])
			}
			delete(got, path)
		}
		for path, v := range got {
			t.Errorf("%s: %s = %s is not in the source", s.ID, path, v)
		}
	}
	if figuresSeen < 150 {
		t.Errorf("only %d figures were compared", figuresSeen)
	}
}

func sameNumber(a, b string) bool {
	var x, y float64
	if _, err := fmt.Sscan(a, &x); err != nil {
		return false
	}
	if _, err := fmt.Sscan(b, &y); err != nil {
		return false
	}
	return x == y
}

func TestSet(t *testing.T) {
	set, err := Set()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(append(append(slices.Clone(set.Candidates), set.Scenarios...), set.Databases...), " "); got != "go frankenphp php-fpm auth read write read write" {
		t.Errorf("candidates, scenarios and those with a database: %s", got)
	}
	if set.AppCores != 4 || set.Host.Label != "Apple M4 Pro" || set.Suite != "oauth-events" {
		t.Errorf("identity: %+v", set)
	}
	for text, want := range map[string]float64{
		"oauth-events/rate/app_cpu_us/go/read":          64.1,
		"oauth-events/rate/repetitions/go/read":         5,
		"oauth-events/rate/target/php-fpm/write":        10000, // given for all candidates at once
		"oauth-events/ceiling/achieved/php-fpm/write":   21857,
		"oauth-events/capacity/achieved/go/mix@4cores":  57321,
		"oauth-events/sizing/instances/go/mix@50000rps": 1,
		"game-api/limit/achieved/go/io_bound":           2100,
	} {
		k, err := figures.ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := set.Get(k)
		if !ok || e.Value != want {
			t.Errorf("%s = %v, %v; want %v", text, e.Value, ok, want)
		}
		if e.Confidence != 0 || len(e.Samples) != 0 || e.Definition == "" || e.Source == "" {
			t.Errorf("%s: a published value with an interval, or without a source: %+v", text, e)
		}
	}
}

func TestBadFiles(t *testing.T) {
	good := "study: s\nsuite: x\nfigures:\n  - {source: a, phase: rate, metric: m, definition: d, axes: [candidate], values: {go: 1}}\n"
	if _, err := Parse("x.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"not YAML":      "study: [",
		"unknown key":   good + "more: 1\n",
		"no figures":    "study: s\nsuite: x\n",
		"text value":    strings.Replace(good, "{go: 1}", "{go: many}", 1),
		"negative":      strings.Replace(good, "{go: 1}", "{go: -1}", 1),
		"missing level": strings.Replace(good, "{go: 1}", "7", 1),
		"unknown axis":  strings.Replace(good, "[candidate]", "[colour]", 1),
		"twice":         good + "  - {source: b, phase: rate, metric: m, definition: d, axes: [candidate], values: {go: 2}}\n",
		"cores zero":    strings.Replace(good, "[candidate], values: {go: 1}", "[cores], values: {0: 1}", 1),
	} {
		_, err := Parse("x.yaml", []byte(text))
		if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") || !strings.HasPrefix(said.Err(err), "x.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if Is(dir) || Is(filepath.Join(dir, "none.yaml")) {
		t.Error("an empty folder or no file passes for a study")
	}
	good := "study: s\nsuite: x\nfigures:\n  - {source: a, phase: rate, metric: m, definition: d, axes: [candidate], values: {go: 1}}\n"
	file := write("a.yaml", good)
	write("claims.yaml", "claims: []\n")
	write("notes.txt", "no study")
	for _, name := range []string{dir, file} {
		set, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if !Is(name) || set.Name != name || set.Suite != "x" || set.Len() != 1 || set.Kind != figures.KindPublished {
			t.Errorf("%s: %+v", name, set)
		}
	}
	second := write("b.yml", strings.Replace(good, "study: s", "study: t", 1))
	if _, err := Open(dir); !fail.IsInput(err) || !strings.Contains(said.Err(err), second) || !strings.Contains(said.Err(err), file) {
		t.Errorf("a figure in two files: %v", err)
	}
	write("b.yml", "study: [")
	if _, err := Open(dir); !fail.IsInput(err) || !strings.Contains(said.Err(err), second) {
		t.Errorf("a broken file: %v", err)
	}
	// A whole copy of the shipped files is the shipped set under another name.
	all := t.TempDir()
	if err := os.CopyFS(all, published.Files); err != nil {
		t.Fatal(err)
	}
	copied, err := Open(all)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Set()
	if err != nil {
		t.Fatal(err)
	}
	if copied.Len() != set.Len() || copied.AppCores != set.AppCores || copied.Suite != set.Suite {
		t.Errorf("%d figures of %d", copied.Len(), set.Len())
	}
	want := figures.Conditions{RateSeconds: 60, RateConnections: 256, CeilingSeconds: 15, CeilingConnections: []int{16, 64, 128, 256},
		Pool: 32, Rows: 1_000_000, AppMemory: 1 << 30, DBMemory: 2 << 30}
	if !reflect.DeepEqual(copied.Conditions, want) {
		t.Errorf("conditions %+v", copied.Conditions)
	}
}

func FuzzParse(f *testing.F) {
	names, _ := filepath.Glob("../../../results/published/*.yaml")
	for _, name := range names {
		if base := filepath.Base(name); base == published.ClaimsFile || base == published.PricesFile {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		if len(s.List()) != SetOf([]Study{s}).Len() && SetOf([]Study{s}).AppCores == 0 {
			t.Fatal("figures were lost")
		}
	})
}
