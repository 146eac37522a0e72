package claims

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/figures"

	"github.com/percore/percore/internal/base/fail"
)

// Expr is a product of figures and numbers, some of them inverted: "A * B / C".
type Expr struct {
	Text    string
	factors []factor
}

type factor struct {
	key     figures.Key // of a figure
	number  float64     // of a number, when the key is empty
	inverse bool
}

func (f factor) isNumber() bool { return f.key == figures.Key{} }

// maxFactors bounds an expression.
const maxFactors = 8

// ParseExpr reads an expression: names of figures and numbers with " * " and
// " / " between them, evaluated from left to right.
func ParseExpr(s string) (Expr, error) {
	e := Expr{Text: strings.Join(strings.Fields(s), " ")}
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return e, fail.Input("an expression is empty").Try("name a figure")
	}
	if len(fields) > 2*maxFactors-1 {
		return e, fmt.Errorf("%q has more than %d factors", e.Text, maxFactors)
	}
	inverse := false
	for i, f := range fields {
		if i%2 == 1 {
			switch f {
			case "*":
				inverse = false
			case "/":
				inverse = true
			default:
				return e, fmt.Errorf("%q: * or / belongs before %q, with a space on either side", e.Text, f)
			}
			continue
		}
		if n, err := strconv.ParseFloat(f, 64); err == nil {
			if !(n > 0) || math.IsInf(n, 0) {
				return e, fail.Input("%q: the number %s makes no sense here", e.Text, f).Try("take one above zero")
			}
			e.factors = append(e.factors, factor{number: n, inverse: inverse})
			continue
		}
		k, err := figures.ParseKey(f)
		if err != nil {
			return e, err
		}
		e.factors = append(e.factors, factor{key: k, inverse: inverse})
	}
	if len(fields)%2 == 0 {
		return e, fmt.Errorf("%q ends in an operator", e.Text)
	}
	return e, nil
}

// over divides one expression by another.
func (e Expr) over(d Expr) Expr {
	r := Expr{Text: e.Text + " over " + d.Text, factors: slices.Clone(e.factors)}
	for _, f := range d.factors {
		f.inverse = !f.inverse
		r.factors = append(r.factors, f)
	}
	return r
}

