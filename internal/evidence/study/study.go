// Package study reads the raw folder of the published php-go-bench study: the
// load generator's JSON and the cgroup samples under raw/, described by
// meta.json. A part of such a folder is read as well: repetitions and samples
// may be missing. It yields the window records that a percore run yields.
package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/oha"
	"github.com/percore/percore/internal/evidence/samples"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// ImportedBy is what run.json names as its driver where a results folder was
// made from a raw folder of the published study.
const ImportedBy = "php-go-bench"

// Phases as percore names them. The study's files say rate and ceil.
const (
	PhaseRate    = "rate"
	PhaseCeiling = "ceiling"
)

// Study is one raw folder.
type Study struct {
	Dir     string
	Run     store.Run // identity and protocol, as far as meta.json tells
	Windows []store.WindowResult
	Probes  []Probe
	Notes   []string // what a reader should know about what was found
}

// Probe is the reading of one reference probe.
type Probe struct {
	Block   plan.BlockID
	Reading store.ProbeReading
}

// The study names one candidate otherwise than percore.
var candidateID = map[string]string{"fpm": "php-fpm"}

// Candidate turns the study's name of a candidate into percore's id.
func Candidate(name string) string {
	if id, ok := candidateID[name]; ok {
		return id
	}
	return name
}

// CandidateName turns percore's id of a candidate into the study's name.
func CandidateName(id string) string {
	for name, v := range candidateID {
		if v == id {
			return name
		}
	}
	return id
}

// Is reports whether a folder looks like the study's: it has a raw folder and
// is not the results folder of a percore run.
func Is(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, store.RunFile)); err == nil {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "raw"))
	return err == nil && info.IsDir()
}

// Locate returns the study's results folder for a path that is one, or that
// holds exactly one as results/STAMP. It returns "" when there is none.
func Locate(dir string) string {
	if Is(dir) {
		return dir
	}
	if _, err := os.Stat(filepath.Join(dir, store.RunFile)); err == nil {
		return ""
	}
	hits, _ := fs.Glob(os.DirFS(dir), "results/*/meta.json") // the folder's own name is no pattern
	if len(hits) == 1 {
		if found := filepath.Join(dir, filepath.FromSlash(path.Dir(hits[0]))); Is(found) {
			return found
		}
	}
	return ""
}

var (
	rateName    = regexp.MustCompile(`^rate_(.+)_([^_]+)_q([0-9]{1,9})_r([0-9]{1,6})\.json$`)
	ceilingName = regexp.MustCompile(`^ceil_(.+)_([^_]+)_c([0-9]{1,9})_r([0-9]{1,6})\.json$`)
	probeName   = regexp.MustCompile(`^probe-[a-z]+_(rate|ceil)_(.+)_r([0-9]{1,6})\.json$`)
)

// Read reads a folder of the study. A file that cannot be read is bad input.
func Read(dir string) (*Study, error) {
	raw := filepath.Join(dir, "raw")
	entries, err := os.ReadDir(raw)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail.In(dir, "there is no folder raw in it").Try("name the folder that holds the study's meta.json and raw")
	}
	if err != nil {
		return nil, fmt.Errorf("reading a folder of the study: %w", err)
	}
	s := &Study{Dir: dir}
	m, err := s.meta()
	if err != nil {
		return nil, err
	}
	var names, alone []string // load-generator files; sample files without one
	there, folder := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		there[e.Name()], folder[e.Name()] = true, e.IsDir()
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	for _, e := range entries {
		if stem, ok := strings.CutSuffix(e.Name(), samples.Ending); ok && !there[stem+".json"] {
			alone = append(alone, e.Name())
		}
	}
	ignored := 0
	type job struct {
		name   string
		window plan.Window
	}
	var jobs []job
	var beyond []string
	seen := map[string]string{} // key of a window -> its file
	for _, name := range names {
		if g := probeName.FindStringSubmatch(name); g != nil {
			if err := s.probe(m, raw, name, g); err != nil {
				return nil, err
			}
			continue
		}
		w, ok := m.window(name)
		if !ok {
			if !folder[name] {
				ignored++
			}
			continue
		}
		if other, twice := seen[w.Key()]; twice {
			return nil, fail.In(raw, "%s and %s are the same window", other, name).Try("take one of them away")
		}
		seen[w.Key()] = name
		if m.beyond(w) {
			beyond = append(beyond, name)
		}
		jobs = append(jobs, job{name, w})
	}
	if len(jobs) == 0 {
		return nil, fail.In(raw, "there are no load-generator files of the study in it (rate_CANDIDATE_SCENARIO_qRATE_rN.json or ceil_CANDIDATE_SCENARIO_cCONNECTIONS_rN.json)").Try("copy them into it")
	}
	for _, j := range jobs {
		r, err := readWindow(raw, j.name, j.window)
		if err != nil {
			return nil, err
		}
		s.Windows = append(s.Windows, r)
	}
	if ignored > 0 {
		what := "1 JSON file in raw is not named like a measurement of the study and was left aside"
		if ignored > 1 {
			what = fmt.Sprintf("%d JSON files in raw are not named like a measurement of the study and were left aside", ignored)
		}
		s.Notes = append(s.Notes, what)
	}
	if len(alone) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("samples without a load-generator file beside them were left aside: %s", few(alone)))
	}
	if len(beyond) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("windows that the protocol does not ask for, by their repetition or their target, count like the others: %s", few(beyond)))
	}
	s.describe(m)
	return s, nil
}

