package machines

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// account plays an AWS account that answers who asks, and nothing else.
func account(t *testing.T, id string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::%[1]s:user/me</Arn><UserId>me</UserId><Account>%[1]s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, id)
	}))
	t.Cleanup(server.Close)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(k, v)
	}
}

// begun makes the folder of a run and changes its state.
func begun(t *testing.T, o Options, change func(*State)) string {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	change(&d.f.state)
	if err := d.f.save(); err != nil {
		t.Fatal(err)
	}
	return d.ID()
}

func live(s *State) {
	now := time.Now().UTC()
	s.Applied, s.Up, s.Expires, s.Account, s.Region, s.USDPerHour = at(now), at(now), at(now.Add(4*time.Hour)), "111111111111", "eu-central-1", 1
}

func wantInput(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil || !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("%s: %v, want one line of bad input", what, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(said.Err(err), w) {
			t.Errorf("%s: %v, want it to say %q", what, err, w)
		}
	}
}

// TestDryResume tells what is left of a run, by its beginning and by its path,
// and leaves it as it is.
func TestDryResume(t *testing.T) {
	o, _ := options(t, "aws-graviton")
	id := begun(t, o, live)
	state := filepath.Join(o.Results, id, Dir, stateFile)
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{id[:10], filepath.Join(o.Results, id)} {
		var out bytes.Buffer
		if err := DryResume(o, name, &out); err != nil || !strings.Contains(out.String(), "block 1 of ") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	if after, err := os.ReadFile(state); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the state has changed: %v", err)
	}
	wantInput(t, "none", DryResume(o, "nowhere", &bytes.Buffer{}), `"nowhere"`)
}

// TestOtherAccount refuses credentials of another account at every stage, and
// before anything is taken for gone.
func TestOtherAccount(t *testing.T) {
	account(t, "222222222222")
	o, q := options(t, "aws-graviton")
	id := begun(t, o, live)
	d, err := Open(o, id)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for what, err := range map[string]error{
		"up": d.UpTo(t.Context(), "up"), "prepare": d.UpTo(t.Context(), "prepare"), "run": d.All(t.Context()), "down": d.Down(t.Context()),
		"status": Status(t.Context(), o, id, false, &bytes.Buffer{}),
		"sweep":  Sweep(t.Context(), o, SweepOptions{RunID: id[:12]}, &bytes.Buffer{}),
	} {
		wantInput(t, what, err, id, "111111111111", "222222222222", "--aws-profile")
	}
	if s, err := readState(d.Dir()); err != nil || s.Destroyed != nil {
		t.Errorf("on record: %+v, %v", s, err)
	}
	if !q.said("stay and cost $1.00 an hour") {
		t.Errorf("does not say what stays:\n%s", strings.Join(q.lines, "\n"))
	}
	var out bytes.Buffer
	if err := Status(t.Context(), o, "", false, &out); err != nil || !strings.Contains(out.String(), "222222222222") {
		t.Errorf("status of all: %v\n%s", err, out.String())
	}
}

// TestExpired goes on with no machines that are gone.
func TestExpired(t *testing.T) {
	o, _ := options(t, "aws-graviton")
	id := begun(t, o, func(s *State) { live(s); s.Expires = at(time.Now().Add(-time.Minute)) })
	d, err := Open(o, "") // there is no other
	if err != nil || d.ID() != id {
		t.Fatal(d, err)
	}
	defer d.Close()
	if s := d.State(); s.Live() || !s.Pending() || !s.Expired() {
		t.Errorf("live %v, pending %v, expired %v", s.Live(), s.Pending(), s.Expired())
	}
	for what, err := range map[string]error{"up": d.UpTo(t.Context(), "up"), "prepare": d.UpTo(t.Context(), "prepare"), "run": d.All(t.Context())} {
		wantInput(t, what, err, "shut themselves down at", "percore cloud down "+id, "new run")
	}
	// What runs when they expire is stopped with that reason.
	ctx, cancel := d.limit(t.Context())
	defer cancel()
	<-ctx.Done()
	other := begun(t, o, live)
	if got, err := Choose(o.Results, ""); filepath.Base(got) != other || err != nil {
		t.Errorf("beside one that lives: %q, %v", got, err)
	}
}

// TestTooLateToMeasure refuses a plan that machines do not live long enough for.
func TestTooLateToMeasure(t *testing.T) {
	o, _ := options(t, "aws-graviton")
	id := begun(t, o, func(s *State) { live(s); s.Expires = at(time.Now().Add(time.Minute)) })
	d, err := Open(o, id)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	wantInput(t, "run", d.All(t.Context()), "to measure", "percore cloud down "+id)
}

// TestFlagsOfARun refuses what differs from what a run was begun with.
func TestFlagsOfARun(t *testing.T) {
	account(t, "111111111111")
	for _, tt := range []struct {
		flag   string
		change func(*Options)
		want   []string
	}{
		{"profile", func(o *Options) { o.Profile = "aws-x86" }, []string{"with profile aws-graviton", `"aws-x86"`}},
		{"preset", func(o *Options) { o.Preset = "full" }, []string{"with preset quick", `"full"`}},
		{"flavour", func(o *Options) { o.Flavour = "debian" }, []string{"without flavour", `"debian"`}},
		{"region", func(o *Options) { o.Region = "us-east-1" }, []string{"with region eu-central-1", `"us-east-1"`}},
		{"candidates", func(o *Options) { o.Selection.Candidates = []string{"go"} }, []string{"without candidates", `"go"`}},
		{"scenarios", func(o *Options) { o.Selection.Scenarios = []string{"read"} }, []string{"without scenarios", `"read"`}},
		{"phases", func(o *Options) { o.Selection.Phases = []string{"rate"} }, []string{"without phases", `"rate"`}},
		{"seed", func(o *Options) { o.Seed = 7 }, []string{"without seed", `"7"`}},
		{"max-cost", func(o *Options) { o.MaxCostUSD = -3 }, []string{"$-3 is no limit", "--max-cost"}},
		{"max-cost", func(o *Options) { o.MaxCostUSD = math.NaN() }, []string{"$NaN is no limit"}},
	} {
		o, _ := options(t, "aws-graviton")
		id := begun(t, o, live)
		// What is not named on the command line has a default that says nothing.
		if d, err := Open(o, id); err != nil {
			t.Errorf("%s not named: %v", tt.flag, err)
		} else {
			d.Close()
		}
		tt.change(&o)
		o.Given = flags(tt.flag)
		d, err := Open(o, id)
		if err == nil {
			d.Close()
		}
		wantInput(t, tt.flag, err, tt.want...)
	}
}

