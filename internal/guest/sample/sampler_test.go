package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/testkit/cgtrees"
	"github.com/percore/percore/internal/testkit/said"
)

// Processes of the test data, see its README.
const (
	appID  = "4f1c8d2e9ab07356c1de48f0937b52a6e8d3c40b7f916a25de80b3c7491f6d52"
	v2App  = 89
	v2DB   = 95
	v2User = 97
	v1App  = 90
	v1DB   = 95
	v1User = 97
	hyApp  = 8048
	hyDB   = 8118
)

func edit(tb testing.TB, file string, change func(string) string) {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	after := change(string(b))
	if after == string(b) {
		tb.Fatalf("nothing to change in %s", file)
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// remove deletes every file of that name below root.
func remove(tb testing.TB, root, name string) {
	tb.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == name {
			n++
			return os.Remove(path)
		}
		return err
	})
	if err != nil || n == 0 {
		tb.Fatalf("removed %d files %s: %v", n, name, err)
	}
}

func sample(tb testing.TB, root, proc string, targets ...Target) cgroup.Sample {
	tb.Helper()
	s, err := Open(root, proc, targets)
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	line, err := s.Sample(true)
	if err != nil {
		tb.Fatal(err)
	}
	return decode(tb, line)
}

func decode(tb testing.TB, line []byte) cgroup.Sample {
	tb.Helper()
	if bytes.Count(line, []byte{'\n'}) != 1 || line[len(line)-1] != '\n' {
		tb.Fatalf("not one line: %q", line)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var x cgroup.Sample
	if err := d.Decode(&x); err != nil {
		tb.Fatalf("%v in %s", err, line)
	}
	return x
}

// check compares all counters of a container: what is not in want must be absent.
func check(tb testing.TB, what string, c cgroup.Container, want map[string]int64) {
	tb.Helper()
	for _, name := range names {
		got, ok := c.Counter(name)
		w, wanted := want[name]
		switch {
		case ok && !wanted:
			tb.Errorf("%s: %s is %d, want it absent", what, name, got)
		case !ok && wanted:
			tb.Errorf("%s: %s is absent, want %d", what, name, w)
		case got != w:
			tb.Errorf("%s: %s is %d, want %d", what, name, got, w)
		}
	}
}

func TestV2(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	x := sample(t, root, proc, Target{"app", v2App}, Target{"db", v2DB}, Target{"user", v2User})
	check(t, "cgroupfs driver", x.Containers["app"], map[string]int64{
		"usage_us": 778533, "user_us": 137699, "system_us": 640834, "nr_periods": 18, "nr_throttled": 11, "throttled_us": 319531,
		"memory": 20480, "anon": 16384, "peak": 278528, "read_bytes": 0, "write_bytes": 0, "pressure_some_us": 889647, "pressure_full_us": 590084, "frozen": 0,
	})
	check(t, "systemd driver", x.Containers["db"], map[string]int64{
		"usage_us": 1205424, "user_us": 116030, "system_us": 1089394, "nr_periods": 0, "nr_throttled": 0, "throttled_us": 0,
		"memory": 42356736, "anon": 36974592, "peak": 42541056, "read_bytes": 3932160, "write_bytes": 1048576, "pressure_some_us": 1012132, "pressure_full_us": 543038, "frozen": 0,
	})
	// A rootless engine has no cpu and no io controller: no throttling, no I/O.
	user := x.Containers["user"]
	for _, absent := range []string{"nr_periods", "nr_throttled", "throttled_us", "read_bytes", "write_bytes"} {
		if v, ok := user.Counter(absent); ok {
			t.Errorf("rootless engine: %s is %d, want it absent", absent, v)
		}
	}
	for _, there := range []string{"usage_us", "user_us", "system_us", "memory", "anon", "peak", "pressure_some_us"} {
		if v, ok := user.Counter(there); !ok || v <= 0 {
			t.Errorf("rootless engine: %s is %d, %v", there, v, ok)
		}
	}
	if h := x.Host; h.CPUs != 2 || len(h.PerCPU) != 2 || h.TotalUS != 12_520_000 || h.IdleUS != 6_610_000 || h.Load1 != 0.48 ||
		h.PerCPU[1] != (cgroup.CPU{CPU: 1, BusyUS: 3_070_000, IRQUS: 80_000}) {
		t.Errorf("host: %+v", h)
	}
}

func TestV1(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v1") // cpu and cpuacct are mounted together
	x := sample(t, root, proc, Target{"app", v1App}, Target{"db", v1DB}, Target{"user", v1User})
	check(t, "cgroupfs driver", x.Containers["app"], map[string]int64{
		"usage_us": 861164, "user_us": 150000, "system_us": 700000, "nr_periods": 20, "nr_throttled": 12, "throttled_us": 266870,
		"memory": 16384, "anon": 12288, "peak": 524288,
	})
	if v := x.Containers["db"].Anon; v == nil || *v != 36777984 {
		t.Errorf("systemd driver: anon %v", v)
	}
	if v := x.Containers["user"].UsageUS; v == nil || *v <= 0 {
		t.Errorf("user slice: usage %v", v)
	}
}

func TestHybrid(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "hybrid")
	x := sample(t, root, proc, Target{"app", hyApp}, Target{"db", hyDB})
	app := map[string]int64{
		"usage_us": 880385, "user_us": 835429, "system_us": 44956, "nr_periods": 34, "nr_throttled": 3, "throttled_us": 15928,
		"memory": *x.Containers["app"].Memory, "anon": *x.Containers["app"].Anon, "peak": *x.Containers["app"].Peak,
		"pressure_some_us": 1611907, "pressure_full_us": 1443701, "frozen": 0,
	}
	check(t, "app", x.Containers["app"], app)
	if v := x.Containers["db"].Anon; v == nil || *v < 32<<20 || *v > 40<<20 {
		t.Errorf("db: anon %v", v)
	}
	if x.Host.StealUS != 2_720_000 {
		t.Errorf("steal %d", x.Host.StealUS)
	}
}

