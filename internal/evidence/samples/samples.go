// Package samples reads the cgroup samples of the published study, which a
// results folder that was imported from it holds as they are.
package samples

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/percore/percore/internal/base/fail"
)

// sample is one line of a .res.jsonl file: cumulative CPU time in µs, memory in
// bytes and the wall clock in ns.
type sample struct {
	T       int64  `json:"t"`
	AppCPU  *int64 `json:"app_cpu"`
	AppAnon *int64 `json:"app_anon"`
	DBCPU   *int64 `json:"db_cpu"`
}

// Ending is how the names of the study's sample files end.
const Ending = ".res.jsonl"

// Series is a sample file. It is the counters of one window.
type Series struct {
	// Start and End are when the first and the last sample were taken, in ns of
	// the wall clock.
	Start, End int64

	first, last sample
	n           int
	peak        int64
	hasPeak     bool
}

// Samples is the number of samples.
func (s Series) Samples() int { return s.n }

// CPU is the growth of a container's CPU time in µs.
func (s Series) CPU(container string) (float64, bool) {
	grew := func(a, b *int64) (float64, bool) {
		if a == nil || b == nil {
			return 0, false
		}
		return float64(*b - *a), true
	}
	switch container {
	case "app":
		return grew(s.first.AppCPU, s.last.AppCPU)
	case "db":
		return grew(s.first.DBCPU, s.last.DBCPU)
	}
	return 0, false
}

// PeakAnon is the largest anonymous memory of the app in bytes.
func (s Series) PeakAnon(container string) (int64, bool) {
	return s.peak, s.hasPeak && container == "app"
}

const (
	// slack is by how many seconds the samples may be shorter than what they
	// enclose. The study's own are longer by 0.04 s and more, and taken once a
	// second.
	slack = 0.1
	// No machine has more CPUs or as many bytes of memory: such a number was
	// damaged.
	maxCPUs  = 1 << 16
	maxBytes = 1 << 50
)

const remedy = "copy the file again, or take it away to report this window without its counters"

// ParseWindow is [Parse] for the samples of a window in which the load generator
// ran for some seconds. Samples that do not span them are bad input: what the
// missing part counted would silently be left out.
func ParseWindow(name string, data []byte, seconds float64) (Series, error) {
	s, err := Parse(name, data)
	if err != nil {
		return s, err
	}
	if span := float64(s.End-s.Start) / 1e9; span < seconds-slack {
		return s, fail.In(name, "the samples span %.1f s and the load generator ran for %.1f s, so the counters lack a part of the window", span, seconds).Try("%s", remedy)
	}
	return s, nil
}

// Parse reads a sample file. A last line that is cut off is bad input, and so is
// a counter that is negative or beyond what a machine can count.
func Parse(name string, data []byte) (Series, error) {
	var s Series
	line := 0
	for len(data) > 0 {
		line++
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var x sample
		if err := json.Unmarshal(text, &x); err != nil {
			if !whole {
				return s, fail.In(fail.Line(name, line), "the last sample is cut off, so the counters end before the window does").Try("%s", remedy)
			}
			return s, fail.In(fail.Line(name, line), "not a sample (%s)", reason(err)).Try("%s", remedy)
		}
		if x.T <= 0 || (x.AppCPU == nil && x.DBCPU == nil) {
			return s, fail.In(fail.Line(name, line), "not a sample, it has no time or no counter").Try("%s", remedy)
		}
		for _, v := range []*int64{x.AppCPU, x.DBCPU, x.AppAnon} {
			if v != nil && *v < 0 {
				return s, fail.In(fail.Line(name, line), "a counter is negative (%d)", *v).Try("%s", remedy)
			}
		}
		if x.AppAnon != nil && *x.AppAnon > maxBytes {
			return s, fail.In(fail.Line(name, line), "%d bytes of memory are more than a machine has", *x.AppAnon).Try("%s", remedy)
		}
		if s.n > 0 {
			switch {
			case x.T < s.last.T:
				return s, fail.In(fail.Line(name, line), "the clock goes backwards").Try("%s", remedy)
			case backwards(s.last.AppCPU, x.AppCPU), backwards(s.last.DBCPU, x.DBCPU):
				return s, fail.In(fail.Line(name, line), "a CPU counter goes backwards, so the container was restarted in the window").Try("%s", remedy)
			case tooFast(s.first.AppCPU, x.AppCPU, x.T-s.first.T), tooFast(s.first.DBCPU, x.DBCPU, x.T-s.first.T):
				return s, fail.In(fail.Line(name, line), "a CPU counter grew by more than %d CPUs can use in the time since the first sample", maxCPUs).Try("%s", remedy)
			}
		} else {
			s.first = x
		}
		if x.AppAnon != nil {
			s.peak, s.hasPeak = max(s.peak, *x.AppAnon), true
		}
		s.last = x
		s.n++
	}
	if s.n < 2 {
		return s, fail.In(name, "the growth of a counter needs at least two samples and there %s", are(s.n)).Try("%s", remedy)
	}
	s.Start, s.End = s.first.T, s.last.T
	return s, nil
}

func are(n int) string {
	if n == 1 {
		return "is 1"
	}
	return "are none"
}

// reason says what a line is instead of a sample.
func reason(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return err.Error()
	case kind.Field == "":
		return kind.Value + " in place of an object"
	default:
		return kind.Field + " is no whole number of 64 bits: " + kind.Value
	}
}

// tooFast reports whether a counter of µs grew by more than all CPUs of any
// machine can use in that many ns.
func tooFast(first, now *int64, ns int64) bool {
	return first != nil && now != nil && float64(*now-*first)*1e3 > float64(ns)*maxCPUs
}

// backwards reports whether a counter fell or vanished from one sample to the
// next.
func backwards(a, b *int64) bool { return a != nil && (b == nil || *b < *a) }
