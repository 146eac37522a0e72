package report

import (
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/plan"
)

// shown is the scenario whose windows stand for a phase over time: the first
// that uses the database and reads, or else the last one.
func shown(suite plan.Suite) string {
	last := ""
	for _, s := range suite.Scenarios {
		if s.ID == "read" {
			return s.ID
		}
		last = s.ID
	}
	return last
}

// phaseKinds are the phases of a run that have windows, in order.
func phaseKinds(r figures.Tables) []struct {
	id   string
	kind plan.Kind
} {
	var list []struct {
		id   string
		kind plan.Kind
	}
	add := func(id string, kind plan.Kind) {
		for _, have := range list {
			if have.id == id {
				return
			}
		}
		list = append(list, struct {
			id   string
			kind plan.Kind
		}{id, kind})
	}
	for _, row := range r.Rate {
		add(row.Phase, plan.KindRate)
	}
	for _, row := range r.Ceiling {
		add(row.Phase, plan.KindCeiling)
	}
	return list
}
