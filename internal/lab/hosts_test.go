package lab

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/testkit/said"
)

// What iputils' ping and iperf3 3.18 printed, and a network card of a cloud.
const (
	pingOutput = `PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.

--- 127.0.0.1 ping statistics ---
3 packets transmitted, 3 received, 0% packet loss, time 404ms
rtt min/avg/max/mdev = 0.069/0.212/0.366/0.121 ms
`
	iperfOutput = `{"start":{},"intervals":[],"end":{"streams":[],
"sum_sent":{"start":0,"end":1.0279,"seconds":1.0279,"bytes":1517813760,"bits_per_second":11812929351.104193,"retransmits":12,"sender":true},
"sum_received":{"start":0,"end":1.028339,"seconds":1.028339,"bytes":1517813760,"bits_per_second":11807886387.6601,"sender":true}}}
`
	iperfRefused = `{"start":{"connected":[],"version":"iperf 3.18"},"intervals":[],"end":{},
"error":"unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: Connection refused"}
`
	hostOutput = `{"ahead_ns":-1234567,"delay_ns":81000,"samples":8}
== docker0
no stats available
== ens5
NIC statistics:
     tx_timeout: 0
     bw_in_allowance_exceeded: 7
     bw_out_allowance_exceeded: 0
     pps_allowance_exceeded: 3
     conntrack_allowance_exceeded: 0
     conntrack_allowance_available: 136812
     linklocal_allowance_exceeded: 0
     queue_0_tx_cnt: 12
== ens6
NIC statistics:
     bw_in_allowance_exceeded: 2
     pps_allowance_exceeded: 0
`
)

func TestParseHost(t *testing.T) {
	r := parseHost(hostOutput, true)
	want := map[string]int64{
		"bw_in_allowance_exceeded": 9, "bw_out_allowance_exceeded": 0, "pps_allowance_exceeded": 3,
		"conntrack_allowance_exceeded": 0, "linklocal_allowance_exceeded": 0,
	}
	if r.aheadErr != nil || r.ahead != -1234567 || r.allowErr != nil || !maps.Equal(r.allowances, want) {
		t.Errorf("%+v", r)
	}
	r = parseHost("guest clock: the clock at 10.0.0.3:11123 does not answer: i/o timeout\n== eth0\nno stats available\n", true)
	if r.aheadErr == nil || !strings.Contains(r.aheadErr.Error(), "does not answer") || r.allowances != nil || r.allowErr != nil {
		t.Errorf("%+v", r)
	}
	r = parseHost("== eth0\nCannot get driver information: Operation not permitted\n", false)
	if r.aheadErr != nil || r.ahead != 0 || r.allowErr == nil || !strings.Contains(r.allowErr.Error(), "interface eth0: Cannot get") {
		t.Errorf("%+v", r)
	}
	if r = parseHost("", true); r.aheadErr == nil || r.allowances != nil {
		t.Errorf("%+v", r)
	}
}

func FuzzParseHost(f *testing.F) {
	f.Add(hostOutput, true)
	f.Add("== eth0\nbw_in_allowance_exceeded: 99999999999999999999\n", false)
	f.Fuzz(func(t *testing.T, text string, clock bool) {
		r := parseHost(text, clock)
		if !clock && (r.ahead != 0 || r.aheadErr != nil) {
			t.Errorf("%q gives %+v", text, r)
		}
		for name := range r.allowances {
			if !strings.HasSuffix(name, "_allowance_exceeded") {
				t.Errorf("%q gives %q", text, name)
			}
		}
	})
}

