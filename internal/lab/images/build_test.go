package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// builder is a Builder over a fake engine, and what it told.
func builder(t *testing.T, e *fakeEngine) (*Builder, *[]Event) {
	t.Helper()
	var events []Event
	return &Builder{Engine: e, Recipes: recipesOf(t), Names: finals, Cache: t.TempDir(), Progress: func(ev Event) { events = append(events, ev) }}, &events
}

func name(tag string) string {
	n, _, _ := strings.Cut(strings.TrimPrefix(tag, "percore/"), ":")
	return n
}

func TestBuildParentsFirstAndOnlyOnce(t *testing.T) {
	e := newEngine()
	b, events := builder(t, e)
	images, err := b.Build(t.Context(), plan.FlavourPublished)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(images); got != len(finals) {
		t.Errorf("%d images were built", got)
	}
	at := map[string]int{}
	for i, tag := range e.built {
		at[name(tag)] = i
	}
	for _, pair := range [][2]string{{"oha", "tools"}, {"php-fpm-base", "php-fpm"}, {"php-jwt", "php-fpm"}, {"frankenphp-base", "frankenphp"}} {
		if at[pair[0]] >= at[pair[1]] {
			t.Errorf("%s was built after %s", pair[0], pair[1])
		}
	}
	for tag, o := range e.options {
		if o.Version != build.BuilderV1 || !o.Remove || !o.ForceRemove || o.PullParent {
			t.Errorf("%s was built with %+v", tag, o)
		}
		if o.Labels[LabelOwner] != "1" || o.Labels[LabelKind] != "image" || o.Labels[LabelFlavour] != "published" {
			t.Errorf("%s has the labels %v", tag, o.Labels)
		}
	}
	tools := images["tools"].Tag
	if got := *e.options[tools].BuildArgs["GOLANG"]; got != officialGolang {
		t.Errorf("tools is built by %s", got)
	}
	if got := *e.options[tools].BuildArgs["OHA"]; !strings.HasPrefix(got, "percore/oha:published-") {
		t.Errorf("tools takes oha from %s", got)
	}
	if !slices.Contains(e.contexts[images["go"].Tag], authoritiesName) || slices.Contains(e.contexts[images["postgres"].Tag], authoritiesName) {
		t.Error("the certificate authorities are not where they belong")
	}
	var kinds []Kind
	for _, ev := range *events {
		if ev.Image == "postgres" {
			kinds = append(kinds, ev.Kind)
		}
		if ev.Count != len(e.built) && ev.Kind != Ticked {
			t.Errorf("the event %+v counts %d images", ev, ev.Count)
		}
	}
	if !slices.Equal(kinds, []Kind{Started, Stepped, Finished}) {
		t.Errorf("the events of postgres are %v", kinds)
	}

	// A second time there is nothing to do.
	built := len(e.built)
	*events = nil
	again, err := b.Build(t.Context(), plan.FlavourPublished)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.built) != built {
		t.Errorf("built again: %v", e.built[built:])
	}
	if again["go"] != images["go"] {
		t.Errorf("the second time the image is %v, not %v", again["go"], images["go"])
	}
	for _, ev := range *events {
		if ev.Kind != Reused {
			t.Errorf("the second time something happens: %+v", ev)
		}
	}
}

func TestPlanLeavesParentsOfWhatIsThere(t *testing.T) {
	e := newEngine()
	b, _ := builder(t, e)
	builds, err := b.Plan(t.Context(), plan.FlavourDebian)
	if err != nil {
		t.Fatal(err)
	}
	if len(builds.Missing()) != len(builds.Items) || builds.Estimate() < 5*time.Minute {
		t.Errorf("on an empty engine %d of %d images are missing, %s", len(builds.Missing()), len(builds.Items), builds.Estimate())
	}
	for _, n := range []string{"php-fpm", "tools", "postgres", "go"} {
		e.has[builds.Tag(n)] = "sha256:" + n
	}
	e.has[builds.Tag("golang")] = "sha256:golang"
	if builds, err = b.Plan(t.Context(), plan.FlavourDebian); err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, it := range builds.Missing() {
		missing = append(missing, it.Recipe.Name)
	}
	// php-fpm is there, so its base is not built again; frankenphp is not.
	if want := []string{"base", "php-zts-base", "frankenphp-base", "php-jwt", "frankenphp"}; !slices.Equal(missing, want) {
		t.Errorf("missing are %v, not %v", missing, want)
	}
}

