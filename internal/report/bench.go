package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// benchUnits are the figures of a window in the Go benchmark format, each with
// the direction in which it gets better.
var benchUnits = []struct {
	unit, better string
	has          string // name of the figure in measure.Window
	of           func(*measure.Window) float64
}{
	{"cpu-µs/req", "lower", "app_cpu_us", func(m *measure.Window) float64 { return m.AppCPUUS }},
	{"db-cpu-µs/req", "lower", "db_cpu_us", func(m *measure.Window) float64 { return m.DBCPUUS }},
	{"req/s", "higher", "achieved_per_s", func(m *measure.Window) float64 { return m.Achieved }},
	{"p50-ms", "lower", "p50_ms", func(m *measure.Window) float64 { return m.P50MS }},
	{"p99-ms", "lower", "p99_ms", func(m *measure.Window) float64 { return m.P99MS }},
	{"p99.9-ms", "lower", "p999_ms", func(m *measure.Window) float64 { return m.P999MS }},
	{"cores", "lower", "app_cores", func(m *measure.Window) float64 { return m.AppCores }},
	{"db-cores", "lower", "db_cores", func(m *measure.Window) float64 { return m.DBCores }},
	{"peak-bytes", "lower", "peak_bytes", func(m *measure.Window) float64 { return float64(m.PeakBytes) }},
}

// Bench writes every window with evidence as one result in the Go benchmark
// format, for benchstat and its relatives: the repetitions of a cell are the samples of one benchmark, and its
// iterations are the answered requests.
//
// What must not be compared silently stands in configuration lines, by which
// benchstat separates: suite, flavour, profile, CPU and instance type. The run's
// id, which differs always, stands in a line that tools skip, and so do hosts,
// links and prices where there are several hosts.
func Bench(w io.Writer, r figures.Tables) error {
	h := r.Header
	if _, err := fmt.Fprintf(w, "# percore run %s, preset %s\n", oneLine(h.ID), oneLine(h.Preset)); err != nil {
		return err
	}
	for _, c := range r.Caveats {
		if _, err := fmt.Fprintf(w, "# %s\n", oneLine(c)); err != nil {
			return err
		}
	}
	if len(h.Hosts) > 1 {
		list := slices.DeleteFunc(facts(h), func(f fact) bool { return f.Name != "host" && f.Name != "cloud" })
		for _, l := range h.Links {
			list = append(list, fact{"link", linkText(l)})
		}
		for _, f := range list {
			if _, err := fmt.Fprintf(w, "# %s: %s\n", f.Name, oneLine(f.Text)); err != nil {
				return err
			}
		}
	}
	out := benchfmt.NewWriter(w)
	for _, u := range benchUnits {
		for _, m := range []struct{ key, value string }{{"better", u.better}, {"assume", "nothing"}} {
			if err := out.Write(&benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: u.unit, Key: m.key}, OrigUnit: u.unit, Value: m.value}); err != nil {
				return err
			}
		}
	}
	var res benchfmt.Result
	for _, c := range []struct{ key, value string }{{"suite", h.Suite}, {"flavour", string(h.Flavour)}, {"profile", h.Profile}, {"cpu", appHost(h).CPUModel}, {"instance", appHost(h).InstanceType}} {
		if c.value != "" {
			res.SetConfig(c.key, oneLine(c.value))
			res.Config[len(res.Config)-1].File = true
		}
	}
	for _, row := range r.Windows {
		if !row.Evidence || row.Measured == nil || row.Measured.Answered <= 0 {
			continue
		}
		res.Name = benchfmt.Name(benchName(row))
		res.Iters = int(row.Measured.Answered)
		res.Values = res.Values[:0]
		for _, u := range benchUnits {
			if row.Measured.Has(u.has) {
				res.Values = append(res.Values, benchfmt.Value{Value: u.of(row.Measured), Unit: u.unit})
			}
		}
		if err := out.Write(&res); err != nil {
			return err
		}
	}
	return nil
}

// benchName names the cell of a window: Read/candidate=go/phase=rate/… . The
// number of connections does not come last, where a dash and a number would be
// read as GOMAXPROCS; none of the parts holds a dash before a final number.
func benchName(row figures.WindowRow) string {
	name := fmt.Sprintf("%s/candidate=%s/phase=%s/conns=%d", benchWord(row.Scenario, true), benchWord(row.Candidate, false), benchWord(row.Phase, false), row.Connections)
	switch row.Kind {
	case plan.KindRate:
		name += fmt.Sprintf("/target=%d", row.Target)
	case plan.KindLevels: // what it came to is another number in each run
		name += fmt.Sprintf("/share=%g", row.Share)
	}
	return name
}

// benchWord makes a name fit for a benchmark's: no spaces, no slashes, and
// where it comes first an upper-case letter.
func benchWord(s string, first bool) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '/' || r == '=' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
	if s == "" {
		s = "_"
	}
	if first {
		r, n := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(r)) + s[n:]
	}
	return s
}

// appHost is the host on which the candidates ran.
func appHost(h figures.Header) store.HostFacts {
	for _, host := range h.Hosts {
		if slices.Contains(host.Roles, plan.App) {
			return host
		}
	}
	return store.HostFacts{}
}
