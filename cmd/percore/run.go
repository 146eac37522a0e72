package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
	"github.com/percore/percore/internal/run"
)

// runFlags are the flags of run and verify.
type runFlags struct {
	suite                         string
	profile, preset, flavour      string
	candidates, scenarios, phases string
	seed                          uint64
	resume                        string
	dryRun                        bool
}

// common are the flags that choose the lab and what runs on it.
func (f *runFlags) common(cmd *cobra.Command, profile, labs string) {
	flags := cmd.Flags()
	flags.StringVar(&f.suite, "suite", "", "the `SUITE` to measure, a name or the path of its folder (default: "+plan.DefaultSuite+")")
	flags.StringVar(&f.profile, "profile", profile, "the lab: "+labs)
	flags.StringVar(&f.flavour, "flavour", "", "where images come from: auto, published or debian (default: as the profile says)")
	flags.StringVar(&f.candidates, "candidates", "", "candidates, separated by `commas` (default: all)")
}

// measured are the flags that choose what is measured.
func (f *runFlags) measured(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.preset, "preset", "auto", "what is measured and for how long: auto, smoke, quick, full or a `FILE`")
	flags.StringVar(&f.scenarios, "scenarios", "", "scenarios, separated by `commas` (default: all)")
	flags.StringVar(&f.phases, "phases", "", "phases, separated by `commas` (default: all)")
	flags.Var((*whole)(&f.seed), "seed", "seed of the candidates' order (default: drawn and recorded)")
}

// carriesOn is the flag of the commands that begin a run, or carry one on.
func (f *runFlags) carriesOn(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.resume, "resume", "", "carry on this `RUN` where it stopped: an id, the beginning of one, a path, or latest")
}

// localLabs are the labs on this machine's engine.
const localLabs = "auto, m4pro, small or a `FILE`"

// options turns the flags into a session's options.
func (f *runFlags) options(a *app) (run.Options, error) {
	if err := a.findRoot(); err != nil {
		return run.Options{}, err
	}
	switch fl := plan.Flavour(f.flavour); fl {
	case "", plan.FlavourAuto, plan.FlavourPublished, plan.FlavourDebian:
	default:
		return run.Options{}, fail.Input("unknown flavour %q", f.flavour).Try("take auto, published or debian")
	}
	var sel plan.Selection
	for _, c := range []struct {
		flag, value string
		names       *[]string
	}{{"candidates", f.candidates, &sel.Candidates}, {"scenarios", f.scenarios, &sel.Scenarios}, {"phases", f.phases, &sel.Phases}} {
		var err error
		if *c.names, err = selected(c.flag, c.value); err != nil {
			return run.Options{}, err
		}
	}
	return run.Options{
		Root: a.root, State: a.state, Results: a.results, Version: percoreVersion(), Suite: f.suite,
		Profile: f.profile, Preset: f.preset, Flavour: plan.Flavour(f.flavour), Seed: f.seed,
		Selection: sel,
	}, nil
}

// list splits a flag at commas and blanks.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// selected are the names that a flag chooses, each once; none leaves it at all.
func selected(flag, value string) ([]string, error) {
	names := list(value)
	if value != "" && len(names) == 0 {
		return nil, fail.Input("--%s %q names none", flag, value).Try("give names separated by commas, or leave it out to take all")
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, fail.Input("--%s names %s twice", flag, n).Try("name it once")
		}
	}
	return names, nil
}

func newRunCmd(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "measure the candidates on this machine's Docker",
		Long: "Run builds the images, seeds the database, checks every candidate against the\n" +
			"contract, measures it, prints the tables and names the results folder.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dryRun {
				return f.plan(cmd.Context(), a)
			}
			again := []string{os.Args[0], "run"} // before the folders are filled in
			if a.root != "" {
				again = append(again, "--root", a.root)
			}
			if a.results != "" {
				again = append(again, "--results", a.results)
			}
			return f.run(cmd.Context(), a, append(again, "--resume"))
		},
	}
	f.common(cmd, "auto", localLabs)
	f.measured(cmd)
	f.carriesOn(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print every window, its length and the total time, and measure nothing")
	return cmd
}

