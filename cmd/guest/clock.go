package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/percore/percore/internal/guest/clock"
)

const clockUsage = `Usage: guest clock serve ADDRESS | guest clock ask ADDRESS

serve answers NTP requests with this host's clock, on a UDP address such as
:11123. ask makes eight exchanges with such a server and prints, as JSON, how
far this host's clock is ahead of the server's and how long the best exchange
was under way, both in ns.
`

// runClock compares this host's clock with another's, or is compared with.
func runClock(args []string) (code int) {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Print(clockUsage)
		return 0
	}
	if len(args) != 2 || args[0] != "serve" && args[0] != "ask" {
		fmt.Fprint(os.Stderr, clockUsage)
		return 2
	}
	runtime.GOMAXPROCS(1)
	run := ask
	if args[0] == "serve" {
		run = serve
	}
	if err := run(args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "guest clock:", err)
		return 1
	}
	return 0
}

func serve(address string) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return clock.Serve(conn)
}

func ask(address string) error {
	r, err := clock.Ask(context.Background(), address, 8, 250*time.Millisecond)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
