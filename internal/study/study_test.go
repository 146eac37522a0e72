package study

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/fail"
	"github.com/percore/percore/internal/study/samples"
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
	for name, c := range map[string]struct {
		file, data string
		want       []string
	}{
		"empty oha":          {oha, "", []string{oha, "empty"}},
		"truncated oha":      {oha, "{\"summary\": {", []string{oha, "cut off"}},
		"not JSON":           {oha, "hello", []string{oha, "not JSON"}},
		"empty samples":      {samples, "", []string{samples, "0 samples"}},
		"one sample":         {samples, string(lines[0]), []string{samples, "1 samples"}},
		"cut mid-line":       {samples, string(whole[:len(whole)-20]), []string{samples, "line 16", "cut off"}},
		"broken middle":      {samples, string(lines[0]) + "x\n" + string(lines[2]), []string{samples, "line 2"}},
		"counter backwards":  {samples, string(lines[0]) + string(lines[5]) + strings.Replace(string(lines[6]), `"app_cpu":`, `"app_cpu":-`, 1), []string{samples, "line 3", "backwards"}},
		"clock backwards":    {samples, string(lines[5]) + string(lines[0]), []string{samples, "line 2", "clock"}},
		"no counter":         {samples, "{\"t\":1}\n{\"t\":2}\n", []string{samples, "line 1"}},
		"meta not JSON":      {"meta.json", "{\n\"stamp\": ", []string{"meta.json", "line 2"}},
		"meta without a day": {"meta.json", `{"config":{"rate":{"duration":"soon"}}}`, []string{"meta.json", "soon"}},
	} {
		dir := part(t, "meta.json", oha, samples)
		put(t, filepath.Join(dir, c.file), []byte(c.data))
		_, err := Read(dir)
		if err == nil || !fail.IsInput(err) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", name, w, err)
			}
		}
	}
	if _, err := Read(part(t)); !fail.IsInput(err) || !strings.Contains(err.Error(), "no load-generator files") {
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
