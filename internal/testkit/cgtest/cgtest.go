// Package cgtest makes the sample files that several hosts would have written
// out of one that a single host wrote, for tests.
package cgtest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
)

// Host is one of the hosts over which a file is split.
type Host struct {
	Containers map[string]string // name in the file -> name on this host; the others are not there
	Ahead      time.Duration     // of its clock, before the file's
}

// Split returns the file as the sampler of that host would have written it.
func Split(t testing.TB, lines []byte, h Host) []byte {
	t.Helper()
	return each(t, lines, func(s *cgroup.Sample) {
		s.T += int64(h.Ahead)
		if s.SlowT > 0 {
			s.SlowT += int64(h.Ahead)
		}
		kept := map[string]cgroup.Container{}
		for from, to := range h.Containers {
			c, ok := s.Containers[from]
			if !ok {
				t.Fatalf("splitting samples: there is no container %s", from)
			}
			kept[to] = c
		}
		s.Containers = kept
	})
}

// Work returns the file as it would be if containers had used so many µs of CPU
// more from each sample to the next.
func Work(t testing.TB, lines []byte, us map[string]int64) []byte {
	t.Helper()
	n := int64(0)
	return each(t, lines, func(s *cgroup.Sample) {
		for name, more := range us {
			c := s.Containers[name]
			c.UsageUS = plus(c.UsageUS, n*more)
			s.Containers[name] = c
		}
		n++
	})
}

// RunOn returns the file as it would be if nobody had ended the sampler: for n
// further intervals of a second, in each of which every container and every CPU
// of the host is busy all the time and the anonymous memory of each container grows by a MiB.
func RunOn(t testing.TB, lines []byte, n int) []byte {
	t.Helper()
	text := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
	last := text[len(text)-1]
	out := bytes.Clone(lines)
	for range n {
		last = bytes.TrimSpace(each(t, last, func(s *cgroup.Sample) {
			s.T += int64(time.Second)
			s.Mono += int64(time.Second)
			s.SlowT = s.T
			for i := range s.Host.PerCPU {
				s.Host.PerCPU[i].BusyUS += 1e6
			}
			for name, c := range s.Containers {
				c.UsageUS, c.Anon = plus(c.UsageUS, 1e6), plus(c.Anon, 1<<20)
				s.Containers[name] = c
			}
		}))
		out = append(append(out, last...), '\n')
	}
	return out
}

// Change returns the file with its samples changed.
func Change(t testing.TB, lines []byte, change func([]cgroup.Sample)) []byte {
	t.Helper()
	var all []cgroup.Sample
	each(t, lines, func(s *cgroup.Sample) { all = append(all, *s) })
	change(all)
	n := 0
	return each(t, lines, func(s *cgroup.Sample) {
		*s = all[n]
		n++
	})
}

// Head returns the first n lines of the file.
func Head(t testing.TB, lines []byte, n int) []byte {
	t.Helper()
	text := bytes.SplitAfter(lines, []byte("\n"))
	if len(text) < n {
		t.Fatalf("there are %d lines, and %d are asked for", len(text), n)
	}
	return bytes.Join(text[:n], nil)
}

func plus(v *int64, n int64) *int64 {
	if v == nil {
		return nil
	}
	sum := *v + n
	return &sum
}

func each(t testing.TB, lines []byte, change func(*cgroup.Sample)) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.SplitSeq(bytes.TrimSpace(lines), []byte("\n")) {
		var s cgroup.Sample
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("splitting samples: %v", err)
		}
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("splitting samples: %v", err)
		}
		out = append(append(out, text...), '\n')
	}
	return out
}
