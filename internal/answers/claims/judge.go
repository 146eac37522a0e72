package claims

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/plan"
)

// Verdict is what becomes of a claim.
type Verdict string

const (
	Reproduced    Verdict = "reproduced"
	NotReproduced Verdict = "not reproduced"
	Inconclusive  Verdict = "inconclusive"
)

// Cause is the kind of reason for an inconclusive verdict.
type Cause string

const (
	CauseNotMeasured Cause = "not measured"
	CauseGate        Cause = "gate failed"
	CauseFew         Cause = "too few repetitions"
	CauseShared      Cause = "shared cores"
	CauseFlavour     Cause = "other flavour"
	CauseConditions  Cause = "other conditions"
	CauseStraddles   Cause = "interval straddles the threshold"
	CauseGiven       Cause = "its condition does not hold here"
)

// MinRepetitions is how many repetitions a figure needs whose estimator has no
// interval: the best, the largest, a count.
const MinRepetitions = 3

// Finding is the outcome of one comparison.
type Finding struct {
	Text      string    `json:"text"`
	Verdict   Verdict   `json:"verdict"`
	Measured  *Measured `json:"measured,omitempty"`  // nil when it was not
	Published *float64  `json:"published,omitempty"` // the same expression over the published figures
	Lowest    *float64  `json:"lowest,omitempty"`    // what the claim accepts
	Highest   *float64  `json:"highest,omitempty"`
	Cause     Cause     `json:"cause,omitempty"`
	Reason    string    `json:"reason,omitempty"` // a clause, for whatever is not reproduced
}

