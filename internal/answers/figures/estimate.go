package figures

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"golang.org/x/perf/benchmath"
)

// Estimators: how the value of a figure comes out of its repetitions.
const (
	EstimatorMedian    = "median"
	EstimatorBest      = "best"      // interference only subtracts: the best repetition
	EstimatorLargest   = "largest"   // peak memory
	EstimatorLeast     = "least"     // the reference probe
	EstimatorCount     = "count"     // a number of windows or answers
	EstimatorGiven     = "given"     // a setting, not a measurement
	EstimatorPublished = "published" // as printed in a study: the value alone
)

// Sample is one repetition's value.
type Sample struct {
	Repetition int     `json:"repetition"`
	Value      float64 `json:"value"`
}

// Estimate is one figure. Its value follows the study's definition; interval
// and warnings say how far it may be trusted.
type Estimate struct {
	Key       Key      `json:"figure"`
	Value     float64  `json:"value"`
	Unit      string   `json:"unit,omitempty"`
	Estimator string   `json:"estimator"`
	Samples   []Sample `json:"samples,omitempty"` // by repetition; none for a published value
	N         int      `json:"n"`                 // repetitions behind the value, 0 when not known
	Median    float64  `json:"median"`            // of the samples, else the value

	// Lo and Hi bound the median of the repetitions with probability Confidence;
	// 0 there means that there is no interval, and both are the value.
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`

	Target      int      `json:"target,omitempty"`      // requests per second of its windows, in an open loop
	Connections int      `json:"connections,omitempty"` // of its windows
	Window      string   `json:"window,omitempty"`      // the cell whose windows it was taken in: equal cells pair by repetition
	Source      string   `json:"source,omitempty"`      // study and place, for a published value
	Definition  string   `json:"definition,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`   // of the statistics
	Incomplete  string   `json:"incomplete,omitempty"` // which repetitions are missing, and why
}

// Exact reports whether the value stands alone: published, or a setting.
func (e Estimate) Exact() bool {
	return e.Estimator == EstimatorPublished || e.Estimator == EstimatorGiven
}

// HasInterval reports whether Lo and Hi say more than the value.
func (e Estimate) HasInterval() bool { return e.Confidence > 0 }

// Values are the repetitions' values, in the order of the repetitions.
func (e Estimate) Values() []float64 {
	v := make([]float64, len(e.Samples))
	for i, s := range e.Samples {
		v[i] = s.Value
	}
	return v
}

// Range is the least and the greatest repetition; the value when there are none.
func (e Estimate) Range() (lo, hi float64) {
	if len(e.Samples) == 0 {
		return e.Value, e.Value
	}
	v := e.Values()
	return slices.Min(v), slices.Max(v)
}

// DisplayConfidence is the level at which intervals are shown. VerdictConfidence
// is the level at which claims are judged: a two-sided 90 % interval inside an
// acceptance region is the two one-sided tests procedure at 5 % (Schuirmann,
// 1987), and the five repetitions of the published protocol reach it where they
// cannot reach 95 %.
const (
	DisplayConfidence = 0.95
	VerdictConfidence = 0.90
)

// Interval is a median with the interval that order statistics give it.
type Interval struct {
	Median     float64
	Lo, Hi     float64
	Confidence float64 // reached by Lo and Hi; 0 when there is no interval
	Warnings   []string
}

// MedianOf is the median of the values and its order-statistic interval
// (benchmath.AssumeNothing: exact coverage, no assumption on the distribution).
// Too few values for the level give the range from least to greatest with the
// confidence that it has, 1 − 2^(1−n), and a warning that says so; one value
// gives no interval. There must be at least one value.
func MedianOf(values []float64, confidence float64) Interval {
	s := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	sum := benchmath.AssumeNothing.Summary(s, confidence)
	r := Interval{Median: sum.Center, Lo: sum.Lo, Hi: sum.Hi, Confidence: sum.Confidence}
	if !math.IsInf(sum.Lo, 0) && !math.IsInf(sum.Hi, 0) {
		for _, w := range sum.Warnings {
			r.Warnings = append(r.Warnings, w.Error())
		}
		return r
	}
	n := len(values)
	r.Lo, r.Hi = s.Values[0], s.Values[n-1]
	r.Confidence = 1 - math.Pow(2, float64(1-n))
	need := ""
	for _, w := range sum.Warnings {
		need = " (" + w.Error() + ")"
	}
	if n == 1 {
		r.Confidence = 0
		r.Warnings = []string{fmt.Sprintf("one repetition gives no interval%s", need)}
	} else {
		r.Warnings = []string{fmt.Sprintf("%d repetitions cannot give a %s interval%s; their range covers the median with %s",
			n, percent(confidence), need, percent(r.Confidence))}
	}
	return r
}

// percent writes a probability, shortened towards less confidence.
func percent(p float64) string {
	return fmt.Sprintf("%v %%", math.Floor(p*1000+1e-9)/10)
}

// Percent writes a probability as a percentage for a reader.
func Percent(p float64) string { return percent(p) }

// fill computes median and interval of the samples and, for a median, the value.
func (e *Estimate) fill(confidence float64) {
	sort.Slice(e.Samples, func(i, j int) bool { return e.Samples[i].Repetition < e.Samples[j].Repetition })
	e.N = len(e.Samples)
	m := MedianOf(e.Values(), confidence)
	e.Median, e.Lo, e.Hi, e.Confidence = m.Median, m.Lo, m.Hi, m.Confidence
	e.Warnings = append(e.Warnings, m.Warnings...)
	switch e.Estimator {
	case EstimatorMedian:
		if isPercentile(e.Key.Metric) {
			// Percentiles are never averaged: of an even number of them the
			// higher of the two in the middle, which was measured.
			v := e.Values()
			slices.Sort(v)
			m.Median = v[len(v)/2]
			e.Median = m.Median
		}
		e.Value = m.Median
	case EstimatorBest, EstimatorLargest:
		_, e.Value = e.Range()
	case EstimatorLeast:
		e.Value, _ = e.Range()
	}
}

func isPercentile(metric string) bool { return metric == P50 || metric == P99 || metric == P999 }

// At returns the estimate with its interval at another level of confidence.
func (e Estimate) At(confidence float64) Estimate {
	if len(e.Samples) == 0 {
		return e
	}
	m := MedianOf(e.Values(), confidence)
	e.Lo, e.Hi, e.Confidence = m.Lo, m.Hi, m.Confidence
	return e
}

// Scale multiplies an estimate by an exact, positive number.
func (e Estimate) Scale(by float64) Estimate {
	e.Value *= by
	e.Median *= by
	e.Lo *= by
	e.Hi *= by
	scaled := make([]Sample, len(e.Samples))
	for i, s := range e.Samples {
		scaled[i] = Sample{s.Repetition, s.Value * by}
	}
	if len(scaled) > 0 {
		e.Samples = scaled
	}
	return e
}
