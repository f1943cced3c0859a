package postgres_test

import (
	"slices"
	"testing"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/notify"
)

// TestWhatIsSentAgainKeepsItsOrder lets the messages of an alert fail, and a user send all of them
// again: the end goes out after what it ends, even if only the end has failed.
func TestWhatIsSentAgainKeepsItsOrder(t *testing.T) {
	t.Parallel()
	refused, later := notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400}, notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 500}
	for name, outcome := range map[string]notify.Outcome{"both failed": refused, "the end is still tried": later} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNapped(t, notify.Webhook{Name: "receiver", Events: notify.Events()})
			next := func(want ...notify.Reason) (list []notify.Delivery) {
				t.Helper()
				list = n.claimed(notify.Schedule{})
				var reasons []notify.Reason
				for _, d := range list {
					reasons = append(reasons, d.Reason)
				}
				if !slices.Equal(reasons, want) {
					t.Fatalf("claimed %v, want %v", reasons, want)
				}
				return list
			}
			n.act(alerts.Resolve)
			n.settled(next(notify.ReasonFired)[0], refused)
			n.settled(next(notify.ReasonResolved)[0], outcome)
			done, _, err := n.db.Record(nil).RetryAll(t.Context(), tenant, api.RetryOrder{Actor: "ada@x"})
			if err != nil || done.Retried != 2 || done.Skipped != 0 {
				t.Fatalf("%+v, %v", done, err)
			}
			fired := next(notify.ReasonFired)[0]
			next()
			n.settled(fired, notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200})
			end := next(notify.ReasonResolved)[0]
			n.settled(end, notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200})
			if end.Generation != 1 || end.CountedAttempts != 0 {
				t.Errorf("the end has generation %d and %d attempts", end.Generation, end.CountedAttempts)
			}
			if left := column(t, n.conn, `select notification_id::text from outbox`); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestAClockThatIsPutBackKeepsTheOrder has Postgres's clock put back by an hour after an alert fired: what happens to the alert
// since is sent in order, and so it is when a user sends it again.
func TestAClockThatIsPutBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver", Events: notify.Events()})
	n.exec(t, `update notification set created_at = now() + interval '1 hour'`)
	n.act(alerts.Acknowledge)
	n.act(alerts.Resolve)
	want := []notify.Reason{notify.ReasonFired, notify.ReasonAcknowledged, notify.ReasonResolved}
	for _, outcome := range []notify.Outcome{{Verdict: notify.VerdictRefused, StatusCode: 400}, {Verdict: notify.VerdictDelivered, StatusCode: 200}} {
		for _, reason := range want {
			list := n.claimed(notify.Schedule{})
			if len(list) != 1 || list[0].Reason != reason {
				t.Fatalf("%s: claimed %+v, want %s", outcome.Verdict, list, reason)
			}
			n.settled(list[0], outcome)
		}
		if _, _, err := n.db.Record(nil).RetryAll(t.Context(), tenant, api.RetryOrder{Actor: "ada@x"}); err != nil {
			t.Fatal(err)
		}
	}
}
