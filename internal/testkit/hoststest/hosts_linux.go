package hoststest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
)

// programs are those that Start needs, with the Debian package of each.
var programs = map[string]string{
	"ip": "iproute2", "nsenter": "util-linux", "sshd": "openssh-server", "ssh": "openssh-client",
	"ssh-keygen": "openssh-client", "iptables": "iptables", "containerd": "containerd", "dockerd": "docker.io", "docker": "docker.io",
}

// Host is one of the machines.
type Host struct {
	Name    string // app, db, load, load2, ...
	Address string // where the others, and this machine, reach it
	SSHPort int
	User    string
	Socket  string // of its engine, on this machine's file system

	lab        *Lab
	number     int // from 1
	namespace  string
	dir        string
	mu         sync.Mutex
	containerd *exec.Cmd
	dockerd    *exec.Cmd
	sshd       *exec.Cmd
}

// Lab is the machines of one test.
type Lab struct {
	Hosts []*Host
	// IdentityFile is a private key that every host accepts.
	IdentityFile string
	// KnownHosts is a file with the hosts' keys.
	KnownHosts string

	slot *slot
	t    testing.TB
}

// Start makes n machines, of which the first is named app, the second db and
// the others load, load2 and so on, and returns when their engines answer. They
// are removed when the test ends. What a test that was killed left behind is
// removed first. A test that cannot have them fails.
func Start(t testing.TB, n int) *Lab {
	t.Helper()
	if n < 1 || n > 9 {
		t.Fatalf("hoststest: %d hosts; there can be 1 to 9", n)
	}
	if os.Geteuid() != 0 {
		t.Fatal("hoststest: network namespaces need root")
	}
	for program, pkg := range programs {
		if _, err := find(program); err != nil {
			t.Fatalf("hoststest: the program %s is missing; install the package %s", program, pkg)
		}
	}
	s, err := takeSlot()
	if err != nil {
		t.Fatalf("hoststest: %v", err)
	}
	l := &Lab{slot: s, t: t, IdentityFile: filepath.Join(s.dir, "id_ed25519"), KnownHosts: filepath.Join(s.dir, "known_hosts")}
	holdStores()
	t.Cleanup(func() {
		if err := errors.Join(l.remove(), releaseStores()); err != nil {
			t.Errorf("hoststest: %v", err)
		}
	})
	began := time.Now()
	if err := l.start(n); err != nil {
		t.Fatalf("hoststest: %v", err)
	}
	t.Logf("hoststest: %d hosts on %s in %.1f s", n, s.subnet(0)+"/24", time.Since(began).Seconds())
	return l
}

