package images

import (
	"context"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Store is what Transfer asks of an engine.
type Store interface {
	Info(ctx context.Context, options client.InfoOptions) (client.SystemInfoResult, error)
	ImageInspect(ctx context.Context, image string, options ...client.ImageInspectOption) (client.ImageInspectResult, error)
	ImageSave(ctx context.Context, images []string, options ...client.ImageSaveOption) (client.ImageSaveResult, error)
	ImageLoad(ctx context.Context, input io.Reader, options ...client.ImageLoadOption) (client.ImageLoadResult, error)
}

// Transfer copies images from one engine to another of the same architecture,
// through this process, and returns the tags that it copied: those that from
// has and to lacks.
func Transfer(ctx context.Context, from, to Store, tags []string) ([]string, error) {
	source, err := from.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for the architecture of the engine to copy images from: %w", err)
	}
	target, err := to.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for the architecture of the engine to copy images to: %w", err)
	}
	if source.Info.Architecture != target.Info.Architecture {
		return nil, nil
	}
	var copied []string
	for _, tag := range tags {
		if there, err := has(ctx, to, tag); there || err != nil {
			if err != nil {
				return copied, err
			}
			continue
		}
		here, err := has(ctx, from, tag)
		if err != nil {
			return copied, err
		}
		if here {
			copied = append(copied, tag)
		}
	}
	if len(copied) == 0 {
		return nil, nil
	}
	out, err := from.ImageSave(ctx, copied)
	if err != nil {
		return nil, fmt.Errorf("reading the images to copy: %w", err)
	}
	defer out.Close()
	res, err := to.ImageLoad(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("copying images: %w", err)
	}
	defer res.Close()
	if _, err := io.Copy(io.Discard, res); err != nil {
		return nil, fmt.Errorf("copying images: %w", err)
	}
	for _, tag := range copied {
		if there, err := has(ctx, to, tag); err != nil || !there {
			return nil, fmt.Errorf("the image %s was copied and is not there (%v)", tag, err)
		}
	}
	return copied, nil
}

func has(ctx context.Context, s Store, tag string) (bool, error) {
	_, err := s.ImageInspect(ctx, tag)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for image %s: %w", tag, err)
	}
	return true, nil
}
