package store

import (
	"encoding/json"
	"time"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/plan"
)

// Version is the layout version that this program writes into run.json. Version
// 1 had no list of windows in run.json and no streams in a window. A folder of a
// later version is refused with a sentence that names both.
const Version = 2

// Run is run.json: the identity of a run and everything a reader needs to
// judge whether two runs may be compared.
type Run struct {
	Version int          `json:"version"`
	ID      string       `json:"id"`
	Percore string       `json:"percore"` // version of the driver
	Started time.Time    `json:"started"`
	Ended   *time.Time   `json:"ended,omitempty"`
	Seed    uint64       `json:"seed"` // orders the candidates of each repetition
	Suite   plan.Suite   `json:"suite"`
	Profile plan.Profile `json:"profile"` // as resolved: no auto left in it
	Preset  plan.Preset  `json:"preset"`  // as selected: only what this run measures
	// Blocks are the windows of the run, in the order in which they are measured,
	// laid out when it began; see [Run.List].
	Blocks []plan.Block `json:"blocks,omitempty"`
	// ProfileSource and PresetSource say where the two came from, a name or the
	// path of a file.
	ProfileSource string             `json:"profile_source,omitempty"`
	SuiteSource   string             `json:"suite_source,omitempty"` // the same of the suite: a name, or the path of its folder
	PresetSource  string             `json:"preset_source,omitempty"`
	Candidates    []string           `json:"candidates"`
	Flavour       plan.Flavour       `json:"flavour"`
	Versions      map[string]string  `json:"versions"` // go, php-fpm, frankenphp, postgresql, nginx, oha, ...
	Images        map[string]string  `json:"images"`   // image name -> engine image id
	Hosts         []HostFacts        `json:"hosts"`
	Comparable    bool               `json:"comparable"` // whether figures may stand beside the published ones
	Caveats       []string           `json:"caveats,omitempty"`
	FsyncPerSec   map[string]float64 `json:"fsync_per_s,omitempty"` // pg_test_fsync: method -> operations per second
	Links         []Link             `json:"links,omitempty"`       // between the hosts, where there are several
	Cloud         *Cloud             `json:"cloud,omitempty"`       // nil for a lab on one engine
}

// Link is what was measured between two hosts before the first window.
type Link struct {
	From        string  `json:"from"` // name of a host
	To          string  `json:"to"`
	RTTMinMS    float64 `json:"rtt_min_ms"`  // round trip of an ICMP echo
	RTTMeanMS   float64 `json:"rtt_mean_ms"` // mean
	RTTMaxMS    float64 `json:"rtt_max_ms"`  // worst
	BitsPerS    float64 `json:"bits_per_s"`  // TCP throughput, From sending
	Retransmits int64   `json:"retransmits"` // TCP segments sent again during that
}

// Cloud is where the machines of a run came from and what they cost.
type Cloud struct {
	Provider    plan.Provider `json:"provider"`
	Region      string        `json:"region,omitempty"`
	Zone        string        `json:"zone,omitempty"`
	USDPerHour  float64       `json:"usd_per_hour,omitempty"` // on demand, all machines and disks
	PriceSource string        `json:"price_source,omitempty"` // where the prices came from, with their date
	USDSpent    float64       `json:"usd_spent,omitempty"`    // from apply until the last update of run.json
}

// HostFacts is what a host says of itself.
type HostFacts struct {
	Name          string      `json:"name"`
	Roles         []plan.Role `json:"roles"`
	Address       string      `json:"address,omitempty"`
	Engine        string      `json:"engine"` // engine name and version
	OS            string      `json:"os"`
	Kernel        string      `json:"kernel"`
	Arch          string      `json:"arch"`
	CPUModel      string      `json:"cpu_model,omitempty"`
	CPUs          int         `json:"cpus"`
	MemoryBytes   int64       `json:"memory_bytes"`
	CgroupVersion string      `json:"cgroup_version"`
	CgroupDriver  string      `json:"cgroup_driver"`
	StorageDriver string      `json:"storage_driver,omitempty"`
	InstanceType  string      `json:"instance_type,omitempty"`    // in a cloud
	RSAVerifyPerS float64     `json:"rsa_verify_per_s,omitempty"` // RSA-2048 verifications per second on one core, where it was measured
	// ClockOffsetMS is how far this host's clock was ahead of the first load
	// host's before the first window, in ms; nil where there is one host.
	ClockOffsetMS *float64 `json:"clock_offset_ms,omitempty"`
	// Facts are further facts recorded when the host was prepared, by name:
	// clock source, CPU governor, topology, NIC driver, disk.
	Facts map[string]string `json:"facts,omitempty"`
	// Siblings are the cores that have several threads, each as its CPUs; none
	// where every CPU is a core.
	Siblings []plan.CPUSet `json:"siblings,omitempty"`
}

