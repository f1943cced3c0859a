package app_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// batch begins an attempt at each of n notifications of a webhook.
func (w *world) batch(n int) []notify.Delivery {
	w.t.Helper()
	w.raiseFor(w.webhook("ops"), names(n)...)
	claimed := w.claim()
	return claimed
}

// TestSettledTogether settles every kind of outcome in one batch, several times,
// because a connection prepares its statements only after a while.
func TestSettledTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claimed := w.batch(40)
	answered := &notify.ResponseHead{StatusLine: "HTTP/1.1 200 OK", Headers: []notify.HeaderField{{Name: "Date", Value: "today"}}}
	for part := range slices.Chunk(claimed, 4) {
		batch := []dispatch.Settlement{
			settlement(&part[0], notify.VerdictRetry, notify.Retrying), settlement(&part[1], notify.VerdictDelivered, notify.Delivered),
			settlement(&part[2], notify.VerdictUnknown, notify.Retrying), settlement(&part[3], notify.VerdictRefused, notify.Failed),
		}
		batch[0].Outcome.Error, batch[0].Decision.Wait = "dial tcp: connection refused", time.Hour
		batch[1].Outcome.Head, batch[1].Outcome.StatusCode = answered, http.StatusOK
		batch[2].Outcome.Error = "stopped"
		batch[3].Outcome.Head, batch[3].Outcome.StatusCode, batch[3].Outcome.Response = answered, http.StatusBadRequest, "no\x00thing\xff"
		settled, err := w.db.Outbox().Settle(t.Context(), batch)
		if err != nil || slices.Contains(settled, dispatch.Settled{Fenced: true}) {
			t.Fatalf("settled %+v, %v", settled, err)
		}
	}
	w.wantColumn("attempts", `select coalesce(verdict, 'unknown') || ' ' || coalesce(status_code::text, 'no') || ' ' || (response_head is not null) || ' ' || count(*)
		from attempt_history group by verdict, status_code, response_head is not null order by 1`,
		"DELIVERED 200 true 10", "REFUSED 400 true 10", "RETRY no false 10", "unknown no false 10")
	w.wantColumn("statuses", statuses, "DELIVERED 10", "FAILED 10", "RETRYING 20")
}

// TestOutcomeIsStoredTwice stores outcomes a second time, like a process that has not learned
// whether they are stored, and a third time together with others: they are recorded once.
func TestOutcomeIsStoredTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claimed := w.batch(4)
	all := []dispatch.Settlement{
		settlement(&claimed[0], notify.VerdictDelivered, notify.Delivered), settlement(&claimed[1], notify.VerdictRefused, notify.Failed),
		settlement(&claimed[2], notify.VerdictRetry, notify.Retrying), settlement(&claimed[3], notify.VerdictDelivered, notify.Delivered),
	}
	all[2].Decision.Wait = time.Hour
	again := []dispatch.Settled{{Fenced: true}, {Fenced: true}, {Fenced: true}}
	for nth, want := range [][]dispatch.Settled{make([]dispatch.Settled, 3), again, append(again, dispatch.Settled{})} {
		settled, err := w.db.Outbox().Settle(t.Context(), all[:len(want)])
		if err != nil || !slices.Equal(settled, want) {
			t.Errorf("the %d. time %+v, %v", nth+1, settled, err)
		}
	}
	w.wantColumn("attempts", `select coalesce(verdict, 'unknown') from attempt_history order by 1`, "DELIVERED", "DELIVERED", "REFUSED", "RETRY")
	w.wantColumn("statuses", statuses, "DELIVERED 2", "FAILED 1", "RETRYING 1")
	w.exec(`update settlement set started_at = (select created_at from notification n where n.notification_id = settlement.notification_id) where attempt is not null`)
	if err := w.retry(claimed[0].NotificationID); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("attempts of what is sent again", `select a.attempt || ' ' || a.verdict || ' ' || (a.started_at = o.created_at) from attempt_history a
		join notification o using (notification_id) where notification_id = '`+claimed[0].NotificationID.String()+`'`, "1 DELIVERED true")
}

