package cgroup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// maxLine bounds one line of a sample file: a host of 4096 CPUs stays below it.
const maxLine = 1 << 20

// Series is a sample file that has been read and found sound: the monotonic
// clock and the counters only move forward and every line has the same
// containers. The wall clock may do as it likes: [Series.WallVsMonotonic] says
// what it did. A series keeps the first and the last sample and the peaks, not
// the lines between them.
type Series struct {
	name        string
	span        span                  // of the window
	until       int64                 // wall clock in ns at which the counting ends; 0: with the file
	first, last Sample                // last: the one up to which CPU time counts
	slow        Sample                // the one up to which everything else counts, which is read less often
	prev        Sample                // the line before, while reading
	inner       []Sample              // the first and the last within the window in which everything was read
	still       map[string]*stillness // of containers within the window
	n, torn     int
	maxGap      time.Duration
	ahead       [2]int64 // least and most of wall minus monotonic clock, in ns
	peakAnon    map[string]int64
	peakMemory  map[string]int64
	left        map[string]Container // the last that was seen of containers that went
}

// ReadSeries reads a sample file. The name is for errors only. The containers
// in want must be in it.
//
// The last line may be cut off, which is what a kill of the sampler leaves: it
// is dropped and counted in [Series.Torn]. Everything else that is wrong is bad
// input in the sense of package fail, said in one sentence that names the line
// and the remedy: an empty file, fewer than two samples, a line that is no
// sample, a counter or the monotonic clock going backwards, a container that is not
// there. An error of the reader itself is returned wrapped.
func ReadSeries(r io.Reader, name string, want ...string) (*Series, error) {
	return ReadWindow(r, name, Window{}, want...)
}

// ReadSeriesUntil is ReadWindow without a start.
func ReadSeriesUntil(r io.Reader, name string, until time.Time, want ...string) (*Series, error) {
	return ReadWindow(r, name, Window{End: until, Cut: true}, want...)
}

// Window says when a window was, by the clock of the sampled host. The zero
// window is that of a file of which only the whole is wanted.
type Window struct {
	Start time.Time
	Due   time.Time // until then requests were due; what was sent is waited for after it
	End   time.Time
	Cut   bool // whether the counting ends with the window, and not with the file
}

// span is a window in ns by the wall clock.
type span struct{ start, due, end int64 }

// stillness is what a container did not do while requests were due.
type stillness struct {
	frozen  time.Duration // for which it was paused
	longest time.Duration // without any CPU time
	run     time.Duration // the present one
}

// ReadWindow reads a sample file as [ReadSeries] does and looks at one window in
// it besides. Where the window cuts, CPU time counts up to the first sample that
// was taken at its end or later, and the counters that are read less often up to
// the first sample in which they were read then or later. Lines behind that are
// not looked at, so that a sampler nobody could end in time takes nothing away
// from its window.
func ReadWindow(r io.Reader, name string, w Window, want ...string) (*Series, error) {
	s := &Series{name: name, peakAnon: map[string]int64{}, peakMemory: map[string]int64{}, left: map[string]Container{}, still: map[string]*stillness{}}
	if w.Cut && !w.End.IsZero() {
		s.until = w.End.UnixNano()
	}
	if !w.Start.IsZero() && !w.End.IsZero() {
		s.span = span{w.Start.UnixNano(), w.End.UnixNano(), w.End.UnixNano()}
		if !w.Due.IsZero() {
			s.span.due = min(w.Due.UnixNano(), s.span.end)
		}
	}
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for no := 1; ; no++ {
		var err error
		line, err = readLine(br, line[:0])
		if err != nil && err != io.EOF {
			if errors.Is(err, bufio.ErrTooLong) {
				return nil, fail.Input("%s line %d is longer than %d bytes and so is no sample", name, no, maxLine).Try("check that the file is a .cg.jsonl file, or measure the window again")
			}
			return nil, fmt.Errorf("read %s line %d: %w", name, no, err)
		}
		whole := err == nil // ended by a newline
		if !whole && len(line) == 0 {
			break
		}
		if err := s.add(line, no); err != nil {
			if !whole && errors.Is(err, errSyntax) {
				s.torn++
				break
			}
			return nil, err
		}
		if !whole || s.complete() {
			break
		}
	}
	if s.n == 0 && s.torn == 0 {
		return nil, fail.Input("%s is empty: the sampler never wrote a sample", name).Try("measure the window again")
	}
	if s.n < 2 {
		return nil, fail.Input("%s holds %d whole sample%s and at least two are needed: the sampler was ended too early", name, s.n, plural(s.n)).Try("measure the window again")
	}
	for _, c := range want {
		if !s.Has(c) {
			return nil, fail.Input("%s has no container %q, only %s", name, c, list(s.Containers())).Try("check that the file belongs to this window")
		}
	}
	return s, nil
}

