package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/series"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/answers/sizing"
	"github.com/percore/percore/internal/plan"
)

var (
	//go:embed page/report.tmpl
	pageTemplate string
	//go:embed page/report.css
	pageStyle string
)

var layout = template.Must(template.New("report").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(pageStyle) },
	"number": func(t Table) []rowView { return rowsOf(t) },
	"spans":  spans,
}).Parse(pageTemplate))

// span is a part of a text; commands stand between backticks in texts.
type span struct {
	Text string
	Code bool
}

func spans(s string) []span {
	var list []span
	for i, part := range strings.Split(s, "`") {
		list = append(list, span{part, i%2 == 1})
	}
	return list
}

// rowView is one row of a table for the page: the leading columns of words
// head it.
type rowView struct {
	Heads []string
	Cells []cellView
}

type cellView struct {
	Text  string
	Words bool
}

func rowsOf(t Table) []rowView {
	list := make([]rowView, 0, len(t.Rows))
	for _, r := range t.Rows {
		var v rowView
		heading := true
		for i, text := range r {
			heading = heading && i < len(t.Columns) && t.Columns[i].Text
			if heading {
				v.Heads = append(v.Heads, text)
			} else {
				v.Cells = append(v.Cells, cellView{text, i < len(t.Columns) && t.Columns[i].Text})
			}
		}
		list = append(list, v)
	}
	return list
}

// figureView is a figure: panels, a caption, the table that holds its data.
type figureView struct {
	ID, Title string
	Caption   string
	Says      string // the text alternative
	Panels    []panelView
	See       string // id of the table nearby
	SeeTitle  string
	Data      *Table // or a table of its own
}

type panelView struct {
	Title, Sub string
	SVG        template.HTML
}

// verdictView is the claims of one verdict.
type verdictView struct {
	ID, Title, About string
	Groups           []groupView
}

// groupView is claims of one verdict that belong together. Those that every
// reader wants are open, the others can be opened.
type groupView struct {
	ID, Title, About string
	Open             bool
	Fold             bool // also in print
	Claims           []claimView
	Why              bool // whether any of them has a reason or a mark
}

type claimView struct {
	ID, Says, Kind      string
	Basis               string
	Measured, Published string
	Interval, Reason    string
	Marks               []string
	More                []string // further comparisons
}

type pageView struct {
	Title, Heading, Sub string
	Caveats             []string
	Lines               []summaryLine
	OneCore             Table
	Verdicts            []verdictView
	Judged              string
	Figures             []figureView
	Sizing              Table
	Tables              []Table
	Portability         *portabilityView
	Facts               []fact
	Versions            Table
	Failed              Table
	Method              []fact
	Definitions         []fact
	Notes               []string
	Percore             string
}

type portabilityView struct {
	Title    string
	First    []string
	Findings []string
	Figure   *figureView
	Tables   []Table
	Last     []string
}

