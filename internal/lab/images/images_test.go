package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

var flavours = []plan.Flavour{plan.FlavourDebian, plan.FlavourPublished}

// project is the root of this checkout.
func project(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRecipesStandOnWhatComesBefore(t *testing.T) {
	for _, flavour := range flavours {
		recipes, err := recipesOf(t).Of(flavour)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		used := map[string]bool{}
		for _, r := range recipes {
			if seen[r.Name] {
				t.Errorf("%s: two recipes are named %s", flavour, r.Name)
			}
			for arg, p := range r.From {
				if (p.Recipe == "") == (p.Official == "") {
					t.Errorf("%s: %s of %s names no image, or two", flavour, arg, r.Name)
				}
				if p.Recipe != "" && !seen[p.Recipe] {
					t.Errorf("%s: %s stands on %s, which does not come before it", flavour, r.Name, p.Recipe)
				}
				if flavour == plan.FlavourDebian && p.Official != "" {
					t.Errorf("%s needs %s from a registry in the debian flavour", r.Name, p.Official)
				}
				used[p.Recipe] = true
			}
			if r.Estimate <= 0 {
				t.Errorf("%s: %s has no estimate", flavour, r.Name)
			}
			seen[r.Name] = true
		}
		for _, name := range finals {
			if !seen[name] {
				t.Errorf("%s: there is no recipe for %s", flavour, name)
			}
			used[name] = true
		}
		for name := range seen {
			if !used[name] {
				t.Errorf("%s: nothing uses the image %s", flavour, name)
			}
		}
	}
}

func TestFlavoursShareTheRecipesOfARun(t *testing.T) {
	of := map[plan.Flavour]map[string]Recipe{}
	for _, flavour := range flavours {
		recipes, err := recipesOf(t).Of(flavour)
		if err != nil {
			t.Fatal(err)
		}
		of[flavour] = map[string]Recipe{}
		for _, r := range recipes {
			of[flavour][r.Name] = r
		}
	}
	for _, name := range finals {
		a, b := of[plan.FlavourDebian][name], of[plan.FlavourPublished][name]
		if a.Dockerfile != b.Dockerfile {
			t.Errorf("%s is made by %s in one flavour and by %s in the other", name, a.Dockerfile, b.Dockerfile)
		}
		if !slices.EqualFunc(a.Context, b.Context, func(x, y Copy) bool {
			return x.From == y.From && x.To == y.To && slices.Equal(x.Only, y.Only) && slices.Equal(x.Except, y.Except)
		}) {
			t.Errorf("%s has other files in the other flavour", name)
		}
		if !slices.Equal(sortedKeys(a.From), sortedKeys(b.From)) || !slices.Equal(sortedKeys(a.Args), sortedKeys(b.Args)) {
			t.Errorf("%s has other arguments in the other flavour", name)
		}
	}
}

func TestAnotherFlavourHasNoRecipes(t *testing.T) {
	for _, f := range []plan.Flavour{plan.FlavourAuto, "alpine"} {
		if _, err := recipesOf(t).Of(f); err == nil {
			t.Errorf("%q has recipes", f)
		}
	}
}

// The engine's classic builder has to understand every Dockerfile, and every
// ARG of a recipe has to be one that the Dockerfile declares.
func TestDockerfiles(t *testing.T) {
	root := project(t)
	buildkit := regexp.MustCompile(`(?m)--mount|--link|<<[A-Z"'-]|^#\s*syntax|--chmod|--parents`)
	declared := regexp.MustCompile(`(?m)^ARG (\w+)`)
	for _, flavour := range flavours {
		recipes, err := recipesOf(t).Of(flavour)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recipes {
			if r.Method != Dockerfile {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, r.Dockerfile))
			if err != nil {
				t.Error(err)
				continue
			}
			if m := buildkit.Find(text); m != nil {
				t.Errorf("%s uses %q, which the classic builder does not know", r.Dockerfile, m)
			}
			args := map[string]bool{}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				args[m[1]] = true
			}
			for _, given := range slices.Concat(sortedKeys(r.Args), sortedKeys(r.From)) {
				if !args[given] {
					t.Errorf("%s does not declare %s, which the recipe %s gives", r.Dockerfile, given, r.Name)
				}
				delete(args, given)
			}
			for left := range args {
				t.Errorf("%s declares %s, which the recipe %s does not give", r.Dockerfile, left, r.Name)
			}
			if got := strings.Contains(string(text), authoritiesName); got != r.Downloads {
				t.Errorf("%s: the certificate authorities are used: %t, given: %t", r.Dockerfile, got, r.Downloads)
			}
		}
	}
}

