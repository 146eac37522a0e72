package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/percore/percore/internal/answers/figures"
)

// TestBenchIsRead reads what is written with the format's own reader.
func TestBenchIsRead(t *testing.T) {
	d := full(t)
	var b bytes.Buffer
	if err := Bench(&b, d.Report); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "run.bench")
	results := 0
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(rec)
		case *benchfmt.Result:
			if results++; results == 1 {
				if got := rec.Name.String(); got != "Auth/candidate=go/phase=rate/conns=256/target=50000" {
					t.Errorf("the first result is %s", got)
				}
				if rec.GetConfig("flavour") != "published" || rec.GetConfig("cpu") != "Neoverse-V2" || rec.GetConfig("suite") != "oauth-events" || rec.GetConfig("profile") == "" {
					t.Errorf("configuration %v", rec.Config)
				}
				m := d.Report.Windows[0].Measured
				if v, ok := rec.Value("cpu-µs/req"); !ok || v != m.AppCPUUS || int64(rec.Iters) != m.Answered || len(rec.Values) != len(benchUnits) {
					t.Errorf("%v, %d iterations", rec.Values, rec.Iters)
				}
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	evidence := 0
	for _, w := range d.Report.Windows {
		if w.Evidence {
			evidence++
		}
	}
	if results != evidence || evidence != 153 {
		t.Errorf("%d results of %d windows with evidence", results, evidence)
	}
	for unit, want := range map[string]int{"req/s": 1, "cpu-µs/req": -1} {
		if got := r.Units().GetBetter(unit); got != want {
			t.Errorf("%s gets better in the direction %d", unit, got)
		}
	}
}

// TestBenchstat compares two runs with benchstat itself, of the version that
// go.mod has.
func TestBenchstat(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, change func(*figures.WindowRow)) string {
		r := full(t).Report
		r.Header.ID = name
		for i := range r.Windows {
			change(&r.Windows[i])
		}
		var b bytes.Buffer
		if err := Bench(&b, r); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := write("before", func(*figures.WindowRow) {})
	after := write("after", func(w *figures.WindowRow) {
		m := *w.Measured
		m.AppCPUUS *= 0.5
		w.Measured = &m
	})
	cmd := exec.Command("go", "run", "golang.org/x/perf/cmd/benchstat", "-filter", `.unit:"cpu-µs/req" /phase:rate`, before, after)
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	text := string(out)
	for _, want := range []string{"Read/candidate=go/phase=rate/conns=256/target=50000", "-50.00%", "p=0.008 n=5", "cpu-µs/req", "flavour: published"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "vs base"); n != 1 || strings.Contains(errs.String(), "benchstat:") {
		t.Errorf("the runs stand in %d tables: %s\n%s", n, errs.String(), text)
	}
}