func (e Expr) keys() []figures.Key {
	var keys []figures.Key
	for _, f := range e.factors {
		if !f.isNumber() {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// isRatio reports whether a figure stands above and another below.
func (e Expr) isRatio() bool {
	var above, below bool
	for _, f := range e.factors {
		if !f.isNumber() {
			above, below = above || !f.inverse, below || f.inverse
		}
	}
	return above && below
}

// Measured is the value of an expression over a set.
type Measured struct {
	Value      float64  `json:"value"`
	Lo         float64  `json:"lo"`
	Hi         float64  `json:"hi"`
	Confidence float64  `json:"confidence"` // of Lo and Hi; 0 when there is no interval
	N          int      `json:"n"`          // fewest repetitions behind any of its figures; 0 when not known
	Printed    bool     `json:"printed"`    // every figure stands as printed or set, so there is nothing to repeat
	ByValue    bool     `json:"by_value"`   // best, largest, least or a count: the value decides, Lo and Hi are the spread
	Warnings   []string `json:"warnings,omitempty"`

	estimates []figures.Estimate
}

// absent says which figure an expression lacks, and why.
type absent struct {
	key   figures.Key
	why   string
	cause figures.Cause
}

func (a *absent) Error() string {
	return fmt.Sprintf("%s: %s", a.key, a.why)
}

var errTooMany = errors.New("an interval over figures of more than two different windows cannot be computed")

// sampled is a group of figures taken in the same windows: their product is
// computed repetition by repetition.
type sampled struct {
	window string
	parts  []figures.Estimate
	powers []float64
}

// eval computes an expression over a set.
//
// Figures of the same windows are combined repetition by repetition, and the
// result is the median of that with its interval. Figures of two different
// windows are independent: the interval is that of figures.Ratio. The value is
// always computed from the figures' own values, as a reader would do it.
func (e Expr) eval(set *figures.Set, confidence float64) (Measured, error) {
	m := Measured{Value: 1, Printed: true}
	constant := 1.0
	var groups []*sampled
	for _, f := range e.factors {
		if f.isNumber() {
			m.Value *= power(f.number, f.inverse)
			constant *= power(f.number, f.inverse)
			continue
		}
		est, ok := set.Get(f.key)
		if !ok {
			return m, &absent{f.key, set.Why(f.key).String(), set.Why(f.key).Cause}
		}
		if f.inverse && est.Value == 0 {
			return m, &absent{key: f.key, why: "it is zero, and the claim divides by it"}
		}
		m.estimates = append(m.estimates, est)
		m.Value *= power(est.Value, f.inverse)
		if est.Exact() {
			constant *= power(est.Value, f.inverse)
			continue
		}
		m.Printed = false
		if est.Incomplete != "" && !slices.Contains(m.Warnings, est.Incomplete) {
			m.Warnings = append(m.Warnings, est.Incomplete)
		}
		if m.N == 0 || est.N < m.N {
			m.N = est.N
		}
		if est.Estimator != figures.EstimatorMedian {
			m.ByValue = true
		}
		if len(est.Samples) == 0 {
			constant *= power(est.Value, f.inverse)
			continue
		}
		var g *sampled
		for _, x := range groups {
			if x.window == est.Window && est.Window != "" {
				g = x
			}
		}
		if g == nil {
			g = &sampled{window: est.Window}
			groups = append(groups, g)
		}
		g.parts = append(g.parts, est)
		exponent := 1.0
		if f.inverse {
			exponent = -1
		}
		g.powers = append(g.powers, exponent)
	}
	m.Lo, m.Hi = m.Value, m.Value
	switch len(groups) {
	case 0:
	case 1:
		v := values(groups[0])
		if len(v) == 0 {
			m.Warnings = append(m.Warnings, "its figures have no repetition in common")
			break
		}
		iv := figures.MedianOf(v, confidence)
		m.Lo, m.Hi, m.Confidence = iv.Lo*constant, iv.Hi*constant, iv.Confidence
		m.N = len(v)
		m.Warnings = append(m.Warnings, iv.Warnings...)
		if !m.ByValue && len(e.keys()) > 1 {
			m.Value = iv.Median * constant
		}
	case 2:
		a, b := values(groups[0]), values(groups[1])
		for i := range b {
			b[i] = 1 / b[i]
		}
		if len(a) == 0 || len(b) == 0 {
			break
		}
		q := figures.Ratio(fromValues(a), fromValues(b), confidence)
		if q.HasInterval() {
			m.Lo, m.Hi, m.Confidence = q.Lo*constant, q.Hi*constant, q.Confidence
		}
		m.Warnings = append(m.Warnings, q.Warnings...)
	default:
		return m, errTooMany
	}
	return m, nil
}

func fromValues(v []float64) figures.Estimate {
	e := figures.Estimate{Estimator: figures.EstimatorMedian, Value: 1}
	for i, x := range v {
		e.Samples = append(e.Samples, figures.Sample{Repetition: i + 1, Value: x})
	}
	return e
}

// values is the product of a group, repetition by repetition, over the
// repetitions that all its figures have.
func values(g *sampled) []float64 {
	type partial struct {
		product float64
		parts   int
	}
	byRepetition := make(map[int]partial, len(g.parts[0].Samples))
	for i, p := range g.parts {
		for _, s := range p.Samples {
			x, there := byRepetition[s.Repetition]
			if i == 0 && !there {
				x.product = 1
			}
			if x.parts != i || g.powers[i] < 0 && s.Value == 0 {
				continue
			}
			x.product *= power(s.Value, g.powers[i] < 0)
			x.parts++
			byRepetition[s.Repetition] = x
		}
	}
	var all []float64
	for _, s := range g.parts[0].Samples {
		if x := byRepetition[s.Repetition]; x.parts == len(g.parts) {
			all = append(all, x.product)
		}
	}
	return all
}

func power(v float64, inverse bool) float64 {
	if inverse {
		return 1 / v
	}
	return v
}
