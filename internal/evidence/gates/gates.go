// Package gates says whether a window counts as evidence. A gate is a pure
// function of what is stored of the run and of the window: whoever reads the raw
// files again comes to the same verdict, or knows that something was changed.
package gates

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Names of the gates, as they stand in events.jsonl. The measurement protocol
// asks for every one of them: a window is evidence only if the probe reached
// its target, the clocks agree, nothing took CPU time away or stood still,
// application and load generator did not share cores, the load generator was
// not what held the window back, the candidate answered what it was asked for,
// and, on hosts of their own, no network allowance was exceeded and the clocks
// of the hosts agree. The last two are read only where roles are on different
// hosts, and Late only in an open loop.
//
// Where there are several hosts the reading is that of the worst, and the
// detail names it. A driver that could not reach a host for a while fails no
// gate by that: what the hosts counted meanwhile is what is judged.
const (
	Probe     = "probe"     // the reference server reached its target
	Clock     = "clock"     // wall clock and monotonic clock of each host agree: it did not sleep, its clock was not set, not even for a while
	Throttled = "throttled" // the kernel withheld no CPU time because of a quota, on a container or on a cgroup above it
	Foreign   = "foreign"   // next to nothing else ran on the CPUs of the roles
	Stalled   = "stalled"   // no container was paused or stood still
	Steal     = "steal"     // the hypervisor withheld next to none of the CPUs in use
	Cores     = "cores"     // app and load generator ran on different cores
	Samples   = "samples"   // the counters of each host enclose the window
	Allowance = "allowance" // no network allowance of an instance was exceeded
	Offset    = "offset"    // the clocks of the hosts agree with the first load host's
	Load      = "load"      // no load generator was near the end of its CPUs
	Late      = "late"      // no load generator stood still while requests were due
	Length    = "length"    // every load generator sent for the whole window
	Answers   = "answers"   // the answers were the scenario's own
)

// Limits of the gates.
const (
	probeLimit  = 0.99                   // of the probe's target
	clockLimit  = 100 * time.Millisecond // by how much the clocks' difference may vary over one window
	stealLimit  = 0.01                   // of the time of the CPUs in use
	offsetLimit = 5 * time.Millisecond   // between any host and the first load host
	loadLimit   = 0.85                   // busy share of the CPUs of role load: from there on a generator is late by itself

	// foreignLimit is the share of the CPUs of a role that others may use. The two
	// counters that are compared, ticks of CPUs and the time of cgroups, differ by
	// up to two in a hundred by themselves.
	foreignLimit = 0.05
	// stillLimit is for how long app and database may use no CPU time at all in a
	// window in which they are busy: a slow disk may hold up a commit.
	stillLimit = time.Second
	// busyLimit is from how much CPU time on, in CPUs, standing still means
	// anything.
	busyLimit = 0.05
	// lateLimit is for how long a load generator may use no CPU time while
	// requests are due. Samples are 100 ms apart.
	lateLimit = 250 * time.Millisecond
	// lateRequests is the same in requests, where so few are due that the
	// generator has nothing to do for longer.
	lateRequests = 3
	// lengthLimit is the share of the nominal window for which every load
	// generator must have run. One that ends by itself runs a little longer.
	lengthLimit = 0.99
)

// OfProbe judges the reading of a reference probe: at least 99 % of its
// target.
func OfProbe(r store.ProbeReading) store.Gate {
	share := 0.0
	if r.Target > 0 {
		share = r.Achieved / float64(r.Target)
	}
	return store.Gate{
		Name: Probe, OK: r.Error == "" && share >= probeLimit, Reading: share, Limit: probeLimit, Unit: "share of target",
		Detail: fmt.Sprintf("%.0f of %d requests/s", r.Achieved, r.Target),
	}
}

// used are the CPUs on which roles run; none stands for all of the host.
func (l Layout) used(roles []plan.Role) []int {
	var used []int
	for _, r := range roles {
		list := l.cpus[r].List()
		if len(list) == 0 {
			return nil
		}
		used = append(used, list...)
	}
	return plan.FormatCPUs(used).List()
}

