package plan

import "time"

// Profile describes a lab. In a file CPUs may be "auto"; in a resolved profile
// they are a list.
type Profile struct {
	Name                string             `yaml:"name" json:"name"`
	Description         string             `yaml:"description" json:"description"`
	Flavour             Flavour            `yaml:"flavour" json:"flavour"`
	DatabaseConnections int                `yaml:"database_connections" json:"database_connections"` // pool size, php-fpm children and FrankenPHP workers
	SharedCores         bool               `yaml:"shared_cores" json:"shared_cores"`                 // whether roles may run on the same CPUs
	Roles               map[Role]Resources `yaml:"roles" json:"roles"`
	Load                Generators         `yaml:"load,omitempty" json:"load,omitzero"`
	Cloud               *Cloud             `yaml:"cloud,omitempty" json:"cloud,omitempty"` // nil for a lab on one engine

	// Siblings are the cores of the engine's machine that have several threads,
	// each as its CPUs. It is found out and not written in a file; none means
	// that every CPU is a core, or that nothing is known.
	Siblings []CPUSet `yaml:"-" json:"siblings,omitempty"`
}

// Generators says over how many load hosts a target is spread.
type Generators struct {
	Count int `yaml:"count,omitempty" json:"count,omitempty"` // 0, which no file may say, means one
}

// Provider says who the machines of a cloud lab come from.
type Provider string

const (
	ProviderAWS   Provider = "aws"   // EC2 instances made for the run
	ProviderHosts Provider = "hosts" // machines that are there already
)

// Cloud says which machines a lab on several hosts has.
type Cloud struct {
	Provider Provider `yaml:"provider" json:"provider"`
	// IdentityFile is the private key for ssh to machines that are there
	// already; empty leaves it to ssh. Machines made for a run get a key of
	// their own.
	IdentityFile string `yaml:"identity_file,omitempty" json:"identity_file,omitempty"`

	// Of provider aws.
	Region         string          `yaml:"region,omitempty" json:"region,omitempty"`                   // empty: where the SDK's default chain points
	Zone           string          `yaml:"zone,omitempty" json:"zone,omitempty"`                       // empty: one that offers all types
	Instances      map[Role]string `yaml:"instances,omitempty" json:"instances,omitempty"`             // instance type of each role
	Disks          map[Role]Disk   `yaml:"disks,omitempty" json:"disks,omitempty"`                     // gp3 root volume of each role
	PlacementGroup *bool           `yaml:"placement_group,omitempty" json:"placement_group,omitempty"` // nil means yes
	Lifetime       Duration        `yaml:"lifetime,omitempty" json:"lifetime,omitempty"`               // after which machines shut themselves down; 0 means 4 h

	// Of provider hosts: every machine, one per role and further ones of role
	// load.
	Hosts []CloudHost `yaml:"hosts,omitempty" json:"hosts,omitempty"`
}

// Disk is a gp3 volume.
type Disk struct {
	SizeGiB       int `yaml:"size_gib,omitempty" json:"size_gib,omitempty"`             // 0 means 30
	IOPS          int `yaml:"iops,omitempty" json:"iops,omitempty"`                     // 0 means 3000
	ThroughputMiB int `yaml:"throughput_mib,omitempty" json:"throughput_mib,omitempty"` // MiB/s; 0 means 125
}

// CloudHost is a machine that is there already.
type CloudHost struct {
	Role         Role   `yaml:"role" json:"role"`
	Name         string `yaml:"name,omitempty" json:"name,omitempty"`                   // empty: the role, with a number from the second load host on
	SSH          string `yaml:"ssh" json:"ssh"`                                         // user@host or user@host:port
	Address      string `yaml:"address,omitempty" json:"address,omitempty"`             // where the other hosts reach it; empty: the host of SSH
	InstanceType string `yaml:"instance_type,omitempty" json:"instance_type,omitempty"` // for the report, where it has one
}

// Resources is what one role may use.
type Resources struct {
	CPUs   CPUSet `yaml:"cpus" json:"cpus"`
	Memory Bytes  `yaml:"memory" json:"memory"`
}

// Preset says what is measured and for how long.
type Preset struct {
	Name        string   `yaml:"name" json:"name"`
	Description string   `yaml:"description" json:"description"`
	Published   bool     `yaml:"published" json:"published"` // whether it is the published protocol to the letter
	Timeout     Duration `yaml:"timeout" json:"timeout"`     // of each request
	Warmup      Duration `yaml:"warmup" json:"warmup"`       // per scenario
	Probe       Probe    `yaml:"probe" json:"probe"`
	Phases      []Phase  `yaml:"phases" json:"phases"`
	// Attempts is how often a window is measured at most because gates fail; 0
	// means MaxAttempts.
	Attempts int `yaml:"attempts,omitempty" json:"attempts,omitempty"`
	// Otherwise says what it does otherwise than the study beside the values that
	// Differences compares, each in a few words.
	Otherwise []string `yaml:"otherwise,omitempty" json:"otherwise,omitempty"`
}

