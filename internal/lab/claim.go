package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/guest/clock"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
)

// whatTools is the idle container that every host of a run has. While the
// driver lives, a process in it reads from the driver; the process ends with
// the connection. That is how another driver tells a run that is being
// measured from one whose driver is gone.
const whatTools = "tools"

// labelShared marks the containers of a lab that claims no engine for itself.
const labelShared = "io.percore.shared"

// infancy is how long a run may take from its first container to the process
// that proves its driver alive.
const infancy = 20 * time.Second

// Live lists the runs that a living driver is measuring on the engine.
func Live(ctx context.Context, e *engine.Engine) ([]string, error) {
	live, _, err := runs(ctx, e, nil, infancy)
	return live, err
}

// runs sorts the runs that have containers on the engine into those whose
// driver is connected, or whose first container, that of the tools, is younger
// than young, and the dead. Runs that share the engine are neither, unless a
// scope of labels asks for them.
func runs(ctx context.Context, e *engine.Engine, scope map[string]string, young time.Duration) (live, dead []string, err error) {
	labels := map[string]string{engine.Label: "1", engine.LabelRun: ""}
	maps.Copy(labels, scope)
	containers, err := e.Containers(ctx, labels)
	if err != nil {
		return nil, nil, err
	}
	alive := map[string]bool{}
	for _, c := range containers {
		if c.Labels[labelShared] == "1" && len(scope) == 0 {
			continue
		}
		run := c.Run()
		if _, known := alive[run]; !known {
			alive[run] = false
		}
		if c.Labels[engine.LabelRole] != whatTools || alive[run] {
			continue
		}
		alive[run] = time.Since(c.Created) < young
		if c.Running && !alive[run] {
			busy, err := e.Container(c.ID, c.Name).Busy(ctx)
			if err != nil {
				continue // removed meanwhile
			}
			alive[run] = busy
		}
	}
	for _, run := range slices.Sorted(maps.Keys(alive)) {
		if alive[run] {
			live = append(live, run)
		} else {
			dead = append(dead, run)
		}
	}
	return live, dead, nil
}

// claim takes a host for this run: refuses it when another run is being
// measured there, removes what dead runs left, creates the network, starts the
// tools container and ties it to this process.
func (l *Lab) claim(ctx context.Context, h *Host) error {
	if !l.cfg.Shared || len(l.cfg.scope) > 0 {
		dead, err := l.alone(ctx, h)
		if err != nil {
			return err
		}
		for _, run := range dead {
			removed, err := removeRun(ctx, h.Engine, run)
			if err != nil {
				return err
			}
			l.cfg.Say("removed %d leftovers of run %s, whose driver is gone", len(removed), run)
		}
	}
	l.mu.Lock()
	l.claimed = append(l.claimed, h)
	l.mu.Unlock()
	if _, err := removeRun(ctx, h.Engine, l.cfg.RunID); err != nil {
		return err
	}
	if !h.HostNetwork {
		labels := map[string]string{engine.Label: "1", engine.LabelRun: l.cfg.RunID, engine.LabelKind: engine.KindNetwork}
		maps.Copy(labels, l.cfg.scope)
		if _, err := h.Engine.CreateNetwork(ctx, l.network, labels); err != nil {
			return err
		}
	}
	s := l.spec(plan.Load, whatTools, l.cfg.Images[ImageTools])
	s.HostNetwork = h.HostNetwork
	s.Entrypoint, s.Cmd = []string{"sleep"}, []string{"infinity"}
	s.Init = true
	roles := l.rolesOf(h)
	if !slices.Contains(roles, plan.Load) {
		s.CPUs = "" // the load role's CPUs are another machine's
	}
	if l.spread() && h == l.host(plan.Load) {
		// Its clock is the one that those of the others are compared with. Without
		// it windows have no clock reading, which their gate says.
		s.Entrypoint, s.Cmd = []string{"sh", "-c"}, []string{"guest clock serve :" + strconv.Itoa(clock.Port) + " & exec sleep infinity"}
	}
	c, err := l.run(ctx, h, s)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.tools[h] = c
	l.mu.Unlock()
	release, err := lease(ctx, c, l.cfg.silence)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.leases = append(l.leases, release)
	l.mu.Unlock()
	if h.HostNetwork {
		return l.portsFree(ctx, h, c, roles)
	}
	return nil
}

