package terraform

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

// program writes a program that says it is of that kind and version.
func program(t *testing.T, dir, name, says string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	script := "#!/bin/sh\nprintf '%s\\n' '" + says + "'\n" // a builtin: the PATH may be empty
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	const warning = "There are some problems with the CLI configuration:\n│ Warning: Unable to open CLI configuration file\n\n"
	for _, tt := range []struct {
		name      string
		terraform string // what the one on the PATH says; empty: there is none
		tofu      string
		installed string
		asked     string // what the one that TERRAFORM names says
		want      string // name and version, or a part of the error
		input     bool   // whether the error is one of the input
	}{
		{name: "terraform", terraform: "Terraform v1.9.0\non linux_amd64", tofu: "OpenTofu v1.9.4", want: "terraform 1.9.0"},
		{name: "with a warning before it", terraform: warning + "Terraform v1.13.3\non linux_amd64\n\nYour version is out of date", want: "terraform 1.13.3"},
		{name: "too old a terraform", terraform: "Terraform v1.5.7", tofu: "OpenTofu v1.9.4\non darwin_arm64", want: "tofu 1.9.4"},
		{name: "not terraform", terraform: "Usage: terraform", tofu: "OpenTofu v1.10.0-beta1", want: "tofu 1.10.0-beta1"},
		{name: "installed before", terraform: "Terraform v1.8.5", installed: "Terraform v" + Installed, want: "terraform " + Installed},
		{name: "asked for", terraform: "Terraform v1.12.0", asked: "OpenTofu v1.9.1", want: "tofu 1.9.1"},
		{name: "asked for too old a one", terraform: "Terraform v1.12.0", asked: "Terraform v1.8.5", want: "is version 1.8.5", input: true},
		{name: "asked for something else", terraform: "Terraform v1.12.0", asked: "hello", want: "does not say that it is Terraform", input: true},
		{name: "nothing", want: "neither terraform nor tofu", input: true},
		{name: "only old ones", terraform: "Terraform v1.8.5", tofu: "OpenTofu v1.8.1", want: "neither terraform nor tofu", input: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin, cache := t.TempDir(), t.TempDir()
			t.Setenv("PATH", bin)
			for name, says := range map[string]string{"terraform": tt.terraform, "tofu": tt.tofu} {
				if says != "" {
					program(t, bin, name, says)
				}
			}
			o := Options{CacheDir: cache}
			if tt.installed != "" {
				if err := os.MkdirAll(filepath.Dir(o.installed()), 0o755); err != nil {
					t.Fatal(err)
				}
				program(t, filepath.Dir(o.installed()), "terraform", tt.installed)
			}
			t.Setenv("TERRAFORM", "")
			if tt.asked != "" {
				t.Setenv("TERRAFORM", program(t, t.TempDir(), "mine", tt.asked))
			}
			b, err := Find(t.Context(), o)
			switch {
			case err == nil:
				if got := b.Name + " " + b.Version; got != tt.want || !filepath.IsAbs(b.Path) {
					t.Errorf("found %s at %s, want %s", got, b.Path, tt.want)
				}
			case !strings.Contains(said.Err(err), tt.want) || fail.IsInput(err) != tt.input:
				t.Errorf("got %v (input: %t), want %q", err, fail.IsInput(err), tt.want)
			}
		})
	}
	t.Setenv("TERRAFORM", filepath.Join(t.TempDir(), "gone"))
	if _, err := Find(t.Context(), Options{}); !fail.IsInput(err) || !strings.Contains(said.Err(err), "no such program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	config := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=/root", "TF_CLI_ARGS=-parallelism=1", "TF_CLI_ARGS_plan=-refresh=false", "TF_VAR_region=mars", "TF_LOG=TRACE",
		"TF_DATA_DIR=/elsewhere", "TF_WORKSPACE=other", "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE=" + config, "AWS_PROFILE=x", "TF_LOG_PATH="}
	env := environment(environ)
	want := []string{"AWS_PROFILE=x", "CHECKPOINT_DISABLE=1", "HOME=/root", "TF_CLI_CONFIG_FILE=" + config}
	if got := pairs(env); !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	if _, ok := environment([]string{"TF_CLI_CONFIG_FILE=" + config + "-gone"})["TF_CLI_CONFIG_FILE"]; ok {
		t.Error("a configuration that is not there was kept")
	}
	if got := ignored(environ); got != "TF_CLI_ARGS, TF_CLI_ARGS_plan, TF_DATA_DIR, TF_LOG, TF_VAR_region and TF_WORKSPACE are" {
		t.Errorf("ignored: %s", got)
	}
	if got := ignored([]string{"TF_LOG=DEBUG"}); got != "TF_LOG is" {
		t.Errorf("ignored: %s", got)
	}
	if got := ignored([]string{"TF_IN_AUTOMATION=1", "TF_LOG="}); got != "" {
		t.Errorf("ignored: %s", got)
	}
}

