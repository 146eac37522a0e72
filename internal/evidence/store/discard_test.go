package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/said"
)

// A refused run leaves neither a folder nor a link to none; what was measured
// stays.
func TestDiscard(t *testing.T) {
	results := t.TempDir()
	begin := func(id string) *Store {
		s, err := Create(results, sampleRun(id))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(Event{Type: EventRunStarted, Message: "start"}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	refused := begin("a1")
	if err := refused.Append(Event{Type: EventRunEnded, Message: StateFailed, Error: "refused"}); err != nil {
		t.Fatal(err)
	}
	if err := refused.Discard(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(results); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	kept := begin("a2")
	if err := kept.Append(Event{Type: EventNote, Message: "the database is seeded"}); err != nil {
		t.Fatal(err)
	}
	if err := kept.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := begin("a3").Discard(); err != nil {
		t.Fatal(err)
	}
	if dir, err := Find(results, latest); err != nil || filepath.Base(dir) != "a2" {
		t.Errorf("the newest is %s, %v", dir, err)
	}
	if target, err := os.Readlink(filepath.Join(results, latest)); err != nil || target != "a2" {
		t.Errorf("latest links to %q, %v", target, err)
	}
}

func TestWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "results")
	if err := Writable(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := Writable("/proc/percore"); err == nil || !strings.Contains(said.Err(err), "/proc/percore") {
		t.Errorf("in a folder that takes none: %v", err)
	}
}
