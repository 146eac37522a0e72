//go:build integration

//integration:apart

package aws

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
	"github.com/percore/percore/internal/testkit/iampolicy"
	"github.com/percore/percore/internal/testkit/mototest"
	"github.com/percore/percore/internal/testkit/said"
)

func open(t *testing.T, s *mototest.Server) *Client { return recording(t, s, nil) }

// recording is a client that tells what it calls.
func recording(t *testing.T, s *mototest.Server, onCall func(string)) *Client {
	t.Helper()
	s.Setenv(t)
	c, err := Open(t.Context(), Options{OnCall: onCall, Poll: 50 * time.Millisecond, Patience: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func table(t *testing.T) prices.Table {
	t.Helper()
	p, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// graviton is what the profile of that name asks for.
func graviton() Request {
	return Request{Grouped: true, SSHFrom: []string{"203.0.113.7"}, Machines: []Machines{
		{Role: plan.App, Type: "c8g.xlarge", Count: 1, Cores: 4},
		{Role: plan.DB, Type: "c8g.xlarge", Count: 1, Cores: 4, Disk: plan.Disk{SizeGiB: 40, IOPS: 6000, ThroughputMiB: 250}},
		{Role: plan.Load, Type: "c8gn.xlarge", Count: 1, Cores: 4},
	}}
}

func TestPreflight(t *testing.T) {
	c := open(t, mototest.Start(t))
	address := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "203.0.113.9\n") }))
	defer address.Close()
	r := graviton()
	// 203.0.113.0/24 is set aside for documentation and counts as public.
	r.SSHFrom, r.AddressURL = nil, address.URL
	rep, err := c.Preflight(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Identity.Account != "123456789012" || rep.Identity.ARN == "" || rep.Region != "us-east-1" {
		t.Errorf("identity %+v in %s", rep.Identity, rep.Region)
	}
	if rep.Zone != "us-east-1a" || !slices.Contains(rep.Zones, "us-east-1b") || slices.Contains(rep.Zones, "us-east-1e") {
		t.Errorf("zone %s of %v", rep.Zone, rep.Zones)
	}
	if x := rep.Types["c8g.xlarge"]; x.Arch != "arm64" || x.Cores != 4 || x.VCPUs != 4 || x.Threads != 1 || x.MemoryMiB != 8192 || x.Network == "" {
		t.Errorf("c8g.xlarge is %+v", x)
	}
	if len(rep.Images) != 1 || !strings.HasPrefix(rep.Images["arm64"].ID, "ami-") {
		t.Errorf("images %+v", rep.Images)
	}
	if len(rep.Quotas) != 1 || rep.Quotas[0].Limit != 64 || rep.Quotas[0].Asked != 12 || rep.Quotas[0].InUse != 0 {
		t.Errorf("quotas %+v", rep.Quotas)
	}
	if len(rep.SSHFrom) != 1 || rep.SSHFrom[0].String() != "203.0.113.9/32" || !rep.Allowed || len(rep.Warnings) != 0 {
		t.Errorf("ssh from %v, allowed %t, warnings %q", rep.SSHFrom, rep.Allowed, rep.Warnings)
	}
	text := strings.Join(rep.Lines(r), "\n")
	for _, want := range []string{"account 123456789012", "zone us-east-1a", "1 × c8g.xlarge for db: 4 cores, 8 GiB", "40 GiB gp3", "12 vCPUs asked for, 0 in use, 64 allowed", "ssh is open to 203.0.113.9/32 only"} {
		if !strings.Contains(text, want) {
			t.Errorf("the lines lack %q:\n%s", want, text)
		}
	}

	t.Run("x86", func(t *testing.T) {
		r := graviton()
		for i, x := range []string{"c7i.2xlarge", "c7i.2xlarge", "c6in.2xlarge"} {
			r.Machines[i].Type = x
		}
		rep, err := c.Preflight(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if x := rep.Types["c7i.2xlarge"]; x.Arch != "amd64" || x.Cores != 4 || x.Threads != 2 || rep.Quotas[0].Asked != 24 {
			t.Errorf("%+v, quotas %+v", x, rep.Quotas)
		}
	})

	for _, tt := range []struct {
		name string
		edit func(*Request)
		want string
	}{
		{"burstable", func(r *Request) { r.Machines[2].Type = "t4g.large" }, "t4g.large of role load is burstable"},
		{"unknown type", func(r *Request) { r.Machines[0].Type = "c99g.xlarge" }, "the region us-east-1 has no instance type c99g.xlarge (cloud.instances.app)"},
		{"too many vCPUs", func(r *Request) { r.Machines[2].Count = 16 }, "needs 72 vCPUs in us-east-1, of which 0 run already, and the quota"},
		{"quota of a family", func(r *Request) {
			r.Machines[0].Type, r.Machines[0].Cores = "x2gd.16xlarge", 0
			r.Machines[0].Count = 2
		}, "Running On-Demand X instances"},
		{"too few cores", func(r *Request) { r.Machines[1].Type = "c8g.large" }, "role db uses 4 cores and the instance type c8g.large has 2"},
		{"zone without the type", func(r *Request) { r.Zone = "us-east-1e" }, "the zone us-east-1e does not offer every instance type (c8g.xlarge is in us-east-1a"},
		{"zone elsewhere", func(r *Request) { r.Zone = "eu-west-1a" }, "the zone eu-west-1a is not in the region us-east-1"},
		{"zone that is not", func(r *Request) { r.Zone = "us-east-1z" }, "there is no zone us-east-1z"},
		{"everybody", func(r *Request) { r.SSHFrom = []string{"0.0.0.0/0"} }, "would open ssh to too many"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := graviton()
			tt.edit(&r)
			_, err := c.Preflight(t.Context(), r)
			if err == nil || !strings.Contains(said.Err(err), tt.want) || !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, tt.want)
			}
		})
	}

	t.Run("prices fall back", func(t *testing.T) { testPricesFallBack(t, c) })

	// None of this made anything.
	found, err := c.Find(t.Context())
	if err != nil || len(found) != 0 {
		t.Errorf("a preflight has made %v (%v)", found, err)
	}
}

