package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/socket"
)

// An idle connection may have ended in the meantime, because Postgres was restarted or a machine in
// between has dropped it. Pinging Postgres before each use would double the queries of an idle
// replica. So the check depends on how long the connection was idle:
//
//   - Up to unasked, there is no check.
//   - Up to trusted, the socket is checked. This sends no packet and finds closed connections.
//     Postgres is pinged only if there is something to read.
//   - After that, Postgres is pinged, because a connection may be dropped without notice.
const (
	// unasked is the idle time up to which a connection is not checked; trusted is the idle time
	// after which Postgres is always pinged.
	unasked = time.Second
	trusted = 30 * time.Second
)

// shouldPing reports whether to ping Postgres before a connection is used.
func shouldPing(_ context.Context, idle pgxpool.ShouldPingParams) bool {
	if idle.IdleDuration <= unasked {
		return false
	}
	return idle.IdleDuration > trusted || !socket.IsQuiet(idle.Conn.PgConn().Conn())
}
