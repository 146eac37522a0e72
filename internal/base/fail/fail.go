// Package fail tells apart the two ways in which percore ends badly: the input
// was wrong (exit code 2: change what you typed or wrote), or the work failed
// (exit code 1: something happened on a host).
package fail

import (
	"errors"
	"fmt"
)

// Exit codes of the command.
const (
	CodeFailed = 1 // the run failed
	CodeInput  = 2 // the input was wrong
)

type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// Input makes an error that says the input was wrong. The text is one sentence
// that names the input and the remedy; %w wraps as in fmt.Errorf.
func Input(format string, args ...any) error {
	return &inputError{fmt.Errorf(format, args...)}
}

// IsInput reports whether the error, or one it wraps, blames the input.
func IsInput(err error) bool {
	var e *inputError
	return errors.As(err, &e)
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
