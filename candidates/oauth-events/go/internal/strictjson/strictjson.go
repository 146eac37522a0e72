// Package strictjson reads JSON the way the contract of the suite wants it read
// by every candidate, whatever their languages' own readers accept: RFC 8259 to
// the letter, names compared byte by byte, the last of two members with the same
// name wins, at most MaxDepth levels, no escape that stands for half a surrogate
// pair or for U+0000 (PostgreSQL can store neither).
package strictjson

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// How many arrays and objects may be nested, the outermost included: in a body, and
// in a part of a token, where a library of another candidate gives up one level
// earlier.
const (
	BodyDepth  = 512
	TokenDepth = 511
)

// MaxExponent bounds the exponent of a number that will be stored, in either
// direction: PostgreSQL writes 1e131071 out in full, so that six bytes of a
// request would become 128 KiB of every later answer.
const MaxExponent = 308

var (
	// ErrSyntax is returned for text that is not JSON as this package reads it.
	ErrSyntax = errors.New("malformed JSON")
	// ErrNotObject is returned for JSON that is not an object.
	ErrNotObject = errors.New("not a JSON object")
	// ErrDepth is returned for JSON that nests deeper than allowed.
	ErrDepth = errors.New("JSON nested too deep")
	// ErrExponent is returned by Storable for a number beyond MaxExponent.
	ErrExponent = fmt.Errorf("exponent beyond %d", MaxExponent)
)

// Object reads data as one JSON object of at most TokenDepth levels and calls member for each of its members
// in order, with the decoded name and the text of the value. The callback sees
// members before the rest of the object was read: drop what it collected when
// Object returns an error.
func Object(data []byte, member func(name string, value []byte)) error {
	return object(data, member, scanner{maxDepth: TokenDepth})
}

// Storable is Object for a text whose values PostgreSQL will store as jsonb: it
// allows BodyDepth levels and refuses numbers with an exponent beyond MaxExponent.
func Storable(data []byte, member func(name string, value []byte)) error {
	return object(data, member, scanner{maxDepth: BodyDepth, storable: true})
}

// String decodes a value that Object has handed out. It reports false when the
// value is not a string.
func String(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return unquote(value[1 : len(value)-1]), true
}

// Strings decodes an array of strings that Object has handed out. It reports
// false when the value is anything else, or an element is not a string.
func Strings(value []byte) ([]string, bool) {
	if len(value) < 2 || value[0] != '[' {
		return nil, false
	}
	s := scanner{data: value, pos: 1}
	list := []string{}
	for {
		s.space()
		switch c := s.peek(); {
		case c == ']':
			return list, true
		case c == ',':
			s.pos++
		case c == '"':
			start := s.pos
			if s.text() != nil {
				return nil, false
			}
			list = append(list, unquote(value[start+1:s.pos-1]))
		default:
			return nil, false
		}
	}
}

// IsObject reports whether a value that Object has handed out is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsNumber reports whether a value that Object has handed out is a number.
func IsNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || '0' <= value[0] && value[0] <= '9')
}

func object(data []byte, member func(string, []byte), s scanner) error {
	if !utf8.Valid(data) {
		return ErrSyntax
	}
	s.data = data
	s.space()
	if s.peek() != '{' {
		if err := s.value(); err != nil {
			return err
		}
		if err := s.end(); err != nil {
			return err
		}
		return ErrNotObject
	}
	if err := s.members(member); err != nil {
		return err
	}
	return s.end()
}

// scanner walks over text that is known to be UTF-8.
type scanner struct {
	data     []byte
	pos      int
	depth    int
	maxDepth int
	storable bool
}

// peek returns the next byte, or 0 at the end: no rule of the grammar begins
// with a NUL, so the two need not be told apart.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) end() error {
	s.space()
	if s.pos != len(s.data) {
		return ErrSyntax
	}
	return nil
}

func (s *scanner) enter() error {
	s.pos++
	if s.depth++; s.depth > s.maxDepth {
		return ErrDepth
	}
	return nil
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		return s.members(nil)
	case c == '[':
		return s.elements()
	case c == '"':
		return s.text()
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return ErrSyntax
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return ErrSyntax
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) members(member func(string, []byte)) error {
	if err := s.enter(); err != nil {
		return err
	}
	s.space()
	if s.peek() == '}' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		s.space()
		start := s.pos
		if s.peek() != '"' {
			return ErrSyntax
		}
		if err := s.text(); err != nil {
			return err
		}
		name := s.data[start+1 : s.pos-1]
		s.space()
		if s.peek() != ':' {
			return ErrSyntax
		}
		s.pos++
		s.space()
		start = s.pos
		if err := s.value(); err != nil {
			return err
		}
		if member != nil {
			member(unquote(name), s.data[start:s.pos])
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			s.depth--
			return nil
		default:
			return ErrSyntax
		}
	}
}

func (s *scanner) elements() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.space()
	if s.peek() == ']' {
		s.pos++
		s.depth--
		return nil
	}
	for {
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			s.depth--
			return nil
		default:
			return ErrSyntax
		}
	}
}

// text steps over a string, the opening quote being next.
func (s *scanner) text() error {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c < 0x20:
			return ErrSyntax
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return ErrSyntax
}

// escape steps to the last byte of an escape sequence, the backslash being next.
func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
	default:
		return ErrSyntax
	}
	unit, ok := hex4(s.data[s.pos+1:])
	s.pos += 4
	switch {
	case !ok || unit == 0:
		return ErrSyntax
	case !utf16.IsSurrogate(unit):
		return nil
	}
	rest := s.data[s.pos+1:]
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return ErrSyntax
	}
	low, ok := hex4(rest[2:])
	if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
		return ErrSyntax
	}
	s.pos += 6
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if s.digits() == 0 {
		return ErrSyntax
	}
	if s.peek() == '.' {
		s.pos++
		if s.digits() == 0 {
			return ErrSyntax
		}
	}
	if c := s.peek(); c != 'e' && c != 'E' {
		return nil
	}
	s.pos++
	if c := s.peek(); c == '+' || c == '-' {
		s.pos++
	}
	start := s.pos
	if s.digits() == 0 {
		return ErrSyntax
	}
	exponent := 0
	for _, c := range s.data[start:s.pos] {
		if exponent = exponent*10 + int(c-'0'); s.storable && exponent > MaxExponent {
			return ErrExponent
		}
		exponent = min(exponent, MaxExponent+1)
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	return s.pos - start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var unit rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// unquote decodes the inside of a string that text has stepped over.
func unquote(b []byte) string {
	i := 0
	for i < len(b) && b[i] != '\\' {
		i++
	}
	if i == len(b) {
		return string(b)
	}
	out := make([]byte, i, len(b))
	copy(out, b)
	for ; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		i++
		switch c := b[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			unit, _ := hex4(b[i+1:])
			i += 4
			if utf16.IsSurrogate(unit) {
				low, _ := hex4(b[i+3:])
				unit = utf16.DecodeRune(unit, low)
				i += 6
			}
			out = utf8.AppendRune(out, unit)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// AppendString appends s as a JSON string. It escapes what must be escaped and,
// as PHP's writer does, the two line separators of JavaScript.
func AppendString(out []byte, s string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\b':
			out = append(out, `\b`...)
		case c == '\f':
			out = append(out, `\f`...)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < 0x20:
			out = append(out, `\u00`...)
			out = append(out, digits[c>>4], digits[c&15])
		case c == 0xE2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xA8:
			out = append(out, `\u202`...)
			out = append(out, digits[s[i+2]&15])
			i += 2
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
