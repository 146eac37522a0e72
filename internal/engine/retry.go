package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// patience is how long a call that may be repeated is repeated while the
// engine cannot be reached: a link may be down for a minute and cost nothing.
const patience = 2 * time.Minute

// localPatience is the same for a socket on this machine, where only a
// restarting engine is worth waiting for.
const localPatience = 10 * time.Second

// retry repeats a call without side effects while the connection to the engine
// is down, with growing pauses.
func retry[T any](ctx context.Context, e *Engine, call func() (T, error)) (T, error) {
	limit := patience
	if strings.HasPrefix(e.host, "unix://") {
		limit = localPatience
	}
	deadline := time.Now().Add(limit)
	pause := 100 * time.Millisecond
	for {
		v, err := call()
		if err == nil || !dropped(err) || ctx.Err() != nil || time.Now().Add(pause).After(deadline) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// dropped reports whether an error says that the connection to the engine
// broke, rather than that the engine refused.
func dropped(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var op *net.OpError
	return client.IsErrConnectionFailed(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &op) || sshEnded(err)
}

// sshEnded recognises the error of a connection through an ssh process that has
// ended. It has no type of its own.
func sshEnded(err error) bool {
	return err != nil && strings.Contains(err.Error(), "command [ssh ") &&
		(strings.Contains(err.Error(), "has exited with") || strings.Contains(err.Error(), "did not exit after"))
}