// few lists the first names.
func few(names []string) string {
	const most = 5
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// beyond reports whether the protocol has no such window in a cell that it has:
// a further repetition, or another target.
func (m meta) beyond(w plan.Window) bool {
	if w.Kind == plan.KindCeiling {
		return w.Repetition > m.ceilingRepetitions
	}
	target := m.Config.Rate.Targets[w.Scenario]
	return w.Repetition > m.rateRepetitions || target > 0 && w.Target != target
}

// window reads the name of a load-generator file.
func (m meta) window(name string) (plan.Window, bool) {
	if g := rateName.FindStringSubmatch(name); g != nil {
		target, rep := number(g[3]), number(g[4])
		return plan.Window{
			Phase: PhaseRate, Kind: plan.KindRate, Candidate: Candidate(g[1]), Scenario: g[2],
			Repetition: rep, Connections: m.rateConnections(), Target: target, Seconds: m.rateWindow.Seconds(),
		}, rep > 0 && target > 0
	}
	if g := ceilingName.FindStringSubmatch(name); g != nil {
		connections, rep := number(g[3]), number(g[4])
		return plan.Window{
			Phase: PhaseCeiling, Kind: plan.KindCeiling, Candidate: Candidate(g[1]), Scenario: g[2],
			Repetition: rep, Connections: connections, Seconds: m.ceilingWindow.Seconds(),
		}, rep > 0 && connections > 0
	}
	return plan.Window{}, false
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // the pattern lets digits through only
	return n
}

// remedy is what to do about a bad load-generator file: nobody can measure a
// window of the study again.
const remedy = "copy the file again, or take it away to report the study without it"

// readWindow reads the pair of files of one window. The samples may be missing.
func readWindow(raw, name string, w plan.Window) (store.WindowResult, error) {
	res := store.WindowResult{Window: w, Attempt: 1, OHA: "raw/" + name}
	out, err := oha.Read(filepath.Join(raw, name), remedy)
	if err != nil {
		return res, err
	}
	var counters measure.Counters = measure.None{}
	sampleFile := strings.TrimSuffix(name, ".json") + samples.Ending
	data, err := os.ReadFile(filepath.Join(raw, sampleFile))
	switch {
	case err == nil:
		series, err := samples.ParseWindow(filepath.Join(raw, sampleFile), data, out.Seconds)
		if err != nil {
			return res, err
		}
		counters = series
		res.CGroup = "raw/" + sampleFile
		res.Start, res.End = time.Unix(0, series.Start).UTC(), time.Unix(0, series.End).UTC()
	case isDir(filepath.Join(raw, sampleFile)):
		return res, fail.In(filepath.Join(raw, sampleFile), "this is a folder and no sample file").Try("copy the file again, or take the folder away to report this window without its counters")
	case !errors.Is(err, fs.ErrNotExist):
		return res, fmt.Errorf("reading samples of the study: %w", err)
	}
	outputs := []measure.Output{{Host: string(plan.Load), Result: out}}
	figures, err := measure.Of(outputs, counters, "app", "db", time.Duration(w.Seconds*float64(time.Second)))
	if err != nil {
		return res, err
	}
	res.Measured = &figures
	// The study recorded no gates. What can be judged is kept where it fails.
	res.Gates = gates.FailedOf(w, outputs)
	return res, nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func (s *Study) probe(m meta, raw, name string, g []string) error {
	out, err := oha.Read(filepath.Join(raw, name), remedy)
	if err != nil {
		return err
	}
	phase := PhaseRate
	if g[1] == "ceil" {
		phase = PhaseCeiling
	}
	s.Probes = append(s.Probes, Probe{
		Block:   plan.BlockID{Phase: phase, Candidate: Candidate(g[2]), Repetition: number(g[3])},
		Reading: store.ProbeReading{Target: m.Config.Probe.Rate, Achieved: float64(out.OK()) / m.probeWindow.Seconds(), Attempt: 1, File: "raw/" + name},
	})
	return nil
}

// meta is the part of meta.json that is read, with the study's own protocol
// where it is silent.
type meta struct {
	Stamp    string    `json:"stamp"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Host     struct {
		CPU    string `json:"cpu"`
		Cores  int    `json:"cores"`
		MacOS  string `json:"macos"`
		Docker struct {
			Version string `json:"dockerVersion"`
			Kernel  string `json:"kernel"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
			VCPUs   int    `json:"vcpus"`
			Memory  int64  `json:"memoryBytes"`
		} `json:"docker"`
	} `json:"host"`
	Versions map[string]string `json:"versions"`
	Config   struct {
		Candidates []string `json:"candidates"`
		Scenarios  []struct {
			ID     string `json:"id"`
			Method string `json:"method"`
			Path   string `json:"path"`
			Random bool   `json:"randomPath"`
			Body   string `json:"body"`
		} `json:"scenarios"`
		Rate struct {
			Targets     map[string]int `json:"targets"`
			Connections int            `json:"connections"`
			Duration    string         `json:"duration"`
			Repetitions int            `json:"repetitions"`
		} `json:"rate"`
		Ceiling struct {
			Connections []int  `json:"connections"`
			Duration    string `json:"duration"`
			Repetitions int    `json:"repetitions"`
		} `json:"ceiling"`
		Probe struct {
			Rate        int    `json:"rate"`
			Connections int    `json:"connections"`
			Duration    string `json:"duration"`
		} `json:"probe"`
		Budget struct {
			App           budget `json:"app"`
			DB            budget `json:"db"`
			Load          budget `json:"load"`
			DBConnections int    `json:"dbConnections"`
		} `json:"budget"`
	} `json:"config"`
	Effective struct {
		RateDuration       string `json:"rateDuration"`
		RateRepetitions    int    `json:"rateRepetitions"`
		CeilingDuration    string `json:"ceilingDuration"`
		CeilingRepetitions int    `json:"ceilingRepetitions"`
		CeilingConnections []int  `json:"ceilingConnections"`
		ProbeDuration      string `json:"probeDuration"`
	} `json:"effective"`

	there                                  bool
	rateWindow, ceilingWindow, probeWindow time.Duration
	rateRepetitions, ceilingRepetitions    int
	ceilingConnections                     []int
}