// miniature is a small project with the files of one recipe.
func miniature(t *testing.T) (string, Recipe) {
	t.Helper()
	root := t.TempDir()
	write(t, root, "images/x/Dockerfile", "FROM scratch\n", 0o644)
	write(t, root, "images/x/run.sh", "#!/bin/sh\n", 0o755)
	write(t, root, "server/main.go", "package main\n", 0o644)
	write(t, root, "server/main_test.go", "package main\n", 0o644)
	write(t, root, "server/sub/a.go", "package sub\n", 0o600)
	write(t, root, "server/testdata/b.go", "package b\n", 0o644)
	write(t, root, "server/.hidden/c.go", "package c\n", 0o644)
	write(t, root, "server/notes.md", "notes\n", 0o644)
	return root, Recipe{
		Name: "x", Method: Dockerfile, Dockerfile: "images/x/Dockerfile",
		Context: []Copy{{From: "images/x", To: "."}, {From: "server", To: "server", Only: []string{"*.go"}, Except: []string{"*_test.go"}}},
		Args:    map[string]string{"A": "1", "B": "2"},
	}
}

func write(t *testing.T, root, name, text string, mode fs.FileMode) {
	t.Helper()
	p := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
}

func TestContextHoldsWhatTheRecipeNames(t *testing.T) {
	root, r := miniature(t)
	files, err := contextFiles(os.DirFS(root), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.name)
	}
	want := []string{"Dockerfile", "run.sh", "server/main.go", "server/sub/a.go"}
	if !slices.Equal(got, want) {
		t.Errorf("the context holds %v, not %v", got, want)
	}
}

func TestArchiveIsDeterministic(t *testing.T) {
	root, r := miniature(t)
	files, err := contextFiles(os.DirFS(root), r)
	if err != nil {
		t.Fatal(err)
	}
	first, err := archive(files)
	if err != nil {
		t.Fatal(err)
	}
	// Another time stamp, another umask.
	for _, name := range []string{"server/main.go", "images/x/run.sh"} {
		p := filepath.Join(root, name)
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, info.Mode()&^0o077); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, info.ModTime().Add(1e9), info.ModTime().Add(1e9)); err != nil {
			t.Fatal(err)
		}
	}
	if files, err = contextFiles(os.DirFS(root), r); err != nil {
		t.Fatal(err)
	}
	second, err := archive(files)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same files differ")
	}
	modes := map[string]int64{}
	for rd := tar.NewReader(bytes.NewReader(first)); ; {
		h, err := rd.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
	if modes["run.sh"] != 0o644 || modes["server/sub/a.go"] != 0o644 {
		t.Errorf("the modes are %v", modes)
	}
}

func TestContextErrorsNameTheFile(t *testing.T) {
	root, r := miniature(t)
	if err := os.Remove(filepath.Join(root, "images/x/Dockerfile")); err != nil {
		t.Fatal(err)
	}
	if _, err := contextFiles(os.DirFS(root), r); !fail.IsInput(err) || !strings.Contains(said.Err(err), "images/x/Dockerfile") {
		t.Errorf("a missing Dockerfile: %v", err)
	}
	root, r = miniature(t)
	if err := os.RemoveAll(filepath.Join(root, "server")); err != nil {
		t.Fatal(err)
	}
	if _, err := contextFiles(os.DirFS(root), r); !fail.IsInput(err) || !strings.Contains(said.Err(err), "server is missing") {
		t.Errorf("a missing folder: %v", err)
	}
	root, r = miniature(t)
	if err := os.Symlink("main.go", filepath.Join(root, "server/link.go")); err != nil {
		t.Fatal(err)
	}
	if _, err := contextFiles(os.DirFS(root), r); !fail.IsInput(err) || !strings.Contains(said.Err(err), "link.go") {
		t.Errorf("a symbolic link: %v", err)
	}
}

func TestHashChangesWithEverythingThatGoesIn(t *testing.T) {
	root, r := miniature(t)
	parents := map[string]string{"BASE": "percore/base:debian-0"}
	of := func(flavour, arch string, r Recipe, parents map[string]string) string {
		files, err := contextFiles(os.DirFS(root), r)
		if err != nil {
			t.Fatal(err)
		}
		return hash(flavour, arch, r, files, parents)
	}
	seen := map[string]string{}
	check := func(what, h string) {
		t.Helper()
		if !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(h) {
			t.Errorf("%s: the hash is %q", what, h)
		}
		if before, twice := seen[h]; twice {
			t.Errorf("%s and %s have the same hash", what, before)
		}
		seen[h] = what
	}
	first := of("debian", "x86_64", r, parents)
	check("the recipe", first)
	if again := of("debian", "x86_64", r, parents); again != first {
		t.Errorf("the same recipe has the hashes %s and %s", first, again)
	}
	estimate := r
	estimate.Estimate = 1e9
	if again := of("debian", "x86_64", estimate, parents); again != first {
		t.Error("an estimate changes the hash")
	}
	check("another flavour", of("published", "x86_64", r, parents))
	check("another architecture", of("debian", "aarch64", r, parents))
	check("another parent", of("debian", "x86_64", r, map[string]string{"BASE": "percore/base:debian-1"}))
	check("another argument for the parent", of("debian", "x86_64", r, map[string]string{"ROOT": "percore/base:debian-0"}))
	other := r
	other.Args = map[string]string{"A": "12", "B": ""}
	check("other arguments", of("debian", "x86_64", other, parents))
	other = r
	other.Name = "y"
	check("another name", of("debian", "x86_64", other, parents))
	write(t, root, "server/main.go", "package main // changed\n", 0o644)
	check("another content", of("debian", "x86_64", r, parents))
	write(t, root, "server/main.go", "package main // changed\n", 0o755)
	if a, b := of("debian", "x86_64", r, parents), of("debian", "x86_64", r, parents); seen[a] != "another content" || a != b {
		t.Errorf("another mode makes the hash %s, which is that of %q", a, seen[a])
	}
	if err := os.Rename(filepath.Join(root, "server/main.go"), filepath.Join(root, "server/other.go")); err != nil {
		t.Fatal(err)
	}
	check("another file name", of("debian", "x86_64", r, parents))
	write(t, root, "images/x/Dockerfile", "FROM scratch\nUSER 1\n", 0o644)
	check("another Dockerfile", of("debian", "x86_64", r, parents))
}

