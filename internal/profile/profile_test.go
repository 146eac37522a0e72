package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/percore/percore/internal/fail"
)

const root = "../.."

func TestParseCPUs(t *testing.T) {
	good := map[string]CPUSet{"0": "0", "0-3": "0-3", "3,1,2": "1-3", "0-1,4-5,9": "0-1,4-5,9", " 1 , 2 ": "1-2"}
	for in, want := range good {
		cpus, err := ParseCPUs(in)
		if err != nil || FormatCPUs(cpus) != want {
			t.Errorf("ParseCPUs(%q) = %v, %v; want %s", in, cpus, err, want)
		}
	}
	for _, in := range []string{"", " ", "a", "0-", "-1", "3-1", "0,0", "0-2,1", "0--3", "0,,1", "99999", "1.5", "+1", "0x1", "99999999999999999999"} {
		if cpus, err := ParseCPUs(in); err == nil {
			t.Errorf("ParseCPUs(%q) = %v, want an error", in, cpus)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"0-3", "0-1,4", "auto", "", "0-8191", "7,3-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := ParseCPUs(s)
		if err != nil {
			return
		}
		again, err := ParseCPUs(string(FormatCPUs(cpus)))
		if err != nil || len(again) != len(cpus) {
			t.Fatalf("%q gives %v, which does not come back: %v, %v", s, cpus, again, err)
		}
	})
}

func TestShared(t *testing.T) {
	if got := CPUSet("0-3").Shared("2-5"); FormatCPUs(got) != "2-3" {
		t.Errorf("shared = %v", got)
	}
	if got := CPUSet("0-3").Shared("4-7"); got != nil {
		t.Errorf("shared = %v", got)
	}
}

func TestUnitsComeBack(t *testing.T) {
	for in, want := range map[string]string{"60s": "1m", "1m30s": "1m30s", "2h": "2h", "10s": "10s", "250ms": "250ms", "90m": "1h30m"} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || d.String() != want {
			t.Errorf("%q reads as %s, %v", in, d, err)
		}
	}
	for in, want := range map[string]string{"1GiB": "1GiB", "1536MiB": "1536MiB", "1.5GiB": "1536MiB", "512m": "512MiB", "100": "100B"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(in)); err != nil || b.String() != want {
			t.Errorf("%q reads as %s, %v", in, b, err)
		}
	}
}

