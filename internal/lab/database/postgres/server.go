// Package postgres prepares and watches the database of a run: it seeds a
// template once, gives each block a fresh copy of it, and reads the server's
// statistics. It reaches the server through a dial function alone, so the
// server may be anywhere a connection can be made to.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Names that candidates and seeding share.
const (
	Superuser = "postgres" // the driver's role, trusted on the server's local socket
	User      = "percore"  // the candidates' role
	Database  = "percore"  // the copy that candidates use
	Template  = "percore_template"
	Table     = "events"
	Major     = 17 // the version that the protocol measures
)

// Dial connects to the server.
type Dial func(ctx context.Context) (net.Conn, error)

// Server is a PostgreSQL server. It is safe for concurrent use; statements on
// a connection that is kept run one after another.
type Server struct {
	dial  Dial
	main  line // to the maintenance database
	table line // to the candidates' database, kept so that a snapshot opens no connection beside a window
}

// line is a connection to one database that is opened when it is needed and
// kept. Statements on it run one after another.
type line struct {
	open func(ctx context.Context) (*pgx.Conn, error)
	mu   sync.Mutex
	kept *pgx.Conn
}

// conn is what the functions of this package need of a connection.
type conn interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// New makes a server of a dial function. Nothing is connected yet.
func New(dial Dial) *Server {
	s := &Server{dial: dial}
	s.main.open = func(ctx context.Context) (*pgx.Conn, error) { return s.connect(ctx, "postgres") }
	s.table.open = func(ctx context.Context) (*pgx.Conn, error) { return s.connect(ctx, Database) }
	return s
}

// connect opens a connection to a database as the superuser.
func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=localhost port=5432 sslmode=disable user=%s dbname=%s application_name=percore", Superuser, database))
	if err != nil {
		return nil, err
	}
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) }
	config.ConnectTimeout = 15 * time.Second
	return pgx.ConnectConfig(ctx, config)
}

// do runs f on the maintenance connection.
func (s *Server) do(ctx context.Context, f func(conn) error) error { return s.main.do(ctx, f) }

// do runs f on the connection, which is opened when there is none. One that
// broke while it was idle is opened anew once.
func (l *line) do(ctx context.Context, f func(conn) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil {
		if err := l.kept.Ping(ctx); err != nil {
			l.drop(ctx)
		}
	}
	if l.kept == nil {
		c, err := l.open(ctx)
		if err != nil {
			return err
		}
		l.kept = c
	}
	err := f(l.kept)
	if l.kept.IsClosed() {
		l.kept = nil
	}
	return err
}

// Close closes the connection; the next do opens it again.
func (l *line) Close(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(ctx)
}

func (l *line) drop(ctx context.Context) {
	if l.kept != nil {
		closeConn(ctx, l.kept)
		l.kept = nil
	}
}

// in runs f on a connection of its own to a database.
func (s *Server) in(ctx context.Context, database string, f func(conn) error) error {
	c, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	defer closeConn(ctx, c)
	return f(c)
}

func closeConn(ctx context.Context, c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// Close closes the connections that are kept.
func (s *Server) Close(ctx context.Context) {
	s.table.Close(ctx)
	s.main.Close(ctx)
}

// WaitReady waits until the server answers a query. It gives up when the
// context ends or when alive, which may be nil, returns an error.
func (s *Server) WaitReady(ctx context.Context, alive func(context.Context) error) error {
	var last error
	for {
		err := s.do(ctx, func(c conn) error {
			var one int
			return c.QueryRow(ctx, "SELECT 1").Scan(&one)
		})
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if alive != nil {
			if err := alive(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", errors.Join(last, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Version is the server's version: "17.11".
func (s *Server) Version(ctx context.Context) (string, error) {
	var v string
	err := s.do(ctx, func(c conn) error {
		return c.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&v)
	})
	if err != nil {
		return "", fmt.Errorf("asking PostgreSQL for its version: %w", err)
	}
	return v, nil
}

// SetUser creates the candidates' role, or gives it a new password.
func (s *Server) SetUser(ctx context.Context, password string) error {
	err := s.do(ctx, func(c conn) error {
		var exists bool
		if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", User).Scan(&exists); err != nil {
			return err
		}
		verb := "CREATE"
		if exists {
			verb = "ALTER"
		}
		var statement string
		err := c.QueryRow(ctx, "SELECT format('%s ROLE %I LOGIN PASSWORD %L', $1::text, $2::text, $3::text)", verb, User, password).Scan(&statement)
		if err != nil {
			return err
		}
		if _, err := c.Exec(ctx, statement); err != nil {
			// The server's message is kept, the statement with the password is not.
			var pg *pgconn.PgError
			if errors.As(err, &pg) {
				return errors.New(pg.Message)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("setting up the database role %s: %w", User, err)
	}
	return nil
}
