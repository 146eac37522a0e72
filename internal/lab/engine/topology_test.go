package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestSiblings(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		lists []string // of CPU 0, 1, ...; empty for one that is offline
		cpus  int
		want  string
	}{
		"one name":           {"thread_siblings_list", []string{"0,2", "1,3", "0,2", "1,3"}, 4, "0,2\n1,3\n0,2\n1,3"},
		"the other name":     {"core_cpus_list", []string{"0-1", "0-1"}, 2, "0-1\n0-1"},
		"offline":            {"thread_siblings_list", []string{"0", "", "2", ""}, 2, "0\n2"},
		"another machine":    {"thread_siblings_list", []string{"0-1", "0-1"}, 8, ""},
		"a part of the CPUs": {"thread_siblings_list", []string{"0-1", "0-1"}, 1, ""},
		"no files":           {"", nil, 4, ""},
	} {
		sys := t.TempDir()
		for cpu, list := range c.lists {
			dir := filepath.Join(sys, "devices/system/cpu", fmt.Sprintf("cpu%d", cpu), "topology")
			if list == "" {
				dir = filepath.Dir(dir)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if list == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(list+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := siblings(sys, c.cpus); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
