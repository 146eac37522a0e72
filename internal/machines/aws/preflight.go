package aws

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/percore/percore/internal/base/fail"
)

// Report is what was found out about a request before anything is made.
type Report struct {
	Identity Identity         `json:"identity"`
	Region   string           `json:"region"`
	Zone     string           `json:"zone"`               // chosen, or the one asked for
	Zones    []string         `json:"zones"`              // all that offer every type, sorted
	SSHFrom  []netip.Prefix   `json:"ssh_from"`           // networks that may reach port 22
	Types    map[string]Type  `json:"types"`              // by name
	Images   map[string]Image `json:"images"`             // by architecture, as Debian names it
	Quotas   []Quota          `json:"quotas"`             // one per group of families
	Allowed  bool             `json:"allowed"`            // whether a dry run showed that instances may be made
	Warnings []string         `json:"warnings,omitempty"` // what could not be checked, one sentence each
}

// Type is an instance type.
type Type struct {
	Name      string `json:"name"`
	Arch      string `json:"arch"`  // amd64 or arm64
	VCPUs     int    `json:"vcpus"` // by which the quota counts
	Cores     int    `json:"cores"` // what one has with one thread per core
	Threads   int    `json:"threads_per_core"`
	MemoryMiB int    `json:"memory_mib"`
	Network   string `json:"network"` // as AWS words it
}

// Image is a machine image.
type Image struct {
	ID        string `json:"id"`
	Parameter string `json:"parameter"` // the public parameter that names it
}

// Quota is how many vCPUs of some families may run at once.
type Quota struct {
	Code    string  `json:"code"`
	Name    string  `json:"name"`
	Limit   float64 `json:"limit"`
	InUse   int     `json:"in_use"`
	Asked   int     `json:"asked"`
	Checked bool    `json:"checked"` // whether the limit could be read
}

// imageParameter names the newest Debian 13 image of an architecture.
func imageParameter(arch string) string { return "/aws/service/debian/release/13/latest/" + arch }

// Preflight finds out whether the machines of a request can be had: who asks,
// types, image, zone, quota, permission. It makes nothing. What makes the
// request impossible is an error that names the remedy; what could not be
// checked is a warning in the report.
func (c *Client) Preflight(ctx context.Context, r Request) (Report, error) {
	rep := Report{Region: c.Region}
	if len(r.Machines) == 0 {
		return rep, fail.Input("no instances are asked for").Try("take a profile with a cloud section of provider aws, such as aws-graviton")
	}
	if r.Zone != "" && !strings.HasPrefix(r.Zone, c.Region) {
		return rep, fail.Input("the zone %s is not in the region %s", r.Zone, c.Region).Try("leave cloud.zone out, or name its region with %s", fail.Setting("region"))
	}
	// The cheapest and likeliest refusals come first.
	for _, text := range r.SSHFrom {
		p, err := Network(text)
		if err != nil {
			return rep, err
		}
		rep.SSHFrom = append(rep.SSHFrom, p)
	}
	var err error
	if rep.Identity, err = c.Identity(ctx); err != nil {
		return rep, err
	}
	if rep.Types, err = c.types(ctx, r); err != nil {
		return rep, err
	}
	if rep.Zone, rep.Zones, err = c.zone(ctx, r); err != nil {
		return rep, err
	}
	if rep.Images, err = c.images(ctx, rep.Types); err != nil {
		return rep, err
	}
	var warnings []string
	if rep.Quotas, warnings, err = c.quotas(ctx, r, rep.Types); err != nil {
		return rep, err
	}
	rep.Warnings = append(rep.Warnings, warnings...)
	warning, err := c.mayRun(ctx, r, rep)
	if err != nil {
		return rep, err
	}
	if rep.Allowed = warning == ""; !rep.Allowed {
		rep.Warnings = append(rep.Warnings, warning)
	}
	if len(rep.SSHFrom) == 0 {
		p, err := CallerAddress(ctx, r.AddressURL)
		if err != nil {
			return rep, err
		}
		rep.SSHFrom = []netip.Prefix{p}
	}
	return rep, nil
}

// offered is an instance type with what decides whether it can be measured on.
type offered struct {
	Type          // without an architecture where percore has no images for it
	burstable     bool
	architectures []types.ArchitectureType
	validThreads  []int32 // per core
	placement     []types.PlacementGroupStrategy
}

