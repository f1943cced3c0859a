package postgres_test

import (
	"slices"
	"testing"

	"tocsin/evaluator/resolution"
)

// TestWhoHearsThatAnAlertIsTooOld lets an alert resolve by its age. The webhooks are notified if
// the rule says so; receivers that keep an incident open until it ends also if they chose that
// event.
func TestWhoHearsThatAnAlertIsTooOld(t *testing.T) {
	t.Parallel()
	const chose = `update webhook set events = '{ACKNOWLEDGED,RESOLVED}'`
	for name, c := range map[string]struct {
		setUp string
		want  []string
	}{
		"nobody":                          {`select`, nil},
		"a program that chose it":         {chose, nil},
		"one that knows alerts by a key":  {chose + `, preset = 'pagerduty'`, []string{"RESOLVED ages"}},
		"which did not choose it":         {`update webhook set events = '{ACKNOWLEDGED}', preset = 'pagerduty'`, nil},
		"a chat":                          {chose + `, preset = 'discord'`, nil},
		"Slack":                           {chose + `, kind = 'slack'`, nil},
		"one that was deleted":            {chose + `, preset = 'jira', deleted_at = now(), enabled = false`, nil},
		"of another tenant":               {chose + `, preset = 'jira', tenant_id = 'another'`, nil},
		"where the rule wants it":         {`update rule set notify_on_resolve = true`, []string{"RESOLVED"}},
		"where both want it":              {chose + `, preset = 'jira'; update rule set notify_on_resolve = true`, []string{"RESOLVED"}},
		"one that was notified of no one": {chose + `, preset = 'jira'; update notification set webhook_id = gen_random_uuid()`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEscalating(t)
			e.exec(t, `update rule set resolution = '{"afterSeconds": 60}'`)
			e.exec(t, `update alert set fired_at = now() - interval '2 minutes'`)
			e.exec(t, c.setUp)
			store := e.db.Resolution()
			store.Keyed = []string{"jira", "pagerduty"}
			of := &resolution.Rule{ID: e.rule, TenantID: tenant}
			if n, err := store.ResolveAged(t.Context(), of, 10); err != nil || n != 1 {
				t.Fatalf("%d are resolved, %v", n, err)
			}
			if n, err := store.ResolveAged(t.Context(), of, 10); err != nil || n != 0 {
				t.Fatalf("once more %d are resolved, %v", n, err)
			}
			if got := column(t, e.conn, `select n.reason || case when o.expires_at is null then '' else ' ages' end from notification n join outbox o using (notification_id)
				where n.reason <> 'FIRED' and n.webhook_id = '`+e.webhook.String()+`'`); !slices.Equal(got, c.want) {
				t.Errorf("written: %q, want %q", got, c.want)
			}
		})
	}
}
