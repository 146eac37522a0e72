package infile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(file, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if data, err := Read(file, 8, "claims", "x.yaml"); err != nil || string(data) != "12345678" {
		t.Errorf("%q, %v", data, err)
	}
	for name, limit := range map[string]int64{
		file: 7, pipe: 8, dir: 8, filepath.Join(dir, "none"): 8, filepath.Join(file, "below"): 8, "/dev/null": 8,
	} {
		_, err := Read(name, limit, "claims", "x.yaml")
		if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") || !strings.Contains(said.Err(err), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
