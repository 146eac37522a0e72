package figures

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// smallRun is a run of two candidates and two scenarios, three repetitions of a
// fixed rate and two of a ceiling with two connection counts.
func smallRun() store.Run {
	return store.Run{
		ID: "r1", Flavour: plan.FlavourPublished, Comparable: true,
		Suite: plan.Suite{Name: "s",
			Scenarios:  []plan.Scenario{{ID: "auth"}, {ID: "read", DB: true}},
			Candidates: []plan.Candidate{{ID: "go"}, {ID: "php-fpm"}}},
		Preset: plan.Preset{Name: "p", Phases: []plan.Phase{
			{ID: "rate", Kind: plan.KindRate, Window: plan.Duration(60 * time.Second), Repetitions: 3, Connections: []int{256}, Targets: map[string]int{"auth": 1000, "read": 1000}},
			{ID: "ceiling", Kind: plan.KindCeiling, Window: plan.Duration(15 * time.Second), Repetitions: 2, Connections: []int{16, 64}},
		}},
	}
}

func rate(candidate, scenario string, rep, attempt int, achieved, cpu float64, gates ...store.Gate) store.WindowResult {
	return store.WindowResult{
		Window:  plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: candidate, Scenario: scenario, Repetition: rep, Connections: 256, Target: 1000, Seconds: 60},
		Attempt: attempt, Gates: gates,
		Measured: &measure.Window{OK: int64(achieved * 60), Answered: int64(achieved * 60), Achieved: achieved, P50MS: 1, P99MS: float64(rep), P999MS: 9, AppCPUUS: cpu, PeakBytes: int64(rep) << 20},
	}
}

func ceiling(candidate string, connections, rep int, achieved float64, failed int64) store.WindowResult {
	return store.WindowResult{
		Window:   plan.Window{Phase: "ceiling", Kind: plan.KindCeiling, Candidate: candidate, Scenario: "read", Repetition: rep, Connections: connections, Seconds: 15},
		Attempt:  1,
		Measured: &measure.Window{OK: int64(achieved * 15), Answered: int64(achieved * 15), Achieved: achieved, Failed: failed, P99MS: achieved / 100, AppCPUUS: 100},
	}
}

func badGate() store.Gate {
	return store.Gate{Name: "steal", OK: false, Reading: 0.05, Limit: 0.01, Unit: "share of CPU time"}
}

func cellOf(t *testing.T, r Tables, candidate, scenario string) RateRow {
	t.Helper()
	i := slices.IndexFunc(r.Rate, func(r RateRow) bool { return r.Candidate == candidate && r.Scenario == scenario })
	if i < 0 {
		t.Fatalf("no row for %s %s", candidate, scenario)
	}
	return r.Rate[i]
}

func TestFixedRateEstimators(t *testing.T) {
	r := TablesOf(Measured{Run: smallRun(), State: store.StateComplete, Windows: []store.WindowResult{
		rate("go", "read", 1, 1, 1000, 64), rate("go", "read", 2, 1, 989, 70), rate("go", "read", 3, 1, 995, 66),
	}})
	row := cellOf(t, r, "go", "read")
	if row.Achieved.Value != 995 || row.Achieved.Min != 989 || row.Achieved.Max != 1000 || row.Achieved.N != 3 {
		t.Errorf("achieved %+v", row.Achieved)
	}
	if row.CPU.Value != 66 || row.P99.Value != 2 || row.Peak.Value != 3<<20 {
		t.Errorf("CPU %v, p99 %v, peak %v", row.CPU, row.P99, row.Peak)
	}
	if row.Met != 2 || !row.Evidence || len(row.Notes) != 0 { // 989 is below 99 % of 1000
		t.Errorf("met %d, evidence %v, notes %v", row.Met, row.Evidence, row.Notes)
	}
	other := cellOf(t, r, "php-fpm", "read")
	if other.Achieved != nil || other.Evidence || !slices.Contains(other.Notes, "not measured") {
		t.Errorf("a cell without windows: %+v", other)
	}
}

func TestPercentilesAreNeverAveraged(t *testing.T) {
	for n := 1; n <= 6; n++ {
		e := Estimate{Key: Key{Metric: P99}, Estimator: EstimatorMedian}
		for i := range n {
			e.Samples = append(e.Samples, Sample{i + 1, float64((i*7)%n)*10 + 0.5})
		}
		e.fill(DisplayConfidence)
		if !slices.Contains(e.Values(), e.Value) {
			t.Errorf("%v of %v was not measured", e.Value, e.Values())
		}
	}
	if m := MedianOf([]float64{1, 4}, DisplayConfidence); m.Median != 2.5 {
		t.Errorf("median of 1 and 4 is %v", m.Median)
	}
}

// Every figure of every row is the one that the set has, whatever was damaged
// on the way: a reading that cannot be is left out of both, and the row says so.
func TestTablesAndFiguresAgree(t *testing.T) {
	run := smallRun()
	run.Candidates = []string{"go", "php-fpm"}
	bad := []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)}
	var windows []store.WindowResult
	for i, candidate := range run.Candidates {
		for _, scenario := range []string{"auth", "read"} {
			for rep := 1; rep <= 3; rep++ {
				w := rate(candidate, scenario, rep, 1, 990+float64(rep), 60+float64(rep))
				w.Measured.AppCores, w.Measured.DBCores, w.Measured.DBCPUUS = 1+float64(rep)/10, 0.5, 20+float64(rep)
				m := w.Measured
				switch rep + 3*i {
				case 1:
					m.AppCPUUS, m.DBCores = bad[0], bad[1]
				case 2:
					m.Achieved, m.P50MS = bad[2], bad[3]
				case 5:
					m.P99MS, m.P999MS, m.AppCores, m.PeakBytes, m.DBCPUUS = bad[1], bad[2], bad[0], -5, bad[3]
				}
				windows = append(windows, w)
			}
		}
	}
	for _, connections := range []int{16, 64} {
		for rep := 1; rep <= 2; rep++ {
			windows = append(windows, ceiling("go", connections, rep, 500+float64(connections+rep), 0), ceiling("php-fpm", connections, rep, 100+float64(rep), 0))
		}
	}
	last := windows[len(windows)-2].Measured // the fastest of go, were it not damaged
	last.Achieved, last.AppCPUUS = bad[2], 1
	windows[len(windows)-1].Measured.AppCPUUS = bad[1]

	set := FromRun(run, windows, nil)
	tables := TablesOf(Measured{Run: run, Windows: windows})
	compared := 0
	same := func(phase string, c Cell, connections int, metric string, s *Stat, unit float64) {
		t.Helper()
		k := Key{Suite: "s", Phase: phase, Metric: metric, Candidate: c.Candidate, Scenario: c.Scenario, Connections: connections}
		e, ok := set.Get(k)
		if ok != (s != nil) {
			t.Errorf("%s: in the set %v, in the table %+v", k, ok, s)
			return
		}
		if !ok {
			return
		}
		compared++
		if s.Value != e.Value*unit || Impossible(s.Value) || Impossible(s.Min) || Impossible(s.Max) {
			t.Errorf("%s: %v in the set, %+v in the table", k, e.Value, s)
		}
	}
	notes := ""
	for _, r := range tables.Rate {
		notes += strings.Join(r.Notes, "\n") + "\n"
		for metric, s := range map[string]*Stat{Achieved: r.Achieved, P50: r.P50, P99: r.P99, P999: r.P999, AppCores: r.Cores, AppCPU: r.CPU} {
			same(PhaseRate, r.Cell, 256, metric, s, 1)
		}
		same(PhaseRate, r.Cell, 256, PeakMiB, r.Peak, 1<<20)
		if r.Scenario == "read" {
			same(PhaseRate, r.Cell, 256, DBCores, r.DBCores, 1)
			same(PhaseRate, r.Cell, 256, DBCPU, r.DBCPU, 1)
		}
		if e, ok := set.Get(Key{Suite: "s", Phase: PhaseRate, Metric: Met, Candidate: r.Candidate, Scenario: r.Scenario}); !ok || int(e.Value) != r.Met {
			t.Errorf("met %v in the set, %d in the table", e.Value, r.Met)
		}
	}
	for _, rows := range [][]CeilingRow{tables.Connections, tables.Ceiling} {
		for _, r := range rows {
			notes += strings.Join(r.Notes, "\n") + "\n"
			connections := r.Connections
			if &rows[0] == &tables.Ceiling[0] {
				connections = 0 // the best
			}
			for metric, s := range map[string]*Stat{Achieved: r.Achieved, P50: r.P50, P99: r.P99, P999: r.P999, AppCores: r.Cores, AppCPU: r.CPU} {
				same(PhaseCeiling, r.Cell, connections, metric, s, 1)
			}
			same(PhaseCeiling, r.Cell, connections, PeakMiB, r.Peak, 1<<20)
		}
	}
	if compared < 60 {
		t.Errorf("only %d figures compared", compared)
	}
	for _, w := range []string{"CPU per request: 1 left out", "achieved: 1 left out", "p99: 1 left out", "peak memory: 1 left out"} {
		if !strings.Contains(notes, w) {
			t.Errorf("no row says %q:\n%s", w, notes)
		}
	}
	for _, row := range Summary(tables) {
		if text := strings.Join(row, ","); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, ",-") {
			t.Errorf("the summary has a reading that cannot be: %s", text)
		}
	}
}

