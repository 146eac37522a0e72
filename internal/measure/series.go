package measure

import "github.com/percore/percore/internal/cgroup"

// Samples gives the counters of a sample file of percore's own sampler.
func Samples(s *cgroup.Series) Counters { return series{s} }

type series struct{ s *cgroup.Series }

func (c series) Samples() int { return c.s.Len() }

func (c series) CPU(container string) (float64, bool) {
	us, ok := c.s.Grew(container, cgroup.UsageUS)
	return float64(us), ok
}

func (c series) PeakAnon(container string) (int64, bool) { return c.s.PeakAnon(container) }
