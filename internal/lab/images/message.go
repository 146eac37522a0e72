package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// tailLines is how much of a build's output an error carries.
const tailLines = 30

// lineLimit bounds a line of build output that is kept, in bytes.
const lineLimit = 2000

// message is one object of the stream that the engine's build, import and pull
// end points answer with.
type message struct {
	Stream      string          `json:"stream"`
	Status      string          `json:"status"`
	ID          string          `json:"id"`
	Progress    json.RawMessage `json:"progress"`
	Error       string          `json:"error"`
	ErrorDetail *struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
	Aux json.RawMessage `json:"aux"`
}

// step is where a build is.
type step struct {
	number, of int
	command    string
}

// output follows the stream of one build.
type output struct {
	step    step
	tail    []string
	imageID string
	onStep  func(step)
	onLine  func(string)
	partial bytes.Buffer
}

var (
	stepLine = regexp.MustCompile(`^Step (\d+)/(\d+) : (.*)$`)
	// bookkeeping is what the builder says of its own containers and layers.
	bookkeeping = regexp.MustCompile(`^( ---> ([0-9a-f]{12}|Running in [0-9a-f]{12}|Using cache)|Removing intermediate container [0-9a-f]{12})$`)
	nonZero     = regexp.MustCompile(`^The command '(?s:.*)' returned a non-zero code: (\d+)$`)
	escapes     = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
)

// errBuild is a failure that the engine reported in the stream.
type errBuild struct{ text string }

func (e *errBuild) Error() string { return e.text }

// reason shortens what the engine says of a command that failed: the step names
// the command already.
func reason(text string) string {
	if m := nonZero.FindStringSubmatch(text); m != nil {
		return "the command ended with status " + m[1]
	}
	return clean(text)
}

// follow reads the stream to its end. The error is an *errBuild when the engine
// says that the build failed, and another when the stream itself broke.
func (o *output) follow(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			o.flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("reading the engine's build output: %w", err)
		}
		switch {
		case m.ErrorDetail != nil && m.ErrorDetail.Message != "":
			o.flush()
			return &errBuild{reason(m.ErrorDetail.Message)}
		case m.Error != "":
			o.flush()
			return &errBuild{reason(m.Error)}
		case m.Stream != "":
			o.write(m.Stream)
		case m.Status != "":
			o.status(m)
		}
		if len(m.Aux) > 0 {
			var aux struct{ ID string }
			if json.Unmarshal(m.Aux, &aux) == nil && aux.ID != "" {
				o.imageID = aux.ID
			}
		}
	}
}

// status is a line about a layer that is being pulled. The many percentages of
// a layer are one line when it begins.
func (o *output) status(m message) {
	if len(m.Progress) > 0 && string(m.Progress) != "null" && string(m.Progress) != `""` {
		return
	}
	if strings.HasPrefix(m.Status, "sha256:") {
		o.imageID = m.Status
		return
	}
	if m.ID != "" {
		o.line(m.ID + ": " + m.Status)
		return
	}
	o.line(m.Status)
}

// write takes a piece of the build's output, which may end anywhere in a line.
func (o *output) write(s string) {
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			if o.partial.Len() < lineLimit {
				o.partial.WriteString(s[:min(len(s), lineLimit)])
			}
			return
		}
		o.partial.WriteString(s[:min(i, lineLimit)])
		o.flush()
		s = s[i+1:]
	}
}

func (o *output) flush() {
	if o.partial.Len() == 0 {
		return
	}
	l := o.partial.String()
	o.partial.Reset()
	o.line(l)
}

func (o *output) line(l string) {
	l = clean(l)
	if l == "" || bookkeeping.MatchString(l) {
		return
	}
	if m := stepLine.FindStringSubmatch(l); m != nil {
		n, errN := strconv.Atoi(m[1])
		of, errOf := strconv.Atoi(m[2])
		// A program's own output may look like a step: the next one has the
		// next number and the same total.
		if errN == nil && errOf == nil && n == o.step.number+1 && n <= of && (o.step.of == 0 || of == o.step.of) {
			o.step = step{number: n, of: of, command: m[3]}
			o.tail = nil
			if o.onStep != nil {
				o.onStep(o.step)
			}
			return
		}
	}
	o.tail = append(o.tail, l)
	if len(o.tail) > tailLines {
		o.tail = o.tail[len(o.tail)-tailLines:]
	}
	if o.onLine != nil {
		o.onLine(l)
	}
}

// clean makes a line of output fit for a terminal: no colours, no control
// characters, what a carriage return would overwrite is gone, bounded length.
func clean(s string) string {
	s = escapes.ReplaceAllString(s, "")
	s = strings.TrimRight(s, "\r\n\t ")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	s = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < 0x20 || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, s)
	if len(s) > lineLimit {
		s = strings.ToValidUTF8(s[:lineLimit], "") + "…"
	}
	return s
}
