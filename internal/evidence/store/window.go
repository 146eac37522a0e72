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

// rawBase is the path of a window's raw files up to the attempt number.
func rawBase(w plan.Window) string { return RawDir + "/" + w.Key() }

// Endings of raw files. [OHAEnding] has those of further load generators; the
// samples of hosts other than the app's have the name of the host and a dot
// before them.
const (
	RawOHA    = "oha.json" // the load generator's output
	RawCGroup = "cg.jsonl" // the counters sampled beside it
)

// OHAEnding is the ending of the output of load generator i of n of a window,
// from 0: those of its first stream, one of each load host, then those of the
// next. A further stream's has the scenario before it, a further host's load2,
// load3, ...
func OHAEnding(w plan.Window, n, i int) string {
	streams := w.Sends()
	hosts := max(1, n/len(streams))
	ending := RawOHA
	if host := i % hosts; host > 0 {
		ending = plan.HostName(plan.Load, host+1) + "." + ending
	}
	if stream := i / hosts; stream > 0 && stream < len(streams) {
		ending = streams[stream].Scenario + "." + ending
	}
	return ending
}

// RawPath is the path of a raw file of a window below the run's folder:
// raw/PHASE/CANDIDATE_SCENARIO_cCONNECTIONS[_qTARGET]_rREP_aATTEMPT.ENDING.
func RawPath(w plan.Window, attempt int, ending string) string {
	return rawBase(w) + "_a" + strconv.Itoa(attempt) + "." + ending
}

// ProbePath is the path of the load generator's output of a reference probe.
func ProbePath(b plan.BlockID, r ProbeReading) string {
	return fmt.Sprintf("%s_a%d.%s", probeBase(b, r), r.Attempt, RawOHA)
}

// OtherProbePath is the same for the second load generator, or a further one.
func OtherProbePath(b plan.BlockID, r ProbeReading, generator int) string {
	return fmt.Sprintf("%s_a%d.%s.%s", probeBase(b, r), r.Attempt, plan.HostName(plan.Load, generator), RawOHA)
}

func probeBase(b plan.BlockID, r ProbeReading) string {
	what := "probe"
	if r.FlatOut() {
		what = "flatout"
	}
	return fmt.Sprintf("%s/%s/%s_%s_r%d", RawDir, b.Phase, b.Candidate, what, b.Repetition)
}

// NextAttempt is the attempt number that a window gets next, from 1. A number
// is never used twice: neither one that stands in the log, nor one of which a
// raw file exists that no event names because the driver was killed in between.
func (s *Store) NextAttempt(w plan.Window) int {
	s.mu.Lock()
	last := s.history.last[w.Key()]
	s.mu.Unlock()
	return max(last, s.lastOnDisk(rawBase(w))) + 1
}

// Attempts returns the attempts at one window that are in the log.
func (s *Store) Attempts(w plan.Window) []WindowResult { return s.History().Attempts(w) }

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

// List is the run's list of windows. A run that was begun before lists were
// stored, or is no run of percore's, has one laid out from what it was asked for.
func (r Run) List() plan.List {
	if r.Blocks == nil {
		return plan.LayOut(r.Suite, r.Preset, r.Seed)
	}
	return plan.List{Preset: r.Preset, Blocks: r.Blocks}
}

// Planned is the number of windows that the run is to measure in all.
func (r Run) Planned() int { return r.List().Windows() }
