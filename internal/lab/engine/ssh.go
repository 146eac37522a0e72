package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/docker/cli/cli/connhelper"
)

// sshFlags are the options of every ssh connection.
var sshFlags = []string{
	// Several connections at once cannot each ask for a password, and a prompt
	// would hide behind the progress.
	"-o", "BatchMode=yes",
	// A link that is down is noticed within 20 s, and one that is back soon after:
	// a new connection's first packet is sent at most 5 s after the one before.
	"-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
}

// sshStandIn is what stands for an engine behind ssh where its client wants a
// URL.
const sshStandIn = "http://docker.example.com"

// greetTimeout bounds the time from the start of ssh to the engine's first
// answer. ssh's own bounds leave out the login.
const greetTimeout = 40 * time.Second

// dialSSH makes the function that connects to an engine through ssh. A
// connection is handed out when the engine has answered on it: what fails before
// has never reached the engine. Every byte that comes is a sign of life for c.
func dialSSH(host string, options []string, c *contact) (dial func(ctx context.Context, network, addr string) (net.Conn, error), url string, err error) {
	helper, err := connhelper.GetConnectionHelperWithSSHOpts(host, append(append([]string(nil), sshFlags...), options...))
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := helper.Dialer(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := &sshConn{Conn: raw, contact: c}
		if err := greet(ctx, conn); err != nil {
			conn.Close()
			return nil, &unsentError{err}
		}
		return conn, nil
	}, helper.Host, nil
}

// unsentError says that a connection was never made: whatever was to be sent on
// it never was.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// greet exchanges a first request and its answer on a connection.
func greet(ctx context.Context, c net.Conn) error {
	var late atomic.Bool
	timer := time.AfterFunc(greetTimeout, func() { late.Store(true); c.Close() })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	_, err := io.WriteString(c, "GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n")
	if err == nil {
		err = pong(bufio.NewReader(c))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case late.Load():
		err = fmt.Errorf("no answer within %s of starting ssh", greetTimeout)
	case sshEnded(err):
		return err
	}
	return &net.OpError{Op: "dial", Net: "ssh", Err: err}
}

func pong(r *bufio.Reader) error {
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || res.Close || r.Buffered() > 0 {
		return fmt.Errorf("the engine's first answer was %s", res.Status)
	}
	return nil
}

// sshConn is a connection through an ssh process. When ssh ends before it has
// taken a request, the write fails with a broken or closed pipe, and ssh's own
// words, which are the reason, come out of the reading end: they are fetched
// there.
type sshConn struct {
	net.Conn
	contact *contact
	reading sync.Mutex
	reason  error // why ssh ended, once a read has said so
}

func (c *sshConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.read(p)
}

func (c *sshConn) read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.contact.answer()
	}
	if sshEnded(err) {
		c.reason = err
	}
	return n, err
}

func (c *sshConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		return n, err
	}
	// The process is gone or the connection closed, so this does not wait for
	// an answer: a read that is under way ends too. What ssh had printed to its
	// output is of no use any more.
	c.reading.Lock()
	defer c.reading.Unlock()
	for buf := make([]byte, 512); c.reason == nil; {
		if _, readErr := c.read(buf); readErr != nil {
			break
		}
	}
	if c.reason != nil {
		err = c.reason
	}
	return n, err
}

// CloseRead and CloseWrite pass half-closing on: an exec's input ends with it.
func (c *sshConn) CloseRead() error {
	if h, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return h.CloseRead()
	}
	return nil
}

// CloseWrite ends what the other side can read.
func (c *sshConn) CloseWrite() error {
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return nil
}
