package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Left is a resource that could not be deleted.
type Left struct {
	Resource
	Reason string
}

func (l Left) String() string { return l.Resource.String() + ": " + l.Reason }

// Delete deletes resources that Find has found, in an order in which they let
// go of each other, and waits for it: instances are terminated first, and what
// something still depends on is tried again for a while. What is gone already is
// no error. say, if not nil, is told what happens. The error is that of an ended
// context or of an API that cannot be reached; resources that could not be
// deleted are returned with the reason.
func (c *Client) Delete(ctx context.Context, resources []Resource, say func(format string, args ...any)) ([]Left, error) {
	if say == nil {
		say = func(string, ...any) {}
	}
	d := deleter{c: c, say: say}
	by := map[Kind][]Resource{}
	for _, r := range resources {
		by[r.Kind] = append(by[r.Kind], r)
	}
	if err := d.terminate(ctx, by[KindInstance]); err != nil {
		return d.rest(resources), err
	}
	if err := d.unlink(ctx, by[KindSecurityGroup]); err != nil {
		return d.rest(resources), err
	}
	for _, kind := range Kinds()[1:] {
		for _, r := range by[kind] {
			if err := d.delete(ctx, r); err != nil {
				return d.rest(resources), err
			}
		}
		delete(by, kind)
	}
	delete(by, KindInstance)
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		for _, r := range by[kind] {
			d.keep(r, "percore does not make resources of this kind and does not delete them; delete it yourself if it is not needed")
		}
	}
	return d.left, nil
}

type deleter struct {
	c    *Client
	say  func(string, ...any)
	done map[string]bool // ids that are gone
	left []Left
}

func (d *deleter) gone(r Resource) {
	if d.done == nil {
		d.done = map[string]bool{}
	}
	d.done[r.ID] = true
}

func (d *deleter) keep(r Resource, format string, args ...any) {
	l := Left{r, fmt.Sprintf(format, args...)}
	d.say("%s is left: %s", r, l.Reason)
	d.left = append(d.left, l)
	d.gone(r) // handled
}

// rest is what is left when the deleting had to stop.
func (d *deleter) rest(all []Resource) []Left {
	left := d.left
	for _, r := range all {
		if !d.done[r.ID] {
			left = append(left, Left{r, "the deleting was stopped before it"})
		}
	}
	return left
}

// stop is an error after which nothing else need be tried.
func (d *deleter) stop(ctx context.Context, r Resource, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("deleting %s: %w", r, ctx.Err())
	}
	if code(err) == "" { // not the API's answer
		return fmt.Errorf("deleting %s: %w", r, explain(err, d.c.profile))
	}
	return nil
}

// terminate ends instances and waits until they are gone. Each is ended by a
// call of its own: one that is refused must not keep the others.
func (d *deleter) terminate(ctx context.Context, instances []Resource) error {
	var waiting []Resource
	for _, r := range instances {
		d.say("terminating %s", r)
		switch _, err := d.c.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{r.ID}}); {
		case err == nil:
			waiting = append(waiting, r)
		case gone(err):
			d.gone(r)
		default:
			if err := d.stop(ctx, r, err); err != nil {
				return err
			}
			d.keep(r, "%s", because(err))
		}
	}
	return d.ended(ctx, waiting)
}

// ended waits until instances that are being terminated are gone.
func (d *deleter) ended(ctx context.Context, waiting []Resource) error {
	if len(waiting) == 0 {
		return nil
	}
	var ids []string
	alive := map[string]types.InstanceStateName{} // what was not seen terminated yet
	for _, r := range waiting {
		ids = append(ids, r.ID)
		alive[r.ID] = types.InstanceStateNameShuttingDown
	}
	waiter := ec2.NewInstanceTerminatedWaiter(d.c.ec2, func(o *ec2.InstanceTerminatedWaiterOptions) {
		o.MinDelay, o.MaxDelay = d.c.o.Poll, d.c.o.Poll
		// The waiter's own rule never ends for instances that AWS has forgotten, and
		// gives up when AWS tells for a moment the state before.
		o.Retryable = func(_ context.Context, _ *ec2.DescribeInstancesInput, out *ec2.DescribeInstancesOutput, err error) (bool, error) {
			if err != nil {
				return false, err
			}
			clear(alive)
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					if state(i) != types.InstanceStateNameTerminated {
						alive[aws.ToString(i.InstanceId)] = state(i)
					}
				}
			}
			return len(alive) > 0, nil
		}
	})
	began := time.Now()
	err := waiter.Wait(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("instance-id", ids...)}}, d.c.o.Patience)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for %s to end: %w", strings.Join(ids, ", "), ctx.Err())
	case err != nil && time.Since(began) < d.c.o.Patience-d.c.o.Poll: // not the end of patience
		return fmt.Errorf("waiting for %s to end: %w", strings.Join(ids, ", "), explain(err, d.c.profile))
	}
	for _, r := range waiting {
		if s, ok := alive[r.ID]; ok {
			d.keep(r, "it is still %s after %s; it costs nothing while it shuts down, and another sweep finds it if it stays", s, d.c.o.Patience)
		} else {
			d.gone(r)
		}
	}
	return nil
}

