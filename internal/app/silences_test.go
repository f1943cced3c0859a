package app_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/notify"
)

const silencedStatuses = `select n.reason || ' ' || s.status from notification n join notification_status s using (notification_id) order by n.created_at, n.notification_id`

// TestASilenceSuppressesMessagesAndNoAlerts follows alerts through a silence, from an operator's
// use of the API to what a receiver gets.
func TestASilenceSuppressesMessagesAndNoAlerts(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	rule := w.rule(w.chooses(l, "all", nil, notify.Events()...))
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	base, _ := w.guarded()
	operator := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("operator", access.Operator)
	before := w.raise("before")[0]
	body := map[string]any{
		"name": "ERP maintenance", "reason": "ERP is upgraded", "match": map[string]any{"rules": []string{rule.ID.String()}},
		"endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	made := operator.must(http.StatusCreated, http.MethodPost, "/silences", body)
	within := w.raise("within")[0]
	w.doTo(within, alerts.Acknowledge)
	w.deliverAll()
	w.wantColumn("alerts", `select state from alert order by state`, "ACKNOWLEDGED", "FIRING")
	if got, want := l.types("/all"), []string{"fired"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	shown := operator.must(http.StatusOK, http.MethodGet, "/alerts/"+within.String()+"/notifications", nil)
	items, _ := shown.body["items"].([]any)
	for _, item := range items {
		n, _ := item.(map[string]any)
		by, _ := n["suppressedBy"].(map[string]any)
		if n["status"] != "SUPPRESSED" || by["id"] != made.text("id") || by["name"] != "ERP maintenance" || by["createdBy"] != "token operator" || by["endsAt"] == nil {
			t.Errorf("shown as %v", n)
		}
	}
	one := operator.must(http.StatusOK, http.MethodGet, "/alerts/"+within.String(), nil)
	if d, _ := one.body["delivery"].(map[string]any); d["suppressed"] != 2.0 || d["total"] != 2.0 {
		t.Errorf("the alert shows %v", d)
	}
	operator.must(http.StatusOK, http.MethodPost, "/silences/"+made.text("id")+"/end", nil)
	w.doTo(within, alerts.Resolve) // of which nobody was notified
	w.doTo(before, alerts.Resolve)
	w.deliverAll()
	if got, want := l.types("/all"), []string{"fired", "resolved"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	w.wantColumn("messages", silencedStatuses, "FIRED DELIVERED", "FIRED SUPPRESSED", "ACKNOWLEDGED SUPPRESSED", "RESOLVED SUPPRESSED", "RESOLVED DELIVERED")
	if got := operator.must(http.StatusOK, http.MethodGet, "/silences/"+made.text("id"), nil); got.body["suppressed"] != 3.0 || got.text("state") != "PAST" {
		t.Errorf("the silence: %v", got.body)
	}
	listed := func(c *caller, want int) {
		t.Helper()
		list, _ := c.must(http.StatusOK, http.MethodGet, "/notifications?silenceId="+made.text("id"), nil).body["items"].([]any)
		if len(list) != want {
			t.Errorf("the silence has suppressed %d messages, want %d: %v", len(list), want, list)
		}
	}
	listed(operator, 3)
	other := operator.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{"name": "another", "match": body["match"], "startsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "endsAt": time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)})
	if list, _ := operator.must(http.StatusOK, http.MethodGet, "/notifications?silenceId="+other.text("id"), nil).body["items"].([]any); len(list) != 0 {
		t.Errorf("a silence that has not begun has suppressed %v", list)
	}
	// A user sends one all the same, and its receiver is notified of what follows.
	first := w.column(`select notification_id::text from notification where alert_id = $1 and reason = 'FIRED'`, within)[0]
	operator.must(http.StatusOK, http.MethodPost, "/notifications/"+first+"/retry", nil)
	w.deliverAll()
	listed(operator, 2)
	w.undone(alerts.Resolve, w.raise("after")[0])
	w.deliverAll()
	if got, want := l.types("/all"), []string{"fired", "resolved", "fired", "fired", "resolved", "reopened"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestThePreviewListsTheWindowsOfTheSilence has a recurrence that starts in many years, at a change of
// clocks, and ends within its second window.
func TestThePreviewListsTheWindowsOfTheSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	viewer := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("viewer", access.Viewer)
	windows := func(ends string) any {
		return viewer.must(http.StatusOK, http.MethodPost, "/silences/preview", map[string]any{
			"match": map[string]any{"severities": []string{"INFO"}}, "startsAt": "2099-03-28T12:00:00Z", "endsAt": ends,
			"recurrence": map[string]any{"timeZone": "Europe/Berlin", "weekdays": []string{"SAT", "SUN"}, "from": "22:00", "durationMinutes": 480},
		}).body["windows"]
	}
	want := []any{
		map[string]any{"from": "2099-03-28T21:00:00Z", "until": "2099-03-29T05:00:00Z"},
		map[string]any{"from": "2099-03-29T20:00:00Z", "until": "2099-03-30T00:00:00Z"},
	}
	if diff := cmp.Diff(any(want), windows("2099-03-30T00:00:00Z")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(any([]any{}), windows("2099-03-28T20:00:00Z")); diff != "" {
		t.Errorf("it ends before its first window:\n%s", diff)
	}
}

// TestNoSilenceReachesBeyondTheYears has instants that no answer could show, and silences that would have such windows: one
// of them in the list would hide all others.
func TestNoSilenceReachesBeyondTheYears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	operator := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("operator", access.Operator)
	recurring := func(starts, ends string) map[string]any {
		body := map[string]any{
			"name": starts + ends, "match": map[string]any{"severities": []string{"INFO"}},
			"recurrence": map[string]any{"timeZone": "UTC", "weekdays": []string{"MON"}, "from": "22:00", "durationMinutes": 480},
		}
		if starts != "" {
			body["startsAt"] = starts
		}
		if ends != "" {
			body["endsAt"] = ends
		}
		return body
	}
	for _, c := range []struct {
		starts, ends, field string
	}{
		{"", "9999-12-31T23:59:59-05:00", "endsAt"},
		{"9999-12-31T23:59:59-05:00", "", "startsAt"},
		{"9999-12-31T12:00:00Z", "", "startsAt"},
	} {
		refused := operator.must(http.StatusBadRequest, http.MethodPost, "/silences", recurring(c.starts, c.ends))
		if field := refused.body["errors"].([]any)[0].(map[string]any)["field"]; field != c.field {
			t.Errorf("refused: %v, want %s", refused.body, c.field)
		}
	}
	operator.must(http.StatusBadRequest, http.MethodPost, "/silences/preview", recurring("9999-12-31T12:00:00Z", ""))
	operator.must(http.StatusCreated, http.MethodPost, "/silences", recurring("9998-12-31T12:00:00Z", "9999-12-31T23:59:59Z"))
	operator.must(http.StatusOK, http.MethodGet, "/silences", nil)
}
