package machines

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/machines/aws"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/run"
)

// aroundTime is about how long machines are paid for beside the measuring:
// making and preparing them, building images and seeding, checking the contract,
// destroying them.
const aroundTime = 20 * time.Minute

// hostVars are the variables of infra/hosts.
type hostVars struct {
	RunID string    `json:"run_id"`
	Hosts []hostVar `json:"hosts"`
}

type hostVar struct {
	Name         string    `json:"name"`
	Role         plan.Role `json:"role"`
	SSHHost      string    `json:"ssh_host"`
	SSHPort      int       `json:"ssh_port"`
	SSHUser      string    `json:"ssh_user"`
	Address      string    `json:"address"`
	InstanceType string    `json:"instance_type"`
}

// awsVars are the variables of infra/aws.
type awsVars struct {
	RunID          string                  `json:"run_id"`
	Expires        time.Time               `json:"expires"`
	Region         string                  `json:"region"`
	Zone           string                  `json:"zone"`
	InstanceTypes  map[plan.Role]string    `json:"instance_types"`
	LoadCount      int                     `json:"load_count"`
	Disks          map[plan.Role]plan.Disk `json:"disks"`
	SSHPublicKey   string                  `json:"ssh_public_key"`
	SSHCIDRs       []string                `json:"ssh_cidrs"`
	PlacementGroup bool                    `json:"placement_group"`
}

// quote checks whether the machines can be had, says what they cost, and
// returns the variables of the module that makes them.
func (d *Driver) quote(ctx context.Context) (vars any, err error) {
	if d.f.state.Provider == plan.ProviderHosts {
		v := hostVars{RunID: d.f.state.ID}
		for _, h := range d.profile.NamedHosts() {
			user, host, port, err := plan.SplitSSH(h.SSH)
			if err != nil {
				return nil, err
			}
			v.Hosts = append(v.Hosts, hostVar{h.Name, h.Role, host, port, user, h.Address, h.InstanceType})
		}
		return v, nil
	}
	return d.quoteAWS(ctx)
}

// awsProfile is the profile of the user's AWS configuration for the run: what is
// chosen anew goes before what it was begun with, if it is of the same account.
func (d *Driver) awsProfile() string { return cmp.Or(d.o.AWSProfile, d.f.state.AWSProfile) }

// aws opens the run's account and region. Credentials of another account than
// that of the run's machines are refused.
func (d *Driver) aws(ctx context.Context) (*aws.Client, error) {
	s := &d.f.state
	region := s.Region
	if region == "" && d.profile.Cloud != nil {
		region = d.profile.Cloud.Region
	}
	c, err := aws.Open(ctx, aws.Options{Region: region, Profile: d.awsProfile(), Say: d.o.Console.Printf})
	if err != nil {
		return nil, err
	}
	if err := s.belongsTo(ctx, c); err != nil {
		return nil, err
	}
	s.AWSProfile = d.awsProfile()
	return c, nil
}

// belongsTo refuses an account that is not the one in which the run's machines
// were made.
func (s State) belongsTo(ctx context.Context, c *aws.Client) error {
	if s.Account == "" {
		return nil
	}
	is, err := c.Identity(ctx)
	if err != nil {
		return err
	}
	if is.Account != s.Account {
		return &accountError{fail.Input("run %s belongs to the AWS account %s, and these credentials are of the account %s (%s)", s.ID, s.Account, is.Account, is.ARN).Try("give a profile of the former with %s", fail.Setting("aws-profile"))}
	}
	return nil
}

// accountError says that credentials are of another account than a run.
type accountError struct{ error }

func (e *accountError) Unwrap() error { return e.error }

