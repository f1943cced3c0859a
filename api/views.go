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

// The bounds of a view, as in the API's description.
const (
	maxViewNameRunes = 60
	maxViewSearch    = 8000
)

// ViewStore stores saved views.
type ViewStore interface {
	// List returns the views of a person and the shared ones, by name.
	List(ctx context.Context, tenant, actor string) ([]ViewRecord, error)
	// Get returns one of them.
	Get(ctx context.Context, tenant, actor string, id uuid.UUID) (ViewRecord, error)
	// Save replaces the view that has the same owner and name, or writes a new one. If there are
	// too many, it returns a fault of kind Conflict.
	Save(ctx context.Context, tenant string, v ViewRecord) (ViewRecord, error)
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// ViewRecord is a named filter of the inbox.
type ViewRecord struct {
	ID uuid.UUID
	// Owner is who saved it, in the form in which alerts show people.
	Owner, Name string
	// Search is the query of the inbox's address, without the question mark.
	Search    string
	Shared    bool
	UpdatedAt time.Time
}

// ListViews answers GET /views.
func (s *server) ListViews(ctx context.Context, _ ListViewsRequestObject) (ListViewsResponseObject, error) {
	who := identityOf(ctx)
	found, err := s.Views.List(ctx, who.Tenant, who.Actor)
	if err != nil {
		return nil, fmt.Errorf("list views: %w", err)
	}
	answer := ListViews200JSONResponse{Items: make([]View, len(found))}
	for i, v := range found {
		answer.Items[i] = viewAnswer(v, who)
	}
	return answer, nil
}

// SaveView answers POST /views.
func (s *server) SaveView(ctx context.Context, req SaveViewRequestObject) (SaveViewResponseObject, error) {
	who, b := identityOf(ctx), req.Body
	v := ViewRecord{Owner: who.Actor, Name: strings.TrimSpace(b.Name), Search: b.Search, Shared: deref(b.Shared)}
	switch {
	case v.Name == "":
		return nil, invalidField("name", "required", "Must not be empty")
	case !cleanText(v.Name) || utf8.RuneCountInString(v.Name) > maxViewNameRunes:
		return nil, invalidField("name", "text", fmt.Sprintf("Must be valid text of at most %d characters", maxViewNameRunes))
	case !cleanText(v.Search) || len(v.Search) > maxViewSearch || strings.HasPrefix(v.Search, "?"):
		return nil, invalidField("search", "text", fmt.Sprintf("Must be a query without a question mark, of at most %d bytes", maxViewSearch))
	case v.Shared && !who.Role.Allows(access.Operator):
		return nil, who.lacks("Sharing a view", access.Operator)
	}
	saved, err := s.Views.Save(ctx, who.Tenant, v)
	if err != nil {
		return nil, fmt.Errorf("save view: %w", err)
	}
	return SaveView200JSONResponse(viewAnswer(saved, who)), nil
}

// DeleteView answers DELETE /views/{id}. The owner of a view never changes, so it may be read in
// advance.
func (s *server) DeleteView(ctx context.Context, req DeleteViewRequestObject) (DeleteViewResponseObject, error) {
	who := identityOf(ctx)
	v, err := s.Views.Get(ctx, who.Tenant, who.Actor, req.ID)
	if err != nil {
		return nil, fmt.Errorf("delete view: %w", err)
	}
	if v.Owner != who.Actor && !who.Role.Allows(access.Admin) {
		return nil, echo.NewHTTPError(http.StatusForbidden, "Only the owner and administrators can delete a shared view; ask one of them")
	}
	if err := s.Views.Delete(ctx, who.Tenant, req.ID); err != nil {
		return nil, fmt.Errorf("delete view: %w", err)
	}
	return DeleteView204Response{}, nil
}

func viewAnswer(v ViewRecord, who Identity) View {
	return View{
		ID: v.ID, Name: v.Name, Search: v.Search, Shared: v.Shared, Owner: v.Owner, Own: v.Owner == who.Actor, UpdatedAt: v.UpdatedAt.UTC(),
	}
}
