package kernel

import (
	"bytes"
	"errors"
)

// CPUPressure is cpu.pressure of a cgroup: the time in µs in which some and in
// which all of its tasks that had work waited for a CPU.
type CPUPressure struct {
	Some Value
	Full Value // since Linux 5.13
}

// ParseCPUPressure parses cpu.pressure.
func ParseCPUPressure(b []byte) (CPUPressure, error) {
	var p CPUPressure
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		kind, rest := cutField(line)
		var to *Value
		switch string(kind) {
		case "some":
			to = &p.Some
		case "full":
			to = &p.Full
		default:
			return CPUPressure{}, bad("cpu.pressure", line)
		}
		for len(rest) > 0 {
			var field []byte
			field, rest = cutField(rest)
			value, ok := bytes.CutPrefix(field, []byte("total="))
			if !ok {
				continue
			}
			n, ok := number(value)
			if !ok || !set(to, n) {
				return CPUPressure{}, bad("cpu.pressure", line)
			}
		}
		if !to.Known {
			return CPUPressure{}, bad("cpu.pressure", line)
		}
	}
	if !p.Some.Known {
		return CPUPressure{}, errors.New("cpu.pressure: the line some is missing")
	}
	return p, nil
}
