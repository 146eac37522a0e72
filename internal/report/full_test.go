package report

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// full is a run in which everything was measured: the published protocol on a
// host whose requests cost 1.3 times the CPU, with noise that is the same every
// time, and raw files to go with it.
func full(t testing.TB) Document {
	t.Helper()
	base, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	published := readStudy(t).Run
	run := published
	run.ID, run.Percore, run.Seed = "20261130-140000-full", "v0-test", 7
	run.Preset.Published, run.Comparable = true, true
	run.Hosts = []store.HostFacts{{Name: "app", Roles: plan.Roles(), Engine: "Docker Engine 29.1.3", OS: "Debian GNU/Linux 13", Kernel: "6.12.43", Arch: "arm64",
		CPUModel: "Neoverse-V2", CPUs: 12, MemoryBytes: 24 << 30, CgroupVersion: "2", CgroupDriver: "systemd", StorageDriver: "overlay2", InstanceType: "c8g.3xlarge"}}
	run.Candidates = nil
	for _, c := range run.Suite.Candidates {
		run.Candidates = append(run.Candidates, c.ID)
	}
	end := run.Started.Add(5 * time.Hour)
	run.Ended = &end
	in := figures.Measured{Run: run, State: store.StateComplete}
	const host = 1.3
	files := map[string][]byte{}
	get := func(phase, metric, candidate, scenario string) float64 {
		e, ok := base.Get(figures.Key{Suite: run.Suite.Name, Phase: phase, Metric: metric, Candidate: candidate, Scenario: scenario})
		if !ok {
			return 0
		}
		return e.Value
	}
	n := 0
	noise := func() float64 { n++; return 1 + 0.012*math.Sin(float64(n)*1.7) }
	add := func(w plan.Window, achieved, p99, cpu, db, cores float64) {
		r := store.WindowResult{Window: w, Attempt: 1, Start: run.Started, End: run.Started.Add(time.Duration(w.Seconds) * time.Second)}
		r.OHA, r.CGroup = store.RawPath(w, 1, store.RawOHA), store.RawPath(w, 1, store.RawCGroup)
		achieved = math.Round(achieved*w.Seconds) / w.Seconds
		ok := int64(achieved * w.Seconds)
		r.Measured = &measure.Window{Answered: ok, OK: ok, Achieved: achieved, P50MS: p99 * 0.4, P99MS: p99, P999MS: p99 * 2.2, AppCPUUS: cpu, DBCPUUS: db,
			AppCores: cores, DBCores: db * achieved / 1e6, PeakBytes: int64((60 + 10*float64(len(w.Candidate))) * mib), Samples: int(w.Seconds*10) + 1,
			Statuses: map[string]int64{"200": ok}}
		percentiles := map[string]float64{}
		for name, x := range map[string]float64{"p10": 0.2, "p25": 0.3, "p50": 0.4, "p75": 0.55, "p90": 0.7, "p95": 0.8, "p99": 1, "p99.9": 2.2, "p99.99": 4} {
			percentiles[name] = p99 * x / 1000
		}
		files[r.OHA], err = json.Marshal(map[string]any{"summary": map[string]any{"total": w.Seconds}, "latencyPercentiles": percentiles,
			"statusCodeDistribution": map[string]int64{"200": ok}, "errorDistribution": map[string]int64{}})
		if err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		app, dbs := 0.0, 0.0
		for i := range int(w.Seconds*10) + 1 {
			fmt.Fprintf(&lines, `{"t":%d,"mono":%d,"host":{"cpus":12},"containers":{"app":{"usage_us":%d},"db":{"usage_us":%d}}}`+"\n", run.Started.UnixNano()+int64(i)*1e8, 1e12+int64(i)*1e8, int64(app), int64(dbs))
			ramp := 1 - 0.5*math.Exp(-float64(i)/6)
			app += 1e5 * cores * ramp * (1 + 0.03*math.Sin(float64(i)*0.9))
			dbs += 1e5 * db * achieved / 1e6 * ramp * (1 + 0.05*math.Sin(float64(i)*0.4))
		}
		files[r.CGroup] = []byte(lines.String())
		r.Gates = []store.Gate{{Name: "probe", OK: true, Reading: 0.998, Limit: 0.99, Unit: "share of target"}, {Name: "steal", OK: true, Reading: 0.001, Limit: 0.01, Unit: "share of CPU time"}}
		if w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 3 && w.Kind == plan.KindRate { // passes the second time
			bad := r
			bad.Gates = []store.Gate{{Name: "steal", Reading: 0.034, Limit: 0.01, Unit: "share of CPU time", Detail: "on the app's CPUs"}}
			in.Windows = append(in.Windows, bad)
			r.Attempt = 2
		}
		in.Windows = append(in.Windows, r)
	}
	for _, p := range run.Preset.Phases {
		for rep := 1; rep <= p.Repetitions; rep++ {
			for _, c := range run.Candidates {
				in.Probes = append(in.Probes, study.Probe{Block: plan.BlockID{Phase: p.ID, Candidate: c, Repetition: rep}, Reading: store.ProbeReading{Target: 50000, Achieved: 49990 + 8*math.Sin(float64(n)), Attempt: 1}})
				for _, s := range run.Suite.Scenarios {
					cpu := get(figures.PhaseRate, figures.AppCPU, c, s.ID) * host
					db := get(figures.PhaseRate, figures.DBCPU, c, s.ID) * host
					capacity := 4e6 / cpu
					if c == "frankenphp" {
						capacity *= 0.72
					}
					for _, connections := range p.Connections {
						w := plan.Window{Phase: p.ID, Kind: p.Kind, Candidate: c, Scenario: s.ID, Repetition: rep, Connections: connections, Seconds: p.Window.Seconds()}
						x := noise()
						if p.Kind == plan.KindRate {
							w.Target = p.Targets[s.ID]
							achieved, p99 := float64(w.Target)*0.9999, 1.6*cpu/80
							if achieved > capacity {
								achieved, p99 = capacity*x, 9000*cpu/80
							}
							add(w, achieved, p99*x, cpu*x, db*x, cpu*x*achieved/1e6)
							continue
						}
						achieved := capacity * x * (1 - 0.35*math.Exp(-float64(connections)/40))
						add(w, achieved, float64(connections)/achieved*2500, cpu*x, db*x, cpu*x*achieved/1e6)
					}
				}
			}
		}
	}
	d := document(t, in, "")
	d.Read = func(name string) ([]byte, error) {
		if data, ok := files[path.Clean(name)]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("there is no %s", name)
	}
	return d
}
