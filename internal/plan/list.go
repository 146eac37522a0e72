package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// BlockID names one candidate, one repetition and one phase.
type BlockID struct {
	Phase      string `json:"phase"`
	Candidate  string `json:"candidate"`
	Repetition int    `json:"repetition"` // from 1
}

// String names the block for a person.
func (b BlockID) String() string {
	return fmt.Sprintf("%s/%s/r%d", b.Phase, b.Candidate, b.Repetition)
}

// Block is a block with its windows, in the order in which they are measured.
type Block struct {
	BlockID
	Windows []Window `json:"windows"`
}

// Window names one run of the load generators inside a block. What it sends are
// its streams; Connections and Target are their sums.
type Window struct {
	Phase       string  `json:"phase"` // id of the phase in the preset
	Kind        Kind    `json:"kind"`  // rate or ceiling
	Candidate   string  `json:"candidate"`
	Scenario    string  `json:"scenario"` // of its one stream, or the id of the mix that several make
	Repetition  int     `json:"repetition"`
	Connections int     `json:"connections"`
	Target      int     `json:"target,omitempty"` // requests per second in an open loop, 0 in a closed one
	Seconds     float64 `json:"seconds"`          // nominal length
	// Share is the part of the candidate's ceiling of the same load that Target is; 0
	// where it is a number of its own. Target is 0 until the ceiling is known.
	Share float64 `json:"share_of_ceiling,omitempty"`
	// Streams are stored from layout version 2 of a run on; what reads an older
	// one fills them in.
	Streams []Stream `json:"streams,omitempty"`
}

// Stream is the part of a window's load that sends one scenario.
type Stream struct {
	Scenario    string  `json:"scenario"`
	Share       float64 `json:"share"`            // of the window's rate and connections
	Target      int     `json:"target,omitempty"` // requests per second in an open loop, 0 in a closed one
	Connections int     `json:"connections"`
	Tokens      int     `json:"tokens"` // different ones that it sends
}

// Block names the block of the window.
func (w Window) Block() BlockID { return BlockID{w.Phase, w.Candidate, w.Repetition} }

// Length is the nominal length of the window.
func (w Window) Length() time.Duration {
	return time.Duration(math.Round(w.Seconds * float64(time.Second)))
}

// Key names the window within its run, as a part of the name of a file: two of
// one name are the same.
func (w Window) Key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s_%s_c%d", w.Phase, w.Candidate, w.Scenario, w.Connections)
	switch {
	case w.Share > 0: // known before the target is
		fmt.Fprintf(&b, "_s%g", w.Share)
	case w.Target > 0:
		fmt.Fprintf(&b, "_q%d", w.Target)
	}
	fmt.Fprintf(&b, "_r%d", w.Repetition)
	return b.String()
}

// String names the window for a person.
func (w Window) String() string {
	s := fmt.Sprintf("%s %s %s, %d connections", w.Phase, w.Candidate, w.Scenario, w.Connections)
	if w.Target > 0 {
		s += fmt.Sprintf(", %d/s", w.Target)
	}
	if w.Share > 0 {
		s += fmt.Sprintf(", %g of the ceiling", w.Share)
	}
	return s + fmt.Sprintf(", repetition %d", w.Repetition)
}

// Sends are the streams of the window. One that was stored without any has one,
// of its scenario.
func (w Window) Sends() []Stream {
	if len(w.Streams) > 0 {
		return w.Streams
	}
	return []Stream{{Scenario: w.Scenario, Share: 1, Target: w.Target, Connections: w.Connections, Tokens: 1}}
}

// List is every block of a run with its windows, in the order in which they are
// measured. It is laid out once, when the run begins, and stored with it.
type List struct {
	Preset Preset // as selected: its phases are those of the blocks
	Blocks []Block
}

// LayOut lays out the list: phases in the preset's order, repetitions within
// them, and in each repetition the candidates in an order drawn from the seed.
// Loads keep the order of the suite or of the phase's mixes, so that the one that
// writes comes last. The same suite, preset and seed give the same list.
func LayOut(s Suite, p Preset, seed uint64) List {
	l := List{Preset: p}
	for i, phase := range p.Phases {
		for rep := 1; rep <= phase.Repetitions; rep++ {
			order := rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(rep))).Perm(len(s.Candidates))
			for _, c := range order {
				l.Blocks = append(l.Blocks, newBlock(s, phase, s.Candidates[c].ID, rep))
			}
		}
	}
	return l
}

func newBlock(s Suite, phase Phase, candidate string, rep int) Block {
	b := Block{BlockID: BlockID{Phase: phase.ID, Candidate: candidate, Repetition: rep}}
	for _, load := range phase.Loads(s) {
		for _, c := range phase.Connections {
			w := Window{
				Phase: phase.ID, Kind: phase.Kind, Candidate: candidate, Scenario: load.ID,
				Repetition: rep, Connections: c, Target: phase.Targets[load.ID], Seconds: phase.Window.Seconds(),
			}
			w.Streams = load.streams(s, w)
			for _, w.Share = range phase.shares() {
				b.Windows = append(b.Windows, w)
			}
		}
	}
	return b
}

