package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights; root may write to everything, which would
// hide what is tested here.
const nobody = 65534

func TestWithEngine(t *testing.T) {
	stubs := map[string]string{
		"id":      `case $1 in -u) echo "${FAKE_UID:-1000}" ;; -g) echo 1000 ;; -G) echo "1000 27" ;; -un) echo ada ;; esac`,
		"stat":    `echo 998`,
		"docker":  `echo "${FAKE_CONTEXT:-default}"`,
		"setpriv": `echo "setpriv $*"`,
		"sudo":    `echo "sudo $*"; shift; exec "$@"`,
	}
	cases := []struct {
		name   string
		socket os.FileMode // 0: there is none
		env    []string
		lack   []string // stubs that are not there
		sudo   bool
	}{
		{name: "no engine on this machine"},
		{name: "a socket that this user may use", socket: 0o666},
		{name: "a socket of another group", socket: 0o600, sudo: true},
		{name: "root", socket: 0o600, env: []string{"FAKE_UID=0"}},
		{name: "an engine elsewhere", socket: 0o600, env: []string{"DOCKER_HOST=ssh://far"}},
		{name: "a context", socket: 0o600, env: []string{"FAKE_CONTEXT=far"}},
		{name: "a context by variable", socket: 0o600, env: []string{"DOCKER_CONTEXT=far"}},
		{name: "the default context by variable", socket: 0o600, env: []string{"DOCKER_CONTEXT=default"}, sudo: true},
		{name: "no sudo", socket: 0o600, lack: []string{"sudo"}},
	}
	script, err := os.ReadFile("with-engine")
	if err != nil {
		t.Fatal(err)
	}
	for shell, command := range shells(t) {
		for _, c := range cases {
			t.Run(shell+"/"+c.name, func(t *testing.T) {
				dir := t.TempDir()
				bin, sys := filepath.Join(dir, "bin"), filepath.Join(dir, "sys")
				for name, body := range stubs {
					if !slices.Contains(c.lack, name) {
						write(t, filepath.Join(bin, name), "#!"+command[0]+"\n"+body+"\n", 0o755)
					}
				}
				for _, name := range []string{"tr", "env", "sh"} {
					real, err := exec.LookPath(name)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
						t.Fatal(err)
					}
				}
				if c.socket != 0 {
					write(t, filepath.Join(sys, "var/run/docker.sock"), "", 0o600)
					if err := os.Chmod(filepath.Join(sys, "var/run/docker.sock"), c.socket); err != nil {
						t.Fatal(err)
					}
				}
				copied := filepath.Join(dir, "with-engine")
				write(t, copied, string(script), 0o755)
				cmd := exec.Command(command[0], append(slices.Clone(command[1:]), copied, "sh", "-c", `echo "ran $1 $2"`, "sh", "a b", "c")...)
				cmd.Dir = dir
				cmd.Env = append([]string{"PATH=" + bin, "PERCORE_SYSROOT=" + sys, "HOME=/home/ada", "GOFLAGS=-mod=mod x", "SECRET=x"}, c.env...)
				if os.Getuid() == 0 {
					for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
						if err := os.Chmod(d, 0o755); err != nil {
							t.Fatal(err)
						}
					}
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				}
				raw, err := cmd.CombinedOutput()
				out := string(raw)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if !c.sudo {
					if out != "ran a b c\n" {
						t.Errorf("not run as it is:\n%s", out)
					}
					return
				}
				for _, want := range []string{
					"ada is not in group docker", "sudo usermod -aG docker ada",
					"sudo -n setpriv --reuid 1000 --regid 1000 --groups 1000,27,998 env ",
					"HOME=/home/ada", "GOFLAGS=-mod=mod x", `sh -c echo "ran $1 $2" sh a b c`,
				} {
					if !strings.Contains(out, want) {
						t.Errorf("does not say %q:\n%s", want, out)
					}
				}
				if strings.Contains(out, "SECRET") {
					t.Errorf("passes on what nobody needs:\n%s", out)
				}
			})
		}
	}
}
