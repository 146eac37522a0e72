// Package infile reads the small files that a person names: claims, studies,
// prices.
package infile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/percore/percore/internal/base/fail"
)

// Read reads a regular file of at most limit bytes. What stands for its content
// in errors, as in "claims"; like is a file that is one. A device or a pipe is
// refused before it is opened, since it might never end.
func Read(name string, limit int64, what, like string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail.In(name, "there is no such file").Try("name one for %s like %s", what, like)
	case err != nil:
		return nil, fail.Input("reading %s: %w", what, err).Try("name a file like %s", like)
	case info.IsDir():
		return nil, fail.In(name, "this is a folder").Try("name a file for %s like %s", what, like)
	case !info.Mode().IsRegular():
		return nil, fail.In(name, "this is a device or a pipe and not a regular file").Try("name one for %s like %s", what, like)
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fail.Input("reading %s: %w", what, err).Try("allow it or name another file")
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, fail.In(name, "a file of more than %d bytes is too large for %s", limit, what).Try("name another")
	}
	return data, nil
}

// ReadFS is Read for a file among others: of the project, or of the folder of a
// suite. No such file is an error that is fs.ErrNotExist too.
func ReadFS(files fs.FS, name string, limit int64, what, like string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail.In(name, "there is no such file (%w)", fs.ErrNotExist).Try("make one for %s like %s", what, like)
	case err != nil:
		return nil, fail.Input("reading %s: %w", what, err).Try("name a file like %s", like)
	case !info.Mode().IsRegular():
		return nil, fail.In(name, "this is not a regular file").Try("make one for %s like %s", what, like)
	case info.Size() > limit:
		return nil, fail.In(name, "a file of more than %d bytes is too large for %s", limit, what).Try("make it smaller")
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	return data, nil
}
