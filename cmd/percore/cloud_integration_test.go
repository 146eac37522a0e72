//go:build integration && linux

//integration:apart

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/machines"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/hoststest"
)

// cloudProfile is a profile of the hosts of a test. They share this machine's
// cores, and it says so.
func cloudProfile(t *testing.T, l *hoststest.Lab) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("name: wired\ndescription: hosts in namespaces of one machine\nflavour: debian\ndatabase_connections: 4\nshared_cores: true\n" +
		"roles:\n  app: {cpus: auto}\n  db: {cpus: auto}\n  load: {cpus: auto}\n")
	fmt.Fprintf(&b, "cloud:\n  provider: hosts\n  identity_file: %s\n  hosts:\n", l.IdentityFile)
	for _, m := range l.Machines().Machines {
		fmt.Fprintf(&b, "    - {role: %s, name: %s, ssh: %q, address: %s}\n", m.Role, m.Name, fmt.Sprintf("%s@%s:%d", m.SSHUser, m.SSHHost, m.SSHPort), m.Address)
	}
	return write(t, "wired.yaml", b.String())
}

// cloudLab starts three hosts. Two have the images that their roles need; the
// load host's is copied by the run from this machine's engine.
func cloudLab(t *testing.T) *hoststest.Lab {
	t.Helper()
	e := enginetest.Connect(t)
	l := hoststest.Start(t, 3)
	for name, needs := range map[string][]string{"app": {"tools", "go", "php-fpm"}, "db": {"tools", "postgres"}} {
		if err := l.Named(name).Load(t.Context(), e, enginetest.Images(t, e, needs...)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// loading waits until the load generator of a window, longer than a probe or a
// warm-up and therefore known by its duration, runs on the load host.
func loading(t *testing.T, c *command, h *hoststest.Host, duration string) {
	t.Helper()
	e, err := engine.Connect(t.Context(), engine.Options{Host: "unix://" + h.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-c.done:
			t.Fatalf("percore ended before a window with exit code %d\n%s", c.ProcessState.ExitCode(), c.out.String())
		default:
		}
		list, err := e.Containers(t.Context(), map[string]string{engine.LabelRole: "load"})
		if err != nil {
			continue
		}
		for _, x := range list {
			if res, err := e.API().ContainerInspect(t.Context(), x.ID, client.ContainerInspectOptions{}); err == nil && x.Running && strings.Contains(strings.Join(res.Container.Args, " "), duration) {
				return
			}
		}
	}
	t.Fatalf("waited ten minutes for a window\n%s", c.out.String())
}

// onDisk is the state of the one cloud run.
func onDisk(t *testing.T, results string) (machines.State, *store.Store) {
	t.Helper()
	all, damaged := machines.List(results)
	if len(damaged) > 0 || len(all) != 1 {
		t.Fatalf("cloud runs %+v, %v", all, damaged)
	}
	st, err := store.Open(filepath.Join(results, all[0].ID))
	if err != nil {
		t.Fatal(err)
	}
	return all[0], st
}

// TestCloudRun goes through a whole cloud run on three hosts with real
// Terraform, Ansible, ssh and containers, with the smoke preset, for the two
// candidates that differ most: one process, and many behind nginx. In one window
// the driver is killed. In another the plug between the driver and the hosts is
// pulled for a minute, which costs nothing. In a third the database's daemon is
// stopped, which ends the run with what was measured kept.
func TestCloudRun(t *testing.T) {
	hoststest.Preparing(t)
	l := cloudLab(t)
	results := t.TempDir()
	profile := cloudProfile(t, l)
	c := percore(t, results, "cloud", "run", "--profile", profile, "--preset", "smoke", "--candidates", "go,php-fpm", "--seed", "7", "--keep")
	c.start(t)
	loading(t, c, l.Named("load"), "3s") // a window of the fixed rate
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.done
	state, _ := onDisk(t, results)
	if state.Up == nil || state.Prepared == nil || state.Measured != nil || state.Destroyed != nil {
		t.Errorf("state after the kill: %+v", state)
	}
	if status := percore(t, results, "cloud", "status").run(t, 0); !strings.Contains(status, state.ID) {
		t.Errorf("status:\n%s", status)
	}
	if out := percore(t, results, "cloud", "ssh", "db", "--", "printenv", "DOCKER_HOST").run(t, 0); !strings.Contains(out, l.Named("db").Socket) {
		t.Errorf("ssh to db answers %q", out)
	}
	percore(t, results, "cloud", "ssh", "db", "--", "exit 7").run(t, 7)

	c = percore(t, results, "cloud", "run", "--resume", state.ID)
	c.start(t)
	// The window of the killed driver may still run.
	st := await(t, c, results, "the first window after the kill", func(e []store.Event) bool { return windows(e) > 0 })
	loading(t, c, l.Named("load"), "3s")
	before := windows(st.Events())
	l.Unplug()
	time.Sleep(time.Minute)
	l.Plug()
	st = await(t, c, results, "the window that was cut", func(e []store.Event) bool { return windows(e) == before+1 })
	cut := st.History().Windows()[before]
	if !evidence(cut) || cut.Attempt != 1 || cut.Measured.Failed > 0 || cut.Measured.Achieved < 0.5*float64(cut.Target) {
		t.Errorf("the window that was cut: attempt %d, %s, %+v, %+v", cut.Attempt, cut.Error, cut.Measured, cut.Gates)
	}

	loading(t, c, l.Named("load"), "3s")
	if err := l.Named("db").StopDaemon(); err != nil {
		t.Fatal(err)
	}
	<-c.done
	dead := c.out.String()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d with a dead host", code)
	}
	for _, want := range []string{"db", l.Named("db").Address, "percore cloud run --resume " + state.ID} {
		if !strings.Contains(dead, want) {
			t.Errorf("the output with a dead host does not say %q:\n%s", want, dead)
		}
	}
	_, st = onDisk(t, results)
	verify(t, st)
	if kept := windows(st.Events()); kept <= before {
		t.Errorf("%d windows are kept of %d", kept, before+1)
	}
	if err := l.Named("db").StartDaemon(); err != nil {
		t.Fatal(err)
	}

	out := percore(t, results, "cloud", "run", "--resume", state.ID).run(t, 0)
	t.Log(out)
	state, st = onDisk(t, results)
	if st.Summary().State != store.StateComplete {
		t.Errorf("the run is %s", st.Summary().State)
	}
	if state.Measured == nil || state.Collected == nil {
		t.Errorf("state at the end: %+v", state)
	}
	run := st.Run()
	if len(run.Hosts) != 3 || len(run.Links) == 0 || run.Cloud == nil {
		t.Errorf("hosts %+v, links %+v, cloud %+v", run.Hosts, run.Links, run.Cloud)
	}
	for _, h := range run.Hosts {
		if h.ClockOffsetMS == nil || h.RSAVerifyPerS <= 0 || h.Facts["kernel"] == "" || h.Kernel == "" {
			t.Errorf("host facts %+v", h)
		}
	}
	for _, link := range run.Links {
		if link.RTTMeanMS <= 0 || link.BitsPerS <= 0 {
			t.Errorf("link %+v", link)
		}
	}
	passed := map[string]bool{}
	for _, w := range st.History().Windows() {
		for _, g := range w.Gates {
			if g.Failed() {
				t.Logf("%s: gate %s %g (%s)", w.Window, g.Name, g.Reading, g.Detail)
			}
		}
		if !evidence(w) {
			continue
		}
		passed[w.Window.Key()] = true
		if w.Measured.AppCPUUS <= 0 || w.Scenario != "auth" && w.Measured.DBCPUUS <= 0 || len(w.OtherCGroup) != 2 || len(w.Hosts) != 3 {
			t.Errorf("%s: %+v, other series %v, readings %v", w.Window, w.Measured, w.OtherCGroup, w.Hosts)
		}
	}
	if want := run.Planned(); len(passed) != want {
		t.Errorf("%d windows are evidence, want %d", len(passed), want)
	}
	verify(t, st)
	for _, name := range []string{"report.html", "report.md", "report.json", "cloud/logs/db.kernel.log"} {
		if info, err := os.Stat(filepath.Join(st.Dir(), name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(st.Dir(), "cloud")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the machines: %v, %v", info.Mode(), err)
	}

	// Every stage can be repeated.
	again := percore(t, results, "cloud", "prepare", state.ID).run(t, 0)
	for _, h := range []string{"app", "db", "load"} {
		if !strings.Contains(again, h+": 0 change(s)") {
			t.Errorf("a second preparation changes %s:\n%s", h, again)
		}
	}
	percore(t, results, "cloud", "up", "--resume", state.ID).run(t, 0)
	percore(t, results, "cloud", "down", state.ID).run(t, 0)
	percore(t, results, "cloud", "down", state.ID).run(t, 0)
	if out := percore(t, results, "cloud", "prepare", state.ID).run(t, 2); !strings.Contains(out, "destroyed") {
		t.Errorf("preparing what is gone:\n%s", out)
	}
	for _, h := range l.Hosts {
		if left := leftOn(t, h, state.ID); len(left) > 0 {
			t.Errorf("left on %s: %v", h.Name, left)
		}
	}
}

// evidence reports whether a window is evidence, but for what a busy test machine
// may do to it: take CPU time away, keep the load host's cores busy, or be slow in
// a probe.
func evidence(w store.WindowResult) bool {
	for _, g := range w.Gates {
		if g.Failed() && !slices.Contains([]string{gates.Steal, gates.Foreign, gates.Load, gates.Probe}, g.Name) {
			return false
		}
	}
	return w.Error == "" && w.Measured != nil
}

// leftOn lists what a run has left on a host.
func leftOn(t *testing.T, h *hoststest.Host, runID string) []engine.Thing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := engine.Connect(ctx, engine.Options{Host: "unix://" + h.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	left, err := e.Containers(ctx, map[string]string{engine.LabelRun: runID})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := e.Volumes(ctx, map[string]string{engine.Label: "1"})
	if err != nil {
		t.Fatal(err)
	}
	return append(left, volumes...)
}

// TestClean removes everything of percore from an engine of its own, and nothing
// else: this machine's may hold what a developer still needs.
func TestClean(t *testing.T) {
	ctx, main := t.Context(), enginetest.Connect(t)
	images := enginetest.Images(t, main, "tools")
	host := hoststest.Start(t, 1).Hosts[0]
	if err := host.Load(ctx, main, images); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+host.Socket)
	e := dockerEngine(t)
	results := t.TempDir()
	things := func() []string {
		t.Helper()
		containers, err := e.Containers(ctx, nil)
		networks, errN := e.Networks(ctx, nil)
		volumes, errV := e.Volumes(ctx, nil)
		if err := errors.Join(err, errN, errV); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range slices.Concat(containers, networks, volumes) {
			if strings.HasPrefix(x.Name, "percore-test-") {
				names = append(names, x.Kind+" "+x.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	foreign := map[string]string{"io.percore.not": "1"}
	for name, labels := range map[string]func(kind string) map[string]string{
		"foreign": func(string) map[string]string { return foreign },
		"own": func(kind string) map[string]string {
			return map[string]string{engine.Label: "1", engine.LabelKind: kind}
		},
	} {
		_, err := e.Create(ctx, engine.Spec{Name: "percore-test-" + name, Image: images["tools"], Labels: labels(engine.KindContainer)})
		_, errN := e.CreateNetwork(ctx, "percore-test-"+name, labels(engine.KindNetwork))
		if err := errors.Join(err, errN, e.CreateVolume(ctx, "percore-test-"+name, labels(engine.KindVolume))); err != nil {
			t.Fatal(err)
		}
	}
	if got := things(); len(got) != 6 {
		t.Fatalf("there is %q before anything is removed", got)
	}
	out := percore(t, results, "clean").run(t, 0)
	for _, kind := range []string{"container", "network", "volume"} {
		if !strings.Contains(out, "removed "+kind+" percore-test-own") {
			t.Errorf("it does not say that the %s was removed:\n%s", kind, out)
		}
	}
	if got, want := things(), []string{"container percore-test-foreign", "network percore-test-foreign", "volume percore-test-foreign"}; !slices.Equal(got, want) {
		t.Errorf("there is %q after it, want %q", got, want)
	}
	if out := percore(t, results, "clean").run(t, 0); !strings.Contains(out, "nothing of percore's") {
		t.Errorf("a second time:\n%s", out)
	}
}
