package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

const whatApp = "app"

// logLines is how many last lines of a candidate's log an error quotes.
const logLines = 40

// server is a running probe or candidate.
type server struct {
	lab  *Lab
	name string
	c    *engine.Container
	pid  int
	host string // host and port under which the other containers reach it
	// grace is how long it may take to end when it is asked to.
	grace time.Duration
}

func (s *server) Name() string { return s.name }

// Log returns what the container has printed so far, at most the last 8 MiB.
func (s *server) Log(ctx context.Context) ([]byte, error) {
	ctx, cancel := s.lab.patient(ctx)
	defer cancel()
	log, err := s.c.Logs(ctx, 0)
	return log, s.lab.blame(err)
}

// Stop asks the server to end and removes its container.
func (s *server) Stop(ctx context.Context) error {
	s.lab.mu.Lock()
	delete(s.lab.servers, s)
	s.lab.mu.Unlock()
	ctx, cancel := s.lab.patient(ctx)
	defer cancel()
	var err error
	if s.grace > 0 {
		err = s.c.Stop(ctx, s.grace)
	}
	return s.lab.blame(errors.Join(err, s.c.Remove(ctx)))
}

// Dial connects to a running server, for the contract check.
func (l *Lab) Dial(s protocol.Server) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		if c, ok := s.(*Check); ok {
			s = c.Server
		}
		srv, ok := s.(*server)
		if !ok {
			return nil, fmt.Errorf("%s is not a server of this lab", s.Name())
		}
		return l.dial(ctx, srv.host)
	}
}

// dial connects to a host and port from the load generator's host.
func (l *Lab) dial(ctx context.Context, host string) (net.Conn, error) {
	return l.tools[l.host(plan.Load)].DialTCP(ctx, host)
}

// ServerHost is the Host header under which servers are reached.
func (l *Lab) ServerHost() string { return l.address(plan.App, httpPort) }

// appSpec is a container on the application's cores and memory.
func (l *Lab) appSpec(image string) engine.Spec {
	s := l.spec(plan.App, whatApp, image)
	s.Memory = int64(l.cfg.Profile.Roles[plan.App].Memory)
	s.CgroupParent = l.cfg.above
	if !s.HostNetwork {
		s.Aliases = []string{string(plan.App)}
	}
	s.Env = map[string]string{"PERCORE_CORES": strconv.Itoa(l.cfg.Profile.Roles[plan.App].CPUs.Count())}
	return s
}

// StartProbe starts the reference server on the candidate's cores.
func (l *Lab) StartProbe(ctx context.Context) (protocol.Server, error) {
	s := l.appSpec(l.cfg.Images[ImageTools])
	s.Cmd = []string{"percore-probe"}
	return l.start(ctx, "probe", s, "/", 0)
}

// StartCandidate starts a fresh container of the candidate and returns when it
// answers.
func (l *Lab) StartCandidate(ctx context.Context, id string) (protocol.Server, error) {
	s, err := l.candidateSpec(id, postgres.Database)
	if err != nil {
		return nil, err
	}
	return l.start(ctx, id, s, "/healthz", candidateGrace)
}

// candidateGrace is how long a candidate may take to end.
const candidateGrace = 5 * time.Second

