package postgres_test

import (
	"os"
	"strings"
	"testing"

	"tocsin/evaluator"
)

// TestCommitsOnlyWhatIsNew commits pages with alerts that exist already, or that occur twice, as a
// forward scan and a look-back find them.
func TestCommitsOnlyWhatIsNew(t *testing.T) {
	p := newPersist(t)
	p.commit(t, p.page())
	written := pageOf
	commit := func(name string, batch evaluator.Batch, want int) {
		t.Helper()
		batch.Revision = p.revision
		if done := p.write(t, batch); len(done.Inserted) != want || done.Notifications[p.webhook] != want {
			t.Fatalf("%s: Commit = %d alerts, %v notifications; want %d", name, len(done.Inserted), done.Notifications, want)
		}
		written += want
	}
	counted := func(name string) {
		t.Helper()
		for _, table := range []string{"alert", "notification", "outbox"} {
			if got := one[int](t, p.conn, `select count(*)::int from `+table); got != written {
				t.Fatalf("%s: %d rows of %s, want %d", name, got, table, written)
			}
		}
	}
	for _, late := range []bool{false, true, false} {
		known := p.page()
		commit("new", known, pageOf)
		counted("new")
		batch := p.page()
		// With ids of their own, as a second evaluation creates them.
		for i := range batch.Instances[:10] {
			batch.Instances[i*7].Exchange.ExecutionID = known.Instances[i].Exchange.ExecutionID
			batch.Instances[i*7+1].Exchange.ExecutionID = batch.Instances[i*7+2].Exchange.ExecutionID
		}
		for i := range batch.Instances {
			batch.Instances[i].Late = late
		}
		commit("some known", batch, pageOf-20)
		counted("some known")
		again := p.batch()
		again.Instances = batch.Instances
		commit("all known", again, 0)
		counted("all known")
	}
	// After the known alerts, new ones are written as well.
	for range 300 {
		batch := p.page()
		batch.Instances, batch.Notifications = batch.Instances[:1], batch.Notifications[:1]
		commit("one by one", batch, 1)
	}
	counted("one by one")
}

// TestBothInsertionsOfAlertsAreOne checks that the two statements that insert alerts have the same
// text: sqlc cannot share it, and if they filled a column differently, an alert would depend on how
// it was found.
func TestBothInsertionsOfAlertsAreOne(t *testing.T) {
	source, err := os.ReadFile("query/evaluator.sql")
	if err != nil {
		t.Fatal(err)
	}
	statement := func(name string) string {
		_, text, found := strings.Cut(string(source), "-- name: "+name+" ")
		_, text, begins := strings.Cut(text, "\ninsert into ")
		text, _, ends := strings.Cut(text, ";\n")
		if !found || !begins || !ends {
			t.Fatalf("query/evaluator.sql has no statement %s", name)
		}
		return text
	}
	const rest = "\non conflict (rule_id, execution_id) do nothing\nreturning alert_id"
	if plain, missing := statement("AlertInsert"), statement("AlertInsertMissing"); plain+rest != missing {
		t.Errorf("AlertInsertMissing is not AlertInsert with its conflicts ignored:\n%s\n%s", plain, missing)
	}
}
