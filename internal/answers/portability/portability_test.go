package portability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// onHost makes a run whose CPU per request is the published one times a factor
// of the host and one of each candidate and scenario. Its noise is a pattern, or
// drawn from a normal distribution where a source is given.
func onHost(t *testing.T, label string, repetitions int, host float64, own map[string]float64, source ...*rand.Rand) *figures.Set {
	t.Helper()
	base, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	run := store.Run{ID: label + "-run", Flavour: plan.FlavourPublished, Candidates: []string{"go", "frankenphp", "php-fpm"}}
	run.Suite = plan.Suite{Name: "oauth-events", Scenarios: []plan.Scenario{{ID: "auth"}, {ID: "read", DB: true}, {ID: "write", DB: true}}}
	run.Preset = plan.Preset{Name: "full", Published: true, Phases: []plan.Phase{{ID: "rate", Kind: plan.KindRate, Repetitions: repetitions,
		Connections: []int{256}, Targets: map[string]int{"auth": 50000, "read": 50000, "write": 10000}}}}
	run.Profile.Roles = map[plan.Role]plan.Resources{plan.App: {CPUs: "0-3"}}
	run.Hosts = []store.HostFacts{{Name: label, InstanceType: label, Roles: []plan.Role{plan.App}}}
	var windows []store.WindowResult
	for _, c := range run.Candidates {
		for _, sc := range run.Suite.Scenarios {
			e, ok := base.Get(figures.Key{Suite: "oauth-events", Phase: "rate", Metric: figures.AppCPU, Candidate: c, Scenario: sc.ID})
			if !ok {
				t.Fatal(c, sc.ID)
			}
			factor := host
			if x := own[c+"/"+sc.ID]; x > 0 {
				factor *= x
			}
			for rep := 1; rep <= repetitions; rep++ {
				noise := 1 + 0.004*float64((rep*3+len(c)+len(sc.ID))%5-2)
				if len(source) > 0 {
					noise = 1 + 0.02*source[0].NormFloat64()
				}
				windows = append(windows, store.WindowResult{Attempt: 1,
					Window:   plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: c, Scenario: sc.ID, Repetition: rep, Connections: 256, Target: 10000, Seconds: 60},
					Measured: &measure.Window{Achieved: 10000, OK: 600000, Answered: 600000, AppCPUUS: e.Value * factor * noise, P99MS: 2}})
			}
		}
	}
	return figures.FromRun(run, windows, nil)
}

