package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mode(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// The umask belongs to the process: no test of this package runs beside this one.
func TestNewFile(t *testing.T) {
	for _, mask := range []int{0o022, 0o077, 0o002} {
		old := syscall.Umask(mask)
		name := filepath.Join(t.TempDir(), "new.txt")
		err := Write(name, []byte("text"), false)
		dir, errDir := TempDir(name)
		syscall.Umask(old)
		if err != nil || errDir != nil {
			t.Fatal(err, errDir)
		}
		if got, want := mode(t, name), fs.FileMode(0o666&^mask); got != want || read(t, name) != "text" {
			t.Errorf("umask %03o: mode %v, want %v", mask, got, want)
		}
		if got, want := mode(t, dir), fs.ModeDir|fs.FileMode(0o777&^mask); got != want {
			t.Errorf("umask %03o: folder of mode %v, want %v", mask, got, want)
		}
	}
}

func TestExistingFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []fs.FileMode{0o640, 0o600, 0o666} {
		if err := os.Chmod(name, m); err != nil {
			t.Fatal(err)
		}
		if err := Write(name, []byte("new"), false); !fail.IsInput(err) || !errors.Is(err, fs.ErrExist) || !strings.Contains(said.Err(err), "--force") {
			t.Errorf("without replacing: %v", err)
		}
		if err := Write(name, []byte("text of "+m.String()), true); err != nil {
			t.Fatal(err)
		}
		if got := mode(t, name); got != m || read(t, name) != "text of "+m.String() {
			t.Errorf("mode %v became %v", m, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	target := filepath.Join(other, "target")
	if err := os.WriteFile(target, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	twice := filepath.Join(dir, "twice")
	dangling := filepath.Join(dir, "dangling")
	loop := filepath.Join(dir, "loop")
	for name, to := range map[string]string{link: target, twice: "link", dangling: filepath.Join(other, "later"), loop: "loop"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(twice, []byte("new"), true); err != nil {
		t.Fatal(err)
	}
	if read(t, target) != "new" || mode(t, target) != 0o640 || mode(t, link)&fs.ModeSymlink == 0 || mode(t, twice)&fs.ModeSymlink == 0 {
		t.Error("a link was not followed")
	}
	if err := Write(dangling, []byte("later"), false); err != nil || read(t, filepath.Join(other, "later")) != "later" || mode(t, dangling)&fs.ModeSymlink == 0 {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := Write(loop, nil, true); err == nil || !strings.Contains(err.Error(), "do not end") {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestDevicesAndPipes(t *testing.T) {
	before := mode(t, os.DevNull)
	if err := Write(os.DevNull, []byte("gone"), true); err != nil || mode(t, os.DevNull) != before {
		t.Errorf("%v, %v became %v", err, before, mode(t, os.DevNull))
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	got := make(chan string)
	go func() {
		f, err := os.Open(fifo)
		if err != nil {
			got <- err.Error()
			return
		}
		data, _ := io.ReadAll(f)
		got <- string(data)
	}()
	if err := Write(fifo, []byte("through"), false); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "through" || mode(t, fifo)&fs.ModeNamedPipe == 0 {
		t.Errorf("%q came out of %v", text, mode(t, fifo))
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{dir: "this is a folder; name a file", filepath.Join(dir, "none", "x"): "there is no such folder; make it first"} {
		if err := Write(name, nil, true); !fail.IsInput(err) || !strings.Contains(said.Err(err), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
