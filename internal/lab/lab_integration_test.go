//go:build integration

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percore/percore/internal/cgroup"
	"github.com/percore/percore/internal/engine"
	"github.com/percore/percore/internal/engine/enginetest"
	"github.com/percore/percore/internal/load"
	"github.com/percore/percore/internal/postgres"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/protocol"
)

// testConfig is a lab with few rows beside whatever else the engine does.
func testConfig(t testing.TB, e *engine.Engine) Config {
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := profile.FormatCPUs([]int{0})
	if info.CPUs > 1 {
		all = "0-1"
	}
	return Config{
		RunID: "test-" + nonce(4),
		Profile: profile.Profile{
			Name: "test", DatabaseConnections: 4, SharedCores: true,
			Roles: map[profile.Role]profile.Resources{
				profile.App:  {CPUs: all, Memory: 256 << 20},
				profile.DB:   {CPUs: all, Memory: 512 << 20},
				profile.Load: {CPUs: all, Memory: 256 << 20},
			},
		},
		Suite: profile.Suite{
			Name: "test", Rows: 2000, Subject: "subject-1", Issuer: "https://auth.bench.local", Audience: "events-api",
			// Stand-ins for candidates, made of the images at hand: one that
			// sleeps, one that ends, one that answers.
			Candidates: []profile.Candidate{{ID: "answers", Image: "answers"}, {ID: "other", Image: ImageTools}},
		},
		Flavour: "test",
		Images:  enginetest.Images(t, e, ImageTools, ImageDatabase),
		Tokens:  map[string]load.Token{"events:read": "aaaa.bbbb.cccc"},
		Hosts:   Local(e),
		Shared:  true,
		Say:     t.Logf,
	}
}

// newLab makes a lab and removes it, its volume included, after the test.
func newLab(t testing.TB, change func(*Config)) *Lab {
	t.Helper()
	e := enginetest.Connect(t)
	cfg := testConfig(t, e)
	cfg.Suite.Rows += int(time.Now().UnixNano() % 100_000 / 10) // a volume of its own
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	start := time.Now()
	l, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("lab ready in %s", time.Since(start))
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		removeVolume(t, e, l)
	})
	return l
}

func removeVolume(t testing.TB, e *engine.Engine, l *Lab) {
	t.Helper()
	if err := e.Delete(context.Background(), engine.Thing{Kind: engine.KindVolume, ID: l.volumeName(), Name: l.volumeName()}); err != nil {
		t.Error(err)
	}
}

func auth(seconds float64, target int) protocol.Load {
	return protocol.Load{
		Scenario:    profile.Scenario{ID: "auth", Method: "GET", Path: "/auth", Scope: "events:read"},
		Connections: 8, Target: target, Duration: time.Duration(seconds * float64(time.Second)), Timeout: 5 * time.Second,
	}
}

func TestBlock(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	start := time.Now()
	lap := func(what string) {
		t.Logf("%-24s %6d ms", what, time.Since(start).Milliseconds())
		start = time.Now()
	}

	facts, err := l.HostFacts(ctx)
	if err != nil || len(facts) != 1 || facts[0].CPUs < 1 || facts[0].CPUModel == "" || len(facts[0].Roles) != 3 {
		t.Fatalf("host facts %+v, %v", facts, err)
	}
	lap("host facts")
	if err := l.FreshDatabase(ctx); err != nil {
		t.Fatal(err)
	}
	lap("fresh database")
	probe, err := l.StartProbe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lap("probe")
	out, err := l.Generate(ctx, probe, auth(1, 200))
	if err != nil {
		t.Fatal(err)
	}
	lap("generate 1 s")
	if res, err := load.Parse("probe", out); err != nil || res.OK() < 100 {
		t.Fatalf("%v, %v", res, err)
	}

	var overhead []time.Duration
	for range 3 {
		began := time.Now()
		m, err := l.Measure(ctx, probe, auth(2, 500))
		took := time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		overhead = append(overhead, took-2*time.Second)
		res, err := load.Parse("window", m.OHA)
		if err != nil {
			t.Fatal(err)
		}
		if res.OK() < 800 {
			t.Errorf("%d answers of about 1000", res.OK())
		}
		series, err := cgroup.ReadSeries(bytes.NewReader(m.CGroup), "samples", "app", "db")
		if err != nil {
			t.Fatal(err)
		}
		if !series.Encloses(m.Start, m.End) {
			t.Errorf("samples from %d to %d do not enclose the window from %s to %s", series.First().T, series.Last().T, m.Start, m.End)
		}
		if d := m.End.Sub(m.Start); d < 1900*time.Millisecond || d > 5*time.Second {
			t.Errorf("the window took %s", d)
		}
		if grew, ok := series.Grew("app", cgroup.UsageUS); !ok || grew <= 0 {
			t.Errorf("app CPU grew by %d µs, %v", grew, ok)
		}
		if _, ok := m.Database["database.xact_commit"]; !ok {
			t.Errorf("no database counters: %v", m.Database)
		}
		if res, err := l.rows.Count(ctx); err != nil || res != int64(l.cfg.Suite.Rows) {
			t.Errorf("%d rows, %v", res, err)
		}
	}
	t.Logf("overhead of Measure beyond its window: %v", overhead)
	lap("3 windows")
	if err := probe.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	lap("stop")
	if _, err := l.Measure(ctx, probe, auth(1, 1)); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("measured a stopped server: %v", err)
	}
	host, cpus := l.CPUs(profile.App)
	if host != l.host(profile.App).Engine.Host() || cpus.Count() < 1 {
		t.Errorf("%s %s", host, cpus)
	}
	_ = errors.New
	_ = fmt.Sprint
	_ = io.EOF
	var _ net.Conn
	_ = http.MethodGet
	var _ sync.Mutex
	_ = postgres.Major
}
