// Command hostclock compares the clocks of two hosts and sets neither.
//
//	hostclock serve :11123            answer with this host's clock
//	hostclock ask ADDRESS:11123       print how far ahead this host's clock is
//
// Exit codes: 0 done, 1 failed, 2 bad input.
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

const usage = `Usage: hostclock serve ADDRESS | hostclock ask ADDRESS

serve answers NTP requests with this host's clock, on a UDP address such as
:11123. ask makes eight exchanges with such a server and prints, as JSON, how
far this host's clock is ahead of the server's and how long the best exchange
was under way, both in ns.
`

func main() {
	if len(os.Args) == 2 && (os.Args[1] == "--help" || os.Args[1] == "-h") {
		fmt.Print(usage)
		return
	}
	if len(os.Args) != 3 || os.Args[1] != "serve" && os.Args[1] != "ask" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	run := ask
	if os.Args[1] == "serve" {
		run = serve
	}
	if err := run(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "hostclock:", err)
		os.Exit(1)
	}
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