// coresGate compares the cores of app and load generator. Where cores have
// several threads, which a profile's CPU numbers do not show, the database's
// count too, unless the profile shares cores on purpose.
func (l Layout) coresGate() store.Gate {
	var both []plan.CPUSet
	share := func(a, b plan.Role) {
		if l.hosts[a] != l.hosts[b] {
			return
		}
		for _, core := range plan.SharedCores(l.cpus[a], l.cpus[b], l.siblings) {
			if !slices.Contains(both, core) {
				both = append(both, core)
			}
		}
	}
	detail := fmt.Sprintf("app on %s, load on %s", l.cpus[plan.App], l.cpus[plan.Load])
	if l.hosts[plan.App] != l.hosts[plan.Load] {
		detail += ", of different hosts"
	}
	share(plan.App, plan.Load)
	if len(l.siblings) > 0 && l.waived == "" {
		share(plan.App, plan.DB)
		share(plan.DB, plan.Load)
	}
	g := store.Gate{Name: Cores, OK: len(both) == 0, Reading: float64(len(both)), Limit: 0, Unit: "shared CPUs", Detail: detail}
	if len(l.siblings) > 0 {
		g.Unit = "shared cores"
		if !g.OK {
			g.Detail = fmt.Sprintf("app on %s, db on %s, load on %s, of which the CPUs %s are threads of the same cores",
				l.cpus[plan.App], l.cpus[plan.DB], l.cpus[plan.Load], plan.JoinCPUs(both...))
		}
	}
	if !g.OK {
		g.Waived = l.waived
	}
	return g
}

// worst makes a gate of the readings of several hosts: the first that cannot be
// read or the one that is furthest over the limit, which the detail names.
type worst struct {
	store.Gate
	named   bool // whether details name hosts
	found   bool
	unknown bool
}

// read takes the reading of a host into account.
func (w *worst) read(host string, reading float64, ok bool) {
	detail := ""
	if w.named {
		detail = "host " + host
	}
	w.take(detail, reading, ok)
}

// take is read with a detail of its own.
func (w *worst) take(detail string, reading float64, ok bool) {
	if w.unknown || w.found && reading <= w.Reading {
		return
	}
	w.found, w.Reading, w.OK, w.Detail = true, reading, ok, detail
}

// cannot says that the reading of a host is not known, which fails the gate.
func (w *worst) cannot(host, why string) {
	if w.unknown {
		return
	}
	w.unknown, w.OK, w.Reading, w.Detail = true, false, 0, why
	if w.named {
		w.Detail = "host " + host + ": " + why
	}
}

// sampleGates judges the counters of one window, which ran from start to end by
// the clock of the first load host, and in which the load generator was at work
// for a time that no set clock can shorten.
func (l Layout) sampleGates(hosts []store.HostSeries, readings []store.HostReading, start, end time.Time, worked time.Duration) []store.Gate {
	spread := l.spread()
	gate := func(name string, limit float64, unit string) worst {
		return worst{Gate: store.Gate{Name: name, Limit: limit, Unit: unit}, named: spread}
	}
	clock := gate(Clock, float64(clockLimit.Milliseconds()), "ms")
	throttled := store.Gate{Name: Throttled, OK: true, Limit: 0, Unit: "ms"}
	steal := gate(Steal, stealLimit, "share of CPU time")
	samples := store.Gate{Name: Samples, OK: len(hosts) > 0, Limit: 2, Unit: "samples"}
	missing := func(host, why string) {
		if !samples.OK {
			return // the first is enough
		}
		samples.OK, samples.Detail = false, why
		if spread {
			samples.Detail = "host " + host + ": " + why
		}
	}
	tolerance := time.Duration(0)
	if spread {
		tolerance = offsetLimit
	}
	for i, h := range hosts {
		drift := h.Series.WallVsMonotonic()
		clock.read(h.Host, drift.Seconds()*1000, drift <= clockLimit)

		readThrottled(&throttled, h, spread)

		if share, known := h.Series.StealFraction(l.used(h.Roles)); known {
			steal.read(h.Host, share, share <= stealLimit)
		} else {
			steal.cannot(h.Host, "the samples do not show the CPUs in use")
		}

		if n := float64(h.Series.Len()); i == 0 || n < samples.Reading {
			samples.Reading = n
		}
		if h.Series.Len() < 2 || !h.Series.Encloses(start.Add(h.Ahead+tolerance), end.Add(h.Ahead-tolerance)) {
			missing(h.Host, "the first and the last sample do not enclose the window")
		}
		if span := h.Series.Elapsed(); span < worked-clockLimit {
			missing(h.Host, fmt.Sprintf("the samples span %.1f s and the load generator ran for %.1f s", span.Seconds(), worked.Seconds()))
		}
	}
	for _, host := range l.without(hosts, readings) {
		missing(host, "there are no samples")
	}
	gates := []store.Gate{clock.Gate, throttled, l.foreignGate(hosts), stalledGate(hosts, spread), steal.Gate, samples}
	if spread {
		gates = append(gates, allowanceGate(readings), offsetGate(readings))
	}
	return append(gates, l.loadGate(hosts))
}

