package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/internal/fault"
	"tocsin/notify/dispatch"
)

// ofARow reports whether a statement failed because the data of a row cannot be read, or because
// what reads it panicked. Such a statement fails until the row is gone. Errors of Postgres, the connection, an index, a constraint
// or a trigger do not come from one row: they may pass, or they affect all rows.
func ofARow(err error) bool {
	if _, unread := errors.AsType[pgx.ScanArgError](err); unread || fault.Panicked(err) {
		return true
	}
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return false
	}
	switch refused.Code[:2] {
	case "22", "54": // data, limits of the program
		return true
	}
	return refused.Code == "XX001" // what is stored is damaged
}

// claimApart claims for one webhook after the other, after a claim for all of them failed because
// of a row. If that fails for a webhook as well, its oldest message is claimed by itself. If even
// that fails, the message ends as one that cannot be read. If somebody keeps a row locked, only the
// webhooks whose messages need it wait: the message waits for the next pass.
func (s *Outbox) claimApart(ctx context.Context, all *claiming, claimed *dispatch.Claimed, together error) (failed error) {
	waited := isLockTimeout(together)
	for _, dealt := range all.dealt {
		apart := func(slots int, damaged *unreadable) (*claiming, error) {
			c := claiming{
				request: all.request, looked: all.looked, webhooks: all.webhooks, damaged: damaged, waited: waited,
				dealt: []dispatch.Slots{{WebhookID: dealt.WebhookID, Slots: min(slots, dealt.Slots)}},
			}
			err := s.claim(ctx, &c)
			waited = waited || isLockTimeout(err)
			return &c, err
		}
		c, err := apart(dealt.Slots, nil)
		if ofARow(err) {
			c, err = apart(1, nil)
		}
		if ofARow(err) && len(c.claimed) == 1 {
			c, err = apart(1, &unreadable{c.claimed[0].NotificationID, err})
		}
		if err == nil {
			c.addTo(claimed)
		}
		if failed = errors.Join(failed, err); err != nil && !ofARow(err) && !isLockTimeout(err) {
			break
		}
	}
	if failed == nil {
		claimed.Next = time.Millisecond
	}
	return failed
}
