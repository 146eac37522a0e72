package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// onDisk is a run with the raw files of one window on three hosts, and that
// window with its figures, which the log does not have yet.
func onDisk(t *testing.T) (*Store, WindowResult) {
	t.Helper()
	s := create(t, "a1")
	w, files := threeHosts(t)
	for name, data := range files {
		digest, err := s.WriteRaw(name, data)
		if err != nil {
			t.Fatal(err)
		}
		w.SHA256[name] = digest
	}
	figures, err := s.Measure(w)
	if err != nil {
		t.Fatal(err)
	}
	w.Measured = &figures
	return s, w
}

// measured is a run of one window on three hosts whose raw files are on disk.
func measured(t *testing.T) (*Store, WindowResult) {
	t.Helper()
	s, w := onDisk(t)
	appendAll(t, s, Event{Type: EventRunStarted}, Event{Type: EventVerify, Message: w.Candidate}, Event{Type: EventWindow, Window: &w}, Event{Type: EventRunEnded, Message: StateComplete})
	return s, w
}

// TestCheckRaw says of a damaged raw file which it is, how it is damaged and
// what to do.
func TestCheckRaw(t *testing.T) {
	s, w := measured(t)
	if err := s.CheckRaw(); err != nil {
		t.Fatal(err)
	}
	backwards := func(data []byte) []byte { // the last sample has less CPU time than the one before
		lines := bytes.SplitAfter(bytes.TrimRight(data, "\n"), []byte("\n"))
		last := lines[len(lines)-1]
		i := bytes.Index(last, []byte(`"usage_us":`)) + len(`"usage_us":`)
		end := i + bytes.IndexAny(last[i:], ",}")
		lines[len(lines)-1] = append(append(bytes.Clone(last[:i]), '1'), last[end:]...)
		return append(bytes.Join(lines, nil), '\n')
	}
	cases := map[string]struct {
		path   string
		damage func([]byte) []byte // nil removes the file
		words  []string
	}{
		"a missing output":         {w.OHA, nil, []string{"this raw file is missing;"}},
		"missing samples":          {w.OtherCGroup["db"], nil, []string{"this raw file is missing;"}},
		"an empty output":          {w.OtherOHA[0], func([]byte) []byte { return nil }, []string{"this raw file is empty;"}},
		"a shortened output":       {w.OHA, func(d []byte) []byte { return d[:100] }, []string{"digest differs", "cut off after 100 bytes"}},
		"an output that is text":   {w.OHA, func([]byte) []byte { return []byte("hello\n") }, []string{"digest differs", "not JSON"}},
		"another output":           {w.OHA, func(d []byte) []byte { return append(d, '\n') }, []string{"digest differs from the recorded one;"}},
		"samples cut in a line":    {w.CGroup, func(d []byte) []byte { return d[:len(d)-20] }, []string{"digest differs", "last line is cut off"}},
		"one sample":               {w.CGroup, func(d []byte) []byte { return d[:bytes.IndexByte(d, '\n')+1] }, []string{"at least two"}},
		"a counter going backward": {w.CGroup, backwards, []string{"went backwards"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			full := filepath.Join(s.Dir(), filepath.FromSlash(c.path))
			whole, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.WriteFile(full, whole, 0o644); err != nil {
					t.Error(err)
				}
			}()
			if c.damage == nil {
				os.Remove(full)
			} else if err := os.WriteFile(full, c.damage(bytes.Clone(whole)), 0o644); err != nil {
				t.Fatal(err)
			}
			err = s.CheckRaw()
			wantInput(t, err, append(c.words, full, "--no-verify", "restore it")...)
			if n := strings.Count(said.Err(err), c.path); n != 1 || strings.Contains(said.Err(err), "measure the window again") {
				t.Errorf("%d times the path, or a second remedy: %v", n, err)
			}
		})
	}
	if err := s.CheckRaw(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir(), RawDir)); err != nil {
		t.Fatal(err)
	}
	wantInput(t, s.CheckRaw(), "missing, and", "more raw files", w.OHA)
}

