// Package portability puts sets of figures side by side and says what travels
// from one host to another.
//
// The CPU time that a request costs on another host is taken apart into one
// factor of the host and a residual of each candidate and scenario. The factor
// is the median of the ratios over all candidates and scenarios, computed on
// logarithms so that swapping the hosts inverts it. It is a median because one
// candidate that travels badly must not bend it: up to half of the cells may be
// off. What a cell's ratio is beyond the factor is its residual, and that is
// what does not travel. It is told from noise by bounds that hold both the noise of the
// cell and that of the factor. A measure that depends on no candidate, RSA
// verifications per second on one core, checks the factor where both hosts
// have it.
//
// A database that runs on a host of its own has a factor of its own, fitted on
// its CPU time per request and checked by its own host's measure.
package portability

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/base/fail"
)

// Schema names the layout of Report as JSON.
const Schema = "percore-compare/1"

// Report compares sets with the first of them.
type Report struct {
	Schema     string         `json:"schema"`
	Sets       []*figures.Set `json:"sets"`
	Labels     []string       `json:"labels"`     // how sentences name the sets' hosts
	Mismatches []string       `json:"mismatches"` // said before any figure
	Cells      []Cell         `json:"cells"`
	Pairs      []Pair         `json:"pairs"` // the first set with each other one
}

// Cell is one figure over all sets.
type Cell struct {
	Figure figures.Key `json:"figure"`
	Unit   string      `json:"unit,omitempty"`
	Values []Value     `json:"values"` // by set
}

// Value is a figure of one set, with its ratio to the first set's.
type Value struct {
	Estimate *figures.Estimate `json:"estimate,omitempty"` // nil where it is absent
	Why      string            `json:"why,omitempty"`      // it is absent
	known    bool              // whether more is known of it than that it was not measured
	Ratio    *figures.Quotient `json:"ratio,omitempty"` // to the first set's; nil for that and where one is absent
}

// Pair is the decomposition of one host against the reference.
type Pair struct {
	Reference string     `json:"reference"`
	Set       string     `json:"set"`
	Factor    *Factor    `json:"factor,omitempty"` // nil when no cell is in both
	Neutral   *Neutral   `json:"neutral,omitempty"`
	Database  *Database  `json:"database,omitempty"` // nil where the databases ran on the candidates' hosts
	Residuals []Residual `json:"residuals"`
	Findings  []string   `json:"findings"` // sentences for a planner
}

// Database is the same for the hosts of the databases.
type Database struct {
	Reference string   `json:"reference"` // how sentences name the hosts
	Host      string   `json:"host"`
	Factor    Factor   `json:"factor"`
	Neutral   *Neutral `json:"neutral,omitempty"` // nil where a host has no such measure
}

// Factor is how much more CPU a request costs on one host than on another.
type Factor struct {
	Value      float64  `json:"value"`
	Lo         float64  `json:"lo"` // of the median over the cells
	Hi         float64  `json:"hi"`
	Confidence float64  `json:"confidence"` // 0 when there is no interval
	Noise      Bounds   `json:"noise"`      // of the factor of these very cells, by their repetitions
	Least      float64  `json:"least"`      // ratio of any cell
	Greatest   float64  `json:"greatest"`
	Cells      int      `json:"cells"`
	Candidates int      `json:"candidates"`
	Phase      string   `json:"phase"` // whose CPU per request it was fitted on
	Warnings   []string `json:"warnings,omitempty"`
}

