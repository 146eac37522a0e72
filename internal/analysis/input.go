// Package analysis turns the windows of a run into tables. It is made of pure
// functions: the same windows give the same tables, whoever measured them and
// whenever.
package analysis

import (
	"fmt"
	"slices"

	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/store"
	"github.com/percore/percore/internal/study"
)

// Input is a run as it is analysed.
type Input struct {
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
	store.Block
	Error string `json:"error"`
}

// FromStore takes what is needed out of a results folder.
func FromStore(s *store.Store) Input {
	h := s.History()
	in := Input{Run: s.Run(), State: s.Summary().State}
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

// FromStudy takes a raw folder in the study's layout.
func FromStudy(s *study.Study) Input {
	return Input{Run: s.Run, State: store.StateComplete, Windows: s.Windows, Probes: s.Probes, Notes: s.Notes, Study: true}
}

// The published protocol, from which a run that is to stand beside the
// published figures may not differ.
var published = struct {
	seconds     map[profile.Kind]float64
	repetitions map[profile.Kind]int
	connections map[profile.Kind][]int
	targets     map[string]int
}{
	seconds:     map[profile.Kind]float64{profile.KindRate: 60, profile.KindCeiling: 15},
	repetitions: map[profile.Kind]int{profile.KindRate: 5, profile.KindCeiling: 3},
	connections: map[profile.Kind][]int{profile.KindRate: {256}, profile.KindCeiling: {16, 64, 128, 256}},
	targets:     map[string]int{"auth": 50000, "read": 50000, "write": 10000},
}

// Comparability says why the figures of a run may not stand beside the
// published ones. No reason means that they may. What the run itself recorded
// when it was started counts; a run without such a record is judged by its
// profile, preset and flavour.
func Comparability(r store.Run) []string {
	if len(r.Caveats) > 0 {
		return slices.Clone(r.Caveats)
	}
	var why []string
	if shared := r.Profile.SharedRoles(); r.Profile.SharedCores && len(shared) > 0 {
		why = append(why, fmt.Sprintf("the roles share cores (%s)", join(shared)))
	}
	if r.Flavour != profile.FlavourPublished {
		why = append(why, fmt.Sprintf("the images are of the flavour %s, with other versions than the study's", or(string(r.Flavour), "unknown")))
	}
	for _, p := range r.Preset.Phases {
		seconds := p.Window.Seconds()
		if want, ok := published.seconds[p.Kind]; ok && seconds < want {
			why = append(why, fmt.Sprintf("the windows of phase %s are %s s long and the study's %s s", p.ID, Shortest(seconds, 3), Shortest(want, 3)))
		}
		if want := published.repetitions[p.Kind]; p.Repetitions < want {
			why = append(why, fmt.Sprintf("phase %s has %d repetitions and the study %d", p.ID, p.Repetitions, want))
		}
		if want, ok := published.connections[p.Kind]; ok && !slices.Equal(p.Connections, want) {
			why = append(why, fmt.Sprintf("phase %s uses %s connections and the study %s", p.ID, numbers(p.Connections), numbers(want)))
		}
		for _, sc := range r.Suite.Scenarios {
			if want := published.targets[sc.ID]; p.Kind == profile.KindRate && want > 0 && p.Targets[sc.ID] != want {
				why = append(why, fmt.Sprintf("the target of %s is %d/s and the study's %d/s", sc.ID, p.Targets[sc.ID], want))
			}
		}
	}
	if !r.Comparable && len(why) == 0 {
		why = append(why, "the run was marked as not comparable when it was started")
	}
	return why
}

func join(s []string) string {
	text := ""
	for i, v := range s {
		if i > 0 {
			text += ", "
		}
		text += v
	}
	return text
}

func numbers(n []int) string {
	s := make([]string, len(n))
	for i, v := range n {
		s[i] = fmt.Sprint(v)
	}
	return join(s)
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
