package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// project puts the test into a module of its own and returns what a go command
// that records its calls writes them to. Its tests are those of the files; the
// package failing fails.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.test/m\n\ngo 1.24\n", 0o644)
	for name, text := range files {
		write(name, text, 0o644)
	}
	write("fakego", `#!/bin/sh
[ "$1" = test ] || exec go "$@"
echo "$*" >>'`+calls+`'
code=0
for p; do
	case $p in
	*/failing) printf -- '--- FAIL: TestX (0.00s)\n\tfailing_test.go:1: no\nFAIL\nFAIL\t%s\t0.1s\n' "$p"; code=1 ;;
	example.test/*) printf 'ok  \t%s\t0.1s\n' "$p" ;;
	esac
done
exit $code
`, 0o755)
	t.Chdir(dir)
	t.Setenv("GO", filepath.Join(dir, "fakego"))
	t.Setenv("GOFLAGS", "-mod=mod")
	return calls
}

const (
	behind = "//go:build integration\n\n"
	apart  = behind + "//integration:apart\n\n"
)

var someTests = map[string]string{
	"a/a.go":                    "package a\n",
	"a/a_test.go":               "package a\n\nimport \"testing\"\n\nfunc TestUnit(*testing.T) {}\n",
	"a/engine_test.go":          behind + "package a_test\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) { m.Run() }\nfunc TestEngine(*testing.T) {}\nfunc Testament() {}\nfunc BenchmarkB(*testing.B) {}\n",
	"a/apart_test.go":           apart + "package a\n\nimport \"testing\"\n\nfunc TestApart(*testing.T) {}\n",
	"bench/b.go":                "package bench\n",
	"bench/b_test.go":           behind + "package bench\n\nimport \"testing\"\n\nfunc BenchmarkB(*testing.B) {}\n",
	"cmd/c/c.go":                "package c\n",
	"cmd/c/c_test.go":           apart + "package c\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\nfunc FuzzIt(*testing.F) {}\n",
	"z/z.go":                    "package z\n",
	"z/z_test.go":               apart + "package z\n\nimport \"testing\"\n\nfunc TestLate(*testing.T) {}\n",
	"plain/plain.go":            "package plain\n",
	"plain/plain_test.go":       "package plain\n\nimport \"testing\"\n\nfunc TestPlain(*testing.T) {}\n",
	"elsewhere/elsewhere.go":    "package elsewhere\n",
	"elsewhere/e_plan9_test.go": behind + "package elsewhere\n\nimport \"testing\"\n\nfunc TestPlan9(*testing.T) {}\n",
}

func found(t *testing.T) []tests {
	t.Helper()
	all, err := find()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLists(t *testing.T) {
	project(t, someTests)
	var out bytes.Buffer
	all := found(t)
	if err := write(&out, all, lanes); err != nil {
		t.Fatal(err)
	}
	want := "engine example.test/m/a TestEngine\napart example.test/m/a TestApart\napart example.test/m/cmd/c TestOther\napart example.test/m/cmd/c FuzzIt\napart example.test/m/z TestLate\n"
	if out.String() != want {
		t.Errorf("tests:\n%swant:\n%s", out.String(), want)
	}
	var packages []string
	for _, p := range all {
		packages = append(packages, p.Package)
	}
	if want := []string{"example.test/m/a", "example.test/m/bench", "example.test/m/cmd/c", "example.test/m/z"}; !slices.Equal(packages, want) {
		t.Errorf("packages %q, want %q", packages, want)
	}
	if err := do(false, false, "nowhere", false); err == nil || !strings.Contains(err.Error(), "pass engine or apart") {
		t.Errorf("a lane that is none: %v", err)
	}
}

func TestRunsEachTestOnce(t *testing.T) {
	calls := project(t, someTests)
	var out bytes.Buffer
	if err := run(&out, found(t), lanes, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(got)
	const common = "test -tags integration -p 1 -count 1 -timeout 80m -vet off -run "
	want := []string{
		common + "^(FuzzIt|TestApart|TestLate|TestOther)$ example.test/m/a example.test/m/z example.test/m/cmd/c",
		common + "^(TestEngine)$ example.test/m/a",
	}
	if !slices.Equal(got, want) {
		t.Errorf("called:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, want := range []string{"ok  \texample.test/m/a\t", "ok  \texample.test/m/cmd/c\t", "lane engine took", "lane apart took"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not said: %q\n%s", want, out.String())
		}
	}
}

// A failure of either lane is one of the whole, and does not keep the other from
// being run.
func TestFailureOfALane(t *testing.T) {
	for l, head := range map[lane]string{laneEngine: behind, laneApart: apart} {
		t.Run(string(l), func(t *testing.T) {
			files := map[string]string{
				"failing/f.go":      "package failing\n",
				"failing/f_test.go": head + "package failing\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n",
			}
			for name, text := range someTests {
				files[name] = text
			}
			project(t, files)
			var out bytes.Buffer
			err := run(&out, found(t), lanes, false)
			if err == nil || !strings.Contains(err.Error(), "lane "+string(l)+" failed") || strings.Count(err.Error(), "lane") != 1 {
				t.Errorf("error %v", err)
			}
			if got := out.String(); !strings.Contains(got, "--- FAIL: TestX (0.00s)\n\tfailing_test.go:1: no\nFAIL\nFAIL\texample.test/m/failing\t0.1s\n") || strings.Count(got, "ok  \t") != 4 {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	var writes []string
	b := &blocks{out: writer(func(p []byte) { writes = append(writes, string(p)) }), end: closingLine}
	for _, s := range []string{"--- FAIL: Te", "stX\n\tx_test.go:1: no\n", "FAIL\n", "FAIL\tp\t1s\nok  \tq\t2s\n?   \tr\t[no te", "st files]\nbegun", " and cut off"} {
		if _, err := b.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"--- FAIL: TestX\n\tx_test.go:1: no\nFAIL\nFAIL\tp\t1s\n", "ok  \tq\t2s\n", "?   \tr\t[no test files]\n", "begun and cut off"}
	if !slices.Equal(writes, want) {
		t.Errorf("written %q, want %q", writes, want)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// The lanes of this project: what would not be found is never run.
func TestOwnLanes(t *testing.T) {
	t.Chdir("../..")
	all := found(t)
	of := map[lane]map[string]bool{laneEngine: {}, laneApart: {}}
	for _, p := range all {
		for l, names := range p.Names {
			if len(names) > 0 {
				of[l][strings.TrimPrefix(p.Package, "github.com/percore/percore/")] = true
			}
		}
	}
	for l, want := range map[lane][]string{
		laneEngine: {"cmd/percore", "internal/lab", "internal/lab/engine", "internal/doctor"},
		laneApart:  {"cmd/percore", "infra", "internal/machines/aws", "internal/machines/terraform", "internal/report", "scripts"},
	} {
		for _, p := range want {
			if !of[l][p] {
				t.Errorf("no test of %s runs in the lane %s", p, l)
			}
		}
	}
	if of[laneEngine]["internal/plan"] || of[laneApart]["internal/plan"] {
		t.Error("a package without integration tests is in a lane")
	}
}
