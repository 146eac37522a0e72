package store

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestChain: an event that is missing from the middle of a log, or was changed,
// shows, also behind a torn line and in a run that was carried on. A log of before
// there were chains has nothing to show.
func TestChain(t *testing.T) {
	s := create(t, "a1")
	appendAll(t, s, Event{Type: EventRunStarted}, windowEvent(1, 1), windowEvent(2, 1))
	s.Close()
	name := filepath.Join(s.Dir(), EventsFile)
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-01-0`); err != nil { // a kill
		t.Fatal(err)
	}
	f.Close()
	if s, err = Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := s.Lock(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, windowEvent(3, 1), Event{Type: EventRunEnded, Message: StateComplete})
	s.Close()
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text []byte) History {
		t.Helper()
		h, err := parseEvents("log", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := parse(whole)
	if len(h.broken) != 0 || h.twice != 0 || len(h.Events) != 5 || h.tail != s.History().tail {
		t.Fatalf("the whole log: %+v", h)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	without := func(i int) []byte { return bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil) }
	for _, i := range []int{0, 1, 2, 5} { // 3 is torn, 4 says so, 6 is the last
		if h := parse(without(i)); len(h.broken) != 1 || h.broken[0] != i+1 && i != 2 {
			t.Errorf("without line %d: %v", i+1, h.broken)
		}
	}
	if h := parse(bytes.Replace(whole, []byte(`"repetition":2`), []byte(`"repetition":4`), 1)); len(h.broken) != 1 {
		t.Errorf("a changed line: %v", h.broken)
	}
	old := regexp.MustCompile(`,"prev":"[0-9a-f]*"`).ReplaceAll(whole, nil)
	if h := parse(old); len(h.broken) != 0 || len(h.Events) != 5 {
		t.Errorf("an old log: %v", h.broken)
	}
	oldLines := bytes.SplitAfter(old, []byte("\n"))
	if h := parse(bytes.Join(append(append([][]byte{}, oldLines[:1]...), oldLines[2:]...), nil)); len(h.broken) != 0 {
		t.Errorf("an old log: %v", h.broken)
	}

	// Copied twice, each event is there once, and the chain holds.
	h = parse(append(bytes.Clone(whole), whole...))
	if len(h.Events) != 5 || len(h.Windows()) != 3 || len(h.broken) != 0 || h.tail != s.History().tail || !strings.Contains(h.Twice(), "left out") {
		t.Errorf("copied twice: %d events, %d windows, %v, %q", len(h.Events), len(h.Windows()), h.broken, h.Twice())
	}
}
