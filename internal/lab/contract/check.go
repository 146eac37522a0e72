package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout is how long a candidate may take to answer one case.
const DefaultTimeout = 10 * time.Second

// clockTolerance is how far the candidate's clock may be from the driver's
// before the report says so. The Date header has whole seconds.
const clockTolerance = 2 * time.Second

// Event is one row of the events table.
type Event struct {
	ID        int64
	Subject   string
	Kind      string
	Payload   json.RawMessage
	CreatedAt time.Time
}

// ErrNoRow says that there is no row with the id.
var ErrNoRow = errors.New("no such row")

// Rows is the events table of the candidate's database, read directly. Ids are
// given out in ascending order, so the rows after the highest known id are the
// new ones.
type Rows interface {
	// Count returns the number of rows.
	Count(ctx context.Context) (int64, error)
	// Last returns the highest id, 0 when the table is empty.
	Last(ctx context.Context) (int64, error)
	// After returns the rows whose id is higher, in order of their ids, at most
	// a hundred.
	After(ctx context.Context, id int64) ([]Event, error)
	// Event returns one row, or ErrNoRow.
	Event(ctx context.Context, id int64) (Event, error)
}

// Target is a running candidate with its database.
type Target struct {
	Name     string                                      // the candidate's id
	Dial     func(ctx context.Context) (net.Conn, error) // opens a connection to the candidate
	Rows     Rows
	Keys     *Keys // the candidate knows their public half
	Identity Identity
	Host     string                // the Host header; "app:8080" when empty
	Timeout  time.Duration         // per case; DefaultTimeout when 0
	Progress func(done, total int) // called after each case when not nil
}

// Run sends every case to the candidate and returns what came of it. It changes
// the database: good writes are written. A case that fails is in the report; an
// error means that the check itself could not be completed (the context ended,
// the database did not answer), and the report then covers the cases before it.
func Run(ctx context.Context, c *Contract, t Target) (Report, error) {
	if t.Host == "" {
		t.Host = "app:8080"
	}
	if t.Timeout == 0 {
		t.Timeout = DefaultTimeout
	}
	r := &runner{Target: t, line: dialer{dial: t.Dial}}
	defer r.line.hangUp()
	report := Report{Candidate: t.Name, Started: time.Now().UTC().Truncate(time.Millisecond)}
	err := r.run(ctx, c, &report)
	report.Seconds = float64(time.Since(report.Started).Milliseconds()) / 1000
	if skew := r.skew; skew.Abs() > clockTolerance {
		report.ClockSkewSeconds = math.Round(skew.Seconds())
	}
	for i := range report.Cases {
		if res := &report.Cases[i]; res.OK {
			report.Passed++
			res.Why = "" // the contract has it, and the report is kept with every run
		} else {
			report.Failed++
		}
	}
	if err != nil {
		return report, fmt.Errorf("check the contract of %s: %w", t.Name, err)
	}
	return report, nil
}

type runner struct {
	Target
	line dialer
	last int64 // highest id known
	skew time.Duration
}

// pending is a case whose second sending is due later.
type pending struct {
	index   int // of its result
	c       *Case
	request []byte
	made    madeToken
	due     time.Time
}

