package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// v1 has a run of layout version 1 and what its percore printed of it.
const v1 = "../../internal/evidence/store/testdata/"

// TestReportOfVersion1: the figures of a run that was measured before the layout
// changed stay as they were, to the last digit, and so do its gates.
func TestReportOfVersion1(t *testing.T) {
	files, err := filepath.Glob(v1 + "v1-report/*")
	if err != nil || len(files) != 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"--root", "../..", "report", v1 + "v1-run", "--verify"}
		if table, ok := strings.CutSuffix(filepath.Base(file), ".csv"); ok {
			args = append(args, "--csv", "--table", table)
		} else {
			args = append(args, "--bench")
		}
		code, out, errs := call(args...)
		if code != 0 || out != string(want) {
			t.Errorf("%s: exit code %d, %s\n%s\nwant\n%s", filepath.Base(file), code, errs, out, want)
		}
	}
}
