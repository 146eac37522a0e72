//go:build integration

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
)

// binary builds percore once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "percore-test")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "percore")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building percore: %w\n%s", err, out)
	}
	return path, nil
})

// command is a percore command line in the checkout, with results of its own.
type command struct {
	*exec.Cmd
	out  bytes.Buffer
	done chan struct{} // closed when a started command has ended
}

// start runs the command in the background; whatever happens to the test, it
// does not outlive it.
func (c *command) start(t *testing.T) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		_ = c.Wait() // its exit code says more
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGINT)
		<-c.done
	})
}

func percore(t *testing.T, results string, args ...string) *command {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c := &command{Cmd: exec.Command(path, append([]string{"--results", results, "--root", "../.."}, args...)...)}
	c.Stdout, c.Stderr = &c.out, &c.out
	return c
}

// run runs the command to its end and checks its exit code.
func (c *command) run(t *testing.T, code int) string {
	t.Helper()
	err := c.Run()
	if got := c.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d, want %d (%v)\n%s", c.Args[1:], got, code, err, c.out.String())
	}
	return c.out.String()
}

// write puts a file into a fresh folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// the only run in a results folder
func only(t *testing.T, results string) *store.Store {
	t.Helper()
	dir, err := store.Find(results, "latest")
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func dockerEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Connect(context.Background(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// leftovers are containers and networks of the run on the engine.
func leftovers(t *testing.T, run string) []engine.Thing {
	t.Helper()
	e := dockerEngine(t)
	labels := map[string]string{engine.LabelRun: run}
	containers, err := e.Containers(context.Background(), labels)
	if err != nil {
		t.Fatal(err)
	}
	networks, err := e.Networks(context.Background(), labels)
	if err != nil {
		t.Fatal(err)
	}
	return append(containers, networks...)
}

const shortPreset = `name: short
description: six windows of the Go candidate
attempts: 1
timeout: 10s
warmup: 1s
probe: {window: 1s, connections: 8, target: 100}
phases:
  - {id: rate, kind: rate, window: 4s, repetitions: 3, connections: [8], targets: {auth: 50, read: 50, write: 50}}
`

// TestSmoke measures everything for real: three candidates, three scenarios,
// both phases, with the contract check before them.
func TestSmoke(t *testing.T) {
	results := t.TempDir()
	out := percore(t, results, "run", "--preset", "smoke", "--seed", "42").run(t, 0)
	t.Log(out)
	st := only(t, results)
	run := st.Run()
	if run.Seed != 42 || run.Ended == nil || st.Summary().State != store.StateComplete {
		t.Errorf("run.json %+v", run)
	}
	verified := 0
	for _, e := range st.Events() {
		if e.Type == store.EventVerify {
			verified++
		}
	}
	if verified != len(run.Candidates) {
		t.Errorf("%d candidates verified", verified)
	}
	seen := map[string]bool{}
	for _, w := range st.History().Windows() {
		if w.Error != "" || w.Measured == nil {
			t.Errorf("%s: %s", w.Window, w.Error)
			continue
		}
		m := w.Measured
		if m.Achieved <= 0 || m.AppCPUUS <= 0 || m.AppCores <= 0 || m.PeakBytes <= 0 || m.P50MS <= 0 || m.Failed != 0 {
			t.Errorf("%s: figures %+v", w.Window, m)
		}
		if w.Scenario != "auth" && m.DBCPUUS <= 0 {
			t.Errorf("%s used no database CPU", w.Window)
		}
		// Exact, unlike what PostgreSQL's views say of a window this short.
		if w.Scenario == "write" && (w.Database["events.inserted_rows"] < 1 || w.Database["wal.inserted_bytes"] < 1) {
			t.Errorf("%s inserted nothing: %v", w.Window, w.Database)
		}
		if _, ok := w.Database["database.xact_commit"]; !ok {
			t.Errorf("%s lacks what pg_stat_database counted: %v", w.Window, w.Database)
		}
		seen[w.Phase+" "+w.Candidate+" "+w.Scenario] = true
	}
	if want := len(run.Candidates) * len(run.Suite.Scenarios) * 2; len(seen) != want {
		t.Errorf("%d cells measured, want %d", len(seen), want)
	}
	verify(t, st)
	for _, key := range []string{"go", "postgresql", "oha", "nginx"} {
		if !slices.ContainsFunc(keys(run.Versions), func(k string) bool { return strings.HasSuffix(k, key) }) {
			t.Errorf("no version of %s in %v", key, run.Versions)
		}
	}
	if len(run.FsyncPerSec) == 0 || run.Hosts[0].CPUs == 0 {
		t.Errorf("host facts are missing: %+v %v", run.Hosts, run.FsyncPerSec)
	}
	for _, want := range []string{"results: ", "µs/request", "contract go: ", "fixed rate", "ceiling"} {
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("the output does not say %q", want)
		}
	}
	if left := leftovers(t, run.ID); len(left) > 0 {
		t.Errorf("left on the engine: %v", left)
	}
	assertNoSecrets(t, results)

	for _, format := range []string{"text", "md", "csv", "json"} {
		if text := percore(t, results, "report", "latest", "--format", format).run(t, 0); !strings.Contains(text, "php-fpm") {
			t.Errorf("report --format %s:\n%s", format, text)
		}
	}
	if ls := percore(t, results, "ls").run(t, 0); !strings.Contains(ls, run.ID) {
		t.Errorf("ls:\n%s", ls)
	}
	if show := percore(t, results, "show", run.ID[:12]).run(t, 0); !strings.Contains(show, run.ID) {
		t.Errorf("show:\n%s", show)
	}
}

// verify holds the raw files against the log. A file that a killed driver left
// without an event is not a problem.
func verify(t *testing.T, st *store.Store) {
	t.Helper()
	problems, err := st.Verify()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Fatal {
			t.Error(p)
		}
	}
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// assertNoSecrets looks for tokens and keys in everything a run wrote.
func assertNoSecrets(t *testing.T, dir string) {
	t.Helper()
	secret := regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}\.|PRIVATE KEY`)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if m := secret.Find(data); m != nil {
			t.Errorf("%s holds a token or key: %.12s…", path, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until the events of the command's run satisfy a condition.
func await(t *testing.T, c *command, results, what string, ready func([]store.Event) bool) *store.Store {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		select {
		case <-c.done:
			t.Fatalf("percore ended before %s with exit code %d\n%s", what, c.ProcessState.ExitCode(), c.out.String())
		default:
		}
		dir, err := store.Find(results, "latest")
		if err != nil {
			continue
		}
		if st, err := store.Open(dir); err == nil && ready(st.Events()) {
			return st
		}
	}
	t.Fatalf("waited three minutes for %s", what)
	return nil
}

func windows(events []store.Event) int {
	n := 0
	for _, e := range events {
		if e.Type == store.EventWindow {
			n++
		}
	}
	return n
}

// TestStoppedAndResumed stops one run in every way that it can be stopped, and
// carries it on after each: Ctrl-C, a driver that is killed in the middle of a
// window, a database that is killed. Nothing that was measured is measured again
// or changed.
func TestStoppedAndResumed(t *testing.T) {
	results := t.TempDir()
	preset := write(t, "short.yaml", shortPreset)
	c := percore(t, results, "run", "--preset", preset, "--candidates", "go", "--scenarios", "auth,read")
	c.start(t)
	st := await(t, c, results, "the first window", func(e []store.Event) bool { return windows(e) == 1 })
	ctrlC(t, c, results)
	run := st.Run()
	first := st.History().Windows()[0]
	before, err := st.ReadRaw(first.OHA)
	if err != nil {
		t.Fatal(err)
	}

	resume := func() *command { return percore(t, results, "run", "--resume", "latest") }
	c = resume()
	c.start(t)
	await(t, c, results, "the second window", func(e []store.Event) bool { return windows(e) == 2 })
	time.Sleep(2 * time.Second) // into the next window, or what comes before it
	killed(t, c, results)

	// The run goes on by what is stored of it, whatever becomes of the preset it was
	// begun with; asking for another one is refused, and nothing is lost by asking.
	if err := os.Remove(preset); err != nil {
		t.Fatal(err)
	}
	if out := percore(t, results, "run", "--resume", run.ID, "--preset", "smoke").run(t, 2); !strings.Contains(out, "cannot be resumed") {
		t.Errorf("another preset:\n%s", out)
	}

	c = resume()
	c.start(t)
	await(t, c, results, "another window", func(e []store.Event) bool { return windows(e) > 2 })
	databaseGone(t, c, results)

	out := resume().run(t, 0)
	done := only(t, results)
	if done.Summary().State != store.StateComplete || done.Run().ID != run.ID {
		t.Fatalf("state after resuming: %s\n%s", done.Summary().State, out)
	}
	passed := map[string]int{}
	for _, w := range done.History().Windows() {
		if w.Passed() {
			passed[w.Key()]++
		}
	}
	for key, n := range passed {
		if n != 1 {
			t.Errorf("%s was measured %d times to the end", key, n)
		}
	}
	after, err := done.ReadRaw(first.OHA)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("%s changed: %v", first.OHA, err)
	}
	checked := 0
	for _, e := range done.Events() {
		if e.Type == store.EventVerify {
			checked++
		}
	}
	if checked != 1 {
		t.Errorf("the contract was checked %d times", checked)
	}
	verify(t, done)
	if left := leftovers(t, run.ID); len(left) > 0 {
		t.Errorf("left on the engine: %v", left)
	}
}

// ctrlC sends Ctrl-C after the first window: the containers go, the data
// stays, and the way to resume is shown.
func ctrlC(t *testing.T, c *command, results string) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-c.done
	st := only(t, results)
	ended := 0
	for _, w := range st.History().Windows() {
		if w.Error == "" {
			ended++
		}
	}
	if c.ProcessState.ExitCode() != 1 || st.Summary().State != store.StateInterrupted || ended != 1 {
		t.Errorf("exit code %d, %d windows came to their end, %+v", c.ProcessState.ExitCode(), ended, st.Summary())
	}
	if left := leftovers(t, st.Run().ID); len(left) > 0 {
		t.Errorf("left on the engine: %v", left)
	}
	if out := c.out.String(); !strings.Contains(out, "to carry on: "+c.Args[0]+" run ") || !strings.Contains(out, " --resume "+st.Run().ID) {
		t.Errorf("the output does not say how to resume:\n%s", out)
	}
}

// killed kills the driver, whose containers stay.
func killed(t *testing.T, c *command, results string) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.done
	st := only(t, results)
	if s := st.Summary().State; s != store.StateInterrupted {
		t.Errorf("state after the kill: %s", s)
	}
	if len(leftovers(t, st.Run().ID)) == 0 {
		t.Error("the killed driver left nothing behind, so nothing was tested")
	}
}

// databaseGone kills PostgreSQL: the run fails with what happened and keeps its
// data.
func databaseGone(t *testing.T, c *command, results string) {
	t.Helper()
	st := only(t, results)
	kept := windows(st.Events())
	e := dockerEngine(t)
	dbs, err := e.Containers(context.Background(), map[string]string{engine.LabelRun: st.Run().ID, engine.LabelRole: string(plan.DB)})
	if err != nil || len(dbs) != 1 {
		t.Fatalf("database containers: %v, %v", dbs, err)
	}
	if err := e.Container(dbs[0].ID, dbs[0].Name).Signal(context.Background(), "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	<-c.done
	after := only(t, results)
	if code := c.ProcessState.ExitCode(); code != 1 || windows(after.Events()) < kept || after.Summary().State == store.StateComplete {
		t.Errorf("exit code %d, %+v\n%s", code, after.Summary(), c.out.String())
	}
	if out := c.out.String(); !strings.Contains(out, "PostgreSQL is gone") {
		t.Errorf("the output does not say that the database is gone:\n%s", out)
	}
}
