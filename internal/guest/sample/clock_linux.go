package sample

import (
	"syscall"
	"unsafe"
)

// clock reads the kernel's clocks. Package time does not show CLOCK_MONOTONIC,
// which, unlike the wall clock, stands still while the host is suspended.
type clock struct{ ts syscall.Timespec }

const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// monotonic returns CLOCK_MONOTONIC in ns.
func (c *clock) monotonic() int64 { return c.get(clockMonotonic) }

// wall returns CLOCK_REALTIME in ns since 1970.
func (c *clock) wall() int64 { return c.get(clockRealtime) }

func (c *clock) get(id uintptr) int64 {
	// The call cannot fail with a valid clock and a valid address.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&c.ts)), 0)
	return c.ts.Nano()
}

// pread reads from the start of a file. The kernel makes up what is in its own
// files without waiting for anything, so the Go scheduler need not know.
func pread(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
