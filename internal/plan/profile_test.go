package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
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
	for in, want := range map[string]string{"1GiB": "1GiB", "1536MiB": "1536MiB", "1.5GiB": "1536MiB", "512m": "512MiB", "100B": "100B"} {
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
		"bad cpus":     {`"1"`, `"1-"`, `p.yaml:5: roles.db.cpus: CPU list "1-": "1-" is neither a CPU number nor a range of them; write CPU numbers`},
		"missing role": {`  load: {cpus: "2", memory: 512MiB}` + "\n", "", "role load has no CPUs"},
		"unknown role": {"load:", "lode:", `role "lode" is unknown`},
		"unknown key":  {"database_connections", "db_connections", "p.yaml:2: unknown field"},
		"fraction":     {"database_connections: 8", "database_connections: 3.5", "p.yaml:2: database_connections is 3.5; write a whole number"},
		"octal":        {"database_connections: 8", "database_connections: 010", "database_connections is 010; write a whole number"},
		"too long":     {"database_connections: 8", "database_connections: 99999999999999999999", "write a whole number"},
		"word":         {"database_connections: 8", "database_connections: many", `p.yaml:2: database_connections is "many"; write a whole number`},
		"no value":     {"database_connections: 8", "database_connections:", "p.yaml:2: database_connections has no value"},
		"yes":          {"name: mine", "name: mine\nshared_cores: yes", `p.yaml:2: shared_cores is "yes"; write true or false`},
		"cpu list":     {`"1"`, `[0, 1]`, `p.yaml:5: roles.db.cpus is a list; write CPU numbers as in "0-3,8", or auto`},
		"hexadecimal":  {`"1"`, `0x1`, `p.yaml:5: roles.db.cpus is 0x1, which is not the same number`},
		"minus":        {`"1"`, `"-1"`, `"-1" is neither a CPU number nor a range of them`},
		"memory 0":     {"1GiB", "0", `p.yaml:5: roles.db.memory: "0" is not a size`},
		"memory list":  {"1GiB", "{a: 1}", `roles.db.memory is a mapping; write it with its unit`},
		"small memory": {"1GiB", "1MiB", "role db has 1MiB of memory"},
		"auto memory":  {"1GiB", "auto", ""},
		"byte order":   {"name: mine", "\uFEFFname: mine", ""},
		"two of them":  {"name: mine", "name: mine\n---\nname: other", "p.yaml:3: a second document begins"},
		"end marks":    {"name: mine", "---\nname: mine", ""},
		"comments":     {goodProfile, "# nothing\n", "is empty or holds nothing but comments"},
		"null":         {goodProfile, "null\n", "is empty"},
		"list":         {goodProfile, "- a\n", "p.yaml:1: the document is a list; write keys with values"},
		"merged":       {`{cpus: "0", memory: 512MiB}` + "\n" + `  db:   {cpus: "1", memory: 1GiB}`, `&a {cpus: "0", memory: 512MiB}` + "\n" + `  db:   {cpus: "1", <<: *a}`, ""},
		"no anchor":    {`{cpus: "1", memory: 1GiB}`, "*a", "p.yaml:5: roles.db: there is no anchor &a above"},
		"own anchor":   {`{cpus: "1", memory: 1GiB}`, "&a {<<: *a}", "there is no anchor &a above"},
		"tag":          {"name: mine", "name: !!str mine", "name: the tag !!str is not understood"},
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
	wantInput(t, err, "there is no such file")
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
		"where":          {"warmup: 1s", "warmup: 15", `p.yaml:3: warmup: "15" is not a duration; write it with its unit, as in 60s or 5m`},
		"where in list":  {"window: 2s", "window: 2", `p.yaml:6: phases[0].window: "2" is not a duration`},
		"half a target":  {"read: 10", "read: 200.7", "p.yaml:6: phases[0].targets.read is 200.7; write a whole number"},
		"half a time":    {"repetitions: 1", "repetitions: 1.9", "phases[0].repetitions is 1.9; write a whole number"},
		"no list":        {"connections: [4], t", "connections: 4, t", "phases[0].connections is 4; write a list, as in [4]"},
		"short timeout":  {"timeout: 10s", "timeout: 1ns", "timeout is 1ns; write 100ms to 24h"},
		"short warm-up":  {"warmup: 1s", "warmup: 1ns", "warmup is 1ns; write 100ms to 24h"},
		"no warm-up":     {"warmup: 1s", "warmup: 0s", "warmup is 0s; write 100ms to 24h"},
		"short probe":    {"{window: 1s", "{window: 1ns", "probe.window is 1ns; write 1s to 24h"},
		"long cooldown":  {"window: 2s", "window: 2s, cooldown: 2562047h", "cooldown is 2562047h; write 0s to 24h"},
		"many times":     {"repetitions: 1", "repetitions: 200000", "repetitions is 200000; write 1 to 1000"},
		"high target":    {"read: 10", "read: 999999999999", "target of read is 999999999999; write requests per second, 1 to 10000000"},
		"high probe":     {"connections: 4,", "connections: 9999999,", "probe.connections is 9999999; write 1 to 65535"},
		"low probe":      {"read: 10", "read: 200", "probe.target is 100 and phase \"rate\" has 200 for read; write 200 or more"},
		"not published":  {"name: mine", "name: mine\npublished: true", "published is true and the published values, in brackets, are others: warm-up 1s (5s); probe window 1s (10s)"},
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
	if !fail.IsInput(err) || !strings.Contains(said.Err(err), says) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("error %q (input: %v) should be one line that says %q", err, fail.IsInput(err), says)
	}
}

