package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// maxNoteRunes bounds a note, as in the API's description.
const maxNoteRunes = 4000

// NoteSubject is what notes are about: an issue, or a window rule and one of its groups.
type NoteSubject struct {
	// Issue is empty if RuleID is set.
	Issue IssueKey
	// RuleID is [uuid.Nil] for an issue.
	RuleID uuid.UUID
	// Group is the value that the alerts are grouped by; empty without groups.
	Group string
}

// NoteRecord is a note.
type NoteRecord struct {
	ID           uuid.UUID
	Author, Text string
	At           time.Time
}

// NotePage selects a page of notes.
type NotePage struct {
	// Before is the last note of the previous page; nil starts the list.
	Before *NoteMark
	// Limit is the number of notes to return, 1 to 200.
	Limit int
}

// NoteMark is the place of a note in the order of notes.
type NoteMark struct {
	At time.Time
	ID uuid.UUID
}

// ListIssueNotes answers GET /alerts/issue/notes.
func (s *server) ListIssueNotes(ctx context.Context, req ListIssueNotesRequestObject) (ListIssueNotesResponseObject, error) {
	key := IssueKey{Application: req.Params.Application, Route: req.Params.Route, Signature: req.Params.Signature}
	if err := key.check(); err != nil {
		return nil, err
	}
	page, err := notePage(req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	answer, err := s.notes(ctx, NoteSubject{Issue: key}, page)
	return ListIssueNotes200JSONResponse(answer), err
}

// ListAlertNotes answers GET /alerts/{id}/notes.
func (s *server) ListAlertNotes(ctx context.Context, req ListAlertNotesRequestObject) (ListAlertNotesResponseObject, error) {
	page, err := notePage(req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	on, err := s.noteSubject(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	if on == nil {
		return ListAlertNotes200JSONResponse{Items: []IssueNote{}}, nil
	}
	answer, err := s.notes(ctx, *on, page)
	return ListAlertNotes200JSONResponse(answer), err
}

// CreateIssueNote answers POST /alerts/issue/notes.
func (s *server) CreateIssueNote(ctx context.Context, req CreateIssueNoteRequestObject) (CreateIssueNoteResponseObject, error) {
	b := req.Body
	key := IssueKey{Application: b.Application, Route: b.Route, Signature: b.Signature}
	if err := key.check(); err != nil {
		return nil, err
	}
	note, err := s.writeNote(ctx, NoteSubject{Issue: key}, AlertNoteText{Text: b.Text, NoteID: b.NoteID})
	return CreateIssueNote201JSONResponse(note), err
}

// CreateAlertNote answers POST /alerts/{id}/notes.
func (s *server) CreateAlertNote(ctx context.Context, req CreateAlertNoteRequestObject) (CreateAlertNoteResponseObject, error) {
	on, err := s.noteSubject(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	if on == nil {
		return nil, fault.New(fault.Conflict, "the alert is about Tocsin itself; such alerts have no notes")
	}
	note, err := s.writeNote(ctx, *on, *req.Body)
	return CreateAlertNote201JSONResponse(note), err
}

// DeleteIssueNote answers DELETE /alerts/issue/notes/{id}, whatever the note is about. The author
// of a note never changes, so it may be read in advance.
func (s *server) DeleteIssueNote(ctx context.Context, req DeleteIssueNoteRequestObject) (DeleteIssueNoteResponseObject, error) {
	who := identityOf(ctx)
	author, err := s.Issues.NoteAuthor(ctx, who.Tenant, req.ID)
	if err != nil {
		return nil, fmt.Errorf("delete note: %w", err)
	}
	if author != who.Actor && !who.Role.Allows(access.Admin) {
		return nil, echo.NewHTTPError(http.StatusForbidden, "Only the author and administrators can delete a note; ask one of them")
	}
	if err := s.Issues.DeleteNote(ctx, who.Tenant, req.ID); err != nil {
		return nil, fmt.Errorf("delete note: %w", err)
	}
	return DeleteIssueNote204Response{}, nil
}

// noteSubject returns what the notes of an alert are about; nil if the alert has none.
func (s *server) noteSubject(ctx context.Context, alert uuid.UUID) (*NoteSubject, error) {
	a, err := s.Inbox.Get(ctx, tenantOf(ctx), alert)
	switch {
	case err != nil:
		return nil, fmt.Errorf("get alert: %w", err)
	case a.Health:
		return nil, nil //nolint:nilnil // an ordinary case, which both callers answer
	case a.Count != nil:
		return &NoteSubject{RuleID: a.RuleID, Group: a.Count.Group}, nil
	}
	key := IssueKey{Application: a.Exchange.Application, Route: a.Exchange.Route, Signature: deref(a.Signature)}
	return &NoteSubject{Issue: key}, nil
}

func notePage(cursor *Cursor, limit *Limit) (NotePage, error) {
	n, err := limitOf(limit)
	if err != nil {
		return NotePage{}, err
	}
	m, err := decodeMark(listNotes, cursor)
	if err != nil {
		return NotePage{}, err
	}
	page := NotePage{Limit: n}
	if m != nil {
		page.Before = &NoteMark{At: m.At, ID: m.ID}
	}
	return page, nil
}

func (s *server) notes(ctx context.Context, on NoteSubject, page NotePage) (IssueNotePage, error) {
	found, err := s.Issues.Notes(ctx, tenantOf(ctx), on, page)
	if err != nil {
		return IssueNotePage{}, fmt.Errorf("list notes: %w", err)
	}
	answer := IssueNotePage{Items: make([]IssueNote, len(found))}
	for i, note := range found {
		answer.Items[i] = noteAnswer(note)
	}
	answer.NextCursor, err = nextCursor(len(found), page.Limit, func() mark {
		last := found[len(found)-1]
		return mark{List: listNotes, At: last.At, ID: last.ID}
	})
	return answer, err
}

func (s *server) writeNote(ctx context.Context, on NoteSubject, b AlertNoteText) (IssueNote, error) {
	who := identityOf(ctx)
	note := NoteRecord{ID: deref(b.NoteID), Author: who.Actor, Text: strings.TrimSpace(b.Text)}
	switch {
	case note.Text == "":
		return IssueNote{}, invalidField("text", "required", "Must not be empty")
	case !cleanText(note.Text) || utf8.RuneCountInString(note.Text) > maxNoteRunes:
		return IssueNote{}, invalidField("text", "text", fmt.Sprintf("Must be valid text of at most %d characters", maxNoteRunes))
	}
	var err error
	if note.ID == uuid.Nil {
		if note.ID, err = uuid.NewV7(); err != nil {
			return IssueNote{}, fmt.Errorf("make note id: %w", err)
		}
	}
	if note, err = s.Issues.WriteNote(ctx, who.Tenant, on, note); err != nil {
		return IssueNote{}, fmt.Errorf("write note: %w", err)
	}
	return noteAnswer(note), nil
}

func noteAnswer(n NoteRecord) IssueNote {
	return IssueNote{ID: n.ID, Author: n.Author, Text: n.Text, WrittenAt: n.At.UTC()}
}
