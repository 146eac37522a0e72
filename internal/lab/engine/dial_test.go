package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

// frame is a piece of the multiplexed output of an exec.
func frame(kind byte, data string) []byte {
	b := make([]byte, 8, 8+len(data))
	b[0] = kind
	binary.BigEndian.PutUint32(b[4:], uint32(len(data)))
	return append(b, data...)
}

// fakeExec plays the container's side of an exec.
type fakeExec struct {
	out     *io.PipeWriter // what the container prints, in frames
	in      *io.PipeReader // what it is sent
	inWrite *io.PipeWriter
	once    sync.Once
	closed  chan struct{}
}

func (f *fakeExec) CloseWrite() error { return f.inWrite.Close() }
func (f *fakeExec) Close() {
	f.once.Do(func() {
		close(f.closed)
		f.out.CloseWithError(io.ErrClosedPipe)
		f.in.CloseWithError(io.ErrClosedPipe)
	})
}

func fakeConn() (*conn, *fakeExec) {
	outR, outW := io.Pipe()
	inR, inW := io.Pipe()
	f := &fakeExec{out: outW, in: inR, inWrite: inW, closed: make(chan struct{})}
	return pipeConn(outR, inW, f, "tools", "app:8080"), f
}

func TestConnCarriesBothWays(t *testing.T) {
	c, f := fakeConn()
	defer c.Close()
	go func() {
		buf := make([]byte, 4)
		_, _ = io.ReadFull(f.in, buf)
		_, _ = f.out.Write(frame(1, "pong:"))
		_, _ = f.out.Write(frame(2, "a line of socat's\n"))
		_, _ = f.out.Write(frame(1, string(buf)))
	}()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 9)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "pong:ping" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestConnDeadlines(t *testing.T) {
	c, _ := fakeConn()
	defer c.Close()
	for _, d := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(30 * time.Millisecond)} {
		if err := c.SetDeadline(d); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		var ne net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("read: %v", err)
		}
		// Nobody reads the other end: the second write cannot go through.
		_, err = c.Write(bytes.Repeat([]byte("x"), 1<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
	}
	// A deadline that is set while a read waits ends it.
	_ = c.SetReadDeadline(time.Time{})
	done := make(chan error)
	go func() { _, err := c.Read(make([]byte, 1)); done <- err }()
	time.Sleep(20 * time.Millisecond)
	_ = c.SetReadDeadline(time.Now())
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("waiting read: %v", err)
	}
}

func TestConnHalfClose(t *testing.T) {
	c, f := fakeConn()
	defer c.Close()
	go func() {
		all, _ := io.ReadAll(f.in) // ends only by the half close
		_, _ = f.out.Write(frame(1, "got "+string(all)))
		f.out.Close()
	}()
	if _, err := c.Write([]byte("all of it")); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "got all of it" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestConnTellsWhyItEnded(t *testing.T) {
	c, f := fakeConn()
	defer c.Close()
	go func() {
		_, _ = f.out.Write(frame(2, "2026/01/02 03:04:05 socat[7] N opening connection to AF=2 172.18.0.2:8080\n2026/01/02 03:04:05 socat[7] E connect(5, AF=2 172.18.0.2:8080, 16): Connection refused\n"))
		f.out.Close()
	}()
	err := c.connected(t.Context())
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"Connection refused", "app:8080", "tools"} {
		if !strings.Contains(said.Err(err), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(said.Err(err), "Connection refused") {
		t.Errorf("read: %v", err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("wrote to a connection that has ended")
	}
}

func TestConnected(t *testing.T) {
	const notice = "2026/01/02 03:04:05 socat[7] N starting data transfer loop with FDs [0,1] and [5,5]\n"
	c, f := fakeConn()
	defer c.Close()
	go func() {
		_, _ = f.out.Write(frame(2, notice[:20]))
		_, _ = f.out.Write(frame(2, notice[20:]))
	}()
	if err := c.connected(t.Context()); err != nil {
		t.Fatal(err)
	}

	// A server that speaks first, heard before socat.
	first, h := fakeConn()
	defer first.Close()
	go func() {
		_, _ = h.out.Write(frame(1, "220 ready"))
		_, _ = h.out.Write(frame(2, notice))
	}()
	early, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if err := first.connected(early); err != nil {
		t.Errorf("a server that speaks first: %v", err)
	} else if b, err := io.ReadAll(io.LimitReader(first, 9)); err != nil || string(b) != "220 ready" {
		t.Errorf("a server that speaks first: %q, %v", b, err)
	}

	silent, g := fakeConn()
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := silent.connected(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a socat that says nothing: %v", err)
	}
	g.out.Close()
	if err := silent.connected(t.Context()); err == nil || !strings.Contains(said.Err(err), "without a word") {
		t.Errorf("a socat that ends without a word: %v", err)
	}
}

func TestSocatLog(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"2026/01/02 03:04:05 socat[7] E connect(5, AF=1 \"/x\", 4): No such file or directory\n": `connect(5, AF=1 "/x", 4): No such file or directory`,
		"OCI runtime exec failed: socat: not found":                                              "OCI runtime exec failed: socat: not found",
		"2026/01/02 03:04:05 socat[7] N exiting with status 0\n":                                 "",
	} {
		l := newSocatLog()
		for i := range in { // in the smallest pieces
			_, _ = l.Write([]byte{in[i]})
		}
		if got := l.reason(); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	l := newSocatLog()
	_, _ = l.Write(bytes.Repeat([]byte("x"), 100_000))
	if len(l.rest) > 4096 {
		t.Errorf("keeps %d bytes of a line without an end", len(l.rest))
	}
}

func TestConnClose(t *testing.T) {
	c, f := fakeConn()
	received := make(chan string)
	go func() {
		all, _ := io.ReadAll(f.in)
		f.out.Close()
		received <- string(all)
	}()
	if _, err := c.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != "last words" {
		t.Errorf("delivered %q", got)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	select {
	case <-f.closed:
	case <-time.After(2 * time.Second):
		t.Error("the stream below stays open")
	}
}
