package study

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/samples"
	"github.com/percore/percore/internal/testkit/said"
)

const fixture = "testdata/php-go-bench/results/2026-09-16"

// part copies some files of the fixture into a folder.
func part(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "raw"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(fixture, n))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, n), data)
	}
	return dir
}

func put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	s, err := Read(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Windows) != 15 || len(s.Probes) != 1 || len(s.Notes) != 0 {
		t.Errorf("%d windows, %d probes, notes %v", len(s.Windows), len(s.Probes), s.Notes)
	}
	if s.Run.Planned() != 153 {
		t.Errorf("the whole study has 153 windows, not %d", s.Run.Planned())
	}
	if s.Run.ID != "2026-09-16" || s.Run.Versions["oha"] != "1.15.0" || s.Run.Versions["frankenphp"] != "1.12.7" {
		t.Errorf("%s %v", s.Run.ID, s.Run.Versions)
	}
	for _, w := range s.Windows {
		if w.Candidate == "fpm" || !w.Passed() {
			t.Errorf("window %v", w.Window)
		}
		if w.CGroup != "" && (!w.Measured.Has("app_cpu_us") || w.End.Sub(w.Start).Seconds() < w.Seconds) {
			t.Errorf("%v: samples from %v to %v", w.Window, w.Start, w.End)
		}
	}
	p := s.Probes[0]
	if p.Block.Candidate != "go" || p.Block.Phase != "rate" || p.Reading.Achieved < 49000 || p.Reading.Target != 50000 {
		t.Errorf("probe %+v", p)
	}
}

// TestWhatIsNoEvidence: a window of the study whose generator ended early, or that
// was answered by errors, is none, and has no figures of errors.
func TestWhatIsNoEvidence(t *testing.T) {
	const name = "raw/rate_go_write_q10000_r1.json"
	for gate, change := range map[string][2]string{
		gates.Length:  {`"total": 60.002878069`, `"total": 41.5`},
		gates.Answers: {`"201": 599997`, `"401": 599997`},
	} {
		dir := part(t, "meta.json", name, strings.TrimSuffix(name, ".json")+samples.Ending)
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			t.Fatalf("%s is not in %s", change[0], name)
		}
		put(t, filepath.Join(dir, name), []byte(changed))
		s, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		w := s.Windows[0]
		if w.Passed() || len(w.Gates) != 1 || w.Gates[0].Name != gate || w.Gates[0].Detail == "" {
			t.Errorf("%s: gates %+v", gate, w.Gates)
		}
		if own := gate == gates.Length; w.Measured.Has("app_cpu_us") != own || w.Measured.Has("p99_ms") != own {
			t.Errorf("%s: figures %+v", gate, w.Measured)
		}
	}
}

func TestLocate(t *testing.T) {
	for path, want := range map[string]string{
		fixture: fixture, "testdata/php-go-bench": fixture, "testdata": "", t.TempDir(): "",
	} {
		if got := Locate(path); got != want {
			t.Errorf("%s -> %q", path, got)
		}
	}
}

