package images

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// told follows a stream and notes what it tells.
func told(data []byte) (o *output, steps []step, lines []string, err error) {
	o = &output{
		onStep: func(s step) { steps = append(steps, s) },
		onLine: func(l string) { lines = append(lines, l) },
	}
	err = o.follow(bytes.NewReader(data))
	return o, steps, lines, err
}

func TestFollowBuild(t *testing.T) {
	o, steps, lines, err := told(read(t, "built.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[1].number != 2 || steps[1].of != 2 || !strings.HasPrefix(steps[1].command, "RUN echo one") {
		t.Errorf("the steps are %v", steps)
	}
	if !slices.Contains(lines, "one") || !slices.Contains(lines, "three") || !slices.Contains(lines, "usr") {
		t.Errorf("the lines are %q", lines)
	}
	if !strings.HasPrefix(o.imageID, "sha256:") {
		t.Errorf("the image id is %q", o.imageID)
	}
}

func TestFollowFailedBuild(t *testing.T) {
	o, steps, _, err := told(read(t, "failed.json"))
	var failed *errBuild
	if !errors.As(err, &failed) || failed.text != "the command ended with status 3" {
		t.Fatalf("the error is %v", err)
	}
	if len(steps) != 2 {
		t.Errorf("the steps are %v", steps)
	}
	if len(o.tail) != tailLines || o.tail[len(o.tail)-1] != "red" || !slices.Contains(o.tail, "line 40") {
		t.Errorf("the end of the output is %q", o.tail)
	}
}

func TestFollowPull(t *testing.T) {
	_, _, lines, err := told(read(t, "pulled.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"17.11-trixie: Pulling from library/postgres", "aaaaaaaaaaaa: Pulling fs layer", "aaaaaaaaaaaa: Pull complete",
		"Digest: sha256:" + strings.Repeat("0", 64), "Status: Downloaded newer image for postgres:17.11-trixie",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are %q", lines)
	}
}

func TestFollowLinesInPieces(t *testing.T) {
	_, steps, lines, err := told([]byte(`{"stream":"Step 1"}{"stream":"/2 : FROM x\nhel"}{"stream":"lo\nwor"}{"stream":"ld"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || steps[0].command != "FROM x" || !slices.Equal(lines, []string{"hello", "world"}) {
		t.Errorf("steps %v, lines %q", steps, lines)
	}
}

// A program may print what looks like a step of the build.
func TestFollowIsNotFooledByOutput(t *testing.T) {
	_, steps, lines, err := told([]byte(`{"stream":"Step 1/3 : FROM x\nStep 1/3 : again\nStep 2/9 : other\nStep 3/3 : early\nStep 2/3 : RUN y\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || len(lines) != 3 {
		t.Errorf("steps %v, lines %q", steps, lines)
	}
}

func TestFollowBrokenStream(t *testing.T) {
	for _, s := range []string{`{"stream":"a`, `not json`, `[]`, `{"stream":1}`} {
		_, _, _, err := told([]byte(s))
		var failed *errBuild
		if err == nil || errors.As(err, &failed) {
			t.Errorf("%q: the error is %v", s, err)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                   "plain",
		"\x1b[91mred\x1b[0m\r\n":  "red",
		"10%\r50%\r100%":          "100%",
		"a\tb\x00c\x7f":           "a bc",
		"  kept in front":         "  kept in front",
		strings.Repeat("x", 3000): strings.Repeat("x", lineLimit) + "…",
		"bad \xff byte":           "bad  byte",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%.40q) = %.60q, not %.60q", in, got, want)
		}
	}
}

func FuzzFollow(f *testing.F) {
	for _, name := range []string{"built.json", "failed.json", "pulled.json"} {
		f.Add(read(f, name))
	}
	f.Add([]byte(`{"stream":"Step 1/1 : x\n"}{"errorDetail":{"message":"no"},"error":"no"}`))
	f.Add([]byte(`{"aux":{"ID":7}}{"aux":[]}{"status":"sha256:1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, steps, lines, _ := told(data)
		if len(o.tail) > tailLines {
			t.Errorf("%d lines were kept", len(o.tail))
		}
		for _, l := range slices.Concat(lines, o.tail) {
			if len(l) > lineLimit+len("…") || !utf8.ValidString(l) || strings.ContainsAny(l, "\n\r\x1b\x00") {
				t.Errorf("the line %.80q is not fit for a terminal", l)
			}
		}
		for i, s := range steps {
			if s.number != i+1 || s.number > s.of || s.of != steps[0].of {
				t.Errorf("the steps are %v", steps)
			}
		}
	})
}
