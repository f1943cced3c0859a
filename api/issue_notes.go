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
)

// maxNoteRunes bounds a note, as in the API's description.
const maxNoteRunes = 4000

// IssueNoteRecord is a note on an issue.
type IssueNoteRecord struct {
	ID           uuid.UUID
	Author, Text string
	At           time.Time
}

// NotePage selects a page of the notes of an issue.
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
	limit, err := limitOf(req.Params.Limit)
	if err != nil {
		return nil, err
	}
	m, err := decodeMark(listIssueNotes, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	page := NotePage{Limit: limit}
	if m != nil {
		page.Before = &NoteMark{At: m.At, ID: m.ID}
	}
	found, err := s.Issues.Notes(ctx, tenantOf(ctx), key, page)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	answer := ListIssueNotes200JSONResponse{Items: make([]IssueNote, len(found))}
	for i, note := range found {
		answer.Items[i] = noteAnswer(note)
	}
	answer.NextCursor, err = nextCursor(len(found), limit, func() mark {
		last := found[len(found)-1]
		return mark{List: listIssueNotes, At: last.At, ID: last.ID}
	})
	return answer, err
}

// CreateIssueNote answers POST /alerts/issue/notes.
func (s *server) CreateIssueNote(ctx context.Context, req CreateIssueNoteRequestObject) (CreateIssueNoteResponseObject, error) {
	who, b := identityOf(ctx), req.Body
	key := IssueKey{Application: b.Application, Route: b.Route, Signature: b.Signature}
	if err := key.check(); err != nil {
		return nil, err
	}
	note := IssueNoteRecord{ID: deref(b.NoteID), Author: who.Actor, Text: strings.TrimSpace(b.Text)}
	switch {
	case note.Text == "":
		return nil, invalidField("text", "required", "Must not be empty")
	case !cleanText(note.Text) || utf8.RuneCountInString(note.Text) > maxNoteRunes:
		return nil, invalidField("text", "text", fmt.Sprintf("Must be valid text of at most %d characters", maxNoteRunes))
	}
	var err error
	if note.ID == uuid.Nil {
		if note.ID, err = uuid.NewV7(); err != nil {
			return nil, fmt.Errorf("make note id: %w", err)
		}
	}
	if note, err = s.Issues.WriteNote(ctx, who.Tenant, key, note); err != nil {
		return nil, fmt.Errorf("write note: %w", err)
	}
	return CreateIssueNote201JSONResponse(noteAnswer(note)), nil
}

// DeleteIssueNote answers DELETE /alerts/issue/notes/{id}. The author of a note never changes, so
// it may be read in advance.
func (s *server) DeleteIssueNote(ctx context.Context, req DeleteIssueNoteRequestObject) (DeleteIssueNoteResponseObject, error) {
	who := identityOf(ctx)
	author, err := s.Issues.NoteAuthor(ctx, who.Tenant, req.ID)
	if err != nil {
		return nil, fmt.Errorf("delete note: %w", err)
	}
	if author != who.Actor && !who.Role.Allows(access.Admin) {
		return nil, echo.NewHTTPError(http.StatusForbidden, "Only the author and administrators can delete a note")
	}
	if err := s.Issues.DeleteNote(ctx, who.Tenant, req.ID); err != nil {
		return nil, fmt.Errorf("delete note: %w", err)
	}
	return DeleteIssueNote204Response{}, nil
}

func noteAnswer(n IssueNoteRecord) IssueNote {
	return IssueNote{ID: n.ID, Author: n.Author, Text: n.Text, WrittenAt: n.At.UTC()}
}
