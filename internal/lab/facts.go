package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/engine"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/store"
)

// HostFacts describes every host of the lab.
func (l *Lab) HostFacts(ctx context.Context) ([]store.HostFacts, error) {
	var out []store.HostFacts
	for _, h := range l.hosts() {
		info, err := h.Engine.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Name, err)
		}
		cpu, err := l.tools[h].Exec(ctx, nil, "cat", "/proc/cpuinfo")
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Name, err)
		}
		name := "Docker Engine "
		if info.Desktop {
			name = "Docker Desktop, engine "
		}
		f := store.HostFacts{
			Name:          info.Name,
			Address:       h.Address,
			Engine:        name + info.Version,
			OS:            info.OS,
			Kernel:        info.Kernel,
			Arch:          info.Arch,
			CPUModel:      engine.CPUModel(string(cpu.Stdout)),
			CPUs:          info.CPUs,
			MemoryBytes:   info.Memory,
			CgroupVersion: info.CgroupVersion,
			CgroupDriver:  info.CgroupDriver,
			StorageDriver: info.StorageDriver,
		}
		for _, r := range profile.Roles() {
			if l.host(r) == h {
				f.Roles = append(f.Roles, r)
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// Versions asks each image of the lab what it contains: image name -> program
// -> version.
func (l *Lab) Versions(ctx context.Context) (map[string]map[string]string, error) {
	names := []string{ImageTools, ImageDatabase}
	for _, c := range l.cfg.Suite.Candidates {
		if l.cfg.Images[c.Image] != "" && !slices.Contains(names, c.Image) {
			names = append(names, c.Image)
		}
	}
	out := map[string]map[string]string{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		g.Go(func() error {
			v, err := l.versions(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			out[name] = v
			return err
		})
	}
	return out, g.Wait()
}

// versions runs an image's own list of versions.
func (l *Lab) versions(ctx context.Context, name string) (map[string]string, error) {
	s := l.spec(profile.App, "versions", l.cfg.Images[name])
	s.Network, s.HostNetwork = "", false
	s.Entrypoint = []string{"percore-versions"}
	c, err := l.host(profile.App).Engine.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	cleanup, cancel := cleanupContext(ctx)
	defer cancel()
	defer func() { _ = c.Remove(cleanup) }()
	exit, err := c.Wait(ctx)
	if err != nil {
		return nil, err
	}
	text, err := c.Logs(ctx, 0)
	if err != nil {
		return nil, err
	}
	if exit.Code != 0 {
		return nil, fmt.Errorf("image %s: percore-versions failed (%s): %s", l.cfg.Images[name], exit, strings.TrimSpace(string(text)))
	}
	return parseVersions(string(text))
}

// parseVersions reads lines of the form name=version.
func parseVersions(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, version, ok := strings.Cut(line, "=")
		if !ok || name == "" || version == "" {
			return nil, fmt.Errorf("percore-versions printed %q, not name=version", line)
		}
		out[name] = version
	}
	return out, nil
}

// ImageIDs are the engine's ids of the lab's images: name -> id.
func (l *Lab) ImageIDs(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Images)) {
		id, err := l.host(profile.App).Engine.ImageID(ctx, l.cfg.Images[name])
		if err != nil {
			return nil, err
		}
		if id != "" {
			out[name] = id
		}
	}
	return out, nil
}
