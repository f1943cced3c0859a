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

// WriteNote adds a note to an issue. If the note was written before, by its id, it is returned
// unchanged.
func (s *Inbox) WriteNote(ctx context.Context, tenant string, key api.IssueKey, note api.IssueNoteRecord) (api.IssueNoteRecord, error) {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		var err error
		note.At, err = q.IssueNoteInsert(ctx, pgq.IssueNoteInsertParams{
			TenantID: tenant, NoteID: note.ID, Application: key.Application, Route: key.Route, Signature: key.Signature,
			Author: note.Author, Text: note.Text,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			note.At, err = sameNote(ctx, q, tenant, key, note)
		}
		return err
	})
	if err != nil {
		return api.IssueNoteRecord{}, fmt.Errorf("write note: %w", err)
	}
	return note, nil
}

// Notes returns notes of an issue, newest first.
func (s *Inbox) Notes(ctx context.Context, tenant string, key api.IssueKey, page api.NotePage) ([]api.IssueNoteRecord, error) {
	p := pgq.IssueNoteListParams{
		TenantID: tenant, Application: key.Application, Route: key.Route, Signature: key.Signature, Most: int32(page.Limit),
	}
	if b := page.Before; b != nil {
		p.BeforeAt, p.BeforeID = &b.At, b.ID
	}
	rows, err := s.db.queries.IssueNoteList(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	notes := make([]api.IssueNoteRecord, len(rows))
	for i, row := range rows {
		notes[i] = api.IssueNoteRecord{ID: row.NoteID, Author: row.Author, Text: row.Text, At: row.WrittenAt}
	}
	return notes, nil
}

// sameNote returns when a note was written, if the stored note is the same one.
func sameNote(ctx context.Context, q *pgq.Queries, tenant string, key api.IssueKey, note api.IssueNoteRecord) (time.Time, error) {
	row, err := q.IssueNoteGet(ctx, pgq.IssueNoteGetParams{TenantID: tenant, NoteID: note.ID})
	if err != nil {
		return time.Time{}, notFound(err, "issue")
	}
	if key != (api.IssueKey{Application: row.Application, Route: row.Route, Signature: row.Signature}) || row.Author != note.Author || row.Text != note.Text {
		return time.Time{}, fault.New(fault.Conflict, "the note id belongs to another note; choose a new one")
	}
	return row.WrittenAt, nil
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
			return fault.New(fault.NotFound, "no such note")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete note: %w", err)
	}
	return nil
}
