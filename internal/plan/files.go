package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
)

// Files below the project's root.
const (
	SuiteFile  = "candidates/oauth-events/suite.yaml"
	profileDir = "profiles"
	presetDir  = "profiles/presets"
)

// Bounds of a preset. They keep out typing errors: a connection needs a port of
// its own, and what is measured for less than a second is start-up.
const (
	MinTimeout     = 100 * time.Millisecond
	MinWarmup      = 100 * time.Millisecond
	MinWindow      = time.Second
	MaxDuration    = 24 * time.Hour // of each duration
	MaxRepetitions = 1000
	MaxConnections = 65535
	MaxTarget      = 10_000_000 // requests per second
)

// Bounds of what a preset and a selection make together.
const (
	MaxWindows = 100_000
	MaxTime    = 90 * 24 * time.Hour
)

var identifier = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// FindProfile reads the profile of that name below root, or the file at that
// path. What it returns is checked, but may still say auto.
func FindProfile(root, nameOrFile string) (Profile, error) {
	path, err := locate(root, profileDir, "profile", nameOrFile)
	if err != nil {
		return Profile{}, err
	}
	var p Profile
	if err := readYAML(path, &p); err != nil {
		return Profile{}, err
	}
	if p.Flavour == "" {
		p.Flavour = FlavourAuto
	}
	if err := p.check(); err != nil {
		return Profile{}, fail.Input("profile %s: %w", path, err)
	}
	return p, nil
}

// FindPreset reads the preset of that name below root, or the file at that
// path. Whether it is the published protocol is told from its values.
func FindPreset(root, nameOrFile string) (Preset, error) {
	path, err := locate(root, presetDir, "preset", nameOrFile)
	if err != nil {
		return Preset{}, err
	}
	var p Preset
	if err := readYAML(path, &p); err != nil {
		return Preset{}, err
	}
	if err := p.check(); err != nil {
		return Preset{}, fail.Input("preset %s: %w", path, err)
	}
	differs := p.Differences()
	if p.Published && differs != "" {
		return Preset{}, fail.Input("preset %s: published is true and the published values, in brackets, are others: %s; take published out", path, differs)
	}
	p.Published = differs == ""
	return p, nil
}

// ReadSuite reads the suite below root.
func ReadSuite(root string) (Suite, error) {
	path := filepath.Join(root, SuiteFile)
	var s Suite
	if err := readYAML(path, &s); err != nil {
		return Suite{}, err
	}
	if err := s.check(); err != nil {
		return Suite{}, fail.Input("suite %s: %w", path, err)
	}
	return s, nil
}

func list(root, dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".yaml"))
	}
	return names
}

// isFile tells the path of a file from the name of one that ships with percore.
func isFile(nameOrFile string) bool {
	return strings.ContainsRune(nameOrFile, filepath.Separator) || strings.HasSuffix(nameOrFile, ".yaml") || strings.HasSuffix(nameOrFile, ".yml")
}

// Source is how a profile or a preset is found again from another folder: the
// path of a file, made absolute, or the name of one that ships with percore.
func Source(nameOrFile string) string {
	if isFile(nameOrFile) {
		if abs, err := filepath.Abs(nameOrFile); err == nil {
			return abs
		}
	}
	return nameOrFile
}

func locate(root, dir, what, nameOrFile string) (string, error) {
	if isFile(nameOrFile) {
		return nameOrFile, nil
	}
	path := filepath.Join(root, dir, nameOrFile+".yaml")
	if _, err := os.Stat(path); identifier.MatchString(nameOrFile) && err == nil {
		return path, nil
	}
	return "", fail.Input("there is no %s %q; take one of %s, or the path of a YAML file", what, nameOrFile, strings.Join(append([]string{"auto"}, list(root, dir)...), ", "))
}

// readYAML reads a file whose every key must be known.
func readYAML(path string, into any) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	return decodeYAML(path, text, into)
}

func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail.Input("%s does not exist; give the path of a YAML file that does", path)
	}
	if err != nil {
		return nil, fail.Input("cannot read %s: %w", path, err)
	}
	return text, nil
}

