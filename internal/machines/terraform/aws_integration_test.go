//go:build integration

//integration:apart

package terraform

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/mototest"
	"github.com/percore/percore/internal/testkit/said"
)

const (
	awsModule = "../../../infra/aws"
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJmzTLXZ1Bsqmc2DDTb9Xc3l2BDJBzO4mKPvXSTVGSpS percore"
)

func awsVars(changes map[string]any) map[string]any {
	vars := map[string]any{
		"run_id": "r1", "region": "us-east-1", "zone": "us-east-1a", "expires": "2099-01-02T03:04:05Z",
		"ssh_public_key": publicKey, "ssh_cidrs": []string{"203.0.113.7/32"},
	}
	maps.Copy(vars, changes)
	return vars
}

// What the module takes is checked before any provider is asked, so that this
// needs none.
func TestAWSRefuses(t *testing.T) {
	b, source, dir := binary(t), t.TempDir(), t.TempDir()
	text, err := os.ReadFile(filepath.Join(awsModule, "variables.tf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "variables.tf"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	disk := func(k string, v int) map[string]any {
		return map[string]any{"disks": map[string]any{"db": map[string]any{k: v}}}
	}
	if _, err := module(t, b, dir, source, awsVars(nil)).Plan(t.Context()); err != nil {
		t.Fatalf("what is right was refused: %v", err)
	}
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{"run", map[string]any{"run_id": "a b"}, `run_id is "a b"; write letters`},
		{"time", map[string]any{"expires": "tomorrow"}, `expires is "tomorrow"; write a time in UTC`},
		{"time elsewhere", map[string]any{"expires": "2099-01-02T03:04:05+01:00"}, "write a time in UTC"},
		{"region", map[string]any{"region": "us-east-1a"}, `region is "us-east-1a"; write a region's name`},
		{"zone", map[string]any{"zone": "eu-west-1a"}, `zone is "eu-west-1a"; write a zone of us-east-1, such as us-east-1a`},
		{"type", map[string]any{"instance_types": map[string]any{"db": "big"}}, `instance_types has db = "big"; write a type's name`},
		{"load hosts", map[string]any{"load_count": 0}, "load_count is 0; write a whole number from 1 to 16"},
		{"size", disk("size_gib", 5), "disks has db.size_gib = 5; write 10 to 16384"},
		{"IOPS", disk("iops", 16001), "disks has db.iops = 16001 for 30 GiB; write 3000 to 16000"},
		{"IOPS for the size", disk("iops", 15001), "db.iops = 15001 for 30 GiB; write 3000 to 16000, and at most 500 for each GiB"},
		{"throughput", disk("throughput_mib", 100), "disks has db.throughput_mib = 100 for 3000 IOPS; write 125 to 1000"},
		{"throughput for the IOPS", disk("throughput_mib", 751), "db.throughput_mib = 751 for 3000 IOPS"},
		{"image", map[string]any{"ami_ids": map[string]any{"x86_64": "ami-1"}}, `ami_ids has x86_64 = "ami-1"; write amd64 or arm64`},
		{"user", map[string]any{"ssh_user": "-oX=y"}, `ssh_user is "-oX=y"; write the name of a user`},
		{"another kind of key", map[string]any{"ssh_public_key": "ssh-rsa AAAA"}, "write one line that begins with ssh-ed25519"},
		{"two keys", map[string]any{"ssh_public_key": publicKey + "\n" + publicKey}, "write one line that begins with ssh-ed25519"},
		{"nobody", map[string]any{"ssh_cidrs": []string{}}, "ssh_cidrs is empty"},
		{"everybody", map[string]any{"ssh_cidrs": []string{"203.0.113.7/32", "0.0.0.0/0"}}, "ssh_cidrs has 0.0.0.0/0, which opens ssh to too many; write your own address"},
		{"half of everybody", map[string]any{"ssh_cidrs": []string{"0.0.0.0/1", "128.0.0.0/1"}}, "ssh_cidrs has 0.0.0.0/1, 128.0.0.0/1, which opens"},
		{"everybody by IPv6", map[string]any{"ssh_cidrs": []string{"::/0"}}, `ssh_cidrs has "::/0"; write IPv4 networks`},
		{"no network", map[string]any{"ssh_cidrs": []string{"203.0.113.7"}}, `ssh_cidrs has "203.0.113.7"; write IPv4 networks`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := module(t, b, dir, source, awsVars(tt.changes)).Plan(t.Context())
			refused(t, err, tt.want)
		})
	}
}

