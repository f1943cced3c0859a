package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// people creates users of the tenant, from names and roles, and one of another tenant.
func people(t *testing.T, conn *pgx.Conn, users ...string) {
	t.Helper()
	for _, user := range users {
		name, role, _ := strings.Cut(user, " ")
		if _, err := conn.Exec(t.Context(), `insert into account (account_id, tenant_id, email, name, role) values ($1, $2, $3, '', $4)`,
			uuid.New(), map[bool]string{true: "another", false: tenant}[strings.HasPrefix(name, "stranger")], name, role); err != nil {
			t.Fatal(err)
		}
	}
}

// found returns the alerts that match a filter, by the last digit of their ids.
func found(t *testing.T, inbox *postgres.Inbox, of string, f alerts.Filter) string {
	t.Helper()
	f.States = alerts.States()
	page, err := inbox.List(t.Context(), of, alerts.Query{Filter: f, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range page.Alerts {
		id := page.Alerts[i].ID.String()
		ids = append(ids, id[len(id)-1:])
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func threeAlerts(t *testing.T) (*postgres.DB, *pgx.Conn) {
	t.Helper()
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour},
		raised{id: "2", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour},
		raised{id: "3", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour},
	)
	people(t, conn, "ada@x operator", "bo@x admin", "view@x viewer", "gone@x operator", "stranger@x operator")
	if _, err := conn.Exec(t.Context(), `update account set disabled = true where email = 'gone@x'`); err != nil {
		t.Fatal(err)
	}
	return db, conn
}

func TestAlertsAreAssignedToPeopleWhoMayAct(t *testing.T) {
	db, conn := threeAlerts(t)
	inbox := db.Inbox()
	assign := func(of string, a api.Assignment) (alerts.Instance, error) { return inbox.Assign(t.Context(), of, a) }
	first, second := alertID("1"), alertID("2")

	var newest string
	if err := conn.QueryRow(t.Context(), `select max(change)::text from alert`).Scan(&newest); err != nil {
		t.Fatal(err)
	}
	a, err := assign(tenant, api.Assignment{AlertID: first, Assignee: "ADA@x", Actor: "bo@x"})
	if err != nil || a.Assignee != "ada@x" || a.AssignedBy != "bo@x" || a.AssignedAt == nil || a.State != alerts.Firing {
		t.Fatalf("%+v, %v", a, err)
	}
	if changed, _, err := inbox.ChangedSince(t.Context(), tenant, newest, 100); err != nil || changed != 1 {
		t.Errorf("%d alerts changed: %v", changed, err)
	}
	if _, err := assign(tenant, api.Assignment{AlertID: second, Assignee: "operator", Actor: "operator"}); err != nil {
		t.Errorf("to oneself, without an account: %v", err)
	}
	for name, try := range map[string]struct {
		of   string
		a    api.Assignment
		kind fault.Kind
	}{
		"one who only reads":  {tenant, api.Assignment{AlertID: first, Assignee: "view@x", Was: "ada@x"}, fault.Invalid},
		"one who is disabled": {tenant, api.Assignment{AlertID: first, Assignee: "gone@x", Was: "ada@x"}, fault.Invalid},
		"another tenant's":    {tenant, api.Assignment{AlertID: first, Assignee: "stranger@x", Was: "ada@x"}, fault.Invalid},
		"by another tenant":   {"another", api.Assignment{AlertID: first, Assignee: "stranger@x", Was: "ada@x"}, fault.NotFound},
		"unseen":              {tenant, api.Assignment{AlertID: first, Assignee: "bo@x"}, fault.Conflict},
	} {
		try.a.Actor = "cy@x"
		if _, err := assign(try.of, try.a); fault.KindOf(err) != try.kind {
			t.Errorf("%s: %v", name, err)
		}
	}

	// What is mine: what is assigned to me, and what is directed to me by rules.
	me := func(name string) []rules.Target { return []rules.Target{{Kind: rules.TargetUser, Name: name}} }
	for name, try := range map[string]struct {
		of     string
		filter alerts.Filter
		want   string
	}{
		"mine":             {tenant, alerts.Filter{MineOf: me("ada@x")}, "1"},
		"not mine":         {tenant, alerts.Filter{MineOf: me("bo@x")}, ""},
		"a role":           {tenant, alerts.Filter{MineOf: []rules.Target{{Kind: rules.TargetRole, Name: "ada@x"}}}, ""},
		"somebody's":       {tenant, alerts.Filter{Assignees: []string{"ada@x", "operator"}}, "1 2"},
		"nobody's":         {tenant, alerts.Filter{Assignees: []string{""}}, "3"},
		"hers or nobody's": {tenant, alerts.Filter{Assignees: []string{"", "ada@x"}}, "1 3"},
		"of another":       {"another", alerts.Filter{Assignees: []string{"", "ada@x"}}, ""},
	} {
		if got := found(t, inbox, try.of, try.filter); got != try.want {
			t.Errorf("%s: found %q, want %q", name, got, try.want)
		}
	}
	notes, err := inbox.Annotate(t.Context(), tenant, api.Reader{Actor: "ada@x", Targets: me("ada@x")}, []uuid.UUID{first, second})
	if err != nil || !notes[first].Mine || notes[second].Mine {
		t.Errorf("annotated %+v, %v", notes, err)
	}
	names, err := inbox.Assignees(t.Context(), tenant, 10)
	if err != nil || !slices.Equal(names, []string{"ada@x", "bo@x"}) {
		t.Errorf("assignees %v, %v", names, err)
	}

	// Retention deletes the assignment together with the alert.
	if _, err := conn.Exec(t.Context(), `delete from alert where alert_id = $1`, first); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := conn.QueryRow(t.Context(), `select count(*) from alert_assignment`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d assignments stay, %v", rows, err)
	}
}

func TestOfTwoWhoTakeAnAlertOneGetsIt(t *testing.T) {
	db, conn := threeAlerts(t)
	inbox, id := db.Inbox(), alertID("1")
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			name := string(rune('a'+i)) + "@x"
			_, errs[i] = inbox.Assign(t.Context(), tenant, api.Assignment{AlertID: id, Assignee: name, Actor: name})
		})
	}
	wait.Wait()
	var took []string
	for i, err := range errs {
		switch {
		case err == nil:
			took = append(took, string(rune('a'+i))+"@x")
		case fault.KindOf(err) != fault.Conflict:
			t.Error(err)
		}
	}
	a, err := inbox.Get(t.Context(), tenant, id)
	if err != nil || len(took) != 1 || a.Assignee != took[0] {
		t.Errorf("%v took it, and it is assigned to %q: %v", took, a.Assignee, err)
	}

	// The messages contain nothing of this, and the state stays.
	var messages int
	if err := conn.QueryRow(t.Context(), `select count(*) from notification`).Scan(&messages); err != nil || messages != 0 || a.State != alerts.Firing {
		t.Errorf("%d messages, %s, %v", messages, a.State, err)
	}
}

func TestAnAssignmentIsInTheAuditLogAsAChangeOfTheAlert(t *testing.T) {
	db, conn := threeAlerts(t)
	ctx := access.As(t.Context(), access.Actor{Kind: "user", Name: "ada@x", Operation: "assignAlert", Tenant: tenant})
	for _, step := range []api.Assignment{{Assignee: "ada@x"}, {Was: "ada@x", Assignee: "bo@x"}, {Assignee: "bo@x"}, {Was: "bo@x"}} {
		step.AlertID, step.Actor = alertID("1"), "ada@x"
		if _, err := db.Inbox().Assign(ctx, tenant, step); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), `select action || ' ' || object_kind || ' ' || coalesce(before->>'assignee', '-') || ' ' || coalesce(after->>'assignee', '-')
from audit where tenant_id = 'default' and object_id = $1 and actor = 'ada@x' order by audit_id`, alertID("1").String())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"update alert - ada@x", "update alert ada@x bo@x", "update alert bo@x -"}; err != nil || !slices.Equal(entries, want) {
		t.Errorf("the audit log has %q, want %q: %v", entries, want, err)
	}
}