// errSyntax marks a line that is not JSON at all, as a cut leaves it.
var errSyntax = errors.New("not JSON")

type syntaxError struct{ error }

func (syntaxError) Is(target error) bool { return target == errSyntax }
func (e syntaxError) Unwrap() error      { return e.error }

// readLine reads up to and without the next newline, appending to buf. The
// error is io.EOF for a line that the end of the input ended.
func readLine(br *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(buf)+len(part) > maxLine {
			return buf, bufio.ErrTooLong
		}
		buf = append(buf, part...)
		switch err {
		case nil:
			return buf[:len(buf)-1], nil
		case bufio.ErrBufferFull:
		default:
			return buf, err
		}
	}
}

// add checks one line against the sample before it.
func (s *Series) add(line []byte, no int) error {
	var x Sample
	if err := decode(line, &x); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			why := "is cut off or not JSON"
			if len(bytes.TrimSpace(line)) == 0 {
				why = "is blank"
			}
			return syntaxError{fail.Input("%s line %d %s: only the last line may be incomplete", s.name, no, why).Try("check that the file is a .cg.jsonl file, or measure the window again")}
		}
		return fail.Input("%s line %d is not a sample (%w)", s.name, no, err).Try("check that the file is a .cg.jsonl file, or measure the window again")
	}
	if x.T <= 0 || x.Mono <= 0 || len(x.Containers) == 0 {
		return fail.Input("%s line %d is not a sample (it lacks t, mono or containers)", s.name, no).Try("check that the file is a .cg.jsonl file, or measure the window again")
	}
	if err := s.sound(&x, no); err != nil {
		return err
	}
	if s.n == 0 {
		s.first = x
	} else if err := s.compare(&x, no); err != nil {
		return err
	}
	for name, c := range x.Containers {
		if c.Anon != nil {
			s.peakAnon[name] = max(s.peakAnon[name], *c.Anon)
		}
		if c.Memory != nil {
			s.peakMemory[name] = max(s.peakMemory[name], *c.Memory)
		}
	}
	// The first two samples are always taken: without them there is no growth.
	if s.n < 2 || !s.ended(s.last.T) {
		if s.n > 0 {
			s.maxGap = max(s.maxGap, time.Duration(x.Mono-s.prev.Mono))
		}
		s.clocks(x.T - x.Mono)
		s.last = x
		s.n++
	}
	s.within(&x)
	s.slow, s.prev = x, x
	return nil
}

// within takes what a sample says of the window alone into account.
func (s *Series) within(x *Sample) {
	if x.T < s.span.start || x.T > s.span.end {
		return
	}
	if x.SlowT == 0 || x.SlowT == x.T {
		s.inner = append(s.inner[:min(len(s.inner), 1)], *x)
	}
	if s.prev.T < s.span.start || x.T > s.span.due {
		return
	}
	passed := time.Duration(x.Mono - s.prev.Mono)
	for name, c := range x.Containers {
		st := s.still[name]
		if st == nil {
			st = &stillness{}
			s.still[name] = st
		}
		if c.Frozen != nil && *c.Frozen > 0 {
			st.frozen += passed
		}
		was := s.prev.Containers[name]
		if c.UsageUS == nil || was.UsageUS == nil || *c.UsageUS > *was.UsageUS {
			st.run = 0
			continue
		}
		st.run += passed
		st.longest = max(st.longest, st.run)
	}
}