type budget struct {
	CPUs   string `json:"cpus"`
	Memory string `json:"memory"`
}

func (m meta) rateConnections() int {
	if m.Config.Rate.Connections > 0 {
		return m.Config.Rate.Connections
	}
	return 256
}

// profileName names the layout of the study's machine, and any other "study".
func (m meta) profileName() string {
	b := m.Config.Budget
	if !m.there || (b.App.CPUs == "0-3" && b.DB.CPUs == "4-7" && b.Load.CPUs == "8-11") {
		return "m4pro"
	}
	return "study"
}

// meta reads meta.json, which may be missing.
func (s *Study) meta() (meta, error) {
	var m meta
	name := filepath.Join(s.Dir, "meta.json")
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Notes = append(s.Notes, "meta.json is missing: the study's own protocol is assumed (fixed rate 60 s and 5 repetitions; ceiling 15 s, 3 repetitions and 16, 64, 128 and 256 connections)")
	case err != nil:
		return m, fmt.Errorf("reading a folder of the study: %w", err)
	default:
		if err := json.Unmarshal(data, &m); err != nil {
			var syntax *json.SyntaxError
			var kind *json.UnmarshalTypeError
			var at int64
			why := err.Error()
			switch {
			case errors.As(err, &syntax):
				at = syntax.Offset
			case errors.As(err, &kind) && kind.Field == "":
				at, why = kind.Offset, kind.Value+" in place of an object"
			case errors.As(err, &kind):
				at, why = kind.Offset, fmt.Sprintf("the wrong kind of value in %s: %s", kind.Field, kind.Value)
			}
			line := 1 + bytes.Count(data[:min(int(at), len(data))], []byte("\n"))
			return m, fail.In(fail.Line(name, line), "not the study's description of a run (%s)", why).Try("copy the file again, or take it away to have the study's own protocol assumed")
		}
		m.there = true
	}
	for _, d := range []struct {
		to        *time.Duration
		texts     []string
		otherwise time.Duration
	}{
		{&m.rateWindow, []string{m.Effective.RateDuration, m.Config.Rate.Duration}, 60 * time.Second},
		{&m.ceilingWindow, []string{m.Effective.CeilingDuration, m.Config.Ceiling.Duration}, 15 * time.Second},
		{&m.probeWindow, []string{m.Effective.ProbeDuration, m.Config.Probe.Duration}, 10 * time.Second},
	} {
		*d.to = d.otherwise
		for _, text := range d.texts {
			if text == "" {
				continue
			}
			v, err := time.ParseDuration(text)
			if err != nil || v <= 0 || v > maxWindow {
				return m, fail.In(name, "%q is not the length of a window of at most %.0f hours", text, maxWindow.Hours()).Try("write it as in 60s")
			}
			*d.to = v
			break
		}
	}
	if err := m.check(name); err != nil {
		return m, err
	}
	pick := func(otherwise int, values ...int) int {
		for _, v := range values {
			if v > 0 {
				return v
			}
		}
		return otherwise
	}
	m.rateRepetitions = pick(5, m.Effective.RateRepetitions, m.Config.Rate.Repetitions)
	m.ceilingRepetitions = pick(3, m.Effective.CeilingRepetitions, m.Config.Ceiling.Repetitions)
	m.Config.Probe.Rate = pick(50000, m.Config.Probe.Rate)
	m.ceilingConnections = m.Effective.CeilingConnections
	if len(m.ceilingConnections) == 0 {
		m.ceilingConnections = m.Config.Ceiling.Connections
	}
	if len(m.ceilingConnections) == 0 {
		m.ceilingConnections = []int{16, 64, 128, 256}
	}
	return m, nil
}