// moto has no price list.
func testPricesFallBack(t *testing.T, c *Client) {
	r := graviton()
	p, err := c.Prices(t.Context(), r.Types(), table(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Live || p.PerHour["c8g.xlarge"] != 0.15952 || p.PerHour["c8gn.xlarge"] != 0.237 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "could not be asked") {
		t.Errorf("%+v", p)
	}
	if e := p.Estimate(r, 2*time.Hour); len(e.Unpriced) != 0 || e.Total != 2*e.PerHour || e.PerHour < 0.5 || e.PerHour > 0.7 {
		t.Errorf("estimate %+v", e)
	}
}

func TestPreflightWithoutQuotas(t *testing.T) {
	c := open(t, mototest.Start(t, mototest.NoQuotas()))
	rep, err := c.Preflight(t.Context(), graviton())
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "was not checked: the AWS identity may not read it") || rep.Quotas[0].Checked {
		t.Errorf("warnings %q, quotas %+v", rep.Warnings, rep.Quotas)
	}
}

// maker makes what Terraform would, through the same API.
type maker struct {
	t *testing.T
	c *Client
}

// made is the answer of a call that makes something.
func made[Out any](m maker, out *Out, err error) *Out {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// with is what something of a kind is tagged with; no tags make none.
func with(kind types.ResourceType, tags map[string]string) []types.TagSpecification {
	if len(tags) == 0 {
		return nil
	}
	spec := types.TagSpecification{ResourceType: kind}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		spec.Tags = append(spec.Tags, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return []types.TagSpecification{spec}
}

func (m maker) vpc(tags map[string]string) *string {
	m.t.Helper()
	out, err := m.c.ec2.CreateVpc(m.t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.77.0.0/16"), TagSpecifications: with(types.ResourceTypeVpc, tags)})
	return made(m, out, err).Vpc.VpcId
}

func (m maker) subnet(vpc *string, tags map[string]string) *string {
	m.t.Helper()
	out, err := m.c.ec2.CreateSubnet(m.t.Context(), &ec2.CreateSubnetInput{
		VpcId: vpc, CidrBlock: aws.String("10.77.0.0/24"), AvailabilityZone: aws.String("us-east-1a"), TagSpecifications: with(types.ResourceTypeSubnet, tags),
	})
	return made(m, out, err).Subnet.SubnetId
}

func (m maker) gateway(vpc *string, tags map[string]string) *string {
	m.t.Helper()
	out, err := m.c.ec2.CreateInternetGateway(m.t.Context(), &ec2.CreateInternetGatewayInput{TagSpecifications: with(types.ResourceTypeInternetGateway, tags)})
	id := made(m, out, err).InternetGateway.InternetGatewayId
	done, err := m.c.ec2.AttachInternetGateway(m.t.Context(), &ec2.AttachInternetGatewayInput{InternetGatewayId: id, VpcId: vpc})
	made(m, done, err)
	return id
}

func (m maker) routes(vpc, subnet *string, tags map[string]string) *string {
	m.t.Helper()
	out, err := m.c.ec2.CreateRouteTable(m.t.Context(), &ec2.CreateRouteTableInput{VpcId: vpc, TagSpecifications: with(types.ResourceTypeRouteTable, tags)})
	id := made(m, out, err).RouteTable.RouteTableId
	done, err := m.c.ec2.AssociateRouteTable(m.t.Context(), &ec2.AssociateRouteTableInput{RouteTableId: id, SubnetId: subnet})
	made(m, done, err)
	return id
}

func (m maker) group(vpc *string, name string, tags map[string]string) *string {
	m.t.Helper()
	out, err := m.c.ec2.CreateSecurityGroup(m.t.Context(), &ec2.CreateSecurityGroupInput{
		VpcId: vpc, GroupName: aws.String(name), Description: aws.String("x"), TagSpecifications: with(types.ResourceTypeSecurityGroup, tags),
	})
	return made(m, out, err).GroupId
}

// half makes what an apply leaves behind that fails half way, and returns the
// ids of it all.
func (m maker) half(tags map[string]string) (ids []string) {
	m.t.Helper()
	ctx, api, name := m.t.Context(), m.c.ec2, "x-"+tags[TagRun]
	vpc := m.vpc(tags)
	gateway, subnet := m.gateway(vpc, tags), m.subnet(vpc, tags)
	routes := m.routes(vpc, subnet, tags)
	group, other := m.group(vpc, name, tags), m.group(vpc, name+"-2", tags)
	for _, pair := range [][2]*string{{group, other}, {other, group}, {group, group}} {
		out, err := api.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: pair[0], IpPermissions: []types.IpPermission{
			{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: pair[1]}}},
		}})
		made(m, out, err)
	}
	key, err := api.CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: aws.String(name), KeyType: types.KeyTypeEd25519, TagSpecifications: with(types.ResourceTypeKeyPair, tags)})
	made(m, key, err)
	placement, err := api.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{
		GroupName: aws.String(name), Strategy: types.PlacementStrategyCluster, TagSpecifications: with(types.ResourceTypePlacementGroup, tags),
	})
	made(m, placement, err)
	instances, err := api.RunInstances(ctx, &ec2.RunInstancesInput{
		ImageId: aws.String("ami-0d13a0d13a0d13a8a"), InstanceType: types.InstanceTypeC8gXlarge, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: subnet, SecurityGroupIds: []string{*group},
		BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{
			VolumeSize: aws.Int32(30), VolumeType: types.VolumeTypeGp3, DeleteOnTermination: aws.Bool(true),
		}}},
		TagSpecifications: append(with(types.ResourceTypeInstance, tags), with(types.ResourceTypeVolume, tags)...),
	})
	made(m, instances, err)
	// A volume that no instance takes with it.
	volume, err := api.CreateVolume(ctx, &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String("us-east-1a"), Size: aws.Int32(40), VolumeType: types.VolumeTypeGp3, Iops: aws.Int32(6000), Throughput: aws.Int32(250),
		TagSpecifications: with(types.ResourceTypeVolume, tags),
	})
	made(m, volume, err)
	nic, err := api.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: subnet, TagSpecifications: with(types.ResourceTypeNetworkInterface, tags)})
	made(m, nic, err)
	address, err := api.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc, TagSpecifications: with(types.ResourceTypeElasticIp, tags)})
	made(m, address, err)
	for _, id := range []*string{vpc, gateway, subnet, routes, group, other, key.KeyPairId, placement.PlacementGroup.GroupId, instances.Instances[0].InstanceId,
		volume.VolumeId, nic.NetworkInterface.NetworkInterfaceId, address.AllocationId} {
		ids = append(ids, aws.ToString(id))
	}
	return ids
}

