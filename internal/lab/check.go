package lab

import (
	"context"
	"errors"

	"github.com/percore/percore/internal/lab/contract"
	"github.com/percore/percore/internal/lab/database/postgres"
	"github.com/percore/percore/internal/protocol"
)

// checkRows is the size of the database of a contract check: enough rows for
// every case, few enough to be made in a moment.
const checkRows = 2000

// Check is a candidate on a small database of its own, which nothing but a
// contract check uses.
type Check struct {
	protocol.Server
	Rows contract.Rows

	lab      *Lab
	database string
	rows     *postgres.Rows
}

// Concurrent reports whether candidates can be checked side by side: on a
// private network each has an address of its own, on the host's they would all
// want the same port.
func (l *Lab) Concurrent() bool { return !l.cfg.Hosts["app"].HostNetwork }

// StartCheck starts the candidate for a contract check.
func (l *Lab) StartCheck(ctx context.Context, id string) (*Check, error) {
	database := postgres.CheckDatabase(id)
	seed := l.seed
	seed.Rows = checkRows
	if err := l.sql.Make(ctx, database, seed); err != nil {
		return nil, l.databaseError(ctx, err)
	}
	c := &Check{lab: l, database: database, rows: l.sql.RowsOf(database)}
	c.Rows = contractRows{c.rows}
	spec, err := l.candidateSpec(id, database)
	if err == nil {
		spec.Aliases = nil
		c.Server, err = l.start(ctx, id, spec, "/healthz", candidateGrace)
	}
	if err != nil {
		return nil, errors.Join(err, c.drop(ctx))
	}
	return c, nil
}

// Stop removes the candidate's container and its database.
func (c *Check) Stop(ctx context.Context) error {
	return errors.Join(c.Server.Stop(ctx), c.drop(ctx))
}

func (c *Check) drop(ctx context.Context) error {
	ctx, cancel := c.lab.cleanup(ctx)
	defer cancel()
	c.rows.Close(ctx)
	return c.lab.sql.Drop(ctx, c.database)
}