// Bounds of what meta.json says of the protocol: numbers beyond them are a
// mistake, and what is planned by them could not be counted.
const (
	maxWindow      = 24 * time.Hour
	maxRepetitions = 1000
	maxConnections = 1_000_000
	maxRate        = 1_000_000_000
)

// check looks for numbers that cannot be. Zero stands for one that is not
// there.
func (m meta) check(file string) error {
	type number struct {
		key       string
		n, atMost int
	}
	c, e := m.Config, m.Effective
	list := []number{
		{"config.rate.repetitions", c.Rate.Repetitions, maxRepetitions},
		{"config.rate.connections", c.Rate.Connections, maxConnections},
		{"config.ceiling.repetitions", c.Ceiling.Repetitions, maxRepetitions},
		{"config.probe.rate", c.Probe.Rate, maxRate},
		{"config.probe.connections", c.Probe.Connections, maxConnections},
		{"config.budget.dbConnections", c.Budget.DBConnections, maxConnections},
		{"effective.rateRepetitions", e.RateRepetitions, maxRepetitions},
		{"effective.ceilingRepetitions", e.CeilingRepetitions, maxRepetitions},
	}
	for _, id := range slices.Sorted(maps.Keys(c.Rate.Targets)) {
		list = append(list, number{"config.rate.targets." + id, c.Rate.Targets[id], maxRate})
	}
	for _, n := range c.Ceiling.Connections {
		list = append(list, number{"config.ceiling.connections", n, maxConnections})
	}
	for _, n := range e.CeilingConnections {
		list = append(list, number{"effective.ceilingConnections", n, maxConnections})
	}
	for _, v := range list {
		if v.n < 0 || v.n > v.atMost {
			return fail.In(file, "%s is %d and must be from 0 to %d", v.key, v.n, v.atMost).Try("copy the file again, or correct it")
		}
	}
	return nil
}

// versionIDs names versions as a percore run does.
var versionIDs = map[string]string{
	"phpFpm": "php-fpm", "phpFrankenphp": "frankenphp-php", "postgres": "postgresql",
	"golangJwt": "golang-jwt", "firebasePhpJwt": "firebase-php-jwt",
}

var versionPattern = regexp.MustCompile(`[0-9]+(\.[0-9]+)+( (NTS|ZTS))?`)

// versionNumber takes the number out of what a program says of its version.
func versionNumber(s string) string {
	if n := versionPattern.FindString(s); n != "" {
		return n
	}
	return s
}

