// Package fail is how percore ends badly: an error that knows which input is
// wrong and what to do about it. An error says what is wrong; what to do is a
// field of its own, which the command line puts behind it in its own words.
package fail

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Exit codes of the command.
const (
	CodeFailed = 1 // the run failed: something happened on a host
	CodeInput  = 2 // the input was wrong: change what you typed or wrote
)

// Error is a problem with its remedy. Its text is the problem alone.
type Error struct {
	Input   string // the input that is wrong: a file, with its line; "" where the problem names it
	Key     string // of a file: where the wrong value stands, as in roles.app.memory; "" where that is not known
	Problem error
	Remedy  Text // what to do; the zero Text where nothing can be done
	Code    int  // exit code of the command
}

func (e *Error) Error() string {
	if e.Input == "" {
		return e.Problem.Error()
	}
	return e.Input + ": " + e.Problem.Error()
}

func (e *Error) Unwrap() error { return e.Problem }

// Try adds what to do about the problem: a part of a sentence such as "name
// another file". A [Setting] or a [Command] among its arguments is written as
// the reader of the sentence gives it.
func (e *Error) Try(format string, args ...any) *Error {
	if false {
		_ = fmt.Sprintf(format, args...) // so that vet looks at the format
	}
	e.Remedy = Text{format, args}
	return e
}

// On names the key of a file at which the wrong value stands.
func (e *Error) On(format string, args ...any) *Error {
	e.Key = fmt.Sprintf(format, args...)
	return e
}

// Below puts the key of an error, if it has one, below another: the value stands
// in a part of the file.
func Below(key string, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Key != "" {
		e.Key = key + "." + e.Key
	} else if e != nil {
		e.Key = key
	}
	return err
}

// KeyOf is the key that an error names; "" for none.
func KeyOf(err error) string {
	for _, e := range all(err) {
		if e.Key != "" {
			return e.Key
		}
	}
	return ""
}

// Input makes an error that says that the input was wrong, in a sentence that
// names the input; %w wraps as in fmt.Errorf.
func Input(format string, args ...any) *Error {
	return &Error{Problem: fmt.Errorf(format, args...), Code: CodeInput}
}

// In makes an error that says what is wrong in one input, such as a file.
func In(input, format string, args ...any) *Error {
	return &Error{Input: input, Problem: fmt.Errorf(format, args...), Code: CodeInput}
}

// Line names a line of a file, as the input of an error.
func Line(file string, line int) string { return fmt.Sprintf("%s, line %d", file, line) }

// At names a line of a file as editors and compilers do.
func At(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// Work makes an error that says that the work failed, for one that has a
// remedy. Others need no type of their own.
func Work(format string, args ...any) *Error {
	return &Error{Problem: fmt.Errorf(format, args...), Code: CodeFailed}
}

// IsInput reports whether the error, or one it wraps, blames the input.
func IsInput(err error) bool {
	return slices.ContainsFunc(all(err), func(e *Error) bool { return e.Code == CodeInput })
}

// Code is the exit code for an error: 0 for nil.
func Code(err error) int {
	switch {
	case err == nil:
		return 0
	case IsInput(err):
		return CodeInput
	default:
		return CodeFailed
	}
}

// Sentence is an error with what to do about it: the problem, then every remedy
// from the innermost error outwards. How writes settings and commands; nil
// writes them as words.
func Sentence(err error, how Words) string {
	if remedy := Remedy(err, how); remedy != "" {
		return err.Error() + "; " + remedy
	}
	return err.Error()
}

// Remedy is what to do about an error; "" where nothing is known.
func Remedy(err error, how Words) string {
	var parts []string
	for _, e := range all(err) {
		if r := e.Remedy.In(how); r != "" && !slices.Contains(parts, r) {
			parts = append(parts, r)
		}
	}
	return strings.Join(parts, "; ")
}

// all are the errors of this package in a tree of errors, the innermost first.
func all(err error) []*Error {
	var found []*Error
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			found = all(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range x.Unwrap() {
			found = append(found, all(inner)...)
		}
	}
	if e, ok := err.(*Error); ok {
		found = append(found, e)
	}
	return found
}
