package kernel

import "errors"

// ParseMemoryCurrent parses memory.current of cgroup v2: bytes in use, page
// cache included.
func ParseMemoryCurrent(b []byte) (int64, error) { return single("memory.current", b) }

// ParseMemoryPeak parses memory.peak of cgroup v2 (since Linux 5.19): the
// largest memory.current in bytes.
func ParseMemoryPeak(b []byte) (int64, error) { return single("memory.peak", b) }

// ParseMemoryUsage parses memory.usage_in_bytes of cgroup v1.
func ParseMemoryUsage(b []byte) (int64, error) { return single("memory.usage_in_bytes", b) }

// ParseMemoryMaxUsage parses memory.max_usage_in_bytes of cgroup v1.
func ParseMemoryMaxUsage(b []byte) (int64, error) { return single("memory.max_usage_in_bytes", b) }

// ParseMemoryStat parses memory.stat and returns the anonymous memory in bytes:
// anon on cgroup v2; on v1 total_rss, which counts the cgroups below as v2
// does, or rss where the hierarchy is not counted.
func ParseMemoryStat(b []byte) (int64, error) {
	var anon, rss, totalRSS Value
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, value := cutField(line)
		var to *Value
		switch string(key) {
		case "anon":
			to = &anon
		case "rss":
			to = &rss
		case "total_rss":
			to = &totalRSS
		default:
			if len(key) == 0 || len(value) == 0 {
				return 0, bad("memory.stat", line)
			}
			continue
		}
		n, ok := number(value)
		if !ok || !set(to, n) {
			return 0, bad("memory.stat", line)
		}
	}
	switch {
	case anon.Known:
		return anon.N, nil
	case totalRSS.Known:
		return totalRSS.N, nil
	case rss.Known:
		return rss.N, nil
	}
	return 0, errors.New("memory.stat: neither anon nor total_rss nor rss in it")
}
