package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
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

// sample is one window that stands for its cell: of the repetitions with
// evidence the one in the middle by achieved rate, of an even number the higher
// of the two. Where none has evidence it is taken from the last attempts.
type sample struct {
	store.WindowResult
	evidence bool
}

func (s sample) name() string {
	return fmt.Sprintf("%s, attempt %d", s.Window, s.Attempt)
}

// pick chooses the window that stands for a cell.
func pick(in figures.Measured, r figures.Tables, phase, candidate, scenario string, connections int) (sample, bool) {
	if len(in.Windows) != len(r.Windows) {
		return sample{}, false
	}
	var with, without []sample
	for i, row := range r.Windows {
		if row.Phase != phase || row.Candidate != candidate || row.Scenario != scenario || row.Connections != connections || row.Measured == nil {
			continue
		}
		s := sample{in.Windows[i], row.Evidence}
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
		return sample{}, false
	}
	slices.SortStableFunc(list, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.Measured.Achieved, b.Measured.Achieved), cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Attempt, b.Attempt))
	})
	return list[len(list)/2], true
}

// slowest is the load host and the stream with the worst p99 of the window, each by
// its place; 0 where there is one.
func (s sample) slowest() (host, stream int) {
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
func (s sample) output() string {
	host, stream := s.slowest()
	if at := stream*max(1, len(s.Measured.Generators)) + host; at > 0 && at <= len(s.OtherOHA) {
		return s.OtherOHA[at-1]
	}
	return s.OHA
}

// generator names it where there are several.
func (s sample) generator() string {
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

// percentiles are what the load generator printed of one window, by percentage;
// of several generators the one with the worst p99. They are never merged with
// those of another window or another generator.
func percentiles(read func(string) ([]byte, error), s sample) []point {
	var list []point
	if file := s.output(); read != nil && file != "" {
		if data, err := read(file); err == nil {
			if result, err := oha.Parse(file, data); err == nil {
				for name, ms := range result.Percentiles {
					if p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64); err == nil && p >= 50 && p < 100 && ms > 0 {
						list = append(list, point{x: p, y: ms})
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
				list = append(list, point{x: q.p, y: v})
			}
		}
	}
	slices.SortFunc(list, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return list
}

// trace is CPU use over a window: cores against seconds.
type trace struct {
	sample
	app, db []point
}

// tracePoints is how many points a trace has at most.
const tracePoints = 120

// counterReading is one line of a sample file: the CPU time of its containers.
type counterReading struct {
	t, wall int64 // monotonic where there is one, and of the wall, in ns
	us      map[string]int64
}

// readCounters reads a sample file. Samples of the study, which have another
// layout, are read too.
func readCounters(name string, data []byte) ([]counterReading, error) {
	var all []counterReading
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x struct {
			cgroup.Sample
			StudyApp *int64 `json:"app_cpu"`
			StudyDB  *int64 `json:"db_cpu"`
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			break // the last line may be cut off
		}
		r := counterReading{t: cmp.Or(x.Mono, x.T), wall: x.T, us: map[string]int64{}}
		for name, c := range x.Containers {
			if c.UsageUS != nil {
				r.us[name] = *c.UsageUS
			}
		}
		for name, v := range map[string]*int64{"app": x.StudyApp, "db": x.StudyDB} {
			if v != nil {
				r.us[name] = *v
			}
		}
		if n := len(all); n == 0 || r.t > all[n-1].t { // a clock that goes backwards measures nothing
			all = append(all, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return all, nil
}

// readTrace reads the counters that were sampled beside a window, of each
// container on the host that it ran on.
func readTrace(read func(string) ([]byte, error), s sample) (trace, error) {
	t := trace{sample: s}
	files := map[string][]counterReading{}
	for _, what := range []struct {
		role plan.Role
		to   *[]point
	}{{plan.App, &t.app}, {plan.DB, &t.db}} {
		name, ahead := s.SamplesOf(what.role)
		if name == "" {
			continue
		}
		if _, ok := files[name]; !ok {
			data, err := read(name)
			if err == nil {
				files[name], err = readCounters(name, data)
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
func (s sample) within(all []counterReading, ahead time.Duration) []counterReading {
	if s.Start.IsZero() || !s.End.After(s.Start) {
		return all
	}
	from, until := s.Start.Add(ahead).UnixNano(), s.End.Add(ahead).UnixNano()
	var within []counterReading
	for _, r := range all {
		if r.wall >= from && r.wall <= until {
			within = append(within, r)
		}
	}
	if len(within) > len(all)/2 || len(s.Hosts) > 0 && len(within) > 1 {
		return within
	}
	return all
}

// usage is the CPU use of a container between samples, in cores, over at most
// tracePoints steps.
func usage(all []counterReading, container string) []point {
	var list []point
	every := max(1, int(math.Ceil(float64(len(all))/tracePoints)))
	for i := every; i < len(all); i += every {
		a, b := all[i-every], all[i]
		from, ok := a.us[container]
		until, there := b.us[container]
		if ok && there && until >= from {
			list = append(list, point{x: (float64(b.t) - float64(all[0].t)) / 1e9, y: (float64(until) - float64(from)) * 1000 / max(1, float64(b.t)-float64(a.t))})
		}
	}
	return list
}

// shown is the scenario whose windows stand for a phase over time: the first
// that uses the database and reads, or else the last one.
func shown(run store.Run) string {
	last := ""
	for _, s := range run.Suite.Scenarios {
		if s.ID == "read" {
			return s.ID
		}
		last = s.ID
	}
	return last
}

// phaseKinds are the phases of a run that have windows, in order.
func phaseKinds(r figures.Tables) []struct {
	id   string
	kind plan.Kind
} {
	var list []struct {
		id   string
		kind plan.Kind
	}
	add := func(id string, kind plan.Kind) {
		for _, have := range list {
			if have.id == id {
				return
			}
		}
		list = append(list, struct {
			id   string
			kind plan.Kind
		}{id, kind})
	}
	for _, row := range r.Rate {
		add(row.Phase, plan.KindRate)
	}
	for _, row := range r.Ceiling {
		add(row.Phase, plan.KindCeiling)
	}
	return list
}
