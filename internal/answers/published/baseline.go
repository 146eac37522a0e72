// Package published reads the published studies: figures with their definitions
// as data, which can stand wherever a run can. They are values alone. The
// studies print no repetitions, so these figures have no interval, and whatever
// compares with them says so.
package published

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/results/published"
)

// Name is what a person types where a run is expected.
const Name = "published"

// Study is one published study.
type Study struct {
	ID      string         `yaml:"study" json:"study"`
	Suite   string         `yaml:"suite" json:"suite"`
	Title   string         `yaml:"title" json:"title"`
	Facts   map[string]any `yaml:"facts" json:"facts"` // what was measured, on what, and how
	Figures []Group        `yaml:"figures" json:"figures"`
}

// Group is one table of a study: figures of one definition. Axes name the keys
// of the nested values from the outside in; what is the same for all of them
// stands in Fixed, Phase and Metric.
type Group struct {
	Source     string         `yaml:"source" json:"source"` // the place in the study's own list of figures
	Phase      string         `yaml:"phase" json:"phase"`
	Metric     string         `yaml:"metric" json:"metric,omitempty"`
	Definition string         `yaml:"definition" json:"definition"`
	Fixed      map[string]any `yaml:"fixed" json:"fixed,omitempty"`
	Axes       []string       `yaml:"axes" json:"axes,omitempty"`
	Values     any            `yaml:"values" json:"values"`
}

// Figure is one figure of a group with its place in the values.
type Figure struct {
	Key   figures.Key
	Value float64
	Path  []string // keys of the nested values
}

// axes that a group may have.
var axes = []string{"candidate", "scenario", "metric", "cores", "rate", "connections"}

var studyFile = yamlfile.Kind{What: "the figures of a study", Like: "those of results/published in the sources of percore"}

// Parse reads a study's file. The name stands for the data in errors.
func Parse(name string, data []byte) (Study, error) {
	var s Study
	if err := studyFile.Decode(name, data, &s); err != nil {
		return s, err
	}
	if s.ID == "" || s.Suite == "" || len(s.Figures) == 0 {
		return s, fail.In(name, "a study needs study, suite and figures").Try("write all three")
	}
	seen := map[figures.Key]bool{}
	for i, g := range s.Figures {
		list, err := g.flatten(s.Suite)
		if err != nil {
			return s, studyFile.Place(name, data, fail.Input("figures %d (%s): %w", i+1, g.Source, err).On("figures[%d]", i).Try("correct the file"))
		}
		for _, f := range list {
			if seen[f.Key] {
				return s, studyFile.Place(name, data, fail.Input("figures %d (%s): %s is in the file twice", i+1, g.Source, f.Key).On("figures[%d]", i).Try("take one out"))
			}
			seen[f.Key] = true
		}
	}
	return s, nil
}

// List returns the figures of the study in the order of the file.
func (s Study) List() []Figure {
	var all []Figure
	for _, g := range s.Figures {
		list, err := g.flatten(s.Suite)
		if err != nil {
			panic(err) // Parse has checked it
		}
		all = append(all, list...)
	}
	return all
}

