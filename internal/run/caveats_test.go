package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/plan"
)

// TestCaveatsAreToldFromValues: a profile that only bears the name of the
// study's layout is not taken for it.
func TestCaveatsAreToldFromValues(t *testing.T) {
	const root = "../.."
	preset, err := plan.FindPreset(root, "full")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "profiles", "m4pro.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	for _, c := range []struct{ old, new, says string }{
		{"name: m4pro", "name: mine", ""},
		{"flavour: auto", "flavour: published", ""},
		{`"0-3"`, `"0-1"`, "the candidate has 2 core(s)"},
		{`"4-7"`, `"4"`, "role db has 1 core(s)"},
		{"2GiB", "4GiB", "role db has 4GiB of memory"},
		{"database_connections: 32", "database_connections: 8", "there are 8 database connections"},
		{`cpus: "4-7"`, `cpus: "3-6"`, "roles share cores (app and db share CPU 3)"},
	} {
		changed := strings.Replace(string(text), c.old, c.new, 1)
		if err := os.WriteFile(path, []byte(changed+"shared_cores: true\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := Prepared{Preset: preset}
		if p.Profile, err = plan.FindProfile(root, path); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(p.Caveats(), "\n")
		if p.Comparable() != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s for %s: comparable is %v, caveats %q", c.new, c.old, p.Comparable(), got)
		}
	}
}
