package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// A window meets its target when it achieves at least this share of it and at
// most that share of its requests fails, as the study has it.
const (
	metShare    = 0.99
	metFailures = 0.001
)

// cell is everything measured of one phase, candidate, scenario, connection
// count and target. Tables and figures are made of the same cells.
type cell struct {
	first    plan.Window
	planned  int // repetitions
	attempts []*store.WindowResult
	tried    map[int]bool          // repetitions of which there is an attempt
	evidence []*store.WindowResult // the latest passing attempt of each repetition, in their order
	// used are the windows on which the figures rest: those with evidence or,
	// where there are none, the latest attempts that were measured. The figures
	// are then good for a look alone.
	used    []*store.WindowResult
	best    *store.WindowResult // of those used, the one with the highest rate; nil when none has a rate
	figures map[string]Estimate // by metric
}

type cellKey struct {
	phase, candidate, scenario string
	connections, target        int
}

func keyOf(w plan.Window) cellKey {
	return cellKey{w.Phase, w.Candidate, w.Scenario, w.Connections, w.Target}
}

func (c *cell) id() string {
	w := c.first
	return fmt.Sprintf("%s/%s/%s/%d/%d", w.Phase, w.Candidate, w.Scenario, w.Connections, w.Target)
}

// gather sorts the attempts into cells, finds the evidence of each and estimates
// its figures. The cells are those that were planned and those that were
// measured, by phase, scenario, candidate and connections in the plan's order.
func gather(run store.Run, windows []store.WindowResult) []*cell {
	by := map[cellKey]*cell{}
	var cells []*cell
	at := func(w plan.Window) *cell {
		k := keyOf(w)
		c := by[k]
		if c == nil {
			c = &cell{first: w, tried: map[int]bool{}}
			by[k] = c
			cells = append(cells, c)
		}
		return c
	}
	for _, b := range run.List().Blocks {
		for _, w := range b.Windows {
			at(w)
		}
	}
	for i := range windows {
		c := at(windows[i].Window)
		c.attempts = append(c.attempts, &windows[i])
		c.tried[windows[i].Repetition] = true
	}
	repetitions := map[string]int{}
	for _, p := range run.Preset.Phases {
		repetitions[p.ID] = p.Repetitions
	}
	for _, c := range cells {
		c.planned = repetitions[c.first.Phase]
		c.choose()
		c.estimate()
	}
	rank := ranks(run)
	slices.SortStableFunc(cells, func(one, other *cell) int {
		a, b := one.first, other.first
		return cmp.Or(
			cmp.Compare(rank("phase", a.Phase), rank("phase", b.Phase)),
			cmp.Compare(rank("scenario", a.Scenario), rank("scenario", b.Scenario)),
			cmp.Compare(rank("candidate", a.Candidate), rank("candidate", b.Candidate)),
			cmp.Compare(a.Connections, b.Connections),
			cmp.Compare(a.Target, b.Target),
			strings.Compare(a.Phase+"\x00"+a.Scenario+"\x00"+a.Candidate, b.Phase+"\x00"+b.Scenario+"\x00"+b.Candidate),
		)
	})
	return cells
}

// ranks orders names as the plan has them; names it does not have come last.
func ranks(run store.Run) func(kind, name string) int {
	at := map[string]int{}
	for i, p := range run.Preset.Phases {
		at["phase\x00"+p.ID] = i + 1
	}
	for i, s := range run.Suite.Scenarios {
		at["scenario\x00"+s.ID] = i + 1
	}
	for i, c := range run.Suite.Candidates {
		at["candidate\x00"+c.ID] = i + 1
	}
	return func(kind, name string) int {
		if n := at[kind+"\x00"+name]; n > 0 {
			return n
		}
		return len(at) + 1
	}
}

// choose finds the windows on which the figures rest.
func (c *cell) choose() {
	latest := func(ok func(*store.WindowResult) bool) []*store.WindowResult {
		by := map[int]*store.WindowResult{}
		for _, w := range c.attempts {
			if have := by[w.Repetition]; ok(w) && (have == nil || w.Attempt >= have.Attempt) {
				by[w.Repetition] = w
			}
		}
		list := make([]*store.WindowResult, 0, len(by))
		for _, w := range by {
			list = append(list, w)
		}
		slices.SortFunc(list, func(a, b *store.WindowResult) int { return cmp.Compare(a.Repetition, b.Repetition) })
		return list
	}
	c.evidence = latest(func(w *store.WindowResult) bool { return w.Passed() })
	c.used = c.evidence
	if len(c.used) == 0 {
		c.used = latest(func(w *store.WindowResult) bool { return w.Measured != nil })
	}
	rate := figureOf(Achieved)
	for _, w := range c.used {
		if rate.has(w) && (c.best == nil || w.Measured.Achieved > c.best.Measured.Achieved) {
			c.best = w
		}
	}
}