// describe fills in run.json from meta.json and from what was found.
func (s *Study) describe(m meta) {
	abs, err := filepath.Abs(s.Dir)
	if err != nil {
		abs = s.Dir
	}
	run := store.Run{
		Version: store.Version, ID: m.Stamp, Percore: "php-go-bench", Started: m.Started,
		Suite:   plan.Suite{Name: "oauth-events", Rows: 1_000_000},
		Profile: plan.Profile{Name: m.profileName(), DatabaseConnections: m.Config.Budget.DBConnections},
		Preset:  plan.Preset{Name: "study"},
		Flavour: plan.FlavourPublished, Versions: map[string]string{}, Comparable: true,
	}
	if run.ID == "" {
		run.ID = filepath.Base(abs)
	}
	if !m.Finished.IsZero() {
		run.Ended = &m.Finished
	}
	if m.there {
		b := m.Config.Budget
		run.Profile.Roles = map[plan.Role]plan.Resources{}
		for role, v := range map[plan.Role]budget{plan.App: b.App, plan.DB: b.DB, plan.Load: b.Load} {
			r := plan.Resources{CPUs: plan.CPUSet(v.CPUs)}
			_ = r.Memory.UnmarshalText([]byte(v.Memory)) // stays unknown when it is written otherwise
			run.Profile.Roles[role] = r
		}
		run.Hosts = []store.HostFacts{{
			Name: "study", Roles: plan.Roles(), Engine: strings.TrimSpace(m.Host.Docker.OS + " " + m.Host.Docker.Version),
			OS: "macOS " + m.Host.MacOS, Kernel: m.Host.Docker.Kernel, Arch: m.Host.Docker.Arch, CPUModel: m.Host.CPU,
			CPUs: max(m.Host.Docker.VCPUs, m.Host.Cores), MemoryBytes: m.Host.Docker.Memory,
		}}
	}
	for id, v := range m.Versions {
		if to, ok := versionIDs[id]; ok {
			id = to
		}
		run.Versions[id] = versionNumber(v)
	}

	// The plan: what meta.json says was to be measured, of which the folder may
	// hold a part; what is not described is added as found.
	for _, c := range m.Config.Candidates {
		run.Candidates = append(run.Candidates, Candidate(c))
	}
	var scenarios []string
	for _, sc := range m.Config.Scenarios {
		run.Suite.Scenarios = append(run.Suite.Scenarios, plan.Scenario{
			ID: sc.ID, Method: sc.Method, Path: sc.Path, Random: sc.Random, Body: sc.Body, DB: sc.ID != "auth",
		})
		scenarios = append(scenarios, sc.ID)
	}
	rate := plan.Phase{ID: PhaseRate, Kind: plan.KindRate, Window: plan.Duration(m.rateWindow),
		Repetitions: m.rateRepetitions, Connections: []int{m.rateConnections()}, Targets: map[string]int{}}
	ceiling := plan.Phase{ID: PhaseCeiling, Kind: plan.KindCeiling, Window: plan.Duration(m.ceilingWindow),
		Repetitions: m.ceilingRepetitions, Connections: slices.Clone(m.ceilingConnections)}
	for id, t := range m.Config.Rate.Targets {
		rate.Targets[id] = t
	}
	for _, w := range s.Windows {
		if !slices.Contains(run.Candidates, w.Candidate) {
			run.Candidates = append(run.Candidates, w.Candidate)
		}
		if !slices.Contains(scenarios, w.Scenario) {
			scenarios = append(scenarios, w.Scenario)
			run.Suite.Scenarios = append(run.Suite.Scenarios, plan.Scenario{ID: w.Scenario, DB: w.Scenario != "auth"})
		}
		if w.Kind == plan.KindRate && rate.Targets[w.Scenario] == 0 {
			rate.Targets[w.Scenario] = w.Target
		}
		if w.Kind == plan.KindCeiling && !slices.Contains(ceiling.Connections, w.Connections) {
			ceiling.Connections = append(ceiling.Connections, w.Connections)
		}
	}
	slices.Sort(ceiling.Connections)
	for _, id := range run.Candidates {
		run.Suite.Candidates = append(run.Suite.Candidates, plan.Candidate{ID: id})
	}
	run.Preset.Phases = []plan.Phase{rate, ceiling}
	if rate.Window.Seconds() >= 60 && rate.Repetitions >= 5 && ceiling.Window.Seconds() >= 15 && ceiling.Repetitions >= 3 {
		run.Preset.Name, run.Preset.Published = "full", true
	}
	run.Preset.Probe = plan.Probe{Window: plan.Duration(m.probeWindow), Connections: m.Config.Probe.Connections, Target: m.Config.Probe.Rate}
	s.Run = run
}
