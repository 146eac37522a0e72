package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lock lets one driver build at a time on this machine. The kernel gives the
// lock back when its holder dies.
func (b *Builder) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := b.cacheDir()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "images.lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of image builds: %w", err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", name, err)
		}
		if !told {
			told = true
			b.tell(Event{Kind: Waiting, Line: "another percore on this machine is building images"})
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}
