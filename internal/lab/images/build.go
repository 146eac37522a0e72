package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
)

// Builder builds images on one engine.
type Builder struct {
	Engine  Engine
	Recipes *Recipes
	Names   []string // the images that are meant when none are named
	// Cache is a folder of the user's for what is compiled on the driver's
	// machine and for the lock; empty means percore's in the user's cache folder.
	Cache string
	// HostNetwork makes the steps of a build use the network of the engine's
	// machine, as the containers of a lab of several hosts do.
	HostNetwork bool
	// Progress, when set, is told what happens, from one goroutine at a time.
	Progress func(Event)

	salt string // keeps a test's images apart from real ones
}

// Kind of an event.
type Kind int

// What an event tells.
const (
	Waiting  Kind = iota // for another percore that is building
	Reused               // an image is there already
	Started              // the build of an image began
	Stepped              // it reached its next step
	Printed              // it printed a line
	Ticked               // it goes on: sent every few seconds whatever else happens
	Finished             // the image is there
)

// Event is one thing that happened while images were built.
type Event struct {
	Kind     Kind
	Image    string        // recipe
	Tag      string        // of the image
	Index    int           // which of the images to build, from 1
	Count    int           // how many images are to be built
	Step     int           // of the image's build, from 1; 0 before the first
	Steps    int           // 0 when unknown
	Command  string        // of the step
	Line     string        // of output, or what is waited for
	Elapsed  time.Duration // since the image's build began
	Estimate time.Duration // of the image's build
}

// tick is how often a build says that it goes on.
const tick = 2 * time.Second

// Build makes sure that the named images (those of the builder when there are none) are
// on the engine, and returns them by name. Images that are there are reused;
// others are built, parents first. Two drivers on one machine build one after
// the other.
func (b *Builder) Build(ctx context.Context, flavour plan.Flavour, names ...string) (map[string]Image, error) {
	plan, err := b.Plan(ctx, flavour, names...)
	if err != nil {
		return nil, err
	}
	if len(plan.Missing()) > 0 {
		unlock, err := b.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		// Another driver may have built some of them in the meantime.
		if err := b.look(ctx, &plan); err != nil {
			return nil, err
		}
	}
	missing := plan.Missing()
	index := 0
	built := map[string]Image{}
	for _, it := range plan.Items {
		if it.Build {
			index++
			if it.ID, err = b.one(ctx, plan.Flavour, it, index, len(missing)); err != nil {
				return nil, err
			}
		} else if it.Wanted {
			b.tell(Event{Kind: Reused, Image: it.Recipe.Name, Tag: it.Tag})
		}
		if it.Wanted {
			built[it.Recipe.Name] = Image{Name: it.Recipe.Name, Tag: it.Tag, ID: it.ID}
		}
	}
	return built, nil
}

func (b *Builder) tell(e Event) {
	if b.Progress != nil {
		b.Progress(e)
	}
}

// BuildError is a build that failed.
type BuildError struct {
	Image   string
	Step    string   // "step 4 of 12 (RUN make)", empty before the first
	Reason  string   // one sentence
	Tail    []string // the end of the build's output
	Context error    // why the context ended, if it did
}

// Error is the reason, and below it the end of the build's output.
func (e *BuildError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "building the image %s", e.Image)
	if e.Step != "" {
		fmt.Fprintf(&s, ", %s", e.Step)
	}
	fmt.Fprintf(&s, ": %s", e.Reason)
	for _, l := range e.Tail {
		s.WriteString("\n    " + l)
	}
	return s.String()
}

func (e *BuildError) Unwrap() error { return e.Context }

// run is one image in the making.
type run struct {
	b       *Builder
	item    Item
	labels  map[string]string
	started time.Time
	out     output
	events  chan Event
}

