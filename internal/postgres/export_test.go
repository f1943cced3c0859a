package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The statements of the inbox, for the test that looks at their plans.
//
//nolint:gochecknoglobals // methods, which nobody assigns to
var (
	Listing = (*Inbox).listing
	Walking = (*Inbox).walking
	Folding = (*Inbox).folding
)

// Asks tells whether Postgres is asked before a connection is used that was idle.
func Asks(ctx context.Context, conn *pgx.Conn, idle time.Duration) bool {
	return shouldPing(ctx, pgxpool.ShouldPingParams{Conn: conn, IdleDuration: idle})
}
