// Package images builds the images of a run on a Docker Engine, in either
// flavour, and knows them by the hash of all that goes into them.
//
// A recipe is data: a Dockerfile, the files of its build context, its arguments
// and the images it stands on. The tag of an image is a hash over its recipe and
// the tags of its parents, so an image is built once and again only when
// something that it is made of has changed. Builds go through the engine's own
// (classic) builder, which needs nothing but the Engine API: no Docker command
// line on the driver, no BuildKit, and the engine may be on another machine.
package images

import (
	"context"
	"io"

	"github.com/moby/moby/client"
)

// Engine is the part of the Docker Engine API that building needs.
// *client.Client implements it.
type Engine interface {
	ImageBuild(ctx context.Context, buildContext io.Reader, options client.ImageBuildOptions) (client.ImageBuildResult, error)
	ImageImport(ctx context.Context, source client.ImageImportSource, ref string, options client.ImageImportOptions) (client.ImageImportResult, error)
	ImageInspect(ctx context.Context, image string, options ...client.ImageInspectOption) (client.ImageInspectResult, error)
	DistributionInspect(ctx context.Context, image string, options client.DistributionInspectOptions) (client.DistributionInspectResult, error)
	Info(ctx context.Context, options client.InfoOptions) (client.SystemInfoResult, error)
	ContainerCreate(ctx context.Context, options client.ContainerCreateOptions) (client.ContainerCreateResult, error)
	ContainerStart(ctx context.Context, container string, options client.ContainerStartOptions) (client.ContainerStartResult, error)
	ContainerWait(ctx context.Context, container string, options client.ContainerWaitOptions) client.ContainerWaitResult
	ContainerLogs(ctx context.Context, container string, options client.ContainerLogsOptions) (client.ContainerLogsResult, error)
	ContainerRemove(ctx context.Context, container string, options client.ContainerRemoveOptions) (client.ContainerRemoveResult, error)
}

// Labels on every image of percore's.
const (
	LabelOwner   = "io.percore"
	LabelKind    = "io.percore.kind"
	LabelFlavour = "io.percore.flavour"
	LabelImage   = "io.percore.image"
)

// Image is a built image.
type Image struct {
	Name string `json:"name"` // of the recipe
	Tag  string `json:"tag"`  // percore/NAME:FLAVOUR-HASH
	ID   string `json:"id"`   // sha256:…, as the engine gives it
}
