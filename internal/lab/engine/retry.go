package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// Patience is how long a call is repeated while an engine on another machine
// cannot be reached, counted from when it was last heard of: a link may be down
// for a minute and cost nothing.
const Patience = 2 * time.Minute

// localPatience is the same for a socket on this machine, where only a
// restarting engine is worth waiting for.
const localPatience = 10 * time.Second

// downPatience is the same for an engine that is down on a machine that is not:
// only a restart is worth waiting for.
const downPatience = 30 * time.Second

const (
	// maxTries bounds how often a call is repeated to an engine that answers and
	// breaks off each time.
	maxTries = 200
	// hopeless is how long calls to an engine that was given up fail at once,
	// before one of them tries it again.
	hopeless = 15 * time.Second
)

// LostError says that an engine could not be reached for longer than the
// patience.
type LostError struct {
	Host string        // the engine's endpoint
	For  time.Duration // how long it has not been heard of
	Err  error         // of the last attempt
}

func (e *LostError) Error() string {
	reason := e.Err.Error()
	if sshEnded(e.Err) {
		reason = sshReason(e.Err)
	}
	reason = strings.ReplaceAll(reason, sshStandIn, e.Host)
	if e.For < time.Second {
		return fmt.Sprintf("the engine at %s still does not answer (%s)", e.Host, reason)
	}
	return fmt.Sprintf("the engine at %s has not answered for %s (%s)", e.Host, e.For.Round(time.Second), reason)
}

// Unwrap returns the error of the last attempt.
func (e *LostError) Unwrap() error { return e.Err }

// contact is when an engine was heard of. A nil one knows nothing and forgets
// what it is told.
type contact struct {
	mu    sync.Mutex
	broke time.Time // when a call broke off first since it was last heard of; zero: none has
	lost  time.Time // when it was tried last after it was given up; zero: it is not given up
	err   error     // of that attempt
}

// answer notes a sign of life.
func (c *contact) answer() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.broke, c.lost, c.err = time.Time{}, time.Time{}, nil
	c.mu.Unlock()
}

// breakOff notes that a call has broken off. It returns since when calls do, and
// nothing is heard in between. A call may wait in silence for longer than any
// patience before it breaks off: the silence does not count.
func (c *contact) breakOff() time.Time {
	now := time.Now()
	if c == nil {
		return now
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broke.IsZero() {
		c.broke = now
	}
	return c.broke
}

// giveUp notes that the engine is lost.
func (c *contact) giveUp(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.lost, c.err = time.Now(), err
	c.mu.Unlock()
}

// hope reports whether a call should be tried, and when not, why; and whether
// the engine was given up, so that one try is enough.
func (c *contact) hope() (lost bool, err error) {
	if c == nil {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lost.IsZero() && time.Since(c.lost) < hopeless {
		return true, c.err
	}
	return !c.lost.IsZero(), nil
}

// patience is how long the engine may not be heard of.
func (e *Engine) patience() time.Duration {
	switch {
	case e.limit > 0:
		return e.limit
	case strings.HasPrefix(e.host, "unix://"):
		return localPatience
	}
	return Patience
}

// retry repeats a call that may be made twice while the connection to the engine
// is down, with growing pauses. An engine that does not come back is a
// *LostError; once it is lost, calls fail soon, until it is heard of again.
func retry[T any](ctx context.Context, e *Engine, call func() (T, error)) (T, error) {
	var since time.Time // when calls began to break off
	pause := 100 * time.Millisecond
	for tries := 1; ; tries++ {
		lost, err := e.contact.hope()
		if err != nil {
			var none T
			return none, err
		}
		v, err := call()
		if err == nil {
			e.contact.answer()
			return v, nil
		}
		if !dropped(err) || ctx.Err() != nil {
			return v, err
		}
		if s := e.contact.breakOff(); since.IsZero() || s.After(since) {
			since, pause = s, 100*time.Millisecond // the first, or the first after an answer
		}
		limit := e.patience()
		if engineDown(err) {
			limit = min(limit, downPatience)
		}
		if lost || tries == maxTries || time.Since(since)+pause > limit {
			err = &LostError{Host: e.host, For: time.Since(since), Err: err}
			e.contact.giveUp(err)
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

// Reach waits until the engine answers, for as long as the patience.
func (e *Engine) Reach(ctx context.Context) error {
	_, err := retry(ctx, e, func() (client.PingResult, error) { return e.api.Ping(ctx, client.PingOptions{}) })
	return err
}

// onceError is an error of a call that must not be repeated.
type onceError struct{ error }

// dropped reports whether an error says that the connection to the engine
// broke, rather than that the engine refused.
func dropped(err error) bool {
	var lost *LostError
	var once *onceError
	if errors.As(err, &once) {
		return false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &lost) {
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

// engineDown reports whether ssh has reached the machine and found no engine
// there that listens, by what versions of Docker's command line say then.
func engineDown(err error) bool {
	return sshEnded(err) && slices.ContainsFunc([]string{"dial unix ", "docker daemon running?", "if the daemon is running"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}
