package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percore/percore/internal/base/fail"
)

// Seed describes the rows of the template. The same seed gives the same rows,
// byte for byte, on every machine.
type Seed struct {
	Rows    int
	Subject string // of every row
}

// batch is the number of rows that one statement inserts.
const batch = 100_000

const createTable = `
CREATE TABLE events (
	id bigint GENERATED ALWAYS AS IDENTITY,
	subject text NOT NULL,
	kind text NOT NULL,
	payload jsonb NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
)`

// insertRows adds the rows numbered $1 to $2 for the subject $3.
const insertRows = `
INSERT INTO events (id, subject, kind, payload, created_at)
OVERRIDING SYSTEM VALUE
SELECT n,
	$3::text,
	(ARRAY['login', 'token.issued', 'token.refreshed', 'token.revoked', 'logout'])[1 + n % 5],
	jsonb_build_object(
		'client', 'client-' || lpad((n % 997)::text, 3, '0'),
		'address', format('10.%s.%s.%s', n % 251, n % 241, n % 239),
		'attempt', 1 + n % 3,
		'success', n % 17 <> 0),
	timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'
FROM generate_series($1::bigint, $2::bigint) AS n`

// finish is run when all rows are in: the key is built in one go.
var finish = []string{
	`ALTER TABLE events ADD PRIMARY KEY (id)`,
	`GRANT SELECT, INSERT ON events TO ` + User,
	`CREATE EXTENSION IF NOT EXISTS pg_prewarm`,
}

// ID identifies everything that decides what the template holds: rows, subject
// and the statements that make them. It is 12 hexadecimal digits.
func (s Seed) ID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s\x00%s", s.Rows, s.Subject, createTable, insertRows, strings.Join(finish, "\x00"))
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// marker is the comment that a complete template carries. It is written last,
// so a template without it, or with another, is made anew.
func (s Seed) marker() string {
	return fmt.Sprintf("percore seed %s: %d rows", s.ID(), s.Rows)
}

// Seeded says what seeding did.
type Seeded struct {
	Reused bool          // the template was there
	Took   time.Duration // how long seeding took
	Bytes  int64         // size of the template on disk
}

