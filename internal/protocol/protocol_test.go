package protocol

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

func TestPlanIsDrawnFromTheSeed(t *testing.T) {
	r, _, _ := setup(t)
	order := func(seed uint64) string {
		var names []string
		for _, b := range plan.LayOut(r.Suite, r.List.Preset, seed).Blocks {
			names = append(names, b.String())
		}
		return strings.Join(names, " ")
	}
	if first, again := order(7), order(7); first != again {
		t.Error("one seed gives two orders")
	}
	different := false
	for seed := range uint64(20) {
		o := order(seed)
		different = different || o != order(7)
		if !strings.Contains(o, "rate/go/r1") || strings.Index(o, "ceiling") < strings.LastIndex(o, "rate/") {
			t.Errorf("seed %d: %s", seed, o)
		}
	}
	if !different {
		t.Error("the seed does not change the order")
	}
	if n := r.List.Windows(); n != 2*2*3+2*3*2 {
		t.Errorf("%d windows", n)
	}
	if d := r.List.WindowTime(plan.Undone); d != 24*1700*time.Millisecond {
		t.Errorf("windows last %s", d)
	}
}

// TestBlockOrder holds a block against the protocol: fresh database, probe,
// fresh candidate, warm-ups, then the scenarios with write last.
func TestBlockOrder(t *testing.T) {
	r, lab, journal := setup(t)
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	first := r.List.Blocks[0].Candidate
	want := []string{
		"database", "start probe", "probe at 50000", "stop probe", "start " + first,
		"warm auth at 50", "warm read at 40", "warm write at 30",
		"measure " + first + " auth c256", "measure " + first + " read c256", "measure " + first + " write c256",
		"stop " + first,
	}
	if got := lab.calls[:len(want)]; !slices.Equal(got, want) {
		t.Errorf("block was\n%q, want\n%q", got, want)
	}
	if a, b := count(lab.calls, "probe at 0"), 2; a != b {
		t.Errorf("%d flat-out probes before %d blocks of ceilings", a, b)
	}
	last := lab.calls[len(lab.calls)-7:]
	for i, suffix := range []string{"auth c16", "auth c64", "read c16", "read c64", "write c16", "write c64"} {
		if !strings.HasSuffix(last[i], suffix) {
			t.Errorf("ceiling block ends with %q", last)
			break
		}
	}
	if r.Finished() != r.List.Windows() || lab.measured != r.List.Windows() {
		t.Errorf("%d windows finished, %d measured, %d planned", r.Finished(), lab.measured, r.List.Windows())
	}
	for _, e := range journal.events {
		if w := e.Window; w != nil {
			if !w.Passed() || w.Attempt != 1 || journal.raw[w.OHA] == nil || journal.raw[w.CGroup] == nil || len(w.Gates) != map[plan.Kind]int{plan.KindRate: 12, plan.KindCeiling: 11}[w.Kind] {
				t.Errorf("window %+v", w)
			}
			if w.Measured.AppCores <= 0 || w.Measured.Achieved <= 0 {
				t.Errorf("figures %+v", w.Measured)
			}
		}
	}
	if journal.raw["raw/rate/go_r1_n1.log"] == nil {
		t.Error("the candidate's log was not kept")
	}
}

