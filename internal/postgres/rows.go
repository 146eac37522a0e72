package postgres

import (
	"context"
	"fmt"
	"time"
)

// Row is one row of the table.
type Row struct {
	ID      int64
	Subject string
	Kind    string
	Payload []byte // JSON
	Created time.Time
}

// Rows watches the rows that are added to the candidates' database. It is not
// safe for concurrent use.
type Rows struct {
	s *Server
}

// Rows gives access to the rows of the candidates' database.
func (s *Server) Rows() *Rows { return &Rows{s} }

// LastID is the largest id in the table, 0 when it is empty.
func (r *Rows) LastID(ctx context.Context) (int64, error) {
	var id int64
	err := r.s.in(ctx, Database, func(c conn) error {
		return c.QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM events").Scan(&id)
	})
	if err != nil {
		return 0, fmt.Errorf("reading the last row's id: %w", err)
	}
	return id, nil
}

// After returns the rows with an id above the given one, in the order of their
// ids, at most 10,000.
func (r *Rows) After(ctx context.Context, id int64) ([]Row, error) {
	var out []Row
	err := r.s.in(ctx, Database, func(c conn) error {
		rows, err := c.Query(ctx, "SELECT id, subject, kind, payload::text, created_at FROM events WHERE id > $1 ORDER BY id LIMIT 10000", id)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var row Row
			var payload string
			if err := rows.Scan(&row.ID, &row.Subject, &row.Kind, &payload, &row.Created); err != nil {
				return err
			}
			row.Payload = []byte(payload)
			out = append(out, row)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the rows after id %d: %w", id, err)
	}
	return out, nil
}

// DeleteAfter deletes the rows with an id above the given one and sets the
// sequence back to it.
func (r *Rows) DeleteAfter(ctx context.Context, id int64) error {
	err := r.s.in(ctx, Database, func(c conn) error {
		if _, err := c.Exec(ctx, "DELETE FROM events WHERE id > $1", id); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "SELECT setval(pg_get_serial_sequence('events', 'id'), greatest($1::bigint, 1), $1::bigint > 0)", id)
		return err
	})
	if err != nil {
		return fmt.Errorf("deleting the rows after id %d: %w", id, err)
	}
	return nil
}
