package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// fact is one line of a report's head.
type fact struct{ Name, Text string }

// title is the first line of a report.
func title(h figures.Header) string {
	if h.Study {
		return "php-go-bench " + h.ID + " (raw folder in the layout of the published study)"
	}
	return fmt.Sprintf("percore run %s (%s)", h.ID, h.State)
}

// verdict says that the figures may stand beside the published ones. Why they
// may not is a caveat, which stands before everything else.
func verdict(h figures.Header) string {
	switch {
	case h.Comparable && len(h.Otherwise) > 0:
		return "yes; otherwise than in the study: " + strings.Join(h.Otherwise, "; ")
	case h.Comparable:
		return "yes"
	}
	return ""
}

// facts is the identity of a run.
func facts(h figures.Header) []fact {
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
		add("host", "%s", hostText(host))
	}
	add("cloud", "%s", cloudText(h.Cloud))
	var layout []string
	for _, role := range plan.Roles() {
		if r, ok := h.Roles[role]; ok {
			text := fmt.Sprintf("%s on CPUs %s", role, r.CPUs)
			if r.Memory > 0 {
				text += " with " + r.Memory.String()
			}
			layout = append(layout, text)
		}
	}
	if h.Generators > 1 {
		layout = append(layout, fmt.Sprintf("the load spread over %d generators", h.Generators))
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

// hostText is everything that is known of a host.
func hostText(h store.HostFacts) string {
	var parts []string
	for _, p := range []string{
		h.InstanceType, h.CPUModel, fmt.Sprintf("%d CPUs", h.CPUs), threadsText(h), gib(h.MemoryBytes), h.Arch, h.OS, h.Engine, prefix("kernel ", h.Kernel),
		cgroupText(h.CgroupVersion, h.CgroupDriver), prefix("storage ", h.StorageDriver), rsaText(h.RSAVerifyPerS), clockText(h.ClockOffsetMS),
	} {
		if strings.TrimSpace(p) != "" {
			parts = append(parts, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Facts)) {
		parts = append(parts, name+" "+h.Facts[name])
	}
	return fmt.Sprintf("%s (%s): %s", h.Name, rolesText(h.Roles), strings.Join(parts, ", "))
}

func rolesText(roles []plan.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// threadsText says how many threads a core of the host has, where some have
// several.
func threadsText(h store.HostFacts) string {
	if n := plan.ThreadsPerCore(plan.JoinCPUs(h.Siblings...), h.Siblings); n > 1 {
		return fmt.Sprintf("%d threads per core", n)
	}
	return ""
}

func rsaText(perS float64) string {
	if perS <= 0 {
		return ""
	}
	return Number(perS, 0) + " RSA-2048 verifications/s on one core"
}

// clockText says how far a clock is from the first load host's.
func clockText(ms *float64) string {
	switch {
	case ms == nil:
		return ""
	case *ms < 0:
		return "clock " + figures.Shortest(-*ms, 3) + " ms behind the load host's"
	case *ms > 0:
		return "clock " + figures.Shortest(*ms, 3) + " ms ahead of the load host's"
	}
	return "clock that of the load host"
}

func linkText(l store.Link) string {
	return fmt.Sprintf("%s to %s: round trip %s ms (%s–%s), %s Gbit/s, %s", l.From, l.To,
		figures.Shortest(l.RTTMeanMS, 3), figures.Shortest(l.RTTMinMS, 3), figures.Shortest(l.RTTMaxMS, 3), Number(l.BitsPerS/1e9, 2), counted(int(l.Retransmits), "segment")+" sent again")
}

// cloudText says where the machines came from and what they cost.
func cloudText(c *store.Cloud) string {
	if c == nil {
		return ""
	}
	text := string(c.Provider)
	if c.Region != "" {
		text += " in " + c.Region
	}
	if c.Zone != "" {
		text += ", zone " + c.Zone
	}
	if c.USDPerHour > 0 {
		text += fmt.Sprintf(", $%.2f an hour", c.USDPerHour)
		if c.PriceSource != "" {
			text += " (" + c.PriceSource + ")"
		}
	}
	if c.USDSpent > 0 {
		text += fmt.Sprintf(", $%.2f spent by then", c.USDSpent)
	}
	return text
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