func TestBuildErrorCarriesTheEndOfTheOutput(t *testing.T) {
	e := newEngine()
	failed := string(read(t, "failed.json"))
	e.stream = func(client.ImageBuildOptions) string { return failed }
	b, _ := builder(t, e)
	_, err := b.Build(t.Context(), plan.FlavourPublished, "postgres")
	var be *BuildError
	if !errors.As(err, &be) {
		t.Fatalf("the error is %v", err)
	}
	first, rest, _ := strings.Cut(said.Err(err), "\n")
	if !strings.HasPrefix(first, "building the image postgres, step 2 of 2 (RUN echo before") || !strings.HasSuffix(first, ": the command ended with status 3") {
		t.Errorf("the first line is %q", first)
	}
	if !strings.Contains(rest, "line 40\n    red") || strings.Count(rest, "\n")+1 != tailLines {
		t.Errorf("the rest is %q", rest)
	}
}

func TestBuildErrorOfAFullDiskHasTheRemedy(t *testing.T) {
	e := newEngine()
	e.stream = func(client.ImageBuildOptions) string {
		return `{"stream":"Step 1/2 : RUN x\ncp: error writing 'a': No space left on device\n"}{"errorDetail":{"message":"The command '/bin/sh -c x' returned a non-zero code: 1"}}`
	}
	b, _ := builder(t, e)
	_, err := b.Build(t.Context(), plan.FlavourPublished, "postgres")
	if err == nil || !strings.Contains(said.Err(err), "the disk is full") || !strings.Contains(said.Err(err), "free some space") {
		t.Errorf("the error is %v", err)
	}
}

func TestBuildWithoutAnImageAtTheEndFails(t *testing.T) {
	e := newEngine()
	e.stream = func(client.ImageBuildOptions) string { return `{"stream":"Step 1/1 : FROM x\n"}` }
	b, _ := builder(t, e)
	if _, err := b.Build(t.Context(), plan.FlavourPublished, "postgres"); err == nil || !strings.Contains(said.Err(err), "without an image") {
		t.Errorf("the error is %v", err)
	}
}

