// Package report renders the tables of a run: as text for a terminal, as
// Markdown, CSV and JSON. It computes nothing.
package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/store"
)

// Table is one table as a person reads it.
type Table struct {
	ID      string
	Title   string
	About   string // a sentence: what the figures are
	Columns []Column
	Rows    [][]string
	Notes   []string // numbered in the rows as [1], [2], ...
	Empty   string   // said instead of a table without rows
}

// Column is one column of a table.
type Column struct {
	Name string
	Text bool // words, set left; figures are set right
	Drop int  // columns with a higher number are left out first where the line is too short; 0 stays
}

// Names of the tables.
const (
	TableSummary     = "summary" // CSV only: the columns of the study's summary.csv
	TableRate        = "fixed-rate"
	TableCeiling     = "ceiling"
	TableConnections = "connections"
	TableToken       = "token"
	TableProbe       = "probe"
	TableGates       = "gates"
	TableGenerators  = "generators" // only where there are several
	TableStreams     = "streams"    // only where a load had several
	TableLinks       = "links"      // only where there are several hosts
	TableWindows     = "windows"    // CSV only
	TableHosts       = "hosts"      // CSV only
	TableCloud       = "cloud"      // CSV only
)

// Tables lays out every table of a report.
func Tables(r figures.Tables) []Table {
	return append([]Table{rateTable(r), ceilingTable(r), connectionTable(r), tokenTable(r), probeTable(r), gateTable(r)}, hostTables(r)...)
}

// hostTables are those that only a run on several hosts has.
func hostTables(r figures.Tables) []Table {
	var list []Table
	if len(r.Streams) > 0 {
		list = append(list, partTable(TableStreams, "Streams of mixed loads", "stream", "What each scenario of a mix saw by itself", r.Streams))
	}
	if len(r.Generators) > 0 {
		list = append(list, partTable(TableGenerators, "Load generators", "generator", "What each load generator saw by itself", r.Generators))
	}
	if len(r.Header.Links) > 0 {
		list = append(list, linkTable(r.Header.Links))
	}
	return list
}

// ofTheWorst says whose latency a table shows where there are several load
// generators.
func ofTheWorst(r figures.Tables) string {
	if r.Header.Generators < 2 {
		return ""
	}
	return fmt.Sprintf(" Latency is that of the worst of %d load generators.", r.Header.Generators)
}

// partTable is a table of load generators or of streams.
func partTable(id, title, part, about string, rows []figures.PartRow) Table {
	t := Table{
		ID: id, Title: title,
		About: about + ": at a fixed rate medians of the repetitions, for a ceiling the best repetition. Counts add up; latencies do not, so that each " + part + " has its own.",
		Columns: []Column{
			{"scenario", true, 0}, {"candidate", true, 0}, {"phase", true, 0}, {part, true, 0}, {"achieved/s", false, 0},
			{"p50 ms", false, 2}, {"p99 ms", false, 0}, {"p99 min–max", false, 4}, {"p99.9 ms", false, 3}, {"failed", false, 1},
		},
	}
	marksAny := false
	for _, row := range rows {
		c := cells{row.Evidence}
		marksAny = marksAny || !row.Evidence
		phase := row.Phase
		if row.Target > 0 {
			phase += fmt.Sprintf(" at %d/s", row.Target)
		}
		t.Rows = append(t.Rows, []string{
			row.Scenario, row.Candidate, phase, row.Host + row.Stream, c.stat(row.Achieved, 1, 0), c.stat(row.P50, 1, 2), c.stat(row.P99, 1, 2), c.spread(row.P99, 2), c.stat(row.P999, 1, 2), Number(float64(row.Failed), 0),
		})
	}
	n := notes{mark: marksAny}
	t.Notes = n.lines()
	return t
}

