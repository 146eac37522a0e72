// Package ansible prepares the machines of a cloud run: it finds Ansible or
// installs it into a virtual environment of percore's own, runs the playbook in
// ansible/ over ssh, says what changes, and hands back what the machines say of
// themselves.
package ansible

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
)

// Run is one preparation of all machines of a lab.
type Run struct {
	// Dir is the run's folder for the cloud; inventory, facts and log go to
	// the folder ansible in it.
	Dir string
	// Playbook is the path of prepare.yml. ansible.cfg lies beside it.
	Playbook string
	Machines fleet.Lab
	// SSHConfig is the file that ssh reads instead of the user's own; empty
	// leaves it to ssh.
	SSHConfig string
	// Expires is when the machines are to power themselves off; nil is never.
	Expires *time.Time
	// Wait bounds how long a machine may take until it answers over ssh; 0
	// means 5 minutes.
	Wait time.Duration
	// Out gets what Ansible prints, as it comes; nil is nobody. The log in the
	// folder has it anyway.
	Out io.Writer
	// Say gets one line of progress at a time; nil is nobody. It is called
	// from one goroutine at a time.
	Say func(format string, args ...any)
}

// Result is what a preparation did.
type Result struct {
	// Changed is how many tasks changed something, by the machine's name.
	Changed map[string]int
	// Facts are what each machine says of itself, by the machine's name.
	Facts map[string]map[string]string
}

// Prepare brings the machines to where they can be measured on. It may be
// repeated: what is right already stays as it is. An error names the machine,
// the task and Ansible's reason in one sentence.
func (t *Tool) Prepare(ctx context.Context, run Run) (Result, error) {
	say := serially(run.Say)
	if len(run.Machines.Machines) == 0 {
		return Result{}, errors.New("there are no machines to prepare")
	}
	playbook, err := filepath.Abs(run.Playbook)
	if err != nil {
		return Result{}, err
	}
	config := filepath.Join(filepath.Dir(playbook), "ansible.cfg")
	for _, name := range []string{playbook, config} {
		if _, err := os.Stat(name); err != nil {
			return Result{}, fail.Input("preparing the machines needs %s, which is not there", name).Try("run percore from its source tree")
		}
	}
	dir, err := filepath.Abs(filepath.Join(run.Dir, "ansible"))
	if err != nil {
		return Result{}, err
	}
	facts := filepath.Join(dir, "facts")
	if err := os.MkdirAll(facts, 0o700); err != nil {
		return Result{}, fmt.Errorf("making the folder of the machines' facts: %w", err)
	}
	users, err := reach(ctx, run, say)
	if err != nil {
		return Result{}, err
	}
	text, err := inventory(run, users, facts)
	if err != nil {
		return Result{}, err
	}
	inventoryFile := filepath.Join(dir, "inventory.json")
	if err := replaceFile(inventoryFile, text); err != nil {
		return Result{}, fmt.Errorf("writing the inventory: %w", err)
	}
	// Facts of an earlier preparation must not pass for those of this one.
	for _, m := range run.Machines.Machines {
		if err := os.Remove(filepath.Join(facts, m.Name+".json")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Result{}, err
		}
	}
	changed, err := t.play(ctx, run, play{playbook: playbook, config: config, inventory: inventoryFile, log: filepath.Join(dir, "log")}, say)
	if err != nil {
		return Result{}, err
	}
	result := Result{Changed: changed, Facts: map[string]map[string]string{}}
	for _, m := range run.Machines.Machines {
		if _, ok := changed[m.Name]; !ok {
			return result, fmt.Errorf("preparing %s: Ansible ended without a word about it; see %s", m.Name, filepath.Join(dir, "log"))
		}
		f, err := readFacts(filepath.Join(facts, m.Name+".json"))
		if err != nil {
			return result, fmt.Errorf("reading the facts of %s: %w", m.Name, err)
		}
		result.Facts[m.Name] = f
	}
	return result, nil
}

// play is one call of ansible-playbook.
type play struct{ playbook, config, inventory, log string }

