package kernel

// ParseBlkioThrottle parses blkio.throttle.io_service_bytes or its _recursive
// sibling of cgroup v1 and returns the bytes read from and written to block
// devices, summed over the devices. A file with nothing but "Total 0" means that
// there was no I/O yet.
func ParseBlkioThrottle(b []byte) (read, write int64, err error) {
	const file = "blkio.throttle.io_service_bytes"
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		device, rest := cutField(line)
		if string(device) == "Total" {
			if _, ok := number(rest); !ok {
				return 0, 0, bad(file, line)
			}
			continue
		}
		op, value := cutField(rest)
		n, ok := number(value)
		if !ok || !isDevice(device) {
			return 0, 0, bad(file, line)
		}
		switch string(op) {
		case "Read":
			read, ok = add(read, n)
		case "Write":
			write, ok = add(write, n)
		case "Sync", "Async", "Discard", "Total":
		default:
			ok = false
		}
		if !ok {
			return 0, 0, bad(file, line)
		}
	}
	return read, write, nil
}
