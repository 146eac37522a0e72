// Package outfile writes the files that a person names, as the shell's own
// redirection would, but whole or not at all: links are followed, modes are
// kept, a new file's mode is what the umask leaves of 0666, and what is no
// regular file is written to and not replaced.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/percore/percore/internal/base/fail"
)

// maxLinks is how many links are followed, as the kernels do.
const maxLinks = 40

// Write writes a file that appears whole or not at all. A regular file of that
// name is an error that wraps [fs.ErrExist] unless replace is set. A device or a
// pipe is written to in either case: nothing in it is lost.
func Write(name string, data []byte, replace bool) error {
	target, err := follow(name)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = replaceFile(target, data, 0o666, false)
		if errors.Is(err, fs.ErrNotExist) {
			return fail.In(filepath.Dir(target), "there is no such folder").Try("make it first")
		}
	case err != nil:
	case info.IsDir():
		return fail.In(name, "this is a folder").Try("name a file")
	case !info.Mode().IsRegular():
		err = into(target, data)
	case !replace:
		return fail.In(name, "it exists already (%w)", fs.ErrExist).Try("choose another file or add %s", fail.Setting("force"))
	default:
		err = replaceFile(target, data, info.Mode().Perm(), true)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, cause(err))
	}
	return nil
}

// cause is an error without the name of a file that its reader does not know.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// follow is what a name stands for once links are followed, whether or not it
// is there.
func follow(name string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(name)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return name, nil // what is wrong is found when it is opened
		}
		to, err := os.Readlink(name)
		if err != nil {
			return "", cause(err)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", errors.New("its links do not end")
}

// into writes into what is there already.
func into(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func replaceFile(name string, data []byte, mode fs.FileMode, keep bool) error {
	tmp, err := Temp(name, mode)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails when it has been renamed, as it should
	if keep {
		// Best effort: drives of other systems refuse it, and have one mode for all.
		_ = tmp.Chmod(mode)
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

// Temp makes a new file beside the one of that name, for a rename to it. Its
// mode is what the umask leaves of the given one.
func Temp(name string, mode fs.FileMode) (*os.File, error) {
	return fresh(name, func(tmp string) (*os.File, error) {
		return os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	})
}

// TempDir makes a new folder beside the one of that name. Its mode is what the
// umask leaves of 0777.
func TempDir(name string) (string, error) {
	return fresh(name, func(tmp string) (string, error) { return tmp, os.Mkdir(tmp, 0o777) })
}

// fresh makes something under a name that nothing has yet.
func fresh[T any](name string, make func(tmp string) (T, error)) (made T, err error) {
	for range 1000 {
		tmp := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".tmp-"+strconv.FormatUint(uint64(rand.Uint32()), 36))
		if made, err = make(tmp); !errors.Is(err, fs.ErrExist) {
			return made, err
		}
	}
	return made, err
}
