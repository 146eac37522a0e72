package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what was written with a golden file, line by line.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./internal/report -update writes it)", err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("differs from %s (-update writes it anew):\n%s", path, d)
	}
}

// hostsInput is the run of several hosts.
func hostsInput(t testing.TB) figures.Measured {
	t.Helper()
	in, _ := openHosts(t)
	return in
}

func openHosts(t testing.TB) (figures.Measured, string) {
	t.Helper()
	s, err := store.Open(convertToHosts(t, t.TempDir()).Dir())
	if err != nil {
		t.Fatal(err)
	}
	in := figures.ReadStore(s)
	in.State = store.StateInterrupted // as above
	return in, s.Dir()
}

// sources are what the golden files are made from: the study's raw folder, the
// same as a percore run, and the results folders kept in testdata/runs.
func sources(t *testing.T) map[string]figures.Measured {
	t.Helper()
	s, err := store.Open(convert(t, t.TempDir()).Dir())
	if err != nil {
		t.Fatal(err)
	}
	run := figures.ReadStore(s)
	run.State = store.StateInterrupted // the writer is this process and still holds the lock
	all := map[string]figures.Measured{"study": figures.ReadStudy(readStudy(t)), "run": run, "hosts": hostsInput(t)}
	folders, err := filepath.Glob(filepath.Join("testdata", "runs", "*", store.RunFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		s, err := store.Open(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(filepath.Dir(f))] = figures.ReadStore(s)
	}
	return all
}

func TestGolden(t *testing.T) {
	for name, in := range sources(t) {
		r := figures.TablesOf(in)
		d := Document{Report: r, Input: in}
		outputs := map[string]func(*bytes.Buffer) error{
			"txt":      func(b *bytes.Buffer) error { return Write(b, d, Options{Format: "text"}) },
			"80.txt":   func(b *bytes.Buffer) error { return Write(b, d, Options{Format: "text", Width: 80}) },
			"md":       func(b *bytes.Buffer) error { return Write(b, d, Options{Format: "md"}) },
			"json":     func(b *bytes.Buffer) error { return Write(b, d, Options{Format: "json"}) },
			"show.txt": func(b *bytes.Buffer) error { return Show(b, in, r, nil, 0) },
		}
		for _, table := range CSVTables {
			outputs[table+".csv"] = func(b *bytes.Buffer) error { return Write(b, d, Options{Format: "csv", Table: table}) }
		}
		for _, ending := range sortedKeys(outputs) {
			t.Run(name+"."+ending, func(t *testing.T) {
				var got bytes.Buffer
				if err := outputs[ending](&got); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+ending, got.Bytes())
			})
		}
	}
}

func TestTextFitsItsWidth(t *testing.T) {
	for name, in := range sources(t) {
		for _, width := range []int{80, 100, 120, 200} {
			var b bytes.Buffer
			if err := Text(&b, figures.TablesOf(in), width); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if utf8.RuneCountInString(line) > width {
					t.Errorf("%s at %d: %s", name, width, line)
				}
			}
		}
	}
}

// TestNothingIsSilent looks for what a reader must be told.
func TestNothingIsSilent(t *testing.T) {
	all := sources(t)
	var text bytes.Buffer
	if err := Text(&text, figures.TablesOf(all["run"]), 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"! Not comparable with the published figures: flavour debian", "interrupted; `percore run --resume", "seed 42", "24,081!",
		marked, "steal", "broken off", "killed for memory", "block failed", "4/4", "waived: the profile shares cores",
		"frankenphp is FrankenPHP library behind net/http", "fdatasync 2,346/s", "1 repetition without evidence",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, text.String())
		}
	}
	if i, j := strings.Index(text.String(), "Not comparable"), strings.Index(text.String(), "Fixed rate"); i > j {
		t.Error("the caveat comes after the figures")
	}
}

func TestJSONIsVersioned(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, documents(t)["run"]); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["version"] != float64(figures.TablesVersion) {
		t.Errorf("version %v", doc["version"])
	}
	for _, k := range []string{"caveats", "fixed_rate", "ceiling", "ceiling_by_connections", "token_share", "probes", "gates_failed", "attempts_broken_off", "blocks_failed", "windows", "notes"} {
		if _, ok := doc[k].([]any); !ok {
			t.Errorf("%s is %T, not a list", k, doc[k])
		}
	}
	// Every field is described.
	about, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range sortedKeys(v) {
				switch path { // keys that are data
				case "run.versions", "run.fsync_per_s", "run.candidates", "run.roles", "windows.measured.statuses", "windows.measured.errors":
				default:
					if !strings.Contains(string(about), "`"+k+"`") {
						t.Errorf("docs/report-json.md does not describe %s.%s", path, k)
					}
				}
				walk(strings.TrimPrefix(path+"."+k, "."), v[k])
			}
		case []any:
			for _, e := range v {
				walk(path, e)
			}
		}
	}
	walk("", doc)
}

