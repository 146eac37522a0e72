package protocol

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// mixedSetup is setup with one phase that measures a mix.
func mixedSetup(t *testing.T, spread bool) (*Runner, *fakeLab, *memory) {
	r, lab, journal := setup(t)
	preset := r.List.Preset
	preset.Phases = []plan.Phase{{
		ID: "mix", Kind: plan.KindRate, Window: measured, Repetitions: 1, Connections: []int{9}, Targets: map[string]int{"half": 51},
		Mixes: []plan.Mix{{ID: "half", Shares: map[string]float64{"read": 0.5, "write": 0.5}}},
	}}
	r.List, lab.spread = plan.LayOut(r.Suite, preset, 7), spread
	r.Layout = layout(spread, nil)
	return r, lab, journal
}

// TestMixedWindow: two streams are warmed up and measured together, stored each
// in a file of its own, and read again from there.
func TestMixedWindow(t *testing.T) {
	for _, spread := range []bool{false, true} {
		r, lab, journal := mixedSetup(t, spread)
		if err := r.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		c := r.List.Blocks[0].Candidate
		for _, call := range []string{"warm read at 26 + write at 25", "measure " + c + " read c5 + write c4"} {
			if !slices.Contains(lab.calls, call) {
				t.Errorf("no %q in %q", call, lab.calls)
			}
		}
		w := r.List.Blocks[0].Windows[0]
		a := journal.Attempts(w)
		if len(a) != 1 || a[0].Measured == nil || a[0].Scenario != "half" || len(a[0].Streams) != 2 {
			t.Fatalf("%+v", a)
		}
		base := "raw/mix/" + c + "_half_c9_q51_r1_a1."
		want := []string{base + "write.oha.json"}
		if spread {
			want = []string{base + "load2.oha.json", base + "write.oha.json", base + "write.load2.oha.json"}
		}
		if a[0].OHA != base+"oha.json" || !slices.Equal(a[0].OtherOHA, want) {
			t.Errorf("files %s and %q", a[0].OHA, a[0].OtherOHA)
		}
		one, err := oha.Parse("one", lab.oha)
		if err != nil {
			t.Fatal(err)
		}
		m, hosts := a[0].Measured, int64(len(want)+1)/2
		if m.OK != 2*hosts*one.OK() || len(m.Streams) != 2 || len(m.Generators) != int(hosts)/2*2 {
			t.Fatalf("%+v", m)
		}
		if s := m.Streams[1]; s.Scenario != "write" || s.OK != hosts*one.OK() || s.P99MS != one.Percentiles["p99"] {
			t.Errorf("%+v", s)
		}
		again, err := store.ReadEvidence(a[0], func(path string) ([]byte, error) { return journal.raw[path], nil })
		if err != nil {
			t.Fatal(err)
		}
		if o := again.Outputs[len(want)]; o.Stream != "write" || o.Host != []string{"load", "load2"}[hosts-1] {
			t.Errorf("the last output is of %s on %s", o.Stream, o.Host)
		}
	}
}

// TestMixedWindowWithoutAStream: what one stream lacks, the window lacks.
func TestMixedWindowWithoutAStream(t *testing.T) {
	r, lab, journal := mixedSetup(t, true)
	lab.hosts = func(_ int, m *Measurement) { m.OHA = m.OHA[:3] }
	if err := r.Run(context.Background()); err == nil {
		t.Fatal("a window of which an output is missing was measured")
	}
	for _, e := range journal.events {
		if e.Window != nil && (e.Window.Measured != nil || !strings.Contains(e.Window.Error, "3 load generators left an output, of 2 streams")) {
			t.Errorf("%+v", e.Window)
		}
	}
	r, lab, _ = mixedSetup(t, false)
	lab.oha = bytes.Replace(lab.oha, []byte(`"201"`), []byte(`"500"`), 1)
	if err := r.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "warm-up of read: ") {
		t.Errorf("a stream without any answer of its own: %v", err)
	}
}
