package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/guest/clock"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
)

// linkPort is the TCP port on which throughput between hosts is measured.
const linkPort = clock.Port + 1

// readCommand prints the clock reading against the server $1, unless that is
// empty, and the statistics of every network interface.
const readCommand = `if [ -n "$1" ]; then guest clock ask "$1" 2>&1; fi
for i in /sys/class/net/*; do
	n=${i##*/}
	[ "$n" = lo ] && continue
	echo "== $n"
	ethtool -S "$n" 2>&1
done
true`

// readHosts reads the clocks, if asked to, and the network counters of all
// hosts, side by side. What could not be read says why.
func (l *Lab) readHosts(ctx context.Context, clocks bool) *readings {
	ctx, cancel := context.WithTimeout(ctx, outage)
	defer cancel()
	r := &readings{hosts: l.hosts()}
	r.of = make([]hostReading, len(r.hosts))
	reference := l.host(plan.Load)
	var g errgroup.Group
	for i, h := range r.hosts {
		g.Go(func() error {
			server := ""
			if clocks && h != reference {
				server = net.JoinHostPort(reference.Address, strconv.Itoa(clock.Port))
			}
			res, err := l.tools[h].Exec(ctx, nil, "sh", "-c", readCommand, "sh", server)
			if err != nil {
				r.of[i] = hostReading{aheadErr: err, allowErr: err}
				return nil
			}
			r.of[i] = parseHost(string(res.Stdout), server != "")
			return nil
		})
	}
	_ = g.Wait()
	if clocks {
		l.mu.Lock()
		l.latest = r
		l.mu.Unlock()
	}
	return r
}

// lastReadings are those of the clocks that were read last.
func (l *Lab) lastReadings() *readings {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest
}

// parseHost reads what readCommand prints.
func parseHost(text string, withClock bool) hostReading {
	var r hostReading
	head, rest, _ := strings.Cut("\n"+text, "\n== ")
	if withClock {
		reading, err := clock.ParseReading([]byte(head))
		if err != nil {
			r.aheadErr = errors.New(firstLine(head, "the host said nothing of its clock"))
		}
		r.ahead = time.Duration(reading.AheadNS)
	}
	if rest != "" {
		r.allowances, r.allowErr = parseAllowances(rest)
	}
	return r
}

// allowance matches a counter of packets that a network card of the cloud held
// back or dropped because an allowance of the instance was used up.
var allowance = regexp.MustCompile(`^\s*([a-z]+(?:_[a-z]+)*_allowance_exceeded):\s*(\d+)\s*$`)

// withoutStatistics are what ethtool says of an interface that keeps none.
var withoutStatistics = []string{"no stats available", "Operation not supported"}

// parseAllowances reads the output of `ethtool -S` for several interfaces, each
// under a line that begins with its name. Counters of one name are added up. No
// counter at all is nil; it is an error when an interface could not be read.
func parseAllowances(text string) (map[string]int64, error) {
	var out map[string]int64
	var errs []error
	for section := range strings.SplitSeq(text, "\n== ") {
		name, lines, _ := strings.Cut(section, "\n")
		name = strings.TrimSpace(name)
		known := false
		for line := range strings.Lines(lines) {
			known = known || strings.HasPrefix(line, "NIC statistics")
			m := allowance.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			n, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil {
				errs = append(errs, fmt.Errorf("interface %s: %s is %s, which is no count", name, m[1], m[2]))
				continue
			}
			if out == nil {
				out = map[string]int64{}
			}
			out[m[1]] += n
		}
		if said := strings.TrimSpace(lines); !known && said != "" && !slices.ContainsFunc(withoutStatistics, func(w string) bool { return strings.Contains(said, w) }) {
			errs = append(errs, fmt.Errorf("interface %s: %s", name, firstLine(said, "")))
		}
	}
	return out, errors.Join(errs...)
}

// allowanceGrowth is how much each counter grew. A counter that is only in one
// of the two readings, or went backwards, is an error: nobody knows its growth.
func allowanceGrowth(before, after map[string]int64) (map[string]int64, error) {
	if before == nil && after == nil {
		return nil, nil
	}
	out := map[string]int64{}
	names := slices.Collect(maps.Keys(before))
	names = slices.AppendSeq(names, maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, ok1 := before[name]
		is, ok2 := after[name]
		switch {
		case !ok1 || !ok2:
			return nil, fmt.Errorf("the counter %s was there only before or only after the window", name)
		case is < was:
			return nil, fmt.Errorf("the counter %s went back from %d to %d during the window", name, was, is)
		}
		out[name] = is - was
	}
	return out, nil
}

// firstLine is the first line of a text that is not empty, or the alternative.
func firstLine(text, otherwise string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > 300 {
				line = line[:300]
			}
			return line
		}
	}
	return otherwise
}

// oneLine is an error as one line of text.
func oneLine(err error) string { return strings.Join(strings.Split(err.Error(), "\n"), "; ") }