func (l *Lab) start(n int) error {
	if err := l.slot.network(); err != nil {
		return err
	}
	if err := command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "percore test", "-f", l.IdentityFile); err != nil {
		return err
	}
	// sshd's monitor wants this folder, whose path is built in.
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		h := &Host{
			Name: "load", Address: l.slot.subnet(10 + i), SSHPort: 22, User: "root", lab: l, number: i,
			namespace: fmt.Sprintf("%sh%d", l.slot.prefix(), i), dir: filepath.Join(l.slot.dir, fmt.Sprintf("h%d", i)),
		}
		switch {
		case i == 1:
			h.Name = string(plan.App)
		case i == 2:
			h.Name, h.SSHPort = string(plan.DB), 2222 // one that is not the usual
		case i > 3:
			h.Name = plan.HostName(plan.Load, i-2)
		}
		h.Socket = filepath.Join(h.dir, "docker.sock")
		l.Hosts = append(l.Hosts, h)
	}
	var g errgroup.Group
	for _, h := range l.Hosts {
		g.Go(func() error {
			if err := h.start(); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var known bytes.Buffer
	for _, h := range l.Hosts {
		key, err := os.ReadFile(filepath.Join(h.dir, "ssh_host_key.pub"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&known, "[%s]:%d %s\n", h.Address, h.SSHPort, bytes.TrimSpace(key))
		if h.SSHPort == 22 {
			fmt.Fprintf(&known, "%s %s\n", h.Address, bytes.TrimSpace(key))
		}
	}
	return os.WriteFile(l.KnownHosts, known.Bytes(), 0o600)
}

// Machines is the lab as the infrastructure's output would name it.
func (l *Lab) Machines() fleet.Lab {
	out := fleet.Lab{RunID: "hoststest", Provider: plan.ProviderHosts}
	for _, h := range l.Hosts {
		role := plan.Load
		switch h.number {
		case 1:
			role = plan.App
		case 2:
			role = plan.DB
		}
		out.Machines = append(out.Machines, fleet.Machine{
			Name: h.Name, Role: role, SSHHost: h.Address, SSHPort: h.SSHPort, SSHUser: h.User, Address: h.Address,
		})
	}
	return out
}

// Named is the host of that name; a test that asks for another fails.
func (l *Lab) Named(name string) *Host {
	l.t.Helper()
	for _, h := range l.Hosts {
		if h.Name == name {
			return h
		}
	}
	l.t.Fatalf("hoststest: there is no host %s", name)
	return nil
}

// SSHOptions are the options with which ssh reaches the hosts.
func (l *Lab) SSHOptions() []string {
	return []string{
		"-F", "/dev/null", "-o", "IdentityFile=" + l.IdentityFile, "-o", "IdentitiesOnly=yes",
		"-o", "UserKnownHostsFile=" + l.KnownHosts, "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
	}
}

// Endpoint is the host's engine as a URL.
func (h *Host) Endpoint() string {
	return fleet.Machine{SSHHost: h.Address, SSHPort: h.SSHPort, SSHUser: h.User}.Engine()
}

// Connect reaches the host's engine over ssh, as a run does. The connection is
// given back when the test ends.
func (h *Host) Connect(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.Connect(t.Context(), engine.Options{Host: h.Endpoint(), SSHOptions: h.lab.SSHOptions()})
	if err != nil {
		t.Fatalf("hoststest: host %s: %v", h.Name, err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func (h *Host) start() error {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return err
	}
	if err := h.plug(); err != nil {
		return err
	}
	if err := h.startSSH(); err != nil {
		return err
	}
	return h.StartDaemon()
}

// plug gives the host its namespace and its wire to the switch.
func (h *Host) plug() error {
	port := h.port()
	for _, args := range [][]string{
		{"netns", "add", h.namespace},
		{"-n", h.namespace, "link", "set", "lo", "up"},
		{"-n", h.lab.slot.hub(), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", h.namespace},
		{"-n", h.lab.slot.hub(), "link", "set", port, "master", "br0", "up"},
		{"-n", h.namespace, "addr", "add", h.Address + "/24", "dev", "eth0"},
		{"-n", h.namespace, "link", "set", "eth0", "up"},
		{"-n", h.namespace, "route", "add", "default", "via", h.lab.slot.subnet(1)},
	} {
		if err := command("ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// port is the host's plug in the switch.
func (h *Host) port() string { return fmt.Sprintf("h%d", h.number) }

// LinkDown pulls the host's plug: nothing goes in or out, and nobody is told.
func (h *Host) LinkDown() {
	h.lab.t.Helper()
	if err := command("ip", "-n", h.lab.slot.hub(), "link", "set", h.port(), "down"); err != nil {
		h.lab.t.Errorf("hoststest: %v", err)
	}
}

// LinkUp puts the plug back.
func (h *Host) LinkUp() {
	h.lab.t.Helper()
	if err := command("ip", "-n", h.lab.slot.hub(), "link", "set", h.port(), "up"); err != nil {
		h.lab.t.Errorf("hoststest: %v", err)
	}
}

// startSSH starts the host's sshd, whose sessions find the host's engine and a
// home of the host's own.
func (h *Host) startSSH() error {
	key := filepath.Join(h.dir, "ssh_host_key")
	if err := command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", h.Name, "-f", key); err != nil {
		return err
	}
	// A home of its own: what this machine's user has in a start-up file of a shell
	// is none of the host's.
	home := filepath.Join(h.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf(`Port %d
ListenAddress %s
HostKey %s
PidFile %s
AuthorizedKeysFile %s.pub
StrictModes no
UsePAM no
UseDNS no
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 200
MaxSessions 200
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
SetEnv DOCKER_HOST=unix://%s HOME=%s
`, h.SSHPort, h.Address, key, filepath.Join(h.dir, "sshd.pid"), h.lab.IdentityFile, h.Socket, home)
	file := filepath.Join(h.dir, "sshd_config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	var err error
	if h.sshd, err = h.daemon("sshd", "-D", "-e", "-f", file); err != nil {
		return err
	}
	return h.until("sshd", h.sshd, func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.SSHPort)), time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// StartDaemon starts the host's Docker daemon and waits until it answers.
func (h *Host) StartDaemon() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dockerd != nil {
		return nil
	}
	address := filepath.Join(h.dir, "c.sock")
	config := filepath.Join(h.dir, "containerd.toml")
	// A containerd of its own: shims, and with them containers that use the
	// host's network, are born in the namespace of containerd.
	text := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n",
		filepath.Join(h.dir, "containerd"), filepath.Join(h.dir, "c"), address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	settings := filepath.Join(h.dir, "daemon.json")
	if err := os.WriteFile(settings, []byte("{}\n"), 0o600); err != nil {
		return err
	}
	var err error
	if h.containerd, err = h.daemon("containerd", "--config", config, "--log-level", "warn"); err != nil {
		return err
	}
	if err := h.until("containerd", h.containerd, func() error {
		c, err := net.Dial("unix", address)
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		return err
	}
	h.dockerd, err = h.daemon("dockerd", "--config-file", settings, "--containerd", address,
		"--data-root", filepath.Join(h.dir, "data"), "--exec-root", filepath.Join(h.dir, "exec"), "--pidfile", filepath.Join(h.dir, "docker.pid"),
		"-H", "unix://"+h.Socket, "--bridge=none", "--iptables=false", "--ip-forward=false", "--shutdown-timeout", "3", "--log-level", "warn")
	if err != nil {
		return err
	}
	return h.until("dockerd", h.dockerd, func() error {
		api, err := h.api()
		if err != nil {
			return err
		}
		defer api.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err = api.Ping(ctx, client.PingOptions{})
		return err
	})
}

// StopDaemon stops the host's Docker daemon, and with it the containers.
func (h *Host) StopDaemon() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(end(h.dockerd), end(h.containerd))
	h.dockerd, h.containerd = nil, nil
	return err
}

// api speaks to the engine through its socket, whatever the network does.
func (h *Host) api() (*client.Client, error) {
	return client.New(client.WithHost("unix://" + h.Socket))
}

// Load copies images, name to tag, from another engine to the host's. Those
// that are there already are left alone. The daemon of a host without any image
// is started anew meanwhile, because files that another host has already are
// linked rather than copied.
func (h *Host) Load(ctx context.Context, from *engine.Engine, images map[string]string) error {
	key, err := imageKey(ctx, from, images)
	if err != nil {
		return fmt.Errorf("copying images to host %s: %w", h.Name, err)
	}
	if !h.bare(ctx) {
		return h.copy(ctx, from, images)
	}
	s := storeOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filled {
		return h.restarted(func() error { return s.give(h) })
	}
	if err := h.copy(ctx, from, images); err != nil {
		return err
	}
	return h.restarted(func() error { return s.take(h) })
}

// bare reports whether the host's engine has no image.
func (h *Host) bare(ctx context.Context) bool {
	api, err := h.api()
	if err != nil {
		return false
	}
	defer api.Close()
	list, err := api.ImageList(ctx, client.ImageListOptions{All: true})
	return err == nil && len(list.Items) == 0
}

// restarted does something while the host's daemon is stopped.
func (h *Host) restarted(do func() error) error {
	if err := h.StopDaemon(); err != nil {
		return err
	}
	return errors.Join(do(), h.StartDaemon())
}

// copy copies the images that are missing through the engines' interfaces.
func (h *Host) copy(ctx context.Context, from *engine.Engine, images map[string]string) error {
	api, err := h.api()
	if err != nil {
		return err
	}
	defer api.Close()
	var missing []string
	for _, tag := range images {
		if _, err := api.ImageInspect(ctx, tag); err != nil {
			missing = append(missing, tag)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("copying %s to host %s: %w", strings.Join(missing, ", "), h.Name, err)
	}
	out, err := from.API().ImageSave(ctx, missing)
	if err != nil {
		return fail(err)
	}
	defer out.Close()
	res, err := api.ImageLoad(ctx, out, client.ImageLoadWithQuiet(true))
	if err != nil {
		return fail(err)
	}
	defer res.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(res); err != nil {
		return fail(err)
	}
	if strings.Contains(said.String(), "errorDetail") {
		return fail(errors.New(strings.TrimSpace(said.String())))
	}
	return nil
}

// Load copies images to every host, see [Host.Load]; a test that cannot have
// them fails.
func (l *Lab) Load(t testing.TB, from *engine.Engine, images map[string]string) {
	t.Helper()
	began := time.Now()
	g, ctx := errgroup.WithContext(t.Context())
	for _, h := range l.Hosts {
		g.Go(func() error { return h.Load(ctx, from, images) })
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("hoststest: %v", err)
	}
	t.Logf("hoststest: copied %d images to %d hosts in %.1f s", len(images), len(l.Hosts), time.Since(began).Seconds())
}

// systemPath is where daemons are, which an ordinary user's PATH may leave out.
const systemPath = "/usr/local/sbin:/usr/sbin:/sbin"

// find looks for a program.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for dir := range strings.SplitSeq(systemPath, ":") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// daemon starts a program in the host's network.
func (h *Host) daemon(name string, args ...string) (*exec.Cmd, error) {
	program, err := find(name) // sshd wants its whole path
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(h.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	enter, err := find("nsenter")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(enter, append([]string{"--net=" + netnsDir + h.namespace, "--", program}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	// A Ctrl-C in the terminal is for the test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DOCKER_") && !strings.HasPrefix(v, "PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH")+":"+systemPath)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return cmd, nil
}

// until waits until a daemon answers.
func (h *Host) until(name string, cmd *exec.Cmd, answers func() error) error {
	deadline := time.Now().Add(40 * time.Second)
	for {
		err := answers()
		if err == nil {
			return nil
		}
		ended := syscall.Kill(cmd.Process.Pid, 0) != nil || zombie(cmd.Process.Pid)
		if ended || time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(h.dir, name+".log"))
			return fmt.Errorf("%s does not answer: %w; its log ends:\n%s", name, err, log[max(0, len(log)-2000):])
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// end asks a daemon to end, and makes it after a while.
func end(cmd *exec.Cmd) error {
	if cmd == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
		return nil
	case <-time.After(20 * time.Second):
	}
	_ = cmd.Process.Kill()
	<-done
	return fmt.Errorf("%s did not end within 20 s and was killed", strings.Join(cmd.Args, " "))
}

// remove ends everything on the hosts and removes them.
func (l *Lab) remove() error {
	var g errgroup.Group
	for _, h := range l.Hosts {
		g.Go(func() error {
			// Whatever still runs is killed below, so that nothing waits for it.
			h.killContainers()
			return errors.Join(h.StopDaemon(), end(h.sshd))
		})
	}
	return errors.Join(g.Wait(), l.slot.remove())
}

// killContainers kills the host's containers.
func (h *Host) killContainers() {
	api, err := h.api()
	if err != nil {
		return
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	list, err := api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return
	}
	var g errgroup.Group
	for _, c := range list.Items {
		g.Go(func() error {
			_, err := api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			return err
		})
	}
	_ = g.Wait()
}

// command runs a program and returns what it said when it failed.
func command(name string, args ...string) error {
	path, err := find(name)
	if err != nil {
		return err
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
