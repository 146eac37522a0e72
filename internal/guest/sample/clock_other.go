//go:build !linux

package sample

import (
	"syscall"
	"time"
)

// clock measures from its first use: cgroups exist on Linux alone, and elsewhere
// the package only reads folders of files, as its tests do.
type clock struct{ start time.Time }

func (c *clock) monotonic() int64 {
	if c.start.IsZero() {
		c.start = time.Now()
	}
	return int64(time.Since(c.start)) + 1
}

func (c *clock) wall() int64 { return time.Now().UnixNano() }

func pread(fd int, b []byte) (int, error) { return syscall.Pread(fd, b, 0) }