func FuzzDecodeProfile(f *testing.F) {
	f.Add(goodProfile)
	f.Add(goodPreset)
	for _, path := range []string{"profiles/m4pro.yaml", "profiles/small.yaml", "profiles/presets/full.yaml", "candidates/oauth-events/suite.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p Profile
		if err := decodeYAML("f.yaml", []byte(text), &p); err != nil {
			if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
				t.Fatalf("not one sentence about the input: %q", err)
			}
		} else if p.check() == nil {
			_, _ = p.Resolve(Machine{CPUs: 4, MemoryBytes: 8 << 30}) // it may not fit; it may not panic
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

// TestMemoryThatOverflows: three roles with so much that the sum is negative.
func TestMemoryThatOverflows(t *testing.T) {
	r := Resources{CPUs: "0", Memory: 4_000_000 << 40}
	_, err := Profile{Name: "p", Roles: map[Role]Resources{App: r, DB: r, Load: r}}.Resolve(Machine{CPUs: 1, MemoryBytes: 8 << 30})
	wantInput(t, err, "gives role app 4096000000.0 GiB of memory and the engine has 8.0 GiB")
}

// TestMerge: a mapping's own keys override what is merged into it, wherever they
// stand, and of several merged ones the first counts.
func TestMerge(t *testing.T) {
	for text, want := range map[string]Resources{
		"{<<: *a, memory: 2GiB}":      {"0", 2 << 30},
		"{memory: 2GiB, <<: *a}":      {"0", 2 << 30},
		"{<<: [*a, *b]}":              {"0", 1 << 30},
		"{<<: [*b, *a], cpus: 7}":     {"7", 3 << 30},
		"*b":                          {"1", 3 << 30},
		"{<<: {<<: *b}, cpus: \"2\"}": {"2", 3 << 30},
	} {
		var p Profile
		err := decodeYAML("p.yaml", []byte("roles:\n  app: &a {cpus: 0, memory: 1GiB}\n  db: &b {cpus: 1, memory: 3GiB}\n  load: "+text+"\n"), &p)
		if err != nil || p.Roles[Load] != want {
			t.Errorf("%s is %+v, %v; want %+v", text, p.Roles[Load], err, want)
		}
	}
	var p Profile
	bomb := "name: x\nroles:\n  a0: &a0 {cpus: 0}\n"
	for i := 1; i < 20; i++ {
		bomb += fmt.Sprintf("  a%d: &a%d {<<: [*a%d, *a%d, *a%d]}\n", i, i, i-1, i-1, i-1)
	}
	wantInput(t, decodeYAML("p.yaml", []byte(bomb), &p), "more than 100000 values")
}

// TestPublishedIsToldFromValues: neither a name nor what a file says of itself
// makes figures comparable.
func TestPublishedIsToldFromValues(t *testing.T) {
	full, err := FindPreset(root, "full")
	if err != nil || !full.Published || full.Caveat() != "" {
		t.Errorf("full differs from the published protocol: %s, %v", full.Caveat(), err)
	}
	text, err := os.ReadFile(filepath.Join(root, presetDir, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mine.yaml")
	for _, c := range []struct{ old, new, differs string }{
		{"published: true\n", "", ""},
		{"name: full", "name: mine", ""},
		{"window: 60s", "window: 120s", ""},
		{"[16, 64, 128, 256]", "[256, 16, 64, 128]", ""},
		{"timeout: 10s", "timeout: 5s", "timeout 5s (10s)"},
		{"warmup: 5s", "warmup: 1s", "warm-up 1s (5s)"},
		{"window: 10s", "window: 2s", "probe window 2s (10s)"},
		{"window: 60s", "window: 3s", "phase rate windows 3s (1m)"},
		{"repetitions: 3", "repetitions: 1", "phase ceiling repetitions 1 (3)"},
		{"write: 10000", "write: 9000", "phase rate write 9000/s (10000/s)"},
		{"[16, 64, 128, 256]", "[16]", "phase ceiling connections 16 (16, 64, 128, 256)"},
	} {
		changed := strings.Replace(string(text), c.old, c.new, 1)
		if changed == string(text) {
			t.Fatalf("full.yaml does not hold %q", c.old)
		}
		if c.differs != "" {
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := FindPreset(root, path)
			wantInput(t, err, "are others: "+c.differs+"; take published out")
			changed = strings.Replace(changed, "published: true\n", "", 1)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := FindPreset(root, path)
		if err != nil || p.Published != (c.differs == "") || p.Differences() != c.differs {
			t.Errorf("%q for %q: published is %v, differs in %q, %v", c.new, c.old, p.Published, p.Differences(), err)
		}
	}
}

func TestProfileDifferences(t *testing.T) {
	m4, err := FindProfile(root, "m4pro")
	if err != nil || len(m4.Differences()) != 0 {
		t.Errorf("m4pro differs from the study: %q, %v", m4.Differences(), err)
	}
	m4.DatabaseConnections = 16
	m4.Roles[App] = Resources{CPUs: "0-1", Memory: 512 << 20}
	m4.Roles[Load] = Resources{CPUs: "8-9", Memory: 1 << 30}
	got := strings.Join(m4.Differences(), "\n")
	for _, w := range []string{"the candidate has 2 core(s) and the study's had 4", "role load has 2 core(s)", "role app has 512MiB of memory and the study's had 1GiB", "16 database connections and the study had 32"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in %q", w, got)
		}
	}
	m4.Roles[DB] = Resources{CPUs: "0", Memory: 2 << 30}
	if got := strings.Join(m4.Differences(), "\n"); strings.Contains(got, "core(s)") {
		t.Errorf("cores are counted although they are shared: %q", got)
	}
	small, err := FindProfile(root, "small")
	if err == nil {
		small, err = small.Resolve(Machine{CPUs: 12, MemoryBytes: 8 << 30})
	}
	if err != nil || len(small.Differences()) != 0 {
		t.Errorf("small on the study's machine differs: %q, %v", small.Differences(), err)
	}
}

// TestPlanBounds: what no single value of a preset shows.
func TestPlanBounds(t *testing.T) {
	s, err := ReadSuite(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := FindPreset(root, "smoke")
	if err != nil {
		t.Fatal(err)
	}
	ceiling := &p.Phases[1]
	ceiling.Repetitions = MaxRepetitions
	ceiling.Connections = make([]int, 20)
	for i := range ceiling.Connections {
		ceiling.Connections[i] = i + 1
	}
	_, _, err = Select(s, p, Selection{})
	wantInput(t, err, "preset smoke makes 180009 windows, and a run has 100000 at most")
	if _, _, err = Select(s, p, Selection{Candidates: []string{"go"}, Scenarios: []string{"read"}}); err != nil {
		t.Errorf("20,001 windows are refused: %v", err)
	}
	ceiling.Connections, ceiling.Window = ceiling.Connections[:1], Duration(MaxDuration)
	_, _, err = Select(s, p, Selection{})
	wantInput(t, err, "preset smoke takes 9000 days, and a run takes 90 at most")
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
