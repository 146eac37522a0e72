package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/lab/images"
	"github.com/percore/percore/internal/plan"
)

const (
	gib = 1 << 30
	mib = 1 << 20

	// A run stores the seeded database, one copy of it and the write-ahead log;
	// building the debian flavour takes compilers and sources besides.
	spaceOfRun    = 3 * gib
	spaceOfBuilds = 8 * gib
	spaceAtLeast  = 1 * gib

	// Raw files of one full run are below this.
	spaceOfResults = 1 * gib
	leastOfResults = 100 * mib

	clockWarn = time.Second
	clockFail = time.Minute // tokens would be refused as not yet valid or expired

	busy = 0.25 // load per CPU from which a machine counts as busy

	cargoMajor, cargoMinor = 1, 88 // what oha asks for
)

// ErrNoWayIn says that an engine's machine cannot be asked, because no image of
// percore's is there yet to run a program from.
var ErrNoWayIn = errors.New("no image of percore is on the engine yet")

// engine reports whether the engine answers.
func (x *examination) engine(ctx context.Context) bool {
	const name = "engine"
	if x.EngineErr != nil {
		x.add(name, Fail, x.EngineErr.Error(), x.wayToAnEngine())
		return false
	}
	before := x.Now()
	info, err := x.Engine.Info(ctx)
	x.slack = x.Now().Sub(before) / 2
	x.asked = before.Add(x.slack)
	if err != nil {
		x.add(name, Fail, err.Error(), x.wayToAnEngine())
		return false
	}
	x.info = info
	what := "Docker Engine " + info.Version
	if info.Desktop {
		what = "Docker Desktop, engine " + info.Version
	}
	if info.Rootless {
		what += ", rootless"
	}
	x.add(name, OK, fmt.Sprintf("%s (API %s) at %s, %s %s", what, info.APIVersion, x.Engine.Host(), info.OS, info.Arch), "")
	x.add("context", OK, "taken from: "+x.Engine.Source(), "")
	if info.OSType != "" && info.OSType != "linux" {
		x.add("containers", Fail, "the engine runs "+info.OSType+" containers", "switch Docker to Linux containers")
		return false
	}
	return true
}

// wayToAnEngine is the remedy for an engine that does not answer. One that was
// named is nobody's to start or to replace but the user's.
func (x *examination) wayToAnEngine() string {
	switch x.Chosen {
	case "":
		return "scripts/bootstrap installs or starts one on this machine, or says how"
	case "docker context use":
		return "start that engine, or take the default one: docker context use default"
	}
	return "start that engine, or unset " + x.Chosen + " to take the default one"
}

// size compares the engine's own CPUs and memory with the profiles.
func (x *examination) size() {
	m := plan.Machine{CPUs: x.info.CPUs, MemoryBytes: x.info.Memory, Cores: plan.Cores(x.info.Siblings)}
	has := fmt.Sprintf("%d CPUs, %s of memory", m.CPUs, size(uint64(max(m.MemoryBytes, 0))))
	where := "give the machine more"
	if x.info.Desktop {
		where = "give Docker Desktop more (Settings, Resources)"
	}
	x.add("cpus and memory", OK, has+" (the engine's, not the driver's)", "")

	if p, err := x.Profiles("m4pro"); err != nil {
		x.wrong("profile m4pro", Warn, err)
	} else if p, err := p.Resolve(m); err != nil {
		x.add("profile m4pro", Warn, err.Error(), where+", or measure with PROFILE=small: its figures are not the published layout's")
	} else if all := plan.JoinCPUs(p.Roles[plan.App].CPUs, p.Roles[plan.DB].CPUs, p.Roles[plan.Load].CPUs); plan.ThreadsPerCore(all, p.Siblings) > 1 {
		x.add("profile m4pro", Warn, "the study's twelve CPUs were cores, and here some are threads of one core", "measure with PROFILE=small: it gives each role whole cores")
	} else {
		x.add("profile m4pro", OK, "the study's layout fits", "")
	}

	wanted := x.Profile
	if wanted == "" {
		wanted = "auto"
	}
	chosen := plan.Choose(wanted, m)
	p, err := x.Profiles(chosen)
	if err == nil {
		p, err = p.Resolve(m)
	}
	if err != nil {
		x.add("profile", Fail, err.Error(), "take another PROFILE")
		return
	}
	var parts []string
	for _, r := range plan.Roles() {
		parts = append(parts, fmt.Sprintf("%s on CPUs %s with %s", r, p.Roles[r].CPUs, size(uint64(p.Roles[r].Memory))))
	}
	text := p.Name + ": " + strings.Join(parts, ", ")
	if wanted != chosen {
		text += " (" + wanted + " takes it)"
	}
	if shared := p.SharedRoles(); len(shared) > 0 {
		x.add("profile", Warn, text+"; "+strings.Join(shared, ", "), "figures are not comparable with the published ones: three cores or more give each role its own")
		return
	}
	x.add("profile", OK, text, "")
}

