package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/socket"
)

// A connection that has been idle may have ended meanwhile: Postgres has been
// started again, or a machine between has forgotten it. To ask Postgres before
// each use would double what an idle replica asks. So one that was in use a moment
// ago is only looked at, which costs no packet and finds what has been closed;
// Postgres is asked when there is anything to read on it, and after a longer time,
// in which a connection may be forgotten without a word.
const (
	// unasked is the time after which an idle connection is looked at, and trusted
	// the one after which Postgres is asked.
	unasked = time.Second
	trusted = 30 * time.Second
)

// shouldPing says whether Postgres is asked before a connection is used.
func shouldPing(_ context.Context, idle pgxpool.ShouldPingParams) bool {
	if idle.IdleDuration <= unasked {
		return false
	}
	return idle.IdleDuration > trusted || !socket.IsQuiet(idle.Conn.PgConn().Conn())
}
