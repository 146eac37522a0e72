// Package doctor looks at everything a run depends on and says what is there,
// what is missing and how to get it. It changes nothing.
//
// A check reads one thing through a small interface and returns a finding; what
// the readings mean is decided here, so the rules can be tested without an
// engine.
package doctor

import (
	"context"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
)

// Status is what a finding means for a run.
type Status string

const (
	OK   Status = "ok"   // as it should be
	Warn Status = "warn" // a run is possible; its figures or its start suffer
	Fail Status = "fail" // no run is possible
)

// Finding is the result of one check.
type Finding struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Finding string `json:"finding"`          // what is there
	Remedy  string `json:"remedy,omitempty"` // how to get what is missing
}

// Report is the result of all checks, in a fixed order.
type Report struct {
	Possible bool      `json:"possible"` // whether a run is possible: no check failed
	Findings []Finding `json:"findings"`
}

// Engine is what the checks ask of a Docker Engine.
type Engine interface {
	Host() string
	Source() string
	Info(ctx context.Context) (engine.Info, error)
	Containers(ctx context.Context, labels map[string]string) ([]engine.Thing, error)
	Networks(ctx context.Context, labels map[string]string) ([]engine.Thing, error)
}

// Images is what the checks ask of the image recipes.
type Images interface {
	Choose(ctx context.Context, wish plan.Flavour, names ...string) (images.Choice, error)
	Plan(ctx context.Context, flavour plan.Flavour, names ...string) (images.Plan, error)
}

// Host reads the machine that an engine runs on.
type Host interface {
	// Read returns the machine's load and the space where Docker stores. It
	// returns ErrNoWayIn when nothing there can be asked yet.
	Read(ctx context.Context) (HostReading, error)
}

// HostReading is the state of an engine's machine.
type HostReading struct {
	Load1 float64 // load average over one minute, in runnable tasks
	Free  uint64  // bytes that are free where Docker stores
}

// Driver reads the machine that percore itself runs on.
type Driver interface {
	// Tool runs a program and returns the first line that it prints. An error
	// means that it is not there or does not run.
	Tool(ctx context.Context, name string, args ...string) (string, error)
	// Free returns the free bytes of the file system that holds a folder.
	Free(folder string) (uint64, error)
	// OS is the operating system's name, as Go has it.
	OS() string
}

// Subject is what is examined.
type Subject struct {
	Engine    Engine // nil when it could not be reached
	EngineErr error  // why not
	Chosen    string // what names the engine, as engine.Chosen says it; empty for the default one
	Images    Images
	Host      Host
	Driver    Driver
	Live      func(ctx context.Context) ([]string, error) // runs that are being measured on the engine
	Profiles  func(name string) (plan.Profile, error)

	Profile string       // wanted profile: a name, a file or auto
	Flavour plan.Flavour // wanted flavour
	Results string       // folder of the runs
	Now     func() time.Time
	Words   fail.Words // how settings and commands are written
}

// examination is a subject with what the checks have learnt so far.
type examination struct {
	Subject
	info   engine.Info
	asked  time.Time     // middle of the question for info
	slack  time.Duration // half of how long the answer took
	choice *images.Choice
	plan   images.Plan
	out    []Finding
}

// Examine runs all checks. Without an engine only those that need none are run.
func Examine(ctx context.Context, s Subject) Report {
	if s.Now == nil {
		s.Now = time.Now
	}
	x := &examination{Subject: s}
	if x.engine(ctx) {
		x.size()
		x.cgroup()
		x.storage()
		x.clock()
		x.host(ctx)
		x.neighbours(ctx)
		x.leftovers(ctx)
		x.flavour(ctx)
	}
	x.tools(ctx)
	x.disk()
	x.timeSync(ctx)

	r := Report{Possible: true, Findings: x.out}
	for _, f := range x.out {
		if f.Status == Fail {
			r.Possible = false
		}
	}
	return r
}

// wrong adds an error, with what to do about it.
func (x *examination) wrong(name string, status Status, err error) {
	x.add(name, status, err.Error(), fail.Remedy(err, x.Words))
}

func (x *examination) add(name string, status Status, finding, remedy string) {
	x.out = append(x.out, Finding{Name: name, Status: status, Finding: finding, Remedy: remedy})
}
