// Command work does a known amount of work at a signal, for the sampler's tests:
//
//	work burn 1s      use so much CPU time
//	work memory 64    hold so many MiB
//
// It waits for SIGUSR1, works, prints the CPU time in µs that the kernel charged
// it for the work, and waits again.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	work := make(chan os.Signal, 1)
	end := make(chan os.Signal, 1)
	signal.Notify(work, syscall.SIGUSR1)
	signal.Notify(end, syscall.SIGTERM)
	fmt.Println("ready")
	var held []byte
	for {
		select {
		case <-work:
		case <-end:
			return
		}
		before := cpu()
		switch os.Args[1] {
		case "burn":
			d, err := time.ParseDuration(os.Args[2])
			if err != nil {
				panic(err)
			}
			for cpu()-before < d {
			}
		case "memory":
			n, err := strconv.Atoi(os.Args[2])
			if err != nil {
				panic(err)
			}
			held = make([]byte, n<<20)
			for i := 0; i < len(held); i += 4096 {
				held[i] = 1
			}
		}
		fmt.Println("done", (cpu() - before).Microseconds())
	}
}