func TestBuildStops(t *testing.T) {
	e := newEngine()
	ctx, cancel := context.WithCancel(t.Context())
	e.stream = func(client.ImageBuildOptions) string {
		cancel()
		return `{"stream":"Step 1/2 : RUN x\n"}{"errorDetail":{"message":"context canceled"}}`
	}
	b, _ := builder(t, e)
	_, err := b.Build(ctx, plan.FlavourPublished, "postgres")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestTwoBuildersTakeTurns(t *testing.T) {
	cache := t.TempDir()
	e := newEngine()
	first := &Builder{Engine: e, Recipes: recipesOf(t), Names: finals, Cache: cache}
	unlock, err := first.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	second := &Builder{Engine: e, Recipes: recipesOf(t), Names: finals, Cache: cache}
	var once sync.Once
	second.Progress = func(ev Event) {
		if ev.Kind == Waiting {
			once.Do(func() { close(waiting) })
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := second.Build(t.Context(), plan.FlavourPublished, "postgres")
		done <- err
	}()
	<-waiting
	// What the first builds in the meantime is not built again.
	plan, err := first.Plan(t.Context(), plan.FlavourPublished, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.has[plan.Tag("postgres")] = "sha256:first"
	e.mu.Unlock()
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(e.built) != 0 {
		t.Errorf("built %v", e.built)
	}

	unlock, err = first.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for the lock ended with %v", err)
	}
}

func TestDebianFlavourNeedsTheEnginesArchitecture(t *testing.T) {
	e := newEngine()
	e.arch = "riscv64"
	b, _ := builder(t, e)
	_, err := b.Build(t.Context(), plan.FlavourDebian, "postgres")
	if err == nil || !strings.Contains(said.Err(err), "riscv64") && runtime.GOOS == "linux" || !strings.Contains(said.Err(err), "published flavour") {
		t.Errorf("the error is %v", err)
	}
	if err != nil && strings.Contains(said.Err(err), "\n") {
		t.Errorf("the error has more than one line: %v", err)
	}
}

// localEngine has the architecture of the machine that runs the test.
func localEngine(t *testing.T) *fakeEngine {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("what is made on the driver's machine is made on Linux")
	}
	e := newEngine()
	e.arch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return e
}

// program puts a shell script of that name into a folder that becomes the PATH.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for n, s := range scripts {
		write(t, dir, n, "#!/bin/sh\n"+s, 0o755)
	}
	for _, n := range []string{"sh", "cat", "mkdir", "cp", "rm"} {
		if p, err := exec.LookPath(n); err == nil {
			if err := os.Symlink(p, filepath.Join(dir, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("HOME", dir)
}

func TestBootstrap(t *testing.T) {
	e := localEngine(t)
	programs(t, map[string]string{"mmdebstrap": "echo I: working >&2; echo a tar of $4\n"})
	b, events := builder(t, e)
	if _, err := b.Build(t.Context(), plan.FlavourDebian, "postgres"); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, ev := range *events {
		if ev.Image == "base" && ev.Kind == Printed {
			lines = append(lines, ev.Line)
		}
	}
	if !slices.Contains(lines, "I: working") {
		t.Errorf("the lines are %q", lines)
	}
	for tag, o := range e.imported {
		if !slices.Contains(o.Changes, `LABEL io.percore="1"`) {
			t.Errorf("%s is imported with %q", tag, o.Changes)
		}
	}
	if left, err := filepath.Glob(filepath.Join(b.Cache, "base-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestBootstrapErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts map[string]string
		want    []string
	}{
		{"missing", nil, []string{"mmdebstrap is missing", "apt-get install mmdebstrap"}},
		{"failing", map[string]string{"mmdebstrap": "echo E: no mirror >&2; exit 25\n"}, []string{"could not make a Debian trixie root (exit status 25)", "a Debian mirror is in reach", "\n    E: no mirror"}},
		{"full disk", map[string]string{"mmdebstrap": "echo E: write: No space left on device >&2; exit 1\n"}, []string{"the disk is full"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := localEngine(t)
			programs(t, c.scripts)
			b, _ := builder(t, e)
			_, err := b.Build(t.Context(), plan.FlavourDebian, "postgres")
			for _, w := range c.want {
				if err == nil || !strings.Contains(said.Err(err), w) {
					t.Errorf("the error is %v, without %q", err, w)
				}
			}
			if len(e.has) != 0 {
				t.Errorf("the engine has %v", e.has)
			}
		})
	}
}

func TestCargoErrors(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts map[string]string
		want    []string
	}{
		{"missing", nil, []string{"cargo is missing", "install Rust 1.88 or newer"}},
		{"no compiler", map[string]string{"cargo": "exit 0\n"}, []string{"rustc is not"}},
		{"old", map[string]string{"cargo": "exit 0\n", "rustc": "echo rustc 1.85.1\n"}, []string{`"rustc 1.85.1"`, "needs 1.88", "rustup update"}},
		{"failing", map[string]string{"cargo": "echo error: could not compile >&2; exit 101\n", "rustc": "echo rustc 1.95.0\n"}, []string{"could not compile oha 1.15.0 (exit status 101)", "\n    error: could not compile"}},
		{
			"another version",
			map[string]string{"cargo": `while [ "$1" != --root ]; do shift; done; mkdir -p "$2/bin"; printf '#!/bin/sh\necho oha 1.2.3\n' >"$2/bin/oha"; /bin/chmod +x "$2/bin/oha"` + "\n", "rustc": "echo rustc 1.95.0\n"},
			[]string{"says that it is version 1.2.3, not 1.15.0"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := localEngine(t)
			programs(t, c.scripts)
			b, _ := builder(t, e)
			_, err := b.Build(t.Context(), plan.FlavourDebian, "oha")
			for _, w := range c.want {
				if err == nil || !strings.Contains(said.Err(err), w) {
					t.Errorf("the error is %v, without %q", err, w)
				}
			}
		})
	}
}

func TestCLibraryOfAProgram(t *testing.T) {
	self, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("no program to look at")
	}
	if runtime.GOOS != "linux" {
		t.Skip("not an ELF program")
	}
	defer func(v [2]int) { glibcOfSuite = v }(glibcOfSuite)
	glibcOfSuite = [2]int{99, 0}
	if err := runsOnSuite(self); err != nil {
		t.Errorf("on a newer C library: %v", err)
	}
	glibcOfSuite = [2]int{1, 0}
	if err := runsOnSuite(self); err == nil || !strings.Contains(said.Err(err), "an older C library") {
		t.Errorf("on an older C library: %v", err)
	}
	if err := runsOnSuite(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a program that is not there is fine")
	}
}

func TestExtraAuthorities(t *testing.T) {
	pem := func(s string) string {
		return "-----BEGIN CERTIFICATE-----\n" + s + "\n-----END CERTIFICATE-----\n"
	}
	dir := t.TempDir()
	write(t, dir, "distribution/mozilla/a.crt", pem("AAAA"), 0o644)
	write(t, dir, "bundle.crt", "# comment\n"+pem("AAAA")+pem("QUFB"), 0o644)
	got := string(extraAuthorities(filepath.Join(dir, "bundle.crt"), filepath.Join(dir, "distribution")))
	if got != pem("QUFB") {
		t.Errorf("the extra authorities are %q", got)
	}
	if got := extraAuthorities(filepath.Join(dir, "none"), filepath.Join(dir, "distribution")); len(got) != 0 {
		t.Errorf("without a bundle there are %q", got)
	}
	// Without the distribution's own there is no telling which are extra.
	if got := extraAuthorities(filepath.Join(dir, "bundle.crt"), filepath.Join(dir, "none")); len(got) != 0 {
		t.Errorf("without a distribution there are %q", got)
	}
}

func TestChoose(t *testing.T) {
	answers := func(context.Context, string) error { return nil }
	for _, c := range []struct {
		name     string
		wish     plan.Flavour
		registry func(context.Context, string) error
		prepare  func(*fakeEngine, *Builder)
		want     plan.Flavour
		reason   string
	}{
		{"asked for", plan.FlavourPublished, nil, nil, plan.FlavourPublished, "asked for"},
		{"registry answers", plan.FlavourAuto, answers, nil, plan.FlavourPublished, "the registry answers"},
		{"no wish", "", answers, nil, plan.FlavourPublished, "the registry answers"},
		{"no registry", plan.FlavourAuto, nil, nil, plan.FlavourDebian, "no such host"},
		{"one image is gone", plan.FlavourAuto, func(_ context.Context, n string) error {
			if n == officialFrankenPHP {
				return errors.New("manifest unknown\nsecond line")
			}
			return nil
		}, nil, plan.FlavourDebian, "dunglas/frankenphp:1.12.7-php8.5.10-trixie: manifest unknown)"},
		{"debian images are there", plan.FlavourAuto, answers, func(e *fakeEngine, b *Builder) {
			plan, err := b.Plan(context.Background(), plan.FlavourDebian)
			if err != nil {
				panic(err)
			}
			for _, n := range finals {
				e.has[plan.Tag(n)] = "sha256:x"
			}
		}, plan.FlavourDebian, "on the engine already"},
		{"official images are there", plan.FlavourAuto, nil, func(e *fakeEngine, b *Builder) {
			for _, n := range []string{officialBase, officialComposer, officialFrankenPHP, officialGolang, officialPHP, officialPostgres, officialRust} {
				e.has[n] = "sha256:x"
			}
		}, plan.FlavourPublished, "the registry answers"},
		{"a stand-in under an official name", plan.FlavourAuto, nil, func(e *fakeEngine, b *Builder) {
			for _, n := range []string{officialBase, officialComposer, officialFrankenPHP, officialGolang, officialPHP, officialPostgres, officialRust} {
				e.has[n] = "sha256:x"
			}
			e.labels[officialGolang] = map[string]string{LabelOwner: "1"}
		}, plan.FlavourDebian, officialGolang},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine()
			if c.registry != nil {
				e.registry = c.registry
			}
			b, _ := builder(t, e)
			if c.prepare != nil {
				c.prepare(e, b)
			}
			got, err := b.Choose(t.Context(), c.wish)
			if err != nil {
				t.Fatal(err)
			}
			if got.Flavour != c.want || !strings.Contains(got.Reason, c.reason) || strings.Contains(got.Reason, "\n") {
				t.Errorf("chose %s because %s", got.Flavour, got.Reason)
			}
		})
	}
	b, _ := builder(t, newEngine())
	if _, err := b.Choose(t.Context(), "alpine"); err == nil {
		t.Error("the flavour alpine was chosen")
	}
}

