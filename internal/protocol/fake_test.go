package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
)

// fakeLab answers with real load-generator output and with samples made for
// the window, and notes in which order it was called.
type fakeLab struct {
	t        *testing.T
	oha      []byte
	calls    []string
	probes   []byte                                         // output of the probe
	spread   bool                                           // app, db, load and load2 on hosts of their own
	hosts    func(n int, m *Measurement)                    // changes what the hosts of the nth window left
	bend     func(n int, s []cgroup.Sample) []cgroup.Sample // of the nth window
	fail     map[string]error                               // call -> error
	measured int
	now      time.Time
}

type fakeServer struct {
	lab  *fakeLab
	name string
}

func (s *fakeServer) Name() string { return s.name }
func (s *fakeServer) Log(context.Context) ([]byte, error) {
	return []byte("log of " + s.name + "\n"), nil
}
func (s *fakeServer) Stop(context.Context) error { return s.lab.call("stop " + s.name) }

func (f *fakeLab) call(name string) error {
	f.calls = append(f.calls, name)
	return f.fail[name]
}

func (f *fakeLab) FreshDatabase(context.Context) error { return f.call("database") }

func (f *fakeLab) StartProbe(context.Context) (Server, error) {
	return &fakeServer{f, "probe"}, f.call("start probe")
}

func (f *fakeLab) StartCandidate(_ context.Context, id string) (Server, error) {
	return &fakeServer{f, id}, f.call("start " + id)
}

func (f *fakeLab) Generate(_ context.Context, s Server, l Load) ([][]byte, error) {
	if s.Name() == "probe" && f.spread {
		return [][]byte{f.probes, f.probes}, f.call(fmt.Sprintf("probe at %d", l.Streams[0].Target))
	}
	if s.Name() == "probe" {
		return [][]byte{f.probes}, f.call(fmt.Sprintf("probe at %d", l.Streams[0].Target))
	}
	return slices.Repeat([][]byte{f.oha}, len(l.Streams)), f.call("warm " + sends(l, func(s Stream) string { return fmt.Sprintf("%s at %d", s.Scenario.ID, s.Target) }))
}

func (f *fakeLab) Measure(ctx context.Context, s Server, l Load) (Measurement, error) {
	if err := ctx.Err(); err != nil {
		return Measurement{}, err
	}
	f.measured++
	f.now = f.now.Add(time.Minute)
	samples := samplesFrom(f.now, 20)
	for i := range samples { // a container of each further stream, as busy as the first's
		for n, stream := range l.Streams[1:] {
			samples[i].Containers[measure.LoadContainerOf(n+1, stream.Scenario.ID)] = samples[i].Containers["load"]
		}
	}
	if f.bend != nil {
		samples = f.bend(f.measured, samples)
	}
	m := Measurement{OHA: slices.Repeat([][]byte{f.oha}, len(l.Streams)), Start: f.now.Add(50 * time.Millisecond), End: f.now.Add(1800 * time.Millisecond)}
	var lines []byte
	for _, s := range samples {
		line, err := json.Marshal(s)
		if err != nil {
			return Measurement{}, err
		}
		lines = append(append(lines, line...), '\n')
	}
	m.CGroup = []HostSamples{{Host: "here", Roles: plan.Roles(), Lines: lines}}
	if f.spread {
		f.split(&m, l, lines)
		if f.hosts != nil {
			f.hosts(f.measured, &m)
		}
	}
	return m, f.call("measure " + s.Name() + " " + sends(l, func(s Stream) string { return fmt.Sprintf("%s c%d", s.Scenario.ID, s.Connections) }))
}

// sends joins what a load's streams are.
func sends(l Load, one func(Stream) string) string {
	var all []string
	for _, s := range l.Streams {
		all = append(all, one(s))
	}
	return strings.Join(all, " + ")
}

// Clocks of the hosts, in ms before the first load host's.
var ahead = map[string]float64{"app": 2, "db": -3, "load": 0, "load2": 1}

// split makes four hosts of one, of which two generate load.
func (f *fakeLab) split(m *Measurement, l Load, lines []byte) {
	m.OHA = slices.Repeat([][]byte{f.oha}, 2*len(m.OHA))
	m.CGroup = nil
	for _, h := range spreadHosts {
		offset := ahead[h.name]
		half := cgtest.Change(f.t, lines, func(s []cgroup.Sample) { // of the work of one CPU, on two
			for i := range s {
				for cpu := range s[i].Host.PerCPU {
					s[i].Host.PerCPU[cpu].BusyUS /= 2
				}
			}
		})
		containers := map[string]string{h.from: string(h.role)}
		if h.role == plan.Load {
			for n, stream := range l.Streams[1:] {
				name := measure.LoadContainerOf(n+1, stream.Scenario.ID)
				containers[name] = name
			}
		}
		m.CGroup = append(m.CGroup, HostSamples{Host: h.name, Roles: []plan.Role{h.role}, Lines: cgtest.Split(f.t, half, cgtest.Host{
			Containers: containers, Ahead: time.Duration(offset * float64(time.Millisecond))})})
		m.Hosts = append(m.Hosts, store.HostReading{Host: h.name, Roles: []plan.Role{h.role}, ClockOffsetMS: offset,
			Allowances: map[string]int64{"bw_in_allowance_exceeded": 0, "pps_allowance_exceeded": 0}})
	}
	m.Hosts[1].Allowances = nil // a driver without such counters
}

