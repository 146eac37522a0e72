// Package store keeps the results folder of a run: run.json with its identity,
// events.jsonl as an append-only log of everything that happened, and raw/
// with the measured files, verbatim. Nothing is ever overwritten, and a driver
// killed at any point leaves a folder that can be read and carried on with.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/outfile"
)

// File names in a results folder.
const (
	RunFile    = "run.json"
	EventsFile = "events.jsonl"
	RawDir     = "raw"
	CloudDir   = "cloud" // the machines of a run in a cloud; there before the run is
	lockFile   = "lock"
)

// Store is one results folder. Opened, it can be read; locked, it can be
// written to as well, by one process at a time.
type Store struct {
	dir string

	mu      sync.Mutex
	run     Run
	history History
	events  *os.File     // for append, nil unless locked
	lock    *flock.Flock // nil unless locked
	size    int64        // of events.jsonl, while locked
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Create makes the folder of a new run below the folder of all results, locked
// for this process. The folder appears under its name only when run.json is in
// it. The link "latest" beside it is pointed at the new run where links work.
//
// A folder of that name that holds nothing but [CloudDir] becomes the run's: its
// machines were there before anything was measured. It is a run from the moment
// at which run.json appears in it.
func Create(results string, run Run) (*Store, error) {
	if !idPattern.MatchString(run.ID) || run.ID == latest {
		return nil, fail.Input("%q is no id for a run", run.ID).Try("take letters, digits, dots, dashes and underscores")
	}
	run.Version, run.Blocks = Version, run.List().Blocks
	if err := os.MkdirAll(results, 0o777); err != nil {
		return nil, diskError("making the results folder", results, err)
	}
	dir := filepath.Join(results, run.ID)
	var s *Store
	var err error
	switch _, lstat := os.Lstat(dir); {
	case lstat != nil:
		s, err = createNew(results, dir, run)
	case provisioned(dir):
		s, err = createWithin(dir, run)
	default:
		err = taken(dir, run.ID)
	}
	if err != nil {
		return nil, err
	}
	syncDir(results)
	pointLatest(results, run.ID)
	return s, nil
}

func taken(dir, id string) error {
	return fail.In(dir, "a run of this id exists already").Try("choose another id or carry on with %s", fail.Call("run", fail.Setting("resume").To(id)))
}

// createNew makes a folder under another name and renames it.
func createNew(results, dir string, run Run) (*Store, error) {
	tmp, err := outfile.TempDir(dir)
	if err != nil {
		return nil, diskError("making a results folder in", results, err)
	}
	defer os.RemoveAll(tmp) // fails when it has been renamed, as it should
	if err := os.Mkdir(filepath.Join(tmp, RawDir), 0o777); err != nil {
		return nil, diskError("making the folder of raw files in", tmp, err)
	}
	s := &Store{dir: tmp, run: run}
	if err := s.writeRun(run); err != nil {
		return nil, err
	}
	if err := writeNew(filepath.Join(tmp, EventsFile), nil); err != nil {
		return nil, err
	}
	if err := s.Lock(); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		s.Close()
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
			return nil, taken(dir, run.ID)
		}
		return nil, diskError("making the results folder", dir, err)
	}
	s.dir = dir
	return s, nil
}

// createWithin makes a run of a folder that holds the machines' alone. What
// makes it a run, run.json, comes last: a driver killed before that leaves a
// folder of which a run can still be made.
func createWithin(dir string, run Run) (_ *Store, err error) {
	raw := filepath.Join(dir, RawDir)
	if err := os.Mkdir(raw, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, diskError("making the folder of raw files in", dir, err)
	}
	if err := writeNew(filepath.Join(dir, EventsFile), nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	s := &Store{dir: dir, run: run}
	if err := s.Lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if !provisioned(dir) { // another process was faster
		return nil, taken(dir, run.ID)
	}
	return s, s.writeRun(run)
}

// provisioned reports whether a folder holds machines and nothing that was
// measured: CloudDir, and at most what a Create that did not come to its end
// left.
func provisioned(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	machines := false
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == CloudDir && e.IsDir():
			machines = true
		case name == lockFile, strings.HasPrefix(name, "."):
		case name == EventsFile:
			if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
				return false
			}
		case name == RawDir && e.IsDir():
			if left, err := os.ReadDir(filepath.Join(dir, name)); err != nil || len(left) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return machines
}

