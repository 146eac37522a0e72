package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// cloud plays the part of EC2 that deletes, and refuses to delete what
// something else depends on, as EC2 does.
type cloud struct {
	sync.Mutex
	t       *testing.T
	has     map[string]bool     // id -> exists
	needs   map[string][]string // id -> ids that must be gone first
	refuse  map[string]string   // id -> code
	ending  map[string]int      // instance -> polls until it is terminated
	order   []string            // what was deleted
	actions []string
}

func (c *cloud) handle(w http.ResponseWriter, r *http.Request) {
	c.Lock()
	defer c.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil { // the caller has stopped waiting
		return
	}
	form, _ := url.ParseQuery(string(body))
	action := form.Get("Action")
	c.actions = append(c.actions, action)
	no := func(code string) {
		w.WriteHeader(400)
		fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>Because of %s.</Message></Error></Errors></Response>", code, code)
	}
	ids := map[string]string{
		"TerminateInstances": "InstanceId.1", "DeleteVolume": "VolumeId", "DeleteNetworkInterface": "NetworkInterfaceId", "ReleaseAddress": "AllocationId",
		"DeleteSecurityGroup": "GroupId", "DeleteSubnet": "SubnetId", "DeleteRouteTable": "RouteTableId", "DeleteInternetGateway": "InternetGatewayId", "DeleteVpc": "VpcId",
	}
	if key := ids[action]; key != "" {
		id := form.Get(key)
		switch {
		case c.refuse[id] != "":
			no(c.refuse[id])
			return
		case !c.has[id]:
			no("InvalidThing.NotFound")
			return
		}
		for _, other := range c.needs[id] {
			if c.has[other] {
				no("DependencyViolation")
				return
			}
		}
		if action == "TerminateInstances" {
			if _, known := c.ending[id]; !known {
				c.ending[id] = 2
			}
		} else {
			delete(c.has, id)
			c.order = append(c.order, id)
		}
		io.WriteString(w, "<X><return>true</return></X>")
		return
	}
	switch action {
	case "DescribeInstances":
		if form.Get("Filter.1.Name") != "instance-id" {
			io.WriteString(w, "<X/>")
			return
		}
		io.WriteString(w, "<X><reservationSet><item><instancesSet>")
		for id, polls := range c.ending {
			state := "shutting-down"
			if polls == 0 {
				state = "terminated"
				if c.has[id] {
					delete(c.has, id)
					c.order = append(c.order, id)
				}
			} else {
				c.ending[id]--
			}
			fmt.Fprintf(w, "<item><instanceId>%s</instanceId><instanceState><name>%s</name></instanceState></item>", id, state)
		}
		io.WriteString(w, "</instancesSet></item></reservationSet></X>")
	case "DescribeSecurityGroupRules":
		io.WriteString(w, "<X><securityGroupRuleSet>"+
			"<item><securityGroupRuleId>sgr-1</securityGroupRuleId><groupId>sg-1</groupId><isEgress>false</isEgress><referencedGroupInfo><groupId>sg-2</groupId></referencedGroupInfo></item>"+
			"<item><securityGroupRuleId>sgr-2</securityGroupRuleId><groupId>sg-1</groupId><isEgress>false</isEgress><referencedGroupInfo><groupId>sg-1</groupId></referencedGroupInfo></item>"+
			"<item><securityGroupRuleId>sgr-3</securityGroupRuleId><groupId>sg-foreign</groupId><isEgress>false</isEgress><referencedGroupInfo><groupId>sg-1</groupId></referencedGroupInfo></item>"+
			"</securityGroupRuleSet></X>")
	case "RevokeSecurityGroupIngress":
		if form.Get("GroupId") != "sg-1" || form.Get("SecurityGroupRuleId.1") != "sgr-1" || form.Get("SecurityGroupRuleId.2") != "" {
			c.t.Errorf("revoked %v", form)
		}
		c.needs["sg-2"] = nil
		io.WriteString(w, "<X/>")
	case "DescribePlacementGroups": // the name belongs to another group by now
		io.WriteString(w, "<X><placementGroupSet><item><groupId>pg-new</groupId><groupName>g</groupName><tagSet><item><key>percore</key><value>1</value></item></tagSet></item></placementGroupSet></X>")
	case "DescribeKeyPairs", "DescribeRouteTables", "DescribeSubnets", "DescribeSecurityGroups", "DescribeInternetGateways", "DetachInternetGateway":
		io.WriteString(w, "<X/>")
	default:
		c.t.Errorf("%s was called", action)
		no("InvalidAction")
	}
}

