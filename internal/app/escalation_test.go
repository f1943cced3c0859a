package app_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/notify"
	"tocsin/rules"
)

// TestAlertsEscalate follows alerts from a policy that is written by the API, through the
// evaluator, to what the receivers of each step get.
func TestAlertsEscalate(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	first, pager, boss := w.chooses(l, "first", nil), w.chooses(l, "pager", nil, notify.Events()...), w.chooses(l, "boss", nil)
	rule := w.ruleOf(rules.Definition{Name: "Orders", UseRoutingPolicy: true})
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("admin", access.Admin)
	put := func(path string, body map[string]any) {
		t.Helper()
		tag := admin.must(http.StatusOK, http.MethodGet, path, nil).header.Get("ETag")
		admin.must(http.StatusOK, http.MethodPut, path, body, "If-Match", tag)
	}
	put("/teams", map[string]any{"teams": []any{map[string]any{"name": "bosses", "webhookIds": []string{boss.String()}}}})
	put("/routing", map[string]any{
		"defaultWebhookIds": []string{first.String()},
		"defaultEscalation": []any{
			map[string]any{"afterMinutes": 5, "webhookIds": []string{pager.String()}}, map[string]any{"afterMinutes": 15, "teams": []string{"bosses"}},
		},
	})
	w.fail(w.ch.Now(t), "left", "taken")
	w.later(5 * time.Second)
	w.tick()
	w.deliverAll()
	of := func(execution string) uuid.UUID {
		return w.one(`select alert_id::text from alert where execution_id = $1`, execution)
	}
	escalate := func(minutes int) {
		t.Helper()
		if _, err := w.db.Outbox().Escalate(t.Context(), new(time.Now().Add(time.Duration(minutes)*time.Minute+30*time.Second))); err != nil {
			t.Fatal(err)
		}
		w.deliverAll()
	}
	escalate(3)
	w.doTo(of("taken"), alerts.Acknowledge)
	escalate(6)
	// An edit does not change what is stored with the alert.
	put("/routing", map[string]any{"defaultWebhookIds": []string{first.String()}})
	escalate(16)
	w.doTo(of("left"), alerts.Resolve)
	escalate(20)
	for path, want := range map[string][]string{
		"/first": {"fired", "fired"}, "/pager": {"escalated", "resolved"}, "/boss": {"escalated"},
	} {
		if got := l.types(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	for _, e := range slices.Concat(l.got["/pager"], l.got["/boss"]) {
		if e.Data.Alert.ID != of("left").String() {
			t.Errorf("%+v is not about the alert that nobody took", e)
		}
	}
	w.wantColumn("left", unsettledOutbox)
	w.wantColumn("steps that are left", `select after_minutes::text from alert_escalation where due_at is not null`)
	answer := admin.must(http.StatusOK, http.MethodGet, "/notifications?reason=ESCALATED", nil)
	if items, _ := answer.body["items"].([]any); len(items) != 2 {
		t.Errorf("listed: %v", answer.body)
	}
}

// TestAPagerThatWasOffGetsWhatIsStillOfUse escalates alerts to a webhook that is off; some of them
// were handled long ago and one just now.
func TestAPagerThatWasOffGetsWhatIsStillOfUse(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	pager := w.chooses(l, "pager", nil)
	w.armed(w.rule(w.chooses(l, "first", nil)), w.ch.Now(t)-int64(time.Minute))
	w.raise("fires", "just acknowledged", "acknowledged", "resolved")
	of := func(execution string) uuid.UUID {
		return w.one(`select alert_id::text from alert where execution_id = $1`, execution)
	}
	w.exec(`update alert set routing = jsonb_build_object('version', 2, 'defaultWebhookIds', '[]'::jsonb, 'defaultEscalation', jsonb_build_array(
		jsonb_build_object('afterMinutes', 5, 'webhookIds', jsonb_build_array($1::text))))`, pager)
	w.exec(`insert into alert_escalation (alert_id, tenant_id, after_minutes, due_at) select alert_id, tenant_id, 5, now() from alert`)
	w.exec(`update webhook set enabled = false, version = version + 1 where webhook_id = $1`, pager)
	if done, err := w.db.Outbox().Escalate(t.Context(), nil); err != nil || done.Due[pager] != 4 {
		t.Fatalf("%+v, %v", done, err)
	}
	w.doTo(of("just acknowledged"), alerts.Acknowledge)
	w.doTo(of("acknowledged"), alerts.Acknowledge)
	w.doTo(of("resolved"), alerts.Resolve)
	w.exec(`update alert set acknowledged_at = acknowledged_at - interval '11 minutes', resolved_at = resolved_at - interval '11 minutes' where alert_id <> $1`, of("just acknowledged"))
	w.exec(`update webhook set enabled = true, version = version + 1 where webhook_id = $1`, pager)
	w.deliverAll()
	if got, want := l.types("/pager"), []string{"escalated", "escalated"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.wantColumn("what became of them", `select a.execution_id || ' ' || s.status || coalesce(' by ' || nullif(s.discarded_by, ''), '')
		from settlement s join notification n using (notification_id) join alert a using (alert_id) where n.reason = 'ESCALATED' order by 1`,
		"acknowledged DISCARDED by Tocsin", "fires DELIVERED", "just acknowledged DELIVERED", "resolved DISCARDED by Tocsin")
	// A person who wants such a message gets it.
	id := notify.ID(of("resolved"), pager, notify.ReasonEscalated, 5)
	if _, err := w.db.Record(nil).Retry(t.Context(), tenant, id, "ada"); err != nil {
		t.Fatal(err)
	}
	w.deliverAll()
	if got := l.types("/pager"); len(got) != 3 {
		t.Errorf("got %q after it was sent again", got)
	}
}