// IsRun reports whether a folder is that of a run, whole or not: whether it
// holds run.json or the log.
func IsRun(dir string) bool {
	for _, name := range []string{RunFile, EventsFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Open reads a results folder. It can be read while another process measures
// into it.
func Open(dir string) (*Store, error) {
	run, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, run: run}
	if s.history, err = readEvents(filepath.Join(dir, EventsFile)); err != nil {
		return nil, err
	}
	return s, nil
}

// Lock takes the folder for this process until Close, reads what another may
// have appended since Open, and puts a line cut off by a kill out of the way. A
// folder that another percore is measuring into is refused.
func (s *Store) Lock() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil {
		return nil
	}
	lock, err := lockExclusive(filepath.Join(s.dir, lockFile))
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			lock.Close()
		}
	}()
	name := filepath.Join(s.dir, EventsFile)
	h, err := readEvents(name)
	if err != nil {
		return err
	}
	events, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return diskError("opening", name, err)
	}
	if err := repair(events, &h); err != nil {
		events.Close()
		return err
	}
	info, err := events.Stat()
	if err != nil {
		events.Close()
		return diskError("opening", name, err)
	}
	s.history, s.events, s.lock, s.size = h, events, lock, info.Size()
	keep = true
	return nil
}

// Close gives the folder free. A store that was only read need not be closed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.events != nil {
		err = s.events.Close()
		s.events = nil
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// Dir is the path of the results folder.
func (s *Store) Dir() string { return s.dir }

// Run is run.json, with the targets in its list of windows that have become known
// since the run began.
func (s *Store) Run() Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.run
	for _, r := range s.history.targets {
		run.Blocks = run.List().With(r).Blocks
	}
	return run
}

// SaveRun replaces run.json, for facts that are known only later such as the
// end of the run. The id stays.
func (s *Store) SaveRun(run Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return fmt.Errorf("%s: the results folder is not locked for writing", s.dir)
	}
	run.Version, run.ID, run.Blocks = Version, s.run.ID, s.run.List().Blocks
	if err := s.writeRun(run); err != nil {
		return err
	}
	s.run = run
	return nil
}

// writeRun replaces run.json.
func (s *Store) writeRun(run Run) error {
	data, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", RunFile, err)
	}
	return replace(filepath.Join(s.dir, RunFile), append(data, '\n'))
}

// Append adds one event to the log: one line, on disk when Append returns. An
// event without a time gets the present one.
func (s *Store) Append(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		return fmt.Errorf("%s: the results folder is not locked for writing", s.dir)
	}
	if e.Type == "" {
		return fmt.Errorf("%s: an event without a type", s.dir)
	}
	if e.Type == EventWindow && e.Window == nil {
		return fmt.Errorf("%s: a window event without its window", s.dir)
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	e.Prev = s.history.tail
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("%s: writing an event of type %s: %w", s.dir, e.Type, err)
	}
	name := filepath.Join(s.dir, EventsFile)
	tail := digestOf(line)
	line = append(line, '\n')
	if n, err := s.events.Write(line); err != nil {
		if n > 0 {
			// Nobody has been told that this line exists: take the part of it
			// back, so that the next line starts where a line should.
			_ = os.Truncate(name, s.size)
		}
		return diskError("appending to", name, err)
	}
	if err := s.events.Sync(); err != nil {
		return diskError("appending to", name, err)
	}
	s.size += int64(len(line))
	s.history.tail, s.history.chained = tail, s.history.chained || e.Prev != ""
	s.history.add(e)
	return nil
}

// Events returns everything that happened, in order.
func (s *Store) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history.Events[:len(s.history.Events):len(s.history.Events)]
}

// History returns what is in the log, with its windows found.
func (s *Store) History() History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history
}

