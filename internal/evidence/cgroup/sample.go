// Package cgroup reads the sample files that guest sample writes: the kernel's
// counters of each container and of its host, ten times a second, one JSON
// object a line.
//
// The packages below it are the writing side and use nothing but the standard
// library, so that the sampler builds from its own sources alone: kernel holds
// one parser per kernel file, sampler finds, opens and re-reads the files.
package cgroup

// Sample is one line of a sample file.
//
// A counter is nil when the kernel does not offer it; zero means that the
// kernel said zero.
type Sample struct {
	T          int64                `json:"t"`                // CLOCK_REALTIME in ns since 1970, taken before the counters were read
	Mono       int64                `json:"mono"`             // CLOCK_MONOTONIC in ns: stands still while the host is suspended
	SlowT      int64                `json:"slow_t,omitempty"` // when all but usage_us, and what the kernel has in the same file, was read; as T, and at most a second before it
	Host       Host                 `json:"host"`
	Containers map[string]Container `json:"containers"`
}

// Host is what the engine's host says of itself. Its times are those of
// /proc/stat, which counts in ticks of 10 ms, here in µs.
type Host struct {
	CPUs    int     `json:"cpus"`     // CPUs online
	TotalUS int64   `json:"total_us"` // all time of all CPUs, steal included
	IdleUS  int64   `json:"idle_us"`  // idle and iowait
	StealUS int64   `json:"steal_us"` // a CPU had work and the hypervisor ran something else
	PerCPU  []CPU   `json:"per_cpu"`
	Load1   float64 `json:"load1"` // load average over one minute
}

// CPU is one CPU of the host.
type CPU struct {
	CPU     int   `json:"cpu"`      // the kernel's number of it
	BusyUS  int64 `json:"busy_us"`  // user, nice, system, irq and softirq
	StealUS int64 `json:"steal_us"` // as in Host
	// IRQUS is the part of BusyUS that was irq and softirq: work for whoever it
	// may have been. It is 0 in files of samplers that did not write it down.
	IRQUS int64 `json:"irq_us,omitempty"`
}

// Container holds the counters of one container's cgroup, in the same units on
// cgroup v1 and v2. All but the gauges Memory, Anon, Peak and Frozen only grow.
type Container struct {
	UsageUS        *int64 `json:"usage_us,omitempty"`  // CPU time
	UserUS         *int64 `json:"user_us,omitempty"`   // of it in user mode
	SystemUS       *int64 `json:"system_us,omitempty"` // of it in the kernel
	NrPeriods      *int64 `json:"nr_periods,omitempty"`
	NrThrottled    *int64 `json:"nr_throttled,omitempty"` // periods in which the CPU quota ran out
	ThrottledUS    *int64 `json:"throttled_us,omitempty"` // time for which the CPU quota held it back, summed over CPUs
	Memory         *int64 `json:"memory,omitempty"`       // bytes, page cache included
	Anon           *int64 `json:"anon,omitempty"`         // bytes of anonymous memory
	Peak           *int64 `json:"peak,omitempty"`         // largest Memory since the container started
	ReadBytes      *int64 `json:"read_bytes,omitempty"`   // from block devices, summed over them
	WriteBytes     *int64 `json:"write_bytes,omitempty"`
	PressureSomeUS *int64 `json:"pressure_some_us,omitempty"` // time in which a task of it waited for a CPU
	PressureFullUS *int64 `json:"pressure_full_us,omitempty"` // time in which all of them waited
	// Frozen is 1 while the container is paused, and 0 while it is not. Like
	// UsageUS it is read for every line.
	Frozen *int64 `json:"frozen,omitempty"`
	// AboveThrottledUS is ThrottledUS of the cgroups that the container's lies in,
	// summed over them: what it had to wait for because of their CPU quotas.
	AboveThrottledUS *int64 `json:"above_throttled_us,omitempty"`
	// Odd is what the kernel's files held that nobody understands, a sentence for
	// each line: the counters of those files are missing.
	Odd  []string `json:"odd,omitempty"`
	Gone bool     `json:"gone,omitempty"` // the cgroup no longer exists; no counter is set
}

// Names of the counters of a container: the keys of its JSON object.
const (
	UsageUS        = "usage_us"
	UserUS         = "user_us"
	SystemUS       = "system_us"
	NrPeriods      = "nr_periods"
	NrThrottled    = "nr_throttled"
	ThrottledUS    = "throttled_us"
	Memory         = "memory"
	Anon           = "anon"
	Peak           = "peak"
	ReadBytes      = "read_bytes"
	WriteBytes     = "write_bytes"
	PressureSomeUS = "pressure_some_us"
	PressureFullUS = "pressure_full_us"

	Frozen           = "frozen"
	AboveThrottledUS = "above_throttled_us"
)

// field describes one counter of a container.
type field struct {
	name    string
	at      func(*Container) **int64
	growing bool // a counter that only grows, as against a gauge
}

// value returns the counter's value, nil where the kernel has none.
func (f *field) value(c *Container) *int64 { return *f.at(c) }

// fields are in the order in which guest sample writes them.
var fields = [...]field{
	{UsageUS, func(c *Container) **int64 { return &c.UsageUS }, true},
	{UserUS, func(c *Container) **int64 { return &c.UserUS }, true},
	{SystemUS, func(c *Container) **int64 { return &c.SystemUS }, true},
	{NrPeriods, func(c *Container) **int64 { return &c.NrPeriods }, true},
	{NrThrottled, func(c *Container) **int64 { return &c.NrThrottled }, true},
	{ThrottledUS, func(c *Container) **int64 { return &c.ThrottledUS }, true},
	{Memory, func(c *Container) **int64 { return &c.Memory }, false},
	{Anon, func(c *Container) **int64 { return &c.Anon }, false},
	{Peak, func(c *Container) **int64 { return &c.Peak }, false},
	{ReadBytes, func(c *Container) **int64 { return &c.ReadBytes }, true},
	{WriteBytes, func(c *Container) **int64 { return &c.WriteBytes }, true},
	{PressureSomeUS, func(c *Container) **int64 { return &c.PressureSomeUS }, true},
	{PressureFullUS, func(c *Container) **int64 { return &c.PressureFullUS }, true},
	{Frozen, func(c *Container) **int64 { return &c.Frozen }, false},
	{AboveThrottledUS, func(c *Container) **int64 { return &c.AboveThrottledUS }, true},
}

// Counter returns the value of the counter with that name, and whether the
// sample has it.
func (c Container) Counter(name string) (int64, bool) {
	for i := range fields {
		if fields[i].name == name {
			if v := fields[i].value(&c); v != nil {
				return *v, true
			}
			return 0, false
		}
	}
	return 0, false
}
