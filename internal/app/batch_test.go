package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/pgtest"
	"tocsin/notify"
)

// batch begins an attempt at each of some notifications of a webhook.
func (w *world) batch(n int) []notify.Delivery {
	w.t.Helper()
	w.owed(w.webhook("ops"), names(n)...)
	claimed := w.claim()
	for i := range claimed {
		if err := w.begin(&claimed[i]); err != nil {
			w.t.Fatal(err)
		}
	}
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
		batch := []notify.Settlement{
			settlement(&part[0], notify.VerdictRetry, notify.Retrying), settlement(&part[1], notify.VerdictDelivered, notify.Delivered),
			settlement(&part[2], notify.VerdictUnknown, notify.Retrying), settlement(&part[3], notify.VerdictRefused, notify.Failed),
		}
		batch[0].Outcome.Error, batch[0].Decision.Wait = "dial tcp: connection refused", time.Hour
		batch[1].Outcome.Head, batch[1].Outcome.StatusCode = answered, http.StatusOK
		batch[2].Outcome.Error = "stopped"
		batch[3].Outcome.Head, batch[3].Outcome.StatusCode, batch[3].Outcome.Response = answered, http.StatusBadRequest, "no\x00thing\xff"
		settled, err := w.db.Outbox().Settle(t.Context(), batch)
		if err != nil || slices.Contains(settled, notify.Settled{Fenced: true}) {
			t.Fatalf("settled %+v, %v", settled, err)
		}
	}
	w.wantColumn("attempts", `select coalesce(verdict, 'unknown') || ' ' || coalesce(status_code::text, 'no') || ' ' || (response_head is not null) || ' ' || count(*)
		from attempt_history group by verdict, status_code, response_head is not null order by 1`,
		"DELIVERED 200 true 10", "REFUSED 400 true 10", "RETRY no false 10", "unknown no false 10")
	w.wantColumn("statuses", statuses, "DELIVERED 10", "FAILED 10", "RETRYING 20")
}

// TestBatchOfAClaimAndItsSuccessor settles the outcomes of a claim that has passed
// on and of the one that it passed to at once.
func TestBatchOfAClaimAndItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		former, present notify.Status
		fenced          []bool
		statuses        string
	}{
		"both arrived":       {notify.Delivered, notify.Delivered, []bool{true, true}, "DELIVERED 1"},
		"only the former":    {notify.Delivered, notify.Retrying, []bool{true, true}, "DELIVERED 1"},
		"only the successor": {notify.Retrying, notify.Delivered, []bool{true, false}, "DELIVERED 1"},
		"neither":            {notify.Failed, notify.Retrying, []bool{true, false}, "RETRYING 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			former := w.batch(1)[0]
			w.exec(`update outbox set due_at = now()`)
			present := w.claim()[0]
			if err := w.begin(&present); err != nil {
				t.Fatal(err)
			}
			settled, err := w.db.Outbox().Settle(t.Context(), []notify.Settlement{
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

// TestOneHarmsNoBatch locks the row of one notification: a batch gives up soon, and
// the dispatcher settles all others one by one.
func TestOneHarmsNoBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owed(w.webhook("ops"), names(6)...)
	holder := pgtest.Conn(t, w.pgURL)
	if _, err := holder.Exec(t.Context(), `begin`); err != nil {
		t.Fatal(err)
	}
	called, release := w.receiver.hang()
	t.Cleanup(release)
	ended := make(chan error, 1)
	go func() {
		_, err := w.newDispatcher(notify.Options{Poll: time.Hour}).Tick(t.Context())
		ended <- err
	}()
	<-called
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
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	w.wantColumn("statuses", statuses, "DELIVERED 6")
	w.wantColumn("attempts", `select verdict || ' ' || count(*) from attempt_history group by verdict`, "DELIVERED 6")
}
