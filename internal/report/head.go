package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/percore/percore/internal/analysis"
	"github.com/percore/percore/internal/profile"
)

// fact is one line of a report's head.
type fact struct{ Name, Text string }

// title is the first line of a report.
func title(h analysis.Header) string {
	if h.Study {
		return "php-go-bench " + h.ID + " (raw folder in the layout of the published study)"
	}
	return fmt.Sprintf("percore run %s (%s)", h.ID, h.State)
}

// verdict says that the figures may stand beside the published ones. Why they
// may not is a caveat, which stands before everything else.
func verdict(h analysis.Header) string {
	if h.Comparable {
		return "yes"
	}
	return ""
}

// facts is the identity of a run.
func facts(h analysis.Header) []fact {
	var list []fact
	add := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			list = append(list, fact{name, text})
		}
	}
	add("comparable with the published figures", "%s", verdict(h))
	when := h.Started
	if h.Ended != "" {
		when += " to " + h.Ended
	}
	add("measured", "%s", when)
	for _, host := range h.Hosts {
		roles := make([]string, len(host.Roles))
		for i, r := range host.Roles {
			roles[i] = string(r)
		}
		var parts []string
		for _, p := range []string{
			host.CPUModel, fmt.Sprintf("%d CPUs", host.CPUs), gib(host.MemoryBytes), host.Arch, host.OS, host.Engine, prefix("kernel ", host.Kernel),
			cgroupText(host.CgroupVersion, host.CgroupDriver), prefix("storage ", host.StorageDriver),
		} {
			if strings.TrimSpace(p) != "" {
				parts = append(parts, p)
			}
		}
		add("host", "%s (%s): %s", host.Name, strings.Join(roles, ", "), strings.Join(parts, ", "))
	}
	var layout []string
	for _, role := range profile.Roles() {
		if r, ok := h.Roles[role]; ok {
			text := fmt.Sprintf("%s on CPUs %s", role, r.CPUs)
			if r.Memory > 0 {
				text += " with " + r.Memory.String()
			}
			layout = append(layout, text)
		}
	}
	if h.Pool > 0 {
		layout = append(layout, fmt.Sprintf("%d database connections", h.Pool))
	}
	if h.SharedCores {
		layout = append(layout, "cores shared between roles")
	}
	add("layout", "%s", strings.Join(layout, "; "))
	protocol := fmt.Sprintf("suite %s, profile %s, preset %s, flavour %s", h.Suite, h.Profile, h.Preset, h.Flavour)
	if !h.Study {
		protocol += fmt.Sprintf(", seed %d, by percore %s", h.Seed, h.Percore)
	}
	add("protocol", "%s", protocol)
	if h.Study {
		add("windows", "%d of %d in this folder", h.Done, h.Planned)
	} else {
		add("windows", "%d of %d with evidence", h.Done, h.Planned)
	}
	var titles []string
	for _, id := range h.Order {
		if t := h.Titles[id]; t != id {
			titles = append(titles, id+" is "+t)
		}
	}
	add("candidates", "%s", strings.Join(titles, "; "))
	var versions []string
	for _, id := range slices.Sorted(maps.Keys(h.Versions)) {
		versions = append(versions, id+" "+h.Versions[id])
	}
	add("versions", "%s", strings.Join(versions, "; "))
	var fsync []string
	for _, id := range slices.Sorted(maps.Keys(h.Fsync)) {
		fsync = append(fsync, id+" "+Number(h.Fsync[id], 0)+"/s")
	}
	add("fsync", "%s", strings.Join(fsync, "; "))
	return list
}

func prefix(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}

func cgroupText(version, driver string) string {
	if version == "" {
		return ""
	}
	return strings.TrimSpace("cgroup " + version + " " + driver)
}

func gib(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
