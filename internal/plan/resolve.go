package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percore/percore/internal/base/fail"
)

// Machine is what the engine offers: its own CPUs and memory, which on a Mac
// are those of the virtual machine and not of the laptop.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	Cores       []CPUSet // physical cores, each as its CPUs; none where they are not known
}

// publishedCPUs are those of the study's layout, a core each.
const publishedCPUs CPUSet = "0-11"

// Choose turns "auto" into the name of a profile: the study's layout where the
// machine carries it, else the small one.
func Choose(name string, m Machine) string {
	if name != "auto" {
		return name
	}
	if m.carries(publishedCPUs) && m.MemoryBytes >= 6<<30 {
		return "m4pro"
	}
	return "small"
}

// ChoosePreset turns "auto" into the name of a preset: the published protocol
// where the candidate has the study's four cores, else the quick one.
func ChoosePreset(name string, p Profile) string {
	if name != "auto" {
		return name
	}
	if p.Name == "m4pro" || p.Cloud != nil && p.Roles[App].CPUs.Count() >= 4 {
		return "full"
	}
	return "quick"
}

// Resolve fits the profile to the machine: auto becomes CPU lists and sizes,
// and a machine that is too small is refused with the numbers.
func (p Profile) Resolve(m Machine) (Profile, error) {
	roles := make(map[Role]Resources, len(p.Roles))
	for role, r := range p.Roles {
		roles[role] = r
	}
	p.Roles = roles
	if p.Roles[App].CPUs == AutoCPUs {
		p.split(m.cores())
	}
	p.Siblings = Siblings(m.Cores)
	p.fillMemory(m.MemoryBytes)

	highest := 0
	for _, role := range Roles() {
		last, err := p.highestCPU(role)
		if err != nil {
			return Profile{}, err
		}
		highest = max(highest, last)
	}
	if there := JoinCPUs(m.cores()...).List(); len(there) == 0 || highest > there[len(there)-1] {
		return Profile{}, fail.Input("profile %s needs CPUs up to number %d, which is %d CPUs, and the engine has %d", p.Name, highest, highest+1, m.CPUs).Try("give Docker more CPUs or take PROFILE=small")
	}
	var memory Bytes
	for _, role := range Roles() {
		size := p.Roles[role].Memory
		if int64(size) > m.MemoryBytes { // before the sum, which it might overflow
			return Profile{}, fail.Input("profile %s gives role %s %.1f GiB of memory and the engine has %.1f GiB", p.Name, role, gib(int64(size)), gib(m.MemoryBytes)).Try("give Docker more memory or take PROFILE=small")
		}
		memory += size
	}
	if int64(memory) > m.MemoryBytes {
		return Profile{}, fail.Input("profile %s needs %.1f GiB of memory and the engine has %.1f GiB", p.Name, gib(int64(memory)), gib(m.MemoryBytes)).Try("give Docker more memory or take PROFILE=small")
	}
	return p, nil
}

// split gives each role a third of the cores with all of their threads, and
// what is left over to the load generator, which must never be the limit. With
// two cores the candidate keeps one to itself and the database shares the other
// with the load generator. The threads of a single core are dealt out like
// cores.
func (p *Profile) split(cores []CPUSet) {
	p.SharedCores = len(cores) < 3
	if len(cores) == 1 {
		threads := cores[0].List()
		cores = nil
		for _, c := range threads {
			cores = append(cores, FormatCPUs([]int{c}))
		}
	}
	set := func(role Role, from, to int) {
		r := p.Roles[role]
		r.CPUs = JoinCPUs(cores[from:to]...)
		p.Roles[role] = r
	}
	switch n := len(cores); n {
	case 0, 1:
		for _, role := range Roles() {
			set(role, 0, n)
		}
	case 2:
		set(App, 0, 1)
		set(DB, 1, 2)
		set(Load, 1, 2)
	default:
		third := n / 3
		set(App, 0, third)
		set(DB, third, 2*third)
		set(Load, 2*third, n)
	}
}

