package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
)

// text makes a request, and returns what was answered as it is.
func (c *caller) text(method, path string) (status int, text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read below
	var whole bytes.Buffer
	if _, err := io.Copy(&whole, answer.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, whole.String()
}

// TestNoAnswerNamesAnotherTenantsThings asks as another tenant's administrator for all that is not one thing: lists,
// counts, groups, settings. The same question of the tenant itself shows that there is something to be named.
func TestNoAnswerNamesAnotherTenantsThings(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	elsewhere := s.elsewhere()
	s.admin.must(http.StatusOK, http.MethodPut, "/teams", map[string]any{"teams": []any{
		map[string]any{"name": "stage-team", "members": []string{adminEmail}, "webhookIds": []string{s.ids["webhooks"]}},
	}}, "If-Match", s.tag("/teams"))
	s.admin.must(http.StatusOK, http.MethodPut, "/routing", map[string]any{"routes": []any{
		map[string]any{"name": "stage-route", "webhookIds": []string{s.ids["webhooks"]}, "escalation": []any{map[string]any{"afterMinutes": 5, "teams": []string{"stage-team"}}}},
	}}, "If-Match", s.tag("/routing"))
	named := []string{"stage-team", "stage-route", adminEmail, "ConnectException", "ERP refused", "order-to-erp"}
	for _, id := range s.ids {
		named = append(named, id)
	}
	about := func(text string) (found []string) {
		for _, name := range named {
			if strings.Contains(text, name) {
				found = append(found, name)
			}
		}
		return found
	}
	search := map[string]string{"/alerts/issue": s.issue(), "/alerts/issue/notes": s.issue(), "/alerts/groups": "?by=application"}
	meaningful := 0
	for _, op := range operations(t) {
		if op.method != http.MethodGet || strings.Contains(op.path, "{") || op.ID == "streamEvents" || op.Role == access.Anyone {
			continue
		}
		path := op.path + search[op.path]
		if _, own := s.admin.text(http.MethodGet, path); len(about(own)) > 0 {
			meaningful++
		}
		if status, text := elsewhere.text(http.MethodGet, path); len(about(text)) > 0 || status >= http.StatusInternalServerError {
			t.Errorf("%s names %q of another tenant: %d %s", op.ID, about(text), status, text)
		}
	}
	if meaningful < 12 {
		t.Errorf("%d operations name something of their own tenant: too few to mean something", meaningful)
	}
}

// TestNothingRefersToAnotherTenant has another tenant's administrator name webhooks and people of this one.
func TestNothingRefersToAnotherTenant(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	elsewhere := s.elsewhere()
	hook := s.ids["webhooks"]
	tag := func(path string) []string {
		return []string{"If-Match", elsewhere.must(http.StatusOK, http.MethodGet, path, nil).header.Get("ETag")}
	}
	steps := []any{map[string]any{"afterMinutes": 5, "webhookIds": []string{hook}}}
	for name, try := range map[string]struct {
		method, path string
		body         map[string]any
		header       []string
	}{
		"a rule":                {http.MethodPost, "/rules", map[string]any{"name": "n", "fireMode": "PER_EXCHANGE", "severity": "INFO", "webhookIds": []string{hook}}, nil},
		"rules of a file":       {http.MethodPost, "/rules/apply", map[string]any{"rules": []any{map[string]any{"name": "n", "fireMode": "PER_EXCHANGE", "severity": "INFO", "webhookIds": []string{hook}}}}, nil},
		"a route":               {http.MethodPut, "/routing", map[string]any{"routes": []any{map[string]any{"name": "r", "webhookIds": []string{hook}}}}, tag("/routing")},
		"a step":                {http.MethodPut, "/routing", map[string]any{"routes": []any{map[string]any{"name": "r", "escalation": steps}}}, tag("/routing")},
		"a step of the default": {http.MethodPut, "/routing", map[string]any{"routes": []any{}, "defaultEscalation": steps}, tag("/routing")},
		"the default":           {http.MethodPut, "/routing", map[string]any{"routes": []any{}, "defaultWebhookIds": []string{hook}}, tag("/routing")},
		"a team":                {http.MethodPut, "/teams", map[string]any{"teams": []any{map[string]any{"name": "t", "webhookIds": []string{hook}}}}, tag("/teams")},
	} {
		if got := elsewhere.do(try.method, try.path, try.body, try.header...); got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError {
			t.Errorf("%s leads to another tenant's webhook: %d %v", name, got.status, got.body)
		}
	}
	// Whom an alert or a rule of this tenant would notify is not shown there, nor what a silence suppressed.
	for field, id := range map[string]string{"alertId": s.ids["alerts"], "ruleId": s.ids["rules"]} {
		elsewhere.must(http.StatusNotFound, http.MethodPost, "/routing/test", map[string]any{field: id})
		s.admin.must(http.StatusOK, http.MethodPost, "/routing/test", map[string]any{field: id})
	}
	s.admin.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "of the rule", "match": map[string]any{"rules": []string{s.ids["rules"]}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	s.alert()
	suppressing := s.column(`select distinct silence_id::text from settlement where silence_id is not null`)
	if len(suppressing) != 1 {
		t.Fatalf("silences that suppressed something: %q", suppressing)
	}
	for c, want := range map[*caller]int{elsewhere: 0, s.admin: 1} {
		list, _ := c.must(http.StatusOK, http.MethodGet, "/notifications?silenceId="+suppressing[0], nil).body["items"].([]any)
		if len(list) != want {
			t.Errorf("the silence suppressed %d messages, want %d", len(list), want)
		}
	}
	// A silence of another tenant would suppress nothing here, and its preview counts nothing.
	preview := elsewhere.must(http.StatusOK, http.MethodPost, "/silences/preview", map[string]any{"match": map[string]any{"severities": []string{"CRITICAL", "WARNING", "INFO"}}})
	own := s.admin.must(http.StatusOK, http.MethodPost, "/silences/preview", map[string]any{"match": map[string]any{"severities": []string{"CRITICAL", "WARNING", "INFO"}}})
	if preview.body["matchedAlerts"] != 0. || preview.body["alerts"] != 0. || own.body["matchedAlerts"] == 0. {
		t.Errorf("the preview of another tenant's silence: %v, that of its own: %v", preview.body, own.body)
	}
}

// TestGroupsOfAProviderMakeAlertsMine has a team be those of a group, as the provider says at the sign-in.
func TestGroupsOfAProviderMakeAlertsMine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{Name: "Example", GroupsClaim: "groups", DefaultRole: access.Operator})
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	tag := admin.must(http.StatusOK, http.MethodGet, "/teams", nil).header.Get("ETag")
	admin.must(http.StatusOK, http.MethodPut, "/teams", map[string]any{"teams": []any{
		map[string]any{"name": "integration", "groups": []string{"sre"}}, map[string]any{"name": "platform", "groups": []string{"ops"}},
	}}, "If-Match", tag)
	w.rule(w.webhook("hook"))
	w.exec(`update rule set about = '{"owner": "integration"}'`)
	w.fail(w.ch.Now(t), "a")
	w.tick()
	w.wantColumn("alerts", alertIDs, "a")
	comeIn := func(groups ...any) *caller {
		p.next(map[string]any{"sub": "grace", "email": "grace@example.com", "name": "Grace", "groups": groups}, nil)
		c := newCaller(t, base)
		c.comeIn("/")
		return c
	}
	mine := func(c *caller) int {
		items, _ := c.must(http.StatusOK, http.MethodGet, "/alerts?mine=true", nil).body["items"].([]any)
		return len(items)
	}
	first := comeIn("sre")
	if n := mine(first); n != 1 {
		t.Errorf("with the group of the owning team %d alerts are hers", n)
	}
	if n := mine(comeIn("ops")); n != 0 {
		t.Errorf("with the group of another team %d alerts are hers", n)
	}
	if n := mine(first); n != 0 {
		t.Errorf("after she has left the group, %d alerts are hers in the session before", n)
	}
}
