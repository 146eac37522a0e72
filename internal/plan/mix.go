package plan

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/base/fail"
)

// Mix is a load of several scenarios at once, each with its share of the rate
// and of the connections. A scenario by itself is a mix of one.
type Mix struct {
	ID     string             `yaml:"id" json:"id"`
	Shares map[string]float64 `yaml:"shares" json:"shares"` // scenario -> share; together 1
}

// Loads are what the windows of a phase send, in order: its mixes, or each
// scenario of the suite by itself.
func (ph Phase) Loads(s Suite) []Mix {
	if len(ph.Mixes) > 0 {
		return ph.Mixes
	}
	var all []Mix
	for _, sc := range s.Scenarios {
		all = append(all, Mix{ID: sc.ID, Shares: map[string]float64{sc.ID: 1}})
	}
	return all
}

// shares are those of the ceiling at which a phase measures each load; one 0 where
// its targets are numbers.
func (ph Phase) shares() []float64 {
	if ph.Target == nil {
		return []float64{0}
	}
	return ph.Target.Shares
}

// checkTarget refuses a target that nothing in the phases before it makes known.
func (ph Phase) checkTarget(before []Phase) error {
	if (ph.Kind == KindLevels) != (ph.Target != nil) {
		if ph.Target == nil {
			return fail.Input("a levels phase needs a target").On("kind").Try("write one as in target: {of: ceiling, shares: [0.5, 0.8]}")
		}
		return fail.Input("a %s phase has no target that is a share of another", ph.Kind).On("target").Try("write kind: levels")
	}
	if ph.Target == nil {
		return nil
	}
	if ph.Target.Of != KindCeiling {
		return fail.Input("target is of %q", ph.Target.Of).On("target.of").Try("write of: ceiling")
	}
	if len(ph.Targets) != 0 {
		return fail.Input("it has both target and targets").On("target").Try("take targets out")
	}
	if len(ph.Target.Shares) == 0 {
		return fail.Input("target has no shares").On("target.shares").Try("write them as in shares: [0.5, 0.8]")
	}
	for i, share := range ph.Target.Shares {
		if !(share >= 0.01 && share <= 2) {
			return fail.Input("target has a share of %v", share).On("target.shares").Try("write 0.01 to 2")
		}
		if slices.Contains(ph.Target.Shares[:i], share) {
			return fail.Input("target has the share %v twice", share).On("target.shares").Try("write each once")
		}
	}
	if !slices.ContainsFunc(before, func(p Phase) bool {
		return p.Kind == KindCeiling && (len(ph.Mixes) == 0) == (len(p.Mixes) == 0) && len(ph.without(p)) == 0
	}) {
		return fail.Input("its target is a share of a ceiling, and no phase before it measures that").On("target").Try("put a ceiling phase with the same loads before it")
	}
	return nil
}

// without are the mixes of a phase that another does not have.
func (ph Phase) without(other Phase) []Mix {
	return filter(ph.Mixes, func(m Mix) bool {
		return !slices.ContainsFunc(other.Mixes, func(o Mix) bool { return o.ID == m.ID && maps.Equal(o.Shares, m.Shares) })
	})
}

// streams are those of a window that sends the mix, in the order of the suite.
func (m Mix) streams(s Suite, w Window) []Stream {
	var all []Stream
	var shares []float64
	for _, sc := range s.Scenarios {
		share, ok := m.Shares[sc.ID]
		if !ok {
			continue
		}
		st := Stream{Scenario: sc.ID, Share: share}
		if sc.Scope != "" {
			st.Tokens = 1
		}
		all, shares = append(all, st), append(shares, share)
	}
	connections, targets := parts(w.Connections, shares), parts(w.Target, shares)
	for i := range all {
		all[i].Connections, all[i].Target = connections[i], targets[i]
	}
	return all
}

// parts takes a whole number apart by shares that are 1 together: what rounding
// down leaves over goes to the largest remainders, the first of equals first. No
// part is 0 where there is enough for all.
func parts(all int, shares []float64) []int {
	n := make([]int, len(shares))
	left := all
	order := make([]int, len(shares))
	for i, share := range shares {
		n[i], order[i] = int(math.Floor(float64(all)*share+1e-9)), i
		left -= n[i]
	}
	rest := func(i int) float64 { return float64(all)*shares[i] - float64(n[i]) }
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := rest(a), rest(b); {
		case x > y+1e-9:
			return -1
		case y > x+1e-9:
			return 1
		}
		return 0
	})
	for i := 0; i < left; i++ {
		n[order[i%len(order)]]++
	}
	for i := range n {
		if most := slices.Max(n); n[i] == 0 && most > 1 {
			n[slices.Index(n, most)]--
			n[i]++
		}
	}
	return n
}

