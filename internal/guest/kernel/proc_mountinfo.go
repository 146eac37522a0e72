package kernel

import (
	"bytes"
	"strings"
)

// CgroupMount is one line of /proc/PID/mountinfo about a cgroup file system.
type CgroupMount struct {
	Root        string   // what of the hierarchy is mounted, relative to the root of the reader's cgroup namespace; may begin with /..
	Point       string   // where
	Unified     bool     // cgroup v2
	Controllers []string // of a v1 hierarchy
}

// ParseMountinfo parses /proc/PID/mountinfo and returns the cgroup mounts in the
// order in which they were mounted.
func ParseMountinfo(b []byte) ([]CgroupMount, error) {
	var out []CgroupMount
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		// id parent major:minor root point options [optional fields] - type source super-options
		before, after, ok := bytes.Cut(line, []byte(" - "))
		left := strings.Split(string(before), " ")
		if !ok || len(left) < 6 {
			return nil, bad("/proc/self/mountinfo", line)
		}
		right := strings.Split(string(after), " ")
		if len(right) < 3 {
			return nil, bad("/proc/self/mountinfo", line)
		}
		kind, options := right[0], right[len(right)-1]
		if kind != "cgroup" && kind != "cgroup2" {
			continue
		}
		m := CgroupMount{Root: unescape(left[3]), Point: unescape(left[4]), Unified: kind == "cgroup2"}
		if !strings.HasPrefix(m.Root, "/") || !strings.HasPrefix(m.Point, "/") {
			return nil, bad("/proc/self/mountinfo", line)
		}
		if !m.Unified {
			for o := range strings.SplitSeq(options, ",") {
				if o != "rw" && o != "ro" {
					m.Controllers = append(m.Controllers, o)
				}
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// unescape replaces the kernel's octal escapes: \040 for a blank, and so on.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) && s[i+1] <= '3' {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }
