package claims

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// synthetic makes a run of the published protocol whose windows scatter by a
// little around the published figures, times a factor for the hardware.
func synthetic(t testing.TB, repetitions int, hardware float64, change func(*store.Run, *store.WindowResult)) *figures.Set {
	t.Helper()
	base, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	get := func(phase, metric, candidate, scenario string) float64 {
		e, ok := base.Get(figures.Key{Suite: "oauth-events", Phase: phase, Metric: metric, Candidate: candidate, Scenario: scenario})
		if !ok {
			return 0
		}
		return e.Value
	}
	run := store.Run{ID: "synthetic", Flavour: plan.FlavourPublished, Comparable: true, Candidates: []string{"go", "frankenphp", "php-fpm"}}
	run.Suite.Name = "oauth-events"
	for _, id := range []string{"auth", "read", "write"} {
		run.Suite.Scenarios = append(run.Suite.Scenarios, plan.Scenario{ID: id, DB: id != "auth"})
	}
	run.Profile = plan.Profile{Name: "m4pro", Roles: map[plan.Role]plan.Resources{
		plan.App: {CPUs: "0-3"}, plan.DB: {CPUs: "4-7"}, plan.Load: {CPUs: "8-11"}}}
	run.Preset = plan.Preset{Name: "full", Published: true, Phases: []plan.Phase{
		{ID: "rate", Kind: plan.KindRate, Window: plan.Duration(time.Minute), Repetitions: repetitions, Connections: []int{256}, Targets: map[string]int{"auth": 50000, "read": 50000, "write": 10000}},
		{ID: "ceiling", Kind: plan.KindCeiling, Window: plan.Duration(15 * time.Second), Repetitions: repetitions, Connections: []int{16, 64, 128, 256}},
	}}
	run.Hosts = []store.HostFacts{{Name: "h", Roles: plan.Roles(), CPUModel: "Test CPU"}}
	var windows []store.WindowResult
	for _, candidate := range run.Candidates {
		for _, sc := range run.Suite.Scenarios {
			for _, phase := range run.Preset.Phases {
				for i := range repetitions * len(phase.Connections) {
					rep, connections := i/len(phase.Connections)+1, phase.Connections[i%len(phase.Connections)]
					noise := 1 + 0.003*float64((rep*7+len(candidate)*3+len(sc.ID))%5-2)
					w := store.WindowResult{Attempt: 1, Window: plan.Window{Phase: phase.ID, Kind: phase.Kind, Candidate: candidate, Scenario: sc.ID,
						Repetition: rep, Connections: connections, Target: phase.Targets[sc.ID], Seconds: phase.Window.Seconds()}}
					cpu := get("rate", figures.AppCPU, candidate, sc.ID) * noise * hardware
					achieved := get(phase.ID, figures.Achieved, candidate, sc.ID) * (2 - noise)
					if w.Target == 0 && connections != 64 {
						achieved *= 0.97
					}
					if w.Target > 0 && achieved > 0.98*float64(w.Target) {
						achieved = float64(w.Target)
					}
					w.Measured = &measure.Window{Achieved: achieved, OK: int64(achieved * 60), Answered: int64(achieved * 60),
						P99MS: get("rate", figures.P99, candidate, sc.ID) * 0.98 * noise, AppCPUUS: cpu, AppCores: achieved * cpu / 1e6,
						DBCPUUS: get("rate", figures.DBCPU, candidate, sc.ID) * noise, PeakBytes: int64(get("rate", figures.PeakMiB, candidate, "write") * noise * (1 << 20))}
					w.Gates = []store.Gate{{Name: "steal", OK: true}}
					if change != nil {
						change(&run, &w)
					}
					windows = append(windows, w)
				}
			}
		}
	}
	var probes []study.Probe
	for rep := range repetitions {
		probes = append(probes, study.Probe{Block: plan.BlockID{Phase: "rate", Candidate: "go", Repetition: rep + 1}, Reading: store.ProbeReading{Target: 50000, Achieved: 49990}})
	}
	return figures.FromRun(run, windows, probes)
}

func verdicts(t testing.TB, set *figures.Set) map[string]Result {
	t.Helper()
	list, base := shipped(t)
	all := map[string]Result{}
	for _, r := range Evaluate(list, set, base) {
		all[r.ID] = r
	}
	return all
}

