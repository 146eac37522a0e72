package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

// TestPatience: it counts from the first news of a broken link, by whichever
// call, and ends in an error that names the engine.
func TestPatience(t *testing.T) {
	e := &Engine{host: "ssh://me@far", contact: &contact{}, limit: 250 * time.Millisecond}
	down := fmt.Errorf("reading: %w", syscall.ECONNRESET)
	_, err := retry(t.Context(), e, func() (int, error) { return 0, down })
	var lost *LostError
	if !errors.As(err, &lost) || lost.Host != "ssh://me@far" || !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(said.Err(err), "the engine at ssh://me@far") {
		t.Fatalf("%v", err)
	}
	// An engine that was given up is not asked again for a while.
	calls := 0
	if _, again := retry(t.Context(), e, func() (int, error) { calls++; return 7, nil }); !errors.As(again, &lost) || calls != 0 {
		t.Errorf("%v after %d calls", again, calls)
	}
	// Then once, and when it answers it is back.
	e.contact.lost = time.Now().Add(-hopeless)
	if _, err := retry(t.Context(), e, func() (int, error) { calls++; return 0, down }); !errors.As(err, &lost) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	e.contact.lost = time.Now().Add(-hopeless)
	if v, err := retry(t.Context(), e, func() (int, error) { return 7, nil }); v != 7 || err != nil || !e.contact.lost.IsZero() {
		t.Errorf("%d, %v", v, err)
	}
	// A byte on any connection is a sign of life: patience begins anew.
	started := time.Now()
	_, err = retry(t.Context(), e, func() (int, error) {
		if time.Since(started) > time.Second {
			return 7, nil
		}
		e.contact.answer()
		return 0, down
	})
	if err != nil {
		t.Errorf("%v after %s", err, time.Since(started))
	}
	if dropped(&LostError{Err: io.EOF}) {
		t.Error("what was given up is tried again")
	}
}

// cutEngine plays an engine whose link breaks after it has done what it was
// asked and before it has said so.
type cutEngine struct {
	mu       sync.Mutex
	cut      map[string]int // path -> answers still to be lost
	created  map[string]string
	labels   map[string]string
	started  int
	finished bool
}

func (c *cutEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Api-Version", "1.41")
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	answer := func(code int, v any) {
		if c.cut[path] > 0 {
			c.cut[path]--
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case path == "containers/create":
		name := r.URL.Query().Get("name")
		if c.created[name] != "" {
			answer(http.StatusConflict, map[string]string{"message": "Conflict. The container name is in use"})
			return
		}
		var config struct{ Labels map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&config)
		c.created[name], c.labels = "id1", config.Labels
		answer(http.StatusCreated, map[string]string{"Id": "id1"})
	case strings.HasSuffix(path, "/start"):
		c.started++
		c.finished = true // it is a short one
		answer(http.StatusNoContent, nil)
	case strings.HasSuffix(path, "/json"):
		at := "0001-01-01T00:00:00Z"
		if c.started > 0 {
			at = "2026-01-02T03:04:05Z"
		}
		answer(http.StatusOK, map[string]any{
			"Id": "id1", "Name": "/x", "Config": map[string]any{"Labels": c.labels},
			"State": map[string]any{"Running": false, "StartedAt": at},
		})
	default:
		answer(http.StatusOK, "OK")
	}
}

func TestCreatedAndStartedOnce(t *testing.T) {
	far := &cutEngine{cut: map[string]int{"containers/create": 2, "containers/id1/start": 1}, created: map[string]string{}}
	srv := httptest.NewServer(far)
	defer srv.Close()
	e, err := Connect(context.Background(), Options{Host: "tcp://" + srv.Listener.Addr().String(), Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Create(t.Context(), Spec{Name: "x", Image: "i", Labels: map[string]string{LabelRun: "r1"}})
	if err != nil || c.ID != "id1" {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if far.started != 1 {
		t.Errorf("it was started %d times", far.started)
	}
	// Somebody else's container of that name is still a conflict.
	far.labels = map[string]string{LabelRun: "another"}
	far.cut["containers/create"] = 1
	if _, err := e.Create(t.Context(), Spec{Name: "x", Image: "i", Labels: map[string]string{LabelRun: "r1"}}); err == nil || !strings.Contains(said.Err(err), "is taken") {
		t.Errorf("%v", err)
	}
}
