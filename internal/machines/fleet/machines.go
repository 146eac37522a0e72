// Package fleet is what the parts of a cloud run agree on: the machines of a
// lab, as the infrastructure's output names them.
package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/percore/percore/internal/plan"
)

// Output is the name of the one output of every module below infra/.
const Output = "lab"

// Lab is the machines of a run. Every module below infra/ gives this one
// object, so that everything after apply is the same for all of them.
type Lab struct {
	RunID    string        `json:"run_id"`
	Provider plan.Provider `json:"provider"`
	Region   string        `json:"region"`  // empty for machines that were there already
	Zone     string        `json:"zone"`    // the same
	Expires  *time.Time    `json:"expires"` // when the machines shut themselves down; nil: they do not
	Machines []Machine     `json:"machines"`
}

// Machine is one host and how to reach it.
type Machine struct {
	Name         string    `json:"name"` // app, db, load, load2, ...: unique in the lab
	Role         plan.Role `json:"role"`
	SSHHost      string    `json:"ssh_host"` // where the driver reaches it
	SSHPort      int       `json:"ssh_port"` // 0 leaves it to ssh's configuration
	SSHUser      string    `json:"ssh_user"`
	Address      string    `json:"address"`       // where the other hosts reach it
	InstanceType string    `json:"instance_type"` // empty for machines that were there already, unless named
	InstanceID   string    `json:"instance_id"`   // the same
	Arch         string    `json:"arch"`          // as Debian names it: amd64 or arm64; empty when unknown
	Image        string    `json:"image"`         // id of the machine image; empty when unknown
}

// Destination is the machine as an argument of ssh: user@host.
func (m Machine) Destination() string {
	if m.SSHUser == "" {
		return m.SSHHost
	}
	return m.SSHUser + "@" + m.SSHHost
}

// SSHArgs are the arguments by which ssh reaches the machine, the last of them.
// The host is named as it was written, so that what ssh's configuration says of
// it counts.
func (m Machine) SSHArgs() []string {
	if m.SSHPort == 0 {
		return []string{"--", m.Destination()}
	}
	return []string{"-p", strconv.Itoa(m.SSHPort), "--", m.Destination()}
}

// Engine is the endpoint of the machine's Docker Engine.
func (m Machine) Engine() string {
	host := m.SSHHost
	if m.SSHPort != 0 && m.SSHPort != 22 {
		host = net.JoinHostPort(host, strconv.Itoa(m.SSHPort))
	} else if net.ParseIP(host).To4() == nil && net.ParseIP(host) != nil {
		host = "[" + host + "]"
	}
	if m.SSHUser != "" {
		host = m.SSHUser + "@" + host
	}
	return "ssh://" + host
}

// Of returns the machines of a role, in the order of the output.
func (l Lab) Of(r plan.Role) []Machine {
	var out []Machine
	for _, m := range l.Machines {
		if m.Role == r {
			out = append(out, m)
		}
	}
	return out
}

// Named returns the machine of that name. The name of a role is that of its
// first machine.
func (l Lab) Named(name string) (Machine, bool) {
	for _, m := range l.Machines {
		if m.Name == name {
			return m, true
		}
	}
	if of := l.Of(plan.Role(name)); len(of) > 0 {
		return of[0], true
	}
	return Machine{}, false
}

// Names lists the machines' names.
func (l Lab) Names() []string {
	var names []string
	for _, m := range l.Machines {
		names = append(names, m.Name)
	}
	return names
}

var name = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Parse reads the output of a module, as `terraform output -json lab` prints
// it, and checks that a run can be measured on it.
func Parse(text []byte) (Lab, error) {
	var l Lab
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return Lab{}, fmt.Errorf("the output %q of the infrastructure: %w", Output, err)
	}
	return l, l.check()
}

func (l Lab) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("the output %q of the infrastructure: %s", Output, fmt.Sprintf(format, args...))
	}
	var names, addresses []string
	for i, m := range l.Machines {
		switch {
		case !name.MatchString(m.Name):
			return bad("machine %d has the name %q; a name is lower-case letters, digits and dashes", i+1, m.Name)
		case slices.Contains(names, m.Name):
			return bad("two machines have the name %s", m.Name)
		case !slices.Contains(plan.Roles(), m.Role):
			return bad("machine %s has the role %q; there are app, db and load", m.Name, m.Role)
		case m.SSHHost == "" || m.Address == "":
			return bad("machine %s has no address", m.Name)
		case slices.Contains(addresses, m.Address):
			return bad("two machines have the address %s", m.Address)
		case m.SSHPort < 0 || m.SSHPort > 65535:
			return bad("machine %s has the ssh port %d", m.Name, m.SSHPort)
		}
		names, addresses = append(names, m.Name), append(addresses, m.Address)
	}
	for _, r := range []plan.Role{plan.App, plan.DB} {
		if n := len(l.Of(r)); n != 1 {
			return bad("%d machines have the role %s, and one must", n, r)
		}
	}
	if len(l.Of(plan.Load)) == 0 {
		return bad("no machine has the role load")
	}
	return nil
}
