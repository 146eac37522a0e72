package oha

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/base/fail"
)

// Result is what one run of the load generator says. Latencies cover every
// HTTP answer, whatever its status; a request without an answer has none.
type Result struct {
	Seconds     float64            // from the first request to the last answer, waiting included
	Answered    int64              // HTTP answers of any status
	Statuses    map[string]int64   // HTTP status ("200") -> answers
	Errors      map[string]int64   // the generator's message -> requests without an answer
	Percentiles map[string]float64 // "p50", "p99.9" -> latency in ms; absent when there is none
	MeanMS      float64            // 0 when nothing was answered
	MaxMS       float64            // 0 when nothing was answered
	Histogram   []Bucket           // ascending by latency
}

// Bucket counts the answers of a histogram up to a latency.
type Bucket struct {
	MS    float64 // upper end of the bucket
	Count int64
}

// OK counts the 2xx answers.
func (r Result) OK() int64 {
	var n int64
	for status, c := range r.Statuses {
		if status[0] == '2' {
			n += c
		}
	}
	return n
}

// Unanswered counts the requests that ended without an answer: timed out,
// refused, reset, or cut off at the deadline.
func (r Result) Unanswered() int64 {
	var n int64
	for _, c := range r.Errors {
		n += c
	}
	return n
}

// Percentile returns a latency percentile ("p50", "p99.9") in milliseconds and
// whether the file holds it: it does not when nothing was answered.
func (r Result) Percentile(name string) (ms float64, ok bool) {
	ms, ok = r.Percentiles[name]
	return ms, ok
}

// The part of oha's JSON that is read. A number that could not be computed,
// such as the fastest of no answers, is null there.
type ohaFile struct {
	Summary *struct {
		Total   *float64 `json:"total"`
		Slowest *float64 `json:"slowest"`
		Average *float64 `json:"average"`
	} `json:"summary"`
	Histogram   map[string]int64    `json:"responseTimeHistogram"`
	Percentiles map[string]*float64 `json:"latencyPercentiles"`
	Statuses    map[string]int64    `json:"statusCodeDistribution"`
	Errors      map[string]int64    `json:"errorDistribution"`
}

// Remedy is what to do about a bad file of a window that can be measured again.
const Remedy = "copy the file again from where it was measured, or measure the window again"

// Numbers beyond these were damaged: they could not be reckoned with, and no
// run comes near them.
const (
	maxSeconds = 1e9
	maxCount   = 1 << 50
)

// Read reads the JSON file that oha left. The error of a file that is not one
// is bad input, names the file and ends with the remedy.
func Read(path, remedy string) (Result, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Result{}, fail.In(path, "there is no such load-generator file").Try("%s", remedy)
	}
	if err != nil {
		if info, e := os.Stat(path); e == nil && info.IsDir() {
			return Result{}, fail.In(path, "this is a folder and no load-generator file").Try("%s", remedy)
		}
		return Result{}, fmt.Errorf("reading the load generator's result: %w", err)
	}
	return parse(path, data, remedy)
}

// Parse reads oha's JSON. The name stands for the data in errors, which are bad
// input and end with [Remedy].
func Parse(name string, data []byte) (Result, error) { return parse(name, data, Remedy) }

