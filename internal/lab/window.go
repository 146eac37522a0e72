package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/guest/hold"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

const (
	whatLoad    = "load"
	whatSampler = "sampler"
	sampleFile  = "/tmp/percore.cg.jsonl"
	reportFile  = "/tmp/percore.run.json"
	gateFile    = "/tmp/percore.gate"

	// Bounds on files that come out of containers, in bytes.
	maxOutput  = 64 << 20
	maxSamples = 512 << 20
	maxReport  = 64 << 10

	// margin is what a window may take beyond its length and one request
	// timeout.
	margin = 30 * time.Second

	// outage is how long a driver may be cut off from a host and find that
	// everything there has gone on meanwhile.
	outage = engine.Patience + 3*time.Minute

	// sampleEvery is the time between two samples.
	sampleEvery = 100 * time.Millisecond

	// linger is how long a load generator's container stays when the generator
	// has ended: two samples see it.
	linger = 250 * time.Millisecond

	// lead is how far ahead the instant is at which several load generators
	// start; late is how much a generator may miss it by.
	lead = time.Second
	late = 20 * time.Millisecond
	// starts is how often several load generators are started anew when one of
	// them missed the instant.
	starts = 3
)

// errLate says that a load generator did not start at the instant agreed on.
var errLate = errors.New("the load generators could not be started at one instant")

// share is the part of a stream that one of n load hosts takes: connections and
// target are spread as evenly as whole numbers allow, the first take what is left
// over.
func share(s protocol.Stream, i, n int) protocol.Stream {
	part := func(all int) int {
		p := all / n
		if i < all%n {
			p++
		}
		return p
	}
	s.Connections, s.Target = part(s.Connections), part(s.Target)
	return s
}

// CheckShares refuses a stream that cannot be spread over n load hosts.
func CheckShares(connections, target, n int) error {
	if connections < n {
		return fail.Input("a window of %d connections cannot be spread over %d load hosts", connections, n).Try("take fewer load hosts, or phases with at least %d connections", n)
	}
	if target > 0 && target < n {
		return fail.Input("a target of %d requests per second cannot be spread over %d load hosts", target, n).Try("take fewer load hosts, or a target of at least %d", n)
	}
	return nil
}

// generator is one load generator of a window: one stream on one load host.
type generator struct {
	host   *Host
	c      *engine.Container
	pid    int          // on its host; 0 where nobody asked
	end    engine.State // of its container
	load   protocol.Load
	stream protocol.Stream // its share of one of the load
	name   string          // under which its container is sampled
	held   bool            // whether it waits for the gate
	out    []byte          // what it wrote
	span   span            // when it ran, by its host's clock
	// When its container was started, where it is held, and when it was let go, by
	// the driver's clock.
	started, gate time.Time
}

// span is a time from a host's clock to a later one.
type span struct{ start, end time.Time }

// Generate runs the load generators once and returns their outputs.
func (l *Lab) Generate(ctx context.Context, s protocol.Server, w protocol.Load) ([][]byte, error) {
	srv, err := l.running(s)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		out, err := l.generate(ctx, w, try)
		if errors.Is(err, errLate) && try < starts {
			continue
		}
		if err != nil {
			cleanup, cancel := l.cleanup(ctx)
			defer cancel()
			return out, l.blame(errors.Join(err, l.serverGone(cleanup, srv)))
		}
		return out, nil
	}
}

func (l *Lab) generate(ctx context.Context, w protocol.Load, try int) (out [][]byte, err error) {
	gens, err := l.createLoads(ctx, w, l.spread() || len(w.Streams) > 1)
	defer func() { err = errors.Join(err, l.removeLoads(ctx, gens)) }()
	if err != nil {
		return nil, err
	}
	err = l.startLoads(ctx, gens, false)
	if err == nil {
		err = l.runLoads(ctx, gens, l.lastReadings().aheadOf(), try)
	}
	return outputs(gens), err
}

