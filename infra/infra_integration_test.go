//go:build integration

//integration:apart

package infra

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/machines/terraform"
)

// tools installs the linter and the scanner and returns their folder.
func tools(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("../scripts/infra-tools")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/infra-tools: %v\n%s", err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// unsafe is what every tool here must find something in.
const unsafe = `variable "unused" {}
resource "aws_instance" "host" {
  ami = "ami-1"
    instance_type = "t3.micro"
  root_block_device {
    encrypted = false
  }
}
resource "aws_security_group" "open" {
  ingress {
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = ["0.0.0.0/0"]
  }
}
`

// bad is a folder with an unsafe module.
func bad(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(unsafe), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFormat(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	b, err := terraform.Find(t.Context(), terraform.Options{CacheDir: filepath.Join(cache, "percore"), Install: true, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	check := func(dir string) (string, error) {
		out, err := exec.Command(b.Path, "fmt", "-check", "-recursive", "-list=true", dir).Output()
		return string(out), err
	}
	if out, err := check("."); err != nil {
		t.Errorf("not as terraform fmt writes it: %s%v", out, err)
	}
	if out, err := check(bad(t)); err == nil || !strings.Contains(out, "main.tf") {
		t.Errorf("what is not formatted was not found: %s%v", out, err)
	}
}

func TestLint(t *testing.T) {
	config, err := filepath.Abs(".tflint.hcl")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(tools(t), "tflint")
	lint := func(dir string) []string {
		t.Helper()
		cmd := exec.Command(program, "--chdir="+dir, "--config="+config, "--format=json")
		out, err := cmd.Output()
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2) {
			t.Fatalf("tflint in %s: %v\n%s", dir, err, out)
		}
		var report struct {
			Issues []struct {
				Rule    struct{ Name string }
				Message string
				Range   struct{ Filename string }
			}
			Errors []struct{ Message string }
		}
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatalf("tflint in %s: %v\n%s", dir, err, out)
		}
		var found []string
		for _, i := range report.Issues {
			found = append(found, i.Rule.Name+": "+i.Message+" ("+i.Range.Filename+")")
		}
		for _, e := range report.Errors {
			t.Errorf("tflint in %s: %s", dir, e.Message)
		}
		return found
	}
	for _, dir := range modules(t) {
		for _, found := range lint(dir) {
			t.Errorf("%s: %s", dir, found)
		}
	}
	if found := strings.Join(lint(bad(t)), "\n"); !strings.Contains(found, "terraform_unused_declarations") || !strings.Contains(found, "terraform_required_version") {
		t.Errorf("in a bad module it found only %s", found)
	}
}

// Every check passes or is left out with a reason. The scanner ranks findings
// only for its maker's customers, so that none is counted as low.
func TestScan(t *testing.T) {
	program := filepath.Join(tools(t), "checkov")
	given := filepath.Join(t.TempDir(), "given.tfvars")
	if err := os.WriteFile(given, []byte("ssh_cidrs = [\"203.0.113.7/32\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	type check struct {
		ID     string `json:"check_id"`
		Name   string `json:"check_name"`
		Where  string `json:"resource"`
		Result struct {
			Reason string `json:"suppress_comment"`
		} `json:"check_result"`
	}
	type results struct {
		Passed  []check  `json:"passed_checks"`
		Failed  []check  `json:"failed_checks"`
		Skipped []check  `json:"skipped_checks"`
		Errors  []string `json:"parsing_errors"`
	}
	scan := func(dir string) results {
		t.Helper()
		cmd := exec.Command(program, "-d", dir, "--framework", "terraform", "--var-file", given, "--skip-download", "--soft-fail", "--compact", "-o", "json")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("checkov in %s: %v\n%s", dir, err, out)
		}
		var report struct{ Results results }
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatalf("checkov in %s: %v\n%s", dir, err, out)
		}
		for _, e := range report.Results.Errors {
			t.Errorf("checkov in %s could not read %s", dir, e)
		}
		return report.Results
	}
	has := func(in []check, id string) bool {
		return slices.ContainsFunc(in, func(c check) bool { return c.ID == id })
	}
	aws := scan("aws")
	for _, c := range aws.Failed {
		t.Errorf("%s: %s (%s)", c.Where, c.Name, c.ID)
	}
	for _, c := range aws.Skipped {
		if len(strings.Fields(c.Result.Reason)) < 8 {
			t.Errorf("%s is left out for %s, and why is not said: %q", c.ID, c.Where, c.Result.Reason)
		}
		t.Logf("left out: %s (%s) for %s: %s", c.Name, c.ID, c.Where, c.Result.Reason)
	}
	broken := scan(bad(t))
	// Encrypted disks, the metadata service's second version, ssh from anywhere.
	for _, id := range []string{"CKV_AWS_8", "CKV_AWS_79", "CKV_AWS_24"} {
		if !has(aws.Passed, id) {
			t.Errorf("%s was not checked", id)
		}
		if !has(broken.Failed, id) {
			t.Errorf("%s was not found in an unsafe module", id)
		}
	}
}
