package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Snapshot reads the server's cumulative statistics. The keys are the name of
// the view without pg_stat_, a dot, and the column: "database.xact_commit" (of
// the candidates' database), "wal.wal_bytes", "io.writes" (all backend types)
// and "io.client_backend.writes" (the types that matter), "checkpointer.num_timed"
// or its nearest in older versions; and "wal.inserted_bytes", which is exact.
// Times are milliseconds, sizes bytes, the rest are counts. A counter that the
// server does not have is absent.
//
// The server's own views lag: a busy backend reports about once a second, and
// one that falls idle within ten. The lag is the same at both ends of a window
// of steady load.
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
