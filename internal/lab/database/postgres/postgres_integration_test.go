//go:build integration

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/testkit/enginetest"
	"github.com/percore/percore/internal/testkit/said"
)

// rows is how many rows the tests seed: PERCORE_TEST_ROWS, or few.
func rows(t *testing.T) int {
	if text := os.Getenv("PERCORE_TEST_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 3000
}

// start runs a PostgreSQL container and returns a server on it.
func start(t *testing.T, settings []Setting) (*Server, *engine.Container) {
	t.Helper()
	e := enginetest.Connect(t)
	image := enginetest.Images(t, e, "postgres")["postgres"]
	c, err := e.Run(t.Context(), engine.Spec{
		Name: fmt.Sprintf("percore-test-pg-%d", time.Now().UnixNano()), Image: image,
		Env: map[string]string{"PERCORE_DB_PASSWORD": "secret"}, Cmd: Args(settings), Memory: 1 << 30, Shm: 64 << 20,
		Labels: map[string]string{engine.Label: "1", engine.LabelKind: engine.KindContainer, "io.percore.shared": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := New(func(ctx context.Context) (net.Conn, error) {
		return c.DialUnix(ctx, "/var/run/postgresql/.s.PGSQL.5432")
	})
	t.Cleanup(func() { s.Close(context.Background()) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.WaitReady(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// checksum is over everything that the rows of a database hold.
func checksum(t *testing.T, s *Server) (sum string) {
	t.Helper()
	err := s.in(t.Context(), Database, func(c conn) error {
		return c.QueryRow(t.Context(), `SELECT md5(string_agg(md5(id || subject || kind || payload::text || extract(epoch FROM created_at)), '' ORDER BY id)) FROM events`).Scan(&sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestSeedAndCopy(t *testing.T) {
	settings, _ := Settings(1 << 30)
	s, c := start(t, settings)
	ctx := t.Context()
	if v, err := s.Version(ctx); err != nil || !strings.HasPrefix(v, fmt.Sprint(Major)+".") {
		t.Fatalf("version %q, %v", v, err)
	}
	if err := s.CheckSettings(ctx, settings); err != nil {
		t.Error(err)
	}
	if err := s.CheckSettings(ctx, []Setting{{"work_mem", "17MB"}}); err == nil || !strings.Contains(said.Err(err), "work_mem is 16MB instead of 17MB") {
		t.Errorf("a wrong setting: %v", err)
	}
	for _, password := range []string{"first", `it's "odd" \ $1`} {
		if err := s.SetUser(ctx, password); err != nil {
			t.Fatal(err)
		}
	}

	seed := Seed{Rows: rows(t), Subject: "subject-1"}
	var told int
	got, err := s.Seed(ctx, seed, func(n int) { told = n })
	if err != nil || got.Reused || told != seed.Rows {
		t.Fatalf("%+v, told %d, %v", got, told, err)
	}
	t.Logf("seeded %d rows, %d MiB, in %s", seed.Rows, got.Bytes>>20, got.Took)
	again, err := s.Seed(ctx, seed, nil)
	if err != nil || !again.Reused || again.Bytes == 0 {
		t.Fatalf("second call: %+v, %v", again, err)
	}

	start := time.Now()
	if err := s.CopyFresh(ctx, seed); err != nil {
		t.Fatal(err)
	}
	t.Logf("fresh copy in %s", time.Since(start))
	sum := checksum(t, s)

	// What candidates do: insert, with ids that follow the seeded rows.
	r := s.Rows()
	defer r.Close(ctx)
	before, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := r.Last(ctx); err != nil || last != int64(seed.Rows) {
		t.Fatalf("last id %d, %v", last, err)
	}
	err = s.in(ctx, Database, func(c conn) error {
		if _, err := c.Exec(ctx, "SET ROLE "+User); err != nil {
			return err
		}
		var id int64
		for i := range 3 {
			err := c.QueryRow(ctx, `INSERT INTO events (subject, kind, payload) VALUES ('x', 'k', '{"back\\slash": "é"}') RETURNING id`).Scan(&id)
			if err != nil {
				return err
			}
			if want := int64(seed.Rows + 1 + i); id != want {
				t.Errorf("id %d, want %d", id, want)
			}
		}
		if _, err := c.Exec(ctx, "DELETE FROM events"); err == nil {
			t.Error("the candidates' role may delete rows")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	delta := Delta(before, after)
	for _, key := range []string{"database.xact_commit", "wal.wal_bytes", "wal.inserted_bytes", "checkpointer.num_timed", "io.client_backend.reads", "io.writes"} {
		if _, ok := delta[key]; !ok {
			t.Errorf("no counter %s among %d", key, len(delta))
		}
	}
	if delta[InsertedBytes] <= 0 || delta[InsertedRows] != 3 {
		t.Errorf("three inserts wrote %v rows and %v bytes of WAL", delta[InsertedRows], delta[InsertedBytes])
	}

	if n, err := r.Count(ctx); err != nil || n != int64(seed.Rows+3) {
		t.Errorf("%d rows, %v", n, err)
	}
	added, err := r.After(ctx, int64(seed.Rows))
	if err != nil || len(added) != 3 || added[0].Kind != "k" || string(added[2].Payload) != `{"back\\slash": "é"}` || time.Since(added[0].Created) > time.Minute {
		t.Errorf("added rows %+v, %v", added, err)
	}
	if row, err := r.Row(ctx, 1); err != nil || row.Subject != seed.Subject {
		t.Errorf("row 1: %+v, %v", row, err)
	}
	if _, err := r.Row(ctx, int64(seed.Rows+99)); !errors.Is(err, ErrNoRow) {
		t.Errorf("a row that is not there: %v", err)
	}
	// A fresh copy cuts old connections and has the same rows; so has a template
	// that was seeded anew.
	if err := s.CopyFresh(ctx, seed); err != nil {
		t.Fatal(err)
	}
	if got := checksum(t, s); got != sum {
		t.Error("a second copy differs")
	}
	if err := s.do(ctx, func(c conn) error {
		_, err := c.Exec(ctx, "COMMENT ON DATABASE "+Template+" IS NULL") // as an interrupted seeding leaves it
		return err
	}); err != nil {
		t.Fatal(err)
	}
	redone, err := s.Seed(ctx, seed, nil)
	if err != nil || redone.Reused {
		t.Fatalf("a template without its mark was reused: %+v, %v", redone, err)
	}
	if err := s.CopyFresh(ctx, seed); err != nil {
		t.Fatal(err)
	}
	if got := checksum(t, s); got != sum {
		t.Error("seeding twice gives different rows")
	}
	other, err := s.Seed(ctx, Seed{Rows: seed.Rows + 1, Subject: seed.Subject}, nil)
	if err != nil || other.Reused {
		t.Errorf("another number of rows reused the template: %+v, %v", other, err)
	}
	if err := s.CopyFresh(ctx, seed); err == nil || !strings.Contains(said.Err(err), "the template is damaged") {
		t.Errorf("a template of another seed was copied: %v", err)
	}

	// A connection that broke while idle is opened anew.
	if _, err := c.Exec(ctx, nil, "pkill", "-f", "percore postgres .local. idle"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Version(ctx); err != nil {
		t.Errorf("after the connection was cut: %v", err)
	}
}

func TestInterruptedSeeding(t *testing.T) {
	settings, _ := Settings(1 << 30)
	s, _ := start(t, settings)
	if err := s.SetUser(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	seed := Seed{Rows: 3 * batch, Subject: "s"}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Seed(ctx, seed, func(n int) {
		if n == batch {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("seeding was not interrupted")
	}
	seed.Rows = 100
	got, err := s.Seed(t.Context(), seed, nil)
	if err != nil || got.Reused {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.CopyFresh(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
}

func TestManyConnections(t *testing.T) {
	settings, _ := Settings(1 << 30)
	s, _ := start(t, settings)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := s.in(t.Context(), "postgres", func(c conn) error {
				for n := range 20 {
					var got string
					want := strings.Repeat(fmt.Sprint(i, n, ","), 3000)
					if err := c.QueryRow(t.Context(), "SELECT $1::text", want).Scan(&got); err != nil {
						return err
					}
					if got != want {
						return fmt.Errorf("query %d: %d bytes came back of %d", n, len(got), len(want))
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	wg.Wait()

	// A query that outlives its context ends with it.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := s.do(ctx, func(c conn) error { _, err := c.Exec(ctx, "SELECT pg_sleep(30)"); return err })
	if err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}
