// Package plan holds what a run is asked to do, as data: the profile (the
// lab: which role gets which CPUs and how much memory), the preset (the phases
// and the length of their windows) and the suite (scenarios and candidates).
// It reads and checks YAML files and knows nothing of Docker or of measuring.
package plan

import "strconv"

// Role is what a host does in a run.
type Role string

// The three roles. On a laptop one engine plays all of them, in the cloud each
// has a machine of its own.
const (
	App  Role = "app"  // runs the candidate under test
	DB   Role = "db"   // runs PostgreSQL
	Load Role = "load" // runs the load generator
)

// Roles lists the roles in the order in which they are printed.
func Roles() []Role { return []Role{App, DB, Load} }

// HostName is what the n-th host of a role, from 1, is called: load, load2, ...
func HostName(r Role, n int) string {
	if n == 1 {
		return string(r)
	}
	return string(r) + strconv.Itoa(n)
}

// Flavour says where images come from.
type Flavour string

const (
	FlavourAuto      Flavour = "auto"      // published when the registry answers, debian when it does not
	FlavourPublished Flavour = "published" // the study's exact versions, from a registry
	FlavourDebian    Flavour = "debian"    // built from Debian packages and sources
)