// HTML writes the report as one page that needs nothing but itself: no network,
// no script, no font. It reads on a phone, in print, in the dark and aloud.
func HTML(w io.Writer, d Document) error {
	r := d.Report
	v := pageView{
		Title: title(r.Header), Caveats: r.Caveats, Lines: summary(d), OneCore: oneCoreTable(d),
		Tables: Tables(r), Facts: facts(r.Header), Versions: versionTable(r.Header), Failed: failedTable(d.Input),
		Method: method(d), Definitions: definitions, Notes: r.Notes, Percore: r.Header.Percore,
	}
	v.Heading = "Run " + r.Header.ID
	if r.Header.Study {
		v.Heading = "php-go-bench " + r.Header.ID
	}
	v.Sub = fmt.Sprintf("%s · suite %s, profile %s, preset %s, flavour %s", stateWord(r.Header.State), r.Header.Suite, r.Header.Profile, r.Header.Preset, r.Header.Flavour)
	v.Verdicts, v.Judged = verdictViews(d.Verdicts)
	v.Facts = slices.DeleteFunc(v.Facts, func(f fact) bool { return f.Name == "versions" }) // a table has them
	v.Figures = drawings(d)
	v.Sizing = sizingTable(d)
	if d.Comparison != nil {
		v.Portability = portabilityOf(*d.Comparison)
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return fmt.Errorf("writing the report as HTML: %w", err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// oneCoreTable is what a planner multiplies with: requests per second and core.
func oneCoreTable(d Document) Table {
	t := Table{ID: "one-core", Title: "What one core carries",
		About:   "Requests per second that one core of CPU time carries: 1,000,000 over the CPU time of a request in µs.",
		Columns: []Column{{"candidate", true, 0}}, Empty: "No window has CPU figures."}
	list, idle := cpuCells(d.Report)
	var scenarios []string
	for _, c := range list {
		if !slices.Contains(scenarios, c.scenario) {
			scenarios = append(scenarios, c.scenario)
		}
	}
	place := func(id string) int {
		return slices.IndexFunc(d.Input.Run.Suite.Scenarios, func(s plan.Scenario) bool { return s.ID == id })
	}
	slices.SortStableFunc(scenarios, func(a, b string) int { return place(a) - place(b) })
	for _, s := range scenarios {
		t.Columns = append(t.Columns, Column{Name: s + "/s"})
	}
	var n notes
	for _, id := range d.Report.Header.Order {
		row := []string{id}
		any := false
		for _, s := range scenarios {
			text := absent
			for _, c := range list {
				if c.candidate != id || c.scenario != s {
					continue
				}
				if v, ok := perCore(c.cpu); ok {
					any = true
					text = cells{c.evidence}.value(v, 0)
					n.mark = n.mark || !c.evidence
				}
			}
			row = append(row, text)
		}
		if any {
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = append(n.lines(), idleNote(idle)...)
	return t
}

func first(plans []sizing.Plan) sizing.Plan {
	if len(plans) == 0 {
		return sizing.Plan{}
	}
	return plans[0]
}

// sizingTable is what a rate needs, by candidate and scenario.
func sizingTable(d Document) Table {
	plans := d.Plans
	t := Table{ID: "sizing", Title: "What a target rate needs", Empty: "There are too few figures to plan with.",
		Columns: []Column{{"scenario", true, 0}, {"candidate", true, 0}, {"cores by CPU time", false, 0}, {"cores by instance", false, 0}, {"database cores", false, 0}, {"peak MiB", false, 0}}}
	show := func(a *sizing.Amount) string {
		switch {
		case a == nil:
			return absent
		case a.Confidence > 0 && a.Hi > a.Lo:
			return fmt.Sprintf("%s (%s–%s)", Number(a.Value, 2), Number(a.Lo, 2), Number(a.Hi, 2))
		case a.Spread && a.Hi > a.Lo:
			return fmt.Sprintf("%s (%s–%s, spread)", Number(a.Value, 2), Number(a.Lo, 2), Number(a.Hi, 2))
		}
		return Number(a.Value, 2)
	}
	priced := len(plans) > 0 && !slices.ContainsFunc(plans, func(p sizing.Plan) bool { return !p.Priced })
	if priced { // the instance type that was measured
		p := first(plans)
		t.Columns = append(t.Columns, Column{p.Request.Instance, false, 0}, Column{p.Currency + " a month", false, 0})
	}
	whole := func(a *sizing.Amount) string {
		if a == nil {
			return absent
		}
		return Number(a.Value, 0)
	}
	for _, p := range plans {
		t.About = fmt.Sprintf("Cores for %s requests/s of one scenario, with their intervals, or the spread of the repetitions where there are too few. By CPU time: what the work costs. By instance: what has to be bought, idle cores included, where a ceiling was measured. percore plan answers for any other rate, mix and instance type, with prices.", Number(p.Request.Rate, 0))
		for scenario := range p.Request.Mix {
			for _, c := range p.Candidates {
				peak := absent
				if c.PeakMiB > 0 {
					peak = Number(c.PeakMiB, 0)
				}
				if c.ByCPU == nil && c.ByInstance == nil {
					continue
				}
				row := []string{scenario, c.ID, show(c.ByCPU), show(c.ByInstance), show(c.DatabaseCores), peak}
				if priced {
					row = append(row, whole(c.Instances), whole(c.PerMonth))
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if idle := idleScenarios(d.Report); len(idle) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: too many cores by CPU time and for the database, because candidates were nearly idle where they were measured; go by instance", sheet.Enumerate(idle)))
	}
	// What holds for one of the plans only, such as its mix, the table says.
	for _, s := range append(slices.Clone(first(plans).First), first(plans).Assumptions...) {
		if !slices.ContainsFunc(plans, func(p sizing.Plan) bool { return !slices.Contains(p.First, s) && !slices.Contains(p.Assumptions, s) }) {
			t.Notes = append(t.Notes, s)
		}
	}
	if len(t.Rows) == 0 {
		t.Notes = nil
	}
	return t
}

func versionTable(h figures.Header) Table {
	t := Table{ID: "versions", Title: "Versions", About: "Versions of everything that was measured or measured with.",
		Columns: []Column{{"program", true, 0}, {"version", true, 0}}, Empty: "No versions were recorded."}
	for _, id := range slices.Sorted(maps.Keys(h.Versions)) {
		t.Rows = append(t.Rows, []string{id, h.Versions[id]})
	}
	return t
}

// maxFailed bounds the table of failed gates on the page.
const maxFailed = 2000

// failedTable lists every failed gate with its reading and its limit.
func failedTable(in figures.Measured) Table {
	t := Table{ID: "failed-gates", Title: "Every failed gate", About: "Each attempt at a window in which a gate failed, with what was read and the limit.",
		Columns: []Column{{"window", true, 0}, {"attempt", false, 0}, {"gate", true, 0}, {"reading", false, 0}, {"limit", false, 0}, {"detail", true, 0}},
		Empty:   "No gate failed in any attempt."}
	left := 0
	for _, w := range in.Windows {
		for _, g := range w.Gates {
			if !g.Failed() {
				continue
			}
			if len(t.Rows) == maxFailed {
				left++
				continue
			}
			detail := g.Detail
			if detail == "" {
				detail = absent
			}
			t.Rows = append(t.Rows, []string{w.Window.String(), strconv.Itoa(w.Attempt), g.Name, reading(g.Reading, g.Unit), reading(g.Limit, g.Unit), detail})
		}
	}
	if left > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("and %d more, which the run's events.jsonl holds", left))
	}
	return t
}

// method says how the run was measured, with its own numbers.
func method(d Document) []fact {
	run := d.Input.Run
	list := []fact{{"block", "One candidate, one repetition: a fresh copy of the seeded database, prewarmed and checkpointed; the reference probe; a fresh container; a warm-up; then the scenarios in the order of the suite."}}
	for _, p := range run.Preset.Phases {
		switch p.Kind {
		case plan.KindRate:
			var at []string
			for _, s := range run.Suite.Scenarios {
				if n := p.Targets[s.ID]; n > 0 {
					at = append(at, fmt.Sprintf("%s %s/s", s.ID, Number(float64(n), 0)))
				}
			}
			list = append(list, fact{p.ID, fmt.Sprintf("Open loop: requests arrive at a fixed rate (%s) over %s connections for %s s, %d times; latency counts from when the load generator got around to a request, waiting for a free connection included.",
				strings.Join(at, ", "), joinInts(p.Connections), figures.Shortest(p.Window.Seconds(), 3), p.Repetitions)})
		case plan.KindCeiling:
			list = append(list, fact{p.ID, fmt.Sprintf("Closed loop: each of %s connections sends its next request when the last is answered, for %s s, %d times.",
				joinInts(p.Connections), figures.Shortest(p.Window.Seconds(), 3), p.Repetitions)})
		}
	}
	list = append(list, fact{"counters", "CPU time and memory are the kernel's counters of the containers' control groups, never percentages; the first and the last sample enclose the window."})
	if n := d.Report.Header.Generators; n > 1 {
		list = append(list, fact{"load generators", fmt.Sprintf("%d, started at one instant, with a part of the rate and of the connections each. What they counted adds up; latencies are never averaged or merged: a window's is that of the worst generator.", n)})
	}
	list = append(list, fact{"evidence", "A window is evidence when all of its gates pass. One that fails is kept, marked and measured again under the next attempt number."})
	return append(list, gateFacts(d.Input)...)
}

// gateWords say what each gate asks for.
var gateWords = []fact{
	{"probe", "a server without application code reached at least 99 % of its target on the candidate's cores just before: the machine and the load generator could have done it."},
	{"clock", "wall clock and monotonic clock differ by at most 100 ms over the window: the host did not sleep and its clock was not set."},
	{"throttled", "the kernel withheld no CPU time from candidate or database by a quota."},
	{"foreign", "what is not percore's used at most 5 % of the time of the CPUs of any role."},
	{"stalled", "no container was paused, and neither candidate nor database stood still for more than a second."},
	{"steal", "the hypervisor withheld at most 1 % of the time of the CPUs in use."},
	{"cores", "candidate and load generator ran on different CPUs."},
	{"samples", "the first and the last sample of the counters enclose the window."},
	{"allowance", "no counter of exceeded network allowances grew on any host."},
	{"offset", "the clock of every host is within 5 ms of the first load host's."},
	{"load", "the CPUs of every load host were busy for less than 85 % of the window: the load generator was not what held it back."},
	{"late", "no load generator stood still for more than a quarter of a second while requests were due."},
	{"length", "every load generator ran for at least 99 % of the window."},
	{"answers", "at most 1 % of the answers were others than the scenario's own."},
}

// gateFacts explains the gates that the run's windows have.
func gateFacts(in figures.Measured) []fact {
	seen := map[string]bool{}
	for _, w := range in.Windows {
		for _, g := range w.Gates {
			seen[g.Name] = true
		}
	}
	var list []fact
	for _, g := range gateWords {
		if seen[g.Name] {
			list = append(list, fact{"gate " + g.Name, upper(g.Text)})
		}
	}
	return list
}

var definitions = []fact{
	{"achieved", "2xx answers over the nominal length of the window."},
	{"CPU per request", "growth of the container's CPU counter over all answers, in µs."},
	{"cores", "CPU seconds over the nominal length of the window."},
	{"peak memory", "the largest anonymous memory of the candidate's container in a window, and of the repetitions the largest."},
	{"met", "at least 99 % of the target achieved and at most 0.1 % of the requests failed."},
	{"median", "of the repetitions, at a fixed rate; the lowest and the highest stand beside it. Latency percentiles are never averaged: the one in the middle was measured."},
	{"best", "of the repetitions, for a ceiling, because interference only takes away; the median stands beside it."},
	{"interval", "of a claim: at 90 %, from order statistics, without assumptions on the distribution; inside what the claim accepts it is reproduced, outside it is not, across the border it is inconclusive."},
}

func joinInts(n []int) string {
	s := make([]string, len(n))
	for i, v := range n {
		s[i] = strconv.Itoa(v)
	}
	return strings.Join(s, ", ")
}

// verdictViews groups claims by verdict: first what did not hold, because a
// reader must know it. Within a verdict come first the claims that another
// machine need not change.
func verdictViews(results []claims.Result) ([]verdictView, string) {
	if len(results) == 0 {
		return nil, "The published claims were not judged for this run."
	}
	n := claims.Count(results)
	var list []verdictView
	for _, g := range []struct {
		verdict   claims.Verdict
		id, about string
	}{
		{claims.NotReproduced, "claims-not", "The measured value is outside of what the claim accepts, with its whole interval."},
		{claims.Reproduced, "claims-yes", "The measured value is inside of what the claim accepts, with its whole interval."},
		{claims.Inconclusive, "claims-open", "Not to be decided by this run, for the reason given."},
	} {
		v := verdictView{ID: g.id, Title: fmt.Sprintf("%s (%d)", upper(string(g.verdict)), n[g.verdict]), About: g.about}
		groups := map[string][]claimView{}
		causes := map[claims.Cause]int{}
		for _, r := range results {
			if r.Verdict != g.verdict {
				continue
			}
			key := "relative"
			switch {
			case r.Verdict == claims.Inconclusive:
				causes[r.Cause]++
				key = string(r.Cause)
			case r.Kind == claims.Absolute:
				key = "absolute"
			}
			groups[key] = append(groups[key], claimOf(r))
		}
		add := func(key, title, about string, open bool) {
			if list := groups[key]; len(list) > 0 {
				why := slices.ContainsFunc(list, func(c claimView) bool { return c.Reason != "" || len(c.Marks) > 0 })
				v.Groups = append(v.Groups, groupView{fmt.Sprintf("%s-%d", g.id, len(v.Groups)+1), fmt.Sprintf("%s (%d)", title, len(list)), about, open, g.verdict == claims.Inconclusive, list, why})
			}
		}
		add("relative", "Ratios, orders and identities", "Judged within the run, so that another machine need not change them. "+g.about, true)
		add("absolute", "Figures as such", "Judged on a figure itself, which depends on the machine. "+g.about, false)
		for _, cause := range causeOrder(causes) {
			add(string(cause), upper(string(cause)), g.about, false)
		}
		list = append(list, v)
	}
	return list, ""
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// claimOf shows the comparison that decided, and the others below it.
func claimOf(r claims.Result) claimView {
	v := claimView{ID: r.ID, Says: r.Says, Kind: kindWord(r.Kind), Basis: r.Basis, Reason: r.Reason, Marks: slices.Concat(r.Marks, r.Warnings()), Measured: absent, Published: absent, Interval: absent}
	deciding := -1
	for i, f := range r.Findings {
		if f.Verdict == r.Verdict && (deciding < 0 || r.Findings[deciding].Measured == nil && f.Measured != nil) {
			deciding = i
		}
	}
	for i, f := range r.Findings {
		measured, interval, published := findingText(f)
		if i == max(deciding, 0) {
			v.Measured, v.Interval, v.Published = measured, interval, published
		}
		if len(r.Findings) > 1 {
			text := fmt.Sprintf("%s: %s, measured %s", f.Text, f.Verdict, measured)
			if interval != absent {
				text += " (" + interval + ")"
			}
			if published != absent {
				text += ", published " + published
			}
			v.More = append(v.More, text)
		}
	}
	return v
}

// kindWord is what a claim is about, in a word or two.
func kindWord(k claims.Kind) string {
	if k == claims.Absolute {
		return "figure as such"
	}
	return string(k)
}

func findingText(f claims.Finding) (measured, interval, published string) {
	measured, interval, published = absent, absent, absent
	unit := findingUnit(f.Text)
	if m := f.Measured; m != nil {
		measured = figureText(m.Value) + unit
		if m.Confidence > 0 && m.Hi > m.Lo {
			what := figures.Percent(m.Confidence)
			if m.ByValue {
				what = "spread"
			}
			interval = fmt.Sprintf("%s–%s (%s)", figureText(m.Lo), figureText(m.Hi), what)
		}
	}
	if f.Published != nil {
		published = figureText(*f.Published) + unit
	}
	return measured, interval, published
}

// findingUnit is the unit of a comparison of one figure; a ratio has none.
func findingUnit(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	k, err := figures.ParseKey(words[0])
	if err != nil || len(words) > 1 && slices.Contains([]string{"*", "/", "over", "equals", "above"}, words[1]) {
		return ""
	}
	switch unit := figures.Unit(k.Metric); {
	case unit == "":
		return ""
	case strings.HasPrefix(unit, "/"):
		return unit
	default:
		return "\u00a0" + unit
	}
}

// figureText writes a figure with about three significant digits, and whole
// from a thousand.
func figureText(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return Number(v, 0)
	case a >= 10:
		return Number(v, 1)
	case a >= 1:
		return Number(v, 2)
	}
	return Number(v, 3)
}

// drawings are the figures of a run.
func drawings(d Document) []figureView {
	var list []figureView
	add := func(f figureView, panels []panel) {
		if len(panels) == 0 {
			return
		}
		var says []string
		for _, p := range panels {
			f.Panels = append(f.Panels, panelView{p.Title, p.Sub, template.HTML(p.SVG)}) // of our own canvas, which escapes every text
			says = append(says, p.Says)
		}
		f.Says = f.Title + ". " + strings.Join(says, " ")
		list = append(list, f)
	}
	add(figureView{ID: "fig-achieved", Title: "Achieved against target", Caption: "Requests per second at the fixed rate; the dashed line is the target, the whisker the range of the repetitions. An outline alone is no evidence.",
		See: TableRate, SeeTitle: "Fixed rate"}, achievedPanels(d))
	add(figureView{ID: "fig-cpu", Title: "CPU per request", Caption: "CPU time of the candidate per request in µs, shorter is cheaper; the whisker is the range of the repetitions. The database's CPU stands in the table. " + idleCaption(d.Report),
		See: TableRate, SeeTitle: "Fixed rate"}, cpuPanels(d))
	panels, data := latencyPanels(d)
	add(figureView{ID: "fig-latency", Title: "Latency percentiles", Caption: "Latency in ms of one window for each candidate: the repetition in the middle by achieved rate" + ofOne(d.Report) + ". Both axes are logarithmic, towards the slowest requests.",
		Data: data}, panels)
	panels, data = tracePanels(d)
	add(figureView{ID: "fig-cores", Title: "Cores over time", Caption: fmt.Sprintf("CPU use within one window of scenario %s: the repetition in the middle by achieved rate; for a ceiling at the best number of connections.", shown(d.Input.Run.Suite)),
		Data: data}, panels)
	if slices.ContainsFunc(d.Input.Run.Preset.Phases, func(p plan.Phase) bool { return p.Kind == plan.KindCeiling && len(p.Connections) > 1 }) {
		add(figureView{ID: "fig-ceiling", Title: "Ceilings over connections", Caption: "Best repetition of each number of connections in requests per second; the vertical line is the range of the repetitions.",
			See: TableConnections, SeeTitle: "Ceiling by connections"}, ceilingPanels(d.Report))
	} else {
		add(figureView{ID: "fig-ceiling", Title: "Ceilings", Caption: "Best repetition in requests per second; the whisker is the range of the repetitions.",
			See: TableCeiling, SeeTitle: "Ceiling"}, ceilingBars(d.Report))
	}
	return list
}

// order is the place of a candidate, which gives it its colour everywhere.
func order(h figures.Header, candidate string) int {
	if i := slices.Index(h.Order, candidate); i >= 0 {
		return i
	}
	return len(h.Order)
}

// groups splits rows by phase and scenario in their order.
func groups[T any](rows []T, cell func(T) (phase, scenario string, target int)) [][]T {
	type key struct {
		phase, scenario string
		target          int
	}
	at := map[key]int{}
	var out [][]T
	for _, r := range rows {
		p, s, t := cell(r)
		k := key{p, s, t}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// heading names a panel: the scenario, and the phase where there are several of
// the kind.
func heading(r figures.Tables, phase, scenario string) string {
	kinds := map[plan.Kind]int{}
	var mine plan.Kind
	for _, p := range phaseKinds(r) {
		kinds[p.kind]++
		if p.id == phase {
			mine = p.kind
		}
	}
	if kinds[mine] > 1 {
		return scenario + ", " + phase
	}
	return scenario
}

func rateGroups(r figures.Tables) [][]figures.RateRow {
	return groups(r.Rate, func(row figures.RateRow) (string, string, int) { return row.Phase, row.Scenario, row.Target })
}

// statBar makes a bar of an estimate.
func statBar(h figures.Header, c figures.Cell, s *figures.Stat, decimals int) bar {
	b := bar{name: c.Candidate, ink: order(h, c.Candidate), hollow: !c.Evidence}
	if s == nil {
		switch c.Lack {
		case figures.LackAttempts:
			b.missing = "not measured"
		case figures.LackWindows:
			b.missing = "every attempt broke off"
		case figures.LackCounters:
			b.missing = "no counters"
		default:
			b.missing = "no figure"
		}
		return b
	}
	b.value, b.lo, b.hi = s.Value, s.Min, s.Max
	b.text = cells{c.Evidence}.value(s.Value, decimals)
	return b
}

func achievedPanels(d Document) []panel {
	var list []panel
	for _, rows := range rateGroups(d.Report) {
		var b []bar
		for _, row := range rows {
			b = append(b, statBar(d.Report.Header, row.Cell, row.Achieved, 0))
		}
		list = append(list, bars(heading(d.Report, rows[0].Phase, rows[0].Scenario), "requests/s", b,
			float64(rows[0].Target), "target "+Number(float64(rows[0].Target), 0)))
	}
	return list
}

func cpuPanels(d Document) []panel {
	var list []panel
	for _, rows := range rateGroups(d.Report) {
		var b []bar
		for _, row := range rows {
			b = append(b, statBar(d.Report.Header, row.Cell, row.CPU, 1))
		}
		list = append(list, bars(heading(d.Report, rows[0].Phase, rows[0].Scenario), "µs per request", b, 0, ""))
	}
	if len(list) > 0 {
		return list
	}
	for _, rows := range groups(d.Report.Ceiling, func(row figures.CeilingRow) (string, string, int) { return row.Phase, row.Scenario, 0 }) {
		var b []bar
		for _, row := range rows {
			b = append(b, statBar(d.Report.Header, row.Cell, row.CPU, 1))
		}
		list = append(list, bars(heading(d.Report, rows[0].Phase, rows[0].Scenario), "µs per request at the ceiling", b, 0, ""))
	}
	return list
}

// ofOne says which of several load generators is drawn.
func ofOne(r figures.Tables) string {
	if r.Header.Generators < 2 {
		return ""
	}
	return ", and of its load generators the one with the highest p99"
}

// tail is the place of a percentile on an axis that stretches towards 100 %.
func tail(percent float64) float64 { return -math.Log10(1 - percent/100) }

func latencyPanels(d Document) ([]panel, *Table) {
	r := d.Report
	data := Table{ID: "latency", Title: "Latency of the windows drawn", About: "Latency in ms of one window each, as the load generator printed it" + ofOne(r) + ".",
		Columns: []Column{{"scenario", true, 0}, {"candidate", true, 0}, {"p50", false, 0}, {"p90", false, 0}, {"p99", false, 0}, {"p99.9", false, 0}, {"p99.99", false, 0}, {"window", true, 0}}}
	var list []panel
	for _, rows := range rateGroups(r) {
		o := chart{title: heading(r, rows[0].Phase, rows[0].Scenario), sub: fmt.Sprintf("ms at %s/s", Number(float64(rows[0].Target), 0)), logY: true, xName: "percentile"}
		top := 0.0
		for _, row := range rows {
			s, ok := series.Pick(d.Input, r, row.Phase, row.Candidate, row.Scenario, row.Connections)
			if !ok {
				continue
			}
			points := series.Percentiles(d.Read, s)
			if len(points) == 0 {
				continue
			}
			l := line{name: row.Candidate, ink: order(r.Header, row.Candidate), marks: true, hollow: !s.Evidence}
			if !s.Evidence {
				l.name += mark
			}
			line := []string{row.Scenario, l.name}
			for _, want := range []float64{50, 90, 99, 99.9, 99.99} {
				text := absent
				for _, q := range points {
					if q.X == want {
						text = Number(q.Y, 2)
						if want == 99 {
							l.says = "p99 " + text + " ms"
						}
					}
				}
				line = append(line, text)
			}
			for _, q := range points {
				top = max(top, q.X)
				l.points = append(l.points, point{x: tail(q.X), y: q.Y})
			}
			o.lines = append(o.lines, l)
			window := s.Name()
			if g := s.Generator(); g != "" {
				window += ", generator " + g
			}
			data.Rows = append(data.Rows, append(line, window))
		}
		if len(o.lines) == 0 {
			continue
		}
		for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
			if p <= top {
				o.xTicks = append(o.xTicks, plot.Tick{Value: tail(p), Label: "p" + figures.Shortest(p, 2)})
			}
		}
		list = append(list, lines(o))
	}
	return list, &data
}

func tracePanels(d Document) ([]panel, *Table) {
	r := d.Report
	scenario := shown(d.Input.Run.Suite)
	data := Table{ID: "traces", Title: "Cores of the windows drawn", About: "Mean, lowest and highest of the drawn values, in cores.",
		Columns: []Column{{"phase", true, 0}, {"container", true, 0}, {"candidate", true, 0}, {"mean", false, 0}, {"lowest", false, 0}, {"highest", false, 0}, {"window", true, 0}}}
	if d.Read == nil {
		return nil, &data
	}
	budget := map[plan.Role]float64{}
	for role, res := range r.Header.Roles {
		budget[role] = float64(res.CPUs.Count())
	}
	var list []panel
	for _, phase := range phaseKinds(r) {
		connections := map[string]int{}
		for _, row := range r.Rate {
			if row.Phase == phase.id && row.Scenario == scenario {
				connections[row.Candidate] = row.Connections
			}
		}
		for _, row := range r.Ceiling {
			if row.Phase == phase.id && row.Scenario == scenario && row.Achieved != nil {
				connections[row.Candidate] = row.Connections
			}
		}
		var traces []series.Trace
		for _, id := range r.Header.Order {
			n, ok := connections[id]
			if !ok {
				continue
			}
			s, ok := series.Pick(d.Input, r, phase.id, id, scenario, n)
			if !ok || s.CGroup == "" {
				continue
			}
			if t, err := series.ReadTrace(d.Read, s); err == nil {
				traces = append(traces, t)
			}
		}
		for _, what := range []struct {
			name string
			role plan.Role
			of   func(series.Trace) []series.Point
		}{{"candidate", plan.App, func(t series.Trace) []series.Point { return t.App }}, {"database", plan.DB, func(t series.Trace) []series.Point { return t.DB }}} {
			o := chart{title: fmt.Sprintf("%s, %s", phase.id, what.name), sub: "cores", xName: "seconds into the window", fromZero: true, xFromZero: true, decimals: 1}
			end := 0.0
			for _, t := range traces {
				points := what.of(t)
				if len(points) < 2 {
					continue
				}
				l := line{name: t.Candidate, ink: order(r.Header, t.Candidate), hollow: !t.Evidence}
				if !t.Evidence {
					l.name += mark
				}
				mean, lo, hi := 0.0, math.Inf(1), 0.0
				for _, q := range points {
					l.points = append(l.points, point{x: q.X, y: q.Y})
					mean += q.Y / float64(len(points))
					lo, hi = min(lo, q.Y), max(hi, q.Y)
				}
				end = max(end, points[len(points)-1].X)
				l.says, l.level = "mean "+Number(mean, 2), mean
				o.lines = append(o.lines, l)
				data.Rows = append(data.Rows, []string{phase.id, what.name, l.name, Number(mean, 2), Number(lo, 2), Number(hi, 2), t.Name()})
			}
			if len(o.lines) == 0 {
				continue
			}
			if n := budget[what.role]; n > 0 && !r.Header.Study {
				o.mark, o.markText = n, "budget "+counted(int(n), "core")
			}
			o.xTicks = niceTicks(0, end, 0)
			list = append(list, lines(o))
		}
	}
	return list, &data
}

func ceilingPanels(r figures.Tables) []panel {
	var list []panel
	for _, rows := range groups(r.Connections, func(row figures.CeilingRow) (string, string, int) { return row.Phase, row.Scenario, 0 }) {
		o := chart{title: heading(r, rows[0].Phase, rows[0].Scenario), sub: "requests/s", xName: "connections", logX: true, fromZero: true}
		at := map[string]int{}
		var counts []int
		for _, row := range rows {
			if row.Achieved == nil || row.Connections <= 0 {
				continue
			}
			i, ok := at[row.Candidate]
			if !ok {
				i = len(o.lines)
				at[row.Candidate] = i
				o.lines = append(o.lines, line{name: row.Candidate, ink: order(r.Header, row.Candidate), marks: true})
			}
			l := &o.lines[i]
			if !row.Evidence && !strings.HasSuffix(l.name, mark) {
				l.name += mark
				l.hollow = true
			}
			l.points = append(l.points, point{float64(row.Connections), row.Achieved.Value, row.Achieved.Min, row.Achieved.Max})
			l.says = strings.TrimPrefix(fmt.Sprintf("%s, %d connections %s/s", l.says, row.Connections, Number(row.Achieved.Value, 0)), ", ")
			if !slices.Contains(counts, row.Connections) {
				counts = append(counts, row.Connections)
			}
		}
		if len(o.lines) == 0 {
			continue
		}
		slices.Sort(counts)
		for _, n := range counts {
			o.xTicks = append(o.xTicks, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
		}
		list = append(list, lines(o))
	}
	return list
}

// ceilingBars are the ceilings where there is one number of connections only.
func ceilingBars(r figures.Tables) []panel {
	var list []panel
	for _, rows := range groups(r.Connections, func(row figures.CeilingRow) (string, string, int) { return row.Phase, row.Scenario, row.Connections }) {
		var b []bar
		for _, row := range rows {
			b = append(b, statBar(r.Header, row.Cell, row.Achieved, 0))
		}
		list = append(list, bars(heading(r, rows[0].Phase, rows[0].Scenario), fmt.Sprintf("requests/s at %s", counted(rows[0].Connections, "connection")), b, 0, ""))
	}
	return list
}

// comparisonAbout are the sentences above the tables of a comparison; those of
// single figures have the same one.
var comparisonAbout = map[string]string{
	"sets":      "The first is the reference.",
	"residuals": "Ratio of CPU per request to the reference's, the factor that all have in common, and the rest, with its interval.",
	"ratios":    "Within each set, so that the machine counts for little.",
}

// portabilityOf lays out a comparison.
func portabilityOf(c portability.Report) *portabilityView {
	doc := c.Document()
	v := &portabilityView{Title: doc.Title, First: doc.First, Findings: doc.Findings, Last: doc.Last}
	f := figureView{ID: "fig-portability", Title: "CPU per request beside the reference",
		Caption: "Ratio of CPU per request to the reference, with its interval where the repetitions give one. The solid line is equal cost, the dashed one the hardware factor: what is off the dashed line does not travel.", See: "cmp-residuals", SeeTitle: "What does not travel"}
	var says []string
	for i, p := range c.Pairs {
		var list []dot
		for _, x := range p.Residuals {
			e := dot{name: x.Figure.Candidate + " " + x.Figure.Scenario, value: x.Ratio.Value, lo: x.Ratio.Value, hi: x.Ratio.Value,
				ink: max(0, slices.Index(c.Sets[0].Candidates, x.Figure.Candidate)), text: fmt.Sprintf("%.2f×", x.Ratio.Value)}
			if x.Ratio.HasInterval() {
				e.lo, e.hi = x.Ratio.Lo, x.Ratio.Hi
			}
			list = append(list, e)
		}
		if len(list) == 0 {
			continue
		}
		marks := []plot.Tick{{Value: 1, Label: "1×"}}
		if p.Factor != nil {
			marks = append(marks, plot.Tick{Value: p.Factor.Value, Label: fmt.Sprintf("factor %.2f×", p.Factor.Value)})
		}
		d := dots(c.Labels[i+1], "ratio to "+c.Labels[0], list, marks)
		f.Panels = append(f.Panels, panelView{d.Title, d.Sub, template.HTML(d.SVG)})
		says = append(says, d.Says)
	}
	if len(f.Panels) > 0 {
		f.Says = f.Title + ". " + strings.Join(says, " ")
		v.Figure = &f
	}
	for _, t := range doc.Tables {
		out := Table{ID: "cmp-" + t.Name, Title: upper(t.Title), About: comparisonAbout[t.Name], Notes: t.Notes, Empty: "Nothing is in both."}
		if out.About == "" {
			out.About = "Values side by side, with the ratio to the reference and its interval."
		}
		for i, name := range t.Header {
			out.Columns = append(out.Columns, Column{Name: name, Text: i < t.Left})
		}
		out.Rows = t.Rows
		v.Tables = append(v.Tables, out)
	}
	return v
}
