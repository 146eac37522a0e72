package images

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/plan"
)

// registryTimeout bounds the question whether a registry answers.
const registryTimeout = 10 * time.Second

// Choice is a flavour and why it was taken.
type Choice struct {
	Flavour plan.Flavour
	Reason  string // the rest of a sentence: "the flavour is debian: …"
}

// Choose settles the flavour. One that was asked for is taken. For "auto", and
// for none, a flavour whose named images are all on the engine is kept, so that
// a second run neither waits for a registry nor changes flavour; then published
// is taken when every official image is on the engine or the registry answers
// for it within ten seconds, and debian when not.
func (b *Builder) Choose(ctx context.Context, wish plan.Flavour, names ...string) (Choice, error) {
	switch wish {
	case plan.FlavourPublished, plan.FlavourDebian:
		return Choice{wish, "it was asked for"}, nil
	case plan.FlavourAuto, "":
	default:
		_, err := b.Recipes.Of(wish)
		return Choice{}, err
	}
	for _, f := range []plan.Flavour{plan.FlavourPublished, plan.FlavourDebian} {
		plan, err := b.Plan(ctx, f, names...)
		if err != nil {
			return Choice{}, err
		}
		if len(plan.Missing()) == 0 {
			return Choice{f, "its images are on the engine already"}, nil
		}
	}
	missing, err := b.unavailable(ctx, names...)
	if err != nil {
		return Choice{}, err
	}
	if missing != "" {
		return Choice{plan.FlavourDebian, "the registry does not answer for an official image (" + missing + ")"}, nil
	}
	return Choice{plan.FlavourPublished, "the registry answers for all official images"}, nil
}

// unavailable asks for every official image that the named ones stand on, and
// returns the first that cannot be had, with the reason; empty when all can.
func (b *Builder) unavailable(ctx context.Context, names ...string) (string, error) {
	plan, err := b.Plan(ctx, plan.FlavourPublished, names...)
	if err != nil {
		return "", err
	}
	officials := map[string]bool{}
	for _, it := range plan.Missing() {
		for _, parent := range it.Recipe.From {
			if parent.Official != "" {
				officials[parent.Official] = true
			}
		}
	}
	limited, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	var (
		wait    sync.WaitGroup
		mu      sync.Mutex
		reasons []string
	)
	for name := range officials {
		wait.Add(1)
		go func() {
			defer wait.Done()
			if err := b.available(limited, name); err != nil {
				mu.Lock()
				defer mu.Unlock()
				reasons = append(reasons, name+": "+firstLine(err.Error()))
			}
		}()
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	sort.Strings(reasons)
	if len(reasons) == 0 {
		return "", nil
	}
	return reasons[0], nil
}

// available reports whether an official image can be had.
func (b *Builder) available(ctx context.Context, name string) error {
	local, err := b.Engine.ImageInspect(ctx, name)
	if err == nil && (local.Config == nil || local.Config.Labels[LabelOwner] == "") {
		return nil
	}
	if _, err := b.Engine.DistributionInspect(ctx, name, client.DistributionInspectOptions{}); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %s", registryTimeout)
		}
		return err
	}
	return nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clean(s)
}
