// Package cloud carries a run through its stages on machines of their own:
// they are made (or are there already), prepared, measured on and taken away
// again. Each stage can be repeated, and what is known between two stages is in
// the run's folder, so that another process can go on from there.
package cloud

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

	"github.com/percore/percore/internal/fail"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/store"
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

	Profile    string          `json:"profile"` // name or path
	Preset     string          `json:"preset"`  // the same
	Flavour    profile.Flavour `json:"flavour,omitempty"`
	Candidates []string        `json:"candidates,omitempty"`
	Scenarios  []string        `json:"scenarios,omitempty"`
	Phases     []string        `json:"phases,omitempty"`
	Seed       uint64          `json:"seed,omitempty"`

	Provider   profile.Provider `json:"provider"`
	AWSProfile string           `json:"aws_profile,omitempty"` // of the user's AWS configuration
	Region     string           `json:"region,omitempty"`
	Zone       string           `json:"zone,omitempty"`
	SSHFrom    []string         `json:"ssh_from,omitempty"` // networks that may reach port 22
	Keep       bool             `json:"keep,omitempty"`     // the machines outlive the run until they expire
	MaxCostUSD float64          `json:"max_cost_usd,omitempty"`

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

// Live reports whether there may be machines that were made for the run.
func (s State) Live() bool { return s.Applied != nil && s.Destroyed == nil }

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
	if err := os.MkdirAll(results, 0o755); err != nil {
		return nil, fmt.Errorf("making the results folder: %w", err)
	}
	if err := os.Mkdir(run, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fail.Input("%s: a run of this id exists already; carry on with `percore cloud run %s` (%w)", run, s.ID, fs.ErrExist)
	} else if err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	f := &folder{run: run, dir: filepath.Join(run, Dir), state: s}
	f.state.Version = stateVersion
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the run's machines: %w", err)
	}
	if err := f.take(); err != nil {
		return nil, err
	}
	return f, f.save()
}

// readState reads the state of a run with machines.
func readState(run string) (State, error) {
	path := filepath.Join(run, Dir, stateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, fail.Input("%s is no cloud run: there is no %s; `percore cloud status` lists those there are", run, filepath.Join(Dir, stateFile))
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the state of a cloud run: %w", err)
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, fail.Input("%s is not what percore wrote (%v); without it, find and delete the machines with `percore cloud sweep`", path, err)
	}
	if s.Version != stateVersion {
		return State{}, fail.Input("%s has version %d and this percore reads version %d; use the percore that made the run", path, s.Version, stateVersion)
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
		return fmt.Errorf("another percore is working on the machines of %s; wait for it to end or stop it", f.run)
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

// List reads the states of all cloud runs in a results folder, oldest first.
func List(results string) ([]State, error) {
	paths, err := filepath.Glob(filepath.Join(results, "*", Dir, stateFile))
	if err != nil {
		return nil, err
	}
	var all []State
	for _, p := range paths {
		run := filepath.Dir(filepath.Dir(p))
		if info, err := os.Lstat(run); err != nil || !info.IsDir() {
			continue // the link to the newest run
		}
		s, err := readState(run)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b State) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Choose finds the run that a stage is meant for: the named one, or the one
// that has machines. Without a name several with machines are refused.
func Choose(results, id string) (string, error) {
	all, err := List(results)
	if err != nil && id == "" {
		return "", err
	}
	if id != "" {
		var matches []string
		for _, s := range all {
			if s.ID == id {
				return id, nil
			}
			if strings.HasPrefix(s.ID, id) {
				matches = append(matches, s.ID)
			}
		}
		switch {
		case len(matches) == 1:
			return matches[0], nil
		case len(matches) > 1:
			return "", fail.Input("%q could be %s; write more of the id", id, strings.Join(matches, " or "))
		case err != nil:
			return "", err
		}
		return "", fail.Input("there is no cloud run %q in %s; `percore cloud status` lists those there are", id, results)
	}
	var live []string
	for _, s := range all {
		if s.Live() {
			live = append(live, s.ID)
		}
	}
	switch len(live) {
	case 0:
		return "", fail.Input("no cloud run in %s has machines; make some with `percore cloud up --profile aws-graviton`, or name a run with --run", results)
	case 1:
		return live[0], nil
	}
	return "", fail.Input("%d cloud runs have machines (%s); name one with --run", len(live), strings.Join(live, ", "))
}

func marshal(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
