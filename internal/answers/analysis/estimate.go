package analysis

import (
	"math"
	"slices"
	"strconv"

	"github.com/percore/percore/internal/answers/figures"
)

// Stat is one figure over the repetitions of a cell: an estimate with the
// lowest and the highest reading beside it.
type Stat struct {
	Value float64 `json:"value"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	N     int     `json:"n"` // readings

	// Lo and Hi bound the median of the readings with probability Confidence:
	// figures.DisplayConfidence or, with too few of them, what their range has.
	// 0 there means that there is no interval, and both are the value.
	Lo         float64  `json:"lo"`
	Hi         float64  `json:"hi"`
	Confidence float64  `json:"confidence"`
	Warnings   []string `json:"warnings,omitempty"` // what the statistics could not do
}

// median is the study's estimator of the fixed-rate phase. Of an even number of
// readings it is the middle of the two in the middle. It returns nil for none.
func median(readings []float64) *Stat {
	s := spread(readings)
	if s == nil {
		return nil
	}
	v := slices.Clone(readings)
	slices.Sort(v)
	n := len(v)
	s.Value = v[n/2]
	if n%2 == 0 {
		s.Value = v[n/2-1] + (v[n/2]-v[n/2-1])/2
	}
	s.interval(readings)
	return s
}

// middlePercentile is the median of latency percentiles. A percentile is never
// averaged with another: of an even number of readings it is the higher of the
// two in the middle, which was measured.
func middlePercentile(readings []float64) *Stat {
	s := spread(readings)
	if s == nil {
		return nil
	}
	v := slices.Clone(readings)
	slices.Sort(v)
	s.Value = v[len(v)/2]
	s.interval(readings)
	return s
}

// interval fills in that of the median.
func (s *Stat) interval(readings []float64) {
	m := figures.MedianOf(readings, figures.DisplayConfidence)
	s.Lo, s.Hi, s.Confidence, s.Warnings = m.Lo, m.Hi, m.Confidence, m.Warnings
}

// largest is the study's estimator of peak memory. There is no interval for it.
func largest(readings []float64) *Stat {
	s := spread(readings)
	if s != nil {
		s.set(s.Max)
	}
	return s
}

// only is a single reading: the one of the best repetition.
func only(v float64, ok bool) *Stat {
	if !ok {
		return nil
	}
	return &Stat{Value: v, Min: v, Max: v, N: 1, Lo: v, Hi: v}
}

func spread(readings []float64) *Stat {
	if len(readings) == 0 {
		return nil
	}
	return &Stat{Min: slices.Min(readings), Max: slices.Max(readings), N: len(readings)}
}

// set gives a value that has no interval.
func (s *Stat) set(v float64) { s.Value, s.Lo, s.Hi = v, v, v }

// Round rounds to a number of decimals, halves upwards, as the study's scripts
// did.
func Round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Floor(v*scale+0.5) / scale
}

// Shortest writes a rounded number without trailing zeros.
func Shortest(v float64, decimals int) string {
	return strconv.FormatFloat(Round(v, decimals), 'f', -1, 64)
}
