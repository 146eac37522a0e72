package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/percore/percore/internal/plan"
)

// EventLost says that a raw file was missing or changed when the run was carried
// on. Data is a [Lost]: what rested on it is no evidence any more.
const EventLost = "lost"

// Lost is the data of an EventLost.
type Lost struct {
	Path     string    `json:"path"` // of the raw file, below the run's folder
	What     string    `json:"what"` // what is wrong with it, a sentence
	Attempts []Attempt `json:"attempts"`
}

// Attempt names an attempt at a window.
type Attempt struct {
	Key    string `json:"key"` // path of the window's raw files up to the attempt number
	Number int    `json:"number"`
}

// Damaged lists the raw files that are missing or are not what was measured, by
// their digests.
func (s *Store) Damaged() ([]Problem, error) {
	files, _, _ := s.recorded()
	return s.compare(files)
}

// GiveUpDamaged appends an EventLost for every raw file that is missing or
// changed. The attempts that rested on it, be it as a file of their own or as
// that of the probe before them, count as broken off from then on, so that their
// windows are measured again. The files themselves are left as they are.
func (s *Store) GiveUpDamaged() ([]Lost, error) {
	problems, err := s.Damaged()
	if err != nil {
		return nil, err
	}
	var all []Lost
	for _, p := range problems {
		lost := Lost{Path: p.Path, What: p.What, Attempts: s.restingOn(p.Path)}
		data, err := json.Marshal(lost)
		if err != nil {
			return all, fmt.Errorf("writing down that %s is lost: %w", p.Path, err)
		}
		if err := s.Append(Event{Type: EventLost, Data: data}); err != nil {
			return all, err
		}
		all = append(all, lost)
	}
	return all, nil
}

// restingOn are the attempts that are evidence by a raw file.
func (s *Store) restingOn(path string) []Attempt {
	var all []Attempt
	probes := map[plan.BlockID]ProbeReading{}
	for _, e := range s.Events() {
		if r, ok := ReadingOf(e); ok && e.Block != nil && !r.FlatOut() {
			probes[*e.Block] = r
		}
		if e.Type != EventWindow || e.Window.Error != "" {
			continue
		}
		w := e.Window
		probe := probes[w.Block()]
		_, other := probe.Others[path]
		if slices.Contains(w.RawFiles(), path) || probe.File == path || other {
			all = append(all, Attempt{rawBase(w.Window), w.Attempt})
		}
	}
	return all
}

// giveUp takes an EventLost into account.
func (h *History) giveUp(lost Lost) {
	if h.lost == nil {
		h.lost = map[string]bool{}
	}
	h.lost[lost.Path] = true
	for _, a := range lost.Attempts {
		for _, i := range h.byKey[strings.TrimPrefix(a.Key, RawDir+"/")] {
			if w := h.Events[i].Window; w.Attempt == a.Number && w.Error == "" {
				given := *w
				given.Error, given.Measured, given.Gates = fmt.Sprintf("%s: %s", lost.Path, lost.What), nil, nil
				h.Events[i].Window = &given
			}
		}
	}
}