// Result is a claim with its verdict.
type Result struct {
	ID       string    `json:"id"`
	Says     string    `json:"says"`
	Study    string    `json:"study"`
	Kind     Kind      `json:"kind"`
	Basis    string    `json:"basis"` // what it is judged on, in words
	Verdict  Verdict   `json:"verdict"`
	Cause    Cause     `json:"cause,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Findings []Finding `json:"findings"`
	Given    []Finding `json:"given,omitempty"`
	Marks    []string  `json:"marks,omitempty"` // what the reader must know of a verdict that was reached all the same
	RestsOn  []string  `json:"rests_on"`
}

// Evaluate judges claims over a set. The baseline holds the published figures.
func Evaluate(list []Claim, set, baseline *figures.Set) []Result {
	results := make([]Result, 0, len(list))
	expected := baseline
	for _, c := range list {
		if expected == baseline && len(c.printed) > 0 { // the same for every claim of a file
			expected = c.printed.over(baseline)
		}
		results = append(results, c.judge(set, expected))
	}
	return results
}

// over is the baseline with the printed figures in place of its own.
func (p printed) over(baseline *figures.Set) *figures.Set {
	set := baseline.Clone()
	for k, v := range p {
		e, ok := set.Get(k)
		if !ok {
			e = figures.Estimate{Estimator: figures.EstimatorPublished}
		}
		e.Key, e.Value, e.Median, e.Lo, e.Hi = k, v, v, v, v
		set.Put(e)
	}
	return set
}

func (c Claim) judge(set, baseline *figures.Set) Result {
	r := Result{ID: c.ID, Says: c.Says, Study: c.Study, Kind: c.Kind, Basis: c.Kind.Basis()}
	for _, k := range c.RestsOn {
		r.RestsOn = append(r.RestsOn, k.String())
	}
	for _, p := range c.Given {
		// A condition is about this run, whatever the hardware.
		r.Given = append(r.Given, p.judge(set, baseline, Identity, &r.Marks))
	}
	for _, p := range c.Parts {
		r.Findings = append(r.Findings, p.judge(set, baseline, c.Kind, &r.Marks))
	}
	r.Verdict, r.Cause, r.Reason = combine(r.Findings)
	if verdict, _, reason := combine(r.Given); verdict != Reproduced {
		r.Verdict, r.Cause = Inconclusive, CauseGiven
		r.Reason = "its condition does not hold here: " + reason
		for _, g := range r.Given {
			if g.Verdict == Inconclusive && g.Cause != CauseStraddles {
				r.Cause, r.Reason = g.Cause, g.Reason
			}
		}
	}
	return r
}

// combine makes one verdict of several that all must hold.
func combine(findings []Finding) (Verdict, Cause, string) {
	verdict := Reproduced
	var cause Cause
	var reasons []string
	for _, want := range []Verdict{NotReproduced, Inconclusive} {
		for _, f := range findings {
			if f.Verdict != want {
				continue
			}
			verdict = want
			if cause == "" {
				cause = f.Cause
			}
			if !slices.Contains(reasons, f.Reason) {
				reasons = append(reasons, f.Reason)
			}
		}
		if verdict == want {
			break
		}
	}
	more := ""
	if len(reasons) > 3 {
		more = fmt.Sprintf("; and %d more", len(reasons)-3)
		reasons = reasons[:3]
	}
	return verdict, cause, strings.Join(reasons, "; ") + more
}

// judge makes one comparison.
func (p Part) judge(set, baseline *figures.Set, kind Kind, marks *[]string) Finding {
	f := Finding{Text: p.Text}
	lo, hi, err := p.region(set, baseline)
	if reference, e := p.Value.eval(baseline, figures.VerdictConfidence); e == nil {
		v := reference.Value
		f.Published = &v
	}
	if err != nil {
		return f.inconclusive(CauseNotMeasured, "there is nothing to compare with: "+err.Error())
	}
	if !math.IsInf(lo, 0) {
		f.Lowest = &lo
	}
	if !math.IsInf(hi, 0) {
		f.Highest = &hi
	}
	m, err := p.Value.eval(set, figures.VerdictConfidence)
	var missing *absent
	switch {
	case errors.As(err, &missing):
		cause := CauseNotMeasured
		if missing.cause == figures.GateFailed {
			cause = CauseGate
		}
		return f.inconclusive(cause, missing.Error())
	case err != nil:
		return f.inconclusive(CauseFew, err.Error())
	}
	if p.Op == OpRounds {
		m.Value, m.Lo, m.Hi = ceil(m.Value), ceil(m.Lo), ceil(m.Hi)
	}
	f.Measured = &m
	against := obstacles(set, baseline, m)
	for _, o := range against {
		if o.any || o.grave && kind == Absolute {
			return f.inconclusive(o.cause, o.reason)
		}
	}
	for _, o := range against {
		if !slices.Contains(*marks, o.reason) {
			*marks = append(*marks, o.reason)
		}
	}
	inside := func(v float64) bool { return v >= lo && v <= hi }
	switch {
	case m.Printed:
		return f.decide(inside(m.Value), !inside(m.Value))
	case m.ByValue:
		if m.N < MinRepetitions {
			return f.inconclusive(CauseFew, fmt.Sprintf("there is %s, and %d are needed where the study takes the best, the largest or a count", repetitions(m.N), MinRepetitions))
		}
		if p.Op == OpAhead && m.Confidence > 0 && inside(m.Value) && m.Lo < lo {
			return f.inconclusive(CauseStraddles, "the best repetitions are in this order, but the repetitions overlap")
		}
		return f.decide(inside(m.Value), !inside(m.Value))
	case m.Confidence < figures.VerdictConfidence:
		what := "gives no interval"
		if m.Confidence > 0 {
			what = fmt.Sprintf("gives an interval at %s at most, and %s is needed", figures.Percent(m.Confidence), figures.Percent(figures.VerdictConfidence))
		}
		return f.inconclusive(CauseFew, fmt.Sprintf("a number of %s %s", repetitions(m.N), what))
	}
	within, outside := inside(m.Lo) && inside(m.Hi), m.Hi < lo || m.Lo > hi
	if !within && !outside {
		return f.inconclusive(CauseStraddles, fmt.Sprintf("its interval from %s to %s straddles %s", short(m.Lo), short(m.Hi), f.region()))
	}
	return f.decide(within, outside)
}

func ceil(v float64) float64 { return math.Ceil(v - 1e-9) }

func repetitions(n int) string {
	if n == 1 {
		return "1 repetition"
	}
	return fmt.Sprintf("%d repetitions", n)
}

func (f Finding) inconclusive(c Cause, reason string) Finding {
	f.Verdict, f.Cause, f.Reason = Inconclusive, c, reason
	return f
}

func (f Finding) decide(within, outside bool) Finding {
	f.Verdict = Reproduced
	if outside || !within {
		f.Verdict = NotReproduced
		f.Reason = fmt.Sprintf("%s is outside %s", short(f.Measured.Value), f.region())
	}
	return f
}

// region writes what the claim accepts.
func (f Finding) region() string {
	switch {
	case f.Lowest != nil && f.Highest != nil:
		if *f.Lowest == *f.Highest {
			return short(*f.Lowest)
		}
		return fmt.Sprintf("%s to %s", short(*f.Lowest), short(*f.Highest))
	case f.Lowest != nil:
		return "at least " + short(*f.Lowest)
	case f.Highest != nil:
		return "at most " + short(*f.Highest)
	}
	return "anything"
}

// short writes a number with four significant digits, and whole from a thousand.
func short(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// region is what the part accepts, from the lowest to the highest value.
func (p Part) region(set, baseline *figures.Set) (lo, hi float64, err error) {
	switch p.Op {
	case OpAtLeast:
		return p.Limit, math.Inf(1), nil
	case OpAtMost:
		return math.Inf(-1), p.Limit, nil
	case OpAhead:
		// More than level: the smallest step above it, so that a tie is none.
		return math.Nextafter(p.More, math.Inf(1)), math.Inf(1), nil
	case OpEqual:
		return 1 - p.Tolerance, 1 + p.Tolerance, nil
	}
	var of float64
	if p.Of == nil {
		m, err := p.Value.eval(baseline, figures.VerdictConfidence)
		if err != nil {
			return 0, 0, err
		}
		of = m.Value
	} else {
		// What only a study prints is found in the set when the set is a
		// study's, and in the baseline otherwise.
		m, err := p.Of.eval(set, figures.VerdictConfidence)
		if err != nil {
			if m, err = p.Of.eval(baseline, figures.VerdictConfidence); err != nil {
				return 0, 0, err
			}
		}
		of = m.Value
	}
	if p.Op == OpRounds {
		return of, of, nil
	}
	return of * (1 - p.Tolerance), of * (1 + p.Tolerance), nil
}

// obstacle is a condition under which figures were measured that is not the
// claim's.
type obstacle struct {
	cause  Cause
	reason string
	grave  bool // an absolute claim cannot be judged under it; others, and absolute ones where it is not grave, are marked
	any    bool // no claim can be judged under it, since the figure is another one
}

// obstacles are the conditions that stand against judging figures as such.
func obstacles(set, baseline *figures.Set, m Measured) []obstacle {
	if set.Kind == figures.KindPublished {
		return nil
	}
	var all []obstacle
	if set.SharedCores {
		all = append(all, obstacle{cause: CauseShared, reason: "the roles share cores", grave: true})
	}
	if set.AppThreads > 1 {
		all = append(all, obstacle{cause: CauseConditions, reason: fmt.Sprintf("up to %d of the candidates' cores are threads of one core", set.AppThreads), grave: true})
	}
	if set.Flavour != plan.FlavourPublished {
		all = append(all, obstacle{cause: CauseFlavour, reason: fmt.Sprintf("flavour %s has other versions than the study", set.Flavour), grave: true})
	}
	other := obstacle{cause: CauseConditions}
	var differences []string
	for _, e := range m.estimates {
		if e.Exact() {
			continue
		}
		if b, ok := baseline.Get(e.Key); ok && b.Target > 0 && e.Target > 0 && b.Target != e.Target {
			all = append(all, obstacle{cause: CauseConditions, reason: fmt.Sprintf("%s was measured at %d/s and the claim is about %d/s", scenario(e.Key), e.Target, b.Target), grave: true})
		}
		if e.Key.Cores == 0 && baseline.AppCores > 0 && set.AppCores > 0 && set.AppCores != baseline.AppCores && limitedByCores(e.Key.Metric) {
			all = append(all, obstacle{cause: CauseConditions, reason: fmt.Sprintf("the candidates had %d cores and the claim is about %d", set.AppCores, baseline.AppCores), grave: true})
		}
		for _, d := range conditions(e, set, baseline) {
			other.grave, other.any = other.grave || d.grave, other.any || d.any
			if !slices.Contains(differences, d.text) {
				differences = append(differences, d.text)
			}
		}
	}
	if len(differences) > 0 {
		other.reason = "other conditions, the claim's in brackets: " + strings.Join(differences, ", ")
		all = append(all, other)
	}
	return all
}

// difference is one condition of a figure that is not the claim's.
type difference struct {
	text       string // with the claim's in brackets
	grave, any bool   // as of an obstacle
}

// conditions compares those of a figure with those of the study. What a figure
// depends on: the CPU per request hardly on any of them; a latency, when
// requests queue, and peak memory on the length of the window; rates, latencies
// and cores used on connections and pool; and the extremes over all windows of
// a ceiling mean something else when other connection counts were tried.
func conditions(e figures.Estimate, set, baseline *figures.Set) []difference {
	k, have, want := e.Key, set.Conditions, baseline.Conditions
	if k.Candidate == "" { // the probe, and what is of a whole run
		return nil
	}
	perRequest := k.Metric == figures.AppCPU || k.Metric == figures.DBCPU
	memory := k.Metric == figures.PeakMiB
	database := k.Scenario == "" || baseline.UsesDatabase(k.Scenario)
	var all []difference
	number := func(what string, have, want int, grave bool) {
		if have > 0 && want > 0 && have != want {
			all = append(all, difference{text: fmt.Sprintf("%d %s (%d)", have, what, want), grave: grave})
		}
	}
	window := func(have, want float64, grave bool) {
		if have > 0 && want > 0 && have != want {
			all = append(all, difference{text: fmt.Sprintf("windows of %v s (%v s)", trim(have), trim(want)), grave: grave})
		}
	}
	switch k.Phase {
	case figures.PhaseRate:
		latency := k.Metric == figures.P50 || k.Metric == figures.P99 || k.Metric == figures.P999
		window(have.RateSeconds, want.RateSeconds, latency || memory)
		number("connections", e.Connections, want.RateConnections, !perRequest)
	case figures.PhaseCeiling:
		window(have.CeilingSeconds, want.CeilingSeconds, !perRequest)
		if k.Connections == 0 && len(have.CeilingConnections) > 0 && len(want.CeilingConnections) > 0 && !slices.Equal(have.CeilingConnections, want.CeilingConnections) {
			extreme := slices.Contains([]string{figures.SpreadLow, figures.SpreadHigh, figures.CoresLow, figures.CoresHigh}, k.Metric)
			all = append(all, difference{text: fmt.Sprintf("connections %s (%s)", join(have.CeilingConnections), join(want.CeilingConnections)), grave: !perRequest, any: extreme})
		}
	default:
		return nil
	}
	size := func(what string, have, want int64, grave bool) {
		if have > 0 && want > 0 && have != want {
			all = append(all, difference{text: fmt.Sprintf("%s of %s (%s)", what, plan.Bytes(have), plan.Bytes(want)), grave: grave})
		}
	}
	size("memory", have.AppMemory, want.AppMemory, memory || have.AppMemory < want.AppMemory && !perRequest)
	if database {
		number("database connections", have.Pool, want.Pool, !perRequest)
		number("rows", have.Rows, want.Rows, k.Metric != figures.AppCPU && !memory)
		size("database memory", have.DBMemory, want.DBMemory, have.DBMemory < want.DBMemory && !perRequest && !memory)
	}
	return all
}

func join(n []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n)), ", "), "[]")
}

func scenario(k figures.Key) string {
	if k.Scenario == "" {
		return k.Phase
	}
	return k.Scenario
}

// limitedByCores reports whether a figure depends on how many cores there are.
func limitedByCores(metric string) bool {
	switch metric {
	case figures.AppCPU, figures.DBCPU, figures.PeakMiB, figures.NonOK:
		return false
	}
	return true
}

// Count counts verdicts.
func Count(results []Result) map[Verdict]int {
	n := map[Verdict]int{}
	for _, r := range results {
		n[r.Verdict]++
	}
	return n
}
