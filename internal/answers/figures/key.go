package figures

import (
	"fmt"
	"strconv"
	"strings"
)

// Phases under which figures are filed. Other studies bring their own.
const (
	PhaseRate     = "rate"     // open loop at a fixed rate
	PhaseCeiling  = "ceiling"  // closed loop, as many as the connections carry
	PhaseCapacity = "capacity" // saturation of a mixed load over core counts
	PhaseSizing   = "sizing"   // what a target rate needs
	PhaseTotal    = "total"    // over a whole run
)

// Metrics by which figures are filed, with their units.
const (
	Achieved    = "achieved"     // 2xx answers per second of the nominal window
	Met         = "met"          // repetitions that met their target
	Repetitions = "repetitions"  // repetitions that are evidence
	Target      = "target"       // requests per second asked for
	P50         = "p50_ms"       // latency, ms
	P99         = "p99_ms"       // latency, ms
	P999        = "p999_ms"      // latency, ms
	AppCPU      = "app_cpu_us"   // µs of app CPU per answer
	DBCPU       = "db_cpu_us"    // µs of database CPU per answer
	AppCores    = "app_cores"    // app CPU seconds per second
	DBCores     = "db_cores"     // database CPU seconds per second
	PeakMiB     = "peak_mib"     // largest anonymous memory of the app, MiB
	CoresLow    = "cores_low"    // fewest app cores over all windows of a phase
	CoresHigh   = "cores_high"   // most app cores over all windows of a phase
	SpreadLow   = "spread_low"   // least achieved over all windows of a cell, 1/s
	SpreadHigh  = "spread_high"  // most achieved over all windows of a cell, 1/s
	Budget      = "budget_cores" // cores the app may use
	ProbeLow    = "probe_low"    // least that the reference probe reached, 1/s
	NonOK       = "non_2xx"      // answers other than 2xx
)

// IdleShare is the share of its cores below which the CPU per request of a
// candidate says more about waiting than about work: timers, wake-ups and cold
// caches are then spread over few requests.
const IdleShare = 0.1

// None stands in a key's text for a part that is not set.
const None = "-"

// Key names a figure within a set. Its text is
//
//	SUITE/PHASE/METRIC[/CANDIDATE[/SCENARIO]][@4cores][@64conn][@50000rps]
//
// with "-" for a part that is skipped. A ceiling without a connection count is
// that of the best one.
type Key struct {
	Suite       string
	Phase       string
	Metric      string
	Candidate   string
	Scenario    string
	Cores       int // of the app, where a study varies them
	Connections int // where a figure is of one connection count
	Rate        int // requests per second, where a figure is for one
}

// String is the text of the key.
func (k Key) String() string {
	parts := []string{k.Suite, k.Phase, k.Metric}
	if k.Candidate != "" || k.Scenario != "" {
		parts = append(parts, orNone(k.Candidate))
	}
	if k.Scenario != "" {
		parts = append(parts, k.Scenario)
	}
	s := strings.Join(parts, "/")
	if k.Cores > 0 {
		s += fmt.Sprintf("@%dcores", k.Cores)
	}
	if k.Connections > 0 {
		s += fmt.Sprintf("@%dconn", k.Connections)
	}
	if k.Rate > 0 {
		s += fmt.Sprintf("@%drps", k.Rate)
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// ParseKey reads the text of a key. The error says what is wrong with it.
func ParseKey(s string) (Key, error) {
	var k Key
	head, qualifiers, _ := strings.Cut(s, "@")
	parts := strings.Split(head, "/")
	if len(parts) < 3 || len(parts) > 5 {
		return k, fmt.Errorf("%q is not the name of a figure (SUITE/PHASE/METRIC, then /CANDIDATE and /SCENARIO where it has them)", s)
	}
	for i, p := range parts {
		if !word(p) {
			return k, fmt.Errorf("%q is not the name of a figure: part %d is %q, and letters, digits, dots, dashes and underscores may stand there", s, i+1, p)
		}
		if p == None {
			if i < 3 {
				return k, fmt.Errorf("%q is not the name of a figure: suite, phase and metric must be named", s)
			}
			parts[i] = ""
		}
	}
	k.Suite, k.Phase, k.Metric = parts[0], parts[1], parts[2]
	if len(parts) > 3 {
		k.Candidate = parts[3]
	}
	if len(parts) > 4 {
		k.Scenario = parts[4]
	}
	if qualifiers == "" {
		if strings.Contains(s, "@") {
			return k, fmt.Errorf("%q is not the name of a figure: nothing follows the @", s)
		}
		return k, nil
	}
	for _, q := range strings.Split(qualifiers, "@") {
		var to *int
		var number string
		for unit, field := range map[string]*int{"cores": &k.Cores, "conn": &k.Connections, "rps": &k.Rate} {
			if n, ok := strings.CutSuffix(q, unit); ok {
				to, number = field, n
			}
		}
		n, err := strconv.Atoi(number)
		if to == nil || err != nil || n < 1 || *to != 0 || strings.HasPrefix(number, "+") || strings.HasPrefix(number, "0") {
			return k, fmt.Errorf("%q is not the name of a figure: %q is none of 4cores, 64conn and 50000rps, each at most once", s, "@"+q)
		}
		*to = n
	}
	return k, nil
}

func word(s string) bool {
	if s == "" {
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return false
		}
	}
	return true
}

// MarshalText writes the key as its text.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the text of a key.
func (k *Key) UnmarshalText(text []byte) error {
	var err error
	*k, err = ParseKey(string(text))
	return err
}

// Unit is the unit in which a metric is given, for a reader; "" for a count.
func Unit(metric string) string {
	switch metric {
	case Achieved, Target, SpreadLow, SpreadHigh, ProbeLow:
		return "/s"
	case P50, P99, P999:
		return "ms"
	case AppCPU, DBCPU:
		return "µs"
	case AppCores, DBCores, CoresLow, CoresHigh, Budget:
		return "cores"
	case PeakMiB:
		return "MiB"
	}
	switch {
	case strings.HasSuffix(metric, "_ms"):
		return "ms"
	case strings.HasSuffix(metric, "_us"):
		return "µs"
	case strings.HasSuffix(metric, "_mib"):
		return "MiB"
	case strings.HasSuffix(metric, "_cores"):
		return "cores"
	case strings.HasSuffix(metric, "_per_s"):
		return "/s"
	}
	return ""
}

// Title is how a table names a metric.
func Title(metric string) string {
	switch metric {
	case Achieved:
		return "achieved"
	case P50:
		return "p50"
	case P99:
		return "p99"
	case P999:
		return "p99.9"
	case AppCPU:
		return "CPU per request"
	case DBCPU:
		return "database CPU per request"
	case AppCores:
		return "cores used"
	case DBCores:
		return "database cores used"
	case PeakMiB:
		return "peak memory"
	}
	return strings.ReplaceAll(metric, "_", " ")
}
