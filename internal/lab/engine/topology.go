package engine

import (
	"os"
	"path/filepath"
	"strings"
)

// Siblings reads from this machine's kernel which CPUs share a core: a line for
// each CPU that is online. It is empty where the kernel does not tell, as on
// anything but Linux, or has another number of CPUs than asked for: then the
// CPUs are those of a virtual machine, or a part of this machine's.
func Siblings(cpus int) string { return siblings("/sys", cpus) }

func siblings(sys string, cpus int) string {
	dirs, _ := filepath.Glob(filepath.Join(sys, "devices/system/cpu/cpu[0-9]*/topology")) // the pattern is a good one
	var lines []string
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "thread_siblings_list"))
		if err != nil { // its name on newer kernels
			text, err = os.ReadFile(filepath.Join(dir, "core_cpus_list"))
		}
		if line := strings.TrimSpace(string(text)); err == nil && line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) != cpus {
		return ""
	}
	return strings.Join(lines, "\n")
}
