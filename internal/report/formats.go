package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/outfile"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/evidence/measure"
)

// Formats are the formats of a report.
var Formats = []string{"text", "md", "csv", "json", "html", "bench"}

// CSVTables are the tables that can be written as CSV.
var CSVTables = []string{TableSummary, TableRate, TableCeiling, TableConnections, TableToken, TableProbe, TableGates, TableWindows, TableGenerators, TableStreams, TableHosts, TableLinks, TableCloud}

// Options say how a report is written.
type Options struct {
	Format string // one of Formats
	Table  string // for CSV, one of CSVTables; empty is the summary
	Width  int    // for text, of the terminal; 0 is any
}

// Check refuses a format or a table that does not exist.
func (o Options) Check() error {
	if !slices.Contains(Formats, o.Format) {
		return fail.Input("unknown report format %q", o.Format).Try("take from %s", strings.Join(Formats, ", "))
	}
	if o.Table != "" && o.Format != "csv" {
		return fail.Input("a single table is chosen for CSV only").Try("add %s or leave out %s", fail.Setting("format").To("csv"), fail.Setting("table"))
	}
	if o.Table != "" && !slices.Contains(CSVTables, o.Table) {
		return fail.Input("there is no table %q", o.Table).Try("take from %s", strings.Join(CSVTables, ", "))
	}
	return nil
}

// Write writes a report in a format.
func Write(w io.Writer, d Document, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	switch o.Format {
	case "md":
		return Markdown(w, d)
	case "csv":
		return CSV(w, d.Report, o.Table)
	case "json":
		return JSON(w, d)
	case "html":
		return HTML(w, d)
	case "bench":
		return Bench(w, d.Report)
	}
	return Text(w, d.Report, o.Width)
}

// Files are the reports that are kept in a run's folder, by their ending.
var Files = []string{"html", "md", "csv", "json", "bench"}

// Save writes report.html, report.md, report.csv, report.json and report.bench
// into a folder. They are
// derived from the log at any time, so those of before are replaced, each at
// once.
func Save(dir string, d Document) error {
	for _, format := range Files {
		var b bytes.Buffer
		if err := Write(&b, d, Options{Format: format}); err != nil {
			return err
		}
		if err := outfile.Write(filepath.Join(dir, "report."+format), plaintext.Clean(b.Bytes()), true); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes every table and every verdict with full precision. The fields are
// described in docs/report-json.md.
func JSON(w io.Writer, d Document) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		figures.Tables
		Claims []claims.Result `json:"claims"`
	}{d.Report, append([]claims.Result{}, d.Verdicts...)})
}

// escape keeps Markdown from reading markup into a text.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`).Replace(oneLine(s))
}

