package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

// A window meets its target when it achieves at least this share of it and at
// most that share of its requests fails, as the study has it.
const (
	metShare    = 0.99
	metFailures = 0.001
)

// FromStore takes the figures of a run out of its results folder.
func FromStore(s *store.Store) *Set {
	var probes []study.Probe
	h := s.History()
	for _, e := range h.Events {
		if r, ok := store.ReadingOf(e); ok && e.Block != nil {
			probes = append(probes, study.Probe{Block: *e.Block, Reading: r})
		}
	}
	return FromRun(s.Run(), h.Windows(), probes)
}

// FromStudy takes the figures out of a raw folder of the published study.
func FromStudy(s *study.Study) *Set {
	set := FromRun(s.Run, s.Windows, s.Probes)
	set.Kind = KindImported
	return set
}

// ImportedBy is what run.json names as its driver where a results folder was
// made from a raw folder of the published study.
const ImportedBy = "php-go-bench"

// FromRun computes the figures of a run from its windows and probes. Only
// windows whose gates passed are evidence, and of the attempts at one
// repetition the latest of those. Definitions and estimators are the study's:
// the median of the repetitions at a fixed rate, the largest for peak memory,
// the best repetition at each connection count of a ceiling, and the best
// connection count without a failed request for the ceiling itself. Where
// nothing passed, the set knows the reason.
func FromRun(run store.Run, windows []store.WindowResult, probes []study.Probe) *Set {
	set := identity(run)
	cells := group(windows)
	planned := plannedCells(run, cells)
	ceilings := map[string][]*cell{} // candidate/scenario -> cells
	total := 0.0
	for _, c := range planned {
		c.finish()
		switch c.kind {
		case plan.KindRate:
			set.rate(run, c)
		case plan.KindCeiling:
			k := c.candidate + "/" + c.scenario
			ceilings[k] = append(ceilings[k], c)
		}
		for _, w := range c.evidence {
			total += float64(w.Measured.Failed)
		}
	}
	for _, k := range sortedKeys(ceilings) {
		set.ceiling(run, ceilings[k])
	}
	set.overall(run, planned, probes, total)
	return set
}

