package postgres

import (
	"context"
	"fmt"

	"tocsin/internal/postgres/pgq"
)

// Notify sends payload to all who listen on channel. It runs outside any transaction, because a
// NOTIFY inside one holds a lock on the whole database while the transaction commits.
func (db *DB) Notify(ctx context.Context, channel, payload string) error {
	if err := db.queries.WakeUpNotify(ctx, pgq.WakeUpNotifyParams{Channel: channel, Payload: payload}); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}
