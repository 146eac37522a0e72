package plaintext

import (
	"bytes"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"plain\ttext\n":                    "plain\ttext\n",
		"Grüße 日本 🙂":                       "Grüße 日本 🙂",
		"\x1b]0;title\x07m4\x1b[31m":       "�]0;title�m4�[31m",
		"caf\xe9":                          "caf�",
		"a\rb\x00c\x7fd":                   "a�b�c�d",
		"\u009b2J":                         "�2J",
		"full\u202erm\u2066x\u2028y\ufeff": "full�rm�x�y\ufeff",
		"\xe6\x97":                         "��",
		"�":                                "�",
	} {
		if got := String(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		// However it is cut into pieces.
		for size := 1; size <= 3; size++ {
			var out bytes.Buffer
			w := NewWriter(&out)
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil || out.String() != want {
				t.Errorf("%q in pieces of %d becomes %q, want %q, %v", in, size, out.String(), want, err)
			}
		}
	}
	if strings.ContainsFunc(String("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x1f"), func(r rune) bool { return r < ' ' }) {
		t.Error("control characters are left")
	}
}
