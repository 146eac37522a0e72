package hoststest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// prepared are the files that preparing a host makes. The hosts share this
// machine's file system, so they are made here.
var prepared = []string{
	"/etc/sysctl.d/90-percore.conf", "/etc/ssh/sshd_config.d/00-percore.conf", "/etc/apt/apt.conf.d/99percore", "/var/lib/percore",
}

// Preparing is called by a test that prepares hosts, before it starts them. It
// waits until no other test does the same, and when the test ends it removes
// the files that preparing has made and this machine did not have.
func Preparing(t testing.TB) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "percore-hosts-preparing.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatalf("hoststest: %v", err)
	}
	t.Cleanup(func() {
		if err := lock.Close(); err != nil {
			t.Errorf("hoststest: %v", err)
		}
	})
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("hoststest: waiting for another test that prepares hosts: %v", err)
	}
	for _, path := range prepared {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			t.Cleanup(func() {
				if err := os.RemoveAll(path); err != nil {
					t.Errorf("hoststest: %v", err)
				}
			})
		}
	}
}