// Seed makes sure that the template holds the seed's rows, and makes it when it
// does not: absent, of another seed, or left behind by an interrupted seeding.
// progress, which may be nil, is told how many rows are in.
func (s *Server) Seed(ctx context.Context, seed Seed, progress func(rows int)) (Seeded, error) {
	start := time.Now()
	if seed.Rows < 1 {
		return Seeded{}, fmt.Errorf("seeding the database: %d rows asked for, at least 1 is needed", seed.Rows)
	}
	out := Seeded{}
	err := s.do(ctx, func(c conn) error {
		var found *string
		err := c.QueryRow(ctx, "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1", Template).Scan(&found)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err == nil && found != nil && *found == seed.marker() {
			out.Reused = true
			return c.QueryRow(ctx, "SELECT pg_database_size($1::name)", Template).Scan(&out.Bytes)
		}
		for _, q := range []string{
			"DROP DATABASE IF EXISTS " + Database + " WITH (FORCE)",
			"DROP DATABASE IF EXISTS " + Template + " WITH (FORCE)",
			"CREATE DATABASE " + Template + " TEMPLATE template0 STRATEGY FILE_COPY",
		} {
			if _, err := c.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("preparing the template database: %w", err)
	}
	if out.Reused {
		out.Took = time.Since(start)
		return out, nil
	}
	if err := s.in(ctx, Template, func(c conn) error { return fill(ctx, c, seed, progress) }); err != nil {
		return out, fmt.Errorf("seeding the template database with %d rows: %w", seed.Rows, err)
	}
	err = s.do(ctx, func(c conn) error {
		for _, q := range []string{
			"CHECKPOINT",
			"ALTER DATABASE " + Template + " ALLOW_CONNECTIONS false",
			"COMMENT ON DATABASE " + Template + " IS '" + seed.marker() + "'",
		} {
			if _, err := c.Exec(ctx, q); err != nil {
				return err
			}
		}
		return c.QueryRow(ctx, "SELECT pg_database_size($1::name)", Template).Scan(&out.Bytes)
	})
	if err != nil {
		return out, fmt.Errorf("completing the template database: %w", err)
	}
	out.Took = time.Since(start)
	return out, nil
}

// fill makes the table in an empty database.
func fill(ctx context.Context, c conn, seed Seed, progress func(int)) error {
	for _, q := range []string{
		"SET synchronous_commit = off", // the marker follows a CHECKPOINT
		"SET timezone = 'UTC'",
		createTable,
	} {
		if _, err := c.Exec(ctx, q); err != nil {
			return err
		}
	}
	for first := 1; first <= seed.Rows; first += batch {
		last := min(first+batch-1, seed.Rows)
		if _, err := c.Exec(ctx, insertRows, first, last, seed.Subject); err != nil {
			return err
		}
		if progress != nil {
			progress(last)
		}
	}
	for _, q := range finish {
		if _, err := c.Exec(ctx, q); err != nil {
			return err
		}
	}
	if _, err := c.Exec(ctx, "SELECT setval(pg_get_serial_sequence('events', 'id'), $1)", seed.Rows); err != nil {
		return err
	}
	_, err := c.Exec(ctx, "VACUUM (FREEZE, ANALYZE) events")
	return err
}

// CheckDatabase names the database on which a candidate's contract is checked.
func CheckDatabase(candidate string) string {
	return "check_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, candidate)
}

// Make replaces a database by one that holds the seed's rows. It is for small
// ones: nothing of it is kept between runs.
func (s *Server) Make(ctx context.Context, database string, seed Seed) error {
	if err := s.Drop(ctx, database); err != nil {
		return err
	}
	err := s.do(ctx, func(c conn) error {
		_, err := c.Exec(ctx, "CREATE DATABASE "+database+" TEMPLATE template0")
		return err
	})
	if err == nil {
		err = s.in(ctx, database, func(c conn) error { return fill(ctx, c, seed, nil) })
	}
	if err != nil {
		return fmt.Errorf("making database %s with %d rows: %w", database, seed.Rows, err)
	}
	return nil
}

// Drop removes a database, cutting the connections to it; one that does not
// exist is no error.
func (s *Server) Drop(ctx context.Context, database string) error {
	err := s.do(ctx, func(c conn) error {
		_, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)")
		return err
	})
	if err != nil {
		return fmt.Errorf("removing database %s: %w", database, err)
	}
	return nil
}

// CopyFresh replaces the candidates' database by a copy of the template, reads
// its table and index into shared memory, and ends with a CHECKPOINT.
// Connections to the old copy are cut.
func (s *Server) CopyFresh(ctx context.Context, seed Seed) error {
	s.table.Close(ctx)
	err := s.do(ctx, func(c conn) error {
		for _, q := range []string{
			"DROP DATABASE IF EXISTS " + Database + " WITH (FORCE)",
			"CREATE DATABASE " + Database + " TEMPLATE " + Template + " STRATEGY FILE_COPY",
			"ALTER DATABASE " + Database + " ALLOW_CONNECTIONS true",
		} {
			if _, err := c.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("copying the template database: %w", err)
	}
	err = s.in(ctx, Database, func(c conn) error {
		var last, next int64
		if err := c.QueryRow(ctx, "SELECT max(id), (SELECT last_value FROM events_id_seq) FROM events").Scan(&last, &next); err != nil {
			return err
		}
		if last != int64(seed.Rows) || next != last {
			return fail.Work("the copy's last row is %d and its sequence stands at %d instead of %d: the template is damaged", last, next, seed.Rows).Try("remove the database volume with %s", fail.Call("clean"))
		}
		var blocks int64
		if err := c.QueryRow(ctx, "SELECT pg_prewarm('events') + pg_prewarm('events_pkey')").Scan(&blocks); err != nil {
			return err
		}
		if blocks == 0 {
			return errors.New("pg_prewarm read no block")
		}
		_, err := c.Exec(ctx, "CHECKPOINT")
		return err
	})
	if err == nil {
		err = s.table.do(ctx, func(conn) error { return nil }) // opened here and not beside the first window
	}
	if err != nil {
		return fmt.Errorf("warming the copied database: %w", err)
	}
	return nil
}
