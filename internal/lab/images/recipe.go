package images

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/internal/plan"
)

// Method is how an image is made.
type Method string

const (
	Dockerfile Method = "dockerfile" // by the engine's builder
	Bootstrap  Method = "mmdebstrap" // a Debian root by mmdebstrap on the driver's machine, imported
	Cargo      Method = "cargo"      // a program by cargo on the driver's machine, imported
)

// Recipe says how one image is made in one flavour.
type Recipe struct {
	Name       string
	Method     Method
	Dockerfile string            // path in the project; for Method Dockerfile
	Context    []Copy            // files of the build context
	From       map[string]Parent // build argument -> image it stands for
	Args       map[string]string // further build arguments
	Downloads  bool              // whether it downloads by TLS, and gets the driver's own certificate authorities
	Estimate   time.Duration     // on two cores with a near mirror
}

// Copy takes a file, or the files of a folder, into a build context.
type Copy struct {
	From   string   `yaml:"from"`   // path in the project; in a file, from the folder of the file
	To     string   `yaml:"to"`     // path in the context; "." for its root
	Only   []string `yaml:"only"`   // patterns of base names; all files when empty
	Except []string `yaml:"except"` // patterns of base names left out
}

// Parent is an image that another stands on: one of percore's recipes or one
// that the engine finds in a registry.
type Parent struct {
	Recipe   string
	Official string
}

// The files that declare images, below the folder of a suite and the one that
// suites share.
const (
	sharedDir  = plan.SuitesDir + "/shared"
	imagesFile = "images.yaml" // images by their names
	imageFile  = "image.yaml"  // in the folder of a candidate, whose name the image has
)

// declared is an image as a file declares it: how it is made in every flavour,
// and what one flavour adds to that or has in place of it.
type declared struct {
	Official   string            `yaml:"official"`   // of a registry; then nothing is made
	Method     Method            `yaml:"method"`     // empty: dockerfile
	Dockerfile string            `yaml:"dockerfile"` // path from the folder of the file, as in context
	Context    []Copy            `yaml:"context"`
	From       map[string]string `yaml:"from"` // build argument -> name of an image, or NAME:TAG of a registry
	Args       map[string]string `yaml:"args"`
	Downloads  bool              `yaml:"downloads"`
	Estimate   plan.Duration     `yaml:"estimate"`
	Published  *declared         `yaml:"published"`
	Debian     *declared         `yaml:"debian"`

	file string // that declares it
}

// Recipes are the images that a suite can use.
type Recipes struct {
	files fs.FS
	all   map[string]declared
}

