package plan

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

// copySuite copies the shipped suite to a folder of that name elsewhere.
func copySuite(t *testing.T, name string, change func(string) string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, SuitesDir, DefaultSuite))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, suiteFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A suite in a folder of the user's has its files where one of the project's
// would have them, and what suites share beside it.
func TestSuiteElsewhere(t *testing.T) {
	project := os.DirFS(root)
	dir := copySuite(t, "mine", func(s string) string {
		return strings.Replace(s, "name: oauth-events", "name: mine", 1) + "  - id: rust\n    title: {debian: Rust}\n    env: {WORKERS: \"4\"}\n"
	})
	s, files, err := OpenSuite(project, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := s.Candidate("rust")
	if !ok || c.Image != "rust" || c.Env["WORKERS"] != "4" || s.Dir() != "candidates/mine" {
		t.Errorf("%+v, %s", c, s.Dir())
	}
	for _, name := range []string{"candidates/mine/contract.yaml", "candidates/mine/go/Dockerfile", "candidates/shared/images.yaml", "candidates/oauth-events/suite.yaml"} {
		if _, err := fs.Stat(files, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hits, err := fs.Glob(files, "candidates/mine/*/image.yaml"); err != nil || !slices.Contains(hits, "candidates/mine/go/image.yaml") {
		t.Errorf("%v, %v", hits, err)
	}
	if SuiteSource(dir) != dir || SuiteSource("oauth-events") != "oauth-events" || !filepath.IsAbs(SuiteSource("./mine")) {
		t.Errorf("%q, %q", SuiteSource(dir), SuiteSource("./mine"))
	}
}

func TestBadSuites(t *testing.T) {
	project := os.DirFS(root)
	change := func(from, to string) string {
		return copySuite(t, "x", func(s string) string {
			if !strings.Contains(s, from) {
				t.Fatalf("the suite does not say %q", from)
			}
			return strings.Replace(s, from, to, 1)
		})
	}
	for _, tt := range []struct{ suite, want string }{
		{"nothing", `there is no suite "nothing"; take one of oauth-events`},
		{"", "there is no suite"},
		{t.TempDir(), "there is no such file; name the folder of a suite"},
		{change("name: oauth-events", "name: Oauth Events"), "is not usable"},
		{change("database: postgresql", "database: oracle"), `database is "oracle"; write postgresql`},
		{change("rows: 1000000", "rows: 0"), "must all be set"},
		{change("  - id: php-fpm", "  - id: go"), `candidate "go" is not usable`},
		{change("method: GET", "methode: GET"), "methode"},
	} {
		_, _, err := OpenSuite(project, tt.suite)
		if !fail.IsInput(err) || !strings.Contains(said.Err(err), tt.want) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v, want it to say %q", tt.suite, said.Err(err), tt.want)
		}
	}
}
