package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// fakeEngine is an engine of a well-behaved machine, changed by each case.
type fakeEngine struct {
	info       engine.Info
	err        error
	containers []engine.Thing
	networks   []engine.Thing
}

func (f *fakeEngine) Host() string                              { return "unix:///var/run/docker.sock" }
func (f *fakeEngine) Source() string                            { return "default" }
func (f *fakeEngine) Info(context.Context) (engine.Info, error) { return f.info, f.err }
func (f *fakeEngine) Containers(_ context.Context, labels map[string]string) ([]engine.Thing, error) {
	return carrying(f.containers, labels), nil
}
func (f *fakeEngine) Networks(_ context.Context, labels map[string]string) ([]engine.Thing, error) {
	return carrying(f.networks, labels), nil
}

func carrying(all []engine.Thing, labels map[string]string) []engine.Thing {
	var out []engine.Thing
	for _, t := range all {
		fits := true
		for k, v := range labels {
			fits = fits && t.Labels[k] == v
		}
		if fits {
			out = append(out, t)
		}
	}
	return out
}

type fakeImages struct {
	choice  images.Choice
	err     error
	missing []images.Recipe
}

func (f *fakeImages) Choose(_ context.Context, wish plan.Flavour, _ ...string) (images.Choice, error) {
	if wish == plan.FlavourAuto {
		return f.choice, f.err
	}
	return images.Choice{Flavour: wish, Reason: "it was asked for"}, f.err
}

func (f *fakeImages) Plan(_ context.Context, flavour plan.Flavour, _ ...string) (images.Plan, error) {
	p := images.Plan{Flavour: flavour}
	for _, r := range f.missing {
		p.Items = append(p.Items, images.Item{Recipe: r, Build: true})
	}
	return p, nil
}

type fakeHost struct {
	reading HostReading
	err     error
}

func (f *fakeHost) Read(context.Context) (HostReading, error) { return f.reading, f.err }

type fakeDriver struct {
	tools map[string]string
	free  uint64
	os    string
}

func (f *fakeDriver) Tool(_ context.Context, name string, _ ...string) (string, error) {
	if v, ok := f.tools[name]; ok {
		return v, nil
	}
	return "", errors.New(name + " is not installed")
}
func (f *fakeDriver) Free(string) (uint64, error) { return f.free, nil }
func (f *fakeDriver) OS() string                  { return f.os }

// bench is the subject of a case with its parts at hand.
type bench struct {
	Subject
	engine *fakeEngine
	images *fakeImages
	host   *fakeHost
	driver *fakeDriver
	live   []string
}

// good is a machine with nothing to complain about.
func good() *bench {
	b := &bench{
		engine: &fakeEngine{info: engine.Info{
			Version: "26.1.5", APIVersion: "1.45", OS: "Debian GNU/Linux 13", OSType: "linux", Arch: "x86_64",
			CPUs: 16, Memory: 32 * gib, CgroupVersion: "2", CgroupDriver: "systemd", StorageDriver: "overlay2",
			DataRoot: "/var/lib/docker", Time: now,
		}},
		images: &fakeImages{choice: images.Choice{Flavour: plan.FlavourPublished, Reason: "the registry answers"}},
		host:   &fakeHost{reading: HostReading{Load1: 0.2, Free: 80 * gib}},
		driver: &fakeDriver{tools: map[string]string{
			"go": "go version go1.27.1 linux/amd64", "mmdebstrap": "mmdebstrap 1.5.6",
			"cargo": "cargo 1.95.0 (f2d3ce0bd 2026-03-21)", "cc": "cc (Debian 14.2.0) 14.2.0", "timedatectl": "yes",
		}, free: 50 * gib, os: "linux"},
	}
	b.Subject = Subject{
		Engine: b.engine, Images: b.images, Host: b.host, Driver: b.driver,
		Live:     func(context.Context) ([]string, error) { return b.live, nil },
		Profiles: func(name string) (plan.Profile, error) { return plan.FindProfile("../..", name) },
		Profile:  "auto", Flavour: plan.FlavourAuto, Results: "/srv/results",
		Now: func() time.Time { return now }, Words: said.Words,
	}
	return b
}