// play runs the playbook and returns how many tasks changed something on each
// machine.
func (t *Tool) play(ctx context.Context, run Run, p play, say func(string, ...any)) (map[string]int, error) {
	scratch, err := os.MkdirTemp("", "percore-ansible-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder for Ansible: %w", err)
	}
	defer os.RemoveAll(scratch)
	sockets, err := socketFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(sockets)
	defer closeMasters(sockets)

	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening Ansible's log: %w", err)
	}
	defer log.Close()
	fmt.Fprintf(log, "\n==== %s: ansible-core %s, %s\n", time.Now().UTC().Format(time.RFC3339), t.Version, p.playbook)

	events, eventsIn, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer events.Close()

	last := &tail{}
	out := io.MultiWriter(log, last)
	if run.Out != nil {
		out = io.MultiWriter(log, last, run.Out)
	}
	cmd := t.command(ctx, "playbook", "-i", p.inventory, p.playbook)
	cmd.Dir = filepath.Dir(p.playbook)
	cmd.Env = append(cmd.Env,
		"ANSIBLE_CONFIG="+p.config,
		"ANSIBLE_HOME="+filepath.Join(scratch, "home"),
		"ANSIBLE_LOCAL_TEMP="+filepath.Join(scratch, "tmp"),
		"ANSIBLE_SSH_CONTROL_PATH_DIR="+sockets,
		"PERCORE_EVENTS_FD=3")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{eventsIn} // file descriptor 3

	if err := cmd.Start(); err != nil {
		eventsIn.Close()
		return nil, fmt.Errorf("starting %s: %w", t.Path, err)
	}
	eventsIn.Close()
	story := make(chan summary, 1)
	go func() {
		story <- follow(events, func(e event) {
			if line := e.progress(); line != "" {
				say("prepare: %s", line)
			}
		})
	}()
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // a background ssh kept the output open; the playbook itself ended well
	}
	if ctx.Err() != nil {
		// Whatever of the group has not heeded the signal.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	// What is left over must not keep the pipe open for ever.
	_ = events.SetReadDeadline(time.Now().Add(5 * time.Second))
	s := <-story
	if ctx.Err() != nil {
		return nil, fmt.Errorf("preparing the machines: %w", ctx.Err())
	}
	if len(s.failures) > 0 {
		return nil, fmt.Errorf("%s; see %s", strings.Join(s.sentences(), "; "), p.log)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the machines: ansible-playbook: %s (%w); see %s", last.reason(), err, p.log)
	}
	if s.stats == nil {
		return nil, fmt.Errorf("preparing the machines: ansible-playbook ended without its summary: %s; see %s", last.reason(), p.log)
	}
	changed := map[string]int{}
	for host, c := range s.stats {
		changed[host] = c.Changed
	}
	return changed, nil
}

// socketFolder makes a folder that nobody else can enter for the sockets of
// ssh's connections. The path of a socket may have 103 bytes on a Mac, of which
// ssh needs 17 for itself and Ansible 11; the folder for temporary files has 48
// there. Ansible also takes a % in it for a place to fill in.
func socketFolder() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "percore-")
	if err != nil {
		dir, err = os.MkdirTemp("", "percore-") // a machine without /tmp, such as Termux
	}
	if err != nil {
		return "", fmt.Errorf("making a folder for the sockets of ssh: %w", err)
	}
	return dir, nil
}

// command is one of Ansible's commands with an environment in which no setting
// of the user's can break it. Cancelling the context ends its process group.
func (t *Tool) command(ctx context.Context, entry string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.Path, slices.Concat(t.args(entry), args)...)
	cmd.Env = environment(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// environment is the user's without what would change how Ansible or its Python
// behaves.
func environment(all []string) []string {
	var env []string
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ANSIBLE_") || strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "LC_") ||
			slices.Contains([]string{"LANG", "LANGUAGE", "VIRTUAL_ENV", "PERCORE_EVENTS_FD", "DISPLAY_SKIPPED_HOSTS"}, name) {
			continue
		}
		env = append(env, v)
	}
	// Ansible refuses to start where the encoding is not UTF-8.
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		locale = "en_US.UTF-8"
	}
	// Python must leave no files of its own in the project's folder.
	return append(env, "LC_ALL="+locale, "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1")
}

// closeMasters ends the connections that ssh keeps open in the background.
func closeMasters(dir string) {
	sockets, _ := filepath.Glob(filepath.Join(dir, "*"))
	var g sync.WaitGroup
	for _, socket := range sockets {
		g.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			// The name of the host does not matter: the socket is the master's.
			// A connection that cannot be ended ends by itself after a while.
			_ = exec.CommandContext(ctx, "ssh", "-F", "/dev/null", "-o", "ControlPath="+socket, "-O", "exit", "host").Run()
		})
	}
	g.Wait()
}

// readFacts reads a file that the playbook has written.
func readFacts(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var facts map[string]string
	if err := json.Unmarshal(text, &facts); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(facts) == 0 {
		return nil, fmt.Errorf("%s has none", name)
	}
	return facts, nil
}

// replaceFile writes a file that only its owner reads, whole or not at all.
func replaceFile(name string, text []byte) error {
	return renameio.WriteFile(name, text, 0o600, renameio.WithTempDir(filepath.Dir(name)))
}

// serially lets one goroutine at a time speak.
func serially(say func(string, ...any)) func(string, ...any) {
	if say == nil {
		return func(string, ...any) {}
	}
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		say(format, args...)
	}
}

// tail keeps the end of an output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text); n > 16<<10 {
		t.text = append([]byte(nil), t.text[n-8<<10:]...)
	}
	return len(p), nil
}

// reason is the last error that the output has, else its last line.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last string
	for line := range bytes.Lines(t.text) {
		s := strings.TrimSpace(string(line))
		for _, mark := range []string{"ERROR! ", "[ERROR]: "} {
			if text, ok := strings.CutPrefix(s, mark); ok {
				last = text
			}
		}
	}
	if last != "" {
		return last
	}
	if lines := strings.Split(strings.TrimSpace(string(t.text)), "\n"); lines[len(lines)-1] != "" {
		return strings.TrimSpace(lines[len(lines)-1])
	}
	return "it printed nothing"
}
