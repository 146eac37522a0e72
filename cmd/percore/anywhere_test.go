package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnywhere builds the program and runs it where there is no checkout: it
// carries all that it reads.
func TestAnywhere(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "bin", "percore")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "empty folder")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	call := func(env []string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = work, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	here := []string{"HOME=" + home, "DOCKER_HOST=unix:///nonexistent/docker.sock"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--dry-run", "--profile", "small", "--preset", "smoke"}, "windows"},
		{[]string{"claims", "published"}, "reproduced"},
		{[]string{"plan", "published", "--rate", "30000", "--mix", "read=0.5,write=0.5", "--instance", "c8g.xlarge"}, "c8g.xlarge"},
		{[]string{"ls"}, filepath.Join(work, "results")},
	} {
		if out, err := call(here, tt.args...); err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("percore %s: %v\n%s", strings.Join(tt.args, " "), err, out)
		}
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) != 0 {
		t.Errorf("what only reads leaves something in the working directory: %v, %v", entries, err)
	}
	unpacked, err := filepath.Glob(filepath.Join(home, ".cache", "percore", "files", "*", "candidates", "oauth-events", "suite.yaml"))
	if err != nil || len(unpacked) != 1 {
		t.Fatalf("not unpacked below the user's cache once: %v, %v", unpacked, err)
	}
	out, err := call(nil, "run", "--dry-run")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, "HOME") {
		t.Errorf("without a home: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"cloud", "status"}, {"claims", "published"}, {"ls"}} {
		if out, err := call(nil, args...); err != nil {
			t.Errorf("percore %s without a home: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	root := filepath.Join(unpacked[0], "..", "..", "..")
	if out, err = call(nil, "--root", root, "run", "--dry-run", "--profile", "small", "--preset", "smoke"); err != nil {
		t.Errorf("with a root and no home: %v\n%s", err, out)
	}
}
