// Package lab runs a lab on Docker Engines: the database, the candidates, the
// reference probe, the load generator and the sampler, each in a container on
// the CPUs that the profile gives its role. It implements protocol.Lab.
//
// A lab on one engine has a private bridge network; roles on machines of their
// own use the machines' network. Nothing is published and nothing of the
// driver's disk is mounted: the driver speaks to servers through a process in a
// container, and files travel over the Engine API. A window runs in a detached
// container, so a driver that loses its connection loses nothing.
package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

var _ protocol.Lab = (*Lab)(nil)

// Names of images that are not candidates'.
const (
	ImageTools    = "tools"    // load generator, sampler, reference probe, socat
	ImageDatabase = "postgres" // PostgreSQL
)

// Images are the names of the images that a lab for a suite needs, each once.
func Images(s plan.Suite) []string {
	all := []string{ImageDatabase, ImageTools}
	for _, c := range s.Candidates {
		if !slices.Contains(all, c.Image) {
			all = append(all, c.Image)
		}
	}
	return all
}

// Ports that servers listen on.
const (
	databasePort = "5432"
	httpPort     = "8080"
)

// openFiles is how many files a container may hold open: far more than any
// connection count of the protocol, and little enough for an engine that may
// not raise its own limit.
const openFiles = 16384

// Host is a machine with a Docker Engine that plays one or more roles.
type Host struct {
	Name   string // for people: "local", "app"
	Engine *engine.Engine
	// Address is where the other hosts reach it. It is used with HostNetwork.
	Address string
	// HostNetwork makes containers use the machine's own network. Without it
	// all roles are on this host and share a private bridge network.
	HostNetwork bool
}

// Local is a lab on one engine: every role on the same host, on a private
// network.
func Local(e *engine.Engine) map[plan.Role]*Host {
	h := &Host{Name: "local", Engine: e}
	return map[plan.Role]*Host{plan.App: h, plan.DB: h, plan.Load: h}
}

// Config is what a lab is made of.
type Config struct {
	RunID     string
	Profile   plan.Profile // resolved: no auto in it
	Suite     plan.Suite
	Flavour   plan.Flavour         // of the images; volumes of different flavours are kept apart
	Images    map[string]string    // image name -> tag on the engines
	PublicKey string               // PEM, for the candidates
	Tokens    map[string]oha.Token // scope -> token that the load generator sends
	// Renew returns tokens that are valid for some time yet, or none where those it
	// gave before are. It is asked before each load; nil leaves Tokens as they are.
	Renew     func(valid time.Duration) (map[string]oha.Token, error)
	Hosts     map[plan.Role]*Host
	LoadHosts []*Host // the second and further load hosts

	// Shared lets the lab run beside other runs on the same engines. Its
	// figures are then good for nothing but tests.
	Shared bool
	// ReadyTimeout is how long a server may take to become ready; 0 means a
	// minute.
	ReadyTimeout time.Duration
	// Say is told what is being done, one line each; nil for silence.
	Say func(format string, args ...any)
	// Trace is told every container that is started, as a command line without
	// tokens and passwords; nil for silence.
	Trace func(format string, args ...any)

	// For tests only.
	outFile string            // where the load generator writes
	above   string            // cgroup that the server's container lies in; empty leaves it to the engine
	scope   map[string]string // further labels on everything; other things are not looked at
	infancy time.Duration     // in place of the constant
	silence time.Duration     // the same
}

// Lab is the hosts of a run with what runs on them.
type Lab struct {
	cfg     Config
	network string
	seed    postgres.Seed

	tools    map[*Host]*engine.Container // one per host, idle: the driver's foot in the door
	claimed  []*Host                     // where this run may remove what carries its id
	leases   []func()
	password string
	db       *engine.Container
	dbPID    int
	sql      *postgres.Server

	caveats []string
	seeded  postgres.Seeded

	mu      sync.Mutex
	servers map[*server]bool
	closed  bool
	latest  *readings   // of the hosts' clocks
	spent   []oha.Token // that were replaced, which no text may show either
}

