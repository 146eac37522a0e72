package protocol

import (
	"time"

	"github.com/percore/percore/internal/plan"
)

// blockTimer separates what a block's load took from what everything around it
// took.
type blockTimer struct {
	start    time.Time
	windows  int           // windows measured, repetitions included
	runs     int           // runs of the load generator
	overhead time.Duration // of these runs: time beside the nominal window
	again    time.Duration // nominal length of probes that were asked again
}

// generate times one run of the load generator with a nominal length.
func (t *blockTimer) generate(nominal time.Duration, run func() error) error {
	start := time.Now()
	err := run()
	t.runs++
	t.overhead += time.Since(start) - nominal
	return err
}

// end adds a whole block to what has been learned.
func (t *blockTimer) end(nominal time.Duration, l *learned) {
	l.blocks++
	l.runs += t.runs
	l.perRun += t.overhead
	l.perBlock += time.Since(t.start) - nominal - t.overhead
}

// learned is the overhead of the blocks measured so far.
type learned struct {
	blocks, runs     int
	perBlock, perRun time.Duration // sums
}

// estimate returns the mean overhead, or the default before the first block.
func (l learned) estimate() (plan.Overhead, bool) {
	if l.blocks == 0 || l.runs == 0 {
		return plan.DefaultOverhead(), false
	}
	return plan.Overhead{Block: max(0, l.perBlock/time.Duration(l.blocks)), Generate: max(0, l.perRun/time.Duration(l.runs))}, true
}
