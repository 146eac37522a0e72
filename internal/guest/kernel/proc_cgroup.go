package kernel

import (
	"bytes"
	"errors"
	"strings"
)

// Membership is one line of /proc/PID/cgroup: the cgroup of the process in one
// hierarchy.
type Membership struct {
	Unified     bool     // the hierarchy of cgroup v2
	Controllers []string // of a v1 hierarchy; "name=systemd" for one without controllers
	Path        string   // relative to the root of the reader's cgroup namespace; may begin with /..
	Deleted     bool     // the cgroup has been removed
}

// ParseProcCgroup parses /proc/PID/cgroup.
func ParseProcCgroup(b []byte) ([]Membership, error) {
	var out []Membership
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		id, rest, ok := bytes.Cut(line, []byte{':'})
		if _, isNumber := number(id); !ok || !isNumber {
			return nil, bad("/proc/PID/cgroup", line)
		}
		controllers, path, ok := bytes.Cut(rest, []byte{':'})
		if !ok || len(path) == 0 || path[0] != '/' {
			return nil, bad("/proc/PID/cgroup", line)
		}
		m := Membership{Path: string(path)}
		m.Path, m.Deleted = strings.CutSuffix(m.Path, " (deleted)")
		switch {
		case len(controllers) == 0 && string(id) == "0":
			m.Unified = true
		case len(controllers) == 0:
			return nil, bad("/proc/PID/cgroup", line)
		default:
			m.Controllers = strings.Split(string(controllers), ",")
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, errors.New("/proc/PID/cgroup: it is empty")
	}
	return out, nil
}