func TestOnlyWindowsWithPassedGatesCount(t *testing.T) {
	r := TablesOf(Measured{Run: smallRun(), State: store.StateComplete, Windows: []store.WindowResult{
		rate("go", "auth", 1, 1, 10, 1, badGate()), rate("go", "auth", 1, 2, 1000, 40), // repeated
		rate("go", "auth", 2, 1, 1000, 50),
		rate("go", "auth", 3, 1, 20, 2, badGate()), rate("go", "auth", 3, 2, 30, 3, badGate()), // never passed
		rate("php-fpm", "auth", 1, 1, 500, 99, badGate()), // nothing passed
		{Window: rate("php-fpm", "read", 1, 1, 0, 0).Window, Attempt: 1, Error: "oha was killed"},
	}})
	row := cellOf(t, r, "go", "auth")
	if row.Repetitions != 2 || row.Planned != 3 || row.Achieved.Value != 1000 || row.CPU.Value != 45 || row.Achieved.N != 2 {
		t.Errorf("%+v %+v", row.Cell, row.Achieved)
	}
	if len(row.Notes) != 1 || !strings.Contains(row.Notes[0], "1 repetition without evidence") {
		t.Errorf("notes %v", row.Notes)
	}
	row = cellOf(t, r, "php-fpm", "auth")
	if row.Evidence || row.Repetitions != 0 || row.Met != 0 || row.Achieved.Value != 500 {
		t.Errorf("a cell without evidence: %+v", row)
	}
	row = cellOf(t, r, "php-fpm", "read")
	if row.Achieved != nil || !slices.Contains(row.Notes, "every attempt broke off") {
		t.Errorf("a cell that broke off: %+v", row)
	}
	g := r.Gates[0]
	if g.Gate != "steal" || g.Failed != 4 || g.Windows != 3 || g.Repeated != 1 || g.Left != 2 || g.Worst != 0.05 {
		t.Errorf("gates %+v", g)
	}
	if len(r.Broken) != 1 || r.Broken[0].Error != "oha was killed" {
		t.Errorf("broken %+v", r.Broken)
	}
	evidence := 0
	for _, w := range r.Windows {
		if w.Evidence {
			evidence++
		}
	}
	if evidence != 2 || r.Header.Done != 2 || len(r.Windows) != 7 {
		t.Errorf("%d of %d attempts are evidence, %d windows done", evidence, len(r.Windows), r.Header.Done)
	}
	if !strings.Contains(strings.Join(r.Caveats, " "), "26 of 28 planned windows") {
		t.Errorf("caveats %q", r.Caveats)
	}
}

func TestLatestPassingAttemptCounts(t *testing.T) {
	a, b := rate("go", "auth", 1, 1, 900, 1), rate("go", "auth", 1, 3, 950, 2)
	for _, order := range [][]store.WindowResult{{a, b}, {b, a}} {
		row := cellOf(t, TablesOf(Measured{Run: smallRun(), Windows: order}), "go", "auth")
		if row.Achieved.Value != 950 || row.Repetitions != 1 {
			t.Errorf("%+v", row.Achieved)
		}
	}
}

func TestWaivedGatesDoNotFail(t *testing.T) {
	g := store.Gate{Name: "cores", Reading: 2, Unit: "shared CPUs", Waived: "the profile shares cores"}
	r := TablesOf(Measured{Run: smallRun(), Windows: []store.WindowResult{rate("go", "auth", 1, 1, 1000, 1, g)}})
	if row := cellOf(t, r, "go", "auth"); !row.Evidence || r.Gates[0].Failed != 0 || r.Gates[0].Waived != 1 || r.Gates[0].Windows != 0 {
		t.Errorf("%+v %+v", row.Cell, r.Gates)
	}
}

