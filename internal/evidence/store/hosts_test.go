package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
	"github.com/percore/percore/internal/testkit/cgtrees"
	"github.com/percore/percore/internal/testkit/said"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// oneHost is seven samples of app, db and user on one host.
func oneHost(t testing.TB) []byte {
	t.Helper()
	return cgtest.Work(t, cgtrees.Samples(t, "v2"), map[string]int64{"app": 25_000, "db": 10_000, "user": 7000})
}

// threeHosts is an attempt that was measured on an app host, a database host
// whose clock is ahead, and two load hosts: a sample file of one host split by
// container, and its raw files by path.
func threeHosts(t testing.TB) (WindowResult, map[string][]byte) {
	t.Helper()
	one := oneHost(t)
	s, err := cgroup.ReadSeries(bytes.NewReader(one), "one")
	if err != nil {
		t.Fatal(err)
	}
	w := WindowResult{Window: sampleWindow(1), Attempt: 1, SHA256: map[string]string{},
		Start: time.Unix(0, s.First().T).Add(10 * time.Millisecond), End: time.Unix(0, s.Last().T).Add(-10 * time.Millisecond)}
	w.Seconds = 0.25
	w.Hosts = []HostReading{
		{Host: "app", Roles: []plan.Role{plan.App}, ClockOffsetMS: -1},
		{Host: "db", Roles: []plan.Role{plan.DB}, ClockOffsetMS: 3},
		{Host: "load", Roles: []plan.Role{plan.Load}},
		{Host: "load2", Roles: []plan.Role{plan.Load}, ClockOffsetMS: 0.5},
	}
	files := map[string][]byte{}
	put := func(ending string, data []byte) string {
		name := RawPath(w.Window, 1, ending)
		files[name] = data
		return name
	}
	oha := readFile(t, "../oha/testdata/half.json")
	w.OHA = put(RawOHA, oha)
	w.OtherOHA = []string{put("load2."+RawOHA, oha)}
	w.CGroup = put(RawCGroup, cgtest.Split(t, one, cgtest.Host{Containers: map[string]string{"app": "app"}, Ahead: -time.Millisecond}))
	w.OtherCGroup = map[string]string{
		"db":    put("db."+RawCGroup, cgtest.Split(t, one, cgtest.Host{Containers: map[string]string{"db": "db"}, Ahead: 3 * time.Millisecond})),
		"load":  put("load."+RawCGroup, cgtest.Split(t, one, cgtest.Host{Containers: map[string]string{"user": "load"}})),
		"load2": put("load2."+RawCGroup, cgtest.Split(t, one, cgtest.Host{Containers: map[string]string{"user": "load"}, Ahead: 500 * time.Microsecond})),
	}
	return w, files
}

// TestFiguresOfSeveralHosts: they are those of one host, and of two generators.
func TestFiguresOfSeveralHosts(t *testing.T) {
	w, files := threeHosts(t)
	read := func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		return nil, fmt.Errorf("%s: no such file", name)
	}
	of := func(w WindowResult) Evidence {
		t.Helper()
		e, err := ReadEvidence(w, read)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one := w
	one.OtherOHA, one.OtherCGroup, one.Hosts = nil, nil, nil
	one.CGroup = "one"
	files["one"] = oneHost(t)
	single, err := of(one).Figures()
	if err != nil {
		t.Fatal(err)
	}
	e := of(w)
	got, err := e.Figures()
	if err != nil {
		t.Fatal(err)
	}
	if got.AppCores != single.AppCores || got.DBCores != single.DBCores || got.PeakBytes != single.PeakBytes || got.Samples != single.Samples || got.Answered != 2*single.Answered ||
		got.Achieved != 2*single.Achieved || got.AppCPUUS != single.AppCPUUS/2 || got.P999MS != single.P999MS || got.AppCores == 0 || got.DBCores == 0 || got.LoadCores == 0 {
		t.Errorf("several hosts give\n%+v, one gives\n%+v", got, single)
	}
	if len(got.Generators) != 2 || got.Generators[0].Host != "load" || got.Generators[1].Host != "load2" || single.Generators != nil {
		t.Errorf("generators %+v", got.Generators)
	}
	var hosts []string
	for _, h := range e.Hosts {
		hosts = append(hosts, fmt.Sprint(h.Host, h.Roles, h.Ahead))
	}
	if want := "[app[app] -1ms db[db] 3ms load[load] 0s load2[load] 500µs]"; fmt.Sprint(hosts) != want {
		t.Errorf("hosts %v, want %s", hosts, want)
	}
	if h, ok := e.Of("db"); !ok || h.Host != "db" {
		t.Errorf("the database was sampled on %+v", h)
	}
	if path, ahead := w.SamplesOf(plan.DB); path != w.OtherCGroup["db"] || ahead != 3*time.Millisecond {
		t.Errorf("samples of the database in %s, %v", path, ahead)
	}
	if path, _ := one.SamplesOf(plan.DB); path != "one" || one.Samples("x") != "one" || w.Samples("app") != w.CGroup || w.Samples("nobody") != "" {
		t.Errorf("samples of the database in %s", path)
	}

	// A sampler that ran on for a minute changes nothing where there are several
	// hosts.
	whole := map[string][]byte{}
	for name, data := range files {
		whole[name] = data
		if strings.HasSuffix(name, RawCGroup) || name == "one" {
			files[name] = cgtest.RunOn(t, data, 60)
		}
	}
	again, err := of(w).Figures()
	if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
		t.Errorf("with samplers that ran on %+v, %v, want\n%+v", again, err, got)
	}
	// What one host measured is read to its end, as it always was.
	if ran, err := of(one).Figures(); err != nil || ran.AppCores-single.AppCores < 200 {
		t.Errorf("one host gives %+v, %v", ran, err)
	}

	for name, path := range map[string]string{"the second generator": w.OtherOHA[0], "the database host": w.OtherCGroup["db"]} {
		for what, data := range map[string][]byte{"cut off": whole[path][:10], "missing": nil} {
			files[path] = data
			if data == nil {
				delete(files, path)
			}
			if _, err := ReadEvidence(w, read); err == nil || !strings.Contains(said.Err(err), path) {
				t.Errorf("the file of %s is %s: %v", name, what, err)
			}
		}
		files[path] = whole[path]
	}
	w.CGroup = ""
	if _, err := ReadEvidence(w, read); err == nil || !strings.Contains(said.Err(err), "db, load, load2") {
		t.Errorf("without the app's samples: %v", err)
	}
}

