package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// Defaults of a cloud section.
const (
	DefaultLifetime = 4 * time.Hour
	MaxLifetime     = 24 * time.Hour
	maxLoadHosts    = 16
)

// Limits and defaults of a gp3 volume, as AWS documents them: 3,000 IOPS and
// 125 MiB/s are part of its price, the most is 500 IOPS per GiB and a quarter
// of a MiB/s per IOPS.
const (
	DefaultDiskGiB       = 30
	minDiskGiB           = 10 // what the image, the images of the run and the seed need
	maxDiskGiB           = 16384
	DefaultIOPS          = 3000
	maxIOPS              = 16000
	iopsPerGiB           = 500
	DefaultThroughputMiB = 125
	maxThroughputMiB     = 1000
)

// Filled is the disk with the defaults in place of what was left out.
func (d Disk) Filled() Disk {
	if d.SizeGiB == 0 {
		d.SizeGiB = DefaultDiskGiB
	}
	if d.IOPS == 0 {
		d.IOPS = DefaultIOPS
	}
	if d.ThroughputMiB == 0 {
		d.ThroughputMiB = DefaultThroughputMiB
	}
	return d
}

// Hosts is the number of load hosts.
func (g Generators) Hosts() int { return max(g.Count, 1) }

// Grouped reports whether the instances go into a cluster placement group.
func (c Cloud) Grouped() bool { return c.PlacementGroup == nil || *c.PlacementGroup }

// Life is how long the machines live at most.
func (c Cloud) Life() time.Duration {
	if c.Lifetime == 0 {
		return DefaultLifetime
	}
	return c.Lifetime.Std()
}

// Types counts the instances of each type.
func (p Profile) Types() map[string]int {
	counts := map[string]int{}
	if p.Cloud == nil || p.Cloud.Provider != ProviderAWS {
		return counts
	}
	for _, r := range Roles() {
		n := 1
		if r == Load {
			n = p.Load.Hosts()
		}
		counts[p.Cloud.Instances[r]] += n
	}
	return counts
}