// offer reads what EC2 says of an instance type.
func offer(info types.InstanceTypeInfo) offered {
	o := offered{Type: Type{Name: string(info.InstanceType)}, burstable: aws.ToBool(info.BurstablePerformanceSupported)}
	if p := info.ProcessorInfo; p != nil {
		o.architectures = p.SupportedArchitectures
	}
	switch {
	case slices.Contains(o.architectures, types.ArchitectureTypeArm64):
		o.Arch = "arm64"
	case slices.Contains(o.architectures, types.ArchitectureTypeX8664):
		o.Arch = "amd64"
	}
	if v := info.VCpuInfo; v != nil {
		o.VCPUs, o.Cores, o.Threads = int(aws.ToInt32(v.DefaultVCpus)), int(aws.ToInt32(v.DefaultCores)), int(aws.ToInt32(v.DefaultThreadsPerCore))
		o.validThreads = v.ValidThreadsPerCore
	}
	o.Threads = max(o.Threads, 1)
	if m := info.MemoryInfo; m != nil {
		o.MemoryMiB = int(aws.ToInt64(m.SizeInMiB))
	}
	if n := info.NetworkInfo; n != nil {
		o.Network = aws.ToString(n.NetworkPerformance)
	}
	if p := info.PlacementGroupInfo; p != nil {
		o.placement = p.SupportedStrategies
	}
	return o
}

// describeTypes asks for types by name. Those that the region does not have are
// absent from the answer; no names ask for all types.
func (c *Client) describeTypes(ctx context.Context, names []string) (map[string]offered, error) {
	found := map[string]offered{}
	const most = 200 // values of one filter
	for first := true; first || len(names) > 0; first = false {
		in := &ec2.DescribeInstanceTypesInput{}
		if n := min(most, len(names)); n > 0 {
			in.Filters = []types.Filter{filter("instance-type", names[:n]...)}
			names = names[n:]
		}
		err := pages(ctx, ec2.NewDescribeInstanceTypesPaginator(c.ec2, in), func(page *ec2.DescribeInstanceTypesOutput) {
			for _, t := range page.InstanceTypes {
				found[string(t.InstanceType)] = offer(t)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("looking up instance types in %s: %w", c.Region, explain(err, c.profile))
		}
	}
	return found, nil
}

// types looks up what the request asks for and refuses types that cannot be
// measured on.
func (c *Client) types(ctx context.Context, r Request) (map[string]Type, error) {
	found, err := c.describeTypes(ctx, r.Types())
	if err != nil {
		return nil, err
	}
	all := map[string]Type{}
	for _, m := range r.Machines {
		t, ok := found[m.Type]
		switch {
		case !ok:
			return nil, fail.Input("the region %s has no instance type %s (cloud.instances.%s)", c.Region, m.Type, m.Role).Try("take another type, or another region with %s", fail.Setting("region"))
		case t.burstable:
			return nil, fail.Input("the instance type %s of role %s is burstable: what it carries depends on its credits", m.Type, m.Role).Try("take one of another family, such as c8g.xlarge")
		case t.Arch == "":
			return nil, fail.Input("the instance type %s of role %s has the architecture %s", m.Type, m.Role, joined(t.architectures)).Try("take one of arm64 or x86_64")
		case t.Threads > 1 && !slices.Contains(t.validThreads, 1):
			return nil, fail.Input("the instance type %s of role %s cannot run one thread per core, so its cores would be threads", m.Type, m.Role).Try("take another type, such as c7i.2xlarge")
		case r.Grouped && !slices.Contains(t.placement, types.PlacementGroupStrategyCluster):
			return nil, fail.Input("the instance type %s of role %s cannot be in a cluster placement group", m.Type, m.Role).Try("take another type, or write cloud.placement_group: false")
		case m.Cores > t.Cores:
			return nil, fail.Input("role %s uses %d cores and the instance type %s has %d", m.Role, m.Cores, m.Type, t.Cores).Try("take a larger type, or fewer CPUs in the profile")
		}
		all[m.Type] = t.Type
	}
	return all, nil
}

func joined[S ~string](values []S) string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return strings.Join(all, ", ")
}

// zone chooses the first zone, by name, that offers every type, or checks the
// one that was asked for.
func (c *Client) zone(ctx context.Context, r Request) (string, []string, error) {
	zones, err := c.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{filter("state", "available"), filter("zone-type", "availability-zone")},
	})
	if err != nil {
		return "", nil, fmt.Errorf("listing the zones of %s: %w", c.Region, explain(err, c.profile))
	}
	offers := map[string][]string{} // type -> zones
	in := &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{filter("instance-type", r.Types()...)},
	}
	err = pages(ctx, ec2.NewDescribeInstanceTypeOfferingsPaginator(c.ec2, in), func(page *ec2.DescribeInstanceTypeOfferingsOutput) {
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			offers[name] = append(offers[name], aws.ToString(o.Location))
		}
	})
	if err != nil {
		return "", nil, fmt.Errorf("looking up which zones of %s offer the instance types: %w", c.Region, explain(err, c.profile))
	}
	var names []string
	for _, z := range zones.AvailabilityZones {
		names = append(names, aws.ToString(z.ZoneName))
	}
	slices.Sort(names)
	zone, all, err := chooseZone(names, offers, r.Types(), r.Zone)
	if err != nil {
		return "", nil, fmt.Errorf("region %s: %w", c.Region, err)
	}
	return zone, all, nil
}

