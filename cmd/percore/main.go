// Percore measures how many requests one core carries: it runs the same API,
// written three times, under the same load on this machine's Docker or on three
// cloud instances, and says which published claims hold there.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/machines"
	"github.com/percore/percore/internal/project"
)

// app is what every subcommand shares.
type app struct {
	root    string // a checkout, or a folder with the same files
	state   string // folder of what outlives a run and is no result: the signing keys
	results string // folder of the runs
	reads   bool   // whether the command only looks at runs, and does without the project's files where they have no place
	stdout  io.Writer
	stderr  io.Writer
	verbose bool

	noVerify bool // read recorded figures without a look at the raw files

	stdin  io.Reader   // what questions are answered from; nil: the terminal
	answer chan answer // of a line that is being read; nil: none is
}

func main() {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], &output{File: os.Stdout, gone: stop}, &output{File: os.Stderr, gone: stop}))
}

// codeUnread is the exit code where the reader of the output went away, as the
// shell has it for a program that SIGPIPE ended.
const codeUnread = 128 + int(syscall.SIGPIPE)

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, errs := plaintext.NewWriter(stdout), plaintext.NewWriter(stderr)
	a := &app{stdout: out, stderr: errs}
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := errors.Join(root.ExecuteContext(ctx), out.Flush(), errs.Flush())
	if o, ok := stdout.(*output); ok && o.failed() != nil {
		switch lost := o.failed(); {
		case unread(lost) && (err == nil || errors.Is(err, lost)):
			return codeUnread // nobody is there to be told
		case unread(lost), errors.Is(err, lost):
			// How it ended is what there is to say.
		case err == nil:
			err = fmt.Errorf("writing the output: %w", lost)
		default:
			err = fmt.Errorf("%w; and writing the output: %w", err, lost)
		}

	}
	if err != nil && !errors.Is(err, errSilent) {
		fmt.Fprintf(errs, "percore: %s\n", fail.Sentence(err, flags))
	}
	var exit *machines.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return fail.Code(err)
}

// flagError says what a flag takes in place of how it was parsed.
func flagError(err error) error {
	text, parser, parsed := strings.Cut(err.Error(), ": strconv.")
	if !parsed {
		return fail.Input("%w", err).Try("percore help lists the flags")
	}
	wants := "a number"
	switch {
	case strings.HasPrefix(parser, "ParseUint"):
		wants = "a whole number of 0 or more"
	case strings.HasPrefix(parser, "ParseInt"), strings.HasPrefix(parser, "Atoi"):
		wants = "a whole number"
	case strings.HasPrefix(parser, "ParseBool"):
		wants = "true or false"
	}
	return fail.Input("%s", text).Try("give it %s", wants)
}

// checkResults refuses a folder of the runs that cannot be one. It need not
// exist yet.
func checkResults(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fail.Input("--results %s lies below a file", dir).Try("name a folder")
	case err == nil && !info.IsDir():
		return fail.Input("--results %s is not a folder", dir).Try("name one, or leave it out for results below the project folder")
	}
	return nil
}

// noVerifyFlag adds the flag to a command that reads the figures of runs.
func (a *app) noVerifyFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.noVerify, "no-verify", false, "read the recorded figures without checking that the raw files are there and whole")
}

// errSilent ends a command with exit code 1 after it has said everything.
var errSilent = errors.New("failed")

func newRootCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "percore",
		Short:         "How many requests does one core carry, on your hardware?",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.CompletionOptions.HiddenDefaultCmd = true
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.root, "root", "", "checkout of percore, a `folder` (default: the one around the working directory or the executable, or the files that percore carries)")
	flags.StringVar(&a.results, "results", "", "`folder` of the runs (default: results in the checkout or, where there is none, in the working directory)")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "show what is executed")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return checkResults(a.results) }
	cmd.AddCommand(subcommands(a)...)
	wrapArgs(cmd)
	return cmd
}

// wrapArgs makes a wrong number of arguments bad input, for the command and
// those below it.
func wrapArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
	check := cmd.Args
	if check == nil {
		check = cobra.NoArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fail.Input("%w", err).Try("%s --help shows how to call it", cmd.CommandPath())
		}
		return nil
	}
}

// findRoot fills in the folders that were not given. All are absolute
// afterwards, also beside an error: ssh and Ansible work in other folders. Where
// there is no checkout, the files that this program carries are unpacked into
// the user's cache, results go below the working directory, and the signing keys
// to the user's configuration.
func (a *app) findRoot() error {
	for _, dir := range []*string{&a.root, &a.results} {
		if *dir == "" {
			continue
		}
		var err error
		if *dir, err = filepath.Abs(*dir); err != nil {
			return fmt.Errorf("finding the folder this runs in: %w", err)
		}
	}
	if a.root != "" && !project.Is(a.root) {
		return fail.Input("%s is no checkout of percore", a.root).Try("give --root the folder of one, or leave it out")
	}
	wd, err := os.Getwd()
	if a.root == "" && err == nil {
		a.root = project.Above(wd)
	}
	if exe, err := os.Executable(); a.root == "" && err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		a.root = project.Above(filepath.Dir(exe))
	}
	if a.root != "" {
		a.results = cmp.Or(a.results, filepath.Join(a.root, "results"))
		a.state = filepath.Join(a.root, ".percore")
		return nil
	}
	if err != nil && a.results == "" {
		return fmt.Errorf("finding the folder this runs in: %w", err)
	}
	a.results = cmp.Or(a.results, filepath.Join(wd, "results"))
	cache, err := os.UserCacheDir()
	if err != nil && a.reads {
		return nil
	}
	if err != nil {
		return fail.Input("percore has no folder for its own files: %w", err).Try("set HOME, or give --root a checkout")
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return fail.Input("percore has no folder for its signing keys: %w", err).Try("set HOME, or give --root a checkout")
	}
	a.state = filepath.Join(config, "percore")
	a.root, err = project.Unpack(filepath.Join(cache, "percore", "files"))
	return err
}
