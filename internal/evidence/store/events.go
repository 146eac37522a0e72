package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
)

// EventTorn follows a line that was cut off when the driver was killed in the
// middle of writing it. Data is the place of the remains in events.jsonl.
const EventTorn = "torn"

// torn is the data of an EventTorn.
type torn struct {
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

// History is what happened in a run, in order.
type History struct {
	Events []Event
	byKey  map[string][]int // Window.Key -> indices of its attempts in Events
	last   map[string]int   // Window.Key -> highest attempt number
	lost   map[string]bool  // raw files that were given up
	end    int64            // offset behind the last whole line
	tail   string           // digest of the last line, "" of an empty log

	targets []plan.Resolved // that have become known, in order

	chained bool              // whether lines have digests of the line before
	broken  []int             // lines that do not follow the line before them
	twice   int               // lines that are there again, and were left out
	seen    map[[32]byte]bool // digests of the lines, while the log is read
}

// follow takes a line into the chain. It is false for a line that is there
// already: a log that was copied twice holds each event once.
func (h *History) follow(text []byte, e Event, line int) bool {
	sum := sha256.Sum256(bytes.TrimRight(text, "\r\n"))
	if h.seen[sum] {
		h.twice++
		return false
	}
	if h.seen == nil {
		h.seen = map[[32]byte]bool{}
	}
	h.seen[sum] = true
	if e.Prev != h.tail && (e.Prev != "" || h.chained) {
		h.broken = append(h.broken, line)
	}
	h.chained = h.chained || e.Prev != ""
	h.tail = hex.EncodeToString(sum[:])
	return true
}

func (h *History) add(e Event) {
	h.Events = append(h.Events, e)
	if e.Type == EventLost {
		var lost Lost
		if json.Unmarshal(e.Data, &lost) == nil {
			h.giveUp(lost)
		}
	}
	if e.Type == EventTarget {
		var r plan.Resolved
		if json.Unmarshal(e.Data, &r) == nil {
			h.targets = append(h.targets, r)
		}
	}
	if e.Window == nil || e.Type != EventWindow {
		return
	}
	if h.byKey == nil {
		h.byKey, h.last = map[string][]int{}, map[string]int{}
	}
	k := e.Window.Key()
	h.byKey[k] = append(h.byKey[k], len(h.Events)-1)
	h.last[k] = max(h.last[k], e.Window.Attempt)
}

// Windows returns every attempt at every window, in the order in which they
// ended.
func (h History) Windows() []WindowResult {
	var all []WindowResult
	for _, e := range h.Events {
		if e.Type == EventWindow && e.Window != nil {
			all = append(all, *e.Window)
		}
	}
	return all
}

// Attempts returns the finished attempts at one window, in the order in which
// they ended.
func (h History) Attempts(w plan.Window) []WindowResult {
	var all []WindowResult
	for _, i := range h.byKey[w.Key()] {
		all = append(all, *h.Events[i].Window)
	}
	return all
}

// Twice is a note on lines that are in the log more than once and count once;
// empty where there are none.
func (h History) Twice() string {
	if h.twice == 0 {
		return ""
	}
	return fmt.Sprintf("lines of the log that are in it already were left out (%d)", h.twice)
}

// State says how a run stands by its log alone: complete, failed, or
// interrupted when it has not ended since it was last started.
func (h History) State() string {
	for i := len(h.Events) - 1; i >= 0; i-- {
		switch e := h.Events[i]; e.Type {
		case EventRunStarted:
			return StateInterrupted
		case EventRunEnded:
			switch e.Message {
			case StateComplete, StateFailed:
				return e.Message
			}
			return StateInterrupted
		}
	}
	return StateInterrupted
}

// maxLine bounds one line of the log. A contract report of a candidate is the
// longest, at some tens of kilobytes.
const maxLine = 64 << 20

// readEvents reads the log in one pass. A last line without its end is what a
// kill left of a line nobody was told of: it is left out. A line in the middle
// that cannot be read is an error, unless the line behind it says that it was
// cut off.
func readEvents(name string) (History, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return History{}, fail.In(name, "the log of the run is missing").Try("copy the folder again from where it was measured")
	}
	if err != nil {
		return History{}, fmt.Errorf("reading the log of a run: %w", err)
	}
	defer f.Close()
	return parseEvents(name, f)
}

