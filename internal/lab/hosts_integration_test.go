//go:build integration && linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/hoststest"
	"github.com/percore/percore/internal/testkit/said"
)

// hosts makes the machines of a test with the images that their roles need.
func hosts(t *testing.T, n int) *hoststest.Lab {
	t.Helper()
	main := enginetest.Connect(t)
	images := enginetest.Images(t, main, ImageTools, ImageDatabase)
	m := hoststest.Start(t, n)
	m.Load(t, main, images)
	return m
}

// remoteConfig is a lab on the machines; patience is that of their engines.
func remoteConfig(t *testing.T, m *hoststest.Lab, patience time.Duration) Config {
	t.Helper()
	main := enginetest.Connect(t)
	cfg := testConfig(t, main)
	cfg.Shared = false
	cfg.Suite.Rows = testRows
	cfg.Hosts, cfg.LoadHosts = map[plan.Role]*Host{}, nil
	for i, machine := range m.Machines().Machines {
		e, err := engine.Connect(t.Context(), engine.Options{Host: machine.Engine(), SSHOptions: m.SSHOptions(), Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		h := &Host{Name: machine.Name, Engine: e, Address: machine.Address, HostNetwork: true}
		if i < 3 {
			cfg.Hosts[machine.Role] = h
		} else {
			cfg.LoadHosts = append(cfg.LoadHosts, h)
		}
	}
	return cfg
}

// remoteLab starts a lab on the machines.
func remoteLab(t *testing.T, cfg Config) *Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	l, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("lab on %d hosts ready in %.1f s", len(l.hosts()), time.Since(began).Seconds())
	return l
}

func closeLab(t *testing.T, l *Lab) {
	t.Helper()
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// checkMeasurement judges what a window of several hosts left.
func checkMeasurement(t *testing.T, l *Lab, m protocol.Measurement, w protocol.Load) {
	t.Helper()
	if len(m.OHA) != len(l.loadHosts()) {
		t.Fatalf("%d outputs of %d generators", len(m.OHA), len(l.loadHosts()))
	}
	var ok int64
	for i, out := range m.OHA {
		res, err := oha.Parse("window", out)
		if err != nil {
			t.Fatalf("generator %d: %v", i, err)
		}
		ok += res.OK()
	}
	if want := float64(w.Streams[0].Target) * w.Duration.Seconds(); float64(ok) < 0.9*want || float64(ok) > 1.1*want {
		t.Errorf("%d answers, and %.0f were asked for", ok, want)
	}
	if d := m.End.Sub(m.Start); d < w.Duration-100*time.Millisecond || d > w.Duration+3*time.Second {
		t.Errorf("the window took %s", d)
	}
	if len(m.CGroup) != len(l.hosts()) || len(m.Hosts) != len(l.hosts()) {
		t.Fatalf("%d series and %d readings of %d hosts", len(m.CGroup), len(m.Hosts), len(l.hosts()))
	}
	var series []*cgroup.Series
	for i, s := range m.CGroup {
		want := []string{"app", "db", measure.LoadContainer}[min(i, 2)]
		if s.Host != l.hosts()[i].Name {
			t.Errorf("series %d is of %s", i, s.Host)
		}
		one, err := cgroup.ReadSeriesUntil(bytes.NewReader(s.Lines), s.Host, m.End, want)
		if err != nil {
			t.Fatal(err)
		}
		if !one.Encloses(m.Start, m.End) {
			t.Errorf("the samples of %s from %d to %d do not enclose the window from %s to %s", s.Host, one.First().T, one.Last().T, m.Start, m.End)
		}
		if grew, ok := one.Grew(want, cgroup.UsageUS); !ok || grew <= 0 && want != "db" {
			t.Errorf("host %s: CPU of %s grew by %d µs, %v", s.Host, want, grew, ok)
		}
		series = append(series, one)
	}
	if us, ok := measure.Samples(series...).CPU(measure.LoadContainer); !ok || us <= 0 {
		t.Errorf("the load generators took %v µs, %v", us, ok)
	}
	for _, r := range m.Hosts {
		if r.ClockError != "" || r.AllowanceError != "" || r.Allowances != nil || r.ClockOffsetMS > 5 || r.ClockOffsetMS < -5 || len(r.Roles) == 0 {
			t.Errorf("%+v", r)
		}
	}
	if _, ok := m.Database["database.xact_commit"]; !ok {
		t.Errorf("no database counters: %v", m.Database)
	}
}

// TestHostsOfTheirOwn runs blocks on three hosts, then on four with two load
// generators.
func TestHostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	machines := hosts(t, 4)
	ctx := t.Context()

	cfg := remoteConfig(t, machines, 0)
	second := cfg.LoadHosts
	cfg.LoadHosts = nil
	l := remoteLab(t, cfg)
	lap := time.Now()
	took := func(what string) {
		t.Logf("%-24s %6d ms", what, time.Since(lap).Milliseconds())
		lap = time.Now()
	}
	facts, err := l.HostFacts(ctx)
	if err != nil || len(facts) != 3 {
		t.Fatalf("%+v, %v", facts, err)
	}
	for i, f := range facts {
		if f.Name != []string{"app", "db", "load"}[i] || f.ClockOffsetMS == nil || *f.ClockOffsetMS > 5 || len(f.Roles) != 1 {
			t.Errorf("%+v", f)
		}
	}
	took("host facts")
	links, err := l.Links(ctx)
	if err != nil || len(links) != 2 || links[0].From != "load" || links[0].To != "app" || links[1].From != "app" || links[1].To != "db" {
		t.Fatalf("%+v, %v", links, err)
	}
	t.Logf("links %+v", links)
	took("links")
	rsa, err := l.RSAVerify(ctx)
	if err != nil || len(rsa) != 3 || rsa["app"] < 1000 || rsa["load"] < 1000 {
		t.Errorf("%v, %v", rsa, err)
	}
	took("RSA")
	if err := l.FreshDatabase(ctx); err != nil {
		t.Fatal(err)
	}
	took("fresh database")
	srv, err := l.StartCandidate(ctx, "answers")
	if err != nil {
		t.Fatal(err)
	}
	took("candidate")
	w := auth(2, 500)
	if out, err := l.Generate(ctx, srv, w); err != nil || len(out) != 1 {
		t.Fatal(err)
	}
	took("generate 2 s")
	for range 2 {
		m, err := l.Measure(ctx, srv, w)
		if err != nil {
			t.Fatal(err)
		}
		checkMeasurement(t, l, m, w)
		took("measure 2 s")
	}
	if err := srv.Stop(ctx); err != nil {
		t.Error(err)
	}
	took("stop")

	// A stale run is removed by the next; one that is alive is not.
	if live, err := Live(ctx, cfg.Hosts[plan.App].Engine); err != nil || !slices.Equal(live, []string{cfg.RunID}) {
		t.Errorf("live %v, %v", live, err)
	}
	next := cfg
	next.RunID, next.infancy = "next-"+nonce(4), time.Second
	if _, err := New(ctx, next); err == nil || !strings.Contains(said.Err(err), cfg.RunID+" is using the engine at ssh://") {
		t.Errorf("took hosts that another run uses: %v", err)
	}
	for _, release := range l.leases { // the driver is gone, its containers are not
		release()
	}
	l.sql.Close(ctx)
	next.LoadHosts = second
	blocker, err := cfg.Hosts[plan.App].Engine.Run(ctx, engine.Spec{
		Name: "percore-test-" + nonce(4), Image: cfg.Images[ImageTools], HostNetwork: true,
		Entrypoint: []string{"socat"}, Cmd: []string{"TCP-LISTEN:8080,reuseaddr", "-"}, Init: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if _, err := New(ctx, next); err == nil || !strings.Contains(said.Err(err), "port 8080 on host app (ssh://root@10.77.") || !strings.Contains(said.Err(err), "is taken") {
		t.Errorf("took a host whose port is taken: %v", err)
	}
	if err := blocker.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	took("refusals")

	l = remoteLab(t, next)
	defer func() { closeLab(t, l) }()
	took("lab of four hosts")
	for _, h := range l.hosts() {
		left, err := h.Engine.Containers(ctx, map[string]string{engine.LabelRun: cfg.RunID})
		if err != nil || len(left) != 0 {
			t.Errorf("left of the run before on %s: %v, %v", h.Name, left, err)
		}
	}
	if err := l.FreshDatabase(ctx); err != nil {
		t.Fatal(err)
	}
	if srv, err = l.StartProbe(ctx); err != nil {
		t.Fatal(err)
	}
	w = auth(2, 501)
	w.Streams[0].Connections = 5
	out, err := l.Generate(ctx, srv, w)
	if err != nil || len(out) != 2 {
		t.Fatalf("%d outputs, %v", len(out), err)
	}
	took("generate 2 s, twice")
	var skews []time.Duration
	for range 2 {
		gens, err := l.createLoads(ctx, w, l.spread())
		if err == nil {
			err = l.startLoads(ctx, gens, false)
		}
		if err == nil {
			err = l.runLoads(ctx, gens, l.lastReadings().aheadOf(), 2)
		}
		if err != nil {
			t.Fatal(err)
		}
		if gens[0].stream.Target != 251 || gens[1].stream.Target != 250 || gens[0].stream.Connections != 3 || gens[1].stream.Connections != 2 {
			t.Errorf("%+v and %+v", gens[0].load, gens[1].load)
		}
		skews = append(skews, gens[1].span.start.Sub(gens[0].span.start))
		if err := l.removeLoads(ctx, gens); err != nil {
			t.Error(err)
		}
	}
	t.Logf("the second generator started %v after the first", skews)
	lap = time.Now()
	m, err := l.Measure(ctx, srv, w)
	if err != nil {
		t.Fatal(err)
	}
	checkMeasurement(t, l, m, w)
	took("measure 2 s, twice")
	w.Streams[0].Connections = 1
	if _, err := l.Measure(ctx, srv, w); err == nil || !strings.Contains(said.Err(err), "1 connections cannot be spread over 2 load hosts") {
		t.Error(err)
	}
}

// TestLostAndFound cuts hosts off in the middle of a window: for a minute, which
// costs nothing, and for good, which ends the block.
func TestLostAndFound(t *testing.T) {
	t.Parallel()
	t.Run("cut off for a minute", func(t *testing.T) {
		t.Parallel()
		// The window ends while the plugs are out.
		testCut(t, hosts(t, 3), []string{"app", "load"}, 25, 60*time.Second)
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		machines := hosts(t, 3)
		cfg := remoteConfig(t, machines, 15*time.Second)
		cfg.silence = 10 * time.Second
		testLost(t, machines, cfg, "load", func() { machines.Named("load").LinkDown() })
		machines.Named("load").LinkUp()
		// The same run goes on, as soon as it is clear that its driver was the one
		// that was cut off.
		again := remoteConfig(t, machines, 15*time.Second)
		again.RunID, again.silence = cfg.RunID, cfg.silence
		testLost(t, machines, again, "app", func() {
			if err := machines.Named("app").StopDaemon(); err != nil {
				t.Error(err)
			}
		})
	})
}

// answering starts a lab with a server that answers.
func answering(t *testing.T, cfg Config) (*Lab, protocol.Server) {
	t.Helper()
	l := remoteLab(t, cfg)
	if err := l.FreshDatabase(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv, err := l.StartCandidate(t.Context(), "answers")
	if err != nil {
		t.Fatal(err)
	}
	return l, srv
}

// testCut pulls plugs in the middle of a window and puts them back.
func testCut(t *testing.T, machines *hoststest.Lab, cut []string, seconds float64, out time.Duration) {
	cfg := remoteConfig(t, machines, 0)
	l, srv := answering(t, cfg)
	ctx := t.Context()
	w := auth(seconds, 50)
	w.Timeout = 10 * time.Second
	var plugs sync.WaitGroup
	plugs.Go(func() {
		waitForLoad(t, l)
		time.Sleep(3 * time.Second)
		for _, h := range cut {
			machines.Named(h).LinkDown()
		}
		time.Sleep(out)
		for _, h := range cut {
			machines.Named(h).LinkUp()
		}
		t.Logf("%v were cut off for %s", cut, out)
	})
	began := time.Now()
	m, err := l.Measure(ctx, srv, w)
	took := time.Since(began)
	plugs.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("measured %v s in %.1f s", seconds, took.Seconds())
	checkCut(t, m, w)
	if err := srv.Stop(ctx); err != nil {
		t.Error(err)
	}
	if live, err := Live(ctx, l.host(plan.Load).Engine); err != nil || !slices.Contains(live, cfg.RunID) {
		t.Errorf("after the cut the run is not marked as alive: %v, %v", live, err)
	}
	closeLab(t, l)
}

// waitForLoad waits until the load generator's container runs.
func waitForLoad(t *testing.T, l *Lab) {
	for {
		list, err := l.host(plan.Load).Engine.Containers(t.Context(), map[string]string{engine.LabelRun: l.cfg.RunID, engine.LabelRole: whatLoad})
		if t.Context().Err() != nil {
			return
		}
		if err == nil && len(list) == 1 && list[0].Running {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// testLost loses a host in the middle of a window.
func testLost(t *testing.T, machines *hoststest.Lab, cfg Config, host string, lose func()) {
	l, srv := answering(t, cfg)
	ctx := t.Context()
	var losing sync.WaitGroup
	losing.Go(func() {
		waitForLoad(t, l)
		time.Sleep(4 * time.Second) // the samplers run, and so does the load
		lose()
	})
	began := time.Now()
	m, err := l.Measure(ctx, srv, auth(12, 50))
	took := time.Since(began)
	losing.Wait()
	t.Logf("host %s: measured 12 s in %.1f s: %v", host, took.Seconds(), err)
	if err == nil {
		t.Fatal("measured on a host that is lost")
	}
	for _, want := range []string{"host " + host + " is lost", machines.Named(host).Endpoint(), "has not answered for"} {
		if !strings.Contains(said.Err(err), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	var lost *engine.LostError
	if !errors.As(err, &lost) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("%q is not one sentence about a lost engine", err)
	}
	var kept []string
	for _, s := range m.CGroup {
		if len(s.Lines) > 0 {
			kept = append(kept, s.Host)
		}
	}
	if len(kept) != 2 || len(m.CGroup) != 3 || slices.Contains(kept, host) {
		t.Errorf("the samples of %v were kept", kept)
	}
	began = time.Now()
	err = errors.Join(srv.Stop(ctx), l.Close(ctx))
	t.Logf("closed in %.1f s: %v", time.Since(began).Seconds(), err)
	if err == nil || time.Since(began) > 2*time.Minute {
		t.Errorf("closing a lab with a lost host took %s: %v", time.Since(began), err)
	}
}

// checkCut judges a window whose hosts could not all be reached: nothing is
// missing, and what the samplers saw after its end does not matter.
func checkCut(t *testing.T, m protocol.Measurement, w protocol.Load) {
	t.Helper()
	if len(m.OHA) != 1 || len(m.CGroup) != 3 || len(m.Hosts) != 3 {
		t.Fatalf("%d outputs, %d series, %d readings", len(m.OHA), len(m.CGroup), len(m.Hosts))
	}
	res, err := oha.Parse("window", m.OHA[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d answers, %v", res.OK(), res.Errors)
	if d := m.End.Sub(m.Start); d < w.Duration || d > w.Duration+w.Timeout+5*time.Second {
		t.Errorf("the window took %s", d)
	}
	for i, s := range m.CGroup {
		one, err := cgroup.ReadSeriesUntil(bytes.NewReader(s.Lines), s.Host, m.End, []string{"app", "db", "load"}[i])
		if err != nil {
			t.Fatal(err)
		}
		if !one.Encloses(m.Start, m.End) || one.MaxGap() > 5*time.Second {
			t.Errorf("the samples of %s do not enclose the window, or have a gap of %s", s.Host, one.MaxGap())
		}
	}
	for _, r := range m.Hosts {
		if r.ClockError != "" || r.AllowanceError != "" {
			t.Errorf("%+v", r)
		}
	}
	if len(m.Database) == 0 {
		t.Error("no database counters")
	}
}
