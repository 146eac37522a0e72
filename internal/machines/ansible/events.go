package ansible

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of the callback in ansible/plugins/callback.
type event struct {
	Event   string            `json:"event"` // task, ok, changed, skipped, note, retry, ignored, failed, unreachable or stats
	Host    string            `json:"host"`
	Task    string            `json:"task"`
	Message string            `json:"message"`
	Hosts   map[string]counts `json:"hosts"` // of stats
}

// counts are Ansible's own of one host.
type counts struct {
	OK          int `json:"ok"`
	Changed     int `json:"changed"`
	Failures    int `json:"failures"`
	Unreachable int `json:"unreachable"`
	Skipped     int `json:"skipped"`
}

// summary is what a playbook came to.
type summary struct {
	failures []event
	stats    map[string]counts // nil where the playbook did not get that far
}

// longest bounds a line of the callback.
const longest = 4 << 20

// follow reads the callback's lines until there are no more. A line that is
// none of them is passed over.
func follow(r io.Reader, each func(event)) summary {
	var s summary
	in := bufio.NewScanner(r)
	in.Buffer(nil, longest)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			continue
		}
		switch e.Event {
		case "failed", "unreachable":
			s.failures = append(s.failures, e)
		case "stats":
			s.stats = e.Hosts
			if s.stats == nil {
				s.stats = map[string]counts{}
			}
		}
		each(e)
	}
	// Whoever writes must never wait for a reader that has given up.
	_, _ = io.Copy(io.Discard, r)
	return s
}

// progress is the event as one line for the user, empty where it is no news.
func (e event) progress() string {
	switch e.Event {
	case "changed":
		return fmt.Sprintf("%s: %s", e.Host, oneLine(e.Task))
	case "note":
		return fmt.Sprintf("%s: %s", e.Host, oneLine(e.Message))
	case "retry":
		return fmt.Sprintf("%s: trying again: %s: %s", e.Host, oneLine(e.Task), oneLine(e.Message))
	}
	return ""
}

// sentences are one for each machine that could not be prepared, in the order
// of the failures.
func (s summary) sentences() []string {
	var out, told []string
	for _, e := range s.failures {
		if slices.Contains(told, e.Host) {
			continue
		}
		told = append(told, e.Host)
		if e.Event == "unreachable" {
			out = append(out, fmt.Sprintf("preparing %s: it does not answer over ssh any more (%s)", e.Host, oneLine(e.Message)))
		} else {
			out = append(out, fmt.Sprintf("preparing %s: the task %q failed: %s", e.Host, oneLine(e.Task), oneLine(e.Message)))
		}
	}
	return out
}

// oneLine joins the lines of a text and bounds it.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 600
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + " …"
	}
	return s
}
