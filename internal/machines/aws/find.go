package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
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
	volume types.Volume
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
	running := map[string]bool{}
	priced := false
	for _, r := range all {
		switch r.Kind {
		case KindInstance:
			running[r.Type], priced = true, true
		case KindVolume, KindAddress:
			priced = true
		}
	}
	if !priced {
		return all, nil
	}
	table, err := prices.Shipped()
	if err != nil {
		return nil, err
	}
	if c.o.Prices != nil {
		table = *c.o.Prices
	}
	p, err := c.Prices(ctx, slices.Sorted(maps.Keys(running)), table)
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
			v := r.volume
			if v.VolumeType != types.VolumeTypeGp3 || p.Disk == nil {
				unpriced[string(v.VolumeType)+" volumes"] = true
				continue
			}
			rate = p.diskPerHour(plan.Disk{SizeGiB: int(aws.ToInt32(v.Size)), IOPS: int(aws.ToInt32(v.Iops)), ThroughputMiB: int(aws.ToInt32(v.Throughput))})
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

// filter is a filter of which any value may match. All filters of a call must.
func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// ours filters for percore's tag.
func ours() []types.Filter { return []types.Filter{filter("tag:"+TagMark, "1")} }

// tag is the value of a tag, empty when it is absent.
func tag(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

// maxPages bounds a listing: a service that repeats its page forever must not
// keep its caller forever.
const maxPages = 1000

// paginator is one of the SDK's for an answer of type Out.
type paginator[Out any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*ec2.Options)) (*Out, error)
}

// pages goes through all pages of a listing.
func pages[Out any](ctx context.Context, p paginator[Out], each func(*Out)) error {
	for n := 0; p.HasMorePages(); n++ {
		if n == maxPages {
			return fmt.Errorf("a listing of EC2 has not ended after %d pages", maxPages)
		}
		page, err := p.NextPage(ctx)
		if err != nil {
			return err
		}
		each(page)
	}
	return nil
}

// instances goes through the instances that pass the filters.
func (c *Client) instances(ctx context.Context, filters []types.Filter, each func(types.Instance)) error {
	in := &ec2.DescribeInstancesInput{Filters: filters}
	return pages(ctx, ec2.NewDescribeInstancesPaginator(c.ec2, in), func(page *ec2.DescribeInstancesOutput) {
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				each(i)
			}
		}
	})
}

// state is the state of an instance, empty when AWS tells none.
func state(i types.Instance) types.InstanceStateName {
	if i.State == nil {
		return ""
	}
	return i.State.Name
}

// tagged fills in what the tags say.
func tagged(r Resource, tags []types.Tag) Resource {
	r.RunID = tag(tags, TagRun)
	if name := tag(tags, TagName); r.Name == "" {
		r.Name = name
	}
	if t, err := time.Parse(time.RFC3339, tag(tags, TagExpires)); err == nil {
		r.Expires = t
	}
	return r
}

// list finds the resources, without prices.
func (c *Client) list(ctx context.Context) ([]Resource, error) {
	var all []Resource
	add := func(r Resource, tags []types.Tag) {
		// The filter is the service's word; deleting rests on our own.
		if tag(tags, TagMark) == "1" {
			all = append(all, tagged(r, tags))
		}
	}
	for _, kind := range Kinds() {
		err := c.listKind(ctx, kind, ours(), add)
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
	in := &ec2.DescribeTagsInput{Filters: []types.Filter{filter("key", TagMark), filter("value", "1")}}
	err := pages(ctx, ec2.NewDescribeTagsPaginator(c.ec2, in), func(page *ec2.DescribeTagsOutput) {
		for _, t := range page.Tags {
			k, id := Kind(t.ResourceType), aws.ToString(t.ResourceId)
			if k != "" && !known[id] && t.ResourceType != types.ResourceTypeSecurityGroupRule && !slices.Contains(Kinds(), k) {
				rest = append(rest, Resource{Kind: k, ID: id})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the tags %s in %s: %w", TagMark, c.Region, explain(err, c.profile))
	}
	slices.SortFunc(rest, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return append(all, rest...), nil
}

// listKind tells add of everything of one kind that passes the filters, but for
// what comes and goes with its VPC.
func (c *Client) listKind(ctx context.Context, kind Kind, filters []types.Filter, add func(Resource, []types.Tag)) error {
	switch kind {
	case KindInstance:
		return c.instances(ctx, filters, func(i types.Instance) {
			if state(i) == types.InstanceStateNameTerminated { // AWS lists those for an hour
				return
			}
			add(Resource{Kind: kind, ID: aws.ToString(i.InstanceId), State: string(state(i)), Type: string(i.InstanceType), Created: aws.ToTime(i.LaunchTime),
				vpc: aws.ToString(i.VpcId), public: aws.ToString(i.PublicIpAddress) != ""}, i.Tags)
		})
	case KindVolume:
		in := &ec2.DescribeVolumesInput{Filters: filters}
		return pages(ctx, ec2.NewDescribeVolumesPaginator(c.ec2, in), func(page *ec2.DescribeVolumesOutput) {
			for _, v := range page.Volumes {
				if v.State == types.VolumeStateDeleting || v.State == types.VolumeStateDeleted {
					continue
				}
				add(Resource{Kind: kind, ID: aws.ToString(v.VolumeId), State: string(v.State), Created: aws.ToTime(v.CreateTime), volume: v}, v.Tags)
			}
		})
	case KindInterface:
		in := &ec2.DescribeNetworkInterfacesInput{Filters: filters}
		return pages(ctx, ec2.NewDescribeNetworkInterfacesPaginator(c.ec2, in), func(page *ec2.DescribeNetworkInterfacesOutput) {
			for _, n := range page.NetworkInterfaces {
				add(Resource{Kind: kind, ID: aws.ToString(n.NetworkInterfaceId), State: string(n.Status), vpc: aws.ToString(n.VpcId)}, n.TagSet)
			}
		})
	case KindAddress:
		out, err := c.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: filters})
		if err != nil {
			return err
		}
		for _, a := range out.Addresses {
			add(Resource{Kind: kind, ID: aws.ToString(a.AllocationId), Name: aws.ToString(a.PublicIp)}, a.Tags)
		}
	case KindKeyPair:
		out, err := c.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: filters})
		if err != nil {
			return err
		}
		for _, k := range out.KeyPairs {
			add(Resource{Kind: kind, ID: aws.ToString(k.KeyPairId), Name: aws.ToString(k.KeyName), Created: aws.ToTime(k.CreateTime)}, k.Tags)
		}
	case KindPlacementGroup:
		out, err := c.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: filters})
		if err != nil {
			return err
		}
		for _, g := range out.PlacementGroups {
			if g.State != types.PlacementGroupStateDeleted {
				add(Resource{Kind: kind, ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), State: string(g.State)}, g.Tags)
			}
		}
	case KindSecurityGroup:
		return c.securityGroups(ctx, filters, func(g types.SecurityGroup) {
			add(Resource{Kind: kind, ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), vpc: aws.ToString(g.VpcId)}, g.Tags)
		})
	case KindSubnet:
		return c.subnets(ctx, filters, func(s types.Subnet) {
			add(Resource{Kind: kind, ID: aws.ToString(s.SubnetId), vpc: aws.ToString(s.VpcId)}, s.Tags)
		})
	case KindRouteTable:
		return c.routeTables(ctx, filters, func(t types.RouteTable) {
			add(Resource{Kind: kind, ID: aws.ToString(t.RouteTableId), vpc: aws.ToString(t.VpcId)}, t.Tags)
		})
	case KindInternetGateway:
		return c.gateways(ctx, filters, func(g types.InternetGateway) {
			r := Resource{Kind: kind, ID: aws.ToString(g.InternetGatewayId)}
			for _, a := range g.Attachments {
				r.vpc = aws.ToString(a.VpcId)
			}
			add(r, g.Tags)
		})
	case KindVPC:
		in := &ec2.DescribeVpcsInput{Filters: filters}
		return pages(ctx, ec2.NewDescribeVpcsPaginator(c.ec2, in), func(page *ec2.DescribeVpcsOutput) {
			for _, v := range page.Vpcs {
				if id := aws.ToString(v.VpcId); !aws.ToBool(v.IsDefault) {
					add(Resource{Kind: kind, ID: id, vpc: id}, v.Tags)
				}
			}
		})
	default:
		return fmt.Errorf("there is no kind %q", kind)
	}
	return nil
}

