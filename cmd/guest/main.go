// Command guest is what percore runs on the hosts of a lab, beside the load
// generator: one static binary that needs nothing but the standard library.
//
//	guest sample …   samples the kernel's counters of containers and their host
//	guest clock …    compares the clocks of two hosts
//	guest hold …     runs a program of a window and reports how it went
//
// Exit codes: 0 done, 1 failed, 2 bad input; guest hold has those of its program.
package main

import (
	"fmt"
	"os"
)

const usage = `Usage: guest sample|clock|hold ...

  sample   sample the kernel's counters of containers and of their host
  clock    compare the clocks of two hosts
  hold     run a program, hold it back until a given time, and report how it went

guest COMMAND --help says more.
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) (code int) {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	switch args[0] {
	case "sample":
		return runSample(args[1:])
	case "clock":
		return runClock(args[1:])
	case "hold":
		return runHold(args[1:])
	case "--help", "-h", "help":
		fmt.Print(usage)
		return 0
	}
	fmt.Fprintf(os.Stderr, "guest: there is no command %q: take sample, clock or hold\n", args[0])
	return 2
}
