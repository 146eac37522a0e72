package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/machines/ansible"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/machines/terraform"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/run"
)

// Options is what a user may choose of a cloud run.
type Options struct {
	run.Options
	Cache string // folder for what is installed: Terraform, Ansible, provider plugins

	Keep       bool
	MaxCostUSD float64  // refuses above this before anything is made, and stops the run there; 0 for no limit
	SSHFrom    []string // networks that may reach port 22; empty for the address this machine is seen at
	AWSProfile string   // of the user's AWS configuration; empty leaves it to the SDK
	Region     string   // in place of the profile's
	Prices     string   // file in place of the price list
	NoInstall  bool     // say what is missing instead of installing it
	Force      bool     // lets machines of the user's own go that cannot be cleaned
	// Given reports whether the user named a flag, such as region: one that differs
	// from what a run was begun with is refused. Nil stands for none.
	Given func(flag string) bool

	// Words writes settings and commands in what goes to Out.
	Words fail.Words
	// AddressURL says where this machine's address is asked for; empty is
	// awsx.AddressURL.
	AddressURL string

	Console run.Console
	// Confirm asks the user a question that yes or no answers, until the context
	// ends; Ctrl-C is its error too. It is nil when nobody is there to ask; Yes
	// answers yes without asking.
	Confirm func(ctx context.Context, question string) (bool, error)
	Yes     bool
	// Out takes what Terraform and Ansible print, when the user wants to see it.
	Out io.Writer
	// Terraform is the binary to use; empty finds or installs one.
	Terraform string
}

func (o Options) given(flag string) bool { return o.Given != nil && o.Given(flag) }

// Driver carries one run through its stages.
type Driver struct {
	o       Options
	f       *folder
	profile plan.Profile // as the file says it, once it was needed
	lab     fleet.Lab    // once there is one
	fresh   bool         // whether this process began the run
}

// New begins a run: its folder is made, and nothing else.
func New(o Options) (*Driver, error) {
	// A mistake in what is to be measured is cheaper now than with machines.
	if _, err := lay(o.Options); err != nil {
		return nil, err
	}
	p, err := plan.FindProfile(o.Root, o.Profile)
	if err != nil {
		return nil, err
	}
	if err := checkCost(o); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	s := State{
		ID: run.NewID(now, p.Name, ""), Created: now,
		Profile: plan.Source(o.Profile), Preset: plan.Source(o.Preset), Flavour: o.Flavour,
		Suite: plan.SuiteSource(o.Suite), Candidates: o.Selection.Candidates, Scenarios: o.Selection.Scenarios, Phases: o.Selection.Phases, Seed: o.Seed,
		Provider: p.Cloud.Provider, AWSProfile: cmp.Or(o.AWSProfile, environmentProfile()), Region: o.Region, SSHFrom: o.SSHFrom, Keep: o.Keep, MaxCostUSD: o.MaxCostUSD,
	}
	d := &Driver{o: o, profile: p, fresh: true}
	id := s.ID
	for n := 2; ; n++ { // another may have begun in the same second
		d.f, err = create(o.Results, s)
		if !errors.Is(err, fs.ErrExist) || n > 9 {
			break
		}
		s.ID = fmt.Sprintf("%s-%d", id, n)
	}
	if err != nil {
		return nil, err
	}
	if err := d.keepProfile(); err != nil {
		return nil, errors.Join(err, d.undo())
	}
	if o.Preset != autoPreset { // what that stands for depends on the machines
		if err := d.keepPreset(s.Preset); err != nil {
			return nil, errors.Join(err, d.undo())
		}
	}
	return d, nil
}

// environmentProfile is the profile of the AWS configuration that the
// environment names. Keys in the environment go before it.
func environmentProfile() string {
	if os.Getenv("AWS_ACCESS_KEY_ID") != "" {
		return ""
	}
	return cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
}

// undo removes the folder of a run that could not be begun.
func (d *Driver) undo() error {
	d.Close()
	return os.RemoveAll(d.f.run)
}

