package scripts

import (
	"os/exec"
	"strings"
	"testing"
)

func TestIntegrationPackages(t *testing.T) {
	cmd := exec.Command(path(t, "integration-packages"))
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	found := map[string]bool{}
	for _, p := range got {
		found[strings.TrimPrefix(p, "github.com/percore/percore/")] = true
	}
	for p, want := range map[string]bool{"scripts": true, "internal/doctor": true, "internal/plan": false, "internal/base/fail": false} {
		if found[p] != want {
			t.Errorf("%s listed: %t, want %t; all: %q", p, found[p], want, got)
		}
	}
}
