// Package run joins profile, images, lab, contract, protocol and store to
// one run: what the commands run and verify do, without their flags.
package run

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

// Options is what a user may choose.
type Options struct {
	Root      string       // a checkout, or a folder with the same files
	State     string       // folder of what outlives a run and is no result, the signing keys; empty: .percore below Root
	Results   string       // folder of the runs
	Version   string       // of percore
	Suite     string       // name, or the path of its folder; empty for plan.DefaultSuite
	Profile   string       // name, file or auto
	Preset    string       // name, file or auto
	Flavour   plan.Flavour // empty leaves it to the profile
	Selection plan.Selection
	Seed      uint64 // 0 draws one
	RunID     string // of a new run; empty makes one of the time, the profile and the preset
	// Stored is the run that is carried on, nil for a new one: what it was begun
	// with stands for the files that Profile and Preset name, and for the suite.
	Stored *store.Run
}

// Hosts are the machines of a lab on several hosts, each with an engine that
// answers, and what is known of them.
type Hosts struct {
	Roles map[plan.Role]*lab.Host // app, db and the first of load
	Loads []*lab.Host             // the second and further ones of load
	// Facts are what was found when a host was prepared, by name of the host,
	// and Types the instance types, where hosts have one.
	Facts map[string]map[string]string
	Types map[string]string
	// Cloud says where the hosts come from and what they have cost until now;
	// nil for nothing.
	Cloud func() *store.Cloud
}

