package console

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// TestProbeLines says of each reading of a probe what it means.
func TestProbeLines(t *testing.T) {
	for want, reading := range map[string]store.ProbeReading{
		"499 of 500/s (99.8 %): ok": {Target: 500, Achieved: 499},
		"400 of 500/s (80.0 %): FAILED, the load generator or the machine is the limit": {Target: 500, Achieved: 400},
		"0 of 500/s (0.0 %): FAILED, cut off":                                           {Target: 500, Error: "cut off"},
		"29,107/s flat out, over 256 connections":                                       {Achieved: 29107, Connections: 256},
	} {
		var out bytes.Buffer
		c := New(&out, false, func() int { return 80 }, false)
		c.Watch().ProbeEnded(plan.Block{}, reading)
		if got := strings.TrimSpace(out.String()); got != "probe   "+want {
			t.Errorf("%+v: %q", reading, got)
		}
	}
}

func TestBrokenBlockLine(t *testing.T) {
	b := plan.Block{BlockID: plan.BlockID{Candidate: "go", Repetition: 2}}
	for again, want := range map[bool]string{
		true:  "go r2 broke off, it is tried again: gone",
		false: "go r2 broke off, its windows are left out: gone",
	} {
		var out bytes.Buffer
		c := New(&out, false, func() int { return 80 }, false)
		c.Watch().BlockFailed(b, errors.New("gone"), again)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
