package awsx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/percore/percore/internal/cloud/awswire"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/sizing"
)

// Kind is a kind of resource, as EC2 names it.
type Kind string

// Kinds that percore makes, in the order in which they can be deleted.
const (
	KindInstance        Kind = "instance"
	KindVolume          Kind = "volume"
	KindInterface       Kind = "network-interface"
	KindAddress         Kind = "elastic-ip"
	KindKeyPair         Kind = "key-pair"
	KindPlacementGroup  Kind = "placement-group"
	KindSecurityGroup   Kind = "security-group"
	KindSubnet          Kind = "subnet"
	KindRouteTable      Kind = "route-table"
	KindInternetGateway Kind = "internet-gateway"
	KindVPC             Kind = "vpc"
)

// Kinds lists the kinds that Find looks for, in the order in which Delete
// deletes them.
func Kinds() []Kind {
	return []Kind{KindInstance, KindVolume, KindInterface, KindAddress, KindKeyPair, KindPlacementGroup, KindSecurityGroup, KindSubnet, KindRouteTable, KindInternetGateway, KindVPC}
}

// Resource is one thing that carries percore's tag.
type Resource struct {
	Kind    Kind      `json:"kind"`
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	RunID   string    `json:"run,omitempty"` // empty when the tag is missing
	State   string    `json:"state,omitempty"`
	Type    string    `json:"type,omitempty"`   // of an instance
	Created time.Time `json:"created,omitzero"` // zero for kinds whose age AWS does not tell
	Expires time.Time `json:"expires,omitzero"`
	PerHour float64   `json:"usd_per_hour,omitempty"` // of instances and volumes; 0 for what costs nothing or has no price
	Cost    float64   `json:"usd,omitempty"`          // since it was created, as if it had run all the time

	vpc    string // that it is in
	volume awswire.Volume
	public bool // whether it has a public address
}

// Expired reports whether its time is over.
func (r Resource) Expired(now time.Time) bool { return !r.Expires.IsZero() && now.After(r.Expires) }

func (r Resource) String() string { return string(r.Kind) + " " + r.ID }

// Find lists everything in the region that carries percore's tag, whether or
// not anybody has state about it, in the order in which Delete can delete it,
// with what it costs. What could not be listed or priced goes to Options.Say.
func (c *Client) Find(ctx context.Context) ([]Resource, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	types := map[string]bool{}
	priced := false
	for _, r := range all {
		switch r.Kind {
		case KindInstance:
			types[r.Type], priced = true, true
		case KindVolume, KindAddress:
			priced = true
		}
	}
	if !priced {
		return all, nil
	}
	table, err := sizing.ShippedPrices()
	if err != nil {
		return nil, err
	}
	if c.o.Prices != nil {
		table = *c.o.Prices
	}
	p, err := c.Prices(ctx, slices.Sorted(maps.Keys(types)), table)
	if err != nil {
		return nil, err
	}
	for _, note := range append(p.Notes, price(all, p, c.now())...) {
		c.note("%s", note)
	}
	return all, nil
}

// price fills in what everything costs, and says what has no price.
func price(all []Resource, p Prices, now time.Time) (notes []string) {
	unpriced := map[string]bool{}
	for i := range all {
		r := &all[i]
		rate := 0.0
		switch r.Kind {
		case KindInstance:
			v, ok := p.PerHour[r.Type]
			if !ok {
				unpriced[r.Type] = true
			}
			if rate = v; r.public {
				rate += p.Address
			}
		case KindVolume:
			if r.volume.Type != "gp3" || p.Disk == nil {
				unpriced[r.volume.Type+" volumes"] = true
				continue
			}
			rate = p.diskPerHour(profile.Disk{SizeGiB: r.volume.SizeGiB, IOPS: r.volume.IOPS, ThroughputMiB: r.volume.Throughput})
		case KindAddress:
			rate = p.Address
		}
		r.Cost = Meter{PerHour: rate, Since: r.Created}.Cost(now)
		// What a stopped instance costs stops too; since when, AWS does not tell.
		if r.Kind != KindInstance || r.State == "pending" || r.State == "running" {
			r.PerHour = rate
		}
	}
	for _, what := range slices.Sorted(maps.Keys(unpriced)) {
		notes = append(notes, fmt.Sprintf("there is no price of %s in %s, so that the costs leave it out", what, p.Region))
	}
	return notes
}

