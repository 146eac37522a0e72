package main

import (
	"os"

	"github.com/percore/percore/internal/run/console"
)

// console is where a long command says what it does: with a status line when
// the output is a terminal.
func (a *app) console() *console.Console {
	f := terminal(a.stdout)
	tty := f != nil && os.Getenv("TERM") != "dumb"
	width := func() int {
		if !tty {
			return 0
		}
		return columns(f)
	}
	c := console.New(raw(a.stdout), tty, width, a.verbose)
	c.SetWords(flags)
	return c
}