// Frozen is for how long a container was paused while requests were due, as far
// as samples saw it, and whether the kernel says so at all.
func (s *Series) Frozen(container string) (time.Duration, bool) {
	if s.first.Containers[container].Frozen == nil {
		return 0, false
	}
	if st := s.still[container]; st != nil {
		return st.frozen, true
	}
	return 0, true
}

// Still is the longest time in which a container used no CPU time at all while
// requests were due, to the length of the interval between two samples.
func (s *Series) Still(container string) time.Duration {
	if st := s.still[container]; st != nil {
		return st.longest
	}
	return 0
}

// Within are the first and the last sample of the window in which everything
// was read: those around it where there are not two of them.
func (s *Series) Within() (first, last Sample) {
	if len(s.inner) < 2 {
		return s.first, s.slow
	}
	return s.inner[0], s.inner[1]
}

// ended reports whether a time, in ns by the wall clock, is not before the end
// of what is counted.
func (s *Series) ended(t int64) bool { return s.until > 0 && t >= s.until }

// complete reports whether no further line can count.
func (s *Series) complete() bool {
	read := s.slow.SlowT
	if read == 0 { // a sampler that reads everything for each line
		read = s.slow.T
	}
	return s.n >= 2 && s.ended(s.last.T) && s.ended(read)
}

// sound checks a sample by itself.
func (s *Series) sound(x *Sample, no int) error {
	for name, c := range x.Containers {
		for i := range fields {
			if v := fields[i].value(&c); v != nil && *v < 0 {
				return fail.Input("%s line %d: %s of container %s is negative (%d): the file was damaged", s.name, no, fields[i].name, name, *v).Try("measure the window again")
			}
		}
	}
	h := &x.Host
	if h.TotalUS < 0 || h.IdleUS < 0 || h.StealUS < 0 || h.CPUs < 0 {
		return fail.Input("%s line %d: a time of the host is negative: the file was damaged", s.name, no).Try("measure the window again")
	}
	for _, c := range h.PerCPU {
		if c.CPU < 0 || c.BusyUS < 0 || c.StealUS < 0 {
			return fail.Input("%s line %d: a time of CPU %d is negative: the file was damaged", s.name, no, c.CPU).Try("measure the window again")
		}
	}
	return nil
}

// compare checks that nothing went backwards since the sample before.
func (s *Series) compare(x *Sample, no int) error {
	if x.Mono <= s.prev.Mono {
		return fail.Input("%s line %d: time went backwards (mono %d after %d): the lines are not in the order in which they were written", s.name, no, x.Mono, s.prev.Mono).Try("measure the window again")
	}
	if len(x.Containers) != len(s.prev.Containers) {
		return fail.Input("%s line %d has containers %s where the line before has %s: the file mixes two windows", s.name, no, list(names(x.Containers)), list(s.lastNames())).Try("measure the window again")
	}
	for name, c := range x.Containers {
		before, ok := s.prev.Containers[name]
		if !ok {
			return fail.Input("%s line %d has containers %s where the line before has %s: the file mixes two windows", s.name, no, list(names(x.Containers)), list(s.lastNames())).Try("measure the window again")
		}
		if c.Gone && !before.Gone {
			s.left[name] = before
		}
		if before.Gone && !c.Gone {
			return fail.Input("%s line %d: container %s is back after it was gone: the file mixes two windows", s.name, no, name).Try("measure the window again")
		}
		for i := range fields {
			if !fields[i].growing {
				continue
			}
			now, was := fields[i].value(&c), fields[i].value(&before)
			if now != nil && was != nil && *now < *was {
				return fail.Input("%s line %d: %s of container %s went backwards (%d after %d): the file mixes two containers or was damaged", s.name, no, fields[i].name, name, *now, *was).Try("measure the window again")
			}
		}
	}
	return nil
}

