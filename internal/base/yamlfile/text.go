package yamlfile

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/percore/percore/internal/base/fail"
)

// withoutMark takes off the byte order mark with which some editors begin a
// file.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\uFEFF")) }

// readable refuses what is not text in UTF-8.
func readable(name string, data []byte) error {
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) || looksWide(data) {
		return fail.In(name, "this is UTF-16 or UTF-32").Try("save the file as UTF-8")
	}
	line := 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return fail.In(fail.At(name, line), "the byte %#02x is not UTF-8", data[i]).Try("save the file as UTF-8")
		case r == '\n':
			line++
		case unicode.IsControl(r) && r != '\t' && r != '\r':
			return fail.In(fail.At(name, line), "the file holds the control character %U", r).Try("take it out")
		}
		i += n
	}
	return nil
}

// looksWide reports whether every other byte is 0, as in UTF-16 without a mark.
func looksWide(data []byte) bool {
	if len(data) < 4 {
		return false
	}
	return data[0] == 0 && data[2] == 0 || data[1] == 0 && data[3] == 0
}

// shallow refuses values in values that are nested so deeply that only an
// attack writes them: reading them would exhaust the stack.
func shallow(name string, data []byte) error {
	depth, line, onLine := 0, 0, 0
	for _, t := range lexer.Tokenize(string(data)) {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if depth == 0 {
				onLine++
			}
		}
		if depth > maxDepth || onLine > maxDepth || t.Position.IndentNum > 10*maxDepth {
			return fail.In(fail.At(name, line), "values are nested more than %d deep", maxDepth).Try("write fewer levels")
		}
	}
	return nil
}