// securityGroups goes through the security groups that pass the filters, but
// for the default ones, which go with their VPC.
func (c *Client) securityGroups(ctx context.Context, filters []types.Filter, each func(types.SecurityGroup)) error {
	in := &ec2.DescribeSecurityGroupsInput{Filters: filters}
	return pages(ctx, ec2.NewDescribeSecurityGroupsPaginator(c.ec2, in), func(page *ec2.DescribeSecurityGroupsOutput) {
		for _, g := range page.SecurityGroups {
			if aws.ToString(g.GroupName) != "default" {
				each(g)
			}
		}
	})
}

// subnets goes through the subnets that pass the filters.
func (c *Client) subnets(ctx context.Context, filters []types.Filter, each func(types.Subnet)) error {
	in := &ec2.DescribeSubnetsInput{Filters: filters}
	return pages(ctx, ec2.NewDescribeSubnetsPaginator(c.ec2, in), func(page *ec2.DescribeSubnetsOutput) {
		for _, s := range page.Subnets {
			each(s)
		}
	})
}

// routeTables goes through the route tables that pass the filters, but for the
// main ones, which go with their VPC.
func (c *Client) routeTables(ctx context.Context, filters []types.Filter, each func(types.RouteTable)) error {
	in := &ec2.DescribeRouteTablesInput{Filters: filters}
	return pages(ctx, ec2.NewDescribeRouteTablesPaginator(c.ec2, in), func(page *ec2.DescribeRouteTablesOutput) {
		for _, t := range page.RouteTables {
			if !slices.ContainsFunc(t.Associations, func(a types.RouteTableAssociation) bool { return aws.ToBool(a.Main) }) {
				each(t)
			}
		}
	})
}

// gateways goes through the internet gateways that pass the filters.
func (c *Client) gateways(ctx context.Context, filters []types.Filter, each func(types.InternetGateway)) error {
	in := &ec2.DescribeInternetGatewaysInput{Filters: filters}
	return pages(ctx, ec2.NewDescribeInternetGatewaysPaginator(c.ec2, in), func(page *ec2.DescribeInternetGatewaysOutput) {
		for _, g := range page.InternetGateways {
			each(g)
		}
	})
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
	err := c.instances(ctx, append(ours(), filter("tag:"+TagRun, runID)), func(i types.Instance) {
		t := tagged(Resource{}, i.Tags)
		all = append(all, Instance{ID: aws.ToString(i.InstanceId), Name: t.Name, Role: tag(i.Tags, TagRole), RunID: t.RunID, Type: string(i.InstanceType), State: string(state(i)),
			Reason: aws.ToString(i.StateTransitionReason), PublicIP: aws.ToString(i.PublicIpAddress), Launched: aws.ToTime(i.LaunchTime), Expires: t.Expires})
	})
	if err != nil {
		return nil, fmt.Errorf("looking up the instances of run %s in %s: %w", runID, c.Region, explain(err, c.profile))
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}
