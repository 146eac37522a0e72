// Package cgtrees holds kernel files of three cgroup layouts (testdata/README.md
// says where they come from), for the tests of the sampler and of the reader of
// what it writes.
package cgtrees

import (
	"bytes"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

//go:embed all:testdata
var data embed.FS

// FS returns the files of all layouts, each in a folder of its name: v1, v2 and
// hybrid.
func FS(tb testing.TB) fs.FS {
	tb.Helper()
	sub, err := fs.Sub(data, "testdata")
	if err != nil {
		tb.Fatal(err)
	}
	return sub
}

// Samples returns what the sampler wrote on the host of a layout.
func Samples(tb testing.TB, layout string) []byte {
	tb.Helper()
	text, err := fs.ReadFile(FS(tb), layout+"/host.cg.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Unpack writes a layout to a temporary folder, makes its mountinfo say that the
// cgroups are mounted there, and returns where they and the proc file system are.
func Unpack(tb testing.TB, layout string) (root, proc string) {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tree, err := fs.Sub(FS(tb), layout)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(dir, tree); err != nil {
		tb.Fatal(err)
	}
	root, proc = filepath.Join(dir, "cgroup"), filepath.Join(dir, "proc")
	mounts := filepath.Join(proc, "self", "mountinfo")
	before, err := os.ReadFile(mounts)
	if err != nil {
		tb.Fatal(err)
	}
	after := bytes.ReplaceAll(before, []byte("/sys/fs/cgroup"), []byte(root))
	if bytes.Equal(before, after) {
		tb.Fatalf("%s of layout %s does not name /sys/fs/cgroup", mounts, layout)
	}
	if err := os.WriteFile(mounts, after, 0o644); err != nil {
		tb.Fatal(err)
	}
	return root, proc
}
