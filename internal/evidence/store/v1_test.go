package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/percore/percore/internal/plan"
)

// TestVersion1: a run that was begun before lists of windows were stored has the
// one that it was measured by, and keeps it when it is carried on.
func TestVersion1(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS("testdata/v1-run")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, h := s.Run().List(), s.History()
	if s.Run().Version != 1 || s.Run().Blocks != nil || list.Windows() != 18 || s.Run().Planned() != 18 {
		t.Fatalf("version %d, %d windows planned", s.Run().Version, list.Windows())
	}
	var started []plan.BlockID
	for _, e := range h.Events {
		if e.Type == EventBlockStarted {
			started = append(started, *e.Block)
		}
	}
	if len(started) != len(list.Blocks) {
		t.Fatalf("%d blocks were measured and %d planned", len(started), len(list.Blocks))
	}
	for i, b := range list.Blocks {
		if b.BlockID != started[i] {
			t.Errorf("block %d was %s and is %s", i, started[i], b.BlockID)
		}
	}
	if left := list.Left(func(w plan.Window) bool { return len(h.Attempts(w)) > 0 }); left != 0 {
		t.Errorf("%d windows are left of a run that was complete", left)
	}
	for _, w := range h.Windows() {
		if sends := w.Sends(); len(w.Streams) != 0 || len(sends) != 1 || sends[0].Scenario != w.Scenario || sends[0].Target != w.Target {
			t.Errorf("%s sends %+v", w, sends)
		}
	}
	if problems, err := s.Rederive(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}

	if err := s.Lock(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.SaveRun(s.Run()); err != nil {
		t.Fatal(err)
	}
	run, err := readRun(dir)
	if err != nil || run.Version != Version || len(run.Blocks) != len(list.Blocks) || run.Blocks[0].BlockID != started[0] || len(run.Blocks[0].Windows[0].Streams) != 1 {
		t.Errorf("%+v, %v", run.Blocks, err)
	}
}

// TestKnownTarget: a target that has become known stands in the list of the run,
// also for who opens it later, and run.json keeps what was laid out.
func TestKnownTarget(t *testing.T) {
	run := sampleRun("a1")
	run.Preset.Phases = []plan.Phase{{ID: "levels", Kind: plan.KindLevels, Repetitions: 2, Connections: []int{8}, Window: plan.Duration(1e9), Target: &plan.Of{Of: plan.KindCeiling, Shares: []float64{0.5}}}}
	s, err := Create(t.TempDir(), run)
	if err != nil {
		t.Fatal(err)
	}
	w := s.Run().Blocks[0].Windows[0]
	if w.Target != 0 || w.Share != 0.5 {
		t.Fatalf("%+v", w)
	}
	data, err := json.Marshal(w.Resolve(300))
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, Event{Type: EventTarget, Data: data})
	if err := s.SaveRun(s.Run()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	again, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Run().List().Target(w); got != 150 || again.run.List().Target(w) != 0 {
		t.Errorf("the target is %d, and %d in %s", got, again.run.List().Target(w), RunFile)
	}
	if len(again.Attempts(w)) != 0 || again.NextAttempt(w) != 1 {
		t.Error("attempts at what was not measured")
	}
}
