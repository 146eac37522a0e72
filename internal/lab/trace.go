package lab

import (
	"context"
	"fmt"
	"strings"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
)

// create creates a container on a host, and tells what it will execute.
func (l *Lab) create(ctx context.Context, h *Host, s engine.Spec) (*engine.Container, error) {
	l.cfg.Trace("%s: %s", h.Name, l.redact(commandLine(s)))
	return h.Engine.Create(ctx, s)
}

// run creates and starts a container on a host.
func (l *Lab) run(ctx context.Context, h *Host, s engine.Spec) (*engine.Container, error) {
	l.cfg.Trace("%s: %s", h.Name, l.redact(commandLine(s)))
	return h.Engine.Run(ctx, s)
}

// commandLine shows a container as the docker command that would start it.
// What its environment holds is left out: passwords and keys are in it.
func commandLine(s engine.Spec) string {
	words := []string{"docker run --name", s.Name}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("--cpuset-cpus", s.CPUs)
	if s.Memory > 0 {
		add("--memory", plan.Bytes(s.Memory).String())
	}
	switch {
	case s.HostNetwork:
		add("--network", "host")
	case s.NetworkOf != nil:
		add("--network", "container:"+s.NetworkOf.Name)
	default:
		add("--network", s.Network)
	}
	for name := range s.Volumes {
		add("--volume", name+":"+s.Volumes[name])
	}
	for _, b := range s.Binds {
		add("--volume", b.Host+":"+b.Path+":ro")
	}
	if s.HostPID {
		words = append(words, "--pid host")
	}
	if len(s.Env) > 0 {
		words = append(words, fmt.Sprintf("(%d variables)", len(s.Env)))
	}
	if len(s.Entrypoint) > 0 {
		add("--entrypoint", strings.Join(s.Entrypoint, " "))
	}
	return strings.Join(append(append(words, s.Image), s.Cmd...), " ")
}
