// Package importer makes a results folder out of a raw folder of the published
// study, so that whoever ran the original scripts stands beside a percore run.
// The raw files are copied byte for byte; the figures in the log are derived
// from them by the same definitions.
package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
)

// Summary says what was imported.
type Summary struct {
	Dir     string // of the new results folder
	ID      string
	Windows int
	Probes  int
	Files   int      // raw files, the descriptions included
	Notes   []string // what the reader of the folder noticed
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Import reads the study's folder, or one that holds it, and makes the results
// folder of a run below results. An empty id stands for study- and the stamp of
// the campaign. A folder that ends half made, on an error, stays as it is and
// says so in its log.
func Import(dir, results, id string) (s Summary, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return s, fail.In(dir, "there is no such folder").Try("name the raw folder of the study")
	}
	if _, err := os.Stat(filepath.Join(dir, store.RunFile)); err == nil {
		return s, fail.In(dir, "this is the results folder of a percore run and needs no import").Try("name it where a run is expected")
	}
	found := study.Locate(dir)
	if found == "" {
		return s, fail.In(dir, "this is no folder of the study").Try("name the one that holds its meta.json and raw")
	}
	in, err := study.Read(found)
	if err != nil {
		return s, err
	}
	run := in.Run
	run.Percore = study.ImportedBy
	if run.ID = id; id == "" {
		run.ID = "study-" + strings.Trim(unfit.ReplaceAllString(in.Run.ID, "-"), "-")
	}
	st, err := store.Create(results, run)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s = Summary{Dir: st.Dir(), ID: run.ID, Notes: in.Notes}
	defer func() {
		message := store.StateComplete
		if err != nil {
			message = store.StateFailed
		}
		end := store.Event{Type: store.EventRunEnded, Message: message}
		if err != nil {
			end.Error = err.Error()
		}
		err = errors.Join(err, st.Append(end))
	}()
	return s, s.fill(st, in, dir)
}

// fill copies the raw files and writes the log.
func (s *Summary) fill(st *store.Store, in *study.Study, from string) error {
	if err := st.Append(store.Event{Type: store.EventRunStarted, Message: "import"}); err != nil {
		return err
	}
	copied := map[string]string{} // path in the study's folder -> path in ours
	digests := map[string]string{}
	place := func(name, phase string) (string, error) {
		if to, ok := copied[name]; ok {
			return to, nil
		}
		data, err := os.ReadFile(filepath.Join(in.Dir, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("importing a raw file: %w", err)
		}
		to := path.Join(store.RawDir, phase, path.Base(name))
		if digests[to], err = st.WriteRaw(to, data); err != nil {
			return "", err
		}
		copied[name] = to
		s.Files++
		return to, nil
	}
	for _, p := range in.Probes {
		to, err := place(p.Reading.File, p.Block.Phase)
		if err != nil {
			return err
		}
		p.Reading.File = to
		data, err := json.Marshal(p.Reading)
		if err != nil {
			return fmt.Errorf("writing a probe's reading: %w", err)
		}
		block := p.Block
		if err := st.Append(store.Event{Type: store.EventProbe, Block: &block, Data: data}); err != nil {
			return err
		}
		s.Probes++
	}
	for _, w := range in.Windows {
		w.SHA256 = map[string]string{}
		for _, file := range []*string{&w.OHA, &w.CGroup} {
			if *file == "" {
				continue
			}
			to, err := place(*file, w.Phase)
			if err != nil {
				return err
			}
			*file, w.SHA256[to] = to, digests[to]
		}
		if err := st.Append(store.Event{Type: store.EventWindow, Window: &w}); err != nil {
			return err
		}
		s.Windows++
	}
	// What belongs to no window comes along: descriptions, and files that were
	// left aside.
	rest := store.Import{From: from, Files: map[string]string{}}
	names := []string{}
	for _, pattern := range []string{"*", "raw/*"} {
		hits, err := fs.Glob(os.DirFS(in.Dir), pattern) // the folder's own name is no pattern
		if err != nil {
			return fmt.Errorf("importing: %w", err)
		}
		for _, hit := range hits {
			names = append(names, filepath.Join(in.Dir, filepath.FromSlash(hit)))
		}
	}
	slices.Sort(names)
	for _, full := range names {
		info, err := os.Lstat(full)
		if err != nil {
			return fmt.Errorf("importing: %w", err)
		}
		rel, err := filepath.Rel(in.Dir, full)
		if err != nil {
			return fmt.Errorf("importing: %w", err)
		}
		rel = filepath.ToSlash(rel)
		if _, done := copied[rel]; done || !info.Mode().IsRegular() {
			continue
		}
		folder := "study"
		if strings.HasPrefix(rel, "raw/") {
			folder = "study/raw"
		}
		to, err := place(rel, folder)
		if err != nil {
			return err
		}
		rest.Files[to] = digests[to]
	}
	data, err := json.Marshal(rest)
	if err != nil {
		return fmt.Errorf("writing the list of imported files: %w", err)
	}
	return st.Append(store.Event{Type: store.EventImported, Data: data})
}
