//go:build integration

//integration:apart

package terraform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
	"github.com/percore/percore/internal/testkit/said"
)

// helper names, in the environment of this test's own program, the folder in
// which it is to apply the slow module, and nothing else.
const helper = "PERCORE_TF_TEST_APPLY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		fmt.Fprintln(os.Stderr, applySlowly(dir))
		os.Exit(1) // a driver that is to be killed never gets here
	}
	os.Exit(m.Run())
}

func applySlowly(dir string) error {
	ctx := context.Background()
	bin, err := Find(ctx, Options{})
	if err != nil {
		return err
	}
	m, err := Open(bin, dir, "testdata/slow", map[string]any{"seconds": 60}, os.Stdout)
	if err != nil {
		return err
	}
	if _, err := m.Plan(ctx); err != nil {
		return err
	}
	return m.Apply(ctx)
}

// binary is the Terraform of this machine, installed if need be.
func binary(t *testing.T) *Binary {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Find(t.Context(), Options{CacheDir: filepath.Join(cache, "percore"), Install: true, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s at %s", b.Name, b.Version, b.Path)
	b.cache = t.TempDir()
	return b
}

func module(t *testing.T, b *Binary, dir, source string, vars any) *Module {
	t.Helper()
	m, err := Open(b, dir, source, vars, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func host(name, role, ssh string) map[string]any {
	return map[string]any{"name": name, "role": role, "ssh_host": ssh}
}

func hosts() map[string]any {
	db := host("db", "db", "192.0.2.2")
	db["ssh_port"], db["ssh_user"], db["address"], db["instance_type"] = 2222, "admin", "10.0.0.2", "c8g.xlarge"
	return map[string]any{"run_id": "r1", "hosts": []any{host("app", "app", "192.0.2.1"), db, host("load", "load", "far.example.com"), host("load2", "load", "192.0.2.4")}}
}

// From nothing to machines, to a second process that changes nothing, and back.
func TestHosts(t *testing.T) {
	ctx, b, dir := t.Context(), binary(t), filepath.Join(t.TempDir(), "terraform")
	const source = "../../../infra/hosts"
	m := module(t, b, dir, source, hosts())
	if _, err := m.Lab(ctx); err == nil || !strings.Contains(said.Err(err), `no output "lab"`) {
		t.Errorf("machines before there are any: %v", err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("before anything was applied there is %q, %v", left, err)
	}
	if err := m.Destroy(ctx); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
	if err := m.Apply(ctx); err == nil {
		t.Error("what was never planned was applied")
	}
	plan, err := m.Plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Add != 4 || plan.Change+plan.Destroy != 0 || !strings.Contains(plan.Text, `terraform_data.machine["load2"] will be created`) || strings.Contains(plan.Text, "\x1b") {
		t.Errorf("plan %+v", plan)
	}
	if err := m.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	lab, err := m.Lab(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if lab.RunID != "r1" || lab.Provider != "hosts" || lab.Expires != nil || strings.Join(lab.Names(), " ") != "app db load load2" {
		t.Errorf("lab %+v", lab)
	}
	if got := lab.Machines[1]; got != (fleet.Machine{Name: "db", Role: "db", SSHHost: "192.0.2.2", SSHPort: 2222, SSHUser: "admin", Address: "10.0.0.2", InstanceType: "c8g.xlarge"}) {
		t.Errorf("db is %+v", got)
	}
	if got := lab.Machines[2]; got.Address != "far.example.com" || got.SSHPort != 0 || got.Engine() != "ssh://far.example.com" {
		t.Errorf("load is %+v", got)
	}

	again := module(t, b, dir, source, nil)
	if plan, err = again.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	if plan.Add+plan.Change+plan.Destroy != 0 {
		t.Errorf("a second time it would change something: %+v", plan)
	}
	if err := again.Apply(ctx); err != nil {
		t.Errorf("applying nothing: %v", err)
	}
	if left, err := again.Resources(ctx); err != nil || strings.Join(left, " ") != `terraform_data.machine["app"] terraform_data.machine["db"] terraform_data.machine["load"] terraform_data.machine["load2"]` {
		t.Errorf("there is %q, %v", left, err)
	}
	// What only a program reads, or is to be shown by another, is not logged.
	if log, err := os.ReadFile(filepath.Join(dir, logFile)); err != nil || !bytes.Contains(log, []byte("Apply complete")) || bytes.Contains(log, []byte(`"lineage"`)) || bytes.Contains(log, []byte(`"terraform_version"`)) {
		t.Errorf("log %s: %v", log, err)
	}
	if err := again.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("after it was destroyed there is %q, %v", left, err)
	}
	if err := again.Destroy(ctx); err != nil {
		t.Errorf("destroying it again: %v", err)
	}
}

func TestHostsRefuses(t *testing.T) {
	b, dir := binary(t), t.TempDir()
	changed := func(i int, k string, v any) map[string]any {
		vars := hosts()
		vars["hosts"].([]any)[i].(map[string]any)[k] = v
		return vars
	}
	list := func(of ...any) map[string]any { return map[string]any{"run_id": "r1", "hosts": of} }
	for _, tt := range []struct {
		name string
		vars map[string]any
		want string
	}{
		{"run", map[string]any{"run_id": "../x", "hosts": hosts()["hosts"]}, `run_id is "../x"; write letters`},
		{"name", changed(0, "name", "The App"), `name "The App"; write a name of lower-case letters`},
		{"same name", changed(3, "name", "load"), "a name twice among app, db, load, load; give"},
		{"role", changed(3, "role", "cache"), `role "cache"; write app, db or load`},
		{"no database", list(host("app", "app", "a"), host("load", "load", "c")), "1 machines of role app and 0 of role db; give exactly one"},
		{"no load", list(host("app", "app", "a"), host("db", "db", "b")), "no machine of role load; give at least one"},
		{"option for a name", changed(0, "ssh_host", "-oProxyCommand=x"), `ssh_host "-oProxyCommand=x"; write a host name`},
		{"user", changed(0, "ssh_user", "a@b"), `ssh_user "a@b"; write a user's name`},
		{"port", changed(0, "ssh_port", 70000), "ssh_port 70000; write a port from 1 to 65535"},
		{"same machine", list(host("app", "app", "far"), map[string]any{"name": "db", "role": "db", "ssh_host": "FAR", "ssh_port": 22, "address": "10.0.0.2"}, host("load", "load", "c")), "one machine twice by ssh among far, FAR port 22, c; give each role"},
		{"address of nothing", changed(0, "address", "10.0.0.300"), "neither an IP address nor the name of a host, among \"10.0.0.300\""},
		{"address with a space", changed(0, "address", "a b"), "neither an IP address nor the name of a host"},
		{"address of everything", changed(0, "address", "127.0.0.1"), "every machine's own, among 127.0.0.1"},
		{"same address", changed(0, "address", "10.0.0.2"), "an address twice among 10.0.0.2, 10.0.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := module(t, b, dir, "../../../infra/hosts", tt.vars).Plan(t.Context())
			refused(t, err, tt.want)
		})
	}
}

// refused checks for one sentence about the input.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !fail.IsInput(err) || !strings.Contains(said.Err(err), want) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("got %v (input: %t), want %s", err, fail.IsInput(err), want)
	}
}

// began waits until a module's log says that the slow resource is being made.
func began(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		log, _ := os.ReadFile(filepath.Join(dir, logFile))
		if bytes.Contains(log, []byte("slow began")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never began: %s", log)
		}
	}
}

// finish makes what was left unmade, fast, and takes it away again. Terraform
// was asked to end, or it was killed.
func finish(t *testing.T, b *Binary, dir string, asked bool) {
	t.Helper()
	ctx := t.Context()
	m := module(t, b, dir, "testdata/slow", map[string]any{"seconds": 0})
	left, err := m.Resources(ctx)
	// OpenTofu saves the state only now and then while it works, and one that was
	// killed may know less.
	if first := strings.Contains(strings.Join(left, " "), "terraform_data.first"); err != nil || !first && (asked || b.Name == "terraform") {
		t.Fatalf("the state knows of %q, %v", left, err)
	}
	if _, err := m.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("after it was destroyed there is %q, %v", left, err)
	}
}

