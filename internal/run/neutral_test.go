package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/protocol"
)

type events []store.Event

func (e *events) Append(x store.Event) error { *e = append(*e, x); return nil }

type lines []string

func (l *lines) Printf(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }
func (l *lines) Status(string, ...any)             {}
func (l *lines) Transient(string, ...any)          {}
func (l *lines) Debugf(string, ...any)             {}
func (l *lines) Watch() protocol.Observer          { return nil }

// A run goes on when a program of the tools image is missing, say, and only a
// reading that no window rests on is lost by it.
func TestAReadingThatFailsIsANote(t *testing.T) {
	var log events
	var said lines
	var taken []string
	readings := []reading{
		{"timing one thing", func() error { taken = append(taken, "one"); return errors.New("openssl: not found") }},
		{"timing another", func() error { taken = append(taken, "another"); return nil }},
	}
	if err := take(t.Context(), &said, &log, readings); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(taken, []string{"one", "another"}) {
		t.Errorf("took %v", taken)
	}
	if len(log) != 1 || log[0].Type != store.EventNote || log[0].Message != "timing one thing failed" || log[0].Error != "openssl: not found" {
		t.Errorf("the log is %+v", log)
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "note: timing one thing failed") || !strings.Contains(said[0], "openssl: not found") {
		t.Errorf("said %q", said)
	}

	ctx, cancel := context.WithCancel(t.Context())
	readings[0].take = func() error { cancel(); return context.Canceled }
	log, taken = nil, nil
	if err := take(ctx, &said, &log, readings); !errors.Is(err, context.Canceled) || len(taken) > 0 || len(log) > 0 {
		t.Errorf("an interrupted run: %v, took %v, log %+v", err, taken, log)
	}
}
