// Package console shows a person what a run is doing: finished things as lines, and
// on a terminal one status line below them that says what is going on and how
// long it will still take.
package console

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/plaintext"
	"github.com/percore/percore/internal/evidence/gates"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/protocol"
)

// Console writes lines and keeps the status line. Its methods may be called
// from several goroutines.
type Console struct {
	out     io.Writer
	tty     bool
	width   func() int // columns of the terminal
	verbose bool
	words   fail.Words // how settings and commands are written

	mu     sync.Mutex
	status string    // what is going on
	since  time.Time // since when
	note   func() string
	drawn  bool // whether the status line is on the screen
	stop   chan struct{}
	done   chan struct{}
}

// New makes a console. Without a terminal it writes plain lines only.
func New(out io.Writer, tty bool, width func() int, verbose bool) *Console {
	c := &Console{out: out, tty: tty, width: width, verbose: verbose}
	if tty {
		c.stop, c.done = make(chan struct{}), make(chan struct{})
		go c.tick()
	}
	return c
}

// SetNote makes what the function returns part of every line that says how long
// a run will still take: what it has cost so far. Empty is nothing. The function
// may be called from several goroutines.
func (c *Console) SetNote(note func() string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note = note
}

// noted is the note, after a comma.
func (c *Console) noted() string {
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	if note != nil {
		if text := note(); text != "" {
			return ", " + text
		}
	}
	return ""
}

// Close takes the status line away.
func (c *Console) Close() {
	if c.stop != nil {
		close(c.stop)
		<-c.done
		c.stop = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	c.status = ""
}

// SetWords says how settings and commands are written in what is said from now
// on.
func (c *Console) SetWords(words fail.Words) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.words = words
}

// Printf writes one line. An error among the arguments is written with what to
// do about it.
func (c *Console) Printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	fmt.Fprintln(c.out, plaintext.String(fail.Sprintf(c.words, format, args...)))
	c.draw()
}

// Debugf writes one line when -v was given.
func (c *Console) Debugf(format string, args ...any) {
	if c.verbose {
		c.Printf("  + "+format, args...)
	}
}

// Status says what is going on. Without a terminal it is a line of its own.
func (c *Console) Status(format string, args ...any) {
	text := plaintext.String(fmt.Sprintf(format, args...))
	if !c.tty {
		c.Printf("%s", text)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	c.status, c.since = text, time.Now()
	c.draw()
}

// Transient is a status that is not worth a line where there is no terminal.
func (c *Console) Transient(format string, args ...any) {
	if c.tty {
		c.Status(format, args...)
	}
}

func (c *Console) tick() {
	defer close(c.done)
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.mu.Lock()
			c.erase()
			c.draw()
			c.mu.Unlock()
		}
	}
}

func (c *Console) erase() {
	if c.drawn {
		fmt.Fprint(c.out, "\r\x1b[K")
		c.drawn = false
	}
}

func (c *Console) draw() {
	if !c.tty || c.status == "" {
		return
	}
	line := fmt.Sprintf("%s (%s)", c.status, plaintext.Duration(time.Since(c.since)))
	if w := c.width(); w > 1 {
		if r := []rune(line); len(r) >= w {
			line = string(r[:w-2]) + "…"
		}
	}
	fmt.Fprint(c.out, line)
	c.drawn = true
}

// Watch returns the observer that shows a run on the console.
func (c *Console) Watch() protocol.Observer { return &watcher{c: c} }

type watcher struct {
	c    *Console
	left string // the newest estimate, for the status line
}

func (w *watcher) PhaseStarted(p plan.Phase) {
	w.c.Printf("\nphase %s: windows of %s, %d repetition(s), %s connections", p.ID, p.Window, p.Repetitions, join(p.Connections))
}

func (w *watcher) BlockStarted(b plan.Block, p protocol.Progress) {
	w.estimate(p)
	w.c.Printf("block %d of %d: %s, repetition %d, phase %s; %d of %d windows done, %s", p.Block, p.Blocks, b.Candidate, b.Repetition, b.Phase, p.Window, p.Windows, w.left)
}

