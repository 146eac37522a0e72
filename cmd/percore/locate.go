package main

import (
	"fmt"
	"os"

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
	return study.Find(a.results, arg)
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
