package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
)

func TestWhole(t *testing.T) {
	for _, s := range []string{"010", "0x10", "1_000", "+1", "-1", "", " 1", "1e3", "99999999999999999999"} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), []string{"run", "--dry-run", "--seed", s}, &out, &errs)
		if code != fail.CodeInput || !strings.Contains(errs.String(), "whole number of 0 or more") {
			t.Errorf("%q: exit code %d, %s", s, code, errs.String())
		}
	}
	var w whole
	if err := w.Set("18446744073709551615"); err != nil || w.String() != "18446744073709551615" {
		t.Errorf("%v, %v", w, err)
	}
}

// TestLineEndings: git changes none, whatever it is told on the machine that
// checks the project out.
func TestLineEndings(t *testing.T) {
	files := []string{"scripts/bootstrap", "candidates/oauth-events/php-fpm/Dockerfile", "Makefile", "go.mod", "results/published/claims.yaml", "cmd/percore/main.go"}
	cmd := exec.Command("git", append([]string{"-c", "core.autocrlf=true", "check-attr", "text", "--"}, files...)...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("no checkout: %v, %s", err, out)
	}
	if got := strings.Count(string(out), ": text: unset\n"); got != len(files) {
		t.Errorf("line endings may be converted:\n%s", out)
	}
}