func (d *Driver) quoteAWS(ctx context.Context) (vars any, err error) {
	s := &d.f.state
	d.o.Console.Status("asking AWS what can be had and what it costs")
	c, err := d.aws(ctx)
	if err != nil {
		return nil, err
	}
	request := aws.RequestOf(d.profile)
	request.RunID, request.AddressURL = s.ID, d.o.AddressURL
	switch {
	case len(d.o.SSHFrom) > 0:
		request.SSHFrom, s.SSHDetected = d.o.SSHFrom, false
	case s.SSHDetected: // it may have changed
	default:
		request.SSHFrom, s.SSHDetected = s.SSHFrom, len(s.SSHFrom) == 0
	}
	if s.Zone != "" {
		request.Zone = s.Zone
	}
	if s.Up != nil {
		// The quota was asked for these very machines.
		if s.Applied == nil || s.Expires == nil || s.Zone == "" {
			return nil, fail.Work("run %s has machines and does not say where they are", s.ID).Try("find them with %s", fail.Call("cloud sweep"))
		}
		if err := d.admit(ctx, request); err != nil {
			return nil, err
		}
		return d.awsVars(s.SSHFrom)
	}
	report, err := c.Preflight(ctx, request)
	if err != nil {
		return nil, err
	}
	for _, line := range report.Lines(request) {
		d.say("%s", line)
	}
	prices, err := d.prices(ctx, c, request)
	if err != nil {
		return nil, err
	}
	length, err := d.length(report, request)
	if err != nil {
		return nil, err
	}
	life := d.profile.Cloud.Life()
	if length > life {
		return nil, fail.Input("preset %s takes about %s in all, and the machines shut themselves down after %s", s.Preset, plaintext.Duration(length), plaintext.Duration(life)).Try("write a longer cloud.lifetime into the profile, or take a shorter preset")
	}
	estimate := prices.Estimate(request, length)
	if types := prices.UnpricedTypes(request); len(types) > 0 {
		return nil, fail.Input("there is no price of %s in %s, so the cost of the run is unknown", strings.Join(types, ", "), c.Region).Try("give %s a table that has it", fail.Setting("prices"))
	}
	for _, what := range estimate.Unpriced {
		d.say("note: there is no price of %s, so it is not in the sum", what)
	}
	for _, item := range estimate.Items {
		d.say("  %-40s $%.4f an hour", item.What, item.PerHour)
	}
	for _, note := range prices.Notes {
		d.say("note: %s", note)
	}
	dear := s.MaxCostUSD > 0 && estimate.Total > s.MaxCostUSD
	bound := ""
	if s.MaxCostUSD > 0 && !dear {
		if paid := time.Duration(s.MaxCostUSD / estimate.PerHour * float64(time.Hour)); paid < life {
			life, bound = paid, ", when the most it may cost is spent"
		}
	}
	source := fmt.Sprintf("%s, %s", prices.Source, prices.Date)
	d.say("in all $%.2f an hour (%s, before tax); about %s for preset %s, so about $%.2f; at most $%.2f, since the machines shut themselves down after %s%s",
		estimate.PerHour, source, plaintext.Duration(length), s.Preset, estimate.Total, estimate.PerHour*life.Hours(), plaintext.Duration(life), bound)
	if dear {
		return nil, fail.Input("the run would cost about $%.2f, and it may cost %s", estimate.Total, usd(s.MaxCostUSD)).Try("take a shorter preset or smaller machines, or raise %s", fail.Setting("max-cost"))
	}
	s.Account, s.Region, s.Zone, s.USDPerHour, s.PriceSource = report.Identity.Account, c.Region, report.Zone, estimate.PerHour, source
	s.SSHFrom = texts(report.SSHFrom)
	// Machines that there may be already keep the expiry they were made with.
	if s.Applied == nil || s.Expires == nil {
		expires := time.Now().UTC().Add(life).Truncate(time.Second)
		s.Expires = &expires
	}
	if err := d.f.save(); err != nil {
		return nil, err
	}
	return d.awsVars(s.SSHFrom)
}