func TestCSVIsRectangular(t *testing.T) {
	r := figures.TablesOf(sources(t)["run"])
	for _, table := range CSVTables {
		var b bytes.Buffer
		if err := CSV(&b, r, table); err != nil {
			t.Fatal(err)
		}
		if rows, err := csv.NewReader(&b).ReadAll(); err != nil || len(rows) < 1 {
			t.Errorf("%s: %d rows, %v", table, len(rows), err)
		}
	}
}

func TestMarkdownIsEscaped(t *testing.T) {
	r := figures.TablesOf(sources(t)["run"])
	r.Rate[0].Candidate = "a|b<c>*d_e[f]"
	var b bytes.Buffer
	if err := Markdown(&b, Document{Report: r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `a\|b&lt;c>\*d\_e\[f\]`) {
		t.Error("markup is not escaped")
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Format: "pdf"}, {Format: "csv", Table: "x"}, {Format: "text", Table: TableRate}} {
		err := Write(&bytes.Buffer{}, Document{}, o)
		if !fail.IsInput(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestEmptyRun(t *testing.T) {
	for _, f := range Formats {
		var b bytes.Buffer
		if err := Write(&b, Document{Report: figures.TablesOf(figures.Measured{State: store.StateInterrupted})}, Options{Format: f, Width: 40}); err != nil || b.Len() == 0 {
			t.Errorf("%s: %d bytes, %v", f, b.Len(), err)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567.891, 2, "1,234,567.89"}, {-1234, 0, "-1,234"}, {0.005, 2, "0.01"}} {
		if got := Number(c.v, c.decimals); got != c.want {
			t.Errorf("%v is %s, want %s", c.v, got, c.want)
		}
	}
}

func TestList(t *testing.T) {
	var b bytes.Buffer
	runs := []store.Summary{
		{ID: "a", Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local), State: store.StateComplete, Profile: "small", Preset: "quick", Flavour: "debian", Done: 3, Planned: 4, GatesFailed: 1},
		{ID: "b", Problem: "b/run.json: broken"},
	}
	if err := List(&b, runs, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a   2026-01-02 03:04 UTC  complete", "3/4", "unreadable", "b/run.json: broken"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// BenchmarkReport opens a results folder and writes its report, as
// `percore report` does.
func BenchmarkReport(b *testing.B) {
	for _, n := range []int{3000, 30_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := convert(b, b.TempDir())
			s.Close()
			name := filepath.Join(s.Dir(), store.EventsFile)
			log, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				b.Fatal(err)
			}
			w := s.History().Windows()[0]
			for i := range n {
				w.Repetition, w.Attempt, w.Scenario = i+1, 1, []string{"auth", "read", "write"}[i%3]
				w.Measured = &measure.Window{OK: 1, Answered: 1, Achieved: float64(i), P50MS: 1, P99MS: 2}
				line, err := json.Marshal(store.Event{Time: time.Now(), Type: store.EventWindow, Window: &w})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := log.Write(append(line, '\n')); err != nil {
					b.Fatal(err)
				}
			}
			log.Close()
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				s, err := store.Open(s.Dir())
				if err != nil {
					b.Fatal(err)
				}
				var out bytes.Buffer
				if err := Text(&out, figures.TablesOf(figures.ReadStore(s)), 100); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/window")
		})
	}
}

// cpuTime is the CPU time of this process, which a busy machine does not
// stretch.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestListOfMachines: machines without a run are listed, with nothing measured.
func TestListOfMachines(t *testing.T) {
	results := t.TempDir()
	if err := os.MkdirAll(filepath.Join(results, "20261130-cloud", store.CloudDir), 0o755); err != nil {
		t.Fatal(err)
	}
	runs, err := store.List(results)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := List(&b, runs, 120); err != nil || !strings.Contains(b.String(), "20261130-cloud") || !strings.Contains(b.String(), "not measured") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestOtherwise: whatever a run does otherwise than the study stands beside the
// word that lets its figures stand beside the study's.
func TestOtherwise(t *testing.T) {
	h := figures.Header{Comparable: true}
	if got := verdict(h); got != "yes" {
		t.Errorf("nothing otherwise: %q", got)
	}
	h.Otherwise = []string{"the body has 79 bytes", "windows are repeated"}
	if got := verdict(h); got != "yes; otherwise than in the study: the body has 79 bytes; windows are repeated" {
		t.Errorf("%q", got)
	}
	if got := comparable(figures.Tables{Header: h}); !strings.Contains(got, "the body has 79 bytes; windows are repeated.") {
		t.Errorf("page: %q", got)
	}
	h.Comparable = false
	if got := verdict(h); got != "" {
		t.Errorf("not comparable: %q", got)
	}
}
