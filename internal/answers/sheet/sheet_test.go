package sheet

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"unicode/utf8"
)

func document() Document {
	return Document{
		Title: "A title", First: []string{"Said first."}, Findings: []string{strings.Repeat("many words ", 30)}, Last: []string{"Said last."},
		Tables: []Table{
			{Name: "t", Title: "A table", Left: 1, Header: []string{"name", "value"}, Rows: [][]string{{"a|b", "1"}, {"quote \" and, comma", "22"}}, Notes: []string{"a note"}},
			{Name: "empty", Title: "An empty table", Header: []string{"x"}},
		},
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, document()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "An empty table") || strings.Index(text, "Said first") > strings.Index(text, "many words") {
		t.Errorf("%s", text)
	}
	for _, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > wide+2 || strings.TrimRight(line, " ") != line {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(text, " a|b                     1") {
		t.Errorf("numbers are not on the right:\n%s", text)
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, document()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## A title", "> **Said first.**", "| --- | ---: |", `| a\|b | 1 |`, "a note", "- Said last."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, document()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 || rows[2][1] != `quote " and, comma` || rows[0][0] != "table" {
		t.Errorf("%v, %v", rows, err)
	}
}
