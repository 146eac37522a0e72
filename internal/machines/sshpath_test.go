package machines

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// sshServer lets in whoever has the key and answers every command with what it
// was.
func sshServer(t *testing.T, key ssh.PublicKey) (port int) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(key.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				conn, channels, requests, err := ssh.NewServerConn(c, config)
				if err != nil {
					return
				}
				defer conn.Close()
				go ssh.DiscardRequests(requests)
				for nc := range channels {
					ch, reqs, err := nc.Accept()
					if err != nil {
						return
					}
					for r := range reqs {
						// A client that has gone fails the test by what it says.
						if r.WantReply {
							_ = r.Reply(r.Type == "exec", nil)
						}
						if r.Type == "exec" {
							_, _ = ch.Write([]byte("in\n"))
							_, _ = ch.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
							ch.Close()
						}
					}
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// TestOddFolders logs in with what is written for folders whose names mean
// something to ssh, and looks for the host's key where it belongs.
func TestOddFolders(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh here")
	}
	for _, odd := range []string{"plain", "feature%2Flogin", "100%", "%h %%", "two  blanks", " first and last ", `qu"ote`, "apo'strophe", `back\slash`, `back\\`, "$HOME", "$(id)", "tab\there", "Grüße", "#hash", "~", "a=b,c"} {
		f := &folder{dir: filepath.Join(t.TempDir(), odd), state: State{ID: "r1"}}
		public, err := f.openKey()
		if err != nil {
			t.Fatal(err)
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(public))
		if err != nil {
			t.Fatal(err)
		}
		l := fleet.Lab{Provider: plan.ProviderAWS, Machines: []fleet.Machine{{Name: "app", Role: plan.App, SSHHost: "127.0.0.1", SSHPort: sshServer(t, key), SSHUser: "me"}}}
		if err := f.writeSSHConfig(l, filepath.Join(f.dir, sshDir, keyFile)); err != nil {
			t.Fatal(err)
		}
		if err := f.keptHostKeys(l); err == nil {
			t.Errorf("%q: a key is kept before the first contact", odd)
		}
		out, err := exec.Command("ssh", "-F", f.sshConfig(), "app", "id").CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "in") {
			t.Errorf("%q: %v\n%s", odd, err, out)
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.dir, sshDir, knownFile))
		if err != nil || !strings.HasPrefix(string(text), "[127.0.0.1]:"+strconv.Itoa(l.Machines[0].SSHPort)+" ssh-ed25519 ") {
			t.Errorf("%q: %v, known hosts:\n%s", odd, err, text)
		}
		if err := f.keptHostKeys(l); err != nil {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

// TestImpossibleFolders are refused before there are machines.
func TestImpossibleFolders(t *testing.T) {
	for _, odd := range []string{"${HOME}", "a${b", "two\nlines"} {
		results := filepath.Join(t.TempDir(), odd)
		_, err := create(results, State{ID: "r1"})
		if !fail.IsInput(err) || !strings.Contains(said.Err(err), "choose another folder") || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%q: %v", odd, err)
		}
		if _, err := os.Stat(results); err == nil {
			t.Errorf("%q: something was made", odd)
		}
	}
}
