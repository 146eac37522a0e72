package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/percore/percore/internal/fail"
)

// Files below the project's root.
const (
	SuiteFile  = "candidates/suite.yaml"
	profileDir = "profiles"
	presetDir  = "profiles/presets"
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

// FindPreset reads the preset of that name below root, or the file at that path.
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
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail.Input("%s does not exist; give the path of a YAML file that does", path)
	}
	if err != nil {
		return fail.Input("cannot read %s: %w", path, err)
	}
	return decodeYAML(path, text, into)
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
	positive := func(what string, d Duration) error {
		if d <= 0 || d > Duration(24*3600e9) {
			return fmt.Errorf("%s is %s; write a duration above 0 and up to 24h", what, d)
		}
		return nil
	}
	if err := errors.Join(positive("timeout", p.Timeout), positive("warmup", p.Warmup), positive("probe window", p.Probe.Window)); err != nil {
		return err
	}
	if p.Probe.Connections < 1 || p.Probe.Target < 1 {
		return fmt.Errorf("probe has %d connections and target %d; write 1 or more for both", p.Probe.Connections, p.Probe.Target)
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
	if ph.Window < Duration(1e9) || ph.Window > Duration(24*3600e9) {
		return fmt.Errorf("window is %s; write 1s to 24h", ph.Window)
	}
	if ph.Window%Duration(1e9) != 0 {
		return fmt.Errorf("window is %s; write whole seconds", ph.Window)
	}
	if ph.Cooldown < 0 {
		return fmt.Errorf("cooldown is %s; write 0s or more", ph.Cooldown)
	}
	if ph.Repetitions < 1 {
		return fmt.Errorf("repetitions is %d; write 1 or more", ph.Repetitions)
	}
	if len(ph.Connections) == 0 {
		return fmt.Errorf("it has no connections; write a list as in [16, 64]")
	}
	for i, c := range ph.Connections {
		if c < 1 || c > 65535 {
			return fmt.Errorf("%d connections; write 1 to 65535", c)
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
	for s, t := range ph.Targets {
		if t < 1 {
			return fmt.Errorf("target of %s is %d; write requests per second, 1 or more", s, t)
		}
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
