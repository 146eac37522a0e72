package machines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
)

// stage is one step of a run on machines of their own.
type stage struct {
	name string
	done **time.Time
	do   func(context.Context) error
}

// stages lists the steps up to the report, in their order.
func (d *Driver) stages() []stage {
	s := &d.f.state
	return []stage{
		{"up", &s.Up, d.Up},
		{"prepare", &s.Prepared, d.Prepare},
		{"run", &s.Measured, d.Measure},
		{"collect", &s.Collected, d.Collect},
	}
}

// All goes through every stage that is not done yet and then takes the machines
// away, unless they are to be kept. After an error, or Ctrl-C, the user decides
// whether machines that cost money stay for another try; where nobody can be
// asked they are destroyed, unless they are to be kept. What was measured stays
// in the run's folder either way.
func (d *Driver) All(ctx context.Context) error {
	err := d.ready(ctx)
	if err != nil {
		if d.f.state.Live() {
			d.kept()
		}
		return err
	}
	err = d.upTo(ctx, "collect")
	if err == nil && d.f.state.Keep {
		d.kept()
		return nil
	}
	if err == nil {
		return d.Down(ctx)
	}
	return d.failed(ctx, err)
}

// UpTo goes through the stages up to the named one that are not done yet, and
// through the named one in any case.
func (d *Driver) UpTo(ctx context.Context, name string) error {
	var err error
	// What is measured can be collected with no account and from machines that are gone.
	if name != "collect" || d.f.state.Measured == nil {
		err = d.ready(ctx)
	}
	if err == nil {
		err = d.upTo(ctx, name)
	}
	if err != nil && (d.f.state.Live() || over(err)) {
		d.kept()
	}
	return err
}

// ready refuses to go on with machines that these credentials cannot destroy, or
// that do not live long enough for what is left to measure.
func (d *Driver) ready(ctx context.Context) error {
	s := d.f.state
	if s.Provider != plan.ProviderAWS || !s.Pending() {
		return nil
	}
	if s.Measured == nil {
		if err := d.lasts(); err != nil {
			return err
		}
	}
	_, err := d.aws(ctx)
	return err
}

func (d *Driver) upTo(ctx context.Context, name string) error {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	for _, s := range d.stages() {
		// Networks that are to be let in are let in where there are machines already.
		if *s.done == nil || s.name == name || s.name == "up" && len(d.o.SSHFrom) > 0 {
			err := s.do(ctx)
			if cause := context.Cause(ctx); err != nil && over(cause) {
				return cause // whatever broke off follows from it
			}
			if err != nil {
				return err
			}
		}
		if s.name == name {
			return nil
		}
	}
	return fmt.Errorf("there is no stage %q", name)
}

var (
	errTooDear = errors.New("the run has cost as much as it may and was stopped")
	errExpired = errors.New("the machines have reached their expiry and shut themselves down, so the run was stopped")
)

// over reports whether an error says that the machines' time is up.
func over(err error) bool { return errors.Is(err, errTooDear) || errors.Is(err, errExpired) }

// limit ends the context when the machines have cost as much as they may or shut
// themselves down, unless everything is measured by then.
func (d *Driver) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-limited.Done():
				return
			case <-t.C:
				switch s := d.f.saved.Load(); {
				case s == nil || s.Measured != nil:
				case s.MaxCostUSD > 0 && s.Spent(time.Now()) >= s.MaxCostUSD:
					cancel(errTooDear)
				case s.Expired():
					cancel(errExpired)
				}
			}
		}
	}()
	return limited, func() { cancel(nil) }
}

// downTime bounds the destruction of the machines after an error.
const downTime = 20 * time.Minute

// failed decides what becomes of the machines after an error.
func (d *Driver) failed(ctx context.Context, err error) error {
	s := d.f.state
	if !s.Pending() {
		return err
	}
	if s.Provider == plan.ProviderHosts {
		d.kept()
		return err
	}
	destroy := !s.Keep
	if over(err) || s.Expired() {
		destroy = true
	} else if d.o.Confirm != nil {
		d.say("%s", oneLine(err))
		destroy = d.askDestroy(ctx)
	}
	if !destroy {
		d.kept()
		return err
	}
	d.say("destroying the machines; what was measured is kept in %s (Ctrl-C again leaves them as they are)", d.f.run)
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime)
	defer cancel()
	if downErr := d.Down(down); downErr != nil {
		d.kept()
		return errors.Join(err, fmt.Errorf("the machines could not be destroyed: %w", downErr))
	}
	return err
}

// answerTime is how long the question whether machines are to be destroyed waits.
const answerTime = 2 * time.Minute

