package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// TablesVersion is the version of the tables' JSON. It grows when a field changes
// its meaning or goes; a new field does not change it.
const TablesVersion = 1

// Tables is every table of a run.
type Tables struct {
	Version     int           `json:"version"`
	Header      Header        `json:"run"`
	Caveats     []string      `json:"caveats"` // said before any figure
	Rate        []RateRow     `json:"fixed_rate"`
	Ceiling     []CeilingRow  `json:"ceiling"`
	Connections []CeilingRow  `json:"ceiling_by_connections"`
	TokenShare  []ShareRow    `json:"token_share"`
	Probes      []ProbeRow    `json:"probes"`
	Gates       []GateRow     `json:"gates_failed"`
	Broken      []BrokenRow   `json:"attempts_broken_off"`
	Blocks      []BrokenBlock `json:"blocks_failed"`
	Windows     []WindowRow   `json:"windows"`
	Generators  []PartRow     `json:"generators,omitempty"` // only where a target was spread over several
	Streams     []PartRow     `json:"streams,omitempty"`    // only where a load had several
	Notes       []string      `json:"notes"`
}

// Header is what a reader must know of a run before its figures.
type Header struct {
	ID            string                       `json:"id"`
	State         string                       `json:"state"`
	Percore       string                       `json:"percore"`
	Started       string                       `json:"started"` // RFC 3339, empty when not known
	Ended         string                       `json:"ended,omitempty"`
	Suite         string                       `json:"suite"`
	Profile       string                       `json:"profile"`
	Roles         map[plan.Role]plan.Resources `json:"roles"`
	Pool          int                          `json:"database_connections"`
	SharedCores   bool                         `json:"shared_cores"`
	Preset        string                       `json:"preset"`
	Flavour       plan.Flavour                 `json:"flavour"`
	Seed          uint64                       `json:"seed"`
	Hosts         []store.HostFacts            `json:"hosts"`
	Links         []store.Link                 `json:"links,omitempty"`           // between the hosts, where there are several
	Cloud         *store.Cloud                 `json:"cloud,omitempty"`           // where the hosts came from and what they cost
	Generators    int                          `json:"load_generators,omitempty"` // over which a target was spread, where there were several
	Versions      map[string]string            `json:"versions"`
	Fsync         map[string]float64           `json:"fsync_per_s,omitempty"`
	Comparable    bool                         `json:"comparable"`     // with the published figures
	NotComparable []string                     `json:"not_comparable"` // why not
	// Otherwise is what suite and preset do otherwise than the study, which does
	// not keep figures from standing beside the published ones.
	Otherwise []string          `json:"otherwise,omitempty"`
	Done      int               `json:"windows_done"` // windows with evidence
	Planned   int               `json:"windows_planned"`
	Titles    map[string]string `json:"candidates"` // id -> how reports name it
	Order     []string          `json:"candidate_order"`
	Phases    []string          `json:"phase_order"`
	Study     bool              `json:"study"` // whether it is a raw folder in the study's layout
}

// Cell is what the rows of the tables have in common.
type Cell struct {
	Phase       string `json:"phase"`
	Candidate   string `json:"candidate"`
	Scenario    string `json:"scenario"`
	Connections int    `json:"connections"`
	Repetitions int    `json:"repetitions"` // with evidence
	Planned     int    `json:"planned"`
	// Evidence is false when no repetition passed its gates. The figures are
	// then those of the last attempts, good for a look and for nothing else.
	Evidence bool     `json:"evidence"`
	Notes    []string `json:"notes,omitempty"` // why it is incomplete
	Lack     Lack     `json:"-"`               // why figures are missing from it
}

// Lack is what a cell is missing that its figures need.
type Lack int

// What a cell may lack.
const (
	LackNothing  Lack = iota
	LackAttempts      // it was not measured
	LackWindows       // every attempt broke off
	LackCounters      // of some of its windows
)

