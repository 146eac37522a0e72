package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Cores reads physical cores from the lines of the kernel's
// thread_siblings_list or core_cpus_list files, one line per CPU and so one
// core on as many lines as it has threads. The kernel leaves out CPUs that are
// offline. Lines that are no CPU lists are passed over: no line at all means
// that nothing is known.
func Cores(text string) []CPUSet {
	var cores []CPUSet
	seen := map[int]bool{}
	for _, line := range strings.Fields(text) {
		cpus, err := ParseCPUs(line)
		if err != nil || slices.ContainsFunc(cpus, func(c int) bool { return seen[c] }) {
			continue
		}
		for _, c := range cpus {
			seen[c] = true
		}
		cores = append(cores, FormatCPUs(cpus))
	}
	slices.SortFunc(cores, func(a, b CPUSet) int { return cmp.Compare(a.List()[0], b.List()[0]) })
	return cores
}

// Siblings are the cores that have more than one thread. None means that every
// CPU is a core, which is also what is assumed where nothing is known.
func Siblings(cores []CPUSet) []CPUSet {
	return filter(cores, func(c CPUSet) bool { return c.Count() > 1 })
}

// SharedCores returns the physical cores on which both sets have a CPU, each as
// the CPUs that are its threads.
func SharedCores(a, b CPUSet, siblings []CPUSet) []CPUSet {
	shared := filter(siblings, func(core CPUSet) bool {
		return len(core.Shared(a)) > 0 && len(core.Shared(b)) > 0
	})
	for _, cpu := range a.Shared(b) {
		alone := FormatCPUs([]int{cpu})
		if !slices.ContainsFunc(siblings, func(core CPUSet) bool { return len(core.Shared(alone)) > 0 }) {
			shared = append(shared, alone)
		}
	}
	return shared
}

// JoinCPUs makes one set of several.
func JoinCPUs(sets ...CPUSet) CPUSet {
	var all []int
	for _, s := range sets {
		all = append(all, s.List()...)
	}
	return FormatCPUs(all)
}

// ThreadsPerCore is how many CPUs of the set are threads of one core, of the
// cores the one with most; 1 where each CPU has a core to itself.
func ThreadsPerCore(cpus CPUSet, siblings []CPUSet) int {
	most := 1
	for _, core := range siblings {
		most = max(most, len(core.Shared(cpus)))
	}
	return most
}

// cores are the machine's cores, each as its CPUs: where they are not known,
// every CPU is one.
func (m Machine) cores() []CPUSet {
	if len(m.Cores) > 0 {
		return m.Cores
	}
	cores := make([]CPUSet, m.CPUs)
	for c := range cores {
		cores[c] = FormatCPUs([]int{c})
	}
	return cores
}

// carries reports whether every CPU of the set is there and has a core that no
// other CPU of the set is on.
func (m Machine) carries(cpus CPUSet) bool {
	whole := filter(m.cores(), func(core CPUSet) bool { return len(core.Shared(cpus)) == 1 })
	return len(whole) == cpus.Count()
}