var (
	instanceType = regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9-]+$`)
	regionName   = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	hostName     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	// burstable types run on credits: what one carries depends on the hour.
	burstable = regexp.MustCompile(`^t[0-9][a-z]*\.`)
)

// IsRegion reports whether a text has the form of an AWS region's name.
func IsRegion(name string) bool { return regionName.MatchString(name) }

func (p Profile) checkCloud() error {
	if p.Load.Count < 1 || p.Load.Count > maxLoadHosts {
		return fail.Input("load.count is %d", p.Load.Count).On("load.count").Try("write 1 to %d", maxLoadHosts)
	}
	if p.Cloud == nil {
		if p.Load.Count > 1 {
			return fail.Input("load.count is %d and there is no cloud section", p.Load.Count).On("load.count").Try("several load generators need hosts of their own")
		}
		return nil
	}
	c := *p.Cloud
	if c.Lifetime != 0 && (c.Lifetime.Std() < 10*time.Minute || c.Lifetime.Std() > MaxLifetime) {
		return fail.Input("cloud.lifetime is %s", c.Lifetime).On("cloud.lifetime").Try("write 10m to %s", MaxLifetime)
	}
	switch c.Provider {
	case ProviderAWS:
		return p.checkAWS()
	case ProviderHosts:
		return p.checkHosts()
	}
	return fail.Input("cloud.provider %q is unknown", c.Provider).On("cloud.provider").Try("write aws or hosts")
}

func (p Profile) checkAWS() error {
	c := *p.Cloud
	if len(c.Hosts) > 0 || c.IdentityFile != "" {
		return fail.Input("cloud.hosts and cloud.identity_file are for provider hosts").On("cloud.hosts").Try("leave them out, or write provider: hosts")
	}
	for r := range c.Instances {
		if !slices.Contains(Roles(), r) {
			return fail.Input("cloud.instances has a role %q", r).On("cloud.instances.%s", r).Try("the roles are app, db and load")
		}
	}
	for _, r := range Roles() {
		switch t := c.Instances[r]; {
		case t == "":
			return fail.Input("cloud.instances has no type for role %s", r).On("cloud.instances").Try("write one such as c8g.xlarge")
		case burstable.MatchString(t):
			return fail.Input("cloud.instances.%s is %s, a burstable type, which carries less when its credits are spent", r, t).On("cloud.instances.%s", r).Try("take one such as c8g.xlarge")
		case !instanceType.MatchString(t):
			return fail.Input("cloud.instances.%s is %q, which is not an instance type", r, t).On("cloud.instances.%s", r).Try("write one such as c8g.xlarge")
		}
	}
	if c.Region != "" && !regionName.MatchString(c.Region) {
		return fail.Input("cloud.region is %q", c.Region).On("cloud.region").Try("write one such as eu-central-1")
	}
	if c.Zone != "" && (c.Region == "" || !strings.HasPrefix(c.Zone, c.Region)) {
		return fail.Input("cloud.zone is %q and cloud.region %q", c.Zone, c.Region).On("cloud.zone").Try("write a zone together with its region")
	}
	for r, d := range c.Disks {
		if !slices.Contains(Roles(), r) {
			return fail.Input("cloud.disks has a role %q", r).On("cloud.disks.%s", r).Try("the roles are app, db and load")
		}
		switch d = d.Filled(); {
		case d.SizeGiB < minDiskGiB || d.SizeGiB > maxDiskGiB:
			return fail.Input("cloud.disks.%s.size_gib is %d", r, d.SizeGiB).On("cloud.disks.%s.size_gib", r).Try("write %d to %d", minDiskGiB, maxDiskGiB)
		case d.IOPS < DefaultIOPS || d.IOPS > maxIOPS || d.IOPS > iopsPerGiB*d.SizeGiB:
			return fail.Input("cloud.disks.%s.iops is %d", r, d.IOPS).On("cloud.disks.%s.iops", r).Try("write %d to %d for %d GiB", DefaultIOPS, min(maxIOPS, iopsPerGiB*d.SizeGiB), d.SizeGiB)
		case d.ThroughputMiB < DefaultThroughputMiB || d.ThroughputMiB > maxThroughputMiB || 4*d.ThroughputMiB > d.IOPS:
			return fail.Input("cloud.disks.%s.throughput_mib is %d", r, d.ThroughputMiB).On("cloud.disks.%s.throughput_mib", r).Try("write %d to %d for %d IOPS", DefaultThroughputMiB, min(maxThroughputMiB, d.IOPS/4), d.IOPS)
		}
	}
	return nil
}

func (p Profile) checkHosts() error {
	c := *p.Cloud
	if len(c.Instances) > 0 || len(c.Disks) > 0 || c.Region != "" || c.Zone != "" || c.PlacementGroup != nil {
		return fail.Input("cloud.region, zone, instances, disks and placement_group are for provider aws").On("cloud").Try("leave them out, or write provider: aws")
	}
	counts := map[Role]int{}
	var names, addresses, ssh []string
	for i, h := range p.NamedHosts() {
		where := fmt.Sprintf("cloud.hosts[%d]", i)
		if !slices.Contains(Roles(), h.Role) {
			return fail.Input("%s has the role %q", where, h.Role).On("%s.role", where).Try("the roles are app, db and load")
		}
		_, host, port, err := SplitSSH(h.SSH)
		if err != nil {
			return fail.Input("%s.ssh is %q: %w", where, h.SSH, err).On("%s.ssh", where).Try("write user@host or user@host:port")
		}
		to := net.JoinHostPort(strings.ToLower(host), strconv.Itoa(cmp.Or(port, 22)))
		if !hostName.MatchString(h.Name) {
			return fail.Input("%s.name is %q", where, h.Name).On("%s.name", where).Try("write lower-case letters, digits and dashes")
		}
		if slices.Contains(names, h.Name) {
			return fail.Input("%s.name is %q, which another host has", where, h.Name).On("%s.name", where).Try("give each a name of its own")
		}
		if slices.Contains(ssh, to) {
			return fail.Input("%s.ssh is %q, which reaches the machine of another role", where, h.SSH).On("%s.ssh", where).Try("each role needs a machine of its own, and one machine with all roles is what %s measures", fail.Call("run"))
		}
		if err := checkAddress(h.Address); err != nil {
			return fail.Input("%s has the address %q, %w", where, h.Address, err).On("%s.address", where).Try("write in address the IP address or the name by which the other machines reach it")
		}
		if slices.Contains(addresses, h.Address) {
			return fail.Input("%s has the address %q, which another host has", where, h.Address).On("%s.address", where).Try("each role needs a machine of its own, and one machine with all roles is what %s measures", fail.Call("run"))
		}
		names, addresses, ssh = append(names, h.Name), append(addresses, h.Address), append(ssh, to)
		counts[h.Role]++
	}
	for _, r := range []Role{App, DB} {
		if counts[r] != 1 {
			return fail.Input("cloud.hosts has %d machines of role %s", counts[r], r).On("cloud.hosts").Try("write one")
		}
	}
	if want := p.Load.Hosts(); counts[Load] != want {
		return fail.Input("cloud.hosts has %d machines of role load and load.count is %d", counts[Load], want).On("cloud.hosts").Try("write as many machines as load.count says")
	}
	return nil
}

// dnsName is what a resolver may be asked for; the last part of one is no number.
var (
	dnsName    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	numberLast = regexp.MustCompile(`(^|\.)[0-9]+$`)
)

// checkAddress refuses what another machine cannot be reached by.
func checkAddress(address string) error {
	ip, err := netip.ParseAddr(address)
	switch {
	case err == nil && (ip.IsLoopback() || ip.IsUnspecified()), strings.EqualFold(address, "localhost"):
		return fmt.Errorf("which is every machine's own")
	case err == nil:
		return nil
	case !dnsName.MatchString(address) || numberLast.MatchString(address):
		return fmt.Errorf("which is neither an IP address nor the name of a host")
	}
	return nil
}

// NamedHosts are the machines of provider hosts with their names and addresses
// filled in.
func (p Profile) NamedHosts() []CloudHost {
	if p.Cloud == nil {
		return nil
	}
	counts := map[Role]int{}
	hosts := slices.Clone(p.Cloud.Hosts)
	for i := range hosts {
		h := &hosts[i]
		counts[h.Role]++
		if h.Name == "" {
			h.Name = HostName(h.Role, counts[h.Role])
		}
		if h.Address == "" {
			_, h.Address, _, _ = SplitSSH(h.SSH)
		}
	}
	return hosts
}

// SplitSSH takes an ssh destination apart: user@host:port, of which only the
// host must be there. The port is 0 where there is none: ssh's configuration may
// have one for the host.
func SplitSSH(s string) (user, host string, port int, err error) {
	rest := s
	if u, after, ok := strings.Cut(s, "@"); ok {
		if user, rest = u, after; u == "" {
			return "", "", 0, fmt.Errorf("the user in front of @ is missing")
		}
	}
	host = rest
	if h, p, splitErr := net.SplitHostPort(rest); splitErr == nil {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 {
			return "", "", 0, fmt.Errorf("%q is not a port", p)
		}
		host, port = h, n
	} else if strings.Count(rest, ":") == 1 {
		return "", "", 0, fmt.Errorf("%q is not host:port", rest)
	}
	host = strings.Trim(host, "[]")
	// A leading dash would be an option of ssh.
	if host == "" || strings.HasPrefix(host, "-") || strings.HasPrefix(user, "-") || strings.ContainsAny(user+host, " \t\n\"'\\/@#*?") {
		return "", "", 0, fmt.Errorf("it names no host")
	}
	return user, host, port, nil
}

// ResolveHosts fits the profile to machines of their own: auto becomes all CPUs
// of a role's machine, and a machine that is too small is refused with the
// numbers. Several load hosts are measured alike, so m holds the smallest.
func (p Profile) ResolveHosts(m map[Role]Machine) (Profile, error) {
	p.Roles = maps.Clone(p.Roles)
	for _, role := range Roles() {
		r, have := p.Roles[role], m[role]
		if r.CPUs == AutoCPUs {
			all := make([]int, have.CPUs)
			for i := range all {
				all[i] = i
			}
			r.CPUs = FormatCPUs(all)
		}
		if r.Memory == 0 {
			r.Memory = min(publishedMemory(role), Bytes(have.MemoryBytes)/5*4) &^ (1<<20 - 1)
		}
		p.Roles[role] = r
		highest, err := p.highestCPU(role)
		if err != nil {
			return Profile{}, err
		}
		if highest >= have.CPUs {
			return Profile{}, fail.Input("profile %s gives role %s CPUs up to number %d, and its host has %d CPUs", p.Name, role, highest, have.CPUs).Try("take a larger machine, or write fewer CPUs")
		}
		if int64(r.Memory) > have.MemoryBytes {
			return Profile{}, fail.Input("profile %s gives role %s %s of memory, and its host has %.1f GiB", p.Name, role, r.Memory, gib(have.MemoryBytes)).Try("take a larger machine, or write less")
		}
	}
	return p, nil
}