func TestNothingToComplainAbout(t *testing.T) {
	r := Examine(context.Background(), good().Subject)
	if !r.Possible {
		t.Error("a run is called impossible")
	}
	for _, f := range r.Findings {
		if f.Status != OK || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
	var names []string
	for _, f := range r.Findings {
		names = append(names, f.Name)
	}
	want := []string{
		"engine", "context", "cpus and memory", "profile m4pro", "profile", "cgroups", "storage driver", "clock", "load",
		"disk of the engine", "other containers", "leftovers", "flavour", "images", "go", "mmdebstrap", "cargo", "c compiler",
		"disk of the driver", "time synchronisation",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("checks (-want +got):\n%s", d)
	}
}

func TestChecks(t *testing.T) {
	ours := func(kind string) map[string]string {
		return map[string]string{engine.Label: "1", engine.LabelKind: kind, engine.LabelRun: "r1"}
	}
	cases := []struct {
		name   string
		spoil  func(*bench)
		check  string
		status Status
		says   []string // in the finding
		remedy string   // in the remedy
	}{
		{"no engine", func(b *bench) { b.EngineErr = errors.New("no Docker at /var/run/docker.sock") }, "engine", Fail, []string{"no Docker"}, "bootstrap"},
		{"no engine that DOCKER_HOST names", func(b *bench) { b.EngineErr, b.Chosen = errors.New("no Docker"), "DOCKER_HOST" }, "engine", Fail, []string{"no Docker"}, "unset DOCKER_HOST"},
		{"no engine of the current context", func(b *bench) { b.EngineErr, b.Chosen = errors.New("no Docker"), "docker context use" }, "engine", Fail, []string{"no Docker"}, "docker context use default"},
		{"an engine that goes away", func(b *bench) { b.engine.err = errors.New("connection reset") }, "engine", Fail, []string{"connection reset"}, "bootstrap"},
		{"Windows containers", func(b *bench) { b.engine.info.OSType = "windows" }, "containers", Fail, []string{"windows"}, "Linux containers"},
		{"Docker Desktop", func(b *bench) { b.engine.info.Desktop = true }, "engine", OK, []string{"Docker Desktop, engine 26.1.5"}, ""},
		{"a laptop's small virtual machine", func(b *bench) { b.engine.info.CPUs, b.engine.info.Desktop = 8, true }, "profile m4pro", Warn, []string{"12 CPUs", "has 8"}, "Settings, Resources"},
		{"too little memory for m4pro", func(b *bench) { b.engine.info.Memory = 3 * gib }, "profile m4pro", Warn, []string{"4.0 GiB", "3.0 GiB"}, "small"},
		{"the small profile", func(b *bench) { b.engine.info.CPUs = 6 }, "profile", OK, []string{"small: app on CPUs 0-1", "load on CPUs 4-5", "auto takes it"}, ""},
		{"two CPUs", func(b *bench) { b.engine.info.CPUs = 2 }, "profile", Warn, []string{"share CPU 1"}, "not comparable"},
		{"threads that are not cores", func(b *bench) { b.engine.info.Siblings = "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15" }, "profile m4pro", Warn, []string{"threads of one core"}, "PROFILE=small"},
		{"cores of two threads", func(b *bench) { b.engine.info.Siblings = "0,8 1,9 2,10 3,11 4,12 5,13 6,14 7,15" }, "profile", OK, []string{"small: app on CPUs 0-1,8-9", "load on CPUs 4-7,12-15"}, ""},
		{"m4pro by force", func(b *bench) { b.Profile, b.engine.info.CPUs = "m4pro", 4 }, "profile", Fail, []string{"12 CPUs", "has 4"}, "another PROFILE"},
		{"a profile that does not exist", func(b *bench) { b.Profile = "nope" }, "profile", Fail, []string{"nope"}, "another PROFILE"},
		{"cgroup version 1", func(b *bench) { b.engine.info.CgroupVersion, b.engine.info.CgroupDriver = "1", "cgroupfs" }, "cgroups", OK, []string{"version 1, driver cgroupfs", "pressure is not counted"}, ""},
		{"a kernel without memory limits", func(b *bench) { b.engine.info.Warnings = []string{"WARNING: No memory limit support"} }, "cgroups", Fail, []string{"No memory limit support"}, "cgroup_enable=memory"},
		{"a warning that does not matter", func(b *bench) { b.engine.info.Warnings = []string{"WARNING: No blkio throttle support"} }, "cgroups", OK, nil, ""},
		{"rootless on version 1", func(b *bench) { b.engine.info.Rootless, b.engine.info.CgroupVersion = true, "1" }, "cgroups", Fail, []string{"rootless"}, "delegation"},
		{"vfs", func(b *bench) { b.engine.info.StorageDriver = "vfs" }, "storage driver", Warn, []string{"vfs"}, "overlay2"},
		{"a clock that is a little late", func(b *bench) { b.engine.info.Time = now.Add(-3 * time.Second) }, "clock", Warn, []string{"3s behind"}, "NTP"},
		{"a clock that is far ahead", func(b *bench) { b.engine.info.Time = now.Add(2 * time.Hour) }, "clock", Fail, []string{"2h0m0s ahead of", "tokens"}, "NTP"},
		{"a virtual machine's clock after sleep", func(b *bench) {
			b.engine.info.Time, b.engine.info.Desktop = now.Add(-20*time.Second), true
		}, "clock", Warn, []string{"20s behind"}, "restart Docker Desktop"},
		{"an answer that took longer than the clocks differ", func(b *bench) {
			times := []time.Time{now, now.Add(10 * time.Second)}
			b.Now = func() time.Time { t := times[0]; times = times[1:]; return t }
			b.engine.info.Time = now.Add(9 * time.Second)
		}, "clock", OK, []string{"within 5s"}, ""},
		{"an engine without a clock", func(b *bench) { b.engine.info.Time = time.Time{} }, "clock", Warn, []string{"does not say"}, ""},
		{"a busy machine", func(b *bench) { b.host.reading.Load1 = 9 }, "load", Warn, []string{"9.00 on 16 CPUs", "busy"}, "stop what runs"},
		{"a machine that cannot be read yet", func(b *bench) { b.host.err = ErrNoWayIn }, "load", Warn, []string{"cannot be read yet"}, "run percore once"},
		{"a machine that cannot be read", func(b *bench) { b.host.err = errors.New("exec failed") }, "disk of the engine", Warn, []string{"exec failed"}, ""},
		{"a full disk", func(b *bench) { b.host.reading.Free = 300 * mib }, "disk of the engine", Fail, []string{"300.0 MiB free in /var/lib/docker"}, "docker system df"},
		{"a disk that is nearly full", func(b *bench) { b.host.reading.Free = 2 * gib }, "disk of the engine", Warn, []string{"a run needs about 3.0 GiB"}, "docker system df"},
		{"too little space to build", func(b *bench) { b.host.reading.Free = 5 * gib }, "disk of the engine", Warn, []string{"building all images needs about 8.0 GiB"}, "docker system df"},
		{"other people's containers", func(b *bench) {
			b.engine.containers = []engine.Thing{{Name: "web", Running: true}, {Name: "idle"}, {Name: "ours", Running: true, Labels: ours(engine.KindContainer)}}
		}, "other containers", Warn, []string{"1 is running: web"}, "docker stop"},
		{"many of them", func(b *bench) {
			for _, n := range strings.Fields("a b c d e f g") {
				b.engine.containers = append(b.engine.containers, engine.Thing{Name: n, Running: true})
			}
		}, "other containers", Warn, []string{"7 are running: a, b, c, d, e and 2 more"}, "docker stop"},
		{"leftovers", func(b *bench) {
			b.engine.containers = []engine.Thing{{Name: "percore-r1-db", Labels: ours(engine.KindContainer)}}
			b.engine.networks = []engine.Thing{{Name: "percore-r1", Labels: ours(engine.KindNetwork)}}
		}, "leftovers", Warn, []string{"1 container and 1 network that no run uses"}, "percore clean"},
		{"somebody's own container of an image of percore's is no leftover", func(b *bench) {
			b.engine.containers = []engine.Thing{{Name: "mine", Labels: map[string]string{engine.Label: "1", engine.LabelKind: engine.KindImage}}}
		}, "leftovers", OK, []string{"none"}, ""},
		{"a running one of them is another container", func(b *bench) {
			b.engine.containers = []engine.Thing{{Name: "mine", Running: true, Labels: map[string]string{engine.Label: "1", engine.LabelKind: engine.KindImage}}}
		}, "other containers", Warn, []string{"1 is running: mine"}, "docker stop"},
		{"a run that is being measured is no leftover", func(b *bench) {
			b.live = []string{"r1"}
			b.engine.containers = []engine.Thing{{Name: "percore-r1-db", Labels: ours(engine.KindContainer)}}
		}, "leftovers", OK, []string{"none"}, ""},
		{"a run that is being measured", func(b *bench) { b.live = []string{"r1"} }, "running measurement", Fail, []string{"run r1 is being measured"}, "wait"},
		{"no flavour possible", func(b *bench) { b.images.err = errors.New("reading candidates: no such file") }, "flavour", Fail, []string{"no such file"}, ""},
		{"images to build", func(b *bench) {
			b.images.missing = []images.Recipe{{Name: "base", Method: images.Bootstrap, Estimate: time.Minute}, {Name: "oha", Method: images.Cargo, Estimate: 5 * time.Minute}}
		}, "images", OK, []string{"2 to build, about 6m0s: base, oha"}, ""},
		{"no Go", func(b *bench) { delete(b.driver.tools, "go") }, "go", Warn, []string{"not there"}, "go.dev/dl"},
		{"no cargo, and none needed", func(b *bench) { delete(b.driver.tools, "cargo") }, "cargo", OK, []string{"not installed", "not needed"}, ""},
		{"no cargo, and one needed", func(b *bench) {
			delete(b.driver.tools, "cargo")
			b.images.missing = []images.Recipe{{Name: "oha", Method: images.Cargo}}
		}, "cargo", Fail, []string{"not installed", "debian flavour needs it"}, "rustup default stable"},
		{"an old cargo, and one needed", func(b *bench) {
			b.driver.tools["cargo"] = "cargo 1.85.1 (d73d2caf9 2024-12-31)"
			b.images.missing = []images.Recipe{{Name: "oha", Method: images.Cargo}}
		}, "cargo", Fail, []string{"1.85.1", "too old", "1.88"}, "rustup"},
		{"no C compiler for cargo", func(b *bench) {
			delete(b.driver.tools, "cc")
			b.images.missing = []images.Recipe{{Name: "oha", Method: images.Cargo}}
		}, "c compiler", Fail, []string{"not installed"}, "gcc"},
		{"no mmdebstrap, and one needed", func(b *bench) {
			delete(b.driver.tools, "mmdebstrap")
			b.images.missing = []images.Recipe{{Name: "base", Method: images.Bootstrap}}
		}, "mmdebstrap", Fail, []string{"not installed"}, "apt-get install mmdebstrap"},
		{"no cargo and no engine to ask", func(b *bench) {
			delete(b.driver.tools, "cargo")
			b.EngineErr = errors.New("no Docker")
		}, "cargo", Warn, []string{"would need it"}, "rustup"},
		{"the debian flavour from a Mac", func(b *bench) {
			b.driver.os = "darwin"
			b.images.missing = []images.Recipe{{Name: "base", Method: images.Bootstrap}}
		}, "debian flavour", Fail, []string{"darwin"}, "FLAVOUR=published"},
		{"no space for results", func(b *bench) { b.driver.free = 10 * mib }, "disk of the driver", Fail, []string{"10.0 MiB free for /srv/results"}, "--results"},
		{"little space for results", func(b *bench) { b.driver.free = 500 * mib }, "disk of the driver", Warn, []string{"500.0 MiB"}, "--results"},
		{"a clock that nobody sets", func(b *bench) { b.driver.tools["timedatectl"] = "no" }, "time synchronisation", Warn, []string{"not synchronised"}, "set-ntp"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := good()
			c.spoil(b)
			r := Examine(context.Background(), b.Subject)
			var found *Finding
			fails := 0
			for i, f := range r.Findings {
				if f.Name == c.check {
					found = &r.Findings[i]
				}
				if f.Status == Fail {
					fails++
				}
				if f.Status == Fail && f.Remedy == "" && f.Name != "flavour" {
					t.Errorf("a failure without a remedy: %+v", f)
				}
			}
			if found == nil {
				t.Fatalf("no finding %q in %+v", c.check, r.Findings)
			}
			if found.Status != c.status {
				t.Errorf("status %s, want %s: %+v", found.Status, c.status, *found)
			}
			for _, want := range c.says {
				if !strings.Contains(found.Finding, want) {
					t.Errorf("the finding %q does not say %q", found.Finding, want)
				}
			}
			if !strings.Contains(found.Remedy, c.remedy) || c.remedy == "" && found.Remedy != "" {
				t.Errorf("remedy %q, want %q in it", found.Remedy, c.remedy)
			}
			if r.Possible != (fails == 0) {
				t.Errorf("possible is %t with %d failures", r.Possible, fails)
			}
		})
	}
}

