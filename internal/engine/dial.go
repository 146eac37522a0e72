package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
)

// DialTCP connects from inside the container to a TCP address that the
// container can reach. The container needs socat. Nothing is published and no
// route to the container is needed: the bytes travel over the Engine API.
//
// The connection is made while the first bytes are on their way: a refused
// connection shows as an error of the first Read, which carries socat's words.
// Deadlines work whatever carries the Engine API. When one side of the
// connection ends, the other has a second to finish.
func (c *Container) DialTCP(ctx context.Context, address string) (net.Conn, error) {
	return c.dial(ctx, address, "TCP:"+address+",nodelay")
}

// DialUnix connects to a Unix socket inside the container.
func (c *Container) DialUnix(ctx context.Context, path string) (net.Conn, error) {
	return c.dial(ctx, path, "UNIX-CONNECT:"+path)
}

func (c *Container) dial(ctx context.Context, address, socat string) (net.Conn, error) {
	s, err := c.exec(ctx, true, []string{"socat", "-t", "1", "-", socat})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return newConn(s, addr(c.Name), addr(address)), nil
}

// addr is an address inside a container.
type addr string

func (a addr) Network() string { return "docker" }
func (a addr) String() string  { return string(a) }

// stream is what conn needs of an attached exec.
type stream interface {
	CloseWrite() error
	Close()
}

// conn is a net.Conn over the two streams of an exec. Two in-memory pipes stand
// between the user and the exec, because the streams below may know no
// deadlines and the output arrives in frames of two kinds.
type conn struct {
	local, remote addr
	in, out       net.Conn // the user's ends
	closed        atomic.Bool
	mu            sync.Mutex
	reason        error // why the other side ended
}

func newConn(s *execStream, local, remote addr) *conn {
	return pipeConn(s.Reader, s.Conn, s, local, remote)
}

func pipeConn(r io.Reader, w io.Writer, s stream, local, remote addr) *conn {
	in, inFar := net.Pipe()
	out, outFar := net.Pipe()
	c := &conn{local: local, remote: remote, in: in, out: out}
	received := make(chan struct{})
	go func() { // container -> user
		defer close(received)
		stderr := tailBuffer{limit: 4096}
		_, err := stdcopy.StdCopy(inFar, &stderr, r)
		c.ended(stderr.Bytes(), err)
		inFar.Close()
		outFar.Close()
		s.Close()
	}()
	go func() { // user -> container
		_, err := io.Copy(w, outFar)
		outFar.Close()
		if err != nil {
			s.Close()
			return
		}
		_ = s.CloseWrite()
		if !c.closed.Load() {
			return
		}
		// Closed for good: the command ends on its own when its input does;
		// if it does not, the stream is cut.
		select {
		case <-received:
		case <-time.After(5 * time.Second):
			s.Close()
		}
	}()
	return c
}

// ended keeps why the container's side of the connection ended.
func (c *conn) ended(stderr []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch text := socatReason(string(stderr)); {
	case text != "":
		c.reason = &net.OpError{Op: "dial", Net: c.remote.Network(), Addr: c.remote, Err: fmt.Errorf("%s (seen from container %s)", text, c.local)}
	case err != nil && !c.closed.Load():
		c.reason = &net.OpError{Op: "read", Net: c.remote.Network(), Addr: c.remote, Err: err}
	}
}

// socatReason takes the message out of socat's log lines, or returns the text.
func socatReason(stderr string) string {
	text := strings.TrimSpace(stderr)
	if i := strings.LastIndex(text, "\n"); i >= 0 {
		text = text[i+1:]
	}
	// 2026/01/02 03:04:05 socat[123] E connect(5, AF=2 172.18.0.2:8080, 16): Connection refused
	if _, after, ok := strings.Cut(text, "] E "); ok {
		text = after
	}
	return text
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err == io.EOF {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reason != nil {
			err = c.reason
		}
	}
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
		if !c.closed.Load() {
			err = &net.OpError{Op: "write", Net: c.remote.Network(), Addr: c.remote, Err: syscall.EPIPE}
		}
	}
	return n, err
}

// CloseWrite ends the user's side; the other side can still be read.
func (c *conn) CloseWrite() error { return c.out.Close() }

// Close ends both sides. Bytes written before are still delivered.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	c.out.Close()
	return c.in.Close()
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
func (c *conn) SetReadDeadline(t time.Time) error  { return c.in.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.SetWriteDeadline(t) }
