package fleet

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/said"
)

const good = `{"run_id":"r1","provider":"hosts","region":"","zone":"","expires":null,"machines":[
 {"name":"app","role":"app","ssh_host":"192.0.2.1","ssh_port":22,"ssh_user":"root","address":"10.0.0.1","instance_type":"","instance_id":"","arch":"","image":""},
 {"name":"db","role":"db","ssh_host":"2001:db8::2","ssh_port":22,"ssh_user":"admin","address":"10.0.0.2","instance_type":"c8g.xlarge","instance_id":"i-2","arch":"arm64","image":"ami-1"},
 {"name":"load","role":"load","ssh_host":"far","ssh_port":2222,"ssh_user":"","address":"10.0.0.3","instance_type":"","instance_id":"","arch":"","image":""},
 {"name":"load2","role":"load","ssh_host":"192.0.2.4","ssh_port":22,"ssh_user":"root","address":"10.0.0.4","instance_type":"","instance_id":"","arch":"","image":""}]}`

func TestParse(t *testing.T) {
	l, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var engines []string
	for _, m := range l.Machines {
		engines = append(engines, m.Engine())
	}
	if got := strings.Join(engines, " "); got != "ssh://root@192.0.2.1 ssh://admin@[2001:db8::2] ssh://far:2222 ssh://root@192.0.2.4" {
		t.Errorf("engines %s", got)
	}
	var ssh []string
	l.Machines[3].SSHPort = 0
	for _, m := range l.Machines {
		ssh = append(ssh, strings.Join(m.SSHArgs(), " "))
	}
	if got := strings.Join(ssh, ", "); got != "-p 22 -- root@192.0.2.1, -p 22 -- admin@2001:db8::2, -p 2222 -- far, -- root@192.0.2.4" {
		t.Errorf("ssh %s", got)
	}
	if m, ok := l.Named("load"); !ok || m.SSHHost != "far" {
		t.Errorf("load is %+v", m)
	}
	if _, ok := l.Named("cache"); ok {
		t.Error("a machine nobody has was found")
	}
	if n := len(l.Of("load")); n != 2 {
		t.Errorf("%d load hosts", n)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown field", `"run_id"`, `"runid"`, "unknown field"},
		{"no app", `"role":"app"`, `"role":"load"`, "0 machines have the role app"},
		{"two databases", `"role":"load","ssh_host":"far"`, `"role":"db","ssh_host":"far"`, "2 machines have the role db"},
		{"foreign role", `"role":"app"`, `"role":"cache"`, `the role "cache"`},
		{"same name", `"name":"load2"`, `"name":"db"`, "two machines have the name db"},
		{"same address", `10.0.0.4`, `10.0.0.1`, "two machines have the address 10.0.0.1"},
		{"no address", `"address":"10.0.0.4"`, `"address":""`, "load2 has no address"},
		{"bad name", `"name":"load2"`, `"name":"../x"`, `the name "../x"`},
		{"bad port", `2222`, `70000`, "ssh port 70000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(strings.Replace(good, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(said.Err(err), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(again); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
		for _, m := range l.Machines {
			if m.Engine() == "" {
				t.Error("a machine without an engine")
			}
		}
	})
}
