package project

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const checkout = "../.."

// What the program carries is what git has of the same folders, but for what no
// run reads: tests, documents and Go files of the embedding itself.
func TestUnpackIsTheCheckout(t *testing.T) {
	root, err := Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !Is(root) || Above(filepath.Join(root, "profiles", "presets")) != root {
		t.Errorf("%s is not taken for a checkout", root)
	}
	out, err := exec.Command("git", "-C", checkout, "ls-files", "-z", "ansible", "candidates", "cmd/guest", "infra", "internal/guest", "profiles").Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	tracked := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		tracked[name] = true
	}
	embedding := map[string]bool{"ansible/ansible.go": true, "candidates/candidates.go": true, "infra/infra.go": true, "internal/guest/guest.go": true, "profiles/profiles.go": true}
	unread := func(name string) bool {
		return embedding[name] || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".md") || strings.Contains(name, "/testdata/") || filepath.Base(name) == "LICENSE" ||
			strings.HasPrefix(filepath.Base(name), ".")
	}
	for name := range tracked {
		want, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil || unread(name) {
			continue
		}
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not carried as it is: %v", name, err)
		}
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err == nil && !tracked[filepath.ToSlash(name)] {
			if _, err := os.Stat(filepath.Join(checkout, name)); err == nil {
				t.Logf("%s is carried and not in git yet", name)
			} else {
				t.Errorf("%s is carried and in no checkout", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A second time nothing is written, and what was changed is put right.
func TestUnpackAgain(t *testing.T) {
	dir := t.TempDir()
	root, err := Unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	changed, same := filepath.Join(root, "profiles", "small.yaml"), filepath.Join(root, "profiles", "m4pro.yaml")
	if err := os.WriteFile(changed, []byte("name: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(same)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Unpack(dir); err != nil || again != root {
		t.Fatalf("%s, %v", again, err)
	}
	if text, err := os.ReadFile(changed); err != nil || string(text) == "name: x\n" {
		t.Errorf("a changed file stays: %q, %v", text, err)
	}
	if after, err := os.Stat(same); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that holds the same was replaced: %v", err)
	}
}

func TestUnpackWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