func linkTable(links []store.Link) Table {
	t := Table{
		ID: TableLinks, Title: "Links between the hosts", About: "Measured before the first window: round trips of ICMP echoes, and the throughput of TCP with the first host sending.",
		Columns: []Column{
			{"from", true, 0}, {"to", true, 0}, {"round trip ms", false, 0}, {"min–max", false, 1}, {"Gbit/s", false, 0}, {"segments sent again", false, 2},
		},
	}
	for _, l := range links {
		t.Rows = append(t.Rows, []string{l.From, l.To, Number(l.RTTMeanMS, 3), Number(l.RTTMinMS, 3) + "–" + Number(l.RTTMaxMS, 3), Number(l.BitsPerS/1e9, 2), Number(float64(l.Retransmits), 0)})
	}
	return t
}

const (
	absent = "–"
	mark   = "!"
	marked = "! not evidence: no attempt passed its gates; good for a look, not for a conclusion"
)

// notes numbers the footnotes of a table. Equal ones share a number.
type notes struct {
	list []string
	mark bool // whether a figure is marked as no evidence
}

// of returns the markers of a row's notes.
func (n *notes) of(c figures.Cell) string {
	var b strings.Builder
	for _, text := range c.Notes {
		if strings.HasPrefix(text, "not evidence") {
			n.mark = true // the marker of the figures says it
			continue
		}
		at := -1
		for i, have := range n.list {
			if have == text {
				at = i
			}
		}
		if at < 0 {
			n.list = append(n.list, text)
			at = len(n.list) - 1
		}
		fmt.Fprintf(&b, " [%d]", at+1)
	}
	return b.String()
}

// lines are the footnotes as they stand below the table.
func (n *notes) lines() []string {
	var out []string
	for i, text := range n.list {
		out = append(out, fmt.Sprintf("[%d] %s", i+1, text))
	}
	if n.mark {
		out = append(out, marked)
	}
	return out
}

// cells formats the figures of one row.
type cells struct{ evidence bool }

func (c cells) value(v float64, decimals int) string {
	s := Number(v, decimals)
	if !c.evidence {
		s += mark
	}
	return s
}

// stat formats an estimate, divided by a unit.
func (c cells) stat(s *figures.Stat, per float64, decimals int) string {
	if s == nil {
		return absent
	}
	return c.value(s.Value/per, decimals)
}

// interval formats the interval of an estimate: that of the median, or with too
// few readings their range.
func (c cells) interval(s *figures.Stat, decimals int) string {
	if s == nil || s.Confidence == 0 {
		return absent
	}
	return Number(s.Lo, decimals) + "–" + Number(s.Hi, decimals)
}

// intervals says what the intervals of a table are.
var intervals = fmt.Sprintf(" Intervals hold the median with %s; where there are too few repetitions for that they are the range.", figures.Percent(figures.DisplayConfidence))

// spread formats the lowest and the highest reading.
func (c cells) spread(s *figures.Stat, decimals int) string {
	if s == nil {
		return absent
	}
	return Number(s.Min, decimals) + "–" + Number(s.Max, decimals)
}

const mib = 1 << 20

func rateTable(r figures.Tables) Table {
	t := Table{
		ID: TableRate, Title: "Fixed rate",
		About: "Open loop: requests arrive at the target rate. Medians of the repetitions; peak memory is the largest. A target is met at 99 % of it with at most 0.1 % failures." + intervals + ofTheWorst(r),
		Columns: []Column{
			{"scenario", true, 0}, {"candidate", true, 0}, {"target/s", false, 0}, {"achieved/s", false, 0}, {"interval", false, 7}, {"met", false, 0},
			{"p50 ms", false, 1}, {"p99 ms", false, 0}, {"p99 interval", false, 8}, {"p99.9 ms", false, 4}, {"cores", false, 2}, {"CPU µs/req", false, 0}, {"CPU interval", false, 6},
			{"DB CPU µs/req", false, 3}, {"peak MiB", false, 5},
		},
		Empty: "No fixed-rate phase was measured.",
	}
	var n notes
	for _, row := range r.Rate {
		c := cells{row.Evidence}
		metText := absent
		if row.Evidence {
			metText = fmt.Sprintf("%d/%d", row.Met, row.Repetitions)
		}
		t.Rows = append(t.Rows, []string{
			row.Scenario, row.Candidate + n.of(row.Cell), Number(float64(row.Target), 0), c.stat(row.Achieved, 1, 0), c.interval(row.Achieved, 0), metText,
			c.stat(row.P50, 1, 2), c.stat(row.P99, 1, 2), c.interval(row.P99, 2), c.stat(row.P999, 1, 2), c.stat(row.Cores, 1, 2), c.stat(row.CPU, 1, 1), c.interval(row.CPU, 1),
			c.stat(row.DBCPU, 1, 1), c.stat(row.Peak, mib, 1),
		})
	}
	t.Notes = n.lines()
	return t
}

