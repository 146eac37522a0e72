package plan

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
)

// Files below the project's root.
const (
	SuiteFile  = SuitesDir + "/" + DefaultSuite + "/" + suiteFile
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
	p := Profile{Load: Generators{Count: 1}} // so that a 0 shows that is written
	if err := readYAML(path, &p); err != nil {
		return Profile{}, err
	}
	if p.Flavour == "" {
		p.Flavour = FlavourAuto
	}
	if err := p.check(); err != nil {
		return Profile{}, placed("profile", path, err)
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
		return Preset{}, placed("preset", path, err)
	}
	differs := p.Differences()
	if p.Published && differs != "" {
		return Preset{}, placed("preset", path, fail.Input("published is true and the published values, in brackets, are others: %s", differs).On("published").Try("take published out"))
	}
	p.Published = differs == ""
	return p, nil
}

func list(root, dir string) []string {
	files, _ := os.ReadDir(filepath.Join(root, dir))
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".yaml"); ok && identifier.MatchString(name) {
			names = append(names, name)
		}
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
	return "", fail.Input("there is no %s %q", what, nameOrFile).Try("take one of %s, or the path of a YAML file", strings.Join(append([]string{"auto"}, list(root, dir)...), ", "))
}

// placed says in which file, and where it is known on which line, a value is that
// the file may not have.
func placed(what, path string, err error) error {
	data, readErr := readFile(path)
	if readErr != nil || fail.KeyOf(err) == "" {
		return fail.In(what+" "+path, "%w", err)
	}
	return written.Place(path, data, err)
}

func readFile(path string) ([]byte, error) {
	return infile.Read(path, yamlfile.MaxSize, written.What, written.Like)
}

func (p Profile) check() error {
	if !identifier.MatchString(p.Name) {
		return fail.Input("name %q is not usable", p.Name).On("name").Try("write lower-case letters, digits, dots and dashes")
	}
	switch p.Flavour {
	case FlavourAuto, FlavourPublished, FlavourDebian:
	default:
		return fail.Input("flavour %q is unknown", p.Flavour).On("flavour").Try("write auto, published or debian")
	}
	if p.DatabaseConnections < 1 || p.DatabaseConnections > 90 {
		return fail.Input("database_connections is %d", p.DatabaseConnections).On("database_connections").Try("write 1 to 90, since PostgreSQL is set to 100")
	}
	for role := range p.Roles {
		if !slices.Contains(Roles(), role) {
			return fail.Input("role %q is unknown", role).On("roles.%s", role).Try("the roles are app, db and load")
		}
	}
	auto := 0
	for _, role := range Roles() {
		r, ok := p.Roles[role]
		if !ok || r.CPUs == "" {
			return fail.Input("role %s has no CPUs", role).On("roles.%s", role).Try("write cpus: \"0-3\" or cpus: auto")
		}
		if r.Memory != 0 && r.Memory < 64<<20 {
			return fail.Input("role %s has %s of memory", role, r.Memory).On("roles.%s.memory", role).Try("write 64MiB or more")
		}
		if r.CPUs == AutoCPUs {
			auto++
			continue
		}
		if _, err := ParseCPUs(string(r.CPUs)); err != nil {
			return fail.Input("role %s: %w", role, err).On("roles.%s.cpus", role).Try("write CPU numbers as in 0-3,8")
		}
	}
	if auto != 0 && auto != len(Roles()) {
		return fail.Input("some roles have cpus: auto and others a list").On("roles").Try("write auto for all or for none")
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
				return fail.Input("roles %s and %s overlap on CPU %s", a, b, FormatCPUs(both)).On("roles.%s.cpus", b).Try("give each role CPUs of its own, or write shared_cores: true and accept that figures are not comparable")
			}
		}
	}
	return nil
}

