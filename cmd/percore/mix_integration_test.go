//go:build integration

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/store"
)

const mixPreset = `
name: mixed
description: reads and writes at once
timeout: 5s
warmup: 1s
probe: {window: 1s, connections: 8, target: 300}
phases:
  - id: mixed
    kind: rate
    window: 3s
    repetitions: 1
    connections: [8]
    mixes:
      - id: most-reads
        shares: {read: 0.75, write: 0.25}
    targets: {most-reads: 120}
`

// TestMixedRun measures one window of two streams, and holds what each answered
// against the other evidence there is: the rows in the database, and the rate.
func TestMixedRun(t *testing.T) {
	dockerEngine(t)
	results := t.TempDir()
	preset := write(t, "mixed.yaml", mixPreset)
	out := percore(t, results, "run", "--preset", preset, "--candidates", "go").run(t, 0)
	st := only(t, results)
	list := st.Run().List()
	if list.Windows() != 1 || len(st.Run().Blocks) != 1 {
		t.Fatalf("%d windows were planned\n%s", list.Windows(), out)
	}
	attempts := st.Attempts(list.Blocks[0].Windows[0])
	if len(attempts) == 0 {
		t.Fatalf("nothing was measured\n%s", out)
	}
	for _, w := range attempts {
		m := w.Measured
		if m == nil || len(w.Streams) != 2 || len(m.Streams) != 2 || len(w.OtherOHA) != 1 {
			t.Fatalf("%+v: %+v", w, m)
		}
		read, written := m.Streams[0], m.Streams[1]
		if read.Scenario != "read" || written.Scenario != "write" || read.OK+written.OK != m.OK || m.Statuses["200"] != read.OK || m.Statuses["201"] != written.OK {
			t.Errorf("%+v", m)
		}
		if rows := w.Database["events.inserted_rows"]; int64(rows) != written.OK {
			t.Errorf("%d writes were answered and %v rows inserted", written.OK, rows)
		}
		for i, s := range m.Streams {
			if want := float64(w.Streams[i].Target); s.Achieved < 0.9*want || s.Achieved > 1.1*want {
				t.Errorf("%s: %.1f/s of %.0f", s.Scenario, s.Achieved, want)
			}
			if s.P99MS <= 0 {
				t.Errorf("%s has no latency", s.Scenario)
			}
		}
		if m.AppCPUUS <= 0 || m.LoadCores <= 0 || !strings.HasSuffix(w.OtherOHA[0], ".write.oha.json") {
			t.Errorf("%+v, files %q", m, w.OtherOHA)
		}
		for _, g := range w.Gates {
			if g.Name == "samples" && !g.OK {
				t.Errorf("%+v", g)
			}
		}
	}
	starts := slices.DeleteFunc(st.Events(), func(e store.Event) bool { return e.Type != store.EventBlockStarted })
	if len(starts) != 1 {
		t.Errorf("%d blocks were started", len(starts))
	}
	if out := percore(t, results, "report", "latest", "--verify").run(t, 0); !strings.Contains(out, "most-reads") {
		t.Errorf("the report does not show the mix:\n%s", out)
	}
}