// identity is what the set says of its run.
func identity(run store.Run) *Set {
	set := NewSet(run.ID, KindRun)
	if run.Percore == ImportedBy {
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

// cell is everything measured of one phase, candidate, scenario, connection
// count and target.
type cell struct {
	phase       string
	kind        plan.Kind
	candidate   string
	scenario    string
	connections int
	target      int
	planned     int // repetitions

	attempts map[int][]store.WindowResult // repetition -> attempts
	evidence []store.WindowResult         // the latest passing attempt of each repetition, in their order
}

func (c *cell) id() string {
	return fmt.Sprintf("%s/%s/%s/%d/%d", c.phase, c.candidate, c.scenario, c.connections, c.target)
}

func group(windows []store.WindowResult) map[string]*cell {
	cells := map[string]*cell{}
	for _, w := range windows {
		c := &cell{phase: w.Phase, kind: w.Kind, candidate: w.Candidate, scenario: w.Scenario, connections: w.Connections, target: w.Target}
		if known := cells[c.id()]; known != nil {
			c = known
		} else {
			c.attempts = map[int][]store.WindowResult{}
			cells[c.id()] = c
		}
		c.attempts[w.Repetition] = append(c.attempts[w.Repetition], w)
	}
	return cells
}

// plannedCells are the cells that the run was to measure and those that it
// measured, in the order of its preset and suite.
func plannedCells(run store.Run, cells map[string]*cell) []*cell {
	var all []*cell
	seen := map[string]bool{}
	candidates := run.Candidates
	if len(candidates) == 0 {
		for _, c := range run.Suite.Candidates {
			candidates = append(candidates, c.ID)
		}
	}
	for _, p := range run.Preset.Phases {
		for _, cand := range candidates {
			for _, s := range run.Suite.Scenarios {
				target := p.Targets[s.ID]
				if p.Kind == plan.KindRate && target == 0 {
					continue
				}
				for _, conn := range p.Connections {
					c := &cell{phase: p.ID, kind: p.Kind, candidate: cand, scenario: s.ID, connections: conn, target: target}
					if known := cells[c.id()]; known != nil {
						c = known
					}
					c.planned = p.Repetitions
					if !seen[c.id()] {
						seen[c.id()] = true
						all = append(all, c)
					}
				}
			}
		}
	}
	for _, id := range sortedKeys(cells) {
		if !seen[id] {
			all = append(all, cells[id])
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// finish finds the evidence of a cell.
func (c *cell) finish() {
	for _, attempts := range c.attempts {
		last := -1
		for i, w := range attempts {
			if w.Passed() && (last < 0 || w.Attempt >= attempts[last].Attempt) {
				last = i
			}
		}
		if last >= 0 {
			c.evidence = append(c.evidence, attempts[last])
		}
	}
	slices.SortFunc(c.evidence, func(a, b store.WindowResult) int { return cmp.Compare(a.Repetition, b.Repetition) })
}

// why says why the cell has no evidence.
func (c *cell) why() string {
	if len(c.attempts) == 0 {
		return NotMeasured
	}
	var gates []string
	broken := ""
	tries := 0
	for _, attempts := range c.attempts {
		for _, w := range attempts {
			tries++
			if w.Error != "" && broken == "" {
				broken = w.Error
			}
			for _, g := range w.Gates {
				if g.Failed() && !slices.Contains(gates, g.Name) {
					gates = append(gates, g.Name)
				}
			}
		}
	}
	slices.Sort(gates)
	switch {
	case len(gates) > 0:
		return fmt.Sprintf("gate failed: %s, in each of %d attempt(s)", strings.Join(gates, ", "), tries)
	case broken != "":
		return "the window broke off: " + broken
	}
	return "the raw files could not be read"
}

// incomplete says which repetitions are no evidence.
func (c *cell) incomplete() string {
	if missing := c.planned - len(c.evidence); missing > 0 && len(c.evidence) > 0 {
		failed := 0
		for _, attempts := range c.attempts {
			if !slices.ContainsFunc(attempts, store.WindowResult.Passed) {
				failed++
			}
		}
		if failed > 0 {
			return fmt.Sprintf("%d of %d repetitions are no evidence: no attempt passed its gates", failed, c.planned)
		}
		return fmt.Sprintf("%d of %d repetitions measured", len(c.evidence), c.planned)
	}
	return ""
}

// windowFigure is a figure of one window.
type windowFigure struct {
	metric    string
	name      string // under which measure knows it, empty when it always is there
	estimator string
	database  bool // whether only scenarios with a database have it
	of        func(*measure.Window) float64
}

var windowFigures = []windowFigure{
	{Achieved, "", EstimatorMedian, false, func(m *measure.Window) float64 { return m.Achieved }},
	{P50, "p50_ms", EstimatorMedian, false, func(m *measure.Window) float64 { return m.P50MS }},
	{P99, "p99_ms", EstimatorMedian, false, func(m *measure.Window) float64 { return m.P99MS }},
	{P999, "p999_ms", EstimatorMedian, false, func(m *measure.Window) float64 { return m.P999MS }},
	{AppCPU, "app_cpu_us", EstimatorMedian, false, func(m *measure.Window) float64 { return m.AppCPUUS }},
	{AppCores, "app_cores", EstimatorMedian, false, func(m *measure.Window) float64 { return m.AppCores }},
	{DBCPU, "db_cpu_us", EstimatorMedian, true, func(m *measure.Window) float64 { return m.DBCPUUS }},
	{DBCores, "db_cores", EstimatorMedian, true, func(m *measure.Window) float64 { return m.DBCores }},
	{PeakMiB, "peak_bytes", EstimatorLargest, false, func(m *measure.Window) float64 { return float64(m.PeakBytes) / (1 << 20) }},
}

// has reports whether a window has a reading of the figure that can be one.
func (f windowFigure) has(w store.WindowResult) bool {
	return (f.name == "" || w.Measured.Has(f.name)) && !f.damaged(w)
}

// damaged reports whether the reading cannot be: none of the figures is below zero.
func (f windowFigure) damaged(w store.WindowResult) bool {
	v := f.of(w.Measured)
	return !(v >= 0) || math.IsInf(v, 0)
}

// samples are the readings of a figure in the windows that have it.
func (f windowFigure) samples(windows []store.WindowResult) []Sample {
	var all []Sample
	for _, w := range windows {
		if f.has(w) {
			all = append(all, Sample{w.Repetition, f.of(w.Measured)})
		}
	}
	return all
}

// why says why windows that passed have no reading of the figure, and damage
// how many of them were left out because theirs cannot be.
func (f windowFigure) why(windows []store.WindowResult) string {
	if n := f.damage(windows); n > 0 {
		return fmt.Sprintf("damaged: %d recorded value(s) below zero or no number", n)
	}
	return "not measured: the raw files do not hold it"
}

func (f windowFigure) damage(windows []store.WindowResult) int {
	n := 0
	for _, w := range windows {
		if f.damaged(w) {
			n++
		}
	}
	return n
}

// incomplete says which repetitions are missing from the figure of a cell.
func (f windowFigure) incomplete(c *cell) string {
	s := c.incomplete()
	if n := f.damage(c.evidence); n > 0 {
		if s != "" {
			s += "; "
		}
		s += fmt.Sprintf("%d left out, recorded below zero or as no number", n)
	}
	return s
}

// rate files the figures of a fixed-rate cell. Where a preset has several rate
// phases or connection counts, the first in its order is the one that a key
// without a connection count means.
func (s *Set) rate(run store.Run, c *cell) {
	key := func(metric string) Key {
		return Key{Suite: run.Suite.Name, Phase: PhaseRate, Metric: metric, Candidate: c.candidate, Scenario: c.scenario}
	}
	put := func(e Estimate) {
		e.Target, e.Connections, e.Window = c.target, c.connections, c.id()
		if _, taken := s.figures[e.Key]; !taken {
			s.Put(e)
		}
		e.Key.Connections = c.connections
		s.Put(e)
	}
	for _, f := range windowFigures {
		if f.database && !s.UsesDatabase(c.scenario) {
			continue
		}
		k := key(f.metric)
		samples := f.samples(c.evidence)
		if len(samples) == 0 {
			why := c.why()
			if len(c.evidence) > 0 {
				why = f.why(c.evidence)
			}
			s.PutAbsent(k, why)
			continue
		}
		e := Estimate{Key: k, Estimator: f.estimator, Samples: samples, Incomplete: f.incomplete(c)}
		e.fill(DisplayConfidence)
		put(e)
	}
	if len(c.evidence) == 0 {
		s.PutAbsent(key(Met), c.why())
		s.PutAbsent(key(Repetitions), c.why())
		return
	}
	met := 0
	for _, w := range c.evidence {
		if meets(w) {
			met++
		}
	}
	for metric, v := range map[string]int{Met: met, Repetitions: len(c.evidence)} {
		e := Estimate{Key: key(metric), Estimator: EstimatorCount, Value: float64(v), N: len(c.evidence), Incomplete: c.incomplete()}
		e.Median, e.Lo, e.Hi = e.Value, e.Value, e.Value
		put(e)
	}
}

// meets reports whether a window met its target.
func meets(w store.WindowResult) bool {
	m := w.Measured
	return m.Achieved >= metShare*float64(w.Target) && float64(m.Failed) <= metFailures*float64(m.OK+m.Failed)
}

// best is the repetition with the highest rate.
func best(windows []store.WindowResult) *store.WindowResult {
	var b *store.WindowResult
	for i := range windows {
		if b == nil || windows[i].Measured.Achieved > b.Measured.Achieved {
			b = &windows[i]
		}
	}
	return b
}

// ceiling files the figures of the ceiling cells of one candidate and scenario:
// each connection count under its own key, and the best one without.
func (s *Set) ceiling(run store.Run, cells []*cell) {
	var top *cell
	var lowest, highest float64
	spread := 0
	for _, c := range cells {
		key := func(metric string) Key {
			return Key{Suite: run.Suite.Name, Phase: PhaseCeiling, Metric: metric, Candidate: c.candidate, Scenario: c.scenario, Connections: c.connections}
		}
		b := best(c.evidence)
		if b == nil {
			s.PutAbsent(key(Achieved), c.why())
			continue
		}
		for _, e := range ceilingFigures(s, c, b, key) {
			s.Put(e)
		}
		for _, w := range c.evidence {
			v := w.Measured.Achieved
			if spread == 0 || v < lowest {
				lowest = v
			}
			if spread == 0 || v > highest {
				highest = v
			}
			spread++
		}
		if b.Measured.Failed == 0 && (top == nil || b.Measured.Achieved > best(top.evidence).Measured.Achieved) {
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
		return Key{Suite: run.Suite.Name, Phase: PhaseCeiling, Metric: metric, Candidate: first.candidate, Scenario: first.scenario}
	}
	if top == nil {
		why := first.why()
		if spread > 0 {
			why = "no ceiling: the best repetition of every connection count had failed requests"
		}
		for _, f := range windowFigures {
			if !f.database || s.UsesDatabase(first.scenario) {
				s.PutAbsent(bare(f.metric), why)
			}
		}
	} else {
		for _, e := range ceilingFigures(s, top, best(top.evidence), bare) {
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
func ceilingFigures(s *Set, c *cell, b *store.WindowResult, key func(string) Key) []Estimate {
	var all []Estimate
	for _, f := range windowFigures {
		if f.database && !s.UsesDatabase(c.scenario) {
			continue
		}
		if !f.has(*b) {
			if f.damaged(*b) {
				s.PutAbsent(key(f.metric), f.why(c.evidence))
			}
			continue
		}
		e := Estimate{
			Key: key(f.metric), Estimator: EstimatorBest, Samples: f.samples(c.evidence),
			Connections: c.connections, Window: c.id(), Incomplete: f.incomplete(c),
		}
		e.fill(DisplayConfidence)
		e.Value = f.of(b.Measured)
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
		if c.kind == plan.KindRate && !targets[c.scenario] {
			targets[c.scenario] = true
			given(Key{Suite: suite, Phase: PhaseRate, Metric: Target, Scenario: c.scenario}, float64(c.target))
		}
		measured += len(c.evidence)
		if c.kind != plan.KindCeiling {
			continue
		}
		for _, w := range c.evidence {
			if !w.Measured.Has("app_cores") {
				continue
			}
			x := cores[c.candidate]
			if x == nil {
				x = &extremes{lo: w.Measured.AppCores, hi: w.Measured.AppCores}
				cores[c.candidate] = x
			}
			x.lo, x.hi = min(x.lo, w.Measured.AppCores), max(x.hi, w.Measured.AppCores)
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
		if p.Reading.Error != "" || p.Block.Phase != "" && !isRatePhase(run, p.Block.Phase) {
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