func parseEvents(name string, r io.Reader) (h History, err error) {
	defer func() { h.seen = nil }()
	var offset int64
	// The first line that could not be read since the last one that could.
	var bad struct {
		line   int
		offset int64
		err    error
	}
	corrupt := func() error {
		return fail.In(fail.Line(name, bad.line), "this line is damaged (%v)", bad.err).Try("restore the file from a copy, or take the line out to do without that event")
	}
	in := bufio.NewReaderSize(r, 256<<10)
	for line := 1; ; line++ {
		text, err := readLine(in)
		switch {
		case errors.Is(err, errLong):
			return h, fail.In(fail.Line(name, line), "the line is longer than %d MiB, so this is not the log of a run", maxLine>>20).Try("restore the file from a copy")
		case err != nil && err != io.EOF:
			return h, fmt.Errorf("reading %s: %w", name, err)
		}
		whole := err == nil
		if len(bytes.TrimSpace(text)) > 0 {
			e, problem := parseEvent(text)
			if problem == nil && !whole && bad.err != nil && e.Type == EventTorn {
				problem = errors.New("cut off") // half a repair: the next one does it again
			}
			switch {
			case problem == nil && bad.err != nil && !(e.Type == EventTorn && accountsFor(e, offset-bad.offset)):
				return h, corrupt()
			case problem == nil:
				bad.err = nil
				h.end = offset + int64(len(text))
				if h.follow(text, e, line) && e.Type != EventTorn {
					h.add(e)
				}
			case bad.err == nil:
				bad.line, bad.offset, bad.err = line, offset, problem
			}
		}
		offset += int64(len(text))
		if len(bytes.TrimSpace(text)) == 0 && bad.err == nil {
			h.end = offset
		}
		if whole {
			continue
		}
		// The end of the file. Remains without an end are what a kill left,
		// behind at most one line on which a repair had begun; a whole line
		// that could not be read is damage.
		if bad.err != nil && (len(text) == 0 || line-bad.line > 1) {
			return h, corrupt()
		}
		return h, nil
	}
}

var errLong = errors.New("line too long")

// readLine reads up to and with a newline. The text is valid until the next
// call.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return text, err
	}
	long := append([]byte(nil), text...)
	for err == bufio.ErrBufferFull {
		text, err = in.ReadSlice('\n')
		long = append(long, text...)
		if len(long) > maxLine {
			return nil, errLong
		}
	}
	return long, err
}

func parseEvent(text []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return e, err
	}
	switch {
	case e.Type == "":
		return e, errors.New("it has no event type")
	case e.Type == EventWindow && e.Window == nil:
		return e, errors.New("it is a window event without a window")
	case e.Type == EventWindow && e.Window.Attempt < 1:
		return e, fmt.Errorf("its attempt number is %d", e.Window.Attempt)
	}
	return e, nil
}

// accountsFor reports whether the event says that a line of so many bytes was cut
// off. Where in the file they are may have changed: lines before them may be
// missing, or all may be there twice.
func accountsFor(e Event, bytes int64) bool {
	var t torn
	return json.Unmarshal(e.Data, &t) == nil && t.Bytes == bytes
}

// repair starts a new line behind the remains of one that a kill cut off, and
// says so in it. The remains stay where they are.
func repair(events *os.File, h *History) error {
	end := h.end
	name := events.Name()
	info, err := events.Stat()
	if err != nil {
		return diskError("opening", name, err)
	}
	last := byte('\n')
	if end > 0 {
		r, err := os.Open(name)
		if err != nil {
			return diskError("opening", name, err)
		}
		defer r.Close()
		b := make([]byte, 1)
		if _, err := r.ReadAt(b, end-1); err != nil {
			return diskError("reading", name, err)
		}
		last = b[0]
	}
	missing, tail, err := repairs(info.Size(), *h, last)
	if err != nil || len(missing) == 0 {
		return err
	}
	if _, err := events.Write(missing); err != nil {
		return diskError("appending to", name, err)
	}
	if err := events.Sync(); err != nil {
		return diskError("appending to", name, err)
	}
	h.chained, h.tail = h.chained || tail != h.tail && h.tail != "", tail
	return nil
}

// repairs is what a log of a size lacks behind its last whole line, which ends
// at the offset end with the byte last: nothing, that line's own end, or the
// line that accounts for the remains of another; tail is the digest of what is the
// last line then.
func repairs(size int64, h History, last byte) (missing []byte, tail string, err error) {
	end := h.end
	if size == end {
		if last != '\n' {
			return []byte{'\n'}, h.tail, nil
		}
		return nil, h.tail, nil
	}
	data, err := json.Marshal(torn{Offset: end, Bytes: size + 1 - end})
	if err != nil {
		return nil, "", err
	}
	line, err := json.Marshal(Event{
		Time: time.Now().UTC(), Type: EventTorn, Data: data,
		Message: "the line before was cut off when percore was killed while writing it", Prev: h.tail,
	})
	if err != nil {
		return nil, "", err
	}
	return append(append([]byte{'\n'}, line...), '\n'), digestOf(line), nil
}
