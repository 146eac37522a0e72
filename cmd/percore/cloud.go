package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines"
	"github.com/percore/percore/internal/run/console"
)

// cloudFlags are the flags of the stages of a cloud run.
type cloudFlags struct {
	runFlags
	keep, yes, noInstall, force             bool
	maxCost                                 float64
	sshFrom, awsProfile, region, prices, tf string
}

func newCloudCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cloud",
		Short: "measure on machines of their own: three EC2 instances, or machines you have",
		Long: "Cloud measures with app, database and load generator on a machine each. `cloud run` does it\n" +
			"all: it makes the machines, prepares them, measures, reports, and destroys them again. Each\n" +
			"stage is also a command of its own on the same run, and can be repeated.",
		Example: "  percore cloud run --profile aws-graviton --preset quick --max-cost 2\n  percore cloud up --profile my-hosts.yaml && percore cloud prepare && percore cloud run --resume latest\n  percore cloud sweep --region eu-central-1",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCloudRunCmd(a), newCloudUpCmd(a),
		newCloudStageCmd(a, "prepare", "install Docker and set clocks, limits and governors on the machines", func(d *machines.Driver, ctx context.Context) error { return d.UpTo(ctx, "prepare") }),
		newCloudStageCmd(a, "collect", "fetch the hosts' logs, check the raw files against the hosts' digests and report", func(d *machines.Driver, ctx context.Context) error { return d.UpTo(ctx, "collect") }),
		newCloudStageCmd(a, "down", "destroy the machines; on machines of your own remove what is percore's", func(d *machines.Driver, ctx context.Context) error { return d.Down(ctx) }),
		newCloudStatusCmd(a), newCloudSSHCmd(a), newCloudSweepCmd(a),
	)
	return cmd
}

// begin are the flags that choose what a new run is.
func (f *cloudFlags) begin(cmd *cobra.Command) {
	f.carriesOn(cmd)
	f.common(cmd, "aws-graviton", "aws-graviton, aws-x86 or a `FILE` with a cloud section")
	f.measured(cmd)
	f.account(cmd, "the profile's, then that of your AWS configuration")
	flags := cmd.Flags()
	flags.BoolVar(&f.keep, "keep", false, "keep the machines after the run, until they expire")
	flags.Float64Var(&f.maxCost, "max-cost", 0, "refuse a run that would cost more than this many `dollars`, and stop it when it has")
	flags.StringVar(&f.sshFrom, "ssh-from", "", "`networks` that may reach the machines by ssh, separated by commas (default: this machine's public address)")
	f.tools(cmd)
}

// account are the flags that choose an AWS account, a region and its prices.
func (f *cloudFlags) account(cmd *cobra.Command, region string) {
	flags := cmd.Flags()
	flags.StringVar(&f.region, "region", "", "AWS `region` (default: "+region+")")
	flags.StringVar(&f.prices, "prices", "", "price table `FILE` in place of the price list")
	f.identity(cmd)
}

// identity is the flag that chooses AWS credentials.
func (f *cloudFlags) identity(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.awsProfile, "aws-profile", "", "`NAME` of a profile of your AWS configuration")
}

// tools are the flags of every stage.
func (f *cloudFlags) tools(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.alias(cmd)
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask before machines are made that cost money")
	flags.BoolVar(&f.noInstall, "no-install", false, "say what is missing instead of installing Terraform or Ansible")
	flags.StringVar(&f.tf, "terraform", "", "`PATH` of terraform or tofu (default: found, else installed in the user's cache)")
}

// alias is how a run was named before: --run.
func (f *cloudFlags) alias(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.resume, "run", "", "the `RUN`")
	if err := flags.MarkHidden("run"); err != nil {
		panic(err) // the flag is there
	}
}

// options turns the flags into a driver's options. The returned function
// closes the console.
func (f *cloudFlags) options(a *app, cmd *cobra.Command) (machines.Options, func(), error) {
	o, err := f.runFlags.options(a)
	if err != nil {
		return machines.Options{}, nil, err
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "percore")
	} // else nothing is cached, which is said where it is needed
	c := a.console()
	co := machines.Options{
		Options: o, Cache: cache,
		Keep: f.keep, MaxCostUSD: f.maxCost, SSHFrom: list(f.sshFrom), AWSProfile: f.awsProfile, Region: f.region, Prices: f.prices,
		NoInstall: f.noInstall || os.Getenv("NO_INSTALL") != "" && os.Getenv("NO_INSTALL") != "0",
		Console:   c, Yes: f.yes, Terraform: f.tf, Out: io.Discard, Force: f.force, Given: cmd.Flags().Changed, Words: flags,
	}
	if a.verbose {
		co.Out = a.stdout
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		co.Confirm = a.confirm
	}
	return co, c.Close, nil
}

