package doctor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestLocalHost(t *testing.T) {
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "loadavg"), []byte("1.25 0.75 0.50 2/345 6789\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := LocalHost{DataRoot: proc, Proc: proc}.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Load1 != 1.25 || r.Free == 0 {
		t.Errorf("got %+v", r)
	}
	if _, err := (LocalHost{DataRoot: filepath.Join(proc, "gone"), Proc: proc}).Read(context.Background()); err == nil {
		t.Error("a folder that does not exist has free space")
	}
	if _, err := (LocalHost{DataRoot: proc, Proc: filepath.Join(proc, "gone")}).Read(context.Background()); err == nil {
		t.Error("a machine without /proc has a load")
	}
}