// plan prints what would be measured.
func (f *runFlags) plan(ctx context.Context, a *app) error {
	o, err := f.options(a)
	if err != nil {
		return err
	}
	var st *store.Store
	if f.resume != "" {
		if st, err = f.stored(a); err != nil {
			return err
		}
		if err := run.CheckAsked(o, st.Run()); err != nil {
			return err
		}
		o = run.ResumeOptions(o, st.Run())
	}
	p, err := run.Prepare(ctx, o, true)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Engine == nil {
		fmt.Fprintln(a.stdout, "no Docker Engine answers: the plan is for the CPUs of this machine; percore doctor says more")
	}
	done := plan.Undone
	if st != nil {
		done = func(w plan.Window) bool { return protocol.Finished(st.Attempts(w), p.Preset.Allowed()) }
	}
	for _, line := range p.Describe(done) {
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}

// stored opens the run to be resumed.
func (f *runFlags) stored(a *app) (*store.Store, error) {
	dir, err := store.Find(a.results, f.resume)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if seed := st.Run().Seed; f.seed != 0 && f.seed != seed {
		return nil, fail.Input("run %s has seed %d, and --seed asks for %d", st.Run().ID, seed, f.seed).Try("leave out --seed to carry it on, or start a new run")
	}
	return st, nil
}

// run measures. The command again, with the id of the run behind it, is the one
// that carries on.
func (f *runFlags) run(ctx context.Context, a *app, again []string) error {
	o, err := f.options(a)
	if err != nil {
		return err
	}
	var st *store.Store
	if f.resume != "" {
		if st, err = f.stored(a); err != nil {
			return err
		}
		defer st.Close()
		if err := run.CheckAsked(o, st.Run()); err != nil {
			return err
		}
		o = run.ResumeOptions(o, st.Run())
	}
	p, err := run.Prepare(ctx, o, false)
	if err != nil {
		return err
	}
	defer p.Close()
	c := a.console()
	defer c.Close()
	c.Printf("profile %s, preset %s: %d windows in %d blocks, %s of measuring; Docker at %s has %d CPUs and %.1f GiB",
		p.Profile.Name, p.Preset.Name, p.List.Windows(), len(p.List.Blocks), p.List.WindowTime(plan.Undone), p.Engine.Host(), p.Info.CPUs, float64(p.Info.Memory)/(1<<30))

	var dir string
	if st != nil {
		dir = st.Dir()
		err = run.Resume(ctx, p, st, c)
		err = errors.Join(err, st.Close())
	} else {
		dir, err = run.Run(ctx, p, c)
	}
	c.Close()
	if dir == "" {
		return interrupted(ctx, err)
	}
	id := filepath.Base(dir)
	hint := shellLine(append(again, id))
	if filepath.Clean(again[0]) == filepath.Join("bin", "percore") && len(again) == 3 {
		hint += ", or make local-run RESUME=" + id // the checkout is the working directory
	}
	return a.finish(ctx, dir, err, hint)
}

// shellLine writes words as a shell reads them.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
		}
		quoted[i] = w
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// finish shows what there is of a run, however it ended, and the command that
// goes on; empty where none can.
func (a *app) finish(ctx context.Context, dir string, err error, resume string) error {
	if reopened, openErr := store.Open(dir); openErr == nil && len(reopened.History().Windows()) > 0 {
		fmt.Fprintln(a.stdout)
		if reportErr := a.printReport(dir); reportErr != nil {
			err = errors.Join(err, reportErr)
		}
	}
	fmt.Fprintf(a.stdout, "\nresults: %s\n", dir)
	if err != nil {
		if resume != "" && !fail.IsInput(err) {
			fmt.Fprintf(a.stdout, "what was measured is kept; to carry on: %s\n", resume)
		}
		return interrupted(ctx, err)
	}
	return nil
}

// interrupted replaces the errors that follow from Ctrl-C by one sentence. What
// went wrong besides is kept: containers may be left, or an event not written.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	if rest := uncanceled(err); rest != nil {
		return fail.Work("interrupted; cleaning up failed: %w", rest).Try("`percore clean` removes what is left on the engine")
	}
	return errors.New("interrupted; containers and network are removed")
}

// uncanceled takes out of an error what only says that the work was canceled.
func uncanceled(err error) error {
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		var rest []error
		for _, e := range x.Unwrap() {
			rest = append(rest, uncanceled(e))
		}
		return errors.Join(rest...)
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			if uncanceled(inner) == nil {
				return nil
			}
			return err
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func newVerifyCmd(a *app) *cobra.Command {
	f := &runFlags{preset: "smoke"}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "check the candidates against the contract",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(a)
			if err != nil {
				return err
			}
			p, err := run.Prepare(cmd.Context(), o, false)
			if err != nil {
				return err
			}
			defer p.Close()
			c := a.console()
			defer c.Close()
			return interrupted(cmd.Context(), run.Verify(cmd.Context(), p, c))
		},
	}
	f.common(cmd, "auto", localLabs)
	return cmd
}
