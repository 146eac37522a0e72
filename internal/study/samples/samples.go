// Package samples reads the cgroup samples of the published study, which a
// results folder that was imported from it holds as they are.
package samples

import (
	"bytes"
	"encoding/json"

	"github.com/percore/percore/internal/fail"
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

// Parse reads a sample file. A file that does not show the counters from
// before the window to after it is bad input, a line cut off at the end
// included: what the missing part counted would silently be left out.
func Parse(name string, data []byte) (Series, error) {
	const remedy = "copy the file again, or take it away to report this window without its counters"
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
				return s, fail.Input("%s, line %d: the last sample is cut off, so the counters end before the window does; %s", name, line, remedy)
			}
			return s, fail.Input("%s, line %d: not a sample (%v); %s", name, line, err, remedy)
		}
		if x.T <= 0 || (x.AppCPU == nil && x.DBCPU == nil) {
			return s, fail.Input("%s, line %d: not a sample, it has no time or no counter; %s", name, line, remedy)
		}
		if s.n > 0 {
			switch {
			case x.T < s.last.T:
				return s, fail.Input("%s, line %d: the clock goes backwards; %s", name, line, remedy)
			case backwards(s.last.AppCPU, x.AppCPU), backwards(s.last.DBCPU, x.DBCPU):
				return s, fail.Input("%s, line %d: a CPU counter goes backwards, so the container was restarted in the window; %s", name, line, remedy)
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
		return s, fail.Input("%s: %d samples, and the growth of a counter needs at least two; %s", name, s.n, remedy)
	}
	s.Start, s.End = s.first.T, s.last.T
	return s, nil
}

// backwards reports whether a counter fell or vanished from one sample to the
// next.
func backwards(a, b *int64) bool { return a != nil && (b == nil || *b < *a) }