func TestAllowanceGrowth(t *testing.T) {
	got, err := allowanceGrowth(map[string]int64{"a": 3, "b": 5}, map[string]int64{"a": 3, "b": 9})
	if err != nil || !maps.Equal(got, map[string]int64{"a": 0, "b": 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := allowanceGrowth(nil, nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, after := range []map[string]int64{nil, {"a": 2}, {"b": 4}, {"a": 4, "b": 1}} {
		if got, err := allowanceGrowth(map[string]int64{"a": 3}, after); err == nil {
			t.Errorf("%v became %v", after, got)
		}
	}
}

func TestReadingsGrown(t *testing.T) {
	l := &Lab{cfg: valid()}
	app, db := &Host{Name: "app"}, &Host{Name: "db"}
	before := &readings{hosts: []*Host{app, db}, of: []hostReading{
		{ahead: 1500 * time.Microsecond, allowances: map[string]int64{"x": 1}},
		{aheadErr: errors.New("it does not answer"), allowErr: errors.New("one\ntwo")},
	}}
	after := &readings{of: []hostReading{{allowances: map[string]int64{"x": 3}}, {}}}
	got := before.grown(l, after)
	if got[0].ClockOffsetMS != 1.5 || got[0].Allowances["x"] != 2 || got[0].ClockError != "" || got[0].AllowanceError != "" {
		t.Errorf("%+v", got[0])
	}
	if got[1].ClockError != "it does not answer" || got[1].AllowanceError != "one; two" || got[1].Allowances != nil {
		t.Errorf("%+v", got[1])
	}
	if ahead := before.aheadOf(); ahead[app] != 1500*time.Microsecond || (*readings)(nil).aheadOf() == nil {
		t.Errorf("%v", ahead)
	}
}

func TestParseLink(t *testing.T) {
	var link store.Link
	if err := errors.Join(parsePing(pingOutput, &link), parseIperf([]byte(iperfOutput), &link)); err != nil {
		t.Fatal(err)
	}
	if want := (store.Link{RTTMinMS: 0.069, RTTMeanMS: 0.212, RTTMaxMS: 0.366, BitsPerS: 11807886387.6601, Retransmits: 12}); link != want {
		t.Errorf("%+v", link)
	}
	var refused *iperfError
	if err := parseIperf([]byte(iperfRefused), &link); !errors.As(err, &refused) || !strings.Contains(said.Err(err), "Connection refused") {
		t.Error(err)
	}
	for _, text := range []string{"", "3 packets transmitted, 0 received, 100% packet loss", "rtt min/avg/max/mdev = 3/2/1/0 ms"} {
		if err := parsePing(text, &link); err == nil {
			t.Errorf("ping: %q", text)
		}
	}
	for _, text := range []string{"", "{}", `{"end":{}}`, "iperf3: error"} {
		if err := parseIperf([]byte(text), &link); err == nil || errors.As(err, &refused) {
			t.Errorf("iperf3: %q, %v", text, err)
		}
	}
}

func FuzzParsePing(f *testing.F) {
	f.Add(pingOutput)
	f.Fuzz(func(t *testing.T, text string) {
		var link store.Link
		if err := parsePing(text, &link); err == nil && !(link.RTTMinMS >= 0 && link.RTTMinMS <= link.RTTMaxMS) {
			t.Errorf("%q gives %+v", text, link)
		}
	})
}

func FuzzParseIperf(f *testing.F) {
	f.Add([]byte(iperfOutput))
	f.Add([]byte(iperfRefused))
	f.Fuzz(func(t *testing.T, text []byte) {
		var link store.Link
		if err := parseIperf(text, &link); err == nil && !(link.BitsPerS > 0 && link.Retransmits >= 0) {
			t.Errorf("%q gives %+v", text, link)
		}
	})
}

const netTCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41233 1 0000000000000000 100 0 0 10 0
   1: 0B4D0A0A:0016 014D0A0A:9C40 01 00000000:00000000 02:000A7D8B 00000000     0        0 41240 2 0000000000000000 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1538 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41234 1
`

func TestListeners(t *testing.T) {
	if got := listeners(netTCP); !maps.Equal(got, map[string]bool{"8080": true, "5432": true}) {
		t.Errorf("%v", got)
	}
}

func FuzzListeners(f *testing.F) {
	f.Add(netTCP)
	f.Fuzz(func(t *testing.T, text string) {
		if n := len(listeners(text)); n > strings.Count(text, "0A") {
			t.Errorf("%q: %d ports", text, n)
		}
	})
}

func TestShare(t *testing.T) {
	for _, tt := range []struct{ connections, target, n int }{{256, 50_000, 3}, {5, 0, 2}, {16, 7, 4}, {9, 100, 1}} {
		w := protocol.Stream{Connections: tt.connections, Target: tt.target}
		if err := CheckShares(w.Connections, w.Target, tt.n); err != nil {
			t.Fatal(err)
		}
		connections, target := 0, 0
		first := share(w, 0, tt.n)
		for i := range tt.n {
			s := share(w, i, tt.n)
			connections += s.Connections
			target += s.Target
			if s.Connections < 1 || first.Connections-s.Connections > 1 || first.Target-s.Target > 1 || s.Target > first.Target || tt.target > 0 && s.Target < 1 {
				t.Errorf("%+v: part %d is %+v", tt, i, s)
			}
		}
		if connections != tt.connections || target != tt.target {
			t.Errorf("%+v: the parts add up to %d and %d", tt, connections, target)
		}
	}
	for _, w := range []protocol.Stream{{Connections: 2}, {Connections: 8, Target: 2}} {
		if err := CheckShares(w.Connections, w.Target, 3); err == nil || !strings.Contains(said.Err(err), "over 3 load hosts") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

func TestCopyProven(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // SHA-256 of hello
	copies := func(texts ...string) (func() ([]byte, error), *int) {
		n := 0
		return func() ([]byte, error) {
			n++
			return []byte(texts[min(n, len(texts))-1]), nil
		}, &n
	}
	copy, n := copies("hello")
	if got, err := copyProven(hello, copy); err != nil || string(got) != "hello" || *n != 1 {
		t.Errorf("%q, %v, %d copies", got, err, *n)
	}
	copy, n = copies("hellO", "hello")
	if got, err := copyProven(hello, copy); err != nil || string(got) != "hello" || *n != 2 {
		t.Errorf("%q, %v, %d copies", got, err, *n)
	}
	copy, n = copies("hellO", "HELLO")
	_, err := copyProven(hello, copy)
	if err == nil || *n != 2 || !strings.Contains(said.Err(err), hello) || !strings.Contains(said.Err(err), "3733cd977ff8eb18b987357e22ced99f46097f31ecb239e878ae63760e83e4d5") {
		t.Errorf("%v, %d copies", err, *n)
	}
	copy, _ = copies("")
	if _, err := copyProven("", copy); err == nil {
		t.Error("a file without a digest passes")
	}
	broken := errors.New("the link is down")
	if _, err := copyProven(hello, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestWindowOfSeveralGenerators(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(1_800_000_000_000 + ms) }
	a, b, c := &Host{}, &Host{}, &Host{}
	ahead := map[*Host]time.Duration{b: 100 * time.Millisecond} // its clock
	start, end := (&Lab{}).window([]*generator{
		{host: a, span: span{at(10), at(1000)}},
		{host: b, span: span{at(105), at(1150)}},
		{host: c}, // it was lost
	}, ahead)
	if !start.Equal(at(5)) || !end.Equal(at(1050)) {
		t.Errorf("from %v to %v", start, end)
	}
}

func TestBlame(t *testing.T) {
	l := &Lab{cfg: valid()}
	l.cfg.Hosts = map[plan.Role]*Host{}
	for _, r := range plan.Roles() {
		l.cfg.Hosts[r] = &Host{Name: string(r), Engine: &engine.Engine{}}
	}
	lost := &engine.LostError{Host: "ssh://far", For: 2 * time.Minute, Err: errors.New("no route")}
	err := l.blame(errors.Join(errors.New("noise"), fmt.Errorf("waiting: %w", errors.Join(lost, fmt.Errorf("again: %w", lost)))))
	if want := "a host is lost: the engine at ssh://far has not answered for 2m0s (no route)"; err == nil || said.Err(err) != want {
		t.Errorf("%v", err)
	}
	full := errors.New(`copying the database: ERROR: could not extend file "base/5/1": No space left on device (SQLSTATE 53100)`)
	if err := l.blame(full); !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "the disk of a host is full, free some space there: copying the database") {
		t.Errorf("%v", err)
	}
	other := errors.New("something else")
	if got := l.blame(other); got != other || l.blame(nil) != nil {
		t.Errorf("%v", got)
	}
}
