package sampler

import (
	"syscall"
	"unsafe"
)

// clock reads CLOCK_MONOTONIC, which package time does not show. Unlike the wall
// clock it stands still while the host is suspended.
type clock struct{ ts syscall.Timespec }

const clockMonotonic = 1

// monotonic returns CLOCK_MONOTONIC in ns.
func (c *clock) monotonic() int64 {
	// The call cannot fail with a valid clock and a valid address.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&c.ts)), 0)
	return c.ts.Nano()
}