// TestGatesFail makes the first window fail each gate in turn: it must be kept,
// marked with the reading, and measured again under a new attempt number.
func TestGatesFail(t *testing.T) {
	for gate, prepare := range map[string]func(*Runner, *fakeLab){
		gates.Probe: func(_ *Runner, l *fakeLab) {
			l.probes = []byte(strings.ReplaceAll(string(l.probes), `"200": `, `"500": `))
		},
		gates.Clock: func(_ *Runner, l *fakeLab) {
			l.bend = first(func(s []cgroup.Sample) {
				for i := 10; i < len(s); i++ {
					s[i].T += int64(150 * time.Millisecond)
				}
			})
		},
		gates.Throttled: func(_ *Runner, l *fakeLab) {
			l.bend = first(func(s []cgroup.Sample) {
				us := int64(1)
				c := s[len(s)-1].Containers["db"]
				c.ThrottledUS = &us
				s[len(s)-1].Containers["db"] = c
			})
		},
		gates.Steal: func(_ *Runner, l *fakeLab) {
			l.bend = first(func(s []cgroup.Sample) {
				s[len(s)-1].Host.PerCPU[1].StealUS = 60_000 // of 3 × 1.9 s
			})
		},
		gates.Cores: func(r *Runner, _ *fakeLab) { r.Layout = layout(false, shareLoad) },
		gates.Samples: func(_ *Runner, l *fakeLab) {
			l.bend = func(n int, s []cgroup.Sample) []cgroup.Sample {
				if n == 1 {
					return s[:10]
				}
				return s
			}
		},
	} {
		t.Run(gate, func(t *testing.T) {
			r, lab, journal := setup(t)
			prepare(r, lab)
			if err := r.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			w := r.List.Blocks[0].Windows[0]
			attempts := journal.Attempts(w)
			permanent := gate == gates.Probe || gate == gates.Cores
			if want := map[string]int{gates.Probe: 1, gates.Cores: plan.MaxAttempts}[gate]; len(attempts) != cmp.Or(want, 2) {
				t.Fatalf("%d attempts, want %d", len(attempts), want)
			}
			failed := attempts[0]
			if failed.Passed() || failed.Error != "" || failed.Measured == nil || journal.raw[failed.OHA] == nil {
				t.Errorf("the failed attempt is not kept and marked: %+v", failed)
			}
			for _, g := range failed.Gates {
				if g.OK == (g.Name == gate) {
					t.Errorf("gate %+v while %s should fail alone", g, gate)
				}
				if g.Name == gate && g.Reading == g.Limit {
					t.Errorf("gate %+v has no telling reading", g)
				}
			}
			if last := attempts[len(attempts)-1]; last.Passed() == permanent || last.Attempt != len(attempts) {
				t.Errorf("last attempt %+v", last)
			}
			if n := count(lab.calls, "probe at 50000"); gate == gates.Probe && n != MaxProbes*len(r.List.Blocks) {
				t.Errorf("a probe that failed must be asked again at once: %d probes", n)
			}
			if gate == gates.Probe && (count(lab.calls, "start probe") != len(r.List.Blocks) || lab.measured != r.List.Windows()) {
				t.Errorf("%d blocks and %d windows were measured", count(lab.calls, "start probe"), lab.measured)
			}
		})
	}
}

// TestAttemptsOfAPreset: a preset may do with one attempt.
func TestAttemptsOfAPreset(t *testing.T) {
	r, lab, _ := setup(t)
	r.Layout, r.List.Preset.Attempts = layout(false, shareLoad), 1
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if lab.measured != r.List.Windows() || r.Finished() != r.List.Windows() {
		t.Errorf("%d measured and %d finished of %d windows", lab.measured, r.Finished(), r.List.Windows())
	}
}

// TestProbeAgain: a probe that fell short once is forgotten, and the one that
// reached its target judges the block.
func TestProbeAgain(t *testing.T) {
	r, lab, journal := setup(t)
	good := lab.probes
	lab.probes = []byte(strings.ReplaceAll(string(good), `"200": `, `"500": `))
	r.Observer = &probeWatcher{after: func(n int) {
		if n == 1 {
			lab.probes = good
		}
	}}
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := journal.Attempts(r.List.Blocks[0].Windows[0])
	if len(a) != 1 || !a[0].Passed() {
		t.Errorf("attempts %+v", a)
	}
	var readings []store.ProbeReading
	for _, e := range journal.events {
		if reading, ok := store.ReadingOf(e); ok && *e.Block == r.List.Blocks[0].BlockID {
			readings = append(readings, reading)
		}
	}
	if len(readings) != 2 || readings[0].Achieved != 0 || readings[1].Achieved == 0 || readings[0].File == readings[1].File {
		t.Errorf("readings %+v", readings)
	}
}

// probeWatcher counts the readings of the probe.
type probeWatcher struct {
	watchNothing
	n     int
	after func(n int)
}

func (w *probeWatcher) ProbeEnded(plan.Block, store.ProbeReading) { w.n++; w.after(w.n) }