// Discard removes the folder of a run that this process began and of which
// nothing was made, and reports whether it was one.
func (d *Driver) Discard() (bool, error) {
	if !d.fresh || d.f.state.Applied != nil {
		return false, nil
	}
	entries, err := os.ReadDir(d.f.run)
	if err != nil || len(entries) != 1 || entries[0].Name() != Dir {
		return false, err
	}
	if err := os.RemoveAll(d.f.run); err != nil {
		return false, fmt.Errorf("removing the folder of a run that made nothing: %w", err)
	}
	return true, nil
}

// Open goes on with a run. What the options choose anew replaces what the run
// was begun with where that can still be done, and is refused elsewhere.
func Open(o Options, id string) (*Driver, error) {
	if err := checkCost(o); err != nil {
		return nil, err
	}
	d, err := Peek(o, id)
	if err != nil {
		return nil, err
	}
	f := d.f
	if err := f.take(); err != nil {
		return nil, err
	}
	// It may have changed until the lock was had.
	if f.state, err = readState(f.run); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.differs(); err != nil {
		d.Close()
		return nil, err
	}
	s := &f.state
	if o.Keep || o.given("keep") {
		s.Keep = o.Keep
	}
	if o.MaxCostUSD > 0 {
		if o.MaxCostUSD > s.MaxCostUSD && s.Live() && s.Expires != nil {
			d.say("note: the machines shut themselves down at %s UTC as before, whatever the run may cost now", s.Expires.UTC().Format(time.DateTime))
		}
		s.MaxCostUSD = o.MaxCostUSD
	}
	if err := f.save(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Peek opens a run to look at it or to reach its machines, also while another
// percore is working on them. It must not be carried through a stage.
func Peek(o Options, id string) (*Driver, error) {
	run, err := Choose(o.Results, id)
	if err != nil {
		return nil, err
	}
	s, err := readState(run)
	if err != nil {
		return nil, err
	}
	return &Driver{o: o, f: &folder{run: run, dir: filepath.Join(run, Dir), state: s}}, nil
}

// Close lets go of the run's folder.
func (d *Driver) Close() { d.f.close() }

// ID is the run's id.
func (d *Driver) ID() string { return d.f.state.ID }

// Dir is the run's folder.
func (d *Driver) Dir() string { return d.f.run }

// Spent is what the run has cost until now, in words; empty where nothing is
// known to cost anything. It may be called from any goroutine.
func (d *Driver) Spent() string {
	s := d.f.saved.Load()
	if s == nil || s.USDPerHour == 0 || s.Applied == nil {
		return ""
	}
	return fmt.Sprintf("$%.2f so far", s.Spent(time.Now()))
}

// State is how far the run has come.
func (d *Driver) State() State { return d.f.state }

// call is a command for this run: those that can begin one as well carry it on.
func (d *Driver) call(stage string) fail.Command {
	if stage == "run" || stage == "up" {
		return fail.Call("cloud "+stage, fail.Setting("resume").To(d.ID()))
	}
	return fail.Call("cloud "+stage, d.ID())
}

func (d *Driver) say(format string, args ...any) { d.o.Console.Printf(format, args...) }

// done notes that a stage has ended well.
func (d *Driver) done(at **time.Time) error {
	now := time.Now().UTC()
	*at = &now
	return d.f.save()
}

// module opens the run's Terraform module with its variables.
func (d *Driver) module(ctx context.Context, vars any) (*terraform.Module, error) {
	bin, err := d.terraform(ctx)
	if err != nil {
		return nil, err
	}
	source := filepath.Join(d.o.Root, "infra", string(d.f.state.Provider))
	m, err := terraform.Open(bin, filepath.Join(d.f.dir, "terraform"), source, vars, d.o.Out)
	if name := d.awsProfile(); err == nil && name != "" {
		err = m.UseAWSProfile(name)
	}
	return m, err
}

// needCache refuses to look for tools without a folder that keeps them.
func (d *Driver) needCache() error {
	if d.o.Cache == "" {
		return fail.Input("there is no folder for Terraform and Ansible: neither XDG_CACHE_HOME nor HOME is set").Try("set one of them")
	}
	return nil
}

func (d *Driver) terraform(ctx context.Context) (*terraform.Binary, error) {
	if err := d.needCache(); err != nil {
		return nil, err
	}
	return terraform.Find(ctx, terraform.Options{CacheDir: d.o.Cache, Install: !d.o.NoInstall, Path: d.o.Terraform, Say: d.o.Console.Status})
}

// Up makes the machines, or takes those that are there.
func (d *Driver) Up(ctx context.Context) error {
	s := &d.f.state
	if s.Destroyed != nil {
		return fail.Input("the machines of run %s were destroyed at %s UTC, and a run is measured on one set of machines", s.ID, s.Destroyed.UTC().Format(time.DateTime)).Try("start a new run")
	}
	if err := d.needProfile(); err != nil {
		return err
	}
	vars, err := d.quote(ctx)
	if err != nil {
		return err
	}
	d.o.Console.Status("planning the infrastructure")
	m, err := d.module(ctx, vars)
	if err != nil {
		return err
	}
	plan, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	if plan.Add+plan.Change+plan.Destroy == 0 && s.Up != nil {
		d.say("the infrastructure is as it should be")
	} else {
		for line := range strings.Lines(strings.TrimSpace(plan.Text)) {
			d.say("  %s", strings.TrimRight(line, "\n"))
		}
		// What is there already was agreed to.
		if plan.Add+plan.Destroy > 0 || s.Applied == nil {
			if err := d.confirm(ctx); err != nil {
				return err
			}
		}
		if s.Applied == nil {
			// From here on there may be machines: another process must know.
			if err := d.done(&s.Applied); err != nil {
				return err
			}
		}
		if plan.Add > 0 && s.Prepared != nil {
			// New machines are as bare as the first ones were.
			s.Prepared, s.Facts = nil, nil
			if err := d.f.save(); err != nil {
				return err
			}
		}
		d.o.Console.Status("making the machines")
		if err := m.Apply(ctx); err != nil {
			return err
		}
	}
	if d.lab, err = m.Lab(ctx); err != nil {
		return err
	}
	identity, err := d.f.identity(d.profile)
	if err != nil {
		return err
	}
	if err := d.f.writeSSHConfig(d.lab, identity); err != nil {
		return err
	}
	text, err := marshal(d.lab)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(d.f.dir, labFile), text); err != nil {
		return err
	}
	s.Zone = d.lab.Zone
	for _, x := range d.lab.Machines {
		d.say("%-6s %s%s", x.Name, x.Destination(), typed(x))
	}
	return d.done(&s.Up)
}

func typed(m fleet.Machine) string {
	if m.InstanceType == "" {
		return ""
	}
	return ", " + m.InstanceType + " " + m.InstanceID
}

// confirm asks before machines are made that cost money.
func (d *Driver) confirm(ctx context.Context) error {
	s := d.f.state
	if s.Provider == plan.ProviderHosts || d.o.Yes {
		return nil
	}
	if d.o.Confirm == nil {
		return fail.Input("there is no terminal to confirm $%.2f an hour", s.USDPerHour).Try("add %s (YES=1 for make) to go on without a question", fail.Setting("yes"))
	}
	yes, err := d.o.Confirm(ctx, fmt.Sprintf("Make these machines for $%.2f an hour?", s.USDPerHour))
	if err != nil {
		return err
	}
	if !yes {
		return errDeclined
	}
	return nil
}

var errDeclined = fail.Input("nothing was made: the answer was not yes")

// labFile keeps the output of the infrastructure, so that a later stage needs
// no Terraform.
const labFile = "lab.json"

// needLab reads the machines that an earlier stage has made.
func (d *Driver) needLab() error {
	if len(d.lab.Machines) > 0 {
		return nil
	}
	s := d.f.state
	switch {
	case s.Destroyed != nil:
		return fail.Input("the machines of run %s were destroyed at %s UTC", s.ID, s.Destroyed.UTC().Format(time.DateTime)).Try("what was measured is in %s", d.f.run)
	case s.Up == nil:
		return fail.Input("run %s has no machines yet", s.ID).Try("make them with %s", d.call("up"))
	}
	text, err := os.ReadFile(filepath.Join(d.f.dir, labFile))
	if err != nil {
		return fmt.Errorf("reading which machines run %s has: %w", s.ID, err)
	}
	d.lab, err = fleet.Parse(text)
	return err
}

// Prepare installs and sets on the machines what measuring needs.
func (d *Driver) Prepare(ctx context.Context) error {
	if err := d.needLab(); err != nil {
		return err
	}
	if err := d.needProfile(); err != nil {
		return err
	}
	if err := d.needCache(); err != nil {
		return err
	}
	tool, err := ansible.Find(ctx, ansible.Options{CacheDir: d.o.Cache, Install: !d.o.NoInstall, Say: d.o.Console.Status})
	if err != nil {
		return err
	}
	d.o.Console.Status("preparing %s", strings.Join(d.lab.Names(), ", "))
	res, err := tool.Prepare(ctx, ansible.Run{
		Dir: d.f.dir, Playbook: filepath.Join(d.o.Root, "ansible", "prepare.yml"),
		Machines: d.lab, SSHConfig: d.f.sshConfig(), Expires: d.f.state.Expires, Out: d.o.Out, Say: d.o.Console.Status,
	})
	if err != nil {
		return err
	}
	if err := d.f.keptHostKeys(d.lab); err != nil {
		return err
	}
	for _, m := range d.lab.Machines {
		d.say("%s: %d change(s)", m.Name, res.Changed[m.Name])
	}
	d.f.state.Facts = res.Facts
	return d.done(&d.f.state.Prepared)
}

// connect reaches the engine of one machine.
func connect(ctx context.Context, m fleet.Machine, sshConfig string) (*engine.Engine, error) {
	e, err := engine.Connect(ctx, engine.Options{Host: m.Engine(), SSHOptions: []string{"-F", sshConfig}})
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", m.Name, err)
	}
	return e, nil
}

