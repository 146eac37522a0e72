package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/oha"
)

// Problem is something about the files of a run that does not agree with its
// log.
type Problem struct {
	Path  string // below the run's folder
	What  string // a sentence
	Fatal bool   // whether a figure rests on it
}

func (p Problem) String() string { return p.Path + ": " + p.What }

// rawFile is a raw file that the log names with a digest.
type rawFile struct{ path, digest string }

// recorded lists the raw files of which the log holds a digest, in its order,
// every path that it names, and what is wrong with the log itself.
func (s *Store) recorded() (files []rawFile, named map[string]bool, problems []Problem) {
	named = map[string]bool{}
	lost := s.History().lost
	add := func(path, digest string) {
		named[path] = true
		if lost[path] {
			return // the log says so
		}
		files = append(files, rawFile{path, digest})
	}
	wrong := func(path, what string) { problems = append(problems, Problem{path, what, true}) }
	attempts := map[string]bool{}
	for _, e := range s.Events() {
		switch e.Type {
		case EventImported:
			var in Import
			if err := json.Unmarshal(e.Data, &in); err != nil {
				wrong(EventsFile, "the list of imported files cannot be read: "+err.Error())
			}
			for _, name := range slices.Sorted(maps.Keys(in.Files)) {
				add(name, in.Files[name])
			}
		case EventProbe:
			r, ok := ReadingOf(e)
			switch {
			case !ok:
				wrong(EventsFile, "the reading of a reference probe cannot be read")
			case r.SHA256 == "": // the log of an older percore, or of an import
				named[r.File] = true
			default:
				add(r.File, r.SHA256)
				for _, name := range slices.Sorted(maps.Keys(r.Others)) {
					add(name, r.Others[name])
				}
			}
		case EventWindow:
			w := e.Window
			id := w.Key() + "_a" + strconv.Itoa(w.Attempt)
			if attempts[id] {
				wrong(EventsFile, fmt.Sprintf("attempt %d at %s is there twice", w.Attempt, w.Window))
			}
			attempts[id] = true
			for _, name := range w.RawFiles() {
				digest, ok := w.SHA256[name]
				if !ok {
					named[name] = true
					wrong(name, "the log holds no digest of this file")
					continue
				}
				add(name, digest)
			}
		}
	}
	return files, named, problems
}

// compare holds raw files against their digests, several at once, and reports
// those that differ in the order of the list.
func (s *Store) compare(files []rawFile) ([]Problem, error) {
	what := make([]string, len(files))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		g.Go(func() (err error) {
			what[i], err = s.damage(f)
			return err
		})
	}
	err := g.Wait()
	var problems []Problem
	for i, text := range what {
		if text != "" {
			problems = append(problems, Problem{files[i].path, text, true})
		}
	}
	return problems, err
}

// damage says what is wrong with a raw file, "" when its digest is the recorded
// one.
func (s *Store) damage(f rawFile) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(f.path)) {
		return "this raw file lies outside the results folder", nil
	}
	full := filepath.Join(s.dir, filepath.FromSlash(f.path))
	digest, err := digestOfFile(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "this raw file is missing", nil
	case err != nil:
		return "", diskError("checking the raw file", full, err)
	case digest == f.digest:
		return "", nil
	}
	data, err := os.ReadFile(full)
	switch {
	case err != nil:
		return "", diskError("checking the raw file", full, err)
	case len(data) == 0:
		return "this raw file is empty", nil
	}
	text := "this raw file is not what was measured: its SHA-256 digest differs from the recorded one"
	if how := broken(f.path, data); how != "" {
		text += " (" + how + ")"
	}
	return text, nil
}

// digestOfFile is the SHA-256 digest of a file in hexadecimal.
func digestOfFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// broken says how a raw file that differs from what was measured is broken, as
// far as reading it shows that.
func broken(name string, data []byte) string {
	var err error
	switch {
	case strings.HasSuffix(name, RawCGroup):
		if _, err = cgroup.ReadSeries(bytes.NewReader(data), name); err == nil && data[len(data)-1] != '\n' {
			return "its last line is cut off"
		}
	case strings.HasSuffix(name, RawOHA):
		_, err = oha.Parse(name, data)
	}
	if err == nil {
		return ""
	}
	return finding(err, name) // what to do about it is another thing for a file that was sound once
}

