package machines

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
)

// Files below the folder of the run's machines.
const (
	sshDir     = "ssh"
	keyFile    = "id_ed25519"
	configFile = "config"
	knownFile  = "known_hosts"
)

// openKey returns the public half of the run's own key pair, in the format of
// authorized_keys, and makes the pair first where there is none. The private
// half never leaves the run's folder.
func (f *folder) openKey() (public string, err error) {
	dir := filepath.Join(f.dir, sshDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of the run's ssh key: %w", err)
	}
	path := filepath.Join(dir, keyFile)
	switch text, err := os.ReadFile(path); {
	case err == nil:
		signer, err := ssh.ParsePrivateKey(text)
		if err != nil {
			return "", fmt.Errorf("the run's ssh key %s cannot be read: %w", path, err)
		}
		return authorized(signer.PublicKey(), f.state.ID), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("reading the run's ssh key: %w", err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making the run's ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "percore "+f.state.ID)
	if err != nil {
		return "", fmt.Errorf("making the run's ssh key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return "", fmt.Errorf("making the run's ssh key: %w", err)
	}
	public = authorized(signer.PublicKey(), f.state.ID)
	if err := writeFile(path+".pub", []byte(public+"\n")); err != nil {
		return "", err
	}
	return public, writeFile(path, pem.EncodeToMemory(block))
}

func authorized(key ssh.PublicKey, id string) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " percore-" + id
}

// identity is the private key by which the machines are reached, or empty when
// ssh finds one by itself.
func (f *folder) identity(p plan.Profile) (string, error) {
	if p.Cloud.Provider == plan.ProviderAWS {
		return filepath.Join(f.dir, sshDir, keyFile), nil
	}
	path := p.Cloud.IdentityFile
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding the home folder for identity_file %s: %w", path, err)
		}
		path = filepath.Join(home, rest)
	}
	if path == "" {
		return "", nil
	}
	if _, err := os.Stat(path); err != nil {
		return "", fail.Input("cloud.identity_file %s cannot be read (%v)", path, err).Try("write the path of the private key for the machines")
	}
	return filepath.Abs(path)
}

// sshPath writes the path of a file for ssh's configuration: a percent sign
// begins a token there, and quotes and backslashes are escaped within quotes.
// What begins a variable cannot be written at all.
func sshPath(path string) (string, error) {
	for _, bad := range []string{"${", "\n", "\r", "\x00"} {
		if strings.Contains(path, bad) {
			return "", fail.Input("ssh cannot be given the path %q, which holds %q", path, bad).Try("choose another folder")
		}
	}
	return `"` + strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path) + `"`, nil
}

// keptHostKeys reports that ssh has logged in on machines and kept none of their
// keys: it says nothing when it cannot write the file, and would then take any
// machine for the right one.
func (f *folder) keptHostKeys(l fleet.Lab) error {
	name := filepath.Join(f.dir, sshDir, knownFile)
	kept := func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && len(strings.TrimSpace(string(text))) > 0
	}
	if kept(name) {
		return nil
	}
	if l.Provider == plan.ProviderHosts {
		// The user's own file may know them already.
		if home, err := os.UserHomeDir(); err == nil && kept(filepath.Join(home, ".ssh", knownFile)) {
			return nil
		}
	}
	return fmt.Errorf("ssh has logged in on the machines and kept no host key in %s, so that another machine could pass for one of them", name)
}

// SSHConfig is where the run's ssh configuration is.
func (f *folder) sshConfig() string { return filepath.Join(f.dir, sshDir, configFile) }

// writeSSHConfig writes the configuration through which everything reaches the
// machines: Ansible, the engines and the user. Host keys are learnt at the first
// contact and kept in the run's folder, apart from the user's own. The names of
// machines of the user's own are not in it: they could be those of other hosts
// in the user's configuration.
func (f *folder) writeSSHConfig(l fleet.Lab, identity string) error {
	dir := filepath.Join(f.dir, sshDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the run's ssh configuration: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, m := range l.Machines {
		if l.Provider == plan.ProviderHosts {
			break
		}
		line("Host %s", m.Name)
		line("  HostName %s", m.SSHHost)
		if m.SSHPort != 0 {
			line("  Port %d", m.SSHPort)
		}
		if m.SSHUser != "" {
			line("  User %s", m.SSHUser)
		}
	}
	line("Host *")
	line("  BatchMode yes")
	line("  ConnectTimeout 15")
	line("  ServerAliveInterval 5")
	line("  ServerAliveCountMax 6")
	line("  StrictHostKeyChecking accept-new")
	known, err := sshPath(filepath.Join(abs, knownFile))
	if err != nil {
		return err
	}
	if identity != "" {
		key, err := sshPath(identity)
		if err != nil {
			return err
		}
		line("  IdentityFile %s", key)
		line("  IdentitiesOnly yes")
	}
	if l.Provider == plan.ProviderHosts {
		// The user's machines may need what the user's own configuration says
		// of them. The first value of an option wins.
		line("  UserKnownHostsFile %s ~/.ssh/known_hosts", known)
		line("Match all")
		line("Include ~/.ssh/config")
		line("Match all")
		line("Include /etc/ssh/ssh_config")
	} else {
		line("  UserKnownHostsFile %s", known)
		line("  GlobalKnownHostsFile /dev/null")
	}
	return writeFile(f.sshConfig(), []byte(b.String()))
}