func studyFigures(t *testing.T) *figures.Set {
	t.Helper()
	s, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A host factor and one candidate's own difference come apart again, although
// that candidate is among those that the factor is fitted on.
func TestDecomposition(t *testing.T) {
	other := onHost(t, "c8g.xlarge", 5, 1.3, map[string]float64{"go/read": 1.12, "php-fpm/write": 0.9})
	r, err := Compare(studyFigures(t), other)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Pairs[0]
	if p.Factor == nil || math.Abs(p.Factor.Value-1.3) > 0.01 || p.Factor.Cells != 9 || p.Factor.Candidates != 3 || p.Factor.Phase != figures.PhaseRate {
		t.Fatalf("factor: %+v", p.Factor)
	}
	for _, x := range p.Residuals {
		want, noise := 1.0, WithinNoise
		switch x.Figure.Candidate + "/" + x.Figure.Scenario {
		case "go/read":
			want, noise = 1.12, OutsideNoise
		case "php-fpm/write":
			want, noise = 0.9, OutsideNoise
		}
		if math.Abs(x.Value-want) > 0.01 || (noise == OutsideNoise) != (x.Noise == OutsideNoise && math.Abs(x.Value-1) >= Worth) {
			t.Errorf("%s: %+v", x.Figure, x)
		}
	}
	text := strings.Join(p.Findings, "\n")
	for _, want := range []string{
		"On c8g.xlarge every candidate needs 1.30× the CPU per request of Apple M4 Pro",
		"After that factor go's read is 12 % dearer than the study predicts, outside noise (93.7 % interval +",
		"After that factor php-fpm's write is 10 % cheaper than the study predicts",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
}

// withDatabase puts the database of a set on a host of its own, with its CPU per
// request so many times what the published figures have.
func withDatabase(t *testing.T, s *figures.Set, label string, rsa, factor float64) *figures.Set {
	t.Helper()
	s.Database = &figures.Host{Label: label, RSAVerifyPerS: rsa}
	for _, c := range s.Candidates {
		for _, sc := range []string{"read", "write"} {
			k := figures.Key{Suite: "oauth-events", Phase: figures.PhaseRate, Metric: figures.DBCPU, Candidate: c, Scenario: sc}
			e, ok := studyFigures(t).Get(k)
			if !ok {
				t.Fatal(k)
			}
			e.Value *= factor
			s.Put(e)
		}
	}
	return s
}

// A database on a host of its own has a factor of its own, checked by its own
// host; the candidates' is that of theirs.
func TestFactorOfEachHost(t *testing.T) {
	a, b := withDatabase(t, onHost(t, "a", 5, 1, nil), "db-a", 30000, 1), withDatabase(t, onHost(t, "b", 5, 1.25, nil), "db-b", 20000, 1.5)
	a.Host.RSAVerifyPerS, b.Host.RSAVerifyPerS = 40000, 32000
	r, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Pairs[0]
	if math.Abs(p.Factor.Value-1.25) > 0.01 || p.Neutral == nil || p.Neutral.Predicted != 1.25 || !p.Neutral.Agrees {
		t.Errorf("candidates %+v %+v", p.Factor, p.Neutral)
	}
	db := p.Database
	if db == nil || math.Abs(db.Factor.Value-1.5) > 0.01 || db.Factor.Cells != 6 || db.Host != "db-b" || db.Neutral == nil || db.Neutral.Predicted != 1.5 || !db.Neutral.Agrees {
		t.Fatalf("database %+v", db)
	}
	text := strings.Join(p.Findings, "\n") + fmt.Sprint(r.sets().Rows)
	for _, want := range []string{"The database on db-b needs 1.50× the CPU per request of that on db-a", "Of the databases' hosts RSA-2048", "database on db-a"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	// Against a set of one host the database's host is the candidates'.
	r, err = Compare(studyFigures(t), b)
	if err != nil || r.Pairs[0].Database == nil || r.Pairs[0].Database.Reference != studyFigures(t).Host.Label || r.Pairs[0].Database.Neutral != nil {
		t.Errorf("against the published figures %+v, %v", r.Pairs[0].Database, err)
	}
	r, err = Compare(studyFigures(t), onHost(t, "c", 5, 1, nil))
	if err != nil || r.Pairs[0].Database != nil {
		t.Errorf("one host each: %+v, %v", r.Pairs[0].Database, err)
	}
}

// The hosts of a run are told apart by their roles, not by their order.
func TestHostsByRole(t *testing.T) {
	run := store.Run{ID: "x", Cloud: &store.Cloud{Region: "eu-west-1"}, Hosts: []store.HostFacts{
		{Name: "load", Roles: []plan.Role{plan.Load}, RSAVerifyPerS: 1, InstanceType: "l"},
		{Name: "db", Roles: []plan.Role{plan.DB}, RSAVerifyPerS: 2, InstanceType: "d"},
		{Name: "app", Roles: []plan.Role{plan.App}, RSAVerifyPerS: 3, InstanceType: "a"},
	}}
	s := figures.FromRun(run, nil, nil)
	if s.Host.RSAVerifyPerS != 3 || s.Host.Instance != "a" || s.Database == nil || s.Database.RSAVerifyPerS != 2 || s.Region != "eu-west-1" {
		t.Errorf("hosts %+v %+v", s.Host, s.Database)
	}
	run.Hosts = []store.HostFacts{{Name: "one", Roles: plan.Roles(), RSAVerifyPerS: 4}}
	if s := figures.FromRun(run, nil, nil); s.Database != nil || s.DatabaseHost().RSAVerifyPerS != 4 {
		t.Errorf("one host %+v %+v", s.Host, s.Database)
	}
}

// Swapping the hosts inverts the factor.
func TestSwappingInverts(t *testing.T) {
	a, b := onHost(t, "a", 5, 1, nil), onHost(t, "b", 5, 1.25, map[string]float64{"go/auth": 1.4})
	x, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Compare(b, a)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Pairs[0].Factor.Value * y.Pairs[0].Factor.Value; math.Abs(got-1) > 1e-12 {
		t.Errorf("factors multiply to %v", got)
	}
}

func TestNeutralMeasure(t *testing.T) {
	a, b := onHost(t, "a", 3, 1, nil), onHost(t, "b", 3, 1.3, nil)
	a.Host.RSAVerifyPerS, b.Host.RSAVerifyPerS = 50000, 39000
	r, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Pairs[0].Neutral; n == nil || !n.Agrees || math.Abs(n.Predicted-50.0/39) > 1e-9 {
		t.Errorf("%+v", n)
	}
	b.Host.RSAVerifyPerS = 50000
	r, err = Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Pairs[0].Neutral; n.Agrees || !strings.Contains(strings.Join(r.Pairs[0].Findings, " "), "does not agree") {
		t.Errorf("%+v", n)
	}
}

func TestTooFewRepetitions(t *testing.T) {
	r, err := Compare(studyFigures(t), onHost(t, "b", 2, 1.3, map[string]float64{"go/read": 2}))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Pairs[0].Residuals {
		if x.Noise != CannotTell {
			t.Errorf("%+v", x)
		}
	}
	if text := strings.Join(r.Pairs[0].Findings, " "); !strings.Contains(text, "too few repetitions") || strings.Contains(text, "outside noise") {
		t.Errorf("%s", text)
	}
}

func TestMismatchesAreSaidFirst(t *testing.T) {
	b := onHost(t, "b", 3, 1, nil)
	b.Flavour, b.SharedCores, b.AppCores, b.Protocol, b.Preset = plan.FlavourDebian, true, 1, false, "quick"
	b.AppThreads = 2
	r, err := Compare(studyFigures(t), b)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(r.Mismatches, "\n")
	for _, want := range []string{"share cores", "threads of one core", "flavour debian", "4 core(s)", "preset quick"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said in\n%s", want, text)
		}
	}
	var out bytes.Buffer
	for _, format := range sheet.Formats {
		out.Reset()
		if err := sheet.Write(&out, format, r.Document(), r); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if format == "text" || format == "md" {
			if flavour, factor := strings.Index(out.String(), "flavour debian"), strings.Index(out.String(), "every candidate"); flavour < 0 || factor < 0 || flavour > factor {
				t.Errorf("%s: the mismatch does not come first\n%s", format, out.String())
			}
		}
		if format == "json" {
			var back map[string]any
			if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["schema"] != Schema {
				t.Errorf("%v, %v", err, back["schema"])
			}
		}
	}
	if err := sheet.Write(&out, "pdf", r.Document(), r); !fail.IsInput(err) {
		t.Errorf("%v", err)
	}
}

func TestSuitesAreNotMixed(t *testing.T) {
	b := onHost(t, "b", 3, 1, nil)
	b.Suite = "other"
	if _, err := Compare(studyFigures(t), b); !fail.IsInput(err) {
		t.Errorf("%v", err)
	}
	if _, err := Compare(b); !fail.IsInput(err) {
		t.Errorf("%v", err)
	}
}

func TestThreeSets(t *testing.T) {
	a := onHost(t, "same", 3, 1, nil)
	b := onHost(t, "same", 3, 1.1, nil)
	b.Name = "second"
	r, err := Compare(studyFigures(t), a, b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Labels, []string{"Apple M4 Pro", "same (same-run)", "same (second)"}) || len(r.Pairs) != 2 {
		t.Errorf("%q, %d pairs", r.Labels, len(r.Pairs))
	}
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Figure.String() == "oauth-events/rate/app_cpu_us/go/read" })
	if i < 0 || len(r.Cells[i].Values) != 3 || r.Cells[i].Values[0].Ratio != nil || math.Abs(r.Cells[i].Values[2].Ratio.Value-1.1) > 0.01 {
		t.Errorf("%+v", r.Cells)
	}
	if fmt.Sprint(r.Cells[0].Figure.Candidate) != "go" {
		t.Errorf("the first candidate is %s", r.Cells[0].Figure)
	}
}

