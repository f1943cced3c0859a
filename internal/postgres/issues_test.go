package postgres_test

import (
	"encoding/base64"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/rules"
)

// inboxOf opens a new database with one rule.
func inboxOf(t *testing.T) (*postgres.DB, *pgx.Conn) {
	t.Helper()
	url := pgtest.URL(t)
	box, err := seal.New(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), url, box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	conn := pgtest.Conn(t, url)
	if _, err := conn.Exec(t.Context(), `
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
                  interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
values ('00000000-0000-7000-8001-000000000001', 'default', 'rule', false, 'PER_EXCHANGE', 'WARNING', '{}', '{}', '', '', '[]', 10, 0, 0, 0)`); err != nil {
		t.Fatal(err)
	}
	return db, conn
}

// raised is an alert as a test writes it.
type raised struct {
	id                                       string
	severity, application, route, error, env string
	ago                                      time.Duration
	exchange                                 string
}

func insert(t *testing.T, conn *pgx.Conn, list ...raised) {
	t.Helper()
	for _, r := range list {
		if r.exchange == "" {
			r.exchange = `{}`
		}
		if _, err := conn.Exec(t.Context(), `
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
                   application, route, exchange, fired_at, signature)
values (('00000000-0000-7000-8002-' || lpad($1, 12, '0'))::uuid, 'default', '00000000-0000-7000-8001-000000000001', 1, $2, 'FIRING', 'title', '',
        'exec-' || $1, 1, $3, $4, $8::jsonb || jsonb_build_object('application', $3::text, 'route', $4::text, 'environment', $6::text), now() - $7::interval, $5)`,
			r.id, r.severity, r.application, r.route, r.error, r.env, r.ago, r.exchange); err != nil {
			t.Fatal(err)
		}
	}
}

func alertID(n string) uuid.UUID {
	return uuid.MustParse("00000000-0000-7000-8002-000000000000"[:36-len(n)] + n)
}

