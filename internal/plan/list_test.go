package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

// mixed is a preset with a phase of two mixes and one of single scenarios.
const mixed = `
name: mixed
description: d
timeout: 5s
warmup: 1s
probe: {window: 1s, connections: 4, target: 100}
phases:
  - id: mix
    kind: rate
    window: 2s
    repetitions: 2
    connections: [9]
    mixes:
      - id: half
        shares: {write: 0.5, read: 0.5}
      - id: most
        shares: {read: 0.9, auth: 0.1}
    targets: {half: 51, most: 40}
  - id: ceiling
    kind: ceiling
    window: 1s
    repetitions: 1
    connections: [4, 8]
    cooldown: 1s
`

func preset(t *testing.T, text string) (Preset, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return FindPreset("", file)
}

var threeScenarios = Suite{
	Name:       "s",
	Scenarios:  []Scenario{{ID: "auth", Scope: "r"}, {ID: "read", Scope: "r"}, {ID: "write"}},
	Candidates: []Candidate{{ID: "a"}, {ID: "b"}},
}

func TestLayOut(t *testing.T) {
	p, err := preset(t, mixed)
	if err != nil {
		t.Fatal(err)
	}
	s, p, err := Select(threeScenarios, p, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	l := LayOut(s, p, 7)
	if len(l.Blocks) != 2*2+2 || l.Windows() != 4*2+2*6 {
		t.Fatalf("%d blocks with %d windows", len(l.Blocks), l.Windows())
	}
	b := l.Blocks[0]
	half := b.Windows[0]
	want := []Stream{{Scenario: "read", Share: 0.5, Target: 26, Connections: 5, Tokens: 1}, {Scenario: "write", Share: 0.5, Target: 25, Connections: 4}}
	if half.Scenario != "half" || half.Connections != 9 || half.Target != 51 || !slices.Equal(half.Streams, want) {
		t.Errorf("%+v", half)
	}
	if most := b.Windows[1].Streams; most[0].Scenario != "auth" || most[0].Connections != 1 || most[1].Connections != 8 || most[0].Target != 4 || most[1].Target != 36 {
		t.Errorf("%+v", most)
	}
	if key := half.Key(); !strings.HasPrefix(key, "mix/") || !strings.HasSuffix(key, "_half_c9_q51_r1") {
		t.Errorf("key %s", key)
	}
	one := l.Blocks[len(l.Blocks)-1].Windows[2]
	if one.Scenario != "read" || !slices.Equal(one.Streams, []Stream{{Scenario: "read", Share: 1, Connections: 4, Tokens: 1}}) {
		t.Errorf("%+v", one)
	}
	one.Streams = nil // as it was stored before there were streams
	if sends := one.Sends(); len(sends) != 1 || sends[0].Scenario != "read" || sends[0].Connections != 4 || sends[0].Share != 1 {
		t.Errorf("%+v", sends)
	}
	if w := b.Warmups(); len(w) != 2 || w[0].Scenario != "half" || w[1].Scenario != "most" {
		t.Errorf("warm-ups %+v", w)
	}
	if w := l.Blocks[len(l.Blocks)-1].Warmups(); len(w) != 3 || w[1].Connections != 4 {
		t.Errorf("warm-ups %+v", w)
	}

	// What is stored is what was laid out.
	text, err := json.Marshal(l.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	var back []Block
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again := List{Preset: p, Blocks: back}
	o := DefaultOverhead()
	if again.Windows() != l.Windows() || again.Time(o, Undone) != l.Time(o, Undone) || !slices.Equal(again.Blocks[0].Windows[0].Streams, want) {
		t.Errorf("%s", text)
	}

	// Probe 1 s, two warm-ups of 1 s, two windows of 2 s; of one that is left the
	// warm-ups stay.
	done := func(w Window) bool { return w.Key() == half.Key() }
	if d := l.BlockTime(b, 2, Overhead{}); d != 7*time.Second {
		t.Errorf("a block takes %s", d)
	}
	if d := l.Time(Overhead{}, Undone) - l.Time(Overhead{}, done); d != 2*time.Second || l.Left(done) != l.Windows()-1 {
		t.Errorf("a window less takes %s less", d)
	}
	if d := l.Time(o, func(Window) bool { return true }); d != 0 {
		t.Errorf("what is done takes %s", d)
	}
}

func TestSelectMixes(t *testing.T) {
	p, err := preset(t, mixed)
	if err != nil {
		t.Fatal(err)
	}
	_, some, err := Select(threeScenarios, p, Selection{Scenarios: []string{"read", "write"}})
	if err != nil || len(some.Phases[0].Mixes) != 1 || len(some.Phases[0].Targets) != 1 || len(p.Phases[0].Mixes) != 2 {
		t.Errorf("%+v, %v", some.Phases, err)
	}
	if _, _, err := Select(threeScenarios, p, Selection{Scenarios: []string{"read"}}); err == nil || !strings.Contains(said.Err(err), "no mix of the chosen scenarios alone") {
		t.Errorf("%v", err)
	}
}

func TestBadMixes(t *testing.T) {
	for change, want := range map[string][2]string{
		"are 0.9 together":                           {"write: 0.5, read: 0.5", "write: 0.5, read: 0.4"},
		"a share of 0 for":                           {"write: 0.5, read: 0.5", "write: 0, read: 1"},
		"a share of -1 for":                          {"write: 0.5, read: 0.5", "write: 2, read: -1"},
		"has no shares":                              {"shares: {write: 0.5, read: 0.5}", "shares: {}"},
		`"most" is in it twice`:                      {"id: half", "id: most"},
		"2 scenarios and the phase has 1 connection": {"connections: [9]", "connections: [1]"},
		"2 scenarios and a target of 1/s":            {"half: 51", "half: 1"},
		`for scenario "pay", which`:                  {"write: 0.5, read: 0.5", "write: 0.5, pay: 0.5"},
		`no target for mix "half"`:                   {"half: 51, ", ""},
		`target for "read", which is none of its`:    {"half: 51", "half: 51, read: 3"},
		"has the name of a scenario":                 {"id: half", "id: read"},
		"the id \"Half\" of a mix is not usable":     {"id: half", "id: Half"},
	} {
		p, err := preset(t, strings.Replace(mixed, want[0], want[1], 1))
		if err == nil {
			_, _, err = Select(threeScenarios, p, Selection{})
		}
		if err == nil || !strings.Contains(said.Err(err), change) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q to %q: %v, want %q", want[0], want[1], err, change)
		}
	}
}

func TestParts(t *testing.T) {
	for _, tt := range []struct {
		all    int
		shares []float64
		want   []int
	}{
		{10, []float64{1}, []int{10}},
		{10, []float64{0.5, 0.5}, []int{5, 5}},
		{11, []float64{0.5, 0.5}, []int{6, 5}},
		{10, []float64{0.1, 0.2, 0.7}, []int{1, 2, 7}},
		{4, []float64{0.01, 0.01, 0.98}, []int{1, 1, 2}},
		{0, []float64{0.5, 0.5}, []int{0, 0}}, // a closed loop
		{100, []float64{1.0 / 3, 1.0 / 3, 1.0 / 3}, []int{34, 33, 33}},
	} {
		if got := parts(tt.all, tt.shares); !slices.Equal(got, tt.want) {
			t.Errorf("%d by %v is %v, want %v", tt.all, tt.shares, got, tt.want)
		}
	}
}

func TestResolveTargets(t *testing.T) {
	p, err := preset(t, mixed)
	if err != nil {
		t.Fatal(err)
	}
	p.Phases = []Phase{p.Phases[0], p.Phases[0]}
	p.Phases[0].Kind, p.Phases[0].Targets = KindCeiling, nil
	p.Phases[1].ID, p.Phases[1].Kind, p.Phases[1].Targets, p.Phases[1].Target = "levels", KindLevels, nil, &Of{KindCeiling, []float64{0.5, 0.8}}
	s, p, err := Select(threeScenarios, p, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	l := LayOut(s, p, 1)
	w := l.Blocks[4].Windows[1] // the first mix at 0.8
	if w.Share != 0.8 || w.Target != 0 || w.Streams[0].Target != 0 || !strings.HasSuffix(w.Key(), "_half_c9_s0.8_r1") || l.Windows() != 4*2+4*4 {
		t.Fatalf("%s: %+v", w.Key(), w)
	}
	known := w.Resolve(1000.4)
	if known.Target != 800 || known.Ceiling != 1000.4 {
		t.Errorf("%+v", known)
	}
	if tiny := w.Resolve(0.1); tiny.Target != 2 {
		t.Errorf("two streams of %d/s", tiny.Target)
	}
	with := l.With(known)
	n := 0
	for _, b := range with.Blocks {
		for _, o := range b.Windows {
			if o.Target == 0 {
				continue
			}
			n++
			if o.Candidate != w.Candidate || o.Scenario != "half" || o.Share != 0.8 || o.Streams[0].Target != 400 || o.Streams[1].Target != 400 {
				t.Errorf("%+v", o)
			}
		}
	}
	if n != 2 || l.Target(w) != 0 || with.Target(w) != 800 || l.Blocks[4].Windows[1].Streams[0].Target != 0 {
		t.Errorf("%d windows have the target", n)
	}
}

func TestBadTargets(t *testing.T) {
	const levels = `
  - id: levels
    kind: levels
    window: 1s
    repetitions: 1
    connections: [8]
    target: {of: ceiling, shares: [0.5, 0.8]}
`
	if _, err := preset(t, mixed+levels); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string][2]string{
		"a levels phase needs a target":  {"target: {of: ceiling, shares: [0.5, 0.8]}", ""},
		"a rate phase has no target":     {"kind: levels", "kind: rate\n    targets: {read: 1}"},
		"target is of \"rate\"":          {"of: ceiling", "of: rate"},
		"target has no shares":           {"[0.5, 0.8]", "[]"},
		"target has a share of 80":       {"0.8", "80"},
		"target has the share 0.5 twice": {"0.8", "0.5"},
		"both target and targets":        {"connections: [8]", "connections: [8]\n    targets: {read: 1}"},
		"no phase before it measures":    {"connections: [8]", "connections: [8]\n    mixes: [{id: m, shares: {read: 1}}]"},
		"write rate, ceiling or levels":  {"kind: levels", "kind: level"},
	} {
		_, err := preset(t, mixed+strings.Replace(levels, change[0], change[1], 1))
		if err == nil || !strings.Contains(said.Err(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p, err := preset(t, mixed+levels)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Select(threeScenarios, p, Selection{Phases: []string{"levels"}}); err == nil || !strings.Contains(said.Err(err), "no phase before it measures") {
		t.Errorf("levels alone: %v", err)
	}
}
