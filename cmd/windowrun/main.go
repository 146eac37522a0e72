// Command windowrun runs one program of a measurement and writes down when it
// started and ended, how, and the digest of the file it left.
//
//	windowrun --output FILE --report FILE [--gate FILE] -- PROGRAM ARGUMENTS...
//
// Its exit code is the program's; 128 and the signal's number when a signal
// ended the program, 75 when the gate's time had passed, 2 for bad input.
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

const usage = `Usage: windowrun [flags] -- PROGRAM ARGUMENTS...

Runs a program and writes a report of it.

  --output FILE          file that the program writes; its digest is taken
  --report FILE          where to write the report
  --gate FILE            start when this file is there: it holds the time to
                         start at, in ns since 1970, or 0 for at once
  --gate-timeout 5m      how long the file may take to appear
  --late 20ms            how much later than its time the program may start
  --linger 0s            how long to stay when the program has ended

SIGTERM, SIGINT and SIGHUP are passed on to the program.
`

func main() {
	var o hold.Options
	flags := flag.NewFlagSet("windowrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Output, "output", "", "")
	flags.StringVar(&o.Report, "report", "", "")
	flags.StringVar(&o.Gate, "gate", "", "")
	flags.DurationVar(&o.GateTimeout, "gate-timeout", 5*time.Minute, "")
	flags.DurationVar(&o.Late, "late", 20*time.Millisecond, "")
	flags.DurationVar(&o.Linger, "linger", 0, "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Print(usage)
			return
		}
		fmt.Fprintf(os.Stderr, "windowrun: %v: see windowrun --help\n", err)
		os.Exit(2)
	}
	o.Argv = flags.Args()
	if m := o.Missing(); m != "" {
		fmt.Fprintf(os.Stderr, "windowrun: %s is missing: see windowrun --help\n", m)
		os.Exit(2)
	}
	code, err := hold.Run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "windowrun:", err)
	}
	os.Exit(code)
}
