package gates

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
)

// set changes a counter of a container from one sample on, by an amount that may
// depend on the sample.
func set(name string, from, to int, change func(i int, c *cgroup.Container)) func([]cgroup.Sample) {
	return func(s []cgroup.Sample) {
		for i := from; i < min(to, len(s)); i++ {
			c := s[i].Containers[name]
			change(i, &c)
			s[i].Containers[name] = c
		}
	}
}

func value(v int64) *int64 { return &v }

// standsStill keeps a container, and the CPU it has for itself, from doing
// anything from one sample to another.
func standsStill(name string, from, to int) func([]cgroup.Sample) {
	cpu := slices.Index([]string{"app", "db", "load"}, name)
	return func(s []cgroup.Sample) {
		set(name, from, len(s), func(i int, c *cgroup.Container) {
			c.UsageUS = value(*c.UsageUS - int64(min(i, to)-from)*25_000)
			s[i].Host.PerCPU[cpu].BusyUS -= int64(min(i, to)-from) * 26_000
		})(s)
	}
}

// frozen says of samples that a container was paused.
func frozen(name string, from, to int) func([]cgroup.Sample) {
	return func(s []cgroup.Sample) {
		set(name, 0, len(s), func(i int, c *cgroup.Container) { c.Frozen = value(0) })(s)
		set(name, from, to, func(i int, c *cgroup.Container) { c.Frozen = value(1) })(s)
	}
}

// hog adds busy time to a CPU, in µs from each sample to the next.
func hog(cpu int, us, irq int64) func([]cgroup.Sample) {
	return func(s []cgroup.Sample) {
		for i := range s {
			s[i].Host.PerCPU[cpu].BusyUS += int64(i) * (us + irq)
			s[i].Host.PerCPU[cpu].IRQUS += int64(i) * irq
		}
	}
}

