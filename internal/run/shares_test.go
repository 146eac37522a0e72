package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// TestShares: a load that cannot be spread is refused with the plan, and not by
// machines that are paid for.
func TestShares(t *testing.T) {
	const root = "../.."
	changed := func(file, old, new string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%s: %v", file, err)
		}
		path := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	three := changed("profiles/aws-graviton.yaml", "cloud:", "load: {count: 3}\ncloud:")
	smoke := "profiles/presets/smoke.yaml"
	machine := plan.Machine{CPUs: 8, MemoryBytes: 64 << 30}
	for _, c := range []struct{ old, new, says string }{
		{"name: smoke", "name: mine", ""},
		{"connections: [16]", "connections: [2]", "phase rate, scenario auth: a window of 2 connections cannot be spread over 3 load hosts"},
		{"read: 200", "read: 2", "phase rate, scenario read: a target of 2 requests per second cannot be spread over 3"},
		{"connections: 16, target", "connections: 1, target", "probe: a window of 1 connections cannot be spread over 3"},
	} {
		_, err := PrepareFor(Options{Root: root, Profile: three, Preset: changed(smoke, c.old, c.new)}, map[plan.Role]plan.Machine{plan.App: machine, plan.DB: machine, plan.Load: machine})
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.new, err)
			}
		} else if !fail.IsInput(err) || !strings.Contains(said.Err(err), c.says) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}
