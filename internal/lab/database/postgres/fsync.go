package postgres

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// FsyncCommand is the shell command that runs pg_test_fsync on a file for one
// second per method, up to the end of its first section, one 8 kB write; the
// file is its first argument and is removed.
const FsyncCommand = `pg_test_fsync -s 1 -f "$1" | sed '/using two 8kB writes/q'; rm -f "$1"`

// ParseFsync reads what pg_test_fsync prints and returns, for each method of
// its first section, the synchronous 8 kB writes per second that the volume
// carries. A method the platform does not have is absent.
func ParseFsync(text []byte) (map[string]float64, error) {
	out := map[string]float64{}
	inside := false
	sc := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; sc.Scan(); line++ {
		words := strings.Fields(sc.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "("):
			continue
		case strings.HasPrefix(sc.Text(), "Compare file sync methods using one "):
			inside = true
			continue
		case !strings.HasPrefix(sc.Text(), " ") && !strings.HasPrefix(sc.Text(), "\t"):
			inside = false
			continue
		case !inside:
			continue
		}
		// "open_datasync  1234.567 ops/sec  810 usecs/op", or "n/a" with a star for a note.
		if len(words) < 3 || words[2] != "ops/sec" {
			if len(words) >= 2 && strings.HasPrefix(words[1], "n/a") {
				continue
			}
			return nil, fmt.Errorf("pg_test_fsync, line %d: %q is not a result", line, sc.Text())
		}
		v, err := strconv.ParseFloat(words[1], 64)
		if err != nil || v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("pg_test_fsync, line %d: %q is not a number of operations per second", line, words[1])
		}
		if _, twice := out[words[0]]; twice {
			return nil, fmt.Errorf("pg_test_fsync, line %d: the method %s appears twice", line, words[0])
		}
		out[words[0]] = v
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("reading pg_test_fsync's output: %w", err)
	}
	if len(out) == 0 {
		return nil, errors.New("pg_test_fsync printed no result")
	}
	return out, nil
}
