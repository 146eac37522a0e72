package store

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/profile"
)

// ProbeReading is the data of an EventProbe: what the reference server reached
// on the candidate's own cores.
type ProbeReading struct {
	Target   int     `json:"target"`   // requests per second asked for
	Achieved float64 `json:"achieved"` // 2xx answers per second of the nominal window
	Attempt  int     `json:"attempt"`
	File     string  `json:"file"` // raw output, below the run's folder
	SHA256   string  `json:"sha256,omitempty"`
	// Others are the raw outputs of the second and further load generators, whose
	// answers are in Achieved too: path -> digest.
	Others map[string]string `json:"others,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// Key names a window within its run. Two windows of one key are attempts at the
// same thing.
func (w Window) Key() string { return w.base(RawDir) }

// base is the path of the window's raw files up to the attempt number.
func (w Window) base(dir string) string {
	var b strings.Builder
	b.WriteString(dir)
	fmt.Fprintf(&b, "/%s/%s_%s_c%d", w.Phase, w.Candidate, w.Scenario, w.Connections)
	if w.Target > 0 {
		fmt.Fprintf(&b, "_q%d", w.Target)
	}
	fmt.Fprintf(&b, "_r%d", w.Repetition)
	return b.String()
}

// String names the window for a person.
func (w Window) String() string {
	s := fmt.Sprintf("%s %s %s, %d connections", w.Phase, w.Candidate, w.Scenario, w.Connections)
	if w.Target > 0 {
		s += fmt.Sprintf(", %d/s", w.Target)
	}
	return s + fmt.Sprintf(", repetition %d", w.Repetition)
}

// Endings of raw files. Those of the second and further load generators have
// load2, load3, ... and a dot before them, those of the samples of hosts other
// than the app's the name of the host.
const (
	RawOHA    = "oha.json" // the load generator's output
	RawCGroup = "cg.jsonl" // the counters sampled beside it
)

// RawPath is the path of a raw file of a window below the run's folder:
// raw/PHASE/CANDIDATE_SCENARIO_cCONNECTIONS[_qTARGET]_rREP_aATTEMPT.ENDING.
func RawPath(w Window, attempt int, ending string) string {
	return w.base(RawDir) + "_a" + strconv.Itoa(attempt) + "." + ending
}

// ProbePath is the path of the load generator's output of a reference probe.
func ProbePath(b Block, attempt int) string {
	return fmt.Sprintf("%s_a%d.%s", probeBase(b), attempt, RawOHA)
}

// OtherProbePath is the same for the second load generator, or a further one.
func OtherProbePath(b Block, attempt, generator int) string {
	return fmt.Sprintf("%s_a%d.%s.%s", probeBase(b), attempt, profile.HostName(profile.Load, generator), RawOHA)
}

func probeBase(b Block) string {
	return fmt.Sprintf("%s/%s/%s_probe_r%d", RawDir, b.Phase, b.Candidate, b.Repetition)
}

// NextAttempt is the attempt number that a window gets next, from 1. A number
// is never used twice: neither one that stands in the log, nor one of which a
// raw file exists that no event names because the driver was killed in between.
func (s *Store) NextAttempt(w Window) int {
	s.mu.Lock()
	last := s.history.last[w.Key()]
	s.mu.Unlock()
	return max(last, s.lastOnDisk(w.base(RawDir))) + 1
}

// Attempts returns the attempts at one window that are in the log.
func (s *Store) Attempts(w Window) []WindowResult { return s.History().Attempts(w) }

// NextProbe is the attempt number that the probe of a block gets next, from 1.
func (s *Store) NextProbe(b Block) int { return s.lastOnDisk(probeBase(b)) + 1 }

// lastOnDisk is the highest attempt number among the raw files of a base path.
// A folder that cannot be read counts as empty: WriteRaw is what refuses a name
// that is taken.
func (s *Store) lastOnDisk(base string) int {
	dir := filepath.Join(s.dir, filepath.FromSlash(path.Dir(base)))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	last := 0
	prefix := path.Base(base) + "_a"
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// Planned is the number of windows that the run is to measure in all.
func (r Run) Planned() int {
	n := 0
	for _, p := range r.Preset.Phases {
		n += p.Repetitions * len(p.Connections)
	}
	return n * len(r.Suite.Scenarios) * len(r.Suite.Candidates)
}

// Problem is something about the files of a run that does not agree with its
// log.
type Problem struct {
	Path  string // below the run's folder
	What  string // a sentence
	Fatal bool   // whether a figure rests on it
}

func (p Problem) String() string { return p.Path + ": " + p.What }

// Verify compares every raw file with the digest in the log. A raw file that
// no event names is what a killed driver left: it is mentioned, no figure rests
// on it.
func (s *Store) Verify() ([]Problem, error) {
	var problems []Problem
	h := s.History()
	named := map[string]bool{}
	attempts := map[string]bool{}
	check := func(name, want string) error {
		named[name] = true
		switch got, err := s.digest(name); {
		case err != nil && os.IsNotExist(err):
			problems = append(problems, Problem{name, "the file is missing", true})
		case err != nil:
			return fmt.Errorf("checking raw files: %w", err)
		case got != want:
			problems = append(problems, Problem{name, "the file is not what was measured: its SHA-256 digest differs from the log's", true})
		}
		return nil
	}
	for _, e := range h.Events {
		if e.Type == EventImported {
			var in Import
			if err := json.Unmarshal(e.Data, &in); err != nil {
				problems = append(problems, Problem{EventsFile, "the list of imported files cannot be read: " + err.Error(), true})
			}
			for name, want := range in.Files {
				if err := check(name, want); err != nil {
					return problems, err
				}
			}
			continue
		}
		if e.Type == EventProbe {
			r, ok := ReadingOf(e)
			switch {
			case !ok:
				problems = append(problems, Problem{EventsFile, "the reading of a reference probe cannot be read", true})
			case r.SHA256 == "": // the log of an older percore, or of an import
				named[r.File] = true
			default:
				if err := check(r.File, r.SHA256); err != nil {
					return problems, err
				}
				for name, want := range r.Others {
					if err := check(name, want); err != nil {
						return problems, err
					}
				}
			}
			continue
		}
		if e.Type != EventWindow {
			continue
		}
		w := e.Window
		id := w.Key() + "_a" + strconv.Itoa(w.Attempt)
		if attempts[id] {
			problems = append(problems, Problem{EventsFile, fmt.Sprintf("attempt %d at %s is there twice", w.Attempt, w.Window), true})
		}
		attempts[id] = true
		for _, name := range w.RawFiles() {
			named[name] = true
			want, ok := w.SHA256[name]
			if !ok {
				problems = append(problems, Problem{name, "the log holds no digest of this file", true})
				continue
			}
			if err := check(name, want); err != nil {
				return problems, err
			}
		}
	}
	root := filepath.Join(s.dir, RawDir)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(s.dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		// The logs of containers are kept beside the raw files; no figure rests on them.
		if d.Type().IsRegular() && !named[rel] && path.Ext(rel) != ".log" {
			problems = append(problems, Problem{rel, "no event names this file, so percore was killed before its window was done", false})
		}
		return nil
	})
	if err != nil {
		return problems, fmt.Errorf("checking raw files: %w", err)
	}
	return problems, nil
}

// digest is the SHA-256 digest of a raw file in hexadecimal.
func (s *Store) digest(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fs.ErrNotExist
	}
	f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digestOf(f)
}