// hosts connects to the machines' engines. The caller closes them.
func (d *Driver) hosts(ctx context.Context) (_ *run.Hosts, err error) {
	config, err := filepath.Abs(d.f.sshConfig())
	if err != nil {
		return nil, err
	}
	h := &run.Hosts{Roles: map[plan.Role]*lab.Host{}, Facts: d.f.state.Facts, Types: map[string]string{}}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	for _, m := range d.lab.Machines {
		e, err := connect(ctx, m, config)
		if err != nil {
			return nil, err
		}
		host := &lab.Host{Name: m.Name, Engine: e, Address: m.Address, HostNetwork: true}
		if h.Roles[m.Role] == nil {
			h.Roles[m.Role] = host
		} else {
			h.Loads = append(h.Loads, host)
		}
		h.Types[m.Name] = m.InstanceType
	}
	h.Cloud = func() *store.Cloud { return d.f.state.facts(time.Now()) }
	return h, nil
}

// Measure builds the images on the machines, checks the candidates and measures
// every window that is not measured yet.
func (d *Driver) Measure(ctx context.Context) error {
	if err := d.needLab(); err != nil {
		return err
	}
	if d.f.state.Prepared == nil {
		return fail.Input("the machines of run %s are not prepared yet", d.ID()).Try("do so with %s", d.call("prepare"))
	}
	st, err := d.stored()
	if err != nil {
		return err
	}
	d.o.Console.Status("connecting to the engines of %s", strings.Join(d.lab.Names(), ", "))
	h, err := d.hosts(ctx)
	if err != nil {
		return err
	}
	o := d.options()
	if st != nil {
		o = run.ResumeOptions(o, st.Run())
	}
	p, err := run.PrepareHosts(ctx, o, h)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := d.chosen(p.Profile); err != nil {
		return err
	}
	d.say("profile %s, preset %s: %d windows in %d blocks, %s of measuring", p.Profile.Name, p.Preset.Name, p.List.Windows(), len(p.List.Blocks), p.List.WindowTime(plan.Undone))
	if st != nil {
		defer st.Close()
		err = run.Resume(ctx, p, st, d.o.Console)
	} else {
		_, err = run.Run(ctx, p, d.o.Console)
	}
	if err != nil {
		return err
	}
	return d.done(&d.f.state.Measured)
}

