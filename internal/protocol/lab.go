package protocol

import (
	"context"
	"time"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Lab is everything the protocol needs of the hosts of a run. It is the one
// seam between a laptop and three machines: the protocol cannot tell them
// apart. Every method wraps its error with the host and container it was
// working on.
type Lab interface {
	// FreshDatabase gives the next candidate a database nobody has written to:
	// a copy of the seeded template, prewarmed, after a CHECKPOINT.
	FreshDatabase(ctx context.Context) error

	// StartProbe starts the reference server, which runs no application code,
	// on the candidate's own cores.
	StartProbe(ctx context.Context) (Server, error)

	// StartCandidate starts a fresh container of the candidate and returns when
	// it answers. A candidate that never becomes ready is a *StartError.
	StartCandidate(ctx context.Context, id string) (Server, error)

	// Generate runs the load generators once against the server, without
	// counters, and returns the output of each in the order of Measurement.OHA: a
	// probe or a warm-up.
	Generate(ctx context.Context, s Server, l Load) ([][]byte, error)

	// Measure runs the load generators once with the samplers around them. What
	// could be collected is returned beside an error.
	Measure(ctx context.Context, s Server, l Load) (Measurement, error)
}

// Server is a running probe or candidate.
type Server interface {
	// Name is the candidate's id, or "probe".
	Name() string
	// Log returns what the container has printed so far.
	Log(ctx context.Context) ([]byte, error)
	// Stop removes the container.
	Stop(ctx context.Context) error
}

// Load is one run of the load generators: one or more streams, which start at
// one instant.
type Load struct {
	Streams  []Stream
	Duration time.Duration // nominal window
	Timeout  time.Duration // of each request
}

// Stream is the part of a load that sends one request.
type Stream struct {
	Scenario    plan.Scenario // the request; for a probe its id is "probe"
	Connections int
	Target      int // requests per second in an open loop, 0 for a closed one
}

// Measurement is what one window leaves behind.
type Measurement struct {
	OHA      [][]byte            // each load generator's JSON, verbatim: those of the first stream in the order of the load hosts, then the next stream's
	CGroup   []HostSamples       // the sampler's lines of each host, verbatim; the app's host first
	Hosts    []store.HostReading // what the hosts said of clocks and network, those of role load in the order of OHA; empty where there is one host
	Database map[string]float64  // database counters, change over the window
	Start    time.Time           // when the load generators were started, by the first load host's clock
	End      time.Time           // when the last of them had ended, by the same clock
}

// HostSamples are the lines of one host's sampler.
type HostSamples struct {
	Host  string      // its name, as in Measurement.Hosts
	Roles []plan.Role // that it plays
	Lines []byte
}

// StartError says that a candidate never became ready.
type StartError struct {
	Candidate string
	Log       []byte // everything its container printed
	Err       error  // one sentence that ends with the log's last lines
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
