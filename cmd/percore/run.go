package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/fail"
	"github.com/percore/percore/internal/profile"
	"github.com/percore/percore/internal/session"
	"github.com/percore/percore/internal/store"
)

// runFlags are the flags of run and verify.
type runFlags struct {
	profile, preset, flavour      string
	candidates, scenarios, phases string
	seed                          uint64
	resume                        string
	dryRun                        bool
}

// common are the flags that choose the lab and what runs on it.
func (f *runFlags) common(cmd *cobra.Command, profile, labs string) {
	flags := cmd.Flags()
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
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the candidates' order (default: drawn and recorded)")
}

// localLabs are the labs on this machine's engine.
const localLabs = "auto, m4pro, small or a `FILE`"

// options turns the flags into a session's options.
func (f *runFlags) options(a *app) (session.Options, error) {
	if err := a.findRoot(); err != nil {
		return session.Options{}, err
	}
	switch fl := profile.Flavour(f.flavour); fl {
	case "", profile.FlavourAuto, profile.FlavourPublished, profile.FlavourDebian:
	default:
		return session.Options{}, fail.Input("there is no flavour %q; take auto, published or debian", f.flavour)
	}
	return session.Options{
		Root: a.root, Results: a.results, Version: percoreVersion(),
		Profile: f.profile, Preset: f.preset, Flavour: profile.Flavour(f.flavour), Seed: f.seed,
		Selection: profile.Selection{Candidates: list(f.candidates), Scenarios: list(f.scenarios), Phases: list(f.phases)},
	}, nil
}

// list splits a flag at commas and blanks.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
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
			return f.run(cmd.Context(), a)
		},
	}
	f.common(cmd, "auto", localLabs)
	f.measured(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.resume, "resume", "", "carry on this `RUN` at its next unfinished window")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print every window, its length and the total time, and measure nothing")
	return cmd
}

// plan prints what would be measured.
func (f *runFlags) plan(ctx context.Context, a *app) error {
	o, err := f.options(a)
	if err != nil {
		return err
	}
	if f.resume != "" {
		st, err := f.stored(a)
		if err != nil {
			return err
		}
		o = session.ResumeOptions(o, st.Run())
	}
	p, err := session.Prepare(ctx, o, true)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Engine == nil {
		fmt.Fprintln(a.stdout, "no Docker Engine answers: the plan is for the CPUs of this machine; percore doctor says more")
	}
	for _, line := range p.Describe() {
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
	return store.Open(dir)
}

func (f *runFlags) run(ctx context.Context, a *app) error {
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
		o = session.ResumeOptions(o, st.Run())
	}
	p, err := session.Prepare(ctx, o, false)
	if err != nil {
		return err
	}
	defer p.Close()
	c := a.console()
	defer c.Close()
	c.Printf("profile %s, preset %s: %d windows in %d blocks, %s of measuring; Docker at %s has %d CPUs and %.1f GiB",
		p.Profile.Name, p.Preset.Name, p.Plan.Windows(), len(p.Plan.Blocks), p.Plan.WindowTime(), p.Engine.Host(), p.Info.CPUs, float64(p.Info.Memory)/(1<<30))

	var dir string
	if st != nil {
		dir = st.Dir()
		err = session.Resume(ctx, p, st, c)
		err = errors.Join(err, st.Close())
	} else {
		dir, err = session.Run(ctx, p, c)
	}
	c.Close()
	if dir == "" {
		return interrupted(ctx, err)
	}
	return a.finish(ctx, dir, err, "percore run --resume "+filepath.Base(dir))
}

// finish shows what there is of a run, however it ended, and the command that
// goes on.
func (a *app) finish(ctx context.Context, dir string, err error, resume string) error {
	if reopened, openErr := store.Open(dir); openErr == nil && len(reopened.History().Windows()) > 0 {
		fmt.Fprintln(a.stdout)
		if reportErr := a.printReport(dir); reportErr != nil {
			err = errors.Join(err, reportErr)
		}
	}
	fmt.Fprintf(a.stdout, "\nresults: %s\n", dir)
	if err != nil {
		if !fail.IsInput(err) {
			fmt.Fprintf(a.stdout, "what was measured is kept; to carry on: %s\n", resume)
		}
		return interrupted(ctx, err)
	}
	return nil
}

// interrupted replaces the errors that follow from Ctrl-C by one sentence.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && err != nil {
		return errors.New("interrupted; containers and network are removed")
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
			p, err := session.Prepare(cmd.Context(), o, false)
			if err != nil {
				return err
			}
			defer p.Close()
			c := a.console()
			defer c.Close()
			return interrupted(cmd.Context(), session.Verify(cmd.Context(), p, c))
		},
	}
	f.common(cmd, "auto", localLabs)
	return cmd
}
