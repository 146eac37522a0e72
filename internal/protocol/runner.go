// Package protocol is the order of things: which block comes when, what happens
// inside it, which window counts as evidence and which is measured again. It
// knows the hosts only through the Lab interface.
package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// MaxProbes is how often the reference probe of a block is asked: once, and again
// up to twice when it fell short of its target.
const MaxProbes = 3

// MaxBroken is how many blocks in a row may break off before the run ends: then
// it is not the block.
const MaxBroken = 3

// blockTries is how often a block is tried that breaks off.
const blockTries = 2

// Journal is where a run is written down. It is append-only: no raw file is
// ever written twice.
type Journal interface {
	Append(store.Event) error
	// WriteRaw writes a file below the run's folder and returns its SHA-256. A
	// file that is there already is an error that wraps fs.ErrExist.
	WriteRaw(path string, data []byte) (sha256 string, err error)
	// Attempts returns the attempts at a window that are on record.
	Attempts(store.Window) []store.WindowResult
	// NextAttempt is one more than the highest attempt number ever used for the
	// window, raw files without an event included.
	NextAttempt(store.Window) int
}

// Observer is told what happens, as it happens.
type Observer interface {
	PhaseStarted(p plan.Phase)
	BlockStarted(b Block, p Progress)
	Stage(b Block, what string)
	ProbeEnded(b Block, r store.ProbeReading)
	WindowStarted(w store.Window, attempt int, p Progress)
	WindowEnded(r store.WindowResult, p Progress)
	BlockEnded(b Block, p Progress)
	// BlockFailed says that a block broke off, and whether it is tried again.
	BlockFailed(b Block, err error, again bool)
}

// Progress says how far a run is.
type Progress struct {
	Block, Blocks   int // from 1
	Window, Windows int // finished windows, of all
	Elapsed         time.Duration
	Remaining       time.Duration // estimate
	Measured        bool          // whether the estimate rests on a block of this run
}

// Runner measures a plan.
type Runner struct {
	Lab      Lab
	Journal  Journal
	Plan     Plan
	Preset   plan.Preset
	Suite    plan.Suite
	Layout   gates.Layout // of the run, for its gates
	Observer Observer
	Tail     time.Duration // what the caller does after the last window, for the estimate

	started  time.Time
	overhead learned
}

// Run measures every window that is not finished yet, block by block. A block
// that breaks off is tried again once; what is missing then is left out, and Run
// goes on and returns an *Incomplete at its end. It stops at the end of the
// context, when nothing can be written down any more, and when several blocks in
// a row broke off. What was measured until then is on record and a later Run goes
// on from there.
func (r *Runner) Run(ctx context.Context) error {
	r.started = time.Now()
	phase := ""
	var missing []error // of blocks that broke off, their last
	row := 0            // how many broke off since one ended well
	for i, b := range r.Plan.Blocks {
		var broken error
		for try := 1; try <= blockTries; try++ {
			pending := r.pending(b)
			if len(pending) == 0 {
				break
			}
			if b.Block.Phase != phase {
				phase = b.Block.Phase
				r.Observer.PhaseStarted(b.Phase)
				if err := r.append(store.Event{Type: store.EventPhaseStarted, Message: phase}); err != nil {
					return err
				}
			}
			broken = r.block(ctx, i, pending)
			if broken == nil {
				row = 0
				break
			}
			var lost *writeError
			if ctx.Err() != nil || errors.As(broken, &lost) {
				return broken
			}
			row++
			if row == MaxBroken {
				return &Incomplete{Missing: r.Plan.Windows() - r.Finished(), Planned: r.Plan.Windows(), Ended: true, Errs: append(missing, broken)}
			}
			r.Observer.BlockFailed(b, broken, try < blockTries && len(r.pending(b)) > 0)
		}
		if broken != nil {
			missing = append(missing, broken)
		}
	}
	if len(missing) > 0 {
		return &Incomplete{Missing: r.Plan.Windows() - r.Finished(), Planned: r.Plan.Windows(), Errs: missing}
	}
	return nil
}

// Finished counts the windows of the plan that need no further attempt.
func (r *Runner) Finished() int {
	return r.Plan.Windows() - r.Plan.Left(r.done).Windows()
}

func (r *Runner) done(w store.Window) bool {
	return Finished(r.Journal.Attempts(w), r.Preset.Allowed())
}

func (r *Runner) pending(b Block) []store.Window { return b.Left(r.done).Windows }

