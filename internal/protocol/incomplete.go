package protocol

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/percore/percore/internal/evidence/store"
)

// Incomplete says that blocks broke off and windows are missing. Everything else
// was measured, unless the run ended early.
type Incomplete struct {
	Missing, Planned int     // windows
	Ended            bool    // whether the run ended before the plan did
	Errs             []error // one of each block that broke off
}

// Error names the first blocks.
func (e *Incomplete) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d windows were not measured", e.Missing, e.Planned)
	if e.Missing == 0 {
		b.Reset()
		b.WriteString("every window was measured, but something around them failed")
	}
	if e.Ended {
		fmt.Fprintf(&b, ", and the run ended because %d attempts at a block in a row broke off", MaxBroken)
	}
	for i, err := range e.Errs[:min(most, len(e.Errs))] {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + err.Error())
	}
	if n := len(e.Errs) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	return b.String()
}

// Unwrap returns the errors.
func (e *Incomplete) Unwrap() []error { return e.Errs }

// writeError says that the run can no longer be written down.
type writeError struct{ error }

// Unwrap returns the cause.
func (e *writeError) Unwrap() error { return e.error }

func (r *Runner) append(e store.Event) error { return writing(r.Journal.Append(e)) }

func (r *Runner) writeRaw(path string, data []byte) (string, error) {
	sum, err := r.Journal.WriteRaw(path, data)
	return sum, writing(err)
}

func writing(err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return &writeError{err}
}
