package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_WRITER"); dir != "" {
		os.Exit(writeForever(dir))
	}
	os.Exit(m.Run())
}

func sampleRun(id string) Run {
	return Run{
		ID: id, Percore: "test", Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Seed: 1<<63 + 1,
		Profile: plan.Profile{Name: "small", Roles: map[plan.Role]plan.Resources{plan.App: {CPUs: "0-1", Memory: 1 << 30}}},
		Preset: plan.Preset{Name: "quick", Phases: []plan.Phase{
			{ID: "rate", Kind: plan.KindRate, Repetitions: 2, Connections: []int{256}, Targets: map[string]int{"read": 100}},
			{ID: "ceiling", Kind: plan.KindCeiling, Repetitions: 3, Connections: []int{16, 64}},
		}},
		Suite:      plan.Suite{Name: "oauth-events", Scenarios: []plan.Scenario{{ID: "read"}}, Candidates: []plan.Candidate{{ID: "go"}, {ID: "php-fpm"}}},
		Candidates: []string{"go", "php-fpm"}, Flavour: plan.FlavourDebian,
	}
}

func sampleWindow(rep int) plan.Window {
	return plan.Window{Phase: "ceiling", Kind: plan.KindCeiling, Candidate: "go", Scenario: "read", Repetition: rep, Connections: 64, Seconds: 15}
}

func windowEvent(rep, attempt int, gates ...Gate) Event {
	return Event{Type: EventWindow, Window: &WindowResult{Window: sampleWindow(rep), Attempt: attempt, Gates: gates, Measured: &measure.Window{Answered: 10, OK: 10}}}
}

