package cgroup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/guest/sample"
	"github.com/percore/percore/internal/testkit/cgtrees"
	"github.com/percore/percore/internal/testkit/said"
)

// line makes the n-th sample of a window at 10 Hz: every counter of the app grows
// by n times its step.
func line(n int64) string {
	return fmt.Sprintf(`{"t":%d,"mono":%d,"host":{"cpus":2,"total_us":%d,"idle_us":%d,"steal_us":%d,"per_cpu":[{"cpu":0,"busy_us":%d,"steal_us":%d},{"cpu":3,"busy_us":%d,"steal_us":0}],"load1":0.42},`+
		`"containers":{"app":{"usage_us":%d,"user_us":%d,"system_us":%d,"nr_periods":%d,"nr_throttled":3,"throttled_us":%d,"memory":%d,"anon":%d,"peak":9000,"read_bytes":1,"write_bytes":2,"pressure_some_us":3,"pressure_full_us":4},"db":{"usage_us":%d,"memory":5}}}`+"\n",
		1_800_000_000_000_000_000+n*100_000_000, 5_000_000_000+n*100_000_000, 200_000*n, 90_000*n, 1_000*n, 60_000*n, 1_000*n, 20_000*n,
		1_000_000+40_000*n, 1000+30_000*n, 1000+10_000*n, n, 7*n, 1000+n, 100+n%3*50, 10*n)
}