// cgroup looks at how containers are limited and counted.
func (x *examination) cgroup() {
	const name = "cgroups"
	text := fmt.Sprintf("version %s, driver %s", x.info.CgroupVersion, x.info.CgroupDriver)
	for _, w := range x.info.Warnings {
		lower := strings.ToLower(w)
		if strings.Contains(lower, "no cpuset support") || strings.Contains(lower, "no memory limit support") {
			x.add(name, Fail, text+"; the engine says: "+strings.TrimPrefix(w, "WARNING: "),
				"boot the engine's kernel with the cpuset and memory controllers (cgroup_enable=memory)")
			return
		}
	}
	if x.info.CgroupDriver == "none" || x.info.Rootless && x.info.CgroupVersion == "1" {
		x.add(name, Fail, text+": a rootless engine cannot limit CPUs or memory this way", "use cgroup version 2 with systemd and delegation, or an engine that runs as root")
		return
	}
	if x.info.CgroupVersion == "1" {
		text += ": CPU pressure is not counted per container"
	}
	x.add(name, OK, text, "")
}

// storage looks at how the engine keeps layers.
func (x *examination) storage() {
	if x.info.StorageDriver == "vfs" {
		x.add("storage driver", Warn, "vfs copies every layer whole: builds are slow and take several times the space", "put Docker's folder on a file system that carries overlay2 (ext4, xfs)")
		return
	}
	x.add("storage driver", OK, x.info.StorageDriver, "")
}

// clock compares the engine's wall clock with the driver's.
func (x *examination) clock() {
	const name = "clock"
	if x.info.Time.IsZero() {
		x.add(name, Warn, "the engine does not say what time it has", "")
		return
	}
	off := x.info.Time.Sub(x.asked)
	beyond := max(off.Abs()-x.slack, 0)
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	text := fmt.Sprintf("the engine's clock agrees with the driver's within %s", max(off.Abs(), x.slack).Round(time.Millisecond))
	remedy := "synchronise both clocks (NTP)"
	if x.info.Desktop {
		remedy = "restart Docker Desktop: its virtual machine's clock drifts while the laptop sleeps"
	}
	switch {
	case beyond > clockFail:
		x.add(name, Fail, fmt.Sprintf("the engine's clock is %s %s the driver's: candidates would refuse the tokens", off.Abs().Round(time.Second), direction), remedy)
	case beyond > clockWarn:
		x.add(name, Warn, fmt.Sprintf("the engine's clock is %s %s the driver's", off.Abs().Round(10*time.Millisecond), direction), remedy)
	default:
		x.add(name, OK, text, "")
	}
}

