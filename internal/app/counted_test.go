package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/notify"
)

func TestMessagesAreCountedAndSearched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ops, desk := w.webhook("ops"), w.webhook("desk")
	w.raiseFor(ops, "a", "b", "c")
	w.raiseFor(desk, "d")
	record := w.db.Record(nil)
	wantCounts := func(when string, f api.NotificationFilter, want map[notify.Status]int64) {
		t.Helper()
		got, complete, err := record.Counts(t.Context(), tenant, f)
		if err != nil || !complete {
			t.Fatal(err, complete)
		}
		for _, status := range []notify.Status{notify.Pending, notify.Retrying, notify.Delivered, notify.Failed, notify.Exhausted, notify.Discarded} {
			if got[status] != want[status] {
				t.Errorf("%s: %d are %s, want %d", when, got[status], status, want[status])
			}
		}
	}
	wantCounts("before", api.NotificationFilter{}, map[notify.Status]int64{notify.Pending: 4})
	ends := []struct {
		verdict notify.Verdict
		status  notify.Status
	}{{notify.VerdictDelivered, notify.Delivered}, {notify.VerdictRefused, notify.Failed}, {notify.VerdictDelivered, notify.Delivered}}
	for _, d := range w.claim() {
		if d.Webhook.ID != ops {
			continue
		}
		s := settlement(&d, ends[0].verdict, ends[0].status)
		s.Outcome.Duration, s.Outcome.StatusCode = 20*time.Millisecond, http.StatusAccepted
		if err := w.settle(s); err != nil {
			t.Fatal(err)
		}
		ends = ends[1:]
	}
	if len(ends) != 0 {
		t.Fatalf("%d messages were not claimed", len(ends))
	}
	// The message of the other webhook is under way.
	wantCounts("settled", api.NotificationFilter{}, map[notify.Status]int64{notify.Pending: 1, notify.Delivered: 2, notify.Failed: 1})
	wantCounts("of one webhook", api.NotificationFilter{Webhooks: []uuid.UUID{ops}}, map[notify.Status]int64{notify.Delivered: 2, notify.Failed: 1})
	wantCounts("of some statuses", api.NotificationFilter{Statuses: []notify.Status{notify.Failed, notify.Pending}},
		map[notify.Status]int64{notify.Pending: 1, notify.Failed: 1})
	later := time.Now().Add(time.Hour)
	wantCounts("of later", api.NotificationFilter{From: &later}, nil)
	if other, _, err := record.Counts(t.Context(), "another", api.NotificationFilter{}); err != nil || len(other) != 0 {
		t.Errorf("another tenant counts %v, %v", other, err)
	}

	flow, err := record.Flow(t.Context(), tenant, ops)
	if err != nil {
		t.Fatal(err)
	}
	var delivered, failed int64
	var median *time.Duration
	for _, hour := range flow.Hours {
		delivered, failed = delivered+hour.Delivered, failed+hour.Failed
		if hour.Median != nil {
			median = hour.Median
		}
	}
	if delivered != 2 || failed != 1 || median == nil || *median != 20*time.Millisecond || flow.LastSuccessAt == nil || !flow.Complete {
		t.Errorf("%d delivered, %d failed, %v: %+v", delivered, failed, median, flow)
	}
	if idle, err := record.Flow(t.Context(), "another", ops); err != nil || idle.LastSuccessAt != nil || idle.Hours != [api.FlowHours]api.FlowHour{} || idle.From.IsZero() {
		t.Errorf("another tenant sees %+v, %v", idle, err)
	}

	found := func(text string) int {
		t.Helper()
		list, next, err := record.List(t.Context(), tenant, api.NotificationQuery{Limit: 10, NotificationFilter: api.NotificationFilter{Text: text}})
		if err != nil || next != nil {
			t.Fatalf("%v, %v", next, err)
		}
		return len(list)
	}
	title := w.column(`select title from alert where execution_id = 'd'`)[0]
	if n := found(title); n != 1 {
		t.Errorf("%d messages report %q", n, title)
	}
	if n := found("b"); n < 1 {
		t.Error("an execution id finds nothing")
	}
	if n := found("no such text"); n != 0 {
		t.Errorf("nothing is found %d times", n)
	}
	list, _, err := record.List(t.Context(), tenant, api.NotificationQuery{Limit: 10, NotificationFilter: api.NotificationFilter{Webhooks: []uuid.UUID{ops}}})
	if err != nil || len(list) != 3 {
		t.Fatalf("%d, %v", len(list), err)
	}
	for _, n := range list {
		if h := n.History; len(h) != 1 || h[0].Outcome.StatusCode != http.StatusAccepted || h[0].Outcome.Duration != 20*time.Millisecond || h[0].FinishedAt == nil {
			t.Errorf("history %+v", h)
		}
	}
}

// TestCountsSayThatThereMayBeMore has more newer messages that wait than are read to count those that
// were delivered.
func TestCountsSayThatThereMayBeMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	for _, d := range w.claim() {
		if err := w.settle(settlement(&d, notify.VerdictDelivered, notify.Delivered)); err != nil {
			t.Fatal(err)
		}
	}
	w.exec(`insert into notification (notification_id, tenant_id, webhook_id, reason)
		select gen_random_uuid(), tenant_id, webhook_id, 'DIGEST' from notification cross join generate_series(1, 20000)`)
	counts, complete, err := w.db.Record(nil).Counts(t.Context(), tenant, api.NotificationFilter{})
	if err != nil || complete || counts[notify.Delivered] != 0 {
		t.Errorf("counted %v, complete %v, %v", counts, complete, err)
	}
	counts, complete, err = w.db.Record(nil).Counts(t.Context(), tenant, api.NotificationFilter{Statuses: []notify.Status{notify.Failed}})
	if err != nil || !complete || counts[notify.Failed] != 0 {
		t.Errorf("of one status: counted %v, complete %v, %v", counts, complete, err)
	}
}
