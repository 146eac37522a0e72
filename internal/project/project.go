// Package project is the part of the checkout that a run reads: suites,
// profiles, infrastructure, the playbook and the guest program's sources. The
// program carries it, so that it works where there is no checkout.
package project

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/percore/percore/ansible"
	"github.com/percore/percore/candidates"
	"github.com/percore/percore/cmd"
	"github.com/percore/percore/infra"
	"github.com/percore/percore/internal/guest"
	"github.com/percore/percore/profiles"
)

// mark is a file that every checkout has and no other folder.
const mark = "candidates/oauth-events/suite.yaml"

// trees are the embedded folders and where they stand in a checkout.
var trees = []struct {
	dir   string
	files fs.FS
}{
	{"ansible", ansible.Files},
	{"candidates", candidates.Files},
	{"cmd", cmd.Guest},
	{"infra", infra.Files},
	{"internal/guest", guest.Files},
	{"profiles", profiles.Files},
}

// Is reports whether a folder is a checkout, or holds the same files.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(mark)))
	return err == nil
}

// Above returns the nearest checkout at or above a folder; "" when there is none.
func Above(dir string) string {
	for {
		if Is(dir) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// Unpack writes the files that the program carries to a folder of their own
// below dir and returns it. The folder's name is a digest of them, so that
// programs of several versions do not disturb one another; files that are there
// and hold the same are left alone, others are replaced.
func Unpack(dir string) (string, error) {
	files := map[string][]byte{}
	for _, t := range trees {
		err := fs.WalkDir(t.files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(t.files, name)
			files[path.Join(t.dir, name)] = data
			return err
		})
		if err != nil {
			return "", fmt.Errorf("reading the embedded folder %s: %w", t.dir, err)
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	digest := sha256.New()
	for _, name := range names {
		fmt.Fprintf(digest, "%d:%s%d:%s", len(name), name, len(files[name]), files[name])
	}
	root := filepath.Join(dir, hex.EncodeToString(digest.Sum(nil))[:16])
	for _, name := range names {
		if err := write(filepath.Join(root, filepath.FromSlash(name)), files[name]); err != nil {
			return "", fmt.Errorf("unpacking percore's own files: %w", err)
		}
	}
	return root, nil
}

// write makes a file hold the data, and replaces it at once or not at all.
func write(name string, data []byte) error {
	switch was, err := os.ReadFile(name); {
	case err == nil && bytes.Equal(was, data):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(name, data, 0o644)
}