func expect(t *testing.T, all map[string]Result, id string, want Verdict, cause Cause) Result {
	t.Helper()
	r, ok := all[id]
	if !ok {
		t.Fatalf("there is no claim %s", id)
	}
	if r.Verdict != want || r.Cause != cause {
		t.Errorf("%s: %s (%s: %s), want %s (%s)", id, r.Verdict, r.Cause, r.Reason, want, cause)
	}
	return r
}

func TestARunLikeTheStudyReproducesIt(t *testing.T) {
	all := verdicts(t, synthetic(t, 5, 1, nil))
	for _, id := range []string{
		"hold-10000-writes", "write-p99", "only-go-holds-50000-read", "cpu-go-read", "cpu-ratio-php-fpm-write", "cpu-order-auth",
		"token-share-go", "cores-add-up-go-read", "cores-add-up-php-fpm-write", "frankenphp-idle-cores", "php-fpm-no-idle-cores",
		"db-cpu-php-fpm", "ceiling-go-auth", "ceiling-order-write", "peak-memory-order", "saving-is-not-capacity", "phases-agree-php-fpm",
		"probe-not-the-limit", "no-failed-answers", "cores-by-cpu-frankenphp", "cores-by-instance-frankenphp", "queueing-php-fpm",
	} {
		r := expect(t, all, id, Reproduced, "")
		for _, f := range r.Findings {
			if f.Measured == nil || f.Measured.N != 5 && f.Measured.N != 225 {
				t.Errorf("%s: %+v", id, f.Measured)
			}
		}
	}
	expect(t, all, "capacity-go-4", Inconclusive, CauseNotMeasured)
	expect(t, all, "game-ratio-io_bound", Inconclusive, CauseNotMeasured)
	r := all["cpu-go-read"]
	if m := r.Findings[0].Measured; m.Confidence < 0.93 || m.Lo >= m.Value || m.Hi <= m.Value || *r.Findings[0].Published != 64.1 {
		t.Errorf("%+v", m)
	}
}

// On other hardware the figures differ and the ratios stay.
func TestOtherHardware(t *testing.T) {
	all := verdicts(t, synthetic(t, 5, 1.4, nil))
	r := expect(t, all, "cpu-go-read", NotReproduced, "")
	if !strings.Contains(r.Basis, "figure itself") || r.Reason == "" {
		t.Errorf("%+v", r)
	}
	expect(t, all, "cpu-ratio-php-fpm-read", Reproduced, "")
	expect(t, all, "token-share-php-fpm", Reproduced, "")
}

func TestFewRepetitions(t *testing.T) {
	all := verdicts(t, synthetic(t, 2, 1, nil))
	r := expect(t, all, "cpu-go-read", Inconclusive, CauseFew)
	if r.Reason != "a number of 2 repetitions gives an interval at 50 % at most, and 90 % is needed" {
		t.Errorf("%s", r.Reason)
	}
	expect(t, all, "ceiling-go-read", Inconclusive, CauseFew)
	expect(t, all, "cpu-ratio-php-fpm-read", Inconclusive, CauseFew)
	// Three are enough for a ratio and for a best, not for a median.
	all = verdicts(t, synthetic(t, 3, 1, nil))
	expect(t, all, "cpu-ratio-php-fpm-read", Reproduced, "")
	expect(t, all, "ceiling-go-read", Reproduced, "")
	expect(t, all, "cpu-go-read", Inconclusive, CauseFew)
}

