package aws

import (
	"maps"
	"slices"

	"github.com/percore/percore/internal/plan"
)

// Request is the machines of a run.
type Request struct {
	RunID    string // instances of this run that run already count as asked for, not as in use beside it
	Machines []Machines
	Zone     string   // empty: one that offers every type
	Grouped  bool     // whether they go into a cluster placement group
	SSHFrom  []string // networks that may reach port 22; empty: the address this machine is seen at
	// AddressURL says where to ask for that address; empty: AddressURL.
	AddressURL string
}

// Machines are machines of one role, which are all alike.
type Machines struct {
	Role  plan.Role
	Type  string
	Count int
	Cores int // how many the role needs; 0: not checked
	Disk  plan.Disk
}

// RequestOf is what a profile asks for.
func RequestOf(p plan.Profile) Request {
	if p.Cloud == nil {
		return Request{}
	}
	r := Request{Zone: p.Cloud.Zone, Grouped: p.Cloud.Grouped()}
	for _, role := range plan.Roles() {
		m := Machines{Role: role, Type: p.Cloud.Instances[role], Count: 1, Disk: p.Cloud.Disks[role].Filled()}
		if role == plan.Load {
			m.Count = p.Load.Hosts()
		}
		if cpus := p.Roles[role].CPUs; cpus != plan.AutoCPUs {
			for _, cpu := range cpus.List() {
				m.Cores = max(m.Cores, cpu+1)
			}
		}
		r.Machines = append(r.Machines, m)
	}
	return r
}

// Types lists the instance types, each once, sorted.
func (r Request) Types() []string {
	types := map[string]bool{}
	for _, m := range r.Machines {
		types[m.Type] = true
	}
	return slices.Sorted(maps.Keys(types))
}

// Count is the number of machines.
func (r Request) Count() int {
	n := 0
	for _, m := range r.Machines {
		n += m.Count
	}
	return n
}