// readThrottled adds what CPU quotas withheld from the containers of a host, and
// from the cgroups in which these lie.
func readThrottled(g *store.Gate, h store.HostSeries, spread bool) {
	held := func(us int64, what string) {
		g.Reading += float64(us) / 1000
		g.OK = false
		g.Detail = what
		if spread {
			g.Detail += " on host " + h.Host
		}
	}
	above := int64(0) // containers may lie in the same cgroups
	var below plan.Role
	for _, role := range plan.Roles() {
		for _, name := range h.Containers(role) {
			if us, ok := h.Series.GrewWhileThere(name, cgroup.ThrottledUS); ok && us > 0 {
				held(us, fmt.Sprintf("%s was throttled", role))
			}
			if us, ok := h.Series.GrewWhileThere(name, cgroup.AboveThrottledUS); ok && us > above {
				above, below = us, role
			}
		}
	}
	if above > 0 {
		held(above, fmt.Sprintf("a cgroup above that of %s was throttled", below))
	}
}

// foreignGate: what else runs on the CPUs of a role takes time that the role is
// charged for as delay. Roles that share CPUs are taken together.
func (l Layout) foreignGate(hosts []store.HostSeries) store.Gate {
	spread := l.spread()
	g := worst{Gate: store.Gate{Name: Foreign, Limit: foreignLimit, Unit: "share of CPU time"}}
	var over []string // all that are over the limit
	for _, h := range hosts {
		for _, roles := range l.together(h.Roles) {
			var names []string
			for _, r := range roles {
				names = append(names, string(r))
			}
			where := "CPUs of " + strings.Join(names, " and ")
			if spread {
				where = "host " + h.Host + ", " + where
			}
			busy, known := h.Series.ProcessesWithin(l.used(roles))
			cpus := float64(len(l.used(roles)))
			if cpus == 0 {
				cpus = float64(len(h.Series.First().Host.PerCPU))
			}
			for _, role := range roles {
				for _, name := range h.Containers(role) {
					own, ok := h.Series.UsedWithin(name)
					busy -= own / cpus
					known = known && ok
				}
			}
			if !known {
				g.cannot(h.Host, where+": the samples do not show them, or not all containers on them")
				continue
			}
			busy = max(0, busy)
			g.take(where, busy, busy <= foreignLimit)
			if busy > foreignLimit {
				over = append(over, where)
			}
		}
	}
	if !g.unknown && len(over) > 1 {
		g.Detail = strings.Join(over, "; ")
	}
	if !g.OK && spread {
		g.Waived = l.waived // hosts that are one machine are foreign to each other
	}
	return g.Gate
}

// together groups roles of a host whose CPUs overlap.
func (l Layout) together(roles []plan.Role) [][]plan.Role {
	var groups [][]plan.Role
	for _, r := range roles {
		group := []plan.Role{r}
		var apart [][]plan.Role
		for _, other := range groups {
			if l.overlap(other, r) {
				group = append(other, group...)
			} else {
				apart = append(apart, other)
			}
		}
		groups = append(apart, group)
	}
	return groups
}

// overlap reports whether a role runs on a CPU of one of the others.
func (l Layout) overlap(roles []plan.Role, r plan.Role) bool {
	mine := l.used([]plan.Role{r})
	theirs := l.used(roles)
	return len(mine) == 0 || len(theirs) == 0 || slices.ContainsFunc(mine, func(cpu int) bool { return slices.Contains(theirs, cpu) })
}