// host looks at the load and the space of the engine's machine.
func (x *examination) host(ctx context.Context) {
	r, err := x.Host.Read(ctx)
	if err != nil {
		finding, remedy := err.Error(), ""
		if errors.Is(err, ErrNoWayIn) {
			finding, remedy = "cannot be read yet: "+err.Error(), "run percore once, then ask again"
		}
		x.add("load", Warn, finding, remedy)
		x.add("disk of the engine", Warn, finding, remedy)
		return
	}
	load := fmt.Sprintf("load average %.2f on %d CPUs", r.Load1, x.info.CPUs)
	if x.info.CPUs > 0 && r.Load1/float64(x.info.CPUs) > busy {
		x.add("load", Warn, load+": the machine is busy", "stop what runs there (top shows it) and let it rest for a minute")
	} else {
		x.add("load", OK, load, "")
	}
	space := size(r.Free) + " free in " + x.info.DataRoot
	remedy := "free some (docker system df shows what Docker holds; " + x.Words.Say(fail.Call("clean", fail.Setting("images"))) + " removes percore's images)"
	switch {
	case r.Free < spaceAtLeast:
		x.add("disk of the engine", Fail, space+"; the database alone needs "+size(spaceAtLeast), remedy)
	case r.Free < spaceOfRun:
		x.add("disk of the engine", Warn, space+"; a run needs about "+size(spaceOfRun), remedy)
	case r.Free < spaceOfBuilds:
		x.add("disk of the engine", Warn, space+"; building all images needs about "+size(spaceOfBuilds), remedy)
	default:
		x.add("disk of the engine", OK, space, "")
	}
}

// neighbours looks for containers that are not percore's.
func (x *examination) neighbours(ctx context.Context) {
	const name = "other containers"
	all, err := x.Engine.Containers(ctx, nil)
	if err != nil {
		x.wrong(name, Warn, err)
		return
	}
	var names []string
	for _, c := range all {
		if c.Running && (c.Labels[engine.Label] == "" || c.Labels[engine.LabelKind] != engine.KindContainer) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		x.add(name, OK, "none is running", "")
		return
	}
	x.add(name, Warn, fmt.Sprintf("%s running: %s", count(len(names), "is", "are"), some(names, 5)), "they may take CPU time from the measurement: stop them for the run (docker stop)")
}

// leftovers looks for containers and networks of percore's.
func (x *examination) leftovers(ctx context.Context) {
	const name = "leftovers"
	live, err := x.Live(ctx)
	if err != nil {
		x.wrong(name, Warn, err)
		return
	}
	if len(live) > 0 {
		x.add("running measurement", Fail, "run "+strings.Join(live, ", ")+" is being measured on this engine", "wait for it to end, or stop it")
	}
	containers, err := x.Engine.Containers(ctx, engine.Own(engine.KindContainer))
	if err != nil {
		x.wrong(name, Warn, err)
		return
	}
	networks, err := x.Engine.Networks(ctx, engine.Own(engine.KindNetwork))
	if err != nil {
		x.wrong(name, Warn, err)
		return
	}
	dead := func(t engine.Thing) bool { return slices.Contains(live, t.Run()) }
	containers, networks = slices.DeleteFunc(containers, dead), slices.DeleteFunc(networks, dead)
	if len(containers)+len(networks) == 0 {
		x.add(name, OK, "none", "")
		return
	}
	x.add(name, Warn, fmt.Sprintf("%s and %s that no run uses", count(len(containers), "container", "containers"), count(len(networks), "network", "networks")), x.Words.Say(fail.Call("clean"))+" removes them")
}

// flavour settles which images a run would use and what is left to build.
func (x *examination) flavour(ctx context.Context) {
	const name = "flavour"
	choice, err := x.Images.Choose(ctx, x.Flavour)
	if err != nil {
		x.wrong(name, Fail, err)
		return
	}
	x.choice = &choice
	x.add(name, OK, fmt.Sprintf("%s: %s", choice.Flavour, choice.Reason), "")
	if x.plan, err = x.Images.Plan(ctx, choice.Flavour); err != nil {
		x.wrong("images", Fail, err)
		return
	}
	missing := x.plan.Missing()
	if len(missing) == 0 {
		x.add("images", OK, "all are built", "")
		return
	}
	names := make([]string, len(missing))
	for i, m := range missing {
		names[i] = m.Recipe.Name
	}
	x.add("images", OK, fmt.Sprintf("%d to build, about %s: %s", len(missing), x.plan.Estimate().Round(time.Minute), some(names, 20)), "")
}

// needs reports whether an image that is made on the driver's machine by this
// method has to be built.
func (x *examination) needs(m images.Method) bool {
	return slices.ContainsFunc(x.plan.Missing(), func(it images.Item) bool { return it.Recipe.Method == m })
}