func TestWithoutMeta(t *testing.T) {
	s, err := Read(part(t, "raw/ceil_go_read_c256_r1.json", "raw/ceil_go_read_c256_r1.res.jsonl", "raw/rate_go_write_q10000_r1.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Windows) != 2 || s.Windows[0].Seconds != 15 || s.Windows[1].Seconds != 60 || s.Windows[1].Connections != 256 {
		t.Errorf("%+v", s.Windows)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "meta.json is missing") {
		t.Errorf("notes %v", s.Notes)
	}
	if got := s.Run.Preset.Phases[1].Connections; !slices.Equal(got, []int{16, 64, 128, 256}) {
		t.Errorf("ceiling of %v connections", got)
	}
}

// TestNotesOfExtras: what changes figures or was left aside is said.
func TestNotesOfExtras(t *testing.T) {
	dir := part(t, "meta.json", "raw/ceil_go_read_c256_r1.json", "raw/rate_go_write_q10000_r1.json")
	for to, from := range map[string]string{
		"rate_go_write_q10000_r9.json":      "rate_go_write_q10000_r1.json",
		"rate_go_write_q9000_r2.json":       "rate_go_write_q10000_r2.json",
		"ceil_go_read_c256_r4.json":         "ceil_go_read_c256_r2.json",
		"ceil_go_read_c256_r5.res.jsonl":    "ceil_go_read_c256_r2.res.jsonl",
		"rate_go_write_q10000_r3.json":      "rate_go_write_q10000_r3.json",
		"rate_go_write_q10000_r3.res.jsonl": "rate_go_write_q10000_r3.res.jsonl",
	} {
		data, err := os.ReadFile(filepath.Join(fixture, "raw", from))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "raw", to), data)
	}
	s, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"samples without a load-generator file beside them were left aside: ceil_go_read_c256_r5.res.jsonl",
		"windows that the protocol does not ask for, by their repetition or their target, count like the others: ceil_go_read_c256_r4.json, rate_go_write_q10000_r9.json, rate_go_write_q9000_r2.json",
	}
	if len(s.Windows) != 6 || !slices.Equal(s.Notes, want) {
		t.Errorf("%d windows, notes %q", len(s.Windows), s.Notes)
	}
	if got := few([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}

func TestOtherContentIsLeftAside(t *testing.T) {
	dir := part(t, "meta.json", "raw/ceil_go_read_c256_r1.json")
	put(t, filepath.Join(dir, "raw", "notes.txt"), []byte("hello"))
	put(t, filepath.Join(dir, "raw", "warmup_go.json"), []byte("{}"))
	put(t, filepath.Join(dir, "raw", "ceil_go_read_c256_r0.json"), []byte("{}"))
	// A candidate, a scenario and a connection count that meta.json lacks.
	data, _ := os.ReadFile(filepath.Join(fixture, "raw/ceil_go_read_c256_r1.json"))
	put(t, filepath.Join(dir, "raw", "ceil_road_runner_mixed_c512_r1.json"), data)
	if err := os.Mkdir(filepath.Join(dir, "raw", "old.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Windows) != 2 || s.Windows[1].Candidate != "road_runner" || s.Windows[1].Scenario != "mixed" {
		t.Errorf("%+v", s.Windows)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "2 JSON files") {
		t.Errorf("notes %v", s.Notes)
	}
}

func TestBadFolders(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(fixture, "raw/ceil_go_read_c256_r1.res.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	const oha, samples = "raw/ceil_go_read_c256_r1.json", "raw/ceil_go_read_c256_r1.res.jsonl"
	ohaFile, err := os.ReadFile(filepath.Join(fixture, "raw/ceil_go_read_c256_r1.json"))
	if err != nil {
		t.Fatal(err)
	}
	swap := func(pattern string, line int, with string) string {
		all := slices.Clone(lines)
		all[line] = regexp.MustCompile(pattern).ReplaceAll(all[line], []byte(with))
		if bytes.Equal(all[line], lines[line]) {
			t.Fatalf("nothing to change: %s", pattern)
		}
		return string(bytes.Join(all, nil))
	}
	for name, c := range map[string]struct {
		file, data string
		want       []string
	}{
		"empty oha":          {oha, "", []string{oha, "empty"}},
		"truncated oha":      {oha, "{\"summary\": {", []string{oha, "cut off"}},
		"not JSON":           {oha, "hello", []string{oha, "not JSON"}},
		"empty samples":      {samples, "", []string{samples, "there are none"}},
		"one sample":         {samples, string(lines[0]), []string{samples, "there is 1"}},
		"cut mid-line":       {samples, string(whole[:len(whole)-20]), []string{samples, "line 16", "cut off"}},
		"broken middle":      {samples, string(lines[0]) + "x\n" + string(lines[2]), []string{samples, "line 2"}},
		"counter backwards":  {samples, string(lines[0]) + string(lines[5]) + string(lines[4]), []string{samples, "line 3", "clock"}},
		"CPU backwards":      {samples, swap(`"app_cpu":[0-9]+`, 2, `"app_cpu":1`), []string{samples, "line 3", "CPU counter goes backwards"}},
		"counter negative":   {samples, swap(`"app_cpu":[0-9]+`, 0, `"app_cpu":-99999999999`), []string{samples, "line 1", "negative (-99999999999)"}},
		"difference wraps":   {samples, swap(`"app_cpu":[0-9]+`, 0, `"app_cpu":-9223372036854775807`), []string{samples, "line 1", "negative"}},
		"memory negative":    {samples, swap(`"app_anon":[0-9]+`, 4, `"app_anon":-5`), []string{samples, "line 5", "negative (-5)"}},
		"too much memory":    {samples, swap(`"app_anon":[0-9]+`, 4, `"app_anon":9223372036854775807`), []string{samples, "line 5", "more than a machine has"}},
		"too much CPU":       {samples, swap(`"db_cpu":[0-9]+`, 15, `"db_cpu":9223372036854775807`), []string{samples, "line 16", "CPUs can use"}},
		"fraction":           {samples, swap(`"app_cpu":[0-9]+`, 1, `"app_cpu":390454133.5`), []string{samples, "line 2", "app_cpu is no whole number of 64 bits: number 390454133.5"}},
		"array":              {samples, "[]\n", []string{samples, "line 1", "array in place of an object"}},
		"cut at a line":      {samples, string(bytes.Join(lines[:2], nil)), []string{samples, "span 1.0 s", "ran for 15.0 s"}},
		"last line missing":  {samples, string(bytes.Join(lines[:15], nil)), []string{samples, "span 14.0 s"}},
		"first line missing": {samples, string(bytes.Join(lines[1:], nil)), []string{samples, "span 14.0 s"}},
		"latency too large":  {oha, strings.Replace(string(ohaFile), `"p99": 0.006114458`, `"p99": 1e308`, 1), []string{oha, "p99", "take it away"}},
		"clock backwards":    {samples, string(lines[5]) + string(lines[0]), []string{samples, "line 2", "clock"}},
		"no counter":         {samples, "{\"t\":1}\n{\"t\":2}\n", []string{samples, "line 1"}},
		"meta not JSON":      {"meta.json", "{\n\"stamp\": ", []string{"meta.json", "line 2"}},
		"meta without a day": {"meta.json", `{"config":{"rate":{"duration":"soon"}}}`, []string{"meta.json", "soon"}},
		"meta of a year":     {"meta.json", `{"config":{"rate":{"duration":"8760h"}}}`, []string{"meta.json", "8760h"}},
		"meta is an array":   {"meta.json", "\n[]", []string{"meta.json", "line 2", "array in place of an object"}},
		"meta of half":       {"meta.json", `{"config":{"rate":{"repetitions":1.5}}}`, []string{"meta.json", "line 1", "config.rate.repetitions: number 1.5"}},
		"meta of too many":   {"meta.json", `{"config":{"rate":{"repetitions":2000000000}}}`, []string{"meta.json", "config.rate.repetitions is 2000000000"}},
		"meta of less":       {"meta.json", `{"effective":{"ceilingConnections":[16,-64]}}`, []string{"meta.json", "effective.ceilingConnections is -64"}},
	} {
		dir := part(t, "meta.json", oha, samples)
		put(t, filepath.Join(dir, c.file), []byte(c.data))
		_, err := Read(dir)
		if err == nil || !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(said.Err(err), w) {
				t.Errorf("%s: %q is not in: %v", name, w, err)
			}
		}
		for _, w := range []string{"measure the window again", "Go struct", "Go value", "int64"} {
			if strings.Contains(said.Err(err), w) {
				t.Errorf("%s: %q is in: %v", name, w, err)
			}
		}
	}
	for name, want := range map[string]string{oha: "no load-generator file", samples: "no sample file"} {
		dir := part(t, "meta.json", oha, samples)
		if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.Mkdir(filepath.Join(dir, name), 0o755)); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); !fail.IsInput(err) || !strings.Contains(said.Err(err), name+": this is a folder and "+want) {
			t.Errorf("a folder for a file: %v", err)
		}
	}
	dir := part(t, "meta.json", oha)
	put(t, filepath.Join(dir, "raw", "ceil_go_read_c256_r01.json"), ohaFile)
	if _, err := Read(dir); !fail.IsInput(err) || !strings.Contains(said.Err(err), "ceil_go_read_c256_r01.json and ceil_go_read_c256_r1.json are the same window") {
		t.Errorf("a window twice: %v", err)
	}
	if _, err := Read(part(t)); !fail.IsInput(err) || !strings.Contains(said.Err(err), "no load-generator files") {
		t.Errorf("empty raw: %v", err)
	}
	if _, err := Read(t.TempDir()); !fail.IsInput(err) {
		t.Errorf("no raw: %v", err)
	}
}

func FuzzSamples(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(fixture, "raw", "*.res.jsonl"))
	for _, name := range files[:3] {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)-7])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := samples.Parse("fuzz", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		if peak, _ := s.PeakAnon("app"); peak < 0 {
			t.Fatalf("peak %d", peak)
		}
		if us, ok := s.CPU("app"); s.Samples() < 2 || (ok && us < 0) {
			t.Fatalf("%d samples, %v µs", s.Samples(), us)
		}
	})
}

func FuzzMeta(f *testing.F) {
	data, err := os.ReadFile(filepath.Join(fixture, "meta.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:200])
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := part(t, "raw/ceil_go_read_c256_r1.json")
		put(t, filepath.Join(dir, "meta.json"), data)
		if _, err := Read(dir); err != nil && !fail.IsInput(err) {
			t.Fatalf("not bad input: %v", err)
		}
	})
}
