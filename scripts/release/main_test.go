package main

import (
	"strings"
	"testing"
	"time"
)

func TestVersionThatIsNone(t *testing.T) {
	for _, version := range []string{"", "v", "1.0 beta", "../1", "-x"} {
		if _, err := release(t.Context(), options{version: version, out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "-version is ") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestTimeOfTheRelease(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if got, err := commitTime(t.Context(), "."); err != nil || !got.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("as told: %s, %v", got, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := commitTime(t.Context(), "."); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("no number: %v", err)
	}
}
