//go:build integration

//integration:apart

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/machines"
	"github.com/percore/percore/internal/machines/terraform"
	"github.com/percore/percore/internal/testkit/mototest"
)

// awsRun is the beginning of a cloud run's command line against a server that
// plays AWS. Its profile has no placement group, which that server only half
// knows.
func awsRun(t *testing.T, args ...string) []string {
	t.Helper()
	text, err := os.ReadFile("../../profiles/aws-graviton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profile := write(t, "aws.yaml", string(text)+"  placement_group: false\n")
	return append([]string{"cloud", "up", "--profile", profile, "--preset", "quick", "--ssh-from", "203.0.113.7/32"}, args...)
}

// TestCloudRefusesBeforeAnythingIsMade goes to the point where a run would be
// paid for and is refused there.
func TestCloudRefusesBeforeAnythingIsMade(t *testing.T) {
	server := mototest.Start(t, mototest.VCPUs(16))
	server.Setenv(t)
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"too dear", awsRun(t, "--max-cost", "0.01", "--yes"), []string{"c8g.xlarge", "an hour", "the run would cost about $", "it may cost $0.01", "raise --max-cost"}},
		{"quota", []string{"cloud", "up", "--profile", "aws-x86", "--ssh-from", "203.0.113.7/32", "--yes"}, []string{"24 vCPUs", "allows 16"}},
		{"longer than the machines live", append(awsRun(t, "--yes"), "--preset", write(t, "long.yaml", strings.Replace(shortPreset, "repetitions: 3", "repetitions: 900", 1))), []string{"shut themselves down after 4h00m"}},
		{"open to all", append(awsRun(t, "--yes"), "--ssh-from", "0.0.0.0/0"), []string{"0.0.0.0/0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := t.TempDir()
			out := percore(t, results, tt.args...).run(t, 2)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("does not say %q:\n%s", want, out)
				}
			}
			if got := server.Tagged("percore", "1"); len(got) > 0 {
				t.Errorf("something was made: %v", got)
			}
			if out := percore(t, results, "cloud", "sweep", "--region", server.Region).run(t, 0); !strings.Contains(out, "nothing of percore's") {
				t.Errorf("sweep:\n%s", out)
			}
		})
	}
}

// rootWith is a project folder like this one in which infra/aws has one more
// file: older providers take the address of a service from there alone.
func rootWith(t *testing.T, override string) string {
	t.Helper()
	root := t.TempDir()
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"candidates", "profiles", "ansible"} {
		if err := os.Symlink(filepath.Join(here, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	module := filepath.Join(root, "infra", "aws")
	if err := os.CopyFS(module, os.DirFS(filepath.Join(here, "infra", "aws"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "endpoints_override.tf"), []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestCloudUpAndDown makes the machines and destroys them, with a provider.
func TestCloudUpAndDown(t *testing.T) {
	if os.Getenv(terraform.ProviderDir) == "" {
		t.Skipf("%s is not set: without an AWS provider no machines are planned, made and destroyed", terraform.ProviderDir)
	}
	server := mototest.Start(t)
	server.Setenv(t)
	results, root := t.TempDir(), rootWith(t, fmt.Sprintf("provider \"aws\" {\n  endpoints {\n    ec2 = %[1]q\n    ssm = %[1]q\n    sts = %[1]q\n  }\n}\n", server.URL))
	percore := func(t *testing.T, results string, args ...string) *command {
		return percore(t, results, append([]string{"--root", root}, args...)...)
	}

	// Nobody is there to confirm, and --yes was not given.
	out := percore(t, results, awsRun(t)...).run(t, 2)
	for _, want := range []string{"account ", "an hour", "for preset quick", "will be created", "add --yes"} {
		if !strings.Contains(out, want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
	if got := server.Tagged("percore", "1"); len(got) > 0 {
		t.Fatalf("something was made without a yes: %v", got)
	}

	if left, err := os.ReadDir(results); err != nil || len(left) > 0 {
		t.Errorf("a run of which nothing was made has left %v, %v", left, err)
	}
	percore(t, results, awsRun(t, "--yes")...).run(t, 0)
	all, damaged := machines.List(results)
	if len(damaged) > 0 || len(all) != 1 || !all[0].Live() {
		t.Fatalf("runs %+v, %v", all, damaged)
	}
	id := all[0].ID
	// The server forgets some of what it was told, so there may be changes.
	if out := percore(t, results, "cloud", "up", "--resume", id).run(t, 0); !strings.Contains(out, "as it should be") && !strings.Contains(out, "Plan: 0 to add") {
		t.Errorf("a second up:\n%s", out)
	}
	if got := server.Tagged("percore:run", id); got["instance"] != 3 {
		t.Errorf("made %v", got)
	}
	key, err := os.Stat(filepath.Join(results, id, "cloud", "ssh", "id_ed25519"))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the run's key: %v, %v", key, err)
	}
	status := percore(t, results, "cloud", "status", id).run(t, 0)
	for _, want := range []string{id, "prepare", "3, 3 running", "c8gn.xlarge", "expires"} {
		if !strings.Contains(strings.ToLower(status), want) {
			t.Errorf("status does not say %q:\n%s", want, status)
		}
	}
	if out := percore(t, results, "cloud", "sweep", "--region", server.Region, "--list").run(t, 0); !strings.Contains(out, id) || !strings.Contains(out, "vpc") {
		t.Errorf("sweep --list:\n%s", out)
	}
	if out := percore(t, results, "cloud", "sweep", "--region", server.Region).run(t, 2); !strings.Contains(out, "--yes") {
		t.Errorf("sweep without a yes:\n%s", out)
	}
	down := percore(t, results, "cloud", "down", id).run(t, 0)
	if !strings.Contains(down, "nothing is left of run "+id) {
		t.Errorf("down:\n%s", down)
	}
	// The server keeps the tags of what is gone, so it is asked for the things.
	for _, action := range []string{"DescribeVpcs", "DescribeSubnets", "DescribeVolumes", "DescribeKeyPairs", "DescribeSecurityGroups"} {
		if text := ask(t, server, action); strings.Contains(text, id) {
			t.Errorf("%s still shows the run after\n%s", action, down)
		}
	}
	if text := ask(t, server, "DescribeInstances"); strings.Count(text, "<name>terminated</name>") != 3 {
		t.Errorf("instances after the end: %s", text)
	}
	if out := percore(t, results, "cloud", "sweep", "--region", server.Region, "--list").run(t, 0); !strings.Contains(out, "nothing of percore's") {
		t.Errorf("sweep --list at the end:\n%s", out)
	}
	percore(t, results, "cloud", "down", id).run(t, 0)
	if out := percore(t, results, "cloud", "up", "--resume", id, "--yes").run(t, 2); !strings.Contains(out, "start a new run") {
		t.Errorf("up after down:\n%s", out)
	}
}

// ask calls EC2 past everything that percore uses for it.
func ask(t *testing.T, server *mototest.Server, action string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("Action="+action+"&Version=2016-11-15"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+server.Region+"/ec2/aws4_request, SignedHeaders=host, Signature=none")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", action, res.Status, err, text)
	}
	return string(text)
}
