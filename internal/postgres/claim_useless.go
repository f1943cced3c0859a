package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// needlessAfter is how long ago an alert must have been acknowledged or resolved for its escalations to be of no use any
// more: longer than it can be undone, by more than an undo may take.
const needlessAfter = undoWithin + time.Minute

// What is recorded of messages that are of no use any more.
const (
	becauseLate        = "Not sent: the message came too late, because the event is older than the maximum age of the webhook, or because the next reminder is due"
	becauseHandled     = "Not sent: the alert has been acknowledged or resolved"
	becauseNotNotified = "Not sent: the webhook was not notified that the alert fired"
)

// endUseless ends the claimed messages that are of no use to their receivers any more:
//
//   - those that have expired. A receiver that keeps something open gets events however late;
//   - those that are too old for their receivers. They end as EXHAUSTED, because operators have to
//     know of them;
//   - unless a person sends them again, escalations of alerts that were acknowledged or resolved so
//     long ago that it cannot be undone, and events of alerts of which the webhook was not notified that
//     they fire. Where the event was written, the messages that would have said so still waited.
func (c *claiming) endUseless(ctx context.Context, q *pgq.Queries) error {
	expired := map[uuid.UUID]bool{}
	for i := range c.claimed {
		expired[c.claimed[i].NotificationID] = c.claimed[i].Expired
	}
	var late, handled, unknown []uuid.UUID
	var old []unreadable
	c.deliveries = slices.DeleteFunc(c.deliveries, func(d notify.Delivery) bool {
		own := c.request.ScheduleOf(&d.Webhook)
		switch needless := c.needless[d.NotificationID] && d.Generation == 0; {
		case expired[d.NotificationID] && (!own.KeepsState || !d.Reason.IsEvent()):
			late = append(late, d.NotificationID)
		case own.TooOld(d.Reason, d.Waited):
			old = append(old, unreadable{d.NotificationID, notify.ErrTooOld})
		case needless && d.Reason.IsEvent():
			unknown = append(unknown, d.NotificationID)
		case needless:
			handled = append(handled, d.NotificationID)
		default:
			return false
		}
		return true
	})
	for _, ended := range []struct {
		ids []uuid.UUID
		why string
	}{{late, becauseLate}, {handled, becauseHandled}, {unknown, becauseNotNotified}} {
		if err := c.discard(ctx, q, ended.ids, ended.why); err != nil {
			return err
		}
	}
	if len(old) == 0 {
		return nil
	}
	return endNotMade(ctx, q, pgq.SettleNotMadeParams{Replica: c.request.Replica, Status: string(notify.Exhausted)}, old)
}

func (c *claiming) discard(ctx context.Context, q *pgq.Queries, ids []uuid.UUID, why string) error {
	if len(ids) == 0 {
		return nil
	}
	p := pgq.SettleNotMadeParams{
		Replica: c.request.Replica, Status: string(notify.Discarded), DiscardedBy: notify.ByTocsin, Ids: ids, Errors: slices.Repeat([]string{why}, len(ids)),
	}
	if err := q.SettleNotMade(ctx, p); err != nil {
		return fmt.Errorf("discard obsolete messages: %w", err)
	}
	return nil
}