func (p Profile) check() error {
	if !identifier.MatchString(p.Name) {
		return fmt.Errorf("name %q is not usable; write lower-case letters, digits, dots and dashes", p.Name)
	}
	switch p.Flavour {
	case FlavourAuto, FlavourPublished, FlavourDebian:
	default:
		return fmt.Errorf("flavour %q is unknown; write auto, published or debian", p.Flavour)
	}
	if p.DatabaseConnections < 1 || p.DatabaseConnections > 90 {
		return fmt.Errorf("database_connections is %d; write 1 to 90, since PostgreSQL is set to 100", p.DatabaseConnections)
	}
	for role := range p.Roles {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("role %q is unknown; the roles are app, db and load", role)
		}
	}
	auto := 0
	for _, role := range Roles() {
		r, ok := p.Roles[role]
		if !ok || r.CPUs == "" {
			return fmt.Errorf("role %s has no CPUs; write cpus: \"0-3\" or cpus: auto", role)
		}
		if r.Memory != 0 && r.Memory < 64<<20 {
			return fmt.Errorf("role %s has %s of memory; write 64MiB or more", role, r.Memory)
		}
		if r.CPUs == AutoCPUs {
			auto++
			continue
		}
		if _, err := ParseCPUs(string(r.CPUs)); err != nil {
			return fmt.Errorf("role %s: %w; write CPU numbers as in 0-3,8", role, err)
		}
	}
	if auto != 0 && auto != len(Roles()) {
		return fmt.Errorf("some roles have cpus: auto and others a list; write auto for all or for none")
	}
	if err := p.checkCloud(); err != nil {
		return err
	}
	if auto == 0 && p.Cloud == nil {
		return p.checkOverlap()
	}
	return nil
}

// checkOverlap refuses roles on the same CPUs, unless the profile says that it
// means it.
func (p Profile) checkOverlap() error {
	if p.SharedCores {
		return nil
	}
	roles := Roles()
	for i, a := range roles {
		for _, b := range roles[i+1:] {
			if both := p.Roles[a].CPUs.Shared(p.Roles[b].CPUs); len(both) > 0 {
				return fmt.Errorf("roles %s and %s overlap on CPU %s; give each role CPUs of its own, or write shared_cores: true and accept that figures are not comparable", a, b, FormatCPUs(both))
			}
		}
	}
	return nil
}

func (p Preset) check() error {
	if !identifier.MatchString(p.Name) {
		return fmt.Errorf("name %q is not usable; write lower-case letters, digits, dots and dashes", p.Name)
	}
	for _, c := range []struct {
		key   string
		d     Duration
		least time.Duration
	}{{"timeout", p.Timeout, MinTimeout}, {"warmup", p.Warmup, MinWarmup}, {"probe.window", p.Probe.Window, MinWindow}} {
		if c.d.Std() < c.least || c.d.Std() > MaxDuration {
			return fmt.Errorf("%s is %s; write %s to %s", c.key, c.d, c.least, Duration(MaxDuration))
		}
	}
	if n := p.Probe.Connections; n < 1 || n > MaxConnections {
		return fmt.Errorf("probe.connections is %d; write 1 to %d", n, MaxConnections)
	}
	if n := p.Probe.Target; n < 1 || n > MaxTarget {
		return fmt.Errorf("probe.target is %d; write requests per second, 1 to %d", n, MaxTarget)
	}
	if len(p.Phases) == 0 {
		return fmt.Errorf("it has no phases; write at least one")
	}
	ids := map[string]bool{}
	for _, ph := range p.Phases {
		if err := ph.check(); err != nil {
			return fmt.Errorf("phase %q: %w", ph.ID, err)
		}
		if ids[ph.ID] {
			return fmt.Errorf("phase %q stands in it twice; give each its own id", ph.ID)
		}
		ids[ph.ID] = true
		// A probe that is asked for less than the phase says nothing about
		// whether generator and machine carry the phase.
		for _, sc := range slices.Sorted(maps.Keys(ph.Targets)) {
			if t := ph.Targets[sc]; p.Probe.Target < t {
				return fmt.Errorf("probe.target is %d and phase %q has %d for %s; write %d or more, since the probe shows that the rate can be offered at all", p.Probe.Target, ph.ID, t, sc, t)
			}
		}
	}
	return nil
}