// RateRow is a cell of the fixed-rate phase: medians over the repetitions.
type RateRow struct {
	Cell
	Target   int   `json:"target_per_s"`
	Met      int   `json:"met"` // repetitions that met the target
	Achieved *Stat `json:"achieved_per_s"`
	P50      *Stat `json:"p50_ms"`
	P99      *Stat `json:"p99_ms"`
	P999     *Stat `json:"p999_ms"`
	Cores    *Stat `json:"app_cores"`
	CPU      *Stat `json:"app_cpu_us_per_request"`
	DBCores  *Stat `json:"db_cores"`
	DBCPU    *Stat `json:"db_cpu_us_per_request"`
	Peak     *Stat `json:"peak_bytes"` // the largest
	Failed   int64 `json:"failed"`     // requests over all repetitions
}

// CeilingRow is a cell of the ceiling phase: the figures of the best
// repetition, because interference only subtracts, and the median beside it.
type CeilingRow struct {
	Cell
	Best     int   `json:"best_repetition"`
	Achieved *Stat `json:"achieved_per_s"` // value: the best repetition's
	Median   *Stat `json:"median_per_s"`
	P50      *Stat `json:"p50_ms"`
	P99      *Stat `json:"p99_ms"`
	P999     *Stat `json:"p999_ms"`
	Cores    *Stat `json:"app_cores"`
	CPU      *Stat `json:"app_cpu_us_per_request"`
	DBCores  *Stat `json:"db_cores"`
	DBCPU    *Stat `json:"db_cpu_us_per_request"`
	Peak     *Stat `json:"peak_bytes"`
	Failed   int64 `json:"failed"` // requests of the best repetition
}

// ShareRow says how much of a read's CPU goes into the token.
type ShareRow struct {
	Phase     string   `json:"phase"` // whose CPU figures were taken
	Candidate string   `json:"candidate"`
	AuthCPU   *float64 `json:"auth_cpu_us_per_request"`
	ReadCPU   *float64 `json:"read_cpu_us_per_request"`
	Share     *float64 `json:"share"` // auth over read
	Evidence  bool     `json:"evidence"`
}

// PartRow is what one of several load hosts, or one of several streams, saw of a
// cell: of a fixed rate the medians of the repetitions, of a ceiling the best
// repetition.
type PartRow struct {
	Phase       string `json:"phase"`
	Candidate   string `json:"candidate"`
	Scenario    string `json:"scenario"`
	Connections int    `json:"connections"` // of all parts together
	Host        string `json:"host,omitempty"`
	Stream      string `json:"stream,omitempty"`       // its scenario
	Target      int    `json:"target_per_s,omitempty"` // of the load, where it is a share of the ceiling
	Evidence    bool   `json:"evidence"`               // as of the cell
	Achieved    *Stat  `json:"achieved_per_s"`
	P50         *Stat  `json:"p50_ms"`
	P99         *Stat  `json:"p99_ms"`
	P999        *Stat  `json:"p999_ms"`
	Failed      int64  `json:"failed"` // requests over all repetitions, of a ceiling of the best
}

// ProbeRow is the range of the reference probe's readings.
type ProbeRow struct {
	Phase    string  `json:"phase"`
	Target   int     `json:"target_per_s"`
	Readings int     `json:"readings"`
	Lowest   float64 `json:"lowest_per_s"`
	Highest  float64 `json:"highest_per_s"`
	Below    int     `json:"below_99_percent"` // readings under 99 % of the target, without a result, or that cannot be
	ranged   bool    // whether Lowest and Highest hold a reading
}

// GateRow says how often a gate failed and what became of the windows.
type GateRow struct {
	Gate     string   `json:"gate"`
	Failed   int      `json:"attempts_failed"`
	Waived   int      `json:"attempts_waived"` // its condition was given up on purpose
	Windows  int      `json:"windows_affected"`
	Repeated int      `json:"windows_repeated_with_evidence"`
	Left     int      `json:"windows_left_without_evidence"`
	Worst    float64  `json:"worst_reading"`
	Limit    float64  `json:"limit"`
	Unit     string   `json:"unit"`
	Reasons  []string `json:"reasons,omitempty"` // why it was waived
	Where    []string `json:"where"`             // the windows in which it failed
}

// BrokenRow is an attempt that ended in an error.
type BrokenRow struct {
	plan.Window
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
}

