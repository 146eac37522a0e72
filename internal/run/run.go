package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab"
	"github.com/percore/percore/internal/lab/contract"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

// stateDir is Options.State below the project where no other folder is given.
const stateDir = ".percore"

// bench is a lab that is up, with what it takes to check and measure the
// candidates.
type bench struct {
	*Prepared
	console Console
	keys    *contract.Keys
	images  map[string]images.Image
	lab     *lab.Lab
}

// Run measures a new run and returns its results folder, also beside an error
// when there is one already: what was measured is kept in it.
func Run(ctx context.Context, p *Prepared, c Console) (dir string, err error) {
	b := &bench{Prepared: p, console: c}
	if err := store.Writable(p.Results); err != nil { // before minutes go into images
		return "", err
	}
	if err := b.build(ctx); err != nil {
		return "", err
	}
	st, err := store.Create(p.Results, b.describe())
	if err != nil {
		return "", err
	}
	err = b.measure(ctx, st, "start")
	// A run that was refused before its lab was up has measured nothing, and
	// nothing of it is to be carried on. Of a run on machines of its own the folder
	// holds more than that.
	if b.lab == nil && err != nil && ctx.Err() == nil && b.Hosts == nil {
		return "", errors.Join(err, st.Discard())
	}
	return st.Dir(), errors.Join(err, st.Close())
}

// Resume carries on a run at its next unfinished window. It refuses when what
// the run was started with has changed since.
func Resume(ctx context.Context, p *Prepared, st *store.Store, c Console) (err error) {
	b := &bench{Prepared: p, console: c}
	if err := st.Lock(); err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	now := b.describe()
	if now.Profile.Siblings == nil { // of an engine elsewhere they are known when the lab is up
		now.Profile.Siblings = st.Run().Profile.Siblings
	}
	if err := st.CheckResume(now); err != nil {
		return err
	}
	was := st.Run()
	for _, name := range slices.Sorted(maps.Keys(now.Images)) {
		if old := was.Images[name]; old != now.Images[name] {
			return fail.Input("run %s cannot be resumed: image %s was %s and is %s now, so its sources have changed", was.ID, name, old, now.Images[name]).Try("undo the change, or start a new run")
		}
	}
	return b.measure(ctx, st, "resume")
}

// ResumeOptions are the options that carry on a stored run by what is stored of
// it: neither its profile nor its preset is looked for again.
func ResumeOptions(o Options, was store.Run) Options {
	o.Stored, o.Seed, o.Profile, o.Preset, o.Selection = &was, was.Seed, was.ProfileSource, was.PresetSource, plan.Selection{}
	o.Suite = cmp.Or(was.SuiteSource, was.Suite.Name)
	if o.Flavour == "" || o.Flavour == plan.FlavourAuto {
		o.Flavour = was.Flavour
	}
	return o
}

