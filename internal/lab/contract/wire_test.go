package contract

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

var testNow = time.Unix(1_800_000_000, 0)

func rendered(t *testing.T, yaml string) string {
	t.Helper()
	c, err := Parse("f.yaml", []byte(head+"  - name: a\n    why: It is only a test.\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sharedKeys()
	if err != nil {
		t.Fatal(err)
	}
	return string(c.Cases[0].request("app:8080", values{now: testNow, token: "T.O.K", identity: testIdentity, scope: DefaultScope, keys: keys}))
}

func TestRequestBytes(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"    send: GET /auth\n    want: ok\n",
			"GET /auth HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\nAccept: application/json\r\nAuthorization: Bearer T.O.K\r\n\r\n"},
		{"    send: GET /x/../${hex ff}?t=${token}\n    headers: ['-Authorization', '-accept']\n    want: no\n",
			"GET /x/../\xff?t=T.O.K HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\n\r\n"},
		{"    send: GET /auth\n    headers: ['Authorization: Bearer ${token}', 'Authorization: Bearer x']\n    want: no\n",
			"GET /auth HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\nAccept: application/json\r\nAuthorization: Bearer T.O.K\r\nAuthorization: Bearer x\r\n\r\n"},
		{"    send: POST /events\n    token: none\n    body: 'a${hex 00}${pad}b ${now-1m}'\n    size: 20\n    want: no\n",
			"POST /events HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\na\x00xxxxxxb 1799999940"},
		{"    send: POST /events\n    token: none\n    headers: ['-Content-Type']\n    body: 'ab'\n    chunked: true\n    want: no\n",
			"POST /events HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\nAccept: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"},
		{"    send: POST /events\n    token: none\n    body: ''\n    want: no\n",
			"POST /events HTTP/1.1\r\nHost: app:8080\r\nUser-Agent: percore\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"},
	} {
		if got := rendered(t, c.yaml); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.yaml, got, c.want)
		}
	}
}

func read(text, method string) (*answer, error) {
	l := &io.LimitedReader{R: strings.NewReader(text)}
	return readAnswer(bufio.NewReader(l), l, method)
}