// checkMixes refuses mixes that are none.
func (ph Phase) checkMixes() error {
	ids := map[string]bool{}
	for _, m := range ph.Mixes {
		if !identifier.MatchString(m.ID) {
			return fail.Input("the id %q of a mix is not usable", m.ID).On("mixes").Try("write lower-case letters, digits, dots and dashes")
		}
		if ids[m.ID] {
			return fail.Input("mix %q is in it twice", m.ID).On("mixes").Try("give each its own id")
		}
		ids[m.ID] = true
		if len(m.Shares) == 0 {
			return fail.Input("mix %q has no shares", m.ID).On("mixes").Try("write the share of each scenario, as in shares: {read: 0.5, write: 0.5}")
		}
		sum := 0.0
		for _, sc := range slices.Sorted(maps.Keys(m.Shares)) {
			share := m.Shares[sc]
			if !(share > 0 && share <= 1) {
				return fail.Input("mix %q has a share of %v for %s", m.ID, share, sc).On("mixes").Try("write a share above 0, of 1 in all")
			}
			sum += share
		}
		if math.Abs(sum-1) > 1e-6 {
			return fail.Input("the shares of mix %q are %.6g together", m.ID, sum).On("mixes").Try("write shares that are 1 together")
		}
		for _, c := range ph.Connections {
			if c < len(m.Shares) {
				return fail.Input("mix %q has %d scenarios and the phase has %d connection(s) for them", m.ID, len(m.Shares), c).On("mixes").Try("write %d connections or more", len(m.Shares))
			}
		}
		if t, ok := ph.Targets[m.ID]; ok && t < len(m.Shares) {
			return fail.Input("mix %q has %d scenarios and a target of %d/s", m.ID, len(m.Shares), t).On("mixes").Try("write a target of %d or more", len(m.Shares))
		}
	}
	return nil
}

// selectLoads leaves a phase the mixes of which all scenarios are measured, and
// the targets of its loads.
func (ph Phase) selectLoads(all, s Suite, preset string) (Phase, error) {
	var ids []string
	for _, m := range (Phase{Mixes: ph.Mixes}).Loads(all) {
		ids = append(ids, m.ID)
		for _, sc := range slices.Sorted(maps.Keys(m.Shares)) {
			if _, ok := all.Scenario(sc); !ok {
				return ph, fail.Input("mix %q in phase %q of preset %s has a share for scenario %q, which the suite %s does not have", m.ID, ph.ID, preset, sc, all.Name).Try("take from %s", strings.Join(names(all.Scenarios), ", "))
			}
		}
		if _, ok := all.Scenario(m.ID); ok && len(ph.Mixes) > 0 {
			return ph, fail.Input("mix %q in phase %q of preset %s has the name of a scenario", m.ID, ph.ID, preset).Try("give it another id")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ph.Targets)) {
		switch {
		case slices.Contains(ids, id):
		case len(ph.Mixes) > 0:
			return ph, fail.Input("phase %q of preset %s has a target for %q, which is none of its mixes", ph.ID, preset, id).Try("take from %s", strings.Join(ids, ", "))
		default:
			return ph, fail.Input("phase %q of preset %s has a target for scenario %q, which the suite %s does not have", ph.ID, preset, id, all.Name).Try("take from %s", strings.Join(ids, ", "))
		}
	}
	ph.Mixes = filter(ph.Mixes, func(m Mix) bool {
		for sc := range m.Shares {
			if _, ok := s.Scenario(sc); !ok {
				return false
			}
		}
		return true
	})
	if len(ph.Mixes) == 0 && !slices.ContainsFunc(s.Scenarios, func(sc Scenario) bool { return slices.Contains(ids, sc.ID) }) {
		return ph, fail.Input("phase %q of preset %s has no mix of the chosen scenarios alone", ph.ID, preset).Try("choose more scenarios, or leave the phase out")
	}
	if ph.Kind != KindRate {
		return ph, nil
	}
	targets := map[string]int{}
	for _, m := range ph.Loads(s) {
		t, ok := ph.Targets[m.ID]
		switch {
		case !ok && len(ph.Mixes) > 0:
			return ph, fail.Input("phase %q of preset %s has no target for mix %q", ph.ID, preset, m.ID).Try("add one under targets")
		case !ok:
			return ph, fail.Input("phase %q of preset %s has no target for scenario %q", ph.ID, preset, m.ID).Try("add one under targets or leave the scenario out with SCENARIOS")
		}
		targets[m.ID] = t
	}
	ph.Targets = targets
	return ph, nil
}

func names(scenarios []Scenario) []string {
	all := make([]string, len(scenarios))
	for i, sc := range scenarios {
		all[i] = sc.ID
	}
	return all
}