func (r *runner) run(ctx context.Context, c *Contract, report *Report) error {
	before, err := r.Rows.Count(ctx)
	if err != nil {
		return fmt.Errorf("count the rows: %w", err)
	}
	if r.last, err = r.Rows.Last(ctx); err != nil {
		return fmt.Errorf("find the highest id: %w", err)
	}
	var later []pending
	written := int64(0)
	for i, k := range c.Cases {
		now := time.Now()
		made, err := r.Keys.build(k.Token, r.Identity, now)
		if err != nil {
			return fmt.Errorf("case %s: %w", k.Name, err)
		}
		v := values{now: now, token: made.text, identity: r.Identity, scope: made.scope, keys: r.Keys}
		request := k.request(r.Host, v)
		res, err := r.once(ctx, k, k.want, request, made)
		if err != nil {
			return fmt.Errorf("case %s: %w", k.Name, err)
		}
		written += int64(res.Rows)
		report.Cases = append(report.Cases, res)
		if k.Again != nil {
			if len(k.Again.Mutate) > 0 {
				made = made.mutated(k.Again.Mutate)
				v.token = made.text
				request = k.request(r.Host, v)
			}
			later = append(later, pending{i, k, request, made, now.Add(k.Again.after)})
		}
		if r.Progress != nil {
			r.Progress(i+1, len(c.Cases))
		}
	}
	slices.SortStableFunc(later, func(a, b pending) int { return a.due.Compare(b.due) })
	for _, p := range later {
		if err := sleepUntil(ctx, p.due); err != nil {
			return err
		}
		res, err := r.once(ctx, p.c, p.c.Again.want, p.request, p.made)
		if err != nil {
			return fmt.Errorf("case %s, again after %s: %w", p.c.Name, p.c.Again.After, err)
		}
		written += int64(res.Rows)
		report.Cases[p.index].join(res, p.c.Again.After)
	}
	total, err := r.total(ctx, before, written)
	if err != nil {
		return err
	}
	report.Cases = append(report.Cases, total)
	return nil
}

// total finds what no single case shows: rows that came late, rows that went.
func (r *runner) total(ctx context.Context, before, written int64) (Result, error) {
	late, err := r.Rows.After(ctx, r.last)
	if err != nil {
		return Result{}, fmt.Errorf("look for new rows: %w", err)
	}
	after, err := r.Rows.Count(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("count the rows: %w", err)
	}
	res := Result{Name: TotalName, Why: "Nothing is written after its answer, and nothing goes.", Rows: len(late)}
	res.Want = fmt.Sprintf("%+d rows", written)
	res.Got = fmt.Sprintf("%+d rows", after-before)
	if len(late) > 0 {
		res.problem("%d rows were written after the last answer", len(late))
	}
	if after-before != written+int64(len(late)) {
		res.problem("the table grew by %d rows where the cases saw %d written", after-before, written+int64(len(late)))
	}
	res.OK = len(res.Problems) == 0
	return res, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// once sends a request and judges what comes of it.
func (r *runner) once(ctx context.Context, c *Case, want *Outcome, request []byte, made madeToken) (Result, error) {
	res := Result{Name: c.Name, Why: strings.TrimSpace(c.Why), Want: want.String()}
	named, err := r.named(ctx, c)
	if err != nil {
		return res, err
	}
	start := time.Now()
	a, reused, sendErr := r.line.do(ctx, c.method, request, r.Timeout)
	res.Milliseconds = float64(time.Since(start).Microseconds()) / 1000
	rows, err := r.news(ctx)
	if err != nil {
		return res, err
	}
	if errors.Is(sendErr, errSilent) && reused && len(rows) == 0 {
		// The server had given up the idle connection: that says nothing of the
		// case, and nothing was written, so a new connection may try.
		a, _, sendErr = r.line.do(ctx, c.method, request, r.Timeout)
		if rows, err = r.news(ctx); err != nil {
			return res, err
		}
	}
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	if named != nil {
		now, err := r.named(ctx, c)
		if err != nil {
			return res, err
		}
		if now == nil {
			res.problem("row %d is gone", named.ID)
		} else if !now.equal(*named) {
			res.problem("row %d was changed", named.ID)
		}
	}
	res.Rows = len(rows)
	if len(rows) != want.Rows {
		res.problem("%d rows written, want %d", len(rows), want.Rows)
	}
	clean := newCleaner(made.text, r.Keys)
	j := &judge{res: &res, c: c, want: want, made: made, rows: rows, subject: made.subject}
	if sendErr != nil {
		res.Got = "no answer"
		res.problem("%s", clean.text(sendErr.Error()))
	} else {
		clean.answer(a)
		r.readClock(a)
		if want.Answer == AnswerRow {
			stored, err := r.Rows.Event(ctx, c.rowID())
			if err != nil {
				return res, fmt.Errorf("read row %d, which the seed should have put there: %w", c.rowID(), err)
			}
			j.stored = &stored
		}
		j.answer(a)
	}
	res.OK = len(res.Problems) == 0
	return res, nil
}

// named is the row that a request names which has no business to change it, nil
// when there is none. Requests that only read name rows too, but are many.
func (r *runner) named(ctx context.Context, c *Case) (*Event, error) {
	id := c.rowID()
	if id == 0 || c.method == http.MethodGet || c.method == http.MethodHead {
		return nil, nil
	}
	e, err := r.Rows.Event(ctx, id)
	if errors.Is(err, ErrNoRow) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read row %d: %w", id, err)
	}
	return &e, nil
}