// layout is that of a run on one host, or on the four of a lab that is spread.
// Change may be nil.
func layout(spread bool, change func(*store.Run)) gates.Layout {
	run := store.Run{Hosts: []store.HostFacts{{Name: "here", Roles: plan.Roles()}}}
	run.Profile.Roles = map[plan.Role]plan.Resources{plan.App: {CPUs: "0"}, plan.DB: {CPUs: "1"}, plan.Load: {CPUs: "2"}}
	if spread {
		run.Hosts = nil
		for _, h := range spreadHosts {
			run.Hosts = append(run.Hosts, store.HostFacts{Name: h.name, Roles: []plan.Role{h.role}})
			run.Profile.Roles[h.role] = plan.Resources{CPUs: "0-1"}
		}
	}
	if change != nil {
		change(&run)
	}
	return gates.LayoutOf(run)
}

// spreadHosts are the four hosts of a lab that is spread.
var spreadHosts = []struct {
	name string
	role plan.Role
	from string // its container, in the lines of the one host
}{{"app", plan.App, "app"}, {"db", plan.DB, "db"}, {"load", plan.Load, "app"}, {"load2", plan.Load, "db"}}

// samplesFrom makes n samples, a tenth of a second apart, of three containers
// that use a quarter of a CPU each.
func samplesFrom(t time.Time, n int) []cgroup.Sample {
	var samples []cgroup.Sample
	for i := range int64(n) {
		us := 25_000 * i
		zero, anon := int64(0), int64(20<<20)
		c := cgroup.Container{UsageUS: &us, ThrottledUS: &zero, NrThrottled: &zero, Anon: &anon}
		s := cgroup.Sample{T: t.UnixNano() + i*1e8, Mono: 1e9 + i*1e8, Containers: map[string]cgroup.Container{"app": c, "db": c, "load": c},
			Host: cgroup.Host{CPUs: 3, TotalUS: i * 300_000, IdleUS: i * 200_000}}
		for cpu := range 3 {
			s.Host.PerCPU = append(s.Host.PerCPU, cgroup.CPU{CPU: cpu, BusyUS: i * 26_000})
		}
		samples = append(samples, s)
	}
	return samples
}

// memory is a journal without a disk.
type memory struct {
	events []store.Event
	raw    map[string][]byte
}

func (m *memory) Append(e store.Event) error { m.events = append(m.events, e); return nil }

func (m *memory) WriteRaw(path string, data []byte) (string, error) {
	if _, ok := m.raw[path]; ok {
		return "", fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	m.raw[path] = bytes.Clone(data)
	return "digest", nil
}

func (m *memory) Attempts(w plan.Window) []store.WindowResult {
	var all []store.WindowResult
	for _, e := range m.events {
		if e.Window != nil && e.Window.Window.Key() == w.Key() {
			all = append(all, *e.Window)
		}
	}
	return all
}

func (m *memory) NextAttempt(w plan.Window) int { return len(m.Attempts(w)) + 1 }

// watchNothing is an observer that keeps the progress it is shown.
type watchNothing struct{ seen []Progress }

func (*watchNothing) PhaseStarted(plan.Phase)                        {}
func (w *watchNothing) BlockStarted(_ plan.Block, p Progress)        { w.seen = append(w.seen, p) }
func (*watchNothing) BlockFailed(plan.Block, error, bool)            {}
func (*watchNothing) Stage(plan.Block, string)                       {}
func (*watchNothing) ProbeEnded(plan.Block, store.ProbeReading)      {}
func (*watchNothing) WindowStarted(plan.Window, int, Progress)       {}
func (w *watchNothing) WindowEnded(_ store.WindowResult, p Progress) { w.seen = append(w.seen, p) }
func (w *watchNothing) BlockEnded(_ plan.Block, p Progress)          { w.seen = append(w.seen, p) }

const studyRaw = "../evidence/study/testdata/php-go-bench/results/2026-09-16/raw/"

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// measured is how long the fake windows are.
const measured = plan.Duration(1700 * time.Millisecond)

func seconds(n int) plan.Duration { return plan.Duration(time.Duration(n) * time.Second) }

// setup makes a runner over a fake lab: two candidates, three scenarios, both
// phases.
func setup(t *testing.T) (*Runner, *fakeLab, *memory) {
	t.Helper()
	suite := plan.Suite{
		Name:       "test",
		Scenarios:  []plan.Scenario{{ID: "auth"}, {ID: "read"}, {ID: "write"}},
		Candidates: []plan.Candidate{{ID: "go"}, {ID: "php-fpm"}},
	}
	preset := plan.Preset{
		Name: "test", Timeout: seconds(10), Warmup: seconds(1),
		Probe: plan.Probe{Window: seconds(10), Connections: 256, Target: 50000},
		Phases: []plan.Phase{
			{ID: "rate", Kind: plan.KindRate, Window: measured, Repetitions: 2, Connections: []int{256}, Targets: map[string]int{"auth": 50, "read": 40, "write": 30}},
			{ID: "ceiling", Kind: plan.KindCeiling, Window: measured, Repetitions: 1, Connections: []int{16, 64}},
		},
	}
	lab := &fakeLab{
		t:      t,
		oha:    bytes.Replace(readFile(t, studyRaw+"rate_go_write_q10000_r1.json"), []byte(`"total": 60.002878069`), []byte(`"total": 1.702878069`), 1), // as long as the window of the samples
		probes: readFile(t, studyRaw+"probe-rate_rate_go_r1.json"),
		now:    time.Unix(1_800_000_000, 0),
	}
	journal := &memory{raw: map[string][]byte{}}
	return &Runner{Lab: lab, Journal: journal, List: plan.LayOut(suite, preset, 7), Suite: suite, Layout: layout(false, nil), Observer: &watchNothing{}}, lab, journal
}