func (ph Phase) check() error {
	if !identifier.MatchString(ph.ID) {
		return fmt.Errorf("the id is not usable; write lower-case letters, digits, dots and dashes")
	}
	if ph.Kind != KindRate && ph.Kind != KindCeiling {
		return fmt.Errorf("kind %q is unknown; write rate or ceiling", ph.Kind)
	}
	if ph.Window.Std() < MinWindow || ph.Window.Std() > MaxDuration {
		return fmt.Errorf("window is %s; write %s to %s", ph.Window, MinWindow, Duration(MaxDuration))
	}
	if ph.Window%Duration(time.Second) != 0 {
		return fmt.Errorf("window is %s; write whole seconds", ph.Window)
	}
	if ph.Cooldown < 0 || ph.Cooldown.Std() > MaxDuration {
		return fmt.Errorf("cooldown is %s; write 0s to %s", ph.Cooldown, Duration(MaxDuration))
	}
	if ph.Repetitions < 1 || ph.Repetitions > MaxRepetitions {
		return fmt.Errorf("repetitions is %d; write 1 to %d", ph.Repetitions, MaxRepetitions)
	}
	if len(ph.Connections) == 0 {
		return fmt.Errorf("it has no connections; write a list as in [16, 64]")
	}
	for i, c := range ph.Connections {
		if c < 1 || c > MaxConnections {
			return fmt.Errorf("connections has %d; write 1 to %d", c, MaxConnections)
		}
		if slices.Contains(ph.Connections[:i], c) {
			return fmt.Errorf("%d connections stand in the list twice", c)
		}
	}
	if ph.Kind == KindRate && len(ph.Connections) != 1 {
		return fmt.Errorf("a rate phase has one number of connections, not %d", len(ph.Connections))
	}
	if ph.Kind == KindRate && len(ph.Targets) == 0 {
		return fmt.Errorf("a rate phase needs targets, as in targets: {read: 1000}")
	}
	if ph.Kind == KindCeiling && len(ph.Targets) != 0 {
		return fmt.Errorf("a ceiling phase has no targets; take them out")
	}
	for _, s := range slices.Sorted(maps.Keys(ph.Targets)) {
		if t := ph.Targets[s]; t < 1 || t > MaxTarget {
			return fmt.Errorf("target of %s is %d; write requests per second, 1 to %d", s, t, MaxTarget)
		}
	}
	return nil
}

// checkSize refuses a preset that with a suite makes more windows than a run can
// lay out, or takes longer than MaxTime.
func (p Preset) checkSize(s Suite) error {
	windows, seconds := 0, 0.0
	for _, ph := range p.Phases {
		blocks := ph.Repetitions * len(s.Candidates)
		n := len(s.Scenarios) * len(ph.Connections)
		windows += blocks * n
		seconds += float64(blocks) * (p.Probe.Window.Seconds() + float64(len(s.Scenarios))*p.Warmup.Seconds() + float64(n)*(ph.Window.Seconds()+ph.Cooldown.Seconds()))
	}
	if windows > MaxWindows {
		return fail.Input("preset %s makes %d windows, and a run has %d at most; write fewer repetitions or connections", p.Name, windows, MaxWindows)
	}
	if limit := MaxTime.Seconds(); seconds > limit {
		return fail.Input("preset %s takes %.0f days, and a run takes %.0f at most; write shorter windows and pauses or fewer repetitions", p.Name, seconds/86400, limit/86400)
	}
	return nil
}

func (s Suite) check() error {
	if !identifier.MatchString(s.Name) {
		return fmt.Errorf("name %q is not usable", s.Name)
	}
	if s.Rows < 1 || s.Subject == "" || s.Issuer == "" || s.Audience == "" {
		return fmt.Errorf("rows, subject, issuer and audience must all be set")
	}
	if len(s.Scenarios) == 0 || len(s.Candidates) == 0 {
		return fmt.Errorf("it needs scenarios and candidates")
	}
	seen := map[string]bool{}
	for _, sc := range s.Scenarios {
		if !identifier.MatchString(sc.ID) || seen[sc.ID] {
			return fmt.Errorf("scenario %q is not usable or stands in it twice", sc.ID)
		}
		if sc.Method == "" || !strings.HasPrefix(sc.Path, "/") {
			return fmt.Errorf("scenario %q needs a method and a path that starts with /", sc.ID)
		}
		seen[sc.ID] = true
	}
	seen = map[string]bool{}
	for _, c := range s.Candidates {
		if !identifier.MatchString(c.ID) || seen[c.ID] || c.Image == "" {
			return fmt.Errorf("candidate %q is not usable, has no image or stands in it twice", c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

// Scenario returns the scenario of that id.
func (s Suite) Scenario(id string) (Scenario, bool) {
	i := slices.IndexFunc(s.Scenarios, func(sc Scenario) bool { return sc.ID == id })
	if i < 0 {
		return Scenario{}, false
	}
	return s.Scenarios[i], true
}

// Candidate returns the candidate of that id.
func (s Suite) Candidate(id string) (Candidate, bool) {
	i := slices.IndexFunc(s.Candidates, func(c Candidate) bool { return c.ID == id })
	if i < 0 {
		return Candidate{}, false
	}
	return s.Candidates[i], true
}
