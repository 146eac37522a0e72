package plan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
)

// Where suites are. A suite is a folder: suite.yaml, contract.yaml, its database's
// schema and a folder per candidate.
const (
	SuitesDir    = "candidates" // below the project's root
	DefaultSuite = "oauth-events"
	suiteFile    = "suite.yaml"
)

// Database is the kind of database that a suite's candidates work on.
type Database string

// PostgreSQL is PostgreSQL, of the version that the image flavour has.
const PostgreSQL Database = "postgresql"

// Dir is the suite's folder among the files that OpenSuite returns.
func (s Suite) Dir() string { return path.Join(SuitesDir, s.Name) }

// IsIdentifier reports whether a name is one that files and containers can carry.
func IsIdentifier(name string) bool { return identifier.MatchString(name) }

// OpenSuite reads a suite: one of the project's by its name, or the one in the
// folder at a path. It returns with it the project's files with the suite's folder
// among them, at candidates/NAME, so that a suite elsewhere finds what it shares
// with others as one of the project's does.
func OpenSuite(project fs.FS, nameOrFolder string) (Suite, fs.FS, error) {
	if isFolder(nameOrFolder) {
		folder := os.DirFS(nameOrFolder)
		s, err := readSuite(folder, ".", filepath.Join(nameOrFolder, suiteFile))
		return s, mounted{project, folder, s.Dir()}, err
	}
	dir := path.Join(SuitesDir, nameOrFolder)
	if _, err := fs.Stat(project, path.Join(dir, suiteFile)); !IsIdentifier(nameOrFolder) || err != nil {
		return Suite{}, nil, fail.Input("there is no suite %q", nameOrFolder).Try("take one of %s, or the path of a suite's folder", strings.Join(suites(project), ", "))
	}
	s, err := readSuite(project, dir, path.Join(dir, suiteFile))
	if err == nil && s.Name != nameOrFolder {
		err = fail.In("suite "+path.Join(dir, suiteFile), "its name is %s", s.Name).Try("give it the name of its folder")
	}
	return s, project, err
}

// isFolder tells the path of a folder from the name of a suite that ships with
// percore.
func isFolder(nameOrFolder string) bool {
	return strings.ContainsRune(nameOrFolder, filepath.Separator) || strings.HasPrefix(nameOrFolder, ".")
}

// ReadSuite reads the suite that percore measures where none is named, of the
// project in a folder.
func ReadSuite(root string) (Suite, error) {
	s, _, err := OpenSuite(os.DirFS(root), DefaultSuite)
	return s, err
}

// SuiteSource is how a suite is found again from another folder: the path of its
// folder, made absolute, or its name.
func SuiteSource(nameOrFolder string) string {
	if isFolder(nameOrFolder) {
		if abs, err := filepath.Abs(nameOrFolder); err == nil {
			return abs
		}
	}
	return nameOrFolder
}

// suites are the names of the project's suites.
func suites(project fs.FS) []string {
	files, _ := fs.Glob(project, path.Join(SuitesDir, "*", suiteFile))
	var names []string
	for _, f := range files {
		names = append(names, path.Base(path.Dir(f)))
	}
	return names
}

func readSuite(files fs.FS, dir, shown string) (Suite, error) {
	text, err := infile.ReadFS(files, path.Join(dir, suiteFile), yamlfile.MaxSize, written.What, SuiteFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Suite{}, fail.In(shown, "there is no such file").Try("name the folder of a suite")
	}
	if err != nil {
		return Suite{}, err
	}
	var s Suite
	if err := DecodeYAML(shown, text, &s); err != nil {
		return Suite{}, err
	}
	for i, c := range s.Candidates {
		if c.Image == "" {
			s.Candidates[i].Image = c.ID
		}
	}
	if err := s.check(); err != nil {
		return Suite{}, written.Place(shown, text, err)
	}
	return s, nil
}

// mounted is a file system with another in place of one of its folders.
type mounted struct {
	base, folder fs.FS
	at           string
}

func (m mounted) Open(name string) (fs.File, error) {
	if name == m.at {
		return m.folder.Open(".")
	}
	if rest, inside := strings.CutPrefix(name, m.at+"/"); inside {
		return m.folder.Open(rest)
	}
	return m.base.Open(name)
}

func (s Suite) check() error {
	if !identifier.MatchString(s.Name) {
		return fail.Input("name %q is not usable", s.Name).On("name").Try("write lower-case letters, digits, dots and dashes")
	}
	if s.Database != PostgreSQL {
		return fail.Input("database is %q", s.Database).On("database").Try("write %s, the one that percore has", PostgreSQL)
	}
	if s.Rows < 1 || s.Subject == "" || s.Issuer == "" || s.Audience == "" {
		return fail.Input("rows, subject, issuer and audience must all be set").On("rows").Try("write each")
	}
	if len(s.Scenarios) == 0 || len(s.Candidates) == 0 {
		return fail.Input("it needs scenarios and candidates").On("scenarios").Try("write one of each at least")
	}
	seen := map[string]bool{}
	for i, sc := range s.Scenarios {
		if !identifier.MatchString(sc.ID) || seen[sc.ID] {
			return fail.Input("scenario %q is not usable or is in it twice", sc.ID).On("scenarios[%d].id", i).Try("write lower-case letters, digits, dots and dashes, and each once")
		}
		if sc.Method == "" || !strings.HasPrefix(sc.Path, "/") {
			return fail.Input("scenario %q needs a method and a path that starts with /", sc.ID).On("scenarios[%d].path", i).Try("write both")
		}
		seen[sc.ID] = true
	}
	seen = map[string]bool{}
	for i, c := range s.Candidates {
		if !identifier.MatchString(c.ID) || seen[c.ID] || c.Image == "" {
			return fail.Input("candidate %q is not usable, has no image or is in it twice", c.ID).On("candidates[%d].id", i).Try("write lower-case letters, digits, dots and dashes, and each once")
		}
		seen[c.ID] = true
	}
	return nil
}

// Scenario returns the scenario of that id.
func (s Suite) Scenario(id string) (Scenario, bool) {
	i := slices.IndexFunc(s.Scenarios, func(sc Scenario) bool { return sc.ID == id })
	if i < 0 {
		return Scenario{}, false
	}
	return s.Scenarios[i], true
}

// Candidate returns the candidate of that id.
func (s Suite) Candidate(id string) (Candidate, bool) {
	i := slices.IndexFunc(s.Candidates, func(c Candidate) bool { return c.ID == id })
	if i < 0 {
		return Candidate{}, false
	}
	return s.Candidates[i], true
}