// New prepares the hosts: it refuses engines that another run is using, removes
// what dead runs left there, creates the network, starts the database with the
// protocol's settings on its volume, and seeds the template unless the volume
// has it. On an error what was created is removed again.
func New(ctx context.Context, cfg Config) (_ *Lab, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.ReadyTimeout == 0 {
		cfg.ReadyTimeout = time.Minute
	}
	cfg.Say, cfg.Trace = oneAtATime(cfg.Say), oneAtATime(cfg.Trace)
	if cfg.infancy == 0 {
		cfg.infancy = infancy
	}
	if cfg.silence == 0 {
		cfg.silence = silence
	}
	if cfg.outFile == "" {
		cfg.outFile = "/tmp/percore.oha.json"
	}
	l := &Lab{
		cfg:      cfg,
		network:  "percore-" + cfg.RunID,
		seed:     postgres.Seed{Rows: cfg.Suite.Rows, Subject: cfg.Suite.Subject},
		tools:    map[*Host]*engine.Container{},
		servers:  map[*server]bool{},
		password: nonce(16),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close(context.WithoutCancel(ctx)))
		}
	}()
	var claims errgroup.Group
	for _, h := range l.hosts() {
		claims.Go(func() error { return l.claim(ctx, h) })
	}
	if err := claims.Wait(); err != nil {
		return nil, l.blame(err)
	}
	if err := l.startDatabase(ctx); err != nil {
		return nil, l.blame(err)
	}
	if l.spread() {
		l.readHosts(ctx, true) // for the start of the first load generators
	}
	return l, nil
}

