package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
)

// locate finds what a person named: the folder of a run, or a raw folder of the
// published study.
func (a *app) locate(arg string) (dir string, studys bool, err error) {
	// A path needs no project around it.
	if err := a.findRoot(); err != nil && (a.results == "" || arg == "") {
		switch info, statErr := os.Stat(arg); {
		case statErr != nil:
			return "", false, err
		case !info.IsDir():
			return "", false, fail.In(arg, "this is a file").Try("name a results folder")
		}
	}
	if dir, err = store.Find(a.results, arg); err != nil {
		return "", false, err
	}
	if store.IsRun(dir) {
		return dir, false, nil
	}
	if found := study.Locate(dir); found != "" {
		return found, true, nil
	}
	if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) == store.RawDir {
		parent := filepath.Dir(abs) // the raw files themselves were named
		return parent, !store.IsRun(parent), nil
	}
	var below []string
	for _, pattern := range []string{"*", "results/*"} {
		hits, _ := fs.Glob(os.DirFS(dir), pattern) // the folder's own name is no pattern
		for _, hit := range hits {
			hit = filepath.Join(dir, filepath.FromSlash(hit))
			if info, err := os.Lstat(hit); err == nil && info.IsDir() && (store.IsRun(hit) || study.Is(hit)) {
				below = append(below, hit)
			}
		}
	}
	switch n := len(below); {
	case n == 1:
		return "", false, fail.In(dir, "this is not a results folder").Try("pass %s instead", below[0])
	case n > 1:
		more := ""
		if n > 4 {
			more = fmt.Sprintf(" and %d more", n-4)
		}
		return "", false, fail.In(dir, "this is not a results folder").Try("pass one of those below it: %s%s", strings.Join(below[:min(n, 4)], ", "), more)
	}
	return dir, false, nil // opening it says what is missing
}

// damaged holds the raw files of a run against the digests in its log and says
// which differ: path -> what is wrong. With --no-verify it only says that nobody
// has looked.
func (a *app) damaged(s *store.Store) (map[string]string, error) {
	if s == nil {
		return nil, nil
	}
	if a.noVerify {
		return nil, a.check(s)
	}
	problems, err := s.Damaged()
	if err != nil {
		return nil, err
	}
	damaged := map[string]string{}
	for _, p := range problems {
		damaged[p.Path] = p.What
	}
	return damaged, nil
}

// check holds the raw files of a run against the digests in its log. With
// --no-verify it only says that nobody has.
func (a *app) check(s *store.Store) error {
	if !a.noVerify {
		return s.CheckRaw()
	}
	fmt.Fprintf(a.stderr, "note: run %s: %s\n", s.Run().ID, unchecked)
	return nil
}

// unchecked is what a report says of figures that were taken from the log alone.
const unchecked = "the raw files were not checked (--no-verify): the figures are those recorded in the log"
