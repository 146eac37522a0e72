package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
)

// HostFacts describes every host of the lab.
func (l *Lab) HostFacts(ctx context.Context) ([]store.HostFacts, error) {
	hosts := l.hosts()
	out := make([]store.HostFacts, len(hosts))
	var clocks *readings
	if l.spread() {
		clocks = l.readHosts(ctx, true)
	}
	var g errgroup.Group
	for i, h := range hosts {
		g.Go(func() (err error) {
			if out[i], err = l.hostFacts(ctx, h); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			if clocks != nil && clocks.of[i].aheadErr == nil {
				ms := float64(clocks.of[i].ahead.Nanoseconds()) / 1e6
				out[i].ClockOffsetMS = &ms
			}
			return nil
		})
	}
	return out, l.blame(g.Wait())
}

// factsName is what the facts of a host call it: a host of its own by the name
// it has in the lab, this machine by its own.
func factsName(h *Host, info engine.Info) string {
	if h.HostNetwork {
		return h.Name
	}
	return info.Name
}

// hostFacts describes one host.
func (l *Lab) hostFacts(ctx context.Context, h *Host) (store.HostFacts, error) {
	info, err := h.Engine.Info(ctx)
	if err != nil {
		return store.HostFacts{}, err
	}
	cpu, err := l.tools[h].Exec(ctx, nil, "cat", "/proc/cpuinfo")
	if err != nil {
		return store.HostFacts{}, err
	}
	// The files of the second name replace those of the first on newer kernels.
	// Where there are none the CPUs are cores, and cat says so in vain.
	siblings, err := l.tools[h].Exec(ctx, nil, "sh", "-c",
		"cd /sys/devices/system/cpu && cat cpu[0-9]*/topology/thread_siblings_list cpu[0-9]*/topology/core_cpus_list")
	if err != nil {
		return store.HostFacts{}, err
	}
	name := "Docker Engine "
	if info.Desktop {
		name = "Docker Desktop, engine "
	}
	return store.HostFacts{
		Name:          factsName(h, info),
		Roles:         l.rolesOf(h),
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
		Siblings:      plan.Siblings(plan.Cores(string(siblings.Stdout))),
	}, nil
}

// imageHost is a host that has the image: the database's is only where the
// database is.
func (l *Lab) imageHost(image string) *Host {
	if image == ImageDatabase {
		return l.host(plan.DB)
	}
	return l.host(plan.App)
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
			v, err := images.Versions(ctx, l.imageHost(name).Engine.API(), l.cfg.Images[name])
			mu.Lock()
			defer mu.Unlock()
			out[name] = v
			return err
		})
	}
	return out, g.Wait()
}

// ImageIDs are the engine's ids of the lab's images: name -> id.
func (l *Lab) ImageIDs(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Images)) {
		id, err := l.imageHost(name).Engine.ImageID(ctx, l.cfg.Images[name])
		if err != nil {
			return nil, err
		}
		if id != "" {
			out[name] = id
		}
	}
	return out, nil
}