// What the statistics could not do, and which repetitions are missing, stands in
// the answer itself.
func TestWarningsReachTheReader(t *testing.T) {
	list, base := shipped(t)
	set := synthetic(t, 3, 1, func(_ *store.Run, w *store.WindowResult) {
		if w.Candidate == "go" && w.Scenario == "auth" && w.Repetition == 3 {
			w.Gates = []store.Gate{{Name: "throttled"}}
		}
	})
	for _, format := range sheet.Formats {
		var b strings.Builder
		r := Of(list, set, base)
		if err := sheet.Write(&b, format, r.Document(true), r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range []string{"3 repetitions cannot give a 90 % interval", "no attempt passed its gates"} {
			if format == "text" {
				want, _, _ = strings.Cut(want, " ") // its cells are wrapped
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in it", format, want)
			}
		}
	}
	r := verdicts(t, set)["cpu-go-auth"]
	if w := r.Warnings(); len(w) != 2 {
		t.Errorf("%q", w)
	}
}

func TestConditionsOfARun(t *testing.T) {
	shared := synthetic(t, 5, 1, nil)
	shared.SharedCores = true
	all := verdicts(t, shared)
	expect(t, all, "cpu-go-read", Inconclusive, CauseShared)
	expect(t, all, "hold-10000-writes", Inconclusive, CauseShared)
	r := expect(t, all, "cpu-ratio-php-fpm-read", Reproduced, "")
	if !slices.Contains(r.Marks, "the roles share cores") {
		t.Errorf("a ratio over shared cores is not marked: %v", r.Marks)
	}
	threads := synthetic(t, 5, 1, func(run *store.Run, _ *store.WindowResult) {
		run.Hosts = []store.HostFacts{{Roles: plan.Roles(), Siblings: []plan.CPUSet{"0-1"}}}
	})
	expect(t, verdicts(t, threads), "cpu-go-read", Inconclusive, CauseConditions)
	debian := synthetic(t, 5, 1, nil)
	debian.Flavour = plan.FlavourDebian
	all = verdicts(t, debian)
	expect(t, all, "cpu-go-read", Inconclusive, CauseFlavour)
	if r := expect(t, all, "cpu-order-read", Reproduced, ""); len(r.Marks) == 0 {
		t.Error("an order of another flavour is not marked")
	}
	low := synthetic(t, 5, 1, func(run *store.Run, w *store.WindowResult) {
		if w.Target > 0 {
			w.Target = 500
			w.Measured.Achieved = 500
		}
		run.Preset.Phases[0].Targets = map[string]int{"auth": 500, "read": 500, "write": 500}
	})
	all = verdicts(t, low)
	expect(t, all, "cpu-go-read", Inconclusive, CauseConditions)
	expect(t, all, "hold-10000-writes", Inconclusive, CauseConditions)
	expect(t, all, "cpu-ratio-php-fpm-read", Reproduced, "")
	// The condition of these is saturation, which 500/s do not bring about.
	if r := expect(t, all, "phases-agree-php-fpm", Inconclusive, CauseGiven); !strings.Contains(r.Reason, "condition") {
		t.Errorf("%s", r.Reason)
	}
	// Windows of another length, other connection counts, another pool or table.
	run := synthetic(t, 5, 1, func(run *store.Run, _ *store.WindowResult) {
		run.Preset.Phases[0].Window = plan.Duration(10 * time.Second)
	})
	all = verdicts(t, run)
	for _, id := range []string{"queueing-php-fpm", "write-p99", "peak-memory-go"} {
		if r := expect(t, all, id, Inconclusive, CauseConditions); r.Reason != "other conditions, the claim's in brackets: windows of 10 s (60 s)" {
			t.Errorf("%s: %s", id, r.Reason)
		}
	}
	expect(t, all, "ceiling-go-read", Reproduced, "")
	for _, id := range []string{"cpu-go-read", "hold-10000-writes", "cpu-ratio-php-fpm-read"} {
		if r := expect(t, all, id, Reproduced, ""); len(r.Marks) != 1 {
			t.Errorf("%s: marks %q", id, r.Marks)
		}
	}
	run = synthetic(t, 5, 1, nil)
	run.Conditions.CeilingConnections = []int{64}
	all = verdicts(t, run)
	expect(t, all, "ceiling-go-read", Inconclusive, CauseConditions)
	expect(t, all, "go-write-ceiling-spread", Inconclusive, CauseConditions)
	expect(t, all, "ceiling-cores-frankenphp", Inconclusive, CauseConditions)
	if r := expect(t, all, "ceiling-order-auth", Reproduced, ""); len(r.Marks) != 1 {
		t.Errorf("an order of other ceilings: marks %q", r.Marks)
	}
	for name, change := range map[string]func(*figures.Conditions){
		"pool": func(c *figures.Conditions) { c.Pool = 8 }, "rows": func(c *figures.Conditions) { c.Rows = 1000 },
		"database memory": func(c *figures.Conditions) { c.DBMemory = 1 << 28 },
	} {
		run = synthetic(t, 5, 1, nil)
		change(&run.Conditions)
		all = verdicts(t, run)
		expect(t, all, "ceiling-go-read", Inconclusive, CauseConditions)
		if r := expect(t, all, "ceiling-go-auth", Reproduced, ""); len(r.Marks) != 0 {
			t.Errorf("%s: auth has no database and is marked: %q", name, r.Marks)
		}
		if r := expect(t, all, "cpu-go-read", Reproduced, ""); len(r.Marks) != 1 {
			t.Errorf("%s: marks %q", name, r.Marks)
		}
	}
	run = synthetic(t, 5, 1, nil)
	run.Conditions.AppMemory = 1 << 29
	all = verdicts(t, run)
	expect(t, all, "peak-memory-go", Inconclusive, CauseConditions)
	expect(t, all, "cpu-go-read", Reproduced, "")
	twoCores := synthetic(t, 5, 1, nil)
	twoCores.AppCores = 2
	all = verdicts(t, twoCores)
	expect(t, all, "ceiling-go-read", Inconclusive, CauseConditions)
	expect(t, all, "cpu-go-read", Reproduced, "")
}

func TestGateFailed(t *testing.T) {
	all := verdicts(t, synthetic(t, 5, 1, func(_ *store.Run, w *store.WindowResult) {
		if w.Candidate == "go" && w.Scenario == "read" && w.Phase == "rate" {
			w.Gates = []store.Gate{{Name: "throttled"}}
		}
	}))
	r := expect(t, all, "cpu-go-read", Inconclusive, CauseGate)
	if !strings.Contains(r.Reason, "throttled") {
		t.Errorf("%s", r.Reason)
	}
	expect(t, all, "cpu-ratio-php-fpm-read", Inconclusive, CauseGate)
	expect(t, all, "cpu-go-auth", Reproduced, "")
}

func TestStraddles(t *testing.T) {
	all := verdicts(t, synthetic(t, 5, 1, func(_ *store.Run, w *store.WindowResult) {
		if w.Candidate == "go" && w.Scenario == "read" && w.Phase == "rate" && w.Repetition > 3 {
			w.Measured.AppCPUUS *= 1.3
		}
	}))
	r := expect(t, all, "cpu-go-read", Inconclusive, CauseStraddles)
	if !strings.Contains(r.Reason, "straddles") {
		t.Errorf("%s", r.Reason)
	}
}

// The study's own raw files, as far as they are here, give its own verdicts.
func TestStudyFolder(t *testing.T) {
	s, err := study.Read("../../evidence/study/testdata/php-go-bench/results/2026-09-16")
	if err != nil {
		t.Fatal(err)
	}
	all := verdicts(t, figures.FromStudy(s))
	for _, id := range []string{"cpu-go-write", "cores-add-up-go-write", "peak-memory-go", "ceiling-go-read", "ceiling-php-fpm-read", "ceiling-frankenphp-read", "cores-by-instance-php-fpm"} {
		expect(t, all, id, Reproduced, "")
	}
	// PHP-FPM's best of three is above FrankenPHP's, its other repetitions are far below.
	expect(t, all, "ceiling-order-read", Inconclusive, CauseStraddles)
	expect(t, all, "cpu-go-read", Inconclusive, CauseNotMeasured)
}

func TestRoundsUp(t *testing.T) {
	list, base := shipped(t)
	i := slices.IndexFunc(list, func(c Claim) bool { return c.ID == "instances-50000" })
	set := base.Clone()
	k := figures.Key{Suite: "oauth-events", Phase: "capacity", Metric: figures.Achieved, Candidate: "php-fpm", Scenario: "mix", Cores: 4}
	e, _ := set.Get(k)
	e.Value = 25001 // three become two
	set.Put(e)
	r := Evaluate(list[i:i+1], set, base)[0]
	if r.Verdict != NotReproduced || r.Findings[2].Measured.Value != 2 && r.Findings[1].Measured.Value != 2 {
		t.Errorf("%+v", r)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	// Repetitions times 9 cells times 2 phases: 3,000 windows and more.
	for _, repetitions := range []int{167, 1670} {
		b.Run(fmt.Sprintf("windows=%d", repetitions*18), func(b *testing.B) {
			set := synthetic(b, repetitions, 1, nil)
			list, base := shipped(b)
			b.ResetTimer()
			for b.Loop() {
				Evaluate(list, set, base)
			}
		})
	}
}
