package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
)

func saveView(t *testing.T, db *postgres.DB, v api.ViewRecord) api.ViewRecord {
	t.Helper()
	saved, err := db.Views().Save(t.Context(), tenant, v)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func viewsOf(t *testing.T, db *postgres.DB, tenant, actor string) string {
	t.Helper()
	list, err := db.Views().List(t.Context(), tenant, actor)
	if err != nil {
		t.Fatal(err)
	}
	said := make([]string, len(list))
	for i, v := range list {
		said[i] = v.Name + " by " + v.Owner
	}
	return strings.Join(said, ", ")
}

func TestViewsAreSeenByTheirOwnersUnlessShared(t *testing.T) {
	db, _ := inboxOf(t)
	first := saveView(t, db, api.ViewRecord{Owner: "ada", Name: "orders", Search: "app=orders"})
	saveView(t, db, api.ViewRecord{Owner: "ada", Name: "Billing", Search: "app=billing", Shared: true})
	saveView(t, db, api.ViewRecord{Owner: "bo", Name: "orders", Search: "app=others"})
	again := saveView(t, db, api.ViewRecord{Owner: "ada", Name: "orders", Search: "app=orders&severity=critical"})
	if again.ID != first.ID || again.Search != "app=orders&severity=critical" || again.UpdatedAt.Before(first.UpdatedAt) {
		t.Errorf("saved again: %+v, first %+v", again, first)
	}
	for who, want := range map[string]string{
		"ada": "Billing by ada, orders by ada",
		"bo":  "Billing by ada, orders by bo",
		"cy":  "Billing by ada",
	} {
		if got := viewsOf(t, db, tenant, who); got != want {
			t.Errorf("%s sees %s, want %s", who, got, want)
		}
	}
	if got := viewsOf(t, db, "another", "ada"); got != "" {
		t.Errorf("another tenant sees %s", got)
	}

	if _, err := db.Views().Get(t.Context(), tenant, "bo", first.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("bo reads a view of ada's: %v", err)
	}
	if _, err := db.Views().Get(t.Context(), "another", "ada", first.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant reads it: %v", err)
	}
	if err := db.Views().Delete(t.Context(), "another", first.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant deletes it: %v", err)
	}
	if err := db.Views().Delete(t.Context(), tenant, first.ID); err != nil {
		t.Error(err)
	}
	if got, want := viewsOf(t, db, tenant, "ada"), "Billing by ada"; got != want {
		t.Errorf("ada sees %s, want %s", got, want)
	}
}

func TestViewsAreBounded(t *testing.T) {
	db, conn := inboxOf(t)
	fill := func(owner string, count int, shared bool) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `
insert into saved_view (view_id, tenant_id, owner, name, search, shared)
select gen_random_uuid(), 'default', $1, 'view ' || n, '', $3 from generate_series(1, $2::int) n`, owner, count, shared); err != nil {
			t.Fatal(err)
		}
	}
	fill("ada", 100, false)
	for n := range 4 {
		fill(fmt.Sprint("many ", n), 50, true)
	}
	refused := func(v api.ViewRecord) {
		t.Helper()
		if _, err := db.Views().Save(t.Context(), tenant, v); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%+v was saved: %v", v, err)
		}
	}
	refused(api.ViewRecord{Owner: "ada", Name: "one more"})
	refused(api.ViewRecord{Owner: "bo", Name: "one more", Shared: true})
	// What is replaced does not count, and others have limits of their own.
	saveView(t, db, api.ViewRecord{Owner: "ada", Name: "view 7", Search: "app=orders"})
	saveView(t, db, api.ViewRecord{Owner: "many 3", Name: "view 7", Shared: true})
	saveView(t, db, api.ViewRecord{Owner: "bo", Name: "one more"})
	if list, err := db.Views().List(t.Context(), tenant, "ada"); err != nil || len(list) != 300 {
		t.Errorf("%d views, %v", len(list), err)
	}
}

func TestADeletedUserLeavesWhatWasShared(t *testing.T) {
	db, conn := inboxOf(t)
	user, err := db.Accounts().Create(t.Context(), access.NewAccount{TenantID: tenant, Email: "cy@example.com", Name: "Cy", Role: access.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"cy@example.com", "ada"} {
		saveView(t, db, api.ViewRecord{Owner: owner, Name: "own"})
		saveView(t, db, api.ViewRecord{Owner: owner, Name: "shared", Shared: true})
	}
	if _, err := conn.Exec(t.Context(), `
insert into saved_view (view_id, tenant_id, owner, name, search, shared) values ($1, 'another', 'cy@example.com', 'own', '', false)`, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if err := db.Accounts().Delete(t.Context(), tenant, user.ID); err != nil {
		t.Fatal(err)
	}
	if got, want := viewsOf(t, db, tenant, "cy@example.com"), "shared by ada, shared by cy@example.com"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if got, want := viewsOf(t, db, tenant, "ada"), "own by ada, shared by ada, shared by cy@example.com"; got != want {
		t.Errorf("ada sees %s, want %s", got, want)
	}
	if got, want := viewsOf(t, db, "another", "cy@example.com"), "own by cy@example.com"; got != want {
		t.Errorf("the other tenant sees %s, want %s", got, want)
	}
}