// What a parent is made of is part of its children.
func TestTagsFollowTheParents(t *testing.T) {
	builds, err := resolve(recipesOf(t), plan.FlavourDebian, "x86_64", finals...)
	if err != nil {
		t.Fatal(err)
	}
	other, err := resolve(recipesOf(t), plan.FlavourDebian, "aarch64", finals...)
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range builds.Items {
		if it.Tag == other.Items[i].Tag {
			t.Errorf("%s has one tag on two architectures", it.Recipe.Name)
		}
		if !regexp.MustCompile(`^percore/[a-z0-9-]+:debian-[0-9a-f]{12}$`).MatchString(it.Tag) {
			t.Errorf("%s has the tag %s", it.Recipe.Name, it.Tag)
		}
		for arg, p := range it.Recipe.From {
			if it.parents[arg] != builds.Tag(p.Recipe) {
				t.Errorf("%s of %s is %s", arg, it.Recipe.Name, it.parents[arg])
			}
		}
	}
}

func TestResolveTakesWhatIsNeeded(t *testing.T) {
	builds, err := resolve(recipesOf(t), plan.FlavourDebian, "x86_64", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range builds.Items {
		got = append(got, it.Recipe.Name)
	}
	if want := []string{"base", "postgres-base", "postgres"}; !slices.Equal(got, want) {
		t.Errorf("postgres needs %v, not %v", got, want)
	}
	if _, err := resolve(recipesOf(t), plan.FlavourDebian, "x86_64", "mysql"); !fail.IsInput(err) {
		t.Errorf("an unknown image: %v", err)
	}
}

func TestFilesCopiedByDockerfilesAreInTheContext(t *testing.T) {
	copied := regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`)
	for _, flavour := range flavours {
		plan, err := resolve(recipesOf(t), flavour, "x86_64", finals...)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range plan.Items {
			if it.Recipe.Method != Dockerfile {
				continue
			}
			var text string
			names := map[string]bool{authoritiesName: it.Recipe.Downloads}
			for _, f := range it.files {
				if f.name == dockerfileName {
					text = string(f.data)
				}
				names[f.name] = true
				top, _, _ := strings.Cut(f.name, "/")
				names[top] = true
			}
			for _, m := range copied.FindAllStringSubmatch(text, -1) {
				for _, source := range strings.Fields(m[1]) {
					if !names[source] {
						t.Errorf("%s copies %s, which is not in its context", it.Recipe.Dockerfile, source)
					}
				}
			}
		}
	}
}

// The Go candidate is tested as a part of percore's module and built as one of its
// own: both have to name the same versions of the libraries that it imports.
func TestGoCandidateIsTestedWithTheVersionsOfItsImage(t *testing.T) {
	root := project(t)
	required := func(name string) map[string]string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`).FindAllStringSubmatch(string(text), -1) { // without those marked indirect
			versions[m[1]] = m[2]
		}
		return versions
	}
	ours, image := required("go.mod"), required("candidates/oauth-events/go/go.mod.image")
	if len(image) < 2 {
		t.Errorf("the image's go.mod requires %v", image)
	}
	for module, v := range image {
		if ours[module] != v {
			t.Errorf("the image has %s %s, and the tests run with %s", module, v, ours[module])
		}
	}
}

// TestLineFeeds: sources with the line endings of another system make the same
// image, and what is no text stays as it is.
func TestLineFeeds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.sh": "#!/bin/sh\r\necho\r\n", "b.bin": "\x00\r\n", "c.sh": "#!/bin/sh\necho \r\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a.sh": "#!/bin/sh\necho\n", "b.bin": "\x00\r\n", "c.sh": "#!/bin/sh\necho \n"} {
		data, err := readFile(os.DirFS(dir), name)
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