func ofRun(all []Resource, run string) []Resource {
	return slices.DeleteFunc(slices.Clone(all), func(r Resource) bool { return r.RunID != run })
}

// exist lists which of the ids there are, whoever they belong to. The default
// groups and main tables that it passes over nobody made here.
func (m maker) exist(ids []string) []string {
	m.t.Helper()
	var all []string
	for _, kind := range Kinds() {
		if err := m.c.listKind(m.t.Context(), kind, nil, func(r Resource, _ []types.Tag) { all = append(all, r.ID) }); err != nil {
			m.t.Fatal(err)
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(all, id) })
}

func TestSweep(t *testing.T) {
	c := open(t, mototest.Start(t))
	m := maker{t, c}
	expires := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	mine := func(run string) map[string]string {
		return map[string]string{TagMark: "1", TagRun: run, TagExpires: expires.Format(time.RFC3339), TagName: "percore-" + run, TagRole: "app"}
	}
	one, two := m.half(mine("one")), m.half(mine("two"))
	foreign := append(m.half(map[string]string{"percore": "0", TagRun: "three"}), m.half(nil)...)

	before := time.Now()
	c.now = func() time.Time { return before.Add(10 * time.Hour) }
	found, err := c.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range found {
		ids = append(ids, r.ID)
		if r.RunID != "one" && r.RunID != "two" {
			t.Errorf("%s is of run %q", r, r.RunID)
		}
		if !r.Expires.Equal(expires) || !r.Expired(c.now()) {
			t.Errorf("%s expires %v", r, r.Expires)
		}
		age := c.now().Sub(r.Created)
		switch r.Kind {
		case KindInstance:
			if age < 9*time.Hour || age > 11*time.Hour || r.PerHour < 0.159 || r.Cost < 1.5 || r.Cost > 2 {
				t.Errorf("%s: age %s, %g an hour, %g so far", r, age, r.PerHour, r.Cost)
			}
		case KindVolume:
			if age < 9*time.Hour || r.PerHour <= 0 || r.Cost <= 0 {
				t.Errorf("%s: age %s, %g an hour, %g so far", r, age, r.PerHour, r.Cost)
			}
		}
	}
	for _, id := range append(slices.Clone(one), two...) {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is ours and was not found", id)
		}
	}
	for _, id := range foreign {
		if slices.Contains(ids, id) {
			t.Errorf("%s is not ours and was found", id)
		}
	}
	c.now = time.Now

	running, err := c.Instances(t.Context(), "one")
	if err != nil || len(running) != 1 || running[0].State != "running" || running[0].Role != "app" || running[0].Type != "c8g.xlarge" || running[0].Launched.IsZero() {
		t.Errorf("running %+v, %v", running, err)
	}

	if states, err := c.Running(t.Context(), "one"); err != nil || len(states) != 1 || states[running[0].ID] != "running" {
		t.Errorf("states %v, %v", states, err)
	}
	// Machines that a run has already are part of what it asks for.
	r := graviton()
	r.RunID = "one"
	if rep, err := c.Preflight(t.Context(), r); err != nil || rep.Quotas[0].InUse != 12 {
		t.Errorf("quotas %+v, %v", rep.Quotas, err)
	}

	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	left, err := c.Delete(t.Context(), ofRun(found, "one"), say)
	if err != nil || len(left) != 0 {
		t.Fatalf("left %+v, %v\n%s", left, err, strings.Join(said, "\n"))
	}
	if got := m.exist(one); len(got) != 0 {
		t.Errorf("of run one there are still %v", got)
	}
	if got := m.exist(append(slices.Clone(two), foreign...)); len(got) != len(two)+len(foreign) {
		t.Errorf("of run two and of others there are only %v", got)
	}

	// What was found before and is gone by now is no error.
	if left, err := c.Delete(t.Context(), found, say); err != nil || len(left) != 0 {
		t.Fatalf("left %+v, %v", left, err)
	}
	if got := m.exist(two); len(got) != 0 {
		t.Errorf("of run two there are still %v", got)
	}
	if got := m.exist(foreign); len(got) != len(foreign) {
		t.Errorf("of others there are only %v", got)
	}
	found, err = c.Find(t.Context())
	if err != nil || len(found) != 0 {
		t.Errorf("after the sweep there are %v, %v", found, err)
	}
	if left, err := c.Delete(t.Context(), found, nil); err != nil || len(left) != 0 {
		t.Errorf("a sweep with nothing to do: %v, %v", left, err)
	}
	t.Run("foreign things inside", func(t *testing.T) { testSweepForeignInside(t, c) })
}

