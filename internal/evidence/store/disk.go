package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/outfile"
)

// latest is the link to the newest run.
const latest = "latest"

// diskError says in one sentence what went wrong with a path. A full disk and a
// missing permission name their remedy.
func diskError(doing, name string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	cause := err
	switch {
	case errors.As(err, &pe):
		cause = pe.Err
	case errors.As(err, &le):
		cause = le.Err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fail.Work("%s %s: %w", doing, name, cause).Try("free space there and carry on with %s, nothing measured so far is lost", fail.Call("run", fail.Setting("resume")))
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fail.Work("%s %s: %w", doing, name, cause).Try("make the folder writable or name another with %s", fail.Setting("results"))
	}
	return fmt.Errorf("%s %s: %w", doing, name, cause)
}

// writeTemp writes data to a new file beside name and syncs it.
func writeTemp(name string, data []byte) (tmp string, err error) {
	f, err := outfile.Temp(name, 0o666)
	if err != nil {
		return "", diskError("writing", name, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", diskError("writing", name, err)
	}
	return f.Name(), nil
}

// writeNew makes a file appear whole under a name that must be free.
func writeNew(name string, data []byte) error {
	tmp, err := writeTemp(name, data)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	err = os.Link(tmp, name)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrExist):
		return exists(name)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EMLINK):
		// No hard links here: reserve the name, then put the file in its place.
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return exists(name)
		}
		if err != nil {
			return diskError("writing", name, err)
		}
		f.Close()
		if err := os.Rename(tmp, name); err != nil {
			return diskError("writing", name, err)
		}
	default:
		return diskError("writing", name, err)
	}
	syncDir(filepath.Dir(name))
	return nil
}

func exists(name string) error {
	return fmt.Errorf("writing %s: nothing measured is ever overwritten (%w)", name, fs.ErrExist)
}

// syncDir makes a rename or a new name last. Not every file system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// pointLatest makes results/latest a link to a run, unless something that is
// not a link has that name. It is a convenience: failing is no error.
func pointLatest(results, id string) {
	name := filepath.Join(results, latest)
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return
	}
	tmp := filepath.Join(results, ".latest-"+id)
	os.Remove(tmp)
	if os.Symlink(id, tmp) == nil && os.Rename(tmp, name) != nil {
		os.Remove(tmp)
	}
}

// lockExclusive takes the lock file for this process. The lock ends with the
// process, however it ends. A reader looks at the lock for an instant, so it is
// tried for a moment before it is refused.
func lockExclusive(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, diskError("opening", name, err)
	}
	for try := 0; ; try++ {
		err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || try == 10 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		who := ""
		if data, err := os.ReadFile(name); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				who = fmt.Sprintf(" (process %d)", pid)
			}
		}
		f.Close()
		return nil, fail.In(filepath.Dir(name), "another percore%s is measuring into this run", who).Try("wait for it to end or stop it")
	}
	if err != nil {
		f.Close()
		return nil, diskError("locking", name, err)
	}
	// Only for the sentence above.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// locked reports whether a process holds the lock of a results folder.
func locked(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