// aws starts what plays AWS and returns a folder whose module will use it.
func aws(t *testing.T) (server *mototest.Server, dir string) {
	t.Helper()
	if os.Getenv(ProviderDir) == "" {
		t.Skipf("%s is not set, and the AWS provider is not looked for elsewhere: infra/aws was linted and its variables were tried, and was not planned, applied and destroyed", ProviderDir)
	}
	server = mototest.Start(t)
	server.Setenv(t)
	dir = t.TempDir()
	override := fmt.Sprintf("provider \"aws\" {\n  endpoints {\n    ec2 = %[1]q\n    ssm = %[1]q\n    sts = %[1]q\n  }\n}\n", server.URL)
	if err := os.WriteFile(filepath.Join(dir, "endpoints_override.tf"), []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	return server, dir
}

// planned is the values of what the last Plan would make, by address.
func planned(t *testing.T, m *Module) map[string]map[string]any {
	t.Helper()
	plan, err := m.quiet.ShowPlanFile(t.Context(), filepath.Join(m.dir, planFile))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]map[string]any{}
	for _, r := range plan.PlannedValues.RootModule.Resources {
		values[r.Address] = r.AttributeValues
	}
	return values
}

// From nothing to machines of two architectures, and back to nothing.
func TestAWS(t *testing.T) {
	server, dir := aws(t)
	ctx, b := t.Context(), binary(t)
	m := module(t, b, dir, awsModule, awsVars(map[string]any{
		"load_count":     2,
		"instance_types": map[string]any{"app": "c7i.2xlarge"},
		"disks":          map[string]any{"db": map[string]any{"size_gib": 50, "iops": 6000, "throughput_mib": 250}},
	}))
	plan, err := m.Plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Add != 25 || plan.Change+plan.Destroy != 0 {
		t.Errorf("it would make %d, change %d and destroy %d", plan.Add, plan.Change, plan.Destroy)
	}
	values := planned(t, m)
	block := func(address, name string) map[string]any {
		t.Helper()
		blocks, _ := values[address][name].([]any)
		if len(blocks) != 1 {
			return nil
		}
		return blocks[0].(map[string]any)
	}
	of := func(from map[string]any, names ...string) string {
		var got []string
		for _, n := range names {
			got = append(got, fmt.Sprint(from[n]))
		}
		return strings.Join(got, " ")
	}
	app, db := `aws_instance.host["app"]`, `aws_instance.host["db"]`
	if got := block(app, "cpu_options"); of(got, "core_count", "threads_per_core") != "4 1" {
		t.Errorf("an x86 machine has the cores %v", got)
	}
	if got := block(db, "cpu_options"); got["core_count"] != nil {
		t.Errorf("a Graviton machine has the cores %v", got)
	}
	if got := block(db, "root_block_device"); of(got, "volume_type", "volume_size", "iops", "throughput", "encrypted", "delete_on_termination") != "gp3 50 6000 250 true true" {
		t.Errorf("the database's volume is %v", got)
	}
	if got := block(app, "metadata_options"); of(got, "http_tokens", "http_put_response_hop_limit") != "required 1" {
		t.Errorf("the metadata service is %v", got)
	}
	if got := values[app]; of(got, "instance_initiated_shutdown_behavior", "placement_group") != "terminate percore-r1" {
		t.Errorf("the instance is %v", got)
	}
	if got := fmt.Sprint(values[app]["tags_all"]); got != "map[Name:percore-r1-app percore:1 percore:expires:2099-01-02T03:04:05Z percore:role:app percore:run:r1]" {
		t.Errorf("the tags are %s", got)
	}
	template, err := os.ReadFile(filepath.Join(awsModule, "user-data.yaml.tftpl"))
	if err != nil {
		t.Fatal(err)
	}
	// Older providers show the sum of what a machine is told.
	told := strings.ReplaceAll(string(template), "${calendar}", "2099-01-02 03:04:05 UTC")
	if got := fmt.Sprint(values[app]["user_data"]); got != told && got != fmt.Sprintf("%x", sha1.Sum([]byte(told))) {
		t.Errorf("the machine is told %s", got)
	}

	if err := m.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	lab, err := m.Lab(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var machines []string
	for _, x := range lab.Machines {
		machines = append(machines, strings.Join([]string{x.Name, string(x.Role), x.SSHUser, x.InstanceType, x.Arch}, " "))
		if x.InstanceID == "" || x.SSHPort != 22 || !strings.HasPrefix(x.Address, "10.77.0.") || x.SSHHost == x.Address || !strings.HasPrefix(x.Image, "ami-") {
			t.Errorf("machine %+v", x)
		}
	}
	if got := strings.Join(machines, ", "); got != "app app admin c7i.2xlarge amd64, db db admin c8g.xlarge arm64, load load admin c8gn.xlarge arm64, load2 load admin c8gn.xlarge arm64" {
		t.Errorf("machines %s", got)
	}
	if lab.RunID != "r1" || lab.Provider != "aws" || lab.Region != "us-east-1" || lab.Zone != "us-east-1a" || lab.Expires == nil || lab.Expires.Year() != 2099 {
		t.Errorf("lab %+v", lab)
	}
	if lab.Machines[0].Image == lab.Machines[1].Image {
		t.Error("two architectures have one image")
	}
	count := server.Tagged("percore:run", "r1")
	for kind, want := range map[string]int{"instance": 4, "volume": 4, "network-interface": 4, "vpc": 1, "subnet": 1, "internet-gateway": 1, "route-table": 1, "security-group": 2, "key-pair": 1, "placement-group": 1} {
		if count[kind] != want {
			t.Errorf("%d of kind %s have the run's tag, want %d", count[kind], kind, want)
		}
	}
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("after it was destroyed there is %q, %v", left, err)
	}
	t.Logf("AWS was asked for %v", server.Actions())
}

