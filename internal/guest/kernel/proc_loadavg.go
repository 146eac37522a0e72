package kernel

import "bytes"

// ParseLoadavg parses /proc/loadavg and returns the load average over one minute
// in hundredths, which is the kernel's own precision.
func ParseLoadavg(b []byte) (int64, error) {
	line, _ := cutLine(b)
	field, _ := cutField(line)
	whole, frac, ok := bytes.Cut(field, []byte{'.'})
	w, ok1 := number(whole)
	f, ok2 := number(frac)
	if !ok || !ok1 || !ok2 || len(frac) != 2 || w > 1e9 {
		return 0, bad("/proc/loadavg", line)
	}
	return w*100 + f, nil
}