// stalledGate: while a container is paused, what waits for it is measured and not
// what it can do.
func stalledGate(hosts []store.HostSeries, spread bool) store.Gate {
	g := store.Gate{Name: Stalled, OK: true, Unit: "ms"}
	var details []string
	for _, h := range hosts {
		for _, role := range plan.Roles() {
			var frozen, still time.Duration
			used := 0.0
			for _, name := range h.Containers(role) {
				paused, _ := h.Series.Frozen(name)
				cpus, _ := h.Series.UsedWithin(name)
				frozen, still, used = max(frozen, paused), max(still, h.Series.Still(name)), used+cpus
			}
			var what string
			switch {
			case frozen > 0:
				what = fmt.Sprintf("%s was paused for %.1f s", role, frozen.Seconds())
				still = frozen
			case role != plan.Load && still > stillLimit && used >= busyLimit:
				what = fmt.Sprintf("%s stood still for %.1f s", role, still.Seconds())
			default:
				continue
			}
			if spread {
				what += " on host " + h.Host
			}
			g.OK = false
			g.Reading = max(g.Reading, still.Seconds()*1000)
			details = append(details, what)
		}
	}
	g.Detail = strings.Join(details, ", ")
	return g
}

// without names the hosts of which there are no samples: those that said
// something of themselves, and the roles that no sampled host plays.
func (l Layout) without(hosts []store.HostSeries, readings []store.HostReading) []string {
	var list []string
	roles := map[plan.Role]bool{}
	for _, h := range hosts {
		for _, r := range h.Roles {
			roles[r] = true
		}
	}
	for _, r := range readings {
		if !slices.ContainsFunc(hosts, func(h store.HostSeries) bool { return h.Host == r.Host }) {
			list = append(list, r.Host)
			for _, role := range r.Roles {
				roles[role] = true
			}
		}
	}
	for _, r := range plan.Roles() {
		if !roles[r] {
			list = append(list, l.hosts[r])
		}
	}
	return list
}

// allowanceGate: an instance whose network allowance is used up queues or drops
// packets, which the candidate would be blamed for. Drivers that have no such
// counters pass, because their hosts have no such allowance either.
func allowanceGate(readings []store.HostReading) store.Gate {
	g := store.Gate{Name: Allowance, OK: len(readings) > 0, Limit: 0, Unit: "packets"}
	var grew, without, unread []string
	for _, r := range readings {
		switch {
		case r.AllowanceError != "":
			unread = append(unread, fmt.Sprintf("host %s: %s", r.Host, r.AllowanceError))
		case len(r.Allowances) == 0:
			without = append(without, r.Host)
		}
		for _, counter := range slices.Sorted(maps.Keys(r.Allowances)) {
			if n := r.Allowances[counter]; n > 0 {
				g.Reading += float64(n)
				grew = append(grew, fmt.Sprintf("host %s: %s grew by %d", r.Host, counter, n))
			}
		}
	}
	details := append(grew, unread...)
	g.OK = g.OK && len(details) == 0
	switch {
	case len(readings) == 0:
		details = append(details, "no host was asked for its counters")
	case len(without) > 0:
		details = append(details, "no counters of allowances on "+strings.Join(without, ", "))
	}
	g.Detail = strings.Join(details, "; ")
	return g
}

// offsetGate: the window's times are the load host's, and counters of other
// hosts are held against them.
func offsetGate(readings []store.HostReading) store.Gate {
	g := worst{Gate: store.Gate{Name: Offset, Limit: float64(offsetLimit.Milliseconds()), Unit: "ms"}, named: true}
	for _, r := range readings {
		if r.ClockError != "" {
			g.cannot(r.Host, r.ClockError)
			continue
		}
		ms := math.Abs(r.ClockOffsetMS)
		g.read(r.Host, ms, ms <= float64(offsetLimit.Milliseconds()))
	}
	if len(readings) == 0 {
		g.Detail = "no host was asked for its clock"
	}
	return g.Gate
}

