package kernel

import "bytes"

// ParseIOStat parses io.stat of cgroup v2 and returns the bytes read from and
// written to block devices, summed over the devices. A device on top of another
// (dm, md) counts beside it. An empty file means that there was no I/O yet.
//
// Some kernels print a device without counters and no newline after it, so that
// a line may name several devices.
func ParseIOStat(b []byte) (read, write int64, err error) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		rest := line
		var device []byte
		for len(rest) > 0 {
			var field []byte
			field, rest = cutField(rest)
			key, value, isCounter := bytes.Cut(field, []byte{'='})
			if !isCounter {
				if len(field) > 0 && !isDevice(field) {
					return 0, 0, bad("io.stat", line)
				}
				if len(field) > 0 {
					device = field
				}
				continue
			}
			if device == nil {
				return 0, 0, bad("io.stat", line)
			}
			var to *int64
			switch string(key) {
			case "rbytes":
				to = &read
			case "wbytes":
				to = &write
			default:
				continue
			}
			n, ok := number(value)
			if ok {
				*to, ok = add(*to, n)
			}
			if !ok {
				return 0, 0, bad("io.stat", line)
			}
		}
		if device == nil {
			return 0, 0, bad("io.stat", line)
		}
	}
	return read, write, nil
}

// isDevice reports whether b is MAJOR:MINOR.
func isDevice(b []byte) bool {
	major, minor, ok := bytes.Cut(b, []byte{':'})
	if !ok {
		return false
	}
	_, ok1 := number(major)
	_, ok2 := number(minor)
	return ok1 && ok2
}
