package cgroup

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// CPUTime is what one line of a sample file says of the CPU time of its
// containers.
type CPUTime struct {
	Mono int64            // when it was taken, in ns of the monotonic clock where there is one, else of the wall clock
	Wall int64            // the same by the wall clock, in ns since 1970
	US   map[string]int64 // container -> CPU time it has used, in µs
}

// CPUTimes reads the CPU times of a sample file line by line, for a curve over a
// window. Files of the published study, which have another layout, are read too.
// It ends at a line that is cut off, and leaves out those by which the clock went
// backwards: they measure nothing.
func CPUTimes(name string, data []byte) ([]CPUTime, error) {
	var all []CPUTime
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x struct {
			Sample
			StudyApp *int64 `json:"app_cpu"`
			StudyDB  *int64 `json:"db_cpu"`
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			break
		}
		r := CPUTime{Mono: cmp.Or(x.Mono, x.T), Wall: x.T, US: map[string]int64{}}
		for name, c := range x.Containers {
			if c.UsageUS != nil {
				r.US[name] = *c.UsageUS
			}
		}
		for name, v := range map[string]*int64{"app": x.StudyApp, "db": x.StudyDB} {
			if v != nil {
				r.US[name] = *v
			}
		}
		if n := len(all); n == 0 || r.Mono > all[n-1].Mono {
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return all, nil
}
