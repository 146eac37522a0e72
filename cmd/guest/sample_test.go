package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/testkit/cgtrees"
)

// The test binary is the command itself when this is set.
const asCommand = "GUEST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

func sampling(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	return command(tb, append([]string{"sample"}, args...)...)
}

// v2 makes a folder of captured cgroups and returns the flags that name it. The
// process ids in it are 89 and 95.
func v2(tb testing.TB) []string {
	tb.Helper()
	root, proc := cgtrees.Unpack(tb, "v2")
	return []string{"--cgroup-root", root, "--proc", proc}
}

func TestSampleExitCodes(t *testing.T) {
	place := v2(t)
	with := func(args ...string) []string { return append(append([]string{}, place...), args...) }
	full := filepath.Join(t.TempDir(), "old.cg.jsonl")
	if err := os.WriteFile(full, []byte("kept\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"help", []string{"--help"}, 0, ""},
		{"no container", with(), 2, "no container was named"},
		{"unknown flag", with("--frequency", "10", "app=89"), 2, "guest sample --help"},
		{"bad interval", with("--interval", "fast", "app=89"), 2, "interval"},
		{"short interval", with("--interval", "1us", "app=89"), 2, "--interval 1µs is too short"},
		{"no time", with("--max", "0s", "app=89"), 2, "--max 0s is not a time"},
		{"bad pid", with("app=one"), 2, `argument "app=one" has a bad process id`},
		{"no such process", with("app=89", "db=12345"), 2, "process 12345 (container db) does not exist"},
		{"no folder", with("--out", "/no/such/folder/x", "app=89"), 2, "cannot open --out"},
		{"file holds data", with("--out", full, "app=89"), 2, "already holds data"},
		{"done", with("--max", "1ms", "app=89"), 0, ""},
	} {
		cmd := sampling(t, c.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		said := stderr.String()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit code %d, want %d (%s)", c.name, code, c.code, said)
		}
		if c.code == 0 && said != "" || c.code != 0 && (!strings.HasPrefix(said, "guest sample: ") || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1) {
			t.Errorf("%s: said %q", c.name, said)
		}
	}
	if b, err := os.ReadFile(full); err != nil || string(b) != "kept\n" {
		t.Errorf("the old file: %q, %v", b, err)
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	cmd := sampling(t, append(v2(t), "--out", "/dev/full", "app=89")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run()
	if code, said := cmd.ProcessState.ExitCode(), stderr.String(); code != 1 || !strings.Contains(said, "the disk of /dev/full is full, so free some space") || strings.Count(said, "\n") != 1 {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

// waitLines waits until the file has that many lines.
func waitLines(t *testing.T, file string, n int) {
	t.Helper()
	for range 3000 {
		if b, err := os.ReadFile(file); err == nil && bytes.Count(b, []byte("\n")) >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s never had %d lines", file, n)
}

func TestSignalEndsWithALastSample(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		file := filepath.Join(t.TempDir(), "x.cg.jsonl")
		cmd := sampling(t, append(v2(t), "--out", file, "--interval", "1h", "app=89", "db=95")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitLines(t, file, 1)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
		s := series(t, file)
		if s.Len() != 2 || s.Torn() != 0 {
			t.Errorf("%v: %d samples, %d torn", signal, s.Len(), s.Torn())
		}
	}
}

func TestKillLeavesAReadableFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.cg.jsonl")
	cmd := sampling(t, append(v2(t), "--out", file, "--interval", "1ms", "app=89", "db=95")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitLines(t, file, 20)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if s := series(t, file); s.Len() < 20 || s.Torn() > 1 {
		t.Errorf("%d samples, %d torn", s.Len(), s.Torn())
	}
}

func series(t *testing.T, file string) *cgroup.Series {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := cgroup.ReadSeries(f, file, "app", "db")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
