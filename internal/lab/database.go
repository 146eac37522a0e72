package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/lab/contract"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/lab/engine"
	"github.com/percore/percore/internal/plan"
)

const (
	whatDatabase = "db"
	dataPath     = "/var/lib/postgresql/data"
	socketPath   = "/var/run/postgresql/.s.PGSQL." + databasePort
)

// databaseTimeout is how long PostgreSQL may take to answer: it may have to
// make a cluster first, or to recover from a kill.
const databaseTimeout = 3 * time.Minute

// volumeName names the volume that keeps the seeded template between runs.
func (l *Lab) volumeName() string {
	flavour := l.cfg.Flavour
	if flavour == "" {
		flavour = "any"
	}
	return fmt.Sprintf("percore-db-%s-%d-%s", flavour, postgres.Major, l.seed.ID())
}

// startDatabase starts PostgreSQL on its volume, checks its settings and seeds
// the template.
func (l *Lab) startDatabase(ctx context.Context) error {
	h := l.host(plan.DB)
	volume := l.volumeName()
	if err := l.checkVolume(ctx, h, volume); err != nil {
		return err
	}
	labels := map[string]string{engine.Label: "1", engine.LabelKind: engine.KindVolume, "io.percore.seed": l.seed.ID()}
	maps.Copy(labels, l.cfg.scope)
	if err := h.Engine.CreateVolume(ctx, volume, labels); err != nil {
		return err
	}
	memory := int64(l.cfg.Profile.Roles[plan.DB].Memory)
	settings, caveat := postgres.Settings(memory)
	if caveat != "" {
		l.caveats = append(l.caveats, caveat)
	}
	s := l.spec(plan.DB, whatDatabase, l.cfg.Images[ImageDatabase])
	s.Memory = memory
	s.Shm = 256 << 20
	s.Aliases = []string{string(plan.DB)}
	s.Env = map[string]string{"PERCORE_DB_PASSWORD": nonce(16)}
	s.Cmd = postgres.Args(settings)
	s.Volumes = map[string]string{volume: dataPath}
	l.cfg.Say("starting the database")
	var err error
	if l.db, err = l.run(ctx, h, s); err != nil {
		return err
	}
	l.sql = postgres.New(func(ctx context.Context) (net.Conn, error) { return l.db.DialUnix(ctx, socketPath) })
	ready, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	if err := l.sql.WaitReady(ready, l.databaseAlive); err != nil {
		return l.databaseError(ctx, err)
	}
	if l.dbPID, err = l.db.PID(ctx); err != nil {
		return l.databaseError(ctx, err)
	}
	if err := l.checkVersion(ctx); err != nil {
		return err
	}
	if err := l.sql.CheckSettings(ctx, settings); err != nil {
		return l.databaseError(ctx, err)
	}
	if err := l.sql.SetUser(ctx, l.password); err != nil {
		return l.databaseError(ctx, err)
	}
	last := time.Now()
	l.seeded, err = l.sql.Seed(ctx, l.seed, func(rows int) {
		if time.Since(last) > 2*time.Second || rows == l.seed.Rows {
			last = time.Now()
			l.cfg.Say("seeding the database: %d of %d rows", rows, l.seed.Rows)
		}
	})
	if err != nil {
		return l.databaseError(ctx, err)
	}
	if l.seeded.Reused {
		l.cfg.Say("the database has its %d rows from an earlier run", l.seed.Rows)
	} else {
		l.cfg.Say("seeded %d rows (%d MiB) in %.1f s", l.seed.Rows, l.seeded.Bytes>>20, l.seeded.Took.Seconds())
	}
	return nil
}

// checkVolume refuses to run a second database on the same files.
func (l *Lab) checkVolume(ctx context.Context, h *Host, volume string) error {
	containers, err := h.Engine.Containers(ctx, map[string]string{engine.Label: "1"})
	if err != nil {
		return err
	}
	for _, c := range containers {
		for _, v := range c.Volumes {
			if v == volume && c.Running {
				return fail.Work("run %s is using the database volume %s on %s (container %s)", c.Run(), volume, h.Engine.Host(), c.Name).Try("wait for it to end, or remove it with %s", fail.Call("clean"))
			}
		}
	}
	return nil
}

func (l *Lab) checkVersion(ctx context.Context) error {
	v, err := l.sql.Version(ctx)
	if err != nil {
		return l.databaseError(ctx, err)
	}
	if major, _, _ := strings.Cut(v, "."); major != fmt.Sprint(postgres.Major) {
		return fmt.Errorf("the image %s runs PostgreSQL %s, and the protocol measures version %d", l.cfg.Images[ImageDatabase], v, postgres.Major)
	}
	return nil
}

