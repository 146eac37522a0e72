package importer

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
)

const campaign = "../study/testdata/php-go-bench/results/2026-09-16"

func TestImport(t *testing.T) {
	results := t.TempDir()
	s, err := Import("../study/testdata/php-go-bench", results, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "study-2026-09-16" || s.Windows != 15 || s.Probes != 1 {
		t.Errorf("%+v", s)
	}
	st, err := store.Open(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	// Every file of the study is there, byte for byte, once.
	var all []string
	err = filepath.WalkDir(filepath.Join(s.Dir, store.RawDir), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string][]byte{}
	for _, p := range all {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		ours[filepath.Base(p)] = data
	}
	seen := 0
	err = filepath.WalkDir(campaign, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		seen++
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, ours[filepath.Base(p)]) {
			t.Errorf("%s is not the same", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(all) || seen != s.Files || seen < 30 {
		t.Errorf("%d files in the study's folder, %d in ours, %d counted", seen, len(all), s.Files)
	}
	// The folder verifies, and its figures are those read from the study's own.
	problems, err := st.Verify()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if problems, err = st.Rederive(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if problems := gates.Verify(st); len(problems) > 0 {
		t.Errorf("judged again: %v", problems)
	}
	if st.Summary().State != store.StateComplete {
		t.Errorf("state %s", st.Summary().State)
	}
	direct, err := study.Read(campaign)
	if err != nil {
		t.Fatal(err)
	}
	a, b := figures.FromStudy(direct), figures.FromStore(st)
	if b.Kind != figures.KindImported || b.Flavour != "published" || !b.Comparable {
		t.Errorf("identity: %+v", b)
	}
	if d := cmp.Diff(a.All(), b.All()); d != "" || a.Len() < 100 {
		t.Errorf("%d figures: %s", a.Len(), d)
	}
	// A damaged copy is noticed.
	name := filepath.Join(s.Dir, "raw", "study", "meta.json")
	if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if problems, err = st.Verify(); err != nil || len(problems) != 1 || !problems[0].Fatal {
		t.Errorf("%v, %v", problems, err)
	}
	// Twice is refused.
	if _, err := Import(campaign, results, ""); !fail.IsInput(err) {
		t.Errorf("%v", err)
	}
	if again, err := Import(campaign, results, "mine"); err != nil || again.ID != "mine" {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestImportOfWhatIsNoEvidence: a window that ended early stays one.
func TestImportOfWhatIsNoEvidence(t *testing.T) {
	from := t.TempDir()
	if err := os.CopyFS(from, os.DirFS(campaign)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(from, "raw", "rate_go_write_q10000_r1.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(data, []byte(`"total": 60.002878069`), []byte(`"total": 41.5`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Import(from, t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, w := range st.History().Windows() {
		if !w.Passed() {
			bad++
			if len(w.Gates) != 1 || w.Gates[0].Name != gates.Length {
				t.Errorf("%s: gates %+v", w.Window, w.Gates)
			}
		}
	}
	if bad != 1 {
		t.Errorf("%d windows are no evidence", bad)
	}
	if p := gates.Verify(st); len(p) > 0 {
		t.Errorf("judged again: %v", p)
	}
}

func TestBadFolders(t *testing.T) {
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, store.RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"missing": "no/such", "empty": t.TempDir(), "a run": run, "a file": "importer.go"} {
		if _, err := Import(dir, t.TempDir(), ""); !fail.IsInput(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Import(campaign, t.TempDir(), "../evil"); !fail.IsInput(err) {
		t.Errorf("bad id: %v", err)
	}
}
