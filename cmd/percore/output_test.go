package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// TestEverySignal: whatever ends a process does so cleanly here.
func TestEverySignal(t *testing.T) {
	for _, sig := range ends {
		ctx, stop := untilSignal(t.Context())
		if err := syscall.Kill(os.Getpid(), sig.(syscall.Signal)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%v: it goes on", sig)
		}
		stop()
	}
	ctx, stop := untilSignal(t.Context())
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("a pipe of some connection ends what is going on")
	}
}

// TestReaderGone: an output that nobody reads ends what is going on like Ctrl-C,
// and what is written then is lost without a word.
func TestReaderGone(t *testing.T) {
	_, stop := untilSignal(t.Context()) // which takes SIGPIPE
	defer stop()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	ctx, gone := context.WithCancel(t.Context())
	defer gone()
	var errs bytes.Buffer
	code := execute(ctx, []string{"ls", "--root", "../..", "--results", t.TempDir()}, &output{File: w, gone: gone}, &errs)
	if code != codeUnread || errs.Len() > 0 || ctx.Err() == nil {
		t.Errorf("exit code %d, context %v, said %q", code, ctx.Err(), errs.String())
	}
	// A question that nobody sees is not waited for.
	a := &app{stdout: &output{File: w}, stdin: os.Stdin}
	if yes, err := a.confirm(t.Context(), "Now?"); yes || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("asked nobody: %v, %v", yes, err)
	}
	o := &output{File: w}
	if n, err := o.ReadFrom(strings.NewReader("text")); n != 0 || err == nil || o.failed() == nil {
		t.Errorf("copied %d bytes, %v; remembered %v", n, err, o.failed())
	}
}

// TestFullOutput: what could not be written was not said.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"run", "--dry-run", "--profile", "small"}, {"help"}, {"ls"}, {"report", "published"}, {"doctor", "--help"}} {
		var errs bytes.Buffer
		code := execute(t.Context(), append(args, "--root", "../..", "--results", t.TempDir()), &output{File: full}, &errs)
		if args[0] == "run" && strings.Contains(errs.String(), "Docker") {
			continue // no engine here: it never came to writing
		}
		if code != fail.CodeFailed || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%v: exit code %d, said %q", args, code, errs.String())
		}
	}
}

func TestWriteOut(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	if err := a.writeOut("-", []byte("text"), false); err != nil || out.String() != "text" {
		t.Errorf("- became %q, %v", out.String(), err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "-")); err == nil {
		t.Error("a file named - was made")
	}
	if err := a.writeOut("a.txt", []byte("one"), false); err != nil {
		t.Fatal(err)
	}
	if err := a.writeOut("a.txt", []byte("two"), false); !fail.IsInput(err) {
		t.Errorf("it is replaced: %v", err)
	}
}

// TestTerminalWithoutColumns: a terminal is one even where it does not know its
// width, as under script or a serial line.
func TestTerminalWithoutColumns(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if f := terminal(&output{File: master}); f == nil || columns(f) != usualColumns {
		t.Errorf("terminal %v", f)
	}
	if a := (&app{stdout: &output{File: master}}); a.width() != usualColumns {
		t.Errorf("width %d", a.width())
	}
	for _, w := range []io.Writer{&bytes.Buffer{}, io.Discard} {
		if terminal(w) != nil {
			t.Errorf("%T is a terminal", w)
		}
	}
}