func TestWorstReading(t *testing.T) {
	probe := func(v float64) store.Gate { return store.Gate{Name: "probe", Reading: v, Limit: 0.99} }
	steal := func(v float64) store.Gate { return store.Gate{Name: "steal", Reading: v, Limit: 0.01} }
	r := TablesOf(Measured{Run: smallRun(), Windows: []store.WindowResult{
		rate("go", "auth", 1, 1, 1, 1, probe(0.9), steal(0.02)), rate("go", "auth", 2, 1, 1, 1, probe(0.5), steal(0.2)), rate("go", "auth", 3, 1, 1, 1, probe(0.7), steal(0.1)),
	}})
	for _, g := range r.Gates {
		if want := map[string]float64{"probe": 0.5, "steal": 0.2}[g.Gate]; g.Worst != want {
			t.Errorf("worst %s is %v", g.Gate, g.Worst)
		}
	}
}

func TestCeilingEstimators(t *testing.T) {
	r := TablesOf(Measured{Run: smallRun(), State: store.StateComplete, Windows: []store.WindowResult{
		ceiling("go", 16, 1, 500, 0), ceiling("go", 16, 2, 600, 0),
		ceiling("go", 64, 1, 900, 3), ceiling("go", 64, 2, 800, 0), // faster, but its best repetition failed requests
		ceiling("php-fpm", 16, 1, 100, 1), ceiling("php-fpm", 16, 2, 90, 0),
	}})
	find := func(rows []CeilingRow, candidate string) CeilingRow {
		i := slices.IndexFunc(rows, func(r CeilingRow) bool { return r.Candidate == candidate && r.Scenario == "read" })
		return rows[i]
	}
	row := find(r.Ceiling, "go")
	if row.Connections != 16 || row.Achieved.Value != 600 || row.Median.Value != 550 || row.Best != 2 || row.P99.Value != 6 || row.Achieved.Min != 500 {
		t.Errorf("%+v %+v", row, row.Achieved)
	}
	if !slices.Contains(row.Notes, "1 of 2 connection counts had failed requests") {
		t.Errorf("notes %v", row.Notes)
	}
	row = find(r.Ceiling, "php-fpm")
	if row.Achieved != nil || !strings.Contains(strings.Join(row.Notes, " "), "no ceiling") {
		t.Errorf("a ceiling with failed requests: %+v", row)
	}
	if len(r.Connections) != 8 { // 2 candidates, 2 scenarios, 2 counts: also those not measured
		t.Errorf("%d rows by connections", len(r.Connections))
	}
}

func TestTokenShare(t *testing.T) {
	r := TablesOf(Measured{Run: smallRun(), Windows: []store.WindowResult{
		rate("go", "auth", 1, 1, 1, 46.5), rate("go", "read", 1, 1, 1, 64.1),
		rate("php-fpm", "auth", 1, 1, 1, 130.2), rate("php-fpm", "read", 1, 1, 1, 168.4, badGate()),
	}})
	for i, want := range []float64{0.73, 0.77} {
		if s := r.TokenShare[i]; math.Abs(*s.Share-want) > 0.005 || s.Evidence != (i == 0) {
			t.Errorf("%+v share %v", s, *s.Share)
		}
	}
}

func TestProbeRange(t *testing.T) {
	p := func(phase string, achieved float64) study.Probe {
		return study.Probe{Block: plan.BlockID{Phase: phase}, Reading: store.ProbeReading{Target: 1000, Achieved: achieved}}
	}
	r := TablesOf(Measured{Run: smallRun(), Probes: []study.Probe{p("ceiling", 999), p("rate", 1000), p("rate", 980), p("rate", 995)}})
	if len(r.Probes) != 2 || r.Probes[0].Phase != "rate" || r.Probes[0].Lowest != 980 || r.Probes[0].Highest != 1000 || r.Probes[0].Below != 1 {
		t.Errorf("%+v", r.Probes)
	}
}

