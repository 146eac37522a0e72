//go:build integration

package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// docker connects to the engine; without one the test fails.
func docker(t *testing.T) *client.Client {
	t.Helper()
	e, err := engine.Connect(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.API()
}

// logged logs what a build does and how long it took.
func logged(t *testing.T) func(Event) {
	return func(e Event) {
		switch e.Kind {
		case Started:
			t.Logf("building %s (%d of %d), about %s", e.Tag, e.Index, e.Count, e.Estimate)
		case Finished:
			t.Logf("built %s in %s", e.Tag, e.Elapsed.Round(100*time.Millisecond))
		case Waiting:
			t.Log(e.Line)
		}
	}
}

var number = `[0-9]+(\.[0-9]+)+`

// versionsOf is what each image has to say of itself.
var versionsOf = map[string]map[string]string{
	"go":         {"go": regexp.QuoteMeta(goVersion), "pgx": number, "golang-jwt": number},
	"php-fpm":    {"php": number, "php-threads": "nts", "jwt-library": `[a-z]+/[a-z-]+ ` + number, "nginx": number},
	"frankenphp": {"php": number, "php-threads": "zts", "jwt-library": `[a-z]+/[a-z-]+ ` + number, "frankenphp": `1\.12\.7`},
	"postgres":   {"postgresql": `17\.[0-9]+`},
	"tools":      {"oha": regexp.QuoteMeta(ohaVersion), "nginx": number, "socat": number, "iperf3": number},
}

func checkVersions(t *testing.T, api *client.Client, built map[string]Image) {
	t.Helper()
	for _, name := range finals {
		im, ok := built[name]
		if !ok || im.ID == "" {
			t.Errorf("there is no image %s", name)
			continue
		}
		got, err := Versions(t.Context(), api, im.Tag)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s %v", im.Tag, got)
		for key, want := range versionsOf[name] {
			if !regexp.MustCompile("^" + want + "$").MatchString(got[key]) {
				t.Errorf("%s: %s is %q", im.Tag, key, got[key])
			}
		}
		res, err := api.ImageInspect(t.Context(), im.Tag)
		if err != nil {
			t.Error(err)
			continue
		}
		if l := res.Config.Labels; l[LabelOwner] != "1" || l[LabelKind] != "image" || l[LabelImage] != name {
			t.Errorf("%s has the labels %v", im.Tag, l)
		}
		if res.Config.Healthcheck != nil && len(res.Config.Healthcheck.Test) > 0 && res.Config.Healthcheck.Test[0] != "NONE" {
			t.Errorf("%s runs a health check beside the measurement: %v", im.Tag, res.Config.Healthcheck.Test)
		}
	}
}

func TestDebianFlavour(t *testing.T) {
	api := docker(t)
	b := &Builder{Engine: api, Recipes: recipesOf(t), Names: finals, Progress: logged(t)}
	builds, err := b.Plan(t.Context(), plan.FlavourDebian)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d images are missing, about %s", len(builds.Missing()), len(builds.Items), builds.Estimate())
	built, err := b.Build(t.Context(), plan.FlavourDebian)
	if err != nil {
		t.Fatal(err)
	}
	checkVersions(t, api, built)

	b.Progress = func(e Event) {
		if e.Kind == Started {
			t.Errorf("a second build makes %s", e.Tag)
		}
	}
	again, err := b.Build(t.Context(), plan.FlavourDebian)
	if err != nil {
		t.Fatal(err)
	}
	for name, im := range built {
		if again[name] != im {
			t.Errorf("the second time %s is %v, not %v", name, again[name], im)
		}
	}
}

// A build that is stopped leaves no container behind, and says that it was
// stopped rather than that it failed.
func TestStoppedBuildLeavesNothing(t *testing.T) {
	api := docker(t)
	real := &Builder{Engine: api, Recipes: recipesOf(t), Names: finals, Progress: logged(t)}
	if _, err := real.Build(t.Context(), plan.FlavourDebian, "base"); err != nil {
		t.Fatal(err)
	}
	builds, err := real.Plan(t.Context(), plan.FlavourDebian, "base")
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("600.%d", os.Getpid())
	text := "ARG BASE\nFROM ${BASE}\nRUN sleep " + mark + "\n"
	it := Item{
		Recipe:  Recipe{Name: "stopped", Method: Dockerfile},
		Tag:     "percore/stopped:test-" + mark,
		files:   []file{{name: dockerfileName, data: []byte(text)}},
		parents: map[string]string{"BASE": builds.Tag("base")},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := &Builder{Engine: api, Progress: func(e Event) {
		if e.Kind == Ticked && e.Step == 3 {
			cancel()
		}
	}}
	_, err = b.one(ctx, plan.FlavourDebian, it, 1, 1)
	if !errors.Is(err, context.Canceled) || !strings.Contains(said.Err(err), "stopped") {
		t.Fatalf("the build ended with %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		res, err := api.ContainerList(t.Context(), client.ContainerListOptions{All: true})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, c := range res.Items {
			if strings.Contains(c.Command, mark) {
				left = append(left, c.ID)
			}
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the containers %v are left behind", left)
		}
	}
}

func TestVersionsOfAnImageThatIsNotThere(t *testing.T) {
	if _, err := Versions(t.Context(), docker(t), "percore/none:none"); err == nil || !strings.Contains(said.Err(err), "percore/none:none") {
		t.Errorf("the error is %v", err)
	}
}

// Each official image as the published recipes see it, made from the debian
// flavour's. What only the official image has (its installer of extensions,
// Composer, a newer Rust) is a script that leaves behind what the real one
// would, so that every line of the published recipes runs.
func officials(d Plan) map[string]string {
	from := func(name string) string { return "FROM " + d.Tag(name) }
	script := func(path, text string) string {
		return fmt.Sprintf("RUN mkdir -p $(dirname %s) && printf '#!/bin/sh\\nset -eu\\n%s' >%s && chmod 0755 %s", path, text, path, path)
	}
	return map[string]string{
		officialBase:     from("base") + "\nRUN dpkg --purge ca-certificates openssl", // which the official one lacks
		officialGolang:   from("golang"),
		officialPostgres: from("postgres-base"),
		officialPHP: from("php-fpm-base") + "\n" +
			script("/usr/local/bin/docker-php-ext-install", `test "$*" = "-j$(nproc) pdo_pgsql"\n`) + "\nSTOPSIGNAL SIGQUIT\nENTRYPOINT [\"false\"]",
		officialFrankenPHP: from("frankenphp-base") + "\n" +
			script("/usr/local/bin/install-php-extensions", `test "$*" = pdo_pgsql\n`) + "\n" +
			script("/usr/local/bin/frankenphp", `test "$1" = version\necho "FrankenPHP v1.12.7 PHP 8.5.10 Caddy v2.10.2 h1:x="\n`) +
			"\nRUN rm /usr/local/bin/frankenphp-server /usr/local/share/percore/versions\nHEALTHCHECK CMD false\nENTRYPOINT [\"false\"]",
		officialRust: "FROM " + d.Tag("oha") + " AS oha\n" + from("base") + "\nCOPY --from=oha /usr/local/bin/oha /opt/oha\n" +
			script("/usr/local/bin/cargo", `test "$1 $2 $3 $4 $5 $6" = "install oha --version `+ohaVersion+` --locked --root"\nmkdir -p "$7/bin"\ncp /opt/oha "$7/bin/oha"\n`),
		officialComposer: from("base") + "\n" +
			script("/usr/local/bin/composer", `test -f composer.json\ncase $1 in\ninstall) mkdir -p "$COMPOSER_VENDOR_DIR/firebase/php-jwt/src" && touch "$COMPOSER_VENDOR_DIR/firebase/php-jwt/src/JWT.php" ;;\nshow) test "$2 $3" = "firebase/php-jwt `+jwtVersion+`" ;;\nesac\n`),
	}
}

func TestPublishedRecipes(t *testing.T) {
	api := docker(t)
	real := &Builder{Engine: api, Recipes: recipesOf(t), Names: finals, Progress: logged(t)}
	if _, err := real.Build(t.Context(), plan.FlavourDebian); err != nil {
		t.Fatal(err)
	}
	// The published recipes need stand-ins that a run itself may have no more
	// use for.
	if _, err := real.Build(t.Context(), plan.FlavourDebian, "base", "golang", "postgres-base", "oha", "php-fpm-base", "frankenphp-base"); err != nil {
		t.Fatal(err)
	}
	d, err := real.Plan(t.Context(), plan.FlavourDebian)
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	t.Cleanup(func() {
		// In reverse: children before parents.
		for i := len(made) - 1; i >= 0; i-- {
			_, err := api.ImageRemove(context.WithoutCancel(t.Context()), made[i], client.ImageRemoveOptions{PruneChildren: true})
			if err != nil && !errdefs.IsNotFound(err) {
				t.Errorf("removing %s: %v", made[i], err)
			}
		}
	})
	for name, text := range officials(d) {
		if res, err := api.ImageInspect(t.Context(), name); err == nil && (res.Config == nil || res.Config.Labels[LabelOwner] == "") {
			t.Logf("%s is on the engine: it is used as it is", name)
			continue
		}
		made = append(made, name)
		if source, tail, _ := strings.Cut(strings.TrimPrefix(text, "FROM "), "\n"); tail == "" {
			// The same image under another name: the engine's build cache knows it.
			if _, err := api.ImageTag(t.Context(), client.ImageTagOptions{Source: source, Target: name}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		buildText(t, api, name, text)
	}

	b := &Builder{Engine: api, Recipes: recipesOf(t), Names: finals, Progress: logged(t), salt: " test " + fmt.Sprint(os.Getpid())}
	builds, err := b.Plan(t.Context(), plan.FlavourPublished)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range builds.Items {
		made = append(made, it.Tag)
	}
	built, err := b.Build(t.Context(), plan.FlavourPublished)
	if err != nil {
		t.Fatal(err)
	}
	checkVersions(t, api, built)
	for _, name := range []string{"php-fpm", "frankenphp"} {
		res, err := api.ImageInspect(t.Context(), built[name].Tag)
		if err != nil {
			t.Fatal(err)
		}
		c := res.Config
		if c.StopSignal != "SIGTERM" || len(c.Entrypoint) != 0 || len(c.Cmd) != 1 {
			t.Errorf("%s: stop signal %q, entry point %q, command %q", name, c.StopSignal, c.Entrypoint, c.Cmd)
		}
		var firebase bool
		for _, e := range c.Env {
			firebase = firebase || e == "PERCORE_JWT_LIBRARY=firebase"
		}
		if !firebase {
			t.Errorf("%s: the environment is %q", name, c.Env)
		}
	}
}

// buildText builds an image from a Dockerfile without a context.
func buildText(t *testing.T, api *client.Client, tag, text string) {
	t.Helper()
	data, err := archive([]file{{name: dockerfileName, data: []byte(text + "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := api.ImageBuild(t.Context(), bytes.NewReader(data), client.ImageBuildOptions{
		Version: build.BuilderV1, Tags: []string{tag}, Remove: true, ForceRemove: true,
		Labels: map[string]string{LabelOwner: "1", LabelKind: "image", LabelImage: "test"},
	})
	if err != nil {
		t.Fatalf("building a stand-in for %s: %v", tag, err)
	}
	defer res.Body.Close()
	var o output
	if err := o.follow(res.Body); err != nil {
		t.Fatalf("building a stand-in for %s: %v\n%s", tag, err, strings.Join(o.tail, "\n"))
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatalf("building a stand-in for %s: %v", tag, err)
	}
}
