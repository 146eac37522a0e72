package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// ends are the signals that would end the process and can be caught. All of
// them end what is going on in the same clean way as Ctrl-C. SIGPIPE is no
// request to end: see [untilSignal].
var ends = append([]os.Signal{
	os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM, syscall.SIGVTALRM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGXCPU, syscall.SIGXFSZ,
}, more...)

// untilSignal is a context that the first signal ends, and the returned function
// too. The next signal ends the process at once.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := ends
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals[:len(signals):len(signals)], syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	// Catching SIGPIPE, and doing nothing then, makes writing to an output that
	// nobody reads an error like another. Programs that are started do not inherit
	// this, as they would inherit that it is ignored.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	context.AfterFunc(ctx, func() {
		// A terminal that is closed sends several. None of this may keep machines
		// from being destroyed.
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	return ctx, stop
}
