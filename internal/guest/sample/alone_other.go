//go:build !linux || race

package sample

import (
	"os"
	"time"
)

type raw struct{}

// RunAlone is [Sampler.Run]: only Linux samples, and the race detector wants the
// Go scheduler.
func (s *Sampler) RunAlone(out *os.File, interval, longest time.Duration, stop <-chan os.Signal) error {
	return s.Run(out, interval, longest, stop)
}
