package postgres_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

func TestTeamsAreReplacedAsAWhole(t *testing.T) {
	db, conn := inboxOf(t)
	people(t, conn, "ada@x operator", "bo@x viewer", "stranger@x operator")
	store := db.Teams()
	first, err := store.Get(t.Context(), tenant)
	if err != nil || first.Version != 1 || len(first.List.Teams) != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	// Of several users who edit the first version, one edit is stored.
	var wait sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wait.Go(func() {
			list := teams.List{Teams: []teams.Team{{Name: string(rune('a' + i)), Members: []string{"ADA@x"}, Groups: []string{"sre"}}}}
			_, errs[i] = store.Replace(t.Context(), tenant, "ada@x", 1, list)
		})
	}
	wait.Wait()
	stored := 0
	for _, err := range errs {
		if err == nil {
			stored++
		} else if fault.KindOf(err) != fault.Stale {
			t.Error(err)
		}
	}
	r, err := store.Get(t.Context(), tenant)
	if err != nil || stored != 1 || r.Version != 2 || len(r.List.Teams) != 1 || r.UpdatedBy != "ada@x" {
		t.Fatalf("%d were stored: %+v, %v", stored, r, err)
	}
	if _, err := conn.Exec(t.Context(), `update account set groups = '{other,sre}' where email in ('bo@x', 'stranger@x')`); err != nil {
		t.Fatal(err)
	}
	name := r.List.Teams[0].Name
	for email, want := range map[string][]string{"ada@x": {name}, "BO@x": {name}, "stranger@x": nil, "nobody@x": nil} {
		if got, err := store.Of(t.Context(), tenant, email); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is in %v, want %v: %v", email, got, want, err)
		}
	}
	if got, err := store.Of(t.Context(), "another", "ada@x"); err != nil || len(got) != 0 {
		t.Errorf("another tenant: %v, %v", got, err)
	}
}

func TestWhatATeamOwnsIsItsMembers(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn, raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour})
	inbox := db.Inbox()
	team := []rules.Target{{Kind: rules.TargetUser, Name: "ada@x"}, {Kind: rules.TargetTeam, Name: "integration"}}
	for about, want := range map[string]string{
		`{"owner": "integration"}`: "1", `{"owner": "Integration"}`: "", `{}`: "", `{"owner": "ada@x"}`: "",
	} {
		if _, err := conn.Exec(t.Context(), `update rule set about = $1`, about); err != nil {
			t.Fatal(err)
		}
		if got := found(t, inbox, tenant, alerts.Filter{MineOf: team}); got != want {
			t.Errorf("%s: found %q, want %q", about, got, want)
		}
		notes, err := inbox.Annotate(t.Context(), tenant, api.Reader{Actor: "ada@x", Targets: team}, []uuid.UUID{alertID("1")})
		if err != nil || notes[alertID("1")].Mine != (want != "") {
			t.Errorf("%s: annotated %+v, %v", about, notes, err)
		}
	}
}

func TestGroupsAreThoseOfTheLastSignIn(t *testing.T) {
	db, conn := inboxOf(t)
	person := access.NewAccount{TenantID: tenant, Email: "ada@x", Name: "Ada", Role: access.Operator, Issuer: "https://login", Subject: "1"}
	groups := func() []string {
		return column(t, conn, `select unnest(groups) from account where email = 'ada@x' order by 1`)
	}
	for _, step := range []struct {
		read bool
		says []string
		want []string
	}{{true, []string{"a", "b"}, []string{"a", "b"}}, {true, []string{"b"}, []string{"b"}}, {true, nil, nil}, {true, []string{"c"}, []string{"c"}}, {false, nil, nil}} {
		person.Groups = step.says
		if _, err := db.Accounts().Recognition(true, false, step.read).Recognise(t.Context(), person); err != nil {
			t.Fatal(err)
		}
		if got := groups(); !slices.Equal(got, step.want) {
			t.Errorf("after %v: %v, want %v", step.says, got, step.want)
		}
	}
}

// TestAdministratorsWhoSignInAtOnceWaitForEachOther lets two of them lose their role through their
// provider, while another transaction locks a third one: no deadlock occurs.
func TestAdministratorsWhoSignInAtOnceWaitForEachOther(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	db, ctx := p.opened(t), t.Context()
	p.exec(t, `insert into account (account_id, tenant_id, email, name, role, issuer, subject)
		select ('00000000-0000-0000-0000-00000000000' || n)::uuid, $1, n || '@x', '', 'admin', 'https://login', n::text from generate_series(1, 3) n`, tenant)
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `select from account where subject = '1' for update`); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for _, subject := range []string{"2", "3"} {
		person := access.NewAccount{TenantID: tenant, Email: subject + "@x", Role: access.Operator, Issuer: "https://login", Subject: subject, Groups: []string{"sre"}}
		wait.Go(func() {
			if a, err := db.Accounts().Recognition(false, true, true).Recognise(ctx, person); err != nil || a.Role != access.Operator {
				t.Errorf("%s: %+v, %v", subject, a, err)
			}
		})
	}
	watch := pgtest.Conn(t, p.url)
	for deadline := time.Now().Add(2 * time.Minute); one[int](t, watch, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("they do not wait")
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if got := column(t, p.conn, `select subject || ' ' || role || ' ' || groups::text from account order by 1`); !slices.Equal(got, []string{"1 admin {}", "2 operator {sre}", "3 operator {sre}"}) {
		t.Errorf("stored: %v", got)
	}
}
