package run

import (
	"errors"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/oha"
)

// TestTokensAreRenewed lets the machine sleep between two windows.
func TestTokensAreRenewed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var signed []time.Time
	var fail error
	tk := &tokens{now: func() time.Time { return now }, sign: func(expires time.Time) (map[string]oha.Token, error) {
		signed = append(signed, expires)
		return map[string]oha.Token{"events:read": "t"}, fail
	}}
	for _, c := range []struct {
		passes, valid time.Duration
		renewed       bool
	}{
		{0, time.Minute, true},
		{time.Minute, time.Minute, false},
		{80 * time.Minute, time.Minute, false},
		{10 * time.Minute, time.Minute, true},     // little is left
		{9 * time.Hour, time.Minute, true},        // it slept
		{time.Minute, 3 * time.Hour, true},        // a long window
		{2 * time.Hour, 150 * time.Minute, false}, // of which this is still covered
	} {
		now = now.Add(c.passes)
		got, err := tk.renew(c.valid)
		if err != nil || (got != nil) != c.renewed {
			t.Errorf("after %s, for %s: %v, %v", c.passes, c.valid, got, err)
		}
		if last := signed[len(signed)-1]; last.Sub(now) < c.valid+spare {
			t.Errorf("after %s, for %s: they expire in %s", c.passes, c.valid, last.Sub(now))
		}
	}
	now, fail = now.Add(24*time.Hour), errors.New("no key")
	if _, err := tk.renew(time.Minute); !errors.Is(err, fail) {
		t.Errorf("error %v", err)
	}
	fail = nil
	if got, err := tk.renew(time.Minute); err != nil || got == nil {
		t.Errorf("after a failure: %v, %v", got, err)
	}
}