func lines(n int64) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func read(t *testing.T, text string, want ...string) *Series {
	t.Helper()
	s, err := ReadSeries(strings.NewReader(text), "x.cg.jsonl", want...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSeries(t *testing.T) {
	s := read(t, lines(101), "app", "db")
	if s.Len() != 101 || s.Torn() != 0 || s.Name() != "x.cg.jsonl" {
		t.Errorf("%d samples, %d torn, %s", s.Len(), s.Torn(), s.Name())
	}
	if s.Elapsed() != 10*time.Second || s.MaxGap() != 100*time.Millisecond || s.WallVsMonotonic() != 0 {
		t.Errorf("elapsed %v, gap %v, clocks %v", s.Elapsed(), s.MaxGap(), s.WallVsMonotonic())
	}
	if got := strings.Join(s.Containers(), " "); got != "app db" {
		t.Errorf("containers %s", got)
	}
	for counter, want := range map[string]int64{UsageUS: 4_000_000, UserUS: 3_000_000, SystemUS: 1_000_000, NrPeriods: 100, NrThrottled: 0, ThrottledUS: 700, ReadBytes: 0} {
		if got, ok := s.Grew("app", counter); got != want || !ok {
			t.Errorf("%s grew %d, %v, want %d", counter, got, ok, want)
		}
	}
	if got, ok := s.ThrottledGrew("app"); got != 700 || !ok {
		t.Errorf("throttled %d, %v", got, ok)
	}
	for _, absent := range [][2]string{{"db", ThrottledUS}, {"db", ReadBytes}, {"nobody", UsageUS}, {"app", "no_such_counter"}} {
		if got, ok := s.Grew(absent[0], absent[1]); ok || got != 0 {
			t.Errorf("%v grew %d, %v", absent, got, ok)
		}
	}
	if got, ok := s.PeakAnon("app"); got != 200 || !ok {
		t.Errorf("peak anon %d, %v", got, ok)
	}
	if got, ok := s.PeakMemory("app"); got != 1100 || !ok {
		t.Errorf("peak memory %d, %v", got, ok)
	}
	if got, ok := s.PeakAnon("db"); ok {
		t.Errorf("peak anon of db %d", got)
	}
	if s.Gone("app") || s.Gone("nobody") {
		t.Error("gone")
	}
	for _, c := range []struct {
		cpus        []int
		busy, steal float64
		ok          bool
	}{
		{[]int{0}, 0.6, 0.01, true},
		{[]int{3}, 0.2, 0, true},
		{[]int{3, 0}, 0.4, 0.005, true},
		{nil, 0.4, 0.005, true},
		{[]int{1}, 0, 0, false},
		{[]int{0, 1}, 0, 0, false},
	} {
		busy, ok := s.BusyFraction(c.cpus)
		steal, ok2 := s.StealFraction(c.cpus)
		if ok != c.ok || ok2 != c.ok || math.Abs(busy-c.busy) > 1e-9 || math.Abs(steal-c.steal) > 1e-9 {
			t.Errorf("CPUs %v: busy %v, steal %v, %v", c.cpus, busy, steal, ok)
		}
	}
	first, last := time.Unix(0, s.First().T), time.Unix(0, s.Last().T)
	if !s.Encloses(first, last) || !s.Encloses(first.Add(1), last.Add(-1)) || s.Encloses(first.Add(-1), last) || s.Encloses(first, last.Add(1)) {
		t.Error("encloses")
	}
}

func TestClocksThatDisagree(t *testing.T) {
	// The host sleeps for 2 s: only the wall clock goes on.
	text := lines(2) + strings.Replace(line(2), `"t":1800000000200000000`, `"t":1800000002200000000`, 1)
	if got := read(t, text).WallVsMonotonic(); got != 2*time.Second {
		t.Errorf("%v", got)
	}
	// The wall clock is set, in ms before each of ten samples; the series stays
	// sound, and what the clocks did is seen even where they agree at the end.
	for _, c := range []struct {
		name  string
		steps [10]int64
		want  time.Duration
	}{
		{"set back for good", [10]int64{5: -150}, 150 * time.Millisecond},
		{"set back by an hour", [10]int64{5: -3_600_000}, time.Hour},
		{"back and forth", [10]int64{3: -150, 8: 150}, 150 * time.Millisecond},
		{"forth and back", [10]int64{3: 150, 4: -150}, 150 * time.Millisecond},
		{"around the first", [10]int64{3: 80, 4: -160, 5: 80}, 160 * time.Millisecond},
		{"slewed", [10]int64{2: -20, 3: -20, 4: -20, 5: -20}, 80 * time.Millisecond},
	} {
		var b strings.Builder
		ahead := int64(0)
		for i, step := range c.steps {
			ahead += step * 1e6
			t := 1_800_000_000_000_000_000 + int64(i)*100_000_000
			b.WriteString(strings.Replace(line(int64(i)), fmt.Sprint(t), fmt.Sprint(t+ahead), 1))
		}
		s := read(t, b.String(), "app")
		if got := s.WallVsMonotonic(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if us, ok := s.Grew("app", UsageUS); us != 360_000 || !ok || s.Elapsed() != 900*time.Millisecond {
			t.Errorf("%s: grew %d over %v", c.name, us, s.Elapsed())
		}
	}
	far := strings.Replace(line(0), `"mono":5000000000`, `"mono":1`, 1) + strings.Replace(strings.Replace(line(1), `"t":1800000000100000000`, `"t":1`, 1), `"mono":5100000000`, `"mono":9223372036854775807`, 1)
	if got := read(t, far).WallVsMonotonic(); got != math.MaxInt64 {
		t.Errorf("clocks of a damaged file are %v apart", got)
	}
}

func TestGone(t *testing.T) {
	text := lines(3) + strings.Replace(line(3), `"db":{"usage_us":30,"memory":5}`, `"db":{"gone":true}`, 1)
	s := read(t, text, "db")
	if !s.Gone("db") || s.Gone("app") {
		t.Error("gone")
	}
	if v, ok := s.GrewWhileThere("db", UsageUS); !ok || v != 20 {
		t.Errorf("grew %d while it was there, %v", v, ok)
	}
	if v, ok := s.GrewWhileThere("app", UsageUS); !ok || v != 120_000 {
		t.Errorf("grew %d, %v", v, ok)
	}
	if v, ok := s.Grew("db", UsageUS); ok {
		t.Errorf("grew %d", v)
	}
	if _, err := ReadSeries(strings.NewReader(text+line(4)), "x", "db"); !fail.IsInput(err) || !strings.Contains(said.Err(err), "line 5") {
		t.Errorf("back again: %v", err)
	}
}

func TestLastLineMayBeTorn(t *testing.T) {
	whole := lines(3)
	end := line(3)
	for cut := 1; cut < len(end)-1; cut++ {
		s := read(t, whole+end[:cut])
		if s.Len() != 3 || s.Torn() != 1 {
			t.Fatalf("cut after %d bytes: %d samples, %d torn", cut, s.Len(), s.Torn())
		}
	}
	if s := read(t, whole+strings.TrimSuffix(end, "\n")); s.Len() != 4 || s.Torn() != 0 {
		t.Errorf("without the newline alone: %d samples, %d torn", s.Len(), s.Torn())
	}
}

func TestBadSeries(t *testing.T) {
	five := lines(5)
	cutAt := func(s string, line int) string { // takes away the second half of a line, newline kept
		l := strings.SplitAfter(s, "\n")
		l[line-1] = l[line-1][:len(l[line-1])/2] + "\n"
		return strings.Join(l, "")
	}
	swap := func(old, new string) string {
		if strings.Count(five, old) != 1 {
			t.Fatalf("%d of %s", strings.Count(five, old), old)
		}
		return strings.Replace(five, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x.cg.jsonl is empty"},
		{"torn only", line(0)[:50], "holds 0 whole samples and at least two are needed"},
		{"one sample", line(0), "holds 1 whole sample and"},
		{"one and a half", line(0) + line(1)[:50], "holds 1 whole sample and"},
		{"cut in the middle", cutAt(five, 3), "line 3 is cut off or not JSON"},
		{"cut at the end, with a newline", cutAt(five, 5), "line 5 is cut off or not JSON"},
		{"not JSON", "hello\n" + five, "line 1 is cut off or not JSON"},
		{"blank line", line(0) + "\n" + line(1), "line 2 is blank"},
		{"other JSON", `{"a":1}` + "\n" + five, "line 1 is not a sample"},
		{"array", "[]\n" + five, "line 1 is not a sample"},
		{"study's own samples", `{"t":1789569414812453838,"app_cpu":352674372,"app_mem":79278080}` + "\n", "line 1 is not a sample"},
		{"text for a number", swap(`"usage_us":1120000`, `"usage_us":"many"`), "line 4 is not a sample"},
		{"number too large", swap(`"usage_us":1120000`, `"usage_us":99999999999999999999`), "line 4 is not a sample"},
		{"fraction", swap(`"usage_us":1120000`, `"usage_us":1.5`), "line 4 is not a sample"},
		{"counter backwards", swap(`"usage_us":1120000`, `"usage_us":1079999`), "line 4: usage_us of container app went backwards (1079999 after 1080000)"},
		{"counter negative", swap(`"usage_us":1120000`, `"usage_us":-1`), "line 4: usage_us of container app is negative"},
		{"gauge negative", swap(`"memory":1003`, `"memory":-1`), "line 4: memory of container app is negative"},
		{"host negative", swap(`"steal_us":4000,"per_cpu"`, `"steal_us":-1,"per_cpu"`), "line 5: a time of the host is negative"},
		{"CPU negative", swap(`"busy_us":240000`, `"busy_us":-2`), "line 5: a time of CPU 0 is negative"},
		{"monotonic clock backwards", swap(`"mono":5300000000`, `"mono":5200000000`), "line 4: time went backwards (mono"},
		{"lines swapped", line(0) + line(2) + line(1), "line 3: time went backwards"},
		{"container missing", swap(`,"db":{"usage_us":30,"memory":5}`, ``), "line 4 has containers app where the line before has app, db"},
		{"other container", swap(`"db":{"usage_us":30`, `"web":{"usage_us":30`), "line 4 has containers app, web where"},
		{"no containers", `{"t":1,"mono":1,"host":{},"containers":{}}` + "\n", "line 1 is not a sample"},
		{"long line", five + `{"t":"` + strings.Repeat("x", maxLine) + `"}` + "\n", "line 6 is longer than"},
	} {
		_, err := ReadSeries(strings.NewReader(c.text), "x.cg.jsonl")
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		msg := said.Err(err)
		if !fail.IsInput(err) || !strings.HasPrefix(msg, "x.cg.jsonl ") || !strings.Contains(msg, c.want) || strings.Contains(msg, "\n") || !strings.Contains(msg, "measure the window again") {
			t.Errorf("%s: %v (input: %v)", c.name, err, fail.IsInput(err))
		}
	}
	_, err := ReadSeries(strings.NewReader(five), "x.cg.jsonl", "app", "load")
	if !fail.IsInput(err) || !strings.Contains(said.Err(err), `no container "load", only app, db`) {
		t.Errorf("unknown container: %v", err)
	}
	broken := errors.New("the disk is gone")
	_, err = ReadSeries(iotest.ErrReader(broken), "x.cg.jsonl")
	if !errors.Is(err, broken) || fail.IsInput(err) {
		t.Errorf("failing reader: %v", err)
	}
}

// The files that the sampler itself wrote on a v2, a v1 and a hybrid host.
func TestFilesOfRealHosts(t *testing.T) {
	for _, layout := range []string{"v1", "v2", "hybrid"} {
		b := cgtrees.Samples(t, layout)
		s, err := ReadSeries(bytes.NewReader(b), layout, "app", "db")
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Len() != 7 {
			t.Errorf("%s: %d samples", layout, s.Len())
		}
		if v, ok := s.Grew("app", UsageUS); !ok || v < 0 {
			t.Errorf("%s: usage grew %d, %v", layout, v, ok)
		}
		if v, ok := s.PeakAnon("db"); !ok || v < 32<<20 {
			t.Errorf("%s: peak anon %d, %v", layout, v, ok)
		}
		if d := s.WallVsMonotonic(); d.Abs() > 10*time.Millisecond {
			t.Errorf("%s: clocks %v apart", layout, d)
		}
		if _, hasPressure := s.Grew("app", PressureSomeUS); hasPressure != (layout != "v1") {
			t.Errorf("%s: pressure %v", layout, hasPressure)
		}
	}
}

func FuzzReadSeries(f *testing.F) {
	for _, layout := range []string{"v1", "v2", "hybrid"} {
		b := cgtrees.Samples(f, layout)
		f.Add(b)
		f.Add(b[:len(b)-40])
	}
	f.Add([]byte(lines(3)))
	f.Add([]byte(`{"t":1,"mono":1,"containers":{"a":{}}}` + "\n" + `{"t":1,"mono":2,"containers":{"a":null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSeries(bytes.NewReader(b), "fuzz")
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not blamed on the input: %v", err)
			}
			return
		}
		if s.Len() < 2 || s.Elapsed() <= 0 || s.MaxGap() <= 0 {
			t.Fatalf("%d samples over %v", s.Len(), s.Elapsed())
		}
		for _, c := range s.Containers() {
			for i := range fields {
				if v, ok := s.Grew(c, fields[i].name); ok && fields[i].growing && v < 0 {
					t.Fatalf("%s of %s grew %d", fields[i].name, c, v)
				}
			}
			s.PeakAnon(c)
		}
		s.StealFraction(nil)
		s.BusyFraction([]int{0})
		if s.WallVsMonotonic() < 0 {
			t.Fatalf("clocks %v apart", s.WallVsMonotonic())
		}
		// A part of a sound file is sound, and counts no more than all of it.
		part, err := ReadSeriesUntil(bytes.NewReader(b), "fuzz", time.Unix(0, s.First().T/2+s.Last().T/2))
		if err != nil || part.Len() < 2 || part.Len() > s.Len() {
			t.Fatalf("a part of it: %v", err)
		}
		for _, c := range s.Containers() {
			all, ok1 := s.Grew(c, UsageUS)
			some, ok2 := part.Grew(c, UsageUS)
			if ok1 && ok2 && some > all {
				t.Fatalf("a part of %s grew %d, all of it %d", c, some, all)
			}
		}
	})
}

// The fast decoder must agree with the general one wherever it takes a line.
func FuzzDecode(f *testing.F) {
	for _, layout := range []string{"v1", "v2", "hybrid"} {
		b := cgtrees.Samples(f, layout)
		f.Add(bytes.TrimSuffix(b[bytes.IndexByte(b, '\n')+1:][:bytes.IndexByte(b, '\n')], []byte("\n")))
	}
	f.Add([]byte(strings.TrimSpace(line(3))))
	f.Add([]byte(strings.Replace(strings.TrimSpace(line(3)), `,"host"`, `,"slow_t":1800000000000000000,"host"`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var fast, general Sample
		d := decoder{b: b}
		if !d.sample(&fast) {
			return
		}
		if err := json.Unmarshal(b, &general); err != nil {
			t.Fatalf("the fast decoder took %q: %v", b, err)
		}
		if !reflect.DeepEqual(fast, general) {
			t.Fatalf("%q:\n%+v\n%+v", b, fast, general)
		}
	})
}

func TestFastDecoderTakesWhatTheSamplerWrites(t *testing.T) {
	for _, layout := range []string{"v1", "v2", "hybrid"} {
		b := cgtrees.Samples(t, layout)
		for l := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
			d := decoder{b: l}
			var fast, general Sample
			if !d.sample(&fast) {
				t.Fatalf("%s: left at %q", layout, d.b)
			}
			if err := json.Unmarshal(l, &general); err != nil || !reflect.DeepEqual(fast, general) {
				t.Fatalf("%s: %v\n%+v\n%+v", layout, err, fast, general)
			}
		}
	}
	d := decoder{b: []byte(strings.Replace(strings.TrimSpace(line(1)), `"db":{"usage_us":10,"memory":5}`, `"db":{"gone":true}`, 1))}
	var x Sample
	if !d.sample(&x) || !x.Containers["db"].Gone {
		t.Errorf("gone: left at %q", d.b)
	}
}

// TestFastDecoderTakesWhatTheSamplerWritesNow asks the sampler itself, so that
// the two cannot drift apart.
func TestFastDecoderTakesWhatTheSamplerWritesNow(t *testing.T) {
	for layout, pids := range map[string][2]int{"v1": {90, 95}, "v2": {89, 95}, "hybrid": {8048, 8118}} {
		root, proc := cgtrees.Unpack(t, layout)
		s, err := sample.Open(root, proc, []sample.Target{{Name: "app", PID: pids[0]}, {Name: "db", PID: pids[1]}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, all := range []bool{true, false} {
			text, err := s.Sample(all)
			if err != nil {
				t.Fatal(err)
			}
			line := bytes.TrimSuffix(text, []byte("\n"))
			d := decoder{b: line}
			var fast, general Sample
			if !d.sample(&fast) {
				t.Fatalf("%s: left at %q", layout, d.b)
			}
			if err := json.Unmarshal(line, &general); err != nil || fast.SlowT == 0 || !reflect.DeepEqual(fast, general) {
				t.Fatalf("%s: %v\n%+v\n%+v", layout, err, fast, general)
			}
		}
	}
}

// A window of the study: 60 s at 10 Hz.
func BenchmarkReadSeries(b *testing.B) {
	text := lines(600)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ReadSeries(strings.NewReader(text), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBusyWithinTheWindow: waiting before it and after it does not count.
func TestBusyWithinTheWindow(t *testing.T) {
	file := func(slow bool) string {
		var b strings.Builder
		for i := int64(0); i <= 60; i++ { // busy from 2 s to 4.5 s
			s := Sample{T: 1_800_000_000_000_000_000 + i*1e8, Mono: 1e9 + i*1e8, Containers: map[string]Container{"load": {}}}
			at := i
			if slow { // the host is read once a second
				at = i / 10 * 10
				s.SlowT = 1_800_000_000_000_000_000 + at*1e8
			}
			s.Host.PerCPU = []CPU{{CPU: 0, BusyUS: max(0, min(at, 45)-20) * 100_000}, {CPU: 1}}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", text)
		}
		return b.String()
	}
	start := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		slow     bool
		from, to time.Duration
		want     float64
	}{
		{false, 2 * time.Second, 4500 * time.Millisecond, 1},
		{false, time.Second, 5 * time.Second, 2.5 / 4},
		{true, 1500 * time.Millisecond, 4500 * time.Millisecond, 1},      // read at 2, 3 and 4 s
		{true, 2100 * time.Millisecond, 2900 * time.Millisecond, 1. / 3}, // never read: from 0 to 3 s
	} {
		s, err := ReadWindow(strings.NewReader(file(c.slow)), "x", Window{Start: start.Add(c.from), End: start.Add(c.to), Cut: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.BusyWithin([]int{0}); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: busy for %v of the window, %v", c, got, ok)
		}
		if got, ok := s.BusyWithin(nil); !ok || math.Abs(got-c.want/2) > 1e-9 {
			t.Errorf("%+v: all CPUs were busy for %v of the window, %v", c, got, ok)
		}
		if _, ok := s.BusyWithin([]int{2}); ok {
			t.Error("a CPU that is not there")
		}
	}
}

// TestSamplerThatRanOn: what happened after the window does not count, whatever
// it is.
func TestSamplerThatRanOn(t *testing.T) {
	slow := func(from, to int64) string { // everything but usage_us is read once a second
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString(strings.Replace(line(i), `,"host"`, fmt.Sprintf(`,"slow_t":%d,"host"`, 1_800_000_000_000_000_000+i/10*1_000_000_000), 1))
		}
		return b.String()
	}
	start := time.Unix(1_800_000_000, 0)
	end := start.Add(2250 * time.Millisecond)
	for name, behind := range map[string]string{
		"the sampler runs on":      slow(31, 700),
		"nothing":                  "",
		"a container ends":         strings.Replace(slow(31, 32), `"db":{"usage_us":310,"memory":5}`, `"db":{"gone":true}`, 1),
		"the clock is set back":    line(3),
		"a line that is no sample": "no sample\n" + slow(32, 40),
		"a line that is cut off":   `{"t":18000`,
	} {
		s, err := ReadSeriesUntil(strings.NewReader(slow(0, 31)+behind), "x.cg.jsonl", end, "app", "db")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cpu, _ := s.Grew("app", UsageUS)
		throttled, _ := s.ThrottledGrew("app")
		if cpu != 23*40_000 || throttled != 30*7 || s.Len() != 24 || s.Gone("db") || s.MaxGap() != 100*time.Millisecond || s.WallVsMonotonic() != 0 {
			t.Errorf("%s: CPU grew %d, throttled %d, %d samples, gone %v", name, cpu, throttled, s.Len(), s.Gone("db"))
		}
		if busy, ok := s.BusyFraction([]int{0}); !ok || math.Abs(busy-0.6) > 1e-9 {
			t.Errorf("%s: busy %v, %v", name, busy, ok)
		}
		if !s.Encloses(start, end) || s.Encloses(start, end.Add(time.Second)) {
			t.Errorf("%s: encloses", name)
		}
		if peak, ok := s.PeakMemory("app"); !ok || peak != 1030 {
			t.Errorf("%s: peak %d, %v", name, peak, ok)
		}
	}
	// A series that ends before the window does counts as a whole, and does not
	// enclose it.
	s, err := ReadSeriesUntil(strings.NewReader(slow(0, 20)), "x.cg.jsonl", end)
	if err != nil || s.Len() != 20 || s.Encloses(start, end) {
		t.Errorf("%d samples, %v", s.Len(), err)
	}
	// Two samples are taken even where the clock says that both are too late.
	s, err = ReadSeriesUntil(strings.NewReader(slow(0, 20)), "x.cg.jsonl", start.Add(-time.Hour))
	if err != nil || s.Len() != 2 || s.Encloses(start.Add(-time.Hour), start.Add(-time.Hour)) {
		t.Errorf("%v", err)
	}
}