// answer is a line from the terminal.
type answer struct {
	line string
	err  error
}

// confirm asks a question on the terminal. Only yes, in any of its usual
// forms, is yes. The error is that of the context, which a signal ends too, or of
// a terminal that is gone.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := fmt.Fprintf(a.stdout, "%s [y/N] ", question); err != nil {
		return false, fmt.Errorf("asking: %w", err) // nobody sees the question
	}
	if a.answer == nil { // else a question before was not answered, and its reader still waits
		in, out := a.stdin, make(chan answer, 1)
		if in == nil {
			in = os.Stdin
		}
		go func() {
			line, err := bufio.NewReader(in).ReadString('\n')
			out <- answer{line, err}
		}()
		a.answer = out
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stdout)
		return false, ctx.Err()
	case got := <-a.answer:
		a.answer = nil
		if got.err != nil && got.line == "" {
			fmt.Fprintln(a.stdout)
			return false, fmt.Errorf("reading the answer: %w", got.err)
		}
		text := strings.ToLower(strings.TrimSpace(got.line))
		return text == "y" || text == "yes", nil
	}
}

// named takes the run from the argument.
func (f *cloudFlags) named(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.resume != "" && f.resume != args[0] {
		return fail.Input("%q and %q name two runs", args[0], f.resume).Try("give one of them")
	}
	f.resume = args[0]
	return nil
}

// driver opens the named run, or the one that has machines. Where fresh is set
// and no run is named it begins one, if a profile was chosen or no run has
// machines.
func (f *cloudFlags) driver(a *app, cmd *cobra.Command, fresh bool) (*machines.Driver, func(), error) {
	o, closeConsole, err := f.options(a, cmd)
	if err != nil {
		return nil, nil, err
	}
	if fresh && f.resume == "" {
		all, damaged := machines.List(o.Results)
		for _, err := range damaged {
			o.Console.Printf("note: %v", err)
		}
		for _, s := range all {
			switch {
			case s.Expired():
				o.Console.Printf("note: the machines of run %s have shut themselves down; `percore cloud down %s` removes what is left of them", s.ID, s.ID)
			case !s.Live():
			case cmd.Flags().Changed("profile"):
				o.Console.Printf("note: run %s has machines too, for $%.2f an hour; `percore cloud status` says more", s.ID, s.USDPerHour)
			default:
				fresh = false
				o.Console.Printf("run %s has machines: going on with it (a new one: --profile)", s.ID)
			}
		}
	}
	var d *machines.Driver
	if fresh && f.resume == "" {
		d, err = machines.New(o)
	} else {
		d, err = machines.Open(o, f.resume)
	}
	if err != nil {
		closeConsole()
		return nil, nil, err
	}
	if c, ok := o.Console.(*console.Console); ok {
		c.SetNote(d.Spent)
	}
	return d, func() { d.Close(); closeConsole() }, nil
}

func newCloudRunCmd(a *app) *cobra.Command {
	f := &cloudFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "everything: make machines, prepare, measure, report, destroy",
		Long: "Run makes the machines, prepares them, builds the images there, checks the candidates,\n" +
			"measures, collects, reports, and destroys the machines. With --resume it goes on with that run\n" +
			"at the first stage, block and window that is not done, and so it does without a name and\n" +
			"without --profile when one run has machines. With --keep, or on a run that was\n" +
			"begun with `cloud up`, the machines stay until `cloud down` or until they expire.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.named(args); err != nil {
				return err
			}
			if f.dryRun {
				o, done, err := f.options(a, cmd)
				if err != nil {
					return err
				}
				defer done()
				if f.resume != "" {
					return machines.DryResume(o, f.resume, a.stdout)
				}
				return machines.DryRun(o, a.stdout)
			}
			d, done, err := f.driver(a, cmd, true)
			if err != nil {
				return err
			}
			defer done()
			ctx := cmd.Context()
			err = d.All(ctx)
			if gone, discardErr := discard(d, err); gone {
				return errors.Join(err, discardErr)
			}
			return a.cloudFinish(ctx, d, err)
		},
	}
	f.begin(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print every window, the total time and, by the price table, what it costs, and make nothing")
	return cmd
}

func newCloudUpCmd(a *app) *cobra.Command {
	f := &cloudFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "make the machines of a new run, or complete those of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.named(args); err != nil {
				return err
			}
			f.keep = true // what a stage of its own has made, a stage of its own destroys
			d, done, err := f.driver(a, cmd, true)
			if err != nil {
				return err
			}
			defer done()
			ctx := cmd.Context()
			if err := d.UpTo(ctx, "up"); err != nil {
				_, discardErr := discard(d, err)
				return errors.Join(stopped(ctx, err), discardErr)
			}
			fmt.Fprintf(a.stdout, "run %s has its machines; next: percore cloud prepare %s\n", d.ID(), d.ID())
			return nil
		},
	}
	f.begin(cmd)
	return cmd
}