// chooseZone picks from the zones, sorted, one that offers all types.
func chooseZone(zones []string, offers map[string][]string, types []string, asked string) (string, []string, error) {
	var all []string
	for _, z := range zones {
		if !slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(offers[t], z) }) {
			all = append(all, z)
		}
	}
	where := func() string {
		var parts []string
		for _, t := range types {
			z := slices.DeleteFunc(slices.Sorted(slices.Values(offers[t])), func(z string) bool { return !slices.Contains(zones, z) })
			if len(z) == 0 {
				z = []string{"no zone"}
			}
			parts = append(parts, fmt.Sprintf("%s is in %s", t, strings.Join(z, ", ")))
		}
		return strings.Join(parts, "; ")
	}
	switch {
	case asked != "" && !slices.Contains(zones, asked):
		return "", nil, fail.Input("there is no zone %s for this account", asked).Try("the zones are %s", strings.Join(zones, ", "))
	case asked != "" && !slices.Contains(all, asked):
		return "", nil, fail.Input("the zone %s does not offer every instance type (%s)", asked, where()).Try("leave cloud.zone out, or take other types")
	case asked != "":
		return asked, all, nil
	case len(all) == 0:
		return "", nil, fail.Input("no zone offers every instance type (%s)", where()).Try("take other types, or another region with %s", fail.Setting("region"))
	}
	return all[0], all, nil
}

// images looks up the image of each architecture.
func (c *Client) images(ctx context.Context, of map[string]Type) (map[string]Image, error) {
	var names []string
	for _, t := range of {
		if name := imageParameter(t.Arch); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out, err := ssm.NewFromConfig(c.cfg).GetParameters(ctx, &ssm.GetParametersInput{Names: names})
	if err != nil {
		if denied(err) {
			return nil, fail.Input("the AWS identity may not read the public parameters of Debian's images (ssm:GetParameters)").Try("give it the policy docs/iam-policy.json")
		}
		return nil, fmt.Errorf("looking up the Debian 13 image in %s: %w", c.Region, explain(err, c.profile))
	}
	images := map[string]Image{}
	for _, p := range out.Parameters {
		name := aws.ToString(p.Name)
		images[strings.TrimPrefix(name, imageParameter(""))] = Image{ID: aws.ToString(p.Value), Parameter: name}
	}
	for _, name := range names {
		if a := strings.TrimPrefix(name, imageParameter("")); images[a].ID == "" {
			return nil, fail.Input("Debian names no image for %s in the region %s (%s)", a, c.Region, name).Try("take another region with %s", fail.Setting("region"))
		}
	}
	return images, nil
}

// mayRun asks, without making anything, whether the identity may make
// instances. The answer is a warning when it cannot be known.
func (c *Client) mayRun(ctx context.Context, r Request, rep Report) (warning string, err error) {
	m := r.Machines[0]
	tags := []types.Tag{{Key: aws.String(TagMark), Value: aws.String("1")}, {Key: aws.String(TagRun), Value: aws.String("preflight")}}
	_, err = c.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), ImageId: aws.String(rep.Images[rep.Types[m.Type].Arch].ID), InstanceType: types.InstanceType(m.Type),
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tags}, {ResourceType: types.ResourceTypeVolume, Tags: tags}},
	})
	switch {
	case code(err) == "DryRunOperation": // it would have worked
		return "", nil
	case denied(err):
		return "", fail.Input("the AWS identity %s may not call ec2:RunInstances", rep.Identity.ARN).Try("give it the policy docs/iam-policy.json")
	case ctx.Err() != nil:
		return "", fmt.Errorf("asking whether instances may be made: %w", ctx.Err())
	case err == nil:
		return "", fmt.Errorf("a dry run of ec2:RunInstances was carried out")
	}
	return fmt.Sprintf("whether instances may be made was not checked: %v", brief(err)), nil
}