// A host without the neutral measure is named, and what only one set has is
// said first.
func TestWhatIsMissingIsSaid(t *testing.T) {
	two, some := onHost(t, "b", 5, 1.3, nil), onHost(t, "c", 5, 1.3, nil)
	two.Candidates = []string{"go", "php-fpm"}
	two, some = without(t, two, "frankenphp", figures.Absence{}), without(t, some, "go", figures.Absence{Cause: figures.GateFailed, Detail: "steal"})
	two.Host.RSAVerifyPerS = 50000
	r, err := Compare(studyFigures(t), two, some)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Join(r.Mismatches, "\n")
	for _, want := range []string{"frankenphp was not measured in b-run", "go has no evidence in c-run (gate failed: steal)"} {
		if strings.Count(first, want) != 1 {
			t.Errorf("%q is not said once in\n%s", want, first)
		}
	}
	for i, want := range []string{"On b each of go and php-fpm needs 1.30×", "On c each of frankenphp and php-fpm needs 1.30×"} {
		said := strings.Join(r.Pairs[i].Findings, "\n")
		hosts := []string{"of Apple M4 Pro.", "of Apple M4 Pro and c."}
		if !strings.Contains(said, want) || !strings.Contains(said, "stands unchecked: there are no RSA-2048 verifications per second on one core "+hosts[i]) {
			t.Errorf("%s", said)
		}
	}
}

// without takes the CPU per request of a candidate out of a set.
func without(t *testing.T, s *figures.Set, candidate string, why figures.Absence) *figures.Set {
	t.Helper()
	out := figures.NewSet(s.Name, s.Kind)
	out.Suite, out.Flavour, out.Protocol, out.AppCores, out.Host = s.Suite, s.Flavour, s.Protocol, s.AppCores, s.Host
	out.Candidates, out.Scenarios, out.Databases = s.Candidates, s.Scenarios, s.Databases
	for _, e := range s.All() {
		if e.Key.Candidate != candidate {
			out.Put(e)
		} else if why.Cause != figures.Unmeasured {
			out.PutAbsent(e.Key, why)
		}
	}
	return out
}

