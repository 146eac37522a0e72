package protocol

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Plan is every block of a run with its windows, in the order in which they
// are measured. The same suite, preset and seed give the same plan.
type Plan struct {
	Blocks []Block
	preset plan.Preset
}

// Block is one candidate, one repetition and one phase with its windows.
type Block struct {
	store.Block
	Phase   plan.Phase
	Windows []store.Window
	Warmups []plan.Scenario // the scenarios that are warmed up, in order
}

// NewPlan lays out the blocks: phases in the preset's order, repetitions
// within them, and in each repetition the candidates in an order drawn from
// the seed. Scenarios keep the suite's order, so that the one that writes
// comes last.
func NewPlan(s plan.Suite, p plan.Preset, seed uint64) Plan {
	plan := Plan{preset: p}
	for i, phase := range p.Phases {
		for rep := 1; rep <= phase.Repetitions; rep++ {
			order := rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(rep))).Perm(len(s.Candidates))
			for _, c := range order {
				plan.Blocks = append(plan.Blocks, newBlock(s, phase, s.Candidates[c].ID, rep))
			}
		}
	}
	return plan
}

func newBlock(s plan.Suite, phase plan.Phase, candidate string, rep int) Block {
	b := Block{
		Block:   store.Block{Phase: phase.ID, Candidate: candidate, Repetition: rep},
		Phase:   phase,
		Warmups: s.Scenarios,
	}
	for _, sc := range s.Scenarios {
		for _, c := range phase.Connections {
			b.Windows = append(b.Windows, store.Window{
				Phase: phase.ID, Kind: phase.Kind, Candidate: candidate, Scenario: sc.ID,
				Repetition: rep, Connections: c, Target: phase.Targets[sc.ID], Seconds: phase.Window.Seconds(),
			})
		}
	}
	return b
}

// Left is the block with those of its windows that are not done.
func (b Block) Left(done func(store.Window) bool) Block {
	b.Windows = slices.DeleteFunc(slices.Clone(b.Windows), done)
	return b
}

// Left is the plan with the windows that are not done, in the blocks that have
// any.
func (p Plan) Left(done func(store.Window) bool) Plan {
	var blocks []Block
	for _, b := range p.Blocks {
		if b = b.Left(done); len(b.Windows) > 0 {
			blocks = append(blocks, b)
		}
	}
	p.Blocks = blocks
	return p
}

// Windows counts the windows of the plan.
func (p Plan) Windows() int {
	n := 0
	for _, b := range p.Blocks {
		n += len(b.Windows)
	}
	return n
}

// WindowTime is the sum of the nominal windows alone.
func (p Plan) WindowTime() time.Duration {
	var d time.Duration
	for _, b := range p.Blocks {
		d += time.Duration(len(b.Windows)) * b.Phase.Window.Std()
	}
	return d
}

// Overhead is what a run costs beside its windows, warm-ups, probes and
// pauses: starting and stopping containers, copying the database, collecting.
type Overhead struct {
	Block    time.Duration // once a block
	Generate time.Duration // each run of the load generator: window, warm-up or probe
}

// DefaultOverhead is what a two-core machine took. It is assumed until a block
// of the run itself has been measured.
func DefaultOverhead() Overhead {
	return Overhead{Block: 3 * time.Second, Generate: 700 * time.Millisecond}
}

// nominal is the time in which the load generator runs, with the pauses, and
// the number of its runs, for a block of which n windows are still to be
// measured.
func (p Plan) nominal(b Block, n int) (time.Duration, int) {
	d := p.preset.Probe.Window.Std() +
		time.Duration(len(b.Warmups))*p.preset.Warmup.Std() +
		time.Duration(n)*b.Phase.Window.Std() + time.Duration(max(0, n-1))*b.Phase.Cooldown.Std()
	runs := 1 + len(b.Warmups) + n
	if b.Phase.Kind == plan.KindCeiling { // a second probe, flat out
		d, runs = d+p.preset.Probe.Window.Std(), runs+1
	}
	return d, runs
}

// BlockTime estimates a block of which n windows are still to be measured.
func (p Plan) BlockTime(b Block, n int, o Overhead) time.Duration {
	d, runs := p.nominal(b, n)
	return d + o.Block + time.Duration(runs)*o.Generate
}

// Time estimates the whole plan.
func (p Plan) Time(o Overhead) time.Duration {
	var d time.Duration
	for _, b := range p.Blocks {
		d += p.BlockTime(b, len(b.Windows), o)
	}
	return d
}