func TestIssuesAreApartByPlaceAndTheMostSevereComeFirst(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "CRITICAL", application: "orders", route: "import", error: "Refused", ago: 5 * time.Hour},
		raised{id: "2", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: 2 * time.Hour},
		raised{id: "3", severity: "WARNING", application: "billing", route: "import", error: "Refused", ago: time.Minute},
		raised{id: "4", severity: "INFO", application: "billing", route: "export", error: "Refused", ago: time.Second},
		raised{id: "5", severity: "WARNING", application: "billing", route: "import", error: "Timeout", ago: 2 * time.Minute},
	)
	inbox := db.Inbox()
	if _, err := inbox.ActOnMany(t.Context(), tenant, api.BulkAction{
		ID: uuid.New(), Action: alerts.Acknowledge, Actor: "ada", Filter: alerts.Filter{IDs: []uuid.UUID{alertID("1")}},
	}); err != nil {
		t.Fatal(err)
	}
	q := api.GroupQuery{By: alerts.ByIssue, Filter: alerts.Filter{States: alerts.States()}, Actor: "bob", Limit: 2}
	var got []alerts.Group
	for {
		page, err := inbox.Groups(t.Context(), tenant, q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page...)
		if len(page) < q.Limit {
			break
		}
		last := page[len(page)-1]
		q.After = &alerts.GroupMark{Rank: last.Rank, NewestAt: last.Newest.FiredAt, Key: last.Key}
	}
	var order []string
	for _, g := range got {
		order = append(order, g.Issue.Application+" "+g.Issue.Route+" "+g.Issue.Signature)
	}
	want := []string{"orders import Refused", "billing import Refused", "billing import Timeout", "billing export Refused"}
	if !slices.Equal(order, want) {
		t.Fatalf("issues %q, want %q", order, want)
	}
	first := got[0]
	if first.Counts != (alerts.Counts{Firing: 1, Acknowledged: 1}) || first.Unread != 2 || first.Newest.ID != alertID("2") {
		t.Errorf("the issue is %+v", first)
	}
	if first.Issue.Severity != rules.Critical || got[3].Issue.Severity != rules.Info {
		t.Errorf("severities %s and %s", first.Issue.Severity, got[3].Issue.Severity)
	}
	if !slices.Equal(first.Issue.AcknowledgedBy, []string{"ada"}) || first.Issue.AcknowledgedAt == nil {
		t.Errorf("acknowledged by %q at %v", first.Issue.AcknowledgedBy, first.Issue.AcknowledgedAt)
	}
	if since := time.Since(first.FirstAt); since < 5*time.Hour || since > 6*time.Hour {
		t.Errorf("first seen %s ago", since)
	}
	if trend := first.Issue.Trend; trend[18] != 1 || trend[21] != 1 {
		t.Errorf("trend %v", trend)
	}

	// An action on one issue affects neither alerts of another place nor those of a window rule
	// whose newest exchange failed there in the same way.
	insert(t, conn, raised{id: "6", severity: "WARNING", application: "billing", route: "import", error: "Refused"})
	if _, err := conn.Exec(t.Context(), `update alert set execution_id = null, group_key = '',
		count = '{"fireMode": "COUNT_IN_WINDOW", "observed": 5, "threshold": 3, "windowSeconds": 600}' where alert_id = $1`, alertID("6")); err != nil {
		t.Fatal(err)
	}
	issue := alerts.Filter{
		States: []alerts.State{alerts.Firing}, Applications: []string{"billing"}, Routes: []string{"import"}, Signatures: []string{"Refused"},
	}
	if page, err := inbox.List(t.Context(), tenant, alerts.Query{Filter: issue, Limit: 10}); err != nil || len(page.Alerts) != 2 {
		t.Errorf("without perExchange there are %d alerts, %v", len(page.Alerts), err)
	}
	issue.PerExchange = true
	act := api.BulkAction{ID: uuid.New(), Action: alerts.Resolve, Actor: "ada", Filter: issue}
	done, err := inbox.ActOnMany(t.Context(), tenant, act)
	if err != nil || done.Changed != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	now := time.Now()
	for part, change := range map[string]func(*alerts.Filter){
		"per exchange": func(f *alerts.Filter) { f.PerExchange = false },
		"environment":  func(f *alerts.Filter) { f.Environments = []string{"staging"} },
		"execution":    func(f *alerts.Filter) { f.ExecutionID = "exec-3" },
		"correlation":  func(f *alerts.Filter) { f.CorrelationID = "c-3" },
		"attribute":    func(f *alerts.Filter) { f.Attributes = map[string]string{"region": "eu"} },
		"from":         func(f *alerts.Filter) { f.From = &now },
	} {
		other := act
		change(&other.Filter)
		if _, err := inbox.ActOnMany(t.Context(), tenant, other); fault.KindOf(err) != fault.Conflict {
			t.Errorf("the same id with another %s: %v", part, err)
		}
	}
	if again, err := inbox.ActOnMany(t.Context(), tenant, act); err != nil || again.Changed != 1 {
		t.Errorf("the same again: %+v, %v", again, err)
	}
}