// finding is the text of an error about a file without the file's names at its
// beginning, for a place that names it already.
func finding(err error, names ...string) string {
	text := err.Error()
	for _, name := range names {
		text = strings.TrimPrefix(text, name)
	}
	return strings.TrimLeft(text, ":, ")
}

// CheckRaw reports in one sentence the first raw file, in the order of the log,
// that is missing or has another SHA-256 digest than the log holds, with how it
// is damaged and what to do. Only files that the log names with a digest are
// looked at, as bytes: deriving the figures anew is what [Store.Rederive] does.
func (s *Store) CheckRaw() error {
	files, _, _ := s.recorded()
	problems, err := s.compare(files)
	if err != nil || len(problems) == 0 {
		return err
	}
	more := ""
	switch n := len(problems) - 1; {
	case n == 1:
		more = ", and one more raw file is missing or differs"
	case n > 1:
		more = fmt.Sprintf(", and %d more raw files are missing or differ", n)
	}
	p := problems[0]
	return fail.In(filepath.Join(s.dir, filepath.FromSlash(p.Path)), "%s%s", p.What, more).Try("restore it from a copy of the folder, have it measured again with %s, or add %s to read the recorded figures alone", fail.Call("run", fail.Setting("resume")), fail.Setting("no-verify"))
}

// Verify compares every raw file with the digest in the log. A raw file that
// no event names is what a killed driver left: it is mentioned, no figure rests
// on it.
func (s *Store) Verify() ([]Problem, error) {
	files, named, problems := s.recorded()
	damaged, err := s.compare(files)
	problems = append(problems, damaged...)
	if err != nil {
		return problems, err
	}
	root := filepath.Join(s.dir, RawDir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // kept on another disk
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = path.Join(RawDir, filepath.ToSlash(rel))
		// The logs of containers are kept beside the raw files; no figure rests on them.
		if d.Type().IsRegular() && !named[rel] && path.Ext(rel) != ".log" {
			problems = append(problems, Problem{rel, leftover(rel), false})
		}
		return nil
	})
	if err != nil {
		return problems, fmt.Errorf("checking raw files: %w", err)
	}
	return problems, nil
}

// leftover says where a file comes from that no event names.
func leftover(name string) string {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(base, ".") && strings.Contains(base, ".tmp-"):
		return "percore was killed while it wrote this file"
	case !strings.HasPrefix(base, ".") && (path.Ext(base) == ".json" || path.Ext(base) == ".jsonl"):
		return "no event names this file, so percore was killed before its window was done"
	}
	return "this file is not one of percore's, and nothing rests on it"
}

// VerifyLog reports lines that do not follow the one before them, lines that are
// there twice, and events without which the log of a run cannot be whole: its
// beginning, and the contract check of every candidate that was measured.
func (s *Store) VerifyLog() []Problem {
	events := s.Events()
	if len(events) == 0 {
		if s.Run().Ended != nil {
			return []Problem{{EventsFile, "the log is empty although the run has ended", true}}
		}
		return nil
	}
	h := s.History()
	var problems []Problem
	for _, line := range h.broken {
		problems = append(problems, Problem{EventsFile, fmt.Sprintf("line %d does not follow the line before it: lines between them are missing, or one of them was changed", line), true})
	}
	if h.twice > 0 {
		problems = append(problems, Problem{EventsFile, h.Twice(), false})
	}
	imported := slices.ContainsFunc(events, func(e Event) bool { return e.Type == EventImported })
	checked, named := map[string]bool{}, map[string]bool{}
	if t := events[0].Type; t != EventRunStarted && t != EventImported {
		problems = append(problems, Problem{EventsFile, "the log does not begin with the start of the run, so its first lines are lost", true})
	}
	for _, e := range events {
		switch {
		case e.Type == EventVerify:
			checked[e.Message] = true
		case e.Type == EventWindow && !imported && !checked[e.Window.Candidate] && !named[e.Window.Candidate]:
			named[e.Window.Candidate] = true
			problems = append(problems, Problem{EventsFile, "the contract check of " + e.Window.Candidate + " is not in the log before its windows, so lines are lost", true})
		}
	}
	return problems
}