// fillMemory gives the roles without a size the study's sizes, or a share of
// four fifths of the memory where that is less.
func (p *Profile) fillMemory(have int64) {
	for _, role := range Roles() {
		r := p.Roles[role]
		if r.Memory == 0 {
			size := publishedMemory(role)
			r.Memory = min(size, Bytes(have)/5*(size>>30)) &^ (1<<20 - 1)
		}
		p.Roles[role] = r
	}
}

// publishedMemory is what the study gave a role.
func publishedMemory(r Role) Bytes {
	if r == DB {
		return 2 << 30
	}
	return 1 << 30
}

// highestCPU is the highest number among the CPUs of a role.
func (p Profile) highestCPU(role Role) (int, error) {
	cpus := p.Roles[role].CPUs.List()
	if len(cpus) == 0 {
		return 0, fail.Input("profile %s: role %s has no CPUs", p.Name, role).Try("write cpus: \"0-3\" or cpus: auto")
	}
	return cpus[len(cpus)-1], nil
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

// SharedRoles names the pairs of roles that run on the same CPUs, or on
// different threads of the same cores.
func (p Profile) SharedRoles() []string {
	if p.Cloud != nil {
		return nil // each role has a machine of its own
	}
	var pairs []string
	roles := Roles()
	for i, a := range roles {
		for _, b := range roles[i+1:] {
			both := SharedCores(p.Roles[a].CPUs, p.Roles[b].CPUs, p.Siblings)
			switch {
			case len(both) > 0 && len(p.Siblings) > 0:
				pairs = append(pairs, fmt.Sprintf("%s and %s share the cores of CPUs %s", a, b, JoinCPUs(both...)))
			case len(both) > 0:
				pairs = append(pairs, fmt.Sprintf("%s and %s share CPU %s", a, b, JoinCPUs(both...)))
			}
		}
	}
	return pairs
}

// Selection narrows a suite and a preset to what a run measures. An empty list
// means all.
type Selection struct {
	Candidates, Scenarios, Phases []string
}

// Select applies the selection. Names that do not exist are refused, with those
// that do.
func Select(s Suite, p Preset, sel Selection) (Suite, Preset, error) {
	candidates := make([]string, len(s.Candidates))
	for i, c := range s.Candidates {
		candidates[i] = c.ID
	}
	phases := make([]string, len(p.Phases))
	for i, ph := range p.Phases {
		phases[i] = ph.ID
	}
	for _, c := range []struct {
		what        string
		wants, have []string
	}{{"candidate", sel.Candidates, candidates}, {"scenario", sel.Scenarios, names(s.Scenarios)}, {"phase", sel.Phases, phases}} {
		for _, w := range c.wants {
			if !slices.Contains(c.have, w) {
				return Suite{}, Preset{}, fail.Input("there is no %s %q", c.what, w).Try("take from %s", strings.Join(c.have, ", "))
			}
		}
	}
	all := s
	keep := func(wants []string, id string) bool { return len(wants) == 0 || slices.Contains(wants, id) }
	s.Candidates = filter(s.Candidates, func(c Candidate) bool { return keep(sel.Candidates, c.ID) })
	s.Scenarios = filter(s.Scenarios, func(sc Scenario) bool { return keep(sel.Scenarios, sc.ID) })
	p.Phases = filter(p.Phases, func(ph Phase) bool { return keep(sel.Phases, ph.ID) })
	for i, ph := range p.Phases {
		var err error
		if p.Phases[i], err = ph.selectLoads(all, s, p.Name); err != nil {
			return Suite{}, Preset{}, err
		}
		if err := p.Phases[i].checkTarget(p.Phases[:i]); err != nil {
			return Suite{}, Preset{}, fmt.Errorf("phase %q of preset %s: %w", ph.ID, p.Name, err)
		}
	}
	if err := p.checkSize(s); err != nil {
		return Suite{}, Preset{}, err
	}
	return s, p, nil
}

func filter[T any](list []T, keep func(T) bool) []T {
	var kept []T
	for _, v := range list {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
