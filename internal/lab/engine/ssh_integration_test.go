//go:build integration

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/said"
)

// fakeSSH makes this test binary play ssh: it carries its standard streams to
// the engine's socket, as `docker system dial-stdio` does on the far side.
const fakeSSH = "PERCORE_TEST_FAKE_SSH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeSSH); dir != "" {
		os.Exit(playSSH(dir))
	}
	os.Exit(m.Run())
}

func playSSH(dir string) int {
	if _, err := os.Stat(filepath.Join(dir, "down")); err == nil {
		fmt.Fprintln(os.Stderr, "ssh: connect to host far port 22: No route to host")
		return 255
	}
	if !strings.HasSuffix(strings.Join(os.Args[1:], " "), "docker system dial-stdio") {
		fmt.Fprintln(os.Stderr, "unexpected command", os.Args)
		return 2
	}
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "pid."+pid), nil, 0o600); err != nil {
		return 2
	}
	conn, err := net.Dial("unix", "/var/run/docker.sock")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// cut ends every connection, and refuses new ones until the returned function
// is called.
func cut(t *testing.T, dir string) (restore func()) {
	t.Helper()
	down := filepath.Join(dir, "down")
	if err := os.WriteFile(down, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pids, _ := filepath.Glob(filepath.Join(dir, "pid.*"))
	if len(pids) == 0 {
		t.Fatal("no ssh runs")
	}
	for _, p := range pids {
		n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(p), "."))
		_ = syscall.Kill(n, syscall.SIGKILL)
		_ = os.Remove(p)
	}
	return func() { _ = os.Remove(down) }
}

// TestOverSSH does over ssh what a run does, and loses the link in the middle.
func TestOverSSH(t *testing.T) {
	image := enginetest.Images(t, enginetest.Connect(t), "tools")["tools"]
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", fakeSSH, dir, self)
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx := t.Context()
	e, err := engine.Connect(ctx, engine.Options{Host: "ssh://me@far"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Run(ctx, engine.Spec{
		Name: fmt.Sprintf("percore-test-ssh-%d", time.Now().UnixNano()), Image: image,
		Entrypoint: []string{"sh", "-c", "socat TCP-LISTEN:7000,fork,reuseaddr EXEC:cat & sleep 5; echo done >/tmp/out; exit 3"},
		Labels:     map[string]string{engine.Label: "1", engine.LabelKind: engine.KindContainer, "io.percore.shared": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()

	res, err := c.Exec(ctx, strings.NewReader("through ssh"), "cat")
	if err != nil || string(res.Stdout) != "through ssh" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	conn, err := c.DialTCP(ctx, "127.0.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("echo")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "echo" {
		t.Errorf("%q, %v", got, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read with a deadline over ssh, which knows none: %v", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	if _, err := c.DialTCP(ctx, "127.0.0.1:7001"); err == nil || !strings.Contains(said.Err(err), "Connection refused") {
		t.Errorf("dialling where nothing listens: %v", err)
	}

	waited := make(chan error, 1)
	go func() {
		exit, err := c.Wait(ctx)
		if err == nil && exit.Code != 3 {
			err = fmt.Errorf("exit %+v", exit)
		}
		waited <- err
	}()
	time.Sleep(300 * time.Millisecond)
	restore := cut(t, dir)
	if _, err := conn.Read(got); err == nil {
		t.Error("read through a link that is cut")
	}
	time.AfterFunc(1500*time.Millisecond, restore)
	if err := <-waited; err != nil {
		t.Errorf("waiting through a cut: %v", err)
	}
	if out, err := c.CopyFrom(ctx, "/tmp/out", 100); err != nil || string(out) != "done\n" {
		t.Errorf("collecting after a cut: %q, %v", out, err)
	}
}
