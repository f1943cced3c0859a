package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
)

func noteID(n int) uuid.UUID { return uuid.UUID{0: 1, 15: byte(n)} }

func issue(application, route, signature string) api.NoteSubject {
	return api.NoteSubject{Issue: api.IssueKey{Application: application, Route: route, Signature: signature}}
}

// notesOf reads all notes in pages of two.
func notesOf(t *testing.T, inbox *postgres.Inbox, on api.NoteSubject) string {
	t.Helper()
	var read []string
	page := api.NotePage{Limit: 2}
	for {
		found, err := inbox.Notes(t.Context(), tenant, on, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, note := range found {
			read = append(read, note.Text+" by "+note.Author)
		}
		if len(found) < page.Limit {
			return strings.Join(read, ", ")
		}
		last := found[len(found)-1]
		page.Before = &api.NoteMark{At: last.At, ID: last.ID}
	}
}

func TestNotesBelongToOneIssue(t *testing.T) {
	db, conn := inboxOf(t)
	long := strings.Repeat("ä", 512)
	insert(t, conn,
		raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour},
		raised{id: "2", severity: "WARNING", application: "billing", route: "import", error: "Refused", ago: time.Hour},
		raised{id: "3", severity: "WARNING", application: long, route: long, error: strings.Repeat("ä", 200), ago: time.Hour},
	)
	inbox, key := db.Inbox(), issue("orders", "import", "Refused")
	other, longest := issue("billing", "import", "Refused"), issue(long, long, strings.Repeat("ä", 200))
	write := func(key api.NoteSubject, n int, author string) api.NoteRecord {
		t.Helper()
		note, err := inbox.WriteNote(t.Context(), tenant, key, api.NoteRecord{ID: noteID(n), Author: author, Text: fmt.Sprint("note ", n)})
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	for n := range 5 {
		write(key, n, "ada")
	}
	write(other, 5, "bo")
	write(longest, 6, "bo")
	// Notes with equal instants must not be lost between pages.
	if _, err := conn.Exec(t.Context(), `update issue_note set written_at = now() - interval '1 hour' where author = 'ada'`); err != nil {
		t.Fatal(err)
	}

	if got, want := notesOf(t, inbox, key), "note 4 by ada, note 3 by ada, note 2 by ada, note 1 by ada, note 0 by ada"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	if found, err := inbox.Notes(t.Context(), tenant, longest, api.NotePage{Limit: 9}); err != nil || len(found) != 1 {
		t.Errorf("of the longest names: %+v, %v", found, err)
	}
	if found, err := inbox.Notes(t.Context(), "another", key, api.NotePage{Limit: 9}); err != nil || len(found) != 0 {
		t.Errorf("another tenant reads %+v, %v", found, err)
	}

	// Retention deletes alerts but keeps the notes, and no note can be added to an issue without
	// alerts.
	if _, err := conn.Exec(t.Context(), `delete from alert where application = 'orders'`); err != nil {
		t.Fatal(err)
	}
	if found, err := inbox.Notes(t.Context(), tenant, key, api.NotePage{Limit: 9}); err != nil || len(found) != 5 {
		t.Errorf("after the alerts: %d notes, %v", len(found), err)
	}
	if _, err := inbox.WriteNote(t.Context(), tenant, key, api.NoteRecord{ID: noteID(9), Author: "ada", Text: "x"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("on an issue without alerts: %v", err)
	}
	if _, err := inbox.WriteNote(t.Context(), "another", other, api.NoteRecord{ID: noteID(9), Author: "ada", Text: "x"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("on an issue of another tenant: %v", err)
	}
}

func TestANoteIsWrittenOnceByItsID(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Hour},
		raised{id: "2", severity: "WARNING", application: "billing", route: "import", error: "Refused", ago: time.Hour},
	)
	inbox, key := db.Inbox(), issue("orders", "import", "Refused")
	note := api.NoteRecord{ID: noteID(1), Author: "ada", Text: "Ask the ERP team."}
	var wait sync.WaitGroup
	written := make([]api.NoteRecord, 8)
	for i := range written {
		wait.Go(func() {
			var err error
			if written[i], err = inbox.WriteNote(t.Context(), tenant, key, note); err != nil {
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
	if found, err := inbox.Notes(t.Context(), tenant, key, api.NotePage{Limit: 9}); err != nil || len(found) != 1 {
		t.Errorf("%d notes, %v", len(found), err)
	}
	for name, try := range map[string]struct {
		key  api.NoteSubject
		note api.NoteRecord
	}{
		"text":   {key, api.NoteRecord{ID: note.ID, Author: note.Author, Text: "Ask somebody else."}},
		"author": {key, api.NoteRecord{ID: note.ID, Author: "bo", Text: note.Text}},
		"issue":  {issue("billing", "import", "Refused"), note},
	} {
		if _, err := inbox.WriteNote(t.Context(), tenant, try.key, try.note); fault.KindOf(err) != fault.Conflict {
			t.Errorf("another %s by the same id: %v", name, err)
		}
	}

	if author, err := inbox.NoteAuthor(t.Context(), tenant, note.ID); err != nil || author != "ada" {
		t.Errorf("by %q, %v", author, err)
	}
	if _, err := inbox.NoteAuthor(t.Context(), "another", note.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant reads the author: %v", err)
	}
	if err := inbox.DeleteNote(t.Context(), "another", note.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant deletes: %v", err)
	}
	if err := inbox.DeleteNote(t.Context(), tenant, note.ID); err != nil {
		t.Error(err)
	}
	if err := inbox.DeleteNote(t.Context(), tenant, note.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	// The log contains who did what, but not the text of the note.
	var entries string
	err := conn.QueryRow(t.Context(), `
select string_agg(action || ' ' || object_kind || ' ' || object_name || ' ' || coalesce(before, after)::text, '; ' order by audit_id)
from audit where object_id = $1::text`, note.ID).Scan(&entries)
	if err != nil || !strings.HasPrefix(entries, "create note Refused") || !strings.Contains(entries, "; delete note Refused") || strings.Contains(entries, "ERP") {
		t.Errorf("the audit log has %q, %v", entries, err)
	}
}
