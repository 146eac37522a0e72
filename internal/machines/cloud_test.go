package machines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/run"
	"github.com/percore/percore/internal/testkit/said"
)

// quiet is a console that remembers its lines.
type quiet struct{ lines []string }

func (q *quiet) Printf(format string, args ...any) {
	q.lines = append(q.lines, fmt.Sprintf(format, args...))
}
func (q *quiet) Status(format string, args ...any) { q.Printf(format, args...) }
func (q *quiet) Transient(string, ...any)          {}
func (q *quiet) Debugf(string, ...any)             {}
func (q *quiet) Watch() protocol.Observer          { return nil }
func (q *quiet) said(text string) bool             { return strings.Contains(strings.Join(q.lines, "\n"), text) }

func options(t *testing.T, profile string) (Options, *quiet) {
	t.Helper()
	q := &quiet{}
	return Options{Options: run.Options{Root: "../..", Results: t.TempDir(), Profile: profile, Preset: "quick"}, Console: q}, q
}

// flags says that a user has named these.
func flags(names ...string) func(string) bool {
	return func(f string) bool { return slices.Contains(names, f) }
}

func at(t time.Time) *time.Time { return &t }

func TestSpent(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	for _, tt := range []struct {
		name string
		s    State
		now  time.Time
		want float64
	}{
		{"nothing was made", State{USDPerHour: 2}, after(time.Hour), 0},
		{"half an hour", State{USDPerHour: 2, Applied: at(start)}, after(30 * time.Minute), 1},
		{"destroyed", State{USDPerHour: 2, Applied: at(start), Destroyed: at(after(time.Hour))}, after(9 * time.Hour), 2},
		{"expired", State{USDPerHour: 2, Applied: at(start), Expires: at(after(4 * time.Hour))}, after(9 * time.Hour), 8},
		{"a clock that was set back", State{USDPerHour: 2, Applied: at(start)}, after(-time.Hour), 0},
	} {
		if got := tt.s.Spent(tt.now); got != tt.want {
			t.Errorf("%s: $%g, want $%g", tt.name, got, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"a lab on one engine", func(o *Options) { o.Profile = "small" }, "describes one engine"},
		{"no such profile", func(o *Options) { o.Profile = "azure" }, `no profile "azure"`},
		{"no such preset", func(o *Options) { o.Preset = "eternal" }, `no preset "eternal"`},
		{"no such candidate", func(o *Options) { o.Selection.Candidates = []string{"rust"} }, `no candidate "rust"`},
		{"less than nothing", func(o *Options) { o.MaxCostUSD = -1 }, "--max-cost"},
		{"nothing", func(o *Options) { o.Given = flags("max-cost") }, "$0 is no limit"},
		{"no number", func(o *Options) { o.MaxCostUSD = math.NaN() }, "$NaN is no limit"},
		{"no end", func(o *Options) { o.MaxCostUSD = math.Inf(1) }, "$+Inf is no limit"},
	} {
		o, _ := options(t, "aws-graviton")
		tt.change(&o)
		d, err := New(o)
		if err == nil {
			d.Close()
			t.Errorf("%s: taken", tt.name)
			continue
		}
		if !fail.IsInput(err) || !strings.Contains(said.Err(err), tt.want) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v, want one line of bad input that says %q", tt.name, err, tt.want)
		}
		if left, _ := os.ReadDir(o.Results); len(left) > 0 {
			t.Errorf("%s: left %v", tt.name, left)
		}
	}
}

// TestTwoAtOnce opens a run that another process is working on.
func TestTwoAtOnce(t *testing.T) {
	o, _ := options(t, "hosts")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o, d.ID()); err == nil || !strings.Contains(said.Err(err), "another percore") {
		t.Errorf("opened twice: %v", err)
	}
	if p, err := Peek(o, d.ID()); err != nil || p.State().ID != d.ID() {
		t.Errorf("looking at it: %v", err)
	}
	d.Close()
	again, err := Open(o, d.ID()[:10])
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Prepare(t.Context()); err == nil || !fail.IsInput(err) || !strings.Contains(said.Err(err), "percore cloud up --resume "+d.ID()) {
		t.Errorf("preparing machines that there are not: %v", err)
	}
	info, err := os.Stat(filepath.Join(again.Dir(), Dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of keys: %v, %v", info.Mode(), err)
	}
}