func (e Event) equal(o Event) bool {
	return e.ID == o.ID && e.Subject == o.Subject && e.Kind == o.Kind && string(e.Payload) == string(o.Payload) && e.CreatedAt.Equal(o.CreatedAt)
}

func (r *runner) news(ctx context.Context) ([]Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	rows, err := r.Rows.After(ctx, r.last)
	if err != nil {
		return nil, fmt.Errorf("look for new rows: %w", err)
	}
	if n := len(rows); n > 0 {
		r.last = rows[n-1].ID
	}
	return rows, nil
}

// readClock keeps the largest distance between the clocks that a Date header
// shows.
func (r *runner) readClock(a *answer) {
	t, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		return
	}
	if d := time.Until(t); d.Abs() > r.skew.Abs() {
		r.skew = d
	}
}

// judge compares one answer with one outcome.
type judge struct {
	res     *Result
	c       *Case
	want    *Outcome
	made    madeToken
	subject string
	rows    []Event
	stored  *Event // the row in the database, for an answer of kind row
}

func (j *judge) answer(a *answer) {
	value, duplicates, jsonErr := parseJSON(a.body)
	shown := j.shown(a, value, jsonErr)
	j.res.Got = strconv.Itoa(a.status)
	if shown != "" {
		j.res.Got += " " + shown
	}
	// What candidates are compared by: the answer and the headers that count.
	j.res.Headers = map[string]string{}
	if j.want.Answer != AnswerAny {
		for _, name := range []string{"Content-Type", "WWW-Authenticate"} {
			if v := a.header.Values(name); len(v) > 0 {
				j.res.Headers[name] = strings.Join(v, ", ")
			}
		}
	}
	if a.status != j.want.Status {
		j.res.problem("status %d, want %d", a.status, j.want.Status)
	}
	for _, name := range sortedKeys(j.want.Headers) {
		got, want := a.header.Values(name), j.want.Headers[name]
		switch {
		case len(got) == 0:
			j.res.problem("no %s header, want %s", name, want)
		case len(got) > 1:
			j.res.problem("%d %s headers, want one", len(got), name)
		case got[0] != want && !sameType(name, got[0], want):
			j.res.problem("%s is %s, want %s", name, clip(got[0], 80), want)
		}
	}
	if a.stray > 0 {
		j.res.problem("%d bytes came after the answer", a.stray)
	}
	switch j.want.Answer {
	case AnswerAny:
		return
	case AnswerNone:
		if len(a.body) > 0 {
			j.res.problem("a body of %d bytes, want none", len(a.body))
		}
		return
	}
	if jsonErr != nil {
		j.res.problem("the body is not JSON")
		return
	}
	if duplicates {
		j.res.problem("a member of the body is there twice")
	}
	if a.status != j.want.Status {
		return // what the body should be follows from a status that did not come
	}
	j.body(value)
}

