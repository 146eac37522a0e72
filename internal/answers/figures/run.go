package figures

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// FromStore takes the figures of a run out of its results folder.
func FromStore(s *store.Store) *Set {
	in := ReadStore(s)
	return FromRun(in.Run, in.Windows, in.Probes)
}

// FromStudy takes the figures out of a raw folder of the published study.
func FromStudy(s *study.Study) *Set {
	set := FromRun(s.Run, s.Windows, s.Probes)
	set.Kind = KindImported
	return set
}

// FromRun computes the figures of a run from its windows and probes. Only
// windows whose gates passed are evidence, and of the attempts at one
// repetition the latest of those. Definitions and estimators are the study's:
// the median of the repetitions at a fixed rate, the largest for peak memory,
// the best repetition at each connection count of a ceiling, and the best
// connection count without a failed request for the ceiling itself. Where
// nothing passed, the set knows the reason.
func FromRun(run store.Run, windows []store.WindowResult, probes []study.Probe) *Set {
	set := identity(run)
	cells := gather(run, windows)
	ceilings := map[string][]*cell{} // candidate/scenario -> cells
	total := 0.0
	for _, c := range cells {
		switch c.first.Kind {
		case plan.KindRate:
			set.rate(run, c)
		case plan.KindCeiling:
			k := c.first.Candidate + "/" + c.first.Scenario
			ceilings[k] = append(ceilings[k], c)
		}
		for _, w := range c.evidence {
			total += float64(w.Measured.Failed)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(ceilings)) {
		set.ceiling(run, ceilings[k])
	}
	set.overall(run, cells, probes, total)
	return set
}

// identity is what the set says of its run.
func identity(run store.Run) *Set {
	set := NewSet(run.ID, KindRun)
	if run.Percore == study.ImportedBy {
		set.Kind = KindImported
	}
	set.Suite = run.Suite.Name
	set.Flavour = run.Flavour
	set.SharedCores = run.Profile.SharedCores && len(run.Profile.SharedRoles()) > 0
	set.Comparable = run.Comparable
	set.Caveats = slices.Clone(run.Caveats)
	set.Profile, set.Preset, set.Protocol = run.Profile.Name, run.Preset.Name, run.Preset.Published
	set.AppCores = run.Profile.Roles[plan.App].CPUs.Count()
	set.Versions = run.Versions
	set.Candidates = slices.Clone(run.Candidates)
	for _, s := range run.Suite.Scenarios {
		set.Scenarios = append(set.Scenarios, s.ID)
		if s.DB {
			set.Databases = append(set.Databases, s.ID)
		}
	}
	for _, h := range run.Hosts {
		if slices.Contains(h.Roles, plan.App) {
			set.Host = hostOf(h)
			if n := plan.ThreadsPerCore(run.Profile.Roles[plan.App].CPUs, h.Siblings); n > 1 {
				set.AppThreads = n
			}
		} else if slices.Contains(h.Roles, plan.DB) {
			db := hostOf(h)
			set.Database = &db
		}
	}
	set.Conditions = conditions(run)
	if run.Cloud != nil {
		set.Region = run.Cloud.Region
	}
	set.Host.Label = cmp.Or(set.Host.Label, run.Profile.Name, run.ID)
	return set
}

// conditions are those that the run's plan gives. Of several phases at a fixed
// rate the first counts, as for the figures; the ceilings of all phases are one.
func conditions(run store.Run) Conditions {
	c := Conditions{
		Pool: run.Profile.DatabaseConnections, Rows: run.Suite.Rows,
		AppMemory: int64(run.Profile.Roles[plan.App].Memory), DBMemory: int64(run.Profile.Roles[plan.DB].Memory),
	}
	for _, p := range run.Preset.Phases {
		switch p.Kind {
		case plan.KindRate:
			if c.RateConnections == 0 && len(p.Connections) > 0 {
				c.RateSeconds, c.RateConnections = p.Window.Seconds(), p.Connections[0]
			}
		case plan.KindCeiling:
			if len(c.CeilingConnections) == 0 || p.Window.Seconds() < c.CeilingSeconds {
				c.CeilingSeconds = p.Window.Seconds()
			}
			c.CeilingConnections = append(c.CeilingConnections, p.Connections...)
		}
	}
	slices.Sort(c.CeilingConnections)
	c.CeilingConnections = slices.Compact(c.CeilingConnections)
	return c
}

func hostOf(h store.HostFacts) Host {
	return Host{Label: cmp.Or(h.InstanceType, shortCPU(h.CPUModel), h.Name), CPUModel: h.CPUModel, Arch: h.Arch, CPUs: h.CPUs, RSAVerifyPerS: h.RSAVerifyPerS, Instance: h.InstanceType}
}

// shortCPU leaves out what CPU models say of themselves besides their name.
func shortCPU(model string) string {
	model, _, _ = strings.Cut(model, " @ ")
	for _, noise := range []string{"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"} {
		model = strings.ReplaceAll(model, noise, "")
	}
	return strings.Join(strings.Fields(model), " ")
}

// rate files the figures of a fixed-rate cell. Where a preset has several rate
// phases or connection counts, the first in its order is the one that a key
// without a connection count means.
func (s *Set) rate(run store.Run, c *cell) {
	key := func(metric string) Key {
		return Key{Suite: run.Suite.Name, Phase: PhaseRate, Metric: metric, Candidate: c.first.Candidate, Scenario: c.first.Scenario}
	}
	put := func(e Estimate) {
		e.Target, e.Connections, e.Window = c.first.Target, c.first.Connections, c.id()
		if _, taken := s.figures[e.Key]; !taken {
			s.Put(e)
		}
		e.Key.Connections = c.first.Connections
		s.Put(e)
	}
	for _, f := range windowFigures {
		if f.database && !s.UsesDatabase(c.first.Scenario) {
			continue
		}
		e, ok := c.figures[f.metric]
		switch {
		case len(c.evidence) == 0:
			s.PutAbsent(key(f.metric), c.why())
		case !ok:
			s.PutAbsent(key(f.metric), f.why(c.evidence))
		default:
			e.Key, e.Incomplete = key(f.metric), f.incomplete(c)
			put(e)
		}
	}
	if len(c.evidence) == 0 {
		s.PutAbsent(key(Met), c.why())
		s.PutAbsent(key(Repetitions), c.why())
		return
	}
	for metric, v := range map[string]int{Met: c.met(), Repetitions: len(c.evidence)} {
		e := Estimate{Key: key(metric), Estimator: EstimatorCount, Value: float64(v), N: len(c.evidence), Incomplete: c.incomplete()}
		e.Median, e.Lo, e.Hi = e.Value, e.Value, e.Value
		put(e)
	}
}

// ceiling files the figures of the ceiling cells of one candidate and scenario:
// each connection count under its own key, and the best one without.
func (s *Set) ceiling(run store.Run, cells []*cell) {
	var top *cell
	var lowest, highest float64
	spread := 0
	for _, c := range cells {
		key := func(metric string) Key {
			return Key{Suite: run.Suite.Name, Phase: PhaseCeiling, Metric: metric, Candidate: c.first.Candidate, Scenario: c.first.Scenario, Connections: c.first.Connections}
		}
		rate, ok := c.figures[Achieved]
		if len(c.evidence) == 0 || !ok {
			why := c.why()
			if len(c.evidence) > 0 {
				why = windowFigures[0].why(c.evidence)
			}
			s.PutAbsent(key(Achieved), why)
			continue
		}
		for _, e := range ceilingFigures(s, c, key) {
			s.Put(e)
		}
		for _, v := range rate.Values() {
			if spread == 0 || v < lowest {
				lowest = v
			}
			if spread == 0 || v > highest {
				highest = v
			}
			spread++
		}
		if c.best.Measured.Failed == 0 && (top == nil || rate.Value > top.figures[Achieved].Value) {
			top = c
		}
	}
	first := cells[0]
	have := 0
	for _, c := range cells {
		if len(c.evidence) > 0 {
			have++
		}
	}
	incomplete := ""
	if have < len(cells) {
		incomplete = fmt.Sprintf("%d of %d connection counts have evidence", have, len(cells))
	}
	bare := func(metric string) Key {
		return Key{Suite: run.Suite.Name, Phase: PhaseCeiling, Metric: metric, Candidate: first.first.Candidate, Scenario: first.first.Scenario}
	}
	if top == nil {
		why := first.why()
		if spread > 0 {
			why = Absence{Cause: OnlyFailures}
		}
		for _, f := range windowFigures {
			if !f.database || s.UsesDatabase(first.first.Scenario) {
				s.PutAbsent(bare(f.metric), why)
			}
		}
	} else {
		for _, e := range ceilingFigures(s, top, bare) {
			e.Incomplete = strings.TrimPrefix(e.Incomplete+"; "+incomplete, "; ")
			e.Incomplete = strings.TrimSuffix(e.Incomplete, "; ")
			s.Put(e)
		}
	}
	if spread > 0 {
		for metric, v := range map[string]float64{SpreadLow: lowest, SpreadHigh: highest} {
			s.Put(Estimate{Key: bare(metric), Value: v, Median: v, Lo: v, Hi: v, N: spread, Estimator: EstimatorCount, Incomplete: incomplete})
		}
	}
}

// ceilingFigures are the figures of one connection count. The value is the best
// repetition's, as the study has it; the repetitions stand beside it.
func ceilingFigures(s *Set, c *cell, key func(string) Key) []Estimate {
	var all []Estimate
	for _, f := range windowFigures {
		if f.database && !s.UsesDatabase(c.first.Scenario) {
			continue
		}
		e, ok := c.figures[f.metric]
		if !ok {
			if f.damaged(c.best) {
				s.PutAbsent(key(f.metric), f.why(c.evidence))
			}
			continue
		}
		e.Key, e.Connections, e.Window, e.Incomplete = key(f.metric), c.first.Connections, c.id(), f.incomplete(c)
		all = append(all, e)
	}
	return all
}

// overall files what belongs to no single cell: settings, the probe and totals.
func (s *Set) overall(run store.Run, cells []*cell, probes []study.Probe, failed float64) {
	given := func(k Key, v float64) {
		if v > 0 {
			s.Put(Estimate{Key: k, Value: v, Median: v, Lo: v, Hi: v, Estimator: EstimatorGiven})
		}
	}
	suite := run.Suite.Name
	given(Key{Suite: suite, Phase: PhaseRate, Metric: Budget}, float64(s.AppCores))
	targets := map[string]bool{}
	type extremes struct {
		lo, hi float64
		n      int
	}
	cores := map[string]*extremes{}
	measured := 0
	for _, c := range cells {
		if c.first.Kind == plan.KindRate && !targets[c.first.Scenario] {
			targets[c.first.Scenario] = true
			given(Key{Suite: suite, Phase: PhaseRate, Metric: Target, Scenario: c.first.Scenario}, float64(c.first.Target))
		}
		measured += len(c.evidence)
		if c.first.Kind != plan.KindCeiling {
			continue
		}
		for _, r := range figureOf(AppCores).samples(c.evidence) {
			x := cores[c.first.Candidate]
			if x == nil {
				x = &extremes{lo: r.Value, hi: r.Value}
				cores[c.first.Candidate] = x
			}
			x.lo, x.hi = min(x.lo, r.Value), max(x.hi, r.Value)
			x.n++
		}
	}
	count := func(k Key, v float64, n int, estimator string) {
		s.Put(Estimate{Key: k, Value: v, Median: v, Lo: v, Hi: v, N: n, Estimator: estimator})
	}
	for candidate, x := range cores {
		count(Key{Suite: suite, Phase: PhaseCeiling, Metric: CoresLow, Candidate: candidate}, x.lo, x.n, EstimatorCount)
		count(Key{Suite: suite, Phase: PhaseCeiling, Metric: CoresHigh, Candidate: candidate}, x.hi, x.n, EstimatorCount)
	}
	if measured > 0 {
		count(Key{Suite: suite, Phase: PhaseTotal, Metric: NonOK}, failed, measured, EstimatorCount)
	}
	lowest, n, target := 0.0, 0, 0
	for _, p := range probes {
		if p.Reading.Error != "" || Impossible(p.Reading.Achieved) || p.Block.Phase != "" && !isRatePhase(run, p.Block.Phase) {
			continue
		}
		if n == 0 || p.Reading.Achieved < lowest {
			lowest = p.Reading.Achieved
		}
		n++
		target = p.Reading.Target
	}
	if n > 0 {
		k := Key{Suite: suite, Phase: PhaseRate, Metric: ProbeLow}
		s.Put(Estimate{Key: k, Value: lowest, Median: lowest, Lo: lowest, Hi: lowest, N: n, Estimator: EstimatorLeast, Target: target})
	}
}

func isRatePhase(run store.Run, id string) bool {
	for _, p := range run.Preset.Phases {
		if p.ID == id {
			return p.Kind == plan.KindRate
		}
	}
	return id == PhaseRate
}