// TestDiscard removes what was begun and nothing else.
func TestDiscard(t *testing.T) {
	o, _ := options(t, "hosts")
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := New(o) // most likely in the same second
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.ID() == second.ID() {
		t.Errorf("two runs have the id %s", first.ID())
	}
	first.f.state.Applied = at(time.Now())
	if gone, err := first.Discard(); gone || err != nil {
		t.Errorf("a run with machines: %v, %v", gone, err)
	}
	if gone, err := second.Discard(); !gone || err != nil {
		t.Errorf("a run without: %v, %v", gone, err)
	}
	left, err := os.ReadDir(o.Results)
	if err != nil || len(left) != 1 || left[0].Name() != first.ID() {
		t.Errorf("left %v, %v", left, err)
	}
	first.f.state.Applied = nil
	if err := os.WriteFile(filepath.Join(first.Dir(), "run.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if gone, err := first.Discard(); gone || err != nil {
		t.Errorf("a run that was measured: %v, %v", gone, err)
	}
}

func TestChoose(t *testing.T) {
	results := t.TempDir()
	add := func(s State) {
		f, err := create(results, s)
		if err != nil {
			t.Fatal(err)
		}
		f.close()
	}
	if _, err := Choose(results, ""); err == nil || !strings.Contains(said.Err(err), "no cloud run") {
		t.Errorf("among none: %v", err)
	}
	now := time.Now()
	add(State{ID: "20260101-gone", Created: now, Applied: at(now), Destroyed: at(now)})
	add(State{ID: "20260102-live", Created: now.Add(time.Hour), Applied: at(now)})
	if run, err := Choose(results, ""); filepath.Base(run) != "20260102-live" || err != nil {
		t.Errorf("the one with machines: %q, %v", run, err)
	}
	if run, err := Choose(results, "20260101"); filepath.Base(run) != "20260101-gone" || err != nil {
		t.Errorf("by its beginning: %q, %v", run, err)
	}
	if _, err := Choose(results, "2026"); err == nil || !strings.Contains(said.Err(err), "type more") {
		t.Errorf("a beginning of two: %v", err)
	}
	add(State{ID: "20260103-live", Created: now.Add(2 * time.Hour), Applied: at(now)})
	if _, err := Choose(results, ""); err == nil || !strings.Contains(said.Err(err), "2 cloud runs have machines") {
		t.Errorf("two with machines: %v", err)
	}
	broken := filepath.Join(results, "20260101-gone", Dir, stateFile)
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	states, damaged := List(results)
	if len(states) != 2 || len(damaged) != 1 || !fail.IsInput(damaged[0]) || !strings.Contains(said.Err(damaged[0]), "sweep 20260101-gone") {
		t.Errorf("beside a state that cannot be read: %+v, %v", states, damaged)
	}
	if _, err := Choose(results, "20260101"); err == nil || said.Err(err) != said.Err(damaged[0]) {
		t.Errorf("the one that cannot be read: %v", err)
	}
	if run, err := Choose(results, "20260102"); filepath.Base(run) != "20260102-live" || err != nil {
		t.Errorf("another one: %q, %v", run, err)
	}
}

// TestOfRun takes the beginning of an id wherever it can mean one run only.
func TestOfRun(t *testing.T) {
	var found []aws.Resource
	for i, run := range []string{"20260101-a", "20260101-a", "20260101-a-2", "20260202-b", ""} {
		found = append(found, aws.Resource{Kind: aws.KindInstance, ID: fmt.Sprint("i-", i), RunID: run})
	}
	for id, want := range map[string]string{"20260101-a": "i-0 i-1", "20260202": "i-3", "20260101-a-2": "i-2", "20260303": "", "2026": "!", "20260101": "!"} {
		of, err := ofRun(found, id)
		var got []string
		for _, r := range of {
			got = append(got, r.ID)
		}
		switch {
		case want == "!":
			if !fail.IsInput(err) || !strings.Contains(said.Err(err), "20260101-a or 20260101-a-2") || len(of) > 0 {
				t.Errorf("%s: %v, %v", id, got, err)
			}
		case err != nil || strings.Join(got, " ") != want:
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
}

// TestSSHConfig lets ssh itself say what it understands.
func TestSSHConfig(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh here to read the configuration")
	}
	f := &folder{dir: t.TempDir(), state: State{ID: "r1"}}
	public, err := f.openKey()
	if err != nil || !strings.HasPrefix(public, "ssh-ed25519 ") {
		t.Fatalf("key %q, %v", public, err)
	}
	if again, err := f.openKey(); again != public || err != nil {
		t.Errorf("the key is another one: %q, %v", again, err)
	}
	key := filepath.Join(f.dir, sshDir, keyFile)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private key: %v, %v", info.Mode(), err)
	}
	l := fleet.Lab{Provider: plan.ProviderAWS, Machines: []fleet.Machine{
		{Name: "app", Role: plan.App, SSHHost: "192.0.2.1", SSHPort: 2222, SSHUser: "admin", Address: "10.0.0.1"},
	}}
	if err := f.writeSSHConfig(l, key); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"app":       {"hostname 192.0.2.1", "port 2222", "user admin", "identityfile " + key, "identitiesonly yes", "batchmode yes", "stricthostkeychecking accept-new"},
		"192.0.2.1": {"hostname 192.0.2.1", "identityfile " + key, "batchmode yes"},
	} {
		out, err := exec.Command("ssh", "-F", f.sshConfig(), "-G", name).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w+"\n") {
				t.Errorf("%s: ssh does not read %q from its configuration:\n%s", name, w, out)
			}
		}
	}
}

