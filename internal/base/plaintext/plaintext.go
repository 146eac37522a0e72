// Package plaintext keeps what percore writes text: valid UTF-8 without control
// characters, whatever the names and texts of a run hold. A terminal would obey
// them, and a reader of the file may refuse it.
package plaintext

import (
	"io"
	"unicode"
	"unicode/utf8"
)

// mark stands for what is no text.
const mark = utf8.RuneError

// Clean replaces what is not UTF-8, control characters but line feed and
// tabulator, and what turns the direction of writing or ends a line in disguise.
func Clean(text []byte) []byte {
	out, _ := clean(make([]byte, 0, len(text)), text, true)
	return out
}

// String is Clean for a string.
func String(text string) string { return string(Clean([]byte(text))) }

// clean appends what text holds and returns the beginning of a character that is
// not whole yet, unless that is the end.
func clean(out, text []byte, end bool) (all, rest []byte) {
	for len(text) > 0 {
		if !end && !utf8.FullRune(text) {
			return out, text
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1, obeyed(r):
			out = utf8.AppendRune(out, mark)
		default:
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out, nil
}

// obeyed reports whether a character does something instead of being seen.
func obeyed(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	}
	return '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' // directions
}

// Writer cleans what is written through it.
type Writer struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// NewWriter makes a Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap is the writer underneath.
func (w *Writer) Unwrap() io.Writer { return w.w }

func (w *Writer) Write(p []byte) (int, error) {
	out, rest := clean(make([]byte, 0, len(w.rest)+len(p)), append(w.rest, p...), false)
	w.rest = append([]byte(nil), rest...)
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what the last character lacked.
func (w *Writer) Flush() error {
	out, _ := clean(nil, w.rest, true)
	w.rest = nil
	if len(out) == 0 {
		return nil
	}
	_, err := w.w.Write(out)
	return err
}
