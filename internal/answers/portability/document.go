package portability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
)

// Document writes the report as sentences and tables.
func (r Report) Document() sheet.Document {
	var names []string
	for _, s := range r.Sets {
		names = append(names, s.Name)
	}
	d := sheet.Document{Title: "Comparison of " + strings.Join(names, ", "), First: r.Mismatches}
	for i, p := range r.Pairs {
		if len(r.Pairs) > 1 {
			d.Findings = append(d.Findings, fmt.Sprintf("%s against %s:", r.Labels[i+1], r.Labels[0]))
		}
		d.Findings = append(d.Findings, p.Findings...)
	}
	d.Tables = append(d.Tables, r.sets(), r.residuals(), r.between())
	for _, at := range shown {
		if r.inSeveral(at.phase, at.metric) {
			d.Tables = append(d.Tables, r.cells(at.phase, at.metric))
		}
	}
	d.Last = []string{
		"Ratios are to the first column. Their intervals are at 90 %, by inversion of the Mann-Whitney U test on the repetitions; against a published value, which has no repetitions, they hold the other side's noise alone. Ceilings and peak memory are the best and the largest of their repetitions, and have none.",
		"The hardware factor is the median of the ratios of CPU per request over candidates and scenarios, its interval that of this median over them; a residual is what a ratio is beyond the factor. The bounds of a residual hold the noise of its ratio and that of the factor.",
	}
	return d
}

// inSeveral reports whether at least two sets have a figure of the metric.
func (r Report) inSeveral(phase, metric string) bool {
	have := map[int]bool{}
	for _, c := range r.Cells {
		if c.Figure.Phase != phase || c.Figure.Metric != metric {
			continue
		}
		for i, v := range c.Values {
			have[i] = have[i] || v.Estimate != nil
		}
	}
	n := 0
	for _, there := range have {
		if there {
			n++
		}
	}
	return n > 1
}

func (r Report) sets() sheet.Table {
	t := sheet.Table{Name: "sets", Title: "What is compared", Left: 6, Header: []string{"set", "host", "flavour", "preset", "app cores", "remarks"}}
	for _, s := range r.Sets {
		remarks := s.Kind
		if s.SharedCores {
			remarks += ", shared cores"
		}
		if s.Database != nil {
			remarks += ", database on " + s.Database.Label
		}
		t.Rows = append(t.Rows, []string{s.Name, s.Host.Label, string(s.Flavour), s.Preset, fmt.Sprint(s.AppCores), remarks})
	}
	return t
}

func (r Report) residuals() sheet.Table {
	t := sheet.Table{Name: "residuals", Title: "What does not travel: CPU per request beyond the hardware factor", Left: 3,
		Header: []string{"set", "candidate", "scenario", "ratio", "factor", "residual", "interval", "noise"}}
	for _, p := range r.Pairs {
		for _, x := range p.Residuals {
			interval := "-"
			if x.Confidence > 0 {
				interval = fmt.Sprintf("%.3f to %.3f at %s", x.Lo, x.Hi, figures.Percent(x.Confidence))
			}
			t.Rows = append(t.Rows, []string{p.Set, x.Figure.Candidate, scenario(x.Figure), fmt.Sprintf("%.3f", x.Ratio.Value),
				fmt.Sprintf("%.3f", p.Factor.Value), fmt.Sprintf("%.3f", x.Value), interval, string(x.Noise)})
		}
		if p.Factor != nil {
			for _, w := range p.Factor.Warnings {
				t.Notes = append(t.Notes, p.Set+": "+w)
			}
		}
	}
	return t
}

// between are the ratios of candidates within each set: what a claim that is
// free of the hardware rests on.
func (r Report) between() sheet.Table {
	t := sheet.Table{Name: "ratios", Title: "CPU per request over the cheapest candidate's", Left: 2, Header: []string{"candidate", "scenario"}}
	first := r.Sets[0]
	if len(first.Candidates) == 0 {
		return t
	}
	for _, s := range r.Sets {
		t.Header = append(t.Header, s.Name)
	}
	key := func(candidate, scenario string) figures.Key {
		return figures.Key{Suite: first.Suite, Phase: figures.PhaseRate, Metric: figures.AppCPU, Candidate: candidate, Scenario: scenario}
	}
	for _, candidate := range first.Candidates[1:] {
		for _, sc := range first.Scenarios {
			row := []string{candidate, sc}
			any := false
			for _, s := range r.Sets {
				x, ok := s.Get(key(candidate, sc))
				y, there := s.Get(key(first.Candidates[0], sc))
				if !ok || !there || y.Value <= 0 {
					row = append(row, "-")
					continue
				}
				any = true
				row = append(row, quotient(figures.Ratio(x, y, figures.VerdictConfidence)))
			}
			if any {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	t.Title = fmt.Sprintf("CPU per request over that of %s in the same set", first.Candidates[0])
	return t
}

func (r Report) cells(phase, metric string) sheet.Table {
	t := sheet.Table{Name: phase + "_" + metric, Left: 2, Header: []string{"candidate", "scenario"}}
	t.Title = fmt.Sprintf("%s, %s phase", figures.Title(metric), phase)
	if u := figures.Unit(metric); u != "" {
		t.Title += " (" + u + ")"
	}
	for i, s := range r.Sets {
		t.Header = append(t.Header, s.Name)
		if i > 0 {
			t.Header = append(t.Header, "ratio")
		}
	}
	absent := map[string]bool{}
	for _, c := range r.Cells {
		if c.Figure.Phase != phase || c.Figure.Metric != metric {
			continue
		}
		row := []string{c.Figure.Candidate, scenario(c.Figure)}
		for i, v := range c.Values {
			text := "-"
			if v.Estimate != nil {
				text = Number(v.Estimate.Value)
			} else if v.known {
				absent[fmt.Sprintf("%s, %s %s: %s", r.Sets[i].Name, c.Figure.Candidate, scenario(c.Figure), v.Why)] = true
			}
			row = append(row, text)
			if i == 0 {
				continue
			}
			if v.Ratio != nil {
				row = append(row, quotient(*v.Ratio))
			} else {
				row = append(row, "-")
			}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, sorted(absent)...)
	return t
}

func quotient(q figures.Quotient) string {
	if !q.HasInterval() {
		return fmt.Sprintf("%.2f×", q.Value)
	}
	level := ""
	if q.Confidence < figures.VerdictConfidence {
		level = fmt.Sprintf(" at %s", figures.Percent(q.Confidence))
	}
	return fmt.Sprintf("%.2f× (%.2f to %.2f%s)", q.Value, q.Lo, q.Hi, level)
}

// Number writes a figure with about four significant digits.
func Number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	case v >= 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
