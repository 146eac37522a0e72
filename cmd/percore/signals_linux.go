package main

import (
	"os"
	"syscall"
)

// more are the signals of ends that only Linux has.
var more = []os.Signal{syscall.SIGIO, syscall.SIGPWR, syscall.SIGSTKFLT}
