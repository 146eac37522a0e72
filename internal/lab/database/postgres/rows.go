package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row is one row of the table.
type Row struct {
	ID      int64
	Subject string
	Kind    string
	Payload []byte // JSON
	Created time.Time
}

// ErrNoRow says that there is no row with the id.
var ErrNoRow = errors.New("no such row")

// Rows is the table of the candidates' database, on a connection of its own
// that is opened when it is first needed.
type Rows struct {
	line line
}

// Rows gives access to the rows of the candidates' database. Close it before
// the database is replaced.
func (s *Server) Rows() *Rows { return s.RowsOf(Database) }

// RowsOf gives access to the rows of another database with the same table.
func (s *Server) RowsOf(database string) *Rows {
	return &Rows{line{open: func(ctx context.Context) (*pgx.Conn, error) { return s.connect(ctx, database) }}}
}

// Close closes the connection; the next call opens it again.
func (r *Rows) Close(ctx context.Context) { r.line.Close(ctx) }

// Count returns the number of rows.
func (r *Rows) Count(ctx context.Context) (n int64, err error) {
	err = r.line.do(ctx, func(c conn) error {
		return c.QueryRow(ctx, "SELECT count(*) FROM events").Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("counting the rows of table events: %w", err)
	}
	return n, nil
}

// Last returns the largest id in the table, 0 when it is empty.
func (r *Rows) Last(ctx context.Context) (id int64, err error) {
	err = r.line.do(ctx, func(c conn) error {
		return c.QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM events").Scan(&id)
	})
	if err != nil {
		return 0, fmt.Errorf("reading the last id of table events: %w", err)
	}
	return id, nil
}

const columns = "id, subject, kind, payload::text, created_at"

func scan(row pgx.CollectableRow) (Row, error) {
	var r Row
	var payload string
	err := row.Scan(&r.ID, &r.Subject, &r.Kind, &payload, &r.Created)
	r.Payload = []byte(payload)
	return r, err
}

// After returns the rows with an id above the given one, in the order of their
// ids, at most a hundred.
func (r *Rows) After(ctx context.Context, id int64) (out []Row, err error) {
	err = r.line.do(ctx, func(c conn) error {
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM events WHERE id > $1 ORDER BY id LIMIT 100", id)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the rows of table events after id %d: %w", id, err)
	}
	return out, nil
}

// Row returns the row with the id, or ErrNoRow.
func (r *Rows) Row(ctx context.Context, id int64) (out Row, err error) {
	err = r.line.do(ctx, func(c conn) error {
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM events WHERE id = $1", id)
		if err != nil {
			return err
		}
		out, err = pgx.CollectExactlyOneRow(rows, scan)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Row{}, ErrNoRow
	}
	if err != nil {
		return Row{}, fmt.Errorf("reading row %d of table events: %w", id, err)
	}
	return out, nil
}