func (d *deleter) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.c.o.Poll):
		return nil
	}
}

// unlink revokes the rules by which our security groups name each other: as
// long as one names another, that one cannot be deleted. A group's rule about
// itself is in nobody's way.
func (d *deleter) unlink(ctx context.Context, groups []Resource) error {
	if len(groups) < 2 {
		return nil
	}
	var ids []string
	for _, g := range groups {
		ids = append(ids, g.ID)
	}
	ingress, egress := map[string][]string{}, map[string][]string{} // group -> rules
	in := &ec2.DescribeSecurityGroupRulesInput{Filters: []types.Filter{filter("group-id", ids...)}}
	err := pages(ctx, ec2.NewDescribeSecurityGroupRulesPaginator(d.c.ec2, in), func(page *ec2.DescribeSecurityGroupRulesOutput) {
		for _, r := range page.SecurityGroupRules {
			if r.ReferencedGroupInfo == nil {
				continue
			}
			group, other := aws.ToString(r.GroupId), aws.ToString(r.ReferencedGroupInfo.GroupId)
			if other == group || !slices.Contains(ids, group) || !slices.Contains(ids, other) {
				continue
			}
			rules := ingress
			if aws.ToBool(r.IsEgress) {
				rules = egress
			}
			rules[group] = append(rules[group], aws.ToString(r.SecurityGroupRuleId))
		}
	})
	if err != nil {
		return d.stop(ctx, groups[0], err) // a group that cannot be deleted says so itself
	}
	for _, g := range groups {
		var in, out error
		if rules := ingress[g.ID]; rules != nil {
			_, in = d.c.ec2.RevokeSecurityGroupIngress(ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: aws.String(g.ID), SecurityGroupRuleIds: rules})
		}
		if rules := egress[g.ID]; rules != nil {
			_, out = d.c.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: aws.String(g.ID), SecurityGroupRuleIds: rules})
		}
		for _, err := range []error{in, out} {
			if err == nil {
				continue
			}
			if err := d.stop(ctx, g, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// patient are errors that go away when what is being deleted is gone.
var patient = []string{"DependencyViolation", "VolumeInUse", "InvalidPlacementGroup.InUse", "InvalidNetworkInterface.InUse", "IncorrectState", "InvalidIPAddress.InUse", "ResourceInUse"}

// delete deletes one resource, again and again while something depends on it
// that is being deleted itself.
func (d *deleter) delete(ctx context.Context, r Resource) error {
	deadline := d.c.now().Add(d.c.o.Patience)
	if reason := d.blockers(ctx, r); reason != "" {
		d.keep(r, "%s", reason)
		return nil
	}
	for attempt := 0; ; attempt++ {
		err := d.once(ctx, r)
		switch {
		case err == nil || gone(err):
			if err == nil {
				d.say("deleted %s", r)
			}
			d.gone(r)
			return nil
		case !slices.Contains(patient, code(err)):
			if err := d.stop(ctx, r, err); err != nil {
				return err
			}
			d.keep(r, "%s", because(err))
			return nil
		case d.c.now().After(deadline):
			d.keep(r, "something still depends on it after %s (%s)", d.c.o.Patience, because(err))
			return nil
		}
		if attempt == 0 {
			d.say("waiting for what depends on %s", r)
		}
		if err := d.pause(ctx); err != nil {
			return fmt.Errorf("deleting %s: %w", r, err)
		}
	}
}

// because is the API's own sentence about a refusal.
func because(err error) string {
	if denied(err) {
		return "the AWS identity may not delete it; give it the policy docs/iam-policy.json"
	}
	return strings.TrimSuffix(cmp.Or(refusal(err), brief(err).Error()), ".")
}

// once tries to delete a resource, with what has to be undone first.
func (d *deleter) once(ctx context.Context, r Resource) error {
	var (
		api = d.c.ec2
		id  = aws.String(r.ID)
		err error
	)
	switch r.Kind {
	case KindVolume:
		_, err = api.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: id})
	case KindInterface:
		_, err = api.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: id})
	case KindAddress:
		_, err = api.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: id})
	case KindKeyPair:
		err = d.keyPair(ctx, r)
	case KindPlacementGroup:
		err = d.placementGroup(ctx, r)
	case KindSecurityGroup:
		_, err = api.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: id})
	case KindSubnet:
		_, err = api.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: id})
	case KindRouteTable:
		err = d.routeTable(ctx, r)
	case KindInternetGateway:
		if r.vpc != "" {
			if _, err := api.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: id, VpcId: aws.String(r.vpc)}); err != nil && !gone(err) {
				return err
			}
		}
		_, err = api.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: id})
	case KindVPC:
		_, err = api.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: id})
	default:
		return fmt.Errorf("there is no way to delete a %s", r.Kind)
	}
	return err
}

