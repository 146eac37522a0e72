// Package session joins profile, images, lab, contract, protocol and store to
// one run: what the commands run and verify do, without their flags.
package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/engine"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/protocol"
)

// Options is what a user may choose.
type Options struct {
	Root      string          // project folder
	Results   string          // folder of the runs
	Version   string          // of percore
	Profile   string          // name, file or auto
	Preset    string          // name, file or auto
	Flavour   profile.Flavour // empty leaves it to the profile
	Selection profile.Selection
	Seed      uint64 // 0 draws one
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
	Engine  *engine.Engine // nil when none answered and none was needed
	Info    engine.Info
	Suite   profile.Suite
	Profile profile.Profile
	Preset  profile.Preset
	Plan    protocol.Plan
}

// Prepare reads the files, asks the engine what it offers and lays out the
// plan. The files come first, so that a typing error is not hidden behind a
// missing engine. Without an engine Prepare fails, unless offline is set: then
// the machine percore runs on stands in for it, which is good enough to show a
// plan. The caller closes the engine.
func Prepare(ctx context.Context, o Options, offline bool) (*Prepared, error) {
	p := &Prepared{Options: o}
	suite, err := profile.ReadSuite(o.Root)
	if err != nil {
		return nil, err
	}
	if o.Profile != "auto" {
		if p.Profile, err = profile.FindProfile(o.Root, o.Profile); err != nil {
			return nil, err
		}
	}
	if o.Preset != "auto" {
		if p.Preset, err = profile.FindPreset(o.Root, o.Preset); err != nil {
			return nil, err
		}
		if _, _, err = profile.Select(suite, p.Preset, o.Selection); err != nil {
			return nil, err
		}
	}
	machine, err := p.machine(ctx, offline)
	if err != nil {
		return nil, err
	}
	if err := p.choose(suite, machine); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// machine connects to the engine and asks for its size.
func (p *Prepared) machine(ctx context.Context, offline bool) (profile.Machine, error) {
	var err error
	if p.Engine, err = engine.Connect(ctx, engine.Options{}); err == nil {
		if p.Info, err = p.Engine.Info(ctx); err == nil {
			return profile.Machine{CPUs: p.Info.CPUs, MemoryBytes: p.Info.Memory}, nil
		}
		p.Close()
	}
	if !offline || ctx.Err() != nil {
		return profile.Machine{}, err
	}
	return profile.Machine{CPUs: runtime.NumCPU(), MemoryBytes: 8 << 30}, nil
}

// choose settles everything that depends on the machine.
func (p *Prepared) choose(suite profile.Suite, m profile.Machine) (err error) {
	if p.Options.Profile == "auto" {
		if p.Profile, err = profile.FindProfile(p.Root, profile.Choose("auto", m)); err != nil {
			return err
		}
	}
	if p.Profile, err = p.Profile.Resolve(m); err != nil {
		return err
	}
	if p.Flavour != "" && p.Flavour != profile.FlavourAuto {
		p.Profile.Flavour = p.Flavour
	}
	if p.Options.Preset == "auto" {
		if p.Preset, err = profile.FindPreset(p.Root, profile.ChoosePreset("auto", p.Profile)); err != nil {
			return err
		}
	}
	if p.Suite, p.Preset, err = profile.Select(suite, p.Preset, p.Selection); err != nil {
		return err
	}
	if p.Seed == 0 {
		p.Seed = rand.Uint64()>>1 | 1 // positive in every reader of JSON
	}
	p.Plan = protocol.NewPlan(p.Suite, p.Preset, p.Seed)
	return nil
}

// Close lets go of the engine.
func (p *Prepared) Close() {
	if p.Engine != nil {
		p.Engine.Close()
		p.Engine = nil
	}
}

// Caveats says why the figures of this run may not stand beside the published
// ones. An empty list means that they may.
func (p *Prepared) Caveats() []string {
	var all []string
	if pairs := p.Profile.SharedRoles(); len(pairs) > 0 {
		all = append(all, "roles share cores ("+strings.Join(pairs, ", ")+"): figures are not comparable with the published ones")
	} else if p.Profile.Name != "m4pro" {
		all = append(all, fmt.Sprintf("the candidate has %d core(s) and the study's had 4: compare CPU per request and ratios, not rates", p.Profile.Roles[profile.App].CPUs.Count()))
	}
	if !p.Preset.Published {
		all = append(all, "preset "+p.Preset.Name+": "+p.shorter())
	}
	if p.Profile.Flavour == profile.FlavourDebian {
		all = append(all, "flavour debian: PHP 8.2 and Debian's packages stand in for the study's versions")
	}
	return all
}

// shorter says how the preset differs from the published protocol.
func (p *Prepared) shorter() string {
	var parts []string
	for _, ph := range p.Preset.Phases {
		s := fmt.Sprintf("%s windows of %s, %d repetition(s)", ph.ID, ph.Window, ph.Repetitions)
		if len(ph.Targets) > 0 {
			var targets []string
			for _, sc := range p.Suite.Scenarios {
				targets = append(targets, fmt.Sprintf("%s %d/s", sc.ID, ph.Targets[sc.ID]))
			}
			s += ", targets " + strings.Join(targets, ", ")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ") + "; the published protocol has longer windows, more repetitions and higher targets"
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

// Describe writes the plan: every window, its length, the total time.
func (p *Prepared) Describe() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("profile %s: %s", p.Profile.Name, p.Profile.Description)
	for _, role := range profile.Roles() {
		r := p.Profile.Roles[role]
		add("  %-5s CPUs %-8s %s", role, r.CPUs, r.Memory)
	}
	add("  %d database connections", p.Profile.DatabaseConnections)
	add("preset %s: %s", p.Preset.Name, p.Preset.Description)
	add("flavour %s, seed %d", p.Profile.Flavour, p.Seed)
	for _, c := range p.Caveats() {
		add("note: %s", c)
	}
	o := protocol.DefaultOverhead()
	for i, b := range p.Plan.Blocks {
		add("")
		add("block %d of %d: phase %s, %s, repetition %d, about %s", i+1, len(p.Plan.Blocks), b.Block.Phase, b.Candidate, b.Repetition, p.Plan.BlockTime(b, len(b.Windows), o).Round(time.Second))
		add("  database copy, prewarm, checkpoint")
		add("  probe    %6s  %d connections, %d/s", p.Preset.Probe.Window, p.Preset.Probe.Connections, p.Preset.Probe.Target)
		for _, sc := range b.Warmups {
			add("  warm-up  %6s  %s", p.Preset.Warmup, sc.ID)
		}
		for _, w := range b.Windows {
			target := "as many as they carry"
			if w.Target > 0 {
				target = fmt.Sprintf("%d/s", w.Target)
			}
			add("  window   %6s  %-6s %4d connections, %s", b.Phase.Window, w.Scenario, w.Connections, target)
		}
	}
	add("")
	add("%d windows in %d blocks, %s of measuring, about %s in all (not counting windows that a gate has measured again)",
		p.Plan.Windows(), len(p.Plan.Blocks), p.Plan.WindowTime(), p.Plan.Time(o).Round(time.Second))
	return lines
}

// tokenLife is how long the run's tokens are valid: every window may be
// measured three times, and building and seeding come first.
func (p *Prepared) tokenLife() time.Duration {
	return time.Hour + protocol.MaxAttempts*p.Plan.Time(protocol.DefaultOverhead())
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
