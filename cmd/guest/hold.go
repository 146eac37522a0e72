package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/percore/percore/internal/guest/hold"
)

const holdUsage = `Usage: guest hold [flags] -- PROGRAM ARGUMENTS...

Runs a program and writes a report of it.

  --output FILE          file that the program writes; its digest is taken
  --report FILE          where to write the report
  --gate FILE            start when this file is there: it holds the time to
                         start at, in ns since 1970, or 0 for at once
  --gate-timeout 5m      how long the file may take to appear
  --late 20ms            how much later than its time the program may start
  --linger 0s            how long to stay when the program has ended

SIGTERM, SIGINT and SIGHUP are passed on to the program. The exit code is the
program's; 128 and the signal's number when a signal ended it, 75 when the
gate's time had passed, 2 for bad input.
`

// runHold runs one program of a window and writes down when it started and ended,
// how, and the digest of the file it left.
func runHold(args []string) (code int) {
	var o hold.Options
	flags := flag.NewFlagSet("guest hold", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Output, "output", "", "")
	flags.StringVar(&o.Report, "report", "", "")
	flags.StringVar(&o.Gate, "gate", "", "")
	flags.DurationVar(&o.GateTimeout, "gate-timeout", 5*time.Minute, "")
	flags.DurationVar(&o.Late, "late", 20*time.Millisecond, "")
	flags.DurationVar(&o.Linger, "linger", 0, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Print(holdUsage)
			return 0
		}
		fmt.Fprintf(os.Stderr, "guest hold: %v: see guest hold --help\n", err)
		return 2
	}
	o.Argv = flags.Args()
	if m := o.Missing(); m != "" {
		fmt.Fprintf(os.Stderr, "guest hold: %s is missing: see guest hold --help\n", m)
		return 2
	}
	code, err := hold.Run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest hold:", err)
	}
	return code
}