// TestBatchOfAClaimAndItsSuccessor settles in one batch outcomes of a claim that has passed to
// another process and of the claim that replaced it.
func TestBatchOfAClaimAndItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		former, present notify.Status
		fenced          []bool
		statuses        string
	}{
		"both arrived":       {notify.Delivered, notify.Delivered, []bool{true, false}, "DELIVERED 1"},
		"only the former":    {notify.Delivered, notify.Retrying, []bool{true, false}, "DELIVERED 1"},
		"only the successor": {notify.Retrying, notify.Delivered, []bool{true, false}, "DELIVERED 1"},
		"neither":            {notify.Failed, notify.Retrying, []bool{true, false}, "RETRYING 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			former := w.batch(1)[0]
			w.exec(`update outbox set due_at = now(), ready_at = now()`)
			present := w.claim()[0]
			settled, err := w.db.Outbox().Settle(t.Context(), []dispatch.Settlement{
				settlement(&former, notify.VerdictDelivered, c.former), settlement(&present, notify.VerdictDelivered, c.present),
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := []bool{settled[0].Fenced, settled[1].Fenced}; !slices.Equal(got, c.fenced) {
				t.Errorf("fenced %v, want %v", got, c.fenced)
			}
			w.wantColumn("statuses", statuses, c.statuses)
		})
	}
}

// TestOneHarmsNoBatch locks the row of one notification: a batch soon fails, and the dispatcher
// settles all others one by one.
func TestOneHarmsNoBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), names(6)...)
	holder := pgtest.Conn(t, w.pgURL)
	if _, err := holder.Exec(t.Context(), `begin`); err != nil {
		t.Fatal(err)
	}
	called, release := w.receiver.hang()
	t.Cleanup(release)
	ended := w.underWay(w.newDispatcher(dispatch.Options{Poll: time.Hour}), called)
	w.until("all are begun", func() bool { return len(w.column(`select '' from attempt_history`)) == 6 })
	locked := strings.TrimSpace(w.column(`select min(notification_id::text) from outbox`)[0])
	if _, err := holder.Exec(t.Context(), `select from outbox where notification_id = '`+locked+`' for update`); err != nil {
		t.Fatal(err)
	}
	release()
	w.until("all others are settled", func() bool { return slices.Equal(w.column(unsettledOutbox), []string{locked}) })
	if _, err := holder.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "it has ended", ended); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 6")
	w.wantColumn("attempts", `select verdict || ' ' || count(*) from attempt_history group by verdict`, "DELIVERED 6")
}

// TestEveryAttemptIsRecorded takes a message away from a process that has begun an attempt, in each
// possible way: the attempt is recorded without an outcome when it begins, and its outcome is added
// later.
func TestEveryAttemptIsRecorded(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(w *world, former, present *notify.Delivery){
		"by the success of the claimant before": func(w *world, former, _ *notify.Delivery) {
			if err := w.settle(settlement(former, notify.VerdictDelivered, notify.Delivered)); !errors.Is(err, notify.ErrFenced) {
				w.t.Errorf("the success of a former claimant: %v", err)
			}
		},
		"by the next claimant": func(w *world, _, _ *notify.Delivery) {
			w.exec(`update outbox set due_at = now(), ready_at = now()`)
			if claimed := w.claim(); len(claimed) != 1 || !claimed[0].AfterUnknown {
				w.t.Errorf("claimed %+v", claimed)
			}
		},
		"by a person": func(w *world, _, present *notify.Delivery) {
			w.exec(`update outbox set due_at = now(), ready_at = now()`)
			if err := w.retry(present.NotificationID); err != nil {
				w.t.Error(err)
			}
		},
		"by the end of its webhook": func(w *world, _, present *notify.Delivery) {
			w.exec(`delete from rule_webhook`)
			if err := w.db.Webhooks().Delete(w.t.Context(), tenant, present.Webhook.ID); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			former := w.batch(1)[0]
			w.exec(`update outbox set due_at = now(), ready_at = now()`)
			present := w.claim()[0]
			begun := w.column(`select started_at::text from attempt_history where attempt = 2`)
			take(w, &former, &present)
			w.wantColumn("recorded", `select attempt || ' ' || coalesce(verdict, 'unknown') from attempt where attempt = 2`, "2 unknown")
			late := settlement(&present, notify.VerdictRetry, notify.Retrying)
			late.Outcome.Duration = time.Hour
			if err := w.settle(late); !errors.Is(err, notify.ErrFenced) {
				t.Errorf("its outcome: %v", err)
			}
			w.wantColumn("with its outcome", `select verdict from attempt where attempt = 2`, "RETRY")
			w.wantColumn("as it was begun", `select started_at::text from attempt where attempt = 2`, begun...)
		})
	}
}
