package awsx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/cloud/awswire"
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
	if awswire.Code(err) == "" { // not the API's answer
		return fmt.Errorf("deleting %s: %w", r, err)
	}
	return nil
}

// terminate ends instances and waits until they are gone. Each is ended by a
// call of its own: one that is refused must not keep the others.
func (d *deleter) terminate(ctx context.Context, instances []Resource) error {
	var waiting []Resource
	for _, r := range instances {
		var done awswire.Done
		d.say("terminating %s", r)
		switch err := d.c.wire.EC2(ctx, "TerminateInstances", awswire.Params{}.List("InstanceId", r.ID), &done); {
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
	deadline := d.c.now().Add(d.c.o.Patience)
	for len(waiting) > 0 {
		var ids []string
		for _, r := range waiting {
			ids = append(ids, r.ID)
		}
		alive := map[string]string{}
		err := awswire.Pages(ctx, d.c.wire, "DescribeInstances", awswire.Params{}.Filter("instance-id", ids...), func(page awswire.Reservations) {
			for _, res := range page.Reservations {
				for _, i := range res.Instances {
					if i.State != "terminated" {
						alive[i.ID] = i.State
					}
				}
			}
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to end: %w", strings.Join(ids, ", "), explain(err, d.c.profile))
		}
		waiting = slices.DeleteFunc(waiting, func(r Resource) bool {
			if alive[r.ID] == "" {
				d.gone(r)
				return true
			}
			return false
		})
		if len(waiting) == 0 {
			break
		}
		if d.c.now().After(deadline) {
			for _, r := range waiting {
				d.keep(r, "it is still %s after %s; it costs nothing while it shuts down, and another sweep finds it if it stays", alive[r.ID], d.c.o.Patience)
			}
			break
		}
		if err := d.pause(ctx); err != nil {
			return fmt.Errorf("waiting for %s to end: %w", strings.Join(ids, ", "), err)
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
	revoke := map[string][]string{} // action and group -> rules
	err := awswire.Pages(ctx, d.c.wire, "DescribeSecurityGroupRules", awswire.Params{}.Filter("group-id", ids...), func(page awswire.SecurityGroupRules) {
		for _, r := range page.Rules {
			if r.Other == "" || r.Other == r.Group || !slices.Contains(ids, r.Group) || !slices.Contains(ids, r.Other) {
				continue
			}
			action := "RevokeSecurityGroupIngress"
			if r.Egress {
				action = "RevokeSecurityGroupEgress"
			}
			revoke[action+" "+r.Group] = append(revoke[action+" "+r.Group], r.ID)
		}
	})
	if err != nil {
		return d.stop(ctx, groups[0], err) // a group that cannot be deleted says so itself
	}
	for _, key := range slices.Sorted(maps.Keys(revoke)) {
		action, group, _ := strings.Cut(key, " ")
		var done awswire.Done
		if err := d.c.wire.EC2(ctx, action, awswire.Params{"GroupId": group}.List("SecurityGroupRuleId", revoke[key]...), &done); err != nil {
			if err := d.stop(ctx, Resource{Kind: KindSecurityGroup, ID: group}, err); err != nil {
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
		case !slices.Contains(patient, awswire.Code(err)):
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
	var wrapped = errors.Unwrap(err)
	if wrapped == nil {
		wrapped = err
	}
	return strings.TrimSuffix(wrapped.Error(), ".")
}

// once tries to delete a resource, with what has to be undone first.
func (d *deleter) once(ctx context.Context, r Resource) error {
	call := func(action string, params awswire.Params) error {
		var done awswire.Done
		return d.c.wire.EC2(ctx, action, params, &done)
	}
	switch r.Kind {
	case KindVolume:
		return call("DeleteVolume", awswire.Params{"VolumeId": r.ID})
	case KindInterface:
		return call("DeleteNetworkInterface", awswire.Params{"NetworkInterfaceId": r.ID})
	case KindAddress:
		return call("ReleaseAddress", awswire.Params{"AllocationId": r.ID})
	case KindKeyPair:
		return d.keyPair(ctx, r)
	case KindPlacementGroup:
		return d.placementGroup(ctx, r)
	case KindSecurityGroup:
		return call("DeleteSecurityGroup", awswire.Params{"GroupId": r.ID})
	case KindSubnet:
		return call("DeleteSubnet", awswire.Params{"SubnetId": r.ID})
	case KindRouteTable:
		return d.routeTable(ctx, r)
	case KindInternetGateway:
		if r.vpc != "" {
			if err := call("DetachInternetGateway", awswire.Params{"InternetGatewayId": r.ID, "VpcId": r.vpc}); err != nil && !gone(err) {
				return err
			}
		}
		return call("DeleteInternetGateway", awswire.Params{"InternetGatewayId": r.ID})
	case KindVPC:
		return call("DeleteVpc", awswire.Params{"VpcId": r.ID})
	}
	return fmt.Errorf("there is no way to delete a %s", r.Kind)
}

// keyPair deletes by name, after making sure that the name still belongs to the
// pair that was found.
func (d *deleter) keyPair(ctx context.Context, r Resource) error {
	var out awswire.KeyPairs
	if err := d.c.wire.EC2(ctx, "DescribeKeyPairs", ours(), &out); err != nil {
		return err
	}
	for _, k := range out.KeyPairs {
		if k.ID == r.ID && k.Name == r.Name && k.Tags.Get(TagMark) == "1" {
			var done awswire.Done
			return d.c.wire.EC2(ctx, "DeleteKeyPair", awswire.Params{"KeyName": r.Name}, &done)
		}
	}
	return nil
}

// placementGroup deletes by name, which is the only way, after making sure that
// the name still belongs to the group that was found.
func (d *deleter) placementGroup(ctx context.Context, r Resource) error {
	var out awswire.PlacementGroups
	if err := d.c.wire.EC2(ctx, "DescribePlacementGroups", ours(), &out); err != nil {
		return err
	}
	for _, g := range out.Groups {
		if g.ID == r.ID && g.Name == r.Name && g.Tags.Get(TagMark) == "1" {
			var done awswire.Done
			return d.c.wire.EC2(ctx, "DeletePlacementGroup", awswire.Params{"GroupName": r.Name}, &done)
		}
	}
	return nil
}

// routeTable takes a table away from its subnets and deletes it.
func (d *deleter) routeTable(ctx context.Context, r Resource) error {
	var out awswire.RouteTables
	if err := d.c.wire.EC2(ctx, "DescribeRouteTables", awswire.Params{}.Filter("route-table-id", r.ID), &out); err != nil {
		return err
	}
	var done awswire.Done
	for _, t := range out.Tables {
		for _, a := range t.Associations {
			if a.Main || a.ID == "" {
				continue
			}
			if err := d.c.wire.EC2(ctx, "DisassociateRouteTable", awswire.Params{"AssociationId": a.ID}, &done); err != nil && !gone(err) {
				return err
			}
		}
	}
	return d.c.wire.EC2(ctx, "DeleteRouteTable", awswire.Params{"RouteTableId": r.ID}, &done)
}

// blockers says what keeps a VPC or a subnet that is not ours to delete, empty
// when nothing of the kind is known: waiting for it would be in vain.
func (d *deleter) blockers(ctx context.Context, r Resource) string {
	if r.Kind != KindVPC && r.Kind != KindSubnet {
		return ""
	}
	filter := "vpc-id"
	if r.Kind == KindSubnet {
		filter = "subnet-id"
	}
	var foreign []string
	note := func(id string, tags awswire.Tags) {
		if tags.Get(TagMark) != "1" && len(foreign) < 5 {
			foreign = append(foreign, id)
		}
	}
	var (
		in = func() awswire.Params { return awswire.Params{}.Filter(filter, r.ID) }
		c  = d.c.wire
	)
	// A listing that fails names no blocker: deleting is tried all the same.
	_ = awswire.Pages(ctx, c, "DescribeInstances", in().Filter("instance-state-name", "pending", "running", "stopping", "stopped"), func(page awswire.Reservations) {
		for _, res := range page.Reservations {
			for _, i := range res.Instances {
				note(i.ID, i.Tags)
			}
		}
	})
	if r.Kind == KindVPC {
		_ = awswire.Pages(ctx, c, "DescribeSubnets", in(), func(page awswire.Subnets) {
			for _, s := range page.Subnets {
				note(s.ID, s.Tags)
			}
		})
		_ = awswire.Pages(ctx, c, "DescribeSecurityGroups", in(), func(page awswire.SecurityGroups) {
			for _, g := range page.Groups {
				if g.Name != "default" {
					note(g.ID, g.Tags)
				}
			}
		})
		_ = awswire.Pages(ctx, c, "DescribeRouteTables", in(), func(page awswire.RouteTables) {
			for _, t := range page.Tables {
				if !slices.ContainsFunc(t.Associations, awswire.MainRouteTable) {
					note(t.ID, t.Tags)
				}
			}
		})
		_ = awswire.Pages(ctx, c, "DescribeInternetGateways", awswire.Params{}.Filter("attachment.vpc-id", r.ID), func(page awswire.InternetGateways) {
			for _, g := range page.Gateways {
				note(g.ID, g.Tags)
			}
		})
	}
	if len(foreign) == 0 {
		return ""
	}
	return "it holds " + strings.Join(foreign, ", ") + ", which percore did not make and leaves alone; delete that yourself, then sweep again"
}
