package measure

import (
	"fmt"
	"time"

	"github.com/percore/percore/internal/load"
)

// Counters is what a window needs of the samples taken beside it. A counter
// the kernel does not offer, or a container that was not sampled, is not ok.
type Counters interface {
	// Samples is the number of samples, the first before the window and the
	// last after it.
	Samples() int
	// CPU is the CPU time in µs that a container used from the first to the
	// last sample.
	CPU(container string) (us float64, ok bool)
	// PeakAnon is the largest anonymous memory of a container, in bytes.
	PeakAnon(container string) (bytes int64, ok bool)
}

// None stands for a window beside which no counters were sampled.
type None struct{}

// Samples is 0.
func (None) Samples() int { return 0 }

// CPU has nothing.
func (None) CPU(string) (float64, bool) { return 0, false }

// PeakAnon has nothing.
func (None) PeakAnon(string) (int64, bool) { return 0, false }

// LoadContainer is the name under which the load generator's own container is
// sampled, where it is.
const LoadContainer = "load"

// Of computes the figures of one window from the load generator's result and
// the counters of the containers named app and db (db may be empty), with the
// definitions of the published study:
//
//	achieved  = 2xx answers / nominal window
//	CPU       = growth of the counter / all HTTP answers
//	cores     = growth of the counter / nominal window
//	peak      = largest anonymous memory of the app
//
// The divisor is the nominal window, never the time the generator took.
func Of(r load.Result, c Counters, app, db string, nominal time.Duration) (Window, error) {
	if nominal <= 0 {
		return Window{}, fmt.Errorf("measuring a window: its nominal length is %v", nominal)
	}
	w := Window{
		Answered: r.Answered,
		OK:       r.OK(),
		Statuses: r.Statuses,
		Errors:   r.Errors,
		Samples:  c.Samples(),
	}
	w.Failed = w.Answered - w.OK + r.Unanswered()
	w.Achieved = float64(w.OK) / nominal.Seconds()

	set := func(figure string, to *float64, v float64, ok bool) {
		if !ok {
			w.Missing = append(w.Missing, figure)
			return
		}
		*to = v
	}
	percentile := func(figure string, to *float64, name string) {
		v, ok := r.Percentile(name)
		set(figure, to, v, ok)
	}
	percentile("p50_ms", &w.P50MS, "p50")
	percentile("p99_ms", &w.P99MS, "p99")
	percentile("p999_ms", &w.P999MS, "p99.9")

	answered := float64(w.Answered)
	usApp, okApp := c.CPU(app)
	set("app_cpu_us", &w.AppCPUUS, usApp/max(answered, 1), okApp && answered > 0)
	set("app_cores", &w.AppCores, usApp/1e6/nominal.Seconds(), okApp)
	usDB, okDB := c.CPU(db)
	okDB = okDB && db != ""
	set("db_cpu_us", &w.DBCPUUS, usDB/max(answered, 1), okDB && answered > 0)
	set("db_cores", &w.DBCores, usDB/1e6/nominal.Seconds(), okDB)
	if us, ok := c.CPU(LoadContainer); ok {
		w.LoadCores = us / 1e6 / nominal.Seconds()
	}
	if peak, ok := c.PeakAnon(app); ok {
		w.PeakBytes = peak
	} else {
		w.Missing = append(w.Missing, "peak_bytes")
	}
	return w, nil
}
