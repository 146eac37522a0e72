package figures

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// Quotient is the ratio of two figures.
type Quotient struct {
	Value      float64  `json:"value"` // of the two figures' values, as a reader would compute it from a table
	Lo         float64  `json:"lo"`
	Hi         float64  `json:"hi"`
	Confidence float64  `json:"confidence"` // reached by Lo and Hi; 0 when there is no interval
	P          float64  `json:"p"`          // of the Mann-Whitney U test that both are the same, where Compare made it; else 1
	N1         int      `json:"n1"`
	N2         int      `json:"n2"`
	OneSided   bool     `json:"one_sided,omitempty"` // only one of the two has repetitions: the interval holds its noise alone
	Warnings   []string `json:"warnings,omitempty"`
}

// HasInterval reports whether Lo and Hi say more than the value.
func (q Quotient) HasInterval() bool { return q.Confidence > 0 }

// Outside reports whether the interval leaves out a value.
func (q Quotient) Outside(v float64) bool { return q.HasInterval() && (q.Hi < v || q.Lo > v) }

// Ratio divides one figure by another that was measured independently of it.
//
// The interval is that of Moses and Lehmann for the shift between two samples,
// taken on the logarithms: the k-th smallest and k-th largest of all pairwise
// ratios, with k from the exact null distribution of the Mann-Whitney U
// statistic (stats.UDist of go-moremath, on which benchmath rests too). It
// contains exactly the ratios that the U test does not reject, needs no
// assumption on the distributions but that they differ by a factor, and
// reaches 90 % with 3 repetitions on each side and 95 % with 4 (Hollander, Wolfe
// and Chicken, Nonparametric Statistical Methods, 3rd ed., section 4.3).
//
// Where one figure stands alone the other's interval is divided by it.
func Ratio(a, b Estimate, confidence float64) Quotient {
	q := Quotient{Value: a.Value / b.Value, P: 1, N1: len(a.Samples), N2: len(b.Samples)}
	q.Lo, q.Hi = q.Value, q.Value
	switch {
	case q.N1 == 0 && q.N2 == 0:
		return q
	case q.N2 == 0:
		m := MedianOf(a.Values(), confidence)
		q.Lo, q.Hi, q.Confidence, q.Warnings = m.Lo/b.Value, m.Hi/b.Value, m.Confidence, m.Warnings
		q.OneSided = b.Estimator == EstimatorPublished
		return q
	case q.N1 == 0:
		m := MedianOf(b.Values(), confidence)
		if m.Lo > 0 {
			q.Lo, q.Hi, q.Confidence = a.Value/m.Hi, a.Value/m.Lo, m.Confidence
		}
		q.Warnings = m.Warnings
		q.OneSided = a.Estimator == EstimatorPublished
		return q
	}
	lo, hi, reached := pairwise(a.Values(), b.Values(), confidence)
	if reached > 0 {
		q.Lo, q.Hi, q.Confidence = lo, hi, reached
	}
	if reached < confidence {
		q.Warnings = append(q.Warnings, fewPairs(q.N1, q.N2, confidence, reached))
	}
	return q
}

// Compare is Ratio with the p value of the Mann-Whitney U test, where both have
// repetitions, and with the warnings that benchmath gives about it.
func Compare(a, b Estimate, confidence float64) Quotient {
	q := Ratio(a, b, confidence)
	if q.N1 > 0 && q.N2 > 0 {
		c := Test(a, b)
		q.P = c.P
		for _, w := range c.Warnings {
			q.Warnings = append(q.Warnings, w.Error())
		}
	}
	return q
}

// Test compares two samples by the Mann-Whitney U test of benchmath and returns
// its comparison, warnings included.
func Test(a, b Estimate) benchmath.Comparison {
	return benchmath.AssumeNothing.Compare(
		benchmath.NewSample(a.Values(), &benchmath.DefaultThresholds),
		benchmath.NewSample(b.Values(), &benchmath.DefaultThresholds))
}

func fewPairs(n1, n2 int, want, reached float64) string {
	if reached <= 0 {
		return fmt.Sprintf("%d and %d repetitions give no interval for a ratio", n1, n2)
	}
	return fmt.Sprintf("%d and %d repetitions cannot give a %s interval for a ratio; the range of all pairs has %s", n1, n2, percent(want), percent(reached))
}

// pairwise is the interval of Ratio and the confidence it reaches. A ratio over
// a value that is not above zero has none.
func pairwise(a, b []float64, confidence float64) (lo, hi, reached float64) {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	if !(b[0] > 0) || !(a[0] >= 0) || math.IsInf(a[len(a)-1]/b[0], 0) {
		return 0, 0, 0
	}
	k := rank(len(a), len(b), 1-confidence)
	reached = confidence
	if len(a) <= exactLimit && len(b) <= exactLimit {
		reached = 1 - 2*stats.UDist{N1: len(a), N2: len(b)}.CDF(float64(k-1))
	}
	if reached <= 1e-9 {
		return 0, 0, 0
	}
	if n := len(a) * len(b); n <= exactLimit*exactLimit {
		ratios := make([]float64, 0, n)
		for _, x := range a {
			for _, y := range b {
				ratios = append(ratios, x/y)
			}
		}
		slices.Sort(ratios)
		return ratios[k-1], ratios[n-k], reached
	}
	return kth(a, b, k), kth(a, b, len(a)*len(b)+1-k), reached
}

// kth is the k-th smallest ratio of a value of a to one of b, both ascending,
// without making all of them: the smallest number that at least k ratios do not
// exceed, found by halving an interval of floating-point numbers, which are in
// the order of their bits when they are not negative.
func kth(a, b []float64, k int) float64 {
	upTo := func(v float64) int {
		n, j := 0, 0
		// With x growing, fewer of the smallest y make x/y small enough.
		for _, x := range a {
			for j < len(b) && x/b[j] > v {
				j++
			}
			n += len(b) - j
		}
		return n
	}
	lo, hi := math.Float64bits(a[0]/b[len(b)-1]), math.Float64bits(a[len(a)-1]/b[0])
	for lo < hi {
		mid := lo + (hi-lo)/2
		if upTo(math.Float64frombits(mid)) >= k {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return math.Float64frombits(lo)
}

// exactLimit is the sample size up to which the exact distribution of U is
// taken; beyond it the normal approximation is as good and does not cost the
// fourth power of the size.
const exactLimit = 25

// rank is the largest k for which the interval from the k-th smallest to the
// k-th largest of the pairwise ratios has at least the confidence 1 - alpha,
// and 1 when none has.
func rank(n1, n2 int, alpha float64) int {
	if n1 > exactLimit || n2 > exactLimit {
		m, n := float64(n1), float64(n2)
		z := stats.InvCDF(stats.StdNormal)(1 - alpha/2)
		return max(1, int(m*n/2-z*math.Sqrt(m*n*(m+n+1)/12)))
	}
	d := stats.UDist{N1: n1, N2: n2}
	// A little slack: the levels that small samples reach are fractions such as
	// 1/20, and a sum of such is not exactly 0.05.
	fits := func(k int) bool { return 2*d.CDF(float64(k-1)) <= alpha*(1+1e-9) }
	return max(1, sort.Search(n1*n2/2, func(i int) bool { return !fits(i + 1) }))
}
