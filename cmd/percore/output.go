package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/percore/percore/internal/base/plaintext"
)

// output is standard output or standard error. It remembers that something
// could not be written, since most of what writes does not look.
type output struct {
	*os.File
	gone func() // called once nobody reads any more; may be called again

	mu  sync.Mutex
	err error // the first
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
		if unread(err) && o.gone != nil {
			o.gone()
		}
	}
	return n, err
}

// WriteString is Write: the file's own would not remember.
func (o *output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// ReadFrom copies by Write: the file's own would not remember.
func (o *output) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// failed is why something could not be written, nil when all was.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// unread reports whether an error of writing says that nobody reads any more: a
// pipe whose reader has ended, or a terminal that is gone.
func unread(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) }

// raw is the writer below one that lets through text alone.
func raw(w io.Writer) io.Writer {
	if p, ok := w.(*plaintext.Writer); ok {
		return p.Unwrap()
	}
	return w
}

// terminal is the terminal that a writer leads to, nil when there is none.
func terminal(w io.Writer) *os.File {
	w = raw(w)
	f, ok := w.(*os.File)
	if o, wrapped := w.(*output); wrapped {
		f, ok = o.File, true
	}
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// usualColumns is the width of a terminal that does not know its own.
const usualColumns = 80

// columns is the width of a terminal.
func columns(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return usualColumns
}

// width is the width of the terminal that is written to, 0 without one.
func (a *app) width() int {
	if f := terminal(a.stdout); f != nil {
		return columns(f)
	}
	return 0
}