func (s *Series) lastNames() []string { return names(s.prev.Containers) }

func names(m map[string]Container) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func list(names []string) string { return strings.Join(names, ", ") }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// Name is the name that was given for errors.
func (s *Series) Name() string { return s.name }

// First is the first sample.
func (s *Series) First() Sample { return s.first }

// Last is the last sample of those that count, to which CPU time is counted.
func (s *Series) Last() Sample { return s.last }

// Len is the number of whole samples that count, at least two.
func (s *Series) Len() int { return s.n }

// Torn is the number of lines dropped because they were cut off: 0 or 1.
func (s *Series) Torn() int { return s.torn }

// Containers returns the names of the containers in alphabetical order.
func (s *Series) Containers() []string { return names(s.first.Containers) }

// Has reports whether the container was sampled.
func (s *Series) Has(container string) bool {
	_, ok := s.first.Containers[container]
	return ok
}

// Gone reports whether the container disappeared before the last sample. A
// container that is not in the series was never there and is not gone.
func (s *Series) Gone(container string) bool { return s.last.Containers[container].Gone }

// Elapsed is the monotonic time between the first and the last sample.
func (s *Series) Elapsed() time.Duration { return time.Duration(s.last.Mono - s.first.Mono) }

// MaxGap is the longest monotonic time between two neighbouring samples.
func (s *Series) MaxGap() time.Duration { return s.maxGap }

// Grew returns by how much a counter of a container grew from the first to the
// last sample, in the counter's unit (µs, bytes or a count), and whether both
// samples have it. A gauge may have shrunk.
func (s *Series) Grew(container, counter string) (int64, bool) {
	first, ok1 := s.first.Containers[container].Counter(counter)
	last, ok2 := s.last.Containers[container].Counter(counter)
	if counter != UsageUS {
		if v, ok := s.slow.Containers[container].Counter(counter); ok {
			last, ok2 = v, ok
		}
	}
	if !ok1 || !ok2 {
		return 0, false
	}
	return last - first, true
}

// GrewWhileThere is Grew for a container that may have gone before the last
// sample: then up to the last one that saw it.
func (s *Series) GrewWhileThere(container, counter string) (int64, bool) {
	if !s.Gone(container) {
		return s.Grew(container, counter)
	}
	first, ok1 := s.first.Containers[container].Counter(counter)
	last, ok2 := s.left[container].Counter(counter)
	if !ok1 || !ok2 {
		return 0, false
	}
	return last - first, true
}

// ThrottledGrew returns for how many µs, summed over CPUs, the container's CPU
// quota held it back between the first and the last sample, and whether the
// kernel counts that.
func (s *Series) ThrottledGrew(container string) (int64, bool) {
	return s.Grew(container, ThrottledUS)
}

// PeakAnon returns the largest anonymous memory of the container in any sample,
// in bytes, and whether any sample has it. The study calls it peak memory.
func (s *Series) PeakAnon(container string) (int64, bool) {
	v, ok := s.peakAnon[container]
	return v, ok
}

// PeakMemory returns the largest memory of the container in any sample, page
// cache included, in bytes, and whether any sample has it.
func (s *Series) PeakMemory(container string) (int64, bool) {
	v, ok := s.peakMemory[container]
	return v, ok
}

// WallVsMonotonic returns the range over which the difference of wall clock and
// monotonic clock varied from the first to the last sample, never negative. A
// host that slept shows here as the time it slept, and a clock that was set as
// the step, also where a later step took it back.
func (s *Series) WallVsMonotonic() time.Duration {
	if d := s.ahead[1] - s.ahead[0]; d >= 0 {
		return time.Duration(d)
	}
	return math.MaxInt64 // the clocks of a damaged file may be further apart than a duration can be
}