// WriteRaw writes a raw file below the folder, for instance the path that
// RawPath gives, and returns its SHA-256 digest in hexadecimal. The file
// appears whole or not at all, and a file that exists is never touched: that is
// an error.
func (s *Store) WriteRaw(name string, data []byte) (digest string, err error) {
	clean := path.Clean(name)
	if clean != name || !filepath.IsLocal(filepath.FromSlash(name)) || !strings.HasPrefix(name, RawDir+"/") {
		return "", fmt.Errorf("%s: %q is not the name of a raw file", s.dir, name)
	}
	s.mu.Lock()
	locked := s.lock != nil
	s.mu.Unlock()
	if !locked {
		return "", fmt.Errorf("%s: the results folder is not locked for writing", s.dir)
	}
	full := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return "", diskError("making the folder of", full, err)
	}
	if err := writeNew(full, data); err != nil {
		return "", err
	}
	return digestOf(data), nil
}

// ReadRaw reads a raw file by its path below the folder.
func (s *Store) ReadRaw(name string) ([]byte, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fail.In(s.dir, "%q, named in %s, lies outside the results folder", name, EventsFile).Try("copy the folder again from where it was measured")
	}
	full := filepath.Join(s.dir, filepath.FromSlash(name))
	data, err := os.ReadFile(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail.In(full, "this raw file is missing").Try("copy the folder again from where it was measured")
	}
	if err != nil {
		return nil, fmt.Errorf("reading a raw file: %w", err)
	}
	return data, nil
}

// readRun reads run.json and refuses what is not a results folder of this
// version.
func readRun(dir string) (Run, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Run{}, fail.In(dir, "there is no such results folder").Try("%s lists the runs", fail.Call("ls"))
	case err != nil:
		return Run{}, fmt.Errorf("opening a results folder: %w", err)
	case !info.IsDir():
		return Run{}, fail.In(dir, "this is a file and not a results folder").Try("name the folder that holds %s", RunFile)
	}
	name := filepath.Join(dir, RunFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && provisioned(dir) {
		return Run{}, fail.In(dir, "nothing has been measured in this run yet, it only has machines").Try("%s says how it stands", fail.Call("cloud status", filepath.Base(dir)))
	}
	if errors.Is(err, fs.ErrNotExist) && IsRun(dir) {
		return Run{}, fail.In(dir, "%s is missing in this results folder, so its log cannot be read", RunFile).Try("restore it from a copy")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, fail.In(dir, "this is not a results folder, there is no %s in it", RunFile).Try("%s lists the runs", fail.Call("ls"))
	}
	if err != nil {
		return Run{}, fmt.Errorf("opening a results folder: %w", err)
	}
	return parseRun(name, data)
}

// parseRun reads the text of run.json.
func parseRun(name string, data []byte) (Run, error) {
	const copyAgain = "copy the folder again from where it was measured"
	if len(bytes.TrimSpace(data)) == 0 {
		return Run{}, fail.In(name, "the file is empty").Try("%s", copyAgain)
	}
	var head struct {
		Version *int   `json:"version"`
		Percore string `json:"percore"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Run{}, fail.In(fail.Line(name, lineOf(data, err)), "not the JSON of a run (%v)", err).Try("%s", copyAgain)
	}
	switch {
	case head.Version == nil:
		return Run{}, fail.In(name, "there is no layout version in it, so it is not the file of a percore run").Try("%s", copyAgain)
	case *head.Version < 1 || *head.Version > Version:
		by := ""
		if head.Percore != "" {
			by = " by percore " + head.Percore
		}
		return Run{}, fail.In(name, "the folder was written%s in layout version %d, and this percore reads up to version %d", by, *head.Version, Version).Try("use a percore of that version")
	}
	var run Run
	if err := json.Unmarshal(data, &run); err != nil {
		return Run{}, fail.In(fail.Line(name, lineOf(data, err)), "not the JSON of a run (%v)", err).Try("%s", copyAgain)
	}
	if !idPattern.MatchString(run.ID) {
		return Run{}, fail.In(name, "%q is not the id of a run", run.ID).Try("%s", copyAgain)
	}
	return run, nil
}

// lineOf is the line on which a JSON error lies, from 1.
func lineOf(data []byte, err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(0)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}
