// Package sheet writes an answer, sentences and tables, as text for a terminal,
// as Markdown, as CSV or as JSON. What the tables hold is decided elsewhere;
// here nothing is computed.
package sheet

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/percore/percore/internal/base/fail"
)

// Enumerate joins names as a sentence does.
func Enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Document is one answer.
type Document struct {
	Title    string
	First    []string // what has to be said before any figure
	Findings []string // the answer in sentences
	Tables   []Table
	Last     []string // assumptions and sources
}

// Table is one table. Cells are written as they are.
type Table struct {
	Name   string // short, for CSV
	Title  string
	Header []string
	Rows   [][]string
	Notes  []string
	Left   int // columns from the left that are words and not numbers
	Right  int // the same from the right
}

// Formats are the formats of Write.
var Formats = []string{"text", "md", "csv", "json"}

// CheckFormat refuses a format that does not exist.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return fail.Input("unknown format %q", format).Try("take one of %s", strings.Join(Formats, ", "))
	}
	return nil
}

// Write writes a document in a format. JSON is written from the value that the
// document was made of.
func Write(w io.Writer, format string, d Document, value any) error {
	switch format {
	case "text":
		return Text(w, d)
	case "md":
		return Markdown(w, d)
	case "csv":
		return CSV(w, d)
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(value)
	}
	return CheckFormat(format)
}

// Widths at which text is wrapped, in columns.
const (
	wide      = 100
	cellWidth = 44
)

// Text writes for a terminal.
func Text(w io.Writer, d Document) error {
	var b strings.Builder
	paragraph := func(lines []string, bullet string) {
		if len(lines) == 0 {
			return
		}
		first := bullet
		for _, l := range lines {
			for i, line := range strings.Split(text.WrapSoft(l, wide), "\n") {
				if i == 1 {
					bullet = strings.Repeat(" ", len(bullet))
				}
				fmt.Fprintf(&b, "%s%s\n", bullet, strings.TrimRight(line, " "))
			}
			bullet = first
		}
		b.WriteString("\n")
	}
	paragraph([]string{d.Title}, "")
	paragraph(d.First, "! ")
	paragraph(d.Findings, "- ")
	for _, t := range d.Tables {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", t.Title)
		tw := table.NewWriter()
		style := table.StyleLight
		style.Format.Header = text.FormatDefault
		style.Options.SeparateColumns = false
		style.Options.DrawBorder = false
		tw.SetStyle(style)
		tw.AppendHeader(row(t.Header))
		var columns []table.ColumnConfig
		for i := range t.Header {
			c := table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight, WidthMax: cellWidth, WidthMaxEnforcer: text.WrapSoft}
			if i < t.Left || i >= len(t.Header)-t.Right {
				c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
			}
			columns = append(columns, c)
		}
		tw.SetColumnConfigs(columns)
		for _, r := range t.Rows {
			tw.AppendRow(row(r))
		}
		for _, line := range strings.Split(tw.Render(), "\n") {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		for _, n := range t.Notes {
			for _, line := range strings.Split(text.WrapSoft(n, wide), "\n") {
				fmt.Fprintf(&b, "  %s\n", strings.TrimRight(line, " "))
			}
		}
		b.WriteString("\n")
	}
	paragraph(d.Last, "  ")
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = c
	}
	return r
}

// Markdown writes GitHub's Markdown.
func Markdown(w io.Writer, d Document) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", escape(d.Title))
	for _, l := range d.First {
		fmt.Fprintf(&b, "> **%s**\n>\n", escape(l))
	}
	if len(d.First) > 0 {
		b.WriteString("\n")
	}
	for _, l := range d.Findings {
		fmt.Fprintf(&b, "- %s\n", escape(l))
	}
	for _, t := range d.Tables {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", escape(t.Title))
		line := func(cells []string) {
			b.WriteString("|")
			for _, c := range cells {
				fmt.Fprintf(&b, " %s |", escape(c))
			}
			b.WriteString("\n")
		}
		line(t.Header)
		b.WriteString("|")
		for i := range t.Header {
			if i < t.Left || i >= len(t.Header)-t.Right {
				b.WriteString(" --- |")
			} else {
				b.WriteString(" ---: |")
			}
		}
		b.WriteString("\n")
		for _, r := range t.Rows {
			line(r)
		}
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "\n%s\n", escape(n))
		}
	}
	if len(d.Last) > 0 {
		b.WriteString("\n")
	}
	for _, l := range d.Last {
		fmt.Fprintf(&b, "- %s\n", escape(l))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var escaper = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_", "`", "\\`")

func escape(s string) string { return escaper.Replace(s) }

// CSV writes every table into one file: the first column names the table, and
// each table begins with its header.
func CSV(w io.Writer, d Document) error {
	c := csv.NewWriter(w)
	for _, t := range d.Tables {
		if len(t.Rows) == 0 {
			continue
		}
		if err := c.Write(append([]string{"table"}, t.Header...)); err != nil {
			return err
		}
		for _, r := range t.Rows {
			if err := c.Write(append([]string{t.Name}, r...)); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}
