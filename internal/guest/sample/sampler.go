// Package sample reads the counters of containers and of their host again and
// again, at little cost: the files stay open and are read at offset 0 into
// memory that is used again, and a sample is written without an allocation.
package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/percore/percore/internal/guest/kernel"
)

// Target is a container: a name for its counters, and the id by which the
// engine's host knows its first process.
type Target struct {
	Name string
	PID  int
}

// maxName bounds the name of a container.
const maxName = 64

// ParseTarget parses NAME=PID. A name is of letters, digits, dot, dash and
// underscore.
func ParseTarget(s string) (Target, error) {
	name, pid, ok := strings.Cut(s, "=")
	if !ok {
		return Target{}, Input("argument %q is not NAME=PID: write for example app=1234", s)
	}
	if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return Target{}, Input("argument %q has a bad name: use up to %d letters, digits, dots, dashes and underscores", s, maxName)
	}
	n, err := strconv.ParseInt(pid, 10, 32)
	if err != nil || n <= 0 {
		return Target{}, Input("argument %q has a bad process id: write for example %s=1234", s, name)
	}
	return Target{Name: name, PID: int(n)}, nil
}

// Counters of a container, in the order in which a line has them.
const (
	usage = iota
	user
	system
	periods
	throttled
	throttledTime
	memory
	anon
	peak
	readBytes
	writeBytes
	pressureSome
	pressureFull
	frozen
	aboveThrottledTime
	counters
)

var names = [counters]string{
	"usage_us", "user_us", "system_us", "nr_periods", "nr_throttled", "throttled_us",
	"memory", "anon", "peak", "read_bytes", "write_bytes", "pressure_some_us", "pressure_full_us",
	"frozen", "above_throttled_us",
}

// reading is what one sample found of a container.
type reading [counters]kernel.Value

func (r *reading) set(i int, n int64) { r[i] = kernel.Value{N: n, Known: true} }

func (r *reading) take(i int, v kernel.Value) {
	if v.Known {
		r[i] = v
	}
}

// parse reads one kernel file into a reading.
type parse func(b []byte, r *reading) error

func parseCPUStat(b []byte, r *reading) error {
	s, err := kernel.ParseCPUStat(b)
	r.take(usage, s.Usage)
	r.take(user, s.User)
	r.take(system, s.System)
	r.take(periods, s.Periods)
	r.take(throttled, s.Throttled)
	r.take(throttledTime, s.ThrottledTime)
	return err
}

func parseCPUAcctUsage(b []byte, r *reading) error {
	n, err := kernel.ParseCPUAcctUsage(b)
	r.set(usage, n)
	return err
}

func parseCPUAcctStat(b []byte, r *reading) error {
	u, s, err := kernel.ParseCPUAcctStat(b)
	r.set(user, u)
	r.set(system, s)
	return err
}

func parseMemoryStat(b []byte, r *reading) error {
	n, err := kernel.ParseMemoryStat(b)
	r.set(anon, n)
	return err
}

func parseMemoryCurrent(b []byte, r *reading) error {
	n, err := kernel.ParseMemoryCurrent(b)
	r.set(memory, n)
	return err
}

func parseMemoryPeak(b []byte, r *reading) error {
	n, err := kernel.ParseMemoryPeak(b)
	r.set(peak, n)
	return err
}

func parseMemoryUsage(b []byte, r *reading) error {
	n, err := kernel.ParseMemoryUsage(b)
	r.set(memory, n)
	return err
}

func parseMemoryMaxUsage(b []byte, r *reading) error {
	n, err := kernel.ParseMemoryMaxUsage(b)
	r.set(peak, n)
	return err
}

func parseIOStat(b []byte, r *reading) error {
	rd, wr, err := kernel.ParseIOStat(b)
	r.set(readBytes, rd)
	r.set(writeBytes, wr)
	return err
}

func parseBlkioThrottle(b []byte, r *reading) error {
	rd, wr, err := kernel.ParseBlkioThrottle(b)
	r.take(readBytes, rd)
	r.take(writeBytes, wr)
	return err
}

func parseCPUPressure(b []byte, r *reading) error {
	p, err := kernel.ParseCPUPressure(b)
	r.take(pressureSome, p.Some)
	r.take(pressureFull, p.Full)
	return err
}

