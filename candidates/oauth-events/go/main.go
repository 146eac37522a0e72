// The Go candidate of the suite: net/http, a pgx pool and golang-jwt. All of its
// configuration comes from the environment; see candidates/oauth-events/CONTRACT.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percore/percore/candidates/oauth-events/go/internal/api"
	"github.com/percore/percore/candidates/oauth-events/go/internal/token"
)

const (
	// maxHeader is the contract's bound on a request line and headers together,
	// 48 KiB. The server adds 4 KiB to what it is told.
	maxHeader = 48<<10 - 4096
	// patience is how long open requests may take after SIGTERM.
	patience = 4 * time.Second
	// connectTimeout bounds one attempt to connect to the database.
	connectTimeout = 3 * time.Second
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
	verifier, err := token.NewVerifier([]byte(os.Getenv("PERCORE_PUBLIC_KEY")), os.Getenv("PERCORE_ISSUER"), os.Getenv("PERCORE_AUDIENCE"))
	if err != nil {
		return fmt.Errorf("PERCORE_PUBLIC_KEY: %w", err)
	}
	pool, err := openPool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()

	server := &http.Server{
		Addr:                         ":8080",
		Handler:                      &api.API{Database: pool, Verifier: verifier},
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

// openPool makes a pool that holds PERCORE_POOL connections, no fewer and no
// more, for as long as the process lives. It does not wait for the database.
func openPool(ctx context.Context) (*pgxpool.Pool, error) {
	size, err := positive("PERCORE_POOL")
	if err != nil {
		return nil, err
	}
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(os.Getenv("PERCORE_DATABASE_USER"), os.Getenv("PERCORE_DATABASE_PASSWORD")),
		Host:     os.Getenv("PERCORE_DATABASE_HOST") + ":" + os.Getenv("PERCORE_DATABASE_PORT"),
		Path:     "/" + os.Getenv("PERCORE_DATABASE_NAME"),
		RawQuery: "sslmode=disable",
	}
	config, err := pgxpool.ParseConfig(address.String())
	if err != nil {
		return nil, fmt.Errorf("PERCORE_DATABASE_HOST, _PORT, _NAME and _USER do not make an address: %w", err)
	}
	config.MaxConns = int32(min(size, math.MaxInt32))
	config.MinConns = config.MaxConns
	config.MaxConnLifetime = 1000 * time.Hour
	config.MaxConnIdleTime = 1000 * time.Hour
	config.ConnConfig.ConnectTimeout = connectTimeout
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the connection pool: %w", err)
	}
	return pool, nil
}

func positive(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s is %q: set it to a whole number above 0", name, os.Getenv(name))
	}
	return n, nil
}
