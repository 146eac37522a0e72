package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/percore/percore/internal/base/fail"
)

// ProviderDir is the environment variable that names a folder to take the AWS
// provider from: one that holds the program terraform-provider-aws, or a mirror
// as `terraform providers mirror` lays it out.
const ProviderDir = "PERCORE_AWS_PROVIDER_DIR"

// offline is a provider that is on this machine already.
type offline struct {
	config  string // a CLI configuration
	install bool   // whether init has something to do
}

// provider reads the folder that ProviderDir names; nil where it names none.
func provider(dir string) (*offline, error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if programs, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "terraform-provider-aws*")); len(programs) > 0 {
		return &offline{config: fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"hashicorp/aws\" = %s\n  }\n  direct {}\n}\n", quote(dir))}, nil
	}
	if registries, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "*", "hashicorp", "aws")); len(registries) > 0 {
		return &offline{install: true, config: fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path    = %s\n    include = [\"hashicorp/aws\"]\n  }\n  direct {\n    exclude = [\"hashicorp/aws\"]\n  }\n}\n", quote(dir))}, nil
	}
	return nil, fail.Input("%s is %s, which holds neither terraform-provider-aws nor a mirror with hashicorp/aws", ProviderDir, dir).Try("write the folder of one of them, or leave it out")
}

// quote writes a string as HCL does.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(b))
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// filling is the file in a plugin cache that says that something is being put
// into it.
const filling = ".filling"

// cache takes the plugin cache for the time of one init, which writes to it
// unguarded, and returns what lets it go again. If an init that used it did not
// come to its end, what it left there cannot be told from a whole provider, and
// the cache is emptied.
func cache(dir string) (release func(ok bool), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the provider cache: %w", err)
	}
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the provider cache %s: %w", dir, err)
	}
	mark := filepath.Join(dir, filling)
	if _, err := os.Stat(mark); err == nil {
		entries, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"))
		for _, entry := range entries {
			if err == nil {
				err = os.RemoveAll(entry)
			}
		}
		if err != nil {
			lock.Close()
			return nil, fmt.Errorf("emptying the provider cache after an init that did not end: %w", err)
		}
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the provider cache: %w", err)
	}
	return func(ok bool) {
		if ok {
			_ = os.Remove(mark) // one that stays costs a download, no more
		}
		lock.Close()
	}, nil
}