// discard removes the folder of a run that failed before anything was made.
func discard(d *machines.Driver, err error) (bool, error) {
	if err == nil {
		return false, nil
	}
	return d.Discard()
}

func newCloudStageCmd(a *app, name, short string, do func(*machines.Driver, context.Context) error) *cobra.Command {
	f := &cloudFlags{}
	f.profile, f.preset = "auto", "auto" // the run's own
	cmd := &cobra.Command{
		Use:   name + " [RUN]",
		Short: short,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.named(args); err != nil {
				return err
			}
			d, done, err := f.driver(a, cmd, false)
			if err != nil {
				return err
			}
			defer done()
			ctx := cmd.Context()
			err = do(d, ctx)
			if name == "collect" {
				return a.cloudFinish(ctx, d, err)
			}
			return stopped(ctx, err)
		},
	}
	f.tools(cmd)
	f.identity(cmd)
	if name == "down" {
		cmd.Flags().BoolVar(&f.force, "force", false, "forget machines of your own that cannot be cleaned")
	}
	return cmd
}

// cloudFinish shows what there is of a run, however it ended.
func (a *app) cloudFinish(ctx context.Context, d *machines.Driver, err error) error {
	if d.State().Measured == nil && fail.IsInput(err) {
		return err
	}
	if d.State().Destroyed == nil {
		return a.finish(ctx, d.Dir(), err, "percore cloud run --resume "+d.ID())
	}
	failed := err != nil
	err = a.finish(ctx, d.Dir(), err, "")
	if failed {
		fmt.Fprintf(a.stdout, "the machines of run %s are destroyed, so it cannot be resumed; a new run: percore cloud run\n", d.ID())
	}
	return err
}

// stopped replaces the errors that follow from Ctrl-C by one sentence.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && err != nil {
		return errors.New("interrupted")
	}
	return err
}

func newCloudStatusCmd(a *app) *cobra.Command {
	f := &cloudFlags{}
	f.profile, f.preset = "auto", "auto"
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "what machines there are, how far their runs are and what they cost",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.reads = true
			if err := f.named(args); err != nil {
				return err
			}
			o, done, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			defer done()
			return machines.Status(cmd.Context(), o, f.resume, asJSON, a.stdout)
		},
	}
	f.alias(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	f.identity(cmd)
	return cmd
}

func newCloudSSHCmd(a *app) *cobra.Command {
	f := &cloudFlags{}
	f.profile, f.preset = "auto", "auto"
	cmd := &cobra.Command{
		Use:     "ssh ROLE [RUN] [-- COMMAND…]",
		Short:   "a shell on a machine, or one command there",
		Example: "  percore cloud ssh db\n  percore cloud ssh app -- docker ps",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.reads = true
			words, command := args, []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				words, command = args[:n], args[n:]
			}
			if len(words) == 0 || len(words) > 2 {
				return fail.Input("a shell needs one role, and %d words name it and its run", len(words)).Try("give a role such as app, a RUN if need be, and a command behind --")
			}
			if err := f.named(words[1:]); err != nil {
				return err
			}
			o, done, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			defer done()
			d, err := machines.Peek(o, f.resume)
			if err != nil {
				return err
			}
			return d.SSH(cmd.Context(), words[0], command)
		},
	}
	f.alias(cmd)
	return cmd
}

func newCloudSweepCmd(a *app) *cobra.Command {
	f := &cloudFlags{}
	f.profile, f.preset = "auto", "auto"
	var listOnly bool
	cmd := &cobra.Command{
		Use:   "sweep [RUN]",
		Short: "find everything of percore's in an AWS region, with or without a run's folder, and delete it",
		Long: "Sweep finds by tag everything that percore has made in a region, lists it with its age and\n" +
			"what it costs, and deletes it in the right order. With RUN, an id or the beginning of one, only what\n" +
			"belongs to that run. It asks first; --yes does not ask.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.reads = true
			if err := f.named(args); err != nil {
				return err
			}
			o, done, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			defer done()
			err = machines.Sweep(cmd.Context(), o, machines.SweepOptions{RunID: f.resume, ListOnly: listOnly}, a.stdout)
			return stopped(cmd.Context(), err)
		},
	}
	f.account(cmd, "that of your AWS configuration")
	flags := cmd.Flags()
	f.alias(cmd)
	flags.BoolVar(&listOnly, "list", false, "list, and delete nothing")
	flags.BoolVarP(&f.yes, "yes", "y", false, "delete without asking")
	return cmd
}
