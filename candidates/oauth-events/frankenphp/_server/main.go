// The FrankenPHP candidate of the debian flavour: the FrankenPHP library in worker
// mode behind net/http, without Caddy. Each worker thread runs candidates/oauth-events/php/worker.php;
// configuration comes from the environment, see candidates/oauth-events/CONTRACT.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dunglas/frankenphp"
)

const (
	root   = "/app/php"
	script = root + "/worker.php"
	worker = "events"
	// maxHeader is the contract's bound on a request line and headers together,
	// 48 KiB. The server adds 4 KiB to what it is told.
	maxHeader = 48<<10 - 4096
	// maxBody is the contract's bound on the body of a request, in bytes.
	maxBody = 64 << 10
	// patience is how long open requests may take after SIGTERM.
	patience = 3 * time.Second
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	cores, err := positive("PERCORE_CORES")
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(cores)
	workers, err := positive("PERCORE_POOL")
	if err != nil {
		return err
	}
	// One thread more than workers: FrankenPHP refuses to start without a thread
	// that no worker holds.
	err = frankenphp.Init(
		frankenphp.WithNumThreads(workers+1),
		frankenphp.WithMaxThreads(workers+1),
		frankenphp.WithWorkers(worker, script, workers),
		// PHP's own messages are of level info; there is none per request.
		frankenphp.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
	)
	if err != nil {
		return fmt.Errorf("start FrankenPHP with %d workers: %w", workers, err)
	}
	defer frankenphp.Shutdown()

	server := &http.Server{
		Addr:                         ":8080",
		Handler:                      http.HandlerFunc(serve),
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", server.Addr, err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}

func serve(w http.ResponseWriter, r *http.Request) {
	// FrankenPHP refuses an escaped NUL in words of its own; the contract has
	// other words for what is not HTTP.
	if strings.IndexByte(r.URL.Path, 0) >= 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("400 Bad Request"))
		return
	}
	// PHP reads what a script has left of a body, and a worker must not wait for
	// gigabytes that were announced: the script sees the length, or one byte too many.
	if r.ContentLength > maxBody {
		r.Body = http.NoBody
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody+1)
	}
	request, err := frankenphp.NewRequestWithContext(r,
		frankenphp.WithRequestResolvedDocumentRoot(root),
		frankenphp.WithWorkerName(worker),
	)
	if err == nil {
		err = frankenphp.ServeHTTP(w, request)
	}
	if err != nil {
		slog.Error("could not run a request", "error", err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		// A client that went away is its own affair.
		_, _ = w.Write([]byte(`{"error":"server_error"}`))
	}
}

func positive(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s is %q: set it to a whole number above 0", name, os.Getenv(name))
	}
	return n, nil
}
