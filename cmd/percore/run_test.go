package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/said"
)

// withoutEngine makes sure that no engine answers.
func withoutEngine(t *testing.T) (root string) {
	t.Helper()
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestBadRunFlags: each is refused in one sentence, before anything is asked.
func TestBadRunFlags(t *testing.T) {
	root := withoutEngine(t)
	file := filepath.Join(root, "README.md")
	for want, args := range map[string][]string{
		"aws-graviton, aws-x86, hosts, m4pro, small":           {"doctor", "--profile", "nope"},
		`--candidates "," names none`:                          {"run", "--dry-run", "--candidates", ","},
		`--scenarios " " names none`:                           {"run", "--dry-run", "--scenarios", " "},
		"--candidates names go twice":                          {"run", "--dry-run", "--candidates", "go,php-fpm,go"},
		`"--seed" flag; give it a whole number of 0 or more`:   {"run", "--seed", "-1"},
		`"--rate" flag: give it a number`:                      {"plan", "published", "--rate", "many"},
		"--results " + file + " is not a folder":               {"ls", "--results", file},
		"--results " + file + "/x lies below a file":           {"run", "--dry-run", "--results", file + "/x"},
		"--results /dev/null/x lies below a file; name":        {"run", "--dry-run", "--results", "/dev/null/x"},
		"--results " + file + " is not a folder; name one, or": {"report", "latest", "--results", file},
	} {
		code, out, errs := call(append([]string{"--root", root}, args...)...)
		if code != fail.CodeInput || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) || strings.Contains(errs, "strconv") {
			t.Errorf("%v: exit code %d, %q, want %q", args, code, errs, want)
		}
	}
}

// TestPlanOfAResumedRun counts what is left.
func TestPlanOfAResumedRun(t *testing.T) {
	root := withoutEngine(t)
	preset, err := plan.FindPreset(root, "smoke")
	if err != nil {
		t.Fatal(err)
	}
	suite, err := plan.ReadSuite(root)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := plan.FindProfile(root, "small")
	if err != nil {
		t.Fatal(err)
	}
	if profile, err = profile.Resolve(plan.Machine{CPUs: runtime.NumCPU(), MemoryBytes: 8 << 30}); err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	st, err := store.Create(results, store.Run{
		ID: "20261130-abc", Started: time.Now(), Seed: 42, ProfileSource: "small", PresetSource: "smoke",
		Suite: suite, Preset: preset, Profile: profile, Candidates: []string{"go", "php-fpm", "frankenphp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	dryRun := func(args ...string) (int, string, string) {
		return call(append([]string{"--root", root, "--results", results, "run", "--dry-run", "--resume", "20261130-abc"}, args...)...)
	}
	code, whole, errs := dryRun()
	if code != 0 || strings.Contains(whole, "done") || !strings.Contains(whole, "seed 42") {
		t.Fatalf("exit code %d, %s\n%s", code, errs, whole)
	}
	blocks := plan.LayOut(suite, preset, 42).Blocks
	windows := append(blocks[0].Windows, blocks[1].Windows[0])
	for _, w := range windows {
		for attempt := 1; attempt <= preset.Allowed(); attempt++ { // judged often enough
			if err := st.Append(store.Event{Type: store.EventWindow, Window: &store.WindowResult{Window: w, Attempt: attempt}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	code, left, errs := dryRun()
	if code != 0 || !strings.Contains(left, "repetition 1, done\n") || strings.Count(left, "/s, done\n")+strings.Count(left, "carry, done\n") != 1 ||
		!strings.Contains(left, fmt.Sprintf("\n%d of ", len(windows))) {
		t.Errorf("exit code %d, %s\n%s", code, errs, left)
	}
	if code, out, errs := dryRun("--seed", "99"); code != fail.CodeInput || out != "" || !strings.Contains(errs, "has seed 42, and --seed asks for 99") {
		t.Errorf("another seed: exit code %d, %s", code, errs)
	}
	if code, _, errs := dryRun("--seed", "42"); code != 0 {
		t.Errorf("the same seed: exit code %d, %s", code, errs)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	left := errors.New("removing container x: the engine is gone")
	if err := interrupted(ctx, left); err != left {
		t.Errorf("without Ctrl-C: %v", err)
	}
	cancel()
	stopped := fmt.Errorf("block go: %w", fmt.Errorf("running oha: %w", context.Canceled))
	for _, err := range []error{context.Canceled, stopped, errors.Join(stopped, nil, fmt.Errorf("x: %w", errors.Join(context.Canceled, stopped)))} {
		if got := interrupted(ctx, err); got.Error() != "interrupted; containers and network are removed" {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	for _, err := range []error{left, errors.Join(stopped, left), fmt.Errorf("block go: %w", errors.Join(context.Canceled, left))} {
		got := interrupted(ctx, err)
		if !errors.Is(got, left) || !strings.Contains(said.Err(got), "percore clean") || strings.Contains(got.Error(), "network are removed") {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if got := interrupted(ctx, errors.Join(stopped, left)); strings.Contains(got.Error(), "oha") {
		t.Errorf("what was canceled is told: %v", got)
	}
}

func TestShellLine(t *testing.T) {
	got := shellLine([]string{"bin/percore", "run", "--results", "/my runs/it's", "--resume", "2026-a"})
	if want := `bin/percore run --results '/my runs/it'\''s' --resume 2026-a`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