func parseFreezerState(b []byte, r *reading) error {
	is, err := kernel.ParseFreezerState(b)
	r.set(frozen, 0)
	if is {
		r.set(frozen, 1)
	}
	return err
}

func parseCgroupEvents(b []byte, r *reading) error {
	v, err := kernel.ParseCgroupEvents(b)
	r.take(frozen, v)
	return err
}

// parseAboveCPUStat adds up what the cgroups above a container withheld from it.
func parseAboveCPUStat(b []byte, r *reading) error {
	s, err := kernel.ParseCPUStat(b)
	if s.ThrottledTime.Known {
		r.set(aboveThrottledTime, r[aboveThrottledTime].N+s.ThrottledTime.N)
	}
	return err
}

// All is how often everything but CPU time is read unless [Sampler.ReadAll] says
// otherwise. Memory moves slowly, and the other counters only count for what they
// grew by from the first sample to the last; reading them ten times a second
// would make up most of what a sample costs.
const All = time.Second

// source is one kernel file that stays open.
type source struct {
	file  *os.File
	fd    int
	parse parse
	slow  bool // whether it is read from time to time only
	spare bool // whether a window can do without what is in it
}

type container struct {
	name    string
	sources []source
	reading reading
	odd     []string // what could not be read of spare sources, a sentence for each
	gone    bool
}

// take reads a source's content into the reading. What is not as it should be in
// a source that can be spared leaves its counters unknown, and is kept: it must
// not end the counting of CPU time.
func (c *container) take(src *source, b []byte) error {
	before := c.reading
	err := src.parse(b, &c.reading)
	if err == nil || !src.spare || isGone(err) {
		return err
	}
	c.reading = before
	if said := filepath.Base(src.file.Name()) + ": " + err.Error(); len(c.odd) < maxOdd && !slices.Contains(c.odd, said) {
		c.odd = append(c.odd, said)
	}
	return nil
}

// maxOdd is how many odd lines of a container are kept.
const maxOdd = 5

// Sampler holds the open files of some containers and of their host.
type Sampler struct {
	buf        []byte // what a file held
	line       []byte // the line that is built
	containers []container
	stat, load source
	host       kernel.ProcStat
	load1      int64 // hundredths
	slowWall   int64 // when the slow files were read last, CLOCK_REALTIME in ns
	every      int64 // time in ns after which they are read again
	slowMono   int64 // the same, CLOCK_MONOTONIC; 0 before the first sample
	clock      clock
	raw        raw // of the process that samples
}

