package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// counted turns an alert into one of a window rule about a group.
const counted = `update alert set execution_id = null, group_key = $2, count = '{"observed": 5, "threshold": 3, "windowSeconds": 600}' where alert_id = $1`

func inboxRule() uuid.UUID { return uuid.MustParse("00000000-0000-7000-8001-000000000001") }

func TestNotesBelongToOneGroupOfARule(t *testing.T) {
	db, conn := inboxOf(t)
	const another = "00000000-0000-7000-8001-000000000002"
	if _, err := conn.Exec(t.Context(), `
insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
                  interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
select $1::text::uuid, tenant_id, 'another', enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
       interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds from rule`, another); err != nil {
		t.Fatal(err)
	}
	insert(t, conn, raised{id: "1", severity: "WARNING", ago: time.Hour})
	if _, err := conn.Exec(t.Context(), counted, alertID("1"), "import"); err != nil {
		t.Fatal(err)
	}
	// An issue may have no names, just as a rule may have no groups.
	insert(t, conn, raised{id: "2", severity: "WARNING", ago: time.Hour})
	inbox := db.Inbox()
	subjects := []api.NoteSubject{
		{RuleID: inboxRule(), Group: "import"},
		{RuleID: inboxRule(), Group: "export"},
		{RuleID: inboxRule()},
		{RuleID: uuid.MustParse(another), Group: "import"},
		issue("", "", ""),
	}
	for n := range 25 {
		note := api.NoteRecord{ID: noteID(n), Author: "ada", Text: fmt.Sprint("note ", n)}
		if _, err := inbox.WriteNote(t.Context(), tenant, subjects[n%len(subjects)], note); err != nil {
			t.Fatal(err)
		}
	}
	// Notes with equal instants must not be lost between pages.
	if _, err := conn.Exec(t.Context(), `update issue_note set written_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	for n, on := range subjects {
		want := fmt.Sprintf("note %d by ada, note %d by ada, note %d by ada, note %d by ada, note %d by ada", n+20, n+15, n+10, n+5, n)
		if got := notesOf(t, inbox, on); got != want {
			t.Errorf("of %+v: read %s, want %s", on, got, want)
		}
		if found, err := inbox.Notes(t.Context(), "another", on, api.NotePage{Limit: 9}); err != nil || len(found) != 0 {
			t.Errorf("another tenant reads %+v, %v", found, err)
		}
	}
	if _, err := inbox.WriteNote(t.Context(), "another", subjects[0], api.NoteRecord{ID: noteID(99), Author: "eve", Text: "x"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("on a rule of another tenant: %v", err)
	}

	// Retention deletes the alerts, and the notes are there when the rule fires again.
	if _, err := conn.Exec(t.Context(), `delete from alert`); err != nil {
		t.Fatal(err)
	}
	if got := notesOf(t, inbox, subjects[0]); !strings.HasPrefix(got, "note 20 by ada, note 15") {
		t.Errorf("after the alerts: %s", got)
	}

	// A rule takes its notes with it, and no other rule's.
	if err := db.Rules().Delete(t.Context(), tenant, inboxRule()); err != nil {
		t.Fatal(err)
	}
	for n, on := range subjects {
		if got := notesOf(t, inbox, on); (got == "") != (on.RuleID == inboxRule()) {
			t.Errorf("of %+v, %d, after the rule: %s", on, n, got)
		}
	}
	if _, err := inbox.WriteNote(t.Context(), tenant, subjects[0], api.NoteRecord{ID: noteID(99), Author: "ada", Text: "x"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("on a deleted rule: %v", err)
	}
}

func TestANoteOnARuleIsWrittenOnceByItsID(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn, raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour})
	inbox, on := db.Inbox(), api.NoteSubject{RuleID: inboxRule(), Group: "import"}
	note := api.NoteRecord{ID: noteID(1), Author: "ada", Text: "It peaks every Monday at 8."}
	var wait sync.WaitGroup
	written := make([]api.NoteRecord, 8)
	for i := range written {
		wait.Go(func() {
			var err error
			if written[i], err = inbox.WriteNote(t.Context(), tenant, on, note); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, w := range written {
		if !w.At.Equal(written[0].At) || w.Text != note.Text {
			t.Errorf("%+v, and %+v", w, written[0])
		}
	}
	if got := notesOf(t, inbox, on); got != note.Text+" by ada" {
		t.Errorf("read %s", got)
	}
	for name, try := range map[string]struct {
		on   api.NoteSubject
		note api.NoteRecord
	}{
		"text":   {on, api.NoteRecord{ID: note.ID, Author: note.Author, Text: "Ask somebody else."}},
		"author": {on, api.NoteRecord{ID: note.ID, Author: "bo", Text: note.Text}},
		"group":  {api.NoteSubject{RuleID: inboxRule(), Group: "export"}, note},
		"issue":  {issue("orders", "import", "Refused"), note},
	} {
		if _, err := inbox.WriteNote(t.Context(), tenant, try.on, try.note); fault.KindOf(err) != fault.Conflict {
			t.Errorf("another %s by the same id: %v", name, err)
		}
	}
	if err := inbox.DeleteNote(t.Context(), "another", note.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant deletes: %v", err)
	}
	if err := inbox.DeleteNote(t.Context(), tenant, note.ID); err != nil {
		t.Error(err)
	}
	if got := notesOf(t, inbox, on); got != "" {
		t.Errorf("after the deletion: %s", got)
	}
}

// TestTheAuditLogNamesTheRuleOfANote reads who wrote notes, and who deleted them: somebody one, and
// somebody the rule.
func TestTheAuditLogNamesTheRuleOfANote(t *testing.T) {
	db, conn := inboxOf(t)
	inbox, on := db.Inbox(), api.NoteSubject{RuleID: inboxRule(), Group: "import"}
	as := func(name string) context.Context {
		return access.As(t.Context(), access.Actor{Tenant: tenant, Kind: "user", Name: name})
	}
	for n, text := range []string{"It peaks every Monday.", "It peaks on Tuesdays, too."} {
		if _, err := inbox.WriteNote(as("ada"), tenant, on, api.NoteRecord{ID: noteID(n), Author: "ada", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := inbox.DeleteNote(as("bo"), tenant, noteID(0)); err != nil {
		t.Fatal(err)
	}
	if err := db.Rules().Delete(as("eve"), tenant, inboxRule()); err != nil {
		t.Fatal(err)
	}
	got := column(t, conn, `
select actor || ' ' || action || ' ' || object_name || ' ' || right(object_id, 1) || ' ' || (coalesce(before, after)->>'group_key')
from audit where object_kind = 'note' order by audit_id`)
	want := "ada create rule 0 import, ada create rule 1 import, bo delete rule 0 import, eve delete rule 1 import"
	if strings.Join(got, ", ") != want {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
	if entries := column(t, conn, `select a::text from audit a where a::text like '%peaks%'`); len(entries) > 0 {
		t.Errorf("the audit log repeats the text: %q", entries)
	}
}

// TestANoteWaitsForTheDeletionOfItsRule writes a note while the rule is being deleted: it must not
// outlive the rule.
func TestANoteWaitsForTheDeletionOfItsRule(t *testing.T) {
	db, conn := inboxOf(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update rule set deleted_at = now()`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := db.Inbox().WriteNote(context.Background(), tenant, api.NoteSubject{RuleID: inboxRule()}, api.NoteRecord{ID: noteID(1), Author: "ada", Text: "x"})
		ended <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-ended:
			t.Fatalf("the note did not wait: %v", err)
		default:
			const waiting = `select exists (select from pg_stat_activity where datname = current_database() and pg_backend_pid() = any(pg_blocking_pids(pid)))`
			if err := tx.QueryRow(t.Context(), waiting).Scan(&waits); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; fault.KindOf(err) != fault.Conflict {
		t.Errorf("on a rule that was deleted meanwhile: %v", err)
	}
}

// TestANoteIsAboutOneThing has the database refuse notes about both, or about half of one.
func TestANoteIsAboutOneThing(t *testing.T) {
	_, conn := inboxOf(t)
	for name, values := range map[string]string{
		"nothing":                  `null, null, null, null, null`,
		"an issue and a rule":      `'a', 'r', 's', rule_id, ''`,
		"a part of an issue":       `'a', 'r', null, null, null`,
		"a rule without the group": `null, null, null, rule_id, null`,
		"a group without the rule": `null, null, null, null, ''`,
		"an issue and a group":     `'a', 'r', 's', null, ''`,
	} {
		_, err := conn.Exec(t.Context(), `insert into issue_note (tenant_id, note_id, author, text, application, route, signature, rule_id, group_key)
			select tenant_id, gen_random_uuid(), 'ada', 'x', `+values+` from rule`)
		if err == nil || !strings.Contains(err.Error(), "about_one_thing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
