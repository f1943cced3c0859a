package postgres

import (
	"context"
	"fmt"

	"tocsin/internal/postgres/pgq"
)

// Notify sends payload to those who listen on channel, outside any transaction:
// a NOTIFY inside holds a lock on the whole database while it commits.
func (db *DB) Notify(ctx context.Context, channel, payload string) error {
	if err := db.queries.WakeUpNotify(ctx, pgq.WakeUpNotifyParams{Channel: channel, Payload: payload}); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}
