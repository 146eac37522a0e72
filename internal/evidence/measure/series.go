package measure

import "github.com/percore/percore/internal/evidence/cgroup"

// Samples gives the counters of the sample files of a window, one of each host.
// A container's counters come from the host that samples it. Where several do,
// as for the load generators of several hosts, their CPU time adds up and the
// peak is the largest.
func Samples(hosts ...*cgroup.Series) Counters { return set(hosts) }

type set []*cgroup.Series

func (c set) Samples() int {
	n := 0
	for i, s := range c {
		if i == 0 || s.Len() < n {
			n = s.Len()
		}
	}
	return n
}

func (c set) CPU(container string) (float64, bool) {
	var us int64
	any := false
	for _, s := range c {
		for _, name := range s.Containers() {
			of := s.Grew
			switch {
			case container == LoadContainer && IsOf(name, container): // one of several generators may have ended before the window did
				of = s.GrewWhileThere
			case name != container:
				continue
			}
			grew, ok := of(name, cgroup.UsageUS)
			if !ok {
				return 0, false // a part of the time is not the time
			}
			us += grew
			any = true
		}
	}
	return float64(us), any
}

func (c set) PeakAnon(container string) (int64, bool) {
	var peak int64
	any := false
	for _, s := range c {
		if v, ok := s.PeakAnon(container); ok {
			peak, any = max(peak, v), true
		}
	}
	return peak, any
}
