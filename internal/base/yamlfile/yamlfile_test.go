package yamlfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

type sheet struct {
	Line   int                `yaml:",line"`
	Name   string             `yaml:"name"`
	Count  int                `yaml:"count"`
	Share  float64            `yaml:"share"`
	Limit  *float64           `yaml:"limit"`
	On     bool               `yaml:"on"`
	List   []string           `yaml:"list"`
	Prices map[string]float64 `yaml:"prices"`
	Facts  map[string]any     `yaml:"facts"`
	Rows   []row              `yaml:"rows"`
}

type row struct {
	Line int    `yaml:",line"`
	ID   string `yaml:"id"`
}

var kind = Kind{What: "a sheet", Like: "sheet.yaml"}

func TestDecode(t *testing.T) {
	const text = "\uFEFFname: \"a b\"\r\ncount: 16\nshare: 0.25\nlimit: 1.5e3\non: true\nlist: [x, 7, 1.50]\nprices: {a: 1, 2: -0.5}\nfacts: {n: 3, m: {x: true, l: [1.5, word]}}\nrows:\n- id: first\n\n- {id: second}\n"
	var got sheet
	if err := kind.Decode("s.yaml", []byte(text), &got); err != nil {
		t.Fatal(said.Err(err))
	}
	limit := 1500.0
	want := sheet{Line: 1, Name: "a b", Count: 16, Share: 0.25, Limit: &limit, On: true, List: []string{"x", "7", "1.50"},
		Prices: map[string]float64{"a": 1, "2": -0.5}, Facts: map[string]any{"n": uint64(3), "m": map[string]any{"x": true, "l": []any{1.5, "word"}}},
		Rows: []row{{10, "first"}, {12, "second"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func wide(s string, order func(uint16) [2]byte) string {
	var out strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b := order(u)
		out.Write(b[:])
	}
	return out.String()
}

func TestRefused(t *testing.T) {
	little := func(u uint16) [2]byte { return [2]byte{byte(u), byte(u >> 8)} }
	big := func(u uint16) [2]byte { return [2]byte{byte(u >> 8), byte(u)} }
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct{ name, text, want string }{
		{"octal whole number", "count: 016", "s.yaml:1: count is 016; write a whole number, in digits alone"},
		{"octal of YAML 1.2", "count: 0o16", "s.yaml:1: count is 0o16"},
		{"octal number", "name: x\nshare: 032", "s.yaml:2: share is 032, which is not the same number to every reader"},
		{"octal price", "prices: {a: 010}", "s.yaml:1: prices.a is 010, which"},
		{"octal text", "list: [ok, 0777]", "s.yaml:1: list[1] is 0777, which"},
		{"octal key", "prices: {010: 1}", "s.yaml:1: prices: a key is 010, which"},
		{"octal fact", "facts: {a: {b: 08}}", "s.yaml:1: facts.a.b is"},
		{"exponent alone", "name: 1e3", "name is 1e3, which is a number to some readers"},
		{"hexadecimal", "share: 0x1F", "share is 0x1F, which"},
		{"underscores", "share: 1_000", "share is 1_000, which"},
		{"underscores in a fraction", "share: 1_0.5", "s.yaml:1: share is"},
		{"a point alone", "share: .5", "share is .5, which"},
		{"sign", "count: +5", "s.yaml:1: count is"},
		{"no number", "share: .nan", "share is .nan"},
		{"endless", "share: .inf", "share is .inf"},
		{"too large", "share: 1e999", "s.yaml:1: share is"},
		{"fraction", "count: 1.5", "count is 1.5; write a whole number"},
		{"a text for a number", "share: \"1\"", `share is "1"; write a number`},
		{"yes", "on: yes", `on is "yes"; write true or false`},
		{"unknown key", "name: x\nrows:\n- id: a\n  nmae: b", `s.yaml:4: rows[0]: unknown field "nmae"; the fields here are id`},
		{"unknown long key", long + ": 1", "s.yaml:1: "},
		{"key twice", "name: x\nname: y", "s.yaml:2: "},
		{"no value", "name:", "s.yaml:1: name has no value; write one, or leave the key out"},
		{"second document", "name: x\n---\nname: y", "s.yaml:3: a second document begins after ---; write one"},
		{"empty", "\n# nothing\n", "s.yaml: it is empty or holds nothing but comments; write it like sheet.yaml"},
		{"a mark alone", "\uFEFF", "s.yaml: it is empty"},
		{"tag", "name: !!binary aGk=", "the tag !!binary is not understood"},
		{"no anchor", "name: *other", "there is no anchor &other above"},
		{"UTF-16", "\xff\xfe" + wide("name: x\n", little), "s.yaml: this is UTF-16 or UTF-32; save the file as UTF-8"},
		{"UTF-16, the other way", "\xfe\xff" + wide("name: x\n", big), "s.yaml: this is UTF-16"},
		{"UTF-16 without a mark", wide("name: x\n", little), "s.yaml: this is UTF-16"},
		{"Latin-1", "name: x\nlist: [caf\xe9]", "s.yaml:2: the byte 0xe9 is not UTF-8; save"},
		{"control character", "name: x\nlist: [\x1b[31m]", "s.yaml:2: the file holds the control character U+001B; take it out"},
		{"NUL", "name: abcdefgh\nlist: [\x00]", "s.yaml:2: the file holds the control character U+0000"},
		{"written control character", "name: \"\\e[31mred\"", "s.yaml:1: name is a text with the control character U+001B; take it out"},
		{"a control character in a key", `facts: {"a\x07": 1}`, "s.yaml:1: facts: a key is a text with the control character U+0007"},
		{"C1", "list: [\"\\x9b\"]", "list[0] is a text with the control character U+009B"},
		{"a carriage return", `name: "a\rb"`, "control character U+000D"},
		{"not YAML", "rows: [", "s.yaml:1: "},
		{"long text", "count: " + long, "s.yaml:1: count is"},
		{"deep lists", "list: " + strings.Repeat("[", 200000), "s.yaml:1: values are nested more than 100 deep"},
		{"deep maps", "list: " + strings.Repeat("{a: ", 100000), "nested more than 100 deep"},
		{"deep dashes", strings.Repeat("- ", 200000), "nested more than 100 deep"},
		{"bomb", "facts:\n  a: &a [1,1,1,1,1,1,1,1,1,1]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n", "more than 100000 values with its aliases followed"},
		{"too much", "# " + strings.Repeat("x", MaxSize), "s.yaml: a file of more than 1048576 bytes is too large for a sheet"},
	} {
		var s sheet
		err := kind.Decode("s.yaml", []byte(tt.text), &s)
		text := said.Err(err)
		if !fail.IsInput(err) || !strings.HasPrefix(text, "s.yaml:") || !strings.Contains(text, tt.want) || strings.ContainsAny(text, "\n\r\x1b\x00") || len(text) > 400 {
			t.Errorf("%s: %.500q, want one short line of bad input with %q", tt.name, text, tt.want)
		}
	}
}

// Check refuses the same, whatever the document is then read by.
func TestCheck(t *testing.T) {
	if text, err := kind.Check("s.yaml", []byte("\uFEFFany: {thing: [1, null]}\n")); err != nil || string(text) != "any: {thing: [1, null]}\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, text := range []string{"a: 016", "a: 1_0", "a: 1\n---\nb: 2", "\xff\xfea\x00", "", "a: {b: {c: 0x1}}"} {
		if _, err := kind.Check("s.yaml", []byte(text)); !fail.IsInput(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "s.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(file, []byte("name: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var s sheet
	if err := kind.Read(file, &s); err != nil || s.Name != "here" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{fifo, dir, os.DevNull, filepath.Join(dir, "none")} {
		if err := kind.Read(name, &s); !fail.IsInput(err) || !strings.Contains(said.Err(err), "sheet.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