// On a Mac without anything to build, the tools of the debian flavour are not
// asked for.
func TestMacNeedsNoDebianTools(t *testing.T) {
	b := good()
	b.driver.os = "darwin"
	b.driver.tools = map[string]string{"go": "go version go1.27.1 darwin/arm64"}
	r := Examine(context.Background(), b.Subject)
	if !r.Possible {
		t.Errorf("a run is called impossible: %+v", r.Findings)
	}
	for _, f := range r.Findings {
		if f.Name == "mmdebstrap" || f.Name == "cargo" {
			t.Errorf("asks for %s on a Mac", f.Name)
		}
	}
}

func TestWriteText(t *testing.T) {
	r := Report{Findings: []Finding{
		{Name: "engine", Status: OK, Finding: "Docker Engine 26.1.5"},
		{Name: "disk of the driver", Status: Fail, Finding: "10.0 MiB free for a folder with a rather long name", Remedy: "free some"},
	}}
	var b bytes.Buffer
	if err := r.WriteText(&b, 60); err != nil {
		t.Fatal(err)
	}
	want := `ok    engine              Docker Engine 26.1.5
fail  disk of the driver  10.0 MiB free for a folder with a
                          rather long name
                          -> free some

No run is possible: 1 check failed.
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, width := range []int{0, 10, 30} { // no terminal, and terminals too narrow to break anything
		b.Reset()
		if err := r.WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "10.0 MiB free for a folder with a rather long name") {
			t.Errorf("width %d breaks the finding:\n%s", width, b.String())
		}
	}
	for text, r := range map[string]Report{
		"A run is possible.\n":                  {Possible: true},
		"A run is possible, with 1 warning.\n":  {Possible: true, Findings: []Finding{{Status: Warn}}},
		"A run is possible, with 2 warnings.\n": {Possible: true, Findings: []Finding{{Status: Warn}, {Status: Warn}}},
	} {
		b.Reset()
		if err := r.WriteText(&b, 80); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), text) {
			t.Errorf("%q does not end in %q", b.String(), text)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	r := Examine(context.Background(), good().Subject)
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParseReading(t *testing.T) {
	got, err := parseReading("0.52 0.30 0.21 1/123 4567\nFilesystem     1024-blocks     Used Available Capacity Mounted on\noverlay          263174212 12000000 83886080      13% /\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := (HostReading{Load1: 0.52, Free: 80 * gib}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{
		"", "x", "0.5", "0.5\n", "0.5 0.5\nFilesystem 1024-blocks Used Available Capacity Mounted on\n", "-1 0 0\na\na b c 4 e f",
		"0.5\nhead\noverlay 1 2 many 4% /", "nan\nhead\noverlay 1 2 3 4% /", "0.5\nhead\noverlay 1 2 99999999999999999999 4% /",
	} {
		if got, err := parseReading(bad); err == nil {
			t.Errorf("%q gives %+v", bad, got)
		}
	}
}

func FuzzParseReading(f *testing.F) {
	f.Add("0.52 0.30 0.21 1/123 4567\nFilesystem     1024-blocks     Used Available Capacity Mounted on\noverlay          263174212 12000000 83886080      13% /\n")
	f.Add("1.00\nhead\n/dev/vda 1 2 3 4% /")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReading(text)
		if err == nil && !(r.Load1 >= 0) {
			t.Errorf("load %v from %q", r.Load1, text)
		}
	})
}

func TestMachine(t *testing.T) {
	var m Machine
	if line, err := m.Tool(context.Background(), "go", "version"); err != nil || !strings.HasPrefix(line, "go version go") {
		t.Errorf("go version gives %q, %v", line, err)
	}
	if line, err := m.Tool(context.Background(), "percore-no-such-program"); err == nil {
		t.Errorf("a program that does not exist gives %q", line)
	}
	free, err := m.Free(t.TempDir() + "/not/there/yet")
	if err != nil || free == 0 {
		t.Errorf("free: %d, %v", free, err)
	}
}

func TestAtLeast(t *testing.T) {
	for text, want := range map[string]bool{
		"cargo 1.95.0 (f2d3ce0bd 2026-03-21)": true, "cargo 1.88.0": true, "cargo 1.87.9": false, "cargo 0.66.0": false,
		"cargo 2.0.0": true, "cargo": false, "": false, "cargo 1.90.0-nightly": true,
	} {
		if got := atLeast(text, 1, 88); got != want {
			t.Errorf("atLeast(%q) = %t", text, got)
		}
	}
}
