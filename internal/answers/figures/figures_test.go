package figures

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
)

func TestKeyText(t *testing.T) {
	for _, text := range []string{
		"s/rate/achieved", "s/rate/achieved/go", "s/rate/achieved/go/read", "s/rate/target/-/read",
		"s/capacity/achieved/go/mix@4cores", "s/ceiling/achieved/go/read@64conn", "s/sizing/instances/go/mix@4cores@10000rps",
	} {
		k, err := ParseKey(text)
		if err != nil || k.String() != text {
			t.Errorf("%s reads as %v, %v", text, k, err)
		}
	}
	for _, text := range []string{
		"", "a/b", "a/b/c/d/e/f", "a//c", "-/b/c", "a/b/c@", "a/b/c@4", "a/b/c@0cores", "a/b/c@4cores@2cores", "a/b/c@+4cores", "a/b/c d", "a/b/c@-1conn",
	} {
		if k, err := ParseKey(text); err == nil {
			t.Errorf("%q reads as %v", text, k)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("s/capacity/achieved/go/mix@4cores")
	f.Add("s/rate/target/-/read")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			return
		}
		again, err := ParseKey(k.String())
		if err != nil || again != k {
			t.Fatalf("%q -> %v -> %v, %v", s, k, again, err)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		level   float64
		want    Interval
		warning string
	}{
		{[]float64{3, 1, 2}, 0.95, Interval{Median: 2, Lo: 1, Hi: 3, Confidence: 0.75}, "3 repetitions cannot give a 95 % interval (need >= 6 samples for confidence interval at level 0.95); their range covers the median with 75 %"},
		{[]float64{5, 4, 3, 2, 1}, 0.95, Interval{Median: 3, Lo: 1, Hi: 5, Confidence: 0.9375}, "93.7 %"},
		{[]float64{5, 4, 3, 2, 1}, 0.90, Interval{Median: 3, Lo: 1, Hi: 5, Confidence: 0.9375}, ""},
		{[]float64{7}, 0.95, Interval{Median: 7, Lo: 7, Hi: 7}, "one repetition gives no interval"},
		{[]float64{6, 5, 4, 3, 2, 1}, 0.95, Interval{Median: 3.5, Lo: 1, Hi: 6, Confidence: 0.96875}, ""},
	} {
		got := MedianOf(c.values, c.level)
		text := strings.Join(got.Warnings, "\n")
		if (c.warning == "") != (text == "") || !strings.Contains(text, c.warning) {
			t.Errorf("%v at %v warns %q", c.values, c.level, text)
		}
		got.Warnings = nil
		if !cmp.Equal(got, c.want) {
			t.Errorf("%v at %v: %+v, want %+v", c.values, c.level, got, c.want)
		}
	}
}

func sample(values ...float64) Estimate {
	e := Estimate{Estimator: EstimatorMedian}
	for i, v := range values {
		e.Samples = append(e.Samples, Sample{i + 1, v})
	}
	e.fill(DisplayConfidence)
	return e
}

func TestRatio(t *testing.T) {
	// Three against three reach 90 % and no more: 2/C(6,3) is 10 %.
	q := Compare(sample(20, 22, 24), sample(10, 10.5, 11), 0.9)
	if !near(q.Value, 22/10.5) || !near(q.Lo, 20.0/11) || !near(q.Hi, 2.4) || !near(q.Confidence, 0.9) {
		t.Errorf("3 against 3 at 90 %%: %+v", q)
	}
	if len(q.Warnings) != 1 || !strings.Contains(q.Warnings[0], "need >= 4 samples to detect a difference") {
		t.Errorf("warnings of benchmath are not carried: %q", q.Warnings)
	}
	q = Ratio(sample(20, 22, 24), sample(10, 10.5, 11), 0.95)
	if !near(q.Confidence, 0.9) || !strings.Contains(q.Warnings[0], "cannot give a 95 % interval") {
		t.Errorf("3 against 3 at 95 %%: %+v", q)
	}
	// Five against five: the critical value of U at 5 % is 2, so the third from
	// either end, with 1-2*4/252.
	q = Ratio(sample(1, 2, 3, 4, 5), sample(1, 1, 1, 1, 1), 0.95)
	if !near(q.Lo, 1) || !near(q.Hi, 5) || q.Confidence < 0.95 || q.Confidence > 0.97 {
		t.Errorf("5 against 5: %+v", q)
	}
	if q := Ratio(sample(2), sample(1), 0.95); q.HasInterval() || q.Value != 2 {
		t.Errorf("1 against 1: %+v", q)
	}
	published := Estimate{Value: 10, Estimator: EstimatorPublished}
	q = Ratio(sample(20, 21, 22, 23, 24, 25), published, 0.95)
	if !q.OneSided || !near(q.Lo, 2) || !near(q.Hi, 2.5) || !near(q.Value, 2.25) {
		t.Errorf("against a published value: %+v", q)
	}
	q = Ratio(published, sample(20, 21, 22, 23, 24, 25), 0.95)
	if !q.OneSided || !near(q.Lo, 0.4) || !near(q.Hi, 0.5) {
		t.Errorf("of a published value: %+v", q)
	}
	if q := Ratio(published, published, 0.95); q.HasInterval() || q.Value != 1 {
		t.Errorf("two published values: %+v", q)
	}
	if q := Ratio(sample(1, 2, 3), sample(0, 1, 2), 0.9); q.HasInterval() {
		t.Errorf("an interval over a zero: %+v", q)
	}
}

// The interval holds exactly the ratios that the U test does not reject, so
// scaling one sample scales it and swapping the two inverts it.
func TestRatioInvertsTheTest(t *testing.T) {
	a, b := sample(12, 14, 13, 17, 19), sample(5, 7, 6, 6.5, 8)
	q, back := Ratio(a, b, 0.95), Ratio(b, a, 0.95)
	if !near(q.Lo, 1/back.Hi) || !near(q.Hi, 1/back.Lo) {
		t.Errorf("%+v and %+v", q, back)
	}
	reject := func(r float64) bool { return Test(a, b.Scale(r)).P <= 0.05 }
	for _, r := range []float64{q.Lo * 0.999, q.Hi * 1.001} {
		if !reject(r) {
			t.Errorf("the test does not reject %v, outside the interval %v to %v", r, q.Lo, q.Hi)
		}
	}
	for _, r := range []float64{q.Lo * 1.001, q.Hi * 0.999, q.Value} {
		if reject(r) {
			t.Errorf("the test rejects %v, inside the interval %v to %v", r, q.Lo, q.Hi)
		}
	}
}

func TestLargeSamplesStayCheap(t *testing.T) {
	var a, b []float64
	for i := range 200 {
		a = append(a, 2+float64(i%17)/100)
		b = append(b, 1+float64(i%13)/100)
	}
	lo, hi, reached := pairwise(a, b, 0.95)
	if !(lo > 1.8 && hi < 2.1 && lo < hi) || reached != 0.95 {
		t.Errorf("%v to %v at %v", lo, hi, reached)
	}
	// What is found without making all pairs is what making them finds.
	var ratios []float64
	for _, x := range a {
		for _, y := range b {
			ratios = append(ratios, x/y)
		}
	}
	slices.Sort(ratios)
	slices.Sort(a)
	slices.Sort(b)
	for _, k := range []int{1, 2, 777, len(ratios) / 2, len(ratios) - 1, len(ratios)} {
		if got := kth(a, b, k); got != ratios[k-1] {
			t.Errorf("the %d-th ratio is %v, found %v", k, ratios[k-1], got)
		}
	}
}

const studyDir = "../../evidence/study/testdata/php-go-bench/results/2026-09-16"

// The figures of the study's raw folder are those of its summary.
func TestStudyFigures(t *testing.T) {
	s, err := study.Read(studyDir)
	if err != nil {
		t.Fatal(err)
	}
	set := FromStudy(s)
	if set.AppCores != 4 || set.SharedCores || set.Host.Label != "Apple M4 Pro" || set.Kind != KindImported || !set.Protocol {
		t.Errorf("identity: %+v", set)
	}
	for text, want := range map[string]struct {
		value    float64
		decimals float64
	}{
		"oauth-events/rate/achieved/go/write":               {10000, 1},
		"oauth-events/rate/p99_ms/go/write":                 {2.5, 100},
		"oauth-events/rate/app_cpu_us/go/write":             {95.5, 10},
		"oauth-events/rate/app_cores/go/write":              {0.95, 100},
		"oauth-events/rate/db_cores/go/write":               {0.48, 100},
		"oauth-events/rate/peak_mib/go/write":               {26.7, 10},
		"oauth-events/rate/met/go/write":                    {5, 1},
		"oauth-events/rate/repetitions/go/write":            {5, 1},
		"oauth-events/ceiling/achieved/go/read":             {59004, 1},
		"oauth-events/ceiling/app_cpu_us/go/read":           {65.9, 10},
		"oauth-events/ceiling/achieved/php-fpm/read":        {24437, 1},
		"oauth-events/ceiling/achieved/frankenphp/read":     {22613, 1},
		"oauth-events/ceiling/p99_ms/php-fpm/read@64conn":   {4.29, 100},
		"oauth-events/ceiling/app_cores/frankenphp/read":    {2.67, 100},
		"oauth-events/rate/target/-/write":                  {10000, 1},
		"oauth-events/rate/budget_cores":                    {4, 1},
		"oauth-events/ceiling/achieved/go/read@256conn":     {59004, 1},
		"oauth-events/ceiling/db_cores/frankenphp/read":     {0.8, 100},
		"oauth-events/ceiling/peak_mib/php-fpm/read@64conn": {60.5, 10},
	} {
		k, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := set.Get(k)
		if !ok {
			t.Errorf("%s: %s", text, set.Why(k))
			continue
		}
		if got := math.Floor(e.Value*want.decimals+0.5) / want.decimals; got != want.value {
			t.Errorf("%s = %v, want %v", text, got, want.value)
		}
	}
	ceiling, _ := set.Get(Key{Suite: "oauth-events", Phase: PhaseCeiling, Metric: Achieved, Candidate: "php-fpm", Scenario: "read"})
	if math.Round(ceiling.Median) != 17089 || ceiling.N != 3 || ceiling.Connections != 64 || ceiling.Estimator != EstimatorBest {
		t.Errorf("a ceiling's median beside its best: %+v", ceiling)
	}
	absent := Key{Suite: "oauth-events", Phase: PhaseRate, Metric: AppCPU, Candidate: "php-fpm", Scenario: "auth"}
	if _, ok := set.Get(absent); ok || set.Why(absent) != (Absence{}) {
		t.Errorf("a cell that is not in the folder: %v, %q", ok, set.Why(absent))
	}
}

func window(candidate, scenario string, rep, attempt int, cpu float64, gate bool) store.WindowResult {
	return store.WindowResult{
		Window: plan.Window{Phase: "rate", Kind: plan.KindRate, Candidate: candidate, Scenario: scenario, Repetition: rep,
			Connections: 256, Target: 50000, Seconds: 60},
		Attempt: attempt,
		Gates:   []store.Gate{{Name: "steal", OK: gate, Reading: 2, Limit: 1, Unit: "%"}},
		Measured: &measure.Window{Answered: 3_000_000, OK: 3_000_000, Achieved: 50000, AppCPUUS: cpu, AppCores: cpu * 0.05,
			Missing: []string{"peak_bytes", "p999_ms"}},
	}
}

func run() store.Run {
	r := store.Run{ID: "r", Suite: plan.Suite{Name: "oauth-events", Scenarios: []plan.Scenario{{ID: "auth"}, {ID: "read", DB: true}}},
		Candidates: []string{"go"}, Flavour: plan.FlavourPublished}
	r.Preset.Phases = []plan.Phase{{ID: "rate", Kind: plan.KindRate, Repetitions: 3, Connections: []int{256}, Targets: map[string]int{"auth": 50000, "read": 50000}}}
	return r
}

// Only windows that passed are evidence, of several attempts the latest, and
// what has none says why.
func TestEvidence(t *testing.T) {
	set := FromRun(run(), []store.WindowResult{
		window("go", "read", 1, 1, 10, false), window("go", "read", 1, 2, 64, true), window("go", "read", 1, 3, 65, true),
		window("go", "read", 2, 1, 66, true),
		window("go", "read", 3, 1, 99, false),
		window("go", "auth", 1, 1, 40, false), window("go", "auth", 1, 2, 40, false),
	}, nil)
	k := Key{Suite: "oauth-events", Phase: PhaseRate, Metric: AppCPU, Candidate: "go", Scenario: "read"}
	e, ok := set.Get(k)
	if !ok || e.N != 2 || e.Value != 65.5 || e.Samples[0].Value != 65 || e.Target != 50000 {
		t.Errorf("%+v", e)
	}
	if e.Incomplete != "1 of 3 repetitions are no evidence: no attempt passed its gates" {
		t.Errorf("incomplete: %q", e.Incomplete)
	}
	k.Scenario = "auth"
	if got := set.Why(k).String(); got != "gate failed: steal, in each of 2 attempt(s)" {
		t.Errorf("why: %q", got)
	}
	k.Scenario, k.Metric = "read", PeakMiB
	if _, ok := set.Get(k); ok || !strings.Contains(set.Why(k).String(), "do not hold it") {
		t.Errorf("a figure that was not sampled: %v %q", ok, set.Why(k))
	}
	k.Scenario, k.Metric = "auth", DBCPU
	if _, ok := set.Get(k); ok {
		t.Error("database CPU of a scenario without a database")
	}
}

// A reading that cannot be is missing, with the reason, and the rest stands.
func TestDamagedReadings(t *testing.T) {
	k := Key{Suite: "oauth-events", Phase: PhaseRate, Metric: AppCPU, Candidate: "go", Scenario: "read"}
	set := FromRun(run(), []store.WindowResult{
		window("go", "read", 1, 1, -64, true), window("go", "read", 2, 1, 66, true), window("go", "read", 3, 1, math.Inf(1), true),
		window("go", "auth", 1, 1, -1, true),
	}, nil)
	e, ok := set.Get(k)
	if !ok || e.Value != 66 || e.N != 1 || e.Incomplete != "2 left out, recorded below zero or as no number" {
		t.Errorf("%+v", e)
	}
	k.Scenario = "auth"
	if e, ok := set.Get(k); ok || set.Why(k).String() != "damaged: 1 recorded value(s) below zero or no number" {
		t.Errorf("%+v, %q", e, set.Why(k))
	}
	// A ceiling with a damaged counter keeps its rate.
	r := run()
	r.Preset.Phases = []plan.Phase{{ID: "ceiling", Kind: plan.KindCeiling, Repetitions: 1, Connections: []int{8}}}
	w := window("go", "read", 1, 1, -3, true)
	w.Phase, w.Kind, w.Connections, w.Target = "ceiling", plan.KindCeiling, 8, 0
	set = FromRun(r, []store.WindowResult{w}, nil)
	k.Phase, k.Scenario = PhaseCeiling, "read"
	_, ok = set.Get(k)
	k.Metric = Achieved
	if _, rate := set.Get(k); ok || !rate {
		t.Errorf("CPU there: %v, rate there: %v", ok, rate)
	}
}

// A percentile over an even number of repetitions is one that was measured.
func TestPercentilesAreNotAveraged(t *testing.T) {
	e := Estimate{Key: Key{Metric: P99}, Estimator: EstimatorMedian, Samples: []Sample{{1, 2}, {2, 4}}}
	e.fill(DisplayConfidence)
	if e.Value != 4 {
		t.Errorf("p99 of 2 ms and 4 ms is %v", e.Value)
	}
}

func BenchmarkFromRun(b *testing.B) {
	for _, windows := range []int{3_000, 100_000} {
		b.Run(fmt.Sprintf("windows=%d", windows), func(b *testing.B) {
			var all []store.WindowResult
			for i := range windows {
				all = append(all, window("go", []string{"auth", "read"}[i%2], 1+i/2, 1, 60+float64(i%7), true))
			}
			r := run()
			b.ResetTimer()
			for b.Loop() {
				FromRun(r, all, nil)
			}
		})
	}
}