// alone returns when no other run is being measured on the host, with the dead
// runs whose leftovers may go. A run whose driver may just be connecting, or may
// just have been killed, is waited for until it is clear which. This run itself
// is only ever dead: its results folder is locked for this process.
func (l *Lab) alone(ctx context.Context, h *Host) (dead []string, err error) {
	began := time.Now()
	for waiting := false; ; waiting = true {
		connected, _, err := runs(ctx, h.Engine, l.cfg.scope, 0)
		if err != nil {
			return nil, err
		}
		if slices.Contains(connected, l.cfg.RunID) {
			// What marks it may be left of this very run, from before its link broke.
			if left := l.cfg.silence + 5*time.Second - time.Since(began); h.HostNetwork && left > 0 {
				if !waiting {
					l.cfg.Say("waiting up to %.0f s for host %s to notice that the connection of run %s is gone", left.Seconds(), h.Name, l.cfg.RunID)
				}
				if err := pause(ctx); err != nil {
					return nil, err
				}
				continue
			}
			if !h.HostNetwork {
				return nil, fail.Work("run %s is being measured by another percore on %s", l.cfg.RunID, h.Engine.Host()).Try("wait for it to end or stop it")
			}
			// Its results folder is locked for this process, so nobody measures it.
			connected = slices.DeleteFunc(connected, func(run string) bool { return run == l.cfg.RunID })
		}
		if len(connected) > 0 {
			return nil, fail.Work("run %s is using the engine at %s", connected[0], h.Engine.Host()).Try("wait for it to end, or stop it and remove its containers with %s", fail.Call("clean"))
		}
		young, dead, err := runs(ctx, h.Engine, l.cfg.scope, l.cfg.infancy)
		if err != nil {
			return nil, err
		}
		young = slices.DeleteFunc(young, func(run string) bool { return run == l.cfg.RunID })
		if len(young) == 0 {
			return dead, nil
		}
		if !waiting {
			l.cfg.Say("waiting up to %s to see whether run %s is being measured", l.cfg.infancy, young[0])
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// pause waits for a moment, or until the context ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}

// leaseCommand lives as long as its input does, and no longer than $0 seconds
// after the last line of it: that the driver's link is down for good shows in
// nothing else.
const leaseCommand = `while read -r -t "$0" _; do :; done`

// silence is that time. Nobody takes a host from a driver that may yet come
// back.
const silence = engine.Patience + 30*time.Second

// lease starts a process in the container that lives as long as this one. When
// its connection breaks it is started again.
func lease(ctx context.Context, c *engine.Container, silence time.Duration) (release func(), err error) {
	leaseCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		for {
			err := holdLease(leaseCtx, c, silence)
			select {
			case done <- err: // the first one is of interest
			default:
			}
			select {
			case <-leaseCtx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	began := time.Now()
	for {
		busy, err := c.Busy(ctx) // outlasts an outage
		if err == nil && busy {
			return cancel, nil
		}
		select {
		case execErr := <-done:
			err = errors.Join(err, execErr)
		case <-time.After(20 * time.Millisecond):
			if err == nil && time.Since(began) < outage {
				continue
			}
		}
		cancel()
		return nil, fmt.Errorf("marking the engine as used: %w", errors.Join(err, ctx.Err()))
	}
}

// holdLease runs the process once and writes to it until its connection breaks
// or the context ends.
func holdLease(ctx context.Context, c *engine.Container, silence time.Duration) error {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		beat := time.NewTicker(silence / 10)
		defer beat.Stop()
		for {
			if _, err := w.Write([]byte("\n")); err != nil {
				return
			}
			select {
			case <-ctx.Done():
				w.Close()
				return
			case <-beat.C:
			}
		}
	}()
	_, err := c.Exec(ctx, r, "bash", "-c", leaseCommand, strconv.Itoa(int(silence.Seconds())))
	r.Close()
	return err
}

// portsFree refuses a host on which another program has a port that a role
// needs.
func (l *Lab) portsFree(ctx context.Context, h *Host, c *engine.Container, roles []plan.Role) error {
	res, err := c.Exec(ctx, nil, "cat", "/proc/net/tcp", "/proc/net/tcp6")
	if err != nil {
		return err
	}
	listening := listeners(string(res.Stdout))
	for _, need := range []struct {
		role plan.Role
		port string
		what string
	}{{plan.App, httpPort, "candidates listen"}, {plan.DB, databasePort, "PostgreSQL listens"}} {
		if slices.Contains(roles, need.role) && listening[need.port] {
			return fail.Work("port %s on host %s (%s) is taken by another program, and %s there", need.port, h.Name, h.Engine.Host(), need.what).Try("stop that program (`ss -ltnp sport = :%s` names it) and try again", need.port)
		}
	}
	return nil
}

// listeners finds the ports that something listens on in the text of
// /proc/net/tcp and its like.
func listeners(text string) map[string]bool {
	const listen = "0A" // the kernel's number of that state
	ports := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != listen {
			continue
		}
		_, hex, ok := strings.Cut(f[1], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); ok && err == nil {
			ports[strconv.FormatUint(port, 10)] = true
		}
	}
	return ports
}

// removeRun removes the containers of a run, then its networks.
func removeRun(ctx context.Context, e *engine.Engine, runID string) ([]engine.Thing, error) {
	labels := map[string]string{engine.Label: "1", engine.LabelRun: runID} // no image carries a run
	containers, err := e.Containers(ctx, labels)
	if err != nil {
		return nil, err
	}
	if err := stopDatabases(ctx, e, containers); err != nil {
		return nil, err
	}
	if err := remove(ctx, e, containers); err != nil {
		return nil, err
	}
	networks, err := e.Networks(ctx, labels)
	if err != nil {
		return containers, err
	}
	return append(containers, networks...), remove(ctx, e, networks)
}

// stopDatabases shuts running databases down cleanly: their volume outlives
// them.
func stopDatabases(ctx context.Context, e *engine.Engine, containers []engine.Thing) error {
	for _, t := range containers {
		if t.Running && t.Labels[engine.LabelRole] == whatDatabase {
			if err := e.Container(t.ID, t.Name).Stop(ctx, 30*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes things of one kind side by side.
func remove(ctx context.Context, e *engine.Engine, things []engine.Thing) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, t := range things {
		g.Go(func() error { return e.Delete(ctx, t) })
	}
	return g.Wait()
}

// CleanOptions say what Clean removes beyond containers, networks and volumes.
type CleanOptions struct {
	Images bool // the images as well
	// Force removes also what belongs to a run that is being measured.
	Force bool

	scope map[string]string // further labels that things must carry; tests only
}

// Clean removes every container, network and volume that carries percore's
// label, images too when asked, and nothing else. It returns what it removed,
// also beside an error. Without Force it refuses while a run is being measured.
func Clean(ctx context.Context, e *engine.Engine, o CleanOptions) ([]engine.Thing, error) {
	if !o.Force {
		live, _, err := runs(ctx, e, o.scope, infancy)
		if err != nil {
			return nil, err
		}
		if len(live) > 0 {
			return nil, fail.Work("run %s is using the engine at %s", strings.Join(live, ", "), e.Host()).Try("stop it first, or clean with %s", fail.Setting("force"))
		}
	}
	type lister func(context.Context, map[string]string) ([]engine.Thing, error)
	kinds := []string{engine.KindContainer, engine.KindNetwork, engine.KindVolume}
	lists := map[string]lister{engine.KindContainer: e.Containers, engine.KindNetwork: e.Networks, engine.KindVolume: e.Volumes, engine.KindImage: e.Images}
	if o.Images {
		kinds = append(kinds, engine.KindImage)
	}
	var removed []engine.Thing
	for _, kind := range kinds {
		labels := engine.Own(kind)
		maps.Copy(labels, o.scope)
		things, err := lists[kind](ctx, labels)
		if err != nil {
			return removed, err
		}
		if kind == engine.KindContainer {
			if err := stopDatabases(ctx, e, things); err != nil {
				return removed, err
			}
		}
		if err := remove(ctx, e, things); err != nil {
			return removed, err
		}
		removed = append(removed, things...)
	}
	return removed, nil
}