// Open finds the cgroups of the targets below cgroupRoot, where the cgroup file
// systems of the engine's host are mounted, and opens their files and those of
// the host in proc. A counter whose file the kernel does not have is left out.
// What [IsInput] calls input is a target or a folder that is not there.
func Open(cgroupRoot, proc string, targets []Target) (*Sampler, error) {
	if len(targets) == 0 {
		return nil, Input("no container was named: add at least one NAME=PID, for example app=1234")
	}
	seen := map[string]bool{}
	for _, t := range targets {
		if seen[t.Name] {
			return nil, Input("container %s is named twice: give each container a name of its own", t.Name)
		}
		seen[t.Name] = true
	}
	l, err := newLocator(cgroupRoot, proc)
	if err != nil {
		return nil, err
	}
	s := &Sampler{buf: make([]byte, 16<<10), line: make([]byte, 0, 4<<10), every: int64(All)}
	if err := s.open(l, proc, targets); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// ReadAll sets how often everything is read.
func (s *Sampler) ReadAll(every time.Duration) { s.every = int64(every) }

func (s *Sampler) open(l *locator, proc string, targets []Target) error {
	for _, t := range targets {
		g, err := l.find(t)
		if err != nil {
			return err
		}
		s.containers = append(s.containers, container{name: t.Name})
		c := &s.containers[len(s.containers)-1]
		if err := s.openContainer(c, g); err != nil {
			if isGone(err) {
				return noProcess(t)
			}
			return fmt.Errorf("cannot sample container %s: %w", t.Name, err)
		}
		if !c.reading[usage].Known {
			return fmt.Errorf("cannot sample container %s: the kernel counts no CPU time for it in %s", t.Name, g.cpu.dir)
		}
	}
	var err error
	if s.stat.file, err = os.Open(filepath.Join(proc, "stat")); err != nil {
		return Input("cannot read the host's CPU time (%w): name the proc file system with --proc", err)
	}
	if s.load.file, err = os.Open(filepath.Join(proc, "loadavg")); err != nil {
		return Input("cannot read the host's load (%w): name the proc file system with --proc", err)
	}
	s.stat.fd, s.load.fd = int(s.stat.file.Fd()), int(s.load.file.Fd())
	return s.readHost()
}

func (s *Sampler) openContainer(c *container, g groups) error {
	type candidate struct {
		dir, file string
		parse     parse
		fast      bool
		spare     bool
	}
	var list []candidate
	want := func(dir, file string, p parse) {
		list = append(list, candidate{dir: dir, file: file, parse: p, fast: len(list) == 0})
	}
	// No gate needs these, and no CPU figure.
	spare := func(dir, file string, p parse) {
		list = append(list, candidate{dir: dir, file: file, parse: p, spare: true})
	}

	// The file that holds CPU time comes first: beside that which says whether the
	// container is frozen it alone is read for every sample.
	if g.unified.v2 {
		// CPU time is here even while the v1 controllers are in use, in one file and
		// in µs where cpuacct.stat counts in ticks.
		want(g.unified.dir, "cpu.stat", parseCPUStat)
		spare(g.unified.dir, "cpu.pressure", parseCPUPressure)
	} else if g.cpuacct.dir != "" {
		want(g.cpuacct.dir, "cpuacct.usage", parseCPUAcctUsage)
		want(g.cpuacct.dir, "cpuacct.stat", parseCPUAcctStat)
	}
	if g.cpu.dir != "" && !g.cpu.v2 {
		want(g.cpu.dir, "cpu.stat", parseCPUStat)
	}
	switch {
	case g.memory.dir == "":
	case g.memory.v2:
		spare(g.memory.dir, "memory.current", parseMemoryCurrent)
		spare(g.memory.dir, "memory.stat", parseMemoryStat)
		spare(g.memory.dir, "memory.peak", parseMemoryPeak)
	default:
		spare(g.memory.dir, "memory.usage_in_bytes", parseMemoryUsage)
		spare(g.memory.dir, "memory.stat", parseMemoryStat)
		spare(g.memory.dir, "memory.max_usage_in_bytes", parseMemoryMaxUsage)
	}
	switch {
	case g.blkio.dir == "":
	case g.blkio.v2:
		spare(g.blkio.dir, "io.stat", parseIOStat)
	default:
		file := "blkio.throttle.io_service_bytes_recursive"
		if _, err := os.Stat(filepath.Join(g.blkio.dir, file)); errors.Is(err, fs.ErrNotExist) {
			file = "blkio.throttle.io_service_bytes" // older kernels
		}
		spare(g.blkio.dir, file, parseBlkioThrottle)
	}

	switch {
	case g.freezer.dir == "":
	case g.freezer.v2:
		list = append(list, candidate{dir: g.freezer.dir, file: "cgroup.events", parse: parseCgroupEvents, fast: true})
	default:
		list = append(list, candidate{dir: g.freezer.dir, file: "freezer.state", parse: parseFreezerState, fast: true})
	}
	for _, dir := range g.cpu.above {
		want(dir, "cpu.stat", parseAboveCPUStat)
	}

	for _, x := range list {
		f, err := os.Open(filepath.Join(x.dir, x.file))
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(x.dir); err != nil {
				return err // the cgroup went away meanwhile
			}
			continue
		}
		if err != nil {
			return err
		}
		src := source{file: f, fd: int(f.Fd()), parse: x.parse, slow: !x.fast, spare: x.spare}
		b, err := s.read(&src)
		if errors.Is(err, syscall.EOPNOTSUPP) { // pressure is compiled in and switched off
			f.Close()
			continue
		}
		c.sources = append(c.sources, src)
		if err == nil {
			err = c.take(&src, b)
		}
		if err != nil {
			return inFile(f, err)
		}
	}
	return nil
}

func inFile(f *os.File, err error) error { return fmt.Errorf("read %s: %w", f.Name(), err) }

// isGone reports whether an error says that a cgroup has been removed.
func isGone(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, fs.ErrNotExist)
}

// read returns the content of a file, which is valid until the next read.
func (s *Sampler) read(src *source) ([]byte, error) {
	for {
		n, err := pread(src.fd, s.buf)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, err
		case n == len(s.buf): // there may be more
			s.buf = make([]byte, 2*len(s.buf))
		default:
			return s.buf[:n], nil
		}
	}
}

