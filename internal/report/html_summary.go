package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/answers/sizing"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Document is everything a report for people is made of. What is not there, nil
// or empty, is left out of the report or said to be missing.
type Document struct {
	Report   figures.Tables
	Input    figures.Measured
	Verdicts []claims.Result // of the published claims over this run
	// Comparison puts the run beside another one or beside the published
	// figures; its first set is what it is compared with.
	Comparison *portability.Report
	Plans      []sizing.Plan // what one rate needs, a plan for each scenario
	// Read returns a raw file by its path below the run's folder. The plots of
	// latency and of cores over time are made from raw files.
	Read func(path string) ([]byte, error)
}

// line of the summary: a label of a word or two, and a sentence.
type summaryLine struct{ Label, Text string }

// summary is the report in five lines.
func summary(d Document) []summaryLine {
	return []summaryLine{
		{"One core carries", oneCore(d)},
		{"Targets", targets(d.Report)},
		{"Published claims", verdictLine(d.Verdicts)},
		{"Failures", failures(d.Report)},
		{"May be compared", comparable(d.Report)},
	}
}

// perCore is how many requests one core carries: a second of CPU time over the
// CPU time of a request.
func perCore(cpu *figures.Stat) (float64, bool) {
	if cpu == nil || cpu.Value <= 0 {
		return 0, false
	}
	return 1e6 / cpu.Value, true
}

// cpuCell is the CPU per request of a candidate in a scenario: that of the
// fixed rate, or else of the ceiling.
type cpuCell struct {
	candidate, scenario string
	cpu                 *figures.Stat
	evidence            bool
	phase               string
}

// cpuCells are the CPU per request of every candidate and scenario: at the fixed
// rate, as the study has it, or else at the ceiling. A scenario in which some
// candidate was nearly idle at the fixed rate is taken from the ceiling for all
// of them, where that was measured, and is named.
func cpuCells(r figures.Tables) (list []cpuCell, idle []string) {
	add := func(c figures.Cell, cpu *figures.Stat) {
		if cpu == nil {
			return
		}
		for i, have := range list {
			if have.candidate == c.Candidate && have.scenario == c.Scenario {
				if !have.evidence && c.Evidence {
					list[i] = cpuCell{c.Candidate, c.Scenario, cpu, c.Evidence, c.Phase}
				}
				return
			}
		}
		list = append(list, cpuCell{c.Candidate, c.Scenario, cpu, c.Evidence, c.Phase})
	}
	idle = idleScenarios(r)
	for _, row := range r.Rate {
		if !slices.Contains(idle, row.Scenario) {
			add(row.Cell, row.CPU)
		}
	}
	for _, row := range r.Ceiling {
		add(row.Cell, row.CPU)
	}
	return list, idle
}

// idleScenarios are those in which a candidate was nearly idle at the fixed
// rate and for which the ceiling of every candidate that was measured is known.
func idleScenarios(r figures.Tables) []string {
	budget := float64(r.Header.Roles[plan.App].CPUs.Count())
	var list []string
	for _, row := range r.Rate {
		if budget <= 0 || row.Cores == nil || row.Cores.Value >= figures.IdleShare*budget || slices.Contains(list, row.Scenario) {
			continue
		}
		known := true
		for _, other := range r.Rate {
			if other.Scenario == row.Scenario && other.CPU != nil {
				known = known && slices.ContainsFunc(r.Ceiling, func(c figures.CeilingRow) bool {
					return c.Scenario == other.Scenario && c.Candidate == other.Candidate && c.CPU != nil && (c.Evidence || !other.Evidence)
				})
			}
		}
		if known {
			list = append(list, row.Scenario)
		}
	}
	return list
}

// idleNote says where the figures of a scenario come from and why.
func idleNote(idle []string) []string {
	if len(idle) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: from the ceiling, because at the fixed rate a candidate used less than %s %% of its cores, where waiting costs more than work", sheet.Enumerate(idle), figures.Shortest(100*figures.IdleShare, 0))}
}

func idleCaption(r figures.Tables) string {
	if idle := idleScenarios(r); len(idle) > 0 {
		return fmt.Sprintf("In %s a candidate used less than %s %% of its cores at this rate, where waiting costs more than work: what one core carries is taken from the ceiling there.", sheet.Enumerate(idle), figures.Shortest(100*figures.IdleShare, 0))
	}
	return ""
}

func oneCore(d Document) string {
	want := shown(d.Input.Run.Suite)
	list, _ := cpuCells(d.Report)
	if !slices.ContainsFunc(list, func(c cpuCell) bool { return c.scenario == want && c.evidence }) {
		for _, c := range list {
			if c.evidence {
				want = c.scenario
			}
		}
	}
	var parts []string
	phases := map[string]bool{}
	doubtful := false
	for _, id := range d.Report.Header.Order {
		for _, c := range list {
			if n, ok := perCore(c.cpu); ok && c.candidate == id && c.scenario == want {
				text := fmt.Sprintf("%s with %s", Number(n, 0), id)
				if len(parts) == 0 {
					text = fmt.Sprintf("%s %s requests/s with %s", Number(n, 0), want, id)
				}
				if !c.evidence {
					doubtful = true
					text += mark
				}
				parts = append(parts, text)
				phases[c.phase] = true
			}
		}
	}
	if len(parts) == 0 {
		return "Not known: no window has CPU figures."
	}
	text := fmt.Sprintf("%s (by CPU time of the candidate, %s).", sheet.Enumerate(parts), strings.Join(sortedNames(phases), " and "))
	if doubtful {
		text += " Figures marked ! are no evidence."
	}
	return text
}