func TestReadAnswer(t *testing.T) {
	for _, c := range []struct {
		name, text, method string
		status             int
		body               string
		close              bool
		stray              int
		err                string
	}{
		{name: "length", text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", status: 200, body: "ab"},
		{name: "chunks", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n", status: 200, body: "ab"},
		{name: "until the end", text: "HTTP/1.1 200 OK\r\n\r\nab", status: 200, body: "ab", close: true},
		{name: "close", text: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status: 200, close: true},
		{name: "continue first", text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", status: 201},
		{name: "head", method: "HEAD", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", status: 200},
		{name: "head with body", method: "HEAD", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", status: 200, stray: 5},
		{name: "stray bytes", text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", status: 200, body: "a", stray: 2},
		{name: "nothing", text: "", err: "without an answer"},
		{name: "not http", text: "SSH-2.0-x\r\n", err: "malformed"},
		{name: "cut short", text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", err: "cut short after 2 bytes"},
		{name: "endless interims", text: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20), err: "no final one"},
		{name: "endless headers", text: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 100000), err: "longer than"},
		{name: "endless line", text: "HTTP/1.1 200 " + strings.Repeat("x", 1<<20), err: "longer than"},
		{name: "endless body", text: "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 3<<20), err: "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := read(c.text, c.method)
			if c.err != "" {
				if err == nil || !strings.Contains(said.Err(err), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.status != c.status || string(a.body) != c.body || a.close != c.close || a.stray != c.stray {
				t.Errorf("got %d %q close %t stray %d", a.status, a.body, a.close, a.stray)
			}
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), false)
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), false)
	f.Add([]byte("HTTP/1.0 404 Not Found\r\n\r\n{\"error\":\"not_found\"}"), true)
	f.Fuzz(func(t *testing.T, data []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		a, err := read(string(data), method)
		if err != nil {
			return
		}
		if len(a.body) > maxAnswer {
			t.Errorf("a body of %d bytes", len(a.body))
		}
		keys, err := sharedKeys()
		if err != nil {
			t.Fatal(err)
		}
		res := Result{}
		c := &Case{method: method}
		for _, answer := range answers {
			rows := []Event{{ID: 1, Payload: []byte(`{}`)}}
			j := &judge{res: &res, c: c, want: &Outcome{Status: a.status, Answer: answer, Error: "x", Members: rowMembers}, rows: rows, stored: &rows[0]}
			newCleaner("", keys).answer(a)
			j.answer(a)
		}
	})
}

// A candidate that has closed the idle connection is asked again over a new
// one; a candidate that closes every connection is not asked for ever.
func TestClosedConnections(t *testing.T) {
	t.Parallel()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			c, _, _ := w.(http.Hijacker).Hijack()
			_ = c.Close()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"sub":"bench-user","scope":"events:read events:write"}`))
	}))
	defer s.Close()
	dials := 0
	target := startReference(t)
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		dials++
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	c := only(t, loadContract(t), "auth-good", "auth-read-scope-alone")
	c.Cases[1] = c.Cases[0]
	report, err := Run(context.Background(), c, target)
	if err != nil || !report.OK() {
		t.Errorf("%v\n%s", err, report.Summary())
	}
	if dials != 2 || n != 3 {
		t.Errorf("%d connections and %d requests, want 2 and 3", dials, n)
	}

	// From the first request on.
	n = -1 << 30
	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.Close()
	}))
	defer closing.Close()
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", closing.Listener.Addr().String())
	}
	report, err = Run(context.Background(), c, target)
	if err != nil || report.Failed != 2 || !strings.Contains(report.Summary(), "without an answer") {
		t.Errorf("%v\n%s", err, report.Summary())
	}
}

func TestSilentCandidate(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	target := startReference(t)
	target.Timeout = 100 * time.Millisecond
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	c := only(t, loadContract(t), "auth-good")
	report, err := Run(context.Background(), c, target)
	if err != nil || report.OK() || !strings.Contains(report.Summary(), "no answer within 100ms") {
		t.Errorf("%v\n%s", err, report.Summary())
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	target := startReference(t)
	target.Dial = func(context.Context) (net.Conn, error) { return nil, errors.New("the candidate is gone") }
	report, err := Run(context.Background(), only(t, loadContract(t), "auth-good"), target)
	if err != nil || report.OK() || !strings.Contains(report.Summary(), "the candidate is gone") {
		t.Errorf("%v\n%s", err, report.Summary())
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	target := startReference(t)
	target.Progress = func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}
	c := loadContract(t)
	report, err := Run(ctx, c, target)
	if !errors.Is(err, context.Canceled) || len(report.Cases) != 2 {
		t.Errorf("%d cases and %v", len(report.Cases), err)
	}
}

func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	target := startReference(t)
	target.Rows = goneRows{target.Rows}
	report, err := Run(context.Background(), only(t, loadContract(t), "auth-good"), target)
	if err == nil || !strings.Contains(said.Err(err), "case auth-good: look for new rows: database gone") || len(report.Cases) != 0 {
		t.Errorf("got %v", err)
	}
}

type goneRows struct{ Rows }

func (goneRows) After(context.Context, int64) ([]Event, error) {
	return nil, errors.New("database gone")
}

// A candidate that repeats the request in its answer does not get the token
// into the report.
func TestEchoIsCleaned(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Content-Type", "text/plain; token="+token)
		w.Header().Set("WWW-Authenticate", token)
		w.WriteHeader(403)
		parts := strings.Split(token, ".")
		_, _ = w.Write([]byte("no: " + token + " " + parts[len(parts)-1] + " " + parts[0]))
	}))
	defer s.Close()
	target := startReference(t)
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	c := only(t, loadContract(t), "auth-good", "exp-past", "foreign-key", "signature-truncated")
	report, err := Run(context.Background(), c, target)
	if err != nil || report.Failed != 4 {
		t.Errorf("%v\n%s", err, report.Summary())
	}
	checkSilent(t, report)
	if !strings.Contains(report.Summary(), redactedToken) {
		t.Errorf("the echo does not show at all:\n%s", report.Summary())
	}
}

func TestClockSkew(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(-90*time.Second).UTC().Format(http.TimeFormat))
	}))
	defer s.Close()
	target := startReference(t)
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	report, err := Run(context.Background(), only(t, loadContract(t), "auth-good"), target)
	if err != nil || report.ClockSkewSeconds > -89 || report.ClockSkewSeconds < -91 || !strings.Contains(report.Summary(), "its clock is -9") {
		t.Errorf("%v: skew %g\n%s", err, report.ClockSkewSeconds, report.Summary())
	}
}

// The connections of a run are few: keep-alive is used where it can be.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	target := startReference(t)
	dial := target.Dial
	dials := 0
	target.Dial = func(ctx context.Context) (net.Conn, error) {
		dials++
		return dial(ctx)
	}
	c := loadContract(t)
	var quick []*Case
	for _, k := range c.Cases {
		if k.Again == nil {
			quick = append(quick, k)
		}
	}
	c.Cases = quick
	if report, err := Run(context.Background(), c, target); err != nil || !report.OK() {
		t.Errorf("%v\n%s", err, report.Summary())
	}
	if dials > 40 {
		t.Errorf("%d connections for %d cases", dials, len(quick))
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":2}`, `{"b":2, "a":1}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{}`, `[]`, false},
		{`1.50`, `15e-1`, true},
		{`1e400`, "1" + strings.Repeat("0", 400), true},
		{`-0.0`, `0`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`12345678901234567890`, `12345678901234567890.0`, true},
		{`0.1`, `0.10000000000000000555`, false},
		{`"\u0041"`, `"A"`, true},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`null`, `false`, false},
	} {
		a, _, errA := parseJSON([]byte(c.a))
		b, _, errB := parseJSON([]byte(c.b))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if same := canonical(a) == canonical(b); same != c.same {
			t.Errorf("%s and %s: same is %t", c.a, c.b, same)
		}
	}
	for _, bad := range []string{"", "{", "{}x", `{"a"}`, "[1,]", "nul"} {
		if _, _, err := parseJSON([]byte(bad)); err == nil {
			t.Errorf("%q is read as JSON", bad)
		}
	}
	deep := bytes.Repeat([]byte("["), maxDepth+10)
	if _, _, err := parseJSON(deep); err == nil {
		t.Error("endless nesting is read as JSON")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add(`{"a":[1,2.50e+3,"x\ud800",null,true],"b":{}}`)
	f.Add(`-0.00e-999999999`)
	f.Add(`1e99999999999999999999`)
	f.Fuzz(func(t *testing.T, s string) {
		v, _, err := parseJSON([]byte(s))
		if err != nil {
			return
		}
		once := canonical(v)
		again, _, err := parseJSON([]byte(once))
		if err != nil {
			t.Fatalf("%q becomes %q: %v", s, once, err)
		}
		if twice := canonical(again); twice != once {
			t.Errorf("%q becomes %q and then %q", s, once, twice)
		}
	})
}

func TestCompare(t *testing.T) {
	r := func(name string, results ...Result) Report { return Report{Candidate: name, Cases: results} }
	ok := Result{Name: "a", Want: "w", Got: "200", Rows: 0}
	if d := Compare([]Report{r("go", ok), r("php", ok)}); len(d) != 0 {
		t.Errorf("got %v", d)
	}
	body, rows, header := ok, ok, ok
	body.Got = "200 x"
	rows.Rows = 1
	header.Headers = map[string]string{"Content-Type": "text/html"}
	for _, other := range []Result{body, rows, header} {
		d := Compare([]Report{r("go", ok), r("php", other), r("third", ok)})
		if len(d) != 1 || d[0].Case != "a" || len(d[0].Answers) != 3 || !strings.Contains(d[0].String(), "a: want w; go 200") {
			t.Errorf("got %v", d)
		}
	}
	if d := Compare([]Report{r("go", ok), r("php")}); len(d) != 1 || d[0].Answers["php"] != "was not asked" {
		t.Errorf("got %v", d)
	}
	if d := Compare([]Report{r("go"), r("php", ok)}); len(d) != 1 || d[0].Answers["go"] != "was not asked" {
		t.Errorf("got %v", d)
	}
	if d := Compare([]Report{r("go", ok)}); len(d) != 0 {
		t.Errorf("got %v", d)
	}
}

func TestSummary(t *testing.T) {
	r := Report{Candidate: "go", Passed: 1, Failed: 1, Cases: []Result{
		{Name: "fine", OK: true},
		{Name: "bad", Why: "It must not be.", Got: "200 {}", Problems: []string{"status 200, want 401", "1 rows written, want 0"}},
	}}
	want := "go: bad: status 200, want 401; 1 rows written, want 0; got 200 {}. It must not be.\ngo: 1 of 2 cases\n"
	if got := r.Summary(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.OK() || (Report{}).OK() || !(Report{Passed: 1}).OK() {
		t.Error("OK is wrong")
	}
}
