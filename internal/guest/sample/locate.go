package sample

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/percore/percore/internal/guest/kernel"
)

// locator finds the directories of a process's cgroups below one root.
//
// Paths in /proc/PID/cgroup and the root field of mountinfo are both relative to
// the root of the reader's cgroup namespace (cgroup_namespaces(7)), so they can
// be compared with each other, whatever that root is. When the namespace's root
// lies below the mount's root, the names between the two are not in either path;
// then the directory is searched by its last name and recognised by its
// cgroup.procs.
type locator struct {
	root   string // where the host's cgroup file systems are mounted
	proc   string
	mounts []kernel.CgroupMount // below root
}

func newLocator(root, proc string) (*locator, error) {
	resolved, err := filepath.EvalSymlinks(root)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return nil, Input("cannot use --cgroup-root %s (%w): bind the engine host's /sys/fs/cgroup there", root, err)
	}
	l := &locator{root: resolved, proc: proc}
	file := filepath.Join(proc, "self/mountinfo")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, Input("cannot read the mounts (%w): name the proc file system with --proc", err)
	}
	mounts, err := kernel.ParseMountinfo(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, m := range mounts {
		if m.Point != resolved && !strings.HasPrefix(m.Point, strings.TrimSuffix(resolved, "/")+"/") {
			continue
		}
		// A later mount hides an earlier one at the same point.
		l.mounts = slices.DeleteFunc(l.mounts, func(o kernel.CgroupMount) bool { return o.Point == m.Point })
		l.mounts = append(l.mounts, m)
	}
	if len(l.mounts) == 0 {
		return nil, Input("no cgroup file system is mounted at or below --cgroup-root %s: bind the engine host's /sys/fs/cgroup there", root)
	}
	return l, nil
}

// groups are the directories of one container's cgroup, one per controller; ""
// where the host has none. On cgroup v2 they are all the same.
type groups struct {
	cpu, cpuacct, memory, blkio group
	freezer                     group
	unified                     group // the container's own in the v2 hierarchy, beside v1 controllers too
}

type group struct {
	dir   string
	above []string // the cgroups that it lies in, below the root of the hierarchy or of what is mounted of it
	v2    bool
}

// in makes the group of a directory below a mount point.
func in(point, dir string) group {
	g := group{dir: dir}
	for d := filepath.Dir(dir); len(d) > len(point); d = filepath.Dir(d) {
		g.above = append(g.above, d)
	}
	return g
}

func (l *locator) find(t Target) (groups, error) {
	var g groups
	file := filepath.Join(l.proc, strconv.Itoa(t.PID), "cgroup")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return g, noProcess(t)
	}
	if err != nil {
		return g, fmt.Errorf("cannot find the cgroup of container %s: %w", t.Name, err)
	}
	memberships, err := kernel.ParseProcCgroup(b)
	if err != nil {
		return g, fmt.Errorf("cannot find the cgroup of container %s in %s: %w", t.Name, file, err)
	}

	var unified *kernel.Membership
	for i := range memberships {
		if memberships[i].Unified {
			unified = &memberships[i]
		}
	}
	v1Paths := map[string]bool{}
	for _, c := range []struct {
		controller string
		to         *group
	}{{"cpu", &g.cpu}, {"cpuacct", &g.cpuacct}, {"memory", &g.memory}, {"blkio", &g.blkio}, {"freezer", &g.freezer}} {
		i := slices.IndexFunc(memberships, func(m kernel.Membership) bool { return slices.Contains(m.Controllers, c.controller) })
		if i < 0 {
			continue
		}
		m := memberships[i]
		v1Paths[m.Path] = true
		if !slices.ContainsFunc(l.mounts, func(o kernel.CgroupMount) bool { return slices.Contains(o.Controllers, c.controller) }) {
			continue // a host may leave a hierarchy unmounted
		}
		if *c.to, err = l.directory(t, m, c.controller); err != nil {
			return g, err
		}
	}
	// Beside v1 controllers the v2 hierarchy is the container's own only when the
	// engine made a cgroup in it too; else it is that of a service around it.
	if unified != nil && (len(v1Paths) == 0 || v1Paths[unified.Path]) && slices.ContainsFunc(l.mounts, func(o kernel.CgroupMount) bool { return o.Unified }) {
		if g.unified, err = l.directory(t, *unified, ""); err != nil {
			return g, err
		}
		g.unified.v2 = g.unified.dir != ""
	}
	for _, c := range []*group{&g.cpu, &g.cpuacct, &g.memory, &g.blkio, &g.freezer} {
		if c.dir == "" {
			*c = g.unified
		}
	}
	if g.cpu.dir == "" && g.cpuacct.dir == "" {
		return g, Input("process %d (container %s) is in no cgroup of its own that counts CPU time: give the id of a container's first process", t.PID, t.Name)
	}
	return g, nil
}

