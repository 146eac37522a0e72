package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
)

// Rederive computes the figures of every window and probe anew from the raw
// files and reports each whose figures are not those in the log.
func (s *Store) Rederive() ([]Problem, error) {
	problems := s.rederiveProbes()
	for _, w := range s.History().Windows() {
		if w.Measured == nil || w.OHA == "" {
			continue
		}
		at := w.OHA // the file that is being read
		evidence, err := ReadEvidence(w, func(path string) ([]byte, error) {
			at = path
			return s.ReadRaw(path)
		})
		var figures measure.Window
		if err == nil {
			at = w.OHA
			figures, err = evidence.Figures()
		}
		if err != nil {
			problems = append(problems, s.problem(at, err))
			continue
		}
		was, err := json.Marshal(w.Measured)
		if err != nil {
			return problems, fmt.Errorf("comparing figures: %w", err)
		}
		is, err := json.Marshal(figures)
		if err != nil {
			return problems, fmt.Errorf("comparing figures: %w", err)
		}
		if !bytes.Equal(was, is) {
			place, a, b, err := difference("figures", w.Measured, figures)
			if err != nil {
				return problems, err
			}
			problems = append(problems, Problem{w.OHA, fmt.Sprintf("the raw files give other figures than the log holds: %s was %s and is %s", place, a, b), true})
		}
	}
	return problems, nil
}

// problem is an error of reading a raw file, without the file's name in it
// twice.
func (s *Store) problem(path string, err error) Problem {
	return Problem{path, finding(err, filepath.Join(s.dir, filepath.FromSlash(path)), path), true}
}

// Measure computes the figures of a window from its raw files, of all hosts and
// load generators.
func (s *Store) Measure(w WindowResult) (measure.Window, error) {
	e, err := ReadEvidence(w, s.ReadRaw)
	if err != nil {
		return measure.Window{}, err
	}
	return e.Figures()
}

// rederiveProbes does so for the readings of the reference probe.
func (s *Store) rederiveProbes() []Problem {
	var problems []Problem
	window := s.Run().Preset.Probe.Window.Seconds()
	for _, e := range s.Events() {
		was, ok := ReadingOf(e)
		if !ok || was.Error != "" || was.File == "" || window <= 0 {
			continue
		}
		var answered int64
		var err error
		at := was.File // the file that is being read
		for _, file := range append([]string{was.File}, slices.Sorted(maps.Keys(was.Others))...) {
			at = file
			var out []byte
			var result oha.Result
			if out, err = s.ReadRaw(file); err == nil {
				result, err = oha.Parse(file, out)
			}
			if err != nil {
				break
			}
			answered += result.OK()
		}
		switch is := float64(answered) / window; {
		case err != nil:
			problems = append(problems, s.problem(at, err))
		case is != was.Achieved:
			problems = append(problems, Problem{was.File, fmt.Sprintf("the raw file gives another reading than the log holds: %v was %v", is, was.Achieved), true})
		}
	}
	return problems
}
