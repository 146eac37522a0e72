package machines

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/run"
)

// Copies of the profile and the preset that a run was begun with, in Dir. A run
// goes on by them, whatever becomes of the files they were copied from.
const (
	profileCopy = "profile.yaml"
	presetCopy  = "preset.yaml"
)

// keepProfile copies the profile that the run is begun with.
func (d *Driver) keepProfile() error {
	text, err := plan.ProfileText(d.o.Root, d.f.state.Profile)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.f.dir, profileCopy), text)
}

// keepPreset copies the preset of that name or path, unless there is a copy.
func (d *Driver) keepPreset(nameOrFile string) error {
	path := filepath.Join(d.f.dir, presetCopy)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := plan.PresetText(d.o.Root, nameOrFile)
	if err != nil {
		return err
	}
	return writeFile(path, text)
}

// autoPreset leaves the preset to the size of the machines.
const autoPreset = "auto"

// chosen copies the preset that auto stands for on these machines.
func (d *Driver) chosen(p plan.Profile) error {
	if d.f.state.Preset != autoPreset {
		return nil
	}
	return d.keepPreset(plan.ChoosePreset(autoPreset, p))
}

// copyOr is the path of a copy, or what the run was begun with where there is
// none.
func (f *folder) copyOr(name, begun string) string {
	path := filepath.Join(f.dir, name)
	if _, err := os.Stat(path); err != nil {
		return begun
	}
	return path
}

// options are the session's options of the run, as it was begun.
func (d *Driver) options() run.Options {
	o, s := d.o.Options, d.f.state
	o.Suite = s.Suite
	o.Profile, o.Preset, o.Flavour, o.Seed, o.RunID = d.f.copyOr(profileCopy, s.Profile), d.f.copyOr(presetCopy, s.Preset), s.Flavour, s.Seed, s.ID
	o.Selection = plan.Selection{Candidates: s.Candidates, Scenarios: s.Scenarios, Phases: s.Phases}
	return o
}

// needProfile reads the profile of the run.
func (d *Driver) needProfile() error {
	if d.profile.Cloud != nil {
		return nil
	}
	o, s := d.options(), d.f.state
	p, err := plan.FindProfile(o.Root, o.Profile)
	if err != nil {
		return err
	}
	if p.Cloud == nil || p.Cloud.Provider != s.Provider {
		return fail.Input("profile %s has changed since run %s was begun with it: it was for provider %s", o.Profile, s.ID, s.Provider).Try("undo the change")
	}
	d.profile = p
	return nil
}

// vast is a machine on which every plan fits.
var vast = plan.Machine{CPUs: 1024, MemoryBytes: 1 << 50}

// lay lays out a plan before there are machines.
func lay(o run.Options) (*run.Prepared, error) {
	return run.PrepareFor(o, map[plan.Role]plan.Machine{plan.App: vast, plan.DB: vast, plan.Load: vast})
}

// checkCost refuses a limit that is none.
func checkCost(o Options) error {
	if (o.given("max-cost") || o.MaxCostUSD != 0) && (!(o.MaxCostUSD > 0) || math.IsInf(o.MaxCostUSD, 0)) {
		return fail.Input("$%g is no limit for what a run may cost", o.MaxCostUSD).Try("give %s a number of dollars above zero, or leave it out for no limit", fail.Setting("max-cost"))
	}
	return nil
}

