// Package infra tests the modules that make, or take, the machines of a run.
package infra

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/percore/percore/internal/testkit/iampolicy"
)

// modules are the folders here that hold a module.
func modules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/main.tf")
	if err != nil || len(files) < 2 {
		t.Fatalf("modules %q, %v", files, err)
	}
	var dirs []string
	for _, f := range files {
		dirs = append(dirs, filepath.Dir(f))
	}
	return dirs
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var declared = regexp.MustCompile(`(?m)^(variable|output) "(\w+)"`)

// Each module says what it takes, and gives the one output.
func TestDocumented(t *testing.T) {
	for _, dir := range modules(t) {
		readme := read(t, filepath.Join(dir, "README.md"))
		vars := declared.FindAllStringSubmatch(read(t, filepath.Join(dir, "variables.tf")), -1)
		if len(vars) == 0 {
			t.Errorf("%s has no variables", dir)
		}
		for _, v := range vars {
			if !strings.Contains(readme, "| `"+v[2]+"` |") {
				t.Errorf("%s/README.md does not say what %s is", dir, v[2])
			}
		}
		if out := declared.FindAllStringSubmatch(read(t, filepath.Join(dir, "outputs.tf")), -1); len(out) != 1 || out[0][2] != "lab" {
			t.Errorf("%s has the outputs %q, and must have lab", dir, out)
		}
	}
}

var tagBlock = regexp.MustCompile(`(?ms)^resource "aws_ec2_tag" "(\w+)" \{\n(.*?)^\}`)

// The policy lets nobody take a tag from what has lost the tag percore, so that
// this one goes last: what depends on it is destroyed before it.
func TestTagsGoInOrder(t *testing.T) {
	policy, err := iampolicy.Parse([]byte(read(t, "../docs/iam-policy.json")))
	if err != nil {
		t.Fatal(err)
	}
	mark := regexp.MustCompile(`(?m)^  key\s+= "percore"$`)
	onMark := regexp.MustCompile(`(?m)^  resource_id\s+= aws_ec2_tag\.mark\[`)
	marks, others := 0, 0
	for _, m := range tagBlock.FindAllStringSubmatch(read(t, "aws/main.tf"), -1) {
		switch name, body := m[1], m[2]; {
		case mark.MatchString(body):
			if marks++; name != "mark" {
				t.Errorf("aws_ec2_tag.%s gives the tag percore; the others depend on aws_ec2_tag.mark", name)
			}
		case !onMark.MatchString(body):
			t.Errorf("aws_ec2_tag.%s does not depend on aws_ec2_tag.mark, so that the tag percore may be gone before it", name)
		case strings.Contains(body, "keys(local.tags)") && !strings.Contains(body, `setsubtract(keys(local.tags), ["percore"])`):
			t.Errorf("aws_ec2_tag.%s gives the tag percore together with others", name)
		default:
			others++
		}
	}
	if marks != 1 || others == 0 {
		t.Errorf("%d resources give the tag percore and %d others", marks, others)
	}
	if !policy.Allows("ec2:DeleteTags") {
		t.Error("docs/iam-policy.json does not allow ec2:DeleteTags")
	}
}

// What a machine is told at its first boot ends it at its expiry.
func TestUserData(t *testing.T) {
	template := read(t, "aws/user-data.yaml.tftpl")
	if !strings.HasPrefix(template, "#cloud-config\n") {
		t.Error("cloud-init knows it by its first line")
	}
	boot := func(calendar string) map[string]string {
		t.Helper()
		text := strings.ReplaceAll(template, "${calendar}", calendar)
		if strings.Contains(text, "${") {
			t.Error("it wants more than the time")
		}
		var data struct {
			WriteFiles []struct{ Path, Permissions, Content string } `yaml:"write_files"`
			RunCmd     []string                                      `yaml:"runcmd"`
			SSHPwAuth  *bool                                         `yaml:"ssh_pwauth"`
		}
		if err := yaml.Unmarshal([]byte(text), &data); err != nil {
			t.Fatal(err)
		}
		if data.SSHPwAuth == nil || *data.SSHPwAuth {
			t.Error("passwords are not refused")
		}
		if len(data.RunCmd) != 2 || data.RunCmd[1] != "systemctl enable --now percore-expiry.timer" {
			t.Errorf("commands %q", data.RunCmd)
		}
		files := map[string]string{}
		for _, f := range data.WriteFiles {
			files[f.Path] = f.Content
		}
		return files
	}
	timer := boot("2026-01-31 18:00:00 UTC")["/etc/systemd/system/percore-expiry.timer"]
	for _, line := range []string{"OnCalendar=2026-01-31 18:00:00 UTC", "Persistent=true", "WantedBy=timers.target"} {
		if !strings.Contains(timer, line+"\n") {
			t.Errorf("the timer lacks %s:\n%s", line, timer)
		}
	}
	if runtime.GOOS != "linux" {
		t.Skip("the machines, whose date command the script uses, run Linux")
	}
	const script = "/usr/local/sbin/percore-expiry"
	service := boot("2026-01-31 18:00:00 UTC")["/etc/systemd/system/percore-expiry.service"]
	if !strings.Contains(service, "ExecStart="+script+"\n") {
		t.Errorf("the service starts something else:\n%s", service)
	}
	for calendar, want := range map[string]string{"2001-01-31 18:00:00 UTC": "poweroff\n", "2999-01-31 18:00:00 UTC": ""} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", boot(calendar)[script])
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TZ=Pacific/Auckland"}
		if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("at %s it did %q, %v; want %q", calendar, got, err, want)
		}
	}
}