// Somebody else's things in our network keep it, and are told of.
func testSweepForeignInside(t *testing.T, c *Client) {
	m := maker{t, c}
	vpc := *m.vpc(map[string]string{TagMark: "1", TagRun: "one"})
	subnet := *m.subnet(&vpc, nil)
	found, err := c.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.Delete(t.Context(), found, nil)
	if err != nil || len(left) != 1 || left[0].ID != vpc || !strings.Contains(left[0].Reason, subnet) {
		t.Errorf("left %+v, %v", left, err)
	}
	if got := m.exist([]string{vpc, subnet}); len(got) != 2 {
		t.Errorf("there are only %v", got)
	}
}

func TestSweepWithoutPlacementGroups(t *testing.T) {
	c := open(t, mototest.Start(t, mototest.NoPlacementGroups()))
	var notes []string
	c.o.Say = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if _, err := c.Find(t.Context()); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "placement groups could not be listed") {
		t.Errorf("%q, %v", notes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Find(ctx); err == nil {
		t.Error("a listing that was cancelled has succeeded")
	}
}

// Whatever the Go code calls of AWS, the policy in docs allows.
func TestPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../docs/iam-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := iampolicy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s := mototest.Start(t)
	var lock sync.Mutex
	called := map[string]bool{}
	c := recording(t, s, func(action string) {
		lock.Lock()
		defer lock.Unlock()
		called[action] = true
	})
	maker{t, open(t, s)}.half(map[string]string{TagMark: "1", TagRun: "one"})
	if _, err := c.Preflight(t.Context(), graviton()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Running(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PriceTable(t.Context()); err == nil {
		t.Error("moto has a price list")
	}
	found, err := c.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left, err := c.Delete(t.Context(), found, nil); err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	for action := range called {
		if !policy.Allows(action) {
			t.Errorf("docs/iam-policy.json does not allow %s", action)
		}
	}
	// A recorder that misses something would let anything pass.
	for _, action := range []string{"sts:GetCallerIdentity", "ssm:GetParameters", "servicequotas:GetServiceQuota", "pricing:GetProducts", "ec2:RunInstances", "ec2:DescribeTags",
		"ec2:TerminateInstances", "ec2:DeleteVolume", "ec2:DeleteNetworkInterface", "ec2:ReleaseAddress", "ec2:DeleteKeyPair", "ec2:DeletePlacementGroup", "ec2:RevokeSecurityGroupIngress",
		"ec2:DeleteSecurityGroup", "ec2:DeleteSubnet", "ec2:DisassociateRouteTable", "ec2:DeleteRouteTable", "ec2:DetachInternetGateway", "ec2:DeleteInternetGateway", "ec2:DeleteVpc"} {
		if !called[action] {
			t.Errorf("%s was not recorded", action)
		}
	}
}
