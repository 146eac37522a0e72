package images

import (
	"fmt"
	"io"
	"time"
)

// every is how often Lines says of a long step that it goes on.
const every = 20 * time.Second

// Lines returns a Builder's Progress that writes one plain line for each thing
// worth knowing: for logs, and for terminals that are none. With verbose, the
// output of the builds too.
func Lines(w io.Writer, verbose bool) func(Event) {
	var last time.Duration // of the current image, when a line was written
	return func(e Event) {
		head := fmt.Sprintf("image %d/%d %s: ", e.Index, e.Count, e.Image)
		at := e.Elapsed.Round(time.Second)
		switch e.Kind {
		case Waiting:
			fmt.Fprintf(w, "waiting: %s\n", e.Line)
		case Reused:
			if verbose {
				fmt.Fprintf(w, "image %s: there already (%s)\n", e.Image, e.Tag)
			}
		case Started:
			last = 0
			fmt.Fprintf(w, "%sbuilding, about %s\n", head, e.Estimate)
		case Stepped:
			last = e.Elapsed
			fmt.Fprintf(w, "%s%s, step %d/%d: %s\n", head, at, e.Step, e.Steps, Short(e.Command, 100))
		case Printed:
			if verbose {
				last = e.Elapsed
				fmt.Fprintf(w, "    %s\n", e.Line)
			}
		case Ticked:
			if e.Elapsed-last >= every {
				last = e.Elapsed
				fmt.Fprintf(w, "%s%s, still at step %d/%d: %s\n", head, at, e.Step, e.Steps, Short(e.Command, 100))
			}
		case Finished:
			fmt.Fprintf(w, "%sdone in %s\n", head, at)
		}
	}
}

// Short cuts a command to at most n characters and shows that it did.
func Short(command string, n int) string {
	runes := []rune(command)
	if len(runes) <= n {
		return command
	}
	return string(runes[:n-1]) + "…"
}
