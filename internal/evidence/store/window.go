package store

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/plan"
)

// ProbeReading is the data of an EventProbe: what the reference server reached
// on the candidate's own cores.
type ProbeReading struct {
	Target   int     `json:"target"`   // requests per second asked for; 0: as many as there could be
	Achieved float64 `json:"achieved"` // 2xx answers per second of the nominal window
	Attempt  int     `json:"attempt"`
	File     string  `json:"file"` // raw output, below the run's folder
	SHA256   string  `json:"sha256,omitempty"`
	// Others are the raw outputs of the second and further load generators, whose
	// answers are in Achieved too: path -> digest.
	Others map[string]string `json:"others,omitempty"`
	Error  string            `json:"error,omitempty"`
	// Connections are those of a probe that was asked for as much as it could.
	Connections int `json:"connections,omitempty"`
}

// FlatOut reports whether the probe had no target: it says what the load
// generator can do and judges nothing.
func (r ProbeReading) FlatOut() bool { return r.Target == 0 }

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
func ProbePath(b Block, r ProbeReading) string {
	return fmt.Sprintf("%s_a%d.%s", probeBase(b, r), r.Attempt, RawOHA)
}

// OtherProbePath is the same for the second load generator, or a further one.
func OtherProbePath(b Block, r ProbeReading, generator int) string {
	return fmt.Sprintf("%s_a%d.%s.%s", probeBase(b, r), r.Attempt, plan.HostName(plan.Load, generator), RawOHA)
}

func probeBase(b Block, r ProbeReading) string {
	what := "probe"
	if r.FlatOut() {
		what = "flatout"
	}
	return fmt.Sprintf("%s/%s/%s_%s_r%d", RawDir, b.Phase, b.Candidate, what, b.Repetition)
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