// Rows come in the order in which candidates first appear, whatever the first
// set lacks.
func TestOrderOfRows(t *testing.T) {
	a, b := without(t, onHost(t, "a", 3, 1, nil), "go", figures.Absence{}), onHost(t, "b", 3, 1, nil)
	a.Candidates = []string{"frankenphp", "php-fpm"}
	var order []string
	for _, k := range keys([]*figures.Set{a, b}, figures.PhaseRate, figures.AppCPU) {
		order = append(order, k.Candidate+"/"+k.Scenario)
	}
	want := "frankenphp/auth frankenphp/read frankenphp/write php-fpm/auth php-fpm/read php-fpm/write go/auth go/read go/write"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The printed factor has its interval, and a finding says how much of it noise
// alone may be.
func TestFactorsIntervalIsPrinted(t *testing.T) {
	r, err := Compare(studyFigures(t), onHost(t, "b", 5, 1.3, map[string]float64{"go/read": 1.12}))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "md"} {
		var out bytes.Buffer
		if err := sheet.Write(&out, format, r.Document(), r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"96 % interval 1.", "of 9 comparisons, noise alone may put up to 0.6 outside on average"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, text)
			}
		}
	}
}

// Of comparisons of pure noise few have anything outside it, although each has
// nine cells.
func TestPureNoise(t *testing.T) {
	for _, c := range []struct {
		name string
		a    func(*rand.Rand) *figures.Set
		reps int
	}{
		{"against the study", func(*rand.Rand) *figures.Set { return studyFigures(t) }, 5},
		{"three in both", func(r *rand.Rand) *figures.Set { return onHost(t, "a", 3, 1, nil, r) }, 3},
		{"five in both", func(r *rand.Rand) *figures.Set { return onHost(t, "a", 5, 1, nil, r) }, 5},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		const rounds = 200
		wrong := 0
		for range rounds {
			p := pair(c.a(r), onHost(t, "b", c.reps, 1.3, nil, r), "a", "b")
			if slices.ContainsFunc(p.Residuals, func(x Residual) bool { return x.Noise == OutsideNoise }) {
				wrong++
			}
			if slices.ContainsFunc(p.Residuals, func(x Residual) bool { return x.Noise == CannotTell }) {
				t.Fatalf("%s: %+v", c.name, p.Residuals)
			}
		}
		t.Logf("%s: %d of %d", c.name, wrong, rounds)
		if wrong > rounds/10 {
			t.Errorf("%s: %d of %d comparisons of noise have something outside it", c.name, wrong, rounds)
		}
	}
}

// The bounds of the median hold it by the binomial distribution.
func TestMedianHolds(t *testing.T) {
	for _, c := range []struct {
		n          int
		confidence float64
		want       float64
	}{
		{0, 0.9, 0}, {3, 0, 0}, {1, 0.9, 0.9}, {2, 0.9, 1 - 2*(2*0.05*0.95+0.05*0.05)}, {3, 0.9, 1 - 2*(3*0.05*0.05*0.95+0.05*0.05*0.05)},
	} {
		if got := medianHolds(c.n, c.confidence); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d at %v: %v, want %v", c.n, c.confidence, got, c.want)
		}
	}
	if got := medianHolds(9, 0.9375); got < 0.9999 {
		t.Errorf("nine cells: %v", got)
	}
}

// With one combination in common the factor is its own, and no residual is told
// from noise, however many repetitions there are.
func TestOneCombination(t *testing.T) {
	b := onHost(t, "b", 5, 1.3, nil)
	for _, c := range []string{"frankenphp", "php-fpm"} {
		b = without(t, b, c, figures.Absence{})
	}
	one := figures.NewSet("one", figures.KindRun)
	one.Suite, one.Candidates, one.Scenarios, one.Host = b.Suite, []string{"go"}, b.Scenarios, b.Host
	k := figures.Key{Suite: "oauth-events", Phase: figures.PhaseRate, Metric: figures.AppCPU, Candidate: "go", Scenario: "read"}
	e, ok := b.Get(k)
	if !ok {
		t.Fatal(k)
	}
	one.Put(e)
	r, err := Compare(studyFigures(t), one)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Pairs[0]
	if len(p.Residuals) != 1 || p.Residuals[0].Noise != TooFewCells || !strings.Contains(strings.Join(p.Findings, "\n"), "With 1 combination(s) in common") {
		t.Errorf("%+v, %s", p.Residuals, p.Findings)
	}
	if first := strings.Join(r.Mismatches, "\n"); !strings.Contains(first, "go's auth and write were not measured in one") {
		t.Errorf("%s", first)
	}
}
