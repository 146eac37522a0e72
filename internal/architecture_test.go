// Package internal_test holds the picture in docs/architecture.md against the
// code.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module  = "github.com/percore/percore/"
	picture = "../docs/architecture.md"
)

// apart are imports that the order of the rooms would allow and that are not
// meant all the same: what measures draws no conclusions, and what shows them
// does not read evidence itself.
var apart = map[string][]string{
	"internal/doctor":   {"internal/report", "internal/answers"},
	"internal/machines": {"internal/report", "internal/answers"},
	"internal/run":      {"internal/report", "internal/answers"},
	"internal/lab":      {"internal/report", "internal/answers"},
	"internal/protocol": {"internal/report", "internal/answers"},
	"internal/report":   {"internal/evidence"},
}

// still are violations that are left, each as "importer imported". One that is
// gone is taken off the list.
var still = []string{
	"internal/report internal/evidence/measure",
	"internal/report internal/evidence/store",
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// imports are the packages of the project and what each imports, tests apart.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
}

// rooms are the rooms of the picture from left to right: the lines of the block
// below the heading "The import graph", each a folder and what it is for.
func rooms(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## The import graph\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []string
	for line := range strings.Lines(section) {
		if folder, ok := strings.CutPrefix(line, "    "); ok {
			all = append(all, strings.Fields(folder)[0])
		}
	}
	if !ok || len(all) < 5 {
		t.Fatalf("%s shows no import graph", picture)
	}
	return all
}

// room returns the room that a package is in, and its place; -1 for none.
func room(all []string, pkg string) (string, int) {
	for i, r := range all {
		if pkg == r || strings.HasPrefix(pkg, r+"/") {
			return r, i
		}
	}
	return "", -1
}

// TestNoPackageImportsOneToItsLeft holds every import against the picture.
func TestNoPackageImportsOneToItsLeft(t *testing.T) {
	all, graph := rooms(t), imports(t)
	left := slices.Clone(still)
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		here, i := room(all, from)
		if i < 0 {
			if strings.HasPrefix(from, "internal/") && !strings.HasPrefix(from, "internal/testkit/") {
				t.Errorf("%s is in no room of the picture", from)
			}
			continue
		}
		for _, imported := range graph[from] {
			to, own := strings.CutPrefix(imported, module)
			if !own {
				continue
			}
			there, j := room(all, to)
			var wrong string
			switch {
			case j < 0:
				wrong = "it is in no room of the picture"
			case j < i:
				wrong = there + " is to the left of " + here
			case slices.Contains(apart[here], there):
				wrong = here + " is not to know " + there
			case strings.HasPrefix(from, to+"/"):
				wrong = "a part does not know the whole"
			default:
				continue
			}
			if k := slices.Index(left, from+" "+to); k >= 0 {
				left = slices.Delete(left, k, k+1)
			} else {
				t.Errorf("%s imports %s: %s", from, to, wrong)
			}
		}
	}
	for _, gone := range left {
		t.Errorf("%s: this is in order now; take it off the list", gone)
	}
}

// TestRoomsThatNeedNothing: the guest runs on hosts of which nothing is known, so
// it is built of the standard library alone; base imports nothing of percore.
func TestRoomsThatNeedNothing(t *testing.T) {
	for from, all := range imports(t) {
		guest := from == "cmd/guest" || strings.HasPrefix(from, "internal/guest/")
		for _, imported := range all {
			to, own := strings.CutPrefix(imported, module)
			if guest && !strings.HasPrefix(to, "internal/guest/") && strings.Contains(path.Dir(imported+"/"), ".") {
				t.Errorf("%s imports %s", from, imported)
			}
			if own && strings.HasPrefix(from, "internal/base/") && !strings.HasPrefix(to, "internal/base/") {
				t.Errorf("%s imports %s", from, imported)
			}
			if own && strings.HasPrefix(to, "internal/testkit/") && !strings.HasPrefix(from, "internal/testkit/") {
				t.Errorf("%s, which is no test, imports %s", from, to)
			}
		}
	}
}

// TestPictureIsWhole: every package of internal is in the picture's tree, and
// every folder that the page names is there.
func TestPictureIsWhole(t *testing.T) {
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:internal|cmd)/[a-z/]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
		if info, err := os.Stat("../" + m[1]); err != nil || !info.IsDir() {
			t.Errorf("%s names %s, which is no folder", picture, m[1])
		}
	}
	for pkg := range imports(t) {
		if (strings.HasPrefix(pkg, "internal/") || strings.HasPrefix(pkg, "cmd/")) && !named[pkg] {
			t.Errorf("%s does not name %s", picture, pkg)
		}
	}
}