func sortedNames(m map[string]bool) []string {
	var list []string
	for k := range m {
		list = append(list, k+" phase")
	}
	slices.Sort(list)
	return list
}

func targets(r figures.Tables) string {
	type group struct {
		scenario string
		target   int
	}
	var order []group
	rows := map[group][]figures.RateRow{}
	for _, row := range r.Rate {
		g := group{row.Scenario, row.Target}
		if rows[g] == nil {
			order = append(order, g)
		}
		rows[g] = append(rows[g], row)
	}
	if len(order) == 0 {
		return "No fixed rate was measured."
	}
	var parts []string
	for _, g := range order {
		var held, missed, unknown []string
		for _, row := range rows[g] {
			switch {
			case !row.Evidence || row.Achieved == nil:
				unknown = append(unknown, row.Candidate)
			case row.Met == row.Repetitions:
				held = append(held, row.Candidate)
			default:
				missed = append(missed, fmt.Sprintf("%s (%s/s)", row.Candidate, Number(row.Achieved.Value, 0)))
			}
		}
		text := fmt.Sprintf("%s at %s/s: ", g.scenario, Number(float64(g.target), 0))
		var said []string
		if len(held) > 0 {
			who := sheet.Enumerate(held)
			if len(held) == len(rows[g]) && len(held) > 1 {
				who = "every candidate"
			}
			said = append(said, "held by "+who)
		}
		if len(missed) > 0 {
			said = append(said, "missed by "+sheet.Enumerate(missed))
		}
		if len(unknown) > 0 {
			said = append(said, "no evidence for "+sheet.Enumerate(unknown))
		}
		parts = append(parts, text+strings.Join(said, ", "))
	}
	return strings.Join(parts, "; ") + "."
}

func verdictLine(results []claims.Result) string {
	if len(results) == 0 {
		return "Not judged."
	}
	var relative, absolute, held, heldAbsolute int
	causes := map[claims.Cause]int{}
	open := 0
	for _, r := range results {
		switch {
		case r.Verdict == claims.Inconclusive:
			causes[r.Cause]++
			open++
		case r.Kind == claims.Absolute:
			absolute++
			if r.Verdict == claims.Reproduced {
				heldAbsolute++
			}
		default:
			relative++
			if r.Verdict == claims.Reproduced {
				held++
			}
		}
	}
	var list []string
	for _, c := range causeOrder(causes) {
		list = append(list, fmt.Sprintf("%s %d", c, causes[c]))
	}
	text := fmt.Sprintf("%d of %d could be judged", relative+absolute, len(results))
	if relative+absolute == 0 {
		return fmt.Sprintf("None of %d could be judged (%s).", len(results), strings.Join(list, ", "))
	}
	if relative+absolute > 0 {
		text += fmt.Sprintf(": reproduced are %d of %d ratios, orders and identities, and %d of %d figures as such", held, relative, heldAbsolute, absolute)
	}
	if open > 0 {
		text += fmt.Sprintf("; %d are inconclusive (%s)", open, strings.Join(list, ", "))
	}
	return text + "."
}

// causeOrder are the causes from the most frequent one on.
func causeOrder(n map[claims.Cause]int) []claims.Cause {
	var list []claims.Cause
	for c := range n {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b claims.Cause) int {
		if n[a] != n[b] {
			return n[b] - n[a]
		}
		return strings.Compare(string(a), string(b))
	})
	return list
}

func failures(r figures.Tables) string {
	var parts []string
	for _, g := range r.Gates {
		if g.Failed > 0 {
			text := fmt.Sprintf("gate %s failed %d times", g.Gate, g.Failed)
			if g.Failed == 1 {
				text = fmt.Sprintf("gate %s failed once", g.Gate)
			}
			after := "measured again with success"
			if g.Left > 0 {
				after = fmt.Sprintf("leaving %s without evidence", counted(g.Left, "window"))
			}
			parts = append(parts, fmt.Sprintf("%s (%s)", text, after))
		}
	}
	if n := len(r.Broken); n > 0 {
		parts = append(parts, counted(n, "attempt")+" broke off")
	}
	if n := len(r.Blocks); n > 0 {
		parts = append(parts, counted(n, "block")+" failed")
	}
	var waived []string
	for _, g := range r.Gates {
		if g.Waived > 0 {
			waived = append(waived, g.Gate)
		}
	}
	text := "Nothing failed"
	if len(parts) > 0 {
		text = strings.ToUpper(parts[0][:1]) + strings.Join(parts, "; ")[1:]
	}
	if r.Header.Planned > 0 {
		text += fmt.Sprintf("; %d of %d windows have evidence", r.Header.Done, r.Header.Planned)
	}
	if len(waived) > 0 {
		text += "; waived on purpose: " + sheet.Enumerate(waived)
	}
	return text + "."
}

func comparable(r figures.Tables) string {
	if r.Header.Comparable {
		text := "Yes: its figures may stand beside the published ones."
		if list := r.Header.Otherwise; len(list) > 0 {
			text += " Otherwise than in the study: " + strings.Join(list, "; ") + "."
		}
		return text
	}
	text := "No, not with the published figures"
	if n := len(r.Header.NotComparable); n > 0 {
		text += ": " + r.Header.NotComparable[0]
		if n > 1 {
			text += fmt.Sprintf(" (and %s)", counted(n-1, "more reason"))
		}
	}
	return strings.TrimSuffix(text, ".") + "."
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stateWord says what became of the run.
func stateWord(state string) string {
	switch state {
	case store.StateComplete:
		return "complete"
	case store.StateRunning:
		return "still running"
	case store.StateFailed:
		return "failed before its end"
	}
	return "interrupted"
}
