package sizing

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sheet"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
	"github.com/percore/percore/internal/testkit/said"
)

func studies(t testing.TB) *figures.Set {
	t.Helper()
	s, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func planned(t *testing.T, r Request) map[string]Candidate {
	t.Helper()
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Make(studies(t), r, table)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Candidate{}
	for _, c := range p.Candidates {
		all[c.ID] = c
	}
	return all
}

// The study's table of cores for 50,000 reads/s, to the digit.
func TestCoresFor50000Reads(t *testing.T) {
	all := planned(t, Request{Rate: 50000, Mix: map[string]float64{"read": 1}})
	for id, want := range map[string][2]string{"go": {"3.2", "3.4"}, "frankenphp": {"5.8", "8.8"}, "php-fpm": {"8.4", "8.2"}} {
		c := all[id]
		if got := [2]string{show(c.ByCPU, 1), show(c.ByInstance, 1)}; got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	// And that is what the shipped figures print.
	set := studies(t)
	for id, c := range all {
		for metric, got := range map[string]*Amount{"by_cpu_cores": c.ByCPU, "by_instance_cores": c.ByInstance} {
			e, ok := set.Get(figures.Key{Suite: "oauth-events", Phase: figures.PhaseSizing, Metric: metric, Candidate: id, Scenario: "read", Rate: 50000})
			if !ok || round(got.Value, 1) != e.Value {
				t.Errorf("%s %s: %v, printed %v", id, metric, got.Value, e.Value)
			}
		}
	}
}

// The capacity study's table of four-core instances for 10,000 to 100,000/s.
func TestInstancesOfTheCapacityStudy(t *testing.T) {
	set := studies(t)
	seen := 0
	for _, rate := range []int{10000, 20000, 30000, 50000, 100000} {
		for id, c := range planned(t, Request{Rate: float64(rate), Mix: map[string]float64{"read": 0.5, "write": 0.5}}) {
			e, ok := set.Get(figures.Key{Suite: "oauth-events", Phase: figures.PhaseSizing, Metric: "instances", Candidate: id, Scenario: "mix", Rate: rate})
			if !ok || c.Instances == nil || c.Instances.Value != e.Value {
				t.Errorf("%d/s, %s: %+v, printed %v", rate, id, c.Instances, e.Value)
			}
			seen++
		}
	}
	if seen != 15 {
		t.Errorf("%d cells of the table", seen)
	}
}

// The study's percentages from its figures: +56 % and +69 % database CPU, and
// 73, 75 and 77 % of a read's CPU for the token.
func TestPercentages(t *testing.T) {
	set := studies(t)
	get := func(metric, candidate, scenario string) float64 {
		e, ok := set.Get(figures.Key{Suite: "oauth-events", Phase: figures.PhaseRate, Metric: metric, Candidate: candidate, Scenario: scenario})
		if !ok {
			t.Fatal(metric, candidate, scenario)
		}
		return e.Value
	}
	for scenario, want := range map[string]string{"read": "+56 %", "write": "+69 %"} {
		if got := fmt.Sprintf("%+.0f %%", 100*(get(figures.DBCPU, "php-fpm", scenario)/get(figures.DBCPU, "go", scenario)-1)); got != want {
			t.Errorf("database CPU of a %s through PHP-FPM: %s, want %s", scenario, got, want)
		}
	}
	for candidate, want := range map[string]string{"go": "73 %", "frankenphp": "75 %", "php-fpm": "77 %"} {
		share := get(figures.AppCPU, candidate, "auth") / get(figures.AppCPU, candidate, "read")
		if got := fmt.Sprintf("%.0f %%", 100*share); got != want {
			t.Errorf("token share of %s: %s, want %s", candidate, got, want)
		}
		if printed := get("token_share", candidate, ""); math.Abs(printed-math.Round(100*share)/100) > 1e-9 {
			t.Errorf("token share of %s: %v printed, %v computed", candidate, printed, share)
		}
	}
}

func TestHeadroomInstanceAndMoney(t *testing.T) {
	all := planned(t, Request{Rate: 30000, Mix: map[string]float64{"read": 0.25, "write": 0.75}, Headroom: 0.3, Instance: "c8g.xlarge"})
	goes := all["go"]
	// Shares of CPU per request, and the ceilings' harmonic mean.
	cpu := 0.25*64.1 + 0.75*95.5
	capacity := 1 / (0.25/59004 + 0.75/43942)
	if math.Abs(goes.CPU.Value-cpu) > 1e-9 || math.Abs(goes.Capacity.Value-capacity) > 1e-6 {
		t.Errorf("CPU %v, want %v; capacity %v, want %v", goes.CPU.Value, cpu, goes.Capacity.Value, capacity)
	}
	if want := 30000 * cpu / 1e6 / 0.7; math.Abs(goes.ByCPU.Value-want) > 1e-9 {
		t.Errorf("by CPU %v, want %v", goes.ByCPU.Value, want)
	}
	if want := 30000 * (0.25*34 + 0.75*48) / 1e6 / 0.7; math.Abs(goes.DatabaseCores.Value-want) > 1e-9 {
		t.Errorf("database %v, want %v", goes.DatabaseCores.Value, want)
	}
	if goes.Instances.Value != 1 || math.Abs(goes.PerMonth.Value-0.15952*730) > 1e-9 || math.Abs(goes.PerMillion.Value-0.15952/108) > 1e-9 {
		t.Errorf("%v instance(s), %v a month, %v a million", goes.Instances.Value, goes.PerMonth.Value, goes.PerMillion.Value)
	}
	if fpm := all["php-fpm"]; fpm.Instances.Value != 2 || math.Abs(fpm.PerMonth.Value-2*0.15952*730) > 1e-9 {
		t.Errorf("php-fpm: %+v, %+v", fpm.Instances, fpm.PerMonth)
	}
}

// Without an instance type it is the one that was measured, where it is known
// what it costs and its cores were all the candidates'.
func TestInstanceThatWasMeasured(t *testing.T) {
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		instance, region string
		cores            int
		named            string
		want             string
	}{
		{"c8g.xlarge", "eu-central-1", 4, "", "c8g.xlarge in eu-central-1"},
		{"c8g.xlarge", "", 4, "", "c8g.xlarge in " + prices.DefaultRegion},
		{"c8g.xlarge", "eu-central-1", 4, "c7g.large", "c7g.large in " + prices.DefaultRegion},
		{"c8g.2xlarge", "eu-central-1", 4, "", ""}, // the candidates had half of it
		{"c8g.xlarge", "ap-nowhere-1", 4, "", ""},  // no price there
		{"x99.huge", "eu-central-1", 4, "", ""},    // not in the table
		{"", "eu-central-1", 4, "", ""},            // not in a cloud
	} {
		set := studies(t)
		set.Host.Instance, set.Region, set.AppCores = c.instance, c.region, c.cores
		set.Database = &figures.Host{Label: "r8g.xlarge"}
		p, err := Make(set, Request{Rate: 1000, Mix: map[string]float64{"read": 1}, Instance: c.named}, table)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if p.Priced {
			got = p.Request.Instance + " in " + p.Request.Region
		}
		said := strings.Join(p.Assumptions, "\n")
		if got != c.want || p.Priced != (c.want != "") || strings.Contains(said, "that was measured") != (c.want != "" && c.named == "") || !strings.Contains(said, "Database cores are those of r8g.xlarge") {
			t.Errorf("%+v: planned with %q; %s", c, got, said)
		}
	}
}

func TestHardwareFactor(t *testing.T) {
	one := planned(t, Request{Rate: 50000, Mix: map[string]float64{"read": 1}})["go"]
	two := planned(t, Request{Rate: 50000, Mix: map[string]float64{"read": 1}, Hardware: 2})["go"]
	if math.Abs(two.ByCPU.Value/one.ByCPU.Value-2) > 1e-9 || math.Abs(two.ByInstance.Value/one.ByInstance.Value-2) > 1e-9 {
		t.Errorf("%+v, %+v", two.ByCPU, two.ByInstance)
	}
}

// A mix's interval is the sum of bounds with what is left of the confidence, and
// none where a part has none.
func TestIntervals(t *testing.T) {
	a := Amount{Value: 10, Lo: 9, Hi: 11, Confidence: 0.95}
	s := add([]Amount{a, {Value: 20, Lo: 18, Hi: 22, Confidence: 0.98}})
	if s.Lo != 27 || s.Hi != 33 || math.Abs(s.Confidence-0.93) > 1e-9 {
		t.Errorf("%+v", s)
	}
	if s = add([]Amount{a, {Value: 1, Lo: 1, Hi: 1}}); s.Confidence != 0 || s.Lo != 11 || s.Hi != 11 {
		t.Errorf("%+v", s)
	}
	if i := a.invert(); i.Lo != 1.0/11 || i.Hi != 1.0/9 {
		t.Errorf("%+v", i)
	}
}

// What was not measured is said and does not hide the rest.
func TestMissing(t *testing.T) {
	set := figures.NewSet("r", figures.KindRun)
	set.Suite, set.AppCores, set.Candidates, set.Scenarios, set.Databases = "s", 2, []string{"go"}, []string{"read"}, []string{"read"}
	set.Put(figures.Estimate{Key: figures.Key{Suite: "s", Phase: "rate", Metric: figures.AppCPU, Candidate: "go", Scenario: "read"}, Value: 100, Estimator: figures.EstimatorMedian})
	set.PutAbsent(figures.Key{Suite: "s", Phase: "ceiling", Metric: figures.Achieved, Candidate: "go", Scenario: "read"}, figures.Absence{Cause: figures.GateFailed, Detail: "steal"})
	p, err := Make(set, Request{Rate: 1000, Mix: map[string]float64{"read": 1}}, prices.Table{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Candidates[0]
	if c.ByCPU == nil || c.ByInstance != nil || c.Instances == nil || !strings.Contains(strings.Join(c.Missing, " "), "gate failed: steal") {
		t.Errorf("%+v", c)
	}
}

func TestBadRequests(t *testing.T) {
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]float64{"read": 1}
	for name, r := range map[string]Request{
		"rate zero":         {Mix: read},
		"rate not a number": {Rate: math.NaN(), Mix: read},
		"rate infinite":     {Rate: math.Inf(1), Mix: read},
		"rate negative":     {Rate: -1, Mix: read},
		"no mix":            {Rate: 1},
		"headroom one":      {Rate: 1, Mix: read, Headroom: 1},
		"headroom negative": {Rate: 1, Mix: read, Headroom: -0.1},
		"headroom NaN":      {Rate: 1, Mix: read, Headroom: math.NaN()},
		"rate too low":      {Rate: 1e-9, Mix: read},
		"rate too high":     {Rate: 1e10, Mix: read},
		"headroom near one": {Rate: 1, Mix: read, Headroom: 0.9999999999999999},
		"hardware huge":     {Rate: 1, Mix: read, Hardware: 1e308},
		"hardware tiny":     {Rate: 1, Mix: read, Hardware: 1e-9},
		"hardware NaN":      {Rate: 1, Mix: read, Hardware: math.NaN()},
		"hardware negative": {Rate: 1, Mix: read, Hardware: -1},
		"unknown scenario":  {Rate: 1, Mix: map[string]float64{"delete": 1}},
		"unknown instance":  {Rate: 1, Mix: read, Instance: "c9z.xlarge"},
		"unknown region":    {Rate: 1, Mix: read, Instance: "c7g.xlarge", Region: "moon-1"},
		"region alone":      {Rate: 1, Mix: read, Region: "us-east-1"},
	} {
		if _, err := Make(studies(t), r, table); !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []string{"", "read", "read=0.5", "read=0.5,write=0.6", "read=0.5,write=0.5,auth=0.0011", "read=x", "read=-0.5,write=1.5", "read=0.5,read=0.5", "=1", "read=NaN", "read=0.5,,write=0.5", "read=1e400"} {
		if mix, err := ParseMix(s); !fail.IsInput(err) {
			t.Errorf("mix %q: %v, %v", s, mix, err)
		}
	}
	if mix, err := ParseMix(" read=0.333, write=0.333 ,auth=0.334"); err != nil || mix["auth"] != 0.334 {
		t.Errorf("%v, %v", mix, err)
	}
}

func TestFormats(t *testing.T) {
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Make(studies(t), Request{Rate: 50000, Mix: map[string]float64{"read": 1}, Instance: "c7g.xlarge"}, table)
	if err != nil {
		t.Fatal(err)
	}
	for format, wants := range map[string][]string{
		"text": {"What 50,000 requests/s need", "cannot use all the cores", "2026-01-19", "Linear scaling", "USD a month"},
		"md":   {"| frankenphp | 116.7 | 5.8 | 8.8 | 3 |"},
		"csv":  {"plan,frankenphp,116.7,5.8,8.8,3"},
		"json": {`"schema": "percore-plan/1"`, `"per_month"`},
	} {
		var out bytes.Buffer
		if err := sheet.Write(&out, format, p.Document(), p); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q:\n%s", format, want, out.String())
			}
		}
	}
}

func FuzzParseMix(f *testing.F) {
	f.Add("read=0.5,write=0.5")
	f.Add("auth=1")
	f.Fuzz(func(t *testing.T, s string) {
		mix, err := ParseMix(s)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		total := 0.0
		for _, v := range mix {
			total += v
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf("%q adds up to %v", s, total)
		}
	})
}

// TestNearlyIdle: a candidate that used less than a tenth of its cores at the
// fixed rate is remarked on, and only for scenarios of the mix.
func TestNearlyIdle(t *testing.T) {
	set := studies(t)
	key := figures.Key{Suite: set.Suite, Phase: figures.PhaseRate, Metric: figures.AppCores, Candidate: "go", Scenario: "read"}
	used, ok := set.Get(key)
	if !ok {
		t.Fatalf("%s is not published", key)
	}
	remarks := func(cores float64, mix map[string]float64) string {
		t.Helper()
		changed := set.Clone()
		used.Value = cores
		changed.Put(used)
		p, err := Make(changed, Request{Rate: 1000, Mix: mix}, prices.Table{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Candidates {
			if c.ID == "go" {
				return strings.Join(c.Remarks, "; ")
			}
		}
		t.Fatal("go was not planned")
		return ""
	}
	read := map[string]float64{"read": 1}
	if got := remarks(0.39, read); !strings.Contains(got, "nearly idle in read") {
		t.Errorf("at 0.39 of 4 cores: %q", got)
	}
	if got := remarks(0.41, read); strings.Contains(got, "idle") {
		t.Errorf("at 0.41 of 4 cores: %q", got)
	}
	if got := remarks(0.39, map[string]float64{"write": 1}); strings.Contains(got, "idle") {
		t.Errorf("without reads in the mix: %q", got)
	}
}

// ran makes the set of a run on two cores with CPU per request and ceilings of
// reads, by repetition.
func ran(cpu, ceiling []float64) *figures.Set {
	run := store.Run{ID: "r", Suite: plan.Suite{Name: "s", Scenarios: []plan.Scenario{{ID: "read", DB: true}}}, Candidates: []string{"go"}}
	run.Profile.Roles = map[plan.Role]plan.Resources{plan.App: {CPUs: "0-1"}}
	run.Preset.Phases = []plan.Phase{
		{ID: "rate", Kind: plan.KindRate, Repetitions: len(cpu), Connections: []int{8}, Targets: map[string]int{"read": 100}},
		{ID: "ceiling", Kind: plan.KindCeiling, Repetitions: 3, Connections: []int{8}},
	}
	var windows []store.WindowResult
	for i, v := range cpu {
		windows = append(windows, store.WindowResult{Attempt: 1, Window: plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: "go", Scenario: "read", Repetition: i + 1, Connections: 8, Target: 100, Seconds: 1},
			Measured: &measure.Window{Achieved: 100, AppCPUUS: v, AppCores: 1, DBCPUUS: v / 2}})
	}
	for i, v := range ceiling {
		windows = append(windows, store.WindowResult{Attempt: 1, Window: plan.Window{Phase: "ceiling", Kind: plan.KindCeiling, Candidate: "go", Scenario: "read", Repetition: i + 1, Connections: 8, Seconds: 1},
			Measured: &measure.Window{Achieved: v, AppCPUUS: 100, AppCores: 2}})
	}
	return figures.FromRun(run, windows, nil)
}

// What is worked out from a ceiling carries the spread of its repetitions, and
// what the statistics say of the figures reaches the reader.
func TestSpreadAndDoubts(t *testing.T) {
	read := map[string]float64{"read": 1}
	p, err := Make(ran([]float64{100, 101, 102}, []float64{800, 1000, 900}), Request{Rate: 1000, Mix: read}, prices.Table{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.Candidates[0]
	if a := *c.ByInstance; a != (Amount{Value: 2, Lo: 2, Hi: 2.5, Spread: true}) {
		t.Errorf("cores by instance %+v", a)
	}
	if a := *c.Instances; a != (Amount{Value: 1, Lo: 1, Hi: 2, Spread: true}) || show(c.Instances, 0) != "1 (1 to 2, spread)" {
		t.Errorf("instances %+v, %s", a, show(c.Instances, 0))
	}
	said := strings.Join(c.Remarks, "\n")
	if want := "read at the fixed rate: 3 repetitions cannot give a 95 % interval"; strings.Count(said, want) != 1 {
		t.Errorf("%q is not said once in\n%s", want, said)
	}

	p, err = Make(ran([]float64{100}, []float64{800, 1000}), Request{Rate: 1000, Mix: read}, prices.Table{})
	if err != nil {
		t.Fatal(err)
	}
	said = strings.Join(p.Candidates[0].Remarks, "\n")
	for _, want := range []string{"one repetition gives no interval", "read at the ceiling: 2 of 3 repetitions measured"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in\n%s", want, said)
		}
	}

	// A sum is a spread where a part of it is, and nothing where a part has neither.
	s := add([]Amount{{Value: 10, Lo: 9, Hi: 11, Confidence: 0.95}, {Value: 5, Lo: 4, Hi: 5, Spread: true}})
	if s != (Amount{Value: 15, Lo: 13, Hi: 16, Spread: true}) {
		t.Errorf("%+v", s)
	}
	if s = add([]Amount{{Value: 5, Lo: 4, Hi: 5, Spread: true}, {Value: 1, Lo: 1, Hi: 1}}); s != (Amount{Value: 6, Lo: 6, Hi: 6}) {
		t.Errorf("%+v", s)
	}
}

// The memory that a candidate needs is the largest that was seen, whichever
// scenario of the mix it was filed under.
func TestPeakMemory(t *testing.T) {
	if c := planned(t, Request{Rate: 50000, Mix: map[string]float64{"read": 1}})["frankenphp"]; c.PeakMiB != 137 {
		t.Errorf("peak memory %v MiB, the study prints 137", c.PeakMiB)
	}
}

// Figures of half reads and half writes are those of a mix near it and of no
// other, and where the plan changes there is a remark.
func TestNearHalfAndHalf(t *testing.T) {
	const together, apart, exactly = "half reads and half writes", "measured apart", "exactly half"
	for _, c := range []struct {
		mix          string
		from, remark string
	}{
		{"read=0.5,write=0.5", together, ""},
		{"read=0.4999,write=0.5001", together, exactly},
		{"read=0.5,write=0.5,auth=0", together, ""},
		{"read=0.5,write=0.5,auth=0.001", "combined by their shares", apart},
		{"read=0.49,write=0.51", "combined by their shares", apart},
		{"read=1", "ceiling of read", ""},
	} {
		mix, err := ParseMix(c.mix)
		if err != nil {
			t.Fatal(err)
		}
		got := planned(t, Request{Rate: 30000, Mix: mix})["go"]
		said := strings.Join(got.Remarks, "\n")
		if !strings.Contains(got.CapacityFrom, c.from) || c.remark == "" && (strings.Contains(said, apart) || strings.Contains(said, exactly)) || !strings.Contains(said, c.remark) {
			t.Errorf("%s: from %q, remarks %q", c.mix, got.CapacityFrom, said)
		}
	}
	mix, err := ParseMix("read=0.5,write=0.5,auth=0.001")
	if err != nil || math.Abs(mix["read"]+mix["write"]+mix["auth"]-1) > 1e-12 {
		t.Errorf("%v, %v", mix, err)
	}
}

// An instance type that was not measured is said before any figure, and that a
// hardware factor leaves the database alone.
func TestOtherInstance(t *testing.T) {
	table, err := prices.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Rate: 1000, Mix: map[string]float64{"read": 1}, Instance: "c7g.large", Hardware: 1.3}
	p, err := Make(studies(t), r, table)
	if err != nil {
		t.Fatal(err)
	}
	if first := strings.Join(p.First, "\n"); first != "c7g.large was not measured: its core is taken for a core of Apple M4 Pro with 1.3 times its CPU per request (--hardware-factor)." {
		t.Errorf("first: %s", first)
	}
	if said := strings.Join(p.Assumptions, "\n"); !strings.Contains(said, "database cores are those that were measured") {
		t.Errorf("%s", said)
	}
	set := studies(t)
	set.Host.Instance = "c7g.large"
	if p, err = Make(set, r, table); err != nil || len(p.First) != 0 {
		t.Errorf("%v, %v", p.First, err)
	}
}

// Where nothing can be planned there is no plan, and a candidate that cannot be
// is named first.
func TestNothingToPlan(t *testing.T) {
	mix := map[string]float64{"read": 1}
	set := ran(nil, nil)
	if p, err := Make(set, Request{Rate: 1, Mix: mix}, prices.Table{}); !fail.IsInput(err) || !strings.Contains(said.Err(err), "r holds no evidence for read (not measured): nothing can be planned") {
		t.Errorf("%+v, %v", p, err)
	}
	set = ran([]float64{100}, []float64{900})
	set.Candidates = append(set.Candidates, "php-fpm")
	set.PutAbsent(figures.Key{Suite: "s", Phase: "ceiling", Metric: figures.AppCPU, Candidate: "php-fpm", Scenario: "read"}, figures.Absence{Cause: figures.GateFailed, Detail: "steal"})
	p, err := Make(set, Request{Rate: 1, Mix: mix}, prices.Table{})
	if err != nil || len(p.First) == 0 || p.First[0] != "php-fpm is not planned: there is no evidence for read (gate failed: steal)." {
		t.Errorf("%v, %v", p.First, err)
	}
}

func TestFewCoresCanBeSeen(t *testing.T) {
	p, err := Make(studies(t), Request{Rate: 10, Mix: map[string]float64{"read": 1}}, prices.Table{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sheet.Text(&out, p.Document()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, " 0.0 ") || !strings.Contains(text, "0.0012") {
		t.Errorf("%s", text)
	}
}
