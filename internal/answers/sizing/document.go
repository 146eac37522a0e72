package sizing

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
)

// Document writes the plan as sentences and a table.
func (p Plan) Document() sheet.Document {
	r := p.Request
	d := sheet.Document{
		Title: fmt.Sprintf("What %s requests/s need (%s), by the figures of %s", group(r.Rate), mixText(r.Mix), p.Set),
		First: p.First,
		Last:  p.Assumptions,
	}
	instance := fmt.Sprintf("instances of %d core(s)", p.Cores)
	if r.Instance != "" {
		instance = fmt.Sprintf("%s (%d core(s))", r.Instance, p.Cores)
	}
	t := sheet.Table{Name: "plan", Title: "Per candidate", Left: 1,
		Header: []string{"candidate", "CPU µs/request", "cores by CPU time", "cores by instance", instance, "database cores", "peak MiB"}}
	if p.Priced {
		t.Header = append(t.Header, p.Currency+" a month", p.Currency+" per million")
	}
	for _, c := range p.Candidates {
		row := []string{c.ID, show(c.CPU, 1), cores(c.ByCPU), cores(c.ByInstance), show(c.Instances, 0), cores(c.DatabaseCores), "-"}
		if c.PeakMiB > 0 {
			row[6] = fmt.Sprintf("%.0f", c.PeakMiB)
		}
		if p.Priced {
			row = append(row, show(c.PerMonth, 2), show(c.PerMillion, 4))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = p.notes()
	d.Tables = []sheet.Table{t}
	d.Findings = p.findings()
	return d
}

// notes are what the candidates' rows leave out. What holds for several
// candidates is said once.
func (p Plan) notes() []string {
	who := map[string][]string{} // note -> candidates
	var order []string
	for _, c := range p.Candidates {
		all := slices.Concat(c.Missing, c.Remarks)
		if c.CapacityFrom != "" {
			all = append(all, fmt.Sprintf("%s/s on %d core(s), from the %s", group(c.Capacity.Value), c.MeasuredAtCores, c.CapacityFrom))
		}
		for _, m := range all {
			if who[m] == nil {
				order = append(order, m)
			}
			who[m] = append(who[m], c.ID)
		}
	}
	var notes []string
	for _, m := range order {
		notes = append(notes, strings.Join(who[m], ", ")+": "+m)
	}
	return notes
}

// findings says what is cheapest and where the two ways of counting differ.
func (p Plan) findings() []string {
	var all []string
	var least, most *Candidate
	for i := range p.Candidates {
		c := &p.Candidates[i]
		if c.Instances == nil {
			continue
		}
		if least == nil || c.Instances.Value < least.Instances.Value {
			least = c
		}
		if most == nil || c.Instances.Value > most.Instances.Value {
			most = c
		}
		if c.ByCPU != nil && c.ByInstance != nil && c.ByInstance.Value > 1.15*c.ByCPU.Value {
			all = append(all, fmt.Sprintf("%s needs %.1f times as many cores by instance as by CPU time: it cannot use all the cores that it is given.", c.ID, c.ByInstance.Value/c.ByCPU.Value))
		}
	}
	if least != nil && most.Instances.Value > least.Instances.Value {
		s := fmt.Sprintf("%s needs %.0f instance(s) where %s needs %.0f", least.ID, least.Instances.Value, most.ID, most.Instances.Value)
		if p.Priced {
			s += fmt.Sprintf(", which is %s %.2f a month against %.2f", p.Currency, least.PerMonth.Value, most.PerMonth.Value)
		}
		if least.Instances.Hi >= most.Instances.Lo {
			s += "; their ranges overlap, so this order is not certain"
		}
		all = append([]string{s + "."}, all...)
	}
	return all
}

// cores writes cores with one decimal, as the studies' tables do, and fewer than
// a tenth of one so that they can be seen.
func cores(a *Amount) string {
	if a != nil && a.Value > 0 && a.Value < 0.1 {
		return show(a, 4)
	}
	return show(a, 1)
}

// show writes a quantity with as many decimals, and its interval or spread if it
// has one.
func show(a *Amount, decimals int) string {
	if a == nil {
		return "-"
	}
	f := func(v float64) string { return strconv.FormatFloat(round(v, decimals), 'f', decimals, 64) }
	level := ""
	switch {
	case a.Spread:
		level = ", spread"
	case a.Confidence == 0:
		return f(a.Value)
	case a.Confidence < figures.VerdictConfidence:
		level = " at " + figures.Percent(a.Confidence)
	}
	if f(a.Lo) == f(a.Hi) {
		return f(a.Value)
	}
	return fmt.Sprintf("%s (%s to %s%s)", f(a.Value), f(a.Lo), f(a.Hi), level)
}

// round rounds halves upwards, as the studies' tables do.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Floor(v*scale+0.5+1e-9) / scale
}

// group writes a rate with thousands set apart.
func group(v float64) string {
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