// one builds one image and returns its id.
func (b *Builder) one(ctx context.Context, flavour plan.Flavour, it Item, index, count int) (string, error) {
	r := &run{
		b: b, item: it, started: time.Now(), events: make(chan Event, 16),
		labels: map[string]string{
			LabelOwner: "1", LabelKind: "image", LabelFlavour: string(flavour), LabelImage: it.Recipe.Name,
		},
	}
	// One goroutine works and one tells, so that ticks come whatever the work
	// does and Progress is never called twice at once.
	r.out.onStep = func(s step) {
		r.events <- Event{Kind: Stepped, Step: s.number, Steps: s.of, Command: s.command}
	}
	r.out.onLine = func(l string) { r.events <- Event{Kind: Printed, Line: l} }
	done := make(chan error, 1)
	go func() {
		defer close(r.events)
		switch it.Recipe.Method {
		case Bootstrap:
			done <- r.bootstrap(ctx)
		case Cargo:
			done <- r.cargo(ctx)
		default:
			done <- r.dockerfile(ctx)
		}
	}()

	var now step
	tell := func(e Event) {
		e.Image, e.Tag, e.Index, e.Count = it.Recipe.Name, it.Tag, index, count
		e.Step, e.Steps, e.Command = now.number, now.of, now.command
		e.Elapsed, e.Estimate = time.Since(r.started), it.Recipe.Estimate
		b.tell(e)
	}
	tell(Event{Kind: Started})
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case e, ok := <-r.events:
			if !ok {
				open = false
				break
			}
			if e.Kind == Stepped {
				now = step{number: e.Step, of: e.Steps, command: e.Command}
			}
			tell(e)
		case <-ticker.C:
			tell(Event{Kind: Ticked})
		}
	}
	if err := <-done; err != nil {
		return "", r.explain(ctx, err)
	}
	id, err := b.inspect(ctx, it.Tag)
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", r.explain(ctx, errors.New("the engine ended the build without an error and without an image: look at its log"))
	}
	tell(Event{Kind: Finished})
	return id, nil
}

// dockerfile builds an image by the engine's builder.
func (r *run) dockerfile(ctx context.Context) error {
	files := r.item.files
	if r.item.Recipe.Downloads {
		files = append(files[:len(files):len(files)], file{name: authoritiesName, data: authorities()})
	}
	data, err := archive(files)
	if err != nil {
		return err
	}
	args := map[string]*string{}
	for k, v := range r.item.Recipe.Args {
		args[k] = &v
	}
	for k, v := range r.item.parents {
		args[k] = &v
	}
	o := client.ImageBuildOptions{
		Version: build.BuilderV1, Dockerfile: dockerfileName, Tags: []string{r.item.Tag},
		BuildArgs: args, Labels: r.labels, Remove: true, ForceRemove: true,
	}
	if r.b.HostNetwork {
		o.NetworkMode = "host"
	}
	res, err := r.b.Engine.ImageBuild(ctx, bytes.NewReader(data), o)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return r.out.follow(res.Body)
}

// load imports a tar of a root file system as the image.
func (r *run) load(ctx context.Context, tar io.Reader, message string) error {
	changes := []string{"ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `CMD ["/bin/sh"]`}
	for _, k := range sortedKeys(r.labels) {
		changes = append(changes, fmt.Sprintf("LABEL %s=%q", k, r.labels[k]))
	}
	res, err := r.b.Engine.ImageImport(ctx, client.ImageImportSource{Source: tar, SourceName: "-"}, r.item.Tag, client.ImageImportOptions{Message: message, Changes: changes})
	if err != nil {
		return err
	}
	defer res.Close()
	return r.out.follow(res)
}

// explain turns what went wrong into one sentence with the output's end.
func (r *run) explain(ctx context.Context, err error) error {
	e := &BuildError{Image: r.item.Recipe.Name, Reason: err.Error(), Tail: r.out.tail}
	if s := r.out.step; s.number > 0 {
		e.Step = fmt.Sprintf("step %d of %d (%s)", s.number, s.of, Short(s.command, 100))
	}
	var remedy *remedyError
	switch all := err.Error() + "\n" + strings.Join(e.Tail, "\n"); {
	case ctx.Err() != nil:
		e.Reason, e.Tail, e.Context = "stopped: "+ctx.Err().Error(), nil, ctx.Err()
	case diskFull(all):
		e.Reason = "the disk is full, on the machine of the Docker engine or in the driver's cache: free some space (docker system df shows what Docker uses) and start again"
	case errors.As(err, &remedy):
		e.Reason, e.Context = remedy.Error(), remedy
		if !remedy.output {
			e.Tail = nil
		}
	}
	return e
}

func diskFull(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "no space left on device") || strings.Contains(s, "disk quota exceeded")
}

// remedyError is a failure whose text says what to do about it.
type remedyError struct {
	text   string
	output bool // whether the end of the output helps
}

func (e *remedyError) Error() string { return e.text }

// cacheDir is percore's folder in the user's cache, made when it is not there.
func (b *Builder) cacheDir() (string, error) {
	dir := b.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fail.Work("finding a folder for what percore keeps between runs: %w", err).Try("set XDG_CACHE_HOME")
		}
		dir = filepath.Join(user, "percore")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making percore's cache folder: %w", err)
	}
	return dir, nil
}
