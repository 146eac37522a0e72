// Package sizing turns figures into what a target rate needs: cores, instances,
// database cores and money.
//
// Cores are given two ways, as the studies do. By CPU time they are the rate
// times the CPU of a request: what the work costs, whatever runs it. By
// instance they are the rate over what an instance of so many cores carried,
// times its cores: what has to be bought, idle cores included. Where a
// candidate cannot use all its cores the second is larger. Instances are
// counted by it wherever a ceiling was measured.
package sizing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/prices"
)

// Schema names the layout of Plan as JSON.
const Schema = "percore-plan/1"

// Request is what is to be planned for.
type Request struct {
	Rate     float64            `json:"rate_per_s"`
	Mix      map[string]float64 `json:"mix"`      // scenario -> share; the shares add up to 1
	Headroom float64            `json:"headroom"` // share of the capacity that stays free
	Hardware float64            `json:"hardware"` // CPU per request of the planned host over the measured one's; 0 means 1
	Instance string             `json:"instance,omitempty"`
	Region   string             `json:"region,omitempty"`
}

// Amount is a quantity with its interval, or with the spread of what it rests on.
type Amount struct {
	Value      float64 `json:"value"`
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`       // of the interval from Lo to Hi; 0 when there is none
	Spread     bool    `json:"spread,omitempty"` // Lo and Hi come from the least and the greatest repetition, with no confidence
}

func (a Amount) scale(by float64) Amount {
	return Amount{a.Value * by, a.Lo * by, a.Hi * by, a.Confidence, a.Spread}
}

// invert gives 1/a.
func (a Amount) invert() Amount {
	if !(a.Lo > 0) {
		return Amount{Value: 1 / a.Value, Lo: 1 / a.Value, Hi: 1 / a.Value}
	}
	return Amount{1 / a.Value, 1 / a.Hi, 1 / a.Lo, a.Confidence, a.Spread}
}

// finite reports whether the quantity and its bounds are numbers; nil is.
func (a *Amount) finite() bool {
	return a == nil || !math.IsInf(a.Value, 0) && !math.IsNaN(a.Value) && !math.IsInf(a.Lo, 0) && !math.IsNaN(a.Lo) && !math.IsInf(a.Hi, 0) && !math.IsNaN(a.Hi)
}

// roundUp counts whole machines.
func (a Amount) roundUp() Amount {
	up := func(v float64) float64 { return max(1, math.Ceil(v-1e-9)) }
	return Amount{up(a.Value), up(a.Lo), up(a.Hi), a.Confidence, a.Spread}
}

// Plan is the answer.
type Plan struct {
	Schema      string      `json:"schema"`
	Set         string      `json:"set"`
	Host        string      `json:"host"`
	Request     Request     `json:"request"`
	Cores       int         `json:"cores_per_instance"`
	MemoryGiB   float64     `json:"memory_gib_per_instance,omitempty"`
	PerHour     float64     `json:"price_per_hour,omitempty"` // of one instance
	Currency    string      `json:"currency,omitempty"`
	Priced      bool        `json:"priced"`
	Candidates  []Candidate `json:"candidates"`
	First       []string    `json:"first,omitempty"` // said before any figure
	Assumptions []string    `json:"assumptions"`

	measuredOn bool // the instance is the one that was measured, because none was named
}

// Candidate is what one candidate needs.
type Candidate struct {
	ID              string   `json:"candidate"`
	CPU             *Amount  `json:"app_cpu_us,omitempty"`        // per request of the mix
	ByCPU           *Amount  `json:"cores_by_cpu,omitempty"`      // rate times CPU, headroom included
	Capacity        *Amount  `json:"capacity_per_s,omitempty"`    // of the measured cores
	ByInstance      *Amount  `json:"cores_by_instance,omitempty"` // rate over capacity times cores, headroom included
	Instances       *Amount  `json:"instances,omitempty"`         // by instance, or by CPU time where no ceiling was measured
	DatabaseCores   *Amount  `json:"database_cores,omitempty"`    // rate times database CPU, headroom included
	PerMonth        *Amount  `json:"per_month,omitempty"`         // of the candidate's instances, 730 h
	PerMillion      *Amount  `json:"per_million,omitempty"`       // requests
	PeakMiB         float64  `json:"peak_mib,omitempty"`          // largest of any scenario that was measured
	CapacityFrom    string   `json:"capacity_from,omitempty"`     // where the capacity comes from
	Missing         []string `json:"missing,omitempty"`           // what could not be planned, and why
	Remarks         []string `json:"remarks,omitempty"`           // for the reader
	MeasuredAtCores int      `json:"measured_at_cores,omitempty"` // of the capacity
}

// ParseMix reads read=0.5,write=0.5. Shares must add up to 1 within a thousandth,
// as rounded ones do, and are returned so that they do exactly.
func ParseMix(s string) (map[string]float64, error) {
	mix := map[string]float64{}
	const form = "write it as read=0.5,write=0.5"
	if strings.TrimSpace(s) == "" {
		return nil, fail.Input("the mix is empty").Try("%s", form)
	}
	total := 0.0
	for _, part := range strings.Split(s, ",") {
		name, text, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fail.Input("mix %q: %q is not a scenario with its share", s, part).Try("%s", form)
		}
		if _, twice := mix[name]; twice {
			return nil, fail.Input("mix %q: %s is in it twice", s, name).Try("add its shares up")
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fail.Input("mix %q: %q is not a number", s, text).Try("%s", form)
		}
		if v < 0 || v > 1 {
			return nil, fail.Input("mix %q: the share %s of %s is not between 0 and 1", s, strings.TrimSpace(text), name).Try("%s", form)
		}
		mix[name] = v
		total += v
	}
	if math.Abs(total-1) > 0.001+1e-9 {
		return nil, fail.Input("mix %q: the shares add up to %.4g and not to 1", s, total).Try("%s", form)
	}
	for name := range mix {
		mix[name] /= total
	}
	return mix, nil
}

// Bounds of a request, beyond which nothing real is.
const (
	leastRate, greatestRate         = 1e-3, 1e9 // requests per second
	greatestHeadroom                = 0.99
	leastHardware, greatestHardware = 1e-3, 1e3
)

// Check refuses a request that cannot be planned.
func (r Request) Check() error {
	switch {
	case math.IsNaN(r.Rate) || math.IsInf(r.Rate, 0) || r.Rate <= 0:
		return fail.Input("there is no plan for a rate of %v requests per second", r.Rate).Try("give %s a number above zero", fail.Setting("rate"))
	case r.Rate < leastRate:
		return fail.Input("a rate of %v requests per second keeps no machine busy", r.Rate).Try("give %s a number from %v", fail.Setting("rate"), leastRate)
	case r.Rate > greatestRate:
		return fail.Input("a rate of %v requests per second is beyond any machine", r.Rate).Try("give %s a smaller one", fail.Setting("rate"))
	case math.IsNaN(r.Headroom) || r.Headroom < 0:
		return fail.Input("a headroom of %v makes no sense", r.Headroom).Try("give %s a share from 0 to %v", fail.Setting("headroom"), greatestHeadroom)
	case r.Headroom > greatestHeadroom:
		return fail.Input("a headroom of %v leaves nothing to work with", r.Headroom).Try("give %s a share from 0 to %v", fail.Setting("headroom"), greatestHeadroom)
	case r.Hardware != 0 && !(r.Hardware >= leastHardware && r.Hardware <= greatestHardware):
		return fail.Input("a hardware factor of %v makes no sense", r.Hardware).Try("give %s a number from %v to %v", fail.Setting("hardware-factor"), leastHardware, float64(greatestHardware))
	case len(r.Mix) == 0:
		return fail.Input("the mix is empty").Try("write it as read=0.5,write=0.5")
	case r.Region != "" && r.Instance == "":
		return fail.Input("a region without an instance type gives no price").Try("add %s", fail.Setting("instance"))
	}
	return nil
}

// Make plans a request from the figures of a set. Without an instance type it is
// the one on which the candidates had all cores, where the table has its price
// in the region of the run; else the instance is one of as many cores as were
// measured, and nothing is priced.
func Make(set *figures.Set, r Request, table prices.Table) (Plan, error) {
	if r.Hardware == 0 {
		r.Hardware = 1
	}
	if err := r.Check(); err != nil {
		return Plan{}, err
	}
	for name := range r.Mix {
		if !slices.Contains(set.Scenarios, name) {
			return Plan{}, fail.Input("%s has no scenario %q", set.Name, name).Try("take from %s", strings.Join(set.Scenarios, ", "))
		}
	}
	p := Plan{Schema: Schema, Set: set.Name, Host: set.Host.Label, Request: r, Cores: set.AppCores, Candidates: []Candidate{}}
	if own := set.Host.Instance; r.Instance == "" && own != "" {
		region := cmp.Or(set.Region, prices.DefaultRegion)
		if i, _, err := table.Find(own, region); err == nil && i.Cores == set.AppCores {
			r.Instance, r.Region = own, region
			p.Request, p.measuredOn = r, true
		}
	}
	if r.Instance != "" {
		if p.Request.Region == "" {
			p.Request.Region = prices.DefaultRegion
		}
		i, price, err := table.Find(r.Instance, p.Request.Region)
		if err != nil {
			return Plan{}, err
		}
		p.Cores, p.MemoryGiB, p.PerHour, p.Currency, p.Priced = i.Cores, i.MemoryGiB, price, table.Currency, true
	}
	if p.Cores < 1 {
		return Plan{}, fail.Input("%s does not say how many cores the candidates had", set.Name).Try("give %s a type", fail.Setting("instance"))
	}
	var without []string // what is said of candidates that cannot be planned
	reason := ""
	for _, id := range set.Candidates {
		c := p.candidate(set, id)
		for _, a := range []*Amount{c.CPU, c.ByCPU, c.Capacity, c.ByInstance, c.Instances, c.DatabaseCores, c.PerMonth, c.PerMillion} {
			if !a.finite() {
				return Plan{}, fail.Input("by the figures of %s the plan for %s is beyond any number", set.Name, id).Try("look at its figures with %s", fail.Call("report"))
			}
		}
		if c.Instances == nil {
			_, _, why := perRequest(set, id, r.Mix, figures.AppCPU)
			if sc, because, ok := strings.Cut(why, ": "); ok {
				why = fmt.Sprintf("%s (%s)", sc, because)
			}
			reason = cmp.Or(reason, why)
			without = append(without, fmt.Sprintf("%s is not planned: there is no evidence for %s.", id, why))
		}
		p.Candidates = append(p.Candidates, c)
	}
	if len(without) == len(p.Candidates) {
		return Plan{}, fail.Input("%s holds no evidence for %s: nothing can be planned", set.Name, cmp.Or(reason, strings.Join(scenarios(r.Mix), " and "))).Try("name a run that measured it")
	}
	p.First = without
	p.say(set, table)
	return p, nil
}

// candidate plans one candidate.
func (p *Plan) candidate(set *figures.Set, id string) Candidate {
	c := Candidate{ID: id}
	r := p.Request
	free := 1 / (1 - r.Headroom)
	cpu, from, why := perRequest(set, id, r.Mix, figures.AppCPU)
	if cpu == nil {
		c.Missing = append(c.Missing, "cores by CPU time: "+why)
	} else {
		scaled := cpu.scale(r.Hardware)
		c.CPU = &scaled
		by := scaled.scale(r.Rate / 1e6 * free)
		c.ByCPU = &by
		if idle := nearlyIdle(set, id, r.Mix); from == figures.PhaseRate && len(idle) > 0 {
			c.Remarks = append(c.Remarks, fmt.Sprintf("it was nearly idle in %s at the fixed rate, where waking up costs more than the work: cores by CPU time are too many, go by instance", strings.Join(idle, " and ")))
		}
		if from != figures.PhaseRate {
			c.Remarks = append(c.Remarks, "CPU per request is that of the "+from+" phase")
		}
	}
	capacity, cores, from, why := capacity(set, id, r.Mix)
	if capacity == nil {
		c.Missing = append(c.Missing, "cores by instance: "+why)
	} else {
		scaled := capacity.scale(1 / r.Hardware)
		c.Capacity, c.CapacityFrom, c.MeasuredAtCores = &scaled, from, cores
		by := scaled.invert().scale(r.Rate * float64(cores) * free)
		c.ByInstance = &by
	}
	c.Remarks = append(c.Remarks, mixRemarks(set, id, r.Mix)...)
	c.Remarks = append(c.Remarks, doubts(set, id, r.Mix)...)
	need := c.ByInstance
	if need == nil && c.ByCPU != nil {
		need = c.ByCPU
		c.Remarks = append(c.Remarks, "instances are counted by CPU time, so for a candidate that can use all its cores")
	}
	if need != nil {
		n := need.scale(1 / float64(p.Cores)).roundUp()
		c.Instances = &n
		if p.Priced {
			hourly := n.scale(p.PerHour)
			month, million := hourly.scale(prices.HoursPerMonth), hourly.scale(1e6/(r.Rate*3600))
			c.PerMonth, c.PerMillion = &month, &million
		}
	}
	db, _, why := perRequest(set, id, r.Mix, figures.DBCPU)
	if db == nil {
		c.Missing = append(c.Missing, "database cores: "+why)
	} else {
		by := db.scale(r.Rate / 1e6 * free)
		c.DatabaseCores = &by
	}
	for _, e := range set.All() {
		if k := e.Key; k.Suite == set.Suite && k.Metric == figures.PeakMiB && k.Candidate == id && (k.Cores == 0 || k.Cores == set.AppCores) {
			c.PeakMiB = max(c.PeakMiB, e.Value)
		}
	}
	if p.MemoryGiB > 0 && c.PeakMiB > 0.8*p.MemoryGiB*1024 {
		c.Remarks = append(c.Remarks, fmt.Sprintf("its peak memory of %.0f MiB does not fit into an instance with %v GiB beside the system", c.PeakMiB, p.MemoryGiB))
	}
	return c
}

func scenarios(mix map[string]float64) []string {
	var all []string
	for name, share := range mix {
		if share > 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// halves is how far the shares of reads and writes may be from one half for
// figures that were measured under half reads and half writes to be theirs.
const halves = 0.005

// underMix is a figure of the capacity phase, which loads with half reads and
// half writes, where that is the mix, nothing else is in it, and the set has it.
func underMix(set *figures.Set, candidate string, mix map[string]float64, metric string) (figures.Estimate, bool) {
	if !slices.Equal(scenarios(mix), []string{"read", "write"}) || math.Abs(mix["read"]-0.5) > halves {
		return figures.Estimate{}, false
	}
	return halfAndHalf(set, candidate, metric)
}

func halfAndHalf(set *figures.Set, candidate, metric string) (figures.Estimate, bool) {
	e, ok := set.Get(figures.Key{Suite: set.Suite, Phase: figures.PhaseCapacity, Metric: metric, Candidate: candidate, Scenario: "mix", Cores: set.AppCores})
	return e, ok && e.Value > 0
}

// mixRemarks say on what a plan for a mix near half reads and half writes rests,
// where a set has figures that were measured under that mix: with the mix on the
// other side of the line they would be others.
func mixRemarks(set *figures.Set, candidate string, mix map[string]float64) []string {
	e, ok := halfAndHalf(set, candidate, figures.Achieved)
	if !ok || mix["read"] == 0 || mix["write"] == 0 {
		return nil
	}
	if _, taken := underMix(set, candidate, mix, figures.Achieved); !taken {
		return []string{fmt.Sprintf("its scenarios were measured apart and are combined by their shares; measured together, as half reads and half writes, they reached %s/s on %d core(s), which is not in this plan", group(e.Value), set.AppCores)}
	}
	if mix["read"] != 0.5 {
		return []string{"the figures are those of exactly half reads and half writes"}
	}
	return nil
}

// doubts are what the statistics say of the figures that a plan rests on:
// repetitions that are missing, and those that are too few for an interval.
func doubts(set *figures.Set, candidate string, mix map[string]float64) []string {
	where := map[string][]string{} // sentence -> scenarios
	var order []string
	note := func(text, sc string) {
		if where[text] == nil {
			order = append(order, text)
		}
		if !slices.Contains(where[text], sc) {
			where[text] = append(where[text], sc)
		}
	}
	for _, of := range []struct{ phase, metric, at string }{
		{figures.PhaseRate, figures.AppCPU, "at the fixed rate"}, {figures.PhaseRate, figures.DBCPU, "at the fixed rate"}, {figures.PhaseCeiling, figures.Achieved, "at the ceiling"},
	} {
		for _, sc := range scenarios(mix) {
			if of.metric == figures.DBCPU && !set.UsesDatabase(sc) {
				continue
			}
			e, ok := set.Get(figures.Key{Suite: set.Suite, Phase: of.phase, Metric: of.metric, Candidate: candidate, Scenario: sc})
			if !ok || len(e.Samples) == 0 {
				continue
			}
			if e.Incomplete != "" {
				note(of.at+": "+e.Incomplete, sc)
			}
			switch {
			case e.Estimator == figures.EstimatorMedian:
				for _, w := range e.Warnings {
					note(of.at+": "+w, sc)
				}
			case len(e.Samples) == 1:
				note(of.at+": one repetition gives no spread", sc)
			}
		}
	}
	var all []string
	for _, text := range order {
		all = append(all, strings.Join(where[text], " and ")+" "+text)
	}
	return all
}

// perRequest is the CPU of one request of a mix: measured under this mix, or the
// shares' sum of the scenarios' CPU at the fixed rate, or at the ceiling where
// that was not measured. A scenario without a database costs the database nothing.
func perRequest(set *figures.Set, candidate string, mix map[string]float64, metric string) (*Amount, string, string) {
	if e, ok := underMix(set, candidate, mix, metric); ok {
		a := amount(e)
		return &a, figures.PhaseCapacity, ""
	}
	reason, known := "", figures.Unmeasured
	for _, phase := range []string{figures.PhaseRate, figures.PhaseCeiling} {
		var parts []Amount
		why := ""
		for _, sc := range scenarios(mix) {
			if metric == figures.DBCPU && !set.UsesDatabase(sc) {
				continue
			}
			k := figures.Key{Suite: set.Suite, Phase: phase, Metric: metric, Candidate: candidate, Scenario: sc}
			e, ok := set.Get(k)
			if !ok {
				why = fmt.Sprintf("%s: %s", sc, set.Why(k))
				if cause := set.Why(k).Cause; reason == "" || known == figures.Unmeasured && cause != figures.Unmeasured {
					reason, known = why, cause // of the two phases the first that knows one
				}
				break
			}
			parts = append(parts, amount(e).scale(mix[sc]))
		}
		if why == "" {
			sum := add(parts)
			return &sum, phase, ""
		}
	}
	return nil, "", reason
}

// capacity is what the measured cores carry of a mix. A capacity measured under
// this very mix is taken where there is one; else it is the harmonic mean of
// the scenarios' ceilings, weighted by the shares: each request takes its part
// of the machine's time.
func capacity(set *figures.Set, candidate string, mix map[string]float64) (*Amount, int, string, string) {
	if e, ok := underMix(set, candidate, mix, figures.Achieved); ok {
		a := amount(e)
		return &a, set.AppCores, "capacity measured under half reads and half writes", ""
	}
	var parts []Amount
	for _, sc := range scenarios(mix) {
		k := figures.Key{Suite: set.Suite, Phase: figures.PhaseCeiling, Metric: figures.Achieved, Candidate: candidate, Scenario: sc}
		e, ok := set.Get(k)
		if !ok {
			return nil, 0, "", fmt.Sprintf("%s: %s", sc, set.Why(k))
		}
		if !(e.Value > 0) {
			return nil, 0, "", fmt.Sprintf("%s: its ceiling is zero", sc)
		}
		parts = append(parts, amount(e).invert().scale(mix[sc]))
	}
	if set.AppCores < 1 {
		return nil, 0, "", "the set does not say how many cores were measured"
	}
	sum := add(parts).invert()
	from := "ceiling of " + scenarios(mix)[0]
	if len(parts) > 1 {
		from = "ceilings of " + strings.Join(scenarios(mix), " and ") + ", combined by their shares"
	}
	return &sum, set.AppCores, from, ""
}

// amount is an estimate as a quantity. A median has its interval. A best of
// several has none; the spread of the repetitions stands beside it, from the
// least to the greatest.
func amount(e figures.Estimate) Amount {
	if e.Estimator == figures.EstimatorMedian {
		return Amount{Value: e.Value, Lo: e.Lo, Hi: e.Hi, Confidence: e.Confidence}
	}
	if len(e.Samples) > 1 {
		lo, hi := e.Range()
		return Amount{Value: e.Value, Lo: min(lo, e.Value), Hi: max(hi, e.Value), Spread: true}
	}
	return Amount{Value: e.Value, Lo: e.Value, Hi: e.Value}
}

// add sums quantities. The interval of the sum is the sum of the bounds, which
// holds at least with what Bonferroni leaves of the confidences. Where one of
// them has a spread, what is left is a spread; where one has neither, the sum
// has neither.
func add(parts []Amount) Amount {
	var s Amount
	missing := 0.0
	bounded := len(parts) > 0
	for _, a := range parts {
		s.Value += a.Value
		s.Lo += a.Lo
		s.Hi += a.Hi
		s.Spread = s.Spread || a.Spread
		bounded = bounded && (a.Spread || a.Confidence > 0)
		missing += 1 - a.Confidence
	}
	s.Confidence = max(0, 1-missing)
	if s.Spread {
		s.Confidence = 0
	}
	if !bounded || s.Confidence == 0 && !s.Spread {
		return Amount{Value: s.Value, Lo: s.Value, Hi: s.Value}
	}
	return s
}

// nearlyIdle lists the scenarios of the mix in which the candidate used less
// than figures.IdleShare of its cores at the fixed rate.
func nearlyIdle(set *figures.Set, id string, mix map[string]float64) []string {
	var idle []string
	for _, sc := range slices.Sorted(maps.Keys(mix)) {
		used, ok := set.Get(figures.Key{Suite: set.Suite, Phase: figures.PhaseRate, Metric: figures.AppCores, Candidate: id, Scenario: sc})
		if ok && mix[sc] > 0 && used.Value < figures.IdleShare*float64(set.AppCores) {
			idle = append(idle, sc)
		}
	}
	return idle
}

// say writes what comes before the figures and what they assume.
func (p *Plan) say(set *figures.Set, table prices.Table) {
	if set.SharedCores {
		p.First = append(p.First, "In this run the roles shared cores: its ceilings are too low and its latencies too high, so cores by instance are too many. Plan from a run on separate cores.")
	}
	if set.Kind != figures.KindPublished && !set.Comparable && !set.SharedCores && len(set.Caveats) > 0 {
		p.First = append(p.First, set.Caveats...)
	}
	r := p.Request
	measured := p.Host
	if cpu := set.Host.CPUModel; cpu != "" && cpu != p.Host {
		measured += " (" + cpu + ")"
	}
	if r.Instance != "" && r.Instance != set.Host.Instance {
		s := fmt.Sprintf("%s was not measured: its core is taken for a core of %s", r.Instance, measured)
		if r.Hardware != 1 {
			s += fmt.Sprintf(" with %.4g times its CPU per request (--hardware-factor)", r.Hardware)
		}
		p.First = append(p.First, s+".")
	}
	core := fmt.Sprintf("A core does what a core of the measured host (%s) did", p.Host)
	if r.Hardware != 1 {
		core += fmt.Sprintf(", with %.4g times its CPU per request. The factor is of the candidates' host alone: database cores are those that were measured", r.Hardware)
	} else {
		core += "; if yours differs, take the factor from percore compare and give it as --hardware-factor"
	}
	p.Assumptions = append(p.Assumptions,
		core+".",
		fmt.Sprintf("Linear scaling: an instance of %d core(s) carries %d/%d of what %d measured core(s) carried, and n instances n times that. Larger instances usually carry less per core.", p.Cores, p.Cores, max(set.AppCores, 1), set.AppCores),
		fmt.Sprintf("The mix is %s, in requests, at every moment of the day; %.0f %% of the capacity stays free.", mixText(r.Mix), 100*r.Headroom),
		"By CPU time is the rate times CPU per request. By instance is the rate over the ceiling times its cores, idle cores included, and instances are counted by it.",
		"The ceiling is saturation and not a service level: latency grows before it.",
		"Memory is the largest seen while measuring; caches, more data and more connections need more.",
		"Database cores are CPU time at the same mix; its disks, memory and replicas are not in it.",
	)
	if set.Kind == figures.KindPublished {
		p.Assumptions = append(p.Assumptions, "Published figures are values without repetitions, so nothing here has an interval.")
	} else {
		p.Assumptions = append(p.Assumptions, "Intervals are those of the medians of CPU per request; of a mix they are sums of bounds. A ceiling is the best of its repetitions and has no interval: what is called a spread comes from the least and the greatest repetition at its connection count, without a confidence.")
	}
	if set.Database != nil {
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("Database cores are those of %s, on which the database ran.", set.Database.Label))
	}
	if p.measuredOn {
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("The instance is the one that was measured, %s; --instance names another.", r.Instance))
	}
	if p.Priced {
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("Prices: %s, %s, %s in %s at %v %s an hour, %d h a month. The candidate's instances alone: no database, balancer, disk or traffic. Live prices replace this table (--prices FILE).",
			table.Source, table.Date, r.Instance, r.Region, p.PerHour, p.Currency, prices.HoursPerMonth))
	}
}

func mixText(mix map[string]float64) string {
	var parts []string
	for _, name := range scenarios(mix) {
		parts = append(parts, fmt.Sprintf("%v %% %s", math.Round(mix[name]*1000)/10, name))
	}
	return strings.Join(parts, ", ")
}