// MaxAttempts is how often a window is measured at most because gates fail.
const MaxAttempts = 3

// Allowed is how often a window may be measured because gates fail.
func (p Preset) Allowed() int {
	if p.Attempts == 0 {
		return MaxAttempts
	}
	return p.Attempts
}

// Probe is the reference probe before each block.
type Probe struct {
	Window      Duration `yaml:"window" json:"window"`
	Connections int      `yaml:"connections" json:"connections"`
	Target      int      `yaml:"target" json:"target"` // requests per second
}

// Kind is a kind of measurement.
type Kind string

const (
	KindRate    Kind = "rate"    // open loop: requests arrive at a fixed rate
	KindCeiling Kind = "ceiling" // closed loop: as many as the connections carry
	KindLevels  Kind = "levels"  // open loop, at shares of what the candidate's own ceiling was in the run
)

// Phase is one kind of measurement with its parameters.
type Phase struct {
	ID          string         `yaml:"id" json:"id"`
	Kind        Kind           `yaml:"kind" json:"kind"`
	Window      Duration       `yaml:"window" json:"window"`
	Repetitions int            `yaml:"repetitions" json:"repetitions"`
	Connections []int          `yaml:"connections" json:"connections"`
	Cooldown    Duration       `yaml:"cooldown" json:"cooldown"`                   // between two windows
	Targets     map[string]int `yaml:"targets,omitempty" json:"targets,omitempty"` // scenario or mix -> requests per second
	Target      *Of            `yaml:"target,omitempty" json:"target,omitempty"`   // in place of targets: what it rests on is measured first
	Mixes       []Mix          `yaml:"mixes,omitempty" json:"mixes,omitempty"`     // loads of several scenarios, which it measures in place of each by itself
}

// Of is a target that is known when something else has been measured.
type Of struct {
	Of     Kind      `yaml:"of" json:"of"` // ceiling: the candidate's best rate of that load, in the same run
	Shares []float64 `yaml:"shares" json:"shares"`
}

// Suite is one API contract with its scenarios and candidates.
type Suite struct {
	Name       string      `yaml:"name" json:"name"`
	Database   Database    `yaml:"database" json:"database,omitempty"` // empty in runs from before suites named it
	Rows       int         `yaml:"rows" json:"rows"`                   // seeded rows
	Subject    string      `yaml:"subject" json:"subject"`
	Issuer     string      `yaml:"issuer" json:"issuer"`
	Audience   string      `yaml:"audience" json:"audience"`
	Scenarios  []Scenario  `yaml:"scenarios" json:"scenarios"` // in the order in which a block measures them
	Candidates []Candidate `yaml:"candidates" json:"candidates"`
	// Otherwise says what the suite does otherwise than the study that it stands
	// for, each in a few words.
	Otherwise []string `yaml:"otherwise,omitempty" json:"otherwise,omitempty"`
}

// Scenario is one request shape.
type Scenario struct {
	ID     string `yaml:"id" json:"id"`
	Method string `yaml:"method" json:"method"`
	Path   string `yaml:"path" json:"path"`
	Random bool   `yaml:"random,omitempty" json:"random,omitempty"` // whether path is a pattern that the generator fills anew for each request
	Scope  string `yaml:"scope,omitempty" json:"scope,omitempty"`   // of its token
	Body   string `yaml:"body,omitempty" json:"body,omitempty"`
	DB     bool   `yaml:"database,omitempty" json:"database,omitempty"` // whether it uses the database
}

// Candidate is one implementation of the suite's contract.
type Candidate struct {
	ID    string             `yaml:"id" json:"id"`
	Title map[Flavour]string `yaml:"title" json:"title"`                 // how reports name it, per flavour
	Image string             `yaml:"image" json:"image"`                 // empty in a file: the candidate's own, in the folder of its id
	Env   map[string]string  `yaml:"env,omitempty" json:"env,omitempty"` // of its container, beside what every candidate is given
}

// Duration is a time.Duration that reads and writes "60s" in YAML and JSON.
type Duration time.Duration

// Bytes is a size that reads "1GiB" and writes the same.
type Bytes int64

// CPUSet is a set of CPU numbers in the kernel's list format: "0-3,8". The
// word "auto" stands for a set that is chosen when the machine is known.
type CPUSet string
