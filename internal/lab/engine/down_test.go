package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestEngineDown tells an engine that is down from a machine that is, by what a
// real ssh connection's error looks like with what Docker's command line says.
func TestEngineDown(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		down       bool
	}{
		{"of 20.10", "failed to open the raw stream connection: dial unix /var/run/docker.sock: connect: no such file or directory", true},
		{"that refuses", "failed to open the raw stream connection: dial unix /var/run/docker.sock: connect: connection refused", true},
		{"older", "error during connect: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", true},
		{"newer", "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix: connect: no such file or directory", true},
		{"no route", "ssh: connect to host far port 22: No route to host", false},
		{"no key", "me@far: Permission denied (publickey).", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\nread -r line\necho '" + tt.says + "' >&2\nexit 1\n"
			if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			dial, _, err := dialSSH("ssh://me@far", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = dial(context.Background(), "tcp", "far")
			if err == nil {
				t.Fatal("connected")
			}
			var unsent *unsentError
			if got := engineDown(err); got != tt.down || !errors.As(err, &unsent) {
				t.Errorf("down %v, want %v: %v", got, tt.down, err)
			}
		})
	}
}