// TestLimits holds each gate against samples just inside and just outside of its
// limit: 40 samples in four seconds, of which the window is from 0.05 to 3.85 s.
func TestLimits(t *testing.T) {
	open := plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: "go", Scenario: "auth", Repetition: 1, Connections: 4, Target: 500, Seconds: 3.7}
	closed := open
	closed.Target = 0
	rare := open
	rare.Target = 2
	shared := func(r *store.Run) {
		r.Profile.SharedCores = true
		r.Profile.Roles[plan.Load] = plan.Resources{CPUs: "1"}
	}
	for _, c := range []struct {
		name    string
		window  plan.Window
		change  func([]cgroup.Sample)
		run     func(*store.Run)
		seconds float64
		gate    string // that fails alone, or none
		reading float64
		detail  string
	}{
		{name: "nothing", window: open},
		{name: "a little of something else", window: open, change: hog(0, 3_900, 0)},
		{name: "something else on the app's CPU", window: open, change: hog(0, 4_500, 0), gate: Foreign, reading: 0.055, detail: "CPUs of app"},
		{name: "something else on the database's", window: open, change: hog(1, 30_000, 0), gate: Foreign, reading: 0.31, detail: "CPUs of db"},
		{name: "interrupts are nobody's", window: open, change: hog(0, 0, 30_000)},
		{name: "roles that share a CPU, each with its own work", window: open, change: hog(1, 24_000, 0), run: shared},
		{name: "and something else there", window: open, change: hog(1, 40_000, 0), run: shared, gate: Foreign, reading: 0.16, detail: "CPUs of db and load"},
		{name: "app paused", window: open, change: frozen("app", 10, 13), gate: Stalled, reading: 300, detail: "app was paused for 0.3 s"},
		{name: "load paused for an instant", window: closed, change: frozen("load", 20, 21), gate: Stalled, reading: 100, detail: "load was paused for 0.1 s"},
		{name: "paused before the window", window: open, change: frozen("app", 0, 1)},
		{name: "app stood still for a second", window: open, change: standsStill("app", 10, 20)},
		{name: "app stood still for longer", window: open, change: standsStill("app", 10, 22), gate: Stalled, reading: 1200, detail: "app stood still for 1.2 s"},
		{name: "database stood still", window: closed, change: standsStill("db", 5, 25), gate: Stalled, reading: 2000, detail: "db stood still for 2.0 s"},
		{name: "a database that nobody asks", window: open, change: standsStill("db", 0, 39)},
		{name: "load stood still", window: open, change: standsStill("load", 10, 12)},
		{name: "load stood still for longer", window: open, change: standsStill("load", 10, 14), gate: Late, reading: 400},
		{name: "in a closed loop it waits", window: closed, change: standsStill("load", 10, 14)},
		{name: "and where little is due", window: rare, change: standsStill("load", 10, 20)},
		{name: "throttled", window: open, change: set("load", 39, 40, func(_ int, c *cgroup.Container) { c.ThrottledUS = value(1000) }), gate: Throttled, reading: 1, detail: "load was throttled"},
		{name: "throttled from above", window: open, change: func(s []cgroup.Sample) {
			for _, name := range []string{"app", "db"} {
				set(name, 0, 40, func(i int, c *cgroup.Container) { c.AboveThrottledUS = value(int64(5_000_000 + i*1000)) })(s)
			}
		}, gate: Throttled, reading: 39, detail: "a cgroup above that of app was throttled"},
		{name: "load near its end", window: closed, change: func(s []cgroup.Sample) {
			hog(2, 60_000, 0)(s)
			set("load", 0, 40, func(i int, c *cgroup.Container) { c.UsageUS = value(*c.UsageUS + int64(i)*60_000) })(s)
		}, gate: Load, reading: 0.86},
		{name: "a generator that ended early", window: open, seconds: 3, gate: Length, reading: 3 / 3.7, detail: "load ended after 3.0 of 4 s"},
	} {
		run := testRun()
		if c.run != nil {
			c.run(&run)
		}
		lines := sampled(t, 40)
		if c.change != nil {
			lines = cgtest.Change(t, lines, c.change)
		}
		if c.seconds == 0 {
			c.seconds = 3.8
		}
		w := store.WindowResult{Window: c.window, Attempt: 1, Start: began.Add(50 * time.Millisecond), End: began.Add(3850 * time.Millisecond), OHA: "x." + store.RawOHA, CGroup: "x." + store.RawCGroup}
		_, verdicts, err := LayoutOf(run).Judge(w, store.ProbeReading{Target: 1, Achieved: 1}, func(path string) ([]byte, error) {
			if path == w.OHA {
				return result(c.seconds), nil
			}
			return lines, nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, v := range verdicts {
			if v.Failed() != (v.Name == c.gate) {
				t.Errorf("%s: gate %+v", c.name, v)
			}
			if v.Name == c.gate && (fmt.Sprintf("%.3g", v.Reading) != fmt.Sprintf("%.3g", c.reading) || !strings.Contains(v.Detail, c.detail)) {
				t.Errorf("%s: gate %+v, want reading %v and detail %q", c.name, v, c.reading, c.detail)
			}
		}
		if late := slices.ContainsFunc(verdicts, func(v store.Gate) bool { return v.Name == Late }); late != (c.window.Target > 0) {
			t.Errorf("%s: gate %s is there: %v", c.name, Late, late)
		}
	}
}

// TestAnswers names what was answered instead.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		out, detail string
		reading     float64
	}{
		"its own":          {`{"200":990,"500":10}`, "", 0.01},
		"too many others":  {`{"200":980,"500":5,"502":15}`, "980 of 1000 answers were the scenario's own; 502: 15, 500: 5", 0.02},
		"nothing but 401":  {`{"401":1000}`, "0 of 1000 answers were the scenario's own; 401: 1000", 1},
		"nothing answered": {`{}`, "0 of 0 answers were the scenario's own; connection refused: 7", 1},
	} {
		out := strings.Replace(string(result(2)), `{"200":1000}`, c.out, 1)
		if c.out == "{}" {
			out = strings.Replace(out, `"errorDistribution":{}`, `"errorDistribution":{"connection refused":7}`, 1)
		}
		w := store.WindowResult{Window: plan.Window{Seconds: 2}, OHA: "raw/rate_go_read_q500_r1.json"}
		_, failed, err := Layout{}.Judge(w, store.ProbeReading{}, func(string) ([]byte, error) { return []byte(out), nil })
		if err != nil {
			t.Fatal(err)
		}
		if (len(failed) == 0) != (c.detail == "") || c.detail != "" && (failed[0].Name != Answers || failed[0].Detail != c.detail || failed[0].Reading != c.reading) {
			t.Errorf("%s: gates %+v", name, failed)
		}
	}
}
