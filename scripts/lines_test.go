package scripts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever the machine a checkout was made on, what goes into an image or is run
// by a shell ends its lines as Linux does.
func TestLinesEndInLF(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z", "..").Output()
	if err != nil {
		t.Skipf("this is no checkout: %v", err)
	}
	seen := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, and not yet from the index
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\r\n")) {
			t.Errorf("%s has CRLF line ends", filepath.Clean(name))
		}
		seen++
	}
	if seen < 100 {
		t.Errorf("only %d files were looked at", seen)
	}
}