func ceilingTable(r figures.Tables) Table {
	t := Table{
		ID: TableCeiling, Title: "Ceiling",
		About: "Closed loop: as many requests as the connections carry. The best connection count without a failed request, its best repetition and the median of its repetitions; latency and CPU are the best repetition's." + intervals + ofTheWorst(r),
		Columns: []Column{
			{"scenario", true, 0}, {"candidate", true, 0}, {"best conns", false, 0}, {"achieved/s", false, 0}, {"median/s", false, 1}, {"n", false, 4},
			{"p50 ms", false, 2}, {"p99 ms", false, 0}, {"cores", false, 1}, {"CPU µs/req", false, 0}, {"DB CPU µs/req", false, 3}, {"peak MiB", false, 5}, {"median interval", false, 6},
		},
		Empty: "No ceiling phase was measured.",
	}
	var n notes
	for _, row := range r.Ceiling {
		c := cells{row.Evidence}
		connections := absent
		if row.Achieved != nil {
			connections = strconv.Itoa(row.Connections)
		}
		t.Rows = append(t.Rows, append([]string{row.Scenario, row.Candidate + n.of(row.Cell), connections}, append(ceilingCells(c, row), c.interval(row.Median, 0))...))
	}
	t.Notes = n.lines()
	return t
}

func ceilingCells(c cells, row figures.CeilingRow) []string {
	return []string{
		c.stat(row.Achieved, 1, 0), c.stat(row.Median, 1, 0), fmt.Sprintf("%d/%d", row.Repetitions, row.Planned),
		c.stat(row.P50, 1, 2), c.stat(row.P99, 1, 2), c.stat(row.Cores, 1, 2), c.stat(row.CPU, 1, 1), c.stat(row.DBCPU, 1, 1), c.stat(row.Peak, mib, 1),
	}
}

func connectionTable(r figures.Tables) Table {
	t := Table{
		ID: TableConnections, Title: "Ceiling by connections",
		About: "The best repetition of each connection count, and the lowest and highest beside it.",
		Columns: []Column{
			{"scenario", true, 0}, {"candidate", true, 0}, {"conns", false, 0}, {"achieved/s", false, 0}, {"median/s", false, 1}, {"n", false, 4},
			{"p50 ms", false, 2}, {"p99 ms", false, 0}, {"cores", false, 1}, {"CPU µs/req", false, 0}, {"DB CPU µs/req", false, 3}, {"peak MiB", false, 5},
			{"min–max", false, 6}, {"failed", false, 0},
		},
		Empty: "No ceiling phase was measured.",
	}
	var n notes
	left := 0
	for _, row := range r.Connections {
		if row.Achieved == nil {
			left++
			continue
		}
		c := cells{row.Evidence}
		line := append([]string{row.Scenario, row.Candidate + n.of(row.Cell), strconv.Itoa(row.Connections)}, ceilingCells(c, row)...)
		t.Rows = append(t.Rows, append(line, c.spread(row.Achieved, 0), c.value(float64(row.Failed), 0)))
	}
	t.Notes = n.lines()
	if left > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("not measured, or every attempt broke off: %d of %d cells", left, len(r.Connections)))
	}
	return t
}

