package images

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// declare makes a project of the image files of what suites share, of a suite and
// of its candidate.
func declare(shared, suite, candidate string) fs.FS {
	files := fstest.MapFS{
		"candidates/shared/images.yaml":  {Data: []byte(shared)},
		"candidates/s/suite.yaml":        {Data: []byte("name: s\n")},
		"candidates/s/rust/Dockerfile":   {Data: []byte("FROM scratch\n")},
		"candidates/s/rust/src/main.rs":  {Data: []byte("fn main() {}\n")},
		"candidates/s/rust/src/bench.rs": {Data: []byte("\n")},
	}
	if suite != "" {
		files["candidates/s/images.yaml"] = &fstest.MapFile{Data: []byte(suite)}
	}
	if candidate != "" {
		files["candidates/s/rust/image.yaml"] = &fstest.MapFile{Data: []byte(candidate)}
	}
	return files
}

const (
	base = "base:\n  published: {official: \"debian:trixie-slim\"}\n  debian: {method: mmdebstrap, args: {suite: trixie, include: x, variant: minbase}, estimate: 1s}\n"
	rust = "dockerfile: Dockerfile\ncontext: [{from: src, to: src, except: [\"bench*\"]}]\nfrom: {BASE: base}\nargs: {A: a}\nestimate: 20s\ndebian: {args: {A: b, B: c}}\n"
)

// TestDeclared reads an image of a candidate that stands on a shared one.
func TestDeclared(t *testing.T) {
	r, err := Load(declare(base, "", rust), "s")
	if err != nil {
		t.Fatal(err)
	}
	for flavour, want := range map[plan.Flavour]struct {
		parent Parent
		args   map[string]string
	}{
		plan.FlavourDebian:    {Parent{Recipe: "base"}, map[string]string{"A": "b", "B": "c"}},
		plan.FlavourPublished: {Parent{Official: "debian:trixie-slim"}, map[string]string{"A": "a"}},
	} {
		p, err := resolve(r, flavour, "x86_64", "rust")
		if err != nil {
			t.Fatal(err)
		}
		last := p.Items[len(p.Items)-1]
		if last.Recipe.Name != "rust" || last.Recipe.From["BASE"] != want.parent || len(last.Recipe.Args) != len(want.args) || last.Recipe.Args["A"] != want.args["A"] || last.Recipe.Dockerfile != "candidates/s/rust/Dockerfile" {
			t.Errorf("%s: %+v", flavour, last.Recipe)
		}
		var names []string
		for _, f := range last.files {
			names = append(names, f.name)
		}
		if strings.Join(names, " ") != "Dockerfile src/main.rs" {
			t.Errorf("%s: the context has %v", flavour, names)
		}
	}
}

func TestBadlyDeclared(t *testing.T) {
	for name, tt := range map[string]struct{ shared, suite, candidate, want string }{
		"unknown key":     {base, "", rust + "memory: 1\n", "memory"},
		"unknown parent":  {base, "", strings.Replace(rust, "BASE: base", "BASE: bass", 1), `there is no image "bass"`},
		"out of it":       {base, "", strings.Replace(rust, "from: src", "from: ../../../../etc", 1), "leads out of the project"},
		"absolute target": {base, "", strings.Replace(rust, "to: src", "to: /src", 1), "is no path in the context"},
		"no estimate":     {base, "", strings.Replace(rust, "estimate: 20s\n", "", 1), "there is no estimate"},
		"itself":          {base, "a: {dockerfile: d, from: {X: a}, estimate: 1s}\n", "", "stands on itself"},
		"twice":           {base, base, "", "is declared in candidates/shared/images.yaml already"},
		"a name":          {base, "\"A b\": {dockerfile: d, estimate: 1s}\n", "", "is not usable"},
		"a method":        {base, "a: {method: magic, estimate: 1s}\n", "", `method "magic"`},
		"cargo of what":   {base, "a: {method: cargo, estimate: 1s}\n", "", "needs the argument crate"},
		"nested":          {base, "a: {debian: {debian: {dockerfile: d}}}\n", "", "a flavour inside a flavour"},
		"two ways":        {base, "a: {official: \"x:1\", dockerfile: d, estimate: 1s}\n", "", "it says how"},
	} {
		r, err := Load(declare(tt.shared, tt.suite, tt.candidate), "s")
		if err == nil {
			_, err = r.Of(plan.FlavourDebian)
		}
		if !fail.IsInput(err) || !strings.Contains(said.Err(err), tt.want) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %q, want it to say %q", name, said.Err(err), tt.want)
		}
	}
	if _, err := Load(fstest.MapFS{}, "s"); !fail.IsInput(err) {
		t.Errorf("without shared images: %v", err)
	}
}
