package engine

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/base/fail"
)

// Thing is a container, network, volume or image of percore's.
type Thing struct {
	Kind    string // container, network, volume or image
	ID      string
	Name    string
	Labels  map[string]string
	Created time.Time // zero when the engine does not say
	Running bool      // of a container
	Volumes []string  // names of a container's volumes
}

// Run is the id of the run the thing belongs to, or empty.
func (t Thing) Run() string { return t.Labels[LabelRun] }

// String names the thing for a list.
func (t Thing) String() string { return t.Kind + " " + t.Name }

// labelFilter selects by labels; an empty value selects any.
func labelFilter(labels map[string]string) client.Filters {
	f := client.Filters{}
	for k, v := range labels {
		if v != "" {
			k += "=" + v
		}
		f = f.Add("label", k)
	}
	return f
}

// Containers lists the containers, running or not, that carry all the labels.
func (e *Engine) Containers(ctx context.Context, labels map[string]string) ([]Thing, error) {
	res, err := retry(ctx, e, func() (client.ContainerListResult, error) {
		return e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelFilter(labels)})
	})
	if err != nil {
		return nil, fmt.Errorf("listing containers on %s: %w", e.host, err)
	}
	var out []Thing
	for _, s := range res.Items {
		t := Thing{Kind: KindContainer, ID: s.ID, Name: s.ID, Labels: s.Labels, Created: time.Unix(s.Created, 0), Running: s.State == "running"}
		if len(s.Names) > 0 {
			t.Name = strings.TrimPrefix(s.Names[0], "/")
		}
		for _, m := range s.Mounts {
			if m.Type == "volume" {
				t.Volumes = append(t.Volumes, m.Name)
			}
		}
		out = append(out, t)
	}
	return sorted(out), nil
}

// Networks lists the networks that carry all the labels.
func (e *Engine) Networks(ctx context.Context, labels map[string]string) ([]Thing, error) {
	res, err := retry(ctx, e, func() (client.NetworkListResult, error) {
		return e.api.NetworkList(ctx, client.NetworkListOptions{Filters: labelFilter(labels)})
	})
	if err != nil {
		return nil, fmt.Errorf("listing networks on %s: %w", e.host, err)
	}
	var out []Thing
	for _, n := range res.Items {
		out = append(out, Thing{Kind: KindNetwork, ID: n.ID, Name: n.Name, Labels: n.Labels, Created: n.Created})
	}
	return sorted(out), nil
}

// Volumes lists the volumes that carry all the labels.
func (e *Engine) Volumes(ctx context.Context, labels map[string]string) ([]Thing, error) {
	res, err := retry(ctx, e, func() (client.VolumeListResult, error) {
		return e.api.VolumeList(ctx, client.VolumeListOptions{Filters: labelFilter(labels)})
	})
	if err != nil {
		return nil, fmt.Errorf("listing volumes on %s: %w", e.host, err)
	}
	var out []Thing
	for _, v := range res.Items {
		created, _ := time.Parse(time.RFC3339, v.CreatedAt)
		out = append(out, Thing{Kind: KindVolume, ID: v.Name, Name: v.Name, Labels: v.Labels, Created: created})
	}
	return sorted(out), nil
}

// Images lists the images that carry all the labels; an image without a tag is
// named by its id.
func (e *Engine) Images(ctx context.Context, labels map[string]string) ([]Thing, error) {
	res, err := retry(ctx, e, func() (client.ImageListResult, error) {
		return e.api.ImageList(ctx, client.ImageListOptions{Filters: labelFilter(labels)})
	})
	if err != nil {
		return nil, fmt.Errorf("listing images on %s: %w", e.host, err)
	}
	var out []Thing
	for _, i := range res.Items {
		t := Thing{Kind: KindImage, ID: i.ID, Name: i.ID, Labels: i.Labels, Created: time.Unix(i.Created, 0)}
		if len(i.RepoTags) > 0 && i.RepoTags[0] != "<none>:<none>" {
			t.Name = strings.Join(i.RepoTags, " ")
		}
		out = append(out, t)
	}
	return sorted(out), nil
}

func sorted(t []Thing) []Thing {
	sort.Slice(t, func(i, j int) bool { return t[i].Name < t[j].Name })
	return t
}

// Delete removes a thing. One that is gone already is no error.
func (e *Engine) Delete(ctx context.Context, t Thing) error {
	var remove func() error
	switch t.Kind {
	case KindContainer:
		return e.Container(t.ID, t.Name).Remove(ctx)
	case KindNetwork:
		remove = func() error {
			_, err := e.api.NetworkRemove(ctx, t.ID, client.NetworkRemoveOptions{})
			return err
		}
	case KindVolume:
		remove = func() error {
			_, err := e.api.VolumeRemove(ctx, t.ID, client.VolumeRemoveOptions{})
			return err
		}
	case KindImage:
		remove = func() error {
			_, err := e.api.ImageRemove(ctx, t.ID, client.ImageRemoveOptions{Force: true, PruneChildren: true})
			return err
		}
	default:
		return fmt.Errorf("cannot remove %s: unknown kind", t)
	}
	_, err := retry(ctx, e, func() (struct{}, error) { return struct{}{}, remove() })
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("removing %s on %s: %w", t, e.host, err)
	}
	return nil
}

// CreateNetwork creates a private bridge network. A network that has the name
// already is an error: older engines would create a second one of that name,
// and refuse to connect a container to either.
func (e *Engine) CreateNetwork(ctx context.Context, name string, labels map[string]string) (Thing, error) {
	taken := fail.Work("the network name %s is taken on %s", name, e.host).Try("remove that network (docker network rm %s)", name)
	found, err := e.api.NetworkList(ctx, client.NetworkListOptions{Filters: client.Filters{}.Add("name", name)})
	if err != nil {
		return Thing{}, fmt.Errorf("listing networks on %s: %w", e.host, err)
	}
	for _, n := range found.Items { // the filter also finds parts of names
		if n.Name == name {
			return Thing{}, taken
		}
	}
	res, err := e.api.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Labels: labels})
	if errdefs.IsConflict(err) {
		return Thing{}, taken
	}
	if err != nil {
		return Thing{}, fmt.Errorf("creating network %s on %s: %w", name, e.host, err)
	}
	return Thing{Kind: KindNetwork, ID: res.ID, Name: name, Labels: labels}, nil
}

// CreateVolume creates a named volume, or finds it. A volume of that name that
// does not carry percore's label is an error.
func (e *Engine) CreateVolume(ctx context.Context, name string, labels map[string]string) error {
	found, err := retry(ctx, e, func() (client.VolumeInspectResult, error) {
		return e.api.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	})
	switch {
	case err == nil:
		if found.Volume.Labels[Label] != "1" {
			return fail.Work("the volume name %s is taken on %s by a volume that is not percore's", name, e.host).Try("remove it (docker volume rm %s)", name)
		}
		return nil
	case !errdefs.IsNotFound(err):
		return fmt.Errorf("looking for volume %s on %s: %w", name, e.host, err)
	}
	if _, err := retry(ctx, e, func() (client.VolumeCreateResult, error) {
		return e.api.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: labels})
	}); err != nil {
		return fmt.Errorf("creating volume %s on %s: %w", name, e.host, err)
	}
	return nil
}

// ImageID is the id of an image, or empty when the engine does not have it.
func (e *Engine) ImageID(ctx context.Context, tag string) (string, error) {
	res, err := retry(ctx, e, func() (client.ImageInspectResult, error) { return e.api.ImageInspect(ctx, tag) })
	if errdefs.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for image %s on %s: %w", tag, e.host, err)
	}
	return res.ID, nil
}