func TestComparability(t *testing.T) {
	run := studyReport(t, studyDir)
	if !run.Header.Comparable {
		t.Errorf("the study is not comparable with itself: %v", run.Header.NotComparable)
	}
	r := smallRun()
	r.Flavour = plan.FlavourDebian
	r.Profile = plan.Profile{SharedCores: true, Roles: map[plan.Role]plan.Resources{plan.App: {CPUs: "0"}, plan.DB: {CPUs: "1"}, plan.Load: {CPUs: "0"}}}
	text := fmt.Sprint(Comparability(r))
	for _, w := range []string{"share CPU 0", "flavour debian", "phase rate repetitions 3 (5), auth 1000/s (50000/s)", "connections 16, 64 (16, 64, 128, 256)"} {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in %s", w, text)
		}
	}
	r.Caveats = []string{"because"}
	if !slices.Equal(Comparability(r), r.Caveats) {
		t.Error("what the run recorded does not count")
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	windows := []store.WindowResult{
		rate("php-fpm", "read", 2, 1, 3, 3), rate("go", "read", 1, 1, 1, 1), rate("go", "auth", 1, 1, 1, 1), ceiling("go", 64, 1, 5, 0), ceiling("go", 16, 1, 5, 0),
	}
	want := fmt.Sprint(Summary(TablesOf(Measured{Run: smallRun(), Windows: windows})))
	slices.Reverse(windows)
	if got := fmt.Sprint(Summary(TablesOf(Measured{Run: smallRun(), Windows: windows}))); got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
}

func TestShortest(t *testing.T) {
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{{2.5027, 2, "2.5"}, {26.71875, 1, "26.7"}, {9999.866, 0, "10000"}, {0.004, 2, "0"}, {0.0955, 4, "0.0955"}, {2, 2, "2"}, {61.35, 1, "61.4"}} {
		if got := Shortest(c.v, c.decimals); got != c.want {
			t.Errorf("%v to %d decimals is %s, want %s", c.v, c.decimals, got, c.want)
		}
	}
}

// big is a run of n windows.
func big(n int) Measured {
	in := Measured{Run: smallRun(), State: store.StateComplete}
	in.Run.Preset.Phases[0].Repetitions = n / 4
	for i := range n {
		in.Windows = append(in.Windows, rate([]string{"go", "php-fpm"}[i%2], []string{"auth", "read"}[i/2%2], i/4+1, 1, 1000, 50,
			store.Gate{Name: "probe", OK: true, Reading: 1, Limit: 0.99}, store.Gate{Name: "steal", OK: i%10 != 0, Reading: 0.02, Limit: 0.01}))
	}
	return in
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{3000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := big(n)
			b.ResetTimer()
			for range b.N {
				if r := TablesOf(in); len(r.Windows) != n {
					b.Fatal(len(r.Windows))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/window")
		})
	}
}

