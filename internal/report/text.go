package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/percore/percore/internal/answers/figures"
)

// Text writes a report for a terminal of the given width; 0 is any width.
// Columns that do not fit are left out, the least needed first, and named.
func Text(w io.Writer, r figures.Tables, width int) error {
	out := bufio.NewWriter(w)
	textHead(out, r, width)
	for _, t := range Tables(r) {
		fmt.Fprintln(out)
		textTable(out, t, width)
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(out, "\nNotes")
		for _, n := range r.Notes {
			wrapped(out, "  ", n, width)
		}
	}
	return out.Flush()
}

func textHead(out io.Writer, r figures.Tables, width int) {
	fmt.Fprintln(out, title(r.Header))
	for _, c := range r.Caveats {
		wrapped(out, "! ", c, width)
	}
	fmt.Fprintln(out)
	for _, f := range facts(r.Header) {
		wrapped(out, "", f.Name+": "+f.Text, width)
	}
}

// textTable writes one table with as many columns as fit.
func textTable(out io.Writer, t Table, width int) {
	fmt.Fprintln(out, t.Title)
	if len(t.Rows) == 0 {
		fmt.Fprintln(out, "  "+t.Empty)
	} else {
		if t.About != "" {
			wrapped(out, "  ", t.About, width)
		}
		var dropped []string
		for {
			rendered := render(t)
			worst := -1
			for i, c := range t.Columns {
				if c.Drop > 0 && (worst < 0 || c.Drop > t.Columns[worst].Drop) {
					worst = i
				}
			}
			if width <= 0 || worst < 0 || widest(rendered) <= width {
				fmt.Fprintln(out, rendered)
				break
			}
			dropped = append(dropped, t.Columns[worst].Name)
			t = t.without(worst)
		}
		if len(dropped) > 0 {
			wrapped(out, "  ", "left out for width: "+strings.Join(dropped, ", "), width)
		}
	}
	for _, n := range t.Notes {
		wrapped(out, "  ", n, width)
	}
}

// without returns the table without one column.
func (t Table) without(column int) Table {
	cut := func(s []string) []string {
		return append(append([]string(nil), s[:column]...), s[column+1:]...)
	}
	columns := append(append([]Column(nil), t.Columns[:column]...), t.Columns[column+1:]...)
	rows := make([][]string, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = cut(r)
	}
	t.Columns, t.Rows = columns, rows
	return t
}

func render(t Table) string {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	header := make(table.Row, len(t.Columns))
	configs := make([]table.ColumnConfig, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = c.Name
		align := text.AlignRight
		if c.Text {
			align = text.AlignLeft
		}
		configs[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	w.AppendHeader(header)
	w.SetColumnConfigs(configs)
	previous := ""
	for _, r := range t.Rows {
		row := make(table.Row, len(r))
		for i, v := range r {
			row[i] = v
			// A group is named in its first row.
			if i == 0 && t.Columns[0].Name == "scenario" {
				if v == previous {
					row[i] = ""
				}
				previous = v
			}
		}
		w.AppendRow(row)
	}
	lines := strings.Split(w.Render(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("  "+l, " ")
	}
	return strings.Join(lines, "\n")
}

func widest(s string) int {
	n := 0
	for _, l := range strings.Split(s, "\n") {
		n = max(n, utf8.RuneCountInString(l))
	}
	return n
}

// wrapped writes a text at a width, with a marker before its first line.
func wrapped(out io.Writer, marker, s string, width int) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(marker))
	if marker == "" {
		indent = "  "
	}
	line := marker
	empty := true
	for _, word := range strings.Fields(s) {
		if !empty && width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(out, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(out, line)
}
