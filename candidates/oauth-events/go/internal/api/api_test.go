package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		method, target string
		want           route
		id             string
	}{
		{"GET", "/auth", routeAuth, ""},
		{"HEAD", "/auth", routeAuth, ""},
		{"GET", "/auth?x=/../..", routeAuth, ""},
		{"GET", "http://app/auth", routeAuth, ""},
		{"GET", "/events/7", routeRead, "7"},
		{"GET", "/events/", routeRead, ""},
		{"GET", "/events/x", routeRead, "x"},
		{"GET", "/events/%31", routeRead, "%31"},
		{"GET", "/events/1/", routeRead, "1/"},
		{"POST", "/events", routeWrite, ""},
		{"POST", "/events?x", routeWrite, ""},
		{"GET", "/healthz", routeHealth, ""},
		{"GET", "/events", routeNone, ""},
		{"POST", "/events/7", routeNone, ""},
		{"PUT", "/events", routeNone, ""},
		{"GET", "//auth", routeNone, ""},
		{"GET", "/auth/", routeNone, ""},
		{"GET", "/./auth", routeNone, ""},
		{"OPTIONS", "*", routeMalformed, ""},
		{"get", "/auth", routeMalformed, ""},
		{"GET", "/events/%00", routeMalformed, ""},
		{"GET", "/../auth", routeMalformed, ""},
		{"GET", "/events/../../auth", routeMalformed, ""},
		{"GET", "/a/%2e%2e/..", routeMalformed, ""},
		{"GET", "/events/7#x", routeRead, "7#x"},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://app/", nil)
		r.Method, r.RequestURI = tc.method, tc.target
		r.URL.Scheme = ""
		if strings.HasPrefix(tc.target, "http:") {
			r.URL.Scheme, r.URL.Path = "http", strings.TrimPrefix(tc.target, "http://app")
		}
		if got, id := find(r); got != tc.want || id != tc.id {
			t.Errorf("%s %s: route %d, id %q; want %d, %q", tc.method, tc.target, got, id, tc.want, tc.id)
		}
	}
}

func TestEventID(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "999999": 999999, "9223372036854775807": 1<<63 - 1} {
		if got, ok := eventID(text); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0", "-1", "+1", "01", "1.0", "1e3", "9223372036854775808", "18446744073709551617", " 1", "1 ", "٣", "%31"} {
		if got, ok := eventID(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestEventKind(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"login","payload":{}}`:                               "login",
		`{"payload":{"a":[1,2]},"x":null,"kind":" "}`:                 " ",
		`{"kind":1,"kind":"last","payload":[],"payload":{}}`:          "last",
		`{"\u006bind":"\u006b","payload":{}}`:                         "k",
		`{"kind":"a","Kind":1,"payload":{},"PAYLOAD":1}`:              "a",
		`{"kind":"a","payload":{"n":123456789012345678901234567890}}`: "a",
	} {
		if kind, ok := eventKind([]byte(body)); !ok || kind != want {
			t.Errorf("%s: %q, %v", body, kind, ok)
		}
	}
	for _, body := range []string{
		``, `[]`, `{}`, `{"kind":"a"}`, `{"payload":{}}`, `{"kind":"","payload":{}}`, `{"kind":1,"payload":{}}`, `{"kind":null,"payload":{}}`,
		`{"kind":"a","payload":[]}`, `{"kind":"a","payload":"{}"}`, `{"kind":"a","payload":null}`, `{"Kind":"a","payload":{}}`,
		`{"kind":"last","kind":1,"payload":{}}`, `{"kind":"a","payload":{"n":1e999}}`, `{"kind":"a","payload":{"n":"\u0000"}}`,
	} {
		if kind, ok := eventKind([]byte(body)); ok {
			t.Errorf("%s was accepted as %q", body, kind)
		}
	}
}

// FuzzEventKind holds the validator against encoding/json: whatever it accepts is an
// object with a non-empty text and an object in it.
func FuzzEventKind(f *testing.F) {
	f.Add([]byte(`{"kind":"login","payload":{"a":1}}`))
	f.Add([]byte(`{"kind":1,"kind":"x","payload":{},"payload":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		kind, ok := eventKind(body)
		if !ok {
			return
		}
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatalf("accepted %q: %v", body, err)
		}
		if members["kind"] != kind || kind == "" {
			t.Fatalf("kind of %q is %q", body, kind)
		}
		if _, ok := members["payload"].(map[string]any); !ok {
			t.Fatalf("payload of %q", body)
		}
	})
}

func TestReadBody(t *testing.T) {
	exact := strings.Repeat("x", MaxBody)
	for _, tc := range []struct {
		name   string
		body   string
		length int64
		want   error
	}{
		{"empty", "", 0, nil},
		{"exact", exact, MaxBody, nil},
		{"one more", exact + "x", MaxBody + 1, errTooLarge},
		{"exact, in chunks", exact, -1, nil},
		{"one more, in chunks", exact + "x", -1, errTooLarge},
		{"announced and not sent", "x", 1 << 40, errTooLarge},
		{"cut", "x", 2, io.ErrUnexpectedEOF},
	} {
		r := httptest.NewRequest(http.MethodPost, "/events", io.NopCloser(strings.NewReader(tc.body)))
		r.ContentLength = tc.length
		body, err := readBody(r)
		if !errors.Is(err, tc.want) || err == nil && string(body) != tc.body {
			t.Errorf("%s: %d bytes, %v", tc.name, len(body), err)
		}
	}
}

// refusing is a database that answers everything with one error.
type refusing struct{ err error }

func (d refusing) QueryRow(context.Context, string, ...any) pgx.Row { return d }
func (d refusing) Scan(...any) error                                { return d.err }

func TestHealth(t *testing.T) {
	for err, want := range map[error]int{nil: 200, &pgconn.PgError{Code: "57P03"}: 500} {
		w := httptest.NewRecorder()
		(&API{Database: refusing{err}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if w.Code != want {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

func TestMalformedAndMissing(t *testing.T) {
	for target, want := range map[string]string{"/x": `{"error":"not_found"}`, "/../x": "400 Bad Request"} {
		r := httptest.NewRequest(http.MethodGet, "http://app/", nil)
		r.RequestURI, r.URL.Scheme = target, ""
		w := httptest.NewRecorder()
		(&API{}).ServeHTTP(w, r)
		if w.Body.String() != want {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

func TestNoTokenComesBeforeInput(t *testing.T) {
	for _, line := range []string{"GET /auth", "GET /events/0", "POST /events"} {
		method, target, _ := strings.Cut(line, " ")
		w := httptest.NewRecorder()
		(&API{}).ServeHTTP(w, httptest.NewRequest(method, target, nil))
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Bearer error="invalid_token"` || w.Body.String() != `{"error":"invalid_token"}` {
			t.Errorf("%s: %d %v %s", line, w.Code, w.Header(), w.Body)
		}
	}
}