// databaseAlive fails when the database's container has ended.
func (l *Lab) databaseAlive(ctx context.Context) error {
	s, err := l.db.Inspect(ctx)
	if err != nil {
		return err
	}
	if !s.Running {
		return errors.New("its container has ended")
	}
	return nil
}

// databaseError adds to an error of the database which container it is, and,
// when that has ended, how and with which last words.
func (l *Lab) databaseError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	s, inspectErr := l.db.Inspect(ctx)
	switch {
	case inspectErr != nil:
		return errors.Join(err, inspectErr)
	case s.Running:
		return fmt.Errorf("database container %s on %s: %w", l.db.Name, l.db.Engine().Host(), err)
	}
	return fmt.Errorf("PostgreSQL is gone: container %s on %s has ended (%s)%s", l.db.Name, l.db.Engine().Host(), s.Exit, quote(withoutCheckpoints(tail(ctx, l.db, 100)), 10))
}

// withoutCheckpoints drops what PostgreSQL says about checkpoints, which is most
// of what it says.
func withoutCheckpoints(log string) string {
	var keep []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "LOG:  checkpoint ") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// lastWords quotes the end of a container's log.
func lastWords(ctx context.Context, c *engine.Container, lines int) string {
	return quote(tail(ctx, c, lines), lines)
}

// tail is the end of a container's log, or empty when it cannot be read.
func tail(ctx context.Context, c *engine.Container, lines int) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	log, err := c.Logs(ctx, lines)
	if err != nil {
		return ""
	}
	return string(log)
}

// quote appends the last lines of a log to a sentence.
func quote(log string, lines int) string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	if len(all) == 1 && all[0] == "" {
		return "; it printed nothing"
	}
	return "; its log ends:\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}

// FreshDatabase gives the next candidate a database nobody has written to.
func (l *Lab) FreshDatabase(ctx context.Context) error {
	return l.blame(l.query(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
		defer cancel()
		return l.sql.CopyFresh(ctx, l.seed)
	}))
}

// Codes with which PostgreSQL refuses what an earlier attempt, of which the
// driver lost sight, is still doing: the database is in use, or there already,
// or not there any more.
var overtaken = []string{"55006", "42P04", "3D000"}

// query does something with the database that may be done again. When the
// connection breaks and the database's container still runs, as soon as its
// host can be reached, it is.
func (l *Lab) query(ctx context.Context, do func(ctx context.Context) error) error {
	const tries = 5
	for try := 1; ; try++ {
		err := do(ctx)
		if err == nil || ctx.Err() != nil || try == tries {
			return l.databaseError(ctx, err)
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) && (try == 1 || !slices.Contains(overtaken, pg.Code)) {
			return l.databaseError(ctx, err)
		}
		if state, inspectErr := l.db.Inspect(ctx); inspectErr != nil || !state.Running {
			return l.databaseError(ctx, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

// Fsync measures how many synchronous writes per second the database's volume
// carries, by method. It takes about six seconds.
func (l *Lab) Fsync(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	res, err := l.db.Exec(ctx, nil, "sh", "-c", postgres.FsyncCommand, "sh", dataPath+"/percore-fsync")
	if err != nil {
		return nil, l.databaseError(ctx, err)
	}
	ops, err := postgres.ParseFsync(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("measuring fsync in container %s: %w (%s)", l.db.Name, err, strings.TrimSpace(string(res.Stderr)))
	}
	return ops, nil
}

// contractRows shows the table as the contract check wants it.
type contractRows struct{ *postgres.Rows }

func (r contractRows) After(ctx context.Context, id int64) ([]contract.Event, error) {
	rows, err := r.Rows.After(ctx, id)
	events := make([]contract.Event, 0, len(rows))
	for _, row := range rows {
		events = append(events, event(row))
	}
	return events, err
}

func (r contractRows) Event(ctx context.Context, id int64) (contract.Event, error) {
	row, err := r.Row(ctx, id)
	if errors.Is(err, postgres.ErrNoRow) {
		err = contract.ErrNoRow
	}
	return event(row), err
}

func event(r postgres.Row) contract.Event {
	return contract.Event{ID: r.ID, Subject: r.Subject, Kind: r.Kind, Payload: json.RawMessage(r.Payload), CreatedAt: r.Created}
}