// things are one of each kind, in no good order.
func things() []Resource {
	return []Resource{
		{Kind: KindVPC, ID: "vpc-1", vpc: "vpc-1"}, {Kind: KindInternetGateway, ID: "igw-1", vpc: "vpc-1"}, {Kind: KindSubnet, ID: "subnet-1", vpc: "vpc-1"},
		{Kind: KindSecurityGroup, ID: "sg-2"}, {Kind: KindSecurityGroup, ID: "sg-1"}, {Kind: KindRouteTable, ID: "rtb-1"}, {Kind: KindPlacementGroup, ID: "pg-1", Name: "g"},
		{Kind: KindKeyPair, ID: "key-1", Name: "k"}, {Kind: KindAddress, ID: "eipalloc-1"}, {Kind: KindInterface, ID: "eni-1"}, {Kind: KindVolume, ID: "vol-1"}, {Kind: KindInstance, ID: "i-1"},
	}
}

func play(t *testing.T) (*cloud, *Client) {
	t.Helper()
	c := &cloud{t: t, has: map[string]bool{}, refuse: map[string]string{}, ending: map[string]int{}, needs: map[string][]string{
		"vpc-1": {"igw-1", "subnet-1", "sg-1", "sg-2", "rtb-1"}, "subnet-1": {"i-1", "eni-1"}, "sg-1": {"i-1"}, "sg-2": {"sg-1"}, "vol-1": {"i-1"}, "eni-1": {"i-1"},
	}}
	for _, r := range things() {
		c.has[r.ID] = true
	}
	return c, against(t, nil, c.handle)
}

func TestDelete(t *testing.T) {
	cloud, c := play(t)
	var said []string
	left, err := c.Delete(t.Context(), things(), func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil || len(left) != 0 {
		t.Fatalf("left %v, %v", left, err)
	}
	want := []string{"i-1", "vol-1", "eni-1", "eipalloc-1", "sg-2", "sg-1", "subnet-1", "rtb-1", "igw-1", "vpc-1"}
	if !slices.Equal(cloud.order, want) {
		t.Errorf("deleted %v, want %v", cloud.order, want)
	}
	if slices.Contains(cloud.actions, "DeletePlacementGroup") {
		t.Error("a placement group was deleted that only has the name of the one that was found")
	}
	if len(said) == 0 || said[0] != "terminating instance i-1" {
		t.Errorf("said %q", said)
	}
	cloud.order = nil
	if left, err := c.Delete(t.Context(), things(), nil); err != nil || len(left) != 0 || len(cloud.order) != 0 {
		t.Errorf("again: left %v, %v, deleted %v", left, err, cloud.order)
	}
}

func TestDeleteWaits(t *testing.T) {
	cloud, c := play(t)
	cloud.needs["subnet-1"] = append(cloud.needs["subnet-1"], "leftover")
	cloud.has["leftover"] = true
	c.o.Patience = 10 * time.Second
	go func() {
		for {
			cloud.Lock()
			if n := len(cloud.actions); n > 5 && cloud.actions[n-1] == "DeleteSubnet" && cloud.actions[n-2] == "DeleteSubnet" {
				delete(cloud.has, "leftover")
				cloud.Unlock()
				return
			}
			cloud.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	if left, err := c.Delete(t.Context(), things(), nil); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDeleteLeaves(t *testing.T) {
	cloud, c := play(t)
	cloud.needs["subnet-1"] = append(cloud.needs["subnet-1"], "forever")
	cloud.has["forever"] = true
	cloud.refuse["vol-1"] = "UnauthorizedOperation"
	cloud.refuse["eipalloc-1"] = "SomethingNew"
	all := append(things(), Resource{Kind: "nat-gateway", ID: "nat-1"})
	left, err := c.Delete(t.Context(), all, nil)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, l := range left {
		reasons[l.ID] = l.Reason
	}
	for id, want := range map[string]string{
		"vol-1": "docs/iam-policy.json", "eipalloc-1": "SomethingNew: Because of SomethingNew", "subnet-1": "something still depends on it after 200ms",
		"vpc-1": "something still depends on it", "nat-1": "percore does not make resources of this kind",
	} {
		if !strings.Contains(reasons[id], want) {
			t.Errorf("%s is left because %q, want %q", id, reasons[id], want)
		}
	}
	if len(left) != 5 {
		t.Errorf("left %v", left)
	}
	if got := left[0].String(); !strings.HasPrefix(got, "volume vol-1: ") {
		t.Errorf("left %q", got)
	}
}

func TestDeleteInstanceStays(t *testing.T) {
	cloud, c := play(t)
	cloud.ending["i-1"] = 1 << 30
	left, err := c.Delete(t.Context(), []Resource{{Kind: KindInstance, ID: "i-1"}}, nil)
	if err != nil || len(left) != 1 || !strings.Contains(left[0].Reason, "still shutting-down after 200ms") {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDeleteCancelled(t *testing.T) {
	cloud, c := play(t)
	cloud.needs["sg-1"] = append(cloud.needs["sg-1"], "forever")
	cloud.has["forever"] = true
	c.o.Patience = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	left, err := c.Delete(ctx, things(), func(format string, args ...any) {
		if strings.HasPrefix(format, "waiting") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	var ids []string
	for _, l := range left {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	if want := []string{"igw-1", "rtb-1", "sg-1", "subnet-1", "vpc-1"}; !slices.Equal(ids, want) {
		t.Errorf("left %v, want %v", ids, want)
	}
}
