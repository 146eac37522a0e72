//go:build integration

package doctor

import (
	"context"
	"errors"
	"testing"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/testkit/enginetest"
)

// The look through a container has to agree with the look at the same machine,
// and leave nothing behind.
func TestContainerHost(t *testing.T) {
	ctx := context.Background()
	e := enginetest.Connect(t)
	tools := enginetest.Images(t, e, "tools")["tools"]
	r, err := ContainerHost{Engine: e, Image: func(context.Context) (string, error) { return tools, nil }}.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Free == 0 {
		t.Errorf("got %+v", r)
	}
	left, err := e.Containers(ctx, map[string]string{engine.Label: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range left {
		if c.Run() == "" && len(c.Name) > 15 && c.Name[:15] == "percore-doctor-" {
			t.Errorf("container %s is still there", c.Name)
		}
	}
	_, err = ContainerHost{Engine: e, Image: func(context.Context) (string, error) { return "", nil }}.Read(ctx)
	if !errors.Is(err, ErrNoWayIn) {
		t.Errorf("without an image: %v", err)
	}
	_, err = ContainerHost{Engine: e, Image: func(context.Context) (string, error) { return "percore/no-such-image:none", nil }}.Read(ctx)
	if err == nil {
		t.Error("an image that does not exist can be run")
	}
}
