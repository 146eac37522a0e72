package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

const studyFolder = "../../internal/evidence/study/testdata/php-go-bench"

// call runs one command line and returns what it printed.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// recorded makes a results folder with one run that holds one window.
func recorded(t *testing.T) (results, id string) {
	t.Helper()
	results = t.TempDir()
	s, err := store.Create(results, store.Run{
		ID: "20261130-abc", Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Flavour: plan.FlavourDebian,
		Profile: plan.Profile{Name: "small"},
		Suite:   plan.Suite{Name: "oauth-events", Scenarios: []plan.Scenario{{ID: "auth"}}, Candidates: []plan.Candidate{{ID: "go"}}},
		Preset:  plan.Preset{Name: "smoke", Phases: []plan.Phase{{ID: "ceiling", Kind: plan.KindCeiling, Repetitions: 1, Connections: []int{16}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := store.WindowResult{Window: plan.Window{Phase: "ceiling", Kind: plan.KindCeiling, Candidate: "go", Scenario: "auth", Repetition: 1, Connections: 16, Seconds: 2}, Attempt: 1}
	w.OHA = store.RawPath(w.Window, 1, store.RawOHA)
	data, err := os.ReadFile(filepath.Join(studyFolder, "results/2026-09-16/raw/ceil_go_read_c256_r1.json"))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := s.WriteRaw(w.OHA, data)
	if err != nil {
		t.Fatal(err)
	}
	w.SHA256 = map[string]string{w.OHA: digest}
	var figures measure.Window
	if figures, err = s.Measure(w); err != nil {
		t.Fatal(err)
	}
	w.Measured = &figures
	for _, e := range []store.Event{{Type: store.EventRunStarted}, {Type: store.EventVerify, Message: "go"}, {Type: store.EventWindow, Window: &w}, {Type: store.EventRunEnded, Message: store.StateComplete}} {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return results, "20261130-abc"
}

// TestReportOfTheStudy takes the study's rows out of `percore report` as a user
// would.
func TestReportOfTheStudy(t *testing.T) {
	code, out, errs := call("report", studyFolder, "--format", "csv")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	theirs, err := os.ReadFile(filepath.Join(studyFolder, "results/2026-09-16/summary.csv"))
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if strings.Contains("\n"+string(theirs), "\n"+line+"\n") {
			equal++
		} else if !strings.HasPrefix(line, "rate,fpm,read,50000,1,") {
			t.Errorf("not in summary.csv: %s", line)
		}
	}
	if equal != 5 { // the header and four complete cells
		t.Errorf("%d lines are in summary.csv, want 5", equal)
	}
	if !strings.Contains(errs, "rate php-fpm read: incomplete: 1 of 5") {
		t.Errorf("the incomplete cell is not named: %s", errs)
	}
}

// TestNotesBesideACSV: a table without room for notes leaves them to the terminal.
func TestNotesBesideACSV(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(studyFolder, "results/2026-09-16"))); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(dir, "raw", "rate_go_write_q10000_r5.json")
	if err := os.Rename(alone, filepath.Join(dir, "raw", "rate_go_write_q10000_r9.json")); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call("report", dir, "--csv")
	for _, want := range []string{
		"note: samples without a load-generator file beside them were left aside: rate_go_write_q10000_r5.res.jsonl\n",
		"note: windows that the protocol does not ask for, by their repetition or their target, count like the others: rate_go_write_q10000_r9.json\n",
	} {
		if code != 0 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, %q is not in %s", code, want, errs)
		}
	}
}

func TestReportOfARun(t *testing.T) {
	results, id := recorded(t)
	for _, arg := range []string{id, "2026", "latest", filepath.Join(results, id)} {
		code, out, errs := call("--results", results, "report", arg)
		if code != 0 || !strings.Contains(out, "percore run "+id+" (complete)") || !strings.Contains(out, "Not comparable") {
			t.Errorf("report %s: exit code %d\n%s%s", arg, code, out, errs)
		}
	}
	if code, out, _ := call("--results", results, "show", id); code != 0 || !strings.Contains(out, "Progress") {
		t.Errorf("show: exit code %d\n%s", code, out)
	}
	if code, out, _ := call("--results", results, "ls"); code != 0 || !strings.Contains(out, id) || !strings.Contains(out, "1/1") {
		t.Errorf("ls: exit code %d\n%s", code, out)
	}
	code, out, _ := call("--results", results, "ls", "--json")
	var list []store.Summary
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 1 || list[0].State != store.StateComplete {
		t.Errorf("ls --json: exit code %d, %v\n%s", code, err, out)
	}
	file := filepath.Join(t.TempDir(), "report.md")
	if code, _, errs := call("--results", results, "report", id, "--format", "md", "--out", file); code != 0 {
		t.Errorf("--out: %s", errs)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "# percore run") {
		t.Errorf("%.40q, %v", data, err)
	}
	code, _, errs := call("--results", results, "report", id, "--out", file)
	if code != fail.CodeInput || !strings.Contains(errs, "--force") {
		t.Errorf("replacing a report: exit code %d, %s", code, errs)
	}
}

func TestReportVerifies(t *testing.T) {
	results, id := recorded(t)
	if code, _, errs := call("--results", results, "report", id, "--verify"); code != 0 || !strings.Contains(errs, "verified: 1 attempts") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	const raw = "raw/ceiling/go_auth_c16_r1_a1.oha.json"
	if err := os.Truncate(filepath.Join(results, id, raw), 100); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call("--results", results, "report", id, "--verify")
	if code != fail.CodeInput || !strings.Contains(errs, "digest differs") || !strings.Contains(errs, "cut off") || strings.Count(errs, raw) != 1 || !strings.Contains(errs, ": 1 raw file(s)") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestReportVerifiesTheLog: what the log has lost is no less than a raw file.
func TestReportVerifiesTheLog(t *testing.T) {
	results, id := recorded(t)
	name := filepath.Join(results, id, store.EventsFile)
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(log), "\n")
	if err := os.WriteFile(name, []byte(strings.Join(lines[2:], "")), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("--results", results, "report", id, "--verify"); code != fail.CodeInput || !strings.Contains(errs, "first lines are lost") || !strings.Contains(errs, "contract check of go") || !strings.Contains(errs, "log of the run is not whole;") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if err := os.WriteFile(name, []byte(lines[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("--results", results, "report", id, "--verify"); code != 0 || !strings.Contains(errs, "nothing to verify") || strings.Contains(errs, "agrees") {
		t.Errorf("an empty run: exit code %d, %s", code, errs)
	}
}

// TestRawFilesAreChecked: no figure is shown whose raw file is gone, unless a
// user asks for it.
func TestRawFilesAreChecked(t *testing.T) {
	results, id := recorded(t)
	const raw = "raw/ceiling/go_auth_c16_r1_a1.oha.json"
	plan := []string{"plan", id, "--rate", "1000", "--mix", "auth=1"}
	commands := [][]string{{"compare", "published", id}, {"claims", id}, plan, {"report", id}}
	for _, f := range []string{"html", "md", "csv", "json", "bench"} {
		commands = append(commands, []string{"report", id, "--" + f})
	}
	before := map[string]int{}
	for _, args := range commands {
		before[strings.Join(args, " ")], _, _ = call(append([]string{"--results", results}, args...)...)
	}
	if err := os.RemoveAll(filepath.Join(results, id, "raw")); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		args = append([]string{"--results", results}, args...)
		code, out, errs := call(args...)
		if code != fail.CodeInput || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, raw) || !strings.Contains(errs, "missing") || !strings.Contains(errs, "--no-verify") {
			t.Errorf("%v: exit code %d, %.60q, %s", args[2:], code, out, errs)
		}
		code, out, errs = call(append(args, "--no-verify")...)
		if code != before[strings.Join(args[2:], " ")] || !strings.Contains(out+errs, "raw files were not checked") {
			t.Errorf("%v --no-verify: exit code %d, %.60q, %s", args[2:], code, out, errs)
		}
	}
	if code, _, errs := call("--results", results, "ls"); code != 0 {
		t.Errorf("ls: exit code %d, %s", code, errs)
	}
	// What nothing can prove any more is not shown as a figure.
	if code, out, errs := call("--results", results, "show", id); code != 0 || !strings.Contains(out, raw+": this raw file is missing") || strings.Contains(out, "442,5") {
		t.Errorf("show: exit code %d, %s\n%s", code, errs, out)
	}
	if code, out, errs := call("--results", results, "show", id, "--no-verify"); code != 0 || !strings.Contains(out, "442,5") || !strings.Contains(errs, "not checked") {
		t.Errorf("show --no-verify: exit code %d, %s\n%s", code, errs, out)
	}
	if code, _, errs := call("--results", results, "report", id, "--verify", "--no-verify"); code != fail.CodeInput || !strings.Contains(errs, "exclude each other") {
		t.Errorf("--verify --no-verify: exit code %d, %s", code, errs)
	}
}

// TestFoldersNearARun names a folder a little beside the right one.
func TestFoldersNearARun(t *testing.T) {
	results, id := recorded(t)
	stamp := filepath.Join(studyFolder, "results/2026-09-16")
	for _, dir := range []string{stamp, filepath.Join(stamp, "raw"), filepath.Join(results, id, "raw")} {
		if code, _, errs := call("report", dir); code != 0 {
			t.Errorf("%s: exit code %d, %s", dir, code, errs)
		}
	}
	for dir, want := range map[string]string{
		filepath.Join(studyFolder, "results"): "pass " + stamp + " instead",
		results:                               "pass " + filepath.Join(results, id) + " instead",
		t.TempDir():                           "there is no run.json in it",
	} {
		code, _, errs := call("report", dir)
		if code != fail.CodeInput || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", dir, code, errs)
		}
	}
	if err := os.Remove(filepath.Join(results, id, store.RunFile)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"report", "show"} {
		if code, _, errs := call("--results", results, command, id); code != fail.CodeInput || !strings.Contains(errs, "run.json is missing") {
			t.Errorf("%s without run.json: exit code %d, %s", command, code, errs)
		}
	}
}

func TestBadReports(t *testing.T) {
	results, id := recorded(t)
	for _, args := range [][]string{
		{"report"}, {"report", "nothing"}, {"report", "/no/such/folder"}, {"report", id, "--format", "pdf"}, {"report", id, "--table", "x", "--format", "csv"},
		{"report", id, "--table", "gates"}, {"report", id, "--html", "--md"}, {"report", id, "--html", "--format", "csv"}, {"report", id, "--against", "published"}, {"report", id, "--html", "--against", "nothing"}, {"show", "nothing"}, {"report", t.TempDir()}, {"report", id, "--out", "/no/such/folder/x"},
		{"report", "published", "--csv", "--table", "windows"}, {"report", "published", "--verify"}, {"report", "published", "--no-verify"},
	} {
		code, out, errs := call(append([]string{"--results", results}, args...)...)
		if code != fail.CodeInput || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := call("--results", filepath.Join(results, "none"), "ls"); code != 0 || !strings.Contains(out, "no runs") {
		t.Errorf("ls of nothing: %d, %s", code, out)
	}
}

// TestReportFormats asks for each format by its short flag.
func TestReportFormats(t *testing.T) {
	results, id := recorded(t)
	for flag, want := range map[string]string{
		"--html": "<!doctype html>", "--md": "# percore run", "--csv": "phase,candidate", "--json": "{", "--bench": "# percore run",
	} {
		code, out, errs := call("--results", results, "report", id, flag)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d, %.60q, %s", flag, code, out, errs)
		}
		_, long, _ := call("--results", results, "report", id, "--format", strings.TrimPrefix(flag, "--"))
		if out != long {
			t.Errorf("%s writes something else than --format", flag)
		}
	}
	file := filepath.Join(t.TempDir(), "report.html")
	code, out, errs := call("--results", results, "report", id, "--html", "--out", file, "--against", "published")
	page, err := os.ReadFile(file)
	if code != 0 || out != "" || !strings.Contains(errs, file) || err != nil {
		t.Fatalf("exit code %d, %q, %s, %v", code, out, errs, err)
	}
	if text := string(page); !strings.Contains(text, "What travels") || !strings.Contains(text, "flavour debian") {
		t.Error("the comparison is not in the page, or the mismatch is not said")
	}
	if _, out, _ := call("--results", results, "report", id, "--html"); strings.Contains(out, "What travels") {
		t.Error("a run that is not comparable is compared unasked")
	}
	if _, out, _ := call("report", studyFolder, "--html"); !strings.Contains(out, "What travels") {
		t.Error("a run that is comparable is not compared")
	}
	if code, out, errs := call("--results", results, "report", id, "--html", "--against", "none"); code != 0 || strings.Contains(out, "What travels") {
		t.Errorf("--against none: exit code %d, %s", code, errs)
	}
}

// TestSharedCoresAreSaid: figures that were taken on shared cores are called so
// wherever a person reads them.
func TestSharedCoresAreSaid(t *testing.T) {
	results, id := recorded(t)
	st, err := store.Open(filepath.Join(results, id))
	if err != nil {
		t.Fatal(err)
	}
	run := st.Run()
	const caveat = "roles share cores (app and load share CPU 0): figures are not comparable with the published ones"
	run.Caveats = []string{caveat}
	if err := errors.Join(st.Lock(), st.SaveRun(run), st.Close()); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "md", "json", "html"} {
		if code, out, errs := call("--results", results, "report", id, "--format", format); code != 0 || !strings.Contains(out, caveat) {
			t.Errorf("%s: exit code %d, %s; the caveat is missing:\n%s", format, code, errs, out)
		}
	}
}

// TestSavedReports keeps every format beside a run, as a run does at its end.
func TestSavedReports(t *testing.T) {
	results, id := recorded(t)
	dir := filepath.Join(results, id)
	var out, errs bytes.Buffer
	if err := (&app{stdout: &out, stderr: &errs}).printReport(dir); err != nil {
		t.Fatal(err)
	}
	for _, ending := range []string{"html", "md", "csv", "json", "bench"} {
		if info, err := os.Stat(filepath.Join(dir, "report."+ending)); err != nil || info.Size() == 0 {
			t.Errorf("report.%s: %v", ending, err)
		}
	}
}
