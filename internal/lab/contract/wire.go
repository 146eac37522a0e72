package contract

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// usualHeaders are sent unless a case says otherwise.
var usualHeaders = []string{"Authorization", "Content-Type", "User-Agent", "Accept"}

const (
	maxHead     = 64 << 10 // bytes of status line and headers
	maxAnswer   = 1 << 20  // bytes of a body
	maxInterims = 8        // 1xx answers before the final one

	// writeGrace is how long after an answer its request may still be on its
	// way out before the connection is given up.
	writeGrace = 20 * time.Millisecond
)

// request renders a case for the connection, byte for byte.
func (c *Case) request(host string, v values) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", c.method, c.target.render(v), host)
	v.plain = true
	given := map[string]bool{}
	for _, line := range c.Headers {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "-"), ":")
		given[textproto.CanonicalMIMEHeaderKey(name)] = true
	}
	usual := func(name, value string) {
		if !given[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	usual("User-Agent", "percore")
	usual("Accept", "application/json")
	if !c.Token.None {
		usual("Authorization", "Bearer "+v.token)
	}
	if c.Body != nil {
		usual("Content-Type", "application/json")
	}
	for _, h := range c.headers {
		b.WriteString(h.render(v))
		b.WriteString("\r\n")
	}
	v.plain = false
	body := c.bodyText(v)
	switch {
	case c.Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for body != "" {
			n := min(len(body), 5000)
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		b.WriteString("0\r\n\r\n")
	case c.Body != nil:
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	default:
		b.WriteString("\r\n")
	}
	return []byte(b.String())
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	close  bool // the connection cannot be used again
	stray  int  // bytes that came after the answer
}

// readAnswer reads the final answer to a request with the method.
func readAnswer(r *bufio.Reader, limit *io.LimitedReader, method string) (*answer, error) {
	for range maxInterims {
		limit.N = maxHead
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, errSilent
			}
			return nil, fmt.Errorf("%w: %w", errSilent, err)
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			if limit.N <= 0 {
				return nil, fmt.Errorf("the headers of the answer are longer than %d bytes", maxHead)
			}
			return nil, err
		}
		if resp.StatusCode >= 100 && resp.StatusCode < 200 {
			continue
		}
		limit.N = maxAnswer + maxHead
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		_ = resp.Body.Close()
		if len(body) > maxAnswer {
			return nil, fmt.Errorf("the answer %d is longer than %d bytes", resp.StatusCode, maxAnswer)
		}
		if err != nil {
			return nil, fmt.Errorf("the answer %d was cut short after %d bytes: %w", resp.StatusCode, len(body), err)
		}
		a := &answer{status: resp.StatusCode, header: resp.Header, body: body, close: resp.Close}
		if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 {
			a.close = true // the end of the body was the end of the connection
		}
		a.stray = r.Buffered()
		return a, nil
	}
	return nil, fmt.Errorf("%d interim answers came and no final one", maxInterims)
}

// dialer keeps one connection to a candidate and opens another when that one
// is used up.
type dialer struct {
	dial  func(context.Context) (net.Conn, error)
	conn  net.Conn
	limit *io.LimitedReader
	r     *bufio.Reader
	used  bool
}

// errSilent is a connection that ended without a single byte of an answer.
var errSilent = errors.New("the connection was closed without an answer")

// do sends a request and reads its answer. reused reports whether the request
// went over a connection that had carried another before.
func (d *dialer) do(ctx context.Context, method string, request []byte, timeout time.Duration) (a *answer, reused bool, err error) {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if d.conn == nil {
		if d.conn, err = d.dial(ctx); err != nil {
			d.conn = nil
			return nil, false, fmt.Errorf("connect: %w", err)
		}
		d.limit = &io.LimitedReader{R: d.conn, N: maxHead}
		d.r = bufio.NewReaderSize(d.limit, 16<<10)
		d.used = false
	}
	reused, d.used = d.used, true
	conn := d.conn
	// Closing the connection ends reads and writes on every kind of it, also on
	// those without deadlines.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(request)
		written <- err
	}()
	a, err = readAnswer(d.r, d.limit, method)
	whole := false
	select {
	case e := <-written:
		whole = e == nil
	case <-time.After(writeGrace):
		// An answer before the end of the request: what is left of it would be
		// read as the next one.
	}
	if err != nil || !whole || a.close || a.stray > 0 {
		d.hangUp()
	}
	if err == nil {
		return a, reused, nil
	}
	switch {
	case parent.Err() != nil:
		return nil, reused, parent.Err()
	case ctx.Err() != nil:
		return nil, reused, fmt.Errorf("no answer within %s", timeout)
	}
	return nil, reused, err
}

func (d *dialer) hangUp() {
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
}