// An engine that makes no cgroup in the v2 hierarchy leaves its containers in
// that of the service it runs in: not theirs, so CPU time comes from v1.
func TestHybridWithForeignV2Group(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "hybrid")
	file := filepath.Join(proc, strconv.Itoa(hyApp), "cgroup")
	edit(t, file, func(s string) string {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "0::") {
				lines[i] = "0::/system.slice/docker.service"
			}
		}
		return strings.Join(lines, "\n")
	})
	c := sample(t, root, proc, Target{"app", hyApp}).Containers["app"]
	if c.UsageUS == nil || *c.UserUS != 830_000 || *c.SystemUS%10_000 != 0 {
		t.Errorf("CPU time is not that of cpuacct: %+v", c)
	}
	if c.PressureSomeUS != nil || c.PressureFullUS != nil {
		t.Error("pressure of the service around it")
	}
	if c.ThrottledUS == nil || *c.ThrottledUS != 15928 {
		t.Errorf("throttling: %v", c.ThrottledUS)
	}
}

func TestCounterWithoutFileIsAbsent(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	remove(t, root, "memory.peak") // before Linux 5.19
	remove(t, root, "cpu.pressure")
	remove(t, root, "io.stat")
	c := sample(t, root, proc, Target{"db", v2DB}).Containers["db"]
	check(t, "db", c, map[string]int64{
		"usage_us": 1205424, "user_us": 116030, "system_us": 1089394, "nr_periods": 0, "nr_throttled": 0, "throttled_us": 0,
		"memory": 42356736, "anon": 36974592, "frozen": 0,
	})

	root, proc = cgtrees.Unpack(t, "v1")
	remove(t, root, "blkio.throttle.io_service_bytes_recursive") // older kernels
	file := filepath.Join(root, "blkio/docker", appID, "blkio.throttle.io_service_bytes")
	if err := os.WriteFile(file, []byte("8:0 Read 4096\n8:0 Write 8192\n8:0 Total 12288\nTotal 12288\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c = sample(t, root, proc, Target{"app", v1App}).Containers["app"]
	if c.ReadBytes == nil || *c.ReadBytes != 4096 || c.WriteBytes == nil || *c.WriteBytes != 8192 {
		t.Errorf("I/O %v, %v", c.ReadBytes, c.WriteBytes)
	}
}

// TestOddLines: what nobody understands in a file that no gate needs leaves its
// counters unknown and is kept, and CPU time is counted.
func TestOddLines(t *testing.T) {
	for file, odd := range map[string]struct {
		text    string
		unknown []string
	}{
		"io.stat":        {"(unknown) rbytes=10 wbytes=20 rios=1\n259:0 rbytes=10 wbytes=20\n", []string{"read_bytes", "write_bytes"}},
		"memory.stat":    {"anon lots\nfile 0\n", []string{"anon"}},
		"memory.current": {"max\n", []string{"memory"}},
		"memory.peak":    {"\n", []string{"peak"}},
		"cpu.pressure":   {"some avg10=0.00 total=-\n", []string{"pressure_some_us", "pressure_full_us"}},
	} {
		root, proc := cgtrees.Unpack(t, "v2")
		whole := sample(t, root, proc, Target{"app", v2App}).Containers["app"]
		if err := os.WriteFile(filepath.Join(root, "docker", appID, file), []byte(odd.text), 0o644); err != nil {
			t.Fatal(err)
		}
		c := sample(t, root, proc, Target{"app", v2App}).Containers["app"]
		first, _, _ := strings.Cut(odd.text, "\n")
		if len(c.Odd) != 1 || !strings.HasPrefix(c.Odd[0], file+": ") || !strings.Contains(c.Odd[0], first) {
			t.Errorf("%s: kept %q", file, c.Odd)
		}
		for _, name := range names {
			_, had := whole.Counter(name)
			_, has := c.Counter(name)
			if want := had && !slices.Contains(odd.unknown, name); has != want {
				t.Errorf("%s: %s is known: %t, want %t", file, name, has, want)
			}
		}
	}
	// What the figures rest on is not guessed.
	root, proc := cgtrees.Unpack(t, "v2")
	if err := os.WriteFile(filepath.Join(root, "docker", appID, "cpu.stat"), []byte("usage_usec many\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root, proc, []Target{{"app", v2App}}); err == nil {
		t.Error("CPU time that cannot be read is taken")
	}
}

func TestLongFilesAreReadWhole(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	edit(t, filepath.Join(proc, "stat"), func(s string) string {
		var b strings.Builder
		b.WriteString("cpu  1 2 3 4 5 6 7 8 0 0\n")
		for i := range 2000 {
			b.WriteString("cpu" + strconv.Itoa(i) + " 1 2 3 4 5 6 7 8 0 0\n")
		}
		return b.String() + "intr 1\n"
	})
	x := sample(t, root, proc, Target{"app", v2App})
	if x.Host.CPUs != 2000 || x.Host.PerCPU[1999].CPU != 1999 {
		t.Errorf("%d CPUs", x.Host.CPUs)
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	for layout, pids := range map[string][2]int{"v2": {v2App, v2DB}, "v1": {v1App, v1DB}, "hybrid": {hyApp, hyDB}} {
		root, proc := cgtrees.Unpack(t, layout)
		s, err := Open(root, proc, []Target{{"app", pids[0]}, {"db", pids[1]}})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := s.Sample(true); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a sample", layout, n)
		}
		s.Close()
	}
}

// TestSlowCounters: CPU time is read for every sample, memory once a second and
// whenever all is asked for, and the line says when.
func TestSlowCounters(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(all bool) cgroup.Sample {
		t.Helper()
		line, err := s.Sample(all)
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, line)
	}
	first := read(false)
	if first.SlowT != first.T {
		t.Errorf("the first sample was not whole: read at %d, says %d", first.T, first.SlowT)
	}
	dir := filepath.Join(root, "docker", appID)
	overwrite := func(file, text string) {
		t.Helper()
		// In place: the sampler keeps the file open.
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	overwrite("cpu.stat", "usage_usec 999999\nuser_usec 1\nsystem_usec 2\n")
	overwrite("memory.current", "12345\n")

	second := read(false)
	app := second.Containers["app"]
	if *app.UsageUS != 999999 || *app.Memory != *first.Containers["app"].Memory || second.SlowT != first.T {
		t.Errorf("usage %d, memory %d, read at %d", *app.UsageUS, *app.Memory, second.SlowT)
	}
	if third := read(true); *third.Containers["app"].Memory != 12345 || third.SlowT != third.T {
		t.Errorf("memory %d, read at %d of %d", *third.Containers["app"].Memory, third.SlowT, third.T)
	}
	overwrite("memory.current", "54321\n")
	s.slowMono -= int64(All)
	if fourth := read(false); *fourth.Containers["app"].Memory != 54321 {
		t.Errorf("memory was not read after a second: %d", *fourth.Containers["app"].Memory)
	}
}

// TestWhatLiesAbove: the CPU quota of a cgroup above the container's holds it back
// and is counted there alone.
func TestWhatLiesAbove(t *testing.T) {
	for _, c := range []struct {
		layout      string
		pid         int
		file, words string
	}{
		{"v2", v2App, "docker/cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 40\nnr_throttled 12\nthrottled_usec 4600000\n"},
		{"v1", v1App, "cpu,cpuacct/docker/cpu.stat", "nr_periods 40\nnr_throttled 12\nthrottled_time 4600000000\n"},
		{"hybrid", hyApp, "cpu/docker/cpu.stat", "nr_periods 40\nnr_throttled 12\nthrottled_time 4600000000\n"},
	} {
		root, proc := cgtrees.Unpack(t, c.layout)
		before := sample(t, root, proc, Target{"app", c.pid}).Containers["app"]
		if before.AboveThrottledUS != nil {
			t.Errorf("%s: %d µs above where nothing counts", c.layout, *before.AboveThrottledUS)
		}
		if err := os.WriteFile(filepath.Join(root, c.file), []byte(c.words), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(root, proc, []Target{{"app", c.pid}})
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range []bool{true, false, true} { // the same each time: nothing adds up
			line, err := s.Sample(all)
			if err != nil {
				t.Fatal(err)
			}
			after := decode(t, line).Containers["app"]
			if after.AboveThrottledUS == nil || *after.AboveThrottledUS != 4_600_000 || *after.ThrottledUS != *before.ThrottledUS {
				t.Errorf("%s: %v above, %d in the container, which was %d", c.layout, after.AboveThrottledUS, *after.ThrottledUS, *before.ThrottledUS)
			}
		}
		s.Close()
	}
}

// TestFrozenIsReadForEachSample: a pause of a tenth of a second is not missed.
func TestFrozenIsReadForEachSample(t *testing.T) {
	for layout, c := range map[string]struct {
		pid            int
		file, is, isnt string
	}{
		"v2":     {v2App, "docker/" + appID + "/cgroup.events", "populated 1\nfrozen 1\n", "populated 1\nfrozen 0\n"},
		"hybrid": {hyApp, "freezer/docker/a4b9f676bba03309734f6f229433e8467dafb94b063cc7ba74110efb9aab50e8/freezer.state", "FROZEN\n", "THAWED\n"},
	} {
		root, proc := cgtrees.Unpack(t, layout)
		s, err := Open(root, proc, []Target{{"app", c.pid}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{0, 1, 0} {
			text := c.isnt
			if want == 1 {
				text = c.is
			}
			if err := os.WriteFile(filepath.Join(root, c.file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			line, err := s.Sample(i == 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := decode(t, line).Containers["app"].Frozen; got == nil || *got != want {
				t.Errorf("%s, sample %d: frozen is %v, want %d", layout, i, got, want)
			}
		}
		s.Close()
	}
}

func TestGoneContainerIsMarkedAndTheOthersGoOn(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}, {"db", v2DB}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Sample(true); err != nil {
		t.Fatal(err)
	}
	// The kernel answers ENODEV for an open file of a removed cgroup.
	s.containers[0].sources[1].parse = func([]byte, *reading) error { return syscall.ENODEV }
	for range 2 {
		line, err := s.Sample(true)
		if err != nil {
			t.Fatal(err)
		}
		x := decode(t, line)
		if app := x.Containers["app"]; !app.Gone {
			t.Errorf("not marked: %s", line)
		} else {
			check(t, "app", app, nil)
		}
		if db := x.Containers["db"]; db.Gone || db.UsageUS == nil {
			t.Errorf("the other: %s", line)
		}
	}
}

func TestUnreadableCounterStopsWithOneSentence(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := filepath.Join(root, "docker", appID, "cpu.stat")
	if err := os.WriteFile(file, []byte("usage_usec none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = s.Sample(true)
	if err == nil || IsInput(err) || !strings.Contains(said.Err(err), file) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	deleted, deletedProc := cgtrees.Unpack(t, "v2")
	edit(t, filepath.Join(deletedProc, strconv.Itoa(v2App), "cgroup"), func(s string) string { return strings.TrimSpace(s) + " (deleted)\n" })
	atRoot, atRootProc := cgtrees.Unpack(t, "v2")
	edit(t, filepath.Join(atRootProc, strconv.Itoa(v2App), "cgroup"), func(string) string { return "0::/\n" })
	edit(t, filepath.Join(atRoot, "cgroup.procs"), func(s string) string { return s + strconv.Itoa(v2App) + "\n" })
	hidden, hiddenProc := cgtrees.Unpack(t, "v2")
	if err := os.RemoveAll(filepath.Join(hidden, "docker")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		root, proc string
		targets    []Target
		want       string
	}{
		{"no container", root, proc, nil, "no container was named"},
		{"same name", root, proc, []Target{{"app", v2App}, {"app", v2DB}}, "named twice"},
		{"no such process", root, proc, []Target{{"app", 4_000_000}}, "process 4000000 (container app) does not exist"},
		{"no cgroups", t.TempDir(), proc, []Target{{"app", v2App}}, "no cgroup file system is mounted"},
		{"no root", filepath.Join(root, "absent"), proc, []Target{{"app", v2App}}, "--cgroup-root"},
		{"no proc", root, t.TempDir(), []Target{{"app", v2App}}, "--proc"},
		{"removed cgroup", deleted, deletedProc, []Target{{"app", v2App}}, "does not exist"},
		{"root cgroup", atRoot, atRootProc, []Target{{"app", v2App}}, "no cgroup of its own"},
		{"hidden cgroup", hidden, hiddenProc, []Target{{"app", v2App}}, "is not below --cgroup-root"},
	} {
		s, err := Open(c.root, c.proc, c.targets)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !IsInput(err) || !strings.Contains(said.Err(err), c.want) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v (input: %v)", c.name, err, IsInput(err))
		}
	}
}

func TestParseTarget(t *testing.T) {
	if got, err := ParseTarget("php-fpm_1.2=4711"); err != nil || got != (Target{"php-fpm_1.2", 4711}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "app", "=1", "app=", "app=0", "app=-1", "app=x", "app=99999999999", "a\"b=1", "a b=1", strings.Repeat("a", 65) + "=1"} {
		if _, err := ParseTarget(bad); !IsInput(err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestNextDueSkipsWhatIsLate(t *testing.T) {
	for _, c := range []struct{ elapsed, want time.Duration }{
		{0, 100}, {1, 100}, {99, 100}, {100, 200}, {101, 200}, {350, 400}, {1000, 1100},
	} {
		if got := nextDue(c.elapsed, 100); got != c.want {
			t.Errorf("after %d: %d, want %d", c.elapsed, got, c.want)
		}
	}
}

// counted records every Write.
type counted struct {
	lines [][]byte
	after func(n int) error
}

func (c *counted) Write(b []byte) (int, error) {
	c.lines = append(c.lines, bytes.Clone(b))
	if c.after != nil {
		if err := c.after(len(c.lines)); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func TestRunWritesWholeLinesUntilTheSignal(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}, {"db", v2DB}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stop := make(chan os.Signal, 1)
	w := &counted{after: func(n int) error {
		if n == 3 {
			stop <- syscall.SIGTERM
		}
		return nil
	}}
	if err := s.Run(w, time.Millisecond, time.Minute, stop); err != nil {
		t.Fatal(err)
	}
	if len(w.lines) < 4 { // three, perhaps more, and the last one
		t.Fatalf("%d lines", len(w.lines))
	}
	series, err := cgroup.ReadSeries(bytes.NewReader(bytes.Join(w.lines, nil)), "run", "app", "db")
	if err != nil {
		t.Fatal(err)
	}
	if series.Len() != len(w.lines) {
		t.Errorf("%d samples in %d writes", series.Len(), len(w.lines))
	}
	for _, l := range w.lines {
		decode(t, l)
	}
}

func TestRunEndsByItself(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := &counted{}
	if err := s.Run(w, time.Hour, 20*time.Millisecond, nil); err != nil {
		t.Fatal(err)
	}
	if len(w.lines) != 2 {
		t.Errorf("%d samples, want the first and the last", len(w.lines))
	}
}

func TestRunReportsAFullDisk(t *testing.T) {
	root, proc := cgtrees.Unpack(t, "v2")
	s, err := Open(root, proc, []Target{{"app", v2App}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := &counted{after: func(n int) error {
		if n == 2 {
			return syscall.ENOSPC
		}
		return nil
	}}
	if err := s.Run(w, time.Millisecond, time.Minute, nil); !errors.Is(err, syscall.ENOSPC) || IsInput(err) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkSample(b *testing.B) {
	for layout, pids := range map[string][2]int{"v2": {v2App, v2DB}, "v1": {v1App, v1DB}, "hybrid": {hyApp, hyDB}} {
		b.Run(layout, func(b *testing.B) {
			root, proc := cgtrees.Unpack(b, layout)
			s, err := Open(root, proc, []Target{{"app", pids[0]}, {"db", pids[1]}})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sample(true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
