package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
	"github.com/percore/percore/internal/testkit/said"
)

func gateOf(t *testing.T, w store.WindowResult, name string) store.Gate {
	t.Helper()
	i := slices.IndexFunc(w.Gates, func(g store.Gate) bool { return g.Name == name })
	if i < 0 {
		t.Fatalf("there is no gate %s in %+v", name, w.Gates)
	}
	return w.Gates[i]
}

// end is the sample that ends the window, of 20.
const end = 18

// lines makes the lines of a host anew with its samples changed.
func lines(t *testing.T, m *Measurement, host string, change func([]cgroup.Sample)) {
	t.Helper()
	i := slices.IndexFunc(m.CGroup, func(s HostSamples) bool { return s.Host == host })
	m.CGroup[i].Lines = cgtest.Change(t, m.CGroup[i].Lines, change)
}

// work makes a container the one that has kept two CPUs busy until a sample.
func work(s *cgroup.Sample, role plan.Role, us0, us1 int64) {
	s.Host.PerCPU[0].BusyUS, s.Host.PerCPU[1].BusyUS = us0, us1
	c, sum := s.Containers[string(role)], us0+us1
	c.UsageUS = &sum
	s.Containers[string(role)] = c
}

// setupHosts is setup with four hosts, and with one block to measure.
func setupHosts(t *testing.T) (*Runner, *fakeLab, *memory) {
	r, lab, journal := setup(t)
	lab.spread, r.Layout = true, layout(true, nil)
	r.List.Blocks = r.List.Blocks[:1]
	return r, lab, journal
}

