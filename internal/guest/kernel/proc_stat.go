package kernel

import (
	"bytes"
	"errors"
)

// CPUTime is the time of one CPU, or of all, in µs, from ticks of 10 ms.
type CPUTime struct {
	CPU   int   // number; -1 for all of them
	Busy  int64 // user, nice, system, irq, softirq
	IRQ   int64 // of it irq and softirq
	Idle  int64 // idle and iowait
	Steal int64 // the hypervisor ran something else
}

// Total is all time of it.
func (c CPUTime) Total() int64 { return c.Busy + c.Idle + c.Steal }

// ProcStat is the part of /proc/stat about CPU time.
type ProcStat struct {
	All CPUTime
	CPU []CPUTime // CPUs online, in the kernel's order
}

// maxCPUs bounds the CPU numbers that are believed.
const maxCPUs = 1 << 16

// ParseProcStat parses the lines of /proc/stat about CPUs, which come first,
// into s. It uses the memory of s.CPU again.
func ParseProcStat(b []byte, s *ProcStat) error {
	s.All = CPUTime{}
	s.CPU = s.CPU[:0]
	line, b := cutLine(b)
	name, rest := cutField(line)
	if string(name) != "cpu" || !parseCPUTime(rest, &s.All) {
		return bad("/proc/stat", line)
	}
	s.All.CPU = -1
	for len(b) > 0 {
		line, b = cutLine(b)
		name, rest = cutField(line)
		digits, ok := bytes.CutPrefix(name, []byte("cpu"))
		if !ok {
			break
		}
		n, ok := number(digits)
		if !ok || n >= maxCPUs {
			return bad("/proc/stat", line)
		}
		if len(s.CPU) > 0 && int(n) <= s.CPU[len(s.CPU)-1].CPU {
			return bad("/proc/stat", line)
		}
		c := CPUTime{CPU: int(n)}
		if !parseCPUTime(rest, &c) {
			return bad("/proc/stat", line)
		}
		s.CPU = append(s.CPU, c)
	}
	if len(s.CPU) == 0 {
		return errors.New("/proc/stat: no line of a single CPU in it")
	}
	return nil
}

// parseCPUTime parses user nice system idle iowait irq softirq steal; guest and
// guest_nice follow and are part of user and nice. Old kernels end earlier, but
// not before idle.
func parseCPUTime(b []byte, c *CPUTime) bool {
	n := 0
	for ; n < 8; n++ {
		var field []byte
		field, b = cutField(b)
		if len(field) == 0 {
			break
		}
		us, ok := ticks(field)
		if !ok {
			return false
		}
		switch n {
		case 3, 4:
			c.Idle += us
		case 7:
			c.Steal += us
		case 5, 6:
			c.IRQ += us
			c.Busy += us
		default:
			c.Busy += us
		}
	}
	return n >= 4
}