// Event types, in the order in which they first appear.
const (
	EventRunStarted   = "run_started"   // Data: argv, reason (start or resume)
	EventVerify       = "verify"        // Data: a contract report for one candidate
	EventPhaseStarted = "phase_started" // Data: phase id
	EventBlockStarted = "block_started" // Block
	EventProbe        = "probe"         // Block, Data: reading of the reference probe
	EventWindow       = "window"        // Window: one finished attempt, good or bad
	EventBlockEnded   = "block_ended"   // Block
	EventBlockFailed  = "block_failed"  // Block, Error
	EventNote         = "note"          // Message
	EventRunEnded     = "run_ended"     // Message: complete, interrupted or failed
	EventTarget       = "target"        // Data: a plan.Resolved, a target that a measured ceiling has made known
	EventImported     = "imported"      // Data: an Import, in a folder made from the study's
)

// Event is one line of events.jsonl.
type Event struct {
	Time    time.Time       `json:"time"`
	Type    string          `json:"type"`
	Block   *plan.BlockID   `json:"block,omitempty"`
	Window  *WindowResult   `json:"window,omitempty"`
	Message string          `json:"message,omitempty"`
	Error   string          `json:"error,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Prev is the SHA-256 digest of the line before, without its end, in
	// hexadecimal: a chain in which a line that is missing shows. The first line of
	// a log has none, nor has any line that was written before there were chains.
	Prev string `json:"prev,omitempty"`
}

// Import is the data of an EventImported.
type Import struct {
	From  string            `json:"from"`  // folder that was imported, as it was named
	Files map[string]string `json:"files"` // path of a file that belongs to no window -> digest
}

// WindowResult is one attempt at a window: where its raw files are, what they
// say, and whether it counts as evidence.
type WindowResult struct {
	plan.Window
	Attempt int       `json:"attempt"` // from 1
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	OHA     string    `json:"oha,omitempty"`    // path below the run's folder
	CGroup  string    `json:"cgroup,omitempty"` // path below the run's folder: samples of the app's host
	// OtherOHA are the outputs of the second and further load generators: first
	// those of the first stream on further load hosts, then those of each further
	// stream on all load hosts. OtherCGroup are the samples of the hosts other than
	// the app's: host -> path.
	OtherOHA    []string          `json:"other_oha,omitempty"`
	OtherCGroup map[string]string `json:"other_cgroup,omitempty"`
	// Hosts is what each host said of its clock and its network; empty where
	// there is one host.
	Hosts    []HostReading      `json:"hosts,omitempty"`
	SHA256   map[string]string  `json:"sha256,omitempty"` // path -> digest
	Gates    []Gate             `json:"gates"`
	Database map[string]float64 `json:"database,omitempty"` // counter -> change over the window; package postgres says which are exact
	Measured *measure.Window    `json:"measured,omitempty"` // nil when the raw files could not be read
	Error    string             `json:"error,omitempty"`
}

// HostReading is what one host of several said about one window.
type HostReading struct {
	Host  string      `json:"host"` // its name
	Roles []plan.Role `json:"roles"`
	// ClockOffsetMS is how far its clock is ahead of the first load host's, in
	// ms, measured just before the window. ClockError says why there is none.
	ClockOffsetMS float64 `json:"clock_offset_ms"`
	ClockError    string  `json:"clock_error,omitempty"`
	// Allowances is how far each counter of exceeded network allowances of its
	// interfaces grew over the window: counter (as ethtool names it) -> growth.
	// It is nil where the driver has none. AllowanceError says why the counters
	// could not be read although there may be some.
	Allowances     map[string]int64 `json:"allowances,omitempty"`
	AllowanceError string           `json:"allowance_error,omitempty"`
}

// Passed reports whether the attempt is evidence: it was measured and no gate
// failed.
func (w WindowResult) Passed() bool {
	if w.Error != "" || w.Measured == nil {
		return false
	}
	for _, g := range w.Gates {
		if g.Failed() {
			return false
		}
	}
	return true
}

// Gate is the reading of one gate. A waived gate is one whose condition the
// profile gives up on purpose (shared cores on a machine too small): it is
// shown, it does not fail the window.
type Gate struct {
	Name    string  `json:"name"` // as package gates names it
	OK      bool    `json:"ok"`
	Waived  string  `json:"waived,omitempty"` // why the failure does not count
	Reading float64 `json:"reading"`
	Limit   float64 `json:"limit"`
	Unit    string  `json:"unit"`
	Detail  string  `json:"detail,omitempty"`
}

// Failed reports whether the gate makes its window unfit as evidence.
func (g Gate) Failed() bool { return !g.OK && g.Waived == "" }
