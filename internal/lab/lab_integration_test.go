//go:build integration

package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab/contract"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/said"
)

// testConfig is a lab with few rows beside whatever else the engine does.
func testConfig(t testing.TB, e *engine.Engine) Config {
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := plan.FormatCPUs([]int{0})
	if info.CPUs > 1 {
		all = "0-1"
	}
	return Config{
		RunID: "test-" + nonce(4),
		Profile: plan.Profile{
			Name: "test", DatabaseConnections: 4, SharedCores: true,
			Roles: map[plan.Role]plan.Resources{
				plan.App:  {CPUs: all, Memory: 256 << 20},
				plan.DB:   {CPUs: all, Memory: 512 << 20},
				plan.Load: {CPUs: all, Memory: 256 << 20},
			},
		},
		Suite: plan.Suite{
			Name: "test", Rows: 2000, Subject: testSubject, Issuer: "https://auth.bench.local", Audience: "events-api",
			// The reference probe answers every path, /healthz included.
			Candidates: []plan.Candidate{{ID: "answers", Image: ImageTools}},
		},
		Flavour: "test",
		Images:  enginetest.Images(t, e, ImageTools, ImageDatabase),
		Tokens:  map[string]oha.Token{"events:read": "aaaa.bbbb.cccc"},
		Hosts:   Local(e),
		Shared:  true,
		Say:     t.Logf,
	}
}

// newLab makes a lab and closes it after the test. The volume stays for the next.
func newLab(t testing.TB, change func(*Config)) *Lab {
	t.Helper()
	e := enginetest.Connect(t)
	cfg := testConfig(t, e)
	cfg.Suite.Rows = testRows
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
	})
	return l
}

// testRows gives the tests of this process a volume of their own.
var testRows = 2000 + os.Getpid()%100_000

func TestMain(m *testing.M) {
	// The tests that are marked as parallel mostly wait.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	ctx := context.Background()
	if e, err := engine.Connect(ctx, engine.Options{}); err == nil {
		l := &Lab{cfg: Config{Flavour: "test"}, seed: postgres.Seed{Rows: testRows, Subject: testSubject}}
		_ = e.Delete(ctx, engine.Thing{Kind: engine.KindVolume, ID: l.volumeName(), Name: l.volumeName()})
	}
	os.Exit(code)
}

const testSubject = "subject-1"

func auth(seconds float64, target int) protocol.Load {
	return protocol.Load{
		Streams:  []protocol.Stream{{Scenario: plan.Scenario{ID: "auth", Method: "GET", Path: "/auth", Scope: "events:read"}, Connections: 8, Target: target}},
		Duration: time.Duration(seconds * float64(time.Second)), Timeout: 5 * time.Second,
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
	if res, err := oha.Parse("probe", out[0]); err != nil || res.OK() < 100 {
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
		res, err := oha.Parse("window", m.OHA[0])
		if err != nil {
			t.Fatal(err)
		}
		if res.OK() < 800 {
			t.Errorf("%d answers of about 1000", res.OK())
		}
		series, err := cgroup.ReadSeries(bytes.NewReader(m.CGroup[0].Lines), "samples", "app", "db")
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
		rows := l.sql.Rows()
		if n, err := rows.Count(ctx); err != nil || n != int64(l.cfg.Suite.Rows) {
			t.Errorf("%d rows, %v", n, err)
		}
		rows.Close(ctx)
	}
	t.Logf("overhead of Measure beyond its window: %v", overhead)
	lap("3 windows")
	if err := probe.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	lap("stop")
	if _, err := l.Measure(ctx, probe, auth(1, 1)); err == nil || !strings.Contains(said.Err(err), "does not run") {
		t.Errorf("measured a stopped server: %v", err)
	}
}

// derive builds an image that differs from another in its command.
func derive(t *testing.T, e *engine.Engine, from, command string) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	text := "FROM " + from + "\nLABEL io.percore.shared=1\nENTRYPOINT []\nCMD " + command + "\n"
	if err := w.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	tag := "percore/test:" + nonce(4)
	res, err := e.API().ImageBuild(t.Context(), &buf, client.ImageBuildOptions{Tags: []string{tag}, Version: build.BuilderV1, Remove: true, ForceRemove: true})
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || bytes.Contains(out, []byte("errorDetail")) {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := e.Delete(context.Background(), engine.Thing{Kind: engine.KindImage, ID: tag, Name: tag}); err != nil {
			t.Error(err)
		}
	})
	return tag
}

