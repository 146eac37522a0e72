package series

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// TestPick takes the repetition in the middle by rate, and none whose rate cannot
// be.
func TestPick(t *testing.T) {
	window := func(repetition int, rate float64) store.WindowResult {
		return store.WindowResult{Window: plan.Window{Phase: "rate", Candidate: "go", Scenario: "read", Connections: 8, Repetition: repetition}, Attempt: 1, Measured: &measure.Window{Achieved: rate}}
	}
	pick := func(rates ...float64) (Sample, bool) {
		var in figures.Measured
		var r figures.Tables
		for i, rate := range rates {
			w := window(i+1, rate)
			in.Windows = append(in.Windows, w)
			r.Windows = append(r.Windows, figures.WindowRow{Window: w.Window, Attempt: 1, Evidence: true, Measured: w.Measured})
		}
		return Pick(in, r, "rate", "go", "read", 8)
	}
	for _, tt := range []struct {
		rates []float64
		want  int // repetition; 0 for none
	}{
		{[]float64{300, 100, 200}, 3}, {[]float64{100, 200}, 2}, {[]float64{math.NaN(), 100, math.Inf(1)}, 2}, {[]float64{-1}, 0}, {nil, 0},
	} {
		if s, ok := pick(tt.rates...); ok != (tt.want > 0) || s.Repetition != tt.want {
			t.Errorf("%v: repetition %d, %v; want %d", tt.rates, s.Repetition, ok, tt.want)
		}
	}
}

// FuzzTrace reads counters that may be cut off, damaged or of another program.
func FuzzTrace(f *testing.F) {
	names, err := filepath.Glob("../../evidence/study/testdata/php-go-bench/results/2026-09-16/raw/*.res.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	more, err := filepath.Glob("../../testkit/cgtrees/testdata/*/*.cg.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	if len(names) == 0 || len(more) == 0 {
		f.Fatal("there are no samples to start from")
	}
	for _, n := range append(names, more...) {
		data, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		f.Add(bytes.Join(lines[:min(len(lines), 5)], nil))
	}
	f.Add([]byte(`{"t":1,"containers":{"app":{"usage_us":9223372036854775807}}}` + "\n" + `{"t":2,"containers":{"app":{"usage_us":-9223372036854775808}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Sample{WindowResult: store.WindowResult{CGroup: "x", Measured: &measure.Window{}}}
		got, err := ReadTrace(func(string) ([]byte, error) { return data, nil }, s)
		if err != nil {
			return
		}
		if len(got.App) > MaxPoints || len(got.DB) > MaxPoints {
			t.Fatalf("%d and %d points", len(got.App), len(got.DB))
		}
		for _, q := range append(got.App, got.DB...) {
			if q.X < 0 || q.Y < 0 || math.IsNaN(q.Y) || math.IsInf(q.Y, 0) {
				t.Fatalf("%+v", q)
			}
		}
	})
}