// All are the distinct hosts.
func (h *Hosts) All() []*lab.Host {
	var all []*lab.Host
	for _, r := range plan.Roles() {
		if x := h.Roles[r]; x != nil && !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return append(all, h.Loads...)
}

// of are the hosts of a role.
func (h *Hosts) of(r plan.Role) []*lab.Host {
	hosts := []*lab.Host{h.Roles[r]}
	if r == plan.Load {
		hosts = append(hosts, h.Loads...)
	}
	return hosts
}

// Close lets go of the engines.
func (h *Hosts) Close() {
	for _, host := range h.All() {
		host.Engine.Close()
	}
}

// Console is where a session says what it does.
type Console interface {
	Printf(format string, args ...any)    // a line that stays
	Status(format string, args ...any)    // what is going on
	Transient(format string, args ...any) // what is going on, not worth a line of its own
	Debugf(format string, args ...any)    // what is executed
	Watch() protocol.Observer
}

// Prepared is a run that has been decided on and not started: nothing of it is
// on the engine or on the disk yet.
type Prepared struct {
	Options
	Engine  *engine.Engine // of the app's host; nil when none answered and none was needed
	Info    engine.Info
	Hosts   *Hosts // nil for a lab on one engine
	Suite   plan.Suite
	Profile plan.Profile
	Preset  plan.Preset
	List    plan.List
}

// open reads the suite and finds its files among the project's.
func (p *Prepared) open() (plan.Suite, fs.FS, error) {
	return plan.OpenSuite(os.DirFS(p.Root), cmp.Or(p.Options.Suite, plan.DefaultSuite))
}

// Prepare reads the files, asks the engine what it offers and lays out the
// plan. The files come first, so that a typing error is not hidden behind a
// missing engine. Without an engine Prepare fails, unless offline is set: then
// the machine percore runs on stands in for it, which is good enough to show a
// plan. The caller closes the engine.
func Prepare(ctx context.Context, o Options, offline bool) (*Prepared, error) {
	p, suite, err := read(o)
	if err != nil {
		return nil, err
	}
	if p.Profile.Cloud != nil {
		return nil, fail.Input("profile %s is for machines of its own", o.Profile).Try("measure on them with %s, or take another profile", fail.Call("cloud run", fail.Setting("profile").To(o.Profile)))
	}
	machine, err := p.machine(ctx, offline)
	if err != nil {
		return nil, err
	}
	if p.Stored != nil && p.Engine != nil {
		if err := sameSize(*p.Stored, machine.CPUs); err != nil {
			p.Close()
			return nil, err
		}
	}
	resolve := func() (err error) { p.Profile, err = p.Profile.Resolve(machine); return err }
	if p.Options.Profile == "auto" && p.Stored == nil {
		if p.Profile, err = plan.FindProfile(p.Root, plan.Choose("auto", machine)); err != nil {
			p.Close()
			return nil, err
		}
	}
	if err := p.choose(suite, resolve); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// sameSize refuses to carry on a run on an engine with another number of CPUs:
// its windows would be those of two machines.
func sameSize(was store.Run, cpus int) error {
	if len(was.Hosts) == 0 || was.Hosts[0].CPUs == cpus {
		return nil
	}
	return fail.Input("run %s cannot be carried on: its engine had %d CPUs, and the one that answers has %d", was.ID, was.Hosts[0].CPUs, cpus).Try("connect to that engine, or start a new run")
}

// PrepareFor lays out the plan for machines of their own that need not exist
// yet: what a plan and its price rest on.
func PrepareFor(o Options, machines map[plan.Role]plan.Machine) (*Prepared, error) {
	p, suite, err := read(o)
	if err != nil {
		return nil, err
	}
	if p.Profile.Cloud == nil {
		return nil, fail.Input("profile %s describes one engine", o.Profile).Try("take one with a cloud section, such as aws-graviton or a file like profiles/hosts.yaml, or measure with %s", fail.Call("run"))
	}
	return p, p.choose(suite, func() (err error) { p.Profile, err = p.Profile.ResolveHosts(machines); return err })
}

// PrepareHosts asks the hosts' engines what they offer and lays out the plan
// for them. The caller closes what it returns, and with it the engines; after an
// error they are closed already.
func PrepareHosts(ctx context.Context, o Options, h *Hosts) (*Prepared, error) {
	p, err := prepareHosts(ctx, o, h)
	if err != nil {
		h.Close()
	}
	return p, err
}

func prepareHosts(ctx context.Context, o Options, h *Hosts) (*Prepared, error) {
	infos := map[*lab.Host]engine.Info{}
	for _, host := range h.All() {
		var err error
		if infos[host], err = host.Engine.Info(ctx); err != nil {
			return nil, fmt.Errorf("host %s: %w", host.Name, err)
		}
	}
	machines := map[plan.Role]plan.Machine{}
	for _, r := range plan.Roles() {
		for i, host := range h.of(r) {
			m := plan.Machine{CPUs: infos[host].CPUs, MemoryBytes: infos[host].Memory}
			if i > 0 { // all hosts of a role are measured like the smallest
				m = plan.Machine{CPUs: min(m.CPUs, machines[r].CPUs), MemoryBytes: min(m.MemoryBytes, machines[r].MemoryBytes)}
			}
			machines[r] = m
		}
	}
	p, err := PrepareFor(o, machines)
	if err != nil {
		return nil, err
	}
	app := h.Roles[plan.App]
	p.Hosts, p.Engine, p.Info = h, app.Engine, infos[app]
	return p, nil
}

// read reads the files that the options name. What is not named is left to
// choose.
func read(o Options) (*Prepared, plan.Suite, error) {
	p := &Prepared{Options: o}
	if was := o.Stored; was != nil {
		p.Profile, p.Preset = was.Profile, was.Preset
		return p, was.Suite, nil
	}
	suite, _, err := p.open()
	if err != nil {
		return nil, suite, err
	}
	if o.Profile != "auto" {
		if p.Profile, err = plan.FindProfile(o.Root, o.Profile); err != nil {
			return nil, suite, err
		}
	}
	if o.Preset != "auto" {
		if p.Preset, err = plan.FindPreset(o.Root, o.Preset); err != nil {
			return nil, suite, err
		}
		if _, _, err = plan.Select(suite, p.Preset, o.Selection); err != nil {
			return nil, suite, err
		}
	}
	return p, suite, nil
}

// machine connects to the engine and asks for its size.
func (p *Prepared) machine(ctx context.Context, offline bool) (plan.Machine, error) {
	var err error
	if p.Engine, err = engine.Connect(ctx, engine.Options{}); err == nil {
		if p.Info, err = p.Engine.Info(ctx); err == nil {
			return plan.Machine{CPUs: p.Info.CPUs, MemoryBytes: p.Info.Memory, Cores: plan.Cores(p.Info.Siblings)}, nil
		}
		p.Close()
	}
	if !offline || ctx.Err() != nil {
		return plan.Machine{}, err
	}
	cpus := runtime.NumCPU()
	return plan.Machine{CPUs: cpus, MemoryBytes: 8 << 30, Cores: plan.Cores(engine.Siblings(cpus))}, nil
}

// choose settles everything that depends on the machines; resolve fits the
// profile to them.
func (p *Prepared) choose(suite plan.Suite, resolve func() error) (err error) {
	if err := resolve(); err != nil {
		return err
	}
	if p.Flavour != "" && p.Flavour != plan.FlavourAuto {
		p.Profile.Flavour = p.Flavour
	}
	if was := p.Stored; was != nil {
		p.Suite, p.List, p.Seed = was.Suite, was.List(), was.Seed
		return p.checkShares()
	}
	if p.Options.Preset == "auto" {
		if p.Preset, err = plan.FindPreset(p.Root, plan.ChoosePreset("auto", p.Profile)); err != nil {
			return err
		}
	}
	if p.Suite, p.Preset, err = plan.Select(suite, p.Preset, p.Selection); err != nil {
		return err
	}
	if p.Seed == 0 {
		p.Seed = rand.Uint64()>>1 | 1 // positive in every reader of JSON
	}
	p.List = plan.LayOut(p.Suite, p.Preset, p.Seed)
	return p.checkShares()
}

// checkShares refuses a load that cannot be spread over the load hosts, before
// these are paid for.
func (p *Prepared) checkShares() error {
	n := p.Profile.Load.Hosts()
	if err := lab.CheckShares(p.Preset.Probe.Connections, p.Preset.Probe.Target, n); err != nil {
		return fmt.Errorf("preset %s, probe: %w", p.Preset.Name, err)
	}
	for _, b := range p.List.Blocks {
		// A warm-up has the streams of a window.
		for _, w := range b.Windows {
			for _, s := range w.Sends() {
				if err := lab.CheckShares(s.Connections, s.Target, n); err != nil {
					return fmt.Errorf("preset %s, phase %s, scenario %s: %w", p.Preset.Name, b.Phase, s.Scenario, err)
				}
			}
		}
	}
	return nil
}

// Close lets go of the engines.
func (p *Prepared) Close() {
	if p.Hosts != nil {
		p.Hosts.Close()
		p.Hosts, p.Engine = nil, nil
	}
	if p.Engine != nil {
		p.Engine.Close()
		p.Engine = nil
	}
}

// Caveats says why the figures of this run may not stand beside the published
// ones. An empty list means that they may.
func (p *Prepared) Caveats() []string {
	var all []string
	if c := p.Profile.Cloud; c != nil {
		if p.Profile.SharedCores {
			all = append(all, "the hosts are not machines of their own and share cores: figures are not comparable with the published ones")
		}
		if n := p.Profile.Load.Hosts(); n > 1 {
			all = append(all, fmt.Sprintf("the load comes from %d hosts, and the study's came from one", n))
		}
		all = append(all, "the roles have hosts of their own with a network in between, and the study's shared one machine")
	} else if pairs := p.Profile.SharedRoles(); len(pairs) > 0 {
		all = append(all, "roles share cores ("+strings.Join(pairs, ", ")+"): figures are not comparable with the published ones")
	}
	all = append(all, p.Profile.Differences()...)
	for _, role := range plan.Roles() {
		if c := threads("the machine", p.Profile.Roles[role].CPUs, p.Profile.Siblings); c != "" {
			all = append(all, c)
			break
		}
	}
	if c := p.Preset.Caveat(); c != "" {
		all = append(all, c)
	}
	if p.Profile.Flavour == plan.FlavourDebian {
		all = append(all, "flavour debian: PHP 8.2 and Debian's packages stand in for the study's versions")
	}
	return all
}

// threads is the caveat of a role that has several threads of one core; empty
// where each of its CPUs has a core to itself.
func threads(where string, cpus plan.CPUSet, siblings []plan.CPUSet) string {
	if n := plan.ThreadsPerCore(cpus, siblings); n > 1 {
		return fmt.Sprintf("%s has %d threads per core, and each counts as a core here: figures per core are not comparable with those of one thread per core", where, n)
	}
	return ""
}

// Comparable reports whether the figures may stand beside the published ones.
func (p *Prepared) Comparable() bool {
	return len(p.Caveats()) == 0
}

// Candidates lists the ids of the selected candidates.
func (p *Prepared) Candidates() []string {
	var ids []string
	for _, c := range p.Suite.Candidates {
		ids = append(ids, c.ID)
	}
	return ids
}

// Describe writes the plan: every window, its length, the total time. Windows
// that are done, of a run that is carried on, are marked and take no time.
func (p *Prepared) Describe(done func(plan.Window) bool) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("profile %s: %s", p.Profile.Name, p.Profile.Description)
	for _, role := range plan.Roles() {
		r := p.Profile.Roles[role]
		line := fmt.Sprintf("  %-5s CPUs %-8s %s", role, r.CPUs, r.Memory)
		if c := p.Profile.Cloud; c != nil && c.Instances[role] != "" {
			line += "  on " + c.Instances[role]
		}
		if n := p.Profile.Load.Hosts(); role == plan.Load && n > 1 {
			line += fmt.Sprintf("  on each of %d hosts", n)
		}
		add("%s", line)
	}
	add("  %d database connections", p.Profile.DatabaseConnections)
	add("preset %s: %s", p.Preset.Name, p.Preset.Description)
	add("flavour %s, seed %d", p.Profile.Flavour, p.Seed)
	for _, c := range p.Caveats() {
		add("note: %s", c)
	}
	o := plan.DefaultOverhead()
	for i, b := range p.List.Blocks {
		left := len(b.Left(done))
		add("")
		if left == 0 {
			add("block %d of %d: phase %s, %s, repetition %d, done", i+1, len(p.List.Blocks), b.Phase, b.Candidate, b.Repetition)
			continue
		}
		add("block %d of %d: phase %s, %s, repetition %d, about %s", i+1, len(p.List.Blocks), b.Phase, b.Candidate, b.Repetition, p.List.BlockTime(b, left, o).Round(time.Second))
		add("  database copy, prewarm, checkpoint")
		add("  probe    %6s  %d connections, %d/s", p.Preset.Probe.Window, p.Preset.Probe.Connections, p.Preset.Probe.Target)
		for _, w := range b.Warmups() {
			add("  warm-up  %6s  %s", p.Preset.Warmup, w.Scenario)
		}
		for _, w := range b.Windows {
			target := "as many as they carry"
			switch {
			case w.Target > 0:
				target = fmt.Sprintf("%d/s", w.Target)
			case w.Share > 0:
				target = fmt.Sprintf("%g of the ceiling", w.Share)
			}
			if done(w) {
				target += ", done"
			}
			add("  window   %6s  %-6s %4d connections, %s", plan.Duration(w.Length()), w.Scenario, w.Connections, target)
			if sends := w.Sends(); len(sends) > 1 {
				for _, s := range sends {
					add("                   %-6s %4d connections, %.4g %%", s.Scenario, s.Connections, 100*s.Share)
				}
			}
		}
	}
	left := p.List.Left(done)
	measuring, total := p.List.WindowTime(done), p.List.Time(o, done).Round(time.Second)
	add("")
	if finished := p.List.Windows() - left; finished > 0 {
		add("%d of %d windows are done; %d are left, %s of measuring, about %s in all (not counting windows that a gate has measured again)",
			finished, p.List.Windows(), left, measuring, total)
		return lines
	}
	add("%d windows in %d blocks, %s of measuring, about %s in all (not counting windows that a gate has measured again)",
		p.List.Windows(), len(p.List.Blocks), measuring, total)
	return lines
}

// scopes lists the scopes that the scenarios need.
func (p *Prepared) scopes() []string {
	var all []string
	for _, s := range p.Suite.Scenarios {
		if s.Scope != "" && !slices.Contains(all, s.Scope) {
			all = append(all, s.Scope)
		}
	}
	return all
}
