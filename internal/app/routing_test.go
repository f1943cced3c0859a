package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/notify"
	"tocsin/rules"
)

// TestAlertsAreRoutedByThePolicy follows alerts through a routing policy, from an editor's use of
// the API to what receivers get.
func TestAlertsAreRoutedByThePolicy(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	events := notify.Events()
	team, archive, other := w.chooses(l, "team", nil, events...), w.chooses(l, "archive", nil), w.chooses(l, "other", nil)
	rule := w.ruleOf(rules.Definition{Name: "Orders", UseRoutingPolicy: true, Labels: map[string]string{"team": "erp"}})
	direct := w.rule(other)
	for _, r := range []rules.Rule{rule, direct} {
		w.armed(r, w.ch.Now(t)-int64(time.Minute))
	}
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	editor := admin.withToken("editor", access.Editor)
	about := func(name string, webhook uuid.UUID, goesOn bool, match map[string]any) map[string]any {
		return map[string]any{"name": name, "match": match, "webhookIds": []string{webhook.String()}, "continue": goesOn}
	}
	policy := func(routes ...map[string]any) map[string]any { return map[string]any{"routes": routes} }
	put := func(body map[string]any) {
		t.Helper()
		tag := editor.must(http.StatusOK, http.MethodGet, "/routing", nil).header.Get("ETag")
		editor.must(http.StatusOK, http.MethodPut, "/routing", body, "If-Match", tag)
	}
	answers := func() []string {
		return w.column(`select a.execution_id || ' ' || coalesce(a.routing->>'version', 'none') || ' ' || coalesce((select string_agg(r->>'name', '+') from jsonb_array_elements(a.routing->'routes') r), '-')
			from alert a where rule_id = $1 order by a.fired_at, a.execution_id`, rule.ID)
	}
	ofRule := func(execution string) uuid.UUID {
		return w.one(`select alert_id::text from alert where rule_id = $1 and execution_id = $2`, rule.ID, execution)
	}

	// Nobody has edited the policy: the alert exists, and says that no route matched.
	w.fail(w.ch.Now(t), "first")
	w.later(5 * time.Second)
	w.tick()
	one := editor.must(http.StatusOK, http.MethodGet, "/alerts/"+ofRule("first").String(), nil)
	if r, _ := one.body["routing"].(map[string]any); r["answer"] != "NO_ROUTE" || r["policyVersion"] != 1.0 {
		t.Errorf("the first alert shows %v", one.body["routing"])
	}
	w.wantColumn("messages of the first", `select w.name from notification join webhook w using (webhook_id)`, "other")

	// Two routes to one webhook lead to one message; the rule's label decides.
	erp := map[string]any{"labels": []any{map[string]any{"key": "team", "op": "EQUALS", "value": "erp"}}}
	put(policy(
		about("archive", archive, true, map[string]any{}),
		about("all to the team", team, true, map[string]any{"severities": []string{"CRITICAL"}}),
		about("erp", team, false, erp),
		about("rest", other, false, map[string]any{}),
	))
	w.fail(w.ch.Now(t), "second")
	w.later(5 * time.Second)
	w.tick()
	w.deliverAll()
	second := ofRule("second")
	if got, want := append(l.types("/team"), l.types("/archive")...), []string{"fired", "fired"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}

	// An edit does not affect alerts that have fired: their later messages go where the first went.
	put(policy(about("rest", other, false, map[string]any{})))
	w.doTo(second, alerts.Acknowledge)
	w.fail(w.ch.Now(t), "third")
	w.later(5 * time.Second)
	w.tick()
	w.deliverAll()
	if got, want := l.types("/team"), []string{"fired", "acknowledged"}; !slices.Equal(got, want) {
		t.Errorf("the team got %q, want %q", got, want)
	}
	if got := answers(); !slices.Equal(got, []string{"first 1 -", "second 2 archive+all to the team+erp", "third 3 rest"}) {
		t.Errorf("stored %q", got)
	}
	if got := len(l.types("/other")); got != 4 { // three alerts of the rule that uses it, and the third
		t.Errorf("the other webhook got %d messages, want 4", got)
	}

	// A disabled webhook keeps what is routed to it; a silence suppresses what is routed.
	editor.must(http.StatusOK, http.MethodPost, "/webhooks/"+other.String()+"/disable", nil)
	admin.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "quiet", "match": map[string]any{"rules": []string{direct.ID.String()}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	w.fail(w.ch.Now(t), "fourth")
	w.later(5 * time.Second)
	w.tick()
	w.deliverAll()
	w.wantColumn("messages of the fourth", `select case when r.rule_id = '`+rule.ID.String()+`' then 'routed ' else 'direct ' end || s.status
		from notification n join notification_status s using (notification_id) join rule r on r.rule_id = n.rule_id
		join alert a on a.alert_id = n.alert_id where a.execution_id = 'fourth' order by 1`, "direct SUPPRESSED", "routed PENDING")

	// Who would be notified of this, and why?
	tested := editor.must(http.StatusOK, http.MethodPost, "/routing/test", map[string]any{"alertId": second.String()})
	stored, _ := tested.body["stored"].(map[string]any)
	if tested.text("answer") != "ROUTED" || stored["policyVersion"] != 2.0 || len(stored["routes"].([]any)) != 3 {
		t.Errorf("of the second alert: %v", tested.body)
	}
	if hooks := fmt.Sprint(tested.body["webhooks"]); !strings.Contains(hooks, "name:other") || !strings.Contains(hooks, "enabled:false") {
		t.Errorf("of the second alert: %v", hooks)
	}
}

// TestTheRoutingPolicyIsTested queries who would be notified, in each possible way, and checks what
// is rejected.
func TestTheRoutingPolicyIsTested(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("erp team").String()
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	viewer, editor := admin.withToken("viewer", access.Viewer), admin.withToken("editor", access.Editor)
	routes := func(hook string) map[string]any {
		return map[string]any{"routes": []any{
			map[string]any{"name": "sap", "match": map[string]any{"scope": map[string]any{"applications": []string{"sap-*"}}, "severities": []string{"CRITICAL"}}, "webhookIds": []string{hook}},
			map[string]any{"name": "erp", "match": map[string]any{"scope": map[string]any{"routes": []string{"order-*"}}}, "webhookIds": []string{hook}},
			map[string]any{"name": "noise", "match": map[string]any{"filter": map[string]any{"errorMessageContains": "retry"}}},
		}}
	}
	first := editor.must(http.StatusOK, http.MethodGet, "/routing", nil)
	if first.header.Get("ETag") != `"1"` || first.body["version"] != 1.0 || first.body["updatedAt"] != nil {
		t.Errorf("at first: %v", first.body)
	}
	editor.must(http.StatusPreconditionRequired, http.MethodPut, "/routing", routes(hook))
	viewer.must(http.StatusForbidden, http.MethodPut, "/routing", routes(hook), "If-Match", `"1"`)
	refused := editor.must(http.StatusBadRequest, http.MethodPut, "/routing", routes(uuid.NewString()), "If-Match", `"1"`)
	if text := fmt.Sprint(refused.body["errors"]); !strings.Contains(text, "routes[0].webhookIds[0]") || !strings.Contains(text, "This webhook does not exist; choose another one") {
		t.Errorf("a webhook that there is not: %v", text)
	}
	made := editor.must(http.StatusOK, http.MethodPut, "/routing", routes(hook), "If-Match", `"1"`)
	if made.header.Get("ETag") != `"2"` || made.text("updatedBy") != "token editor" {
		t.Errorf("made: %v", made.body)
	}
	editor.must(http.StatusPreconditionFailed, http.MethodPut, "/routing", routes(hook), "If-Match", `"1"`)
	editor.must(http.StatusConflict, http.MethodDelete, "/webhooks/"+hook, nil)
	rule := editor.must(http.StatusCreated, http.MethodPost, "/rules", map[string]any{
		"name": "own", "fireMode": "PER_EXCHANGE", "severity": "INFO", "webhookIds": []string{hook},
	}).text("id")
	window := map[string]any{
		"name": "window", "fireMode": "COUNT_IN_WINDOW", "threshold": 5, "windowSeconds": 60, "severity": "CRITICAL", "useRoutingPolicy": true, "groupBy": "ROUTE",
	}
	for name, c := range map[string]struct {
		body map[string]any
		want string
	}{
		"an exchange": {
			map[string]any{"exchange": map[string]any{"application": "sap-1", "route": "order-in"}},
			"ROUTED sap=TAKEN erp=NOT_REACHED noise=NOT_REACHED erp team via sap",
		},
		"of another severity": {
			map[string]any{"severity": "INFO", "exchange": map[string]any{"application": "sap-1", "route": "order-in"}},
			"ROUTED sap=NOT_MATCHED severities erp=TAKEN noise=NOT_REACHED erp team via erp",
		},
		"nobody": {
			map[string]any{"exchange": map[string]any{"errorMessage": "will retry"}},
			"ROUTED sap=NOT_MATCHED scope.applications erp=NOT_MATCHED scope.routes noise=TAKEN",
		},
		"no route": {
			map[string]any{"labels": map[string]string{"a": "b"}},
			"NO_ROUTE sap=NOT_MATCHED scope.applications erp=NOT_MATCHED scope.routes noise=NOT_MATCHED filter.errorMessageContains",
		},
		"a rule that names webhooks": {map[string]any{"ruleId": rule}, "WEBHOOKS erp team via "},
		"a draft of a window rule": {
			map[string]any{"rule": window, "exchange": map[string]any{"route": "order-in", "application": "sap-1", "errorMessage": "retry"}},
			"ROUTED sap=NOT_MATCHED scope.applications erp=TAKEN noise=NOT_REACHED erp team via erp",
		},
		"a draft of the policy": {
			map[string]any{"policy": map[string]any{"routes": []any{}, "defaultWebhookIds": []string{hook}}},
			"DEFAULT erp team via ",
		},
	} {
		got := viewer.must(http.StatusOK, http.MethodPost, "/routing/test", c.body)
		if text := summary(got.body); text != c.want {
			t.Errorf("%s: %s\nwant %s", name, text, c.want)
		}
		if _, stored := got.body["policyVersion"]; stored != (c.body["policy"] == nil && c.body["ruleId"] == nil) {
			t.Errorf("%s: version %v", name, got.body["policyVersion"])
		}
	}
	for what, body := range map[string]map[string]any{
		"two things at once":      {"ruleId": rule, "severity": "INFO"},
		"a policy that is wrong":  {"policy": routes(uuid.NewString())},
		"a rule that is wrong":    {"rule": map[string]any{"name": "a", "fireMode": "PER_EXCHANGE", "severity": "INFO", "threshold": 1}},
		"an unknown status":       {"exchange": map[string]any{"status": "RUNNING"}},
		"an alert and a severity": {"alertId": uuid.NewString(), "severity": "INFO"},
	} {
		if got := viewer.do(http.MethodPost, "/routing/test", body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", what, got.status, got.body)
		}
	}
	viewer.must(http.StatusNotFound, http.MethodPost, "/routing/test", map[string]any{"alertId": uuid.NewString()})
	// An active silence is reported as well.
	admin.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "quiet", "match": map[string]any{"severities": []string{"CRITICAL"}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	got := viewer.must(http.StatusOK, http.MethodPost, "/routing/test", map[string]any{})
	if by, _ := got.body["suppressedBy"].(map[string]any); by["name"] != "quiet" {
		t.Errorf("under a silence: %v", got.body)
	}
	// Another tenant has a policy of its own.
	if other := (&stage{world: w, base: base}).elsewhere().must(http.StatusOK, http.MethodGet, "/routing", nil); other.body["version"] != 1.0 {
		t.Errorf("another tenant's: %v", other.body)
	}
}

// summary returns a response about routing as one line.
func summary(body map[string]any) string {
	text := fmt.Sprint(body["answer"])
	list := func(of any) []any { items, _ := of.([]any); return items }
	for _, item := range list(body["routes"]) {
		r, _ := item.(map[string]any)
		text += fmt.Sprintf(" %v=%v", r["name"], r["verdict"])
		if r["verdict"] == "NOT_MATCHED" && len(list(r["unmet"])) > 0 {
			text += fmt.Sprintf(" %v", list(r["unmet"])[0])
		}
	}
	for _, item := range list(body["webhooks"]) {
		h, _ := item.(map[string]any)
		names := []string{}
		for _, name := range list(h["routes"]) {
			names = append(names, fmt.Sprint(name))
		}
		text += fmt.Sprintf(" %v via %s", h["name"], strings.Join(names, "+"))
	}
	return text
}
