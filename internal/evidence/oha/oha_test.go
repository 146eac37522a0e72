//go:build integration

package oha

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"
)

// oha finds the load generator: in PERCORE_OHA, in the path, or where the image
// build keeps it.
func oha(t *testing.T) string {
	t.Helper()
	if name := os.Getenv("PERCORE_OHA"); name != "" {
		return name
	}
	if name, err := exec.LookPath(Program); err == nil {
		return name
	}
	if cache, err := os.UserCacheDir(); err == nil {
		hits, _ := filepath.Glob(filepath.Join(cache, "percore", "oha-*", "bin", Program))
		if len(hits) > 0 {
			return hits[len(hits)-1]
		}
	}
	t.Fatal("no oha found: set PERCORE_OHA, or build the images once, which keeps one")
	return ""
}

// TestRealGenerator runs the command line against a server of the test and
// holds the parsed result against what the server counted.
func TestRealGenerator(t *testing.T) {
	program := oha(t)
	var requests, wrong atomic.Int64
	paths := regexp.MustCompile(`^/events/[1-9][0-9]{0,5}$`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		ok := r.Header.Get("Authorization") == "Bearer aaa.bbb.ccc"
		switch r.URL.Path {
		case "/write":
			ok = ok && r.Method == "POST" && string(body) == `{"kind":"x"}` && r.Header.Get("Content-Type") == "application/json"
		case "/slow":
			time.Sleep(300 * time.Millisecond)
		case "/half":
			if n%2 == 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		default:
			ok = ok && paths.MatchString(r.URL.Path)
		}
		if !ok {
			wrong.Add(1)
		}
	}))
	defer server.Close()

	generate := func(name string, change func(*Spec)) Result {
		t.Helper()
		s := Spec{
			Base: server.URL, Path: "/events/[1-9][0-9]{0,5}", Random: true, Token: "aaa.bbb.ccc",
			Connections: 4, Duration: time.Second, Timeout: 10 * time.Second, Out: filepath.Join(t.TempDir(), "o.json"),
		}
		change(&s)
		requests.Store(0)
		if out, err := exec.Command(program, Args(s)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		r, err := Read(s.Out, Remedy)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := requests.Load(); n != r.Answered {
			t.Errorf("%s: the server saw %d requests and the generator %d answers", name, n, r.Answered)
		}
		return r
	}
	if r := generate("open loop", func(s *Spec) { s.Target = 200 }); r.OK() < 180 || r.OK() > 205 {
		t.Errorf("open loop at 200/s for 1 s: %d answers", r.OK())
	}
	generate("closed loop", func(s *Spec) {
		s.Random, s.Path, s.Method, s.Body, s.ContentType = false, "/write", "POST", `{"kind":"x"}`, "application/json"
	})
	// Requests open at the end are waited for: none is cut off at the deadline.
	if r := generate("slow", func(s *Spec) { s.Random, s.Path = false, "/slow" }); r.Unanswered() != 0 {
		t.Errorf("requests open at the end: %v", r.Errors)
	}
	if r := generate("half", func(s *Spec) { s.Random, s.Path = false, "/half" }); r.OK() >= r.Answered {
		t.Errorf("half of the answers are 500: %v", r.Statuses)
	}
	if wrong.Load() != 0 {
		t.Errorf("%d requests were not as asked for", wrong.Load())
	}
}
