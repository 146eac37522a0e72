package kernel

import "errors"

// ParseFreezerState parses freezer.state of cgroup v1: whether the cgroup, or
// one above it, is frozen or about to be.
func ParseFreezerState(b []byte) (bool, error) {
	line, rest := cutLine(b)
	if len(rest) == 0 {
		switch string(line) {
		case "THAWED":
			return false, nil
		case "FREEZING", "FROZEN":
			return true, nil
		}
	}
	return false, bad("freezer.state", b)
}

// ParseCgroupEvents parses cgroup.events of cgroup v2 and returns 1 when the
// cgroup, or one above it, is frozen, and 0 when it is not. Kernels before
// Linux 5.2 do not say.
func ParseCgroupEvents(b []byte) (Value, error) {
	var frozen Value
	seen := false
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		key, value := cutField(line)
		n, ok := number(value)
		if len(key) == 0 || !ok {
			return Value{}, bad("cgroup.events", line)
		}
		seen = true
		if string(key) == "frozen" && (n > 1 || !set(&frozen, n)) {
			return Value{}, bad("cgroup.events", line)
		}
	}
	if !seen {
		return Value{}, errors.New("cgroup.events: it is empty")
	}
	return frozen, nil
}
