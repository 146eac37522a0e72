package sample

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/guest/kernel"
)

const id = "b7e2906fd35c18a4720e9bc64d1f83a5057ce9d2461fb80a93e75c2d18f6043b"

func TestBelow(t *testing.T) {
	for _, c := range []struct{ root, path, want string }{
		{"/", "/docker/a", "/host/cgroup/docker/a"},
		{"/", "/", "/host/cgroup"},
		{"/docker/outer", "/docker/outer/docker/inner", "/host/cgroup/docker/inner"}, // an engine in a container, v1
		{"/docker/outer", "/docker/outer", "/host/cgroup"},
		{"/docker/outer", "/docker/outer2", ""},
		{"/docker/outer", "/system.slice/x", ""},
		{"/..", "/../b", "/host/cgroup/b"},
		{"/../..", "/../../docker/b", "/host/cgroup/docker/b"},
		{"/../..", "/../b", ""}, // the name between is in neither path
		{"/../..", "/", ""},
		{"/..", "/../../b", ""}, // outside of what is mounted
		{"/../x", "/../x/y", "/host/cgroup/y"},
	} {
		got, ok := below(kernel.CgroupMount{Root: c.root, Point: "/host/cgroup"}, c.path)
		if ok != (c.want != "") || got != c.want && ok {
			t.Errorf("%s in %s: %q, %v, want %q", c.path, c.root, got, ok, c.want)
		}
	}
}

func TestContainerRoot(t *testing.T) {
	for in, want := range map[string]string{
		"/p/docker/" + id:                                                  "/p/docker/" + id,
		"/p/docker/" + id + "/init":                                        "/p/docker/" + id,
		"/p/system.slice/docker-" + id + ".scope/x":                        "/p/system.slice/docker-" + id + ".scope",
		"/p/machine.slice/libpod-" + id + ".scope/container":               "/p/machine.slice/libpod-" + id + ".scope",
		"/p/docker/" + id + "/docker/" + strings.Repeat("0", 64) + "/init": "/p/docker/" + id + "/docker/" + strings.Repeat("0", 64),
		"/p/my.slice/short":                                                "/p/my.slice/short",
		"/p":                                                               "/p",
	} {
		if got := containerRoot("/p", in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Where the reader's cgroup namespace begins below the mounted root, as in a
// sampler's own namespace, the directory is found by its processes.
func TestSearch(t *testing.T) {
	for _, c := range []struct{ name, mountRoot, path string }{
		{"host namespace", "/", "/docker/" + id},
		{"sibling, own namespace two below", "/../..", "/../" + id},
		{"same depth", "/../..", "/../../docker/" + id},
		{"own namespace is the container's", "/../..", "/"},
	} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for dir, procs := range map[string]string{
			"docker/" + id:                      "4710\n4711\n",
			"docker/" + strings.Repeat("1", 64): "47111\n",
			"other/" + id:                       "1\n",
		} {
			full := filepath.Join(root, dir)
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
			for f, text := range map[string]string{"cgroup.procs": procs, "cgroup.events": "populated 1\n"} {
				if err := os.WriteFile(filepath.Join(full, f), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		l := &locator{root: root, proc: t.TempDir(), mounts: []kernel.CgroupMount{{Root: c.mountRoot, Point: root, Unified: true}}}
		got, err := l.directory(Target{"app", 4711}, kernel.Membership{Unified: true, Path: c.path}, "")
		if len(got.above) != 1 || got.above[0] != filepath.Join(root, "docker") {
			t.Errorf("%s: it lies in %v", c.name, got.above)
		}
		if want := filepath.Join(root, "docker", id); got.dir != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", c.name, got.dir, err, want)
		}
	}
}
