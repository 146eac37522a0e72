package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The conditions of the study that figures may stand beside, as its tables and
// its meta.json give them.
const (
	publishedCores       = 4 // of each role
	publishedConnections = 32
)

var publishedPreset = Preset{
	Timeout: Duration(10 * time.Second),
	Warmup:  Duration(5 * time.Second),
	Probe:   Probe{Window: Duration(10 * time.Second), Connections: 256, Target: 50000},
	Phases: []Phase{
		{ID: "rate", Kind: KindRate, Window: Duration(60 * time.Second), Repetitions: 5, Connections: []int{256},
			Targets: map[string]int{"auth": 50000, "read": 50000, "write": 10000}},
		{ID: "ceiling", Kind: KindCeiling, Window: Duration(15 * time.Second), Repetitions: 3, Connections: []int{16, 64, 128, 256}},
	},
}

// Differences says in what a resolved profile gives other conditions than the
// study's: cores, memory and database connections. The number of cores says
// nothing where roles share them, and SharedRoles tells. What is not known, as
// in a folder that was imported, does not differ.
func (p Profile) Differences() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(p.SharedRoles()) == 0 {
		for _, role := range Roles() {
			switch n := p.Roles[role].CPUs.Count(); {
			case n == 0 || n == publishedCores:
			case role == App:
				add("the candidate has %d core(s) and the study's had %d: compare CPU per request and ratios, not rates", n, publishedCores)
			default:
				add("role %s has %d core(s) and the study's had %d", role, n, publishedCores)
			}
		}
	}
	for _, role := range Roles() {
		if m, want := p.Roles[role].Memory, publishedMemory(role); m > 0 && m != want {
			add("role %s has %s of memory and the study's had %s", role, m, want)
		}
	}
	if n := p.DatabaseConnections; n > 0 && n != publishedConnections {
		add("there are %d database connections and the study had %d", n, publishedConnections)
	}
	return all
}

// Differences says in what a preset falls short of the published protocol or
// asks for something else, with the protocol's values in brackets; empty for
// nothing. Longer windows and more repetitions are no difference, and pauses
// between windows are not part of the protocol. What is not known, as in a
// folder that was imported, does not differ.
func (p Preset) Differences() string {
	var all []string
	var parts []string
	part := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	end := func(what string) {
		if len(parts) > 0 {
			all = append(all, what+" "+strings.Join(parts, ", "))
		}
		parts = nil
	}
	want := publishedPreset
	part(p.Timeout != 0 && p.Timeout != want.Timeout, "%s (%s)", p.Timeout, want.Timeout)
	end("timeout")
	part(p.Warmup != 0 && p.Warmup < want.Warmup, "%s (%s)", p.Warmup, want.Warmup)
	end("warm-up")
	probe := p.Probe
	part(probe.Window != 0 && probe.Window < want.Probe.Window, "window %s (%s)", probe.Window, want.Probe.Window)
	part(probe.Connections != 0 && probe.Connections != want.Probe.Connections, "connections %d (%d)", probe.Connections, want.Probe.Connections)
	part(probe.Target != 0 && probe.Target != want.Probe.Target, "target %d/s (%d/s)", probe.Target, want.Probe.Target)
	end("probe")
	for _, ph := range p.Phases {
		i := slices.IndexFunc(want.Phases, func(o Phase) bool { return o.Kind == ph.Kind })
		if i < 0 {
			continue
		}
		w := want.Phases[i]
		part(ph.Window < w.Window, "windows %s (%s)", ph.Window, w.Window)
		part(ph.Repetitions < w.Repetitions, "repetitions %d (%d)", ph.Repetitions, w.Repetitions)
		part(!slices.Equal(slices.Sorted(slices.Values(ph.Connections)), w.Connections), "connections %s (%s)", numbers(ph.Connections), numbers(w.Connections))
		for _, sc := range slices.Sorted(maps.Keys(ph.Targets)) {
			t, ok := w.Targets[sc]
			part(ok && ph.Targets[sc] != t, "%s %d/s (%d/s)", sc, ph.Targets[sc], t)
		}
		end("phase " + ph.ID)
	}
	return strings.Join(all, "; ")
}

// Caveat is the sentence that Differences make; empty for none.
func (p Preset) Caveat() string {
	differs := p.Differences()
	if differs == "" {
		return ""
	}
	return fmt.Sprintf("preset %s is not the published protocol, whose values stand in brackets: %s", p.Name, differs)
}

func numbers(n []int) string {
	s := make([]string, len(n))
	for i, v := range n {
		s[i] = fmt.Sprint(v)
	}
	return strings.Join(s, ", ")
}