// TestShippedFiles reads every profile and preset of the project and brings
// them back through YAML and JSON, as run.json stores them.
func TestShippedFiles(t *testing.T) {
	s, err := ReadSuite(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list(root, presetDir) {
		p, err := FindPreset(root, name)
		if err != nil {
			t.Errorf("preset %s: %v", name, err)
			continue
		}
		if p.Name != name {
			t.Errorf("preset %s calls itself %s", name, p.Name)
		}
		if _, _, err := Select(s, p, Selection{}); err != nil {
			t.Errorf("preset %s: %v", name, err)
		}
		var again Preset
		text, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || again.Phases[0].Window != p.Phases[0].Window {
			t.Errorf("preset %s through JSON: %v", name, err)
		}
		text, err = yaml.Marshal(p)
		if err == nil {
			err = decodeYAML("again.yaml", text, &again)
		}
		if err != nil || again.Warmup != p.Warmup {
			t.Errorf("preset %s through YAML: %v\n%s", name, err, text)
		}
	}
	for _, name := range list(root, profileDir) {
		p, err := FindProfile(root, name)
		if err != nil {
			t.Errorf("profile %s: %v", name, err)
			continue
		}
		if _, err := p.Resolve(Machine{CPUs: 12, MemoryBytes: 8 << 30}); err != nil {
			t.Errorf("profile %s: %v", name, err)
		}
	}
}

// TestFullIsThePublishedProtocol holds the preset against the figures of the
// study.
func TestFullIsThePublishedProtocol(t *testing.T) {
	p, err := FindPreset(root, "full")
	if err != nil {
		t.Fatal(err)
	}
	rate, ceiling := p.Phases[0], p.Phases[1]
	if !p.Published || rate.Window.Seconds() != 60 || rate.Repetitions != 5 || rate.Connections[0] != 256 ||
		rate.Targets["auth"] != 50000 || rate.Targets["read"] != 50000 || rate.Targets["write"] != 10000 ||
		ceiling.Window.Seconds() != 15 || ceiling.Repetitions != 3 || len(ceiling.Connections) != 4 ||
		p.Warmup.Seconds() != 5 || p.Timeout.Seconds() != 10 || p.Probe.Target != 50000 {
		t.Errorf("the full preset is not the published protocol: %+v", p)
	}
}

const goodProfile = `name: mine
database_connections: 8
roles:
  app:  {cpus: "0", memory: 512MiB}
  db:   {cpus: "1", memory: 1GiB}
  load: {cpus: "2", memory: 512MiB}
`

func TestBadProfiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.yaml")
	for name, c := range map[string]struct{ old, new, says string }{
		"good":         {"", "", ""},
		"unquoted":     {`"0"`, `0`, ""},
		"overlap":      {`"1"`, `"0-1"`, "app and db overlap on CPU 0"},
		"missing cpus": {`cpus: "1", `, "", "role db has no CPUs"},
		"empty cpus":   {`"1"`, `""`, "role db has no CPUs"},
		"bad cpus":     {`"1"`, `"1-"`, "role db: CPU list"},
		"missing role": {`  load: {cpus: "2", memory: 512MiB}` + "\n", "", "role load has no CPUs"},
		"unknown role": {"load:", "lode:", `role "lode" is unknown`},
		"unknown key":  {"database_connections", "db_connections", "p.yaml:2: unknown field"},
		"bad memory":   {"1GiB", "lots", `"lots" is not a size`},
		"bad flavour":  {"name: mine", "name: mine\nflavour: ubuntu", `flavour "ubuntu" is unknown`},
		"connections":  {"database_connections: 8", "database_connections: 0", "database_connections is 0"},
		"half auto":    {`"1"`, `auto`, "some roles have cpus: auto"},
		"not yaml":     {"roles:", "roles: [", "p.yaml:"},
		"empty":        {goodProfile, "", "is empty"},
		"bad name":     {"name: mine", "name: ../x", "is not usable"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(strings.Replace(goodProfile, c.old, c.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := FindProfile(root, path)
			wantInput(t, err, c.says)
		})
	}
	_, err := FindProfile(root, "nosuch")
	wantInput(t, err, "aws-graviton, aws-x86, hosts, m4pro, small")
	_, err = FindProfile(root, "nosuch.yaml")
	wantInput(t, err, "does not exist")
}

const goodPreset = `name: mine
timeout: 10s
warmup: 1s
probe: {window: 1s, connections: 4, target: 100}
phases:
  - {id: rate, kind: rate, window: 2s, repetitions: 1, connections: [4], targets: {auth: 10, read: 10, write: 10}}
`

func TestBadPresets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	for name, c := range map[string]struct{ old, new, says string }{
		"good":           {"", "", ""},
		"bad duration":   {"warmup: 1s", "warmup: 1 second", "is not a duration"},
		"no unit":        {"warmup: 1s", "warmup: 15", "is not a duration"},
		"negative":       {"window: 2s", "window: -2s", "window is -2s"},
		"fraction":       {"window: 2s", "window: 2500ms", "whole seconds"},
		"unknown kind":   {"kind: rate", "kind: soak", `kind "soak" is unknown`},
		"unknown key":    {"timeout", "time_out", "unknown field"},
		"no phases":      {goodPreset[strings.Index(goodPreset, "phases"):], "phases: []\n", "no phases"},
		"no targets":     {", targets: {auth: 10, read: 10, write: 10}", "", "needs targets"},
		"no connections": {"connections: [4], t", "connections: [], t", "no connections"},
		"two rates":      {"connections: [4], t", "connections: [4, 8], t", "one number of connections"},
		"zero target":    {"auth: 10", "auth: 0", "target of auth is 0"},
		"repetitions":    {"repetitions: 1", "repetitions: 0", "repetitions is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(strings.Replace(goodPreset, c.old, c.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := FindPreset(root, path)
			wantInput(t, err, c.says)
		})
	}
}

// wantInput checks that the error is bad input, one sentence, and says so; an
// empty text means no error.
func wantInput(t *testing.T, err error, says string) {
	t.Helper()
	if says == "" {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	if !fail.IsInput(err) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q (input: %v) should be one line that says %q", err, fail.IsInput(err), says)
	}
}

func FuzzDecodeProfile(f *testing.F) {
	f.Add(goodProfile)
	f.Add(goodPreset)
	for _, path := range []string{"profiles/m4pro.yaml", "profiles/small.yaml", "profiles/presets/full.yaml", "candidates/suite.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p Profile
		if err := decodeYAML("f.yaml", []byte(text), &p); err != nil {
			if !fail.IsInput(err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one sentence about the input: %q", err)
			}
		} else if p.check() == nil {
			p.Resolve(Machine{CPUs: 4, MemoryBytes: 8 << 30})
		}
		var q Preset
		if decodeYAML("f.yaml", []byte(text), &q) == nil {
			_ = q.check()
		}
	})
}

