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
)

// handlers returns the assignees of the three alerts, as "ada@x bo@x -".
func handlers(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	var names []string
	rows, err := conn.Query(t.Context(), `select coalesce(h.assignee, '-') from alert a left join alert_assignment h using (alert_id) order by a.alert_id`)
	if err == nil {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func assignMany(t *testing.T, inbox *postgres.Inbox, of api.BulkAssignment) api.BulkCounts {
	t.Helper()
	if of.ID == uuid.Nil {
		of.ID = uuid.New()
	}
	done, err := inbox.AssignMany(t.Context(), tenant, of)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func counts(c api.BulkCounts) [4]int64 { return [4]int64{c.Changed, c.Already, c.Refused, c.Unknown} }

func TestManyAlertsAreAssignedAndGivenBack(t *testing.T) {
	db, conn := threeAlerts(t)
	inbox := db.Inbox()
	first, second, third := alertID("1"), alertID("2"), alertID("3")
	if _, err := inbox.Assign(t.Context(), tenant, api.Assignment{AlertID: first, Assignee: "bo@x", Actor: "bo@x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Act(t.Context(), tenant, api.AlertAction{AlertID: third, Action: alerts.Resolve, Actor: "bo@x"}); err != nil {
		t.Fatal(err)
	}
	all := alerts.Filter{IDs: []uuid.UUID{first, second, third, uuid.New()}}

	// Alerts of others are left unchanged, and so is a resolved one.
	take := api.BulkAssignment{ID: uuid.New(), Actor: "ada@x", Filter: all, Assignee: "ada@x"}
	if got := counts(assignMany(t, inbox, take)); got != [4]int64{1, 0, 2, 1} || handlers(t, conn) != "bo@x ada@x -" {
		t.Errorf("taking: %v, %s", got, handlers(t, conn))
	}
	// A repetition returns the same; another request with the id is rejected.
	if got := counts(assignMany(t, inbox, take)); got != [4]int64{1, 0, 2, 1} {
		t.Errorf("again: %v", got)
	}
	for _, other := range []func(*api.BulkAssignment){
		func(of *api.BulkAssignment) { of.Assignee = "bo@x" }, func(of *api.BulkAssignment) { of.Reassign = true },
		func(of *api.BulkAssignment) { of.Filter = alerts.Filter{IDs: []uuid.UUID{first}} }, func(of *api.BulkAssignment) { of.Actor = "bo@x" },
	} {
		of := take
		other(&of)
		if _, err := inbox.AssignMany(t.Context(), tenant, of); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%+v: %v", of, err)
		}
	}
	act := api.BulkAction{ID: take.ID, Action: alerts.Acknowledge, Actor: "ada@x", Filter: all}
	if _, err := inbox.ActOnMany(t.Context(), tenant, act); fault.KindOf(err) != fault.Conflict {
		t.Errorf("an acknowledgement under the id of an assignment: %v", err)
	}

	// With the explicit option the alert is taken over, and the name is the user's.
	over := api.BulkAssignment{ID: uuid.New(), Actor: "ada@x", Filter: all, Assignee: "ADA@x", Reassign: true}
	if got := counts(assignMany(t, inbox, over)); got != [4]int64{1, 1, 1, 1} || handlers(t, conn) != "ada@x ada@x -" {
		t.Errorf("taking over: %v, %s", got, handlers(t, conn))
	}
	// One's own alerts can be released, and passed on.
	if got := counts(assignMany(t, inbox, api.BulkAssignment{Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{second}}})); got != [4]int64{1, 0, 0, 0} {
		t.Errorf("releasing: %v", got)
	}
	for name, of := range map[string]api.BulkAssignment{
		"one who only reads": {Assignee: "view@x"}, "one who is disabled": {Assignee: "gone@x"}, "another tenant's": {Assignee: "stranger@x"},
	} {
		of.ID, of.Actor, of.Filter = uuid.New(), "ada@x", all
		if _, err := inbox.AssignMany(t.Context(), tenant, of); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}

	// After the undo, bo has the first one again; the second has changed since.
	undone, err := inbox.Undo(t.Context(), tenant, api.Undo{ActionID: over.ID, Actor: "ada@x"})
	if err != nil || undone != (api.UndoCounts{Restored: 1}) || handlers(t, conn) != "bo@x - -" {
		t.Errorf("undo of taking over: %+v, %v, %s", undone, err, handlers(t, conn))
	}
	a, err := inbox.Get(t.Context(), tenant, first)
	if err != nil || a.AssignedBy != "bo@x" {
		t.Errorf("%+v, %v", a, err)
	}
	undone, err = inbox.Undo(t.Context(), tenant, api.Undo{ActionID: take.ID, Actor: "ada@x"})
	if err != nil || undone != (api.UndoCounts{Skipped: 1}) || handlers(t, conn) != "bo@x - -" {
		t.Errorf("undo of what has changed: %+v, %v, %s", undone, err, handlers(t, conn))
	}
	if _, err := inbox.Undo(t.Context(), tenant, api.Undo{ActionID: over.ID, Actor: "bo@x"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("undo by another one: %v", err)
	}
	var messages, changes int
	if err := conn.QueryRow(t.Context(), `select (select count(*) from notification), (select count(*) from alert where state = 'ACKNOWLEDGED')`).
		Scan(&messages, &changes); err != nil || messages+changes != 0 {
		t.Errorf("%d messages, %d states, %v", messages, changes, err)
	}
}

// TestAFilterSaysWhichAlertsAreAssigned assigns by a filter with a beginning and an assignee.
func TestAFilterSaysWhichAlertsAreAssigned(t *testing.T) {
	db, conn := threeAlerts(t)
	inbox := db.Inbox()
	from := time.Now().Add(-2 * time.Hour)
	nobodys := alerts.Filter{States: []alerts.State{alerts.Firing}, Assignees: []string{""}, From: &from}
	if _, err := inbox.Assign(t.Context(), tenant, api.Assignment{AlertID: alertID("2"), Assignee: "bo@x", Actor: "bo@x"}); err != nil {
		t.Fatal(err)
	}
	of := api.BulkAssignment{ID: uuid.New(), Actor: "ada@x", Filter: nobodys, Assignee: "ada@x", Reassign: true}
	if got := counts(assignMany(t, inbox, of)); got != [4]int64{2, 0, 0, 0} || handlers(t, conn) != "ada@x bo@x ada@x" {
		t.Errorf("%v, %s", got, handlers(t, conn))
	}
	if _, err := inbox.AssignMany(t.Context(), "another", api.BulkAssignment{ID: uuid.New(), Actor: "x", Filter: nobodys, Assignee: "x"}); err != nil || handlers(t, conn) != "ada@x bo@x ada@x" {
		t.Errorf("by another tenant: %s, %v", handlers(t, conn), err)
	}
	// Acknowledgements use the filter as well.
	act := api.BulkAction{ID: uuid.New(), Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{From: &from}}
	if done, err := inbox.ActOnMany(t.Context(), tenant, act); err != nil || done.Changed != 3 {
		t.Errorf("acknowledged %+v, %v", done, err)
	}
}

func TestOfTwoWhoTakeManyAlertsEachIsHandledByOne(t *testing.T) {
	db, conn := threeAlerts(t)
	inbox := db.Inbox()
	var wait sync.WaitGroup
	got := make([]api.BulkCounts, 8)
	for i := range got {
		wait.Go(func() {
			name := string(rune('a'+i)) + "@x"
			of := api.BulkAssignment{ID: uuid.New(), Actor: name, Filter: alerts.Filter{States: []alerts.State{alerts.Firing}}, Assignee: name}
			var err error
			if got[i], err = inbox.AssignMany(t.Context(), tenant, of); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	var changed, refused int64
	for _, c := range got {
		changed, refused = changed+c.Changed, refused+c.Refused
	}
	if changed != 3 || refused != 21 || strings.Contains(handlers(t, conn), "-") {
		t.Errorf("%d assigned, %d refused, %s", changed, refused, handlers(t, conn))
	}
}

// TestAssigningManyIsOneEntryOfTheAuditLog checks that there is one entry for each former assignee.
func TestAssigningManyIsOneEntryOfTheAuditLog(t *testing.T) {
	db, conn := threeAlerts(t)
	ctx := access.As(t.Context(), access.Actor{Kind: "user", Name: "ada@x", Operation: "assignAlerts", Tenant: tenant})
	all := alerts.Filter{States: []alerts.State{alerts.Firing}}
	id := uuid.New()
	for _, of := range []api.BulkAssignment{
		{ID: uuid.New(), Assignee: "bo@x", Filter: alerts.Filter{IDs: []uuid.UUID{alertID("1")}}},
		{ID: id, Assignee: "ada@x", Reassign: true, Filter: all},
		{ID: uuid.New(), Filter: all},
	} {
		of.Actor = "ada@x"
		if _, err := db.Inbox().AssignMany(ctx, tenant, of); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), `select coalesce(nullif(object_id, ''), '*') || ' ' || coalesce(before->>'assignee', '-') || ' ' || coalesce(after->>'assignee', '-')
		|| ' ' || coalesce(after->>'alerts', '1') from audit where tenant_id = 'default' and object_kind = 'alert' order by audit_id`)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(entries)
	first := alertID("1").String()
	want := []string{first + " - bo@x 1", first + " bo@x ada@x 1", "* - ada@x 2", "* ada@x - 3"}
	slices.Sort(want)
	if err != nil || !slices.Equal(entries, want) {
		t.Errorf("the audit log has %q, want %q: %v", entries, want, err)
	}
}
