package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Counters of a snapshot that do not lag.
const (
	// InsertedRows is where the sequence of the table's ids stands. It grows by
	// one for each INSERT, also for one that was then rolled back.
	InsertedRows = "events.inserted_rows"
	// InsertedBytes is where the write-ahead log of the server stands, whoever
	// wrote to it.
	InsertedBytes = "wal.inserted_bytes"
)

// Snapshot reads the server's cumulative statistics and where its counters
// stand; the candidates' database must be there. The keys are the name of
// the view without pg_stat_, a dot, and the column: "database.xact_commit" (of
// the candidates' database), "wal.wal_bytes", "io.writes" (all backend types)
// and "io.client_backend.writes" (the types that matter), "checkpointer.num_timed"
// or its nearest in older versions. Times are milliseconds, sizes bytes, the
// rest are counts. A counter that the server does not have is absent.
//
// Two counters are not statistics and are exact at the moment of the reading:
// [InsertedRows] and [InsertedBytes]. All others lag. A backend adds what it
// counted to the views at most once a second while it is busy, and ten seconds
// after it fell idle (PGSTAT_MIN_INTERVAL and PGSTAT_IDLE_INTERVAL in pgstat.c
// of PostgreSQL 17), or when it ends. What they grew by over a window therefore
// holds up to a second of the work before it, such as a warm-up's that ended
// seconds ago, and lacks up to a second at its end. In a window of a minute at a
// steady pace that is little; in one of a few seconds it may be most of what
// they say.
func (s *Server) Snapshot(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	err := s.do(ctx, func(c conn) error {
		rows, err := c.Query(ctx, snapshotSQL, Database)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var prefix, row string
			if err := rows.Scan(&prefix, &row); err != nil {
				return err
			}
			if err := addCounters(out, prefix, row); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err == nil {
		err = s.table.do(ctx, func(c conn) error {
			var last int64
			if err := c.QueryRow(ctx, "SELECT last_value FROM events_id_seq").Scan(&last); err != nil {
				return err
			}
			out[InsertedRows] = float64(last)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading PostgreSQL's statistics: %w", err)
	}
	return out, nil
}

// snapshotSQL returns whole rows as JSON, so that a column that a version adds,
// renames or drops breaks nothing.
const snapshotSQL = `
SELECT 'database' AS prefix, to_jsonb(d)::text FROM pg_stat_database d WHERE datname = $1
UNION ALL SELECT 'wal', to_jsonb(w)::text FROM pg_stat_wal w
UNION ALL SELECT 'bgwriter', to_jsonb(b)::text FROM pg_stat_bgwriter b
UNION ALL SELECT 'checkpointer', to_jsonb(k)::text FROM pg_stat_checkpointer k
UNION ALL SELECT 'io.' || replace(backend_type, ' ', '_'), to_jsonb(i)::text FROM pg_stat_io i
UNION ALL SELECT 'wal', jsonb_build_object('inserted_bytes', pg_current_wal_insert_lsn() - pg_lsn '0/0')::text`

// notCounters are numeric columns whose change over a window means nothing.
var notCounters = map[string]bool{"datid": true, "numbackends": true, "op_bytes": true}

// ioTypes are the backend types of pg_stat_io that get keys of their own.
var ioTypes = map[string]bool{
	"io.client_backend": true, "io.checkpointer": true, "io.background_writer": true, "io.autovacuum_worker": true,
}

// addCounters adds the numeric columns of one row. Rows of the same prefix add
// up.
func addCounters(out map[string]float64, prefix, row string) error {
	var columns map[string]any
	if err := json.Unmarshal([]byte(row), &columns); err != nil {
		return fmt.Errorf("a row of %s: %w", prefix, err)
	}
	for name, v := range columns {
		n, ok := v.(float64)
		if !ok || notCounters[name] {
			continue
		}
		if !strings.HasPrefix(prefix, "io.") {
			out[prefix+"."+name] += n
			continue
		}
		out["io."+name] += n
		if ioTypes[prefix] {
			out[prefix+"."+name] += n
		}
	}
	return nil
}

// Delta is the change of every counter that both snapshots have.
func Delta(before, after map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(after))
	for k, v := range after {
		if b, ok := before[k]; ok {
			out[k] = v - b
		}
	}
	return out
}