// What AWS can say about a type is used before anything is made.
func TestAWSRefusesTypes(t *testing.T) {
	_, dir := aws(t)
	b := binary(t)
	for _, tt := range []struct{ name, instance, want string }{
		{"burstable", "t3.large", "t3.large is a burstable type, whose cores slow down"},
		{"burstable Graviton", "t4g.large", "t4g.large is a burstable type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vars := awsVars(map[string]any{"instance_types": map[string]any{"db": tt.instance}})
			_, err := module(t, b, dir, awsModule, vars).Plan(t.Context())
			refused(t, err, tt.want)
		})
	}
}

// Without a placement group a second apply finds nothing to make anew, and an
// apply that fails half way leaves what destroy takes away.
func TestAWSHalfway(t *testing.T) {
	_, dir := aws(t)
	ctx, b := t.Context(), binary(t)
	alone := map[string]any{"placement_group": false, "ami_ids": map[string]any{"arm64": "ami-0123456789abcdef0"}}
	m := module(t, b, dir, awsModule, awsVars(alone))
	if _, err := m.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	err := m.Apply(ctx)
	if err == nil || !strings.Contains(said.Err(err), "]: collecting instance settings: couldn't find resource") || !strings.Contains(said.Err(err), logFile) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("an image that is not there: %v", err)
	}
	left, err := m.Resources(ctx)
	if err != nil || !slices.Contains(left, "aws_vpc.this") || slices.Contains(left, `aws_instance.host["app"]`) {
		t.Errorf("half way there is %q, %v", left, err)
	}
	delete(alone, "ami_ids")
	m = module(t, b, dir, awsModule, awsVars(alone))
	if _, err := m.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	// Some of what was asked for is not kept by what plays AWS here, which can be
	// changed in place; nothing may be replaced.
	plan, err := m.Plan(ctx)
	if err != nil || plan.Add+plan.Destroy != 0 {
		t.Errorf("a second time it would make %d and destroy %d, %v:\n%s", plan.Add, plan.Destroy, err, plan.Text)
	}
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("after it was destroyed there is %q, %v", left, err)
	}
}
