package measure

import (
	"math"
	"testing"
	"time"

	"github.com/percore/percore/internal/load"
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

func result(t *testing.T, file string) load.Result {
	t.Helper()
	r, err := load.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDefinitions(t *testing.T) {
	r := result(t, "../load/testdata/half.json") // 36943 answers, 18472 of them 2xx
	r.Errors = map[string]int64{"timeout": 7}
	w, err := Of(r, counters{map[string]float64{"app": 2e6, "db": 1e6, "load": 5e5}, 1 << 20}, "app", "db", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]float64{
		"achieved":   {w.Achieved, 18472.0 / 2},              // 2xx over the nominal window
		"failed":     {float64(w.Failed), 36943 - 18472 + 7}, // other answers and no answer
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
	w, err := Of(result(t, "../load/testdata/timeout.json"), None{}, "app", "db", time.Second)
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
	w, err = Of(result(t, "../load/testdata/timeout.json"), counters{map[string]float64{"app": 1e6}, 1}, "app", "", time.Second)
	if err != nil || w.Has("app_cpu_us") || !w.Has("app_cores") || w.AppCores != 1 || w.Has("db_cores") {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := Of(load.Result{}, None{}, "app", "db", 0); err == nil {
		t.Error("a window without length")
	}
}