// clocks takes the difference of wall and monotonic clock of a sample into
// account, in ns.
func (s *Series) clocks(ahead int64) {
	if s.n == 0 {
		s.ahead = [2]int64{ahead, ahead}
	}
	s.ahead = [2]int64{min(s.ahead[0], ahead), max(s.ahead[1], ahead)}
}

// Encloses reports whether the samples cover the time from start to end: the
// first was taken no later than start and the last no earlier than end. Both
// must be read from the clock of the sampled host, or one synchronised with it.
func (s *Series) Encloses(start, end time.Time) bool {
	return s.first.T <= start.UnixNano() && s.last.T >= end.UnixNano()
}

// StealFraction returns the fraction of time, 0 to 1, in which the CPUs had work
// and the hypervisor ran something else, over the given CPUs, or over all of
// the host when the list is empty. It is false when the series lacks one of the
// CPUs. The kernel counts in ticks of 10 ms.
func (s *Series) StealFraction(cpus []int) (float64, bool) {
	return s.fraction(cpus, func(c CPU) int64 { return c.StealUS })
}

// BusyFraction returns the fraction of time, 0 to 1, in which the CPUs ran
// something, over the given CPUs, or over all of the host when the list is
// empty. It is false when the series lacks one of the CPUs. The kernel counts
// in ticks of 10 ms, so that a CPU without a pause may read a little above 1.
func (s *Series) BusyFraction(cpus []int) (float64, bool) {
	return s.fraction(cpus, func(c CPU) int64 { return c.BusyUS })
}

// BusyWithin is BusyFraction within the window alone: between the first and the
// last reading of the host's times in it. A window too short for two of them is
// taken with what was sampled around it.
func (s *Series) BusyWithin(cpus []int) (float64, bool) {
	first, last := s.Within()
	return share(first.Host, last.Host, last.Mono-first.Mono, cpus, func(c CPU) int64 { return c.BusyUS })
}

// ProcessesWithin is BusyWithin without interrupts: the fraction of time in which
// the CPUs ran processes, and not what devices and the network asked for.
func (s *Series) ProcessesWithin(cpus []int) (float64, bool) {
	first, last := s.Within()
	return share(first.Host, last.Host, last.Mono-first.Mono, cpus, func(c CPU) int64 { return c.BusyUS - c.IRQUS })
}

// UsedWithin is the CPU time of a container, in CPUs, over the same time as
// ProcessesWithin, and whether it was sampled. A container that had gone by then
// is counted up to the last sample that saw it.
func (s *Series) UsedWithin(container string) (cpus float64, ok bool) {
	first, last := s.Within()
	a, b := first.Containers[container], last.Containers[container]
	if b.Gone {
		b = s.left[container]
	}
	if a.UsageUS == nil || b.UsageUS == nil {
		return 0, false
	}
	return float64(*b.UsageUS-*a.UsageUS) * 1e3 / float64(last.Mono-first.Mono), true
}

func (s *Series) fraction(cpus []int, of func(CPU) int64) (float64, bool) {
	return share(s.first.Host, s.slow.Host, s.slow.Mono-s.first.Mono, cpus, of)
}

// share is the part that a time of CPUs has in all of their time.
func share(first, last Host, ns int64, cpus []int, of func(CPU) int64) (float64, bool) {
	if len(cpus) == 0 {
		for _, c := range first.PerCPU {
			cpus = append(cpus, c.CPU)
		}
	}
	if len(cpus) == 0 {
		return 0, false
	}
	var us int64
	for _, cpu := range cpus {
		a, ok1 := find(first.PerCPU, cpu)
		b, ok2 := find(last.PerCPU, cpu)
		if !ok1 || !ok2 {
			return 0, false
		}
		us += of(b) - of(a)
	}
	return float64(us) * 1e3 / (float64(ns) * float64(len(cpus))), true
}

func find(cpus []CPU, number int) (CPU, bool) {
	i := slices.IndexFunc(cpus, func(c CPU) bool { return c.CPU == number })
	if i < 0 {
		return CPU{}, false
	}
	return cpus[i], true
}
