package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// dockerfileName is the Dockerfile's name in every build context.
const dockerfileName = "Dockerfile"

// authoritiesName is the file in a build context that holds the certificate
// authorities of the driver's machine. It belongs to the surroundings of a
// build, not to what is built, so no hash covers it.
const authoritiesName = "authorities.crt"

// file is one regular file of a build context.
type file struct {
	name string // slash-separated path in the context
	data []byte
}

// fileMode is every file's in a build context. Neither a checkout's umask nor
// files embedded in a program, which have no modes, may change a hash: what has to
// be executable is made so by the Dockerfile.
const fileMode = 0o644

// contextFiles reads the files of a recipe's build context from the project,
// the Dockerfile among them, sorted by name.
func contextFiles(project fs.FS, r Recipe) ([]file, error) {
	if r.Method != Dockerfile {
		return nil, nil
	}
	files := map[string]file{}
	add := func(f file) error {
		if _, taken := files[f.name]; taken && f.name != dockerfileName {
			return fmt.Errorf("the build context of image %s has two files %s", r.Name, f.name)
		}
		files[f.name] = f
		return nil
	}
	for _, c := range r.Context {
		found, err := collect(project, c)
		if err != nil {
			return nil, fmt.Errorf("reading the build context of image %s: %w", r.Name, err)
		}
		for _, f := range found {
			if err := add(f); err != nil {
				return nil, err
			}
		}
	}
	// Last, so that it takes the place of a Dockerfile found in a folder.
	data, err := readFile(project, r.Dockerfile)
	if err != nil {
		return nil, missing(err, r.Dockerfile)
	}
	if err := add(file{name: dockerfileName, data: data}); err != nil {
		return nil, err
	}
	sorted := make([]file, 0, len(files))
	for _, f := range files {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return sorted, nil
}

// collect reads what one Copy names. Files and folders whose names begin with a
// dot, and folders named testdata, are no part of any image.
func collect(project fs.FS, c Copy) ([]file, error) {
	info, err := fs.Stat(project, c.From)
	if err != nil {
		return nil, missing(err, c.From)
	}
	if !info.IsDir() {
		data, err := readFile(project, c.From)
		return []file{{name: c.To, data: data}}, err
	}
	var found []file
	err = fs.WalkDir(project, c.From, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if p != c.From && (strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~")) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if base == "testdata" || base == "vendor" {
				return fs.SkipDir
			}
			return nil
		}
		if !c.takes(base) {
			return nil
		}
		if !d.Type().IsRegular() {
			return fail.Input("%s is not a regular file: a build context holds nothing else", p).Try("replace it by a file")
		}
		data, err := readFile(project, p)
		if err != nil {
			return err
		}
		found = append(found, file{name: path.Join(c.To, strings.TrimPrefix(p, c.From)), data: data})
		return nil
	})
	return found, err
}

func (c Copy) takes(base string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, base)
			return err == nil && ok
		})
	}
	return (len(c.Only) == 0 || matches(c.Only)) && !matches(c.Except)
}

func readFile(project fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(project, name)
	return lineFeeds(data), err
}

// lineFeeds ends the lines of a text as Linux does: a checkout or an archive may
// have been made where they end otherwise, and a shell takes the rest of the
// ending for a part of the line.
func lineFeeds(data []byte) []byte {
	if bytes.IndexByte(data, 0) >= 0 {
		return data // no text
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

func missing(err error, p string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fail.Input("%s is missing from the project", p).Try("restore the file, or run percore inside a complete checkout")
	}
	return err
}

// contextTime is when every file of a build context was last changed, so that
// the same sources give the same layers. It is not 0: opcache takes a file of
// that age for one without a time and compiles it anew for every request.
var contextTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// archive writes a build context as a tar that depends on nothing but names,
// modes and contents of the files.
func archive(files []file) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: fileMode, Size: int64(len(f.data)),
			ModTime: contextTime, Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a build context: %w", err)
	}
	return buf.Bytes(), nil
}

// hash is the identity of an image: what it is made of, its parents by their
// tags, and the architecture it is made for.
func hash(flavour, arch string, r Recipe, files []file, parents map[string]string) string {
	h := sha256.New()
	field := func(parts ...string) {
		for _, p := range parts {
			// Lengths keep "ab"+"c" and "a"+"bc" apart.
			fmt.Fprintf(h, "%d:%s", len(p), p)
		}
		fmt.Fprintln(h)
	}
	field("percore image", "1")
	field("flavour", flavour)
	field("arch", arch)
	field("name", r.Name)
	field("method", string(r.Method))
	for _, k := range sortedKeys(r.Args) {
		field("arg", k, r.Args[k])
	}
	for _, k := range sortedKeys(parents) {
		field("from", k, parents[k])
	}
	for _, f := range files {
		field("file", f.name, fmt.Sprintf("%o", fileMode), string(f.data))
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