func TestParseVersions(t *testing.T) {
	got, err := parseVersions(strings.NewReader("php=8.2.32\n\njwt-library=lcobucci/jwt 5.5.0\n"))
	if err != nil || got["php"] != "8.2.32" || got["jwt-library"] != "lcobucci/jwt 5.5.0" || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "php", "=8", "php=", "a=1\na=2", strings.Repeat("x", 1<<17)} {
		if got, err := parseVersions(strings.NewReader(bad)); err == nil {
			t.Errorf("%.20q is %v", bad, got)
		}
	}
}

func FuzzParseVersions(f *testing.F) {
	f.Add("go=1.27.1\npgx=5.11.0\n")
	f.Add("a=b=c\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseVersions(strings.NewReader(text))
		if err == nil && len(got) == 0 {
			t.Error("neither versions nor an error")
		}
		for n, v := range got {
			if n == "" || v == "" || strings.ContainsAny(n+v, "\n") {
				t.Errorf("%q has the version %q", n, v)
			}
		}
	})
}

// The image tools compiles guest without a module proxy and from the folders that
// its recipe names: they have to be all that it needs besides the standard library.
func TestToolsHoldsWhatGuestNeeds(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/guest")
	cmd.Dir = project(t)
	cmd.Env = append(os.Environ(), "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	plan, err := resolve(recipesOf(t), plan.FlavourDebian, "x86_64", "tools")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, f := range plan.Items[len(plan.Items)-1].files {
		held[filepath.Dir(f.name)] = true
	}
	for _, p := range strings.Fields(string(out)) {
		dir, ours := strings.CutPrefix(p, "github.com/percore/percore/")
		if !ours || !held[dir] {
			t.Errorf("guest needs %s, which is not in the build context of tools", p)
		}
	}
	if len(strings.Fields(string(out))) == 0 {
		t.Error(fmt.Sprint("go list found nothing: ", string(out)))
	}
}

// TestHostNetwork builds on an engine without a bridge, as hosts of a lab may
// have it.
func TestHostNetwork(t *testing.T) {
	for host, want := range map[bool]string{false: "", true: "host"} {
		e := newEngine()
		b := Builder{Engine: e, Recipes: recipesOf(t), Names: finals, Cache: t.TempDir(), HostNetwork: host}
		if _, err := b.Build(t.Context(), plan.FlavourPublished, "tools"); err != nil {
			t.Fatal(err)
		}
		if len(e.options) == 0 {
			t.Error("nothing was built")
		}
		for tag, o := range e.options {
			if o.NetworkMode != want {
				t.Errorf("%s was built on network %q, want %q", tag, o.NetworkMode, want)
			}
		}
	}
}
