package outfile

import (
	"errors"
	"syscall"
	"testing"
)

func TestFullDevice(t *testing.T) {
	if err := Write("/dev/full", []byte("text"), true); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}
