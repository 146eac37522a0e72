package awswire

import "time"

// The parts of EC2's answers that percore reads, under the API's names.

// Tag is one tag of a resource.
type Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// Tags are the tags of a resource.
type Tags []Tag

// Get returns the value of a tag, empty when it is absent.
func (t Tags) Get(key string) string {
	for _, tag := range t {
		if tag.Key == key {
			return tag.Value
		}
	}
	return ""
}

// InstanceTypes answers DescribeInstanceTypes.
type InstanceTypes struct {
	Next
	Types []InstanceType `xml:"instanceTypeSet>item"`
}

// InstanceType is what a type of machine has.
type InstanceType struct {
	Name          string   `xml:"instanceType"`
	Burstable     bool     `xml:"burstablePerformanceSupported"`
	BareMetal     bool     `xml:"bareMetal"`
	Architectures []string `xml:"processorInfo>supportedArchitectures>item"` // arm64, x86_64, i386
	VCPUs         int      `xml:"vCpuInfo>defaultVCpus"`
	Cores         int      `xml:"vCpuInfo>defaultCores"`
	Threads       int      `xml:"vCpuInfo>defaultThreadsPerCore"`
	ValidThreads  []int    `xml:"vCpuInfo>validThreadsPerCore>item"`
	MemoryMiB     int      `xml:"memoryInfo>sizeInMiB"`
	Network       string   `xml:"networkInfo>networkPerformance"` // as AWS words it
	Placement     []string `xml:"placementGroupInfo>supportedStrategies>item"`
}

// Offerings answers DescribeInstanceTypeOfferings.
type Offerings struct {
	Next
	Offerings []struct {
		Type     string `xml:"instanceType"`
		Location string `xml:"location"`
	} `xml:"instanceTypeOfferingSet>item"`
}

// Zones answers DescribeAvailabilityZones.
type Zones struct {
	Zones []struct {
		Name  string `xml:"zoneName"`
		State string `xml:"zoneState"`
		Type  string `xml:"zoneType"`
	} `xml:"availabilityZoneInfo>item"`
}

// Reservations answers DescribeInstances.
type Reservations struct {
	Next
	Reservations []struct {
		Instances []Instance `xml:"instancesSet>item"`
	} `xml:"reservationSet>item"`
}

// Instance is one machine.
type Instance struct {
	ID        string    `xml:"instanceId"`
	Type      string    `xml:"instanceType"`
	State     string    `xml:"instanceState>name"`
	Reason    string    `xml:"reason"`
	Launch    time.Time `xml:"launchTime"`
	Zone      string    `xml:"placement>availabilityZone"`
	Group     string    `xml:"placement>groupName"`
	PublicIP  string    `xml:"ipAddress"`
	PrivateIP string    `xml:"privateIpAddress"`
	VPC       string    `xml:"vpcId"`
	Lifecycle string    `xml:"instanceLifecycle"` // spot, scheduled; empty: on demand
	Tags      Tags      `xml:"tagSet>item"`
}

// Volumes answers DescribeVolumes.
type Volumes struct {
	Next
	Volumes []Volume `xml:"volumeSet>item"`
}

// Volume is one disk.
type Volume struct {
	ID         string    `xml:"volumeId"`
	Type       string    `xml:"volumeType"`
	SizeGiB    int       `xml:"size"`
	IOPS       int       `xml:"iops"`
	Throughput int       `xml:"throughput"` // MiB/s
	State      string    `xml:"status"`
	Created    time.Time `xml:"createTime"`
	Tags       Tags      `xml:"tagSet>item"`
}

// Interfaces answers DescribeNetworkInterfaces.
type Interfaces struct {
	Next
	Interfaces []struct {
		ID    string `xml:"networkInterfaceId"`
		State string `xml:"status"`
		VPC   string `xml:"vpcId"`
		Tags  Tags   `xml:"tagSet>item"`
	} `xml:"networkInterfaceSet>item"`
}

