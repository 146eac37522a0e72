//go:build integration && linux

package hoststest_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/hoststest"
)

// TestHosts runs a container on each of two hosts, lets one speak to the other,
// pulls a plug and stops a daemon.
func TestHosts(t *testing.T) {
	main := enginetest.Connect(t)
	images := enginetest.Images(t, main, "tools")
	var subnet, slot string // of the machines
	t.Run("lab", func(t *testing.T) {
		l := hoststest.Start(t, 2)
		octets := strings.Split(l.Hosts[0].Address, ".")
		slot, subnet = octets[2], strings.Join(octets[:3], ".")+"."
		l.Load(t, main, images)
		app, db := l.Named("app"), l.Named("db")
		if got := l.Machines().Names(); strings.Join(got, " ") != "app db" {
			t.Errorf("machines %v", got)
		}
		ctx := t.Context()
		var containers []*engine.Container
		for _, h := range l.Hosts {
			e := h.Connect(t)
			c, err := e.Run(ctx, engine.Spec{
				Name: "percore-test-" + h.Name, Image: images["tools"], HostNetwork: true,
				Entrypoint: []string{"socat"}, Cmd: []string{"TCP-LISTEN:7000,fork,reuseaddr", "SYSTEM:echo " + h.Name},
				Labels: map[string]string{engine.Label: "1", engine.LabelKind: engine.KindContainer},
			})
			if err != nil {
				t.Fatal(err)
			}
			containers = append(containers, c)
		}
		ask := func(from *engine.Container, h *hoststest.Host) string {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			res, err := from.Exec(ctx, nil, "socat", "-", "TCP:"+h.Address+":7000,connect-timeout=2")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(res.Stdout))
		}
		if got := ask(containers[0], db) + " " + ask(containers[1], app); got != "db app" {
			t.Errorf("the hosts answer %q", got)
		}
		db.LinkDown()
		if got := ask(containers[0], db); got != "" {
			t.Errorf("a host whose plug is out answers %q", got)
		}
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(db.Address, "2222"), 2*time.Second); err == nil {
			c.Close()
			t.Error("connected to a host whose plug is out")
		}
		db.LinkUp()
		deadline := time.Now().Add(10 * time.Second)
		for ask(containers[0], db) != "db" {
			if time.Now().After(deadline) {
				t.Fatal("a host whose plug is back does not answer")
			}
		}
		if err := app.StopDaemon(); err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("unix", app.Socket); err == nil {
			c.Close()
			t.Error("a stopped daemon answers")
		}
		if err := app.StartDaemon(); err != nil {
			t.Fatal(err)
		}
		if state, err := containers[0].Inspect(ctx); err != nil || state.Running {
			t.Errorf("after its daemon was stopped a container is %+v, %v", state, err)
		}
	})
	// Nothing is left of it.
	for _, pattern := range []string{"/run/netns/percore" + slot + "*", filepath.Join(os.TempDir(), "percore-hosts-"+slot), "/sys/class/net/percore" + slot} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	if out, err := exec.Command("iptables", "-t", "nat", "-S").Output(); err != nil || strings.Contains(string(out), subnet) {
		t.Errorf("rules left behind: %v\n%s", err, out)
	}
}
