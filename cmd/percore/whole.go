package main

import (
	"regexp"
	"strconv"
)

// whole is a flag that takes a whole number in digits alone: 010 and 0x10 are
// other numbers to other readers.
type whole uint64

var wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// Set reads the number.
func (w *whole) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil && !wholeForm.MatchString(s) {
		err = &strconv.NumError{Func: "ParseUint", Num: s, Err: strconv.ErrSyntax}
	}
	if err != nil {
		return err
	}
	*w = whole(v)
	return nil
}

func (w *whole) String() string { return strconv.FormatUint(uint64(*w), 10) }

// Type is how the number is called in the help.
func (*whole) Type() string { return "uint" }
