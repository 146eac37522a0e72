package kernel

// ParseBlkioThrottle parses blkio.throttle.io_service_bytes or its _recursive
// sibling of cgroup v1 and returns the bytes read from and written to block
// devices, summed over the devices.
//
// Newer kernels (seen: 6.1, 6.18) keep the file and count nothing while no
// throttling rule is set, so nothing but zeros does not mean that there was no
// I/O: the values are then not known.
func ParseBlkioThrottle(b []byte) (read, write Value, err error) {
	const file = "blkio.throttle.io_service_bytes"
	var r, w int64
	counted := false
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		device, rest := cutField(line)
		if string(device) == "Total" {
			if _, ok := number(rest); !ok {
				return Value{}, Value{}, bad(file, line)
			}
			continue
		}
		op, value := cutField(rest)
		n, ok := number(value)
		if !ok || !isDevice(device) {
			return Value{}, Value{}, bad(file, line)
		}
		switch string(op) {
		case "Read":
			r, ok = add(r, n)
		case "Write":
			w, ok = add(w, n)
		case "Sync", "Async", "Discard", "Total":
		default:
			ok = false
		}
		if !ok {
			return Value{}, Value{}, bad(file, line)
		}
		counted = counted || n > 0
	}
	if !counted {
		return Value{}, Value{}, nil
	}
	return known(r), known(w), nil
}
