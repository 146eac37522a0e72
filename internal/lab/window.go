package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/engine"
	"github.com/percore/percore/internal/load"
	"github.com/percore/percore/internal/postgres"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/protocol"
)

const (
	whatLoad    = "load"
	whatSampler = "sampler"
	sampleFile  = "/tmp/percore.cg.jsonl"

	// Bounds on files that come out of containers, in bytes.
	maxOutput  = 64 << 20
	maxSamples = 512 << 20

	// margin is what a window may take beyond its length and one request
	// timeout.
	margin = 30 * time.Second
)

// Generate runs the load generator once and returns its output.
func (l *Lab) Generate(ctx context.Context, s protocol.Server, w protocol.Load) ([]byte, error) {
	srv, err := l.running(s)
	if err != nil {
		return nil, err
	}
	c, err := l.createLoad(ctx, w)
	if err != nil {
		return nil, err
	}
	out, _, err := l.runLoad(ctx, c, w)
	cleanup, cancel := cleanupContext(ctx)
	defer cancel()
	err = errors.Join(err, c.Remove(cleanup))
	if err != nil {
		return out, errors.Join(err, l.serverGone(cleanup, srv))
	}
	return out, nil
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

// createLoad creates the load generator's container; it is not started.
func (l *Lab) createLoad(ctx context.Context, w protocol.Load) (*engine.Container, error) {
	spec := load.Spec{
		Base:        "http://" + l.ServerHost(),
		Method:      w.Scenario.Method,
		Path:        w.Scenario.Path,
		Random:      w.Scenario.Random,
		Body:        w.Scenario.Body,
		Connections: w.Connections,
		Target:      w.Target,
		Duration:    w.Duration,
		Timeout:     w.Timeout,
		Out:         l.cfg.outFile,
	}
	if spec.Body != "" {
		spec.ContentType = "application/json"
	}
	if w.Scenario.Scope != "" {
		token, ok := l.cfg.Tokens[w.Scenario.Scope]
		if !ok {
			return nil, fmt.Errorf("scenario %s needs a token with scope %q, and the lab has none", w.Scenario.ID, w.Scenario.Scope)
		}
		spec.Token = token
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	s := l.spec(profile.Load, whatLoad, l.cfg.Images[ImageTools])
	s.Entrypoint, s.Cmd = []string{load.Program}, load.Args(spec)
	s.Memory = int64(l.cfg.Profile.Roles[profile.Load].Memory)
	if !s.HostNetwork {
		// The tools container's network spares setting one up for each window.
		s.Network, s.NetworkOf = "", l.tools[l.host(profile.Load)]
	}
	return l.create(ctx, l.host(profile.Load), s)
}

// span is a time from a host's clock to a later one.
type span struct{ start, end time.Time }

// runLoad starts the load generator, waits for it and returns its output.
func (l *Lab) runLoad(ctx context.Context, c *engine.Container, w protocol.Load) ([]byte, span, error) {
	limit := w.Duration + w.Timeout + margin
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.Start(wait); err != nil {
		return nil, span{}, fmt.Errorf("load generator: %w", err)
	}
	_, waitErr := c.Wait(wait)
	cleanup, cancel := cleanupContext(ctx)
	defer cancel()
	if waitErr != nil {
		// Whatever was interrupted, nothing may go on running.
		_ = c.Signal(cleanup, "KILL")
		if ctx.Err() == nil && wait.Err() != nil {
			waitErr = fmt.Errorf("load generator: container %s on %s did not end within %s, the window's %s with its request timeout and a margin; it was killed", c.Name, c.Engine().Host(), limit, w.Duration)
		}
		return nil, span{}, waitErr
	}
	state, err := c.Inspect(cleanup)
	if err != nil {
		return nil, span{}, err
	}
	times := span{state.Started, state.Finished}
	if state.Exit.OOMKilled {
		return nil, times, fmt.Errorf("load generator: container %s on %s ran out of its %s of memory and was killed; give role load more memory in the profile, or take fewer connections",
			c.Name, c.Engine().Host(), l.cfg.Profile.Roles[profile.Load].Memory)
	}
	if state.Exit.Code != 0 {
		return nil, times, fmt.Errorf("load generator: container %s on %s failed (%s)%s", c.Name, c.Engine().Host(), state.Exit, l.redact(lastWords(cleanup, c, 10)))
	}
	out, err := c.CopyFrom(cleanup, l.cfg.outFile, maxOutput)
	if err == nil && len(bytes.TrimSpace(out)) == 0 {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, times, fmt.Errorf("load generator: container %s on %s left no output: %w%s", c.Name, c.Engine().Host(), err, l.redact(lastWords(cleanup, c, 10)))
	}
	return out, times, nil
}

// redact takes tokens out of a text that a container printed.
func (l *Lab) redact(text string) string {
	for _, t := range l.cfg.Tokens {
		if t != "" {
			text = strings.ReplaceAll(text, string(t), t.String())
		}
	}
	return text
}

// Measure runs the load generator with the sampler around it: the sampler's
// first line is on disk before the load starts, its last is written after the
// load has ended. What could be collected is returned beside an error.
func (l *Lab) Measure(ctx context.Context, s protocol.Server, w protocol.Load) (m protocol.Measurement, err error) {
	srv, err := l.running(s)
	if err != nil {
		return m, err
	}
	var gen, sampler *engine.Container
	defer func() {
		cleanup, cancel := cleanupContext(ctx)
		defer cancel()
		var g errgroup.Group
		for _, c := range []*engine.Container{gen, sampler} {
			if c != nil {
				g.Go(func() error { return c.Remove(cleanup) })
			}
		}
		err = errors.Join(err, g.Wait())
	}()

	var before map[string]float64
	var prepare errgroup.Group
	prepare.Go(func() (err error) { gen, err = l.createLoad(ctx, w); return err })
	prepare.Go(func() (err error) { sampler, err = l.createSampler(ctx, srv, w); return err })
	prepare.Go(func() (err error) { before, err = l.sql.Snapshot(ctx); return l.databaseError(ctx, err) })
	if err := prepare.Wait(); err != nil {
		return m, errors.Join(err, l.serverGone(ctx, srv))
	}
	if err := l.startSampler(ctx, sampler); err != nil {
		return m, errors.Join(err, l.serverGone(ctx, srv))
	}

	out, times, loadErr := l.runLoad(ctx, gen, w)
	m.OHA, m.Start, m.End = [][]byte{out}, times.start, times.end

	collect, cancel := cleanupContext(ctx)
	defer cancel()
	var after map[string]float64
	var samplerErr, databaseErr error
	var g errgroup.Group
	g.Go(func() error {
		var lines []byte
		lines, samplerErr = l.stopSampler(collect, sampler)
		m.CGroup = []protocol.HostSamples{{Host: l.host(profile.App).Name, Roles: profile.Roles(), Lines: lines}}
		return nil
	})
	g.Go(func() error {
		after, databaseErr = l.sql.Snapshot(collect)
		databaseErr = l.databaseError(collect, databaseErr)
		return nil
	})
	_ = g.Wait()
	if databaseErr == nil {
		m.Database = postgres.Delta(before, after)
	}
	return m, errors.Join(loadErr, samplerErr, databaseErr, l.serverGone(collect, srv))
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

// createSampler creates the sampler's container; it is not started.
func (l *Lab) createSampler(ctx context.Context, srv *server, w protocol.Load) (*engine.Container, error) {
	h := l.host(profile.App)
	s := l.spec(profile.Load, whatSampler, l.cfg.Images[ImageTools])
	s.Network, s.HostNetwork = "", false
	if h != l.host(profile.Load) {
		s.CPUs = ""
	}
	s.Entrypoint = []string{"cgsample"}
	s.Cmd = []string{
		"--out", sampleFile, "--interval", "100ms", "--max", (w.Duration + w.Timeout + 2*margin).String(),
		"--cgroup-root", "/host/cgroup",
		string(profile.App) + "=" + strconv.Itoa(srv.pid),
		string(profile.DB) + "=" + strconv.Itoa(l.dbPID),
	}
	s.HostPID, s.HostCgroup = true, true
	s.Binds = []engine.Bind{{Host: "/sys/fs/cgroup", Path: "/host/cgroup"}}
	return l.create(ctx, h, s)
}

// startSampler starts the sampler and waits for its first line.
func (l *Lab) startSampler(ctx context.Context, c *engine.Container) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("sampler: %w", err)
	}
	for {
		data, err := c.CopyFrom(ctx, sampleFile, maxSamples)
		if err == nil && bytes.IndexByte(data, '\n') >= 0 {
			return nil
		}
		if state, inspectErr := c.Inspect(ctx); inspectErr == nil && !state.Running {
			return fmt.Errorf("sampler: container %s on %s has ended (%s)%s", c.Name, c.Engine().Host(), state.Exit, lastWords(ctx, c, 10))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sampler: container %s on %s wrote no sample: %w", c.Name, c.Engine().Host(), errors.Join(err, ctx.Err()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stopSampler makes the sampler write its last line and fetches its file.
func (l *Lab) stopSampler(ctx context.Context, c *engine.Container) ([]byte, error) {
	// A sampler that has ended already says so in its exit code.
	signalErr := c.Signal(ctx, "TERM")
	exit, err := c.Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("sampler: %w", errors.Join(signalErr, err))
	}
	data, err := c.CopyFrom(ctx, sampleFile, maxSamples)
	if err != nil {
		err = fmt.Errorf("sampler: %w", err)
	}
	if exit.Code != 0 || exit.OOMKilled {
		err = errors.Join(err, fmt.Errorf("sampler: container %s on %s failed (%s)%s", c.Name, c.Engine().Host(), exit, lastWords(ctx, c, 10)))
	}
	return data, err
}