// CheckAsked refuses options that ask for something else than what a stored run
// was begun with.
func CheckAsked(o Options, was store.Run) error {
	set := func(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
	var scenarios, phases []string
	for _, s := range was.Suite.Scenarios {
		scenarios = append(scenarios, s.ID)
	}
	for _, ph := range was.Preset.Phases {
		phases = append(phases, ph.ID)
	}
	asked := func(nameOrFile, name string) string {
		if nameOrFile == "" || nameOrFile == "auto" || nameOrFile == name {
			return ""
		}
		return plan.Source(nameOrFile)
	}
	for _, c := range []struct{ setting, was, now string }{
		{"suite", cmp.Or(was.SuiteSource, was.Suite.Name), plan.SuiteSource(o.Suite)},
		{"profile", was.ProfileSource, asked(o.Profile, was.Profile.Name)},
		{"preset", was.PresetSource, asked(o.Preset, was.Preset.Name)},
		{"candidates", set(was.Candidates), set(o.Selection.Candidates)},
		{"scenarios", set(scenarios), set(o.Selection.Scenarios)},
		{"phases", set(phases), set(o.Selection.Phases)},
	} {
		if c.now != "" && c.now != c.was {
			return fail.Input("run %s cannot be resumed: it was begun with %s %s, and %s is asked for", was.ID, c.setting, c.was, c.now).Try("leave out %s, or start a new run", fail.Setting(c.setting))
		}
	}
	return nil
}

// site is a host with the images that it needs.
type site struct {
	name   string // empty for a lab on one engine
	engine *engine.Engine
	images []string
}

// sites lists the hosts and which images each needs.
func (b *bench) sites() []site {
	var candidates []string
	for _, c := range b.Suite.Candidates {
		if !slices.Contains(candidates, c.Image) {
			candidates = append(candidates, c.Image)
		}
	}
	if b.Hosts == nil {
		return []site{{"", b.Engine, lab.Images(b.Suite)}}
	}
	var all []site
	for _, h := range b.Hosts.All() {
		s := site{h.Name, h.Engine, []string{lab.ImageTools}}
		if h == b.Hosts.Roles[plan.DB] {
			s.images = append(s.images, lab.ImageDatabase)
		}
		if h == b.Hosts.Roles[plan.App] {
			s.images = append(s.images, candidates...)
		}
		all = append(all, s)
	}
	return all
}

// build settles the flavour and makes sure that every image is on the engines
// that need it: the hosts build side by side.
func (b *bench) build(ctx context.Context) error {
	sites := b.sites()
	var mu sync.Mutex // the console's builds, and what was built
	b.console.Transient("choosing the image flavour")
	var g *errgroup.Group
	built := map[string]images.Image{}
	_, files, err := b.open()
	if err != nil {
		return err
	}
	recipes, err := images.Load(files, b.Suite.Name)
	if err != nil {
		return err
	}
	g, ctx = errgroup.WithContext(ctx)
	for i, s := range sites {
		builder := &images.Builder{Engine: s.engine.API(), Recipes: recipes, HostNetwork: b.Hosts != nil, Progress: b.buildProgress(s.name)}
		if i == 0 { // the app's host speaks for all: figures of two flavours may not be mixed
			choice, err := builder.Choose(ctx, b.Profile.Flavour, s.images...)
			if err != nil {
				return s.wrap(err)
			}
			b.Profile.Flavour = choice.Flavour
			b.console.Printf("flavour %s: %s", choice.Flavour, choice.Reason)
		}
		flavour := b.Profile.Flavour
		g.Go(func() error {
			builds, err := builder.Plan(ctx, flavour, s.images...)
			if err != nil {
				return s.wrap(err)
			}
			if b.Hosts != nil && flavour == plan.FlavourDebian && len(builds.Missing()) > 0 {
				copied, err := b.carry(ctx, s, builds)
				if err != nil {
					return s.wrap(err)
				}
				if copied > 0 {
					b.console.Printf("%s%d image(s) copied from this machine's engine", s.prefix(), copied)
					if builds, err = builder.Plan(ctx, flavour, s.images...); err != nil {
						return s.wrap(err)
					}
				}
			}
			if missing := builds.Missing(); len(missing) > 0 {
				b.console.Printf("%s%d image(s) to build, about %s on two cores", s.prefix(), len(missing), builds.Estimate().Round(10*time.Second))
			} else {
				b.console.Printf("%simages are built already", s.prefix())
			}
			got, err := builder.Build(ctx, flavour, s.images...)
			if err != nil {
				return s.wrap(err)
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(built, got)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.images = built
	b.keys, err = contract.OpenKeys(filepath.Join(cmp.Or(b.State, filepath.Join(b.Root, stateDir)), "keys"))
	return err
}

// carry copies to a host what this machine's engine has of the images that the
// host lacks. Images of the debian flavour take long to build, and a host need
// not reach what they are built from.
func (b *bench) carry(ctx context.Context, s site, plan images.Plan) (int, error) {
	local, err := engine.Connect(ctx, engine.Options{})
	if err != nil {
		b.console.Debugf("%sno images are copied: %v", s.prefix(), err)
		return 0, nil
	}
	defer local.Close()
	var tags []string
	for _, it := range plan.Items {
		if it.Wanted && it.ID == "" {
			tags = append(tags, it.Tag)
		}
	}
	b.console.Transient("%slooking for images on this machine's engine", s.prefix())
	copied, err := images.Transfer(ctx, local.API(), s.engine.API(), tags)
	return len(copied), err
}

func (s site) prefix() string {
	if s.name == "" {
		return ""
	}
	return s.name + ": "
}

func (s site) wrap(err error) error {
	if s.name == "" {
		return err
	}
	return fmt.Errorf("host %s: %w", s.name, err)
}

// NewID is the id of a run that starts then: its time in UTC, the profile's name
// and, where that is known already, the preset's.
func NewID(at time.Time, profile, preset string) string {
	id := at.UTC().Format("20060102-150405") + "-" + profile
	if preset != "" {
		id += "-" + preset
	}
	return id
}

// describe is run.json before anything has been measured.
func (b *bench) describe() store.Run {
	id := b.RunID
	if id == "" {
		id = NewID(time.Now(), b.Profile.Name, b.Preset.Name)
	}
	run := store.Run{
		ID:            id,
		Percore:       b.Version,
		Started:       time.Now().UTC(),
		Seed:          b.Seed,
		Suite:         b.Suite,
		Profile:       b.Profile,
		Preset:        b.Preset,
		Blocks:        b.List.Blocks,
		SuiteSource:   plan.SuiteSource(cmp.Or(b.Options.Suite, b.Suite.Name)),
		ProfileSource: source(b.Options.Profile, b.Profile.Name),
		PresetSource:  source(b.Options.Preset, b.Preset.Name),
		Candidates:    b.Candidates(),
		Flavour:       b.Profile.Flavour,
		Images:        map[string]string{},
		Comparable:    b.Comparable(),
		Caveats:       b.Caveats(),
	}
	for name, img := range b.images {
		run.Images[name] = img.Tag
	}
	return run
}

// source is how a profile or preset is found again; name is what auto stood for.
func source(given, name string) string {
	if given == "auto" {
		return name
	}
	return plan.Source(given)
}

// measure brings the lab up, checks the candidates and runs the protocol into
// the store. However it ends, the log of the run says so.
func (b *bench) measure(ctx context.Context, st *store.Store, reason string) (err error) {
	start, err := json.Marshal(map[string]any{"argv": os.Args, "reason": reason})
	if err != nil {
		return err
	}
	if err := st.Append(store.Event{Type: store.EventRunStarted, Message: reason, Data: start}); err != nil {
		return err
	}
	defer func() {
		e := store.Event{Type: store.EventRunEnded, Message: store.StateComplete}
		switch {
		case ctx.Err() != nil:
			e.Message = store.StateInterrupted
		case err != nil:
			e.Message, e.Error = store.StateFailed, err.Error()
		}
		err = errors.Join(err, st.Append(e))
		run := st.Run()
		now := time.Now().UTC()
		run.Ended = &now
		if b.Hosts != nil && b.Hosts.Cloud != nil {
			run.Cloud = b.Hosts.Cloud()
		}
		err = errors.Join(err, st.SaveRun(run))
	}()
	if err := b.up(ctx, st.Run().ID); err != nil {
		return err
	}
	defer func() {
		b.console.Transient("removing containers and network")
		err = errors.Join(err, b.lab.Close(context.WithoutCancel(ctx)))
	}()
	if err := b.facts(ctx, st); err != nil {
		return err
	}
	// Machines made for the run may be gone at its end, so what they are is
	// measured before it; on one engine the first window need not wait for it.
	tail := neutralTime
	if b.Hosts != nil {
		tail = 0
		if err := b.neutral(ctx, st); err != nil {
			return err
		}
	}
	// A run that is carried on has its images of before: what kept the contract
	// does so still.
	if err := b.verify(ctx, verified(st), st.Append); err != nil {
		return err
	}
	r := &protocol.Runner{
		Lab: b.lab, Journal: st, List: b.List, Suite: b.Suite,
		Layout: gates.LayoutOf(st.Run()), Observer: b.console.Watch(), Tail: tail,
	}
	given, err := st.GiveUpDamaged()
	for _, lost := range given {
		b.console.Printf("note: %s: %s; what rests on it is measured again (%d attempts)", lost.Path, lost.What, len(lost.Attempts))
	}
	if err != nil {
		return err
	}
	if done := r.Finished(); done > 0 {
		b.console.Printf("%d of %d windows are done already", done, b.List.Windows())
	}
	err = r.Run(ctx)
	var incomplete *protocol.Incomplete
	if err != nil && (!errors.As(err, &incomplete) || incomplete.Ended) || b.Hosts != nil {
		return err
	}
	return errors.Join(err, b.neutral(ctx, st))
}

// neutralTime is about how long neutral takes.
const neutralTime = 10 * time.Second

// neutral measures what is the machines' own and no candidate's, once a run and
// when nothing else runs: fsync on the database's volume, how many RSA
// signatures a core verifies, and the network between several hosts. No window
// rests on these: one that fails is noted, and a resumed run tries it again.
func (b *bench) neutral(ctx context.Context, st *store.Store) error {
	run := st.Run()
	var readings []reading
	if len(run.FsyncPerSec) == 0 {
		readings = append(readings, reading{"timing fsync on the database's volume", func() (err error) {
			run.FsyncPerSec, err = b.lab.Fsync(ctx)
			return err
		}})
	}
	if slices.ContainsFunc(run.Hosts, func(h store.HostFacts) bool { return h.RSAVerifyPerS == 0 }) {
		readings = append(readings, reading{"timing RSA verifications on one core", func() error {
			rates, err := b.lab.RSAVerify(ctx)
			for i := range run.Hosts {
				run.Hosts[i].RSAVerifyPerS = max(run.Hosts[i].RSAVerifyPerS, rates[run.Hosts[i].Name])
			}
			return err
		}})
	}
	if b.Hosts != nil && len(run.Links) == 0 {
		readings = append(readings, reading{"measuring the network between the hosts", func() error {
			links, err := b.lab.Links(ctx)
			for _, l := range links {
				b.console.Printf("network %s to %s: round trip %.3f ms, %.2f Gbit/s", l.From, l.To, l.RTTMeanMS, l.BitsPerS/1e9)
			}
			if err == nil { // some of the links alone would not be taken again
				run.Links = links
			}
			return err
		}})
	}
	if err := take(ctx, b.console, st, readings); err != nil {
		return err
	}
	return st.SaveRun(run)
}

// reading is something that is measured once and that no window rests on.
type reading struct {
	what string // "timing …"
	take func() error
}

// take takes readings one after the other. One that fails is a note in the log of
// the run; only a run that is ending is not carried on.
func take(ctx context.Context, c Console, log interface{ Append(store.Event) error }, readings []reading) error {
	for _, r := range readings {
		c.Status("%s", r.what)
		err := r.take()
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err != nil:
			c.Printf("note: %s failed, and the report lacks it: %v", r.what, err)
			if err := log.Append(store.Event{Type: store.EventNote, Message: r.what + " failed", Error: err.Error()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// up starts the lab: database, network, and the seed where the volume lacks it.
func (b *bench) up(ctx context.Context, runID string) error {
	id := contract.Identity{Issuer: b.Suite.Issuer, Audience: b.Suite.Audience, Subject: b.Suite.Subject}
	signer := &tokens{now: time.Now, sign: func(expires time.Time) (map[string]oha.Token, error) {
		signed, err := b.keys.LoadTokens(id, b.scopes(), expires)
		if err != nil {
			return nil, err
		}
		out := map[string]oha.Token{}
		for scope, t := range signed {
			out[scope] = oha.Token(t.Reveal())
		}
		return out, nil
	}}
	tags := map[string]string{}
	for name, img := range b.images {
		tags[name] = img.Tag
	}
	hosts, loads := lab.Local(b.Engine), []*lab.Host(nil)
	if b.Hosts != nil {
		hosts, loads = b.Hosts.Roles, b.Hosts.Loads
	}
	b.console.Transient("starting PostgreSQL")
	var err error
	b.lab, err = lab.New(ctx, lab.Config{
		RunID: runID, Profile: b.Profile, Suite: b.Suite, Flavour: b.Profile.Flavour, Images: tags,
		PublicKey: b.keys.PublicPEM(), Renew: signer.renew, Hosts: hosts, LoadHosts: loads, Say: b.console.Status, Trace: b.console.Debugf,
	})
	if err != nil {
		return err
	}
	if s := b.lab.Seeded(); s.Reused {
		b.console.Printf("database: PostgreSQL is up, its %d rows are seeded already", b.Suite.Rows)
	} else {
		b.console.Printf("database: PostgreSQL is up, %d rows seeded in %s", b.Suite.Rows, s.Took.Round(time.Second))
	}
	return nil
}

// facts completes run.json with what only the running lab can say.
func (b *bench) facts(ctx context.Context, st *store.Store) error {
	b.console.Transient("reading versions and host facts")
	run := st.Run()
	var err error
	if run.Hosts, err = b.lab.HostFacts(ctx); err != nil {
		return err
	}
	if h := b.Hosts; h != nil {
		for i := range run.Hosts {
			f := &run.Hosts[i]
			for _, host := range h.All() {
				if host.Address == f.Address {
					f.InstanceType, f.Facts = h.Types[host.Name], h.Facts[host.Name]
				}
			}
		}
		if h.Cloud != nil {
			run.Cloud = h.Cloud()
		}
	}
	versions, err := b.lab.Versions(ctx)
	if err != nil {
		return err
	}
	run.Versions = map[string]string{}
	for image, programs := range versions {
		for program, v := range programs {
			key := program
			if slices.Contains([]string{lab.ImageTools, lab.ImageDatabase}, image) {
				key = program
			} else if program != image {
				key = image + "/" + program
			}
			run.Versions[key] = v
		}
	}
	caveats := b.lab.Caveats()
	if s := run.Hosts[0].Siblings; b.Hosts == nil && len(s) > 0 {
		// Of an engine elsewhere this is the first that is known of its cores.
		b.Profile.Siblings, run.Profile.Siblings = s, s
		caveats = append(b.Caveats(), caveats...)
	}
	if b.Hosts != nil {
		for _, h := range run.Hosts {
			if c := threads("host "+h.Name, b.Profile.Roles[h.Roles[0]].CPUs, h.Siblings); c != "" {
				caveats = append(caveats, c)
			}
		}
	}
	for _, c := range caveats {
		if !slices.Contains(run.Caveats, c) {
			run.Caveats = append(run.Caveats, c)
			run.Comparable = false
		}
	}
	for _, c := range run.Caveats {
		b.console.Printf("note: %s", c)
	}
	return st.SaveRun(run)
}

// verify checks every candidate against the contract, side by side where the
// lab can: much of a check is waiting for tokens to expire. A candidate that
// fails a case may not be measured.
// Those in done are left out.
func (b *bench) verify(ctx context.Context, done map[string]bool, keep func(store.Event) error) error {
	_, files, err := b.open()
	if err != nil {
		return err
	}
	c, err := contract.Load(files, path.Join(b.Suite.Dir(), contract.File))
	if err != nil {
		return err
	}
	var ids []string
	for _, id := range b.Candidates() {
		if done[id] {
			b.console.Printf("contract %s: was kept when the run was started", id)
			continue
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	reports := make([]contract.Report, len(ids))
	b.console.Transient("checking the contract of %s", strings.Join(ids, ", "))
	g, groupCtx := errgroup.WithContext(ctx)
	if !b.lab.Concurrent() {
		g.SetLimit(1)
	}
	for i, id := range ids {
		g.Go(func() (err error) {
			if reports[i], err = b.verifyOne(groupCtx, c, id); err != nil {
				return fmt.Errorf("contract check of %s: %w", id, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var failed []string
	for i, report := range reports {
		data, err := json.Marshal(report)
		if err != nil {
			return err
		}
		if err := keep(store.Event{Type: store.EventVerify, Message: ids[i], Data: data}); err != nil {
			return err
		}
		for line := range strings.Lines(report.Summary()) {
			b.console.Printf("contract %s", strings.TrimRight(line, "\n"))
		}
		if !report.OK() {
			failed = append(failed, ids[i])
		}
	}
	for _, d := range contract.Compare(reports) {
		b.console.Printf("contract: the candidates differ in %s", d)
	}
	if len(failed) > 0 {
		return fail.Work("%s failed the contract check, and what breaks the contract may not be measured", strings.Join(failed, ", ")).Try("mend it, or leave it out with %s", fail.Setting("candidates"))
	}
	return nil
}

// verified are the candidates that have kept the contract in the run.
func verified(st *store.Store) map[string]bool {
	done := map[string]bool{}
	for _, e := range st.Events() {
		if e.Type != store.EventVerify {
			continue
		}
		var r contract.Report
		err := json.Unmarshal(e.Data, &r)
		done[e.Message] = err == nil && r.OK()
	}
	return done
}

func (b *bench) verifyOne(ctx context.Context, c *contract.Contract, id string) (_ contract.Report, err error) {
	check, err := b.lab.StartCheck(ctx, id)
	if err != nil {
		return contract.Report{}, err
	}
	defer func() { err = errors.Join(err, check.Stop(context.WithoutCancel(ctx))) }()
	return contract.Run(ctx, c, contract.Target{
		Name: id, Dial: b.lab.Dial(check), Rows: check.Rows, Keys: b.keys, Host: b.lab.ServerHost(),
		Identity: contract.Identity{Issuer: b.Suite.Issuer, Audience: b.Suite.Audience, Subject: b.Suite.Subject},
	})
}

// Verify builds the images and checks the candidates, and measures nothing.
func Verify(ctx context.Context, p *Prepared, c Console) (err error) {
	b := &bench{Prepared: p, console: c}
	if err := b.build(ctx); err != nil {
		return err
	}
	if err := b.up(ctx, "verify-"+time.Now().UTC().Format("20060102-150405")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lab.Close(context.WithoutCancel(ctx))) }()
	return b.verify(ctx, nil, func(store.Event) error { return nil })
}

// buildProgress shows builds: a line for each image and each of its steps, and
// on a terminal what the running step last printed.
// Of several hosts each line names the one.
func (b *bench) buildProgress(host string) func(images.Event) {
	step := ""
	return func(e images.Event) {
		head := fmt.Sprintf("image %d of %d, %s", e.Index, e.Count, e.Image)
		if host != "" {
			head = host + ": " + head
		}
		switch e.Kind {
		case images.Waiting:
			b.console.Status("waiting for another percore that is building images")
		case images.Reused:
			b.console.Debugf("image %s is there: %s", e.Image, e.Tag)
		case images.Started:
			step = ""
			b.console.Printf("%s: building, about %s", head, e.Estimate.Round(time.Second))
		case images.Stepped:
			step = e.Command
			b.console.Status("%s: step %d of %d: %s", head, e.Step, e.Steps, shorten(step, 120))
		case images.Printed:
			b.console.Debugf("%s", e.Line)
			b.console.Transient("%s: step %d of %d: %s", head, e.Step, e.Steps, shorten(e.Line, 120))
		case images.Finished:
			b.console.Printf("%s: built in %s", head, e.Elapsed.Round(time.Second))
		}
	}
}

// shorten cuts a text to one line of at most n characters.
func shorten(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}
