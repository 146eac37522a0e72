package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/percore/percore/internal/guest/sample"
)

const sampleUsage = `Usage: guest sample [flags] NAME=PID...

Samples the kernel's counters of containers and of their host, one JSON object
a line. PID is the id of a container's first process on the engine's host.

  --out FILE          where to write; - is the standard output (default -)
  --interval 100ms    time between two samples
  --all 1s            time between two in which everything is read anew
  --max 10m           end after this time even without a signal
  --cgroup-root DIR   where the host's cgroups are mounted (default /sys/fs/cgroup)
  --proc DIR          the host's proc file system (default /proc)

SIGTERM and SIGINT end it with a last sample and exit code 0.
`

// runSample samples containers until it is told to stop.
func runSample(args []string) (code int) {
	err := samples(args, os.Stdout)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "guest sample:", err)
	if sample.IsInput(err) {
		return 2
	}
	return 1
}

func samples(args []string, stdout *os.File) error {
	flags := flag.NewFlagSet("guest sample", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	out := flags.String("out", "-", "")
	interval := flags.Duration("interval", 100*time.Millisecond, "")
	all := flags.Duration("all", sample.All, "")
	longest := flags.Duration("max", 10*time.Minute, "")
	root := flags.String("cgroup-root", "/sys/fs/cgroup", "")
	proc := flags.String("proc", "/proc", "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, sampleUsage)
			return nil
		}
		return sample.Input("%w: see guest sample --help", err)
	}
	if *interval < time.Millisecond {
		return sample.Input("--interval %v is too short: use 1ms or more", *interval)
	}
	if *all <= 0 {
		return sample.Input("--all %v is not a time: use for example 1s", *all)
	}
	if *longest <= 0 {
		return sample.Input("--max %v is not a time: use for example 10m", *longest)
	}
	targets := make([]sample.Target, 0, flags.NArg())
	for _, arg := range flags.Args() {
		t, err := sample.ParseTarget(arg)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}

	// One thread is enough, and there is nothing to collect: a sample does not
	// allocate. The limit is for what nobody foresaw.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	s, err := sample.Open(*root, *proc, targets)
	if err != nil {
		return err
	}
	s.ReadAll(*all)
	defer s.Close()
	file := stdout
	if *out != "-" {
		if file, err = create(*out); err != nil {
			return err
		}
	}
	if err := s.RunAlone(file, *interval, *longest, stop); err != nil {
		return remedy(err, *out)
	}
	if *out != "-" {
		if err := file.Close(); err != nil {
			return remedy(fmt.Errorf("cannot write a sample: %w", err), *out)
		}
	}
	return nil
}

// create opens a new file to append to. Samples that are there already are never
// written over.
func create(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return nil, sample.Input("--out %s already holds data: name a new file", name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if errors.Is(err, syscall.ENOSPC) {
		return nil, remedy(err, name)
	}
	if err != nil {
		return nil, sample.Input("cannot open --out (%w): name a file in a folder that exists and can be written to", err)
	}
	return f, nil
}

// remedy adds to an error what to do about it.
func remedy(err error, out string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk of %s is full, so free some space and measure the window again", err, out)
	}
	return err
}
