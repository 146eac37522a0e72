package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/percore/percore/internal/base/fail"
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

// pending writes data to a new file beside name, which has the mode that the
// umask leaves of 0666, and syncs it.
func pending(name string, data []byte) (*renameio.PendingFile, error) {
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)), renameio.WithPermissions(0o666))
	if err != nil {
		return nil, diskError("writing", name, err)
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, diskError("writing", name, errors.Join(err, f.Cleanup()))
	}
	return f, nil
}

// replace makes a file appear whole under a name, in place of what has it.
func replace(name string, data []byte) error {
	f, err := pending(name, data)
	if err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return diskError("writing", name, errors.Join(err, f.Cleanup()))
	}
	syncDir(filepath.Dir(name))
	return nil
}

// writeNew makes a file appear whole under a name that must be free.
func writeNew(name string, data []byte) error {
	tmp, err := pending(name, data)
	if err != nil {
		return err
	}
	defer func() { _ = tmp.Cleanup() }() // of a file that was renamed nothing is left
	err = os.Link(tmp.Name(), name)
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
		if err := tmp.CloseAtomicallyReplace(); err != nil {
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
func lockExclusive(name string) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	lock := flock.New(name, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o666))
	_, err := lock.TryLockContext(ctx, 20*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) {
		who := ""
		if data, err := os.ReadFile(name); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
				who = fmt.Sprintf(" (process %d)", pid)
			}
		}
		return nil, fail.In(filepath.Dir(name), "another percore%s is measuring into this run", who).Try("wait for it to end or stop it")
	}
	if err != nil {
		return nil, diskError("locking", name, err)
	}
	_ = os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o666) // only for the sentence above
	return lock, nil
}

// locked reports whether a process holds the lock of a results folder.
func locked(dir string) bool {
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err == nil && free {
		_ = lock.Close()
	}
	return err == nil && !free
}

// Writable reports why runs cannot be made in a results folder, before there is
// one. It makes the folder.
func Writable(results string) error {
	if err := os.MkdirAll(results, 0o777); err != nil {
		return diskError("making the results folder", results, err)
	}
	f, err := os.CreateTemp(results, ".writable-")
	if err != nil {
		return diskError("writing to the results folder", results, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Discard closes the store and removes the folder of a run in which nothing was
// measured; latest names the newest of the others again.
func (s *Store) Discard() error {
	results, events := filepath.Dir(s.dir), s.History().Events
	for _, e := range events {
		if e.Type != EventRunStarted && e.Type != EventRunEnded {
			return s.Close() // there is something in it
		}
	}
	if err := errors.Join(s.Close(), os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("removing the folder of a run that was refused: %w", err)
	}
	if last, err := newest(results); err == nil {
		pointLatest(results, filepath.Base(last))
		return nil
	}
	link := filepath.Join(results, latest)
	if info, err := os.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return os.Remove(link)
	}
	return nil
}
