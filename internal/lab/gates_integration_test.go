//go:build integration

package lab

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/testkit/enginetest"
)

// gateLab is a lab in which faults are injected while the protocol measures.
type gateLab struct {
	t *testing.T
	*Lab
	store *store.Store
	suite plan.Suite
	above string // cgroup around the server
}

// newGateLab is a lab with the app on the first CPU, database and load generator
// on another or the same, and a results folder.
func newGateLab(t *testing.T, other plan.CPUSet) *gateLab {
	e := enginetest.Connect(t)
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.CPUs < 2 {
		t.Fatal("two CPUs are needed to tell whose time is taken")
	}
	tools := enginetest.Images(t, e, ImageTools)[ImageTools]
	denies := derive(t, e, tools, `["sh", "-c", "sed 's#return 200#if (-f /tmp/deny) { return 401; } return 200#' /etc/percore/probe.conf > /tmp/probe.conf && exec nginx -c /tmp/probe.conf -g 'daemon off;'"]`)
	above := fmt.Sprintf("percoretest%d", os.Getpid())
	if info.CgroupDriver == "systemd" {
		above += ".slice"
	}
	t.Cleanup(func() { // after the lab is closed; engines leave it behind
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			left, _ := filepath.Glob(filepath.Join(pattern, above))
			for _, dir := range left {
				_ = os.Remove(dir)
			}
		}
	})
	g := &gateLab{t: t, above: above}
	g.Lab = newLab(t, func(c *Config) {
		c.above = above
		c.Profile.SharedCores = true // database and load generator on one CPU
		c.Profile.Roles[plan.App] = plan.Resources{CPUs: "0", Memory: 256 << 20}
		for _, r := range []plan.Role{plan.DB, plan.Load} {
			c.Profile.Roles[r] = plan.Resources{CPUs: other, Memory: 256 << 20}
		}
		c.Suite.Scenarios = []plan.Scenario{{ID: "auth", Method: "GET", Path: "/auth", Scope: "events:read"}}
		c.Suite.Candidates = append(c.Suite.Candidates, plan.Candidate{ID: "denies", Image: "denies"})
		c.Images["denies"] = denies
	})
	g.suite = g.cfg.Suite
	hosts, err := g.HostFacts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.store, err = store.Create(t.TempDir(), store.Run{ID: "gates", Profile: g.cfg.Profile, Suite: g.suite, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.store.Close() })
	return g
}

// during starts something in a window's first attempt and ends the run with it.
type during struct {
	do  func()
	end func()
}

func (d *during) PhaseStarted(plan.Phase)                           {}
func (d *during) BlockStarted(plan.Block, protocol.Progress)        {}
func (d *during) BlockFailed(plan.Block, error, bool)               {}
func (d *during) Stage(plan.Block, string)                          {}
func (d *during) ProbeEnded(plan.Block, store.ProbeReading)         {}
func (d *during) WindowEnded(store.WindowResult, protocol.Progress) { d.end() }
func (d *during) BlockEnded(plan.Block, protocol.Progress)          {}
func (d *during) WindowStarted(_ plan.Window, n int, _ protocol.Progress) {
	if n == 1 && d.do != nil {
		go d.do()
	}
}

