package hoststest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/percore/percore/internal/lab/engine"
)

// imageStore is the files of a set of images as an engine keeps them, from which
// other engines' files are linked: layers and their descriptions are never
// written in place. The stores of a process go with its last lab.
type imageStore struct {
	mu     sync.Mutex
	dir    string
	filled bool
}

var stores struct {
	sync.Mutex
	labs int
	of   map[string]*imageStore
}

// parts are the folders of an engine's data that hold images.
var parts = []string{"overlay2", "image"}

const storePrefix = "percore-hosts-images-"

func storeFolder() string {
	return filepath.Join(os.TempDir(), storePrefix+strconv.Itoa(os.Getpid()))
}

// holdStores keeps the stores until releaseStores, and removes those of
// processes that are gone.
func holdStores() {
	stores.Lock()
	defer stores.Unlock()
	stores.labs++
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), storePrefix+"*"))
	for _, dir := range old {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), storePrefix))
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir)
		}
	}
}

func releaseStores() error {
	stores.Lock()
	defer stores.Unlock()
	if stores.labs--; stores.labs > 0 {
		return nil
	}
	stores.of = nil
	return os.RemoveAll(storeFolder())
}

// storeOf is the store of a set of images.
func storeOf(key string) *imageStore {
	stores.Lock()
	defer stores.Unlock()
	if stores.of == nil {
		stores.of = map[string]*imageStore{}
	}
	s := stores.of[key]
	if s == nil {
		s = &imageStore{dir: filepath.Join(storeFolder(), key)}
		stores.of[key] = s
	}
	return s
}

// imageKey names a set of images by their tags and ids.
func imageKey(ctx context.Context, from *engine.Engine, images map[string]string) (string, error) {
	hash := sha256.New()
	for _, tag := range slices.Sorted(maps.Values(images)) {
		id, err := from.ImageID(ctx, tag)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, tag, id)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// take fills the store from a host whose daemon is stopped.
func (s *imageStore) take(h *Host) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for _, part := range parts {
		if err := command("cp", "-al", filepath.Join(h.dir, "data", part), filepath.Join(s.dir, part)); err != nil {
			return err
		}
	}
	s.filled = true
	return nil
}

// give links the store's files into a host whose daemon is stopped.
func (s *imageStore) give(h *Host) error {
	for _, part := range parts {
		to := filepath.Join(h.dir, "data", part)
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := command("cp", "-al", filepath.Join(s.dir, part), to); err != nil {
			return err
		}
	}
	return nil
}
