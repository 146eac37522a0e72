package main

import (
	"os"

	"golang.org/x/term"

	"github.com/percore/percore/internal/run/console"
)

// console is where a long command says what it does: with a status line when
// the output is a terminal.
func (a *app) console() *console.Console {
	f, ok := a.stdout.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	width := func() int {
		if !tty {
			return 0
		}
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 80
		}
		return w
	}
	c := console.New(a.stdout, tty, width, a.verbose)
	c.SetWords(flags)
	return c
}