// window measures one window of three seconds and returns its first attempt.
func (g *gateLab) window(name, candidate string, target, probe int, do func()) store.WindowResult {
	g.t.Helper()
	suite := g.suite
	suite.Candidates = slices.DeleteFunc(slices.Clone(suite.Candidates), func(c plan.Candidate) bool { return c.ID != candidate })
	duration := func(d time.Duration) plan.Duration { return plan.Duration(d) }
	phase := plan.Phase{ID: name, Kind: plan.KindCeiling, Window: duration(3 * time.Second), Repetitions: 1, Connections: []int{8}}
	if target > 0 {
		phase.Kind, phase.Targets = plan.KindRate, map[string]int{"auth": target}
	}
	preset := plan.Preset{
		Name: "test", Timeout: duration(5 * time.Second), Warmup: duration(200 * time.Millisecond),
		Probe: plan.Probe{Window: duration(500 * time.Millisecond), Connections: 4, Target: probe}, Phases: []plan.Phase{phase},
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), 2*time.Minute)
	defer cancel()
	r := &protocol.Runner{
		Lab: g.Lab, Journal: g.store, List: plan.LayOut(suite, preset, 1), Suite: suite,
		Layout: gates.LayoutOf(g.store.Run()), Observer: &during{do, cancel},
	}
	err := r.Run(ctx)
	attempts := g.store.Attempts(r.List.Blocks[0].Windows[0])
	if len(attempts) == 0 {
		g.t.Fatalf("%s: %v", name, err)
	}
	a := attempts[0]
	if a.Error != "" {
		g.t.Fatalf("%s: %s", name, a.Error)
	}
	g.t.Logf("%s: %.0f/s, p99 %.1f ms, app %.1f µs, load %.2f cores", name, a.Measured.Achieved, a.Measured.P99MS, a.Measured.AppCPUUS, a.Measured.LoadCores)
	for _, v := range a.Gates {
		g.t.Logf("    %-10s ok %-5v %8.3f of %.3f %s %s", v.Name, v.OK, v.Reading, v.Limit, v.Unit, v.Detail)
	}
	return a
}

func verdict(t *testing.T, w store.WindowResult, name string) store.Gate {
	t.Helper()
	i := slices.IndexFunc(w.Gates, func(g store.Gate) bool { return g.Name == name })
	if i < 0 {
		t.Fatalf("there is no gate %s", name)
	}
	return w.Gates[i]
}

// container waits for the container of a role and returns its id.
func (g *gateLab) container(role string) string {
	for range 200 {
		things, err := g.host(plan.App).Engine.Containers(g.t.Context(), map[string]string{engine.LabelRun: g.cfg.RunID, engine.LabelRole: role})
		if err == nil && len(things) == 1 {
			return things[0].ID
		}
		time.Sleep(20 * time.Millisecond)
	}
	g.t.Errorf("there is no container of role %s", role)
	return ""
}

// pause holds up a role's container for a while, in the middle of a window.
func (g *gateLab) pause(role string, d time.Duration) {
	g.container(whatSampler) // the last that is started
	id := g.container(role)
	time.Sleep(1200 * time.Millisecond)
	api := g.host(plan.App).Engine.API()
	if _, err := api.ContainerPause(g.t.Context(), id, client.ContainerPauseOptions{}); err != nil {
		g.t.Errorf("pausing %s: %v", role, err)
	}
	time.Sleep(d)
	if _, err := api.ContainerUnpause(context.Background(), id, client.ContainerUnpauseOptions{}); err != nil {
		g.t.Errorf("waking up %s: %v", role, err)
	}
}

// TestGatesSeeInterference injects what makes a window worthless and holds its
// first attempt against the gate that is there for it.
func TestGatesSeeInterference(t *testing.T) {
	g := newGateLab(t, "1")
	for _, c := range []struct {
		name, candidate string
		target          int
		do              func()
		fail            map[string]string // gate -> what its detail says
		probe           int               // its target, instead of a low one
	}{
		{"quiet", "answers", 500, nil, nil, 0},
		{"a probe that no machine serves", "answers", 500, nil, map[string]string{gates.Probe: " of 5000000 requests/s"}, 5_000_000},
		{"load paused", "answers", 500, func() { g.pause(whatLoad, time.Second) },
			map[string]string{gates.Stalled: "load was paused for", gates.Late: ""}, 0},
		{"app paused", "answers", 500, func() { g.pause(whatApp, time.Second) },
			map[string]string{gates.Stalled: "app was paused for"}, 0},
		{"app paused in a closed loop", "answers", 0, func() { g.pause(whatApp, time.Second) },
			map[string]string{gates.Stalled: "app was paused for"}, 0},
		{"a hog on the app's CPU", "answers", 0, func() { g.hog(4 * time.Second) },
			map[string]string{gates.Foreign: "CPUs of app"}, 0},
		{"a quota on the container", "answers", 0, g.limit, map[string]string{gates.Throttled: "app was throttled"}, 0},
		{"a quota on the cgroup above", "answers", 0, func() { g.quota(3_000, 4*time.Second) },
			map[string]string{gates.Throttled: "a cgroup above that of app was throttled"}, 0},
		{"tokens that are refused", "denies", 500, g.deny, map[string]string{gates.Answers: "answers were the scenario's own; 401: "}, 0},
	} {
		w := g.window(strings.ReplaceAll(c.name, " ", "-"), c.candidate, c.target, cmp.Or(c.probe, 100), c.do)
		for gate, detail := range c.fail {
			if v := verdict(t, w, gate); !v.Failed() || !strings.Contains(v.Detail, detail) {
				t.Errorf("%s: gate %+v should fail and say %q", c.name, v, detail)
			}
		}
		for _, gate := range []string{gates.Stalled, gates.Throttled, gates.Answers, gates.Length} {
			if v := verdict(t, w, gate); c.fail[gate] == "" && v.Failed() {
				t.Errorf("%s: gate %+v should pass", c.name, v)
			}
		}
		if c.fail[gates.Answers] != "" && (w.Measured.Has("app_cpu_us") || w.Measured.Has("p50_ms")) {
			t.Errorf("answers that were refused have figures: %+v", w.Measured)
		}
	}
	probes := 0
	for _, e := range g.store.Events() {
		if r, ok := store.ReadingOf(e); ok && r.Target == 5_000_000 {
			probes++
		}
	}
	if probes != protocol.MaxProbes {
		t.Errorf("a probe that fell short was asked %d times", probes)
	}
	if p := gates.Verify(g.store); len(p) > 0 {
		t.Errorf("judged again: %v", p)
	}
}