func (s *Sampler) readHost() error {
	b, err := s.read(&s.stat)
	if err == nil {
		err = kernel.ParseProcStat(b, &s.host)
	}
	if err != nil {
		return inFile(s.stat.file, err)
	}
	if b, err = s.read(&s.load); err == nil {
		s.load1, err = kernel.ParseLoadavg(b)
	}
	if err != nil {
		return inFile(s.load.file, err)
	}
	return nil
}

// readContainer reads the CPU time of a container and whether it is frozen, or
// all of its counters, or marks it as gone.
func (s *Sampler) readContainer(c *container, all bool) error {
	if all {
		c.reading = reading{}
	}
	for i := range c.sources {
		src := &c.sources[i]
		if src.slow && !all {
			continue
		}
		b, err := s.read(src)
		if err == nil {
			err = c.take(src, b)
		}
		if err != nil {
			if isGone(err) {
				c.gone = true
				return nil
			}
			return inFile(src.file, err)
		}
	}
	return nil
}

func (c *container) close() {
	for i := range c.sources {
		c.sources[i].file.Close()
	}
	c.sources = nil
}

// Close closes the files.
func (s *Sampler) Close() {
	for i := range s.containers {
		s.containers[i].close()
	}
	for _, f := range []*os.File{s.stat.file, s.load.file} {
		if f != nil {
			f.Close()
		}
	}
}

// Sample reads the CPU time of every container, and whether it is frozen, and returns the line, newline
// included, which is valid until the next call. Everything else is read when the
// time for it has passed since it was, and when all is set, as it must be for the
// first and the last sample; in between a line repeats it and says when it was
// read. The clocks are read first. A container whose cgroup has been removed is
// marked as gone and the others go on.
func (s *Sampler) Sample(all bool) ([]byte, error) {
	mono := s.clock.monotonic()
	wall := s.clock.wall()
	all = all || s.slowMono == 0 || mono-s.slowMono >= s.every
	if all {
		s.slowMono, s.slowWall = mono, wall
	}
	for i := range s.containers {
		c := &s.containers[i]
		if c.gone {
			continue
		}
		if err := s.readContainer(c, all); err != nil {
			return nil, err
		}
	}
	if all {
		if err := s.readHost(); err != nil {
			return nil, err
		}
	}

	b := s.line[:0]
	b = number(b, `{"t":`, wall)
	b = number(b, `,"mono":`, mono)
	b = number(b, `,"slow_t":`, s.slowWall)
	h := &s.host
	b = number(b, `,"host":{"cpus":`, int64(len(h.CPU)))
	b = number(b, `,"total_us":`, h.All.Total())
	b = number(b, `,"idle_us":`, h.All.Idle)
	b = number(b, `,"steal_us":`, h.All.Steal)
	b = append(b, `,"per_cpu":[`...)
	for i := range h.CPU {
		if i > 0 {
			b = append(b, ',')
		}
		b = number(b, `{"cpu":`, int64(h.CPU[i].CPU))
		b = number(b, `,"busy_us":`, h.CPU[i].Busy)
		b = number(b, `,"steal_us":`, h.CPU[i].Steal)
		b = number(b, `,"irq_us":`, h.CPU[i].IRQ)
		b = append(b, '}')
	}
	b = number(b, `],"load1":`, s.load1/100)
	b = append(b, '.', byte('0'+s.load1/10%10), byte('0'+s.load1%10))
	b = append(b, `},"containers":{`...)
	for i := range s.containers {
		c := &s.containers[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, c.name...)
		b = append(b, `":{`...)
		if c.gone {
			b = append(b, `"gone":true}`...)
			continue
		}
		first := true
		for j := range c.reading {
			if !c.reading[j].Known {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, '"')
			b = append(b, names[j]...)
			b = number(b, `":`, c.reading[j].N)
		}
		if len(c.odd) > 0 {
			// Rare, so that it may allocate.
			text, err := json.Marshal(c.odd)
			if err != nil {
				return nil, err
			}
			b = append(append(b, `,"odd":`...), text...)
		}
		b = append(b, '}')
	}
	b = append(b, "}}\n"...)
	s.line = b
	return b, nil
}

func number(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}