// askDestroy asks what becomes of machines that cost money. It also does after a
// signal, and does not wait without end: machines must not stay because nobody is
// there any more. Ctrl-C at the question means no.
func (d *Driver) askDestroy(ctx context.Context) bool {
	s := d.f.state
	otherwise := "are destroyed"
	if s.Keep {
		otherwise = "stay"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	yes, err := d.o.Confirm(ctx, fmt.Sprintf("The machines cost $%.2f an hour%s and are needed to go on with the run; without an answer within %s they %s. Destroy them now?", s.USDPerHour, until(s), plaintext.Duration(answerTime), otherwise))
	if errors.Is(err, context.Canceled) {
		return false
	}
	return yes || err != nil && !s.Keep
}

// kept tells what stays and what it costs.
func (d *Driver) kept() {
	s := d.f.state
	if s.Provider == plan.ProviderHosts {
		d.say("your machines keep their containers' volumes; to go on: %s; to remove what is percore's: %s", d.call("run"), d.call("down"))
		return
	}
	if s.Expired() {
		d.say("the machines of run %s shut themselves down at %s UTC; they have cost about $%.2f; to remove what is left of them: %s", s.ID, s.Expires.UTC().Format(time.DateTime), s.Spent(time.Now()), d.call("down"))
		return
	}
	d.say("the machines of run %s stay and cost $%.2f an hour%s; so far about $%.2f", s.ID, s.USDPerHour, until(s), s.Spent(time.Now()))
	d.say("to go on: %s; to destroy them: %s", d.call("run"), d.call("down"))
}

func until(s State) string {
	if s.Expires == nil {
		return ""
	}
	return fmt.Sprintf(" until they shut themselves down at %s UTC", s.Expires.UTC().Format("15:04 on 2 January"))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// kernelLog asks a machine for what its kernel has said since it started.
const kernelLog = "if [ \"$(id -u)\" != 0 ]; then sudo='sudo -n'; fi; uname -a; uptime; $sudo journalctl -k -b --no-pager 2>/dev/null || $sudo dmesg"

// Collect fetches what is left on the machines, the kernels' logs, and holds
// the raw files against the digests that were taken on the machines.
func (d *Driver) Collect(ctx context.Context) error {
	if err := d.needLab(); err != nil {
		return err
	}
	st, err := d.stored()
	if err != nil {
		return err
	}
	if st == nil {
		return fail.Input("nothing was measured of run %s yet", d.ID()).Try("do so with %s", d.call("run"))
	}
	problems, err := st.Verify()
	if err != nil {
		return err
	}
	var fatal []string
	for _, p := range problems {
		if p.Fatal {
			fatal = append(fatal, p.String())
		}
	}
	if len(fatal) > 0 {
		return fmt.Errorf("raw files of run %s are not what was measured: %s", d.ID(), strings.Join(fatal, "; "))
	}
	dir := filepath.Join(d.f.dir, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the hosts' logs: %w", err)
	}
	for _, m := range d.lab.Machines {
		d.o.Console.Transient("collecting from %s", m.Name)
		text, err := d.ssh(ctx, m, kernelLog)
		if err != nil {
			// The figures do not rest on it.
			d.say("%s: its kernel's log could not be had: %s", m.Name, oneLine(err))
			continue
		}
		if err := writeFile(filepath.Join(dir, m.Name+".kernel.log"), text); err != nil {
			return err
		}
	}
	d.say("%d raw files agree with the digests taken on the hosts", rawFiles(st))
	return d.done(&d.f.state.Collected)
}

// rawFiles counts the raw files of windows.
func rawFiles(st *store.Store) int {
	n := 0
	for _, w := range st.History().Windows() {
		n += len(w.SHA256)
	}
	return n
}

// sshTime bounds one command on a machine.
const sshTime = time.Minute

// ssh runs a shell command on a machine and returns what it printed.
func (d *Driver) ssh(ctx context.Context, m fleet.Machine, command string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, sshTime)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "ssh", append(d.sshArgs(m), command)...)
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("ssh to %s: %w: %s", m.Name, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// sshArgs are the arguments by which ssh reaches a machine.
func (d *Driver) sshArgs(m fleet.Machine) []string {
	return append([]string{"-F", d.f.sshConfig()}, m.SSHArgs()...)
}

// SSH gives the user a shell on a machine, or runs a command there. It returns
// when that has ended.
func (d *Driver) SSH(ctx context.Context, name string, args []string) error {
	if err := d.needLab(); err != nil {
		return err
	}
	m, ok := d.lab.Named(name)
	if !ok {
		return fail.Input("run %s has no machine %q", d.ID(), name).Try("it has %s", strings.Join(d.lab.Names(), ", "))
	}
	cmd := exec.CommandContext(ctx, "ssh", append(d.sshArgs(m), args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) && exit.ExitCode() != 255 {
		return &ExitError{exit.ExitCode()}
	} else if err != nil {
		return fmt.Errorf("ssh to %s of run %s: %w", m.Name, d.ID(), err)
	}
	return nil
}

// ExitError says that a command on a machine ended with a code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }
