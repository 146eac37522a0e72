//go:build integration

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFourthCandidate measures a candidate that only a suite's folder knows of,
// as docs/adding-a-candidate.md says it is added, from an empty folder: the
// program carries the rest.
func TestFourthCandidate(t *testing.T) {
	dockerEngine(t)
	suite := filepath.Join(t.TempDir(), "suite")
	if err := os.CopyFS(suite, os.DirFS("../../candidates/oauth-events")); err != nil {
		t.Fatal(err)
	}
	// The program is Go's, and so is its image; the memory that it keeps is not.
	if err := os.CopyFS(filepath.Join(suite, "go-lavish"), os.DirFS("../../candidates/oauth-events/go")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(suite, "suite.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := "  - id: go-lavish\n    title: {debian: Go that collects late, published: Go that collects late}\n    env: {GOGC: \"400\"}\n"
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	call := func(code int, args ...string) string {
		t.Helper()
		c := &command{Cmd: exec.Command(path, args...)}
		c.Dir, c.Stdout, c.Stderr = here, &c.out, &c.out
		c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(here, "config"))
		return c.run(t, code)
	}
	preset := write(t, "short.yaml", shortPreset)
	args := []string{"run", "--suite", suite, "--preset", preset, "--candidates", "go-lavish", "--scenarios", "auth,write"}
	out := call(0, args...)
	results := filepath.Join(here, "results")
	run := only(t, results).Run()
	if run.SuiteSource != suite || len(run.Candidates) != 1 || run.Candidates[0] != "go-lavish" || !strings.Contains(run.Images["go-lavish"], "percore/go-lavish:") {
		t.Errorf("%q, %v, %v", run.SuiteSource, run.Candidates, run.Images)
	}
	if !strings.Contains(out, "contract go-lavish") || !strings.Contains(out, "Go that collects late") {
		t.Errorf("neither checked nor shown:\n%s", out)
	}
	for _, w := range only(t, results).History().Windows() {
		if w.Candidate != "go-lavish" || w.Measured == nil || w.Measured.OK == 0 {
			t.Errorf("%s: %+v, %s", w.Window, w.Measured, w.Error)
		}
	}
	if text := call(0, "report", "latest", "--csv"); !strings.Contains(text, "go-lavish") {
		t.Errorf("the report does not know it:\n%s", text)
	}
	if text := call(0, "run", "--resume", "latest", "--dry-run"); !strings.Contains(text, "go-lavish") {
		t.Errorf("what is left of it:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(here, "config", "percore", "keys")); err != nil {
		t.Errorf("the signing keys are not with the user's configuration: %v", err)
	}
	// What breaks the contract is not measured: a candidate without a database.
	broken := strings.Replace(string(text), "audience: events-api", "audience: other-api", 1)
	if err := os.WriteFile(file, []byte(broken+strings.Replace(more, `GOGC: "400"`, `PERCORE_AUDIENCE: events-api`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := call(1, args...); !strings.Contains(out, "failed the contract check") {
		t.Errorf("a candidate that takes other tokens:\n%s", out)
	}
}
