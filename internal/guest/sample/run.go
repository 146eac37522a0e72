package sample

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Run writes a sample to w at once and then one every interval, each line in one
// Write, until a signal comes or the longest time has passed; then it writes a last sample.
// Samples are due at multiples of the interval after the first; those whose time
// has passed are skipped.
func (s *Sampler) Run(w io.Writer, interval, longest time.Duration, stop <-chan os.Signal) error {
	start := time.Now()
	end := start.Add(longest)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		last := !time.Now().Before(end)
		if err := s.writeTo(w, last); err != nil || last {
			return err
		}
		now := time.Now()
		due := start.Add(nextDue(now.Sub(start), interval))
		if due.After(end) {
			due = end
		}
		timer.Reset(due.Sub(now))
		select {
		case <-timer.C:
		case <-stop:
			return s.writeTo(w, true)
		}
	}
}

// nextDue returns the smallest multiple of the interval after elapsed.
func nextDue(elapsed, interval time.Duration) time.Duration {
	return elapsed - elapsed%interval + interval
}

func (s *Sampler) writeTo(w io.Writer, all bool) error {
	line, err := s.Sample(all)
	if err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return fmt.Errorf("cannot write a sample: %w", err)
	}
	return nil
}
