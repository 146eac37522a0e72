// Package measure turns the raw files of one window into its figures. The
// definitions are those of the published study: answered is every HTTP answer,
// achieved is the 2xx answers over the nominal window, CPU per request is the
// counter's growth over the answers, cores is CPU time over the nominal window.
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
	P50MS     float64          `json:"p50_ms"`   // latency, corrected for coordinated omission in an open loop
	P99MS     float64          `json:"p99_ms"`
	P999MS    float64          `json:"p999_ms"`
	AppCPUUS  float64          `json:"app_cpu_us"` // µs of app CPU per answered request
	DBCPUUS   float64          `json:"db_cpu_us"`  // µs of database CPU per answered request
	AppCores  float64          `json:"app_cores"`  // app CPU seconds per second of the nominal window
	DBCores   float64          `json:"db_cores"`   // database CPU seconds per second of the nominal window
	LoadCores float64          `json:"load_cores"` // load generator's, where it was sampled, else 0
	PeakBytes int64            `json:"peak_bytes"` // largest anonymous memory of the app
	Samples   int              `json:"samples"`

	// Missing names the figures above (by their JSON names) that the raw files
	// do not hold: latency when nothing was answered, CPU when no counters were
	// sampled. Such a figure is 0 here and shown as absent everywhere.
	Missing []string `json:"missing,omitempty"`
}

// Has reports whether a figure, by its JSON name, could be had from the raw
// files.
func (w Window) Has(figure string) bool { return !slices.Contains(w.Missing, figure) }
