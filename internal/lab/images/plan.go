package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
)

// Item is one image of a plan.
type Item struct {
	Recipe Recipe
	Tag    string
	ID     string // empty when the image is not on the engine
	Build  bool   // whether it has to be built: wanted, or a parent of one that has to be, and not there
	Wanted bool   // whether the run itself uses it

	files   []file
	parents map[string]string // build argument -> tag or official name
}

// Plan is what a set of images needs, parents before children.
type Plan struct {
	Flavour plan.Flavour
	Items   []Item
}

// Missing lists what has to be built, in that order.
func (p Plan) Missing() []Item {
	var m []Item
	for _, it := range p.Items {
		if it.Build {
			m = append(m, it)
		}
	}
	return m
}

// Estimate is how long the builds will take on two cores, roughly.
func (p Plan) Estimate() time.Duration {
	var d time.Duration
	for _, it := range p.Missing() {
		d += it.Recipe.Estimate
	}
	return d
}

// Tag returns the tag of an image of the plan, empty for one it does not hold.
func (p Plan) Tag(name string) string {
	for _, it := range p.Items {
		if it.Recipe.Name == name {
			return it.Tag
		}
	}
	return ""
}

// Plan finds out what the named images need, without names those of the builder. It reads the project and asks the engine, and changes nothing.
func (b *Builder) Plan(ctx context.Context, flavour plan.Flavour, names ...string) (Plan, error) {
	info, err := b.Engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Plan{}, fmt.Errorf("asking the Docker engine for its architecture: %w", err)
	}
	if len(names) == 0 {
		names = b.Names
	}
	p, err := resolve(b.Recipes, flavour, info.Info.Architecture+b.salt, names...)
	if err != nil {
		return Plan{}, err
	}
	if err := b.look(ctx, &p); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// resolve reads the build contexts of the named images and all their parents
// and gives each its tag.
func resolve(r *Recipes, flavour plan.Flavour, arch string, names ...string) (Plan, error) {
	recipes, err := r.Of(flavour)
	if err != nil {
		return Plan{}, err
	}
	byName := map[string]Recipe{}
	for _, recipe := range recipes {
		byName[recipe.Name] = recipe
	}
	needed := map[string]bool{}
	var need func(string)
	need = func(name string) {
		if needed[name] {
			return
		}
		needed[name] = true
		for _, parent := range byName[name].From {
			if parent.Recipe != "" {
				need(parent.Recipe)
			}
		}
	}
	for _, name := range names {
		if _, ok := byName[name]; !ok {
			return Plan{}, fail.Input("there is no recipe for an image %q in the %s flavour", name, flavour).Try("choose from %s", strings.Join(sortedKeys(byName), ", "))
		}
		need(name)
	}
	p := Plan{Flavour: flavour}
	tags := map[string]string{}
	for _, recipe := range recipes {
		if !needed[recipe.Name] {
			continue
		}
		it := Item{Recipe: recipe, Wanted: slices.Contains(names, recipe.Name), parents: map[string]string{}}
		for arg, parent := range recipe.From {
			it.parents[arg] = parent.Official
			if parent.Recipe != "" {
				it.parents[arg] = tags[parent.Recipe]
			}
		}
		if it.files, err = contextFiles(r.files, recipe); err != nil {
			return Plan{}, err
		}
		it.Tag = fmt.Sprintf("percore/%s:%s-%s", recipe.Name, flavour, hash(string(flavour), arch, recipe, it.files, it.parents))
		tags[recipe.Name] = it.Tag
		p.Items = append(p.Items, it)
	}
	return p, nil
}

// look asks the engine which images are there, and marks what must be built: a
// parent is needed only for the sake of a child.
func (b *Builder) look(ctx context.Context, p *Plan) error {
	for i := range p.Items {
		it := &p.Items[i]
		id, err := b.inspect(ctx, it.Tag)
		if err != nil {
			return err
		}
		it.ID, it.Build = id, false
	}
	needed := map[string]bool{}
	for i := len(p.Items) - 1; i >= 0; i-- {
		it := &p.Items[i]
		it.Build = it.ID == "" && (it.Wanted || needed[it.Recipe.Name])
		if !it.Build {
			continue
		}
		for _, parent := range it.Recipe.From {
			needed[parent.Recipe] = true
		}
	}
	return nil
}

// inspect returns the id of an image, empty when the engine does not have it.
func (b *Builder) inspect(ctx context.Context, tag string) (string, error) {
	res, err := b.Engine.ImageInspect(ctx, tag)
	switch {
	case err == nil:
		return res.ID, nil
	case errdefs.IsNotFound(err):
		return "", nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", err
	}
	return "", fmt.Errorf("looking for the image %s: %w", tag, err)
}
