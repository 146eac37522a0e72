//go:build integration

package difftest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// target is a running candidate.
type target struct {
	name string
	dial func(ctx context.Context) (net.Conn, error)
	conn net.Conn
	in   *bufio.Reader
}

// answer is what the contract promises of a response.
type answer struct {
	status    int
	mediaType string
	challenge string
	body      string
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s %s %.200q", a.status, a.mediaType, a.challenge, a.body)
}

// send sends one request on the connection that is open, or on a new one when the
// server has closed it since.
func (t *target) send(ctx context.Context, raw []byte) (answer, error) {
	reused := t.conn != nil
	a, err := t.attempt(ctx, raw)
	if err != nil && reused {
		a, err = t.attempt(ctx, raw)
	}
	return a, err
}

func (t *target) attempt(ctx context.Context, raw []byte) (_ answer, err error) {
	if t.conn == nil {
		if t.conn, err = t.dial(ctx); err != nil {
			return answer{}, fmt.Errorf("connect to %s: %w", t.name, err)
		}
		t.in = bufio.NewReader(t.conn)
	}
	keep := false
	defer func() {
		if !keep {
			t.close()
		}
	}()
	if err := t.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return answer{}, err
	}
	// A server may answer, and close, before it has read everything.
	written := make(chan error, 1)
	go func(c net.Conn) {
		_, err := c.Write(raw)
		written <- err
	}(t.conn)
	method, _, _ := bytes.Cut(raw, []byte(" "))
	for {
		response, err := http.ReadResponse(t.in, &http.Request{Method: string(method)}) //nolint:bodyclose // it is read whole, or its connection is closed
		if err != nil {
			return answer{}, fmt.Errorf("read the answer of %s: %w", t.name, err)
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return answer{}, fmt.Errorf("read the body of %s: %w", t.name, err)
		}
		select {
		case err := <-written:
			keep = err == nil && !response.Close
		case <-time.After(50 * time.Millisecond):
		}
		return answer{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("WWW-Authenticate"), string(body)}, nil
	}
}

func (t *target) close() {
	if t.conn != nil {
		_ = t.conn.Close() // nothing is lost with it
		t.conn = nil
	}
}

var newID = regexp.MustCompile(`^\{"id":([1-9][0-9]*)\}$`)

// comparable leaves out of an answer what may differ: the id of a new row, and the
// reason that a server adds to its own refusals.
func (a answer) comparable() answer {
	if a.status == http.StatusCreated {
		a.body = newID.ReplaceAllString(a.body, `{"id":N}`)
	}
	for _, refusal := range []string{"400 Bad Request", "431 Request Header Fields Too Large"} {
		if strings.HasPrefix(a.body, refusal) {
			a.body = refusal
		}
	}
	return a
}
