package measure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/percore/percore/internal/evidence/oha"
)

// Counters is what a window needs of the samples taken beside it, on one host
// or several. A counter the kernel does not offer, or a container that was not
// sampled, is not ok.
type Counters interface {
	// Samples is the number of samples, the first before the window and the
	// last after it; of several hosts that of the one with the fewest.
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
// sampled, where it is: that of the first stream.
const LoadContainer = "load"

// LoadContainerOf is the same for a stream of a window, from 0.
func LoadContainerOf(stream int, scenario string) string {
	if stream == 0 {
		return LoadContainer
	}
	return LoadContainer + "." + scenario
}

// IsOf reports whether a container is that of a role, or one of several.
func IsOf(container, role string) bool {
	return container == role || strings.HasPrefix(container, role+".")
}

// MaxOther is the share of a window's answers that may be others than the
// scenario's own: an answer of another status is another piece of work, of which
// neither CPU time nor latency says anything about the scenario.
const MaxOther = 0.01

// OtherShare is the share of answers that are not the scenario's own, which is
// all of them where there are none.
func OtherShare(answered, ok int64) float64 {
	if ok == 0 {
		return 1
	}
	return float64(answered-ok) / float64(answered)
}

// Output is what one load generator left of a window.
type Output struct {
	Host   string // that it ran on; shown where there are several
	Stream string // scenario that it sent; shown where there are several
	Result oha.Result
}

// Of computes the figures of one window from the results of its load
// generators and the counters of the containers named app and db (db may be
// empty), with the definitions of the published study:
//
//	achieved  = 2xx answers / nominal window
//	CPU       = growth of the counter / all HTTP answers
//	cores     = growth of the counter / nominal window
//	peak      = largest anonymous memory of the app
//
// The divisor is the nominal window, never the time the generator took.
//
// Where more than MaxOther of the answers are not the scenario's own there is
// neither latency nor CPU per request.
//
// A window may have several generators, which were started at one instant: one of
// each stream on each load host. What they counted adds up. Their latencies do
// not: no percentile of all requests follows from percentiles of parts of them.
// The window's is the worst of theirs, and is missing where one of them has none;
// those of each load host stand in Generators and those of each stream in
// Streams, by the same rule.
func Of(outputs []Output, c Counters, app, db string, nominal time.Duration) (Window, error) {
	if nominal <= 0 {
		return Window{}, fmt.Errorf("measuring a window: its nominal length is %v", nominal)
	}
	if len(outputs) == 0 {
		return Window{}, errors.New("measuring a window: there is no output of a load generator")
	}
	w := Window{Samples: c.Samples()}
	all := partOf(outputs, nominal)
	w.Answered, w.OK, w.Failed, w.Achieved, w.Missing = all.Answered, all.OK, all.Failed, all.Achieved, all.Missing
	for _, p := range percentiles {
		*p.window(&w) = *p.part(&all)
	}
	w.Statuses, w.Errors = map[string]int64{}, map[string]int64{}
	for _, o := range outputs {
		add(w.Statuses, o.Result.Statuses)
		add(w.Errors, o.Result.Errors)
	}
	if hosts := by(outputs, func(o Output) string { return o.Host }); len(hosts) > 1 {
		for _, of := range hosts {
			w.Generators = append(w.Generators, Generator{of[0].Host, partOf(of, nominal)})
		}
	}
	if streams := by(outputs, func(o Output) string { return o.Stream }); len(streams) > 1 {
		for _, of := range streams {
			w.Streams = append(w.Streams, Stream{of[0].Stream, partOf(of, nominal)})
		}
	}
	own := OtherShare(w.Answered, w.OK) <= MaxOther
	if !own {
		for _, p := range percentiles {
			*p.window(&w) = 0
			if w.Has(p.figure) {
				w.Missing = append(w.Missing, p.figure)
			}
		}
	}
	set := func(figure string, to *float64, v float64, ok bool) {
		if !ok {
			w.Missing = append(w.Missing, figure)
			return
		}
		*to = v
	}
	answered := float64(w.Answered)
	usApp, okApp := c.CPU(app)
	set("app_cpu_us", &w.AppCPUUS, usApp/max(answered, 1), okApp && own)
	set("app_cores", &w.AppCores, usApp/1e6/nominal.Seconds(), okApp)
	usDB, okDB := c.CPU(db)
	okDB = okDB && db != ""
	set("db_cpu_us", &w.DBCPUUS, usDB/max(answered, 1), okDB && own)
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

// percentiles are the latencies that a window and a part of it have, in order.
var percentiles = []struct {
	figure, name string // JSON name, name in the generator's result
	window       func(*Window) *float64
	part         func(*Part) *float64
}{
	{"p50_ms", "p50", func(w *Window) *float64 { return &w.P50MS }, func(p *Part) *float64 { return &p.P50MS }},
	{"p99_ms", "p99", func(w *Window) *float64 { return &w.P99MS }, func(p *Part) *float64 { return &p.P99MS }},
	{"p999_ms", "p99.9", func(w *Window) *float64 { return &w.P999MS }, func(p *Part) *float64 { return &p.P999MS }},
}

// partOf computes the figures of some load generators: counts add up, a latency
// is the worst of theirs.
func partOf(outputs []Output, nominal time.Duration) Part {
	var part Part
	for _, o := range outputs {
		ok := o.Result.OK()
		part.Answered += o.Result.Answered
		part.OK += ok
		part.Failed += o.Result.Answered - ok + o.Result.Unanswered()
	}
	part.Achieved = float64(part.OK) / nominal.Seconds()
	for _, p := range percentiles {
		worst, known := 0.0, true
		for _, o := range outputs {
			v, ok := o.Result.Percentile(p.name)
			worst, known = max(worst, v), known && ok
		}
		if !known {
			part.Missing = append(part.Missing, p.figure)
			continue
		}
		*p.part(&part) = worst
	}
	return part
}

// by groups outputs, the groups in the order of their first.
func by(outputs []Output, name func(Output) string) [][]Output {
	at := map[string]int{}
	var groups [][]Output
	for _, o := range outputs {
		i, ok := at[name(o)]
		if !ok {
			i = len(groups)
			at[name(o)], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], o)
	}
	return groups
}

// add adds counts to a map.
func add(to, counts map[string]int64) {
	for name, n := range counts {
		to[name] += n
	}
}