// admit settles which networks may reach the machines of a run that are up: those
// that are asked for, or the address that this machine is seen at now.
func (d *Driver) admit(ctx context.Context, r aws.Request) error {
	s := &d.f.state
	var from []netip.Prefix
	for _, text := range r.SSHFrom {
		p, err := aws.Network(text)
		if err != nil {
			return err
		}
		from = append(from, p)
	}
	if len(from) == 0 {
		p, err := aws.CallerAddress(ctx, r.AddressURL)
		if err != nil {
			return err
		}
		from = append(from, p)
	}
	if all := texts(from); !slices.Equal(all, s.SSHFrom) {
		d.say("ssh is opened to %s in place of %s", strings.Join(all, ", "), strings.Join(s.SSHFrom, ", "))
		s.SSHFrom = all
	}
	return d.f.save()
}

func texts(networks []netip.Prefix) []string {
	var all []string
	for _, p := range networks {
		all = append(all, p.String())
	}
	return all
}

// join lists what could not be deleted.
func join(left []aws.Left) string {
	var names []string
	for _, l := range left {
		names = append(names, l.String())
	}
	return strings.Join(names, "; ")
}

// awsVars describes the machines of the run, each time alike.
func (d *Driver) awsVars(from []string) (awsVars, error) {
	s := d.f.state
	key, err := d.f.openKey()
	if err != nil {
		return awsVars{}, err
	}
	v := awsVars{
		RunID: s.ID, Expires: *s.Expires, Region: s.Region, Zone: s.Zone,
		InstanceTypes: d.profile.Cloud.Instances, LoadCount: d.profile.Load.Hosts(), Disks: map[plan.Role]plan.Disk{},
		SSHPublicKey: key, SSHCIDRs: from, PlacementGroup: d.profile.Cloud.Grouped(),
	}
	for _, r := range plan.Roles() {
		v.Disks[r] = d.profile.Cloud.Disks[r].Filled()
	}
	return v, nil
}

// prices asks for what the machines cost: AWS's list, else the table that the
// user gave or the one that ships with percore.
func (d *Driver) prices(ctx context.Context, c *aws.Client, r aws.Request) (aws.Prices, error) {
	table, err := d.o.table()
	if err != nil {
		return aws.Prices{}, err
	}
	if d.o.Prices != "" {
		return aws.FromTable(table, c.Region, r.Types()), nil
	}
	return c.Prices(ctx, r.Types(), table)
}

// length is about how long the machines of a run are needed.
func (d *Driver) length(report aws.Report, r aws.Request) (time.Duration, error) {
	machines := map[plan.Role]plan.Machine{}
	for _, m := range r.Machines {
		t := report.Types[m.Type]
		machines[m.Role] = plan.Machine{CPUs: t.Cores, MemoryBytes: int64(t.MemoryMiB) << 20}
	}
	p, err := run.PrepareFor(d.options(), machines)
	if err != nil {
		return 0, err
	}
	if err := d.chosen(p.Profile); err != nil {
		return 0, err
	}
	return p.List.Time(plan.DefaultOverhead(), plan.Undone) + aroundTime, nil
}

// nothingLeft makes sure that AWS knows nothing of the run any more: what a
// driver that was killed has made without noting it is found by its tag and
// deleted.
func (d *Driver) nothingLeft(ctx context.Context, c *aws.Client) error {
	all, err := c.Find(ctx)
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(all, func(r aws.Resource) bool { return r.RunID != d.f.state.ID })
	if len(ours) == 0 {
		return nil
	}
	d.say("%d thing(s) of the run are not in Terraform's state; deleting them", len(ours))
	left, err := c.Delete(ctx, ours, d.o.Console.Printf)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fail.Work("run %s has left %s in %s", d.f.state.ID, join(left), c.Region).Try("try %s in a few minutes", fail.Call("cloud sweep", d.f.state.ID, fail.Setting("region").To(c.Region)))
	}
	return nil
}