func TestRedact(t *testing.T) {
	s := secrets(map[string]string{"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "a-profile"})
	if got := redact("key wJalrXUtnFEMI of a-profile, wJalrXUtnFEMI", s); got != "key [redacted] of a-profile, [redacted]" {
		t.Error(got)
	}
}

const validation = `
Error: Invalid value for variable

  on variables.tf line 1:
   1: variable "run_id" {
    ├────────────────
    │ var.run_id is "a b"

run_id is "a b"; write letters, digits, dots, dashes and underscores, at most
100.

This was checked by the validation rule at variables.tf:6,3-13.
`

const boxed = `╷
│ Warning: Provider development overrides are in effect
│ 
│ The following provider development overrides are set.
╵
╷
│ Error: creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 403, api error UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: 4Wi8nYo1
│ 
│   with aws_instance.host["app"],
│   on main.tf line 150, in resource "aws_instance" "host":
│  150: resource "aws_instance" "host" {
│ 
╵
╷
│ Error: creating EC2 Instance: second
│ 
│   with aws_instance.host["db"],
│ 
╵
`

const lock = `Error: Error acquiring the state lock

Error message: resource temporarily unavailable
Lock Info:
  ID:        8d3ab4a8-9d0c-4d75-b3a6-8d7a22a1a7ad
  Path:      terraform.tfstate

Terraform acquires a state lock to protect the state from being written
by multiple users at the same time.
`

func TestDiagnoses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"validation", validation, `run_id is "a b"; write letters, digits, dots, dashes and underscores, at most 100`},
		{"frames", boxed, `aws_instance.host["app"]: creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 403, api error UnauthorizedOperation: You are not authorized to perform this operation (and one more error)`},
		{"no detail", "Error: Saved plan is stale\n", "Saved plan is stale"},
		{"detail", "\nError: Failed to query available provider packages\n\nCould not retrieve the list of available versions for provider hashicorp/aws:\ncould not connect.\n\nTo see more, run the following command:\n    terraform providers\n",
			"Failed to query available provider packages: Could not retrieve the list of available versions for provider hashicorp/aws: could not connect. To see more, run the following command: terraform providers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := parseDiagnoses(tt.text)
			if len(all) == 0 {
				t.Fatal("no error was found")
			}
			if got := summarise(all); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if all := parseDiagnoses("Warning: x\n\nsomething\n"); len(all) != 0 {
		t.Errorf("a warning is no error: %+v", all)
	}
	long := diagnosis{summary: strings.Repeat("ü", longest)}.sentence()
	if len(long) > longest+len("…") || !strings.HasSuffix(long, "ü…") {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

func TestExplain(t *testing.T) {
	m := &Module{bin: &Binary{Name: "tofu"}, dir: "/run", secrets: []string{"wJalrXUtnFEMI"}}
	for _, tt := range []struct {
		name, text, want string
		input            bool
	}{
		{"input", validation, `run_id is "a b"; write`, true},
		{"failure", boxed, `tofu apply: aws_instance.host["app"]: creating EC2 Instance`, false},
		{"failure names the log", boxed, "/run/terraform.log", false},
		{"lock", lock, "another tofu is still working in /run (the state is locked); wait", false},
		{"anything else", "exec:\n no such\tfile", "tofu apply in /run: exec: no such file", false},
		{"colours and warnings", "exit status 1\nThere are some problems with the CLI configuration:\n╷\n│ Warning: x\n╵\n\x1b[31mno \x1b[0mway", "tofu apply in /run: exit status 1 no way", false},
		{"damaged state", "exit status 1\n\x1b[31mFailed: Unsupported state file format: not JSON", "the state in /run is damaged; copy terraform.tfstate.backup", false},
		{"secret", "Error: the key wJalrXUtnFEMI is wrong\n", "the key [redacted] is wrong", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := m.explain("apply", errors.New(tt.text))
			if !strings.Contains(said.Err(err), tt.want) || fail.IsInput(err) != tt.input || strings.Contains(said.Err(err), "\n") {
				t.Errorf("got %v (input: %t), want %s", err, fail.IsInput(err), tt.want)
			}
		})
	}
}

func FuzzDiagnoses(f *testing.F) {
	for _, text := range []string{validation, boxed, lock} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := parseDiagnoses(text)
		if len(all) == 0 {
			return
		}
		if s := summarise(all); strings.Contains(s, "\n") {
			t.Errorf("%q has more than one line", s)
		}
	})
}

