package main

import (
	"path/filepath"
	"testing"
)

// TestRelativeFolders: ssh and Ansible work in folders of their own, and would
// look for what is named from another one.
func TestRelativeFolders(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in, want app
	}{
		{app{root: "../..", results: "some/runs"}, app{root: root, results: filepath.Join(here, "some/runs")}},
		{app{root: "../../"}, app{root: root, results: filepath.Join(root, "results")}},
		{app{results: "../runs/"}, app{root: root, results: filepath.Join(filepath.Dir(here), "runs")}},
	} {
		a := tt.in
		if err := a.findRoot(); err != nil || a.root != tt.want.root || a.results != tt.want.results {
			t.Errorf("%+v: %q, %q, %v", tt.in, a.root, a.results, err)
		}
	}
	// Some commands need only the one folder.
	a := app{root: t.TempDir(), results: "runs"}
	if err := a.findRoot(); err == nil || a.results != filepath.Join(here, "runs") {
		t.Errorf("without a project: %q, %v", a.results, err)
	}
}