// Bounds hold a value with a probability; 0 means that there are none.
type Bounds struct {
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`
}

// Neutral compares the factor with a measure that no candidate has a part in.
type Neutral struct {
	Measure   string  `json:"measure"`
	Predicted float64 `json:"predicted"` // factor
	Agrees    bool    `json:"agrees"`    // within NeutralTolerance
}

// NeutralTolerance is how far the factor may be from the neutral measure's.
const NeutralTolerance = 0.1

// Residual is what a cell's ratio is beyond the factor. Its bounds are those of
// the ratio over those of the factor's noise.
type Residual struct {
	Figure     figures.Key      `json:"figure"`
	Ratio      figures.Quotient `json:"ratio"`
	Value      float64          `json:"value"` // ratio over factor
	Lo         float64          `json:"lo"`
	Hi         float64          `json:"hi"`
	Confidence float64          `json:"confidence"`
	Noise      Noise            `json:"noise"`
}

// Noise says whether a residual can be told from noise.
type Noise string

const (
	OutsideNoise Noise = "outside noise"
	WithinNoise  Noise = "within noise"
	CannotTell   Noise = "too few repetitions"
	TooFewCells  Noise = "too few combinations" // in common: the factor is theirs
)

// Worth is the residual below which a planner need not care.
const Worth = 0.02

// shown are the metrics that are put side by side, with the phases that have them.
var shown = []struct{ phase, metric string }{
	{figures.PhaseRate, figures.AppCPU},
	{figures.PhaseRate, figures.DBCPU},
	{figures.PhaseRate, figures.Achieved},
	{figures.PhaseRate, figures.P99},
	{figures.PhaseRate, figures.PeakMiB},
	{figures.PhaseCeiling, figures.Achieved},
	{figures.PhaseCapacity, figures.Achieved},
	{figures.PhaseCapacity, figures.AppCPU},
}

// Compare compares sets with the first of them. It needs two at least.
func Compare(sets ...*figures.Set) (Report, error) {
	if len(sets) < 2 {
		return Report{}, fail.Input("a comparison needs at least two runs").Try("name another, or published")
	}
	for _, s := range sets[1:] {
		if s.Suite != sets[0].Suite {
			return Report{}, fail.Input("%s measured the suite %q and %s %q", sets[0].Name, sets[0].Suite, s.Name, s.Suite).Try("compare runs of one suite")
		}
	}
	r := Report{Schema: Schema, Sets: sets, Labels: labels(sets), Mismatches: mismatches(sets)}
	for _, at := range shown {
		for _, k := range keys(sets, at.phase, at.metric) {
			r.Cells = append(r.Cells, cell(sets, k))
		}
	}
	for i, s := range sets[1:] {
		for _, g := range gaps(sets[0], s) {
			if !slices.Contains(r.Mismatches, g) {
				r.Mismatches = append(r.Mismatches, g)
			}
		}
		r.Pairs = append(r.Pairs, pair(sets[0], s, r.Labels[0], r.Labels[i+1]))
	}
	return r, nil
}

// labels names the hosts in sentences, and the sets where hosts are called the same.
func labels(sets []*figures.Set) []string {
	count := map[string]int{}
	for _, s := range sets {
		count[s.Host.Label]++
	}
	var all []string
	for _, s := range sets {
		l := s.Host.Label
		switch {
		case l == "":
			l = s.Name
		case count[l] > 1:
			l += " (" + s.Name + ")"
		}
		all = append(all, l)
	}
	return all
}

// keys are the figures of a metric that any set has, in the order of the first
// set's candidates and scenarios.
func keys(sets []*figures.Set, phase, metric string) []figures.Key {
	var all []figures.Key
	seen := map[figures.Key]bool{}
	for _, s := range sets {
		for _, e := range s.All() {
			k := e.Key
			if k.Suite == sets[0].Suite && k.Phase == phase && k.Metric == metric && k.Candidate != "" && k.Connections == 0 && k.Rate == 0 && !seen[k] {
				seen[k] = true
				all = append(all, k)
			}
		}
	}
	candidates, scenarios := union(sets, candidatesOf), union(sets, scenariosOf)
	rank := func(names []string, name string) int {
		if i := slices.Index(names, name); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(all, func(a, b figures.Key) int {
		return cmp.Or(rank(candidates, a.Candidate)-rank(candidates, b.Candidate), rank(scenarios, a.Scenario)-rank(scenarios, b.Scenario))
	})
	return all
}

func candidatesOf(s *figures.Set) []string { return s.Candidates }
func scenariosOf(s *figures.Set) []string  { return s.Scenarios }

// union are the names of all sets, in the order in which they first appear.
func union(sets []*figures.Set, names func(*figures.Set) []string) []string {
	var all []string
	for _, s := range sets {
		for _, name := range names(s) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// gaps says which combinations of candidate and scenario only one of two sets
// has the CPU per request of, and why: the factor does not rest on them.
func gaps(a, b *figures.Set) []string {
	phase := figures.PhaseRate
	if f, _ := fitAny(a, b, figures.AppCPU); f != nil {
		phase = f.Phase
	}
	both := []*figures.Set{a, b}
	scenarios := union(both, scenariosOf)
	var said []string
	for _, s := range both {
		for _, candidate := range union(both, candidatesOf) {
			known := 0 // scenarios that either set knows of for the candidate
			missing := map[figures.Absence][]string{}
			var order []figures.Absence
			for _, sc := range scenarios {
				k := figures.Key{Suite: a.Suite, Phase: phase, Metric: figures.AppCPU, Candidate: candidate, Scenario: sc}
				_, inA := a.Get(k)
				_, inB := b.Get(k)
				if !inA && !inB && a.Why(k).Cause == figures.Unmeasured && b.Why(k).Cause == figures.Unmeasured {
					continue
				}
				known++
				if _, ok := s.Get(k); ok {
					continue
				}
				why := s.Why(k)
				if missing[why] == nil {
					order = append(order, why)
				}
				missing[why] = append(missing[why], sc)
			}
			for _, why := range order {
				what, was, has := candidate, "was", "has"
				if n := len(missing[why]); n < known {
					what += "'s " + sheet.Enumerate(missing[why])
					if n > 1 {
						was, has = "were", "have"
					}
				}
				if why.Cause == figures.Unmeasured {
					said = append(said, fmt.Sprintf("%s %s not measured in %s: no ratio rests on that.", what, was, s.Name))
				} else {
					said = append(said, fmt.Sprintf("%s %s no evidence in %s (%s): no ratio rests on that.", what, has, s.Name, why))
				}
			}
		}
	}
	return said
}

func cell(sets []*figures.Set, k figures.Key) Cell {
	c := Cell{Figure: k, Unit: figures.Unit(k.Metric)}
	first, ok := sets[0].Get(k)
	for i, s := range sets {
		e, there := s.Get(k)
		if !there {
			c.Values = append(c.Values, Value{Why: s.Why(k).String(), known: s.Why(k).Cause != figures.Unmeasured})
			continue
		}
		v := Value{Estimate: &e}
		if i > 0 && ok && first.Value > 0 {
			q := figures.Compare(e, first, figures.VerdictConfidence)
			if byValue(e) || byValue(first) {
				// The interval would be that of the medians.
				q.Lo, q.Hi, q.Confidence, q.Warnings = q.Value, q.Value, 0, nil
			}
			v.Ratio = &q
		}
		c.Values = append(c.Values, v)
	}
	return c
}

// byValue reports whether the value is the best or the largest of its
// repetitions, for which there is no interval.
func byValue(e figures.Estimate) bool {
	return e.Estimator == figures.EstimatorBest || e.Estimator == figures.EstimatorLargest
}

// mismatches says in what the sets differ that a reader must know first.
func mismatches(sets []*figures.Set) []string {
	var all []string
	a := sets[0]
	for _, s := range sets {
		if s.SharedCores {
			all = append(all, fmt.Sprintf("In %s the roles share cores: its figures hold what the load generator and the database took from the candidate.", s.Name))
		}
		if s.AppThreads > 1 {
			all = append(all, fmt.Sprintf("In %s up to %d of the candidate's cores are threads of one core: its figures per core are not comparable with those of one thread per core.", s.Name, s.AppThreads))
		}
	}
	for _, b := range sets[1:] {
		if a.Flavour != b.Flavour {
			all = append(all, fmt.Sprintf("%s is of flavour %s and %s of flavour %s: other versions of the same programs, so a difference need not be the hardware's.", a.Name, a.Flavour, b.Name, b.Flavour))
		}
		if a.AppCores != b.AppCores && a.AppCores > 0 && b.AppCores > 0 {
			all = append(all, fmt.Sprintf("The candidates had %d core(s) in %s and %d in %s: compare CPU per request and ratios, not rates.", a.AppCores, a.Name, b.AppCores, b.Name))
		}
		if t := targets(a, b); t != "" {
			all = append(all, fmt.Sprintf("At the fixed rate %s and %s sent different numbers of requests (%s): CPU per request depends on that a little, latency much.", a.Name, b.Name, t))
		}
		if a.Protocol != b.Protocol {
			short := b
			if b.Protocol {
				short = a
			}
			all = append(all, fmt.Sprintf("%s was measured by the preset %s, which is shorter than the published protocol.", short.Name, short.Preset))
		}
		if v := versions(a, b); v != "" && a.Flavour == b.Flavour {
			all = append(all, fmt.Sprintf("Versions differ between %s and %s: %s.", a.Name, b.Name, v))
		}
	}
	return all
}

func targets(a, b *figures.Set) string {
	var all []string
	for _, sc := range a.Scenarios {
		k := figures.Key{Suite: a.Suite, Phase: figures.PhaseRate, Metric: figures.Target, Scenario: sc}
		x, ok := a.Get(k)
		y, there := b.Get(k)
		if ok && there && x.Value != y.Value {
			all = append(all, fmt.Sprintf("%s %.0f/s and %.0f/s", sc, x.Value, y.Value))
		}
	}
	return strings.Join(all, ", ")
}

func versions(a, b *figures.Set) string {
	norm := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "-")) }
	other := map[string]string{}
	for name, v := range b.Versions {
		other[norm(name)] = v
	}
	var all []string
	for name, v := range a.Versions {
		w, ok := other[norm(name)]
		if ok && v != "" && w != "" && !strings.Contains(v, w) && !strings.Contains(w, v) {
			all = append(all, fmt.Sprintf("%s %s and %s", norm(name), v, w))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// pair takes apart the CPU per request of one host against the reference's.
func pair(a, b *figures.Set, labelA, labelB string) Pair {
	p := Pair{Reference: a.Name, Set: b.Name, Residuals: []Residual{}}
	p.Factor, p.Residuals = fitAny(a, b, figures.AppCPU)
	if p.Factor == nil {
		p.Findings = []string{fmt.Sprintf("%s and %s have no CPU per request in common, so nothing can be said about what travels.", labelA, labelB)}
		return p
	}
	for i := range p.Residuals {
		p.Residuals[i].of(*p.Factor)
	}
	p.Neutral = neutral(a.Host, b.Host, *p.Factor)
	if a.Database != nil || b.Database != nil {
		if f, _ := fitAny(a, b, figures.DBCPU); f != nil {
			hostA, hostB := a.DatabaseHost(), b.DatabaseHost()
			p.Database = &Database{Reference: cmp.Or(hostA.Label, labelA), Host: cmp.Or(hostB.Label, labelB), Factor: *f, Neutral: neutral(hostA, hostB, *f)}
		}
	}
	p.say(a, b, labelA, labelB)
	return p
}

const neutralMeasure = "RSA-2048 verifications per second on one core"

// neutral predicts the factor from what no candidate has a part in, nil where a
// host was not asked.
func neutral(a, b figures.Host, f Factor) *Neutral {
	if a.RSAVerifyPerS <= 0 || b.RSAVerifyPerS <= 0 {
		return nil
	}
	predicted := a.RSAVerifyPerS / b.RSAVerifyPerS
	return &Neutral{neutralMeasure, predicted, math.Abs(math.Log(f.Value/predicted)) <= math.Log(1+NeutralTolerance)}
}

// fitAny fits the factor on the first phase in which both sets have a metric of
// CPU per request.
func fitAny(a, b *figures.Set, metric string) (*Factor, []Residual) {
	for _, phase := range []string{figures.PhaseRate, figures.PhaseCeiling, figures.PhaseCapacity} {
		if f, ratios := fit(a, b, phase, metric); f != nil {
			return f, ratios
		}
	}
	return nil, []Residual{}
}

// fit fits the factor on the CPU per request of one phase, and gives the ratios
// that it was fitted on.
func fit(a, b *figures.Set, phase, metric string) (*Factor, []Residual) {
	var logs, lows, highs []float64
	confidence := 1.0 // of the ratio that reaches the least
	var ratios []Residual
	candidates := map[string]bool{}
	for _, k := range keys([]*figures.Set{a, b}, phase, metric) {
		x, ok := a.Get(k)
		y, there := b.Get(k)
		if !ok || !there || !(x.Value > 0) || !(y.Value > 0) {
			continue
		}
		q := figures.Compare(y, x, figures.VerdictConfidence)
		logs = append(logs, math.Log(q.Value))
		lows, highs = append(lows, math.Log(q.Lo)), append(highs, math.Log(q.Hi))
		if confidence = min(confidence, q.Confidence); !(q.Lo > 0) {
			confidence = 0
		}
		candidates[k.Candidate] = true
		ratios = append(ratios, Residual{Figure: k, Ratio: q})
	}
	if len(logs) == 0 {
		return nil, nil
	}
	m := figures.MedianOf(logs, figures.DisplayConfidence)
	f := &Factor{
		Value: math.Exp(m.Median), Lo: math.Exp(m.Lo), Hi: math.Exp(m.Hi), Confidence: m.Confidence,
		Least: math.Exp(slices.Min(logs)), Greatest: math.Exp(slices.Max(logs)),
		Cells: len(logs), Candidates: len(candidates), Phase: phase,
	}
	if c := medianHolds(f.Cells, confidence); c > 0 {
		f.Noise = Bounds{
			Lo:         math.Exp(figures.MedianOf(lows, figures.DisplayConfidence).Median),
			Hi:         math.Exp(figures.MedianOf(highs, figures.DisplayConfidence).Median),
			Confidence: c,
		}
	}
	if f.Candidates < 2 {
		f.Warnings = append(f.Warnings, "with one candidate in common, its own difference cannot be told from the hardware's")
	}
	if m.Confidence < figures.DisplayConfidence {
		f.Warnings = append(f.Warnings, fmt.Sprintf("fitted on %d cell(s) only", f.Cells))
	}
	return f, ratios
}

// medianHolds is the least probability with which the median of n values lies
// between the median of their lower and that of their upper bounds, where each
// value lies between its own, independently of the others, with the confidence.
// The median of the lower bounds is above that of the values only where at least
// half of them are above theirs.
func medianHolds(n int, confidence float64) float64 {
	if n == 0 || confidence <= 0 {
		return 0
	}
	tail := (1 - confidence) / 2
	miss := 0.0
	for k := (n + 1) / 2; k <= n; k++ {
		miss += math.Exp(logChoose(n, k)) * math.Pow(tail, float64(k)) * math.Pow(1-tail, float64(n-k))
	}
	return max(0, 1-2*miss)
}

func logChoose(n, k int) float64 {
	g := func(v int) float64 { l, _ := math.Lgamma(float64(v + 1)); return l }
	return g(n) - g(k) - g(n-k)
}

// enough is the confidence that the bounds of the factor's noise must have for
// residuals to be told from noise: with one or two cells in common the factor is
// theirs.
const enough = 0.95

// of takes the residual of a ratio. The confidence is what Bonferroni leaves of
// those of the ratio and of the factor.
func (r *Residual) of(f Factor) {
	r.Value = r.Ratio.Value / f.Value
	r.Lo, r.Hi, r.Confidence = r.Value, r.Value, 0
	if c := r.Ratio.Confidence + f.Noise.Confidence - 1; r.Ratio.Confidence > 0 && f.Noise.Confidence > 0 && c > 0 {
		r.Lo, r.Hi, r.Confidence = r.Ratio.Lo/f.Noise.Hi, r.Ratio.Hi/f.Noise.Lo, c
	}
	switch {
	case r.Ratio.Confidence >= figures.VerdictConfidence && f.Noise.Confidence < enough && f.Cells < 3:
		r.Noise = TooFewCells
	case r.Ratio.Confidence < figures.VerdictConfidence || f.Noise.Confidence < enough:
		r.Noise = CannotTell
	case r.Lo > 1 || r.Hi < 1:
		r.Noise = OutsideNoise
	default:
		r.Noise = WithinNoise
	}
}

// say writes the findings.
func (p *Pair) say(a, b *figures.Set, labelA, labelB string) {
	f := p.Factor
	var fitted []string
	for _, r := range p.Residuals {
		if !slices.Contains(fitted, r.Figure.Candidate) {
			fitted = append(fitted, r.Figure.Candidate)
		}
	}
	all := "every candidate needs"
	switch {
	case len(fitted) == 1:
		all = fitted[0] + " needs"
	case len(fitted) < len(union([]*figures.Set{a, b}, candidatesOf)):
		all = "each of " + sheet.Enumerate(fitted) + " needs"
	}
	spread := f.spread()
	if math.Abs(math.Log(f.Value)) < math.Log(1+Worth) {
		p.Findings = append(p.Findings, fmt.Sprintf("On %s %s the CPU per request that %s needs, within 2 %% (%s).", labelB, all, labelA, spread))
	} else {
		p.Findings = append(p.Findings, fmt.Sprintf("On %s %s %.2f× the CPU per request of %s (%s).", labelB, all, f.Value, labelA, spread))
	}
	if p.Neutral != nil {
		p.Findings = append(p.Findings, p.Neutral.says())
	} else {
		p.Findings = append(p.Findings, "That factor stands unchecked: "+unmeasured(a.Host, b.Host, labelA, labelB)+".")
	}
	if db := p.Database; db != nil {
		p.Findings = append(p.Findings, fmt.Sprintf("The database on %s needs %.2f× the CPU per request of that on %s (%s).", db.Host, db.Factor.Value, db.Reference, db.Factor.spread()))
		if db.Neutral != nil {
			p.Findings = append(p.Findings, "Of the databases' hosts "+db.Neutral.says())
		} else {
			p.Findings = append(p.Findings, "The databases' factor stands unchecked: "+unmeasured(a.DatabaseHost(), b.DatabaseHost(), db.Reference, db.Host)+".")
		}
	}
	predicts := labelA + " predicts"
	if a.Kind == figures.KindPublished {
		predicts = "the study predicts"
	}
	outside, unknown, few := 0, 0, 0
	for _, r := range p.Residuals {
		switch {
		case r.Noise == TooFewCells:
			unknown++
			few++
		case r.Noise == CannotTell:
			unknown++
		case r.Noise == OutsideNoise && math.Abs(r.Value-1) >= Worth:
			outside++
			word, by := "dearer", r.Value-1
			if by < 0 {
				word, by = "cheaper", -by
			}
			p.Findings = append(p.Findings, fmt.Sprintf("After that factor %s's %s is %.0f %% %s than %s, outside noise (%s interval %s to %s).",
				r.Figure.Candidate, scenario(r.Figure), 100*by, word, predicts, figures.Percent(r.Confidence), signed(r.Lo-1), signed(r.Hi-1)))
		}
	}
	switch told := len(p.Residuals) - unknown; {
	case told == 0 && few > 0:
		p.Findings = append(p.Findings, fmt.Sprintf("With %d combination(s) in common a candidate's own difference cannot be told from the hardware's.", f.Cells))
	case told == 0:
		p.Findings = append(p.Findings, "There are too few repetitions to tell a candidate's own difference from noise: 3 in both, or 5 against the study's figures, are needed.")
	case outside == 0:
		p.Findings = append(p.Findings, fmt.Sprintf("After that factor nothing differs from what %s beyond noise in %d of %d combinations.", predicts, told, len(p.Residuals)))
	}
	if told := len(p.Residuals) - unknown; outside > 0 && told > 1 {
		p.Findings = append(p.Findings, fmt.Sprintf("Each is held against noise by itself: of %d comparisons, noise alone may put up to %.1f outside on average.", told, p.byChance()))
	}
	if unknown > 0 && unknown < len(p.Residuals) {
		p.Findings = append(p.Findings, fmt.Sprintf("For %d combination(s) there are too few repetitions to tell.", unknown))
	}
}

// byChance bounds how many comparisons noise alone puts outside on average.
func (p *Pair) byChance() float64 {
	n := 0.0
	for _, r := range p.Residuals {
		if r.Noise == OutsideNoise || r.Noise == WithinNoise {
			n += 1 - r.Confidence
		}
	}
	return n
}

// spread says on what the factor rests, and how well it is known.
func (f Factor) spread() string {
	if f.Cells == 1 {
		return "by one combination of candidate and scenario"
	}
	interval := ""
	if f.Confidence > 0 {
		interval = fmt.Sprintf("%s interval %.3f to %.3f; ", figures.Percent(f.Confidence), f.Lo, f.Hi)
	}
	return fmt.Sprintf("%sover %d combinations of candidate and scenario it is between %.2f× and %.2f×", interval, f.Cells, f.Least, f.Greatest)
}

// unmeasured says which host lacks the measure that checks a factor.
func unmeasured(a, b figures.Host, labelA, labelB string) string {
	var without []string
	for _, h := range []struct {
		rsa   float64
		label string
	}{{a.RSAVerifyPerS, labelA}, {b.RSAVerifyPerS, labelB}} {
		if !(h.rsa > 0) {
			without = append(without, h.label)
		}
	}
	return "there are no " + neutralMeasure + " of " + sheet.Enumerate(without)
}

// says whether the measure agrees with the factor.
func (n Neutral) says() string {
	verdict := "which agrees: the difference is that of the CPUs"
	if !n.Agrees {
		verdict = "which does not agree: the difference is not that of the CPUs alone"
	}
	return fmt.Sprintf("%s alone predict %.2f×, %s.", n.Measure, n.Predicted, verdict)
}

func scenario(k figures.Key) string {
	switch {
	case k.Scenario == "" && k.Cores > 0, k.Scenario == "mix" && k.Cores > 0:
		return fmt.Sprintf("mix on %d core(s)", k.Cores)
	}
	return k.Scenario
}

func signed(v float64) string { return fmt.Sprintf("%+.0f %%", 100*v) }