// flatten turns the nested values into figures.
func (g Group) flatten(suite string) ([]Figure, error) {
	if g.Source == "" || g.Phase == "" || g.Definition == "" {
		return nil, errors.New("source, phase and definition must be written")
	}
	base := figures.Key{Suite: suite, Phase: g.Phase, Metric: g.Metric}
	for axis, v := range g.Fixed {
		if err := set(&base, axis, fmt.Sprint(v)); err != nil {
			return nil, err
		}
	}
	var all []Figure
	var walk func(k figures.Key, at []string, v any) error
	walk = func(k figures.Key, at []string, v any) error {
		if len(at) == len(g.Axes) {
			n, err := number(v)
			if err != nil {
				return fmt.Errorf("%s: %w", strings.Join(at, "."), err)
			}
			if parsed, err := figures.ParseKey(k.String()); err != nil || parsed != k {
				return fmt.Errorf("%s does not name a figure", k)
			}
			all = append(all, Figure{k, n, slices.Clone(at)})
			return nil
		}
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 {
			return fmt.Errorf("a value for each %s belongs at %q", g.Axes[len(at)], strings.Join(at, "."))
		}
		names := make([]string, 0, len(m))
		for name := range m {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			next := k
			if err := set(&next, g.Axes[len(at)], name); err != nil {
				return err
			}
			if err := walk(next, append(at, name), m[name]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(g.Axes) > len(axes) {
		return nil, errors.New("there are more axes than a figure can have")
	}
	return all, walk(base, nil, g.Values)
}

func set(k *figures.Key, axis, value string) error {
	switch axis {
	case "candidate":
		k.Candidate = value
	case "scenario":
		k.Scenario = value
	case "metric":
		k.Metric = value
	case "cores", "rate", "connections":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of %s", value, axis)
		}
		switch axis {
		case "cores":
			k.Cores = n
		case "rate":
			k.Rate = n
		default:
			k.Connections = n
		}
	default:
		return fail.Input("%q is no axis", axis).Try("take %s", strings.Join(axes, ", "))
	}
	return nil
}

func number(v any) (float64, error) {
	var n float64
	switch v := v.(type) {
	case uint64:
		n = float64(v)
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		return 0, fmt.Errorf("%v is not a number", v)
	}
	if math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("%v is no figure", v)
	}
	return n, nil
}

// Read reads every study of a folder.
func Read(files fs.FS) ([]Study, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Study
	for _, name := range names {
		if name == published.ClaimsFile || name == published.PricesFile {
			continue
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading the published figures: %w", err)
		}
		s, err := Parse(path.Join("results/published", name), data)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, errors.New("there are no published figures")
	}
	return all, nil
}

var load = sync.OnceValues(func() ([]Study, error) { return Read(published.Files) })

// Studies returns the published studies that are part of the program.
func Studies() ([]Study, error) { return load() }

// maxFile is how large a file of a study may be, in bytes.
const maxFile = 1 << 20

// Is reports whether a path is that of study files: a YAML file, or a folder
// with YAML files that is not a run or a raw folder for other reasons, which
// the caller finds out first.
func Is(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return isYAML(name)
	}
	names, _ := studyFiles(name)
	return len(names) > 0
}

func isYAML(name string) bool {
	ext := path.Ext(filepath.ToSlash(name))
	return ext == ".yaml" || ext == ".yml"
}

