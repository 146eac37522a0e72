// Package series gives what is drawn of single windows: the latency distribution
// and the CPU use over time of the window that stands for a cell. It reads raw
// files; nothing of what it gives is a figure.
package series

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Point is one value of a curve: of latency a percentile in percent and ms, of CPU
// use seconds into the window and cores.
type Point struct{ X, Y float64 }

// Sample is one window that stands for its cell: of the repetitions with
// evidence the one in the middle by achieved rate, of an even number the higher
// of the two. Where none has evidence it is taken from the last attempts.
type Sample struct {
	store.WindowResult
	Evidence bool // whether its gates passed and the tables rest on it
}

// Name names the window and its attempt.
func (s Sample) Name() string {
	return fmt.Sprintf("%s, attempt %d", s.Window, s.Attempt)
}

// Pick chooses the window that stands for a cell. A window whose rate cannot be
// stands for none.
func Pick(in figures.Measured, r figures.Tables, phase, candidate, scenario string, connections int) (Sample, bool) {
	if len(in.Windows) != len(r.Windows) {
		return Sample{}, false
	}
	var with, without []Sample
	for i, row := range r.Windows {
		if row.Phase != phase || row.Candidate != candidate || row.Scenario != scenario || row.Connections != connections || row.Measured == nil || figures.Impossible(row.Measured.Achieved) {
			continue
		}
		s := Sample{in.Windows[i], row.Evidence}
		if row.Evidence {
			with = append(with, s)
		} else {
			without = append(without, s)
		}
	}
	list := with
	if len(list) == 0 {
		list = without
	}
	if len(list) == 0 {
		return Sample{}, false
	}
	slices.SortStableFunc(list, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Measured.Achieved, b.Measured.Achieved), cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Attempt, b.Attempt))
	})
	return list[len(list)/2], true
}

// slowest is the load host and the stream with the worst p99 of the window, each by
// its place; 0 where there is one.
func (s Sample) slowest() (host, stream int) {
	for i, g := range s.Measured.Generators {
		if g.P99MS > s.Measured.Generators[host].P99MS {
			host = i
		}
	}
	for i, st := range s.Measured.Streams {
		if st.P99MS > s.Measured.Streams[stream].P99MS {
			stream = i
		}
	}
	return host, stream
}

// output is the file of that generator.
func (s Sample) output() string {
	host, stream := s.slowest()
	if at := stream*max(1, len(s.Measured.Generators)) + host; at > 0 && at <= len(s.OtherOHA) {
		return s.OtherOHA[at-1]
	}
	return s.OHA
}

// Generator names it where there are several.
func (s Sample) Generator() string {
	host, stream := s.slowest()
	var names []string
	if len(s.Measured.Streams) > 1 {
		names = append(names, s.Measured.Streams[stream].Scenario)
	}
	if len(s.Measured.Generators) > 1 {
		names = append(names, s.Measured.Generators[host].Host)
	}
	return strings.Join(names, " on ")
}

// Percentiles are what the load generator printed of one window, by percentage;
// of several generators the one with the worst p99. They are never merged with
// those of another window or another generator.
func Percentiles(read func(string) ([]byte, error), s Sample) []Point {
	var list []Point
	if file := s.output(); read != nil && file != "" {
		if data, err := read(file); err == nil {
			if result, err := oha.Parse(file, data); err == nil {
				for name, ms := range result.Percentiles {
					if p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64); err == nil && p >= 50 && p < 100 && ms > 0 {
						list = append(list, Point{X: p, Y: ms})
					}
				}
			}
		}
	}
	if len(list) == 0 { // the raw file is elsewhere: what the log holds of it
		for _, q := range []struct {
			p    float64
			name string
			of   func(*measure.Window) float64
		}{
			{50, "p50_ms", func(m *measure.Window) float64 { return m.P50MS }},
			{99, "p99_ms", func(m *measure.Window) float64 { return m.P99MS }},
			{99.9, "p999_ms", func(m *measure.Window) float64 { return m.P999MS }},
		} {
			if v := q.of(s.Measured); s.Measured.Has(q.name) && v > 0 {
				list = append(list, Point{X: q.p, Y: v})
			}
		}
	}
	slices.SortFunc(list, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	return list
}

// Trace is CPU use over a window: cores against seconds.
type Trace struct {
	Sample
	App, DB []Point
}

// MaxPoints is how many points a trace has at most for each container.
const MaxPoints = 120

// ReadTrace reads the counters that were sampled beside a window, of each
// container on the host that it ran on.
func ReadTrace(read func(string) ([]byte, error), s Sample) (Trace, error) {
	t := Trace{Sample: s}
	files := map[string][]cgroup.CPUTime{}
	for _, what := range []struct {
		role plan.Role
		to   *[]Point
	}{{plan.App, &t.App}, {plan.DB, &t.DB}} {
		name, ahead := s.SamplesOf(what.role)
		if name == "" {
			continue
		}
		if _, ok := files[name]; !ok {
			data, err := read(name)
			if err == nil {
				files[name], err = cgroup.CPUTimes(name, data)
			}
			if err != nil {
				return t, err
			}
		}
		*what.to = usage(s.within(files[name], ahead), string(what.role))
	}
	return t, nil
}

// within leaves out the samples before and after the window. Those of one host
// are taken as they are where the clocks of the engine and of its containers
// cannot agree; those of several were held against the load host's clock.
func (s Sample) within(all []cgroup.CPUTime, ahead time.Duration) []cgroup.CPUTime {
	if s.Start.IsZero() || !s.End.After(s.Start) {
		return all
	}
	from, until := s.Start.Add(ahead).UnixNano(), s.End.Add(ahead).UnixNano()
	var within []cgroup.CPUTime
	for _, r := range all {
		if r.Wall >= from && r.Wall <= until {
			within = append(within, r)
		}
	}
	if len(within) > len(all)/2 || len(s.Hosts) > 0 && len(within) > 1 {
		return within
	}
	return all
}

// usage is the CPU use of a container between samples, in cores, over at most
// MaxPoints steps.
func usage(all []cgroup.CPUTime, container string) []Point {
	var list []Point
	every := max(1, int(math.Ceil(float64(len(all))/MaxPoints)))
	for i := every; i < len(all); i += every {
		a, b := all[i-every], all[i]
		from, ok := a.US[container]
		until, there := b.US[container]
		if ok && there && until >= from {
			list = append(list, Point{X: (float64(b.Mono) - float64(all[0].Mono)) / 1e9, Y: (float64(until) - float64(from)) * 1000 / max(1, float64(b.Mono)-float64(a.Mono))})
		}
	}
	return list
}