func outputs(gens []*generator) [][]byte {
	out := make([][]byte, len(gens))
	for i, g := range gens {
		out[i] = g.out
	}
	return out
}

// running checks that a server belongs to the lab and was not stopped.
func (l *Lab) running(s protocol.Server) (*server, error) {
	srv, ok := s.(*server)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || !l.servers[srv] {
		return nil, fmt.Errorf("server %s does not run in this lab", s.Name())
	}
	return srv, nil
}

// createLoads creates the load generators' containers; none is started. Held
// ones wait for the gate when they are. What was created is returned beside an
// error.
func (l *Lab) createLoads(ctx context.Context, w protocol.Load, held bool) ([]*generator, error) {
	hosts := l.loadHosts()
	for _, s := range w.Streams {
		if err := CheckShares(s.Connections, s.Target, len(hosts)); err != nil {
			return nil, err
		}
	}
	if err := l.renew(w); err != nil {
		return nil, err
	}
	var gens []*generator
	var group errgroup.Group
	for n, s := range w.Streams {
		for i, h := range hosts {
			g := &generator{host: h, load: w, stream: share(s, i, len(hosts)), held: held, name: measure.LoadContainerOf(n, s.Scenario.ID)}
			gens = append(gens, g)
			group.Go(func() (err error) { g.c, err = l.createLoad(ctx, g); return err })
		}
	}
	return gens, group.Wait()
}

// renew takes new tokens where the present ones might expire before a load ends.
func (l *Lab) renew(w protocol.Load) error {
	if l.cfg.Renew == nil {
		return nil
	}
	tokens, err := l.cfg.Renew(w.Duration + w.Timeout + margin)
	if err != nil {
		return fmt.Errorf("renewing the tokens: %w", err)
	}
	if tokens == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.cfg.Tokens {
		l.spent = append(l.spent, t)
	}
	l.cfg.Tokens = tokens
	return nil
}

