package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
)

// fakeEngine is a Docker Engine that only remembers.
type fakeEngine struct {
	Engine // any call that is not below panics

	mu     sync.Mutex
	arch   string
	has    map[string]string            // tag -> id
	labels map[string]map[string]string // tag -> labels, for those that have any
	stream func(client.ImageBuildOptions) string
	inspected,
	built []string
	options  map[string]client.ImageBuildOptions
	contexts map[string][]string // tag -> names in the build context
	registry func(ctx context.Context, name string) error
	imported map[string]client.ImageImportOptions
}

func newEngine() *fakeEngine {
	return &fakeEngine{
		arch: "x86_64", has: map[string]string{}, labels: map[string]map[string]string{},
		options: map[string]client.ImageBuildOptions{}, contexts: map[string][]string{}, imported: map[string]client.ImageImportOptions{},
		stream: func(client.ImageBuildOptions) string {
			return `{"stream":"Step 1/1 : FROM x\n"}` + "\n" + `{"aux":{"ID":"sha256:1"}}` + "\n"
		},
		registry: func(context.Context, string) error { return errors.New("no such host") },
	}
}

func (e *fakeEngine) Info(context.Context, client.InfoOptions) (client.SystemInfoResult, error) {
	var r client.SystemInfoResult
	r.Info.Architecture = e.arch
	return r, nil
}

func (e *fakeEngine) ImageInspect(_ context.Context, name string, _ ...client.ImageInspectOption) (client.ImageInspectResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inspected = append(e.inspected, name)
	id, ok := e.has[name]
	if !ok {
		return client.ImageInspectResult{}, fmt.Errorf("no such image: %s: %w", name, errdefs.ErrNotFound)
	}
	r := client.ImageInspectResult{InspectResponse: image.InspectResponse{ID: id}}
	if l := e.labels[name]; l != nil {
		r.Config = &dockerspec.DockerOCIImageConfig{}
		r.Config.Labels = l
	}
	return r, nil
}

func (e *fakeEngine) ImageBuild(_ context.Context, files io.Reader, o client.ImageBuildOptions) (client.ImageBuildResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tag := o.Tags[0]
	for rd := tar.NewReader(files); ; {
		h, err := rd.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return client.ImageBuildResult{}, err
		}
		e.contexts[tag] = append(e.contexts[tag], h.Name)
	}
	e.built = append(e.built, tag)
	e.options[tag] = o
	s := e.stream(o)
	if !strings.Contains(s, "errorDetail") && strings.Contains(s, "aux") {
		e.has[tag] = "sha256:built-" + tag
	}
	return client.ImageBuildResult{Body: io.NopCloser(strings.NewReader(s))}, nil
}

func (e *fakeEngine) ImageImport(_ context.Context, s client.ImageImportSource, ref string, o client.ImageImportOptions) (client.ImageImportResult, error) {
	if _, err := io.Copy(io.Discard, s.Source); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.has[ref] = "sha256:imported-" + ref
	e.imported[ref] = o
	return io.NopCloser(bytes.NewReader([]byte(`{"status":"sha256:2"}`))), nil
}

func (e *fakeEngine) DistributionInspect(ctx context.Context, name string, _ client.DistributionInspectOptions) (client.DistributionInspectResult, error) {
	return client.DistributionInspectResult{}, e.registry(ctx, name)
}
