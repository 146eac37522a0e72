package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
)

// States of a run. The first three also are the messages of EventRunEnded.
const (
	StateComplete    = "complete"
	StateInterrupted = "interrupted"
	StateFailed      = "failed"
	StateRunning     = "running"
	StateNotMeasured = "not measured" // there are machines, and no run yet; of a Summary only
)

// Summary is one line of `percore ls`.
type Summary struct {
	ID          string       `json:"id"`
	Started     time.Time    `json:"started"`
	State       string       `json:"state"` // empty for a folder that cannot be read
	Profile     string       `json:"profile"`
	Preset      string       `json:"preset"`
	Flavour     plan.Flavour `json:"flavour"`
	Done        int          `json:"windows_done"`    // windows with an attempt that is evidence
	Planned     int          `json:"windows_planned"` // 0 when not known
	GatesFailed int          `json:"gates_failed"`    // attempts that a gate failed
	Problem     string       `json:"problem,omitempty"`
}

// Summary says how the run stands.
func (s *Store) Summary() Summary {
	run, h := s.Run(), s.History()
	sum := Summary{
		ID: run.ID, Started: run.Started, State: h.State(), Profile: run.Profile.Name,
		Preset: run.Preset.Name, Flavour: run.Flavour, Planned: run.Planned(),
	}
	if locked(s.dir) {
		sum.State = StateRunning
	}
	passed := map[string]bool{}
	for _, e := range h.Events {
		if e.Type != EventWindow {
			continue
		}
		if e.Window.Passed() {
			passed[e.Window.Key()] = true
		}
		for _, g := range e.Window.Gates {
			if g.Failed() {
				sum.GatesFailed++
				break
			}
		}
	}
	sum.Done = len(passed)
	return sum
}

// List returns the runs below the folder of all results, oldest first. A folder
// that looks like a run but cannot be read is listed with what is wrong, and one
// that has nothing but machines as not measured, since they were made. A results
// folder that does not exist yet holds no runs.
func List(results string) ([]Summary, error) {
	entries, err := os.ReadDir(results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the runs: %w", err)
	}
	var all []Summary
	for _, e := range entries {
		dir := filepath.Join(results, e.Name())
		if !holdsRun(results, e) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, RunFile)); err != nil {
			if provisioned(dir) {
				sum := Summary{ID: e.Name(), State: StateNotMeasured}
				if info, err := os.Stat(filepath.Join(dir, CloudDir)); err == nil {
					sum.Started = info.ModTime().UTC()
				}
				all = append(all, sum)
			}
			continue
		}
		s, err := Open(dir)
		if err != nil {
			sum := Summary{ID: e.Name(), Problem: err.Error()}
			if run, err := readRun(dir); err == nil {
				sum.Started, sum.Profile, sum.Preset, sum.Flavour = run.Started, run.Profile.Name, run.Preset.Name, run.Flavour
			}
			all = append(all, sum)
			continue
		}
		sum := s.Summary()
		sum.ID = e.Name()
		all = append(all, sum)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Started.Before(all[j].Started) })
	return all, nil
}

// Find turns what a person typed into the path of a results folder: the id of
// a run, the beginning of one that is unique, "latest", or a path.
func Find(results, arg string) (string, error) {
	if arg == "" {
		return "", fail.Input("no run given").Try("%s lists the runs, and latest names the newest", fail.Call("ls"))
	}
	if arg == latest {
		return newest(results)
	}
	if !strings.ContainsRune(arg, filepath.Separator) && arg != "." && arg != ".." {
		if dir := filepath.Join(results, arg); isDir(dir) {
			return dir, nil
		}
		if isDir(arg) {
			return arg, nil
		}
		entries, err := os.ReadDir(results)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("looking for a run: %w", err)
		}
		var hits []string
		for _, e := range entries {
			if holdsRun(results, e) && strings.HasPrefix(e.Name(), arg) {
				hits = append(hits, e.Name())
			}
		}
		switch len(hits) {
		case 1:
			return filepath.Join(results, hits[0]), nil
		case 0:
			return "", fail.Input("there is no run %q in %s", arg, results).Try("%s lists the runs", fail.Call("ls"))
		}
		return "", fail.Input("%q is the beginning of %d runs (%s)", arg, len(hits), strings.Join(hits[:min(len(hits), 4)], ", ")).Try("type more of the id")
	}
	if _, err := os.Stat(arg); err == nil && !isDir(arg) {
		return "", fail.In(arg, "this is not a folder").Try("name a results folder; %s lists the runs", fail.Call("ls"))
	}
	if !isDir(arg) {
		return "", fail.In(arg, "there is no such results folder").Try("%s lists the runs", fail.Call("ls"))
	}
	return arg, nil
}

