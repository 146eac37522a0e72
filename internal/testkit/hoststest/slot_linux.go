package hoststest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	netnsDir = "/run/netns/"
	slots    = 8
)

// slot is a subnet, a folder and a prefix of names that one test has for
// itself. A lock on a file says that it is taken; the lock ends with the
// process, so that a slot whose test was killed is known for what it is.
type slot struct {
	number int
	dir    string
	lock   *os.File
}

// takeSlot takes a free slot, and removes what dead tests left in any.
func takeSlot() (*slot, error) {
	var mine *slot
	for i := range slots {
		s := &slot{number: i, dir: filepath.Join(os.TempDir(), fmt.Sprintf("percore-hosts-%d", i))}
		var err error
		if s.lock, err = os.OpenFile(s.dir+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return nil, err
		}
		if syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			s.lock.Close()
			continue
		}
		err = s.sweep()
		if err != nil || mine != nil {
			s.lock.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("removing what an earlier test left in %s: %w", s.dir, err)
		}
		if mine == nil {
			mine = s
		}
	}
	if mine == nil {
		return nil, fmt.Errorf("%d tests that use it are running; let one end", slots)
	}
	return mine, os.MkdirAll(mine.dir, 0o755)
}

// prefix begins the names of everything that is not in the folder.
func (s *slot) prefix() string { return fmt.Sprintf("percore%d", s.number) }

// hub is the namespace of the switch. Nothing there filters what it forwards,
// whatever this machine's own rules are.
func (s *slot) hub() string { return s.prefix() + "s" }

// subnet is an address of the slot's subnet.
func (s *slot) subnet(host int) string { return fmt.Sprintf("10.77.%d.%d", s.number, host) }

// network makes the switch and plugs this machine in.
func (s *slot) network() error {
	for _, args := range [][]string{
		{"netns", "add", s.hub()},
		{"-n", s.hub(), "link", "set", "lo", "up"},
		{"-n", s.hub(), "link", "add", "br0", "type", "bridge"},
		{"-n", s.hub(), "link", "set", "br0", "up"},
		{"link", "add", s.prefix(), "type", "veth", "peer", "name", "h0", "netns", s.hub()},
		{"-n", s.hub(), "link", "set", "h0", "master", "br0", "up"},
		{"addr", "add", s.subnet(1) + "/24", "dev", s.prefix()},
		{"link", "set", s.prefix(), "up"},
	} {
		if err := command("ip", args...); err != nil {
			return err
		}
	}
	return s.uplink()
}

// rules let the hosts reach what this machine reaches.
func (s *slot) rules() [][]string {
	return [][]string{
		{"-t", "nat", "POSTROUTING", "-s", s.subnet(0) + "/24", "!", "-d", s.subnet(0) + "/24", "-j", "MASQUERADE"},
		{"-t", "filter", "FORWARD", "-i", s.prefix(), "-j", "ACCEPT"},
		{"-t", "filter", "FORWARD", "-o", s.prefix(), "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT"},
	}
}

func (s *slot) uplink() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	for _, r := range s.rules() {
		args := append([]string{"-w", "-t", r[1], "-I"}, r[2:]...)
		if err := command("iptables", args...); err != nil {
			return err
		}
	}
	return nil
}

// remove removes everything of the slot and lets go of it.
func (s *slot) remove() error {
	defer s.lock.Close()
	return s.sweep()
}

// sweep kills the slot's processes and removes its mounts, namespaces, rules
// and folder. Where there is nothing, it does nothing.
func (s *slot) sweep() error {
	namespaces := s.namespaces()
	if _, err := os.Stat(s.dir); err != nil && len(namespaces) == 0 {
		return nil
	}
	if err := s.kill(namespaces); err != nil {
		return err
	}
	for range 3 { // a mount may hide another
		for _, m := range s.mounts() {
			_ = syscall.Unmount(m, syscall.MNT_DETACH)
		}
	}
	for _, ns := range namespaces {
		if err := command("ip", "netns", "del", ns); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/sys/class/net/" + s.prefix()); err == nil { // its peer may take a moment to go
		_ = command("ip", "link", "del", s.prefix())
	}
	for _, r := range s.rules() {
		for range 4 {
			if command("iptables", append([]string{"-w", "-t", r[1], "-D"}, r[2:]...)...) != nil {
				break
			}
		}
	}
	s.cgroups()
	if left := s.mounts(); len(left) > 0 {
		return fmt.Errorf("%s is still mounted", left[0])
	}
	return os.RemoveAll(s.dir)
}

func (s *slot) namespaces() []string {
	paths, _ := filepath.Glob(netnsDir + s.prefix() + "[sh]*")
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

// mounts are the mount points in the slot's folder, the deepest first.
func (s *slot) mounts() []string {
	text, _ := os.ReadFile("/proc/self/mounts")
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], s.dir+"/") {
			out = append(out, f[1])
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(out)))
	return out
}

// kill kills every process in one of the namespaces, and those in containers
// of the slot's engines that have a network of their own.
func (s *slot) kill(namespaces []string) error {
	inodes := map[string]bool{}
	for _, ns := range namespaces {
		var st syscall.Stat_t
		if syscall.Stat(netnsDir+ns, &st) == nil {
			inodes[fmt.Sprintf("net:[%d]", st.Ino)] = true
		}
	}
	for deadline := time.Now().Add(15 * time.Second); ; {
		pids := s.processes(inodes)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the processes %v do not end", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *slot) processes(inodes map[string]bool) []int {
	var out []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || zombie(pid) {
			continue
		}
		net, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue
		}
		if inodes[net] || s.contains(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// contains reports whether the root of a process is a layer of an engine of the
// slot.
func (s *slot) contains(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			return strings.Contains(line, "="+s.dir+"/")
		}
	}
	return false
}

// zombie reports whether a process has ended and only its entry is left.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	i := strings.LastIndexByte(string(text), ')')
	return i > 0 && strings.HasPrefix(string(text[i:]), ") Z")
}

// cgroups removes the empty cgroups of containers that were killed.
func (s *slot) cgroups() {
	ids, _ := filepath.Glob(filepath.Join(s.dir, "h*/data/containers/*"))
	for _, id := range ids {
		for _, pattern := range []string{"/sys/fs/cgroup/docker/", "/sys/fs/cgroup/*/docker/"} {
			dirs, _ := filepath.Glob(pattern + filepath.Base(id))
			for _, d := range dirs {
				_ = os.Remove(d)
			}
		}
	}
}