// TestCopies goes on with a run as it was begun when the files that it was begun
// with are others, broken or gone.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	copyTo := func(name, from string) string {
		text, err := os.ReadFile(filepath.Join("../../profiles", from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	o, _ := options(t, copyTo("mine.yaml", "hosts.yaml"))
	o.Preset = copyTo("short.yaml", "presets/quick.yaml")
	id := begun(t, o, func(*State) {})
	if err := os.WriteFile(o.Profile, []byte("name: [\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	changed := o
	changed.Given = flags("profile")
	d, err := Open(changed, id)
	if err == nil {
		d.Close()
	}
	wantInput(t, "a changed file", err, "mine.yaml has changed", id)
	if err := errors.Join(os.Remove(o.Profile), os.Remove(o.Preset)); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(o, id); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.needProfile(); err != nil || d.profile.Name != "hosts" {
		t.Errorf("profile %q, %v", d.profile.Name, err)
	}
	if p, err := lay(d.options()); err != nil || p.Preset.Name != "quick" {
		t.Errorf("the plan: %v", err)
	}
}

// TestDownOnOwnMachines lets go of machines that cannot be cleaned only when told
// to, and asks none that were never prepared.
func TestDownOnOwnMachines(t *testing.T) {
	o, q := options(t, "hosts")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.f.state.Applied, d.f.state.Up = at(time.Now()), at(time.Now())
	d.lab = fleet.Lab{Provider: plan.ProviderHosts, Machines: []fleet.Machine{
		{Name: "app", Role: plan.App, SSHHost: "127.0.0.1", SSHPort: 1, SSHUser: "nobody", Address: "127.0.0.1"},
		{Name: "db", Role: plan.DB, SSHHost: "127.0.0.1", SSHPort: 2, SSHUser: "nobody", Address: "127.0.0.1"},
	}}
	if err := d.f.writeSSHConfig(d.lab, ""); err != nil {
		t.Fatal(err)
	}
	if err := d.cleanHosts(t.Context()); err != nil {
		t.Errorf("machines that were not prepared: %v", err)
	}
	d.f.state.Prepared = at(time.Now())
	if err := d.cleanHosts(t.Context()); err == nil || !strings.Contains(said.Err(err), "host app: ") || !strings.Contains(said.Err(err), "host db: ") || !strings.Contains(said.Err(err), "--force") {
		t.Errorf("machines that are not there: %v", err)
	}
	d.o.Force = true
	if err := d.cleanHosts(t.Context()); err != nil || !q.said("left as they are: host app: ") {
		t.Errorf("letting them go: %v\n%s", err, strings.Join(q.lines, "\n"))
	}
}

// TestSettle notes in the folders of swept runs that nothing is left of them.
func TestSettle(t *testing.T) {
	account(t, "111111111111")
	o, _ := options(t, "aws-graviton")
	swept := begun(t, o, live)
	kept := begun(t, o, live)
	elsewhere := begun(t, o, func(s *State) { live(s); s.Region = "us-east-1" })
	others := begun(t, o, func(s *State) { live(s); s.Account = "222222222222" })
	c, err := aws.Open(t.Context(), aws.Options{Region: "eu-central-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := settle(t.Context(), o, c, map[string]bool{swept: true, elsewhere: true, others: true, "unknown": true}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{swept: true, kept: false, elsewhere: false, others: false} {
		if s, err := readState(filepath.Join(o.Results, id)); err != nil || (s.Destroyed != nil) != want {
			t.Errorf("%s is destroyed at %v, want that: %v (%v)", id, s.Destroyed, want, err)
		}
	}
}

// TestAdmit opens the machines of a run to where the user is now.
func TestAdmit(t *testing.T) {
	seen := "203.0.113.9"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, seen) }))
	defer server.Close()
	o, _ := options(t, "aws-graviton")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.f.state.SSHFrom = []string{"203.0.113.7/32"}
	for _, tt := range []struct {
		request aws.Request
		want    string
	}{
		{aws.Request{AddressURL: server.URL}, "203.0.113.9/32"},
		{aws.Request{SSHFrom: []string{"198.51.100.0/24"}}, "198.51.100.0/24"},
	} {
		if err := d.admit(t.Context(), tt.request); err != nil || strings.Join(d.f.state.SSHFrom, " ") != tt.want {
			t.Errorf("open to %v, want %s (%v)", d.f.state.SSHFrom, tt.want, err)
		}
	}
	wantInput(t, "everybody", d.admit(t.Context(), aws.Request{SSHFrom: []string{"0.0.0.0/0"}}), "0.0.0.0/0")
}

func TestLimitInWords(t *testing.T) {
	for v, want := range map[float64]string{2: "$2.00", 0.01: "$0.01", 0.001: "$0.001", 2.5: "$2.50", 1.005: "$1.005"} {
		if got := usd(v); got != want {
			t.Errorf("%g is %s, want %s", v, got, want)
		}
	}
}