func create(t testing.TB, id string) *Store {
	t.Helper()
	s, err := Create(t.TempDir(), sampleRun(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func appendAll(t testing.TB, s *Store, events ...Event) {
	t.Helper()
	for _, e := range events {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// wantInput checks that an error is bad input, one sentence, and holds words.
func wantInput(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("not one sentence of bad input: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(said.Err(err), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

func TestCreateAppendOpen(t *testing.T) {
	s := create(t, "a1")
	appendAll(t, s, Event{Type: EventRunStarted}, windowEvent(1, 1, Gate{Name: "steal"}), windowEvent(1, 2), windowEvent(2, 1))
	digest, err := s.WriteRaw(RawPath(sampleWindow(1), 1, RawOHA), []byte("x"))
	if err != nil || digest != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" {
		t.Fatalf("digest %s, %v", digest, err)
	}
	r, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if r.Run().Seed != 1<<63+1 || r.Run().Version != Version {
		t.Errorf("run.json: %+v", r.Run())
	}
	h := r.History()
	if len(h.Events) != 4 || len(h.Windows()) != 3 || len(h.Attempts(sampleWindow(1))) != 2 {
		t.Errorf("%d events, %d windows, %d attempts", len(h.Events), len(h.Windows()), len(h.Attempts(sampleWindow(1))))
	}
	if h.Events[0].Time.IsZero() {
		t.Error("an event without a time")
	}
	sum := r.Summary()
	if sum.State != StateRunning || sum.Done != 2 || sum.Planned != 16 || sum.GatesFailed != 1 {
		t.Errorf("summary %+v", sum)
	}
	appendAll(t, s, Event{Type: EventRunEnded, Message: StateComplete})
	s.Close()
	if r, err = Open(s.Dir()); err != nil || r.Summary().State != StateComplete {
		t.Errorf("state %v, %v", r.Summary().State, err)
	}
	if link, err := os.Readlink(filepath.Join(filepath.Dir(s.Dir()), "latest")); err != nil || link != "a1" {
		t.Errorf("latest -> %q, %v", link, err)
	}
}

func TestOnlyALockedStoreIsWritten(t *testing.T) {
	s := create(t, "a1")
	s.Close()
	r, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if r.Append(Event{Type: EventNote}) == nil || r.SaveRun(sampleRun("a1")) == nil {
		t.Error("written without a lock")
	}
	if _, err := r.WriteRaw("raw/x/y.json", nil); err == nil {
		t.Error("raw file written without a lock")
	}
}

func TestLockIsExclusive(t *testing.T) {
	s := create(t, "a1")
	other, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	wantInput(t, other.Lock(), s.Dir(), "another percore", fmt.Sprint(os.Getpid()))
	s.Close()
	if err := other.Lock(); err != nil {
		t.Errorf("free again, but %v", err)
	}
	other.Close()
}

func TestCreateTwiceIsRefused(t *testing.T) {
	s := create(t, "a1")
	_, err := Create(filepath.Dir(s.Dir()), sampleRun("a1"))
	wantInput(t, err, "a1", "exists")
	for _, id := range []string{"", "latest", "../x", "a/b", ".hidden", "-x"} {
		_, err := Create(t.TempDir(), sampleRun(id))
		wantInput(t, err, "no id for a run")
	}
}

func TestRawIsNeverOverwritten(t *testing.T) {
	s := create(t, "a1")
	name := RawPath(sampleWindow(1), 1, RawOHA)
	if name != "raw/ceiling/go_read_c64_r1_a1.oha.json" {
		t.Errorf("raw path %s", name)
	}
	if _, err := s.WriteRaw(name, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteRaw(name, []byte("second")); !errors.Is(err, fs.ErrExist) || !strings.Contains(said.Err(err), name) {
		t.Errorf("second write: %v", err)
	}
	if data, err := s.ReadRaw(name); err != nil || string(data) != "first" {
		t.Errorf("%q, %v", data, err)
	}
	for _, bad := range []string{"run.json", "raw/../run.json", "/etc/x", "raw", "../raw/x", "raw//x"} {
		if _, err := s.WriteRaw(bad, nil); err == nil {
			t.Errorf("%s was written", bad)
		}
	}
	entries, _ := os.ReadDir(filepath.Join(s.Dir(), "raw", "ceiling"))
	if len(entries) != 1 {
		t.Errorf("temporary files left: %v", entries)
	}
}

func TestAttemptNumbersAreNeverReused(t *testing.T) {
	s := create(t, "a1")
	w := sampleWindow(1)
	next := func() int { return s.NextAttempt(w) }
	if next() != 1 {
		t.Errorf("first attempt is %d", next())
	}
	appendAll(t, s, windowEvent(1, 1))
	if next() != 2 {
		t.Errorf("after an event: %d", next())
	}
	// Killed between the raw file and the event.
	if _, err := s.WriteRaw(RawPath(w, 4, RawCGroup), nil); err != nil {
		t.Fatal(err)
	}
	if next() != 5 {
		t.Errorf("after a raw file without event: %d", next())
	}
	w.Repetition = 10 // _r1 is the beginning of _r10
	if next() != 1 {
		t.Errorf("another repetition: %d", next())
	}
}

// TestTornLine cuts the log at every byte of its last line, as a kill may, and
// goes on from there.
func TestTornLine(t *testing.T) {
	s := create(t, "a1")
	appendAll(t, s, windowEvent(1, 1), windowEvent(2, 1), windowEvent(3, 1))
	s.Close()
	name := filepath.Join(s.Dir(), EventsFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut <= len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want := 2
		if cut >= len(whole)-1 {
			want = 3 // at most the newline is missing
		}
		s, err := Open(s.Dir())
		if err != nil || len(s.Events()) != want {
			t.Fatalf("cut at %d: %d events, %v", cut, len(s.Events()), err)
		}
		if err := s.Lock(); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		appendAll(t, s, windowEvent(4, 1), windowEvent(5, 1))
		s.Close()
		again, err := Open(s.Dir())
		if err != nil || len(again.Events()) != want+2 {
			t.Fatalf("cut at %d, carried on: %d events, %v", cut, len(again.Events()), err)
		}
		if data, _ := os.ReadFile(name); !bytes.HasPrefix(data, whole[:cut]) {
			t.Fatalf("cut at %d: what the kill left has been changed", cut)
		}
	}
}

// TestTornTwice kills the repair itself.
func TestTornTwice(t *testing.T) {
	s := create(t, "a1")
	appendAll(t, s, windowEvent(1, 1))
	s.Close()
	name := filepath.Join(s.Dir(), EventsFile)
	whole, _ := os.ReadFile(name)
	torn := append(append([]byte(nil), whole...), `{"time":"20`...)
	if err := os.WriteFile(name, torn, 0o644); err != nil {
		t.Fatal(err)
	}
	lock := func() {
		t.Helper()
		s, err := Open(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Lock(); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Events()); n != 1 {
			t.Fatalf("%d events", n)
		}
		s.Close()
	}
	lock()
	repaired, _ := os.ReadFile(name)
	for cut := len(torn) + 2; cut < len(repaired); cut++ {
		if err := os.WriteFile(name, repaired[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		lock()
		lock()
	}
}

func TestDamagedLogs(t *testing.T) {
	s := create(t, "a1")
	appendAll(t, s, windowEvent(1, 1), windowEvent(2, 1), windowEvent(3, 1))
	s.Close()
	name := filepath.Join(s.Dir(), EventsFile)
	whole, _ := os.ReadFile(name)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for what, c := range map[string]struct {
		line int
		text string
	}{
		"cut in the middle":   {2, string(lines[1][:20]) + "\n"},
		"text":                {1, "hello\n"},
		"not an event":        {2, "{}\n"},
		"array":               {3, "[1]\n"},
		"no window":           {2, `{"time":"2026-01-01T00:00:00Z","type":"window"}` + "\n"},
		"attempt 0":           {2, `{"time":"2026-01-01T00:00:00Z","type":"window","window":{"phase":"x"}}` + "\n"},
		"repair of elsewhere": {2, "abc\n" + `{"time":"2026-01-01T00:00:00Z","type":"torn","data":{"offset":1,"bytes":2}}` + "\n"},
	} {
		bad := append([][]byte(nil), lines...)
		bad[c.line-1] = []byte(c.text)
		if err := os.WriteFile(name, bytes.Join(bad, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(s.Dir())
		t.Run(what, func(t *testing.T) { wantInput(t, err, fmt.Sprintf("%s, line %d:", name, c.line), "damaged", "restore") })
		sums, err := List(filepath.Dir(s.Dir()))
		if err != nil || len(sums) != 1 || sums[0].Problem == "" || sums[0].Profile != "small" {
			t.Errorf("%s: listed as %+v, %v", what, sums, err)
		}
	}
	// Blank lines at the end are an editor's, not damage.
	if err := os.WriteFile(name, append(whole, "\n\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Dir()); err != nil {
		t.Error(err)
	}
	os.Remove(name)
	_, err := Open(s.Dir())
	wantInput(t, err, name, "missing")
}

func TestBadFolders(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"))
	wantInput(t, err, "none", "no such")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file)
	wantInput(t, err, file, "is a file")
	_, err = Open(dir)
	wantInput(t, err, dir, "no run.json")
	for text, words := range map[string][]string{
		"":                                       {"empty"},
		"  \n":                                   {"empty"},
		"{\n\"version\": 1,\n\"id\": \"a":        {"line 3", "copy"},
		"not JSON":                               {"line 1"},
		`{"a": 1}`:                               {"no layout version"},
		`{"version": 3, "percore": "v9"}`:        {"version 3", "version 2", "percore v9"},
		`{"version": 0}`:                         {"version 0"},
		`{"version": 1}`:                         {"not the id"},
		`{"version": 1, "id": "x", "seed": "y"}`: {"line 1"},
		`{"version": "1"}`:                       {"line 1"},
		`[]`:                                     {"line 1"},
	} {
		if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		wantInput(t, err, append(words, RunFile)...)
	}
}

func TestVerify(t *testing.T) {
	s := create(t, "a1")
	var last Event
	for rep := 1; rep <= 4; rep++ {
		e := windowEvent(rep, 1)
		e.Window.OHA = RawPath(e.Window.Window, 1, RawOHA)
		digest, err := s.WriteRaw(e.Window.OHA, []byte(fmt.Sprint(rep)))
		if err != nil {
			t.Fatal(err)
		}
		e.Window.SHA256 = map[string]string{e.Window.OHA: digest}
		appendAll(t, s, e)
		last = e
	}
	if p, err := s.Verify(); err != nil || len(p) != 0 {
		t.Fatalf("%v, %v", p, err)
	}
	at := func(rep int) string {
		return filepath.Join(s.Dir(), RawPath(sampleWindow(rep), 1, RawOHA))
	}
	if err := errors.Join(os.WriteFile(at(1), []byte("changed"), 0o644), os.Remove(at(2))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteRaw("raw/ceiling/orphan.json", nil); err != nil {
		t.Fatal(err)
	}
	// What a file manager and a copy to another file system leave, and a write
	// that was cut off.
	for _, name := range []string{".DS_Store", "ceiling/._go_read_c64_r1_a1.oha.json", "ceiling/Thumbs.db", "ceiling/.x.oha.json.tmp-k3"} {
		if err := os.WriteFile(filepath.Join(s.Dir(), RawDir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	appendAll(t, s, last) // the same attempt again
	p, err := s.Verify()
	if err != nil || len(p) != 8 {
		t.Fatalf("%v, %v", p, err)
	}
	text := fmt.Sprint(p)
	for _, w := range []string{"digest differs", "missing", "orphan.json: no event names", "twice", "raw/.DS_Store: this file is not one of percore's", "._go_read_c64_r1_a1.oha.json: this file is not", "Thumbs.db: this file is not", ".x.oha.json.tmp-k3: percore was killed while"} {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in %s", w, text)
		}
	}
}

func TestFind(t *testing.T) {
	results := t.TempDir()
	for i, id := range []string{"20261130-a", "20261130-b", "20261201-c"} {
		run := sampleRun(id)
		run.Started = run.Started.Add(time.Duration(-i) * time.Hour)
		s, err := Create(results, run)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	for arg, want := range map[string]string{
		"20261130-b": "20261130-b", "202612": "20261201-c", "latest": "20261130-a",
		filepath.Join(results, "20261201-c"): "20261201-c",
	} {
		if got, err := Find(results, arg); err != nil || got != filepath.Join(results, want) {
			t.Errorf("%s -> %s, %v", arg, got, err)
		}
	}
	_, err := Find(results, "20261130")
	wantInput(t, err, "2 runs", "20261130-a", "20261130-b")
	_, err = Find(results, "nothing")
	wantInput(t, err, "nothing", "percore ls")
	_, err = Find(results, os.DevNull)
	wantInput(t, err, os.DevNull+": this is not a folder", "percore ls")
	_, err = Find(results, "/no/such/folder")
	wantInput(t, err, "/no/such/folder")
	_, err = Find(results, "")
	wantInput(t, err, "latest")
	_, err = Find(t.TempDir(), "latest")
	wantInput(t, err, "no run")
	sums, err := List(results)
	if err != nil || len(sums) != 3 || sums[0].ID != "20261201-c" {
		t.Errorf("%+v, %v", sums, err)
	}
	if sums, err := List(filepath.Join(results, "none")); err != nil || len(sums) != 0 {
		t.Errorf("%v, %v", sums, err)
	}
}

func TestCheckResume(t *testing.T) {
	s := create(t, "a1")
	if err := s.CheckResume(sampleRun("other")); err != nil {
		t.Fatal(err)
	}
	for word, change := range map[string]func(*Run){
		"profile.roles.app.cpus":       func(r *Run) { r.Profile.Roles = map[plan.Role]plan.Resources{plan.App: {CPUs: "0-2"}} },
		"preset.phases[1].connections": func(r *Run) { r.Preset.Phases[1].Connections = []int{16} },
		"candidates":                   func(r *Run) { r.Candidates = []string{"go"} },
		"flavour":                      func(r *Run) { r.Flavour = plan.FlavourPublished },
		"seed":                         func(r *Run) { r.Seed++ },
	} {
		run := sampleRun("a1")
		change(&run)
		wantInput(t, s.CheckResume(run), word, "a1", "new run")
	}
}

func TestDiskErrors(t *testing.T) {
	for err, want := range map[error]string{
		&os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}: "free space",
		&os.PathError{Op: "write", Path: "/x", Err: syscall.EACCES}: "writable",
		errors.New("other"): "other",
	} {
		got := diskError("writing", "/d/f", err)
		if !strings.Contains(said.Err(got), want) || !strings.Contains(got.Error(), "/d/f") || strings.Contains(got.Error(), "/x") {
			t.Errorf("%v", got)
		}
	}
}

// writeForever is a driver that measures until it is killed: a raw file, then
// its event, then the number on standard output, which says that both are on
// disk.
func writeForever(dir string) int {
	s, err := Open(dir)
	if err == nil {
		err = s.Lock()
	}
	w := sampleWindow(1)
	for err == nil {
		n := s.NextAttempt(w)
		e := windowEvent(1, n)
		e.Window.OHA = RawPath(w, n, RawOHA)
		var digest string
		if digest, err = s.WriteRaw(e.Window.OHA, bytes.Repeat([]byte(strconv.Itoa(n)+"\n"), 5000)); err != nil {
			break
		}
		e.Window.SHA256 = map[string]string{e.Window.OHA: digest}
		e.Message = strings.Repeat("x", 200+n%5000)
		if err = s.Append(e); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestKill kills a writing process again and again. Whatever it said was on
// disk is there, whole, and the next one carries on.
func TestKill(t *testing.T) {
	s := create(t, "a1")
	s.Close()
	acknowledged := 0
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STORE_TEST_WRITER="+s.Dir())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		stop := rand.IntN(12)
		for n := 0; n <= stop; n++ {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("round %d: the writer ended by itself: %s", round, stderr.String())
			}
			if acknowledged, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(in)
		for _, line := range strings.Fields(string(rest)) {
			acknowledged, _ = strconv.Atoi(line)
		}
		_ = cmd.Wait()

		r, err := Open(s.Dir())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		seen := map[int]bool{}
		for _, w := range r.History().Windows() {
			if seen[w.Attempt] {
				t.Fatalf("round %d: attempt %d is there twice", round, w.Attempt)
			}
			seen[w.Attempt] = true
		}
		if acknowledged > 0 && !seen[acknowledged] {
			t.Fatalf("round %d: attempt %d was said to be on disk and is lost", round, acknowledged)
		}
		problems, err := r.Verify()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Fatal {
				t.Fatalf("round %d: %v", round, p)
			}
		}
	}
	if acknowledged < 8 {
		t.Errorf("only %d attempts were written", acknowledged)
	}
}

func FuzzEvents(f *testing.F) {
	s := create(f, "a1")
	appendAll(f, s, Event{Type: EventRunStarted}, windowEvent(1, 1), windowEvent(2, 1), Event{Type: EventRunEnded, Message: StateComplete})
	log, _ := os.ReadFile(filepath.Join(s.Dir(), EventsFile))
	f.Add(log)
	f.Add(log[:len(log)-9])
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parseEvents("fuzz", bytes.NewReader(data))
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		if h.end > int64(len(data)) {
			t.Fatalf("ends at %d of %d bytes", h.end, len(data))
		}
		for _, w := range h.Windows() {
			if len(h.Attempts(w.Window)) == 0 || w.Attempt > h.last[w.Key()] {
				t.Fatalf("a window that cannot be found: %v", w.Window)
			}
		}
		// Whatever can be read can be carried on with.
		last := byte('\n')
		if h.end > 0 {
			last = data[h.end-1]
		}
		missing, tail, err := repairs(int64(len(data)), h, last)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseEvents("fuzz", bytes.NewReader(append(bytes.Clone(data), missing...)))
		if err != nil || len(again.Events) != len(h.Events) {
			t.Fatalf("after a repair: %d of %d events, %v", len(again.Events), len(h.Events), err)
		}
		if again.tail != tail || len(again.broken) != len(h.broken) {
			t.Fatalf("a repair breaks the chain: %v, %v", h.broken, again.broken)
		}
	})
}

func FuzzRun(f *testing.F) {
	s := create(f, "a1")
	data, _ := os.ReadFile(filepath.Join(s.Dir(), RunFile))
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := parseRun("fuzz", data)
		switch {
		case err != nil && !fail.IsInput(err):
			t.Fatalf("not bad input: %v", err)
		case err == nil && (run.Version != Version || run.ID == ""):
			t.Fatalf("read as a run: %+v", run)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := create(b, "a1")
			line := bytes.Buffer{}
			for i := range n {
				e := windowEvent(i+1, 1, Gate{Name: "probe", OK: true, Reading: 1, Limit: 0.99, Unit: "share"}, Gate{Name: "steal", OK: true, Limit: 0.01})
				e.Time = time.Now()
				data, _ := json.Marshal(e)
				line.Write(append(data, '\n'))
			}
			if err := os.WriteFile(filepath.Join(s.Dir(), EventsFile), line.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(line.Len()))
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				if r, err := Open(s.Dir()); err != nil || len(r.Events()) != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/event")
		})
	}
}

// cpuTime is the CPU time of this process, which a busy machine does not
// stretch.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRunElsewhere: a run that was moved to another disk and linked is a run
// like the others, and so is one whose raw files alone were moved.
func TestRunElsewhere(t *testing.T) {
	results, elsewhere := t.TempDir(), t.TempDir()
	s, err := Create(elsewhere, Run{ID: "20260101-000000-small", Started: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	e := windowEvent(1, 1)
	e.Window.OHA = RawPath(sampleWindow(1), 1, RawOHA)
	digest, err := s.WriteRaw(e.Window.OHA, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	e.Window.SHA256 = map[string]string{e.Window.OHA: digest}
	appendAll(t, s, e)
	s.Close()
	if err := os.Symlink(s.Dir(), filepath.Join(results, s.Run().ID)); err != nil {
		t.Skip(err)
	}
	other := filepath.Join(t.TempDir(), "raw")
	if err := errors.Join(os.Rename(filepath.Join(s.Dir(), RawDir), other), os.Symlink(other, filepath.Join(s.Dir(), RawDir)), os.WriteFile(filepath.Join(other, "orphan.json"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	runs, err := List(results)
	if err != nil || len(runs) != 1 || runs[0].Problem != "" {
		t.Errorf("%+v, %v", runs, err)
	}
	for _, name := range []string{latest, "2026", s.Run().ID} {
		dir, err := Find(results, name)
		if err != nil || dir != filepath.Join(results, s.Run().ID) {
			t.Errorf("%s: %s, %v", name, dir, err)
			continue
		}
		found, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := found.Verify(); err != nil || len(p) != 1 || p[0].Path != "raw/orphan.json" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if err := errors.Join(os.Symlink(s.Run().ID, filepath.Join(results, latest)), os.Symlink("nowhere", filepath.Join(results, "gone"))); err != nil {
		t.Fatal(err)
	}
	if runs, err := List(results); err != nil || len(runs) != 1 {
		t.Errorf("beside other links: %+v, %v", runs, err)
	}
}
