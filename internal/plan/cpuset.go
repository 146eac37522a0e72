package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/base/fail"
)

// AutoCPUs stands in a profile file for a set that is chosen when the machine
// is known.
const AutoCPUs CPUSet = "auto"

// maxCPU bounds the CPU numbers a set may hold: the kernel's largest NR_CPUS.
const maxCPU = 8191

// ParseCPUs reads the kernel's list format ("0-3,8") and returns the numbers in
// ascending order. An empty list, a range that runs backwards, a number twice
// or anything else that is not such a list is an error.
func ParseCPUs(s string) ([]int, error) {
	if strings.TrimSpace(s) == "" {
		return nil, fmt.Errorf("the CPU list is empty")
	}
	var cpus []int
	seen := map[int]bool{}
	for _, part := range strings.Split(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if first == "" || isRange && last == "" {
			return nil, fmt.Errorf("CPU list %q: %q is neither a CPU number nor a range of them", s, part)
		}
		lo, err := cpuNumber(first)
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", s, err)
		}
		hi := lo
		if isRange {
			if hi, err = cpuNumber(last); err != nil {
				return nil, fmt.Errorf("CPU list %q: %w", s, err)
			}
		}
		if hi < lo {
			return nil, fmt.Errorf("CPU list %q: the range %q runs backwards", s, part)
		}
		for c := lo; c <= hi; c++ {
			if seen[c] {
				return nil, fmt.Errorf("CPU list %q: CPU %d is in it twice", s, c)
			}
			seen[c] = true
			cpus = append(cpus, c)
		}
	}
	slices.Sort(cpus)
	return cpus, nil
}

func cpuNumber(s string) (int, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, fmt.Errorf("%q is not a CPU number", s)
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > maxCPU || len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%q is not a CPU number", s)
	}
	return n, nil
}

// FromYAML reads a list or auto. An empty one is left to the check of the
// profile, like a missing one.
func (c *CPUSet) FromYAML(text string) error {
	*c = CPUSet(text)
	if *c == AutoCPUs || text == "" {
		return nil
	}
	cpus, err := ParseCPUs(text)
	if err != nil {
		return fail.Input("%w", err).Try("%s", c.Form())
	}
	*c = FormatCPUs(cpus) // one way to write it for everything that reads it
	return nil
}

// Form says how CPUs are written.
func (*CPUSet) Form() string { return `write CPU numbers as in "0-3,8", or auto` }

// FormatCPUs writes CPU numbers in the kernel's list format.
func FormatCPUs(cpus []int) CPUSet {
	sorted := slices.Compact(slices.Sorted(slices.Values(cpus)))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(sorted[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return CPUSet(strings.Join(parts, ","))
}

// List returns the CPU numbers of the set, or nil for a set that is auto or
// was never checked.
func (c CPUSet) List() []int {
	cpus, err := ParseCPUs(string(c))
	if err != nil {
		return nil
	}
	return cpus
}

// Count is the number of CPUs in the set.
func (c CPUSet) Count() int { return len(c.List()) }

// Shared returns the CPUs that both sets hold.
func (c CPUSet) Shared(other CPUSet) []int {
	mine := c.List()
	var both []int
	for _, cpu := range other.List() {
		if slices.Contains(mine, cpu) {
			both = append(both, cpu)
		}
	}
	return both
}