// newest is the folder of the run that was started last.
func newest(results string) (string, error) {
	entries, err := os.ReadDir(results)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for the latest run: %w", err)
	}
	var dir string
	var started time.Time
	for _, e := range entries {
		if !holdsRun(results, e) {
			continue
		}
		d := filepath.Join(results, e.Name())
		if run, err := readRun(d); err == nil && (dir == "" || run.Started.After(started)) {
			dir, started = d, run.Started
		}
	}
	if dir == "" {
		return "", fail.Input("there is no run in %s yet", results).Try("%s or `make local-run` makes one", fail.Call("run"))
	}
	return dir, nil
}

// holdsRun reports whether an entry of the folder of all results can be a run: a
// folder, or a link to one that was moved elsewhere.
func holdsRun(results string, e fs.DirEntry) bool {
	if strings.HasPrefix(e.Name(), ".") || e.Name() == latest {
		return false
	}
	return e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(filepath.Join(results, e.Name()))
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// CheckResume reports in one sentence what stands against carrying on this run
// with the suite, profile, preset, candidates, flavour and seed of another
// description of it: the first setting that differs, with both values.
func (s *Store) CheckResume(now Run) error {
	was := s.Run()
	for _, c := range []struct {
		name     string
		was, now any
	}{
		{"profile", was.Profile, now.Profile},
		{"preset", was.Preset, now.Preset},
		{"suite", was.Suite, now.Suite},
		{"candidates", was.Candidates, now.Candidates},
		{"flavour", was.Flavour, now.Flavour},
		{"seed", was.Seed, now.Seed},
	} {
		place, a, b, err := difference(c.name, c.was, c.now)
		if err != nil {
			return err
		}
		if place != "" {
			return fail.Input("run %s cannot be resumed: %s was %s and is %s now", was.ID, place, a, b).Try("undo the change, or start a new run")
		}
	}
	return nil
}

// difference finds the first place at which two values differ as JSON.
func difference(name string, a, b any) (place, was, is string, err error) {
	var va, vb any
	for _, v := range []struct {
		from any
		to   *any
	}{{a, &va}, {b, &vb}} {
		data, err := json.Marshal(v.from)
		if err != nil {
			return "", "", "", fmt.Errorf("comparing %s: %w", name, err)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber() // a seed does not fit into a float64
		if err := dec.Decode(v.to); err != nil {
			return "", "", "", fmt.Errorf("comparing %s: %w", name, err)
		}
	}
	place, was, is = differ(name, va, vb)
	return place, was, is, nil
}

func differ(name string, a, b any) (place, was, is string) {
	show := func(v any) string {
		if v == nil {
			return "not set"
		}
		data, _ := json.Marshal(v)
		return string(data)
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := make([]string, 0, len(x)+len(y))
		for k := range x {
			keys = append(keys, k)
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		for _, k := range keys {
			if place, was, is := differ(name+"."+k, x[k], y[k]); place != "" {
				return place, was, is
			}
		}
		return "", "", ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if place, was, is := differ(fmt.Sprintf("%s[%d]", name, i), x[i], y[i]); place != "" {
				return place, was, is
			}
		}
		return "", "", ""
	default:
		if a == b {
			return "", "", ""
		}
	}
	if va, vb := show(a), show(b); va != vb {
		return name, va, vb
	}
	return "", "", ""
}

// ReadingOf returns the reading that a probe event carries.
func ReadingOf(e Event) (ProbeReading, bool) {
	var r ProbeReading
	if e.Type != EventProbe || json.Unmarshal(e.Data, &r) != nil {
		return r, false
	}
	return r, true
}

// digestOf is the SHA-256 digest of a file's bytes in hexadecimal.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
