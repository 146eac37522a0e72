package figures

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/percore/percore/internal/evidence/study"
)

// SummaryColumns are the columns of the study's summary.csv.
var SummaryColumns = []string{
	"phase", "candidate", "scenario", "target_or_connections", "repetitions", "rps", "rps_median_or_min",
	"p50_ms", "p99_ms", "p999_ms", "failed", "avg_cores", "cpu_ms_per_req", "db_avg_cores", "rss_peak_mib", "met_target",
}

// Summary makes the rows of the study's summary.csv, with its estimators, its
// rounding and its order: medians of the repetitions for the fixed rate, with
// the lowest rate beside it; the best repetition for the ceiling, with the
// median rate beside it. A figure that could not be had is empty, and a cell
// without evidence has 0 repetitions and no figures.
func Summary(r Tables) [][]string {
	name := func(id string) string {
		if r.Header.Study {
			return study.CandidateName(id)
		}
		return id
	}
	type keyed struct {
		cell Cell
		row  []string
	}
	var rate, ceiling []keyed
	for _, row := range r.Rate {
		line := []string{row.Phase, name(row.Candidate), row.Scenario, strconv.Itoa(row.Target), strconv.Itoa(row.Repetitions)}
		if !row.Evidence {
			rate = append(rate, keyed{row.Cell, blank(line)})
			continue
		}
		rate = append(rate, keyed{row.Cell, append(line,
			round(row.Achieved, 1, 0), lowest(row.Achieved),
			round(row.P50, 1, 2), round(row.P99, 1, 2), round(row.P999, 1, 2), strconv.FormatInt(row.Failed, 10),
			round(row.Cores, 1, 2), round(row.CPU, 1000, 4), round(row.DBCores, 1, 2), round(row.Peak, 1<<20, 1),
			fmt.Sprintf("%d/%d", row.Met, row.Repetitions),
		)})
	}
	for _, row := range r.Connections {
		line := []string{row.Phase, name(row.Candidate), row.Scenario, strconv.Itoa(row.Connections), strconv.Itoa(row.Repetitions)}
		if !row.Evidence {
			ceiling = append(ceiling, keyed{row.Cell, blank(line)})
			continue
		}
		ceiling = append(ceiling, keyed{row.Cell, append(line,
			round(row.Achieved, 1, 0), round(row.Median, 1, 0),
			round(row.P50, 1, 2), round(row.P99, 1, 2), "", strconv.FormatInt(row.Failed, 10),
			round(row.Cores, 1, 2), round(row.CPU, 1000, 4), round(row.DBCores, 1, 2), round(row.Peak, 1<<20, 1), "",
		)})
	}
	// The study sorts by candidate first; within one, the rows are in order.
	var out [][]string
	for _, rows := range [][]keyed{rate, ceiling} {
		slices.SortStableFunc(rows, func(a, b keyed) int {
			return cmp.Or(
				cmp.Compare(index(r.Header.Phases, a.cell.Phase), index(r.Header.Phases, b.cell.Phase)),
				cmp.Compare(index(r.Header.Order, a.cell.Candidate), index(r.Header.Order, b.cell.Candidate)),
			)
		})
		for _, k := range rows {
			out = append(out, k.row)
		}
	}
	return out
}

// index is the place of a name in a list; a name that is not in it comes last.
func index(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

// blank fills a row up to the columns of the summary.
func blank(line []string) []string {
	return append(line, make([]string, len(SummaryColumns)-len(line))...)
}

// lowest writes the lowest reading of a rate.
func lowest(s *Stat) string {
	if s == nil {
		return ""
	}
	return Shortest(s.Min, 0)
}

// round writes a figure as JavaScript prints a rounded number.
func round(s *Stat, per float64, decimals int) string {
	if s == nil {
		return ""
	}
	return Shortest(s.Value/per, decimals)
}