// WindowRow is one attempt at a window.
type WindowRow struct {
	plan.Window
	Attempt  int             `json:"attempt"`
	Evidence bool            `json:"evidence"` // whether the tables rest on it
	Failed   []string        `json:"gates_failed,omitempty"`
	Error    string          `json:"error,omitempty"`
	Measured *measure.Window `json:"measured,omitempty"`
	// Hosts is what each of several hosts said of its clock and its network.
	Hosts []store.HostReading `json:"hosts,omitempty"`
}

// TablesOf makes every table of a run. Its rows are those figures of the cells
// that FromRun files too.
func TablesOf(in Measured) Tables {
	why := Comparability(in.Run)
	r := Tables{
		Version: TablesVersion, Header: header(in, why), Notes: append([]string{}, in.Notes...), Blocks: append([]BrokenBlock{}, in.Blocks...),
		Rate: []RateRow{}, Connections: []CeilingRow{},
	}
	cells := gather(in.Run, in.Windows)
	if in.Study { // of the study's data a part is normal, of a run it is not
		cells = slices.DeleteFunc(cells, func(c *cell) bool { return len(c.attempts) == 0 })
	}
	at := map[cellKey]*cell{}
	for _, c := range cells {
		at[keyOf(c.first)] = c
		switch c.first.Kind {
		case plan.KindRate:
			r.Rate = append(r.Rate, rateRow(c))
		case plan.KindCeiling:
			r.Connections = append(r.Connections, connectionRow(c))
		}
		r.Header.Done += len(c.evidence)
		for _, w := range c.attempts {
			if w.Measured != nil {
				r.Header.Generators = max(r.Header.Generators, len(w.Measured.Generators))
			}
		}
	}
	r.Ceiling = ceilings(r.Connections, in.Run.Preset.Phases)
	r.Generators = parts(r, cells, func(w *measure.Window) (rows []part) {
		for _, g := range w.Generators {
			rows = append(rows, part{PartRow{Host: g.Host}, g.Part})
		}
		return rows
	})
	r.Streams = parts(r, cells, func(w *measure.Window) (rows []part) {
		for _, s := range w.Streams {
			rows = append(rows, part{PartRow{Stream: s.Scenario}, s.Part})
		}
		return rows
	})
	r.TokenShare = shares(r.Rate, r.Ceiling)
	r.Probes = probes(in)
	r.Gates, r.Broken = gates(in, at)
	r.Windows = windows(in, at)
	r.Caveats = caveats(in, r, why)
	for _, list := range []*[]string{&r.Caveats, &r.Notes, &r.Header.NotComparable} {
		if *list == nil {
			*list = []string{}
		}
	}
	return r
}

func header(in Measured, why []string) Header {
	run := in.Run
	h := Header{
		ID: run.ID, State: in.State, Percore: run.Percore, Suite: run.Suite.Name, Profile: run.Profile.Name, Roles: run.Profile.Roles,
		Pool: run.Profile.DatabaseConnections, SharedCores: run.Profile.SharedCores && len(run.Profile.SharedRoles()) > 0,
		Preset: run.Preset.Name, Flavour: run.Flavour, Seed: run.Seed, Hosts: run.Hosts, Links: run.Links, Cloud: run.Cloud, Versions: run.Versions, Fsync: run.FsyncPerSec,
		Comparable: len(why) == 0, NotComparable: why, Otherwise: slices.Concat(run.Suite.Otherwise, run.Preset.Otherwise), Planned: run.Planned(), Titles: map[string]string{}, Study: in.Study,
	}
	const layout = "2006-01-02T15:04:05Z07:00"
	if !run.Started.IsZero() {
		h.Started = run.Started.Format(layout)
	}
	if run.Ended != nil && !run.Ended.IsZero() {
		h.Ended = run.Ended.Format(layout)
	}
	for _, c := range run.Suite.Candidates {
		h.Titles[c.ID] = or(c.Title[run.Flavour], c.ID)
		h.Order = append(h.Order, c.ID)
	}
	for _, p := range run.Preset.Phases {
		h.Phases = append(h.Phases, p.ID)
	}
	return h
}

