package study

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
)

// Find turns what a person typed into a folder that figures can be read from: a
// run's, which store.Find finds in the folder of all results, or a raw folder of
// the published study, and says whether it is the latter. Of a folder that is
// neither it names those below it.
func Find(results, arg string) (dir string, studys bool, err error) {
	if dir, err = store.Find(results, arg); err != nil {
		return "", false, err
	}
	if store.IsRun(dir) {
		return dir, false, nil
	}
	if found := Locate(dir); found != "" {
		return found, true, nil
	}
	if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) == store.RawDir {
		parent := filepath.Dir(abs) // the raw files themselves were named
		return parent, !store.IsRun(parent), nil
	}
	var below []string
	for _, pattern := range []string{"*", "results/*"} {
		hits, _ := fs.Glob(os.DirFS(dir), pattern) // the folder's own name is no pattern
		for _, hit := range hits {
			hit = filepath.Join(dir, filepath.FromSlash(hit))
			if info, err := os.Lstat(hit); err == nil && info.IsDir() && (store.IsRun(hit) || Is(hit)) {
				below = append(below, hit)
			}
		}
	}
	switch n := len(below); {
	case n == 1:
		return "", false, fail.In(dir, "this is not a results folder").Try("pass %s instead", below[0])
	case n > 1:
		more := ""
		if n > 4 {
			more = fmt.Sprintf(" and %d more", n-4)
		}
		return "", false, fail.In(dir, "this is not a results folder").Try("pass one of those below it: %s%s", strings.Join(below[:min(n, 4)], ", "), more)
	}
	return dir, false, nil // opening it says what is missing
}