func parse(name string, data []byte, remedy string) (Result, error) {
	bad := func(format string, args ...any) (Result, error) {
		return Result{}, fail.In(name, "%s", fmt.Sprintf(format, args...)).Try("%s", remedy)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return bad("the load generator's result is empty, so the generator was stopped before it could write")
	}
	var f ohaFile
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&f); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return bad("the load generator's result is cut off after %d bytes", len(data))
		case errors.As(err, &syntax):
			return bad("the load generator's result is not JSON (%v at byte %d)", err, syntax.Offset)
		case errors.As(err, &kind) && kind.Field == "":
			return bad("the load generator's result is no JSON object (%s at byte %d)", kind.Value, kind.Offset)
		case errors.As(err, &kind):
			return bad("the load generator's result holds the wrong kind of value in %s (%s at byte %d)", kind.Field, kind.Value, kind.Offset)
		default:
			return bad("the load generator's result cannot be read (%v)", err)
		}
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad("more follows the load generator's result at byte %d", dec.InputOffset())
	}
	if f.Summary == nil || f.Summary.Total == nil || f.Statuses == nil || f.Errors == nil || f.Percentiles == nil {
		return bad("this is JSON but not a result of oha (summary.total, latencyPercentiles, statusCodeDistribution and errorDistribution belong in it)")
	}

	r := Result{
		Seconds:     *f.Summary.Total,
		Statuses:    f.Statuses,
		Errors:      f.Errors,
		Percentiles: make(map[string]float64, len(f.Percentiles)),
	}
	if !possible(&r.Seconds) {
		return bad("the load generator ran for %v seconds, which is impossible (summary.total)", r.Seconds)
	}
	for status, n := range f.Statuses {
		code, err := strconv.Atoi(status)
		if err != nil || code < 100 || code > 999 || len(status) != 3 {
			return bad("%q is not an HTTP status", status)
		}
		if n < 0 || n > maxCount {
			return bad("%d answers of status %s cannot be", n, status)
		}
		r.Answered += n
	}
	var lost int64
	for message, n := range f.Errors {
		if n < 0 || n > maxCount || lost > maxCount {
			return bad("%d requests that ended in %q cannot be", n, message)
		}
		lost += n
	}
	var known []percentile
	for p, s := range f.Percentiles {
		v, err := strconv.ParseFloat(strings.TrimPrefix(p, "p"), 64)
		if !strings.HasPrefix(p, "p") || err != nil || !(v >= 0 && v <= 100) {
			return bad("%q is not a latency percentile", p)
		}
		if s == nil {
			continue
		}
		if !possible(s) {
			return bad("a latency of %v seconds is impossible (%s)", *s, p)
		}
		r.Percentiles[p] = *s * 1000
		known = append(known, percentile{p, v, *s})
	}
	sort.Slice(known, func(i, j int) bool { return known[i].share < known[j].share })
	for i := 1; i < len(known); i++ {
		if a, b := known[i-1], known[i]; b.seconds < a.seconds {
			return bad("the latency percentile %s (%v seconds) is below %s (%v seconds), which cannot be", b.name, b.seconds, a.name, a.seconds)
		}
	}
	for name, v := range map[string]*float64{"average": f.Summary.Average, "slowest": f.Summary.Slowest} {
		if !possible(v) {
			return bad("a latency of %v seconds is impossible (summary.%s)", *v, name)
		}
	}
	if r.Answered > 0 {
		if _, ok := r.Percentiles["p50"]; !ok {
			return bad("%d answers but no median latency", r.Answered)
		}
		if f.Summary.Average != nil {
			r.MeanMS = *f.Summary.Average * 1000
		}
		if f.Summary.Slowest != nil {
			r.MaxMS = *f.Summary.Slowest * 1000
		}
	}
	for s, n := range f.Histogram {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			if r.Answered == 0 {
				continue // buckets of no answers have no bounds
			}
			return bad("%q is not a bound of a latency histogram", s)
		}
		if !possible(&v) || n < 0 || n > maxCount {
			return bad("%d answers of up to %s seconds in the latency histogram cannot be", n, s)
		}
		r.Histogram = append(r.Histogram, Bucket{MS: v * 1000, Count: n})
	}
	sort.Slice(r.Histogram, func(i, j int) bool { return r.Histogram[i].MS < r.Histogram[j].MS })
	return r, nil
}

// percentile is one latency percentile.
type percentile struct {
	name           string
	share, seconds float64
}

// possible reports whether a number of seconds can be, or is not there.
func possible(seconds *float64) bool {
	return seconds == nil || *seconds >= 0 && *seconds <= maxSeconds
}