// shown is a window without its streams where there is one, which says nothing
// that the window does not.
func shown(w plan.Window) plan.Window {
	if len(w.Streams) < 2 {
		w.Streams = nil
	}
	return w
}

// describe fills what all rows have, and says why a cell is incomplete.
func (c *cell) describe() Cell {
	evidence := len(c.evidence) > 0
	row := Cell{
		Phase: c.first.Phase, Candidate: c.first.Candidate, Scenario: c.first.Scenario, Connections: c.first.Connections,
		Repetitions: len(c.evidence), Planned: max(c.planned, len(c.tried)), Evidence: evidence,
	}
	if len(c.tried) == 0 {
		row.Lack, row.Notes = LackAttempts, append(row.Notes, "not measured")
		return row
	}
	failed := len(c.tried) - len(c.evidence)
	if failed > 0 && evidence {
		row.Notes = append(row.Notes, fmt.Sprintf("%s without evidence: no attempt passed its gates", count(failed, "repetition")))
	}
	if missing := row.Planned - len(c.tried); missing > 0 {
		row.Notes = append(row.Notes, fmt.Sprintf("incomplete: %d of %s measured", len(c.tried), count(row.Planned, "repetition")))
	}
	switch {
	case len(c.used) == 0:
		row.Lack, row.Notes = LackWindows, append(row.Notes, "every attempt broke off")
	case !evidence:
		row.Notes = append(row.Notes, "not evidence: no attempt passed its gates")
	}
	without := 0
	for _, w := range c.used {
		if !w.Measured.Has("app_cores") {
			without++
		}
	}
	if without > 0 {
		row.Lack, row.Notes = LackCounters, append(row.Notes, fmt.Sprintf("no counters for %d of %s", without, count(len(c.used), "repetition")))
	}
	for _, f := range windowFigures {
		if text := f.leftOut(c.used); text != "" {
			row.Notes = append(row.Notes, Title(f.metric)+": "+text)
		}
	}
	return row
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Stat is an estimate as a row of a table shows it, with the lowest and the
// highest reading beside it.
type Stat struct {
	Value float64 `json:"value"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	N     int     `json:"n"` // readings

	// Lo and Hi bound the median of the readings with probability Confidence:
	// DisplayConfidence or, with too few of them, what their range has. 0 there
	// means that there is no interval, and both are the value.
	Lo         float64  `json:"lo"`
	Hi         float64  `json:"hi"`
	Confidence float64  `json:"confidence"`
	Warnings   []string `json:"warnings,omitempty"` // what the statistics could not do
}

// stat shows an estimate. Only a median has an interval.
func (e Estimate) stat() *Stat {
	s := &Stat{Value: e.Value, N: e.N, Lo: e.Value, Hi: e.Value}
	s.Min, s.Max = e.Range()
	if e.Estimator == EstimatorMedian {
		s.Lo, s.Hi, s.Confidence, s.Warnings = e.Lo, e.Hi, e.Confidence, e.Warnings
	}
	return s
}

// stat shows a figure of the cell, nil where there is none.
func (c *cell) stat(metric string) *Stat {
	e, ok := c.figures[metric]
	if !ok {
		return nil
	}
	return e.stat()
}

func rateRow(c *cell) RateRow {
	row := RateRow{
		Cell: c.describe(), Target: c.first.Target, Met: c.met(), Achieved: c.stat(Achieved),
		P50: c.stat(P50), P99: c.stat(P99), P999: c.stat(P999),
		Cores: c.stat(AppCores), CPU: c.stat(AppCPU), DBCores: c.stat(DBCores), DBCPU: c.stat(DBCPU), Peak: c.peak(),
	}
	for _, w := range c.used {
		row.Failed += w.Measured.Failed
	}
	return row
}

// peak shows the peak memory in bytes.
func (c *cell) peak() *Stat {
	e, ok := c.figures[PeakMiB]
	if !ok {
		return nil
	}
	return e.Scale(1 << 20).stat()
}

func connectionRow(c *cell) CeilingRow {
	row := CeilingRow{Cell: c.describe()}
	rate, ok := c.figures[Achieved]
	if !ok {
		return row
	}
	row.Best, row.Failed, row.Achieved = c.best.Repetition, c.best.Measured.Failed, rate.stat()
	middle := rate
	middle.Estimator, middle.Value = EstimatorMedian, rate.Median
	row.Median = middle.stat()
	only := func(s *Stat) *Stat { // the best repetition's alone
		if s != nil {
			s.Min, s.Max, s.N = s.Value, s.Value, 1
		}
		return s
	}
	row.P50, row.P99, row.P999 = only(c.stat(P50)), only(c.stat(P99)), only(c.stat(P999))
	row.Cores, row.CPU, row.DBCores, row.DBCPU = only(c.stat(AppCores)), only(c.stat(AppCPU)), only(c.stat(DBCores)), only(c.stat(DBCPU))
	row.Peak = only(c.peak())
	return row
}

// ceilings picks, per candidate and scenario, the best connection count among
// those with no failed request. Counts without evidence are considered only
// where no count has any.
func ceilings(rows []CeilingRow, phases []plan.Phase) []CeilingRow {
	counts := map[string]int{}
	for _, p := range phases {
		counts[p.ID] = len(p.Connections)
	}
	type key struct{ phase, candidate, scenario string }
	groups := map[key][]CeilingRow{}
	var order []key
	for _, r := range rows {
		k := key{r.Phase, r.Candidate, r.Scenario}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	out := []CeilingRow{}
	for _, k := range order {
		group := groups[k]
		hasEvidence := slices.ContainsFunc(group, func(r CeilingRow) bool { return r.Evidence })
		var best *CeilingRow
		without, withFailures := 0, 0
		for i, r := range group {
			switch {
			case r.Achieved == nil || r.Evidence != hasEvidence:
				without++ // not measured, or only attempts that failed their gates
			case r.Failed > 0:
				withFailures++
			case best == nil || r.Achieved.Value > best.Achieved.Value:
				best = &group[i]
			}
		}
		row := CeilingRow{Cell: Cell{Phase: k.phase, Candidate: k.candidate, Scenario: k.scenario, Planned: group[0].Planned, Evidence: hasEvidence}}
		if best != nil {
			row = *best
			row.Notes = slices.Clone(best.Notes)
		} else {
			row.Notes = append(row.Notes, "no ceiling: every connection count had failed requests or was not measured")
			row.Evidence = false
		}
		if best != nil {
			all := max(len(group), counts[k.phase])
			if have := len(group) - without; have < all {
				row.Notes = append(row.Notes, fmt.Sprintf("incomplete: the best of %d of %s", have, count(all, "connection count")))
			}
			if withFailures > 0 {
				row.Notes = append(row.Notes, fmt.Sprintf("%d of %s had failed requests", withFailures, count(all, "connection count")))
			}
		}
		out = append(out, row)
	}
	return out
}

// part is a part of a window, with a row that names it.
type part struct {
	row PartRow
	measure.Part
}

// parts takes apart, by load host or by stream, the cells of the fixed-rate phase
// and those that are a ceiling.
func parts(r Tables, cells []*cell, of func(*measure.Window) []part) []PartRow {
	var rows []PartRow
	for _, c := range cells {
		k, used := c.first, c.used
		if k.Kind == plan.KindCeiling {
			at := slices.IndexFunc(r.Ceiling, func(row CeilingRow) bool {
				return row.Phase == k.Phase && row.Candidate == k.Candidate && row.Scenario == k.Scenario && row.Connections == k.Connections && row.Achieved != nil
			})
			if at < 0 {
				continue
			}
			used = []*store.WindowResult{c.best}
		}
		type seen struct {
			samples map[string][]Sample
			failed  int64
		}
		by := map[PartRow]*seen{}
		var names []PartRow
		for _, w := range used {
			for _, g := range of(w.Measured) {
				x := by[g.row]
				if x == nil {
					x = &seen{samples: map[string][]Sample{}}
					by[g.row] = x
					names = append(names, g.row)
				}
				x.failed += g.Failed
				for metric, v := range map[string]float64{Achieved: g.Achieved, P50: g.P50MS, P99: g.P99MS, P999: g.P999MS} {
					if (metric == Achieved || g.Has(metric)) && !Impossible(v) {
						x.samples[metric] = append(x.samples[metric], Sample{w.Repetition, v})
					}
				}
			}
		}
		for _, name := range names {
			x := by[name]
			stat := func(metric string) *Stat {
				if len(x.samples[metric]) == 0 {
					return nil
				}
				e := Estimate{Key: Key{Metric: metric}, Estimator: EstimatorMedian, Samples: x.samples[metric]}
				e.fill(DisplayConfidence)
				return e.stat()
			}
			rows = append(rows, PartRow{
				Phase: k.Phase, Candidate: k.Candidate, Scenario: k.Scenario, Connections: k.Connections, Host: name.Host, Stream: name.Stream, Target: level(k), Evidence: len(c.evidence) > 0,
				Achieved: stat(Achieved), P50: stat(P50), P99: stat(P99), P999: stat(P999), Failed: x.failed,
			})
		}
	}
	return rows
}

// level is the target of a window that is a share of the ceiling, else 0.
func level(w plan.Window) int {
	if w.Share > 0 {
		return w.Target
	}
	return 0
}

// shares divides the CPU of the scenario auth, which only verifies the token,
// by that of read, which also fetches a row. The fixed-rate phase is taken, and
// the ceiling phase for a candidate that has no such pair there.
func shares(rate []RateRow, ceiling []CeilingRow) []ShareRow {
	type figure struct {
		cpu      *Stat
		evidence bool
	}
	type source struct {
		phase, candidate string
		by               map[string]figure
	}
	var sources []*source
	at := func(phase, candidate string) *source {
		for _, s := range sources {
			if s.phase == phase && s.candidate == candidate {
				return s
			}
		}
		s := &source{phase, candidate, map[string]figure{}}
		sources = append(sources, s)
		return s
	}
	for _, r := range rate {
		at(r.Phase, r.Candidate).by[r.Scenario] = figure{r.CPU, r.Evidence}
	}
	for _, r := range ceiling {
		at(r.Phase, r.Candidate).by[r.Scenario] = figure{r.CPU, r.Evidence}
	}
	rows := []ShareRow{}
	done := map[string]bool{}
	for _, s := range sources {
		auth, read := s.by["auth"], s.by["read"]
		if auth.cpu == nil || read.cpu == nil || read.cpu.Value <= 0 || done[s.candidate] {
			continue
		}
		done[s.candidate] = true
		a, r := auth.cpu.Value, read.cpu.Value
		share := a / r
		rows = append(rows, ShareRow{s.phase, s.candidate, &a, &r, &share, auth.evidence && read.evidence})
	}
	return rows
}

func probes(in Measured) []ProbeRow {
	rows := []ProbeRow{}
	for _, p := range in.Probes {
		i := slices.IndexFunc(rows, func(r ProbeRow) bool { return r.Phase == p.Block.Phase && r.Target == p.Reading.Target })
		if i < 0 {
			i = len(rows)
			rows = append(rows, ProbeRow{Phase: p.Block.Phase, Target: p.Reading.Target})
		}
		r, v := &rows[i], p.Reading.Achieved
		r.Readings++
		if Impossible(v) {
			r.Below++
			continue
		}
		if r.ranged {
			r.Lowest, r.Highest = min(r.Lowest, v), max(r.Highest, v)
		} else {
			r.Lowest, r.Highest, r.ranged = v, v, true
		}
		if p.Reading.Error != "" || v < metShare*float64(p.Reading.Target) {
			r.Below++
		}
	}
	rank := ranks(in.Run)
	slices.SortStableFunc(rows, func(a, b ProbeRow) int {
		return cmp.Compare(rank("phase", a.Phase), rank("phase", b.Phase))
	})
	return rows
}

// gates counts what failed and what became of the windows, and lists the
// attempts that broke off.
func gates(in Measured, cells map[cellKey]*cell) ([]GateRow, []BrokenRow) {
	rows := []GateRow{}
	broken := []BrokenRow{}
	affected := map[string]map[string]bool{} // gate -> window key
	for _, w := range in.Windows {
		if w.Error != "" {
			broken = append(broken, BrokenRow{shown(w.Window), w.Attempt, w.Error})
		}
		for _, g := range w.Gates {
			if g.OK {
				continue
			}
			i := slices.IndexFunc(rows, func(r GateRow) bool { return r.Gate == g.Name })
			if i < 0 {
				i = len(rows)
				rows = append(rows, GateRow{Gate: g.Name, Worst: g.Reading, Limit: g.Limit, Unit: g.Unit, Where: []string{}})
				affected[g.Name] = map[string]bool{}
			}
			r := &rows[i]
			// A probe is worse the lower it is, the others the higher.
			if worse := g.Reading > r.Worst; worse != (g.Reading < g.Limit) && g.Reading != r.Worst {
				r.Worst = g.Reading
			}
			if g.Waived != "" {
				r.Waived++
				if !slices.Contains(r.Reasons, g.Waived) {
					r.Reasons = append(r.Reasons, g.Waived)
				}
				continue
			}
			r.Failed++
			if k := w.Key(); !affected[g.Name][k] {
				affected[g.Name][k] = true
				r.Windows++
				r.Where = append(r.Where, w.Window.String())
				if cells[keyOf(w.Window)].evidenceOf(w.Repetition) != nil {
					r.Repeated++
				} else {
					r.Left++
				}
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b GateRow) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), strings.Compare(a.Gate, b.Gate))
	})
	return rows, broken
}

func windows(in Measured, cells map[cellKey]*cell) []WindowRow {
	rows := make([]WindowRow, 0, len(in.Windows))
	for _, w := range in.Windows {
		row := WindowRow{Window: shown(w.Window), Attempt: w.Attempt, Error: w.Error, Measured: w.Measured, Hosts: w.Hosts}
		if e := cells[keyOf(w.Window)].evidenceOf(w.Repetition); e != nil {
			row.Evidence = e.Attempt == w.Attempt
		}
		for _, g := range w.Gates {
			if g.Failed() {
				row.Failed = append(row.Failed, g.Name)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// caveats are said before any figure.
func caveats(in Measured, r Tables, why []string) []string {
	var list []string
	if len(why) > 0 {
		list = append(list, "Not comparable with the published figures: "+strings.Join(why, "; ")+".")
	}
	switch in.State {
	case store.StateComplete:
	case store.StateRunning:
		list = append(list, "The run is still being measured.")
	case store.StateFailed:
		list = append(list, "The run failed before its end.")
	default:
		list = append(list, fmt.Sprintf("The run was interrupted; `percore run --resume %s` carries on.", in.Run.ID))
	}
	missing := 0
	if r.Header.Planned > 0 {
		missing = r.Header.Planned - r.Header.Done
	}
	switch {
	case missing > 0 && in.Study:
		list = append(list, fmt.Sprintf("This folder holds a part of what was measured: %d of %s. Cells that are incomplete are marked.", r.Header.Done, count(r.Header.Planned, "window")))
	case missing > 0:
		list = append(list, fmt.Sprintf("%d of %s have no evidence; the tables mark the cells that are incomplete.", missing, count(r.Header.Planned, "planned window")))
	}
	return append(list, warnings(r)...)
}

// warnings are those of the statistics, each once, with the phases in which it
// stands beside a figure.
func warnings(r Tables) []string {
	var texts []string
	phases := map[string][]string{}
	add := func(phase string, stats ...*Stat) {
		for _, s := range stats {
			if s == nil {
				continue
			}
			for _, w := range s.Warnings {
				if phases[w] == nil {
					texts = append(texts, w)
				}
				if !slices.Contains(phases[w], phase) {
					phases[w] = append(phases[w], phase)
				}
			}
		}
	}
	for _, row := range r.Rate {
		add(row.Phase, row.Achieved, row.P50, row.P99, row.P999, row.Cores, row.CPU, row.DBCores, row.DBCPU)
	}
	for _, row := range r.Connections {
		add(row.Phase, row.Median)
	}
	for i, w := range texts {
		texts[i] = fmt.Sprintf("In phase %s %s.", strings.Join(phases[w], " and "), w)
	}
	return texts
}

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
