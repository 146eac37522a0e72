// Package scripts tests the project's shell scripts by running them with a PATH
// that holds nothing but fakes and a few plain utilities.
package scripts

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Utilities that the scripts may take from the real system.
var utilities = []string{
	"awk", "cat", "cp", "dirname", "env", "grep", "mkdir", "mktemp", "nohup", "rm", "sed",
	"setsid", "tail", "timeout", "touch", "tr", "true",
}

// with copies a set of files and adds pairs of a name and a text.
func with(base map[string]string, more ...string) map[string]string {
	all := maps.Clone(base)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// fakes are the commands whose calls are recorded. Every fake appends its name
// and arguments to $CALLS first. State is a folder of marker files.
var fakes = map[string]string{
	"uname": `echo "$FAKE_KERNEL"`,
	"id":    `case $1 in -u) echo "$FAKE_UID" ;; -un) echo "ada" ;; esac`,
	"sleep": `exec "$SLEEP" 0.1`,
	"sudo": `
[ -e "$STATE/sudo" ] || { echo "sudo: a password is required" >&2; exit 1; }
[ "$1" = -n ] && shift
FAKE_UID=0 exec "$@"`,
	"go": `
case "$*" in
"env GOVERSION") echo "go${FAKE_GO:-1.99.0}" ;;
"env GOTOOLCHAIN") echo "${GOTOOLCHAIN:-auto}" ;;
esac`,
	"cargo":            `echo "cargo ${FAKE_CARGO:-1.95.0} (f2d3ce0bd 2026-03-21)"`,
	"cc":               `:`,
	"mmdebstrap":       `:`,
	"newuidmap":        `:`,
	"shellcheck":       `:`,
	"ssh":              `:`,
	"ansible-playbook": `:`,
	"python3":          `[ "${FAKE_VENV:-yes}" = yes ] || [ -e "$STATE/venv" ]`,
	"chromium":         `:`,
	"xcode-select":     `[ -e "$STATE/clt" ]`,
	"apt-cache":        `[ -e "$STATE/docker-cli" ] && echo "docker-cli - command line interface" || :`,
	"systemctl":        `touch "$STATE/up"`,
	"service":          `touch "$STATE/up"`,
	"rc-service":       `touch "$STATE/up"`,
	"cgroupfs-mount":   `[ -e "$STATE/v2-only" ] || echo "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0" >>"$PERCORE_SYSROOT/proc/mounts"`,
	"mount":            `echo "$3 $4 $2 rw 0 0" >>"$PERCORE_SYSROOT/proc/mounts"`,
	"docker": `
case $1 in
version)
	[ -e "$STATE/up" ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
	[ ! -e "$STATE/denied" ] || { echo "permission denied while trying to connect" >&2; exit 1; }
	echo 20.10.24 ;;
context) echo "${FAKE_CONTEXT:-default}" ;;
search) [ -e "$STATE/registry" ] ;;
image) cat "$STATE/images" 2>/dev/null || : ;;
esac`,
	"dockerd": `
if [ -e "$STATE/broken" ]; then echo "failed to start daemon: no space left on device"; exit 1; fi
if [ -e "$PERCORE_SYSROOT/var/run/docker.pid" ]; then echo "pid file found"; exit 1; fi
touch "$STATE/up"`,
	"apt-get": `
case " $* " in
*" update "*) [ ! -e "$STATE/update-fails" ] || exit 100; exit 0 ;;
esac
[ ! -e "$STATE/install-fails" ] || { echo "E: Unable to locate package" >&2; exit 100; }
for p in "$@"; do
	case $p in
	docker.io) cp "$FAKES/dockerd" "$FAKES/docker" "$BIN" ;;
	openssh-client) cp "$FAKES/ssh" "$BIN" ;;
	python3-venv) cp "$FAKES/python3" "$BIN" ; touch "$STATE/venv" ;;
	gcc) cp "$FAKES/cc" "$BIN" ;;
	golang-go) cp "$FAKES/go" "$BIN" ;;
	uidmap) cp "$FAKES/newuidmap" "$BIN" ;;
	mmdebstrap | shellcheck | chromium | cgroupfs-mount) cp "$FAKES/$p" "$BIN" ;;
	esac
done
[ ! -e "$STATE/postinst-starts" ] || touch "$STATE/up"`,
}

const debian = "ID=debian\nVERSION_ID=13\n"

// machine is a pretended machine.
type machine struct {
	kernel  string            // Linux when empty
	uid     string            // 0 when empty
	have    []string          // commands that are there
	state   []string          // marker files, NAME or NAME=CONTENT: up, denied, sudo, registry, broken, …
	files   map[string]string // system files below PERCORE_SYSROOT
	env     []string
	purpose string
}

type result struct {
	code  int
	out   string   // standard output and error
	calls []string // of fakes that change something
	sys   string   // system root
}

func (r result) called(prefix string) bool {
	return slices.ContainsFunc(r.calls, func(c string) bool { return strings.HasPrefix(c, prefix) })
}

// shells are the interpreters under which every case runs: the system's sh, and
// where they are there bash in POSIX mode, which macOS has as sh, and busybox.
func shells(t *testing.T) map[string][]string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{"sh": {sh}}
	if bash, err := exec.LookPath("bash"); err == nil {
		all["bash"] = []string{bash, "--posix"}
	}
	if busybox, err := exec.LookPath("busybox"); err == nil {
		all["busybox"] = []string{busybox, "sh"}
	}
	return all
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// path returns the absolute path of a script. It opens the script, so that a
// cached result of the test is not taken for one of a changed script.
func path(t *testing.T, name string) string {
	t.Helper()
	if _, err := os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// lay prepares the folders of a machine and returns the environment of a script
// that runs on it.
func (m machine) lay(t *testing.T, shell []string) (env []string, calls, sys string) {
	t.Helper()
	dir := t.TempDir()
	bin, all, state := filepath.Join(dir, "bin"), filepath.Join(dir, "fakes"), filepath.Join(dir, "state")
	sys, calls = filepath.Join(dir, "sys"), filepath.Join(dir, "calls")
	for _, d := range []string{bin, all, state, filepath.Join(sys, "var/run"), filepath.Join(sys, "proc")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range fakes {
		text := "#!" + strings.Join(shell[:1], " ") + "\nprintf '%s\\n' \"" + name + " $*\" >>\"$CALLS\"\n" + body + "\n"
		write(t, filepath.Join(all, name), text, 0o755)
	}
	for _, name := range append([]string{"uname", "id", "sleep"}, m.have...) {
		text, err := os.ReadFile(filepath.Join(all, name))
		if err != nil {
			t.Fatalf("no fake of that name: %v", err)
		}
		write(t, filepath.Join(bin, name), string(text), 0o755)
	}
	for _, name := range append(slices.Clone(utilities), "sh") {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range m.state {
		name, text, _ := strings.Cut(s, "=")
		write(t, filepath.Join(state, name), text, 0o644)
	}
	for name, text := range m.files {
		write(t, filepath.Join(sys, name), text, 0o644)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	kernel, uid := m.kernel, m.uid
	if kernel == "" {
		kernel = "Linux"
	}
	if uid == "" {
		uid = "0"
	}
	return append([]string{
		"PATH=" + bin, "BIN=" + bin, "FAKES=" + all, "STATE=" + state, "CALLS=" + calls,
		"PERCORE_SYSROOT=" + sys, "PERCORE_ENGINE_WAIT=100", "SLEEP=" + sleep, "FAKE_KERNEL=" + kernel, "FAKE_UID=" + uid, "HOME=" + dir,
	}, m.env...), calls, sys
}

func (m machine) bootstrap(t *testing.T, shell []string) result {
	t.Helper()
	env, calls, sys := m.lay(t, shell)
	purpose := m.purpose
	if purpose == "" {
		purpose = "run"
	}
	cmd := exec.Command(shell[0], append(slices.Clone(shell[1:]), path(t, "bootstrap"), purpose)...)
	cmd.Env = env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), calls: strings.Split(strings.TrimSpace(string(text)), "\n"), sys: sys}
}

// A machine on which `make local-run` has worked before.
var ready = []string{"go", "docker", "dockerd", "cargo", "cc", "mmdebstrap", "newuidmap"}

// A fresh Debian machine with the tools that the README asks for.
var fresh = []string{"go", "cargo", "apt-get", "apt-cache"}

func TestBootstrap(t *testing.T) {
	release := map[string]string{"etc/os-release": debian, "proc/1/comm": "tini\n", "proc/mounts": mounted}
	systemd := map[string]string{"etc/os-release": debian, "run/systemd/system/x": "", "proc/1/comm": "systemd\n", "proc/mounts": mounted}
	cases := []struct {
		name    string
		machine machine
		code    int
		says    []string // in this order
		silent  bool     // prints nothing at all
		calls   []string // prefixes of calls that must have been made
		never   []string // prefixes of calls that must not
		gone    []string // system files that must be gone afterwards
	}{
		{
			name:    "an engine that answers",
			machine: machine{have: ready, state: []string{"up"}, files: release},
			silent:  true,
			never:   []string{"apt-get", "dockerd", "sudo", "docker search"},
		},
		{
			name:    "an engine that answers and a registry in reach need no Debian tools",
			machine: machine{have: []string{"go", "docker", "apt-get", "apt-cache"}, state: []string{"up", "registry"}, files: release},
			silent:  true,
			never:   []string{"apt-get", "dockerd"},
		},
		{
			name:    "built images need no Debian tools",
			machine: machine{have: []string{"go", "docker", "apt-get", "apt-cache"}, state: []string{"up", "images=0123456789ab\n"}, files: release},
			silent:  true,
			never:   []string{"apt-get", "docker search"},
		},
		{
			name:    "fresh Debian, root, no init system",
			machine: machine{have: fresh, files: release},
			says:    []string{"installing docker.io", "starting dockerd", "installing mmdebstrap debian-archive-keyring gcc"},
			calls:   []string{"apt-get -qq update", "apt-get -qq -y --no-install-recommends install docker.io ca-certificates", "dockerd"},
			never:   []string{"sudo", "systemctl", "service"},
		},
		{
			name:    "a release with the docker command in a package of its own",
			machine: machine{have: fresh, state: []string{"docker-cli"}, files: release},
			says:    []string{"installing docker.io"},
			calls:   []string{"apt-get -qq -y --no-install-recommends install docker.io ca-certificates docker-cli"},
		},
		{
			name:    "fresh Debian, root, systemd starts the engine",
			machine: machine{have: append([]string{"systemctl"}, fresh...), state: []string{"postinst-starts"}, files: systemd},
			says:    []string{"installing docker.io"},
			never:   []string{"dockerd", "systemctl"},
		},
		{
			name:    "fresh Debian, sudo, systemd",
			machine: machine{uid: "1000", have: append([]string{"systemctl", "sudo"}, fresh...), state: []string{"sudo"}, files: systemd},
			says:    []string{"installing docker.io", "systemctl start docker", "installing mmdebstrap debian-archive-keyring gcc libc6-dev uidmap"},
			calls:   []string{"sudo -n apt-get -qq update", "sudo -n env DEBIAN_FRONTEND=noninteractive", "sudo -n systemctl start docker"},
			never:   []string{"dockerd"},
		},
		{
			name:    "fresh Debian without root or sudo",
			machine: machine{uid: "1000", have: fresh, files: systemd},
			code:    2,
			says:    []string{"Docker Engine: needs root or sudo", "apt-get install docker.io"},
			never:   []string{"apt-get", "dockerd"},
		},
		{
			name:    "sudo that wants a password, and nobody to type it",
			machine: machine{uid: "1000", have: append([]string{"sudo"}, fresh...), files: systemd},
			code:    2,
			says:    []string{"Docker Engine: needs root or sudo"},
			never:   []string{"apt-get"},
		},
		{
			name:    "NO_INSTALL on a fresh Debian",
			machine: machine{have: fresh, files: release, env: []string{"NO_INSTALL=1"}},
			code:    2,
			says:    []string{"this is missing", "Docker Engine: not installed", "nothing was installed because NO_INSTALL is set"},
			never:   []string{"apt-get", "dockerd", "sudo"},
		},
		{
			name:    "NO_INSTALL does not start an engine either",
			machine: machine{have: ready, files: release, env: []string{"NO_INSTALL=1"}},
			code:    2,
			says:    []string{"installed but does not run"},
			never:   []string{"apt-get", "dockerd"},
		},
		{
			name:    "NO_INSTALL with an engine but without the Debian tools",
			machine: machine{have: []string{"go", "docker", "cargo", "apt-get"}, state: []string{"up"}, files: release, env: []string{"NO_INSTALL=1"}},
			code:    2,
			says:    []string{"the debian flavour: needs the packages mmdebstrap debian-archive-keyring gcc libc6-dev"},
			never:   []string{"apt-get"},
		},
		{
			name:    "NO_INSTALL=0 is not NO_INSTALL",
			machine: machine{have: fresh, files: release, env: []string{"NO_INSTALL=0"}},
			says:    []string{"installing docker.io"},
		},
		{
			name:    "macOS without anything",
			machine: machine{kernel: "Darwin", uid: "501", have: []string{"xcode-select"}},
			code:    2,
			says:    []string{"command line tools: xcode-select --install", "Go: install Go", "Docker Engine: install Docker Desktop"},
		},
		{
			name:    "macOS, Docker Desktop not started",
			machine: machine{kernel: "Darwin", uid: "501", have: []string{"xcode-select", "go", "docker"}, state: []string{"clt"}, env: []string{"FAKE_CONTEXT=desktop-linux"}},
			code:    2,
			says:    []string{"docker context desktop-linux does not answer", "open -a Docker"},
		},
		{
			name:    "macOS with everything",
			machine: machine{kernel: "Darwin", uid: "501", have: []string{"xcode-select", "go", "docker"}, state: []string{"clt", "up"}, env: []string{"FAKE_CONTEXT=desktop-linux"}},
			silent:  true,
		},
		{
			name:    "another Linux",
			machine: machine{have: []string{"go"}, files: map[string]string{"etc/os-release": "ID=fedora\n"}},
			code:    2,
			says:    []string{"Docker Engine: install it with your distribution's package manager (Fedora: dnf install moby-engine"},
		},
		{
			name:    "Ubuntu counts as Debian",
			machine: machine{have: append([]string{"systemctl"}, fresh...), files: with(systemd, "etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")},
			says:    []string{"installing docker.io"},
		},
		{
			name:    "DOCKER_HOST that does not answer is left alone",
			machine: machine{have: ready, files: release, env: []string{"DOCKER_HOST=tcp://127.0.0.1:1"}},
			code:    2,
			says:    []string{"DOCKER_HOST=tcp://127.0.0.1:1 does not answer"},
			never:   []string{"apt-get", "dockerd"},
		},
		{
			name:    "a context that does not answer is left alone",
			machine: machine{have: ready, files: release, env: []string{"FAKE_CONTEXT=far"}},
			code:    2,
			says:    []string{"docker context far does not answer"},
			never:   []string{"apt-get", "dockerd"},
		},
		{
			name:    "an installed engine that does not run, openrc",
			machine: machine{have: append([]string{"rc-service"}, ready...), files: with(release, "run/openrc/softlevel", "")},
			says:    []string{"rc-service docker start"},
			never:   []string{"dockerd"},
		},
		{
			name:    "an installed engine that does not run, System V init",
			machine: machine{have: append([]string{"service"}, ready...), files: with(release, "proc/1/comm", "init\n", "etc/init.d/docker", "")},
			says:    []string{"service docker start"},
			never:   []string{"dockerd"},
		},
		{
			name: "a service command without a running init system is not used",
			machine: machine{have: append([]string{"service", "systemctl"}, ready...), files: with(release,
				"etc/init.d/docker", "")},
			says:  []string{"starting dockerd, since no init system runs here"},
			calls: []string{"dockerd"},
			never: []string{"service", "systemctl"},
		},
		{
			name:    "a stale pid file whose number nobody has",
			machine: machine{have: ready, files: with(release, "var/run/docker.pid", "4242")},
			says:    []string{"removing the stale pid file", "process 4242 is no dockerd", "starting dockerd"},
			calls:   []string{"dockerd"},
			gone:    []string{"var/run/docker.pid"},
		},
		{
			name: "a stale pid file whose number another process has",
			machine: machine{have: ready, files: with(release, "var/run/docker.pid", "4242", "proc/4242/comm", "nginx\n",
				"var/run/docker/containerd/containerd.pid", "4243")},
			says:  []string{"removing the stale pid file", "process 4242 is no dockerd", "process 4243 is no containerd"},
			calls: []string{"dockerd"},
			gone:  []string{"var/run/docker.pid", "var/run/docker/containerd/containerd.pid"},
		},
		{
			name:    "a daemon that runs and does not answer is waited for, not replaced",
			machine: machine{have: ready, files: with(release, "var/run/docker.pid", "4242", "proc/4242/comm", "dockerd\n"), env: []string{"PERCORE_ENGINE_WAIT=3"}},
			code:    1,
			says:    []string{"dockerd runs but does not answer yet", "did not answer within 3 s"},
			never:   []string{"dockerd"},
		},
		{
			name: "a dead daemon that nobody has waited for",
			machine: machine{have: ready, files: with(release, "var/run/docker.pid", "4242", "proc/4242/comm", "dockerd\n",
				"proc/4242/status", "Name:\tdockerd\nState:\tZ (zombie)\n")},
			says:  []string{"removing the stale pid file", "starting dockerd"},
			calls: []string{"dockerd"},
			gone:  []string{"var/run/docker.pid"},
		},
		{
			name:    "a containerd socket that nobody listens to",
			machine: machine{have: ready, files: with(release, "run/containerd/containerd.sock", "")},
			says:    []string{"removing the stale socket"},
			gone:    []string{"run/containerd/containerd.sock"},
		},
		{
			name:    "a daemon that fails shows the end of its log",
			machine: machine{have: ready, state: []string{"broken"}, files: release},
			code:    1,
			says:    []string{"dockerd ended before it answered", "no space left on device"},
		},
		{
			name:    "control groups that are not mounted",
			machine: machine{have: append([]string{"apt-get", "apt-cache"}, ready...), files: with(release, "proc/mounts", "proc /proc proc rw 0 0\n")},
			says:    []string{"installing cgroupfs-mount", "mounting the control groups", "starting dockerd"},
			calls:   []string{"cgroupfs-mount"},
			never:   []string{"mount"},
		},
		{
			name: "a kernel that has only the second version of control groups",
			machine: machine{have: append([]string{"cgroupfs-mount", "mount"}, ready...), state: []string{"v2-only"},
				files: with(release, "proc/mounts", "proc /proc proc rw 0 0\n")},
			says:  []string{"mounting the control groups", "starting dockerd"},
			calls: []string{"mount -t cgroup2 cgroup2 /sys/fs/cgroup"},
		},
		{
			name:    "a package source that is down does not matter",
			machine: machine{have: fresh, state: []string{"update-fails"}, files: release},
			says:    []string{"apt-get update reported a problem", "starting dockerd"},
		},
		{
			name:    "a package that cannot be had",
			machine: machine{have: fresh, state: []string{"install-fails"}, files: release},
			code:    1,
			says:    []string{"E: Unable to locate package", "could not install docker.io"},
			never:   []string{"dockerd"},
		},
		{
			name:    "a user outside of group docker with sudo",
			machine: machine{uid: "1000", have: append([]string{"sudo"}, ready...), state: []string{"up", "denied", "sudo"}, files: release},
			silent:  true,
		},
		{
			name:    "a user outside of group docker without sudo",
			machine: machine{uid: "1000", have: ready, state: []string{"up", "denied"}, files: release},
			code:    2,
			says:    []string{"usermod -aG docker ada"},
		},
		{
			name:    "cargo that is too old for the debian flavour",
			machine: machine{have: ready, state: []string{"up"}, files: release, env: []string{"FAKE_CARGO=1.85.1"}},
			code:    2,
			says:    []string{"cargo 1.88 or newer (1.85.1 here", "rustup default stable"},
		},
		{
			name:    "the published flavour needs no cargo",
			machine: machine{have: []string{"go", "docker"}, state: []string{"up"}, files: release, env: []string{"FLAVOUR=published"}},
			silent:  true,
			never:   []string{"docker search"},
		},
		{
			name:    "a registry in reach does not excuse FLAVOUR=debian",
			machine: machine{have: []string{"go", "docker"}, state: []string{"up", "registry"}, files: release, env: []string{"FLAVOUR=debian"}},
			code:    2,
			says:    []string{"the debian flavour: needs the packages", "cargo 1.88 or newer (none here"},
		},
		{
			name:    "Go that can fetch its toolchain",
			machine: machine{have: ready, state: []string{"up"}, files: release, env: []string{"FAKE_GO=1.24.4"}},
			silent:  true,
		},
		{
			name:    "Go that may not fetch its toolchain",
			machine: machine{have: ready, state: []string{"up"}, files: release, env: []string{"FAKE_GO=1.24.4", "GOTOOLCHAIN=local"}},
			code:    2,
			says:    []string{"Go: go1.24.4 is too old"},
		},
		{
			name:    "Go that knows no toolchains",
			machine: machine{have: ready, state: []string{"up"}, files: release, env: []string{"FAKE_GO=1.19.8"}},
			code:    2,
			says:    []string{"Go: go1.19.8 is too old"},
		},
		{
			name:    "no Go on Debian",
			machine: machine{have: append([]string{"apt-get", "apt-cache"}, ready[1:]...), state: []string{"up"}, files: release},
			says:    []string{"installing golang-go"},
		},
		{
			name:    "what the tests need",
			machine: machine{have: append([]string{"apt-get", "apt-cache"}, ready...), state: []string{"up"}, files: release, purpose: "test"},
			says:    []string{"installing openssh-client python3 python3-venv", "installing shellcheck chromium fonts-dejavu-core openssh-server iproute2"},
		},
		{
			name:    "a cloud run needs ssh and Python and no engine",
			machine: machine{have: []string{"go", "apt-get", "apt-cache"}, files: release, purpose: "cloud"},
			says:    []string{"installing openssh-client python3 python3-venv"},
			never:   []string{"dockerd", "docker"},
		},
		{
			name:    "a Python without venv",
			machine: machine{have: []string{"go", "ssh", "python3", "apt-get", "apt-cache"}, files: release, purpose: "cloud", env: []string{"FAKE_VENV=no"}},
			says:    []string{"installing python3 python3-venv"},
		},
		{
			name:    "a cloud run where all is there",
			machine: machine{have: []string{"go", "ssh", "python3"}, files: release, purpose: "cloud"},
			silent:  true,
		},
		{
			name:    "an Ansible that is there needs no venv",
			machine: machine{have: []string{"go", "ssh", "ansible-playbook"}, files: release, purpose: "cloud"},
			silent:  true,
		},
		{
			name:    "a cloud run that may install nothing",
			machine: machine{have: []string{"go", "apt-get", "apt-cache"}, files: release, purpose: "cloud", env: []string{"NO_INSTALL=1"}},
			code:    2,
			says:    []string{"ssh: install the OpenSSH client", "Python: Ansible needs Python 3 with venv", "nothing was installed"},
			never:   []string{"apt-get"},
		},
		{
			name:    "a cloud run on a Mac",
			machine: machine{kernel: "Darwin", have: []string{"go", "ssh", "xcode-select"}, state: []string{"clt"}, purpose: "cloud"},
			code:    2,
			says:    []string{"brew install python"},
		},
		{
			name:    "a purpose that does not exist",
			machine: machine{have: ready, purpose: "deploy"},
			code:    2,
			says:    []string{`unknown purpose "deploy"`},
		},
		{
			name:    "a flavour that does not exist",
			machine: machine{have: ready, env: []string{"FLAVOUR=vanilla"}},
			code:    2,
			says:    []string{`unknown flavour "vanilla"`},
		},
	}
	for shell, command := range shells(t) {
		for _, c := range cases {
			t.Run(shell+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				r := c.machine.bootstrap(t, command)
				if r.code != c.code {
					t.Errorf("exit code %d, want %d", r.code, c.code)
				}
				if c.silent && r.out != "" {
					t.Errorf("prints something")
				}
				rest := r.out
				for _, want := range c.says {
					_, after, found := strings.Cut(rest, want)
					if !found {
						t.Errorf("does not say %q in its place", want)
						continue
					}
					rest = after
				}
				for _, want := range c.calls {
					if !r.called(want) {
						t.Errorf("never calls %q", want)
					}
				}
				for _, bad := range c.never {
					if r.called(bad) {
						t.Errorf("calls %q", bad)
					}
				}
				for _, name := range c.gone {
					if _, err := os.Stat(filepath.Join(r.sys, name)); err == nil {
						t.Errorf("%s is still there", name)
					}
				}
				if t.Failed() {
					t.Logf("output:\n%s\ncalls:\n%s", r.out, strings.Join(r.calls, "\n"))
				}
			})
		}
	}
}

const mounted = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"

// The second run on a machine that the first one has set up finds nothing to do.
func TestBootstrapIsIdempotent(t *testing.T) {
	for shell, command := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			m := machine{have: fresh, files: map[string]string{"etc/os-release": debian, "proc/1/comm": "tini\n", "proc/mounts": mounted}}
			env, calls, _ := m.lay(t, command)
			for i := range 2 {
				os.Remove(calls)
				cmd := exec.Command(command[0], append(slices.Clone(command[1:]), path(t, "bootstrap"))...)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("run %d: %v\n%s", i+1, err, out)
				}
				if i == 0 && !strings.Contains(string(out), "installing docker.io") {
					t.Errorf("the first run installs nothing:\n%s", out)
				}
				if i == 1 && len(out) > 0 {
					t.Errorf("the second run prints:\n%s", out)
				}
			}
		})
	}
}
