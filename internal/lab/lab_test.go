package lab

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// valid is a configuration that passes the check.
func valid() Config {
	res := plan.Resources{CPUs: "0", Memory: 1 << 30}
	return Config{
		RunID:   "r1",
		Profile: plan.Profile{Name: "p", Roles: map[plan.Role]plan.Resources{plan.App: res, plan.DB: res, plan.Load: res}},
		Images:  map[string]string{ImageTools: "t", ImageDatabase: "d"},
		Hosts:   Local(&engine.Engine{}),
	}
}

func TestConfigCheck(t *testing.T) {
	if err := valid().check(); err != nil {
		t.Fatal(err)
	}
	machine := func(name, address string) *Host {
		return &Host{Name: name, Engine: &engine.Engine{}, Address: address, HostNetwork: true}
	}
	both := machine("target", "10.0.0.1")
	c := valid()
	c.Hosts = map[plan.Role]*Host{plan.App: both, plan.DB: both, plan.Load: machine("load", "10.0.0.2")}
	if err := c.check(); err != nil {
		t.Errorf("a load generator on a machine of its own: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"needs a run id":       func(c *Config) { c.RunID = "" },
		"no host for role db":  func(c *Config) { delete(c.Hosts, plan.DB) },
		"has no address":       func(c *Config) { c.Hosts[plan.App] = machine("a", "") },
		"need host networking": func(c *Config) { c.Hosts[plan.Load] = &Host{Name: "other", Engine: &engine.Engine{}} },
		"have the name a or the address 2": func(c *Config) {
			c.Hosts = map[plan.Role]*Host{plan.App: machine("a", "1"), plan.DB: machine("a", "2"), plan.Load: machine("l", "3")}
		},
		"have the name d or the address 1": func(c *Config) {
			c.Hosts = map[plan.Role]*Host{plan.App: machine("a", "1"), plan.DB: machine("d", "1"), plan.Load: machine("l", "3")}
		},
		"further load host l2 needs host networking": func(c *Config) { c.LoadHosts = []*Host{{Name: "l2", Engine: &engine.Engine{}}} },
		"a further load host without an engine":      func(c *Config) { c.LoadHosts = []*Host{nil} },
		"load host l is named twice": func(c *Config) {
			l := machine("l", "3")
			c.Hosts = map[plan.Role]*Host{plan.App: machine("a", "1"), plan.DB: machine("d", "2"), plan.Load: l}
			c.LoadHosts = []*Host{l}
		},
		"gives role load no CPUs":     func(c *Config) { c.Profile.Roles[plan.Load] = plan.Resources{CPUs: "auto"} },
		"has no image named tools":    func(c *Config) { delete(c.Images, ImageTools) },
		"has no image named postgres": func(c *Config) { c.Images[ImageDatabase] = "" },
	} {
		c := valid()
		change(&c)
		if err := c.check(); err == nil || !strings.Contains(said.Err(err), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	l := &Lab{cfg: valid(), network: "percore-r1"}
	if got := l.address(plan.DB, databasePort); got != "db:5432" {
		t.Errorf("on the private network: %s", got)
	}
	s := l.spec(plan.App, whatApp, "image")
	if s.Network != "percore-r1" || s.HostNetwork || s.CPUs != "0" || s.Labels[engine.LabelRun] != "r1" || s.Labels[engine.LabelKind] != engine.KindContainer || !strings.HasPrefix(s.Name, "percore-r1-app-") {
		t.Errorf("%+v", s)
	}
	if other := l.spec(plan.App, whatApp, "image"); other.Name == s.Name {
		t.Error("two containers have one name")
	}
	for _, h := range l.cfg.Hosts {
		h.HostNetwork, h.Address = true, "fd00::1"
	}
	if got := l.address(plan.DB, databasePort); got != "[fd00::1]:5432" {
		t.Errorf("on the hosts' network: %s", got)
	}
	if s := l.spec(plan.App, whatApp, "image"); s.Network != "" || !s.HostNetwork {
		t.Errorf("%+v", s)
	}
}

func TestVolumeName(t *testing.T) {
	l := &Lab{cfg: Config{Flavour: plan.FlavourDebian}, seed: postgres.Seed{Rows: 10, Subject: "s"}}
	first := l.volumeName()
	l.cfg.Flavour = plan.FlavourPublished
	second := l.volumeName()
	l.seed.Rows = 11
	if third := l.volumeName(); first == second || second == third || !strings.HasPrefix(first, "percore-db-debian-17-") {
		t.Errorf("%s, %s, %s", first, second, third)
	}
}

func TestQuote(t *testing.T) {
	log := "a\n2026 LOG:  checkpoint starting: time\nb\n2026 LOG:  checkpoint complete: wrote 1\nc\n"
	if got := quote(withoutCheckpoints(log), 2); got != "; its log ends:\nb\nc" {
		t.Errorf("%q", got)
	}
	for _, empty := range []string{"", " \n\n"} {
		if got := quote(empty, 2); got != "; it printed nothing" {
			t.Errorf("%q: %q", empty, got)
		}
	}
}

func TestRedact(t *testing.T) {
	l := &Lab{cfg: Config{Tokens: map[string]oha.Token{"a": "eyJ.aaa.bbb", "none": ""}}}
	got := l.redact("error: header Authorization: Bearer eyJ.aaa.bbb is odd")
	if strings.Contains(got, "eyJ") || !strings.Contains(got, "is odd") {
		t.Errorf("%q", got)
	}
}