func TestDialUnderConcurrency(t *testing.T) {
	l := newLab(t, nil)
	srv, err := l.StartCandidate(t.Context(), "answers")
	if err != nil {
		t.Fatal(err)
	}
	dial := l.Dial(srv)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }, MaxIdleConnsPerHost: 12, MaxConnsPerHost: 12}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	start := time.Now()
	var wg sync.WaitGroup
	var answers atomic.Int64
	for range 12 {
		wg.Go(func() {
			for range 20 {
				res, err := httpClient.Get("http://" + l.ServerHost() + "/x")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(body) != "Hello, world!\n" {
					t.Errorf("%q, %v", body, err)
				}
				answers.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d answers over 12 connections in %s", answers.Load(), time.Since(start))

	c, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read of a silent server: %v", err)
	}
	if refused, err := l.tools[l.host(plan.Load)].DialTCP(t.Context(), "app:9"); err == nil {
		refused.Close()
		t.Error("connected where nothing listens")
	} else if !strings.Contains(said.Err(err), "Connection refused") || !strings.Contains(said.Err(err), "app:9") {
		t.Error(err)
	}
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCandidateNeverReady(t *testing.T) {
	e := enginetest.Connect(t)
	tools := enginetest.Images(t, e, ImageTools)[ImageTools]
	sleeps := derive(t, e, tools, `["sh", "-c", "echo about to sleep; echo aside >&2; exec sleep 300"]`)
	ends := derive(t, e, tools, `["sh", "-c", "echo no key in the environment >&2; exit 3"]`)
	refuses := derive(t, e, tools, `["socat", "TCP-LISTEN:8080,fork,reuseaddr", "SYSTEM:echo 'HTTP/1.0 503 Busy'; echo"]`)
	l := newLab(t, func(c *Config) {
		c.ReadyTimeout = 4 * time.Second
		for id, image := range map[string]string{"sleeps": sleeps, "ends": ends, "refuses": refuses} {
			c.Suite.Candidates = append(c.Suite.Candidates, plan.Candidate{ID: id, Image: id})
			c.Images[id] = image
		}
		c.Suite.Candidates = append(c.Suite.Candidates, plan.Candidate{ID: "unbuilt", Image: "unbuilt"}, plan.Candidate{ID: "lost", Image: "lost"})
		c.Images["lost"] = "percore/none:none"
	})
	for id, want := range map[string][]string{
		"sleeps":  {"sleeps never became ready", "did not answer /healthz with 200 within 4 s", "about to sleep", "aside"},
		"ends":    {"ends never became ready", "has ended (exit code 3)", "no key in the environment"},
		"refuses": {"refuses never became ready", "it answered 503"},
		"unbuilt": {"no image named unbuilt"},
		"lost":    {"the image percore/none:none is not on the engine", "build the images first"},
		"moon":    {`no candidate "moon"`},
	} {
		_, err := l.StartCandidate(t.Context(), id)
		if err == nil {
			t.Errorf("%s started", id)
			continue
		}
		for _, w := range want {
			if !strings.Contains(said.Err(err), w) {
				t.Errorf("%s: %q lacks %q", id, err, w)
			}
		}
		var failed *protocol.StartError
		if (id == "sleeps" || id == "ends") && (!errors.As(err, &failed) || len(failed.Log) == 0 || failed.Candidate != id) {
			t.Errorf("%s: the log is not kept", id)
		}
	}
	left, err := e.Containers(t.Context(), map[string]string{engine.LabelRun: l.cfg.RunID, engine.LabelRole: whatApp})
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestLoadFailures breaks the load generator in every way that a lab can.
func TestLoadFailures(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		load   func(*protocol.Load)
		want   []string
	}{
		"killed for memory": {
			change: func(c *Config) {
				r := c.Profile.Roles[plan.Load]
				r.Memory = 6 << 20
				c.Profile.Roles[plan.Load] = r
			},
			load: func(w *protocol.Load) {
				w.Streams[0].Connections = 256
				w.Streams[0].Target = 0
				w.Duration = 3 * time.Second
			},
			want: []string{"ran out of its 6MiB of memory", "give role load more memory"},
		},
		"full disk": {
			change: func(c *Config) { c.outFile = "/dev/full" },
			want:   []string{"the disk of a host is full", "load generator: container percore-", "No space left on device"},
		},
		"no output": {
			change: func(c *Config) { c.outFile = "/dev/null" },
			want:   []string{"left no output"},
		},
		"no token": {
			load: func(w *protocol.Load) { w.Streams[0].Scenario.Scope = "events:admin" },
			want: []string{`needs a token with scope "events:admin"`},
		},
		"nonsense": {
			load: func(w *protocol.Load) { w.Streams[0].Scenario.Random = true; w.Streams[0].Scenario.Path = "/[" },
			want: []string{"failed (exit code"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, tt.change)
			if err := l.FreshDatabase(t.Context()); err != nil { // whose counters are read around the load
				t.Fatal(err)
			}
			srv, err := l.StartProbe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := auth(1, 100)
			if tt.load != nil {
				tt.load(&w)
			}
			m, err := l.Measure(t.Context(), srv, w)
			if err == nil {
				t.Fatalf("measured: %s", m.OHA[0])
			}
			t.Log(err)
			for _, want := range tt.want {
				if !strings.Contains(said.Err(err), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(said.Err(err), string(l.cfg.Tokens["events:read"])) {
				t.Error("the error shows the token")
			}
			if name == "full disk" && len(m.CGroup[0].Lines) == 0 {
				t.Error("the samples were not kept")
			}
			left, err := l.host(plan.Load).Engine.Containers(t.Context(), map[string]string{engine.LabelRun: l.cfg.RunID, engine.LabelRole: whatLoad})
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestGoneMidWindow kills a container while a window runs.
func TestGoneMidWindow(t *testing.T) {
	for what, want := range map[string][]string{
		"database":  {"PostgreSQL is gone: container percore-", "-db-", "has ended (exit code 137)", "its log ends:", "database system is ready to accept connections"},
		"candidate": {"answers is gone: container percore-", "-app-", "has ended (exit code 137)"},
		"sampler":   {"the sampler died while the window ran: container percore-", "-sampler-", "ended by itself (exit code 137)"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLab(t, nil)
			if err := l.FreshDatabase(t.Context()); err != nil {
				t.Fatal(err)
			}
			srv, err := l.StartCandidate(t.Context(), "answers")
			if err != nil {
				t.Fatal(err)
			}
			victim := l.db
			if what == "candidate" {
				victim = srv.(*server).c
			}
			time.AfterFunc(2500*time.Millisecond, func() {
				if what == "sampler" {
					things, err := l.host(plan.App).Engine.Containers(context.Background(), map[string]string{engine.LabelRun: l.cfg.RunID, engine.LabelRole: whatSampler})
					if err != nil || len(things) != 1 {
						t.Errorf("samplers: %v, %v", things, err)
						return
					}
					victim = l.host(plan.App).Engine.Container(things[0].ID, things[0].Name)
				}
				_ = victim.Signal(context.Background(), "KILL")
			})
			m, err := l.Measure(t.Context(), srv, auth(4, 100))
			if err == nil {
				t.Fatal("measured")
			}
			t.Log(err)
			for _, w := range want {
				if !strings.Contains(said.Err(err), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if len(m.OHA[0]) == 0 || len(m.CGroup[0].Lines) == 0 || m.Start.IsZero() {
				t.Errorf("what was measured until then was not kept: %d and %d bytes", len(m.OHA[0]), len(m.CGroup[0].Lines))
			}
			if what == "database" {
				if err := l.FreshDatabase(t.Context()); err == nil || !strings.Contains(said.Err(err), "PostgreSQL is gone") {
					t.Errorf("a fresh copy of a database that is gone: %v", err)
				}
			}
		})
	}
}

func TestInterruptedWindow(t *testing.T) {
	l := newLab(t, nil)
	srv, err := l.StartProbe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(3*time.Second, cancel)
	start := time.Now()
	_, err = l.Measure(ctx, srv, auth(60, 100))
	if !errors.Is(err, context.Canceled) || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	e := l.host(plan.App).Engine
	left, err := e.Containers(t.Context(), map[string]string{engine.LabelRun: l.cfg.RunID})
	if err != nil || len(left) != 3 { // tools, database, probe
		t.Errorf("after the window: %v, %v", left, err)
	}
	if err := l.Close(ctx); err != nil { // with the cancelled context
		t.Fatal(err)
	}
	for _, list := range []func(context.Context, map[string]string) ([]engine.Thing, error){e.Containers, e.Networks} {
		if left, err := list(t.Context(), map[string]string{engine.LabelRun: l.cfg.RunID}); err != nil || len(left) != 0 {
			t.Errorf("after Close: %v, %v", left, err)
		}
	}
}

// TestRunsKeepApart has two drivers want one engine, the first one killed, and
// everything of percore's removed in the end.
func TestRunsKeepApart(t *testing.T) {
	e := enginetest.Connect(t)
	ctx := t.Context()
	base := testConfig(t, e)
	base.Suite.Rows = 500 + int(time.Now().UnixNano()%1000)
	base.scope = map[string]string{"io.percore.test": nonce(6)}
	base.infancy = time.Millisecond
	foreign, err := e.Create(ctx, engine.Spec{Name: "percore-test-foreign-" + nonce(4), Image: base.Images[ImageTools],
		Labels: map[string]string{"io.percore.test": base.scope["io.percore.test"], "owner": "somebody"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Remove(context.Background()) }()
	defer func() { _, _ = Clean(context.Background(), e, CleanOptions{Force: true, scope: base.scope}) }()

	first, err := New(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	if first.Seeded().Reused {
		t.Error("a new volume has a seed")
	}
	second := base
	second.RunID = "test-" + nonce(4)
	for _, cfg := range []Config{second, base} {
		_, err := New(ctx, cfg)
		if err == nil || !strings.Contains(said.Err(err), "run "+first.cfg.RunID+" is") {
			t.Errorf("run %s beside %s: %v", cfg.RunID, first.cfg.RunID, err)
		}
	}
	if _, err := Clean(ctx, e, CleanOptions{scope: base.scope}); err == nil || !strings.Contains(said.Err(err), "stop it first") {
		t.Errorf("clean under a running run: %v", err)
	}
	if err := first.databaseAlive(ctx); err != nil {
		t.Fatalf("refusing another run ended this one: %v", err)
	}

	// The driver dies: what it held of the engine is gone, what runs there stays.
	for _, release := range first.leases {
		release()
	}
	deadline := time.Now().Add(10 * time.Second)
	for live := []string{""}; len(live) > 0; {
		if live, _, err = runs(ctx, e, base.scope, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("still taken for alive: %v", live)
		}
		time.Sleep(50 * time.Millisecond)
	}
	start := time.Now()
	after, err := New(ctx, second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("second run ready after %s, seed reused: %v", time.Since(start), after.Seeded().Reused)
	if !after.Seeded().Reused {
		t.Error("the second run seeded again")
	}
	if left, err := e.Containers(ctx, map[string]string{engine.LabelRun: first.cfg.RunID}); err != nil || len(left) != 0 {
		t.Errorf("leftovers of the first run: %v, %v", left, err)
	}
	if err := after.Close(ctx); err != nil {
		t.Fatal(err)
	}

	removed, err := Clean(ctx, e, CleanOptions{scope: base.scope})
	if err != nil || len(removed) != 1 || removed[0].Kind != engine.KindVolume {
		t.Errorf("removed %v, %v; want the volume", removed, err)
	}
	if _, err := foreign.Inspect(ctx); err != nil {
		t.Errorf("a container without percore's label was removed: %v", err)
	}
}

func TestNameTaken(t *testing.T) {
	e := enginetest.Connect(t)
	cfg := testConfig(t, e)
	n, err := e.CreateNetwork(t.Context(), "percore-"+cfg.RunID, map[string]string{"owner": "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Delete(context.Background(), n) }()
	_, err = New(t.Context(), cfg)
	if err == nil || !strings.Contains(said.Err(err), "the network name percore-"+cfg.RunID+" is taken") {
		t.Errorf("network: %v", err)
	}
	networks, err := e.Networks(t.Context(), map[string]string{"owner": "somebody"})
	if err != nil || len(networks) == 0 {
		t.Errorf("the foreign network was removed: %v, %v", networks, err)
	}
}

// TestHostNetwork runs the lab as it runs on machines of their own, on this
// machine's network.
func TestHostNetwork(t *testing.T) {
	l := newLab(t, func(c *Config) {
		for _, h := range c.Hosts {
			h.HostNetwork, h.Address = true, "127.0.0.1"
		}
	})
	ctx := t.Context()
	if networks, err := l.host(plan.App).Engine.Networks(ctx, map[string]string{engine.LabelRun: l.cfg.RunID}); err != nil || len(networks) != 0 {
		t.Errorf("networks %v, %v", networks, err)
	}
	if err := l.FreshDatabase(ctx); err != nil {
		t.Fatal(err)
	}
	// The database answers on the host's network with the candidates' password.
	conn, err := l.tools[l.host(plan.Load)].DialTCP(ctx, "127.0.0.1:5432")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil { // SSLRequest
		t.Fatal(err)
	}
	answer := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 'N' && answer[0] != 'S' {
		t.Errorf("PostgreSQL answered %q, %v", answer, err)
	}
	srv, err := l.StartProbe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Stop(ctx) }()
	m, err := l.Measure(ctx, srv, auth(1, 200))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := oha.Parse("window", m.OHA[0]); err != nil || res.OK() < 100 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestFactsOfTheImages(t *testing.T) {
	l := newLab(t, nil)
	versions, err := l.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if versions[ImageTools]["oha"] == "" || versions[ImageTools]["nginx"] == "" || versions[ImageDatabase]["postgresql"] == "" {
		t.Errorf("versions %v", versions)
	}
	ids, err := l.ImageIDs(t.Context())
	if err != nil || !strings.HasPrefix(ids[ImageTools], "sha256:") {
		t.Errorf("ids %v, %v", ids, err)
	}
	ops, err := l.Fsync(t.Context())
	if err != nil || ops["fdatasync"] <= 0 {
		t.Errorf("fsync %v, %v", ops, err)
	}
	t.Logf("versions %v, fsync %v", versions, ops)
	res, err := l.db.Exec(t.Context(), nil, "ls", dataPath)
	if err != nil || strings.Contains(string(res.Stdout), "percore-fsync") {
		t.Errorf("fsync left its file behind: %s, %v", res.Stdout, err)
	}
}

func TestCheck(t *testing.T) {
	l := newLab(t, nil)
	ctx := t.Context()
	check, err := l.StartCheck(ctx, "answers")
	if err != nil {
		t.Fatal(err)
	}
	n, err := check.Rows.Count(ctx)
	if err != nil || n != checkRows {
		t.Errorf("%d rows, %v", n, err)
	}
	if e, err := check.Rows.Event(ctx, 1); err != nil || e.Subject != l.cfg.Suite.Subject || len(e.Payload) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := check.Rows.Event(ctx, n+1); !errors.Is(err, contract.ErrNoRow) {
		t.Errorf("a row that is not there: %v", err)
	}
	if events, err := check.Rows.After(ctx, n-5); err != nil || len(events) != 5 {
		t.Errorf("%v, %v", events, err)
	}
	conn, err := l.Dial(check)(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := check.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := check.Rows.Count(ctx); err == nil {
		t.Error("the database outlived its check")
	}
}