// evidenceOf is the window that is evidence of a repetition, nil when none is.
func (c *cell) evidenceOf(repetition int) *store.WindowResult {
	i, ok := slices.BinarySearchFunc(c.evidence, repetition, func(w *store.WindowResult, r int) int { return cmp.Compare(w.Repetition, r) })
	if !ok {
		return nil
	}
	return c.evidence[i]
}

// estimate makes the figures of the cell. Those of a ceiling are the best
// repetition's, with the repetitions beside them.
func (c *cell) estimate() {
	c.figures = map[string]Estimate{}
	for _, f := range windowFigures {
		samples := f.samples(c.used)
		ceiling := c.first.Kind == plan.KindCeiling
		if len(samples) == 0 || ceiling && (c.best == nil || !f.has(c.best)) {
			continue
		}
		e := Estimate{Key: Key{Metric: f.metric}, Estimator: f.estimator, Samples: samples}
		if ceiling {
			e.Estimator = EstimatorBest
		}
		e.fill(DisplayConfidence)
		if ceiling {
			e.Value = f.of(c.best.Measured)
		}
		c.figures[f.metric] = e
	}
}

// met counts the windows with evidence that met their target.
func (c *cell) met() int {
	n := 0
	rate := figureOf(Achieved)
	for _, w := range c.evidence {
		m := w.Measured
		if rate.has(w) && m.Achieved >= metShare*float64(w.Target) && float64(m.Failed) <= metFailures*float64(m.OK+m.Failed) {
			n++
		}
	}
	return n
}

// why says why the cell has no evidence.
func (c *cell) why() Absence {
	if len(c.attempts) == 0 {
		return Absence{}
	}
	var gates []string
	broken := ""
	for _, w := range c.attempts {
		if broken == "" {
			broken = w.Error
		}
		for _, g := range w.Gates {
			if g.Failed() && !slices.Contains(gates, g.Name) {
				gates = append(gates, g.Name)
			}
		}
	}
	slices.Sort(gates)
	switch {
	case len(gates) > 0:
		return Absence{GateFailed, fmt.Sprintf("%s, in each of %d attempt(s)", strings.Join(gates, ", "), len(c.attempts))}
	case broken != "":
		return Absence{BrokenOff, broken}
	}
	return Absence{Cause: Unreadable}
}

// incomplete says which repetitions are no evidence.
func (c *cell) incomplete() string {
	switch {
	case len(c.evidence) == 0 || len(c.evidence) >= c.planned:
		return ""
	case len(c.tried) > len(c.evidence):
		return fmt.Sprintf("%d of %d repetitions are no evidence: no attempt passed its gates", len(c.tried)-len(c.evidence), c.planned)
	}
	return fmt.Sprintf("%d of %d repetitions measured", len(c.evidence), c.planned)
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

// figureOf is the figure of a window that a metric names.
func figureOf(metric string) windowFigure {
	return windowFigures[slices.IndexFunc(windowFigures, func(f windowFigure) bool { return f.metric == metric })]
}

// Impossible reports whether a reading cannot be: no figure is below zero, none
// is infinite and each is a number. Such a reading is left out of every figure
// and every table.
func Impossible(v float64) bool { return !(v >= 0) || math.IsInf(v, 0) }

// damaged reports whether a window has a reading of the figure that cannot be.
func (f windowFigure) damaged(w *store.WindowResult) bool {
	return (f.name == "" || w.Measured.Has(f.name)) && Impossible(f.of(w.Measured))
}

// has reports whether a window has a reading of the figure that can be one.
func (f windowFigure) has(w *store.WindowResult) bool {
	return (f.name == "" || w.Measured.Has(f.name)) && !Impossible(f.of(w.Measured))
}

// samples are the readings of a figure in the windows that have it.
func (f windowFigure) samples(windows []*store.WindowResult) []Sample {
	var all []Sample
	for _, w := range windows {
		if f.has(w) {
			all = append(all, Sample{w.Repetition, f.of(w.Measured)})
		}
	}
	return all
}

// why says why windows that passed have no reading of the figure.
func (f windowFigure) why(windows []*store.WindowResult) Absence {
	if n := f.damage(windows); n > 0 {
		return Absence{Damaged, fmt.Sprintf("%d recorded value(s) below zero or no number", n)}
	}
	return Absence{Cause: NotSampled}
}

// damage counts the windows that were left out because their reading cannot be.
func (f windowFigure) damage(windows []*store.WindowResult) int {
	n := 0
	for _, w := range windows {
		if f.damaged(w) {
			n++
		}
	}
	return n
}

// leftOut says how many readings of the figure were left out because they cannot be.
func (f windowFigure) leftOut(windows []*store.WindowResult) string {
	if n := f.damage(windows); n > 0 {
		return fmt.Sprintf("%d left out, recorded below zero or as no number", n)
	}
	return ""
}

// incomplete says which repetitions are missing from the figure of a cell.
func (f windowFigure) incomplete(c *cell) string {
	var why []string
	for _, s := range []string{c.incomplete(), f.leftOut(c.evidence)} {
		if s != "" {
			why = append(why, s)
		}
	}
	return strings.Join(why, "; ")
}