// candidateSpec is a candidate's container on a database.
func (l *Lab) candidateSpec(id, database string) (engine.Spec, error) {
	candidate, ok := l.cfg.Suite.Candidate(id)
	if !ok {
		return engine.Spec{}, fail.Input("suite %s has no candidate %q", l.cfg.Suite.Name, id)
	}
	image := l.cfg.Images[candidate.Image]
	if image == "" {
		return engine.Spec{}, fmt.Errorf("candidate %s: the lab has no image named %s", id, candidate.Image)
	}
	s := l.appSpec(image)
	host, port, err := net.SplitHostPort(l.address(plan.DB, databasePort))
	if err != nil {
		return engine.Spec{}, err
	}
	for k, v := range map[string]string{
		"PERCORE_PUBLIC_KEY":        l.cfg.PublicKey,
		"PERCORE_ISSUER":            l.cfg.Suite.Issuer,
		"PERCORE_AUDIENCE":          l.cfg.Suite.Audience,
		"PERCORE_DATABASE_HOST":     host,
		"PERCORE_DATABASE_PORT":     port,
		"PERCORE_DATABASE_NAME":     database,
		"PERCORE_DATABASE_USER":     postgres.User,
		"PERCORE_DATABASE_PASSWORD": l.password,
		"PERCORE_POOL":              strconv.Itoa(l.cfg.Profile.DatabaseConnections),
	} {
		s.Env[k] = v
	}
	for k, v := range candidate.Env { // the suite's own word comes last
		s.Env[k] = v
	}
	return s, nil
}

// start runs a server's container and waits until the path answers 200.
func (l *Lab) start(ctx context.Context, name string, spec engine.Spec, path string, grace time.Duration) (protocol.Server, error) {
	c, err := l.run(ctx, l.host(plan.App), spec)
	if err != nil {
		return nil, l.blame(fmt.Errorf("starting %s: %w", name, err))
	}
	s := &server{lab: l, name: name, c: c, grace: grace, host: l.ServerHost()}
	if !spec.HostNetwork && len(spec.Aliases) == 0 {
		s.host = net.JoinHostPort(spec.Name, httpPort)
	}
	if s.pid, err = l.ready(ctx, s, path); err != nil {
		cleanup, cancel := l.cleanup(ctx)
		defer cancel()
		var lost *engine.LostError
		if errors.As(err, &lost) {
			return nil, l.blame(err)
		}
		log, _ := c.Logs(cleanup, 0)
		failed := &protocol.StartError{Candidate: name, Log: log, Err: fmt.Errorf("%s never became ready: %w%s", name, err, lastWords(cleanup, c, logLines))}
		return nil, errors.Join(failed, c.Remove(cleanup))
	}
	l.mu.Lock()
	l.servers[s] = true
	l.mu.Unlock()
	return s, nil
}

// ready polls a server until it answers 200 and returns its process id. It
// gives up at once when the container ends.
func (l *Lab) ready(ctx context.Context, s *server, path string) (pid int, err error) {
	start := time.Now()
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	timer := time.AfterFunc(l.cfg.ReadyTimeout, func() { ended(errNotReady) })
	defer timer.Stop()
	go func() {
		if exit, err := s.c.Wait(ctx); err == nil {
			ended(fmt.Errorf("container %s on %s has ended (%s)", s.c.Name, s.c.Engine().Host(), exit))
		}
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx, s.host) }}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	last := errors.New("no answer")
	for {
		err := get(ctx, client, "http://"+s.host+path)
		if err == nil {
			if pid, err = s.c.PID(ctx); err == nil {
				return pid, nil
			}
		}
		if ctx.Err() == nil {
			last = err
			// Time in which the driver cannot reach the hosts does not count.
			asked := time.Now()
			if lost := l.reach(ctx, s.c.Engine(), l.host(plan.Load).Engine); lost != nil && ctx.Err() == nil {
				return 0, lost
			}
			if time.Since(asked) > time.Second {
				timer.Reset(l.cfg.ReadyTimeout)
			}
		}
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if cause == errNotReady {
				cause = fmt.Errorf("container %s on %s did not answer %s with 200 within %.0f s (last: %w)", s.c.Name, s.c.Engine().Host(), path, time.Since(start).Seconds(), last)
			}
			return 0, cause
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// reach waits until engines answer; those on this machine are not asked.
func (l *Lab) reach(ctx context.Context, engines ...*engine.Engine) error {
	if !l.cfg.remote() {
		return nil
	}
	for _, e := range engines {
		if err := e.Reach(ctx); err != nil {
			return err
		}
	}
	return nil
}

// errNotReady is why the context of a poll ended: its time was up.
var errNotReady = errors.New("not ready in time")

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", res.Status)
	}
	return nil
}
