package study

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

// series is a sample file. It is the counters of one window.
type series struct {
	first, last sample
	n           int
	peak        int64
	hasPeak     bool
}

// Samples is the number of samples.
func (s series) Samples() int { return s.n }

// CPU is the growth of a container's CPU time in µs.
func (s series) CPU(container string) (float64, bool) {
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
func (s series) PeakAnon(container string) (int64, bool) {
	return s.peak, s.hasPeak && container == "app"
}

// parseSamples reads a sample file. A file that does not show the counters from
// before the window to after it is bad input, a line cut off at the end
// included: what the missing part counted would silently be left out.
func parseSamples(name string, data []byte) (series, error) {
	const remedy = "copy the file again, or take it away to report this window without its counters"
	var s series
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
	return s, nil
}

// backwards reports whether a counter fell or vanished from one sample to the
// next.
func backwards(a, b *int64) bool { return a != nil && (b == nil || *b < *a) }
