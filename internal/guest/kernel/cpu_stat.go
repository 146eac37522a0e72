package kernel

import "errors"

// CPUStat is cpu.stat of a cgroup, times in µs.
type CPUStat struct {
	Usage, User, System Value // cgroup v2, with or without the cpu controller
	Periods             Value // nr_periods, with the cpu controller
	Throttled           Value // nr_throttled
	ThrottledTime       Value // throttled_usec, or throttled_time of v1, which is in ns
}

// ParseCPUStat parses cpu.stat. On cgroup v2 it holds the CPU time and, with the
// cpu controller, the throttling; on v1 the throttling alone.
func ParseCPUStat(b []byte) (CPUStat, error) {
	var s CPUStat
	seen := false
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, value := cutField(line)
		var to *Value
		var div int64 = 1
		switch string(key) {
		case "usage_usec":
			to = &s.Usage
		case "user_usec":
			to = &s.User
		case "system_usec":
			to = &s.System
		case "nr_periods":
			to = &s.Periods
		case "nr_throttled":
			to = &s.Throttled
		case "throttled_usec":
			to = &s.ThrottledTime
		case "throttled_time":
			to, div = &s.ThrottledTime, 1000
		default:
			if len(key) == 0 || len(value) == 0 {
				return CPUStat{}, bad("cpu.stat", line)
			}
			continue
		}
		n, ok := number(value)
		if !ok || !set(to, n/div) {
			return CPUStat{}, bad("cpu.stat", line)
		}
		seen = true
	}
	if !seen {
		return CPUStat{}, errors.New("cpu.stat: neither CPU time nor throttling in it")
	}
	return s, nil
}