func TestAlertsAreFoundByTheirExchanges(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "INFO", env: "production", ago: time.Hour, exchange: `{"correlationId": "c-1", "attributes": {"region": "eu", "tier": "gold"}}`},
		raised{id: "2", severity: "INFO", env: "staging", ago: time.Minute, exchange: `{"correlationId": "c-2", "attributes": {"region": "eu"}}`},
		raised{id: "3", severity: "INFO", env: "production", ago: time.Second},
	)
	before := time.Now().Add(-30 * time.Minute)
	for name, c := range map[string]struct {
		filter alerts.Filter
		want   []string
	}{
		"environment":         {alerts.Filter{Environments: []string{"production"}}, []string{"3", "1"}},
		"environments":        {alerts.Filter{Environments: []string{"production", "staging"}}, []string{"3", "2", "1"}},
		"execution":           {alerts.Filter{ExecutionID: "exec-2"}, []string{"2"}},
		"no such execution":   {alerts.Filter{ExecutionID: "exec-9"}, nil},
		"correlation":         {alerts.Filter{CorrelationID: "c-1"}, []string{"1"}},
		"attribute":           {alerts.Filter{Attributes: map[string]string{"region": "eu"}}, []string{"2", "1"}},
		"attributes":          {alerts.Filter{Attributes: map[string]string{"region": "eu", "tier": "gold"}}, []string{"1"}},
		"another value":       {alerts.Filter{Attributes: map[string]string{"region": "us"}}, nil},
		"from":                {alerts.Filter{From: &before}, []string{"3", "2"}},
		"to":                  {alerts.Filter{UpTo: &before}, []string{"1"}},
		"ids and environment": {alerts.Filter{IDs: []uuid.UUID{alertID("1"), alertID("2")}, Environments: []string{"staging"}}, []string{"2"}},
	} {
		page, err := db.Inbox().List(t.Context(), tenant, alerts.Query{Filter: c.filter, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got, want []uuid.UUID
		for i := range page.Alerts {
			got = append(got, page.Alerts[i].ID)
		}
		for _, id := range c.want {
			want = append(want, alertID(id))
		}
		if !slices.Equal(got, want) || page.Next != nil {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// looking returns a function that looks at the inbox, each time four seconds later.
func looking(t *testing.T, db *postgres.DB) func() api.InboxState {
	t.Helper()
	now := time.Now()
	states := db.InboxStates(func() time.Time { return now })
	return func() api.InboxState {
		t.Helper()
		now = now.Add(4 * time.Second)
		state, err := states.InboxState(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
}

func TestInboxStateNamesWhatChanged(t *testing.T) {
	db, conn := inboxOf(t)
	look := looking(t, db)
	if first := look(); first.Changed != nil {
		t.Errorf("the first look names %v", first.Changed)
	}
	look()
	insert(t, conn, raised{id: "1", severity: "INFO"}, raised{id: "2", severity: "INFO"})
	if state := look(); !slices.Equal(state.Changed, []uuid.UUID{alertID("2"), alertID("1")}) {
		t.Errorf("two new alerts are %v", state.Changed)
	}
	look()
	if _, err := conn.Exec(t.Context(), `update alert set state = 'RESOLVED', change = nextval('alert_change') where alert_id = $1`, alertID("1")); err != nil {
		t.Fatal(err)
	}
	if state := look(); !slices.Equal(state.Changed, []uuid.UUID{alertID("1")}) {
		t.Errorf("a resolved alert is %v", state.Changed)
	}
	if _, err := conn.Exec(t.Context(), `delete from alert where alert_id = $1`, alertID("1")); err != nil {
		t.Fatal(err)
	}
	if state := look(); state.Changed != nil || state.Counts.Resolved != 0 {
		t.Errorf("after alerts are gone: %+v", state)
	}
	if _, err := conn.Exec(t.Context(), `
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
select gen_random_uuid(), 'default', '00000000-0000-7000-8001-000000000001', 1, 'INFO', 'FIRING', '', '', 'many-' || i, 1, '', '', '{}'
from generate_series(0, $1::int) i`, api.MaxChanged); err != nil {
		t.Fatal(err)
	}
	if state := look(); state.Changed != nil || state.Counts.Firing != api.MaxChanged+2 {
		t.Errorf("more than can be named: %d named, %+v", len(state.Changed), state.Counts)
	}
}

// TestInboxStateNamesWhatCommitsLate has changes with a smaller number than others that were seen before,
// alone and together with a newer one.
func TestInboxStateNamesWhatCommitsLate(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn, raised{id: "1", severity: "INFO"}, raised{id: "2", severity: "INFO"})
	look := looking(t, db)
	late := pgtest.Conn(t, conn.Config().ConnString())
	exec := func(in *pgx.Conn, sql string, args ...any) {
		t.Helper()
		if _, err := in.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const change = `update alert set change = nextval('alert_change') where alert_id = $1`
	look()
	for _, alone := range []bool{true, false} {
		exec(late, "begin")
		exec(late, change, alertID("1"))
		exec(conn, change, alertID("2"))
		if state := look(); !slices.Equal(state.Changed, []uuid.UUID{alertID("2")}) {
			t.Errorf("what committed in time is %v", state.Changed)
		}
		look()
		before := look()
		exec(late, "commit")
		want := []uuid.UUID{alertID("1")}
		if !alone {
			exec(conn, change, alertID("2"))
			want = []uuid.UUID{alertID("2"), alertID("1")}
		}
		state := look()
		if state.Fingerprint == before.Fingerprint || !slices.Equal(state.Changed, want) {
			t.Errorf("alone %t: what committed late is %v, want %v; the state was %s and is %s", alone, state.Changed, want, before.Fingerprint, state.Fingerprint)
		}
		if after := look(); after.Fingerprint != state.Fingerprint || len(after.Changed) > 0 {
			t.Errorf("alone %t: without a further change, the state is %s with %v, and was %s", alone, after.Fingerprint, after.Changed, state.Fingerprint)
		}
	}
}

// TestAStateIsOfOneReplica has a change commit late, after a page has disconnected from the replica that saw the newest
// one and before another replica looks. The state there must not seem to be the one that the page has seen.
func TestAStateIsOfOneReplica(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn, raised{id: "1", severity: "INFO"}, raised{id: "2", severity: "INFO"})
	here, there := looking(t, db), looking(t, db)
	late := pgtest.Conn(t, conn.Config().ConnString())
	exec := func(in *pgx.Conn, sql string, args ...any) {
		t.Helper()
		if _, err := in.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const change = `update alert set change = nextval('alert_change') where alert_id = $1`
	there()
	exec(late, "begin")
	exec(late, change, alertID("1"))
	exec(conn, change, alertID("2"))
	seen := here().Fingerprint
	exec(late, "commit")
	if state := there(); state.Fingerprint == seen {
		t.Errorf("a replica that had looked before says %s, which the page has seen", seen)
	}
	if state := looking(t, db)(); state.Fingerprint == seen {
		t.Errorf("a replica that has just started says %s, which the page has seen", seen)
	}
}

// TestGroupsSumUpTheirDeliveries has alerts of two issues with messages in several states.
func TestGroupsSumUpTheirDeliveries(t *testing.T) {
	db, conn := inboxOf(t)
	orders := raised{severity: "WARNING", application: "orders", route: "import", error: "Refused"}
	for i, ago := range []time.Duration{time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour} {
		orders.id, orders.ago = strconv.Itoa(i+1), ago
		insert(t, conn, orders)
	}
	insert(t, conn, raised{id: "6", severity: "INFO", application: "billing", route: "import", error: "Refused"})
	deliver(t, conn, "1", "DELIVERED", "DELIVERED")
	deliver(t, conn, "2", "EXHAUSTED")
	deliver(t, conn, "3", "RETRYING", "DELIVERED")
	deliver(t, conn, "4", "SUPPRESSED", "PENDING", "DISCARDED")
	deliver(t, conn, "5", "FAILED")
	deliver(t, conn, "6", "DELIVERED")
	if _, err := conn.Exec(t.Context(), `update alert set state = 'RESOLVED' where alert_id = $1`, alertID("5")); err != nil {
		t.Fatal(err)
	}
	inbox := db.Inbox()
	for by, want := range map[alerts.Fold][]api.GroupDeliveries{
		alerts.ByIssue: {
			{Alerts: 4, DeliveryCounts: api.DeliveryCounts{Total: 8, Delivered: 3, Retrying: 1, Failed: 1, Suppressed: 1, Discarded: 1}},
			{Alerts: 1, DeliveryCounts: api.DeliveryCounts{Total: 1, Delivered: 1}},
		},
		alerts.ByRule:      {{Alerts: 5, DeliveryCounts: api.DeliveryCounts{Total: 9, Delivered: 4, Retrying: 1, Failed: 1, Suppressed: 1, Discarded: 1}}},
		alerts.BySignature: {{Alerts: 5, DeliveryCounts: api.DeliveryCounts{Total: 9, Delivered: 4, Retrying: 1, Failed: 1, Suppressed: 1, Discarded: 1}}},
	} {
		q := api.GroupQuery{By: by, Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, Actor: "ada", Limit: 10}
		groups, err := inbox.Groups(t.Context(), tenant, q)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := inbox.Deliveries(t.Context(), tenant, q, groups)
		if err != nil || len(counts) != len(want) || len(groups) != len(want) {
			t.Fatalf("by %s: %+v of %d groups, %v", by, counts, len(groups), err)
		}
		for i, g := range groups {
			got := counts[g.Key]
			if waits := got.Retrying > 0; waits != (got.NextAttemptAt != nil) {
				t.Errorf("by %s: the next attempt is at %v", by, got.NextAttemptAt)
			}
			got.NextAttemptAt = nil
			if got != want[i] {
				t.Errorf("by %s, group %d: %+v, want %+v", by, i, got, want[i])
			}
		}
	}
}

// deliver writes messages about an alert, each to a webhook of its own, in some states.
func deliver(t *testing.T, conn *pgx.Conn, alert string, states ...string) {
	t.Helper()
	for _, state := range states {
		id := uuid.New()
		if _, err := conn.Exec(t.Context(), `insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select $1, tenant_id, alert_id, rule_id, $1, 'FIRED' from alert where alert_id = $2`, id, alertID(alert)); err != nil {
			t.Fatal(err)
		}
		store := `insert into settlement (notification_id, tenant_id, status, silence_id, discarded_by)
			values ($1, 'default', $2, case when $2::text = 'SUPPRESSED' then $1::uuid end, case when $2::text = 'DISCARDED' then 'ada' end)`
		if state == "PENDING" || state == "RETRYING" {
			store = `insert into outbox (notification_id, webhook_id, attempts) values ($1, $1, case when $2::text = 'RETRYING' then 2 else 0 end)`
		}
		if _, err := conn.Exec(t.Context(), store, id, state); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThePageOfALargeGroupCountsTheNewestDeliveries has more alerts on a page than are counted. A
// small group is counted as a whole nevertheless.
func TestThePageOfALargeGroupCountsTheNewestDeliveries(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "WARNING", error: "Small", ago: 30 * time.Hour}, raised{id: "2", severity: "WARNING", error: "Small", ago: 40 * time.Hour},
		raised{id: "3", severity: "WARNING", error: "Large", ago: 50 * time.Hour},
	)
	deliver(t, conn, "2", "FAILED")
	deliver(t, conn, "3", "FAILED")
	if _, err := conn.Exec(t.Context(), `
		insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange, fired_at, signature)
		select uuidv7(), tenant_id, rule_id, 1, severity, state, title, message, 'many-' || i, 1, application, route, exchange, now() - i * interval '1 second', signature
		from alert, generate_series(1, 6000) i where alert_id = $1`, alertID("3")); err != nil {
		t.Fatal(err)
	}
	q := api.GroupQuery{By: alerts.ByIssue, Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, Actor: "ada", Limit: 10}
	groups, err := db.Inbox().Groups(t.Context(), tenant, q)
	if err != nil || len(groups) != 2 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	counts, err := db.Inbox().Deliveries(t.Context(), tenant, q, groups)
	if err != nil {
		t.Fatal(err)
	}
	large, small := counts[groups[0].Key], counts[groups[1].Key]
	if small.Alerts != 2 || small.Failed != 1 || large.Alerts != 4998 || large.Failed != 0 {
		t.Errorf("small group %+v, large group %+v", small, large)
	}
}
