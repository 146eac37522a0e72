package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/oha"
)

type counters struct {
	cpu  map[string]float64
	peak int64
}

func (c counters) Samples() int { return 11 }
func (c counters) CPU(name string) (float64, bool) {
	v, ok := c.cpu[name]
	return v, ok
}
func (c counters) PeakAnon(name string) (int64, bool) { return c.peak, name == "app" }

func result(t *testing.T, file string) oha.Result {
	t.Helper()
	r, err := oha.Read(file, oha.Remedy)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// nearly is a result of 36943 answers, of which 36574 are 2xx.
func nearly(t *testing.T) oha.Result {
	r := result(t, "../oha/testdata/half.json")
	r.Statuses = map[string]int64{"200": 36574, "500": 369}
	return r
}

func TestDefinitions(t *testing.T) {
	r := nearly(t)
	r.Errors = map[string]int64{"timeout": 7}
	w, err := Of([]Output{{Result: r}}, counters{map[string]float64{"app": 2e6, "db": 1e6, "load": 5e5}, 1 << 20}, "app", "db", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]float64{
		"achieved":   {w.Achieved, 36574.0 / 2},              // 2xx over the nominal window
		"failed":     {float64(w.Failed), 36943 - 36574 + 7}, // other answers and no answer
		"app CPU":    {w.AppCPUUS, 2e6 / 36943.0},            // over all answers
		"db CPU":     {w.DBCPUUS, 1e6 / 36943.0},
		"app cores":  {w.AppCores, 1},
		"db cores":   {w.DBCores, 0.5},
		"load cores": {w.LoadCores, 0.25},
		"peak":       {float64(w.PeakBytes), 1 << 20},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
	if len(w.Missing) != 0 || w.Samples != 11 {
		t.Errorf("missing %v, samples %d", w.Missing, w.Samples)
	}
}

func TestWhatCannotBeHadIsMissing(t *testing.T) {
	w, err := Of([]Output{{Result: result(t, "../oha/testdata/timeout.json")}}, None{}, "app", "db", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{"p50_ms", "p99_ms", "p999_ms", "app_cpu_us", "app_cores", "db_cpu_us", "db_cores", "peak_bytes"} {
		if w.Has(figure) {
			t.Errorf("%s is said to be there", figure)
		}
	}
	if w.Failed != 16 || w.Achieved != 0 {
		t.Errorf("failed %d, achieved %v", w.Failed, w.Achieved)
	}
	// CPU time without an answer has no CPU per request, but cores.
	w, err = Of([]Output{{Result: result(t, "../oha/testdata/timeout.json")}}, counters{map[string]float64{"app": 1e6}, 1}, "app", "", time.Second)
	if err != nil || w.Has("app_cpu_us") || !w.Has("app_cores") || w.AppCores != 1 || w.Has("db_cores") {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := Of([]Output{{}}, None{}, "app", "db", 0); err == nil {
		t.Error("a window without length")
	}
	if _, err := Of(nil, None{}, "app", "db", time.Second); err == nil {
		t.Error("a window without a load generator")
	}
}

// TestOneGenerator holds what a window of one generator writes into a log, which
// runs that were measured long ago must give again.
func TestOneGenerator(t *testing.T) {
	w, err := Of([]Output{{Host: "load", Result: nearly(t)}}, counters{map[string]float64{"app": 2e6}, 4096}, "app", "db", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"answered":36943,"ok":36574,"failed":369,"statuses":{"200":36574,"500":369},"errors":{},"achieved":18287,` +
		`"p50_ms":0.09475900000000001,"p99_ms":1.848486,"p999_ms":11.369604,"app_cpu_us":54.137454998240536,"db_cpu_us":0,"app_cores":1,"db_cores":0,"load_cores":0,` +
		`"peak_bytes":4096,"samples":11,"missing":["db_cpu_us","db_cores"]}`
	if string(text) != want {
		t.Errorf("one generator writes\n%s, want\n%s", text, want)
	}
}

// TestSeveralGenerators: counts add up, latency is the worst and never a mixture.
func TestSeveralGenerators(t *testing.T) {
	half := nearly(t)
	slow := result(t, "../oha/testdata/half.json")
	slow.Statuses = map[string]int64{"200": 101, "503": 1}
	slow.Answered, slow.Errors = 102, map[string]int64{"timeout": 3}
	slow.Percentiles = map[string]float64{"p50": 7, "p99": 1, "p99.9": 80}
	c := counters{map[string]float64{"app": 2e6, "db": 1e6, "load": 3e6}, 4096}
	w, err := Of([]Output{{Host: "load", Result: half}, {Host: "load2", Result: slow}}, c, "app", "db", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if w.Answered != 36943+102 || w.OK != 36574+101 || w.Failed != 369+1+3 || w.Achieved != 36675.0/2 || w.Statuses["200"] != 36675 || w.Statuses["503"] != 1 || w.Errors["timeout"] != 3 {
		t.Errorf("counts %+v", w)
	}
	if w.P50MS != 7 || w.P99MS != half.Percentiles["p99"] || w.P999MS != 80 {
		t.Errorf("latency %v %v %v", w.P50MS, w.P99MS, w.P999MS)
	}
	if w.AppCPUUS != 2e6/37045.0 || w.LoadCores != 1.5 || w.AppCores != 1 {
		t.Errorf("CPU %+v", w)
	}
	if len(w.Generators) != 2 || len(w.Missing) != 0 {
		t.Fatalf("generators %+v, missing %v", w.Generators, w.Missing)
	}
	if g := w.Generators[1]; g.Host != "load2" || g.Answered != 102 || g.OK != 101 || g.Failed != 4 || g.Achieved != 50.5 || g.P50MS != 7 || g.P99MS != 1 || g.P999MS != 80 {
		t.Errorf("second generator %+v", g)
	}
	if g := w.Generators[0]; g.Host != "load" || g.Answered != 36943 || g.P999MS != half.Percentiles["p99.9"] {
		t.Errorf("first generator %+v", g)
	}
	if half.Statuses["503"] != 0 || slow.Statuses["200"] != 101 {
		t.Error("adding up changed a result")
	}
	// Nobody knows the worst latency where a generator has none.
	w, err = Of([]Output{{Host: "load", Result: half}, {Host: "load2", Result: result(t, "../oha/testdata/timeout.json")}}, c, "app", "db", 2*time.Second)
	if err != nil || w.Has("p50_ms") || w.Has("p999_ms") || w.P50MS != 0 || !w.Has("app_cpu_us") || w.Failed != 369+16 {
		t.Errorf("%+v, %v", w, err)
	}
	if g := w.Generators; !g[0].Has("p50_ms") || g[0].P50MS == 0 || g[1].Has("p50_ms") {
		t.Errorf("generators %+v", g)
	}
}

// TestOtherAnswers: a window of answers that nobody asked for has no figure of
// the scenario, only what was counted and what was used.
func TestOtherAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		statuses map[string]int64
		own      bool
	}{
		"all its own":            {map[string]int64{"200": 30000, "201": 6943}, true},
		"a hundredth of others":  {map[string]int64{"200": 36574, "500": 369}, true},
		"more than that":         {map[string]int64{"200": 36572, "500": 371}, false},
		"nothing but 401":        {map[string]int64{"401": 36943}, false},
		"no answer to a request": {map[string]int64{}, false},
	} {
		r := result(t, "../oha/testdata/half.json")
		r.Statuses, r.Answered = c.statuses, 0
		for _, n := range c.statuses {
			r.Answered += n
		}
		w, err := Of([]Output{{Result: r}}, counters{map[string]float64{"app": 2e6, "db": 1e6}, 1 << 20}, "app", "db", 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for figure, v := range map[string]float64{"p50_ms": w.P50MS, "p99_ms": w.P99MS, "p999_ms": w.P999MS, "app_cpu_us": w.AppCPUUS, "db_cpu_us": w.DBCPUUS} {
			if w.Has(figure) != c.own || (v > 0) != c.own {
				t.Errorf("%s: %s is %v, missing %v", name, figure, v, w.Missing)
			}
		}
		if w.AppCores != 1 || !w.Has("app_cores") || w.Answered != r.Answered {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// TestSeveralHosts: each container comes from the host that samples it.
func TestSeveralHosts(t *testing.T) {
	series := func(samples int, containers ...string) *cgroup.Series {
		var b strings.Builder
		for i := range samples {
			var list []string
			for j, name := range containers {
				list = append(list, fmt.Sprintf(`%q:{"usage_us":%d,"anon":%d}`, name, 1000*i*(j+1), 10*(i+j)))
			}
			fmt.Fprintf(&b, `{"t":%d,"mono":%d,"host":{"cpus":1},"containers":{%s}}`+"\n", 1000+i, 1000+i, strings.Join(list, ","))
		}
		s, err := cgroup.ReadSeries(strings.NewReader(b.String()), "x")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c := Samples(series(11, "app"), series(5, "db"), series(3, "load"), series(6, "load"))
	for name, want := range map[string]float64{"app": 10_000, "db": 4000, "load": 2000 + 5000} {
		if us, ok := c.CPU(name); !ok || us != want {
			t.Errorf("%s used %v µs, %v", name, us, ok)
		}
	}
	if peak, ok := c.PeakAnon("load"); !ok || peak != 50 {
		t.Errorf("peak %d, %v", peak, ok)
	}
	if _, ok := c.CPU("nobody"); ok || c.Samples() != 3 || Samples().Samples() != 0 {
		t.Errorf("%d samples", c.Samples())
	}
}
