package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// WriteText writes the report as aligned columns of at most width characters;
// longer findings go on below themselves. A width of 0 breaks nothing.
func (r Report) WriteText(w io.Writer, width int) error {
	column := 0
	for _, f := range r.Findings {
		column = max(column, utf8.RuneCountInString(f.Name))
	}
	// Status, name and the blanks between the columns.
	indent := 4 + 2 + column + 2
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", f.Status, column, f.Name, wrap(f.Finding, width, indent))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%*s%s\n", indent, "", wrap("-> "+f.Remedy, width, indent))
		}
	}
	fails, warns := 0, 0
	for _, f := range r.Findings {
		switch f.Status {
		case Fail:
			fails++
		case Warn:
			warns++
		}
	}
	switch {
	case !r.Possible:
		fmt.Fprintf(&b, "\nNo run is possible: %s.\n", count(fails, "check failed", "checks failed"))
	case warns > 0:
		fmt.Fprintf(&b, "\nA run is possible, with %s.\n", count(warns, "warning", "warnings"))
	default:
		b.WriteString("\nA run is possible.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap breaks a text at blanks so that lines of the width hold it behind the
// indent.
func wrap(text string, width, indent int) string {
	room := width - indent
	text = strings.Join(strings.Fields(text), " ")
	if width <= 0 || room < 20 {
		return text
	}
	var b strings.Builder
	line := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case line == 0:
		case line+1+n > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += n
	}
	return b.String()
}
