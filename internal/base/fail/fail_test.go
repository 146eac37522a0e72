package fail

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// shell writes settings as a reader of this test would give them.
func shell(arg any) string {
	switch x := arg.(type) {
	case Setting:
		return "+" + string(x)
	case Value:
		return "+" + string(x.Setting) + "=" + x.Value
	case Command:
		return "'" + x.Words(shell) + "'"
	}
	return "?"
}

func TestSentence(t *testing.T) {
	file := In("a.yaml", "rate is %d", 0).Try("write 1 or more")
	missing := Input("there is no run %q: %w", "x", fs.ErrNotExist).Try("take %s, or look with %s", Setting("latest"), Call("ls", Setting("results").To("/srv"), "2026"))
	for _, tt := range []struct {
		name            string
		err             error
		text, said, own string
		code            int
	}{
		{"a file", file, "a.yaml: rate is 0", "a.yaml: rate is 0; write 1 or more", "a.yaml: rate is 0; write 1 or more", CodeInput},
		{"settings", missing, `there is no run "x": file does not exist`,
			`there is no run "x": file does not exist; take +latest, or look with 'percore ls +results=/srv 2026'`,
			`there is no run "x": file does not exist; take latest, or look with percore ls results /srv 2026`, CodeInput},
		{"wrapped", fmt.Errorf("preparing: %w", file), "preparing: a.yaml: rate is 0", "preparing: a.yaml: rate is 0; write 1 or more", "preparing: a.yaml: rate is 0; write 1 or more", CodeInput},
		{"one in another", In("b", "%w", file).Try("docs say more"), "b: a.yaml: rate is 0", "b: a.yaml: rate is 0; write 1 or more; docs say more", "b: a.yaml: rate is 0; write 1 or more; docs say more", CodeInput},
		{"the same remedy twice", errors.Join(file, file), "a.yaml: rate is 0\na.yaml: rate is 0", "a.yaml: rate is 0\na.yaml: rate is 0; write 1 or more", "a.yaml: rate is 0\na.yaml: rate is 0; write 1 or more", CodeInput},
		{"work", Work("the disk is full").Try("free some"), "the disk is full", "the disk is full; free some", "the disk is full; free some", CodeFailed},
		{"work that rests on input", Work("x: %w", file), "x: a.yaml: rate is 0", "x: a.yaml: rate is 0; write 1 or more", "x: a.yaml: rate is 0; write 1 or more", CodeInput},
		{"no remedy", errors.New("gone"), "gone", "gone", "gone", CodeFailed},
	} {
		if got := tt.err.Error(); got != tt.text {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.text)
		}
		if got := Sentence(tt.err, shell); got != tt.said {
			t.Errorf("%s: said %q, want %q", tt.name, got, tt.said)
		}
		if got := Sentence(tt.err, nil); got != tt.own {
			t.Errorf("%s: in words %q, want %q", tt.name, got, tt.own)
		}
		if got := Code(tt.err); got != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.code)
		}
	}
	if Code(nil) != 0 {
		t.Error("no error has an exit code")
	}
	if !errors.Is(fmt.Errorf("y: %w", missing), fs.ErrNotExist) {
		t.Error("the cause is not found")
	}
	if got := Sprintf(shell, "note: %v; try %s", file, Setting("force")); got != "note: a.yaml: rate is 0; write 1 or more; try +force" {
		t.Errorf("a note with an error is %q", got)
	}
}
