//go:build integration

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/said"
)

// run starts a container of the tools image that runs a shell script.
func run(t *testing.T, script string, change func(*engine.Spec)) *engine.Container {
	t.Helper()
	e := enginetest.Connect(t)
	s := engine.Spec{
		Name: fmt.Sprintf("percore-test-%d", time.Now().UnixNano()), Image: enginetest.Images(t, e, "tools")["tools"],
		Entrypoint: []string{"sh", "-c"}, Cmd: []string{script},
		Labels: map[string]string{engine.Label: "1", engine.LabelKind: engine.KindContainer, "io.percore.shared": "1"},
	}
	if change != nil {
		change(&s)
	}
	c, err := e.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		if err := c.Remove(context.Background()); err != nil {
			t.Errorf("removing twice: %v", err)
		}
	})
	return c
}

func TestInfo(t *testing.T) {
	e := enginetest.Connect(t)
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.CPUs < 1 || info.Memory < 1<<28 || info.Version == "" || info.OSType != "linux" || info.Kernel == "" ||
		info.CgroupVersion != "1" && info.CgroupVersion != "2" || info.APIVersion == "" {
		t.Errorf("%+v", info)
	}
	t.Logf("%+v", info)
}

func TestContainerLimits(t *testing.T) {
	c := run(t, `cat /etc/percore/a/b; stat -c %a /etc/percore/a/b; ulimit -n; df -k /dev/shm /scratch | awk 'NR>1 {print $2}'; echo "$GREETING"; grep Cpus_allowed_list /proc/self/status; exec sleep 60`, func(s *engine.Spec) {
		s.Files = []engine.File{{Path: "/etc/percore/a/b", Mode: 0o600, Data: []byte("from the driver\n")}}
		s.NoFile, s.Shm, s.Memory, s.CPUs = 1234, 8<<20, 64<<20, "0"
		s.Tmpfs = map[string]string{"/scratch": "size=1m"}
		s.Env = map[string]string{"GREETING": "hello world"}
	})
	var log string
	for range 100 {
		b, err := c.Logs(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if log = string(b); strings.Contains(log, "Cpus_allowed_list") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if want := "from the driver\n600\n1234\n8192\n1024\nhello world\nCpus_allowed_list:\t0\n"; log != want {
		t.Errorf("got\n%s\nwant\n%s", log, want)
	}
	if last, err := c.Logs(t.Context(), 1); err != nil || string(last) != "Cpus_allowed_list:\t0\n" {
		t.Errorf("last line %q, %v", last, err)
	}
	pid, err := c.PID(t.Context())
	if err != nil || pid < 2 {
		t.Errorf("pid %d, %v", pid, err)
	}
	start := time.Now()
	if err := c.Stop(t.Context(), time.Second); err != nil { // a shell's sleep ignores nothing, but process 1 ignores SIGTERM
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if exit, err := c.Wait(t.Context()); err != nil || exit.Code != 137 || exit.OOMKilled {
		t.Errorf("exit %+v, %v", exit, err)
	}
	if _, err := c.PID(t.Context()); err == nil || !strings.Contains(said.Err(err), "does not run") {
		t.Errorf("pid of a stopped container: %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	c := run(t, "echo last words >&2; exit 7", nil)
	if exit, err := c.Wait(t.Context()); err != nil || exit.Code != 7 || exit.OOMKilled || exit.String() != "exit code 7" {
		t.Errorf("%+v, %v", exit, err)
	}
	// The engine may see a short command's end before it notes its start.
	s, err := c.Inspect(t.Context())
	if err != nil || s.Running || s.Started.IsZero() || s.Finished.Before(s.Started.Add(-time.Second)) {
		t.Errorf("%+v, %v", s, err)
	}
	if log, err := c.Logs(t.Context(), 5); err != nil || string(log) != "last words\n" {
		t.Errorf("%q, %v", log, err)
	}
	hungry := run(t, "tail -c 500m /dev/zero | tail -c 400m >/dev/null", func(s *engine.Spec) { s.Memory = 16 << 20 })
	if exit, err := hungry.Wait(t.Context()); err != nil || !exit.OOMKilled || exit.String() != "killed for memory" {
		t.Errorf("%+v, %v", exit, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	long := run(t, "sleep 60", nil)
	if _, err := long.Wait(ctx); err == nil || !strings.Contains(said.Err(err), long.Name) {
		t.Errorf("waited %v", err)
	}
}

func TestExecAndCopy(t *testing.T) {
	c := run(t, "sleep 60", nil)
	ctx := t.Context()
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	res, err := c.Exec(ctx, bytes.NewReader(big), "sh", "-c", "cat >/tmp/big; wc -c </tmp/big; echo aside >&2; exit 4")
	if err != nil || strings.TrimSpace(string(res.Stdout)) != fmt.Sprint(len(big)) || string(res.Stderr) != "aside\n" || res.Code != 4 {
		t.Errorf("%q %q %d, %v", res.Stdout, res.Stderr, res.Code, err)
	}
	back, err := c.CopyFrom(ctx, "/tmp/big", int64(len(big)))
	if err != nil || !bytes.Equal(back, big) {
		t.Errorf("%d bytes of %d came back, %v", len(back), len(big), err)
	}
	if _, err := c.CopyFrom(ctx, "/tmp/big", 1000); err == nil || !strings.Contains(said.Err(err), "more than the 1000") {
		t.Errorf("a file over the limit: %v", err)
	}
	if _, err := c.CopyFrom(ctx, "/tmp/none", 1000); err == nil || !strings.Contains(said.Err(err), "/tmp/none") || !strings.Contains(said.Err(err), c.Name) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := c.CopyTo(ctx, engine.File{Path: "/new/folder/file", Data: []byte("x")}); err != nil {
		t.Error(err)
	}
	if back, err := c.CopyFrom(ctx, "/new/folder/file", 10); err != nil || string(back) != "x" {
		t.Errorf("%q, %v", back, err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(short, nil, "sleep", "60"); err == nil {
		t.Error("a command outlived its context")
	}
	if res, err := c.Exec(ctx, nil, "no-such-program"); err == nil && res.Code == 0 {
		t.Error("ran a program that does not exist")
	}
}

func TestNameTaken(t *testing.T) {
	c := run(t, "sleep 60", nil)
	_, err := c.Engine().Create(t.Context(), engine.Spec{Name: c.Name, Image: enginetest.Images(t, c.Engine(), "tools")["tools"]})
	if err == nil || !strings.Contains(said.Err(err), "is taken") || !strings.Contains(said.Err(err), "percore clean") {
		t.Errorf("by one of percore's: %v", err)
	}
	foreign := run(t, "sleep 60", func(s *engine.Spec) { s.Labels = nil })
	_, err = foreign.Engine().Create(t.Context(), engine.Spec{Name: foreign.Name, Image: enginetest.Images(t, c.Engine(), "tools")["tools"]})
	if err == nil || !strings.Contains(said.Err(err), "not percore's") || !strings.Contains(said.Err(err), "docker rm -f "+foreign.Name) {
		t.Errorf("by a foreign one: %v", err)
	}
	_, err = c.Engine().Create(t.Context(), engine.Spec{Name: c.Name + "-x", Image: "percore/none:none"})
	if err == nil || !strings.Contains(said.Err(err), "build the images first") {
		t.Errorf("without its image: %v", err)
	}
}

// TestBusy tells an exec that runs from one whose maker died before it was
// started.
func TestBusy(t *testing.T) {
	c := run(t, "sleep 60", nil)
	ctx := t.Context()
	busy := func(when string, want bool) {
		t.Helper()
		got, err := c.Busy(ctx)
		if err != nil || got != want {
			t.Errorf("%s: busy %v, %v", when, got, err)
		}
	}
	busy("without an exec", false)
	if _, err := c.Engine().API().ExecCreate(ctx, c.ID, client.ExecCreateOptions{AttachStdin: true, Cmd: []string{"cat"}}); err != nil {
		t.Fatal(err)
	}
	if state, err := c.Inspect(ctx); err != nil || len(state.Execs) != 1 {
		t.Fatalf("execs %v, %v: nothing was tried", state.Execs, err)
	}
	busy("with an exec that was never started", false)
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(ctx, in, "cat")
		done <- err
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if b, err := c.Busy(ctx); err != nil || time.Now().After(end) {
			t.Fatalf("an exec that runs is not seen: %v", err)
		} else if b {
			break
		}
	}
	out.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	busy("after it has ended", false)
}
