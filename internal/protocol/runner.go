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
	Attempts(plan.Window) []store.WindowResult
	// NextAttempt is one more than the highest attempt number ever used for the
	// window, raw files without an event included.
	NextAttempt(plan.Window) int
}

// Observer is told what happens, as it happens.
type Observer interface {
	PhaseStarted(p plan.Phase)
	BlockStarted(b plan.Block, p Progress)
	Stage(b plan.Block, what string)
	ProbeEnded(b plan.Block, r store.ProbeReading)
	WindowStarted(w plan.Window, attempt int, p Progress)
	WindowEnded(r store.WindowResult, p Progress)
	BlockEnded(b plan.Block, p Progress)
	// BlockFailed says that a block broke off, and whether it is tried again.
	BlockFailed(b plan.Block, err error, again bool)
}

// Progress says how far a run is.
type Progress struct {
	Block, Blocks   int // from 1
	Window, Windows int // finished windows, of all
	Elapsed         time.Duration
	Remaining       time.Duration // estimate
	Measured        bool          // whether the estimate rests on a block of this run
}

// Runner measures a list of windows.
type Runner struct {
	Lab      Lab
	Journal  Journal
	List     plan.List
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
	for i, b := range r.List.Blocks {
		var broken error
		for try := 1; try <= blockTries; try++ {
			pending := r.pending(b)
			if len(pending) == 0 {
				break
			}
			if b.Phase != phase {
				phase = b.Phase
				r.Observer.PhaseStarted(r.List.Phase(b.BlockID))
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
				return &Incomplete{Missing: r.List.Windows() - r.Finished(), Planned: r.List.Windows(), Ended: true, Errs: append(missing, broken)}
			}
			r.Observer.BlockFailed(b, broken, try < blockTries && len(r.pending(b)) > 0)
		}
		if broken != nil {
			missing = append(missing, broken)
		}
	}
	if len(missing) > 0 {
		return &Incomplete{Missing: r.List.Windows() - r.Finished(), Planned: r.List.Windows(), Errs: missing}
	}
	return nil
}

// Finished counts the windows of the plan that need no further attempt.
func (r *Runner) Finished() int {
	return r.List.Windows() - r.List.Left(r.done)
}

func (r *Runner) done(w plan.Window) bool {
	return Finished(r.Journal.Attempts(w), r.List.Preset.Allowed())
}

func (r *Runner) pending(b plan.Block) []plan.Window { return b.Left(r.done) }

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
func (r *Runner) block(ctx context.Context, index int, pending []plan.Window) (err error) {
	b := r.List.Blocks[index]
	timer := blockTimer{start: time.Now()}
	r.Observer.BlockStarted(b, r.progress(index, false))
	if err := r.append(store.Event{Type: store.EventBlockStarted, Block: &b.BlockID}); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		failed := r.append(store.Event{Type: store.EventBlockFailed, Block: &b.BlockID, Error: err.Error()})
		err = errors.Join(fmt.Errorf("block %s: %w", b.BlockID, err), failed)
	}()

	if b, pending, err = r.resolve(index, pending); err != nil {
		return err
	}
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
	nominal, _ := r.List.Nominal(b, timer.windows)
	timer.end(nominal+timer.again, &r.overhead)
	if err := r.append(store.Event{Type: store.EventBlockEnded, Block: &b.BlockID}); err != nil {
		return err
	}
	r.Observer.BlockEnded(b, r.progress(index, true))
	return nil
}

// resolve makes the targets of a block known that are shares of the candidate's
// ceiling, once for all repetitions, and returns the block and its pending windows
// with them.
func (r *Runner) resolve(index int, pending []plan.Window) (plan.Block, []plan.Window, error) {
	for _, w := range pending {
		if w.Share == 0 || r.List.Target(w) > 0 {
			continue
		}
		ceiling := r.ceiling(w)
		if ceiling == 0 {
			return r.List.Blocks[index], nil, fmt.Errorf("window %s: the ceiling is not known, no window that measures it is evidence", w)
		}
		known := w.Resolve(ceiling)
		data, err := json.Marshal(known)
		if err != nil {
			return r.List.Blocks[index], nil, err
		}
		if err := r.append(store.Event{Type: store.EventTarget, Data: data}); err != nil {
			return r.List.Blocks[index], nil, err
		}
		r.List = r.List.With(known)
	}
	return r.List.Blocks[index], r.pending(r.List.Blocks[index]), nil
}

