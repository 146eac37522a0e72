package yamlfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

// TestPlace finds the line of a value by its key.
func TestPlace(t *testing.T) {
	text := []byte("# a comment\nname: x\nroles:\n  app: {cpus: 1}\n  c7g.large:\n    memory: 2\nphases:\n  - id: a\n    window: 1s\n  - {id: b, window: 2s}\nbase: &b\n  k: 1\nlike: *b\n")
	for key, want := range map[string]string{
		"name": "f:2", "roles.app.cpus": "f:4", "roles.app.memory": "f:4", "roles.db": "f:3", "roles.c7g.large.memory": "f:6", "roles.c7g.large": "f:5",
		"phases[0]": "f:8", "phases[0].window": "f:9", "phases[1].window": "f:10", "phases[7].window": "f:7", "phases": "f:7", "nothing": "f:1", "like.k": "f:13",
	} {
		err := kind.Place("f", text, fail.Input("wrong").On("%s", key).Try("do it right"))
		if got := said.Err(err); got != want+": wrong; do it right" || !fail.IsInput(err) {
			t.Errorf("%s: %q, want line %s", key, got, want)
		}
	}
	if got := said.Err(kind.Place("f", text, errors.New("wrong"))); got != "f: wrong" {
		t.Errorf("without a key: %q", got)
	}
	if got := said.Err(kind.Place("f", []byte("{"), fail.Input("wrong").On("a"))); !strings.HasPrefix(got, "f:1: wrong") {
		t.Errorf("of no document: %q", got)
	}
	deep := fail.Below("phases[1]", fail.Input("wrong").On("window"))
	if key := fail.KeyOf(deep); key != "phases[1].window" {
		t.Errorf("below: %q", key)
	}
}