// Addresses answers DescribeAddresses.
type Addresses struct {
	Addresses []struct {
		ID          string `xml:"allocationId"`
		IP          string `xml:"publicIp"`
		Association string `xml:"associationId"`
		Tags        Tags   `xml:"tagSet>item"`
	} `xml:"addressesSet>item"`
}

// KeyPairs answers DescribeKeyPairs.
type KeyPairs struct {
	KeyPairs []struct {
		ID      string    `xml:"keyPairId"`
		Name    string    `xml:"keyName"`
		Created time.Time `xml:"createTime"`
		Tags    Tags      `xml:"tagSet>item"`
	} `xml:"keySet>item"`
}

// PlacementGroups answers DescribePlacementGroups.
type PlacementGroups struct {
	Groups []struct {
		ID    string `xml:"groupId"`
		Name  string `xml:"groupName"`
		State string `xml:"state"`
		Tags  Tags   `xml:"tagSet>item"`
	} `xml:"placementGroupSet>item"`
}

// SecurityGroups answers DescribeSecurityGroups.
type SecurityGroups struct {
	Next
	Groups []struct {
		ID   string `xml:"groupId"`
		Name string `xml:"groupName"`
		VPC  string `xml:"vpcId"`
		Tags Tags   `xml:"tagSet>item"`
	} `xml:"securityGroupInfo>item"`
}

// SecurityGroupRules answers DescribeSecurityGroupRules.
type SecurityGroupRules struct {
	Next
	Rules []struct {
		ID     string `xml:"securityGroupRuleId"`
		Group  string `xml:"groupId"`
		Egress bool   `xml:"isEgress"`
		Other  string `xml:"referencedGroupInfo>groupId"` // the group that the rule lets in or out to
	} `xml:"securityGroupRuleSet>item"`
}

// Subnets answers DescribeSubnets.
type Subnets struct {
	Next
	Subnets []struct {
		ID   string `xml:"subnetId"`
		VPC  string `xml:"vpcId"`
		Zone string `xml:"availabilityZone"`
		Tags Tags   `xml:"tagSet>item"`
	} `xml:"subnetSet>item"`
}

// RouteTables answers DescribeRouteTables.
type RouteTables struct {
	Next
	Tables []struct {
		ID           string                  `xml:"routeTableId"`
		VPC          string                  `xml:"vpcId"`
		Associations []RouteTableAssociation `xml:"associationSet>item"`
		Tags         Tags                    `xml:"tagSet>item"`
	} `xml:"routeTableSet>item"`
}

// RouteTableAssociation is what a route table is used by: a subnet, or, as the
// main one, whatever has no table of its own.
type RouteTableAssociation struct {
	ID   string `xml:"routeTableAssociationId"`
	Main bool   `xml:"main"`
}

// MainRouteTable reports whether an association makes its table the main one
// of the VPC.
func MainRouteTable(a RouteTableAssociation) bool { return a.Main }

// InternetGateways answers DescribeInternetGateways.
type InternetGateways struct {
	Next
	Gateways []struct {
		ID       string `xml:"internetGatewayId"`
		Attached []struct {
			VPC string `xml:"vpcId"`
		} `xml:"attachmentSet>item"`
		Tags Tags `xml:"tagSet>item"`
	} `xml:"internetGatewaySet>item"`
}

// VPCs answers DescribeVpcs.
type VPCs struct {
	Next
	VPCs []struct {
		ID      string `xml:"vpcId"`
		Default bool   `xml:"isDefault"`
		Tags    Tags   `xml:"tagSet>item"`
	} `xml:"vpcSet>item"`
}

// ResourceTags answers DescribeTags.
type ResourceTags struct {
	Next
	Tags []struct {
		ID    string `xml:"resourceId"`
		Kind  string `xml:"resourceType"`
		Key   string `xml:"key"`
		Value string `xml:"value"`
	} `xml:"tagSet>item"`
}

// Done answers actions whose answer says nothing more.
type Done struct{}
