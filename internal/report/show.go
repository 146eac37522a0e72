package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/evidence/store"
)

// Show writes what a run is and how far it has come: its identity, the progress
// of its plan, and every attempt at a window with its gates, or what is wrong
// with a raw file of it: damaged names those, path -> what.
func Show(w io.Writer, in figures.Measured, r figures.Tables, damaged map[string]string, width int) error {
	out := bufio.NewWriter(w)
	textHead(out, r, width)
	fmt.Fprintln(out)
	textTable(out, progressTable(in, r), width)
	fmt.Fprintln(out)
	textTable(out, attemptTable(in, damaged), width)
	for _, t := range hostTables(r) {
		fmt.Fprintln(out)
		textTable(out, t, width)
	}
	for _, b := range r.Blocks {
		wrapped(out, "  ", fmt.Sprintf("block failed: %s %s, repetition %d: %s", b.Phase, b.Candidate, b.Repetition, oneLine(b.Error)), width)
	}
	return out.Flush()
}

// progressTable counts windows per phase and candidate.
func progressTable(in figures.Measured, r figures.Tables) Table {
	t := Table{
		ID: "progress", Title: "Progress", Empty: "Nothing was planned.",
		Columns: []Column{{"phase", true, 0}, {"candidate", true, 0}, {"windows", false, 0}, {"with evidence", false, 0}, {"attempts", false, 0}, {"gate failed", false, 0}, {"broken off", false, 0}},
	}
	type key struct{ phase, candidate string }
	type tally struct{ evidence, attempts, gate, broken int }
	by := map[key]*tally{}
	at := func(k key) *tally {
		if by[k] == nil {
			by[k] = &tally{}
		}
		return by[k]
	}
	for _, w := range r.Windows {
		c := at(key{w.Phase, w.Candidate})
		c.attempts++
		switch {
		case w.Evidence:
			c.evidence++
		case w.Error != "":
			c.broken++
		case len(w.Failed) > 0:
			c.gate++
		}
	}
	for _, p := range in.Run.Preset.Phases {
		for _, c := range in.Run.Suite.Candidates {
			n := at(key{p.ID, c.ID})
			planned := p.Repetitions * len(p.Connections) * len(in.Run.Suite.Scenarios)
			t.Rows = append(t.Rows, []string{p.ID, c.ID, strconv.Itoa(planned), strconv.Itoa(n.evidence), strconv.Itoa(n.attempts), strconv.Itoa(n.gate), strconv.Itoa(n.broken)})
		}
	}
	return t
}

// attemptTable lists every attempt in the order in which it was made.
func attemptTable(in figures.Measured, damaged map[string]string) Table {
	t := Table{
		ID: "attempts", Title: "Windows", Empty: "No window was measured.",
		Columns: []Column{
			{"phase", true, 0}, {"candidate", true, 0}, {"scenario", true, 0}, {"conns", false, 1}, {"target/s", false, 2}, {"rep", false, 0}, {"attempt", false, 0},
			{"achieved/s", false, 0}, {"p50 ms", false, 3}, {"p99 ms", false, 2}, {"CPU µs/req", false, 1}, {"cores", false, 2}, {"gates", true, 0},
		},
	}
	for _, w := range in.Windows {
		target := absent
		if w.Target > 0 {
			target = Number(float64(w.Target), 0)
		}
		row := []string{w.Phase, w.Candidate, w.Scenario, strconv.Itoa(w.Connections), target, strconv.Itoa(w.Repetition), strconv.Itoa(w.Attempt)}
		if m := w.Measured; m != nil {
			figure := func(name string, v float64, decimals int) string {
				if !m.Has(name) {
					return absent
				}
				return Number(v, decimals)
			}
			row = append(row, Number(m.Achieved, 0), figure("p50_ms", m.P50MS, 2), figure("p99_ms", m.P99MS, 2), figure("app_cpu_us", m.AppCPUUS, 1), figure("app_cores", m.AppCores, 2))
		} else {
			row = append(row, absent, absent, absent, absent, absent)
		}
		text := GateText(w)
		for _, path := range w.RawFiles() {
			if what := damaged[path]; what != "" {
				text = path + ": " + what
				break
			}
		}
		t.Rows = append(t.Rows, append(row, text))
	}
	return t
}

// GateText says in a few words how the gates of an attempt stand: "ok", which
// ones failed with their readings, or the error it broke off with.
func GateText(w store.WindowResult) string {
	if w.Error != "" {
		return "broken off: " + oneLine(w.Error)
	}
	var bad, waived []string
	for _, g := range w.Gates {
		switch {
		case g.Failed():
			text := fmt.Sprintf("%s FAILED (%s, limit %s)", g.Name, reading(g.Reading, g.Unit), reading(g.Limit, g.Unit))
			if g.Detail != "" {
				text = fmt.Sprintf("%s FAILED (%s, limit %s: %s)", g.Name, reading(g.Reading, g.Unit), reading(g.Limit, g.Unit), g.Detail)
			}
			bad = append(bad, text)
		case !g.OK:
			waived = append(waived, g.Name+" waived")
		}
	}
	switch {
	case len(bad) > 0:
		return strings.Join(append(bad, waived...), "; ")
	case len(w.Gates) == 0:
		return "none recorded"
	case len(waived) > 0:
		return "ok (" + strings.Join(waived, ", ") + ")"
	}
	return "ok"
}

// List writes the lines of `percore ls`.
func List(w io.Writer, runs []store.Summary, width int) error {
	out := bufio.NewWriter(w)
	t := Table{
		Title: "Runs", Empty: "There are no runs yet.",
		Columns: []Column{
			{"id", true, 0}, {"started", true, 3}, {"state", true, 0}, {"profile", true, 2}, {"preset", true, 1}, {"flavour", true, 2}, {"windows", false, 0}, {"gates failed", false, 1},
		},
	}
	for _, s := range runs {
		if s.Problem != "" {
			t.Rows = append(t.Rows, []string{s.ID, absent, "unreadable", oneLine(s.Profile), oneLine(s.Preset), string(s.Flavour), absent, absent})
			t.Notes = append(t.Notes, oneLine(s.Problem))
			continue
		}
		windows := strconv.Itoa(s.Done)
		if s.Planned > 0 {
			windows = fmt.Sprintf("%d/%d", s.Done, s.Planned)
		}
		t.Rows = append(t.Rows, []string{s.ID, s.Started.UTC().Format("2006-01-02 15:04 UTC"), s.State, oneLine(s.Profile), oneLine(s.Preset), string(s.Flavour), windows, strconv.Itoa(s.GatesFailed)})
	}
	textTable(out, t, width)
	return out.Flush()
}