// check refuses a configuration that cannot work.
func (c Config) check() error {
	if c.RunID == "" {
		return errors.New("a lab needs a run id")
	}
	private := false
	for _, r := range plan.Roles() {
		h := c.Hosts[r]
		if h == nil || h.Engine == nil {
			return fmt.Errorf("the lab has no host for role %s", r)
		}
		if h.HostNetwork && h.Address == "" {
			return fmt.Errorf("host %s uses the host's network and has no address", h.Name)
		}
		private = private || !h.HostNetwork
		if res := c.Profile.Roles[r]; res.CPUs == "" || res.CPUs == plan.AutoCPUs {
			return fmt.Errorf("profile %s gives role %s no CPUs", c.Profile.Name, r)
		}
	}
	app, db, gen := c.Hosts[plan.App], c.Hosts[plan.DB], c.Hosts[plan.Load]
	if private && (app != db || app != gen) {
		return errors.New("roles on different hosts need host networking on each of them")
	}
	all := []*Host{}
	for _, h := range append([]*Host{app, db, gen}, c.LoadHosts...) {
		if h == nil || h.Engine == nil {
			return errors.New("the lab has a further load host without an engine")
		}
		if slices.Contains(c.LoadHosts, h) && (!h.HostNetwork || h.Address == "") {
			return fmt.Errorf("further load host %s needs host networking and an address", h.Name)
		}
		if !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	if len(c.LoadHosts) > 0 && private {
		return errors.New("roles on different hosts need host networking on each of them")
	}
	for i, h := range all {
		for _, other := range all[:i] {
			if h.Name == other.Name || h.HostNetwork && h.Address == other.Address {
				return fmt.Errorf("two hosts of the lab have the name %s or the address %s", h.Name, h.Address)
			}
		}
	}
	for i, h := range c.LoadHosts {
		if h == gen || slices.Contains(c.LoadHosts[:i], h) {
			return fmt.Errorf("load host %s is named twice", h.Name)
		}
	}
	for _, name := range []string{ImageTools, ImageDatabase} {
		if c.Images[name] == "" {
			return fmt.Errorf("the lab has no image named %s", name)
		}
	}
	return nil
}

// hosts are the distinct hosts, in the order of their roles, further load hosts
// last.
func (l *Lab) hosts() []*Host {
	var out []*Host
	for _, r := range plan.Roles() {
		if h := l.cfg.Hosts[r]; !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	for _, h := range l.cfg.LoadHosts {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// loadHosts are the hosts that a load generator runs on, the first first.
func (l *Lab) loadHosts() []*Host {
	return append([]*Host{l.host(plan.Load)}, l.cfg.LoadHosts...)
}

// spread reports whether there are several hosts.
func (l *Lab) spread() bool { return len(l.hosts()) > 1 }

// rolesOf are the roles that a host plays.
func (l *Lab) rolesOf(h *Host) []plan.Role {
	var roles []plan.Role
	for _, r := range plan.Roles() {
		if l.host(r) == h || r == plan.Load && slices.Contains(l.cfg.LoadHosts, h) {
			roles = append(roles, r)
		}
	}
	return roles
}

func (l *Lab) host(r plan.Role) *Host { return l.cfg.Hosts[r] }

// Caveats are sentences about the lab that a report must repeat.
func (l *Lab) Caveats() []string { return slices.Clone(l.caveats) }

// Seeded says whether the template was reused and how long seeding took.
func (l *Lab) Seeded() postgres.Seeded { return l.seeded }

// address is where the other containers reach a role's server.
func (l *Lab) address(r plan.Role, port string) string {
	name := string(r) // the alias on the private network
	if h := l.host(r); h.HostNetwork {
		name = h.Address
	}
	return net.JoinHostPort(name, port)
}

// spec is a container of a role, on the role's CPUs, with no memory limit.
func (l *Lab) spec(r plan.Role, what, image string) engine.Spec {
	s := engine.Spec{
		Name:   fmt.Sprintf("percore-%s-%s-%s", l.cfg.RunID, what, nonce(3)),
		Image:  image,
		CPUs:   string(l.cfg.Profile.Roles[r].CPUs),
		NoFile: openFiles,
		Labels: l.labels(what),
	}
	if h := l.host(r); h.HostNetwork {
		s.HostNetwork = true
	} else {
		s.Network = l.network
	}
	return s
}

// labels are those of a container.
func (l *Lab) labels(what string) map[string]string {
	labels := map[string]string{
		engine.Label: "1", engine.LabelRun: l.cfg.RunID, engine.LabelKind: engine.KindContainer, engine.LabelRole: what,
	}
	if l.cfg.Shared {
		labels[labelShared] = "1"
	}
	maps.Copy(labels, l.cfg.scope)
	return labels
}

// oneAtATime makes a function that several goroutines may call of one that may
// be nil.
func oneAtATime(say func(string, ...any)) func(string, ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		if say == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		say(format, args...)
	}
}

// nonce is a random text of n bytes in hexadecimal.
func nonce(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// cleanup is a context that outlives a cancelled run for as long as collecting
// and removing take: with hosts of their own that includes an outage. A host
// that is lost does not take that long, see engine.LostError.
func (l *Lab) cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Minute
	if l.cfg.remote() {
		limit += outage
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// patient is a context that lasts through an outage where hosts are behind a
// link, and what it was made of elsewhere.
func (l *Lab) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.cfg.remote() {
		return l.cleanup(ctx)
	}
	return context.WithCancel(ctx)
}

// remote reports whether a host of the lab is behind a link that may break.
func (c Config) remote() bool {
	for _, h := range c.Hosts {
		if h.HostNetwork {
			return true
		}
	}
	return false
}

// Close stops the database cleanly and removes the containers and the network
// of the run; the seeded volume stays.
func (l *Lab) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	ctx, cancel := l.cleanup(ctx)
	defer cancel()
	if l.sql != nil {
		l.sql.Close(ctx)
	}
	errs := make([]error, len(l.claimed)+1)
	var g errgroup.Group
	if l.db != nil {
		g.Go(func() error { errs[len(l.claimed)] = l.db.Stop(ctx, 30*time.Second); return nil })
	}
	_ = g.Wait()
	for _, release := range l.leases {
		release()
	}
	for i, h := range l.claimed {
		g.Go(func() error { _, errs[i] = removeRun(ctx, h.Engine, l.cfg.RunID); return nil })
	}
	_ = g.Wait()
	return l.blame(errors.Join(errs...))
}
