package engine

import (
	"bytes"
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
	// With two -d socat says when it is connected.
	s, err := c.exec(ctx, true, []string{"socat", "-d", "-d", "-t", "1", "-", socat})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	conn := pipeConn(s.Reader, s.Conn, s, addr(c.Name), addr(address))
	if err := conn.connected(ctx); err != nil {
		conn.Close()
		s.Close()
		return nil, err
	}
	return conn, nil
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
	log           *socatLog
	received      chan struct{} // closed when the container's side has ended
	closed        atomic.Bool
	mu            sync.Mutex
	reason        error // why the container's side has ended
}

func pipeConn(r io.Reader, w io.Writer, s stream, local, remote addr) *conn {
	in, inFar := net.Pipe()
	out, outFar := net.Pipe()
	c := &conn{local: local, remote: remote, in: in, out: out, log: newSocatLog(), received: make(chan struct{})}
	go func() { // container -> user
		defer close(c.received)
		// The engine carries the two kinds of frames independently: what the
		// server says first can be here before socat's word that it connected.
		_, err := stdcopy.StdCopy(writerFunc(func(p []byte) (int, error) {
			c.log.connect()
			return inFar.Write(p)
		}), c.log, r)
		c.ended(err)
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
		case <-c.received:
		case <-time.After(5 * time.Second):
			s.Close()
		}
	}()
	return c
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// connected waits until socat has made the connection.
func (c *conn) connected(ctx context.Context) error {
	select {
	case <-c.log.connected:
		return nil
	case <-c.received:
		c.mu.Lock()
		defer c.mu.Unlock()
		select {
		case <-c.log.connected: // and ended at once
			return nil
		default:
		}
		if c.reason != nil {
			return c.reason
		}
		return c.error("dial", errors.New("socat ended without a word"))
	case <-ctx.Done():
		return c.error("dial", ctx.Err())
	}
}

func (c *conn) error(op string, err error) error {
	return &net.OpError{Op: op, Net: c.remote.Network(), Addr: c.remote, Err: err}
}

// ended keeps why the container's side of the connection ended.
func (c *conn) ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op := "dial"
	select {
	case <-c.log.connected:
		op = "read"
	default:
	}
	switch text := c.log.reason(); {
	case text != "":
		c.reason = c.error(op, fmt.Errorf("%s (seen from container %s)", text, c.local))
	case err != nil && !c.closed.Load():
		c.reason = c.error(op, err)
	}
}

// socatLog reads what socat logs, or what the engine says in its place.
type socatLog struct {
	connected chan struct{} // closed when socat is connected
	once      sync.Once
	rest      []byte // an unfinished line
	last      string // the last line that is not a notice
}

func newSocatLog() *socatLog { return &socatLog{connected: make(chan struct{})} }

// connect notes that the connection stands.
func (l *socatLog) connect() { l.once.Do(func() { close(l.connected) }) }

// Write takes log lines, in pieces of any size.
func (l *socatLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.rest = rest
		l.line(string(line))
	}
	if len(l.rest) > 4096 {
		l.rest = l.rest[:4096]
	}
	return len(p), nil
}

// line takes a line like
//
//	2026/01/02 03:04:05 socat[123] E connect(5, AF=2 172.18.0.2:8080, 16): Connection refused
func (l *socatLog) line(line string) {
	line = strings.TrimSpace(line)
	if _, notice, ok := strings.Cut(line, "] N "); ok {
		if strings.HasPrefix(notice, "starting data transfer loop") {
			l.connect()
		}
		return
	}
	for _, level := range []string{"] E ", "] F ", "] W "} {
		if _, text, ok := strings.Cut(line, level); ok {
			line = text
			break
		}
	}
	if line != "" {
		l.last = line
	}
}

// reason is the last complaint, or empty.
func (l *socatLog) reason() string {
	l.line(string(l.rest))
	l.rest = nil
	return l.last
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
			err = c.error("write", syscall.EPIPE)
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