// TestClockThatIsSet: whoever sets a host's clock within a window fails it, and
// does not end the run.
func TestClockThatIsSet(t *testing.T) {
	for name, steps := range map[string]map[int]time.Duration{
		"back":           {10: -150 * time.Millisecond},
		"back and forth": {10: -150 * time.Millisecond, 12: 150 * time.Millisecond},
		"forth and back": {10: 150 * time.Millisecond, 12: -150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			r, lab, journal := setup(t)
			lab.bend = first(func(s []cgroup.Sample) {
				var ahead time.Duration
				for i := range s {
					ahead += steps[i]
					s[i].T += int64(ahead)
				}
			})
			if err := r.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			a := journal.Attempts(r.List.Blocks[0].Windows[0])
			if len(a) != 2 || a[0].Passed() || a[0].Error != "" || !a[1].Passed() {
				t.Fatalf("attempts %+v", a)
			}
			if g := gateOf(t, a[0], gates.Clock); g.OK || g.Reading != 150 {
				t.Errorf("gate %+v", g)
			}
		})
	}
}

func first(change func([]cgroup.Sample)) func(int, []cgroup.Sample) []cgroup.Sample {
	return func(n int, s []cgroup.Sample) []cgroup.Sample {
		if n == 1 {
			change(s)
		}
		return s
	}
}

// shareLoad puts the load generator on the app's CPU.
func shareLoad(run *store.Run) {
	run.Profile.Roles[plan.Load] = run.Profile.Roles[plan.App]
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

func TestSharedCoresAreWaivedOnlyWhenTheProfileSaysSo(t *testing.T) {
	r, _, journal := setup(t)
	r.Layout = layout(false, func(run *store.Run) { shareLoad(run); run.Profile.SharedCores = true })
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := journal.Attempts(r.List.Blocks[0].Windows[0])
	i := slices.IndexFunc(a[0].Gates, func(g store.Gate) bool { return g.Name == gates.Cores })
	if len(a) != 1 || !a[0].Passed() || a[0].Gates[i].OK || a[0].Gates[i].Waived == "" {
		t.Errorf("%d attempts, gate %+v", len(a), a[0].Gates[i])
	}
}

// TestResume stops a run inside a block and checks that the next one measures
// only what is missing, from a fresh database.
func TestResume(t *testing.T) {
	r, lab, journal := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lab.bend = func(n int, s []cgroup.Sample) []cgroup.Sample {
		if n == 5 {
			cancel()
		}
		return s
	}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("run ended with %v", err)
	}
	if last := lab.calls[len(lab.calls)-1]; !strings.HasPrefix(last, "stop ") {
		t.Errorf("an interrupted run leaves its candidate behind: %q", last)
	}
	done := r.Finished()
	before := lab.measured
	if done != 5 {
		t.Fatalf("%d windows finished", done)
	}
	again := &Runner{Lab: lab, Journal: journal, List: r.List, Suite: r.Suite, Observer: r.Observer}
	if err := again.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if lab.measured-before != r.List.Windows()-done {
		t.Errorf("%d windows measured after %d of %d", lab.measured-before, done, r.List.Windows())
	}
}

// TestBrokenWindow: a window that breaks off is tried again in a fresh block,
// does not use up the attempts of the gates, and leaves every other window to be
// measured.
func TestBrokenWindow(t *testing.T) {
	r, lab, journal := setup(t)
	w := r.List.Blocks[0].Windows[1]
	lab.fail = map[string]error{"measure " + w.Candidate + " read c256": errors.New("the load generator was killed for memory")}
	err := r.Run(context.Background())
	var incomplete *Incomplete
	if !errors.As(err, &incomplete) || incomplete.Ended || !strings.HasPrefix(said.Err(err), "4 of 24 windows were not measured: block rate/") || !strings.Contains(said.Err(err), "killed for memory") {
		t.Fatalf("run ended with %v", err)
	}
	if incomplete.Missing != 4 || r.Finished() != r.List.Windows()-4 { // read and write, in both repetitions
		t.Errorf("%d of %d windows finished, %d missing", r.Finished(), r.List.Windows(), incomplete.Missing)
	}
	attempts := journal.Attempts(w)
	if len(attempts) != 2 || attempts[1].Attempt != 2 || attempts[0].Error == "" || journal.raw[attempts[0].OHA] == nil || Finished(attempts, plan.MaxAttempts) {
		t.Fatalf("attempts %+v", attempts)
	}
	lab.fail = nil
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a := journal.Attempts(w); !a[len(a)-1].Passed() || a[len(a)-1].Attempt != 3 {
		t.Errorf("last attempt %+v", a[len(a)-1])
	}
}