func tokenTable(r figures.Tables) Table {
	t := Table{
		ID: TableToken, Title: "Token share",
		About:   "How much of a read's CPU goes into verifying its token: CPU of auth over CPU of read.",
		Columns: []Column{{"candidate", true, 0}, {"from", true, 0}, {"auth µs/req", false, 0}, {"read µs/req", false, 0}, {"share", false, 0}},
		Empty:   "No candidate has CPU figures of both auth and read.",
	}
	var n notes
	for _, row := range r.TokenShare {
		c := cells{row.Evidence}
		if !row.Evidence {
			n.mark = true
		}
		t.Rows = append(t.Rows, []string{row.Candidate, row.Phase, c.value(*row.AuthCPU, 1), c.value(*row.ReadCPU, 1), c.value(*row.Share*100, 0) + " %"})
	}
	t.Notes = n.lines()
	return t
}

func probeTable(r figures.Tables) Table {
	t := Table{
		ID: TableProbe, Title: "Reference probe",
		About: "A server without application code on the candidate's own cores, before each block: what load generator and network carry by themselves.",
		Columns: []Column{
			{"phase", true, 0}, {"target/s", false, 0}, {"readings", false, 0}, {"lowest/s", false, 0}, {"highest/s", false, 0}, {"below 99 %", false, 0},
		},
		Empty: "No probe was measured.",
	}
	for _, row := range r.Probes {
		target := "flat out"
		if row.Target > 0 {
			target = Number(float64(row.Target), 0)
		}
		t.Rows = append(t.Rows, []string{
			row.Phase, target, strconv.Itoa(row.Readings), Number(row.Lowest, 0), Number(row.Highest, 0), strconv.Itoa(row.Below),
		})
	}
	return t
}

func gateTable(r figures.Tables) Table {
	t := Table{
		ID: TableGates, Title: "Gates failed",
		About: "A window is evidence only when its gates pass. One that fails is kept and measured again.",
		Columns: []Column{
			{"gate", true, 0}, {"failed", false, 0}, {"waived", false, 2}, {"windows", false, 0}, {"then passed", false, 1}, {"left without", false, 0}, {"worst", false, 3}, {"limit", false, 3},
		},
		Empty: "No gate failed.",
	}
	var n notes
	for _, row := range r.Gates {
		name := row.Gate
		for _, reason := range row.Reasons {
			name += n.of(figures.Cell{Notes: []string{"waived: " + reason}})
		}
		t.Rows = append(t.Rows, []string{
			name, strconv.Itoa(row.Failed), strconv.Itoa(row.Waived), strconv.Itoa(row.Windows), strconv.Itoa(row.Repeated), strconv.Itoa(row.Left),
			reading(row.Worst, row.Unit), reading(row.Limit, row.Unit),
		})
	}
	t.Notes = n.lines()
	for _, row := range r.Gates {
		if len(row.Where) > 0 {
			where := row.Where[:min(len(row.Where), 5)]
			text := fmt.Sprintf("%s failed in: %s", row.Gate, strings.Join(where, "; "))
			if more := len(row.Where) - len(where); more > 0 {
				text += fmt.Sprintf("; and %d more", more)
			}
			t.Notes = append(t.Notes, text)
		}
	}
	for _, b := range r.Broken {
		t.Notes = append(t.Notes, fmt.Sprintf("broken off: %s, attempt %d: %s", b.Window, b.Attempt, oneLine(b.Error)))
	}
	for _, b := range r.Blocks {
		t.Notes = append(t.Notes, fmt.Sprintf("block failed: %s %s, repetition %d: %s", b.Phase, b.Candidate, b.Repetition, oneLine(b.Error)))
	}
	return t
}

// reading writes the reading of a gate with its unit. A share is written in
// percent.
func reading(v float64, unit string) string {
	if what, ok := strings.CutPrefix(unit, "share of "); ok {
		return figures.Shortest(v*100, 2) + " % of " + what
	}
	return strings.TrimSpace(figures.Shortest(v, 3) + " " + unit)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Number writes a figure with a fixed number of decimals and thousands set
// apart by commas.
func Number(v float64, decimals int) string {
	s := strconv.FormatFloat(figures.Round(v, decimals), 'f', decimals, 64)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}
