package ansible

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/testkit/said"
)

var lab = fleet.Lab{Machines: []fleet.Machine{
	{Name: "app", Role: "app", SSHHost: "192.0.2.1", SSHPort: 22, SSHUser: "admin", Address: "10.0.0.1"},
	{Name: "db", Role: "db", SSHHost: "2001:db8::2", SSHPort: 2222, Address: "10.0.0.2"},
}}

func TestInventory(t *testing.T) {
	expires := time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("", 3600))
	text, err := inventory(Run{
		Machines: lab, SSHConfig: "/results/it's {{ mine }}/config", Expires: &expires,
	}, map[string]string{"app": "admin", "db": "root"}, "/results/facts")
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"all": map[string]any{
		"vars": map[string]any{
			"percore_facts_dir": "/results/facts", "percore_expires": "2026-03-01T11:30:00Z",
			"ansible_ssh_common_args": map[string]any{"__ansible_unsafe": `-F '/results/it'"'"'s {{ mine }}/config'`},
		},
		"hosts": map[string]any{
			"app": map[string]any{"ansible_host": "192.0.2.1", "ansible_port": 22.0, "ansible_user": "admin", "percore_address": "10.0.0.1", "percore_role": "app", "percore_become": true},
			"db":  map[string]any{"ansible_host": "2001:db8::2", "ansible_port": 2222.0, "ansible_user": "root", "percore_address": "10.0.0.2", "percore_role": "db", "percore_become": false},
		},
	}}
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func open(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFollow(t *testing.T) {
	for _, tt := range []struct {
		file     string
		progress []string // those that begin so, in this order
		failures []string
		changed  map[string]int
	}{
		{"two-failed.jsonl",
			[]string{"app: no systemd runs here (", "load: no systemd runs here ("},
			[]string{
				"preparing db: it does not answer over ssh any more (Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1: Connection refused)",
				`preparing load: the task "Machine has time left" failed: the time of this machine was up at 2020-01-01T00:00:00Z: make new ones`,
			},
			map[string]int{"app": 0, "db": 0, "load": 0},
		},
		{"task-failed.jsonl",
			[]string{"app: trying again: Tried again: non-zero return code"},
			[]string{`preparing app: the task "Not there" failed: No package matching 'nonexistent-package-x' is available`},
			map[string]int{"app": 2},
		},
	} {
		t.Run(tt.file, func(t *testing.T) {
			var lines []string
			s := follow(open(t, tt.file), func(e event) {
				if line := e.progress(); line != "" {
					lines = append(lines, line)
				}
			})
			slices.Sort(lines)
			if !slices.EqualFunc(lines, tt.progress, strings.HasPrefix) {
				t.Errorf("progress %q", lines)
			}
			if got := s.sentences(); !slices.Equal(got, tt.failures) {
				t.Errorf("failures %q", got)
			}
			if len(s.stats) != len(tt.changed) {
				t.Errorf("stats %v", s.stats)
			}
			for host, n := range tt.changed {
				if c, ok := s.stats[host]; !ok || c.Changed != n {
					t.Errorf("%s: %+v", host, c)
				}
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		e    event
		want string
	}{
		{event{Event: "changed", Host: "app", Task: "Docker Engine is installed"}, "app: Docker Engine is installed"},
		{event{Event: "note", Host: "db", Message: "two\n lines"}, "db: two lines"},
		{event{Event: "ok", Host: "app", Task: "x"}, ""},
		{event{Event: "skipped", Host: "app", Task: "x"}, ""},
	} {
		if got := tt.e.progress(); got != tt.want {
			t.Errorf("%+v: %q", tt.e, got)
		}
	}
	if got := oneLine(strings.Repeat("é", 1000)); len([]rune(got)) != 602 {
		t.Errorf("%d characters of a long text", len([]rune(got)))
	}
}

func FuzzFollow(f *testing.F) {
	for _, name := range []string{"two-failed.jsonl", "task-failed.jsonl"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"event":"stats","hosts":null}` + "\n" + `{"event":"failed"}` + "\nnonsense"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := follow(bytes.NewReader(text), func(e event) {
			if strings.ContainsAny(e.progress(), "\n\r") {
				t.Errorf("more than one line: %q", e.progress())
			}
		})
		if sentences := s.sentences(); (len(sentences) == 0) != (len(s.failures) == 0) || len(sentences) > len(s.failures) {
			t.Errorf("%d failures give %d sentences", len(s.failures), len(sentences))
		}
	})
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct {
		out, text string
		want      version
	}{
		{"ansible-playbook [core 2.19.14]\n  config file = None\n", "2.19.14", version{2, 19}},
		{"ansible-playbook [core 2.16.3rc1] (detached 1234)\n", "2.16.3rc1", version{2, 16}},
		{"[WARNING]: something\nansible-playbook [core 2.20.0.dev0]\n", "2.20.0.dev0", version{2, 20}},
		{"ansible-playbook 2.9.27\n  config file = None\n", "", version{}},
		{"", "", version{}},
	} {
		text, v, err := parseVersion(tt.out)
		if text != tt.text || v != tt.want || (err == nil) != (tt.text != "") {
			t.Errorf("%q: %q, %v, %v", tt.out, text, v, err)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("ansible-playbook [core 2.19.14]\n  config file = None\n  python version = 3.11.7 (main)\n")
	f.Add("ansible-playbook 2.9.27\n")
	f.Fuzz(func(t *testing.T, out string) {
		text, v, err := parseVersion(out)
		if err == nil && !strings.HasPrefix(text, v.String()) {
			t.Errorf("%q is %v", text, v)
		}
	})
}

func TestReason(t *testing.T) {
	for out, want := range map[string]string{
		"":                               "it printed nothing",
		"\n":                             "it printed nothing",
		"one\ntwo\n":                     "two",
		"[ERROR]: YAML is bad\nOrigin\n": "YAML is bad",
		"ERROR! the playbook: x could not be found\n": "the playbook: x could not be found",
	} {
		var end tail
		fmt.Fprint(&end, strings.Repeat("-", 40<<10)+"\n")
		fmt.Fprint(&end, out)
		if strings.TrimSpace(out) == "" {
			end.text = []byte(out)
		}
		if got := end.reason(); got != want {
			t.Errorf("%q: %q", out, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "ANSIBLE_CONFIG=/x", "ANSIBLE_VAULT_PASSWORD_FILE=/x", "PYTHONPATH=/x", "LC_ALL=C", "LANG=de", "SSH_AUTH_SOCK=/agent", "HTTPS_PROXY=p"})
	for _, want := range []string{"PATH=/bin", "SSH_AUTH_SOCK=/agent", "HTTPS_PROXY=p"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, v := range got {
		if strings.HasPrefix(v, "ANSIBLE_") || strings.HasSuffix(v, "=/x") || v == "LC_ALL=C" || v == "LANG=de" {
			t.Errorf("%s is still there", v)
		}
	}
}

// program puts a program of that name alone on PATH, apart from sh.
func program(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestFind(t *testing.T) {
	pythonsBefore := pythons
	t.Cleanup(func() { pythons = pythonsBefore })
	pythons = []string{"python3"}
	const python = `echo 3 12 "$0"`
	for _, tt := range []struct {
		name, playbook, python string
		version, err           string
	}{
		{"good", `echo "ansible-playbook [core 2.18.1]"`, "", "2.18.1", ""},
		{"too old", `echo "ansible-playbook [core 2.15.9]"`, python, "", "it is ansible-core 2.15.9, and the playbook needs 2.16 or newer; install ansible-core"},
		{"broken", `echo "bad interpreter" >&2; exit 1`, python, "", "it does not start (bad interpreter); install ansible-core 2.16 or newer"},
		{"something else", `echo hello`, python, "", `it does not say that it is ansible-core 2.16 or newer ("hello")`},
		{"none", "", python, "", "there is no ansible-playbook on PATH; install ansible-core 2.16 or newer"},
		{"no python either", "", "", "", "there is no ansible-playbook on PATH: no Python is here; install Python 3.11 to 3.13"},
		{"old python", "", `echo 3 9 "$0"`, "", "only Python 3.9 is here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if tt.playbook != "" {
				program(t, dir, "ansible-playbook", tt.playbook)
			}
			if tt.python != "" {
				program(t, dir, "python3", tt.python)
			}
			tool, err := Find(t.Context(), Options{CacheDir: t.TempDir()})
			if tt.err == "" {
				if err != nil || tool.Version != tt.version || tool.Path != filepath.Join(dir, "ansible-playbook") {
					t.Errorf("%+v, %v", tool, err)
				}
				return
			}
			if err == nil || !strings.Contains(said.Err(err), tt.err) || !fail.IsInput(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestInstallFails installs with a Python that makes an environment without a
// pip, and with nothing that could install into it.
func TestInstallFails(t *testing.T) {
	pythonsBefore := pythons
	t.Cleanup(func() { pythons = pythonsBefore })
	pythons = []string{"python3"}
	dir, cache := t.TempDir(), t.TempDir()
	program(t, dir, "python3", `case "$*" in
-c*) echo 3 12 "$0" ;;
*--without-pip*) exit 0 ;;
*) echo "No module named ensurepip" >&2; exit 1 ;;
esac`)
	var lines []string
	_, err := Find(t.Context(), Options{CacheDir: cache, Install: true, Say: func(f string, a ...any) { lines = append(lines, fmt.Sprintf(f, a...)) }})
	if err == nil || !strings.Contains(said.Err(err), "has neither ensurepip nor pip, and there is no uv; install one of them (apt-get install python3-venv)") {
		t.Errorf("%v", err)
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "prepare: there is no ansible-playbook on PATH: installing ansible-core 2.19.14 into "+cache) {
		t.Errorf("said %q", lines)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "ansible", "*core*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "ansible", ".making-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReach(t *testing.T) {
	for _, tt := range []struct{ name, ssh, want string }{
		{"good", `echo admin`, ""},
		{"refused", `echo "ssh: connect to host x port 22: Connection refused" >&2; exit 255`, "preparing app: it does not answer over ssh at 192.0.2.1 port 22 within 1s (ssh: connect to host x port 22: Connection refused); preparing db: it does not answer over ssh at 2001:db8::2 port 2222 within 1s ("},
		{"denied", `echo "admin@x: Permission denied (publickey)." >&2; exit 255`, "preparing app: it does not answer over ssh at"},
		{"other key", `printf 'REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.\n' >&2; exit 255`, "preparing app: 192.0.2.1 has another ssh host key than the known_hosts file of this run says"},
		{"bad configuration", `echo "/x/config: terminating, 1 bad configuration options" >&2; exit 255`, "preparing app: ssh cannot be used: /x/config: terminating"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program(t, t.TempDir(), "ssh", tt.ssh)
			users, err := reach(t.Context(), Run{Machines: lab, Wait: time.Second}, func(string, ...any) {})
			switch {
			case tt.want == "" && (err != nil || users["app"] != "admin" || users["db"] != "admin"):
				t.Errorf("%v, %v", users, err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(said.Err(err), tt.want)):
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("no ssh", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := reach(t.Context(), Run{Machines: lab}, func(string, ...any) {}); err == nil || !strings.Contains(said.Err(err), "the program ssh is not here") {
			t.Errorf("%v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		program(t, t.TempDir(), "ssh", "exit 255")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := reach(ctx, Run{Machines: lab}, func(string, ...any) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// TestSocketFolder: Ansible's sockets have a short path wherever temporary files
// are kept.
func TestSocketFolder(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 20), "a%hb")
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	dir, err := socketFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// Ten characters for a host, as Ansible has them, and ssh's own seventeen.
	if n := len(dir) + len("/0123456789") + 17; n > 103 || strings.Contains(dir, "%") {
		t.Errorf("sockets in %s have %d bytes", dir, n)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestSSHArgs(t *testing.T) {
	r := Run{SSHConfig: "/c"}
	got := strings.Join(r.sshArgs(lab.Machines[0]), " ")
	if !strings.HasPrefix(got, "-F /c ") || !strings.HasSuffix(got, " -p 22 -- admin@192.0.2.1") {
		t.Error(got)
	}
}

func TestPrepareNeedsThePlaybook(t *testing.T) {
	_, err := (&Tool{}).Prepare(t.Context(), Run{Dir: t.TempDir(), Playbook: "/nonexistent/prepare.yml", Machines: lab})
	if err == nil || !fail.IsInput(err) || !strings.Contains(said.Err(err), "/nonexistent/prepare.yml") {
		t.Errorf("%v", err)
	}
}

func TestReadFacts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "app.json")
	for text, good := range map[string]bool{`{"kernel":"6.1"}`: true, `{}`: false, `{"cpus":2}`: false, ``: false} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readFacts(name); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