// TestEverythingBreaks: when no block ends well the run does not go on for ever.
func TestEverythingBreaks(t *testing.T) {
	r, lab, journal := setup(t)
	lab.fail = map[string]error{"database": errors.New("no space left on device")}
	var incomplete *Incomplete
	if err := r.Run(context.Background()); !errors.As(err, &incomplete) || !incomplete.Ended || incomplete.Missing != r.List.Windows() || !strings.Contains(said.Err(err), "no space left") {
		t.Errorf("run ended with %v", err)
	}
	if n := count(lab.calls, "database"); n != MaxBroken {
		t.Errorf("%d attempts at a block", n)
	}
	if e := journal.events[len(journal.events)-1]; e.Type != store.EventBlockFailed {
		t.Errorf("last event %+v", e)
	}
}

// fullJournal cannot be written to any more.
type fullJournal struct {
	*memory
	left int
}

func (f *fullJournal) Append(e store.Event) error {
	if f.left--; f.left < 0 {
		return errors.New("no space left on device")
	}
	return f.memory.Append(e)
}

// TestNothingCanBeWritten: a window that nobody can write down is not worth
// measuring.
func TestNothingCanBeWritten(t *testing.T) {
	r, lab, journal := setup(t)
	r.Journal = &fullJournal{journal, 3}
	err := r.Run(context.Background())
	var incomplete *Incomplete
	if err == nil || errors.As(err, &incomplete) || !strings.Contains(said.Err(err), "no space left") || lab.measured != 1 {
		t.Errorf("run ended with %v after %d windows", err, lab.measured)
	}
}

// TestContainerGone: the window is broken, and measured again with a new
// container.
func TestContainerGone(t *testing.T) {
	r, lab, journal := setup(t)
	lab.bend = first(func(s []cgroup.Sample) { s[len(s)-1].Containers["db"] = cgroup.Container{Gone: true} })
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := journal.Attempts(r.List.Blocks[0].Windows[0])
	if len(a) != 2 || !strings.Contains(a[0].Error, "db container ended") || !a[1].Passed() {
		t.Errorf("attempts %+v", a)
	}
}

func TestCandidateNeverReady(t *testing.T) {
	r, lab, journal := setup(t)
	c := r.List.Blocks[0].Candidate
	lab.fail = map[string]error{"start " + c: &StartError{Candidate: c, Log: []byte("no such file\n"), Err: errors.New(c + " did not become ready")}}
	err := r.Run(context.Background())
	if err == nil || !strings.Contains(said.Err(err), "did not become ready") {
		t.Fatalf("run ended with %v", err)
	}
	if string(journal.raw["raw/rate/"+c+"_r"+"1_n1.log"]) != "no such file\n" {
		t.Errorf("raw files: %v", journal.raw)
	}
	if r.Finished() == 0 {
		t.Error("no other candidate was measured")
	}
}

func TestWarmUpWithoutAnswers(t *testing.T) {
	r, lab, _ := setup(t)
	lab.oha = []byte(strings.ReplaceAll(string(lab.oha), `"201": `, `"500": `))
	if err := r.Run(context.Background()); err == nil || !strings.Contains(said.Err(err), "no 2xx answer") {
		t.Errorf("run ended with %v", err)
	}
}

// TestEstimate: after the first block the estimate rests on it.
func TestEstimate(t *testing.T) {
	r, _, _ := setup(t)
	w := &watchNothing{}
	r.Observer = w
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w.seen[0].Measured || w.seen[0].Remaining < r.List.WindowTime(plan.Undone) {
		t.Errorf("first estimate %+v", w.seen[0])
	}
	end := w.seen[len(w.seen)-1]
	if !end.Measured || end.Remaining != 0 || end.Window != end.Windows || end.Block != end.Blocks {
		t.Errorf("last estimate %+v", end)
	}
	var o learned
	timer := blockTimer{start: time.Now().Add(-20 * time.Second), runs: 4, overhead: 4 * time.Second}
	timer.end(10*time.Second, &o)
	got, ok := o.estimate()
	if !ok || got.Generate != time.Second || got.Block.Round(time.Second) != 6*time.Second {
		t.Errorf("learned %+v", got)
	}
}