// sameType compares a Content-Type by its meaning: letter case and the
// parameter charset=utf-8 change nothing.
func sameType(name, got, want string) bool {
	if !strings.EqualFold(name, "Content-Type") {
		return false
	}
	media, params, err := mime.ParseMediaType(got)
	if err != nil || media != want {
		return false
	}
	for k, v := range params {
		if k != "charset" || !strings.EqualFold(v, "utf-8") {
			return false
		}
	}
	return true
}

func (j *judge) body(value any) {
	switch j.want.Answer {
	case AnswerError:
		j.same(value, object{"error": j.want.Error})
	case AnswerClaims:
		j.same(value, object{"sub": j.made.subject, "scope": j.made.scope})
	case AnswerID:
		j.written(value)
	case AnswerRow:
		j.row(value)
	}
}

func (j *judge) same(got, want any) {
	if g, w := canonical(got), canonical(want); g != w {
		j.res.problem("body %s, want %s", clip(g, maxShown), clip(w, maxShown))
	}
}

// written checks the answer to a good write and the row it left.
func (j *judge) written(value any) {
	if len(j.rows) != 1 {
		return // said already
	}
	row := j.rows[0]
	j.same(value, object{"id": number(strconv.FormatInt(row.ID, 10))})
	sent, err := j.c.sentEvent()
	if err != nil {
		j.res.problem("%s", err)
		return
	}
	if row.Kind != sent.kind {
		j.res.problem("stored kind %q, sent %q", clip(row.Kind, maxShown), clip(sent.kind, maxShown))
	}
	if row.Subject != j.subject {
		j.res.problem("stored subject %q, the token's is %q", clip(row.Subject, maxShown), clip(j.subject, maxShown))
	}
	if row.CreatedAt.IsZero() {
		j.res.problem("stored created_at is empty")
	}
	payload, _, err := parseJSON(row.Payload)
	if err != nil {
		j.res.problem("the stored payload is not JSON")
		return
	}
	if g, w := canonical(payload), canonical(sent.payload); g != w {
		j.res.problem("stored payload %s, sent %s", clip(g, maxShown), clip(w, maxShown))
	}
}

// row checks an answer against the row in the database.
func (j *judge) row(value any) {
	o, ok := value.(object)
	if !ok {
		j.res.problem("the body is not an object")
		return
	}
	payload, _, err := parseJSON(j.stored.Payload)
	if err != nil {
		j.res.problem("the stored payload is not JSON")
		return
	}
	text, _ := o["created_at"].(string)
	if !slices.Contains(j.want.Members, "created_at") {
		// not asked for
	} else if t, err := time.Parse(time.RFC3339Nano, text); err != nil {
		j.res.problem("created_at %q is not a time by RFC 3339", clip(text, 60))
	} else if !t.Equal(j.stored.CreatedAt) {
		j.res.problem("created_at is %s, the row has %s", clip(text, 60), j.stored.CreatedAt.UTC().Format(time.RFC3339Nano))
	}
	all := object{
		"id":         number(strconv.FormatInt(j.stored.ID, 10)),
		"subject":    j.stored.Subject,
		"kind":       j.stored.Kind,
		"payload":    payload,
		"created_at": text,
	}
	want := object{}
	for _, name := range j.want.Members {
		want[name] = all[name]
	}
	j.same(value, want)
}

// shown is the body as a report shows it. What differs from candidate to
// candidate by nature, the id of a new row, is left open.
func (j *judge) shown(a *answer, value any, jsonErr error) string {
	if len(a.body) == 0 {
		return ""
	}
	if j.want.Answer == AnswerAny && a.status == j.want.Status {
		return "(the server's own body)"
	}
	if jsonErr != nil {
		return clip(strconv.Quote(string(a.body)), maxShown)
	}
	if o, ok := value.(object); ok && len(j.rows) == 1 {
		if n, ok := o["id"].(number); ok && string(n) == strconv.FormatInt(j.rows[0].ID, 10) {
			o["id"] = "(new row)"
			defer func() { o["id"] = n }()
		}
	}
	return clip(canonical(value), maxShown)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