// TestCoresGate lets app and load generator share a CPU, as the profile says
// they may.
func TestCoresGate(t *testing.T) {
	g := newGateLab(t, "0")
	v := verdict(t, g.window("one-cpu", "answers", 50, 100, nil), gates.Cores)
	if v.OK || v.Waived == "" || v.Reading != 1 {
		t.Errorf("gate %+v", v)
	}
}

// deny makes the server answer every request with 401 from now on.
func (g *gateLab) deny() {
	c := g.host(plan.App).Engine.Container(g.container(whatApp), "app")
	if _, err := c.Exec(g.t.Context(), nil, "touch", "/tmp/deny"); err != nil {
		g.t.Error(err)
	}
}

// limit puts a CPU quota on the server's container.
func (g *gateLab) limit() {
	g.container(whatSampler)
	_, err := g.host(plan.App).Engine.API().ContainerUpdate(g.t.Context(), g.container(whatApp), client.ContainerUpdateOptions{
		Resources: &container.Resources{CPUPeriod: 100_000, CPUQuota: 3_000},
	})
	if err != nil {
		g.t.Error(err)
	}
}

// hog keeps the app's CPU busy.
func (g *gateLab) hog(d time.Duration) {
	s := g.spec(plan.App, "hog", g.cfg.Images[ImageTools])
	s.Entrypoint, s.Cmd = []string{"sh", "-c"}, []string{"while :; do :; done"}
	c, err := g.create(context.Background(), g.host(plan.App), s)
	if err == nil {
		err = c.Start(context.Background())
	}
	if err != nil {
		g.t.Errorf("starting a hog: %v", err)
		return
	}
	time.Sleep(d)
	if err := c.Remove(context.Background()); err != nil {
		g.t.Error(err)
	}
}

// quota gives the cgroup above the app so many µs of CPU in each tenth of a
// second for a while.
func (g *gateLab) quota(us int, d time.Duration) {
	for file, text := range map[string][2]string{
		filepath.Join("/sys/fs/cgroup/cpu", g.above, "cpu.cfs_quota_us"): {fmt.Sprint(us), "-1"},
		filepath.Join("/sys/fs/cgroup", g.above, "cpu.max"):              {fmt.Sprintf("%d 100000", us), "max"},
	} {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := os.WriteFile(file, []byte(text[0]), 0o644); err != nil {
			g.t.Errorf("setting a quota: %v", err)
		}
		time.Sleep(d)
		if err := os.WriteFile(file, []byte(text[1]), 0o644); err != nil {
			g.t.Errorf("taking the quota off: %v", err)
		}
		return
	}
	g.t.Errorf("there is no cgroup %s of which the CPU time can be limited", g.above)
}
