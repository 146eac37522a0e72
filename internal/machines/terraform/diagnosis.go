package terraform

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// diagnosis is one error that Terraform reported.
type diagnosis struct {
	summary string // its first line
	address string // the resource it is about, if it is about one
	detail  string // its paragraphs, each on a line, without excerpts of the configuration
}

// parseDiagnoses reads the errors out of what Terraform wrote, with or without
// the frame that it draws around each.
func parseDiagnoses(text string) []diagnosis {
	var all []diagnosis
	var paragraph []string
	inside := false
	flush := func() {
		if inside && len(paragraph) > 0 {
			if joined := strings.Join(paragraph, " "); !strings.HasPrefix(joined, "This was checked by the validation rule") {
				d := &all[len(all)-1]
				if d.detail != "" {
					d.detail += "\n"
				}
				d.detail += joined
			}
		}
		paragraph = nil
	}
	excerpt := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "│"); ok {
			line = strings.TrimPrefix(rest, " ")
		}
		switch {
		case line == "╷" || line == "╵":
			flush()
			inside, excerpt = false, false
		case strings.HasPrefix(line, "Error: "):
			flush()
			all = append(all, diagnosis{summary: strings.TrimSpace(strings.TrimPrefix(line, "Error: "))})
			inside, excerpt = true, false
		case strings.HasPrefix(line, "Warning: "):
			flush()
			inside, excerpt = false, false
		case strings.TrimSpace(line) == "":
			flush()
			excerpt = false
		case len(paragraph) == 0 && strings.HasPrefix(line, "  "):
			// Where in the configuration, and what is written there.
			excerpt = true
			if a, ok := strings.CutPrefix(line, "  with "); ok && inside {
				all[len(all)-1].address = strings.TrimSuffix(strings.TrimSpace(a), ",")
			}
		case !excerpt:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
	return all
}

// colours are what some commands print whether or not anybody can see them.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// unframed is a text on one line, without what Terraform draws a frame around:
// where it reports an error in another way, those are warnings.
func unframed(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "╷"), strings.HasPrefix(line, "│"), strings.HasPrefix(line, "╵"),
			strings.HasPrefix(line, "There are some problems with the CLI configuration:"):
		default:
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}

// ours reports whether the detail is a sentence of the modules themselves,
// about what they were given.
func (d diagnosis) ours() bool {
	switch d.summary {
	case "Invalid value for variable", "Resource precondition failed", "Resource postcondition failed":
		return d.detail != ""
	}
	return false
}

// longest is how much of a diagnosis goes into an error, in bytes.
const longest = 600

// sentence is the diagnosis on one line.
func (d diagnosis) sentence() string {
	text := strings.TrimRight(strings.ReplaceAll(d.detail, "\n", " "), " .")
	switch {
	case text == "":
		text = strings.TrimRight(d.summary, " .")
	case !d.ours():
		text = strings.TrimRight(d.summary, " .:") + ": " + text
	}
	if d.address != "" && !d.ours() {
		text = d.address + ": " + text
	}
	// A refusal can carry a page of text that only its maker can decode.
	if head, _, cut := strings.Cut(text, " Encoded authorization failure message:"); cut {
		text = strings.TrimRight(head, " .")
	}
	if len(text) > longest {
		cut := longest
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// summarise puts the diagnoses into one sentence: the first in full.
func summarise(all []diagnosis) string {
	text := all[0].sentence()
	if n := len(all) - 1; n == 1 {
		text += " (and one more error)"
	} else if n > 1 {
		text += fmt.Sprintf(" (and %d more errors)", n)
	}
	return text
}
