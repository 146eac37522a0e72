// Package enginetest gives integration tests an engine and images to run on it.
package enginetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
)

// ImagesEnv names a variable that says which images tests use, as
// NAME=TAG,NAME=TAG, so that none has to be built.
const ImagesEnv = "PERCORE_TEST_IMAGES"

// Connect returns the engine that the environment names. A test without an
// engine fails.
func Connect(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.Connect(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// Images returns the tags of the named images of the debian flavour, which are
// built where they are missing.
func Images(t testing.TB, e *engine.Engine, names ...string) map[string]string {
	t.Helper()
	tags := map[string]string{}
	for pair := range strings.SplitSeq(os.Getenv(ImagesEnv), ",") {
		if name, tag, ok := strings.Cut(pair, "="); ok {
			tags[name] = tag
		}
	}
	var missing []string
	for _, n := range names {
		if tags[n] == "" {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return tags
	}
	recipes, err := images.Load(os.DirFS(Root(t)), plan.DefaultSuite)
	if err != nil {
		t.Fatal(err)
	}
	b := images.Builder{Engine: e.API(), Recipes: recipes, Progress: func(ev images.Event) {
		if ev.Kind == images.Started || ev.Kind == images.Finished {
			t.Logf("image %s (%d of %d)", ev.Image, ev.Index, ev.Count)
		}
	}}
	built, err := b.Build(t.Context(), plan.FlavourDebian, missing...)
	if err != nil {
		t.Fatal(err)
	}
	for name, image := range built {
		tags[name] = image.Tag
	}
	return tags
}

// Root is the project's root: the folder with go.mod above the test.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
}
