// Package gates says whether a window counts as evidence. A gate is a pure
// function of what is stored of the run and of the window: whoever reads the raw
// files again comes to the same verdict, or knows that something was changed.
package gates

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Names of the gates, as they stand in events.jsonl. The measurement protocol
// asks for every one of them: a window is evidence only if the probe reached
// its target, the clocks agree, nothing took CPU time away, application and
// load generator did not share cores, and, on hosts of their own, no network
// allowance was exceeded, the clocks of the hosts agree and the load host was
// not what held the window back. The last three are read only where roles are
// on different hosts.
//
// Where there are several hosts the reading is that of the worst, and the
// detail names it. A driver that could not reach a host for a while fails no
// gate by that: what the hosts counted meanwhile is what is judged.
const (
	Probe     = "probe"     // the reference server reached its target
	Clock     = "clock"     // wall clock and monotonic clock of each host agree: it did not sleep, its clock was not set, not even for a while
	Throttled = "throttled" // the kernel withheld no CPU time that the profile did not ask it to
	Steal     = "steal"     // the hypervisor withheld next to none of the CPUs in use
	Cores     = "cores"     // app and load generator ran on different cores
	Samples   = "samples"   // the counters of each host enclose the window
	Allowance = "allowance" // no network allowance of an instance was exceeded
	Offset    = "offset"    // the clocks of the hosts agree with the first load host's
	Load      = "load"      // no load host was near the end of its own CPUs
)

// Limits of the gates.
const (
	probeLimit  = 0.99                   // of the probe's target
	clockLimit  = 100 * time.Millisecond // by how much the clocks' difference may vary over one window
	stealLimit  = 0.01                   // of the time of the CPUs in use
	offsetLimit = 5 * time.Millisecond   // between any host and the first load host
	loadLimit   = 0.85                   // busy share of the CPUs of role load: from there on a generator is late by itself
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
	if w.unknown || w.found && reading <= w.Reading {
		return
	}
	w.found, w.Reading, w.OK, w.Detail = true, reading, ok, ""
	if w.named {
		w.Detail = "host " + host
	}
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

		for _, role := range []plan.Role{plan.App, plan.DB} {
			if us, ok := h.Series.ThrottledGrew(string(role)); ok && us > 0 {
				throttled.Reading += float64(us) / 1000
				throttled.OK = false
				throttled.Detail = fmt.Sprintf("%s was throttled", role)
				if spread {
					throttled.Detail += " on host " + h.Host
				}
			}
		}

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
	gates := []store.Gate{clock.Gate, throttled, steal.Gate, samples}
	if spread {
		gates = append(gates, allowanceGate(readings), offsetGate(readings), l.loadGate(hosts))
	}
	return gates
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
	g := worst{Gate: store.Gate{Name: Load, Limit: loadLimit, Unit: "share of CPU time"}, named: true}
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