// TestGeneratorsWithoutHosts names them by their number where the log has no
// hosts.
func TestGeneratorsWithoutHosts(t *testing.T) {
	w, _ := threeHosts(t)
	w.Hosts = nil
	if got := w.generatorHosts(); !slices.Equal(got, []string{"load", "load2"}) {
		t.Errorf("%v", got)
	}
}

// TestFilesOfSeveralHostsAreChecked: digests and figures of every file.
func TestFilesOfSeveralHostsAreChecked(t *testing.T) {
	s, w := onDisk(t)
	_, files := threeHosts(t)
	appendAll(t, s, Event{Type: EventWindow, Window: &w})
	r, err := Open(s.Dir()) // as it comes back from the log
	if err != nil {
		t.Fatal(err)
	}
	check := func(verify, rederive int) string {
		t.Helper()
		a, err1 := r.Verify()
		b, err2 := r.Rederive()
		if err1 != nil || err2 != nil || len(a) != verify || len(b) != rederive {
			t.Errorf("problems %v, %v; %v, %v", a, err1, b, err2)
		}
		return fmt.Sprint(a, b)
	}
	check(0, 0)
	if n := len(w.RawFiles()); n != len(files) || r.NextAttempt(w.Window) != 2 {
		t.Errorf("%d of %d files, next attempt %d", n, len(files), r.NextAttempt(w.Window))
	}
	for path := range files {
		name := filepath.Join(s.Dir(), filepath.FromSlash(path))
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if text := check(1, 1); !strings.Contains(text, path) {
			t.Errorf("%s is missing: %s", path, text)
		}
		changed := bytes.Replace(files[path], []byte(`"usage_us":`), []byte(`"usage_us":1`), 1)
		if strings.HasSuffix(path, RawOHA) {
			changed = bytes.Replace(files[path], []byte(`"200": `), []byte(`"200": 9`), 1)
		}
		if err := os.WriteFile(name, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		check(1, 1)
		if err := os.WriteFile(name, files[path], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WriteRaw(RawPath(w.Window, 2, "db."+RawCGroup), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if text := check(1, 0); !strings.Contains(text, "no event names") || r.NextAttempt(w.Window) != 3 {
		t.Errorf("%s, next attempt %d", text, r.NextAttempt(w.Window))
	}
}

// TestRunOfMachinesThatAreThere: the folder of machines becomes the run's, also
// when a driver was killed while it made it so.
func TestRunOfMachinesThatAreThere(t *testing.T) {
	leave := map[string]func(dir string) error{
		"nothing":     func(string) error { return nil },
		"raw":         func(dir string) error { return os.Mkdir(filepath.Join(dir, RawDir), 0o755) },
		"lock":        func(dir string) error { return os.WriteFile(filepath.Join(dir, lockFile), []byte("1\n"), 0o644) },
		"events":      func(dir string) error { return os.WriteFile(filepath.Join(dir, EventsFile), nil, 0o644) },
		"half a file": func(dir string) error { return os.WriteFile(filepath.Join(dir, ".run.json.tmp-1"), []byte("{"), 0o644) },
	}
	leave["all of them"] = func(dir string) error {
		return errors.Join(leave["raw"](dir), leave["lock"](dir), leave["events"](dir), leave["half a file"](dir))
	}
	for name, left := range leave {
		t.Run(name, func(t *testing.T) {
			results := t.TempDir()
			dir := filepath.Join(results, "a1")
			state := filepath.Join(dir, CloudDir, "state")
			if err := errors.Join(os.MkdirAll(filepath.Dir(state), 0o700), os.WriteFile(state, []byte("machines"), 0o600), left(dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir); err == nil || !strings.Contains(said.Err(err), "percore cloud status a1") {
				t.Errorf("opened before it is a run: %v", err)
			}
			all, err := List(results)
			if err != nil || len(all) != 1 || all[0].ID != "a1" || all[0].State != StateNotMeasured || all[0].Problem != "" || all[0].Started.IsZero() {
				t.Errorf("listed as %+v, %v", all, err)
			}
			_, err = Find(results, latest)
			wantInput(t, err, "no run")

			s, err := Create(results, sampleRun("a1"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Dir() != dir || string(readFile(t, state)) != "machines" {
				t.Errorf("run in %s", s.Dir())
			}
			if _, err := s.WriteRaw(RawPath(sampleWindow(1), 1, RawOHA), []byte("x")); err != nil {
				t.Error(err)
			}
			appendAll(t, s, Event{Type: EventRunStarted})
			_, err = Create(results, sampleRun("a1"))
			wantInput(t, err, "exists already")
			r, err := Open(dir)
			if err != nil || len(r.Events()) != 1 || r.Run().Seed != sampleRun("a1").Seed {
				t.Errorf("opened %+v, %v", r, err)
			}
			if found, err := Find(results, latest); err != nil || found != dir {
				t.Errorf("latest is %s, %v", found, err)
			}
			if link, err := os.Readlink(filepath.Join(results, latest)); err != nil || link != "a1" {
				t.Errorf("latest -> %s, %v", link, err)
			}
			if all, err := List(results); err != nil || len(all) != 1 || all[0].State != StateRunning {
				t.Errorf("listed as %+v, %v", all, err)
			}
		})
	}
}

// TestFolderThatHoldsMore is nobody's to make a run of.
func TestFolderThatHoldsMore(t *testing.T) {
	for name, put := range map[string]string{
		"a file": "notes.txt", "a log": EventsFile, "a raw file": RawDir + "/rate/x.oha.json", "a report": "report.html", "a damaged run": RunFile,
	} {
		results := t.TempDir()
		file := filepath.Join(results, "a1", filepath.FromSlash(put))
		if err := errors.Join(os.MkdirAll(filepath.Join(results, "a1", CloudDir), 0o755), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, err := Create(results, sampleRun("a1"))
		wantInput(t, err, "exists already")
		if string(readFile(t, file)) != "{}" {
			t.Errorf("%s was changed", name)
		}
	}
	results := t.TempDir()
	if err := os.Mkdir(filepath.Join(results, "a1"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Create(results, sampleRun("a1")) // an empty folder has no machines
	wantInput(t, err, "exists already")
}

// TestTwoMakeOneRun: of processes that make a run of the same folder one wins.
func TestTwoMakeOneRun(t *testing.T) {
	results := t.TempDir()
	if err := os.MkdirAll(filepath.Join(results, "a1", CloudDir), 0o755); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			s, err := Create(results, sampleRun("a1"))
			if err == nil {
				t.Cleanup(func() { s.Close() })
			}
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			won++
		} else {
			wantInput(t, err, "a1")
		}
	}
	if won != 1 {
		t.Errorf("%d made the run", won)
	}
}

// TestProbeOfSeveralGenerators: the reading rests on the outputs of all.
func TestProbeOfSeveralGenerators(t *testing.T) {
	run := sampleRun("a1")
	run.Preset.Probe = plan.Probe{Window: plan.Duration(time.Second), Target: 30_000}
	s, err := Create(t.TempDir(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := plan.BlockID{Phase: "rate", Candidate: "go", Repetition: 1}
	data := readFile(t, "../oha/testdata/half.json")
	r := ProbeReading{Target: 30_000, Achieved: 2 * 18472, Attempt: 1, Others: map[string]string{}}
	r.File = ProbePath(b, r)
	second := OtherProbePath(b, r, 2)
	if r.SHA256, err = s.WriteRaw(r.File, data); err != nil {
		t.Fatal(err)
	}
	if r.Others[second], err = s.WriteRaw(second, data); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, Event{Type: EventProbe, Block: &b, Data: text})
	if p, err := s.Verify(); err != nil || len(p) != 0 {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := s.Rederive(); err != nil || len(p) != 0 {
		t.Errorf("%v, %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), filepath.FromSlash(second)), bytes.Replace(data, []byte(`"200": `), []byte(`"200": 9`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	verified, _ := s.Verify()
	derived, _ := s.Rederive()
	if len(verified) != 1 || verified[0].Path != second || len(derived) != 1 {
		t.Errorf("%v, %v", verified, derived)
	}
}
