package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxShown is how many bytes of an answer a report shows.
const maxShown = 300

// Report is what a candidate made of the contract. It marshals to JSON for the
// log of a run and holds no token and no key.
type Report struct {
	Candidate        string    `json:"candidate"`
	Started          time.Time `json:"started"`
	Seconds          float64   `json:"seconds"`
	Passed           int       `json:"passed"`
	Failed           int       `json:"failed"`
	ClockSkewSeconds float64   `json:"clock_skew_s,omitempty"` // candidate's clock minus the driver's, where they are more than 2 s apart
	Cases            []Result  `json:"cases"`
}

// Result is what came of one case.
type Result struct {
	Name         string            `json:"name"`
	Why          string            `json:"why,omitempty"` // of a case that failed
	OK           bool              `json:"ok"`
	Want         string            `json:"want"`
	Got          string            `json:"got"`               // status and body, spelling aside
	Headers      map[string]string `json:"headers,omitempty"` // those that count: Content-Type, WWW-Authenticate
	Rows         int               `json:"rows"`              // written
	Milliseconds float64           `json:"ms"`
	Problems     []string          `json:"problems,omitempty"`
}

// OK reports whether every case came out right. A report without cases is not.
func (r Report) OK() bool { return r.Failed == 0 && r.Passed > 0 }

// Summary is the report for a terminal: the failed cases first, one line each,
// then the count: "go: 112 of 112 cases".
func (r Report) Summary() string {
	var b strings.Builder
	for _, res := range r.Cases {
		if !res.OK {
			fmt.Fprintf(&b, "%s: %s: %s\n", r.Candidate, res.Name, res.line())
		}
	}
	if r.ClockSkewSeconds != 0 {
		fmt.Fprintf(&b, "%s: its clock is %+.0f s from this machine's, which spoils the cases about time: set both clocks\n", r.Candidate, r.ClockSkewSeconds)
	}
	fmt.Fprintf(&b, "%s: %d of %d cases\n", r.Candidate, r.Passed, r.Passed+r.Failed)
	return b.String()
}

func (r Result) line() string {
	s := fmt.Sprintf("%s; got %s. %s", strings.Join(r.Problems, "; "), r.Got, r.Why)
	return strings.Join(strings.Fields(s), " ")
}

func (r *Result) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// join adds what came of the second sending.
func (r *Result) join(second Result, after string) {
	r.Want += ", after " + after + " " + second.Want
	r.Got += ", after " + after + " " + second.Got
	r.Rows += second.Rows
	for _, p := range second.Problems {
		r.problem("after %s: %s", after, p)
	}
	r.OK = r.OK && second.OK
}

// String is the outcome in one line.
func (o *Outcome) String() string {
	s := fmt.Sprint(o.Status)
	switch o.Answer {
	case AnswerError:
		s += fmt.Sprintf(` {"error":%q}`, o.Error)
	case AnswerClaims:
		s += ` {"sub","scope"}`
	case AnswerID:
		s += ` {"id"} and one row`
	case AnswerRow:
		s += " the row"
	case AnswerNone:
		s += " without a body"
	}
	return s
}

// Difference is a case in which candidates did not answer alike.
type Difference struct {
	Case    string            `json:"case"`
	Want    string            `json:"want"`
	Answers map[string]string `json:"answers"` // candidate -> what it did
}

// String is the difference in one line.
func (d Difference) String() string {
	parts := make([]string, 0, len(d.Answers))
	for _, name := range slices.Sorted(maps.Keys(d.Answers)) {
		parts = append(parts, name+" "+d.Answers[name])
	}
	return fmt.Sprintf("%s: want %s; %s", d.Case, d.Want, strings.Join(parts, "; "))
}

// Compare lists the cases in which candidates differ in status, body, the
// headers that count or the rows written, in the order of the cases. A case
// that a report does not have counts as a difference.
func Compare(reports []Report) []Difference {
	answers := map[string]map[string]string{}
	wants := map[string]string{}
	var order []string
	for _, r := range reports {
		for _, res := range r.Cases {
			if answers[res.Name] == nil {
				answers[res.Name] = map[string]string{}
				order = append(order, res.Name)
			}
			wants[res.Name] = res.Want
			answers[res.Name][r.Candidate] = res.signature()
		}
	}
	var out []Difference
	for _, name := range order {
		first, same := "", true
		for i, r := range reports {
			s, ok := answers[name][r.Candidate]
			if !ok {
				s = "was not asked"
				answers[name][r.Candidate] = s
			}
			if i == 0 {
				first = s
			}
			same = same && s == first
		}
		if !same {
			out = append(out, Difference{name, wants[name], answers[name]})
		}
	}
	return out
}

// signature is everything candidates have to agree on.
func (r Result) signature() string {
	s := r.Got
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		s += fmt.Sprintf(" (%s: %s)", name, r.Headers[name])
	}
	return s + fmt.Sprintf(" %d rows", r.Rows)
}
