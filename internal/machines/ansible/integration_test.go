//go:build integration && linux

//integration:apart

package ansible

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/hoststest"
	"github.com/percore/percore/internal/testkit/said"
)

const playbook = "../../../ansible/prepare.yml"

var (
	installOnce sync.Once
	installed   [2]*Tool
	installErrs [2]error
	installSaid lines
	installDir  string
)

func TestMain(m *testing.M) {
	code := m.Run()
	if installDir != "" {
		os.RemoveAll(installDir)
	}
	os.Exit(code)
}

// tool is an Ansible that was installed for this test, by two at once.
func tool(t *testing.T) *Tool {
	t.Helper()
	withoutAnsible(t)
	installOnce.Do(func() {
		if installDir, installErrs[0] = os.MkdirTemp("", "percore-ansible-test-"); installErrs[0] != nil {
			return
		}
		var g sync.WaitGroup
		for i := range installed {
			g.Go(func() {
				installed[i], installErrs[i] = Find(context.Background(), Options{CacheDir: installDir, Install: true, Say: installSaid.say})
			})
		}
		g.Wait()
	})
	if err := errors.Join(installErrs[:]...); err != nil {
		t.Fatal(err)
	}
	return installed[0]
}

// withoutAnsible hides an ansible-playbook that this machine may have.
func withoutAnsible(t *testing.T) {
	t.Helper()
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "ansible-playbook")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	t.Setenv("PATH", strings.Join(dirs, string(filepath.ListSeparator)))
}

// lines collects what is said.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprintf(format, args...))
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