// studyFiles are the YAML files of a folder but for claims and prices.
func studyFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of studies: %w", err)
	}
	var names []string
	for _, e := range entries {
		if isYAML(e.Name()) && !e.IsDir() && e.Name() != published.ClaimsFile && e.Name() != published.PricesFile {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// Open reads a file of a study, or every one of a folder, as a set named like
// the path: a copy of the published figures, or figures of one's own in their
// form. A study or a figure may be in it once.
func Open(name string) (*figures.Set, error) {
	names := []string{name}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if names, err = studyFiles(name); err != nil {
			return nil, err
		}
	}
	var all []Study
	from := map[figures.Key]string{}
	for _, n := range names {
		data, err := infile.Read(n, maxFile, "a study", "results/published/oauth-events-fixed.yaml")
		if err != nil {
			return nil, err
		}
		s, err := Parse(n, data)
		if err != nil {
			return nil, err
		}
		for _, f := range s.List() {
			if other := from[f.Key]; other != "" {
				return nil, fail.In(n, "%s is in %s too", f.Key, other).Try("take one of them out")
			}
			from[f.Key] = n
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fail.In(name, "there is no study in this folder").Try("name one like results/published")
	}
	set := SetOf(all)
	set.Name = name
	set.Suite = cmp.Or(set.Suite, all[0].Suite)
	return set, nil
}

// Set returns the published figures as a set, which the caller may change.
func Set() (*figures.Set, error) {
	studies, err := Studies()
	if err != nil {
		return nil, err
	}
	return SetOf(studies), nil
}

// SetOf makes a set of studies. What the set says of its host, cores and
// versions is that of the first study on the oauth-events suite.
func SetOf(studies []Study) *figures.Set {
	set := figures.NewSet(Name, figures.KindPublished)
	set.Flavour, set.Comparable, set.Protocol = plan.FlavourPublished, true, true
	set.Preset = "full"
	targets := map[string]int{}
	for _, s := range studies {
		for _, f := range s.List() {
			if f.Key.Phase == figures.PhaseRate && f.Key.Metric == figures.Target {
				targets[f.Key.Suite+"/"+f.Key.Scenario] = int(f.Value)
			}
		}
	}
	for _, s := range studies {
		for _, g := range s.Figures {
			list, err := g.flatten(s.Suite)
			if err != nil {
				panic(err) // Parse has checked it
			}
			for _, f := range list {
				e := figures.Estimate{
					Key: f.Key, Value: f.Value, Median: f.Value, Lo: f.Value, Hi: f.Value,
					Estimator: figures.EstimatorPublished, Definition: g.Definition,
					Source: s.ID + ": " + strings.Join(append([]string{g.Source}, f.Path...), "."),
				}
				if f.Key.Phase == figures.PhaseRate {
					e.Target = targets[f.Key.Suite+"/"+f.Key.Scenario]
				}
				set.Put(e)
			}
		}
		if set.Suite == "" && fact(s, "layout", "candidate_cpus") != "" {
			set.Suite = s.Suite
			cpus := plan.CPUSet(fact(s, "layout", "candidate_cpus"))
			set.AppCores = cpus.Count()
			set.Put(figures.Estimate{
				Key:   figures.Key{Suite: s.Suite, Phase: figures.PhaseRate, Metric: figures.Budget},
				Value: float64(set.AppCores), Median: float64(set.AppCores), Lo: float64(set.AppCores), Hi: float64(set.AppCores),
				Estimator: figures.EstimatorPublished, Definition: "cores of the candidate's CPU set", Source: s.ID + ": layout.candidate_cpus",
			})
			cpu := fact(s, "hardware", "cpu")
			set.Host = figures.Host{Label: cpu, CPUModel: cpu, Arch: fact(s, "hardware", "arch")}
			set.Host.CPUs, _ = strconv.Atoi(fact(s, "hardware", "vm_vcpus"))
			set.Conditions = conditions(s)
			set.Versions = map[string]string{}
			if m, ok := s.Facts["versions"].(map[string]any); ok {
				for name, v := range m {
					set.Versions[name] = fmt.Sprint(v)
				}
			}
		}
	}
	list(set)
	return set
}

// list fills in which candidates and scenarios the set's suite has: the
// scenarios by name, the candidates by the CPU that they need, least first.
func list(set *figures.Set) {
	cpu := map[string]float64{}
	scenarios, databases := map[string]bool{}, map[string]bool{}
	for _, e := range set.All() {
		k := e.Key
		if k.Suite != set.Suite || k.Phase != figures.PhaseRate || k.Candidate == "" || k.Scenario == "" {
			continue
		}
		switch k.Metric {
		case figures.AppCPU:
			cpu[k.Candidate] += e.Value
			scenarios[k.Scenario] = true
		case figures.DBCPU:
			databases[k.Scenario] = true
		}
	}
	set.Candidates = slices.SortedFunc(maps.Keys(cpu), func(a, b string) int { return cmp.Compare(cpu[a], cpu[b]) })
	set.Scenarios = slices.Sorted(maps.Keys(scenarios))
	set.Databases = slices.Sorted(maps.Keys(databases))
}

// conditions are those of the study's facts; what is not written stays unknown.
func conditions(s Study) figures.Conditions {
	whole := func(text string) int {
		n, _ := strconv.Atoi(text)
		return n
	}
	memory := func(name string) int64 {
		var b plan.Bytes
		_ = b.UnmarshalText([]byte(fact(s, "layout", name)))
		return int64(b)
	}
	c := figures.Conditions{
		RateSeconds: float64(whole(fact(s, "fixed_rate", "seconds"))), RateConnections: whole(fact(s, "fixed_rate", "connections")),
		CeilingSeconds: float64(whole(fact(s, "ceiling", "seconds"))), Pool: whole(fact(s, "layout", "database_connections")),
		AppMemory: memory("candidate_memory"), DBMemory: memory("database_memory"),
	}
	if n, ok := s.Facts["rows"]; ok {
		c.Rows = whole(fmt.Sprint(n))
	}
	if m, ok := s.Facts["ceiling"].(map[string]any); ok {
		tried, _ := m["connections"].([]any)
		for _, n := range tried {
			c.CeilingConnections = append(c.CeilingConnections, whole(fmt.Sprint(n)))
		}
		slices.Sort(c.CeilingConnections)
	}
	return c
}

func fact(s Study, group, name string) string {
	m, ok := s.Facts[group].(map[string]any)
	if !ok || m[name] == nil {
		return ""
	}
	return fmt.Sprint(m[name])
}
