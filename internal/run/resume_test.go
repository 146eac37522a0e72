package run

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// TestCarriedOn: a run goes on by what is stored of it, and only by that.
func TestCarriedOn(t *testing.T) {
	suite := plan.Suite{Name: "s", Scenarios: []plan.Scenario{{ID: "read"}, {ID: "write"}}, Candidates: []plan.Candidate{{ID: "a"}, {ID: "b"}}}
	preset := plan.Preset{
		Name: "gone", Probe: plan.Probe{Connections: 8, Target: 10}, Timeout: 1e9, Warmup: 1e9,
		Phases: []plan.Phase{{ID: "ceiling", Kind: plan.KindCeiling, Window: 1e9, Repetitions: 1, Connections: []int{8}}},
	}
	roles := map[plan.Role]plan.Resources{plan.App: {CPUs: "0", Memory: 1 << 30}, plan.DB: {CPUs: "1", Memory: 1 << 30}, plan.Load: {CPUs: "1", Memory: 1 << 30}}
	was := store.Run{
		ID: "r", Seed: 9, Suite: suite, Preset: preset, Candidates: []string{"a", "b"}, Flavour: plan.FlavourDebian,
		Profile:       plan.Profile{Name: "mine", Flavour: plan.FlavourDebian, DatabaseConnections: 8, SharedCores: true, Roles: roles, Cloud: &plan.Cloud{Provider: plan.ProviderHosts}},
		ProfileSource: "/gone/mine.yaml", PresetSource: "/gone/gone.yaml",
		Hosts: []store.HostFacts{{CPUs: 2}},
	}
	was.Blocks = plan.LayOut(suite, preset, 9).Blocks[1:] // as no seed lays it out
	o := ResumeOptions(Options{Root: t.TempDir(), Profile: "auto", Preset: "auto"}, was)
	m := plan.Machine{CPUs: 2, MemoryBytes: 8 << 30}
	p, err := PrepareFor(o, map[plan.Role]plan.Machine{plan.App: m, plan.DB: m, plan.Load: m})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.List.Blocks) != 1 || p.List.Blocks[0].BlockID != was.Blocks[0].BlockID || p.Seed != 9 || p.Preset.Name != "gone" || p.Suite.Name != "s" {
		t.Errorf("%+v", p)
	}
	if err := sameSize(was, 2); err != nil {
		t.Error(err)
	}
	if err := sameSize(was, 4); err == nil || !strings.Contains(said.Err(err), "had 2 CPUs, and the one that answers has 4") {
		t.Errorf("%v", err)
	}

	for _, o := range []Options{
		{}, {Profile: "auto", Preset: "auto"}, {Profile: "/gone/mine.yaml", Preset: "gone"},
		{Selection: plan.Selection{Candidates: []string{"b", "a"}, Scenarios: []string{"read", "write"}, Phases: []string{"ceiling"}}},
	} {
		if err := CheckAsked(o, was); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for want, o := range map[string]Options{
		"profile /gone/mine.yaml, and small":  {Profile: "small"},
		"preset /gone/gone.yaml, and /x.yaml": {Preset: "/x.yaml"},
		"candidates a,b, and a":               {Selection: plan.Selection{Candidates: []string{"a"}}},
		"scenarios read,write, and read":      {Selection: plan.Selection{Scenarios: []string{"read"}}},
		"phases ceiling, and rate":            {Selection: plan.Selection{Phases: []string{"rate"}}},
	} {
		if err := CheckAsked(o, was); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(said.Err(err), "leave out") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
