package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/notify/refresh"
)

// paused is a key of the advisory lock at which a statement of slowed stops.
const paused = 4711

// slowed returns a store whose statements stop between their snapshot and their first lock on a row, while
// somebody holds the lock. The functions that they call there, now() and the comparison of places, come first in
// its search path.
func (p *persist) slowed(t *testing.T) *postgres.DB {
	t.Helper()
	p.exec(t, `
create schema slow;
create function slow.now() returns timestamptz language plpgsql volatile as $$
begin
    if current_query() like '%for update skip locked%' then
        perform pg_advisory_xact_lock_shared(4711);
    end if;
    return pg_catalog.now();
end
$$;
create function slow.beyond(place bigint, most integer) returns boolean language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock_shared(4711);
    return place operator(pg_catalog.>) most;
end
$$;
create operator slow.> (leftarg = bigint, rightarg = integer, function = slow.beyond)`)
	box, err := seal.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), p.url+"&search_path=slow,public,pg_catalog", box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// newPosted returns an alert with a posted message that can be updated.
func newPosted(t *testing.T) *napping {
	t.Helper()
	n := newNapped(t, notify.Webhook{Name: "slack", Slack: notify.SlackApp{Channel: "C1", BotToken: "xoxb-1"}})
	n.exec(t, `insert into slack_message (webhook_id, alert_id, reason, channel, ts) values ($1, $2, 'FIRED', 'C1', '1.1')`, n.webhook, n.alert)
	return n
}

func (n *napping) setState(state string) {
	n.t.Helper()
	n.exec(n.t, `update alert set state = $2 where alert_id = $1`, n.alert, state)
}

func claimUpdate(t *testing.T, db *postgres.DB) *refresh.Update {
	t.Helper()
	claimed, err := db.Slack().Claim(t.Context(), time.Minute, func(uuid.UUID) bool { return true })
	if err != nil || len(claimed.Updates) != 1 {
		t.Fatalf("claimed %d updates, %v", len(claimed.Updates), err)
	}
	return &claimed.Updates[0]
}

// TestAChangeDuringTheClaimOfAnUpdateIsShown acknowledges the alert after the claim has taken its snapshot, and
// before it has locked the update, which waits for an earlier change. The transaction that does so has begun before.
func TestAChangeDuringTheClaimOfAnUpdateIsShown(t *testing.T) {
	t.Parallel()
	n := newPosted(t)
	n.setState("RESOLVED")
	slow := n.slowed(t)
	n.exec(t, `begin`)
	n.exec(t, `select pg_advisory_lock($1)`, paused)
	update := make(chan *refresh.Update, 1)
	go func() {
		defer close(update)
		update <- claimUpdate(t, slow)
	}()
	n.waits(t)
	n.setState("ACKNOWLEDGED")
	n.exec(t, `commit`)
	n.exec(t, `select pg_advisory_unlock($1)`, paused)
	u := <-update
	if u == nil {
		return
	}
	if err := slow.Slack().Settle(t.Context(), refresh.Settlement{Update: u}); err != nil {
		t.Fatal(err)
	}
	pending := one[int](t, n.conn, `select count(*) from slack_update`)
	if state := u.Delivery.Alert.State; state != "ACKNOWLEDGED" && pending == 0 {
		t.Errorf("the message shows %s and no update is pending", state)
	}
}

// TestAChangeDuringAFailedUpdateDoesNotWaitForItsPause acknowledges the alert while the last attempt to show an
// earlier state is under way.
func TestAChangeDuringAFailedUpdateDoesNotWaitForItsPause(t *testing.T) {
	t.Parallel()
	n := newPosted(t)
	n.setState("RESOLVED")
	n.exec(t, `update slack_update set attempts = 3`)
	u := claimUpdate(t, n.db)
	n.setState("ACKNOWLEDGED")
	if err := n.db.Slack().Settle(t.Context(), refresh.Settlement{Update: u, Retry: 30 * time.Minute, Counts: true}); err != nil {
		t.Fatal(err)
	}
	if again := claimUpdate(t, n.db); again.Attempts != 0 || again.Delivery.Alert.State != "ACKNOWLEDGED" {
		t.Errorf("after %d attempts, %s is shown", again.Attempts, again.Delivery.Alert.State)
	}
}

// TestALockedUpdateIsGivenUp has somebody keep a row locked that the end of an update needs: it waits five seconds, and not
// until the row is free, because it is made again when its lease expires.
func TestALockedUpdateIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{`select from slack_update for update`, `select from webhook where slack_channel <> '' for update`} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			n := newPosted(t)
			n.setState("RESOLVED")
			u := claimUpdate(t, n.db)
			tx, err := pgtest.Conn(t, n.url).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tag, err := tx.Exec(t.Context(), lock); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			throttled := refresh.Settlement{Update: u, Retry: time.Minute, Hold: time.Minute}
			if err := n.db.Slack().Settle(ctx, throttled); err == nil || ctx.Err() != nil {
				t.Errorf("while the row is locked: %v", err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := n.db.Slack().Settle(t.Context(), throttled); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAChangeDuringATrimIsKept acknowledges the alert of an old update after the trim has counted it among those
// beyond the bound.
func TestAChangeDuringATrimIsKept(t *testing.T) {
	t.Parallel()
	n := newPosted(t)
	n.setState("RESOLVED")
	n.exec(t, `insert into slack_message (webhook_id, alert_id, reason, channel, ts) values ($1, $2, 'REMINDER', 'C1', '1.2')`, n.webhook, n.alert)
	n.exec(t, `insert into slack_update (message_id, webhook_id) select message_id, webhook_id from slack_message where ts = '1.2'`)
	slow := n.slowed(t)
	n.exec(t, `select pg_advisory_lock($1)`, paused)
	ended := make(chan error, 1)
	go func() {
		_, err := slow.Slack().Trim(t.Context(), 1)
		ended <- err
	}()
	n.waits(t)
	n.exec(t, `update slack_update u set generation = default from slack_message m where m.message_id = u.message_id and m.ts = '1.1'`)
	n.exec(t, `select pg_advisory_unlock($1)`, paused)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, n.conn, `select count(*) from slack_update join slack_message using (message_id) where ts = '1.1'`); got != 1 {
		t.Error("the newest update was deleted")
	}
}