func TestInstall(t *testing.T) {
	first := tool(t)
	second := installed[1]
	if *first != *second || !strings.HasPrefix(first.Path, installDir) {
		t.Errorf("two that install at once get %+v and %+v", first, second)
	}
	if n := strings.Count(installSaid.String(), "installing ansible-core"); n != 1 {
		t.Errorf("it was installed %d times:\n%s", n, installSaid.String())
	}
	if left, _ := filepath.Glob(filepath.Join(installDir, "ansible", ".making-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	var heard lines
	again, err := Find(t.Context(), Options{CacheDir: installDir, Say: heard.say})
	if err != nil || *again != *first || heard.String() != "" {
		t.Errorf("what is there already: %+v, %v, said %q", again, err, heard.String())
	}
	// The Python that it was made with may go.
	python, err := os.Readlink(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(first.Path), os.Symlink("/nonexistent/python3", first.Path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), Options{CacheDir: installDir}); err == nil || !strings.Contains(said.Err(err), "NO_INSTALL") {
		t.Errorf("an environment without its Python: %v", err)
	}
	if err := errors.Join(os.Remove(first.Path), os.Symlink(python, first.Path)); err != nil {
		t.Fatal(err)
	}
}

func TestSyntax(t *testing.T) {
	cmd := tool(t).command(t.Context(), "playbook", "--syntax-check", "-i", "localhost,", playbook)
	cmd.Env = append(cmd.Env, "ANSIBLE_CONFIG=../../../ansible/ansible.cfg", "ANSIBLE_INVENTORY_ENABLED=ansible.builtin.host_list")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFactsModule runs the tests of the module that reads the facts, which need
// Ansible's libraries.
func TestFactsModule(t *testing.T) {
	cmd := exec.Command(tool(t).Path, "testdata/facts_test.py")
	cmd.Env = append(environment(os.Environ()), "PYTHONPATH=../../../ansible/library")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Ran 3 tests")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPrepare prepares three hosts that share this machine's file system, at
// once, as a run does.
func TestPrepare(t *testing.T) {
	ansible := tool(t)
	hoststest.Preparing(t)
	hosts := hoststest.Start(t, 3)
	dir := t.TempDir()
	config := filepath.Join(dir, "ssh config") // a blank, as in a folder of a user's
	var text strings.Builder
	for _, m := range hosts.Machines().Machines {
		fmt.Fprintf(&text, "Host %s %s\n  HostName %s\n  Port %d\n  User %s\n", m.Name, m.SSHHost, m.SSHHost, m.SSHPort, m.SSHUser)
	}
	fmt.Fprintf(&text, "Host *\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
		hosts.IdentityFile, hosts.KnownHosts)
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// None of the user's settings may matter.
	for name, value := range map[string]string{
		"ANSIBLE_CONFIG": "/nonexistent.cfg", "ANSIBLE_STDOUT_CALLBACK": "nonexistent", "ANSIBLE_CALLBACKS_ENABLED": "nonexistent",
		"ANSIBLE_VAULT_PASSWORD_FILE": "/nonexistent", "ANSIBLE_REMOTE_USER": "nobody", "ANSIBLE_BECOME": "true",
		"PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent", "LC_ALL": "C",
	} {
		t.Setenv(name, value)
	}
	expires := time.Now().Add(24 * time.Hour)
	var heard lines
	run := Run{Dir: filepath.Join(dir, "cloud"), Playbook: playbook, Machines: hosts.Machines(), SSHConfig: config, Expires: &expires, Say: heard.say, Wait: 30 * time.Second}

	first, err := ansible.Prepare(t.Context(), run)
	if err != nil {
		t.Fatalf("%v\n%s", err, readFile(t, filepath.Join(run.Dir, "ansible", "log")))
	}
	t.Logf("said:\n%s", heard.String())
	for _, m := range run.Machines.Machines {
		if first.Changed[m.Name] == 0 {
			t.Errorf("on %s nothing was changed", m.Name)
		}
		for _, want := range []string{
			"prepare: " + m.Name + ": Kernel limits are raised",
			"prepare: " + m.Name + ": no systemd runs here",
			"prepare: " + m.Name + ": without systemd nothing here shuts this machine down at " + expires.UTC().Format(time.RFC3339),
		} {
			if !strings.Contains(heard.String(), want) {
				t.Errorf("not said: %s", want)
			}
		}
		if got := onHost(t, run, m, "cat /proc/sys/net/core/somaxconn"); got != "65535" {
			t.Errorf("on %s somaxconn is %s", m.Name, got)
		}
		checkFacts(t, run, m, first.Facts[m.Name])
	}
	for _, name := range []string{"inventory.json", "log", "facts/app.json", "facts/db.json", "facts/load.json"} {
		info, err := os.Stat(filepath.Join(run.Dir, "ansible", name))
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}

	var out bytes.Buffer
	run.Out = &out
	second, err := ansible.Prepare(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range run.Machines.Machines {
		if n, ok := second.Changed[m.Name]; !ok || n != 0 {
			t.Errorf("a second preparation changed %d things on %s:\n%s", n, m.Name, out.String())
		}
	}
	if !strings.Contains(out.String(), "PLAY RECAP") {
		t.Errorf("what Ansible prints did not come through:\n%s", out.String())
	}
	run.Out = nil

	// From here on one host is enough: with no engine, with nobody to stop it,
	// and with its plug out.
	db, _ := run.Machines.Named("db")
	run.Machines.Machines = []fleet.Machine{db}
	if err := hosts.Named("db").StopDaemon(); err != nil {
		t.Fatal(err)
	}
	_, err = ansible.Prepare(t.Context(), run)
	log := filepath.Join(run.Dir, "ansible", "log")
	if want := `preparing db: the task "Docker Engine answers the user" failed: no Docker Engine answers root here (`; err == nil || !strings.HasPrefix(said.Err(err), want) || !strings.HasSuffix(said.Err(err), "; see "+log) {
		t.Errorf("without an engine: %v", err)
	}
	if _, err := os.Stat(filepath.Join(run.Dir, "ansible", "facts", "db.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("facts of an earlier preparation are still there: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run.Out = writer(func(p []byte) {
		if bytes.Contains(p, []byte("Host is described")) {
			cancel()
		}
	})
	if _, err := ansible.Prepare(ctx, run); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	run.Out = nil
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		left := processes(t, run.Dir)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("still there after it was cancelled: %q", left)
			break
		}
	}

	hosts.Named("db").LinkDown()
	run.Wait = 3 * time.Second
	if _, err := ansible.Prepare(t.Context(), run); err == nil || !strings.HasPrefix(said.Err(err), fmt.Sprintf("preparing db: it does not answer over ssh at %s port %d within 3s (", db.SSHHost, db.SSHPort)) {
		t.Errorf("a host whose plug is out: %v", err)
	}
}

// checkFacts compares what the playbook has found with what the machine says
// when it is asked otherwise.
func checkFacts(t *testing.T, run Run, m fleet.Machine, facts map[string]string) {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	info := readFile(t, "/proc/cpuinfo")
	want := map[string]string{
		"kernel":       unix.ByteSliceToString(u.Release[:]),
		"architecture": unix.ByteSliceToString(u.Machine[:]),
		"cpus":         fmt.Sprint(strings.Count("\n"+info, "\nprocessor\t:")),
		"swap":         "off",
		"nic":          "eth0",
		"nic_driver":   "veth",
		"clock_source": strings.TrimSpace(readFile(t, "/sys/devices/system/clocksource/clocksource0/current_clocksource")),
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			want["cpu_model"] = strings.TrimSpace(value)
		}
	}
	want["docker_version"] = onHost(t, run, m, "docker version --format '{{.Server.Version}}'")
	want["docker_root"] = onHost(t, run, m, "docker info --format '{{.DockerRootDir}}'")
	want["disk_filesystem"] = onHost(t, run, m, "stat -f -c %T "+want["docker_root"])
	if want["disk_filesystem"] == "ext2/ext3" { // stat cannot tell them apart
		want["disk_filesystem"] = "ext4"
	}
	for name, value := range want {
		if facts[name] != value {
			t.Errorf("%s: %s is %q, and should be %q", m.Name, name, facts[name], value)
		}
	}
	for name, value := range facts {
		if strings.TrimSpace(value) == "" || value == "None" {
			t.Errorf("%s: the fact %s is %q; what is not known must be absent", m.Name, name, value)
		}
	}
	for _, name := range []string{"distribution", "cgroup", "memory_bytes", "cpu_cores", "disk_bytes", "service_manager"} {
		if facts[name] == "" {
			t.Errorf("%s: the fact %s is missing", m.Name, name)
		}
	}
}

func TestUnknownHostKey(t *testing.T) {
	hosts := hoststest.Start(t, 1)
	m := hosts.Machines().Machines[0]
	config := filepath.Join(t.TempDir(), "config")
	known := filepath.Join(t.TempDir(), "known_hosts")
	key, err := os.ReadFile(hosts.IdentityFile + ".pub") // some key, but not the host's
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(known, []byte(m.SSHHost+" "+string(key)), 0o600),
		os.WriteFile(config, []byte("Host *\n  IdentityFile "+hosts.IdentityFile+"\n  UserKnownHostsFile "+known+"\n  StrictHostKeyChecking accept-new\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Dir: t.TempDir(), Playbook: playbook, SSHConfig: config,
		Machines: fleet.Lab{Provider: plan.ProviderHosts, Machines: []fleet.Machine{m}}}
	began := time.Now()
	if _, err := (&Tool{}).Prepare(t.Context(), run); err == nil || !strings.Contains(said.Err(err), "preparing app: "+m.SSHHost+" has another ssh host key") {
		t.Errorf("another host key: %v after %v", err, time.Since(began))
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func onHost(t *testing.T, run Run, m fleet.Machine, command string) string {
	t.Helper()
	out, err := exec.Command("ssh", append(run.sshArgs(m), command)...).Output()
	if err != nil {
		t.Fatalf("%s on %s: %v", command, m.Name, err)
	}
	return strings.TrimSpace(string(out))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// processes are the command lines that name a folder.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(dir)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}