// Finished reports whether a window with these attempts needs no further one:
// an attempt is evidence, or the gates have judged it as often as the preset
// allows. Where it was the probe that failed that is once, since the probe itself
// had its attempts. Attempts that broke off do not count.
func Finished(attempts []store.WindowResult, allowed int) bool {
	judged := 0
	for _, a := range attempts {
		if a.Passed() {
			return true
		}
		if a.Error != "" {
			continue
		}
		judged++
		if slices.ContainsFunc(a.Gates, func(g store.Gate) bool { return g.Name == gates.Probe && g.Failed() }) {
			return true
		}
	}
	return judged >= allowed
}

// block runs one block for the windows that are still pending.
func (r *Runner) block(ctx context.Context, index int, pending []store.Window) (err error) {
	b := r.Plan.Blocks[index]
	timer := blockTimer{start: time.Now()}
	r.Observer.BlockStarted(b, r.progress(index, false))
	if err := r.append(store.Event{Type: store.EventBlockStarted, Block: &b.Block}); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		failed := r.append(store.Event{Type: store.EventBlockFailed, Block: &b.Block, Error: err.Error()})
		err = errors.Join(fmt.Errorf("block %s: %w", name(b.Block), err), failed)
	}()

	r.Observer.Stage(b, "copying the database")
	if err := r.Lab.FreshDatabase(ctx); err != nil {
		return err
	}
	probe, err := r.probe(ctx, b, &timer)
	if err != nil {
		return err
	}
	r.Observer.Stage(b, "starting "+b.Candidate)
	server, err := r.Lab.StartCandidate(ctx, b.Candidate)
	if err != nil {
		var notReady *StartError
		if errors.As(err, &notReady) {
			return errors.Join(err, r.keepLog(b, notReady.Log))
		}
		return err
	}
	defer func() { err = errors.Join(err, r.stop(b, server)) }()

	if err := r.warmUp(ctx, b, server, &timer); err != nil {
		return err
	}
	for _, w := range pending {
		if err := r.window(ctx, index, server, w, probe, &timer); err != nil {
			return err
		}
	}
	nominal, _ := r.Plan.nominal(b, timer.windows)
	timer.end(nominal+timer.again, &r.overhead)
	if err := r.append(store.Event{Type: store.EventBlockEnded, Block: &b.Block}); err != nil {
		return err
	}
	r.Observer.BlockEnded(b, r.progress(index, true))
	return nil
}

// stop keeps what the candidate printed and removes its container, also when
// the run was interrupted.
func (r *Runner) stop(b Block, s Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	log, err := s.Log(ctx)
	if err == nil && len(log) > 0 {
		err = r.keepLog(b, log)
	}
	return errors.Join(err, s.Stop(ctx))
}