// differs refuses flags that say something else than what the run was begun
// with.
func (d *Driver) differs() error {
	o, s := d.o, d.f.state
	set := func(all []string) string { return strings.Join(slices.Sorted(slices.Values(all)), ",") }
	seed := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	for _, c := range []struct{ flag, was, now string }{
		{"suite", s.Suite, plan.SuiteSource(o.Suite)},
		{"profile", s.Profile, plan.Source(o.Profile)},
		{"preset", s.Preset, plan.Source(o.Preset)},
		{"flavour", string(s.Flavour), string(o.Flavour)},
		{"candidates", set(s.Candidates), set(o.Selection.Candidates)},
		{"scenarios", set(s.Scenarios), set(o.Selection.Scenarios)},
		{"phases", set(s.Phases), set(o.Selection.Phases)},
		{"seed", seed(s.Seed), seed(o.Seed)},
		{"region", s.Region, o.Region},
	} {
		if !o.given(c.flag) || c.was == c.now {
			continue
		}
		was := fmt.Sprintf("with %s %s", c.flag, c.was)
		if c.was == "" {
			was = "without " + c.flag
		}
		return fail.Input("run %s was begun %s, and %s is %q now", s.ID, was, c.flag, c.now).Try("leave out %s to go on with that run, or begin a new one with %s and without %s", fail.Setting(c.flag), fail.Setting("profile"), fail.Setting("resume"))
	}
	for _, c := range []struct {
		flag, copied, source string
		read                 func(root, nameOrFile string) ([]byte, error)
	}{{"profile", profileCopy, s.Profile, plan.ProfileText}, {"preset", presetCopy, s.Preset, plan.PresetText}} {
		if !o.given(c.flag) || c.source == autoPreset {
			continue
		}
		now, err := c.read(o.Root, c.source)
		if err != nil {
			return err
		}
		if was, err := os.ReadFile(filepath.Join(d.f.dir, c.copied)); err == nil && !bytes.Equal(was, now) {
			return fail.Input("%s %s has changed since run %s was begun with it", c.flag, c.source, s.ID).Try("leave %s out to go on with the run as it was begun, or begin a new one without %s", fail.Setting(c.flag), fail.Setting("resume"))
		}
	}
	return nil
}

// lasts refuses to go on with machines that have shut themselves down, or that
// will before the whole plan is measured. Where some of it is measured already
// the rest is still worth having, and what will be missing is told.
func (d *Driver) lasts() error {
	s := d.f.state
	if s.Expired() {
		return fail.Input("the machines of run %s shut themselves down at %s UTC, and a run is measured on one set of machines", s.ID, s.Expires.UTC().Format(time.DateTime)).Try("remove what is left of them with %s and start a new run", d.call("down"))
	}
	if s.Expires == nil {
		return nil
	}
	rest, begun, err := d.rest()
	if err != nil {
		return err
	}
	left := time.Until(*s.Expires)
	switch {
	case rest <= left:
	case begun:
		d.say("note: what is left to measure takes about %s, and the machines shut themselves down in %s: the last windows will be missing", plaintext.Duration(rest), plaintext.Duration(left))
	default:
		return fail.Input("run %s takes about %s to measure, and its machines shut themselves down in %s", s.ID, plaintext.Duration(rest), plaintext.Duration(left)).Try("destroy them with %s and start a new run", d.call("down"))
	}
	return nil
}

// rest is about how long the windows take that are not measured yet, and begun
// whether any is.
func (d *Driver) rest() (rest time.Duration, begun bool, err error) {
	p, finished, err := d.left()
	if err != nil {
		return 0, false, err
	}
	return p.List.Time(plan.DefaultOverhead(), finished), p.List.Left(finished) < p.List.Windows(), nil
}

// left is the plan of the run, without a look at its machines, and which of its
// windows are done.
func (d *Driver) left() (*run.Prepared, func(plan.Window) bool, error) {
	st, err := d.stored()
	if err != nil {
		return nil, nil, err
	}
	o := d.options()
	finished := plan.Undone
	if st != nil {
		defer st.Close()
		o = run.ResumeOptions(o, st.Run())
		history, allowed := st.History(), st.Run().Preset.Allowed()
		finished = func(w plan.Window) bool { return protocol.Finished(history.Attempts(w), allowed) }
	}
	p, err := lay(o)
	return p, finished, err
}

// usd writes a limit in cents, or as exactly as it was given.
func usd(v float64) string {
	cents := strconv.FormatFloat(v, 'f', 2, 64)
	if back, err := strconv.ParseFloat(cents, 64); err == nil && back == v {
		return "$" + cents
	}
	return "$" + strconv.FormatFloat(v, 'f', -1, 64)
}
