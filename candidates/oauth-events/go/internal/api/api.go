// Package api answers the requests of the suite's contract over a PostgreSQL
// pool. The order of the checks is part of the contract: route, token and scope,
// then input.
package api

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percore/percore/candidates/oauth-events/go/internal/strictjson"
	"github.com/percore/percore/candidates/oauth-events/go/internal/token"
)

// MaxBody is the largest request body that is read, in bytes.
const MaxBody = 64 << 10

const (
	scopeRead  = "events:read"
	scopeWrite = "events:write"
)

// All candidates send the same two statements. The database writes the time and
// takes the payload out of the body's own text, so that no candidate's notion of
// a number or a date shows in a row.
const (
	selectEvent = `SELECT kind, payload::text, to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM events WHERE id = $1 AND subject = $2`
	insertEvent = `INSERT INTO events (subject, kind, payload) VALUES ($1, $2, $3::jsonb -> 'payload') RETURNING id`
)

// Database is the part of a pgx pool that the API uses.
type Database interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// API is the http.Handler of the candidate.
type API struct {
	Database Database
	Verifier *token.Verifier
}

// answer is a whole response.
type answer struct {
	status int
	body   []byte
	plain  bool // text rather than JSON
}

var (
	// malformed answers what is not HTTP, in net/http's own words.
	malformed      = answer{status: http.StatusBadRequest, body: []byte("400 Bad Request"), plain: true}
	invalidToken   = answer{status: http.StatusUnauthorized, body: []byte(`{"error":"invalid_token"}`)}
	invalidRequest = answer{status: http.StatusBadRequest, body: []byte(`{"error":"invalid_request"}`)}
	notFound       = answer{status: http.StatusNotFound, body: []byte(`{"error":"not_found"}`)}
	serverError    = answer{status: http.StatusInternalServerError, body: []byte(`{"error":"server_error"}`)}
)

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ans := a.answer(r)
	header := w.Header()
	header["Content-Type"] = []string{"application/json"}
	if ans.plain {
		header["Content-Type"] = []string{"text/plain; charset=utf-8"}
	}
	if ans.status == http.StatusUnauthorized {
		header["Www-Authenticate"] = []string{`Bearer error="invalid_token"`}
	}
	header["Content-Length"] = []string{strconv.Itoa(len(ans.body))}
	w.WriteHeader(ans.status)
	// A client that went away is its own affair.
	_, _ = w.Write(ans.body)
}

func (a *API) answer(r *http.Request) answer {
	route, id := find(r)
	switch route {
	case routeAuth:
		return a.auth(r)
	case routeRead:
		return a.read(r, id)
	case routeWrite:
		return a.write(r)
	case routeHealth:
		return a.health(r)
	case routeMalformed:
		return malformed
	}
	return notFound
}

func (a *API) auth(r *http.Request) answer {
	who, ok := a.identify(r, scopeRead)
	if !ok {
		return invalidToken
	}
	body := make([]byte, 0, 64)
	body = append(body, `{"sub":`...)
	body = strictjson.AppendString(body, who.Subject)
	body = append(body, `,"scope":`...)
	body = strictjson.AppendString(body, who.Scope)
	return answer{status: http.StatusOK, body: append(body, '}')}
}

func (a *API) read(r *http.Request, text string) answer {
	who, ok := a.identify(r, scopeRead)
	if !ok {
		return invalidToken
	}
	id, ok := eventID(text)
	if !ok {
		return notFound
	}
	var kind, payload, created string
	err := a.Database.QueryRow(r.Context(), selectEvent, id, who.Subject).Scan(&kind, &payload, &created)
	if errors.Is(err, pgx.ErrNoRows) {
		return notFound
	}
	if err != nil {
		return failed("read an event", err)
	}
	body := make([]byte, 0, 128+len(kind)+len(payload))
	body = append(body, `{"id":`...)
	body = append(body, text...)
	body = append(body, `,"kind":`...)
	body = strictjson.AppendString(body, kind)
	body = append(body, `,"payload":`...)
	body = append(body, payload...)
	body = append(body, `,"created_at":"`...)
	body = append(body, created...)
	return answer{status: http.StatusOK, body: append(body, `"}`...)}
}

func (a *API) write(r *http.Request) answer {
	who, ok := a.identify(r, scopeWrite)
	if !ok {
		return invalidToken
	}
	body, err := readBody(r)
	if errors.Is(err, errTooLarge) {
		return invalidRequest
	}
	if err != nil {
		return malformed
	}
	kind, ok := eventKind(body)
	if !ok {
		return invalidRequest
	}
	var id int64
	err = a.Database.QueryRow(r.Context(), insertEvent, who.Subject, kind, body).Scan(&id)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22") {
		return invalidRequest // data that jsonb cannot hold
	}
	if err != nil {
		return failed("write an event", err)
	}
	return answer{status: http.StatusCreated, body: append(strconv.AppendInt([]byte(`{"id":`), id, 10), '}')}
}

func (a *API) health(r *http.Request) answer {
	var one int
	if err := a.Database.QueryRow(r.Context(), "SELECT 1").Scan(&one); err != nil {
		return failed("reach the database", err)
	}
	return answer{status: http.StatusOK, body: []byte("ok"), plain: true}
}

// identify verifies the bearer token of a request. The scheme is compared without
// regard to case (RFC 9110, section 11.1); two Authorization headers are none.
func (a *API) identify(r *http.Request, scope string) (token.Identity, bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return token.Identity{}, false
	}
	scheme, credentials, _ := strings.Cut(strings.Trim(values[0], " \t"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return token.Identity{}, false
	}
	who, err := a.Verifier.Verify(strings.TrimLeft(credentials, " "), scope)
	return who, err == nil
}

var errTooLarge = errors.New("body too large")

// readBody reads at most one byte more than a body may have, and nothing of one
// that announces more.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > MaxBody {
		return nil, errTooLarge
	}
	if r.ContentLength >= 0 {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err == nil && len(body) > MaxBody {
		err = errTooLarge
	}
	return body, err
}

// eventKind validates the body of a write and returns its kind.
func eventKind(body []byte) (kind string, ok bool) {
	var isText, isObject bool
	err := strictjson.Storable(body, func(name string, value []byte) {
		switch name {
		case "kind":
			kind, isText = strictjson.String(value)
		case "payload":
			isObject = strictjson.IsObject(value)
		}
	})
	return kind, err == nil && isText && isObject && kind != ""
}

func failed(what string, err error) answer {
	if !errors.Is(err, context.Canceled) {
		log.Printf("could not %s: %v", what, err)
	}
	return serverError
}
