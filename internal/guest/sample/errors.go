package sample

import (
	"errors"
	"fmt"
)

type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// Input makes an error that blames what the sampler was given: one sentence
// that names it and the remedy. The sampler has its own because it builds from
// its own sources alone.
func Input(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// IsInput reports whether an error blames what the sampler was given.
func IsInput(err error) bool {
	var e inputError
	return errors.As(err, &e)
}
