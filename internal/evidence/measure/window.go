// Package measure turns the raw files of one window into its figures. The
// definitions are those of the published study: answered is every HTTP answer,
// achieved is the 2xx answers over the nominal window, CPU per request is the
// counter's growth over the answers, cores is CPU time over the nominal window.
//
// The files may come from several hosts: each container's counters from the
// host it ran on, and one output of each load generator.
package measure

import "slices"

// Window holds the figures of one window. Times are in the unit of the name.
type Window struct {
	Answered  int64            `json:"answered"` // all HTTP answers
	OK        int64            `json:"ok"`       // 2xx answers
	Failed    int64            `json:"failed"`   // answers other than 2xx, plus requests without an answer
	Statuses  map[string]int64 `json:"statuses"` // HTTP status -> answers
	Errors    map[string]int64 `json:"errors"`   // generator error -> requests
	Achieved  float64          `json:"achieved"` // 2xx answers per second of the nominal window
	P50MS     float64          `json:"p50_ms"`   // latency, corrected for coordinated omission in an open loop; of several generators the worst's
	P99MS     float64          `json:"p99_ms"`
	P999MS    float64          `json:"p999_ms"`
	AppCPUUS  float64          `json:"app_cpu_us"` // µs of app CPU per answered request
	DBCPUUS   float64          `json:"db_cpu_us"`  // µs of database CPU per answered request
	AppCores  float64          `json:"app_cores"`  // app CPU seconds per second of the nominal window
	DBCores   float64          `json:"db_cores"`   // database CPU seconds per second of the nominal window
	LoadCores float64          `json:"load_cores"` // of all load generators, where they were sampled, else 0
	PeakBytes int64            `json:"peak_bytes"` // largest anonymous memory of the app
	Samples   int              `json:"samples"`

	// Missing names the figures above (by their JSON names) that the raw files
	// do not hold: latency when nothing was answered, CPU when no counters were
	// sampled. Such a figure is 0 here and shown as absent everywhere.
	Missing []string `json:"missing,omitempty"`

	// Generators are the figures by load host where the target was spread over
	// several, and Streams those by scenario where there were several streams: in
	// either, what was counted adds up to the figures above.
	Generators []Generator `json:"generators,omitempty"`
	Streams    []Stream    `json:"streams,omitempty"`
}

// Generator holds the figures of one of several load hosts.
type Generator struct {
	Host string `json:"host"`
	Part
}

// Stream holds the figures of one of several streams.
type Stream struct {
	Scenario string `json:"scenario"`
	Part
}

// Part holds the figures of some of the load generators of a window. They mean
// what those of the same names in Window mean, for the requests that these sent.
type Part struct {
	Answered int64    `json:"answered"`
	OK       int64    `json:"ok"`
	Failed   int64    `json:"failed"`
	Achieved float64  `json:"achieved"`
	P50MS    float64  `json:"p50_ms"`
	P99MS    float64  `json:"p99_ms"`
	P999MS   float64  `json:"p999_ms"`
	Missing  []string `json:"missing,omitempty"` // as in Window
}

// Has reports whether a figure, by its JSON name, could be had from the
// generators' outputs.
func (p Part) Has(figure string) bool { return !slices.Contains(p.Missing, figure) }

// Has reports whether a figure, by its JSON name, could be had from the raw
// files.
func (w Window) Has(figure string) bool { return !slices.Contains(w.Missing, figure) }