// createLoad creates one load generator's container.
func (l *Lab) createLoad(ctx context.Context, g *generator) (*engine.Container, error) {
	w := g.stream
	spec := oha.Spec{
		Base:        "http://" + l.ServerHost(),
		Method:      w.Scenario.Method,
		Path:        w.Scenario.Path,
		Random:      w.Scenario.Random,
		Body:        w.Scenario.Body,
		Connections: w.Connections,
		Target:      w.Target,
		Duration:    g.load.Duration,
		Timeout:     g.load.Timeout,
		Out:         l.cfg.outFile,
	}
	if spec.Body != "" {
		spec.ContentType = "application/json"
	}
	if w.Scenario.Scope != "" {
		l.mu.Lock()
		token, ok := l.cfg.Tokens[w.Scenario.Scope]
		l.mu.Unlock()
		if !ok {
			return nil, fmt.Errorf("scenario %s needs a token with scope %q, and the lab has none", w.Scenario.ID, w.Scenario.Scope)
		}
		spec.Token = token
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	run := hold.Options{Output: l.cfg.outFile, Report: reportFile, Argv: append([]string{oha.Program}, oha.Args(spec)...)}
	if g.held {
		run.Gate, run.GateTimeout, run.Late, run.Linger = gateFile, outage, late, linger
	}
	s := l.spec(plan.Load, whatLoad, l.cfg.Images[ImageTools])
	s.Entrypoint, s.Cmd = []string{"guest", "hold"}, hold.Args(run)
	s.Memory = int64(l.cfg.Profile.Roles[plan.Load].Memory)
	if !s.HostNetwork {
		// The tools container's network spares setting one up for each window.
		s.Network, s.NetworkOf = "", l.tools[g.host]
	}
	return l.create(ctx, g.host, s)
}

// startLoads starts the load generators that are held back, and finds out their
// process ids when asked to.
func (l *Lab) startLoads(ctx context.Context, gens []*generator, pids bool) error {
	var group errgroup.Group
	for _, g := range gens {
		if !g.held {
			continue
		}
		group.Go(func() (err error) {
			if err := g.c.Start(ctx); err != nil {
				return fmt.Errorf("load generator: %w", err)
			}
			g.started = time.Now()
			if pids {
				if g.pid, err = g.c.PID(ctx); err != nil {
					return fmt.Errorf("load generator: %w%s", err, l.redact(lastWords(ctx, g.c, 10)))
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// letGo starts the load generators, or opens their gates: one at once, several
// at one instant. ahead is how far each host's clock is ahead of the first load
// host's; a later try leaves more time.
func (l *Lab) letGo(ctx context.Context, gens []*generator, ahead map[*Host]time.Duration, try int) error {
	first := gens[0]
	if !first.held {
		if err := first.c.Start(ctx); err != nil {
			return fmt.Errorf("load generator: %w", err)
		}
		first.gate = time.Now()
		return nil
	}
	var at time.Time
	if len(gens) > 1 {
		asked := time.Now()
		info, err := first.host.Engine.Info(ctx)
		if err != nil {
			return err
		}
		if info.Time.IsZero() {
			return fmt.Errorf("the engine at %s does not say what time it is", first.host.Engine.Host())
		}
		// The answer is as old as its way back took, which shortens the lead.
		at = info.Time.Add(lead<<(try-1) + 2*time.Since(asked))
	}
	var group errgroup.Group
	for _, g := range gens {
		group.Go(func() error {
			when := at
			if !when.IsZero() {
				when = when.Add(ahead[g.host])
			}
			err := g.c.CopyTo(ctx, engine.File{Path: gateFile, Data: hold.Gate(when)})
			g.gate = time.Now()
			if err != nil {
				return fmt.Errorf("load generator: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// runLoads lets the load generators go, waits for them and collects what they
// wrote. Whatever fails, none goes on running.
func (l *Lab) runLoads(ctx context.Context, gens []*generator, ahead map[*Host]time.Duration, try int) error {
	if err := l.letGo(ctx, gens, ahead, try); err != nil {
		return errors.Join(err, l.kill(ctx, gens))
	}
	wait, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errs := make([]error, len(gens))
	var group errgroup.Group
	for i, g := range gens {
		group.Go(func() error {
			var err error
			g.end, err = l.awaitLoad(wait, g)
			if err == nil && g.end.Exit.Code == hold.CodeLate && g.held {
				err = errLate
				stop(err) // the others measure nothing that is wanted
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait()
	if cause := context.Cause(wait); cause != nil || ctx.Err() != nil {
		return errors.Join(cause, l.kill(ctx, gens))
	}
	collect, cancel := l.cleanup(ctx)
	defer cancel()
	for i, g := range gens {
		group.Go(func() error {
			if errs[i] == nil {
				errs[i] = l.collectLoad(collect, g)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// kill ends load generators at once.
func (l *Lab) kill(ctx context.Context, gens []*generator) error {
	ctx, cancel := l.cleanup(ctx)
	defer cancel()
	var group errgroup.Group
	for _, g := range gens {
		if g.c != nil {
			group.Go(func() error { _ = g.c.Signal(ctx, "KILL"); return nil }) // one that has ended already is no error
		}
	}
	return group.Wait()
}

func (l *Lab) removeLoads(ctx context.Context, gens []*generator) error {
	cleanup, cancel := l.cleanup(ctx)
	defer cancel()
	var group errgroup.Group
	for _, g := range gens {
		if g != nil && g.c != nil {
			group.Go(func() error { return g.c.Remove(cleanup) })
		}
	}
	return group.Wait()
}

// awaitLoad waits until a load generator has ended. One that takes longer than
// its window, a request timeout and a margin is killed. A driver that was cut
// off looks first whether it has ended meanwhile, and counts the time by the
// host's clock.
func (l *Lab) awaitLoad(ctx context.Context, g *generator) (engine.State, error) {
	limit := g.load.Duration + g.load.Timeout + margin
	for left := limit; ; {
		wait, cancel := context.WithTimeout(ctx, left)
		state, err := g.c.Ended(wait)
		expired := wait.Err() != nil
		cancel()
		if err == nil || !expired || ctx.Err() != nil {
			return state, err
		}
		if state, err = g.c.Inspect(ctx); err != nil || !state.Running {
			return state, err
		}
		info, err := g.host.Engine.Info(ctx)
		if err != nil {
			return engine.State{}, err
		}
		held := time.Duration(0) // how long it waited for the gate
		if g.held {
			held = g.gate.Sub(g.started) + lead<<starts
		}
		left = limit + held - info.Time.Sub(state.Started)
		if info.Time.IsZero() { // an engine that does not say what time it is
			left = limit - time.Since(g.gate)
		}
		if left <= 0 {
			cleanup, cancel := l.cleanup(ctx)
			defer cancel()
			_ = g.c.Signal(cleanup, "KILL")
			return engine.State{}, fmt.Errorf("load generator: container %s on %s did not end within %s, the window's %s with its request timeout and a margin; it was killed", g.c.Name, g.c.Engine().Host(), limit, g.load.Duration)
		}
	}
}

// collectLoad reads what an ended load generator left.
func (l *Lab) collectLoad(ctx context.Context, g *generator) error {
	c, state := g.c, g.end
	g.span = span{state.Started, state.Finished}
	if state.Exit.OOMKilled {
		return fmt.Errorf("load generator: container %s on %s ran out of its %s of memory and was killed; give role load more memory in the profile, or take fewer connections",
			c.Name, c.Engine().Host(), l.cfg.Profile.Roles[plan.Load].Memory)
	}
	if state.Exit.Code != 0 {
		return fmt.Errorf("load generator: container %s on %s failed (%s)%s", c.Name, c.Engine().Host(), state.Exit, l.redact(lastWords(ctx, c, 10)))
	}
	out, report, err := fetch(ctx, c, l.cfg.outFile, maxOutput)
	if report.Start > 0 {
		g.span = span{time.Unix(0, report.Start), time.Unix(0, report.End)}
	}
	if err == nil && len(bytes.TrimSpace(out)) == 0 {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return fmt.Errorf("load generator: container %s on %s left no output: %w%s", c.Name, c.Engine().Host(), err, l.redact(lastWords(ctx, c, 10)))
	}
	g.out = out
	return nil
}

// fetch copies a file out of a container whose program has ended, and proves by
// the digest that was taken on the host that it is the same.
func fetch(ctx context.Context, c *engine.Container, file string, limit int64) ([]byte, hold.Report, error) {
	text, err := c.CopyFrom(ctx, reportFile, maxReport)
	if err != nil {
		return nil, hold.Report{}, err
	}
	report, err := hold.ParseReport(text)
	if err != nil {
		return nil, report, err
	}
	data, err := copyProven(report.SHA256, func() ([]byte, error) { return c.CopyFrom(ctx, file, limit) })
	if err != nil {
		err = fmt.Errorf("copying %s out of container %s on %s: %w", file, c.Name, c.Engine().Host(), err)
	}
	return data, report, err
}

// copyProven copies a file, and copies it again when its SHA-256 is not the
// digest that was taken of it where it lies.
func copyProven(want string, copy func() ([]byte, error)) ([]byte, error) {
	for again := false; ; again = true {
		data, err := copy()
		if err != nil {
			return nil, err
		}
		got := fmt.Sprintf("%x", sha256.Sum256(data))
		if got == want {
			return data, nil
		}
		if want == "" {
			return nil, errors.New("it is no regular file, or it was never written")
		}
		if again {
			return nil, fmt.Errorf("what arrived has the SHA-256 digest %s, and the file on the host has %s: the copy is damaged, and so was one before it", got, want)
		}
	}
}

// redact takes tokens out of a text that a container printed.
func (l *Lab) redact(text string) string {
	l.mu.Lock()
	tokens := slices.AppendSeq(slices.Clone(l.spent), maps.Values(l.cfg.Tokens))
	l.mu.Unlock()
	for _, t := range tokens {
		if t != "" {
			text = strings.ReplaceAll(text, string(t), t.String())
		}
	}
	return text
}

// sampler is the sampler of one host.
type sampler struct {
	host  *Host
	roles []plan.Role
	c     *engine.Container
}

// samplerHosts are the distinct hosts with what they play, the app's first.
func (l *Lab) samplerHosts() []*sampler {
	var all []*sampler
	for _, h := range l.hosts() {
		all = append(all, &sampler{host: h, roles: l.rolesOf(h)})
	}
	return all
}

// Measure runs the load generators with a sampler on every host around them:
// the samplers' first lines are on disk before the load starts, their last are
// written after all of it has ended. What could be collected is returned beside
// an error.
func (l *Lab) Measure(ctx context.Context, s protocol.Server, w protocol.Load) (protocol.Measurement, error) {
	srv, err := l.running(s)
	if err != nil {
		return protocol.Measurement{}, err
	}
	for try := 1; ; try++ {
		m, err := l.measure(ctx, srv, w, try)
		if errors.Is(err, errLate) && try < starts {
			continue
		}
		return m, l.blame(err)
	}
}

func (l *Lab) measure(ctx context.Context, srv *server, w protocol.Load, try int) (m protocol.Measurement, err error) {
	samplers := l.samplerHosts()
	var gens []*generator
	defer func() {
		cleanup, cancel := l.cleanup(ctx)
		defer cancel()
		var g errgroup.Group
		g.Go(func() error { return l.removeLoads(ctx, gens) })
		for _, s := range samplers {
			if s.c != nil {
				g.Go(func() error { return s.c.Remove(cleanup) })
			}
		}
		err = errors.Join(err, g.Wait())
	}()

	var before map[string]float64
	var hosts *readings
	var prepare errgroup.Group
	prepare.Go(func() (err error) {
		if gens, err = l.createLoads(ctx, w, true); err != nil { // so that the sampler is there before it sends
			return err
		}
		return l.startLoads(ctx, gens, true)
	})
	prepare.Go(func() (err error) { before, err = l.snapshot(ctx); return err })
	if l.spread() {
		prepare.Go(func() error { hosts = l.readHosts(ctx, true); return nil })
	}
	first := make(chan error, 1) // samplers that need no generator do not wait for one
	go func() { first <- l.startSamplers(ctx, samplers, srv, nil, w) }()
	err = errors.Join(prepare.Wait(), <-first)
	if err == nil {
		err = l.startSamplers(ctx, samplers, srv, gens, w)
	}
	if err != nil {
		collect, cancel := l.cleanup(ctx)
		defer cancel()
		return m, errors.Join(err, l.serverGone(collect, srv))
	}

	loadErr := l.runLoads(ctx, gens, hosts.aheadOf(), try)
	if errors.Is(loadErr, errLate) {
		return m, loadErr
	}
	m.OHA = outputs(gens)
	m.Start, m.End = l.window(gens, hosts.aheadOf())

	collect, cancel := l.cleanup(ctx)
	defer cancel()
	var after map[string]float64
	var databaseErr, serverErr error
	samplerErrs := make([]error, len(samplers))
	m.CGroup = make([]protocol.HostSamples, len(samplers))
	var g errgroup.Group
	for i, s := range samplers {
		m.CGroup[i] = protocol.HostSamples{Host: s.host.Name, Roles: s.roles}
		g.Go(func() error {
			m.CGroup[i].Lines, samplerErrs[i] = l.stopSampler(collect, s.c)
			return nil
		})
	}
	g.Go(func() error { after, databaseErr = l.snapshot(collect); return nil })
	g.Go(func() error { serverErr = l.serverGone(collect, srv); return nil })
	if l.spread() {
		g.Go(func() error {
			m.Hosts = hosts.grown(l, l.readHosts(collect, false))
			return nil
		})
	}
	_ = g.Wait()
	if databaseErr == nil {
		m.Database = postgres.Delta(before, after)
	}
	return m, errors.Join(loadErr, errors.Join(samplerErrs...), databaseErr, serverErr)
}

// window is the time from the first start of a load generator to the last end,
// by the first load host's clock.
func (l *Lab) window(gens []*generator, ahead map[*Host]time.Duration) (start, end time.Time) {
	for _, g := range gens {
		s, e := g.span.start, g.span.end
		if s.IsZero() {
			continue
		}
		s, e = s.Add(-ahead[g.host]), e.Add(-ahead[g.host])
		if start.IsZero() || s.Before(start) {
			start = s
		}
		if e.After(end) {
			end = e
		}
	}
	return start, end
}

// snapshot reads the database's counters.
func (l *Lab) snapshot(ctx context.Context) (counters map[string]float64, err error) {
	err = l.query(ctx, func(ctx context.Context) (err error) { counters, err = l.sql.Snapshot(ctx); return err })
	return counters, err
}

// serverGone fails when the server's container has ended.
func (l *Lab) serverGone(ctx context.Context, s *server) error {
	state, err := s.c.Inspect(ctx)
	if err != nil {
		return err
	}
	if state.Running {
		return nil
	}
	return fmt.Errorf("%s is gone: container %s on %s has ended (%s)%s", s.name, s.c.Name, s.c.Engine().Host(), state.Exit, lastWords(ctx, s.c, logLines))
}

// startSamplers creates and starts, side by side, the samplers that do not run
// yet: without generators those of hosts that need none for it.
func (l *Lab) startSamplers(ctx context.Context, samplers []*sampler, srv *server, gens []*generator, w protocol.Load) error {
	var g errgroup.Group
	for _, s := range samplers {
		if s.c != nil || gens == nil && slices.Contains(s.roles, plan.Load) {
			continue
		}
		g.Go(func() (err error) {
			if s.c, err = l.createSampler(ctx, s, srv, gens, w); err != nil {
				return err
			}
			return l.startSampler(ctx, s.c)
		})
	}
	return g.Wait()
}

// createSampler creates the sampler's container; it is not started.
func (l *Lab) createSampler(ctx context.Context, smp *sampler, srv *server, gens []*generator, w protocol.Load) (*engine.Container, error) {
	s := l.spec(plan.Load, whatSampler, l.cfg.Images[ImageTools])
	s.Network, s.HostNetwork = "", false
	if !slices.Contains(smp.roles, plan.Load) {
		s.CPUs = "" // the load role's CPUs are another machine's
	}
	argv := []string{
		"guest", "sample", "--out", sampleFile, "--interval", sampleEvery.String(), "--all", readAll(w.Duration).String(), "--max", (w.Duration + w.Timeout + margin + outage).String(),
		"--cgroup-root", "/host/cgroup",
	}
	for _, r := range smp.roles {
		switch r {
		case plan.App:
			argv = append(argv, string(r)+"="+strconv.Itoa(srv.pid))
		case plan.DB:
			argv = append(argv, string(r)+"="+strconv.Itoa(l.dbPID))
		}
	}
	for _, g := range gens {
		if g.host == smp.host && g.pid != 0 {
			argv = append(argv, g.name+"="+strconv.Itoa(g.pid))
		}
	}
	s.Entrypoint = []string{"guest", "hold"}
	s.Cmd = hold.Args(hold.Options{Output: sampleFile, Report: reportFile, Argv: argv})
	s.HostPID, s.HostCgroup = true, true
	s.Binds = []engine.Bind{{Host: "/sys/fs/cgroup", Path: "/host/cgroup"}}
	return l.create(ctx, smp.host, s)
}

// readAll is how often a sampler reads everything in a window: once a second, and
// in a short window so often that there is something to compare within it.
func readAll(window time.Duration) time.Duration {
	return min(time.Second, max(sampleEvery, window/8))
}

// startSampler starts the sampler and waits for its first line.
func (l *Lab) startSampler(ctx context.Context, c *engine.Container) error {
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("sampler: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		began := time.Now()
		data, err := c.CopyFrom(ctx, sampleFile, maxSamples)
		if err == nil && bytes.IndexByte(data, '\n') >= 0 {
			return nil
		}
		state, inspectErr := c.Inspect(ctx)
		if inspectErr != nil {
			return fmt.Errorf("sampler: %w", inspectErr)
		}
		if !state.Running {
			return fmt.Errorf("sampler: container %s on %s has ended (%s)%s", c.Name, c.Engine().Host(), state.Exit, lastWords(ctx, c, 10))
		}
		if d := time.Since(began); d > time.Second { // the host could not be reached
			deadline = deadline.Add(d)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sampler: container %s on %s: %w", c.Name, c.Engine().Host(), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("sampler: container %s on %s wrote no sample within 20 s: %w", c.Name, c.Engine().Host(), err)
		}
	}
}

// stopSampler makes the sampler write its last line and fetches its file.
func (l *Lab) stopSampler(ctx context.Context, c *engine.Container) ([]byte, error) {
	state, err := c.Inspect(ctx)
	if err == nil && !state.Running {
		// What it wrote until then is kept as it is: nobody took its digest.
		data, _ := c.CopyFrom(ctx, sampleFile, maxSamples)
		return data, fmt.Errorf("the sampler died while the window ran: container %s on %s ended by itself (%s)%s", c.Name, c.Engine().Host(), state.Exit, lastWords(ctx, c, 10))
	}
	signalErr := c.Signal(ctx, "TERM")
	exit, err := c.Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("sampler: %w", errors.Join(signalErr, err))
	}
	var failed error // the cause, before what follows from it
	if exit.Code != 0 || exit.OOMKilled {
		failed = fmt.Errorf("sampler: container %s on %s failed (%s)%s", c.Name, c.Engine().Host(), exit, lastWords(ctx, c, 10))
	}
	data, _, err := fetch(ctx, c, sampleFile, maxSamples)
	if err != nil {
		err = fmt.Errorf("sampler: %w", err)
	}
	return data, errors.Join(failed, err)
}

// hostReading is what a host says of its clock and its network at one moment.
type hostReading struct {
	ahead      time.Duration // of the first load host's clock
	aheadErr   error
	allowances map[string]int64
	allowErr   error
}

// readings are those of all hosts, in the order of Lab.hosts.
type readings struct {
	hosts []*Host
	of    []hostReading
}

// aheadOf is how far each host's clock is ahead of the first load host's, where
// that is known.
func (r *readings) aheadOf() map[*Host]time.Duration {
	out := map[*Host]time.Duration{}
	if r == nil {
		return out
	}
	for i, h := range r.hosts {
		out[h] = r.of[i].ahead
	}
	return out
}

// grown makes the window's readings of those before it and after it.
func (r *readings) grown(l *Lab, after *readings) []store.HostReading {
	out := make([]store.HostReading, len(r.hosts))
	for i, h := range r.hosts {
		was, is := r.of[i], after.of[i]
		out[i] = store.HostReading{Host: h.Name, Roles: l.rolesOf(h), ClockOffsetMS: float64(was.ahead.Nanoseconds()) / 1e6}
		if was.aheadErr != nil {
			out[i].ClockOffsetMS, out[i].ClockError = 0, was.aheadErr.Error()
		}
		var err error
		if out[i].Allowances, err = allowanceGrowth(was.allowances, is.allowances); err != nil || was.allowErr != nil || is.allowErr != nil {
			out[i].Allowances, out[i].AllowanceError = nil, oneLine(errors.Join(was.allowErr, is.allowErr, err))
		}
	}
	return out
}
