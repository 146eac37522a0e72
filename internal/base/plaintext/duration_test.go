package plaintext

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                          "0s",
		42*time.Second + 400*time.Millisecond: "42s",
		59*time.Second + 600*time.Millisecond: "1m00s",
		3*time.Minute + 5*time.Second:         "3m05s",
		130*time.Minute + 29*time.Second:      "2h10m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