// stored opens what was measured of the run so far, if anything was.
func (d *Driver) stored() (*store.Store, error) {
	if _, err := os.Stat(filepath.Join(d.f.run, store.RunFile)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return store.Open(d.f.run)
}

// Down takes away what was made for the run. On machines that were there
// already it removes percore's containers, networks and volumes.
func (d *Driver) Down(ctx context.Context) error {
	s := &d.f.state
	if s.Destroyed != nil || s.Applied == nil {
		d.say("run %s has no machines", s.ID)
		return nil
	}
	var c *aws.Client
	if s.Provider == plan.ProviderAWS {
		var err error
		// With other credentials everything would seem to be gone.
		if c, err = d.aws(ctx); err != nil {
			return err
		}
	} else if err := d.cleanHosts(ctx); err != nil {
		return err
	}
	d.o.Console.Status("destroying the machines of run %s", s.ID)
	m, err := d.module(ctx, nil)
	if err != nil {
		return err
	}
	if err := m.Destroy(ctx); err != nil {
		return err
	}
	if left, err := m.Resources(ctx); err != nil {
		return err
	} else if len(left) > 0 {
		return fail.Work("the Terraform state of run %s still holds %s", s.ID, strings.Join(left, ", ")).Try("try %s again, or %s", d.call("down"), fail.Call("cloud sweep"))
	}
	if s.Provider == plan.ProviderAWS {
		d.o.Console.Status("looking whether anything is left")
		if err := d.nothingLeft(ctx, c); err != nil {
			return err
		}
	}
	if err := d.done(&s.Destroyed); err != nil {
		return err
	}
	if s.Provider == plan.ProviderAWS {
		d.say("nothing is left of run %s; it cost about $%.2f", s.ID, s.Spent(time.Now()))
		return d.noteCost()
	}
	d.say("the machines of run %s are let go; images stay on them", s.ID)
	return nil
}

// noteCost writes the final cost into run.json, if there is one.
func (d *Driver) noteCost() error {
	st, err := d.stored()
	if st == nil || err != nil {
		return err
	}
	defer st.Close()
	if err := st.Lock(); err != nil {
		return err
	}
	run := st.Run()
	run.Cloud = d.f.state.facts(time.Now())
	return st.SaveRun(run)
}

// cleanHosts removes percore's things from machines that stay. Before they are
// prepared there are none, and perhaps no Docker either. A machine that cannot be
// cleaned does not keep the others from it.
func (d *Driver) cleanHosts(ctx context.Context) error {
	if d.f.state.Up == nil || d.f.state.Prepared == nil {
		return nil
	}
	if err := d.needLab(); err != nil {
		return err
	}
	config, err := filepath.Abs(d.f.sshConfig())
	if err != nil {
		return err
	}
	var left []string
	for _, m := range d.lab.Machines {
		d.o.Console.Transient("cleaning %s", m.Name)
		removed, err := clean(ctx, m, config)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			left = append(left, oneLine(err))
			continue
		}
		d.say("%s: removed %d container(s), network(s) and volume(s)", m.Name, removed)
	}
	switch {
	case len(left) == 0:
	case d.o.Force:
		d.say("left as they are: %s", strings.Join(left, "; "))
	default:
		return fail.Work("some machines of run %s could not be cleaned (%s)", d.ID(), strings.Join(left, "; ")).Try("bring them back and repeat %s, or leave them as they are with %s", d.call("down"), fail.Setting("force"))
	}
	return nil
}

// clean removes percore's containers, networks and volumes from a machine and
// counts them.
func clean(ctx context.Context, m fleet.Machine, sshConfig string) (int, error) {
	e, err := connect(ctx, m, sshConfig)
	if err != nil {
		return 0, err
	}
	defer e.Close()
	removed, err := lab.Clean(ctx, e, lab.CleanOptions{})
	if err != nil {
		return 0, fmt.Errorf("host %s: %w", m.Name, err)
	}
	return len(removed), nil
}
