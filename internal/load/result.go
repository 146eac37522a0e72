package load

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

	"github.com/percore/percore/internal/fail"
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

const remedy = "copy the file again from where it was measured, or measure the window again"

// Read reads the JSON file that oha left. The error of a file that is not one
// is bad input and names the file.
func Read(path string) (Result, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Result{}, fail.Input("%s: there is no such load-generator file; %s", path, remedy)
	}
	if err != nil {
		return Result{}, fmt.Errorf("reading the load generator's result: %w", err)
	}
	return Parse(path, data)
}

// Parse reads oha's JSON. The name stands for the data in errors.
func Parse(name string, data []byte) (Result, error) {
	bad := func(format string, args ...any) (Result, error) {
		return Result{}, fail.Input("%s: %s; %s", name, fmt.Sprintf(format, args...), remedy)
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
		case errors.As(err, &kind):
			return bad("the load generator's result holds a %s where a number or an object belongs (%s at byte %d)", kind.Value, kind.Field, kind.Offset)
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
	if r.Seconds < 0 {
		return bad("the load generator ran for %v seconds, which is below zero", r.Seconds)
	}
	for status, n := range f.Statuses {
		code, err := strconv.Atoi(status)
		if err != nil || code < 100 || code > 999 || len(status) != 3 {
			return bad("%q is not an HTTP status", status)
		}
		if n < 0 || n > math.MaxInt64/4 || r.Answered > math.MaxInt64/4 {
			return bad("%d answers of status %s cannot be", n, status)
		}
		r.Answered += n
	}
	var lost int64
	for message, n := range f.Errors {
		if n < 0 || n > math.MaxInt64/4 || lost > math.MaxInt64/4 {
			return bad("%d requests that ended in %q cannot be", n, message)
		}
		lost += n
	}
	for p, s := range f.Percentiles {
		v, err := strconv.ParseFloat(strings.TrimPrefix(p, "p"), 64)
		if !strings.HasPrefix(p, "p") || err != nil || !(v >= 0 && v <= 100) {
			return bad("%q is not a latency percentile", p)
		}
		if s == nil {
			continue
		}
		if *s < 0 {
			return bad("a latency of %v seconds (%s) is below zero", *s, p)
		}
		r.Percentiles[p] = *s * 1000
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
		r.Histogram = append(r.Histogram, Bucket{MS: v * 1000, Count: n})
	}
	sort.Slice(r.Histogram, func(i, j int) bool { return r.Histogram[i].MS < r.Histogram[j].MS })
	return r, nil
}
