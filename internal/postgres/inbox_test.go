package postgres_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/rules"
)

const tenant = "default"

// many is the number of alerts in a busy inbox.
const many = 100_000

// busy fills the database at url with many alerts, six seconds apart: three of
// seven fire, three are resolved, and one is acknowledged.
func busy(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	// A vacuum marks all pages without recent changes as visible to all.
	for _, statement := range []string{
		`set synchronous_commit = on`, `
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
                  interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
select ('00000000-0000-7000-8001-' || lpad(i::text, 12, '0'))::uuid, 'default', 'rule ' || i, false, 'PER_EXCHANGE', 'WARNING', '{}', '{}', '', '',
       case when i % 10 = 0 then '[{"kind": "team", "name": "operations"}]' else '[]' end::jsonb, 10, 0, 0, 0
from generate_series(1, 200) i`, fmt.Sprintf(`
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
                   application, route, exchange, fired_at, signature, resolved_at)
select ('00000000-0000-7000-8002-' || lpad(i::text, 12, '0'))::uuid, 'default',
       ('00000000-0000-7000-8001-' || lpad((1 + i * 7919 %% 200)::text, 12, '0'))::uuid, 1,
       (array['CRITICAL', 'WARNING', 'WARNING', 'INFO', 'INFO'])[1 + i * 31 %% 5],
       (array['FIRING', 'FIRING', 'FIRING', 'ACKNOWLEDGED', 'RESOLVED', 'RESOLVED', 'RESOLVED'])[1 + i * 37 %% 7],
       'app-' || i * 13 %% 50 || ' · route-' || i * 17 %% 500 || ': FAILED', 'connection ' || i || ' to erp-' || i * 11 %% 100 || ' refused',
       'exec-' || i, i, 'app-' || i * 13 %% 50, 'route-' || i * 17 %% 500,
       jsonb_build_object('errorType', 'ConnectException', 'errorStack', repeat('at com.example.ErpClient.post(' || i || ')' || chr(10), 40)),
       now() - (%[1]d - i) * interval '6 seconds', 'ConnectException: refused by #' || i * 11 %% 100,
       case when i * 37 %% 7 > 3 then now() end
from generate_series(1, %[1]d) i`, many), `
insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by)
select alert_id, tenant_id, case when start_time_ns % 100 = 0 then 'ada' else 'bo' end, '' from alert where start_time_ns % 20 = 0`,
		`vacuum analyze alert`, `analyze alert_assignment`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// plan is the executed plan of a statement.
type plan struct {
	Node     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []plan
}

func (p plan) scansWhole(table string) bool {
	for _, below := range p.Plans {
		if below.scansWhole(table) {
			return true
		}
	}
	return p.Relation == table && strings.Contains(p.Node, "Seq Scan")
}

// does runs a statement, and returns its executed plan.
func does(t *testing.T, conn *pgx.Conn, sql string, args pgx.NamedArgs) plan {
	t.Helper()
	var text []byte
	if err := conn.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+sql, args).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// TestAPageOfABusyInboxReadsLittle limits the blocks that a page reads, whatever the list is
// filtered by and however far down it is, among 100,000 alerts of which about four are in a block.
// A time would depend on the machine.
func TestAPageOfABusyInboxReadsLittle(t *testing.T) {
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
	inbox, conn := db.Inbox(), pgtest.Conn(t, url)
	busy(t, conn)

	rule := uuid.MustParse("00000000-0000-7000-8001-000000000017")
	team := func(name string) []rules.Target { return []rules.Target{{Kind: rules.TargetTeam, Name: name}} }
	// The index of a state has some 700 blocks; each of a page's alerts is found by its id in some
	// five blocks.
	const most = 2_500
	for name, filter := range map[string]alerts.Filter{
		"nothing":            {},
		"severity":           {Severities: []rules.Severity{rules.Critical}},
		"application":        {Applications: []string{"app-7"}},
		"unknown":            {Applications: []string{"app-none"}},
		"route":              {Routes: []string{"route-17"}},
		"rule":               {Rules: []uuid.UUID{rule}},
		"error":              {Signatures: []string{"ConnectException: refused by #17"}},
		"mine":               {MineOf: team("operations")},
		"nobody's":           {MineOf: team("nobody")},
		"no target":          {MineOf: []rules.Target{}},
		"assigned":           {MineOf: []rules.Target{{Kind: rules.TargetUser, Name: "ada"}}},
		"ada's":              {Assignees: []string{"ada"}},
		"nobody's alerts":    {Assignees: []string{""}},
		"ada's or nobody's":  {Assignees: []string{"", "ada"}},
		"unread":             {UnreadBy: "ada"},
		"route and severity": {Routes: []string{"route-17"}, Severities: []rules.Severity{rules.Info}},
	} {
		for _, states := range [][]alerts.State{{alerts.Firing}, {alerts.Acknowledged}, {alerts.Firing, alerts.Acknowledged, alerts.Resolved}} {
			for depth, before := range map[string]*alerts.Mark{"top": nil, "deep": {FiredAt: time.Now().Add(-6 * 24 * time.Hour), ID: rule}} {
				filter.States = states
				sql, args, err := postgres.Listing(inbox, t.Context(), tenant, alerts.Query{Filter: filter, Before: before, Limit: 100}, nil)
				if err != nil {
					t.Fatal(err)
				}
				p := does(t, conn, sql, args)
				if cost := p.Hit + p.Read; cost > most*len(states) || p.scansWhole("alert") {
					t.Errorf("filtered by %s in %v, %s: %d blocks, whole table %v", name, states, depth, cost, p.scansWhole("alert"))
				}
			}
		}
	}

	for _, by := range []alerts.Fold{alerts.ByRule, alerts.BySignature} {
		filter := alerts.Filter{States: []alerts.State{alerts.Firing}}
		sql, args, err := postgres.Folding(inbox, t.Context(), tenant, api.GroupQuery{By: by, Filter: filter, Limit: 100, Actor: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		if p := does(t, conn, sql, args); p.Hit+p.Read > most || p.scansWhole("alert") {
			t.Errorf("folded by %s: %d blocks, whole table %v", by, p.Hit+p.Read, p.scansWhole("alert"))
		}
	}

	t.Run("issues", func(t *testing.T) { issues(t, inbox, conn) })
	t.Run("search", func(t *testing.T) { searched(t, inbox, conn) })
}

// issues groups by a value that no index contains: it reads each alert of the state, and no other.
func issues(t *testing.T, inbox *postgres.Inbox, conn *pgx.Conn) {
	t.Helper()
	q := api.GroupQuery{By: alerts.ByIssue, Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, Limit: 100, Actor: "ada"}
	sql, args, err := postgres.Folding(inbox, t.Context(), tenant, q)
	if err != nil {
		t.Fatal(err)
	}
	// Some 43,000 alerts fire, four or so in a block, and their index is 700 blocks.
	const most = 30_000
	if p := does(t, conn, sql, args); p.Hit+p.Read > most {
		t.Errorf("folded by issue: %d blocks", p.Hit+p.Read)
	}
}

// searched searches for texts that many, few and no alerts contain. Each page looks at a bounded
// number of alerts, and all pages together at all.
func searched(t *testing.T, inbox *postgres.Inbox, conn *pgx.Conn) {
	t.Helper()
	for text, want := range map[string]int{"ERP-17 ": 429, "connection 99999 ": 1, "connection 4 ": 1, "nowhere": 0} {
		q := alerts.Query{Filter: alerts.Filter{States: []alerts.State{alerts.Firing}, Text: text}, Limit: 100}
		seen := map[uuid.UUID]bool{}
		pages := 0
		for {
			page, err := inbox.List(t.Context(), tenant, q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for i := range page.Alerts {
				if seen[page.Alerts[i].ID] {
					t.Errorf("%q: %s comes twice", text, page.Alerts[i].ID)
				}
				seen[page.Alerts[i].ID] = true
			}
			if q.Before = page.Next; q.Before == nil {
				break
			}
		}
		if len(seen) != want || pages < 5 || pages > 10 {
			t.Errorf("%q is found %d times in %d pages, want %d times", text, len(seen), pages, want)
		}
	}
	const most = 11_000
	q := alerts.Query{Filter: alerts.Filter{States: []alerts.State{alerts.Firing}, Text: "nowhere"}, Limit: 100}
	sql, args, err := postgres.Walking(inbox, t.Context(), tenant, q)
	if err != nil {
		t.Fatal(err)
	}
	if p := does(t, conn, sql, args); p.Hit+p.Read > 1_500 || p.scansWhole("alert") {
		t.Errorf("the end of a page is found by %d blocks", p.Hit+p.Read)
	}
	var end alerts.Mark
	if err := conn.QueryRow(t.Context(), sql, args).Scan(&end.FiredAt, &end.ID); err != nil {
		t.Fatal(err)
	}
	if sql, args, err = postgres.Listing(inbox, t.Context(), tenant, q, &end); err != nil {
		t.Fatal(err)
	}
	if p := does(t, conn, sql, args); p.Hit+p.Read > most || p.scansWhole("alert") {
		t.Errorf("a page that looks for what is nowhere reads %d blocks", p.Hit+p.Read)
	}
}
