// Package said is how tests look at what percore says: errors with what to do
// about them, settings and commands as the command line writes them.
package said

import (
	"fmt"

	"github.com/percore/percore/internal/base/fail"
)

// Err is an error with its remedy in one sentence; "" for nil.
func Err(err error) string {
	if err == nil {
		return ""
	}
	return fail.Sentence(err, Words)
}

// Words writes settings and commands as the command line does.
func Words(arg any) string {
	switch x := arg.(type) {
	case fail.Setting:
		return "--" + string(x)
	case fail.Value:
		return "--" + string(x.Setting) + " " + x.Value
	case fail.Command:
		return "`" + x.Words(Words) + "`"
	}
	return fmt.Sprint(arg)
}
