package figures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// Measured is a run with everything that was measured of it.
type Measured struct {
	Run     store.Run
	State   string // complete, interrupted, failed or running
	Windows []store.WindowResult
	Probes  []study.Probe
	Blocks  []BrokenBlock // blocks that failed
	Notes   []string      // what the reader of the files noticed
	Study   bool          // whether it is a raw folder in the study's layout
}

// BrokenBlock is a block that could not be measured to its end.
type BrokenBlock struct {
	plan.BlockID
	Error string `json:"error"`
}

// ReadStore takes out of a results folder what figures and tables rest on.
func ReadStore(s *store.Store) Measured {
	h := s.History()
	in := Measured{Run: s.Run(), State: s.Summary().State}
	if note := h.Twice(); note != "" {
		in.Notes = append(in.Notes, note)
	}
	for _, e := range h.Events {
		switch e.Type {
		case store.EventWindow:
			in.Windows = append(in.Windows, *e.Window)
		case store.EventProbe:
			if r, ok := store.ReadingOf(e); ok && e.Block != nil {
				in.Probes = append(in.Probes, study.Probe{Block: *e.Block, Reading: r})
			}
		case store.EventBlockFailed:
			if e.Block != nil {
				in.Blocks = append(in.Blocks, BrokenBlock{*e.Block, e.Error})
			}
		}
	}
	return in
}

// Without returns windows that have neither figures nor verdicts where one of
// their raw files is damaged: path -> what is wrong with it.
func Without(windows []store.WindowResult, damaged map[string]string) []store.WindowResult {
	windows = slices.Clone(windows)
	for i, w := range windows {
		if slices.ContainsFunc(w.RawFiles(), func(path string) bool { return damaged[path] != "" }) {
			windows[i].Measured, windows[i].Gates = nil, nil
		}
	}
	return windows
}

// ReadStudy takes the same out of a raw folder in the study's layout.
func ReadStudy(s *study.Study) Measured {
	return Measured{Run: s.Run, State: store.StateComplete, Windows: s.Windows, Probes: s.Probes, Notes: s.Notes, Study: true}
}

// Comparability says why the figures of a run may not stand beside the
// published ones. No reason means that they may. What the run itself recorded
// when it was started counts; a run without such a record is judged by the
// values of its profile and preset and by its flavour.
func Comparability(r store.Run) []string {
	if len(r.Caveats) > 0 {
		return slices.Clone(r.Caveats)
	}
	var why []string
	if shared := r.Profile.SharedRoles(); r.Profile.SharedCores && len(shared) > 0 {
		why = append(why, fmt.Sprintf("the roles share cores (%s)", strings.Join(shared, ", ")))
	}
	if r.Flavour != plan.FlavourPublished {
		why = append(why, fmt.Sprintf("the images are of the flavour %s, with other versions than the study's", or(string(r.Flavour), "unknown")))
	}
	why = append(why, r.Profile.Differences()...)
	if c := r.Preset.Caveat(); c != "" {
		why = append(why, c)
	}
	if !r.Comparable && len(why) == 0 {
		why = append(why, "the run was marked as not comparable when it was started")
	}
	return why
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
