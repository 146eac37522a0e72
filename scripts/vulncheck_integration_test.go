//go:build integration

//integration:apart

package scripts

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The real tool against a database with one invented vulnerability, and against
// one that nobody serves.
func TestVulncheckForReal(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "govulncheck")
	build := exec.Command("go", "build", "-o", tool, "golang.org/x/vuln/cmd/govulncheck")
	build.Dir = "tools"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	db := filepath.Join(dir, "db")
	write(t, filepath.Join(db, "index/db.json"), `{"modified":"2026-01-01T00:00:00Z"}`, 0o644)
	write(t, filepath.Join(db, "index/modules.json"), `[{"path":"stdlib","vulns":[{"id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z"}]}]`, 0o644)
	write(t, filepath.Join(db, "ID/GO-0000-0001.json"), `{
		"schema_version": "1.3.1", "id": "GO-0000-0001",
		"modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
		"summary": "An invented vulnerability", "details": "An invented vulnerability",
		"database_specific": {"url": "https://vulnerability.example"},
		"affected": [{
			"package": {"name": "stdlib", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "os", "symbols": ["Getwd"]}]}
		}]
	}`, 0o644)

	module := func(call string) string {
		m := t.TempDir()
		write(t, filepath.Join(m, "go.mod"), "module example.test/m\n\ngo 1.24\n", 0o644)
		write(t, filepath.Join(m, "main.go"), "package main\n\nimport \"os\"\n\nfunc main() { _, _ = "+call+" }\n", 0o644)
		return m
	}
	vulnerable, clean := module("os.Getwd()"), module("os.Hostname()")

	if code, out := runVulncheck(t, tool, vulnerable, "VULNDB=file://"+db); code != 1 || !strings.Contains(out, "Example traces found") {
		t.Errorf("a finding: exit code %d\n%s", code, out)
	}
	if code, out := runVulncheck(t, tool, clean, "VULNDB=file://"+db); code != 0 || !strings.Contains(out, "No vulnerabilities found") {
		t.Errorf("no finding: exit code %d\n%s", code, out)
	}
	// The usual database behind a proxy that is not there.
	if code, out := runVulncheck(t, tool, vulnerable, "HTTPS_PROXY=http://127.0.0.1:1"); code != 0 || !strings.Contains(out, "NOT CHECKED") {
		t.Errorf("no database: exit code %d\n%s", code, out)
	}
}