// ceiling is the best rate of a window's candidate and load that is evidence, 0
// where there is none.
func (r *Runner) ceiling(w plan.Window) float64 {
	best := 0.0
	for _, b := range r.List.Blocks {
		for _, c := range b.Windows {
			if c.Kind != plan.KindCeiling || c.Candidate != w.Candidate || c.Scenario != w.Scenario {
				continue
			}
			for _, a := range r.Journal.Attempts(c) {
				if a.Passed() {
					best = max(best, a.Measured.Achieved)
				}
			}
		}
	}
	return best
}

// stop keeps what the candidate printed and removes its container, also when
// the run was interrupted.
func (r *Runner) stop(b plan.Block, s Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	log, err := s.Log(ctx)
	if err == nil && len(log) > 0 {
		err = r.keepLog(b, log)
	}
	return errors.Join(err, s.Stop(ctx))
}

// keepLog writes a candidate's log under the next free name.
func (r *Runner) keepLog(b plan.Block, log []byte) error {
	for n := 1; ; n++ {
		_, err := r.writeRaw(fmt.Sprintf("raw/%s/%s_r%d_n%d.log", b.Phase, b.Candidate, b.Repetition, n), log)
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
func (r *Runner) probe(ctx context.Context, b plan.Block, timer *blockTimer) (reading store.ProbeReading, err error) {
	r.Observer.Stage(b, "probing")
	server, err := r.Lab.StartProbe(ctx)
	if err != nil {
		return store.ProbeReading{}, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	p := r.List.Preset.Probe
	for _, w := range b.Windows { // a probe of less says nothing about the windows
		p.Target = max(p.Target, w.Target)
	}
	for n := 1; n <= MaxProbes; n++ {
		reading, err = r.probeOnce(ctx, b, server, p.Connections, p.Target, timer)
		if err != nil || gates.OfProbe(reading).OK {
			break
		}
		timer.again += p.Window.Std()
	}
	if err != nil || r.List.Phase(b.BlockID).Kind != plan.KindCeiling {
		return reading, err
	}
	_, err = r.probeOnce(ctx, b, server, slices.Max(r.List.Phase(b.BlockID).Connections), 0, timer)
	return reading, err
}

// probeOnce takes one reading of the reference server: at a target, or flat out
// where that is 0.
func (r *Runner) probeOnce(ctx context.Context, b plan.Block, server Server, connections, target int, timer *blockTimer) (store.ProbeReading, error) {
	window := r.List.Preset.Probe.Window.Std()
	var out [][]byte
	err := timer.generate(window, func() (err error) {
		out, err = r.Lab.Generate(ctx, server, Load{
			Streams:  []Stream{{Scenario: plan.Scenario{ID: "probe", Method: "GET", Path: "/"}, Connections: connections, Target: target}},
			Duration: window, Timeout: r.List.Preset.Timeout.Std(),
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
		reading.File = store.ProbePath(b.BlockID, reading)
		reading.SHA256, err = r.writeRaw(reading.File, out[0])
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return store.ProbeReading{}, err
		}
	}
	for i, data := range out[1:] {
		path := store.OtherProbePath(b.BlockID, reading, i+2)
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
	return reading, r.append(store.Event{Type: store.EventProbe, Block: &b.BlockID, Data: data})
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

// warmUp sends each load of the block for the preset's warm-up time, as its
// first window does. A candidate that answers none of a scenario is broken, not
// slow.
func (r *Runner) warmUp(ctx context.Context, b plan.Block, s Server, timer *blockTimer) error {
	for _, w := range b.Warmups() {
		r.Observer.Stage(b, "warming up "+w.Scenario)
		load := r.load(w, r.List.Preset.Warmup.Std())
		var out [][]byte
		err := timer.generate(load.Duration, func() (err error) {
			out, err = r.Lab.Generate(ctx, s, load)
			return err
		})
		if err != nil {
			return fmt.Errorf("warm-up of %s: %w", w.Scenario, err)
		}
		if len(out) == 0 || len(out)%len(load.Streams) != 0 {
			return fmt.Errorf("warm-up of %s: %d load generators left an output, of %d streams", w.Scenario, len(out), len(load.Streams))
		}
		hosts := len(out) / len(load.Streams)
		for i, st := range load.Streams {
			ok, err := succeeded("output of the warm-up", out[i*hosts:(i+1)*hosts])
			if err != nil {
				return fmt.Errorf("warm-up of %s: %w", st.Scenario.ID, err)
			}
			if ok == 0 {
				return fmt.Errorf("warm-up of %s: %s gave no 2xx answer; its log in the run's folder says why", st.Scenario.ID, b.Candidate)
			}
		}
	}
	return nil
}

// load is what a window sends, for a time.
func (r *Runner) load(w plan.Window, d time.Duration) Load {
	l := Load{Duration: d, Timeout: r.List.Preset.Timeout.Std()}
	for _, st := range w.Sends() {
		sc, _ := r.Suite.Scenario(st.Scenario)
		l.Streams = append(l.Streams, Stream{Scenario: sc, Connections: st.Connections, Target: st.Target})
	}
	return l
}

// window measures one window until it is evidence or has had its attempts.
func (r *Runner) window(ctx context.Context, index int, s Server, w plan.Window, probe store.ProbeReading, timer *blockTimer) error {
	load := r.load(w, w.Length())
	cooldown := r.List.Phase(w.Block()).Cooldown.Std()
	for !r.done(w) {
		if timer.windows > 0 {
			if err := pause(ctx, cooldown); err != nil {
				return err
			}
		}
		attempt := r.Journal.NextAttempt(w)
		r.Observer.WindowStarted(w, attempt, r.progress(index, true))
		var m Measurement
		err := timer.generate(load.Duration, func() (err error) {
			m, err = r.Lab.Measure(ctx, s, load)
			return err
		})
		timer.windows++
		result, writeErr := r.record(w, attempt, m, probe, err)
		if writeErr != nil {
			return errors.Join(err, writeErr)
		}
		r.Observer.WindowEnded(result, r.progress(index, true))
		if err != nil {
			return fmt.Errorf("window %s, attempt %d: %w", w, attempt, err)
		}
		if result.Error != "" {
			return fmt.Errorf("window %s, attempt %d: %s", w, attempt, result.Error)
		}
	}
	return nil
}

// record writes the raw files, judges them and appends the result.
func (r *Runner) record(w plan.Window, attempt int, m Measurement, probe store.ProbeReading, failure error) (store.WindowResult, error) {
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
	if n := len(w.Sends()); failure == nil && len(m.OHA)%n != 0 {
		failure = fmt.Errorf("%d load generators left an output, of %d streams", len(m.OHA), n)
	}
	for i, data := range m.OHA {
		path, err := keep(store.OHAEnding(w, len(m.OHA), i), data)
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
		Block: index + 1, Blocks: len(r.List.Blocks), Window: r.Finished(), Windows: r.List.Windows(),
		Elapsed: time.Since(r.started), Remaining: r.Tail, Measured: measured,
	}
	b := r.List.Blocks[index]
	switch n := len(r.pending(b)); {
	case n > 0 && warm:
		phase := r.List.Phase(b.BlockID)
		p.Remaining += time.Duration(n) * (phase.Window.Std() + phase.Cooldown.Std() + o.Generate)
	case n > 0:
		p.Remaining += r.List.BlockTime(b, n, o)
	}
	for _, b := range r.List.Blocks[index+1:] {
		p.Remaining += r.List.BlockTime(b, len(r.pending(b)), o)
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
