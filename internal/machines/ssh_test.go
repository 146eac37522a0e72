package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
)

// TestSSHAlias goes by what the user's own configuration says of a host.
func TestSSHAlias(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh here to read the configuration")
	}
	f := &folder{dir: t.TempDir(), state: State{ID: "r1"}}
	l := fleet.Lab{Provider: plan.ProviderHosts, Machines: []fleet.Machine{
		{Name: "app", Role: plan.App, SSHHost: "app", Address: "10.0.0.1"},
		{Name: "db", Role: plan.DB, SSHHost: "mydb", SSHPort: 2222, SSHUser: "me", Address: "10.0.0.2"},
	}}
	if err := f.writeSSHConfig(l, ""); err != nil {
		t.Fatal(err)
	}
	// ssh takes the home folder from the system, so that the test's stands in for
	// it by its path.
	own := filepath.Join(t.TempDir(), "config")
	if err := writeFile(own, []byte("Host app\n  HostName 192.0.2.1\n  User bob\n  Port 2022\n  ProxyJump gate\nHost mydb\n  HostName 192.0.2.2\n  User bob\n  Port 2022\n")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.sshConfig())
	if err != nil || !strings.Contains(string(text), "Include ~/.ssh/config") {
		t.Fatalf("%v:\n%s", err, text)
	}
	if err := writeFile(f.sshConfig(), []byte(strings.Replace(string(text), "~/.ssh/config", own, 1))); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"hostname 192.0.2.1|user bob|port 2022|proxyjump gate", "hostname 192.0.2.2|user me|port 2222"} {
		out, err := exec.Command("ssh", append([]string{"-F", f.sshConfig(), "-G"}, l.Machines[i].SSHArgs()...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, w := range strings.Split(want, "|") {
			if !strings.Contains("\n"+string(out), "\n"+w+"\n") {
				t.Errorf("%s: ssh does not say %q:\n%s", l.Machines[i].Name, w, out)
			}
		}
	}
}
