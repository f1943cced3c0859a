package app_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
)

func TestSwitchingOffNotifiesOperators(t *testing.T) {
	t.Parallel()
	for name, self := range map[string]bool{"another webhook": false, "the operators' own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			hook := w.webhook("ops")
			if self {
				w.exec(`update webhook set operators = true`)
			}
			w.status(http.StatusGone)
			w.raiseFor(hook, "a", "b", "c")
			both := w.claim()
			// All three get the answer that it is gone, from different replicas.
			var ended sync.WaitGroup
			errs := make([]error, len(both))
			for i := range both {
				gone := settlement(&both[i], notify.VerdictGone, notify.Failed)
				gone.Decision.Disable, gone.Outcome.Error = true, "410 Gone"
				ended.Go(func() { errs[i] = w.settle(gone) })
			}
			ended.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			w.wantColumn("inbox", healthAlerts, "FIRING")
			// Reported once, and never to the webhook that is off.
			w.wantColumn("notified", `select w.name from notification n join webhook w using (webhook_id) where n.reason = 'WEBHOOK_OFF'`, "operators")
			alert := w.firing()[slices.IndexFunc(w.firing(), func(a alerts.Instance) bool { return a.WebhookID == hook })]
			if !alert.Health || alert.Title != "Webhook ops is disabled" || alert.Severity != "CRITICAL" {
				t.Errorf("alert %+v", alert)
			}
			got, err := w.db.Webhooks().Get(t.Context(), tenant, hook)
			if err != nil || got.Enabled || got.Flow.State != notify.FlowOff || got.DisabledReason != "410 Gone" {
				t.Errorf("webhook %+v, %v; want it off, with the reason", got, err)
			}
			w.receiver.respond(nil)
			if _, err := w.db.Webhooks().SetEnabled(t.Context(), tenant, hook, true); err != nil {
				t.Fatal(err)
			}
			w.wantColumn("resolved", `select state from alert where webhook_id is not null`, "RESOLVED")
			// When it is disabled again, that is reported again.
			w.status(http.StatusGone)
			w.raiseFor(hook, "d")
			w.exec(`delete from outbox where webhook_id <> $1`, hook)
			w.deliver()
			w.wantColumn("inbox", healthAlerts, "RESOLVED", "FIRING")
		})
	}
}

func TestDeletingResolvesTheAlertAboutTheWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	hook := w.webhook("ops")
	w.status(http.StatusGone)
	w.raiseFor(hook, "a")
	w.deliver()
	w.wantColumn("inbox", healthAlerts, "FIRING")
	if err := w.db.Rules().Delete(t.Context(), tenant, uuid.MustParse(w.column(`select rule_id::text from rule`)[0])); err != nil {
		t.Fatal(err)
	}
	seen := w.column(`select max(change)::text from alert`)[0]
	if err := w.db.Webhooks().Delete(t.Context(), tenant, hook); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("inbox", healthAlerts, "RESOLVED")
	// Open inboxes are notified, as of any other change.
	if now := w.column(`select max(change)::text from alert`)[0]; now == seen {
		t.Errorf("the last change is still %s", now)
	}
}
