// Package kernel parses the kernel's files from which the sampler reads, one
// parser per file, named after it. Every parser returns µs for times and bytes
// for sizes, whatever the file's own unit is, so that cgroup v1 and v2 come out
// the same. A counter that a file does not hold is a [Value] that is not known,
// never zero. Input that the kernel does not write is an error, without a panic
// and without an overflow.
//
// The formats are those of the kernel's documentation: admin-guide/cgroup-v2,
// admin-guide/cgroup-v1, accounting/psi and filesystems/proc.
//
// The parsers of the files that are read again and again do not allocate.
package kernel

import (
	"bytes"
	"fmt"
	"math"
)

// Value is a counter that a kernel may or may not offer.
type Value struct {
	N     int64
	Known bool
}

func known(n int64) Value { return Value{N: n, Known: true} }

// usPerTick is the length in µs of the tick in which /proc/stat and
// cpuacct.stat count: USER_HZ is 100 on amd64 and arm64.
const usPerTick = 10_000

// cutLine splits off the first line, without its newline.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// cutField splits off the first field; blanks separate fields.
func cutField(b []byte) (field, rest []byte) {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// number parses a decimal number that fits in an int64.
func number(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0') // 19 digits fit in a uint64
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}

// ticks parses a number of ticks and returns µs. The bound leaves room to add
// ten of them.
func ticks(b []byte) (int64, bool) {
	n, ok := number(b)
	if !ok || n > math.MaxInt64/usPerTick/10 {
		return 0, false
	}
	return n * usPerTick, true
}

// add adds two numbers that are not negative.
func add(a, b int64) (int64, bool) {
	if a > math.MaxInt64-b {
		return 0, false
	}
	return a + b, true
}

// set stores a number under a key that may appear once.
func set(v *Value, n int64) bool {
	if v.Known {
		return false
	}
	*v = known(n)
	return true
}

// bad is the error for a line that the kernel would not write.
func bad(file string, line []byte) error {
	const most = 60
	if len(line) > most {
		return fmt.Errorf("%s: unexpected line %q…", file, line[:most])
	}
	return fmt.Errorf("%s: unexpected line %q", file, line)
}

// single parses a file that holds one number.
func single(file string, b []byte) (int64, error) {
	line, rest := cutLine(b)
	n, ok := number(line)
	if !ok || len(rest) > 0 {
		return 0, bad(file, b)
	}
	return n, nil
}