// A Ctrl-C leaves a state that knows what was made.
func TestInterrupted(t *testing.T) {
	b, dir := binary(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := module(t, b, dir, "testdata/slow", map[string]any{"seconds": 60})
	if _, err := m.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Apply(ctx) }()
	began(t, dir)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted apply gave %v", err)
	}
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil || !bytes.Contains(log, []byte("Interrupt received")) || bytes.Contains(log, []byte("Two interrupts")) {
		t.Errorf("log %s: %v", log, err)
	}
	if _, err := m.Plan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the interruption: %v", err)
	}
	finish(t, b, dir, true)
}

// While one process works on a state another is told so; once it was killed,
// what it left behind is in nobody's way.
func TestKilledDriver(t *testing.T) {
	b, dir := binary(t), t.TempDir()
	driver := exec.Command(os.Args[0])
	driver.Env = append(os.Environ(), helper+"="+dir, "TERRAFORM="+b.Path)
	driver.Stderr = os.Stderr
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	dead := false
	kill := func() {
		if !dead {
			dead = true
			_ = driver.Process.Kill()
			_ = driver.Wait()
		}
	}
	defer kill()
	began(t, dir)

	_, err := module(t, b, dir, "testdata/slow", nil).Plan(t.Context())
	if !errors.Is(err, errLocked) || !strings.Contains(said.Err(err), "is still working in "+dir) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("while another works on it: %v", err)
	}
	kill()
	finish(t, b, dir, false)
}

func TestDamagedState(t *testing.T) {
	b, dir := binary(t), t.TempDir()
	m := module(t, b, dir, "testdata/slow", map[string]any{"seconds": 0})
	if err := os.WriteFile(filepath.Join(dir, "terraform.tfstate"), []byte(`{"version": 4, "resour`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"resources": func() error { _, err := m.Resources(t.Context()); return err },
		"plan":      func() error { _, err := m.Plan(t.Context()); return err },
		"destroy":   func() error { return m.Destroy(t.Context()) },
	} {
		if err := do(); err == nil || !strings.Contains(said.Err(err), "is damaged") || !strings.Contains(said.Err(err), "terraform.tfstate.backup") || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s on a damaged state: %v", name, err)
		}
	}
}

// What is only looked up for making machines need not be there to destroy them.
func TestDestroyWithoutLookup(t *testing.T) {
	ctx, b, dir := t.Context(), binary(t), t.TempDir()
	image := filepath.Join(t.TempDir(), "image.tfstate")
	if err := os.WriteFile(image, []byte(`{"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"x","outputs":{"id":{"value":"ami-1","type":"string"}},"resources":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := module(t, b, dir, "testdata/lookup", map[string]any{"path": image})
	if _, err := m.Plan(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Plan(ctx); err == nil || !strings.Contains(said.Err(err), "data.terraform_remote_state.image") {
		t.Errorf("a lookup of what is gone: %v", err)
	}
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := m.Resources(ctx); err != nil || len(left) != 0 {
		t.Errorf("after it was destroyed there is %q, %v", left, err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, logFile)); err != nil || bytes.Count(log, []byte("Z destroy\n")) != 2 {
		t.Errorf("it was to be tried twice: %s, %v", log, err)
	}
}