// keepLog writes a candidate's log under the next free name.
func (r *Runner) keepLog(b Block, log []byte) error {
	for n := 1; ; n++ {
		_, err := r.writeRaw(fmt.Sprintf("raw/%s/%s_r%d_n%d.log", b.Block.Phase, b.Candidate, b.Repetition, n), log)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// probe runs the reference server on the candidate's cores at the probe's
// target. What it reached judges the windows of the block; one that fell short
// is asked again at once, up to MaxProbes times, and the last reading counts.
// Before a ceiling it is asked for as much as it can, so that the generator's
// own limit stands beside the candidate's. A probe that could not be read is a
// reading of nothing, and an error only when the lab failed.
func (r *Runner) probe(ctx context.Context, b Block, timer *blockTimer) (reading store.ProbeReading, err error) {
	r.Observer.Stage(b, "probing")
	server, err := r.Lab.StartProbe(ctx)
	if err != nil {
		return store.ProbeReading{}, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	p := r.Preset.Probe
	for n := 1; n <= MaxProbes; n++ {
		reading, err = r.probeOnce(ctx, b, server, p.Connections, p.Target, timer)
		if err != nil || gates.OfProbe(reading).OK {
			break
		}
		timer.again += p.Window.Std()
	}
	if err != nil || b.Phase.Kind != plan.KindCeiling {
		return reading, err
	}
	_, err = r.probeOnce(ctx, b, server, slices.Max(b.Phase.Connections), 0, timer)
	return reading, err
}

// probeOnce takes one reading of the reference server: at a target, or flat out
// where that is 0.
func (r *Runner) probeOnce(ctx context.Context, b Block, server Server, connections, target int, timer *blockTimer) (store.ProbeReading, error) {
	window := r.Preset.Probe.Window.Std()
	var out [][]byte
	err := timer.generate(window, func() (err error) {
		out, err = r.Lab.Generate(ctx, server, Load{
			Scenario: plan.Scenario{ID: "probe", Method: "GET", Path: "/"}, Connections: connections,
			Target: target, Duration: window, Timeout: r.Preset.Timeout.Std(),
		})
		return err
	})
	if err != nil {
		return store.ProbeReading{}, err
	}
	if len(out) == 0 {
		return store.ProbeReading{}, errors.New("the probe left no output of a load generator")
	}
	reading := store.ProbeReading{Target: target}
	if reading.FlatOut() {
		reading.Connections = connections
	}
	for reading.Attempt = 1; ; reading.Attempt++ {
		reading.File = store.ProbePath(b.Block, reading)
		reading.SHA256, err = r.writeRaw(reading.File, out[0])
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return store.ProbeReading{}, err
		}
	}
	for i, data := range out[1:] {
		path := store.OtherProbePath(b.Block, reading, i+2)
		sum, err := r.writeRaw(path, data)
		if err != nil {
			return store.ProbeReading{}, err
		}
		if reading.Others == nil {
			reading.Others = map[string]string{}
		}
		reading.Others[path] = sum
	}
	ok, err := succeeded(reading.File, out)
	if err != nil {
		reading.Error = err.Error()
	}
	reading.Achieved = float64(ok) / window.Seconds()
	data, err := json.Marshal(reading)
	if err != nil {
		return store.ProbeReading{}, err
	}
	r.Observer.ProbeEnded(b, reading)
	return reading, r.append(store.Event{Type: store.EventProbe, Block: &b.Block, Data: data})
}

// succeeded counts the 2xx answers in the outputs of all load generators. The
// name stands for an output in errors.
func succeeded(name string, outputs [][]byte) (ok int64, err error) {
	for _, data := range outputs {
		result, err := oha.Parse(name, data)
		if err != nil {
			return 0, err
		}
		ok += result.OK()
	}
	return ok, nil
}

func stopServer(s Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// warmUp sends each scenario for the preset's warm-up time, in the load shape
// of the phase. A candidate that answers none of it is broken, not slow.
func (r *Runner) warmUp(ctx context.Context, b Block, s Server, timer *blockTimer) error {
	for _, sc := range b.Warmups {
		r.Observer.Stage(b, "warming up "+sc.ID)
		var out [][]byte
		err := timer.generate(r.Preset.Warmup.Std(), func() (err error) {
			out, err = r.Lab.Generate(ctx, s, Load{
				Scenario: sc, Connections: b.Phase.Connections[0], Target: b.Phase.Targets[sc.ID],
				Duration: r.Preset.Warmup.Std(), Timeout: r.Preset.Timeout.Std(),
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("warm-up of %s: %w", sc.ID, err)
		}
		ok, err := succeeded("output of the warm-up", out)
		if err != nil {
			return fmt.Errorf("warm-up of %s: %w", sc.ID, err)
		}
		if ok == 0 {
			return fmt.Errorf("warm-up of %s: %s gave no 2xx answer; its log in the run's folder says why", sc.ID, b.Candidate)
		}
	}
	return nil
}

// window measures one window until it is evidence or has had its attempts.
func (r *Runner) window(ctx context.Context, index int, s Server, w store.Window, probe store.ProbeReading, timer *blockTimer) error {
	b := r.Plan.Blocks[index]
	sc, _ := r.Suite.Scenario(w.Scenario)
	for !r.done(w) {
		if timer.windows > 0 {
			if err := pause(ctx, b.Phase.Cooldown.Std()); err != nil {
				return err
			}
		}
		attempt := r.Journal.NextAttempt(w)
		r.Observer.WindowStarted(w, attempt, r.progress(index, true))
		var m Measurement
		err := timer.generate(b.Phase.Window.Std(), func() (err error) {
			m, err = r.Lab.Measure(ctx, s, Load{
				Scenario: sc, Connections: w.Connections, Target: w.Target,
				Duration: b.Phase.Window.Std(), Timeout: r.Preset.Timeout.Std(),
			})
			return err
		})
		timer.windows++
		result, writeErr := r.record(w, attempt, m, probe, err)
		if writeErr != nil {
			return errors.Join(err, writeErr)
		}
		r.Observer.WindowEnded(result, r.progress(index, true))
		if err != nil {
			return fmt.Errorf("window %s, attempt %d: %w", windowName(w), attempt, err)
		}
		if result.Error != "" {
			return fmt.Errorf("window %s, attempt %d: %s", windowName(w), attempt, result.Error)
		}
	}
	return nil
}

// record writes the raw files, judges them and appends the result.
func (r *Runner) record(w store.Window, attempt int, m Measurement, probe store.ProbeReading, failure error) (store.WindowResult, error) {
	res := store.WindowResult{Window: w, Attempt: attempt, Start: m.Start, End: m.End, Hosts: m.Hosts, Database: m.Database, SHA256: map[string]string{}}
	keep := func(ending string, data []byte) (string, error) {
		if len(data) == 0 {
			return "", nil
		}
		path := store.RawPath(w, attempt, ending)
		sum, err := r.writeRaw(path, data)
		if err == nil {
			res.SHA256[path] = sum
		}
		return path, err
	}
	for i, data := range m.OHA {
		ending := store.RawOHA
		if i > 0 {
			ending = plan.HostName(plan.Load, i+1) + "." + store.RawOHA
		}
		path, err := keep(ending, data)
		if err != nil {
			return res, err
		}
		if i == 0 {
			res.OHA = path
		} else if path != "" {
			res.OtherOHA = append(res.OtherOHA, path)
		}
	}
	taken := map[string]bool{}
	for i, s := range m.CGroup {
		ending := store.RawCGroup
		if i > 0 {
			ending = fileName(s.Host, taken) + "." + store.RawCGroup
		}
		path, err := keep(ending, s.Lines)
		if err != nil {
			return res, err
		}
		if i == 0 {
			res.CGroup = path
		} else if path != "" {
			if res.OtherCGroup == nil {
				res.OtherCGroup = map[string]string{}
			}
			if _, twice := res.OtherCGroup[s.Host]; twice {
				failure = errors.Join(failure, fmt.Errorf("two hosts of the lab are called %s", s.Host))
				continue
			}
			res.OtherCGroup[s.Host] = path
		}
	}
	if failure != nil {
		res.Error = failure.Error()
	} else if err := r.judge(&res, m, probe); err != nil {
		res.Error = err.Error()
	}
	return res, r.append(store.Event{Type: store.EventWindow, Window: &res})
}

// fileName makes the name of a host fit to be a part of a file's name, and one
// that no other host has.
func fileName(host string, taken map[string]bool) string {
	safe := strings.Trim(unfit.ReplaceAllString(host, "-"), "-.")
	safe = cmp.Or(safe[:min(len(safe), maxHostName)], "host")
	name := safe
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", safe, n)
	}
	taken[name] = true
	return name
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// maxHostName bounds the part of a file's name, of which most file systems
// take 255 bytes.
const maxHostName = 63

// judge derives the window's figures and reads its gates, from what was just
// written down and in the same way as whoever judges it again.
func (r *Runner) judge(res *store.WindowResult, m Measurement, probe store.ProbeReading) error {
	for i, out := range m.OHA {
		if len(out) == 0 {
			return fmt.Errorf("load generator %d of %d left no output", i+1, len(m.OHA))
		}
	}
	text := map[string][]byte{}
	if len(m.OHA) > 0 {
		text[res.OHA] = m.OHA[0]
	}
	for i, path := range res.OtherOHA {
		text[path] = m.OHA[i+1]
	}
	for i, s := range m.CGroup {
		if i == 0 {
			text[res.CGroup] = s.Lines
		} else {
			text[res.OtherCGroup[s.Host]] = s.Lines
		}
	}
	figures, verdicts, err := r.Layout.Judge(*res, probe, func(path string) ([]byte, error) { return text[path], nil })
	if err != nil {
		return err
	}
	res.Measured, res.Gates = &figures, verdicts
	return nil
}

// progress estimates what is left: the windows of this block that are still
// pending, and all blocks behind it. Warm says that the block is past its
// probe and warm-ups.
func (r *Runner) progress(index int, warm bool) Progress {
	o, measured := r.overhead.estimate()
	p := Progress{
		Block: index + 1, Blocks: len(r.Plan.Blocks), Window: r.Finished(), Windows: r.Plan.Windows(),
		Elapsed: time.Since(r.started), Remaining: r.Tail, Measured: measured,
	}
	b := r.Plan.Blocks[index]
	switch n := len(r.pending(b)); {
	case n > 0 && warm:
		p.Remaining += time.Duration(n) * (b.Phase.Window.Std() + b.Phase.Cooldown.Std() + o.Generate)
	case n > 0:
		p.Remaining += r.Plan.BlockTime(b, n, o)
	}
	for _, b := range r.Plan.Blocks[index+1:] {
		if n := len(r.pending(b)); n > 0 {
			p.Remaining += r.Plan.BlockTime(b, n, o)
		}
	}
	return p
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func name(b store.Block) string {
	return fmt.Sprintf("%s/%s/r%d", b.Phase, b.Candidate, b.Repetition)
}

func windowName(w store.Window) string {
	return fmt.Sprintf("%s/%s/%s/c%d/r%d", w.Phase, w.Candidate, w.Scenario, w.Connections, w.Repetition)
}
