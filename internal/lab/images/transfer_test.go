package images

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/testkit/said"
)

// storeEngine is a fake engine that images are copied from and to.
type storeEngine struct {
	*fakeEngine
	broken bool // loads nothing
}

func (s storeEngine) ImageSave(_ context.Context, tags []string, _ ...client.ImageSaveOption) (client.ImageSaveResult, error) {
	return io.NopCloser(strings.NewReader(strings.Join(tags, "\n"))), nil
}

func (s storeEngine) ImageLoad(_ context.Context, in io.Reader, _ ...client.ImageLoadOption) (client.ImageLoadResult, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if !s.broken {
		for tag := range strings.SplitSeq(string(text), "\n") {
			s.has[tag] = "sha256:" + tag
		}
	}
	return io.NopCloser(strings.NewReader("{}")), nil
}

func TestTransfer(t *testing.T) {
	from, to := storeEngine{fakeEngine: newEngine()}, storeEngine{fakeEngine: newEngine()}
	from.has["a:1"], from.has["b:1"] = "sha256:1", "sha256:2"
	to.has["b:1"] = "sha256:2"
	wanted := []string{"a:1", "b:1", "c:1"} // one to copy, one that is there, one that nobody has
	got, err := Transfer(t.Context(), from, to, wanted)
	if err != nil || !slices.Equal(got, []string{"a:1"}) || to.has["a:1"] == "" {
		t.Errorf("copied %v, %v", got, err)
	}
	if got, err := Transfer(t.Context(), from, to, wanted); len(got) != 0 || err != nil {
		t.Errorf("copied again: %v, %v", got, err)
	}

	other := storeEngine{fakeEngine: newEngine()}
	other.arch = "aarch64"
	if got, err := Transfer(t.Context(), from, other, wanted); len(got) != 0 || err != nil || len(other.has) != 0 {
		t.Errorf("copied to another architecture: %v, %v", got, err)
	}
	lossy := storeEngine{fakeEngine: newEngine(), broken: true}
	if _, err := Transfer(t.Context(), from, lossy, wanted); err == nil || !strings.Contains(said.Err(err), "is not there") {
		t.Errorf("an engine that loads nothing: %v", err)
	}
	down := errors.New("down")
	if _, err := Transfer(t.Context(), from, failing{to, down}, wanted); !errors.Is(err, down) {
		t.Errorf("an engine that is down: %v", err)
	}
}

// failing is an engine that answers no question about itself.
type failing struct {
	storeEngine
	err error
}

func (f failing) Info(context.Context, client.InfoOptions) (client.SystemInfoResult, error) {
	return client.SystemInfoResult{}, f.err
}