// TestProblemsNameTheFile: an error is said of the file that has it, and once.
func TestProblemsNameTheFile(t *testing.T) {
	s, w := measured(t)
	for _, path := range w.RawFiles() {
		full := filepath.Join(s.Dir(), filepath.FromSlash(path))
		whole, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{"", "hello\n"} {
			if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := s.Rederive()
			if err != nil || len(p) != 1 || p[0].Path != path || strings.Count(p[0].String(), path) != 1 {
				t.Errorf("%q in %s: %v, %v", data, path, p, err)
			}
		}
		os.Remove(full)
		if p, err := s.Rederive(); err != nil || len(p) != 1 || p[0].Path != path || strings.Count(p[0].String(), path) != 1 {
			t.Errorf("%s is missing: %v, %v", path, p, err)
		}
		if err := os.WriteFile(full, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerifyLog notices a log that has lost its beginning.
// TestLostFiles: what rests on a raw file that is gone is measured again, and the
// folder is whole from then on.
func TestLostFiles(t *testing.T) {
	block := func(w WindowResult) plan.BlockID {
		return plan.BlockID{Phase: w.Phase, Candidate: w.Candidate, Repetition: w.Repetition}
	}
	for name, lose := range map[string]func(w WindowResult, probe ProbeReading) string{
		"output":          func(w WindowResult, _ ProbeReading) string { return w.OHA },
		"another host's":  func(w WindowResult, _ ProbeReading) string { return w.OtherCGroup["db"] },
		"probe before it": func(_ WindowResult, p ProbeReading) string { return p.File },
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, "a1")
			w, files := threeHosts(t)
			probe := ProbeReading{Target: 10, Achieved: 10, Attempt: 1}
			probe.File = ProbePath(block(w), probe)
			var err error
			if probe.SHA256, err = s.WriteRaw(probe.File, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			for name, data := range files {
				if w.SHA256[name], err = s.WriteRaw(name, data); err != nil {
					t.Fatal(err)
				}
			}
			figures, err := s.Measure(w)
			if err != nil {
				t.Fatal(err)
			}
			w.Measured, w.Gates = &figures, []Gate{{Name: "probe", OK: true}}
			b := block(w)
			data, err := json.Marshal(probe)
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, s, Event{Type: EventProbe, Block: &b, Data: data}, Event{Type: EventWindow, Window: &w})
			if given, err := s.GiveUpDamaged(); err != nil || len(given) != 0 {
				t.Fatalf("nothing is lost: %v, %v", given, err)
			}
			path := lose(w, probe)
			if err := os.Remove(filepath.Join(s.Dir(), path)); err != nil {
				t.Fatal(err)
			}
			given, err := s.GiveUpDamaged()
			if err != nil || len(given) != 1 || given[0].Path != path || len(given[0].Attempts) != 1 {
				t.Fatalf("given up: %+v, %v", given, err)
			}
			again, err := Open(s.Dir())
			if err != nil {
				t.Fatal(err)
			}
			for what, s := range map[string]*Store{"at once": s, "opened again": again} {
				a := s.Attempts(w.Window)
				if len(a) != 1 || a[0].Passed() || a[0].Measured != nil || a[0].Error != path+": this raw file is missing" {
					t.Errorf("%s: attempts %+v", what, a)
				}
				if s.NextAttempt(w.Window) != 2 {
					t.Errorf("%s: next attempt %d", what, s.NextAttempt(w.Window))
				}
				if err := s.CheckRaw(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if p, err := s.Verify(); err != nil || len(p) != 0 {
					t.Errorf("%s: %v, %v", what, p, err)
				}
				if given, err := s.GiveUpDamaged(); what == "at once" && (err != nil || len(given) != 0) {
					t.Errorf("given up twice: %v, %v", given, err)
				}
			}
		})
	}
}

func TestVerifyLog(t *testing.T) {
	s, _ := measured(t)
	s.Close()
	name := filepath.Join(s.Dir(), EventsFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for want, log := range map[string][]byte{
		"": whole,
		"line 1 does not follow, first lines are lost":              bytes.Join(lines[1:], nil),
		"line 2 does not follow, contract check of go is not":       append(bytes.Clone(lines[0]), bytes.Join(lines[2:], nil)...),
		"line 1 does not follow, first lines are lost, contract of": bytes.Join(lines[2:], nil),
		"left out (4)": append(bytes.Clone(whole), whole...),
		"left out (1)": append(bytes.Clone(whole), lines[1]...),
	} {
		if err := os.WriteFile(name, log, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		p := r.VerifyLog()
		text := fmt.Sprint(p)
		for _, words := range strings.Split(want, ", ") {
			if want == "" && len(p) != 0 || len(p) != len(strings.Split(want, ", ")) && want != "" || !strings.Contains(text, strings.TrimSuffix(words, " of")) {
				t.Errorf("want %q: %v", want, p)
			}
		}
	}
	if p := create(t, "b1").VerifyLog(); len(p) != 0 {
		t.Errorf("of a run that has not begun: %v", p)
	}
}

// TestRunFileIsMissing tells a run without run.json from a folder that is none.
func TestRunFileIsMissing(t *testing.T) {
	s, _ := measured(t)
	if err := os.Remove(filepath.Join(s.Dir(), RunFile)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(s.Dir())
	wantInput(t, err, RunFile+" is missing", "restore it from a copy")
	_, err = Open(t.TempDir())
	wantInput(t, err, "this is not a results folder")
}

// BenchmarkCheckRaw holds the raw files of a run against their digests, of the
// sizes that windows of the full preset have.
func BenchmarkCheckRaw(b *testing.B) {
	const windows = 3000
	s := create(b, "a1")
	var log bytes.Buffer
	size := int64(0)
	for i := range windows {
		e := windowEvent(i+1, 1)
		e.Time = time.Now()
		w := e.Window
		w.OHA, w.CGroup, w.SHA256 = RawPath(w.Window, 1, RawOHA), RawPath(w.Window, 1, RawCGroup), map[string]string{}
		for path, n := range map[string]int{w.OHA: 4 << 10, w.CGroup: 200 << 10} {
			data := bytes.Repeat([]byte{byte(i)}, n)
			size += int64(n)
			w.SHA256[path] = digestOf(data)
			full := filepath.Join(s.Dir(), filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(full, data, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		line, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		log.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), EventsFile), log.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	s, err := Open(s.Dir())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		if err := s.CheckRaw(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/windows, "cpu-ns/window")
}
