package figures

import (
	"cmp"
	"slices"
	"strings"

	"github.com/percore/percore/internal/plan"
)

// Kinds of sources.
const (
	KindPublished = "published"
	KindRun       = "run"
	KindImported  = "imported"
)

// Host is the machine on which the candidates ran, or the database.
type Host struct {
	Label    string `json:"label"` // how a sentence names it
	CPUModel string `json:"cpu_model,omitempty"`
	Arch     string `json:"arch,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	// RSAVerifyPerS is how many RSA-2048 signatures one core verifies in a
	// second, a measure that depends on no candidate; 0 when not measured.
	RSAVerifyPerS float64 `json:"rsa_verify_per_s,omitempty"`
	Instance      string  `json:"instance_type,omitempty"` // in a cloud
}

// Set holds the figures of one source and what one must know to judge whether
// they may stand beside others.
type Set struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	Suite       string            `json:"suite"`
	Flavour     plan.Flavour      `json:"flavour"`
	SharedCores bool              `json:"shared_cores"`
	Comparable  bool              `json:"comparable"` // with the published figures
	Caveats     []string          `json:"caveats,omitempty"`
	Profile     string            `json:"profile,omitempty"`
	Preset      string            `json:"preset,omitempty"`
	Protocol    bool              `json:"published_protocol"`             // measured by the published protocol to the letter
	Host        Host              `json:"host"`                           // of the candidates
	Database    *Host             `json:"database_host,omitempty"`        // nil where it is the candidates'
	Region      string            `json:"region,omitempty"`               // of a cloud
	AppCores    int               `json:"app_cores"`                      // cores the candidates may use
	AppThreads  int               `json:"app_threads_per_core,omitempty"` // how many of them are threads of one core, where that is more than one
	Candidates  []string          `json:"candidates"`
	Scenarios   []string          `json:"scenarios"`
	Databases   []string          `json:"database_scenarios"` // scenarios that use the database
	Versions    map[string]string `json:"versions,omitempty"`
	Conditions  Conditions        `json:"conditions"`

	figures map[Key]Estimate
	absent  map[Key]Absence
}

// Conditions are what figures depend on besides the machine. What is not known
// is 0 or empty.
type Conditions struct {
	RateSeconds        float64 `json:"rate_window_s,omitempty"` // nominal length of the windows at a fixed rate
	RateConnections    int     `json:"rate_connections,omitempty"`
	CeilingSeconds     float64 `json:"ceiling_window_s,omitempty"`
	CeilingConnections []int   `json:"ceiling_connections,omitempty"`  // those tried, ascending
	Pool               int     `json:"database_connections,omitempty"` // of a candidate
	Rows               int     `json:"rows,omitempty"`                 // seeded
	AppMemory          int64   `json:"app_memory_bytes,omitempty"`
	DBMemory           int64   `json:"db_memory_bytes,omitempty"`
}

// DatabaseHost is the machine on which the database ran.
func (s *Set) DatabaseHost() Host {
	if s.Database != nil {
		return *s.Database
	}
	return s.Host
}

// NewSet makes a set without figures.
func NewSet(name, kind string) *Set {
	return &Set{Name: name, Kind: kind, figures: map[Key]Estimate{}, absent: map[Key]Absence{}}
}

// Put adds a figure, or replaces one of the same key.
func (s *Set) Put(e Estimate) {
	if e.Unit == "" {
		e.Unit = Unit(e.Key.Metric)
	}
	delete(s.absent, e.Key)
	s.figures[e.Key] = e
}

// PutAbsent records why a figure that was to be measured is not there.
func (s *Set) PutAbsent(k Key, why Absence) {
	if _, ok := s.figures[k]; !ok {
		s.absent[k] = why
	}
}

// Get returns a figure. One that a source gives for all scenarios or all
// candidates at once stands for each of them.
func (s *Set) Get(k Key) (Estimate, bool) {
	for _, drop := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		general := k
		if drop[0] {
			general.Candidate = ""
		}
		if drop[1] {
			general.Scenario = ""
		}
		if e, ok := s.figures[general]; ok {
			return e, true
		}
	}
	return Estimate{}, false
}

// Cause is what kept a figure from being there.
type Cause int

// Causes.
const (
	Unmeasured   Cause = iota // nothing is known about it
	GateFailed                // detail: the gates, and in how many attempts
	BrokenOff                 // detail: the error
	Unreadable                // the raw files
	Damaged                   // detail: how many readings cannot be
	NotSampled                // the raw files do not hold it
	OnlyFailures              // no connection count without failed requests
)

// Absence is why a figure is not there.
type Absence struct {
	Cause  Cause
	Detail string
}

// String says it to a reader.
func (a Absence) String() string {
	switch a.Cause {
	case GateFailed:
		return "gate failed: " + a.Detail
	case BrokenOff:
		return "the window broke off: " + a.Detail
	case Unreadable:
		return "the raw files could not be read"
	case Damaged:
		return "damaged: " + a.Detail
	case NotSampled:
		return "not measured: the raw files do not hold it"
	case OnlyFailures:
		return "no ceiling: the best repetition of every connection count had failed requests"
	}
	return "not measured"
}

// Why says why a figure is not there: a failed gate, or that it was not
// measured at all.
func (s *Set) Why(k Key) Absence { return s.absent[k] }

// All returns the figures in the order of their keys.
func (s *Set) All() []Estimate {
	all := make([]Estimate, 0, len(s.figures))
	for _, e := range s.figures {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Estimate) int { return compareKeys(a.Key, b.Key) })
	return all
}

// Len is the number of figures.
func (s *Set) Len() int { return len(s.figures) }

func compareKeys(a, b Key) int {
	return cmp.Or(
		strings.Compare(a.Suite, b.Suite), strings.Compare(a.Phase, b.Phase), strings.Compare(a.Metric, b.Metric),
		strings.Compare(a.Candidate, b.Candidate), strings.Compare(a.Scenario, b.Scenario),
		cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.Connections, b.Connections), cmp.Compare(a.Rate, b.Rate))
}

// Clone returns a copy that can be changed without changing the set.
func (s *Set) Clone() *Set {
	c := *s
	c.figures = make(map[Key]Estimate, len(s.figures))
	for k, e := range s.figures {
		c.figures[k] = e
	}
	c.absent = make(map[Key]Absence, len(s.absent))
	for k, r := range s.absent {
		c.absent[k] = r
	}
	return &c
}

// UsesDatabase reports whether a scenario uses the database.
func (s *Set) UsesDatabase(scenario string) bool { return slices.Contains(s.Databases, scenario) }