func TestResolve(t *testing.T) {
	small, err := FindProfile(root, "small")
	if err != nil {
		t.Fatal(err)
	}
	for cpus, want := range map[int][3]CPUSet{
		1:  {"0", "0", "0"},
		2:  {"0", "1", "1"},
		3:  {"0", "1", "2"},
		4:  {"0", "1", "2-3"},
		8:  {"0-1", "2-3", "4-7"},
		12: {"0-3", "4-7", "8-11"},
	} {
		p, err := small.Resolve(Machine{CPUs: cpus, MemoryBytes: 8 << 30})
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]CPUSet{p.Roles[App].CPUs, p.Roles[DB].CPUs, p.Roles[Load].CPUs}; got != want {
			t.Errorf("%d CPUs split as %v, want %v", cpus, got, want)
		}
		if p.SharedCores != (cpus < 3) || (len(p.SharedRoles()) > 0) != (cpus < 3) {
			t.Errorf("%d CPUs: shared is %v, pairs %v", cpus, p.SharedCores, p.SharedRoles())
		}
	}
	if small.Roles[App].CPUs != AutoCPUs {
		t.Error("Resolve changed the profile it was called on")
	}
	p, err := small.Resolve(Machine{CPUs: 2, MemoryBytes: 2 << 30})
	if err != nil || p.Roles[App].Memory+p.Roles[DB].Memory+p.Roles[Load].Memory > 2<<30 {
		t.Errorf("2 GiB split as %+v, %v", p.Roles, err)
	}

	m4, err := FindProfile(root, "m4pro")
	if err != nil {
		t.Fatal(err)
	}
	_, err = m4.Resolve(Machine{CPUs: 8, MemoryBytes: 16 << 30})
	wantInput(t, err, "12 CPUs, and the engine has 8")
	_, err = m4.Resolve(Machine{CPUs: 12, MemoryBytes: 2 << 30})
	wantInput(t, err, "needs 4.0 GiB of memory and the engine has 2.0 GiB")
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		m            Machine
		name, preset string
	}{
		{Machine{CPUs: 12, MemoryBytes: 8319238144}, "m4pro", "full"},
		{Machine{CPUs: 12, MemoryBytes: 4 << 30}, "small", "quick"},
		{Machine{CPUs: 2, MemoryBytes: 24 << 30}, "small", "quick"},
		// Twelve threads are not the study's twelve cores, twenty-four may be.
		{Machine{CPUs: 12, MemoryBytes: 24 << 30, Cores: far(6)}, "small", "quick"},
		{Machine{CPUs: 24, MemoryBytes: 24 << 30, Cores: near(12)}, "small", "quick"},
		{Machine{CPUs: 24, MemoryBytes: 24 << 30, Cores: far(12)}, "m4pro", "full"},
	} {
		name := Choose("auto", c.m)
		if name != c.name || ChoosePreset("auto", Profile{Name: name}) != c.preset {
			t.Errorf("%+v chooses %s", c.m, name)
		}
	}
	if Choose("x", Machine{}) != "x" || ChoosePreset("smoke", Profile{}) != "smoke" {
		t.Error("a given name must stay")
	}
}

func TestSelect(t *testing.T) {
	s, err := ReadSuite(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := FindPreset(root, "smoke")
	if err != nil {
		t.Fatal(err)
	}
	s2, p2, err := Select(s, p, Selection{Candidates: []string{"go"}, Scenarios: []string{"read"}, Phases: []string{"rate"}})
	if err != nil || len(s2.Candidates) != 1 || len(s2.Scenarios) != 1 || len(p2.Phases) != 1 || len(p2.Phases[0].Targets) != 1 {
		t.Errorf("selected %+v %+v, %v", s2, p2, err)
	}
	if len(p.Phases) != 2 || len(p.Phases[0].Targets) != 3 {
		t.Error("Select changed the preset it was given")
	}
	_, _, err = Select(s, p, Selection{Candidates: []string{"rust"}})
	wantInput(t, err, "take from go, php-fpm, frankenphp")
	_, _, err = Select(s, p, Selection{Phases: []string{"soak"}})
	wantInput(t, err, "take from rate, ceiling")
}
