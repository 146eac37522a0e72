package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/cgroup"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/store"
	"github.com/percore/percore/internal/study"
)

const studyDir = "../study/testdata/php-go-bench/results/2026-09-16"

func readStudy(t testing.TB) *study.Study {
	t.Helper()
	s, err := study.Read(studyDir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// convert writes the study's raw data as a percore run, with everything that
// can happen to one: windows that a gate failed and that were measured again,
// one that never passed, a waived gate, an attempt that broke off and a block
// that failed.
func convert(t testing.TB, results string) *store.Store {
	t.Helper()
	old := readStudy(t)
	run := old.Run
	run.ID, run.Percore, run.Seed, run.Flavour = "20261130-120000-test", "v0-test", 42, profile.FlavourDebian
	run.Comparable = false
	run.Caveats = []string{"flavour debian: PHP 8.2 and Debian's packages stand in for the study's versions"}
	run.FsyncPerSec = map[string]float64{"fdatasync": 2345.6, "open_datasync": 1999.4}
	run.Ended = nil
	for i := range run.Suite.Candidates {
		if c := &run.Suite.Candidates[i]; c.ID == "frankenphp" {
			c.Title = map[profile.Flavour]string{profile.FlavourDebian: "FrankenPHP library behind net/http"}
		}
	}
	s, err := store.Create(results, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	clock := run.Started
	add := func(e store.Event) {
		t.Helper()
		clock = clock.Add(time.Second)
		e.Time = clock
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	raw := func(name string, data []byte) string {
		t.Helper()
		digest, err := s.WriteRaw(name, data)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(studyDir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	steal := func(v float64) store.Gate {
		return store.Gate{Name: "steal", OK: v <= 0.01, Reading: v, Limit: 0.01, Unit: "share of CPU time"}
	}
	cores := store.Gate{Name: "cores", Reading: 1, Unit: "shared CPUs", Detail: "app on 0, load on 0-1", Waived: "the profile shares cores between roles"}

	add(store.Event{Type: store.EventRunStarted})
	for _, p := range old.Probes {
		reading := p.Reading
		reading.File = store.ProbePath(p.Block, 1)
		raw(reading.File, read(p.Reading.File))
		data, err := json.Marshal(reading)
		if err != nil {
			t.Fatal(err)
		}
		add(store.Event{Type: store.EventProbe, Block: &p.Block, Data: data})
	}
	measure := func(w store.WindowResult, attempt int, gates ...store.Gate) {
		t.Helper()
		from := w
		w.Attempt, w.Gates, w.SHA256, w.CGroup = attempt, gates, map[string]string{}, ""
		w.OHA = store.RawPath(w.Window, attempt, store.RawOHA)
		w.SHA256[w.OHA] = raw(w.OHA, read(from.OHA))
		if from.CGroup != "" {
			w.CGroup = store.RawPath(w.Window, attempt, store.RawCGroup)
			w.SHA256[w.CGroup] = raw(w.CGroup, samples(t, read(from.CGroup)))
		}
		figures, err := s.Measure(w)
		if err != nil {
			t.Fatal(err)
		}
		w.Measured = &figures
		add(store.Event{Type: store.EventWindow, Window: &w})
	}
	for _, w := range old.Windows {
		switch {
		case w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 2: // passes the second time
			measure(w, 1, steal(0.034), cores)
			measure(w, 2, steal(0), cores)
		case w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 5: // never passes
			measure(w, 1, steal(0.05), cores)
			measure(w, 2, steal(0.02), cores)
			measure(w, 3, steal(0.011), cores)
		case w.Candidate == "frankenphp" && w.Repetition == 1: // breaks off, then goes well
			broken := store.WindowResult{Window: w.Window, Attempt: 1, Error: "the load generator was killed for memory"}
			add(store.Event{Type: store.EventWindow, Window: &broken})
			measure(w, 2, steal(0), cores)
		case w.Candidate == "php-fpm" && w.Kind == profile.KindRate: // no evidence at all
			measure(w, 1, steal(0.2), cores)
		default:
			measure(w, 1, steal(0.001), cores)
		}
	}
	add(store.Event{Type: store.EventBlockFailed, Block: &store.Block{Phase: "rate", Candidate: "frankenphp", Repetition: 1}, Error: "the candidate never became ready: its log ends with\nno such file"})
	add(store.Event{Type: store.EventRunEnded, Message: store.StateInterrupted})
	return s
}

// samples rewrites the study's samples in percore's format.
func samples(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	in := bufio.NewScanner(bytes.NewReader(data))
	for in.Scan() {
		var x struct {
			T       int64 `json:"t"`
			AppCPU  int64 `json:"app_cpu"`
			AppMem  int64 `json:"app_mem"`
			AppAnon int64 `json:"app_anon"`
			DBCPU   int64 `json:"db_cpu"`
			DBMem   int64 `json:"db_mem"`
			DBAnon  int64 `json:"db_anon"`
		}
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(cgroup.Sample{T: x.T, Mono: x.T, Host: cgroup.Host{CPUs: 12}, Containers: map[string]cgroup.Container{
			"app": {UsageUS: &x.AppCPU, Memory: &x.AppMem, Anon: &x.AppAnon},
			"db":  {UsageUS: &x.DBCPU, Memory: &x.DBMem, Anon: &x.DBAnon},
		}})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// TestConvertedRunAgreesWithItsRawFiles holds the log against the raw files,
// whole and damaged.
func TestConvertedRunAgreesWithItsRawFiles(t *testing.T) {
	s := convert(t, t.TempDir())
	digests, err := s.Verify()
	if err != nil || len(digests) != 0 {
		t.Fatalf("%v, %v", digests, err)
	}
	figures, err := s.Rederive()
	if err != nil || len(figures) != 0 {
		t.Fatalf("%v, %v", figures, err)
	}
	var victim store.WindowResult
	for _, w := range s.History().Windows() {
		if w.Measured != nil && w.CGroup != "" {
			victim = w
		}
	}
	name := filepath.Join(s.Dir(), victim.OHA)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := regexp.MustCompile(`"20[01]": `).ReplaceAll(data, []byte("${0}9"))
	if bytes.Equal(damaged, data) {
		t.Fatal("nothing was damaged")
	}
	if err := os.WriteFile(name, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	digests, _ = s.Verify()
	figures, _ = s.Rederive()
	if len(digests) != 1 || len(figures) != 1 || !strings.Contains(figures[0].What, "figures.") {
		t.Errorf("%v %v", digests, figures)
	}
}

// sortedKeys is for messages.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
