package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/said"
)

func TestFind(t *testing.T) {
	const theirs = "testdata/php-go-bench/results/2026-09-16"
	for _, typed := range []string{theirs, theirs + "/raw", "testdata/php-go-bench"} {
		if dir, studys, err := Find(t.TempDir(), typed); err != nil || !studys || filepath.Base(dir) != "2026-09-16" {
			t.Errorf("Find(%s) = %q, %v, %v", typed, dir, studys, err)
		}
	}
	above := t.TempDir()
	if err := os.CopyFS(filepath.Join(above, "theirs"), os.DirFS(theirs)); err != nil {
		t.Fatal(err)
	}
	_, _, err := Find(t.TempDir(), above)
	if err == nil || !strings.Contains(said.Err(err), filepath.Join(above, "theirs")) {
		t.Errorf("of a folder above one of the study's: %v, which does not name it", err)
	}
	if _, _, err := Find(t.TempDir(), "nothing"); err == nil || !strings.Contains(said.Err(err), `there is no run "nothing"`) {
		t.Errorf("of a name that is no run's: %v", err)
	}
}
