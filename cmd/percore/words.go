package main

import (
	"fmt"
	"strings"

	"github.com/percore/percore/internal/base/fail"
)

// flags writes settings as flags and commands as they are typed.
func flags(arg any) string {
	switch x := arg.(type) {
	case fail.Setting:
		return "--" + string(x)
	case fail.Value:
		return "--" + string(x.Setting) + " " + x.Value
	case fail.Command:
		return "`" + strings.TrimSpace(x.Words(flags)) + "`"
	}
	return fmt.Sprint(arg)
}
