package gates

import (
	"fmt"
	"math"
	"slices"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Verify judges every window of a run anew and reports each verdict that is not
// the one in the log, with the window and the gate. A gate that the run was not
// judged by, because its percore had none of that name, is mentioned where what
// the load generators wrote is enough to fail it, and is left alone otherwise; so
// is a window that broke off.
//
// Raw files that cannot be read are what [store.Store.Rederive] reports.
func Verify(s *store.Store) []store.Problem {
	l := LayoutOf(s.Run())
	probes := map[plan.BlockID]store.ProbeReading{}
	var problems []store.Problem
	for _, e := range s.Events() {
		if r, ok := store.ReadingOf(e); ok && e.Block != nil && !r.FlatOut() {
			probes[*e.Block] = r
		}
		w := e.Window
		if e.Type != store.EventWindow || w == nil || w.Error != "" || w.Measured == nil {
			continue
		}
		_, is, err := l.Judge(*w, probes[w.Block()], s.ReadRaw)
		if err != nil {
			continue
		}
		for _, was := range w.Gates {
			i := slices.IndexFunc(is, func(g store.Gate) bool { return g.Name == was.Name })
			if i < 0 || same(was, is[i]) {
				continue
			}
			problems = append(problems, store.Problem{Path: w.OHA, Fatal: true, What: fmt.Sprintf(
				"%s, attempt %d: gate %s was %s and is %s when it is judged again from the raw files", w.Window, w.Attempt, was.Name, verdict(was), verdict(is[i]))})
		}
		for _, g := range is {
			known := slices.ContainsFunc(w.Gates, func(was store.Gate) bool { return was.Name == g.Name })
			if !known && g.Failed() && (g.Name == Length || g.Name == Answers) {
				problems = append(problems, store.Problem{Path: w.OHA, What: fmt.Sprintf(
					"%s, attempt %d: gate %s, which the run was not judged by, would be %s (%s)", w.Window, w.Attempt, g.Name, verdict(g), g.Detail)})
			}
		}
	}
	return problems
}

// same reports whether two verdicts and their readings are the same. Readings
// are floating-point numbers, whose last digits may differ between machines.
func same(a, b store.Gate) bool {
	return a.OK == b.OK && a.Waived == b.Waived && math.Abs(a.Reading-b.Reading) <= 1e-9*max(1, math.Abs(a.Reading))
}

// verdict is a gate in words.
func verdict(g store.Gate) string {
	word := "passed"
	switch {
	case g.Failed():
		word = "failed"
	case !g.OK:
		word = "waived"
	}
	return fmt.Sprintf("%s at %.4g %s", word, g.Reading, g.Unit)
}
