package app_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/notify"
	"tocsin/rules"
)

// TestQuietHours follows alerts from a webhook that is created by the API, through the evaluator,
// to what its receiver gets during the quiet hours and after them.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("admin", access.Admin)
	now := time.Now().UTC().Truncate(time.Minute)
	ends := now.Add(2 * time.Hour)
	hours := map[string]any{"timeZone": "UTC", "weekdays": rules.Weekdays(), "from": now.Add(-time.Hour).Format("15:04"), "to": ends.Format("15:04")}
	body := map[string]any{"name": "team", "kind": "generic", "url": l.url + "/team", "quietHours": []any{hours}}
	bad := map[string]any{"name": "never", "kind": "generic", "url": l.url + "/never", "quietHours": []any{
		map[string]any{"timeZone": "UTC", "weekdays": rules.Weekdays(), "from": "00:00", "to": "24:00"},
	}}
	admin.must(http.StatusBadRequest, http.MethodPost, "/webhooks", bad)
	made := admin.must(http.StatusCreated, http.MethodPost, "/webhooks", body)
	if got, _ := made.body["quietHours"].([]any); len(got) != 1 {
		t.Errorf("stored: %v", made.body["quietHours"])
	}
	hook := w.one(`select webhook_id::text from webhook where name = 'team'`)
	other := w.chooses(l, "other", nil)
	rule := w.rule(hook, other)
	w.exec(`update rule set severity = 'WARNING'`)
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	w.raise("fires", "looked after", "sent by hand")
	w.deliverAll()
	if got := l.types("/team"); len(got) != 0 {
		t.Fatalf("within the quiet hours it got %q", got)
	}
	if got := l.types("/other"); len(got) != 3 {
		t.Errorf("another webhook got %q", got)
	}
	listed := admin.must(http.StatusOK, http.MethodGet, "/notifications?webhookId="+hook.String(), nil)
	items, _ := listed.body["items"].([]any)
	for _, item := range items {
		n, _ := item.(map[string]any)
		if n["status"] != "PENDING" || n["quietUntil"] != ends.Format(time.RFC3339) || n["nextAttemptAt"] != nil {
			t.Errorf("listed: %v", n)
		}
	}
	if len(items) != 3 {
		t.Errorf("%d are listed", len(items))
	}
	inbox := admin.must(http.StatusOK, http.MethodGet, "/alerts", nil)
	for _, item := range inbox.body["items"].([]any) {
		if d, _ := item.(map[string]any)["delivery"].(map[string]any); d["quietUntil"] != ends.Format(time.RFC3339) {
			t.Errorf("in the inbox: %v", d)
		}
	}
	by := func(execution string) string {
		return w.one(`select alert_id::text from alert where execution_id = $1`, execution).String()
	}
	sent := notify.ID(w.one(`select alert_id::text from alert where execution_id = $1`, "sent by hand"), hook, notify.ReasonFired, 0)
	admin.must(http.StatusOK, http.MethodPost, "/notifications/"+sent.String()+"/retry", nil)
	w.deliverAll()
	if got := l.types("/team"); !slices.Equal(got, []string{"fired"}) || l.got["/team"][0].Data.Alert.ID != by("sent by hand") {
		t.Errorf("by hand it got %q", got)
	}
	w.doTo(w.one(`select alert_id::text from alert where execution_id = $1`, "looked after"), alerts.Acknowledge)
	due, err := w.db.Outbox().EndQuiet(t.Context(), new(ends.Add(time.Second)))
	if err != nil || due[hook] != 1 {
		t.Errorf("%v, %v", due, err)
	}
	w.deliverAll()
	if got := l.types("/team"); !slices.Equal(got, []string{"fired", "fired"}) || l.got["/team"][1].Data.Alert.ID != by("fires") {
		t.Errorf("after them it got %q", got)
	}
	ended := admin.must(http.StatusOK, http.MethodGet, "/notifications?status=DISCARDED", nil)
	items, _ = ended.body["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["lastError"] != notify.NeedlessAfterQuiet {
		t.Errorf("of no use: %v", items)
	}
	w.wantColumn("left", unsettledOutbox)
}
