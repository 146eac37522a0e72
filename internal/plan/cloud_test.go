package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

func TestShippedCloudProfiles(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"aws-graviton": {"c8g.xlarge": 2, "c8gn.xlarge": 1},
		"aws-x86":      {"c7i.2xlarge": 2, "c6in.2xlarge": 1},
		"hosts":        {},
	} {
		p, err := FindProfile("../..", name)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Types()
		if len(got) != len(want) {
			t.Errorf("%s: types %v, want %v", name, got, want)
		}
		for typ, n := range want {
			if got[typ] != n {
				t.Errorf("%s: types %v, want %v", name, got, want)
			}
		}
		if pairs := p.SharedRoles(); len(pairs) != 0 {
			t.Errorf("%s: machines of their own share %v", name, pairs)
		}
	}
}

// change reads a shipped profile with one text in it replaced.
func change(t *testing.T, name, old, new string) (Profile, error) {
	t.Helper()
	text, err := os.ReadFile("../../profiles/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("profile %s does not hold %q", name, old)
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return FindProfile("", path)
}

func TestBadCloudProfiles(t *testing.T) {
	for _, tt := range []struct{ profile, old, new, want string }{
		{"aws-graviton", "provider: aws", "provider: azure", `cloud.provider "azure" is unknown; write aws or hosts`},
		{"aws-graviton", "app: c8g.xlarge", "app: t4g.xlarge", "burstable"},
		{"aws-graviton", "app: c8g.xlarge", "app: large", "is not an instance type"},
		{"aws-graviton", "load: c8gn.xlarge", "cache: c8gn.xlarge", `a role "cache"`},
		{"aws-graviton", ", load: c8gn.xlarge", "", "no type for role load"},
		{"aws-graviton", "lifetime: 4h", "lifetime: 400h", "cloud.lifetime is 400h"},
		{"aws-graviton", "lifetime: 4h", "region: here", `cloud.region is "here"`},
		{"aws-graviton", "lifetime: 4h", "zone: eu-central-1a", "together with its region"},
		{"aws-graviton", "size_gib: 40", "size_gib: 4", "size_gib is 4; write 10"},
		{"aws-graviton", "iops: 6000", "iops: 30000", "iops is 30000; write 3000 to 16000 for 40 GiB"},
		{"aws-graviton", "throughput_mib: 250", "throughput_mib: 2000", "throughput_mib is 2000; write 125 to 1000"},
		{"aws-graviton", "cloud:", "load: {count: 99}\ncloud:", "load.count is 99"},
		{"aws-graviton", "cloud:", "load: {count: 0}\ncloud:", "load.count is 0"},
		{"m4pro", "flavour: auto", "flavour: auto\nload: {count: 0}", "load.count is 0"},
		{"aws-graviton", "lifetime: 4h", "hosts: [{role: app, ssh: a}]", "are for provider hosts"},
		{"m4pro", "flavour: auto", "flavour: auto\nload: {count: 2}", "no cloud section"},
		{"hosts", "provider: hosts", "provider: hosts\n  region: eu-central-1", "are for provider aws"},
		{"hosts", "role: db,", "role: cache,", `the role "cache"`},
		{"hosts", `"root@db.example.com"`, `"-oProxyCommand=x@db"`, "names no host"},
		{"hosts", `"root@db.example.com"`, `"root@db:ssh"`, "is not a port"},
		{"hosts", "192.0.2.12", "192.0.2.11", "a machine of its own"},
		{"hosts", "root@db.example.com", "admin@APP.example.com:22", "reaches the machine of another role"},
		{"hosts", "192.0.2.12", `"host with space"`, "neither an IP address nor the name of a host"},
		{"hosts", "192.0.2.12", "10.0.0.300", "neither an IP address nor the name of a host"},
		{"hosts", "192.0.2.12", "-db", "neither an IP address nor the name of a host"},
		{"hosts", "192.0.2.12", "127.0.0.1", "every machine's own"},
		{"hosts", "192.0.2.12", `"::1"`, "every machine's own"},
		{"hosts", "192.0.2.12", "Localhost", "every machine's own"},
		{"hosts", "role: load,", "role: db,", "2 machines of role db"},
		{"hosts", "cloud:", "load: {count: 2}\ncloud:", "1 machines of role load and load.count is 2"},
	} {
		_, err := change(t, tt.profile, tt.old, tt.new)
		if err == nil || !strings.Contains(said.Err(err), tt.want) || !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s with %q: %v, want one line of bad input that says %q", tt.profile, tt.new, err, tt.want)
		}
	}
}

func TestResolveHosts(t *testing.T) {
	p, err := change(t, "hosts", "cpus: auto", "cpus: auto, memory: 3GiB")
	if err != nil {
		t.Fatal(err)
	}
	m := map[Role]Machine{App: {CPUs: 4, MemoryBytes: 8 << 30}, DB: {CPUs: 8, MemoryBytes: 2 << 30}, Load: {CPUs: 1, MemoryBytes: 16 << 30}}
	r, err := p.ResolveHosts(m)
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[Role]Resources{App: {"0-3", 3 << 30}, DB: {"0-7", Bytes(2<<30) / 5 * 4 &^ (1<<20 - 1)}, Load: {"0", 1 << 30}} {
		if r.Roles[role] != want {
			t.Errorf("%s: %+v, want %+v", role, r.Roles[role], want)
		}
	}
	if p.Roles[App].CPUs != AutoCPUs {
		t.Error("the profile itself was changed")
	}
	m[App] = Machine{CPUs: 4, MemoryBytes: 1 << 30}
	if _, err := p.ResolveHosts(m); err == nil || !strings.Contains(said.Err(err), "3GiB") {
		t.Errorf("a machine that is too small was taken: %v", err)
	}
	g, err := FindProfile("../..", "aws-graviton")
	if err != nil {
		t.Fatal(err)
	}
	m[App] = Machine{CPUs: 2, MemoryBytes: 8 << 30}
	if _, err := g.ResolveHosts(m); err == nil || !strings.Contains(said.Err(err), "its host has 2 CPUs") {
		t.Errorf("two CPUs were taken for four: %v", err)
	}
}

func TestSplitSSH(t *testing.T) {
	for _, tt := range []struct {
		in, user, host string
		port           int
	}{
		{"far", "", "far", 0}, {"me@far", "me", "far", 0}, {"me@far:2222", "me", "far", 2222},
		{"me@[2001:db8::1]:2222", "me", "2001:db8::1", 2222}, {"2001:db8::1", "", "2001:db8::1", 0},
	} {
		user, host, port, err := SplitSSH(tt.in)
		if user != tt.user || host != tt.host || port != tt.port || err != nil {
			t.Errorf("%s: %q %q %d %v", tt.in, user, host, port, err)
		}
	}
}
