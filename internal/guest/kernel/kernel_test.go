package kernel

import (
	"bytes"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/cgtrees"
	"github.com/percore/percore/internal/testkit/said"
)

// captured returns every file of the test data with one of the names.
func captured(tb testing.TB, names ...string) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	trees := cgtrees.FS(tb)
	err := fs.WalkDir(trees, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, n := range names {
			if !d.IsDir() && strings.HasSuffix(path, "/"+n) {
				b, err := fs.ReadFile(trees, path)
				if err != nil {
					return err
				}
				out[path] = b
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(out) == 0 {
		tb.Fatalf("no file %v in the test data", names)
	}
	return out
}

// parsers are those of the files of numbers: they return what they found.
var parsers = []struct {
	name  string
	files []string // in the test data
	parse func([]byte) ([]Value, error)
	bad   []string
}{
	{"cpu.stat", []string{"cpu.stat"}, func(b []byte) ([]Value, error) {
		s, err := ParseCPUStat(b)
		return []Value{s.Usage, s.User, s.System, s.Periods, s.Throttled, s.ThrottledTime}, err
	}, []string{"", "usage_usec", "usage_usec x\n", "usage_usec -1\n", "usage_usec 9223372036854775808\n", "usage_usec 1\nusage_usec 2\n", "\n", "other 1\n", "throttled_time 1.5\n", "usage_usec 99999999999999999999999\n"}},
	{"cpuacct.usage", []string{"cpuacct.usage"}, one(ParseCPUAcctUsage), []string{"", "\n", "x\n", "1 2\n", "1\n2\n", "-5\n", "18446744073709551615\n"}},
	{"cpuacct.stat", []string{"cpuacct.stat"}, func(b []byte) ([]Value, error) {
		u, s, err := ParseCPUAcctStat(b)
		return []Value{known(u), known(s)}, err
	}, []string{"", "user 1\n", "user 1\nsystem\n", "user 1\nuser 2\nsystem 1\n", "user 1\nsystem 1\nidle 3\n", "user 9223372036854775807\nsystem 1\n"}},
	{"cgroup.events", []string{"cgroup.events"}, func(b []byte) ([]Value, error) {
		v, err := ParseCgroupEvents(b)
		return []Value{v}, err
	}, []string{"", "frozen\n", "frozen 2\n", "frozen x\n", "populated 1\nfrozen 0\nfrozen 0\n", "\n"}},
	{"freezer.state", []string{"freezer.state"}, func(b []byte) ([]Value, error) {
		is, err := ParseFreezerState(b)
		if is {
			return []Value{known(1)}, err
		}
		return []Value{known(0)}, err
	}, []string{"", "\n", "THAWED\nFROZEN\n", "frozen\n"}},
	{"memory.stat", []string{"memory.stat"}, one(ParseMemoryStat), []string{"", "file 1\n", "anon\n", "anon 1\nanon 1\n", "rss -1\n", "anon 1\n\n"}},
	{"memory.current", []string{"memory.current"}, one(ParseMemoryCurrent), []string{"", "max\n"}},
	{"memory.peak", []string{"memory.peak"}, one(ParseMemoryPeak), []string{"", "0x10\n"}},
	{"memory.usage_in_bytes", []string{"memory.usage_in_bytes"}, one(ParseMemoryUsage), []string{""}},
	{"memory.max_usage_in_bytes", []string{"memory.max_usage_in_bytes"}, one(ParseMemoryMaxUsage), []string{"", " 1\n"}},
	{"io.stat", []string{"io.stat"}, func(b []byte) ([]Value, error) {
		r, w, err := ParseIOStat(b)
		return []Value{known(r), known(w)}, err
	}, []string{"\n", "rbytes=1\n", "8:0 rbytes=x\n", "8:0 rbytes=\n", "sda rbytes=1\n", "8:0 rbytes=9223372036854775807\n8:16 rbytes=1\n"}},
	{"blkio.throttle.io_service_bytes", []string{"blkio.throttle.io_service_bytes", "blkio.throttle.io_service_bytes_recursive"}, func(b []byte) ([]Value, error) {
		r, w, err := ParseBlkioThrottle(b)
		return []Value{r, w}, err
	}, []string{"\n", "Total\n", "Total x\n", "8:0 Read\n", "8:0 Fetch 1\n", "sda Read 1\n", "8:0 Read 9223372036854775807\n8:16 Read 1\n"}},
	{"cpu.pressure", []string{"cpu.pressure"}, func(b []byte) ([]Value, error) {
		p, err := ParseCPUPressure(b)
		return []Value{p.Some, p.Full}, err
	}, []string{"", "some avg10=0.00\n", "some total=-1\n", "full total=1\n", "most total=1\n", "some total=1\nsome total=2\n", "some total=1 total=1\n"}},
	{"/proc/stat", []string{"proc/stat"}, func(b []byte) ([]Value, error) {
		var s ProcStat
		err := ParseProcStat(b, &s)
		if err != nil {
			return nil, err
		}
		out := []Value{known(s.All.Busy), known(s.All.Idle), known(s.All.Steal), known(s.All.Total())}
		for _, c := range s.CPU {
			out = append(out, known(int64(c.CPU)), known(c.Busy), known(c.Idle), known(c.Steal), known(c.Total()))
		}
		return out, nil
	}, []string{"", "intr 1\n", "cpu 1 2 3\ncpu0 1 2 3 4\n", "cpu 1 2 3 4\n", "cpu 1 2 3 4\ncpu1 1 2 3 4\ncpu0 1 2 3 4\n", "cpu 1 2 3 x\ncpu0 1 2 3 4\n", "cpu 1 2 3 4\ncpux 1 2 3 4\n", "cpu 1 2 3 4\ncpu99999999 1 2 3 4\n", "cpu 1 2 3 9223372036854775807\ncpu0 1 2 3 4\n"}},
	{"/proc/loadavg", []string{"proc/loadavg"}, one(ParseLoadavg), []string{"", "1 1 1\n", "-1.00 0.00 0.00 1/2 3\n", "x.00\n", "1.0\n", "99999999999.00 1\n"}},
}

func one(parse func([]byte) (int64, error)) func([]byte) ([]Value, error) {
	return func(b []byte) ([]Value, error) {
		n, err := parse(b)
		return []Value{known(n)}, err
	}
}

func TestRealFilesParse(t *testing.T) {
	for _, p := range parsers {
		for path, b := range captured(t, p.files...) {
			if _, err := p.parse(b); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestAbsurdInputIsAnError(t *testing.T) {
	for _, p := range parsers {
		for _, in := range p.bad {
			if got, err := p.parse([]byte(in)); err == nil {
				t.Errorf("%s: no error for %q, but %v", p.name, in, got)
			}
		}
	}
}

func TestErrorNamesTheFileAndIsShort(t *testing.T) {
	for _, p := range parsers {
		_, err := p.parse([]byte("\x00" + strings.Repeat("9", 4096) + "\n"))
		if err == nil {
			t.Errorf("%s: no error", p.name)
			continue
		}
		if !strings.HasPrefix(said.Err(err), p.name+": ") || len(said.Err(err)) > 400 || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: error %q", p.name, err)
		}
	}
}

// The parsers that run at every sample must not allocate.
func TestParsersDoNotAllocate(t *testing.T) {
	for path, b := range captured(t, "proc/stat") {
		var s ProcStat
		if n := testing.AllocsPerRun(100, func() {
			if err := ParseProcStat(b, &s); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
	direct := map[string]func([]byte) error{
		"cpu.stat":              func(b []byte) error { _, err := ParseCPUStat(b); return err },
		"cpuacct.usage":         func(b []byte) error { _, err := ParseCPUAcctUsage(b); return err },
		"cpuacct.stat":          func(b []byte) error { _, _, err := ParseCPUAcctStat(b); return err },
		"memory.stat":           func(b []byte) error { _, err := ParseMemoryStat(b); return err },
		"memory.current":        func(b []byte) error { _, err := ParseMemoryCurrent(b); return err },
		"io.stat":               func(b []byte) error { _, _, err := ParseIOStat(b); return err },
		"cpu.pressure":          func(b []byte) error { _, err := ParseCPUPressure(b); return err },
		"proc/loadavg":          func(b []byte) error { _, err := ParseLoadavg(b); return err },
		"io_service_bytes":      func(b []byte) error { _, _, err := ParseBlkioThrottle(b); return err },
		"memory.peak":           func(b []byte) error { _, err := ParseMemoryPeak(b); return err },
		"memory.usage_in_bytes": func(b []byte) error { _, err := ParseMemoryUsage(b); return err },
	}
	for name, parse := range direct {
		file := name
		if name == "io_service_bytes" {
			file = "blkio.throttle.io_service_bytes"
		}
		for path, b := range captured(t, file) {
			if n := testing.AllocsPerRun(100, func() {
				if err := parse(b); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations", path, n)
			}
		}
	}
}

func TestCPUStatUnits(t *testing.T) {
	v2, err := ParseCPUStat([]byte("usage_usec 778533\nuser_usec 137699\nsystem_usec 640834\nnr_periods 18\nnr_throttled 11\nthrottled_usec 319531\nnr_bursts 0\nburst_usec 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (CPUStat{known(778533), known(137699), known(640834), known(18), known(11), known(319531)}); v2 != want {
		t.Errorf("v2: %+v, want %+v", v2, want)
	}
	v1, err := ParseCPUStat([]byte("nr_periods 20\nnr_throttled 12\nthrottled_time 266870018\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (CPUStat{Periods: known(20), Throttled: known(12), ThrottledTime: known(266870)}); v1 != want {
		t.Errorf("v1: %+v, want %+v", v1, want)
	}
	bare, err := ParseCPUStat([]byte("usage_usec 5\nuser_usec 2\nsystem_usec 3\n"))
	if err != nil || bare.Periods.Known || bare.Throttled.Known || bare.ThrottledTime.Known {
		t.Errorf("without the cpu controller: %+v, %v", bare, err)
	}
}

func TestV1Units(t *testing.T) {
	if n, err := ParseCPUAcctUsage([]byte("861164218\n")); n != 861164 || err != nil {
		t.Errorf("cpuacct.usage: %d, %v", n, err)
	}
	if u, s, err := ParseCPUAcctStat([]byte("user 15\nsystem 70\n")); u != 150_000 || s != 700_000 || err != nil {
		t.Errorf("cpuacct.stat: %d, %d, %v", u, s, err)
	}
}

func TestMemoryStatPrefersTheHierarchy(t *testing.T) {
	for in, want := range map[string]int64{
		"anon 7\nfile 1\n":                7,
		"cache 1\nrss 3\ntotal_rss 9\n":   9,
		"cache 1\nrss 3\n":                3,
		"rss 3\ntotal_rss 9\nanon 4096\n": 4096,
	} {
		if n, err := ParseMemoryStat([]byte(in)); n != want || err != nil {
			t.Errorf("%q: %d, %v", in, n, err)
		}
	}
}

func TestIOStat(t *testing.T) {
	for in, want := range map[string][2]int64{
		"": {0, 0},
		"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n": {1459200 + 90430464, 314773504 + 299008000},
		"8:0 8:16 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n": {1, 2}, // a device without counters, as some kernels print it
		"8:0 \n": {0, 0},
		"259:0 rbytes=5 wbytes=6 cost.vrate=100.00 cost.usage=3\n": {5, 6},
	} {
		r, w, err := ParseIOStat([]byte(in))
		if r != want[0] || w != want[1] || err != nil {
			t.Errorf("%q: %d, %d, %v", in, r, w, err)
		}
	}
}

func TestBlkioThrottle(t *testing.T) {
	r, w, err := ParseBlkioThrottle([]byte("8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 12288\n8:0 Async 0\n8:0 Discard 0\n8:0 Total 12288\n253:1 Read 1\n253:1 Write 2\n253:1 Total 3\nTotal 12291\n"))
	if r != known(4097) || w != known(8194) || err != nil {
		t.Errorf("%v, %v, %v", r, w, err)
	}
	for _, in := range []string{"", "Total 0\n", "254:16 Read 0\n254:16 Write 0\n254:16 Total 0\nTotal 0\n"} {
		if r, w, err := ParseBlkioThrottle([]byte(in)); r.Known || w.Known || err != nil {
			t.Errorf("%q: zeros alone are not a count: %v, %v, %v", in, r, w, err)
		}
	}
}

func TestCPUPressureBefore513(t *testing.T) {
	p, err := ParseCPUPressure([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=42\n"))
	if err != nil || p.Some != known(42) || p.Full.Known {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestProcStat(t *testing.T) {
	s := ProcStat{CPU: make([]CPUTime, 7)}
	// CPU 1 is offline; guest time is part of user and is not added again.
	err := ParseProcStat([]byte("cpu  30 2 13 160 5 1 3 7 9 0\ncpu0 10 1 6 80 2 0 1 3 9 0\ncpu2 20 1 7 80 3 1 2 4 0 0\nintr 5 0\n"), &s)
	if err != nil {
		t.Fatal(err)
	}
	want := ProcStat{
		All: CPUTime{CPU: -1, Busy: 490_000, IRQ: 40_000, Idle: 1_650_000, Steal: 70_000},
		CPU: []CPUTime{{0, 180_000, 10_000, 820_000, 30_000}, {2, 310_000, 30_000, 830_000, 40_000}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	if got := s.All.Total(); got != 2_210_000 {
		t.Errorf("total %d", got)
	}
}

func TestLoadavg(t *testing.T) {
	if n, err := ParseLoadavg([]byte("7.70 6.47 4.14 7/217 8335\n")); n != 770 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestProcCgroup(t *testing.T) {
	got, err := ParseProcCgroup([]byte("4:memory:/docker/a:b\n2:cpu,cpuacct:/../../x\n1:name=systemd:/\n0::/system.slice/docker-1.scope (deleted)\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Membership{
		{Controllers: []string{"memory"}, Path: "/docker/a:b"},
		{Controllers: []string{"cpu", "cpuacct"}, Path: "/../../x"},
		{Controllers: []string{"name=systemd"}, Path: "/"},
		{Unified: true, Path: "/system.slice/docker-1.scope", Deleted: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, in := range []string{"", "\n", "x:cpu:/\n", "1:cpu\n", "1:cpu:rel\n", "1:cpu:\n", "1::/\n", "0::/a\n\n"} {
		if _, err := ParseProcCgroup([]byte(in)); err == nil {
			t.Errorf("no error for %q", in)
		}
	}
	for path, b := range captured(t, "cgroup") {
		if strings.Contains(path, "/proc/") {
			if _, err := ParseProcCgroup(b); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestMountinfo(t *testing.T) {
	got, err := ParseMountinfo([]byte(`22 1 0:20 / /proc rw,relatime - proc proc rw
31 23 0:28 /docker/1 /host/my\040cgroup/cpu,cpuacct ro,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct
32 23 0:29 /../.. /sys/fs/cgroup rw - cgroup2 none rw,nsdelegate
33 23 0:30 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,name=systemd
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []CgroupMount{
		{Root: "/docker/1", Point: "/host/my cgroup/cpu,cpuacct", Controllers: []string{"cpu", "cpuacct"}},
		{Root: "/../..", Point: "/sys/fs/cgroup", Unified: true},
		{Root: "/", Point: "/sys/fs/cgroup/systemd", Controllers: []string{"xattr", "name=systemd"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, in := range []string{"\n", "1 2 3\n", "1 2 0:1 / /x rw cgroup cgroup rw\n", "1 2 0:1 x /x rw - cgroup cgroup rw,cpu\n", "1 2 0:1 / /x rw - cgroup\n"} {
		if _, err := ParseMountinfo([]byte(in)); err == nil {
			t.Errorf("no error for %q", in)
		}
	}
	for path, b := range captured(t, "mountinfo") {
		if m, err := ParseMountinfo(b); err != nil || len(m) == 0 {
			t.Errorf("%s: %v, %v", path, m, err)
		}
	}
}

// fuzz checks that a parser neither panics nor returns a number below zero, nor
// a number beside an error that says that the file cannot be believed.
func fuzz(f *testing.F, name string) {
	for _, p := range parsers {
		if p.name != name {
			continue
		}
		for _, b := range captured(f, p.files...) {
			f.Add(b)
		}
		for _, in := range p.bad {
			f.Add([]byte(in))
		}
		f.Fuzz(func(t *testing.T, b []byte) {
			before := bytes.Clone(b)
			values, err := p.parse(b)
			if !bytes.Equal(before, b) {
				t.Fatal("the parser changed its input")
			}
			if err != nil {
				return
			}
			for _, v := range values {
				if v.N < 0 || (!v.Known && v.N != 0) {
					t.Fatalf("value %+v", v)
				}
			}
		})
		return
	}
	f.Fatalf("no parser %s", name)
}

func FuzzCPUStat(f *testing.F)        { fuzz(f, "cpu.stat") }
func FuzzCPUAcctUsage(f *testing.F)   { fuzz(f, "cpuacct.usage") }
func FuzzCPUAcctStat(f *testing.F)    { fuzz(f, "cpuacct.stat") }
func FuzzMemoryStat(f *testing.F)     { fuzz(f, "memory.stat") }
func FuzzMemoryCurrent(f *testing.F)  { fuzz(f, "memory.current") }
func FuzzMemoryPeak(f *testing.F)     { fuzz(f, "memory.peak") }
func FuzzMemoryUsage(f *testing.F)    { fuzz(f, "memory.usage_in_bytes") }
func FuzzMemoryMaxUsage(f *testing.F) { fuzz(f, "memory.max_usage_in_bytes") }
func FuzzIOStat(f *testing.F)         { fuzz(f, "io.stat") }
func FuzzBlkioThrottle(f *testing.F)  { fuzz(f, "blkio.throttle.io_service_bytes") }
func FuzzCPUPressure(f *testing.F)    { fuzz(f, "cpu.pressure") }
func FuzzProcStat(f *testing.F)       { fuzz(f, "/proc/stat") }
func FuzzLoadavg(f *testing.F)        { fuzz(f, "/proc/loadavg") }

func FuzzProcCgroup(f *testing.F) {
	for path, b := range captured(f, "cgroup") {
		if strings.Contains(path, "/proc/") {
			f.Add(b)
		}
	}
	f.Add([]byte("0::/../..\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ms, err := ParseProcCgroup(b)
		if err != nil {
			return
		}
		for _, m := range ms {
			if !strings.HasPrefix(m.Path, "/") || m.Unified != (len(m.Controllers) == 0) {
				t.Fatalf("%+v", m)
			}
		}
	})
}

func FuzzMountinfo(f *testing.F) {
	for _, b := range captured(f, "mountinfo") {
		f.Add(b)
	}
	f.Add([]byte(`31 23 0:28 /a\134b /c\040d rw - cgroup cgroup rw,cpu`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ms, err := ParseMountinfo(b)
		if err != nil {
			return
		}
		for _, m := range ms {
			if !strings.HasPrefix(m.Root, "/") || !strings.HasPrefix(m.Point, "/") {
				t.Fatalf("%+v", m)
			}
		}
	})
}

func TestFrozen(t *testing.T) {
	for text, want := range map[string]bool{"THAWED\n": false, "FREEZING\n": true, "FROZEN\n": true} {
		if got, err := ParseFreezerState([]byte(text)); got != want || err != nil {
			t.Errorf("freezer.state %q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]Value{
		"populated 1\nfrozen 1\n": known(1),
		"populated 1\nfrozen 0\n": known(0),
		"populated 1\n":           {}, // before Linux 5.2
	} {
		if got, err := ParseCgroupEvents([]byte(text)); got != want || err != nil {
			t.Errorf("cgroup.events %q: %v, %v", text, got, err)
		}
	}
}
