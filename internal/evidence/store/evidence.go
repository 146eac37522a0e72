package store

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/samples"
	"github.com/percore/percore/internal/plan"
)

// Evidence is what the raw files of one window say, read and found sound.
type Evidence struct {
	Outputs []measure.Output // of each load generator, in the order of OHA and OtherOHA
	Hosts   []HostSeries     // the app's host first, the others by name; none where nothing was sampled

	counters measure.Counters
	nominal  time.Duration
}

// HostSeries is the counters of one host.
type HostSeries struct {
	Host   string        // its name, empty where there is one host
	Roles  []plan.Role   // that it plays; all where there is one host
	Ahead  time.Duration // how far its clock is ahead of the first load host's
	Series *cgroup.Series
}

// ReadEvidence reads the raw files that a window names by read, which is given
// their paths.
//
// Where there are several hosts, counters are read up to the first sample at or
// after the window's end by the clock of their host: a sampler that the driver
// could not reach in time ran on, and what it saw then is not the window's. A
// window of one host is read to the end of its samples, as it always was: what
// was measured before there were several must give the same figures again.
func ReadEvidence(w WindowResult, read func(path string) ([]byte, error)) (Evidence, error) {
	e := Evidence{counters: measure.None{}, nominal: w.Length()}
	names, streams := w.generatorHosts(), w.Sends()
	if len(names)*len(streams) != 1+len(w.OtherOHA) {
		return e, fail.In(w.Window.String(), "there are %d outputs of load generators, which cannot be those of %d streams", 1+len(w.OtherOHA), len(streams)).Try("measure the window again")
	}
	for i, path := range append([]string{w.OHA}, w.OtherOHA...) {
		text, err := read(path)
		if err != nil {
			return e, err
		}
		result, err := oha.Parse(path, text)
		if err != nil {
			return e, err
		}
		e.Outputs = append(e.Outputs, measure.Output{Host: names[i%len(names)], Stream: streams[i/len(names)].Scenario, Result: result})
	}
	if w.CGroup == "" {
		if len(w.OtherCGroup) > 0 {
			return e, fail.In(w.Window.String(), "there are samples of %s but none of the app's host", strings.Join(slices.Sorted(maps.Keys(w.OtherCGroup)), ", ")).Try("measure the window again")
		}
		return e, nil
	}
	if strings.HasSuffix(w.CGroup, samples.Ending) {
		// Imported from the study, whose samples have a layout of their own.
		text, err := read(w.CGroup)
		if err != nil {
			return e, err
		}
		e.counters, err = samples.ParseWindow(w.CGroup, text, e.Outputs[0].Result.Seconds)
		return e, err
	}
	app := HostSeries{Roles: plan.Roles()}
	if r, ok := w.hostOf(plan.App); ok {
		app = HostSeries{Host: r.Host}
	}
	for _, host := range append([]string{app.Host}, slices.Sorted(maps.Keys(w.OtherCGroup))...) {
		h, path := HostSeries{Host: host}, w.OtherCGroup[host]
		if len(e.Hosts) == 0 {
			h, path = app, w.CGroup
		}
		if r, ok := w.Reading(host); ok {
			h.Roles, h.Ahead = r.Roles, r.Ahead()
		}
		window := cgroup.Window{Cut: w.severalHosts()}
		if !w.Start.IsZero() && !w.End.IsZero() {
			window.Start, window.End = w.Start.Add(h.Ahead), w.End.Add(h.Ahead)
			window.Due = window.Start.Add(e.nominal)
		}
		var want []string
		if len(e.Hosts) == 0 {
			want = []string{string(plan.App)}
		}
		text, err := read(path)
		if err != nil {
			return e, err
		}
		if h.Series, err = cgroup.ReadWindow(bytes.NewReader(text), path, window, want...); err != nil {
			return e, err
		}
		e.Hosts = append(e.Hosts, h)
	}
	all := make([]*cgroup.Series, len(e.Hosts))
	for i, h := range e.Hosts {
		all[i] = h.Series
	}
	e.counters = measure.Samples(all...)
	return e, nil
}

// Figures are those of the window.
func (e Evidence) Figures() (measure.Window, error) {
	return measure.Of(e.Outputs, e.counters, string(plan.App), string(plan.DB), e.nominal)
}

// Containers are those of a role that were sampled on the host: several where
// the load has several streams. Where there is none it is the role's name, of
// which nothing is known.
func (h HostSeries) Containers(role plan.Role) []string {
	var all []string
	for _, name := range h.Series.Containers() {
		if measure.IsOf(name, string(role)) {
			all = append(all, name)
		}
	}
	if all == nil {
		return []string{string(role)}
	}
	return all
}

// Of returns the series that sampled a role's container, where there is one.
func (e Evidence) Of(container string) (HostSeries, bool) {
	for _, h := range e.Hosts {
		if h.Series.Has(container) {
			return h, true
		}
	}
	return HostSeries{}, false
}

// Ahead is how far the host's clock is ahead of the first load host's.
func (r HostReading) Ahead() time.Duration {
	return time.Duration(r.ClockOffsetMS * float64(time.Millisecond))
}

// Reading is what the host of that name said beside the window.
func (w WindowResult) Reading(host string) (HostReading, bool) {
	for _, r := range w.Hosts {
		if r.Host == host {
			return r, true
		}
	}
	return HostReading{}, false
}

// Samples is the path of a host's samples, empty where there are none.
func (w WindowResult) Samples(host string) string {
	if path, ok := w.OtherCGroup[host]; ok {
		return path
	}
	if r, ok := w.hostOf(plan.App); ok && r.Host != host {
		return ""
	}
	return w.CGroup
}

// SamplesOf is the path of the samples of the host that plays a role, with how
// far its clock is ahead of the first load host's.
func (w WindowResult) SamplesOf(role plan.Role) (path string, ahead time.Duration) {
	if r, ok := w.hostOf(role); ok {
		return w.Samples(r.Host), r.Ahead()
	}
	return w.CGroup, 0
}

// RawFiles are the paths of all raw files of the attempt, in a fixed order.
func (w WindowResult) RawFiles() []string {
	var list []string
	for _, path := range append([]string{w.OHA, w.CGroup}, w.OtherOHA...) {
		if path != "" {
			list = append(list, path)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(w.OtherCGroup)) {
		list = append(list, w.OtherCGroup[host])
	}
	return list
}

func (w WindowResult) severalHosts() bool { return len(w.OtherCGroup) > 0 || len(w.Hosts) > 0 }

// hostOf is the first host that plays a role.
func (w WindowResult) hostOf(role plan.Role) (HostReading, bool) {
	for _, r := range w.Hosts {
		if slices.Contains(r.Roles, role) {
			return r, true
		}
	}
	return HostReading{}, false
}

// generatorHosts names the hosts that generated the load, each stream on all of
// them: the hosts of role load in order, or load, load2, ... where they are not on
// record.
func (w WindowResult) generatorHosts() []string {
	var names []string
	for _, r := range w.Hosts {
		if slices.Contains(r.Roles, plan.Load) {
			names = append(names, r.Host)
		}
	}
	if n := (1 + len(w.OtherOHA)) / len(w.Sends()); len(names) != n {
		names = nil
		for i := range n {
			names = append(names, plan.HostName(plan.Load, i+1))
		}
	}
	return names
}
