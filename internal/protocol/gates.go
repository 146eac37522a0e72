package protocol

import (
	"fmt"
	"math"
	"time"

	"github.com/percore/percore/internal/cgroup"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/store"
)

// Names of the gates, as they stand in events.jsonl.
const (
	GateProbe     = "probe"     // the reference server reached its target
	GateClock     = "clock"     // wall clock and monotonic clock agree
	GateThrottled = "throttled" // the kernel withheld no CPU time
	GateSteal     = "steal"     // the hypervisor withheld next to none
	GateCores     = "cores"     // app and load generator ran on different CPUs
	GateSamples   = "samples"   // the counters enclose the window
)

// Limits of the gates.
const (
	probeLimit = 0.99                   // of the probe's target
	clockLimit = 100 * time.Millisecond // difference over one window
	stealLimit = 0.01                   // of the time of the CPUs in use
)

// ProbeGate judges the reading of a reference probe: at least 99 % of its
// target.
func ProbeGate(r store.ProbeReading) store.Gate {
	share := 0.0
	if r.Target > 0 {
		share = r.Achieved / float64(r.Target)
	}
	return store.Gate{
		Name: GateProbe, OK: r.Error == "" && share >= probeLimit, Reading: share, Limit: probeLimit, Unit: "share of target",
		Detail: fmt.Sprintf("%.0f of %d requests/s", r.Achieved, r.Target),
	}
}

// layout is what the gates need to know of the lab.
type layout struct {
	app, load  profile.CPUSet
	used       []int // CPUs whose steal counts
	sameHost   bool  // app and load
	waiveCores string
}

func newLayout(lab Lab, shared bool) layout {
	appHost, app := lab.CPUs(profile.App)
	loadHost, load := lab.CPUs(profile.Load)
	dbHost, db := lab.CPUs(profile.DB)
	l := layout{app: app, load: load, used: app.List(), sameHost: appHost == loadHost}
	if dbHost == appHost {
		l.used = append(l.used, db.List()...)
	}
	if l.sameHost {
		l.used = append(l.used, load.List()...)
	}
	l.used = profile.FormatCPUs(l.used).List()
	if shared {
		l.waiveCores = "the profile shares cores between roles"
	}
	return l
}

// coresGate compares the CPU sets of app and load generator.
func (l layout) coresGate() store.Gate {
	var both []int
	if l.sameHost {
		both = l.app.Shared(l.load)
	}
	g := store.Gate{Name: GateCores, OK: len(both) == 0, Reading: float64(len(both)), Limit: 0, Unit: "shared CPUs",
		Detail: fmt.Sprintf("app on %s, load on %s", l.app, l.load)}
	if !g.OK {
		g.Waived = l.waiveCores
	}
	return g
}

// sampleGates judges the counters of one window. The window ran from start to
// end by the clock of the host.
func (l layout) sampleGates(s *cgroup.Series, start, end time.Time) []store.Gate {
	drift := s.WallVsMonotonic()
	clock := store.Gate{Name: GateClock, OK: drift.Abs() <= clockLimit, Reading: math.Abs(drift.Seconds() * 1000), Limit: float64(clockLimit.Milliseconds()), Unit: "ms"}

	throttled := store.Gate{Name: GateThrottled, OK: true, Limit: 0, Unit: "ms"}
	for _, name := range []string{string(profile.App), string(profile.DB)} {
		if us, ok := s.ThrottledGrew(name); ok {
			throttled.Reading += float64(us) / 1000
			if us > 0 {
				throttled.OK = false
				throttled.Detail = fmt.Sprintf("%s was throttled", name)
			}
		}
	}

	share, known := s.StealFraction(l.used)
	steal := store.Gate{Name: GateSteal, OK: known && share <= stealLimit, Reading: share, Limit: stealLimit, Unit: "share of CPU time"}
	if !known {
		steal.Detail = "the samples do not show the CPUs in use"
	}

	samples := store.Gate{Name: GateSamples, OK: s.Len() >= 2 && s.Encloses(start, end), Reading: float64(s.Len()), Limit: 2, Unit: "samples"}
	if !samples.OK {
		samples.Detail = "the first and the last sample do not enclose the window"
	}
	return []store.Gate{clock, throttled, steal, samples}
}
