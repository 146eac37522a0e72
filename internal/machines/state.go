// Package machines carries a run through its stages on machines of their own:
// they are made (or are there already), prepared, measured on and taken away
// again. Each stage can be repeated, and what is known between two stages is in
// the run's folder, so that another process can go on from there.
package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Dir is the folder below a run's folder that holds what belongs to its
// machines. It holds keys, so only its owner may read it.
const Dir = store.CloudDir

const (
	stateFile    = "cloud.json"
	lockFile     = "lock"
	stateVersion = 1
)

// State is cloud.json: what was asked for and how far it has come.
type State struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`

	Profile    string       `json:"profile"` // name or path
	Preset     string       `json:"preset"`  // the same
	Flavour    plan.Flavour `json:"flavour,omitempty"`
	Candidates []string     `json:"candidates,omitempty"`
	Scenarios  []string     `json:"scenarios,omitempty"`
	Phases     []string     `json:"phases,omitempty"`
	Suite      string       `json:"suite,omitempty"` // name, or the path of its folder; empty for the default
	Seed       uint64       `json:"seed,omitempty"`

	Provider    plan.Provider `json:"provider"`
	Account     string        `json:"account,omitempty"`     // AWS account that the machines are in
	AWSProfile  string        `json:"aws_profile,omitempty"` // of the user's AWS configuration
	Region      string        `json:"region,omitempty"`
	Zone        string        `json:"zone,omitempty"`
	SSHFrom     []string      `json:"ssh_from,omitempty"`     // networks that may reach port 22
	SSHDetected bool          `json:"ssh_detected,omitempty"` // SSHFrom is the address that percore was seen at
	Keep        bool          `json:"keep,omitempty"`         // the machines outlive the run until they expire
	MaxCostUSD  float64       `json:"max_cost_usd,omitempty"` // 0 for no limit

	USDPerHour  float64    `json:"usd_per_hour,omitempty"` // on demand, all machines and disks
	PriceSource string     `json:"price_source,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"` // when the machines shut themselves down

	Applied   *time.Time `json:"applied,omitempty"`   // when machines were first asked for: they cost from then on
	Up        *time.Time `json:"up,omitempty"`        // stages that have ended well
	Prepared  *time.Time `json:"prepared,omitempty"`  //
	Measured  *time.Time `json:"measured,omitempty"`  //
	Collected *time.Time `json:"collected,omitempty"` //
	Destroyed *time.Time `json:"destroyed,omitempty"` //

	Facts map[string]map[string]string `json:"facts,omitempty"` // host -> what was found when it was prepared
}

// Pending reports whether something may be left that was made for the run:
// machines, or what they have left behind when they shut themselves down.
func (s State) Pending() bool { return s.Applied != nil && s.Destroyed == nil }

// Expired reports whether the machines have shut themselves down by now.
func (s State) Expired() bool {
	return s.Pending() && s.Expires != nil && !time.Now().Before(*s.Expires)
}

// Live reports whether there may be machines that were made for the run and
// have not shut themselves down yet.
func (s State) Live() bool { return s.Pending() && !s.Expired() }

// Spent is what the machines have cost until now, in dollars: the price by the
// hour times the hours from the first apply until they were destroyed or shut
// themselves down.
func (s State) Spent(now time.Time) float64 {
	if s.Applied == nil {
		return 0
	}
	end := now
	if s.Destroyed != nil && s.Destroyed.Before(end) {
		end = *s.Destroyed
	}
	if s.Expires != nil && s.Expires.Before(end) {
		end = *s.Expires
	}
	return max(0, end.Sub(*s.Applied).Hours()) * s.USDPerHour
}

// facts is the part of run.json that says where the machines come from.
func (s State) facts(now time.Time) *store.Cloud {
	return &store.Cloud{Provider: s.Provider, Region: s.Region, Zone: s.Zone, USDPerHour: s.USDPerHour, PriceSource: s.PriceSource, USDSpent: s.Spent(now)}
}

// folder is a run's folder with its machines' part, locked for this process.
type folder struct {
	run   string // the run's folder
	dir   string // Dir below it
	lock  *flock.Flock
	state State
	saved atomic.Pointer[State] // the state as it was saved last, for other goroutines
}

// create makes the folder of a new run.
func create(results string, s State) (*folder, error) {
	run := filepath.Join(results, s.ID)
	if _, err := sshPath(run); err != nil {
		return nil, err // before there is anything that ssh cannot use
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		return nil, fmt.Errorf("making the results folder: %w", err)
	}
	if err := os.Mkdir(run, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fail.In(run, "a run of this id exists already (%w)", fs.ErrExist).Try("carry on with %s", fail.Call("cloud run", fail.Setting("resume").To(s.ID)))
	} else if err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	f := &folder{run: run, dir: filepath.Join(run, Dir), state: s}
	f.state.Version = stateVersion
	err := os.Mkdir(f.dir, 0o700)
	if err != nil {
		err = fmt.Errorf("making the folder of the run's machines: %w", err)
	} else if err = f.take(); err == nil {
		err = f.save()
	}
	if err != nil {
		f.close()
		return nil, errors.Join(err, os.RemoveAll(run)) // nothing is in it yet
	}
	return f, nil
}

// readState reads the state of a run with machines.
func readState(run string) (State, error) {
	path := filepath.Join(run, Dir, stateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, fail.Input("%s is no cloud run: there is no %s", run, filepath.Join(Dir, stateFile)).Try("%s lists those there are", fail.Call("cloud status"))
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the state of a cloud run: %w", err)
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, fail.Input("%s is not what percore wrote (%v)", path, err).Try("put a copy of it back, or delete the machines with %s and remove the folder %s", fail.Call("cloud sweep", filepath.Base(run)), filepath.Dir(path))
	}
	if s.Version != stateVersion {
		return State{}, fail.Input("%s has version %d and this percore reads version %d", path, s.Version, stateVersion).Try("use the percore that made the run")
	}
	return s, nil
}

// take locks the folder: two processes that change the same machines would
// undo each other's work. A killed process's lock is gone with it.
func (f *folder) take() error {
	f.lock = flock.New(filepath.Join(f.dir, lockFile), flock.SetPermissions(0o600))
	locked, err := f.lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the folder of the run's machines: %w", err)
	}
	if !locked {
		return fail.Work("another percore is working on the machines of %s", f.run).Try("wait for it to end or stop it")
	}
	return nil
}

func (f *folder) close() {
	if f.lock != nil {
		f.lock.Close()
		f.lock = nil
	}
}

// save writes the state: to a temporary name, synced and renamed.
func (f *folder) save() error {
	text, err := marshal(f.state)
	if err != nil {
		return err
	}
	now := f.state
	f.saved.Store(&now)
	return writeFile(filepath.Join(f.dir, stateFile), text)
}

// writeFile writes a file that only its owner may read, whole or not at all.
func writeFile(path string, data []byte) error {
	if err := renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// entry is a cloud run in a results folder: its state, or why that cannot be
// read.
type entry struct {
	id    string
	state State
	err   error
}

func entries(results string) []entry {
	folders, _ := os.ReadDir(results)
	var all []entry
	for _, f := range folders {
		run := filepath.Join(results, f.Name())
		if f.Name() == "latest" {
			continue // the link to the newest run
		}
		if _, err := os.Lstat(filepath.Join(run, Dir, stateFile)); err != nil {
			continue
		}
		s, err := readState(run)
		all = append(all, entry{filepath.Base(run), s, err})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.state.Created.Compare(b.state.Created) })
	return all
}

// List reads the states of all cloud runs in a results folder, oldest first.
// Runs whose state cannot be read are left out, and damaged says why.
func List(results string) (states []State, damaged []error) {
	for _, e := range entries(results) {
		if e.err != nil {
			damaged = append(damaged, e.err)
		} else {
			states = append(states, e.state)
		}
	}
	return states, damaged
}

// Choose finds the folder of the run that a stage is meant for: the named one,
// as store.Find finds it, or the one that has machines, or else the one whose
// machines have expired. Without a name several are refused, and runs whose state
// cannot be read do not count.
func Choose(results, name string) (string, error) {
	if name != "" {
		run, err := store.Find(results, name)
		if err != nil {
			return "", err
		}
		_, err = readState(run)
		return run, err
	}
	all := entries(results)
	var live, expired, damaged []entry
	for _, e := range all {
		switch {
		case e.err != nil:
			damaged = append(damaged, e)
		case e.state.Live():
			live = append(live, e)
		case e.state.Pending():
			expired = append(expired, e)
		}
	}
	what := "have machines"
	if len(live) == 0 {
		live, what = expired, "have machines that shut themselves down"
	}
	switch {
	case len(live) == 1:
		return filepath.Join(results, live[0].id), nil
	case len(live) > 1:
		return "", fail.Input("%d cloud runs %s (%s)", len(live), what, strings.Join(ids(live), ", ")).Try("name one")
	case len(damaged) > 0:
		return "", fail.Input("no cloud run in %s is known to have machines, and the state of %s cannot be read", results, strings.Join(ids(damaged), ", ")).Try("%s says more", fail.Call("cloud status"))
	}
	return "", fail.Input("no cloud run in %s has machines", results).Try("make some with %s, or name a run", fail.Call("cloud up", fail.Setting("profile").To("aws-graviton")))
}

func ids(all []entry) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.id)
	}
	return out
}

func marshal(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