// keyPair deletes by name, after making sure that the name still belongs to the
// pair that was found.
func (d *deleter) keyPair(ctx context.Context, r Resource) error {
	out, err := d.c.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: ours()})
	if err != nil {
		return err
	}
	for _, k := range out.KeyPairs {
		if aws.ToString(k.KeyPairId) == r.ID && aws.ToString(k.KeyName) == r.Name && tag(k.Tags, TagMark) == "1" {
			_, err := d.c.ec2.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: k.KeyName})
			return err
		}
	}
	return nil
}

// placementGroup deletes by name, which is the only way, after making sure that
// the name still belongs to the group that was found.
func (d *deleter) placementGroup(ctx context.Context, r Resource) error {
	out, err := d.c.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: ours()})
	if err != nil {
		return err
	}
	for _, g := range out.PlacementGroups {
		if aws.ToString(g.GroupId) == r.ID && aws.ToString(g.GroupName) == r.Name && tag(g.Tags, TagMark) == "1" {
			_, err := d.c.ec2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: g.GroupName})
			return err
		}
	}
	return nil
}

// routeTable takes a table away from its subnets and deletes it.
func (d *deleter) routeTable(ctx context.Context, r Resource) error {
	var subnets []*string // associations
	err := d.c.routeTables(ctx, []types.Filter{filter("route-table-id", r.ID)}, func(t types.RouteTable) {
		for _, a := range t.Associations {
			if a.RouteTableAssociationId != nil {
				subnets = append(subnets, a.RouteTableAssociationId)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, id := range subnets {
		if _, err := d.c.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: id}); err != nil && !gone(err) {
			return err
		}
	}
	_, err = d.c.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: aws.String(r.ID)})
	return err
}

// blockers says what keeps a VPC or a subnet that is not ours to delete, empty
// when nothing of the kind is known: waiting for it would be in vain.
func (d *deleter) blockers(ctx context.Context, r Resource) string {
	if r.Kind != KindVPC && r.Kind != KindSubnet {
		return ""
	}
	name := "vpc-id"
	if r.Kind == KindSubnet {
		name = "subnet-id"
	}
	var foreign []string
	note := func(id *string, tags []types.Tag) {
		if tag(tags, TagMark) != "1" && len(foreign) < 5 {
			foreign = append(foreign, aws.ToString(id))
		}
	}
	c, in := d.c, []types.Filter{filter(name, r.ID)}
	// A listing that fails names no blocker: deleting is tried all the same.
	_ = c.instances(ctx, append(in, filter("instance-state-name", "pending", "running", "stopping", "stopped")), func(i types.Instance) { note(i.InstanceId, i.Tags) })
	if r.Kind == KindVPC {
		_ = c.subnets(ctx, in, func(s types.Subnet) { note(s.SubnetId, s.Tags) })
		_ = c.securityGroups(ctx, in, func(g types.SecurityGroup) { note(g.GroupId, g.Tags) })
		_ = c.routeTables(ctx, in, func(t types.RouteTable) { note(t.RouteTableId, t.Tags) })
		_ = c.gateways(ctx, []types.Filter{filter("attachment.vpc-id", r.ID)}, func(g types.InternetGateway) { note(g.InternetGatewayId, g.Tags) })
	}
	if len(foreign) == 0 {
		return ""
	}
	return "it holds " + strings.Join(foreign, ", ") + ", which percore did not make and leaves alone; delete that yourself, then sweep again"
}