// TestShorterStudyIsNotComparable imports a folder that the study's scripts
// measured in a hurry.
func TestShorterStudyIsNotComparable(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(studyDir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "meta.json")
	meta, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.ReplaceAll(meta, []byte(`"60s"`), []byte(`"10s"`)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := studyReport(t, dir)
	if r.Header.Comparable || !strings.Contains(r.Caveats[0], "phase rate windows 10s (1m)") {
		t.Errorf("caveats %q", r.Caveats)
	}
}

// TestGeneratorRows: each generator has its own medians, and a percentile that
// was measured.
func TestGeneratorRows(t *testing.T) {
	run := store.Run{
		Suite:  plan.Suite{Scenarios: []plan.Scenario{{ID: "read"}}, Candidates: []plan.Candidate{{ID: "go"}}},
		Preset: plan.Preset{Phases: []plan.Phase{{ID: "rate", Kind: plan.KindRate, Repetitions: 2, Connections: []int{16}, Targets: map[string]int{"read": 30}}}},
		Links:  []store.Link{{From: "load", To: "app"}}, Cloud: &store.Cloud{Region: "eu-west-1"},
	}
	in := Measured{Run: run, State: store.StateComplete}
	for rep := 1; rep <= 2; rep++ {
		n := float64(rep)
		in.Windows = append(in.Windows, store.WindowResult{
			Window:  plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: "go", Scenario: "read", Repetition: rep, Connections: 16, Target: 30, Seconds: 10},
			Attempt: 1, Hosts: []store.HostReading{{Host: "app", ClockOffsetMS: n}},
			Measured: &measure.Window{Answered: 300, OK: 300, Achieved: 30, P99MS: 9 * n, Generators: []measure.Generator{
				{Host: "load", Part: measure.Part{OK: 100, Achieved: 10 * n, P99MS: n, Failed: 1}},
				{Host: "load2", Part: measure.Part{OK: 200, Achieved: 20 * n, P99MS: 9 * n, Missing: []string{"p999_ms"}}},
			}},
		})
	}
	r := TablesOf(in)
	if len(r.Generators) != 2 || r.Header.Generators != 2 || len(r.Header.Links) != 1 || r.Header.Cloud.Region != "eu-west-1" || len(r.Windows[0].Hosts) != 1 {
		t.Fatalf("%+v", r)
	}
	a, b := r.Generators[0], r.Generators[1]
	if a.Host != "load" || a.Achieved.Value != 15 || a.P99.Value != 2 || a.P99.Min != 1 || a.Failed != 2 || !a.Evidence || a.P999 == nil {
		t.Errorf("first generator %+v", a)
	}
	if b.Host != "load2" || b.Achieved.Value != 30 || b.P99.Value != 18 || b.P999 != nil {
		t.Errorf("second generator %+v", b)
	}
	if r.Rate[0].P99.Value != 18 {
		t.Errorf("the window's latency is %+v", r.Rate[0].P99)
	}
	for i := range in.Windows {
		in.Windows[i].Measured.Generators = nil
	}
	if r := TablesOf(in); r.Generators != nil || r.Header.Generators != 0 {
		t.Errorf("one generator gives %+v", r.Generators)
	}

	// The streams of a mix are taken apart in the same way.
	for i := range in.Windows {
		n := float64(i + 1)
		in.Windows[i].Scenario, in.Windows[i].Streams = "half", []plan.Stream{{Scenario: "read", Share: 0.5}, {Scenario: "write", Share: 0.5}}
		in.Windows[i].Measured.Streams = []measure.Stream{{Scenario: "read", Part: measure.Part{Achieved: 10 * n}}, {Scenario: "write", Part: measure.Part{Achieved: 20 * n, P99MS: n}}}
	}
	r = TablesOf(in)
	if len(r.Streams) != 2 || len(r.Windows[0].Streams) != 2 {
		t.Fatalf("%+v", r.Streams)
	}
	if s := r.Streams[1]; s.Stream != "write" || s.Host != "" || s.Scenario != "half" || s.Achieved.Value != 30 || s.P99.Value != 2 {
		t.Errorf("%+v", s)
	}
}

// Medians have their intervals, a best and a largest have none, and what the
// statistics cannot do is said once before any figure.
func TestIntervalsAndWarnings(t *testing.T) {
	of := func(estimator, metric string, values ...float64) *Stat {
		e := Estimate{Key: Key{Metric: metric}, Estimator: estimator}
		for i, v := range values {
			e.Samples = append(e.Samples, Sample{i + 1, v})
		}
		e.fill(DisplayConfidence)
		return e.stat()
	}
	six := of(EstimatorMedian, Achieved, 1, 2, 3, 4, 5, 6)
	if six.Lo != 1 || six.Hi != 6 || six.Confidence < 0.95 || len(six.Warnings) != 0 || six.Value != 3.5 {
		t.Errorf("%+v", six)
	}
	three := of(EstimatorMedian, P99, 3, 1, 2)
	if three.Lo != 1 || three.Hi != 3 || three.Confidence != 0.75 || len(three.Warnings) != 1 || !strings.HasPrefix(three.Warnings[0], "3 repetitions cannot give a 95 % interval") {
		t.Errorf("%+v", three)
	}
	for _, s := range []*Stat{of(EstimatorMedian, Achieved, 7), of(EstimatorLargest, PeakMiB, 5, 7), of(EstimatorBest, Achieved, 7)} {
		if s.Lo != 7 || s.Hi != 7 || s.Confidence != 0 || s.Value != 7 {
			t.Errorf("%+v", s)
		}
	}
	r := studyReport(t, studyDir)
	for _, want := range []string{"In phase ceiling 3 repetitions cannot give a 95 % interval", "In phase rate 5 repetitions cannot give a 95 % interval"} {
		n := 0
		for _, c := range r.Caveats {
			if strings.HasPrefix(c, want) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q stands %d times in %q", want, n, r.Caveats)
		}
	}
	for _, row := range r.Ceiling {
		if row.Achieved.Confidence != 0 || row.Median.Confidence != 0.75 {
			t.Errorf("%+v, %+v", row.Achieved, row.Median)
		}
	}
}