// Phase is the phase of a block.
func (l List) Phase(b BlockID) Phase {
	i := slices.IndexFunc(l.Preset.Phases, func(p Phase) bool { return p.ID == b.Phase })
	if i < 0 {
		return Phase{ID: b.Phase}
	}
	return l.Preset.Phases[i]
}

// Warmups are the loads that warm up the candidate of a block: the first window
// of each.
func (b Block) Warmups() []Window {
	var first []Window
	for _, w := range b.Windows {
		if !slices.ContainsFunc(first, func(o Window) bool { return o.Scenario == w.Scenario }) {
			first = append(first, w)
		}
	}
	return first
}

// Resolved is a target that was not known before the ceiling was.
type Resolved struct {
	Phase       string  `json:"phase"`
	Candidate   string  `json:"candidate"`
	Scenario    string  `json:"scenario"` // or mix
	Connections int     `json:"connections"`
	Share       float64 `json:"share"`
	Ceiling     float64 `json:"ceiling_per_s"` // best rate that was evidence
	Target      int     `json:"target"`        // requests per second
}

// Of reports whether the target is the window's.
func (r Resolved) Of(w Window) bool {
	return w.Phase == r.Phase && w.Candidate == r.Candidate && w.Scenario == r.Scenario && w.Connections == r.Connections && w.Share == r.Share && r.Share > 0
}

// Resolve is what the share of a window makes of a ceiling: at least one request
// per second of each stream.
func (w Window) Resolve(ceiling float64) Resolved {
	target := max(int(math.Round(w.Share*ceiling)), len(w.Sends()))
	return Resolved{w.Phase, w.Candidate, w.Scenario, w.Connections, w.Share, ceiling, target}
}

// With is the list with a target that has become known, in all repetitions. The
// list itself stays as it is.
func (l List) With(r Resolved) List {
	l.Blocks = slices.Clone(l.Blocks)
	for i, b := range l.Blocks {
		windows := slices.Clone(b.Windows)
		for j := range windows {
			w := &windows[j]
			if !r.Of(*w) {
				continue
			}
			w.Target, w.Streams = r.Target, slices.Clone(w.Sends())
			shares := make([]float64, len(w.Streams))
			for k, s := range w.Streams {
				shares[k] = s.Share
			}
			for k, target := range parts(r.Target, shares) {
				w.Streams[k].Target = target
			}
		}
		l.Blocks[i].Windows = windows
	}
	return l
}

// Target is the target of a window of the list, as far as it is known.
func (l List) Target(w Window) int {
	for _, b := range l.Blocks {
		if b.BlockID != w.Block() {
			continue
		}
		for _, o := range b.Windows {
			if o.Key() == w.Key() {
				return o.Target
			}
		}
	}
	return 0
}

// Left are the windows of the block that are not done.
func (b Block) Left(done func(Window) bool) []Window {
	return slices.DeleteFunc(slices.Clone(b.Windows), done)
}

// Windows counts the windows of the list.
func (l List) Windows() int { return l.Left(func(Window) bool { return false }) }

// Left counts the windows that are not done.
func (l List) Left(done func(Window) bool) int {
	n := 0
	for _, b := range l.Blocks {
		n += len(b.Left(done))
	}
	return n
}

// WindowTime is the sum of the nominal windows that are not done.
func (l List) WindowTime(done func(Window) bool) time.Duration {
	var d time.Duration
	for _, b := range l.Blocks {
		for _, w := range b.Left(done) {
			d += w.Length()
		}
	}
	return d
}

// Overhead is what a run costs beside its windows, warm-ups, probes and
// pauses: starting and stopping containers, copying the database, collecting.
type Overhead struct {
	Block    time.Duration // once a block
	Generate time.Duration // each run of the load generators: window, warm-up or probe
}

// DefaultOverhead is what a two-core machine took. It is assumed until a block
// of the run itself has been measured.
func DefaultOverhead() Overhead {
	return Overhead{Block: 3 * time.Second, Generate: 700 * time.Millisecond}
}

// Nominal is the time in which the load generators run, with the pauses, and the
// number of their runs, for a block of which n windows are measured.
func (l List) Nominal(b Block, n int) (d time.Duration, runs int) {
	phase, warmups := l.Phase(b.BlockID), len(b.Warmups())
	d = l.Preset.Probe.Window.Std() +
		time.Duration(warmups)*l.Preset.Warmup.Std() +
		time.Duration(n)*phase.Window.Std() + time.Duration(max(0, n-1))*phase.Cooldown.Std()
	runs = 1 + warmups + n
	if phase.Kind == KindCeiling { // a second probe, flat out
		d, runs = d+l.Preset.Probe.Window.Std(), runs+1
	}
	return d, runs
}

// BlockTime estimates a block of which n windows are still to be measured.
func (l List) BlockTime(b Block, n int, o Overhead) time.Duration {
	if n == 0 {
		return 0
	}
	d, runs := l.Nominal(b, n)
	return d + o.Block + time.Duration(runs)*o.Generate
}

// Time estimates what is not done of the list.
func (l List) Time(o Overhead, done func(Window) bool) time.Duration {
	var d time.Duration
	for _, b := range l.Blocks {
		d += l.BlockTime(b, len(b.Left(done)), o)
	}
	return d
}

// Undone is the done of a list of which nothing is measured yet.
func Undone(Window) bool { return false }