// ours filters for percore's tag.
func ours() awswire.Params { return awswire.Params{}.Filter("tag:"+TagMark, "1") }

// tagged fills in what the tags say.
func tagged(r Resource, tags awswire.Tags) Resource {
	r.RunID = tags.Get(TagRun)
	if name := tags.Get(TagName); r.Name == "" {
		r.Name = name
	}
	if t, err := time.Parse(time.RFC3339, tags.Get(TagExpires)); err == nil {
		r.Expires = t
	}
	return r
}

// list finds the resources, without prices.
func (c *Client) list(ctx context.Context) ([]Resource, error) {
	var all []Resource
	add := func(r Resource, tags awswire.Tags) {
		// The filter is the service's word; deleting rests on our own.
		if tags.Get(TagMark) == "1" {
			all = append(all, tagged(r, tags))
		}
	}
	for _, kind := range Kinds() {
		err := c.listKind(ctx, kind, add)
		switch {
		case err == nil:
		case kind == KindPlacementGroup && unknownAction(err):
			c.note("placement groups could not be listed: the endpoint does not know them")
		default:
			return nil, fmt.Errorf("listing what is tagged %s in %s (%ss): %w", TagMark, c.Region, kind, explain(err, c.profile))
		}
	}
	// Anything else that carries the tag: percore made it in another version, or
	// somebody gave it the tag.
	known := map[string]bool{}
	for _, r := range all {
		known[r.ID] = true
	}
	var rest []Resource
	err := awswire.Pages(ctx, c.wire, "DescribeTags", awswire.Params{}.Filter("key", TagMark).Filter("value", "1"), func(page awswire.ResourceTags) {
		for _, t := range page.Tags {
			if k := Kind(t.Kind); k != "" && !known[t.ID] && k != "security-group-rule" && !slices.Contains(Kinds(), k) {
				rest = append(rest, Resource{Kind: k, ID: t.ID})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the tags %s in %s: %w", TagMark, c.Region, explain(err, c.profile))
	}
	slices.SortFunc(rest, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return append(all, rest...), nil
}

func (c *Client) listKind(ctx context.Context, kind Kind, add func(Resource, awswire.Tags)) error {
	switch kind {
	case KindInstance:
		return awswire.Pages(ctx, c.wire, "DescribeInstances", ours(), func(page awswire.Reservations) {
			for _, r := range page.Reservations {
				for _, i := range r.Instances {
					if i.State != "terminated" { // AWS lists those for an hour
						add(Resource{Kind: kind, ID: i.ID, State: i.State, Type: i.Type, Created: i.Launch, vpc: i.VPC, public: i.PublicIP != ""}, i.Tags)
					}
				}
			}
		})
	case KindVolume:
		return awswire.Pages(ctx, c.wire, "DescribeVolumes", ours(), func(page awswire.Volumes) {
			for _, v := range page.Volumes {
				if v.State == "deleting" || v.State == "deleted" {
					continue
				}
				add(Resource{Kind: kind, ID: v.ID, State: v.State, Created: v.Created, volume: v}, v.Tags)
			}
		})
	case KindInterface:
		return awswire.Pages(ctx, c.wire, "DescribeNetworkInterfaces", ours(), func(page awswire.Interfaces) {
			for _, n := range page.Interfaces {
				add(Resource{Kind: kind, ID: n.ID, State: n.State, vpc: n.VPC}, n.Tags)
			}
		})
	case KindAddress:
		var out awswire.Addresses
		if err := c.wire.EC2(ctx, "DescribeAddresses", ours(), &out); err != nil {
			return err
		}
		for _, a := range out.Addresses {
			add(Resource{Kind: kind, ID: a.ID, Name: a.IP}, a.Tags)
		}
	case KindKeyPair:
		var out awswire.KeyPairs
		if err := c.wire.EC2(ctx, "DescribeKeyPairs", ours(), &out); err != nil {
			return err
		}
		for _, k := range out.KeyPairs {
			add(Resource{Kind: kind, ID: k.ID, Name: k.Name, Created: k.Created}, k.Tags)
		}
	case KindPlacementGroup:
		var out awswire.PlacementGroups
		if err := c.wire.EC2(ctx, "DescribePlacementGroups", ours(), &out); err != nil {
			return err
		}
		for _, g := range out.Groups {
			if g.State != "deleted" {
				add(Resource{Kind: kind, ID: g.ID, Name: g.Name, State: g.State}, g.Tags)
			}
		}
	case KindSecurityGroup:
		return awswire.Pages(ctx, c.wire, "DescribeSecurityGroups", ours(), func(page awswire.SecurityGroups) {
			for _, g := range page.Groups {
				if g.Name != "default" { // goes with its VPC
					add(Resource{Kind: kind, ID: g.ID, Name: g.Name, vpc: g.VPC}, g.Tags)
				}
			}
		})
	case KindSubnet:
		return awswire.Pages(ctx, c.wire, "DescribeSubnets", ours(), func(page awswire.Subnets) {
			for _, s := range page.Subnets {
				add(Resource{Kind: kind, ID: s.ID, vpc: s.VPC}, s.Tags)
			}
		})
	case KindRouteTable:
		return awswire.Pages(ctx, c.wire, "DescribeRouteTables", ours(), func(page awswire.RouteTables) {
			for _, t := range page.Tables {
				if !slices.ContainsFunc(t.Associations, awswire.MainRouteTable) { // that goes with its VPC
					add(Resource{Kind: kind, ID: t.ID, vpc: t.VPC}, t.Tags)
				}
			}
		})
	case KindInternetGateway:
		return awswire.Pages(ctx, c.wire, "DescribeInternetGateways", ours(), func(page awswire.InternetGateways) {
			for _, g := range page.Gateways {
				r := Resource{Kind: kind, ID: g.ID}
				for _, a := range g.Attached {
					r.vpc = a.VPC
				}
				add(r, g.Tags)
			}
		})
	case KindVPC:
		return awswire.Pages(ctx, c.wire, "DescribeVpcs", ours(), func(page awswire.VPCs) {
			for _, v := range page.VPCs {
				if !v.Default {
					add(Resource{Kind: kind, ID: v.ID, vpc: v.ID}, v.Tags)
				}
			}
		})
	default:
		return fmt.Errorf("there is no kind %q", kind)
	}
	return nil
}

// Instance is one machine of a run, as AWS sees it.
type Instance struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	RunID    string    `json:"run"`
	Type     string    `json:"type"`
	State    string    `json:"state"` // pending, running, shutting-down, terminated, stopping, stopped
	Reason   string    `json:"reason,omitempty"`
	PublicIP string    `json:"public_ip,omitempty"`
	Launched time.Time `json:"launched,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
}

// Running says in which state each instance of a run is, by instance id.
// Terminated ones are in it for as long as AWS remembers them.
func (c *Client) Running(ctx context.Context, runID string) (map[string]string, error) {
	all, err := c.Instances(ctx, runID)
	states := map[string]string{}
	for _, i := range all {
		states[i.ID] = i.State
	}
	return states, err
}

// Instances lists the machines of a run, terminated ones too for as long as AWS
// remembers them, by name.
func (c *Client) Instances(ctx context.Context, runID string) ([]Instance, error) {
	var all []Instance
	err := awswire.Pages(ctx, c.wire, "DescribeInstances", ours().Filter("tag:"+TagRun, runID), func(page awswire.Reservations) {
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				t := tagged(Resource{}, i.Tags)
				all = append(all, Instance{ID: i.ID, Name: t.Name, Role: i.Tags.Get(TagRole), RunID: t.RunID, Type: i.Type, State: i.State,
					Reason: i.Reason, PublicIP: i.PublicIP, Launched: i.Launch, Expires: t.Expires})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("looking up the instances of run %s in %s: %w", runID, c.Region, explain(err, c.profile))
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}
