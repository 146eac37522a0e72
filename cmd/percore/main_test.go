package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRelativeFolders: ssh and Ansible work in folders of their own, and would
// look for what is named from another one.
func TestRelativeFolders(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in, want app
	}{
		{app{root: "../..", results: "some/runs"}, app{root: root, results: filepath.Join(here, "some/runs")}},
		{app{root: "../../"}, app{root: root, results: filepath.Join(root, "results")}},
		{app{results: "../runs/"}, app{root: root, results: filepath.Join(filepath.Dir(here), "runs")}},
	} {
		a := tt.in
		if err := a.findRoot(); err != nil || a.root != tt.want.root || a.results != tt.want.results {
			t.Errorf("%+v: %q, %q, %v", tt.in, a.root, a.results, err)
		}
	}
	// Some commands need only the one folder.
	a := app{root: t.TempDir(), results: "runs"}
	if err := a.findRoot(); err == nil || a.results != filepath.Join(here, "runs") {
		t.Errorf("without a project: %q, %v", a.results, err)
	}
}

// writer tells of what is written.
type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }

// TestConfirm asks, is interrupted, and asks again.
func TestConfirm(t *testing.T) {
	in, out := io.Pipe()
	var said bytes.Buffer
	a := &app{stdin: in, stdout: &said}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if yes, err := a.confirm(ctx, "Now?"); yes || !errors.Is(err, context.DeadlineExceeded) || said.String() != "Now? [y/N] \n" {
		t.Errorf("no answer: %v, %v, %q", yes, err, said.String())
	}
	// Ctrl-C at the question.
	a.stdout = writer(func(text string) {
		if strings.HasSuffix(text, "[y/N] ") {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	})
	if yes, err := a.confirm(t.Context(), "Now?"); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, %v", yes, err)
	}
	// The reader of the first question is still there, and its line is the answer.
	a.stdout = io.Discard
	for _, tt := range []struct {
		line string
		want bool
	}{{"Yes\n", true}, {"y\n", true}, {"\n", false}, {"yesterday\n", false}} {
		go func() { _, _ = io.WriteString(out, tt.line) }()
		if yes, err := a.confirm(t.Context(), "Now?"); yes != tt.want || err != nil {
			t.Errorf("%q: %v, %v", tt.line, yes, err)
		}
	}
	out.Close()
	if yes, err := a.confirm(t.Context(), "Now?"); yes || !errors.Is(err, io.EOF) {
		t.Errorf("no terminal: %v, %v", yes, err)
	}
}

// TestHangup: a terminal that is closed ends what is going on, and not the
// process, however often it says so.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("hangups are ignored here")
	}
	ctx, stop := untilSignal(t.Context())
	defer stop()
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	hangup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangup()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	for deadline := time.Now().Add(10 * time.Second); !signal.Ignored(syscall.SIGHUP); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the next one ends the process")
		}
	}
	hangup()
}