// TestSeveralHosts measures on four hosts, two of which generate load.
func TestSeveralHosts(t *testing.T) {
	r, lab, journal := setupHosts(t)
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	w := r.List.Blocks[0].Windows[0]
	a := journal.Attempts(w)
	if len(a) != 1 || !a[0].Passed() || len(a[0].Gates) != 14 {
		t.Fatalf("attempts %+v", a)
	}
	base := strings.TrimSuffix(a[0].OHA, store.RawOHA)
	if a[0].CGroup != base+"cg.jsonl" || !slices.Equal(a[0].OtherOHA, []string{base + "load2.oha.json"}) || len(a[0].OtherCGroup) != 3 || a[0].OtherCGroup["load2"] != base+"load2.cg.jsonl" {
		t.Errorf("files %v %v %v", a[0].CGroup, a[0].OtherOHA, a[0].OtherCGroup)
	}
	for _, name := range a[0].RawFiles() {
		if journal.raw[name] == nil || a[0].SHA256[name] == "" {
			t.Errorf("%s was not kept", name)
		}
	}
	m := a[0].Measured
	if len(m.Generators) != 2 || m.Generators[1].Host != "load2" || m.Answered != 2*m.Generators[0].Answered || m.LoadCores <= m.AppCores || m.Samples < 18 {
		t.Errorf("figures %+v", m)
	}
	// The probe is the sum of what both generators sent.
	i := slices.IndexFunc(journal.events, func(e store.Event) bool { return e.Type == store.EventProbe })
	reading, ok := store.ReadingOf(journal.events[i])
	one, err := oha.Parse("probe", lab.probes)
	if err != nil || !ok || reading.Achieved != 2*float64(one.OK())/10 || len(reading.Others) != 1 || journal.raw[strings.Replace(reading.File, ".oha.json", ".load2.oha.json", 1)] == nil {
		t.Errorf("probe %+v, %v", reading, err)
	}
	// Whoever derives the figures from the raw files gets the same.
	e, err := store.ReadEvidence(a[0], func(name string) ([]byte, error) { return journal.raw[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.Figures(); err != nil || fmt.Sprint(again) != fmt.Sprint(*m) {
		t.Errorf("derived %+v, %v, want %+v", again, err, *m)
	}
	for gate, want := range map[string]string{
		gates.Offset: "host db", gates.Allowance: "no counters of allowances on db", gates.Load: "host load", gates.Clock: "host app", gates.Cores: "app on 0-1, load on 0-1, of different hosts",
	} {
		if g := gateOf(t, a[0], gate); g.Detail != want || !g.OK {
			t.Errorf("gate %+v, want detail %q", g, want)
		}
	}
	if g := gateOf(t, a[0], gates.Offset); g.Reading != 3 || g.Limit != 5 {
		t.Errorf("gate %+v", g)
	}
}

// TestGatesOfHosts makes the first window fail on one host: the gate must fail
// alone, with a reading, and name the host.
func TestGatesOfHosts(t *testing.T) {
	last := func(change func(*cgroup.Sample)) func([]cgroup.Sample) {
		return func(s []cgroup.Sample) {
			for i := end; i < len(s); i++ {
				change(&s[i])
			}
		}
	}
	for _, c := range []struct {
		name, gate, detail string
		change             func(t *testing.T, m *Measurement)
	}{
		{"a host slept", gates.Clock, "host db", func(t *testing.T, m *Measurement) {
			lines(t, m, "db", func(s []cgroup.Sample) {
				for i := 10; i < len(s); i++ {
					s[i].T += int64(150 * time.Millisecond)
				}
			})
		}},
		{"the database was throttled", gates.Throttled, "db was throttled on host db", func(t *testing.T, m *Measurement) {
			lines(t, m, "db", last(func(s *cgroup.Sample) {
				us := int64(1)
				c := s.Containers["db"]
				c.ThrottledUS = &us
				s.Containers["db"] = c
			}))
		}},
		{"a load host was stolen from", gates.Steal, "host load2", func(t *testing.T, m *Measurement) {
			lines(t, m, "load2", last(func(s *cgroup.Sample) { s.Host.PerCPU[1].StealUS = 60_000 }))
		}},
		{"steal of a CPU that nothing runs on", "", "", func(t *testing.T, m *Measurement) {
			lines(t, m, "load2", last(func(s *cgroup.Sample) { s.Host.PerCPU[2].StealUS = 600_000 }))
		}},
		{"samples without the CPUs", gates.Steal, "host app: the samples do not show", func(t *testing.T, m *Measurement) {
			lines(t, m, "app", last(func(s *cgroup.Sample) { s.Host.PerCPU = s.Host.PerCPU[:1] }))
		}},
		{"a sampler ended early", gates.Samples, "host load: the first and the last", func(t *testing.T, m *Measurement) {
			m.CGroup[2].Lines = cgtest.Head(t, m.CGroup[2].Lines, 12)
		}},
		{"a sampler ended within the tolerance of the clocks", "", "", func(t *testing.T, m *Measurement) {
			m.End = m.Start.Add(1854 * time.Millisecond) // 4 ms after the last sample
		}},
		{"a load host's clock that was set back made the window short", gates.Samples, "host app: the samples span 1.0 s and the load generator ran for 1.7 s", func(t *testing.T, m *Measurement) {
			m.End = m.Start.Add(900 * time.Millisecond)
		}},
		{"a host has no samples", gates.Samples, "host load2: there are no samples", func(t *testing.T, m *Measurement) {
			m.CGroup = m.CGroup[:3]
		}},
		{"an allowance was exceeded", gates.Allowance, "host load2: pps_allowance_exceeded grew by 7", func(t *testing.T, m *Measurement) {
			m.Hosts[3].Allowances["pps_allowance_exceeded"] = 7
		}},
		{"allowances cannot be read", gates.Allowance, "host app: no ethtool", func(t *testing.T, m *Measurement) {
			m.Hosts[0].Allowances, m.Hosts[0].AllowanceError = nil, "no ethtool"
		}},
		{"a clock is off", gates.Offset, "host app", func(t *testing.T, m *Measurement) {
			m.Hosts[0].ClockOffsetMS = -5.5
			m.CGroup[0].Lines = cgtest.Split(t, m.CGroup[0].Lines, cgtest.Host{Containers: map[string]string{"app": "app"}, Ahead: -7500 * time.Microsecond})
		}},
		{"a clock cannot be read", gates.Offset, "host db: no answer", func(t *testing.T, m *Measurement) {
			m.Hosts[1].ClockOffsetMS, m.Hosts[1].ClockError = 0, "no answer"
		}},
		{"a load host is saturated", gates.Load, "host load2", func(t *testing.T, m *Measurement) {
			lines(t, m, "load2", last(func(s *cgroup.Sample) {
				work(s, plan.Load, 1_600_000, 1_500_000) // of 1.8 s
			}))
		}},
		{"a load host waited before it was saturated", gates.Load, "host load", func(t *testing.T, m *Measurement) {
			m.Start = m.Start.Add(950 * time.Millisecond)
			lines(t, m, "load", func(s []cgroup.Sample) {
				for i := range s {
					busy := int64(max(0, i-10)) * 95_000
					work(&s[i], plan.Load, busy+int64(i)*100, busy)
				}
			})
		}},
		{"an app host is saturated", "", "", func(t *testing.T, m *Measurement) {
			lines(t, m, "app", last(func(s *cgroup.Sample) {
				work(s, plan.App, 1_900_000, 1_900_000)
			}))
		}},
		{"a link was down and the samplers ran on", "", "", func(t *testing.T, m *Measurement) {
			for i := range m.CGroup {
				m.CGroup[i].Lines = cgtest.RunOn(t, m.CGroup[i].Lines, 60)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, lab, journal := setupHosts(t)
			lab.hosts = func(n int, m *Measurement) {
				if n == 1 {
					c.change(t, m)
				}
			}
			if err := r.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			a := journal.Attempts(r.List.Blocks[0].Windows[0])
			if c.gate == "" {
				if len(a) != 1 || !a[0].Passed() {
					t.Fatalf("%d attempts, gates %+v", len(a), a[0].Gates)
				}
				if cores := a[0].Measured.AppCores * a[0].Seconds; cores > 0.5 && c.name != "an app host is saturated" {
					t.Errorf("the app used %v s of CPU", cores)
				}
				return
			}
			if len(a) != 2 || a[0].Passed() || !a[1].Passed() || a[0].Error != "" || a[0].Measured == nil {
				t.Fatalf("attempts %+v", a)
			}
			for _, g := range a[0].Gates {
				if g.OK == (g.Name == c.gate) && !(c.name == "samples without the CPUs" && g.Name == gates.Foreign) {
					t.Errorf("gate %+v while %s should fail alone", g, c.gate)
				}
				if g.Name == c.gate && !strings.HasPrefix(g.Detail, c.detail) {
					t.Errorf("gate %+v, want detail %q", g, c.detail)
				}
			}
		})
	}
}

// TestNothingOfTheHosts: a lab that says nothing of its hosts has no evidence.
func TestNothingOfTheHosts(t *testing.T) {
	r, lab, journal := setupHosts(t)
	lab.hosts = func(_ int, m *Measurement) { m.Hosts, m.CGroup = nil, m.CGroup[:2] }
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := journal.Attempts(r.List.Blocks[0].Windows[0])
	for _, gate := range []string{gates.Allowance, gates.Offset, gates.Load, gates.Samples} {
		if g := gateOf(t, a[0], gate); g.OK || g.Detail == "" {
			t.Errorf("gate %+v", g)
		}
	}
}

// TestSharedCoresOfSeveralHosts: hosts that are one machine share its cores on
// purpose, and a load host that is busy with the candidate proves nothing.
func TestSharedCoresOfSeveralHosts(t *testing.T) {
	r, lab, journal := setupHosts(t)
	r.Layout = layout(true, func(run *store.Run) { run.Profile.SharedCores = true })
	lab.hosts = func(_ int, m *Measurement) {
		lines(t, m, "load", func(s []cgroup.Sample) {
			for i := end; i < len(s); i++ {
				work(&s[i], plan.Load, 1_800_000, 1_800_000)
			}
		})
		lines(t, m, "app", func(s []cgroup.Sample) { // what the load generator does is seen there too
			for i := range s {
				s[i].Host.PerCPU[0].BusyUS += int64(i) * 90_000
			}
		})
	}
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	a := journal.Attempts(r.List.Blocks[0].Windows[0])
	if g := gateOf(t, a[0], gates.Foreign); g.OK || g.Waived == "" || g.Detail != "host app, CPUs of app" {
		t.Errorf("gate %+v", g)
	}
	if g := gateOf(t, a[0], gates.Load); len(a) != 1 || !a[0].Passed() || g.OK || g.Waived == "" || g.Reading < 0.99 {
		t.Errorf("%d attempts, gate %+v", len(a), g)
	}
}

func TestContainerGoneOnItsHost(t *testing.T) {
	for _, c := range []struct {
		at    int // sample
		wrong string
	}{{12, "db container on host db ended"}, {end + 1, ""}} {
		r, lab, journal := setupHosts(t)
		lab.hosts = func(n int, m *Measurement) {
			if n != 1 {
				return
			}
			lines(t, m, "db", func(s []cgroup.Sample) {
				for i := c.at; i < len(s); i++ {
					s[i].Containers["db"] = cgroup.Container{Gone: true}
				}
			})
		}
		if err := r.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		a := journal.Attempts(r.List.Blocks[0].Windows[0])[0]
		if (a.Error == "") != (c.wrong == "") || !strings.Contains(a.Error, c.wrong) {
			t.Errorf("gone at sample %d: %q", c.at, a.Error)
		}
	}
}

// TestWhatIsLeftOfABrokenWindow keeps every file of every host.
func TestWhatIsLeftOfABrokenWindow(t *testing.T) {
	r, lab, journal := setupHosts(t)
	w := r.List.Blocks[0].Windows[0]
	lab.fail = map[string]error{"measure " + w.Candidate + " auth c256": errors.New("host db does not answer")}
	lab.hosts = func(_ int, m *Measurement) { m.OHA[0], m.CGroup[1].Lines = nil, nil }
	if err := r.Run(context.Background()); err == nil || !strings.Contains(said.Err(err), "host db does not answer") {
		t.Fatalf("run ended with %v", err)
	}
	a := journal.Attempts(w)
	if len(a) != 2 || a[0].OHA != "" || len(a[0].OtherOHA) != 1 || len(a[0].OtherCGroup) != 2 || len(a[0].RawFiles()) != 4 || len(a[0].Hosts) != 4 {
		t.Errorf("attempt %+v", a)
	}
	// Without an error of the lab a generator that left nothing is one.
	lab.fail = nil
	lab.hosts = func(_ int, m *Measurement) { m.OHA[1] = nil }
	if err := r.Run(context.Background()); err == nil || !strings.Contains(said.Err(err), "load generator 2 of 2 left no output") {
		t.Errorf("run ended with %v", err)
	}
	lab.hosts = func(_ int, m *Measurement) { m.CGroup[2].Host = "db" }
	if err := r.Run(context.Background()); err == nil || !strings.Contains(said.Err(err), "two hosts of the lab are called db") {
		t.Errorf("run ended with %v", err)
	}
	lab.hosts = func(_ int, m *Measurement) { m.CGroup = nil }
	if err := r.Run(context.Background()); err == nil || !strings.Contains(said.Err(err), "no samples of the app's host") {
		t.Errorf("run ended with %v", err)
	}
}

func FuzzFileName(f *testing.F) {
	for _, name := range []string{"load2", "ip-10-0-0-1.ec2.internal", "../../etc/passwd", "", ".", "..", "a/b", "ä ö", strings.Repeat("x", 300), "-", "ssh://user@[::1]:22"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, host string) {
		taken := map[string]bool{}
		first, second := fileName(host, taken), fileName(host, taken)
		for _, name := range []string{first, second} {
			if name == "" || len(name) > 70 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || unfit.MatchString(name) {
				t.Errorf("%q becomes %q", host, name)
			}
		}
		if first == second {
			t.Errorf("%q is given twice", first)
		}
	})
}

// TestFileNames keeps the names that machines have.
func TestFileNames(t *testing.T) {
	for host, want := range map[string]string{"db": "db", "load2": "load2", "ip-10-0-0-1.internal": "ip-10-0-0-1.internal", "../x": "x", "": "host", "a/b": "a-b"} {
		if got := fileName(host, map[string]bool{}); got != want {
			t.Errorf("%q becomes %q, want %q", host, got, want)
		}
	}
	if !strings.HasSuffix(store.RawPath(plan.Window{Phase: "rate", Candidate: "go", Scenario: "auth", Connections: 16, Repetition: 1}, 1, "x."+store.RawCGroup), "_a1.x.cg.jsonl") {
		t.Error("the ending is not as it is documented")
	}
}