// tools looks for the programs of the driver's machine.
func (x *examination) tools(ctx context.Context) {
	if v, err := x.Driver.Tool(ctx, "go", "version"); err != nil {
		x.add("go", Warn, "not there; make builds percore with it", "install Go: go.dev/dl")
	} else {
		x.add("go", OK, v, "")
	}

	if os := x.Driver.OS(); os != "linux" {
		if x.needs(images.Bootstrap) || x.needs(images.Cargo) {
			x.add("debian flavour", Fail, "its base images are made on a Linux driver, and this one runs "+os,
				"bring a registry in reach of the engine and take FLAVOUR=published, or run percore on Linux")
		}
		return
	}

	v, err := x.Driver.Tool(ctx, "mmdebstrap", "--version")
	x.tool("mmdebstrap", v, err, x.needs(images.Bootstrap), "apt-get install mmdebstrap (Debian, Ubuntu; scripts/bootstrap does)")

	v, err = x.Driver.Tool(ctx, "cargo", "--version")
	if err == nil && !atLeast(v, cargoMajor, cargoMinor) {
		err = fmt.Errorf("%s is too old: oha needs %d.%d", v, cargoMajor, cargoMinor)
	}
	x.tool("cargo", v, err, x.needs(images.Cargo), fmt.Sprintf("install rustup (apt-get install rustup, or rustup.rs), then: rustup default stable; %d.%d or newer", cargoMajor, cargoMinor))

	v, err = x.Driver.Tool(ctx, "cc", "--version")
	x.tool("c compiler", v, err, x.needs(images.Cargo), "apt-get install gcc libc6-dev (scripts/bootstrap does)")
}

// tool adds the finding for a program that only the debian flavour needs.
func (x *examination) tool(name, version string, err error, needed bool, remedy string) {
	switch {
	case err == nil:
		x.add(name, OK, version, "")
	case needed:
		x.add(name, Fail, fmt.Sprintf("%v; the debian flavour needs it", err), remedy)
	case x.choice == nil:
		x.add(name, Warn, fmt.Sprintf("%v; the debian flavour would need it", err), remedy)
	default:
		x.add(name, OK, fmt.Sprintf("%v; not needed: flavour %s has what it makes", err, x.choice.Flavour), "")
	}
}

// disk looks at the space for results on the driver's machine.
func (x *examination) disk() {
	const name = "disk of the driver"
	free, err := x.Driver.Free(x.Results)
	if err != nil {
		x.wrong(name, Warn, err)
		return
	}
	text := size(free) + " free for " + x.Results
	switch {
	case free < leastOfResults:
		x.add(name, Fail, text, "free some, or give another folder with "+x.Words.Say(fail.Setting("results")))
	case free < spaceOfResults:
		x.add(name, Warn, text+"; a full run can take "+size(spaceOfResults), "free some, or give another folder with "+x.Words.Say(fail.Setting("results")))
	default:
		x.add(name, OK, text, "")
	}
}

// timeSync asks systemd whether the driver's clock is synchronised. Where
// nobody can be asked there is no finding.
func (x *examination) timeSync(ctx context.Context) {
	v, err := x.Driver.Tool(ctx, "timedatectl", "show", "--property=NTPSynchronized", "--value")
	if err != nil {
		return
	}
	switch v {
	case "yes":
		x.add("time synchronisation", OK, "the driver's clock is synchronised", "")
	case "no":
		x.add("time synchronisation", Warn, "the driver's clock is not synchronised", "timedatectl set-ntp true: a clock that is set during a window fails its gate")
	}
}

// size writes bytes in the largest fitting binary unit, with one decimal.
func size(n uint64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%.1f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%d bytes", n)
}

// some joins the first n names.
func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// atLeast compares the first version number in a text with a minimum.
func atLeast(text string, major, minor int) bool {
	for word := range strings.FieldsSeq(text) {
		a, rest, ok := strings.Cut(word, ".")
		if !ok {
			continue
		}
		b, _, _ := strings.Cut(rest, ".")
		x, errA := strconv.Atoi(a)
		y, errB := strconv.Atoi(b)
		if errA != nil || errB != nil {
			continue
		}
		return x > major || x == major && y >= minor
	}
	return false
}