const state = `{"version":4,"terraform_version":"1.11.4","serial":3,"lineage":"x","outputs":{},"resources":[
 {"mode":"data","type":"aws_ssm_parameter","name":"debian","instances":[{"index_key":"arm64"}]},
 {"mode":"managed","type":"aws_vpc","name":"this","instances":[{"schema_version":1,"attributes":{"id":"vpc-1"}}]},
 {"mode":"managed","type":"aws_placement_group","name":"this","instances":[{"index_key":0}]},
 {"module":"module.net[\"a\"]","mode":"managed","type":"aws_instance","name":"host","instances":[{"index_key":"app"},{"index_key":"db"}]}]}`

func TestAddresses(t *testing.T) {
	got, err := addresses([]byte(state))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"aws_placement_group.this[0]", "aws_vpc.this", `module.net["a"].aws_instance.host["app"]`, `module.net["a"].aws_instance.host["db"]`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := addresses(nil); err != nil || got != nil {
		t.Errorf("no state: %v, %v", got, err)
	}
	for _, bad := range []string{`{"version":3}`, `{`, `{"version":4,"resources":[{"mode":"managed","type":"a","name":"b","instances":[{"index_key":true}]}]}`} {
		if _, err := addresses([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func FuzzAddresses(f *testing.F) {
	f.Add([]byte(state))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := addresses(text)
		if err == nil && !slices.IsSorted(all) {
			t.Errorf("%q is not sorted", all)
		}
	})
}

func TestProvider(t *testing.T) {
	if p, err := provider(""); p != nil || err != nil {
		t.Errorf("none: %v, %v", p, err)
	}
	one := filepath.Join(t.TempDir(), `[a] "b" ${c}`)
	if err := os.MkdirAll(one, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := provider(one); !fail.IsInput(err) {
		t.Errorf("an empty folder: %v", err)
	}
	program(t, one, "terraform-provider-aws_v5.32.0_x5", "")
	p, err := provider(one)
	if err != nil || p.install || !strings.Contains(p.config, `[a] \"b\" $${c}`) {
		t.Errorf("a program: %+v, %v", p, err)
	}
	mirror := t.TempDir()
	if err := os.MkdirAll(filepath.Join(mirror, "registry.example.com", "hashicorp", "aws"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := provider(mirror); err != nil || !p.install || !strings.Contains(p.config, "filesystem_mirror") {
		t.Errorf("a mirror: %+v, %v", p, err)
	}
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "providers")
	use := func(ok bool) {
		t.Helper()
		release, err := cache(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "provider"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		release(ok)
	}
	use(true)
	release, err := cache(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "provider")); err != nil {
		t.Errorf("what a whole init left is gone: %v", err)
	}
	release(false)
	if release, err = cache(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "provider")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what an init left that did not end is there: %v", err)
	}
	release(true)
}

func TestOpen(t *testing.T) {
	source, dir := t.TempDir(), filepath.Join(t.TempDir(), "cloud", "terraform")
	t.Setenv(ProviderDir, "")
	bin := &Binary{Path: program(t, t.TempDir(), "terraform", "Terraform v1.9.0"), Name: "terraform", Version: "1.9.0"}
	if _, err := Open(bin, dir, source, map[string]any{}, nil); err == nil || !strings.Contains(said.Err(err), "no .tf file") {
		t.Errorf("an empty module: %v", err)
	}
	if _, err := Open(bin, dir, source, nil, nil); err == nil {
		t.Error("a module was opened that was never put there")
	}
	for _, name := range []string{"main.tf", "old.tf", "user-data.yaml.tftpl", "README.md"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte("# "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open := func(vars any) {
		t.Helper()
		if _, err := Open(bin, dir, source, vars, nil); err != nil {
			t.Fatal(err)
		}
	}
	open(map[string]any{"run_id": "one"})
	if err := os.Remove(filepath.Join(source, "old.tf")); err != nil {
		t.Fatal(err)
	}
	open(nil)
	if names := list(t, dir); !slices.Equal(names, []string{"main.tf", "old.tf", variables, logFile, "user-data.yaml.tftpl"}) {
		t.Errorf("after opening it again: %q", names)
	}
	open(map[string]any{"run_id": "two"})
	if names := list(t, dir); !slices.Equal(names, []string{"main.tf", variables, logFile, "user-data.yaml.tftpl"}) {
		t.Errorf("after a file of the module went: %q", names)
	}
	text, err := os.ReadFile(filepath.Join(dir, variables))
	if err != nil {
		t.Fatal(err)
	}
	var vars map[string]string
	if err := json.Unmarshal(text, &vars); err != nil || vars["run_id"] != "two" {
		t.Errorf("variables %s: %v", text, err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, variables): 0o600, filepath.Join(dir, logFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWatcher(t *testing.T) {
	var out strings.Builder
	w := &watcher{log: filepath.Join(t.TempDir(), logFile), out: &out, secrets: []string{"wJalrXUtnFEMI"}}
	if w.interrupted(0) {
		t.Error("before anything ran it was interrupted")
	}
	if err := w.begin("apply"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("key wJalrXUtnFEMI\n")); err != nil {
		t.Fatal(err)
	}
	if w.interrupted(0) {
		t.Error("it was interrupted before it said so")
	}
	for range 2 {
		if _, err := w.Write([]byte("Interrupt received.\n")); err != nil {
			t.Fatal(err)
		}
	}
	if !w.interrupted(time.Minute) {
		t.Error("it said that it was interrupted, and nobody heard")
	}
	w.end()
	if out.String() != "key [redacted]\nInterrupt received.\nInterrupt received.\n" {
		t.Errorf("it passed on %q", out.String())
	}
	if log, err := os.ReadFile(w.log); err != nil || !strings.HasSuffix(string(log), " apply\n"+out.String()) {
		t.Errorf("log %q, %v", log, err)
	}
}

// TestUseAWSProfile hands a profile to the program in place of credentials.
func TestUseAWSProfile(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform")
	script := "#!/bin/sh\nenv >" + dir + "/env\necho '{\"terraform_version\":\"1.11.4\"}'\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := Open(&Binary{Path: path, Name: "terraform", Version: "1.11.4"}, filepath.Join(dir, "module"), "../../../infra/hosts", map[string]string{"run_id": "r1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.UseAWSProfile("lab"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.quiet.Version(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(env); !strings.Contains(text, "AWS_PROFILE=lab\n") || strings.Contains(text, "AWS_ACCESS_KEY_ID") || strings.Contains(text, "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("terraform was run with\n%s", text)
	}
}
