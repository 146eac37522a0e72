package scripts

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runVulncheck runs the script and returns its exit code and output.
func runVulncheck(t *testing.T, tool, module string, env ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(path(t, "vulncheck"), tool, module)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestVulncheck(t *testing.T) {
	for name, c := range map[string]struct {
		tool string // body of a pretended govulncheck
		code int
		says string
	}{
		"nothing found":            {`echo "No vulnerabilities found."`, 0, "No vulnerabilities found."},
		"a finding":                {`echo "Vulnerability #1: GO-2026-0001"; exit 3`, 1, "GO-2026-0001"},
		"no name resolution":       {`echo "govulncheck: fetching vulnerabilities: dial tcp: lookup db: no such host" >&2; exit 1`, 0, "NOT CHECKED for vulnerabilities: the database is out of reach (no such host)"},
		"no connection":            {`echo "govulncheck: fetching vulnerabilities: dial tcp 127.0.0.1:1: connect: connection refused" >&2; exit 1`, 0, "NOT CHECKED"},
		"code that does not build": {`echo "govulncheck: loading packages: undefined: x" >&2; exit 1`, 1, "undefined: x"},
		"a report cut short":       {`echo "Vulnerability #1: GO-2026-0001"`, 1, "without a verdict"},
		"a tool that is not there": {`exit 127`, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tool := filepath.Join(t.TempDir(), "govulncheck")
			write(t, tool, "#!/bin/sh\n"+c.tool+"\n", 0o755)
			code, out := runVulncheck(t, tool, t.TempDir())
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, output %q", code, out)
			}
		})
	}
}