// CSV writes one table, with full precision and the units in the names of the
// columns; min and max stand beside an estimate. The summary is the study's
// summary.csv: its columns, its rounding.
func CSV(w io.Writer, r figures.Tables, name string) error {
	out := csv.NewWriter(w)
	var err error
	put := func(fields ...string) {
		if err == nil {
			err = out.Write(fields)
		}
	}
	switch name {
	case "", TableSummary:
		put(figures.SummaryColumns...)
		for _, row := range figures.Summary(r) {
			put(row...)
		}
	case TableRate:
		put(slices.Concat(cellColumns, []string{"target_per_s", "met"}, figureColumns(rateFigures(figures.RateRow{})), []string{"failed", "notes"})...)
		for _, row := range r.Rate {
			put(slices.Concat(cellFields(row.Cell), []string{strconv.Itoa(row.Target), strconv.Itoa(row.Met)},
				figureFields(rateFigures(row)), []string{strconv.FormatInt(row.Failed, 10), strings.Join(row.Notes, "; ")})...)
		}
	case TableCeiling, TableConnections:
		put(slices.Concat(cellColumns, []string{"best_repetition"}, figureColumns(ceilingFigures(figures.CeilingRow{})), []string{"failed", "notes"})...)
		rows := r.Ceiling
		if name == TableConnections {
			rows = r.Connections
		}
		for _, row := range rows {
			put(slices.Concat(cellFields(row.Cell), []string{strconv.Itoa(row.Best)},
				figureFields(ceilingFigures(row)), []string{strconv.FormatInt(row.Failed, 10), strings.Join(row.Notes, "; ")})...)
		}
	case TableToken:
		put("phase", "candidate", "evidence", "auth_cpu_us_per_request", "read_cpu_us_per_request", "share")
		for _, row := range r.TokenShare {
			put(row.Phase, row.Candidate, strconv.FormatBool(row.Evidence), number(*row.AuthCPU), number(*row.ReadCPU), number(*row.Share))
		}
	case TableProbe:
		put("phase", "target_per_s", "readings", "lowest_per_s", "highest_per_s", "below_99_percent")
		for _, row := range r.Probes {
			put(row.Phase, strconv.Itoa(row.Target), strconv.Itoa(row.Readings), number(row.Lowest), number(row.Highest), strconv.Itoa(row.Below))
		}
	case TableGates:
		put("gate", "attempts_failed", "attempts_waived", "windows_affected", "windows_repeated_with_evidence", "windows_left_without_evidence", "worst_reading", "limit", "unit", "where")
		for _, row := range r.Gates {
			put(row.Gate, strconv.Itoa(row.Failed), strconv.Itoa(row.Waived), strconv.Itoa(row.Windows), strconv.Itoa(row.Repeated), strconv.Itoa(row.Left),
				number(row.Worst), number(row.Limit), row.Unit, strings.Join(row.Where, "; "))
		}
	case TableWindows:
		put("phase", "candidate", "scenario", "connections", "target_per_s", "seconds", "repetition", "attempt", "evidence", "gates_failed", "error",
			"answered", "ok", "failed", "achieved_per_s", "p50_ms", "p99_ms", "p999_ms", "app_cores", "app_cpu_us_per_request", "db_cores", "db_cpu_us_per_request", "peak_bytes", "samples")
		for _, row := range r.Windows {
			put(slices.Concat([]string{row.Phase, row.Candidate, row.Scenario, strconv.Itoa(row.Connections), strconv.Itoa(row.Target), number(row.Seconds),
				strconv.Itoa(row.Repetition), strconv.Itoa(row.Attempt), strconv.FormatBool(row.Evidence), strings.Join(row.Failed, " "), oneLine(row.Error)},
				windowFields(row.Measured))...)
		}
	case TableGenerators, TableStreams:
		part, rows := []string{"generator"}, r.Generators
		if name == TableStreams {
			part, rows = []string{"stream", "target_per_s"}, r.Streams
		}
		put(slices.Concat([]string{"phase", "candidate", "scenario", "connections"}, part, []string{"evidence", "achieved_per_s", "achieved_per_s_min", "achieved_per_s_max",
			"p50_ms", "p50_ms_min", "p50_ms_max", "p99_ms", "p99_ms_min", "p99_ms_max", "p999_ms", "p999_ms_min", "p999_ms_max", "failed"})...)
		for _, row := range rows {
			named := []string{row.Host}
			if name == TableStreams {
				named = []string{row.Stream, strconv.Itoa(row.Target)}
			}
			put(slices.Concat([]string{row.Phase, row.Candidate, row.Scenario, strconv.Itoa(row.Connections)}, named, []string{strconv.FormatBool(row.Evidence)},
				figureFields([]figure{{"", row.Achieved}, {"", row.P50}, {"", row.P99}, {"", row.P999}}), []string{strconv.FormatInt(row.Failed, 10)})...)
		}
	case TableHosts:
		put("host", "roles", "address", "instance_type", "cpu_model", "cpus", "memory_bytes", "arch", "os", "kernel", "engine", "cgroup_version", "cgroup_driver", "storage_driver",
			"clock_offset_ms", "rsa_verify_per_s", "facts")
		for _, h := range r.Header.Hosts {
			offset, facts := "", make([]string, 0, len(h.Facts))
			if h.ClockOffsetMS != nil {
				offset = number(*h.ClockOffsetMS)
			}
			for _, name := range slices.Sorted(maps.Keys(h.Facts)) {
				facts = append(facts, name+"="+h.Facts[name])
			}
			put(h.Name, rolesText(h.Roles), h.Address, h.InstanceType, h.CPUModel, strconv.Itoa(h.CPUs), strconv.FormatInt(h.MemoryBytes, 10), h.Arch, h.OS, h.Kernel, h.Engine,
				h.CgroupVersion, h.CgroupDriver, h.StorageDriver, offset, number(h.RSAVerifyPerS), oneLine(strings.Join(facts, "; ")))
		}
	case TableLinks:
		put("from", "to", "rtt_min_ms", "rtt_mean_ms", "rtt_max_ms", "bits_per_s", "retransmits")
		for _, l := range r.Header.Links {
			put(l.From, l.To, number(l.RTTMinMS), number(l.RTTMeanMS), number(l.RTTMaxMS), number(l.BitsPerS), strconv.FormatInt(l.Retransmits, 10))
		}
	case TableCloud:
		put("provider", "region", "zone", "usd_per_hour", "price_source", "usd_spent")
		if c := r.Header.Cloud; c != nil {
			put(string(c.Provider), c.Region, c.Zone, number(c.USDPerHour), c.PriceSource, number(c.USDSpent))
		}
	default:
		return Options{Format: "csv", Table: name}.Check()
	}
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

var cellColumns = []string{"phase", "candidate", "scenario", "connections", "repetitions", "planned", "evidence"}

func cellFields(c figures.Cell) []string {
	return []string{c.Phase, c.Candidate, c.Scenario, strconv.Itoa(c.Connections), strconv.Itoa(c.Repetitions), strconv.Itoa(c.Planned), strconv.FormatBool(c.Evidence)}
}

// figure is a column with its estimate.
type figure struct {
	name string
	stat *figures.Stat
}

func rateFigures(r figures.RateRow) []figure {
	return []figure{
		{"achieved_per_s", r.Achieved}, {"p50_ms", r.P50}, {"p99_ms", r.P99}, {"p999_ms", r.P999}, {"app_cores", r.Cores},
		{"app_cpu_us_per_request", r.CPU}, {"db_cores", r.DBCores}, {"db_cpu_us_per_request", r.DBCPU}, {"peak_bytes", r.Peak},
	}
}

func ceilingFigures(r figures.CeilingRow) []figure {
	return []figure{
		{"achieved_per_s", r.Achieved}, {"median_per_s", r.Median}, {"p50_ms", r.P50}, {"p99_ms", r.P99}, {"p999_ms", r.P999}, {"app_cores", r.Cores},
		{"app_cpu_us_per_request", r.CPU}, {"db_cores", r.DBCores}, {"db_cpu_us_per_request", r.DBCPU}, {"peak_bytes", r.Peak},
	}
}

func figureColumns(list []figure) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.name, f.name+"_min", f.name+"_max")
	}
	return names
}

func figureFields(list []figure) []string {
	var fields []string
	for _, f := range list {
		if f.stat == nil {
			fields = append(fields, "", "", "")
			continue
		}
		fields = append(fields, number(f.stat.Value), number(f.stat.Min), number(f.stat.Max))
	}
	return fields
}

func windowFields(m *measure.Window) []string {
	if m == nil {
		return make([]string, 13)
	}
	fields := []string{strconv.FormatInt(m.Answered, 10), strconv.FormatInt(m.OK, 10), strconv.FormatInt(m.Failed, 10), number(m.Achieved)}
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"p50_ms", m.P50MS}, {"p99_ms", m.P99MS}, {"p999_ms", m.P999MS}, {"app_cores", m.AppCores}, {"app_cpu_us", m.AppCPUUS},
		{"db_cores", m.DBCores}, {"db_cpu_us", m.DBCPUUS}, {"peak_bytes", float64(m.PeakBytes)},
	} {
		text := ""
		if m.Has(f.name) {
			text = number(f.v)
		}
		fields = append(fields, text)
	}
	return append(fields, strconv.Itoa(m.Samples))
}

// number writes a figure with all its digits.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
