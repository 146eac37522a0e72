package store

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/percore/percore/internal/testkit/said"
)

// TestFullDisk fills a small file system of its own. Without the right to mount
// one there is nothing to fill; TestDiskErrors holds the sentence everywhere.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no right to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s, err := Create(disk, sampleRun("a1"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	appendAll(t, s, windowEvent(1, 1))

	_, err = s.WriteRaw("raw/x/big.json", bytes.Repeat([]byte("x"), 1<<20))
	want := func(err error, path string) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(said.Err(err), path) || !strings.Contains(said.Err(err), "free space") || strings.Contains(said.Err(err), "\n") {
			t.Errorf("full disk: %v", err)
		}
	}
	want(err, "raw/x/big.json")
	if entries, _ := os.ReadDir(s.Dir() + "/raw/x"); len(entries) != 0 {
		t.Errorf("a part of the file is left: %v", entries)
	}
	// Now fill it with events.
	written := 1
	for err = nil; err == nil && written < 1000; {
		e := windowEvent(written+1, 1)
		e.Message = strings.Repeat("y", 3000)
		if err = s.Append(e); err == nil {
			written++
		}
	}
	want(err, EventsFile)
	r, err := Open(s.Dir())
	if err != nil || len(r.Events()) != written {
		t.Errorf("%d of %d events are left: %v", len(r.Events()), written, err)
	}
}