// Load reads the images of a suite: those that suites share, those of the suite's
// folder and those of its candidates. files are the project's, the suite's among
// them.
func Load(files fs.FS, suite string) (*Recipes, error) {
	r := &Recipes{files: files, all: map[string]declared{}}
	dir := path.Join(plan.SuitesDir, suite)
	for _, file := range []string{path.Join(sharedDir, imagesFile), path.Join(dir, imagesFile)} {
		var images map[string]declared
		switch err := r.read(file, &images); {
		case errors.Is(err, fs.ErrNotExist) && file != path.Join(sharedDir, imagesFile):
			continue // a suite need not have images of its own
		case err != nil:
			return nil, missing(err, file)
		}
		for _, name := range slices.Sorted(maps.Keys(images)) {
			if err := r.add(file, name, images[name]); err != nil {
				return nil, err
			}
		}
	}
	candidates, err := fs.Glob(files, path.Join(dir, "*", imageFile))
	if err != nil {
		return nil, fmt.Errorf("looking for the candidates' images in %s: %w", dir, err)
	}
	for _, file := range candidates {
		var image declared
		if err := r.read(file, &image); err != nil {
			return nil, missing(err, file)
		}
		if err := r.add(file, path.Base(path.Dir(file)), image); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Recipes) read(file string, into any) error {
	text, err := infile.ReadFS(r.files, file, yamlfile.MaxSize, "images", path.Join(sharedDir, imagesFile))
	if err != nil {
		return err
	}
	return plan.DecodeYAML(file, text, into)
}

func (r *Recipes) add(file, name string, d declared) error {
	if !plan.IsIdentifier(name) {
		return fail.In(file, "the image name %q is not usable", name).Try("write lower-case letters, digits, dots and dashes")
	}
	if other, taken := r.all[name]; taken {
		return fail.In(file, "the image %s is declared in %s already", name, other.file).Try("give it another name")
	}
	d.file = file
	for _, f := range []*declared{d.Published, d.Debian} {
		if f != nil && (f.Published != nil || f.Debian != nil) {
			return fail.In(file, "image %s has a flavour inside a flavour", name).Try("take it out")
		}
	}
	r.all[name] = d
	return nil
}

// in is what is declared for one flavour.
func (d declared) in(flavour plan.Flavour) declared {
	own := d.Published
	if flavour == plan.FlavourDebian {
		own = d.Debian
	}
	if own == nil {
		return d
	}
	d.Official = cmp.Or(own.Official, d.Official)
	d.Method = cmp.Or(own.Method, d.Method)
	d.Dockerfile = cmp.Or(own.Dockerfile, d.Dockerfile)
	d.Estimate = cmp.Or(own.Estimate, d.Estimate)
	d.Downloads = d.Downloads || own.Downloads
	if own.Context != nil {
		d.Context = own.Context
	}
	d.From, d.Args = joined(d.From, own.From), joined(d.Args, own.Args)
	return d
}

func joined(a, b map[string]string) map[string]string {
	both := map[string]string{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// Of returns the recipes of a flavour, parents before children. An image that the
// flavour does not have is left out.
func (r *Recipes) Of(flavour plan.Flavour) ([]Recipe, error) {
	if flavour != plan.FlavourDebian && flavour != plan.FlavourPublished {
		return nil, fmt.Errorf("the image flavour %q has no recipes: it is %s or %s", flavour, plan.FlavourPublished, plan.FlavourDebian)
	}
	var out []Recipe
	state := map[string]int{} // 1 while its parents are looked at, 2 when it is done
	var add func(name string) error
	add = func(name string) error {
		d := r.all[name].in(flavour)
		switch {
		case state[name] == 2:
			return nil
		case state[name] == 1:
			return fail.In(d.file, "image %s stands on itself", name).Try("correct its from")
		}
		state[name] = 1
		recipe, ok, err := r.recipe(flavour, name, d)
		if err != nil || !ok {
			return err
		}
		for _, arg := range sortedKeys(recipe.From) {
			if parent := recipe.From[arg].Recipe; parent != "" {
				if err := add(parent); err != nil {
					return err
				}
			}
		}
		state[name] = 2
		out = append(out, recipe)
		return nil
	}
	for _, name := range sortedKeys(r.all) {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// recipe makes a recipe of what is declared; ok says whether the flavour has the
// image and it is one to make.
func (r *Recipes) recipe(flavour plan.Flavour, name string, d declared) (_ Recipe, ok bool, _ error) {
	bad := func(format string, args ...any) (Recipe, bool, error) {
		return Recipe{}, false, fail.In(d.file, "image %s, flavour %s: %w", name, flavour, fmt.Errorf(format, args...)).Try("docs/adding-a-candidate.md says how an image is declared")
	}
	d.Method = cmp.Or(d.Method, Dockerfile)
	switch {
	case d.Official != "":
		if d.Dockerfile != "" || d.Method != Dockerfile || len(d.From)+len(d.Args)+len(d.Context) > 0 {
			return bad("an official image is not made, and it says how")
		}
		return Recipe{}, false, nil
	case d.Method == Dockerfile && d.Dockerfile == "":
		if len(d.From)+len(d.Args)+len(d.Context) > 0 && (flavour == plan.FlavourPublished && d.Published != nil || flavour == plan.FlavourDebian && d.Debian != nil) {
			return bad("there is no dockerfile")
		}
		return Recipe{}, false, nil // not of this flavour
	case d.Method == Bootstrap:
		if err := needs(d, "suite", "include", "variant"); err != nil {
			return bad("%v", err)
		}
	case d.Method == Cargo:
		if err := needs(d, "crate", "version"); err != nil {
			return bad("%v", err)
		}
	case d.Method != Dockerfile:
		return bad("method %q is none of %s, %s and %s", d.Method, Dockerfile, Bootstrap, Cargo)
	}
	if d.Estimate <= 0 {
		return bad("there is no estimate of how long it takes on two cores, as in 30s")
	}
	dir := path.Dir(d.file)
	below := func(p string) (string, error) {
		if joined := path.Join(dir, p); p != "" && fs.ValidPath(joined) {
			return joined, nil
		}
		return "", fmt.Errorf("the path %q leads out of the project", p)
	}
	recipe := Recipe{Name: name, Method: d.Method, From: map[string]Parent{}, Args: d.Args, Downloads: d.Downloads, Estimate: d.Estimate.Std()}
	var err error
	if d.Method == Dockerfile {
		if recipe.Dockerfile, err = below(d.Dockerfile); err != nil {
			return bad("dockerfile: %v", err)
		}
	}
	for _, c := range d.Context {
		if c.To == "" || c.To != "." && !fs.ValidPath(c.To) {
			return bad("context: %q is no path in the context, as server is, or . for its root", c.To)
		}
		if c.From, err = below(c.From); err != nil {
			return bad("context: %v", err)
		}
		recipe.Context = append(recipe.Context, c)
	}
	for _, arg := range sortedKeys(d.From) {
		if recipe.From[arg], err = r.parent(flavour, d.From[arg]); err != nil {
			return bad("from %s: %v", arg, err)
		}
	}
	return recipe, true, nil
}

// parent finds out what a name in from means.
func (r *Recipes) parent(flavour plan.Flavour, name string) (Parent, error) {
	if strings.Contains(name, ":") {
		return Parent{Official: name}, nil
	}
	d, ok := r.all[name]
	if !ok {
		return Parent{}, fmt.Errorf("there is no image %q among %s, and it is no NAME:TAG of a registry", name, strings.Join(sortedKeys(r.all), ", "))
	}
	d = d.in(flavour)
	switch {
	case d.Official != "":
		return Parent{Official: d.Official}, nil
	case d.Dockerfile == "" && cmp.Or(d.Method, Dockerfile) == Dockerfile:
		return Parent{}, fmt.Errorf("the image %s is not there in flavour %s", name, flavour)
	}
	return Parent{Recipe: name}, nil
}

// needs reports arguments that a method cannot do without.
func needs(d declared, args ...string) error {
	for _, a := range args {
		if d.Args[a] == "" {
			return fmt.Errorf("method %s needs the argument %s", d.Method, a)
		}
	}
	return nil
}
