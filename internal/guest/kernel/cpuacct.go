package kernel

import "errors"

// ParseCPUAcctUsage parses cpuacct.usage of cgroup v1, which is in ns, and
// returns the CPU time in µs.
func ParseCPUAcctUsage(b []byte) (int64, error) {
	n, err := single("cpuacct.usage", b)
	return n / 1000, err
}

// ParseCPUAcctStat parses cpuacct.stat of cgroup v1, which is in ticks of 10 ms,
// and returns the CPU time in user mode and in the kernel in µs.
func ParseCPUAcctStat(b []byte) (user, system int64, err error) {
	var u, s Value
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, value := cutField(line)
		n, ok := ticks(value)
		switch string(key) {
		case "user":
			ok = ok && set(&u, n)
		case "system":
			ok = ok && set(&s, n)
		default:
			ok = false
		}
		if !ok {
			return 0, 0, bad("cpuacct.stat", line)
		}
	}
	if !u.Known || !s.Known {
		return 0, 0, errors.New("cpuacct.stat: user or system is missing")
	}
	return u.N, s.N, nil
}