// loadGate: a load generator without CPU left sends late and measures its own
// delay. What counts is the window alone, and not the samples around it, in
// which several generators wait for their start.
func (l Layout) loadGate(hosts []store.HostSeries) store.Gate {
	g := worst{Gate: store.Gate{Name: Load, Limit: loadLimit, Unit: "share of CPU time"}, named: l.spread()}
	for _, h := range hosts {
		if !slices.Contains(h.Roles, plan.Load) {
			continue
		}
		if share, known := h.Series.BusyWithin(l.used([]plan.Role{plan.Load})); known {
			g.read(h.Host, share, share < loadLimit)
		} else {
			g.cannot(h.Host, "the samples do not show the CPUs of role load")
		}
	}
	if !g.found && !g.unknown {
		g.Detail = "there are no samples of a load host"
	}
	if !g.OK {
		g.Waived = l.waived
	}
	return g.Gate
}

// lateGate: a generator stamps a request when it gets around to it and not when
// it was due, so what a late one adds to the latency of its requests does not
// show in its output. It shows in that the generator used no CPU time. In a
// closed loop nothing is due, and a generator waits for the candidate. Of several
// streams the gate is that of one that fails it, or of the one nearest to that.
func (l Layout) lateGate(w plan.Window, generators int, hosts []store.HostSeries) (store.Gate, bool) {
	if w.Target <= 0 || generators == 0 {
		return store.Gate{}, false
	}
	var gate store.Gate
	streams := w.Sends()
	for i, stream := range streams {
		container := measure.LoadContainerOf(i, stream.Scenario)
		limit := max(lateLimit, time.Duration(lateRequests*float64(time.Second)*float64(generators/len(streams))/float64(stream.Target)))
		g := worst{Gate: store.Gate{Name: Late, Limit: float64(limit.Milliseconds()), Unit: "ms"}, named: l.spread()}
		for _, h := range hosts {
			if !slices.Contains(h.Roles, plan.Load) {
				continue
			}
			if !h.Series.Has(container) {
				g.cannot(h.Host, "there are no samples of the load generator")
				continue
			}
			still := h.Series.Still(container)
			g.read(h.Host, still.Seconds()*1000, still <= limit)
		}
		if !g.found && !g.unknown {
			g.Detail = "there are no samples of a load host"
		}
		nearer := gate.OK == g.OK && g.Reading*gate.Limit > gate.Reading*g.Limit
		if i == 0 || gate.OK && !g.OK || nearer {
			gate = g.Gate
		}
	}
	return gate, true
}

// FailedOf are the gates of OfOutputs that fail: all that is said of a window of
// the study, of which most gates cannot be read.
func FailedOf(w plan.Window, outputs []measure.Output) []store.Gate {
	return slices.DeleteFunc(OfOutputs(w, outputs), func(g store.Gate) bool { return !g.Failed() })
}

// OfOutputs judges what the load generators of a window say of themselves. It is
// what can be judged of a window of which nothing else is known.
func OfOutputs(w plan.Window, outputs []measure.Output) []store.Gate {
	length := store.Gate{Name: Length, OK: len(outputs) > 0, Limit: lengthLimit, Unit: "share of the window"}
	answers := store.Gate{Name: Answers, Limit: measure.MaxOther, Unit: "share of answers"}
	all := map[string]int64{}
	var answered, ok int64
	for i, o := range outputs {
		if share := o.Result.Seconds / w.Seconds; i == 0 || share < length.Reading {
			length.Reading = share
			if length.OK = share >= lengthLimit; !length.OK {
				length.Detail = fmt.Sprintf("%s ended after %.1f of %.0f s", o.Host, o.Result.Seconds, w.Seconds)
			}
		}
		answered, ok = answered+o.Result.Answered, ok+o.Result.OK()
		for status, n := range o.Result.Statuses {
			if status[0] != '2' {
				all[status] += n
			}
		}
		for message, n := range o.Result.Errors {
			all[message] += n
		}
	}
	answers.Reading = measure.OtherShare(answered, ok)
	answers.OK = answers.Reading <= measure.MaxOther
	if !answers.OK {
		var list []string
		for _, what := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b)) }) {
			list = append(list, fmt.Sprintf("%s: %d", what, all[what]))
		}
		answers.Detail = fmt.Sprintf("%d of %d answers were the scenario's own; %s", ok, answered, strings.Join(list, ", "))
	}
	return []store.Gate{length, answers}
}
