package images

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lock lets one driver build at a time on this machine. The kernel gives the
// lock back when its holder dies.
func (b *Builder) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := b.cacheDir()
	if err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, "images.lock"))
	locked, err := l.TryLock()
	if err == nil && !locked {
		b.tell(Event{Kind: Waiting, Line: "another percore on this machine is building images"})
		_, err = l.TryLockContext(ctx, 300*time.Millisecond)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("locking %s: %w", l.Path(), err)
	}
	return func() { l.Close() }, nil
}