// Links measures the network between the hosts: from each load host to the
// app's, and from there to the database's. It takes about five seconds a link.
// With one host there is none.
func (l *Lab) Links(ctx context.Context) ([]store.Link, error) {
	app, db := l.host(plan.App), l.host(plan.DB)
	var pairs [][2]*Host
	for _, h := range l.loadHosts() {
		pairs = append(pairs, [2]*Host{h, app})
	}
	pairs = append(pairs, [2]*Host{app, db})
	var links []store.Link
	for _, p := range pairs {
		if p[0] == p[1] || !l.spread() {
			continue
		}
		link, err := l.link(ctx, p[0], p[1])
		if err != nil {
			return links, l.blame(fmt.Errorf("measuring the link from host %s to host %s: %w", p[0].Name, p[1].Name, err))
		}
		links = append(links, link)
	}
	return links, nil
}

// link measures one link.
func (l *Lab) link(ctx context.Context, from, to *Host) (store.Link, error) {
	link := store.Link{From: from.Name, To: to.Name}
	res, err := l.tools[from].Exec(ctx, nil, "ping", "-n", "-q", "-c", "11", "-i", "0.2", "-w", "6", to.Address)
	if err != nil {
		return link, err
	}
	if err := parsePing(string(res.Stdout), &link); err != nil {
		return link, fmt.Errorf("ping: %w: %s", err, firstLine(string(res.Stderr), firstLine(string(res.Stdout), "it printed nothing")))
	}
	port := strconv.Itoa(linkPort)
	ctx, cancel := context.WithTimeout(ctx, outage)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { // one test, then it ends; a test that never comes ends it too
		_, err := l.tools[to].Exec(ctx, nil, "timeout", "20", "iperf3", "-s", "-1", "-p", port)
		return err
	})
	for deadline := time.Now().Add(15 * time.Second); ; {
		if res, err = l.tools[from].Exec(ctx, nil, "iperf3", "-c", to.Address, "-p", port, "-t", "2", "--json", "--connect-timeout", "3000"); err == nil {
			err = parseIperf(res.Stdout, &link)
		}
		var refused *iperfError
		if err == nil || !errors.As(err, &refused) || time.Now().After(deadline) {
			break
		}
		time.Sleep(100 * time.Millisecond) // the server is being started
	}
	if err != nil {
		cancel()
	}
	return link, errors.Join(err, ignoreCancel(g.Wait(), err))
}

// ignoreCancel drops an error that follows from another.
func ignoreCancel(err, because error) error {
	if because != nil {
		return nil
	}
	return err
}

var pingTimes = regexp.MustCompile(`(?m)^(?:rtt|round-trip) min/avg/max(?:/mdev)? = (\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)`)

// parsePing reads the summary of ping.
func parsePing(text string, link *store.Link) error {
	m := pingTimes.FindStringSubmatch(text)
	if m == nil {
		return errors.New("no answer came back")
	}
	for i, to := range []*float64{&link.RTTMinMS, &link.RTTMeanMS, &link.RTTMaxMS} {
		v, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil {
			return err
		}
		*to = v
	}
	if link.RTTMinMS > link.RTTMeanMS || link.RTTMeanMS > link.RTTMaxMS {
		return fmt.Errorf("it printed %q", m[0])
	}
	return nil
}

// iperfError is what iperf3 says went wrong.
type iperfError struct{ text string }

func (e *iperfError) Error() string { return "iperf3: " + e.text }

// parseIperf reads the JSON of an iperf3 client.
func parseIperf(text []byte, link *store.Link) error {
	var r struct {
		Error string `json:"error"`
		End   *struct {
			Sent struct {
				Retransmits int64 `json:"retransmits"`
			} `json:"sum_sent"`
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("iperf3 printed no JSON: %s", firstLine(string(text), "nothing"))
	}
	if r.Error != "" {
		return &iperfError{r.Error}
	}
	if r.End == nil || !(r.End.Received.BitsPerSecond > 0) || r.End.Sent.Retransmits < 0 {
		return errors.New("iperf3 printed no throughput")
	}
	link.BitsPerS, link.Retransmits = r.End.Received.BitsPerSecond, r.End.Sent.Retransmits
	return nil
}

// blame says of an error that comes from lost engines which hosts they belong
// to, and nothing else: whatever else failed follows from that. Other errors
// pass.
func (l *Lab) blame(err error) error {
	var lost []error
	seen := map[string]bool{}
	var walk func(error)
	walk = func(err error) {
		if e, ok := err.(*engine.LostError); ok {
			if !seen[e.Host] {
				seen[e.Host] = true
				lost = append(lost, fmt.Errorf("%s is lost: %w", l.nameOf(e.Host), e))
			}
			return
		}
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			if inner := x.Unwrap(); inner != nil {
				walk(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range x.Unwrap() {
				if inner != nil {
					walk(inner)
				}
			}
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		walk(err)
	}
	if len(lost) > 0 {
		return errors.Join(lost...)
	}
	if err != nil && strings.Contains(strings.ToLower(err.Error()), noSpace) {
		return fmt.Errorf("the disk of a host is full, free some space there: %w", err)
	}
	return err
}

// noSpace is what programs, PostgreSQL and engines say of a full disk, in lower
// case. It reaches the driver as text only.
var noSpace = syscall.ENOSPC.Error()

// nameOf names the host with an endpoint.
func (l *Lab) nameOf(endpoint string) string {
	for _, h := range l.hosts() {
		if h.Engine.Host() == endpoint {
			return "host " + h.Name
		}
	}
	return "a host"
}
