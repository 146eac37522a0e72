package protocol

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

func levelsSetup(t *testing.T) (*Runner, *fakeLab, *memory) {
	r, lab, journal := setup(t)
	preset := r.List.Preset
	preset.Phases = []plan.Phase{
		{ID: "ceiling", Kind: plan.KindCeiling, Window: measured, Repetitions: 1, Connections: []int{16, 64}},
		{ID: "levels", Kind: plan.KindLevels, Window: measured, Repetitions: 2, Connections: []int{32}, Target: &plan.Of{Of: plan.KindCeiling, Shares: []float64{0.5, 0.8}}},
	}
	r.List = plan.LayOut(r.Suite, preset, 7)
	return r, lab, journal
}

// TestLevels: targets follow from the candidate's own ceiling, once for all
// repetitions, and the first answer stays.
func TestLevels(t *testing.T) {
	r, lab, journal := levelsSetup(t)
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	known := map[plan.Resolved]int{}
	for _, e := range journal.events {
		if e.Type == store.EventTarget {
			var x plan.Resolved
			if err := json.Unmarshal(e.Data, &x); err != nil {
				t.Fatal(err)
			}
			known[x]++
		}
	}
	if len(known) != 2*3*2 { // candidates, scenarios, shares
		t.Errorf("%d targets became known: %v", len(known), known)
	}
	windows := 0
	for _, e := range journal.events {
		w := e.Window
		if w == nil || w.Kind != plan.KindLevels {
			continue
		}
		windows++
		ceiling := r.ceiling(w.Window)
		if want := int(math.Round(w.Share * ceiling)); ceiling == 0 || w.Target != want || w.Streams[0].Target != want {
			t.Errorf("%s: %+v, of a ceiling of %v", w.Window, w.Streams, ceiling)
		}
		if !strings.Contains(w.OHA, "_s0.") || strings.Contains(w.OHA, "_q") {
			t.Errorf("file %s", w.OHA)
		}
	}
	if windows != 2*2*3*2 {
		t.Errorf("%d windows", windows)
	}
	// The probe shows that the rates can be offered.
	if c := "probe at 50000"; !slices.Contains(lab.calls, c) {
		t.Errorf("no %q", c)
	}
}

// TestLevelsWithoutCeiling: what has no ceiling has no levels.
func TestLevelsWithoutCeiling(t *testing.T) {
	r, lab, journal := levelsSetup(t)
	r.List.Blocks = r.List.Blocks[2:] // of the levels alone
	if err := r.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "the ceiling is not known") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	for _, e := range journal.events {
		if e.Window != nil || e.Type == store.EventTarget {
			t.Errorf("%+v", e)
		}
	}
	if lab.measured != 0 {
		t.Errorf("%d windows were measured", lab.measured)
	}
}
