package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// WriteNote adds a note. If the note was written before, by its id, it is returned unchanged.
func (s *Inbox) WriteNote(ctx context.Context, tenant string, on api.NoteSubject, note api.NoteRecord) (api.NoteRecord, error) {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		var err error
		note.At, err = insertNote(ctx, q, tenant, on, note)
		if errors.Is(err, pgx.ErrNoRows) {
			note.At, err = sameNote(ctx, q, tenant, on, note)
		}
		return err
	})
	if err != nil {
		return api.NoteRecord{}, fmt.Errorf("write note: %w", err)
	}
	return note, nil
}

// insertNote returns when the note was written. It returns [pgx.ErrNoRows] if the id exists, or if
// there is nothing that the note could be about.
func insertNote(ctx context.Context, q *pgq.Queries, tenant string, on api.NoteSubject, note api.NoteRecord) (time.Time, error) {
	if on.RuleID != uuid.Nil {
		return q.RuleNoteInsert(ctx, pgq.RuleNoteInsertParams{
			TenantID: tenant, NoteID: note.ID, RuleID: on.RuleID, GroupKey: on.Group, Author: note.Author, Text: note.Text,
		})
	}
	return q.IssueNoteInsert(ctx, pgq.IssueNoteInsertParams{
		TenantID: tenant, NoteID: note.ID, Application: on.Issue.Application, Route: on.Issue.Route, Signature: on.Issue.Signature,
		Author: note.Author, Text: note.Text,
	})
}

// Notes returns notes, newest first.
func (s *Inbox) Notes(ctx context.Context, tenant string, on api.NoteSubject, page api.NotePage) ([]api.NoteRecord, error) {
	var before api.NoteMark
	var beforeAt *time.Time
	if page.Before != nil {
		before = *page.Before
		beforeAt = &before.At
	}
	var rows []pgq.IssueNote
	var err error
	if on.RuleID != uuid.Nil {
		rows, err = s.db.queries.RuleNoteList(ctx, pgq.RuleNoteListParams{
			TenantID: tenant, RuleID: on.RuleID, GroupKey: on.Group, BeforeAt: beforeAt, BeforeID: before.ID, Most: int32(page.Limit),
		})
	} else {
		rows, err = s.db.queries.IssueNoteList(ctx, pgq.IssueNoteListParams{
			TenantID: tenant, Application: on.Issue.Application, Route: on.Issue.Route, Signature: on.Issue.Signature,
			BeforeAt: beforeAt, BeforeID: before.ID, Most: int32(page.Limit),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	notes := make([]api.NoteRecord, len(rows))
	for i, row := range rows {
		notes[i] = api.NoteRecord{ID: row.NoteID, Author: row.Author, Text: row.Text, At: row.WrittenAt}
	}
	return notes, nil
}

// sameNote returns when a note was written, if the stored note is the same one.
func sameNote(ctx context.Context, q *pgq.Queries, tenant string, on api.NoteSubject, note api.NoteRecord) (time.Time, error) {
	row, err := q.IssueNoteGet(ctx, pgq.IssueNoteGetParams{TenantID: tenant, NoteID: note.ID})
	switch {
	case errors.Is(err, pgx.ErrNoRows) && on.RuleID != uuid.Nil:
		return time.Time{}, fault.New(fault.Conflict, "the rule was deleted, and so were the notes on it")
	case err != nil:
		return time.Time{}, notFound(err, "issue")
	case on != subjectOf(&row) || row.Author != note.Author || row.Text != note.Text:
		return time.Time{}, fault.New(fault.Conflict, "the note ID belongs to another note; choose a new one")
	}
	return row.WrittenAt, nil
}

// subjectOf returns what a stored note is about. Either all columns of the issue are null, or both of the rule.
func subjectOf(row *pgq.IssueNote) api.NoteSubject {
	if row.RuleID != nil {
		return api.NoteSubject{RuleID: *row.RuleID, Group: *row.GroupKey}
	}
	return api.NoteSubject{Issue: api.IssueKey{Application: *row.Application, Route: *row.Route, Signature: *row.Signature}}
}

// NoteAuthor returns who wrote a note.
func (s *Inbox) NoteAuthor(ctx context.Context, tenant string, id uuid.UUID) (string, error) {
	row, err := s.db.queries.IssueNoteGet(ctx, pgq.IssueNoteGetParams{TenantID: tenant, NoteID: id})
	if err != nil {
		return "", fmt.Errorf("read note: %w", notFound(err, "note"))
	}
	return row.Author, nil
}

// DeleteNote deletes a note.
func (s *Inbox) DeleteNote(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		deleted, err := q.IssueNoteDelete(ctx, pgq.IssueNoteDeleteParams{TenantID: tenant, NoteID: id})
		if err == nil && deleted == 0 {
			return noSuch("note")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete note: %w", err)
	}
	return nil
}