// TestUnreachable connects to machines that refuse.
func TestUnreachable(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh here to be refused")
	}
	o, _ := options(t, "hosts")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.lab = fleet.Lab{Provider: plan.ProviderHosts, Machines: []fleet.Machine{
		{Name: "app", Role: plan.App, SSHHost: "127.0.0.1", SSHPort: 1, SSHUser: "nobody", Address: "127.0.0.1"},
	}}
	if err := d.f.writeSSHConfig(d.lab, ""); err != nil {
		t.Fatal(err)
	}
	if h, err := d.hosts(t.Context()); h != nil || err == nil || !strings.Contains(said.Err(err), "host app: cannot reach Docker at ssh://nobody@127.0.0.1:1") {
		t.Errorf("connected to nothing: %v, %v", h, err)
	}
}

// TestMaxCost stops a run that has cost what it may.
func TestMaxCost(t *testing.T) {
	o, _ := options(t, "aws-graviton")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.f.state.MaxCostUSD, d.f.state.USDPerHour, d.f.state.Applied = 1, 1, at(time.Now().Add(-2*time.Hour))
	if err := d.f.save(); err != nil {
		t.Fatal(err)
	}
	if got := d.Spent(); got != "$2.00 so far" {
		t.Errorf("spent %q", got)
	}
	ctx, cancel := d.limit(t.Context())
	defer cancel()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the run goes on")
	}
	if !errors.Is(context.Cause(ctx), errTooDear) {
		t.Errorf("stopped because of %v", context.Cause(ctx))
	}
}

// TestMaxCostChosenLater goes on with a run that had no limit: one that is far
// off does not stop it.
func TestMaxCostChosenLater(t *testing.T) {
	o, _ := options(t, "aws-graviton")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	d.f.state.USDPerHour, d.f.state.Applied = 1, at(time.Now())
	if err := d.f.save(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	o.MaxCostUSD = 100
	if d, err = Open(o, d.ID()); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := d.limit(t.Context())
	defer cancel()
	select {
	case <-ctx.Done():
		t.Errorf("the run is stopped: %v", context.Cause(ctx))
	case <-time.After(2500 * time.Millisecond): // the cost is looked at every second
	}
	if s, err := readState(d.Dir()); err != nil || s.MaxCostUSD != 100 {
		t.Errorf("on record: %+v, %v", s, err)
	}
}

// TestFailed decides what becomes of machines after an error. Destroying them
// fails here, for there is no infrastructure, and that is told too.
func TestFailed(t *testing.T) {
	broken := errors.New("host app is gone")
	for _, tt := range []struct {
		name    string
		state   State
		answer  string // yes, no, or nobody to ask
		err     error
		destroy bool
	}{
		{"nothing was made", State{Provider: plan.ProviderAWS}, "nobody", broken, false},
		{"nobody to ask", State{Provider: plan.ProviderAWS, Applied: at(time.Now())}, "nobody", broken, true},
		{"nobody to ask, to be kept", State{Provider: plan.ProviderAWS, Applied: at(time.Now()), Keep: true}, "nobody", broken, false},
		{"yes", State{Provider: plan.ProviderAWS, Applied: at(time.Now()), Keep: true}, "yes", broken, true},
		{"no", State{Provider: plan.ProviderAWS, Applied: at(time.Now())}, "no", broken, false},
		{"too dear is not asked", State{Provider: plan.ProviderAWS, Applied: at(time.Now()), Keep: true}, "no", errTooDear, true},
		{"somebody's own machines", State{Provider: plan.ProviderHosts, Applied: at(time.Now())}, "yes", broken, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, q := options(t, "aws-graviton")
			o.NoInstall = true
			o.Terraform = filepath.Join(t.TempDir(), "no-such-terraform")
			if tt.answer != "nobody" {
				o.Confirm = func(context.Context, string) (bool, error) { return tt.answer == "yes", nil }
			}
			d, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			tt.state.ID, tt.state.Version, tt.state.USDPerHour = d.ID(), stateVersion, 0.61
			d.f.state = tt.state
			got := d.failed(t.Context(), tt.err)
			if !errors.Is(got, tt.err) {
				t.Errorf("the error became %v", got)
			}
			if tried := q.said("destroying the machines"); tried != tt.destroy {
				t.Errorf("destroyed: %v, want %v\n%s", tried, tt.destroy, strings.Join(q.lines, "\n"))
			}
			// Destroyed or not, machines that cost something are never left in silence.
			if tt.state.Provider == plan.ProviderAWS && tt.state.Applied != nil && !q.said("$0.61 an hour") {
				t.Errorf("does not say what stays:\n%s", strings.Join(q.lines, "\n"))
			}
		})
	}
}