func (w *watcher) BlockFailed(b plan.Block, err error, again bool) {
	what := "its windows are left out"
	if again {
		what = "it is tried again"
	}
	w.c.Printf("  %s r%d broke off, %s: %v", b.Candidate, b.Repetition, what, err)
}

func (w *watcher) Stage(b plan.Block, what string) {
	w.c.Transient("%s %s r%d: %s, %s", b.Phase, b.Candidate, b.Repetition, what, w.left)
}

func (w *watcher) ProbeEnded(_ plan.Block, r store.ProbeReading) {
	if r.FlatOut() && r.Error == "" {
		w.c.Printf("  probe   %s/s flat out, over %d connections", thousands(r.Achieved), r.Connections)
		return
	}
	g := gates.OfProbe(r)
	verdict := "ok"
	if !g.OK {
		verdict = "FAILED, the load generator or the machine is the limit"
		if r.Error != "" {
			verdict = "FAILED, " + r.Error
		}
	}
	w.c.Printf("  probe   %s of %d/s (%.1f %%): %s", thousands(r.Achieved), r.Target, 100*g.Reading, verdict)
}

func (w *watcher) WindowStarted(win plan.Window, attempt int, p protocol.Progress) {
	w.estimate(p)
	again := ""
	if attempt > 1 {
		again = fmt.Sprintf(", attempt %d", attempt)
	}
	w.c.Transient("%s %s r%d: %s c%d for %gs%s, %s", win.Phase, win.Candidate, win.Repetition, win.Scenario, win.Connections, win.Seconds, again, w.left)
}

func (w *watcher) WindowEnded(r store.WindowResult, p protocol.Progress) {
	w.estimate(p)
	w.c.Printf("  %s  [%d/%d, %s]", WindowLine(r), p.Window, p.Windows, w.left)
}

func (w *watcher) BlockEnded(_ plan.Block, p protocol.Progress) { w.estimate(p) }

func (w *watcher) estimate(p protocol.Progress) {
	w.left = "about " + plaintext.Duration(p.Remaining) + " left" + w.c.noted()
}

// WindowLine is one window on one line: achieved, p50 and p99, CPU per
// request, cores and the gates that failed.
func WindowLine(r store.WindowResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s c%-3d", r.Scenario, r.Connections)
	if r.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", r.Attempt)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "  broke off: %s", r.Error)
		return b.String()
	}
	m := r.Measured
	fmt.Fprintf(&b, "  %7s/s", thousands(m.Achieved))
	if r.Target > 0 {
		fmt.Fprintf(&b, " of %s", thousands(float64(r.Target)))
	}
	fmt.Fprintf(&b, "  p50 %.2f ms  p99 %.2f ms  %.1f µs/request  %.2f cores", m.P50MS, m.P99MS, m.AppCPUUS, m.AppCores)
	if m.Failed > 0 {
		fmt.Fprintf(&b, "  %d failed", m.Failed)
	}
	var failed, waived []string
	for _, g := range r.Gates {
		switch {
		case g.Failed():
			failed = append(failed, fmt.Sprintf("%s %.4g (limit %.4g %s)", g.Name, g.Reading, g.Limit, g.Unit))
		case !g.OK:
			waived = append(waived, g.Name)
		}
	}
	switch {
	case len(failed) > 0:
		fmt.Fprintf(&b, "  FAILED gates: %s", strings.Join(failed, ", "))
	case len(waived) > 0:
		fmt.Fprintf(&b, "  gates ok, waived: %s", strings.Join(waived, ", "))
	default:
		b.WriteString("  gates ok")
	}
	return b.String()
}

// thousands writes a whole number with separators, as the study's tables do.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

func join(ns []int) string {
	parts := make([]string, len(ns))
	for i, n := range ns {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}