func noProcess(t Target) error {
	return Input("process %d (container %s) does not exist: give the id that the engine's host knows a running container's first process by, and start the sampler with the host's process ids", t.PID, t.Name)
}

// directory returns the directory of one membership, or none when it is the root
// of the hierarchy, whose counters are those of the whole machine.
func (l *locator) directory(t Target, m kernel.Membership, controller string) (group, error) {
	if m.Deleted {
		return group{}, noProcess(t)
	}
	for _, mount := range l.mounts {
		if m.Unified != mount.Unified || (!m.Unified && !slices.Contains(mount.Controllers, controller)) {
			continue
		}
		dir, ok := below(mount, m.Path)
		if !ok || !holds(dir, t.PID) {
			dir, ok = search(mount.Point, m.Path, t.PID)
		}
		if !ok {
			continue
		}
		dir = containerRoot(mount.Point, dir)
		if isRoot(dir, mount.Unified) {
			return group{}, nil
		}
		return in(mount.Point, dir), nil
	}
	if _, err := os.Stat(filepath.Join(l.proc, strconv.Itoa(t.PID))); errors.Is(err, fs.ErrNotExist) {
		return group{}, noProcess(t)
	}
	return group{}, Input("the cgroup %s of process %d (container %s) is not below --cgroup-root %s: bind all of the engine host's /sys/fs/cgroup there and start the sampler in the host's cgroup and process namespaces", m.Path, t.PID, t.Name, l.root)
}

// below returns the directory at which a mount shows a cgroup, when the two
// paths alone say it.
func below(mount kernel.CgroupMount, path string) (string, bool) {
	upRoot, root := ascend(mount.Root)
	upPath, rest := ascend(path)
	if upRoot != upPath {
		return "", false
	}
	if root != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, root); !ok || (rest != "" && rest[0] != '/') {
			return "", false
		}
	}
	dir := filepath.Join(mount.Point, rest)
	return dir, strings.HasPrefix(dir, mount.Point)
}

// ascend counts the leading /.. of a path and returns what follows them: "" or
// a path that begins with a slash.
func ascend(path string) (int, string) {
	n := 0
	for path == "/.." || strings.HasPrefix(path, "/../") {
		path = path[len("/.."):]
		n++
	}
	return n, strings.TrimSuffix(path, "/")
}

// holds reports whether the process is in the cgroup itself. A directory whose
// processes cannot be listed (a threaded cgroup) is believed.
func holds(dir string, pid int) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return true
	}
	want := strconv.AppendInt(nil, int64(pid), 10)
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		if bytes.Equal(line, want) {
			return true
		}
	}
	return false
}

// search looks for the cgroup of the process below a mount point.
func search(point, path string, pid int) (string, bool) {
	_, rest := ascend(path)
	found := ""
	_ = filepath.WalkDir(point, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() { // cgroups come and go
			return nil
		}
		if strings.HasSuffix(dir, rest) && holds(dir, pid) {
			found = dir
			return fs.SkipAll
		}
		return nil
	})
	return found, found != ""
}

// containerRoot cuts a directory after its last name with a container id in it:
// an init system inside a container moves itself into a cgroup further down,
// and the container is all that is below its id.
func containerRoot(point, dir string) string {
	for d := dir; d != point && len(d) > len(point); d = filepath.Dir(d) {
		if hasID(filepath.Base(d)) {
			return d
		}
	}
	return dir
}

// hasID reports whether a name holds 64 hexadecimal digits in a row, as in ID,
// docker-ID.scope or libpod-ID.scope.
func hasID(name string) bool {
	n := 0
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
			if n++; n == 64 {
				return true
			}
		} else {
			n = 0
		}
	}
	return false
}

// isRoot reports whether a directory is the root of its hierarchy. Only there
// does v1 have release_agent and v2 lack cgroup.events.
func isRoot(dir string, v2 bool) bool {
	if v2 {
		_, err := os.Stat(filepath.Join(dir, "cgroup.events"))
		return errors.Is(err, fs.ErrNotExist)
	}
	_, err := os.Stat(filepath.Join(dir, "release_agent"))
	return err == nil
}
