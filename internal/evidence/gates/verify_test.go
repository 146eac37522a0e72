package gates

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
)

var began = time.Unix(1_800_000_000, 0).UTC()

// result is what a load generator writes that sent for some seconds.
func result(seconds float64) []byte {
	return fmt.Appendf(nil, `{"summary":{"total":%v,"average":0.001,"slowest":0.002},"latencyPercentiles":{"p50":0.001,"p99":0.002,"p99.9":0.002},"statusCodeDistribution":{"200":1000},"errorDistribution":{},"responseTimeHistogram":{}}`, seconds)
}

// sampled are n lines of a sampler, a tenth of a second apart, on a machine of
// three CPUs, of which each container uses a quarter of one.
func sampled(t *testing.T, n int) []byte {
	t.Helper()
	var out []byte
	for i := range int64(n) {
		us, zero, anon := 25_000*i, int64(0), int64(20<<20)
		c := cgroup.Container{UsageUS: &us, ThrottledUS: &zero, Anon: &anon}
		s := cgroup.Sample{T: began.UnixNano() + i*1e8, Mono: 1e9 + i*1e8,
			Containers: map[string]cgroup.Container{"app": c, "db": c, "load": c}}
		for cpu := range 3 {
			s.Host.PerCPU = append(s.Host.PerCPU, cgroup.CPU{CPU: cpu, BusyUS: i * 26_000})
		}
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	return out
}

// testRun is a run on one machine, its three roles on a CPU each.
func testRun() store.Run {
	run := store.Run{ID: "r", Hosts: []store.HostFacts{{Name: "here", Roles: plan.Roles()}}}
	run.Profile.Roles = map[plan.Role]plan.Resources{plan.App: {CPUs: "0"}, plan.DB: {CPUs: "1"}, plan.Load: {CPUs: "2"}}
	return run
}

// TestVerify changes samples after a run, and the digests of them in its log:
// the digests agree, and the gate that would have failed is named.
func TestVerify(t *testing.T) {
	s, err := store.Create(t.TempDir(), testRun())
	if err != nil {
		t.Fatal(err)
	}
	block := plan.BlockID{Phase: "rate", Candidate: "go", Repetition: 1}
	probe := store.ProbeReading{Target: 1000, Achieved: 1000, Attempt: 1}
	probe.File = store.ProbePath(block, probe)
	keep := func(path string, data []byte) string {
		sum, err := s.WriteRaw(path, data)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	event := func(e store.Event) {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	probe.SHA256 = keep(probe.File, result(1))
	data, err := json.Marshal(probe)
	if err != nil {
		t.Fatal(err)
	}
	event(store.Event{Type: store.EventProbe, Block: &block, Data: data})
	for n, scenario := range []string{"auth", "read"} {
		w := store.WindowResult{
			Window:  plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: "go", Scenario: scenario, Repetition: 1, Connections: 4, Target: 500, Seconds: 2},
			Attempt: 1, Start: began.Add(50 * time.Millisecond), End: began.Add(2100 * time.Millisecond), SHA256: map[string]string{},
		}
		w.OHA, w.CGroup = store.RawPath(w.Window, 1, store.RawOHA), store.RawPath(w.Window, 1, store.RawCGroup)
		w.SHA256[w.OHA], w.SHA256[w.CGroup] = keep(w.OHA, result(2)), keep(w.CGroup, sampled(t, 22+n))
		figures, verdicts, err := LayoutOf(s.Run()).Judge(w, probe, s.ReadRaw)
		if err != nil {
			t.Fatal(err)
		}
		w.Measured, w.Gates = &figures, verdicts
		if !w.Passed() {
			t.Fatalf("gates %+v", w.Gates)
		}
		event(store.Event{Type: store.EventWindow, Window: &w})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if p := Verify(s); len(p) != 0 {
		t.Fatalf("nothing was changed: %v", p)
	}

	w := s.History().Windows()[1]
	was, err := s.ReadRaw(w.CGroup)
	if err != nil {
		t.Fatal(err)
	}
	is := cgtest.Change(t, was, func(lines []cgroup.Sample) {
		lines[len(lines)-1].Host.PerCPU[1].StealUS = 200_000
	})
	if err := os.WriteFile(filepath.Join(s.Dir(), w.CGroup), is, 0o644); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.Dir(), store.EventsFile)
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	log = bytes.ReplaceAll(log, []byte(w.SHA256[w.CGroup]), fmt.Appendf(nil, "%x", sha256.Sum256(is)))
	if err := os.WriteFile(name, log, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Verify(); err != nil || len(p) != 0 {
		t.Errorf("the digests agree: %v, %v", p, err)
	}
	if p, err := s.Rederive(); err != nil || len(p) != 0 {
		t.Errorf("the figures agree: %v, %v", p, err)
	}
	p := Verify(s)
	if len(p) != 1 || !p[0].Fatal || !strings.Contains(p[0].What, "rate go read, 4 connections, 500/s, repetition 1, attempt 1: gate steal was passed at 0 share of CPU time and is failed at 0.0") {
		t.Errorf("problems %v", p)
	}
}

// TestVerifyOfAnOlderRun mentions what the run's percore had no gate for.
func TestVerifyOfAnOlderRun(t *testing.T) {
	s, err := store.Create(t.TempDir(), testRun())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := store.WindowResult{
		Window:  plan.Window{Phase: "ceiling", Kind: plan.KindCeiling, Candidate: "go", Scenario: "auth", Repetition: 1, Connections: 4, Seconds: 2},
		Attempt: 1, Start: began.Add(50 * time.Millisecond), End: began.Add(2100 * time.Millisecond), SHA256: map[string]string{},
	}
	w.OHA, w.CGroup = store.RawPath(w.Window, 1, store.RawOHA), store.RawPath(w.Window, 1, store.RawCGroup)
	denied := bytes.Replace(result(2), []byte(`"200":`), []byte(`"401":`), 1)
	for path, data := range map[string][]byte{w.OHA: denied, w.CGroup: sampled(t, 22)} {
		if w.SHA256[path], err = s.WriteRaw(path, data); err != nil {
			t.Fatal(err)
		}
	}
	figures, verdicts, err := LayoutOf(s.Run()).Judge(w, store.ProbeReading{}, s.ReadRaw)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range verdicts {
		if g.Name == Clock || g.Name == Steal {
			w.Gates = append(w.Gates, g)
		}
	}
	w.Measured = &figures
	if err := s.Append(store.Event{Type: store.EventWindow, Window: &w}); err != nil {
		t.Fatal(err)
	}
	p := Verify(s)
	if len(p) != 1 || p[0].Fatal || !strings.Contains(p[0].What, "gate answers, which the run was not judged by, would be failed at 1 share of answers (0 of 1000") {
		t.Errorf("problems %v", p)
	}
}