func (p Preset) check() error {
	if !identifier.MatchString(p.Name) {
		return fail.Input("name %q is not usable", p.Name).On("name").Try("write lower-case letters, digits, dots and dashes")
	}
	for _, c := range []struct {
		key   string
		d     Duration
		least time.Duration
	}{{"timeout", p.Timeout, MinTimeout}, {"warmup", p.Warmup, MinWarmup}, {"probe.window", p.Probe.Window, MinWindow}} {
		if c.d.Std() < c.least || c.d.Std() > MaxDuration {
			return fail.Input("%s is %s", c.key, c.d).On("%s", c.key).Try("write %s to %s", c.least, Duration(MaxDuration))
		}
	}
	if n := p.Probe.Connections; n < 1 || n > MaxConnections {
		return fail.Input("probe.connections is %d", n).On("probe.connections").Try("write 1 to %d", MaxConnections)
	}
	if n := p.Probe.Target; n < 1 || n > MaxTarget {
		return fail.Input("probe.target is %d", n).On("probe.target").Try("write requests per second, 1 to %d", MaxTarget)
	}
	if n := p.Attempts; n < 0 || n > MaxAttempts {
		return fail.Input("attempts is %d", n).On("attempts").Try("write 1 to %d", MaxAttempts)
	}
	if len(p.Phases) == 0 {
		return fail.Input("it has no phases").On("phases").Try("write at least one")
	}
	ids := map[string]bool{}
	for i, ph := range p.Phases {
		if err := ph.check(); err != nil {
			return fmt.Errorf("phase %q: %w", ph.ID, fail.Below(fmt.Sprintf("phases[%d]", i), err))
		}
		if ids[ph.ID] {
			return fail.Input("phase %q is in it twice", ph.ID).On("phases[%d].id", i).Try("give each its own id")
		}
		ids[ph.ID] = true
		if err := ph.checkTarget(p.Phases[:i]); err != nil {
			return fmt.Errorf("phase %q: %w", ph.ID, fail.Below(fmt.Sprintf("phases[%d]", i), err))
		}
		// A probe that is asked for less than the phase says nothing about
		// whether generator and machine carry the phase.
		for _, sc := range slices.Sorted(maps.Keys(ph.Targets)) {
			if t := ph.Targets[sc]; p.Probe.Target < t {
				return fail.Input("probe.target is %d and phase %q has %d for %s", p.Probe.Target, ph.ID, t, sc).On("probe.target").Try("write %d or more, since the probe shows that the rate can be offered at all", t)
			}
		}
	}
	return nil
}

func (ph Phase) check() error {
	if !identifier.MatchString(ph.ID) {
		return fail.Input("the id is not usable").On("id").Try("write lower-case letters, digits, dots and dashes")
	}
	if ph.Kind != KindRate && ph.Kind != KindCeiling && ph.Kind != KindLevels {
		return fail.Input("kind %q is unknown", ph.Kind).On("kind").Try("write rate, ceiling or levels")
	}
	if ph.Window.Std() < MinWindow || ph.Window.Std() > MaxDuration {
		return fail.Input("window is %s", ph.Window).On("window").Try("write %s to %s", MinWindow, Duration(MaxDuration))
	}
	if ph.Window%Duration(time.Second) != 0 {
		return fail.Input("window is %s", ph.Window).On("window").Try("write whole seconds")
	}
	if ph.Cooldown < 0 || ph.Cooldown.Std() > MaxDuration {
		return fail.Input("cooldown is %s", ph.Cooldown).On("cooldown").Try("write 0s to %s", Duration(MaxDuration))
	}
	if ph.Repetitions < 1 || ph.Repetitions > MaxRepetitions {
		return fail.Input("repetitions is %d", ph.Repetitions).On("repetitions").Try("write 1 to %d", MaxRepetitions)
	}
	if len(ph.Connections) == 0 {
		return fail.Input("it has no connections").On("connections").Try("write a list as in [16, 64]")
	}
	for i, c := range ph.Connections {
		if c < 1 || c > MaxConnections {
			return fail.Input("connections has %d", c).On("connections").Try("write 1 to %d", MaxConnections)
		}
		if slices.Contains(ph.Connections[:i], c) {
			return fail.Input("%d connections stand in the list twice", c).On("connections").Try("write each once")
		}
	}
	if ph.Kind == KindRate && len(ph.Connections) != 1 {
		return fail.Input("a rate phase has one number of connections, not %d", len(ph.Connections)).On("connections").Try("write one")
	}
	if ph.Kind == KindRate && len(ph.Targets) == 0 {
		return fail.Input("a rate phase needs targets").On("kind").Try("write them as in targets: {read: 1000}")
	}
	if ph.Kind == KindCeiling && len(ph.Targets) != 0 {
		return fail.Input("a ceiling phase has no targets").On("targets").Try("take them out")
	}
	for _, s := range slices.Sorted(maps.Keys(ph.Targets)) {
		if t := ph.Targets[s]; t < 1 || t > MaxTarget {
			return fail.Input("target of %s is %d", s, t).On("targets.%s", s).Try("write requests per second, 1 to %d", MaxTarget)
		}
	}
	return ph.checkMixes()
}

// checkSize refuses a preset that with a suite makes more windows than a run can
// lay out, or takes longer than MaxTime.
func (p Preset) checkSize(s Suite) error {
	windows, seconds := 0, 0.0
	for _, ph := range p.Phases {
		blocks := ph.Repetitions * len(s.Candidates)
		loads := len(ph.Loads(s))
		n := loads * len(ph.Connections) * len(ph.shares())
		windows += blocks * n
		seconds += float64(blocks) * (p.Probe.Window.Seconds() + float64(loads)*p.Warmup.Seconds() + float64(n)*(ph.Window.Seconds()+ph.Cooldown.Seconds()))
	}
	if windows > MaxWindows {
		return fail.Input("preset %s makes %d windows, and a run has %d at most", p.Name, windows, MaxWindows).Try("write fewer repetitions or connections")
	}
	if limit := MaxTime.Seconds(); seconds > limit {
		return fail.Input("preset %s takes %.0f days, and a run takes %.0f at most", p.Name, seconds/86400, limit/86400).Try("write shorter windows and pauses or fewer repetitions")
	}
	return nil
}
