package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/silences"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// SilenceStore stores silences.
type SilenceStore interface {
	// Open returns the silences that are not over. Past returns the others, of those made before
	// one. Both return the newest first.
	Open(ctx context.Context, tenant string) ([]SilenceRecord, error)
	Past(ctx context.Context, tenant string, before *uuid.UUID, limit int) ([]SilenceRecord, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (SilenceRecord, error)
	// Create stores a valid silence. It begins now at the earliest. Create and Update return a
	// fault of kind Conflict if another silence that is not over has the name.
	Create(ctx context.Context, tenant, actor string, d silences.Definition) (SilenceRecord, error)
	// Update replaces a definition. A version other than the stored one is a fault of kind
	// Stale, a silence that is over one of kind Conflict.
	Update(ctx context.Context, tenant, actor string, edit SilenceEdit) (SilenceRecord, error)
	// End ends a silence. A silence that is over stays as it is.
	End(ctx context.Context, tenant, actor string, id uuid.UUID) (SilenceRecord, error)
	// Preview returns what a valid silence would have suppressed in the last 24 hours.
	Preview(ctx context.Context, tenant string, d silences.Definition) (SilencePreview, error)
}

// SilenceEdit is an edit of a version of a silence.
type SilenceEdit struct {
	ID         uuid.UUID
	Version    int64
	Definition silences.Definition
}

// SilenceRecord is a silence as people see it.
type SilenceRecord struct {
	silences.Silence
	// Status is by the store's clock.
	Status silences.Status
	// Suppressed is how many messages the silence has suppressed.
	Suppressed int64
	// Digests is how many digests list what it has suppressed.
	Digests int64
}

// SilencePreviewNewest is how many alerts a preview names.
const SilencePreviewNewest = 20

// silencePreviewWindows is how many windows of a recurrence a preview names.
const silencePreviewWindows = 5

// SilencePreview is what a silence would have suppressed.
type SilencePreview struct {
	Alerts, Messages               int64
	Matched, MatchedMessages       int64
	Suppressed, SuppressedMessages int64
	// Partial says that there were too many alerts to read all of them.
	Partial bool
	// Newest are matching alerts, newest first. Windows are the next windows.
	Newest  []SilencePreviewed
	Windows []silences.Status
}

// SilencePreviewed is an alert that a silence applies to.
type SilencePreviewed struct {
	AlertID         uuid.UUID
	Title, RuleName string
	Severity        rules.Severity
	State           alerts.State
	FiredAt         time.Time
}

// ListSilences answers GET /silences.
func (s *server) ListSilences(ctx context.Context, req ListSilencesRequestObject) (ListSilencesResponseObject, error) {
	past := deref(req.Params.Past)
	limit, err := limitOf(req.Params.Limit)
	if err != nil {
		return nil, err
	}
	m, err := decodeMark(listSilences, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	var found []SilenceRecord
	if past {
		var before *uuid.UUID
		if m != nil {
			before = &m.ID
		}
		found, err = s.Silences.Past(ctx, tenantOf(ctx), before, limit)
	} else if m == nil {
		found, err = s.Silences.Open(ctx, tenantOf(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("list silences: %w", err)
	}
	answer := ListSilences200JSONResponse{Items: make([]Silence, len(found))}
	for i := range found {
		answer.Items[i] = silenceAnswer(&found[i])
	}
	if past {
		answer.NextCursor, err = nextCursor(len(found), limit, func() mark {
			last := &found[len(found)-1]
			return mark{List: listSilences, At: last.CreatedAt.UTC(), ID: last.ID}
		})
	}
	return answer, err
}

// CreateSilence answers POST /silences.
func (s *server) CreateSilence(ctx context.Context, req CreateSilenceRequestObject) (CreateSilenceResponseObject, error) {
	if err := s.checkSilence(ctx, req.Body); err != nil {
		return nil, err
	}
	r, err := s.Silences.Create(ctx, tenantOf(ctx), identityOf(ctx).Actor, *req.Body)
	if err != nil {
		return nil, fmt.Errorf("create silence: %w", err)
	}
	return CreateSilence201JSONResponse{
		Body:    silenceAnswer(&r),
		Headers: CreateSilence201ResponseHeaders{ETag: etag(r.Version), Location: "/api/v1/silences/" + r.ID.String()},
	}, nil
}

// checkSilence returns what is wrong with a definition. A silence without a start begins now.
func (s *server) checkSilence(ctx context.Context, d *silences.Definition) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return fmt.Errorf("check silence: %w", err)
	}
	checked := *d
	if checked.StartsAt.Before(now) {
		checked.StartsAt = now
	}
	return checked.Check(s.validator)
}

// GetSilence answers GET /silences/{id}.
func (s *server) GetSilence(ctx context.Context, req GetSilenceRequestObject) (GetSilenceResponseObject, error) {
	r, err := s.Silences.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get silence: %w", err)
	}
	return GetSilence200JSONResponse{Body: silenceAnswer(&r), Headers: GetSilence200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// UpdateSilence answers PUT /silences/{id}.
func (s *server) UpdateSilence(ctx context.Context, req UpdateSilenceRequestObject) (UpdateSilenceResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := s.checkSilence(ctx, req.Body); err != nil {
		return nil, err
	}
	r, err := s.Silences.Update(ctx, tenantOf(ctx), identityOf(ctx).Actor, SilenceEdit{ID: req.ID, Version: version, Definition: *req.Body})
	if err != nil {
		return nil, fmt.Errorf("update silence: %w", err)
	}
	return UpdateSilence200JSONResponse{Body: silenceAnswer(&r), Headers: UpdateSilence200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// EndSilence answers POST /silences/{id}/end.
func (s *server) EndSilence(ctx context.Context, req EndSilenceRequestObject) (EndSilenceResponseObject, error) {
	r, err := s.Silences.End(ctx, tenantOf(ctx), identityOf(ctx).Actor, req.ID)
	if err != nil {
		return nil, fmt.Errorf("end silence: %w", err)
	}
	return EndSilence200JSONResponse{Body: silenceAnswer(&r), Headers: EndSilence200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// PreviewSilence answers POST /silences/preview.
func (s *server) PreviewSilence(ctx context.Context, req PreviewSilenceRequestObject) (PreviewSilenceResponseObject, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, fmt.Errorf("preview silence: %w", err)
	}
	end := now.Add(time.Hour)
	d := silences.Definition{Name: "preview", StartsAt: now, EndsAt: &end, Match: req.Body.Match, Recurrence: req.Body.Recurrence}
	if err := d.Check(s.validator); err != nil {
		return nil, err
	}
	p, err := s.Silences.Preview(ctx, tenantOf(ctx), d)
	if err != nil {
		return nil, fmt.Errorf("preview silence: %w", err)
	}
	answer := PreviewSilence200JSONResponse{
		Alerts: p.Alerts, Messages: p.Messages, MatchedAlerts: p.Matched, MatchedMessages: p.MatchedMessages,
		SuppressedAlerts: p.Suppressed, SuppressedMessages: p.SuppressedMessages, Complete: !p.Partial,
		Newest: make([]SilencedAlert, len(p.Newest)), Windows: []SilenceWindow{},
	}
	for i, a := range p.Newest {
		answer.Newest[i] = SilencedAlert{ID: a.AlertID, Title: a.Title, RuleName: a.RuleName, Severity: a.Severity, State: a.State, FiredAt: a.FiredAt.UTC()}
	}
	if d.Recurrence != nil {
		d.EndsAt = req.Body.EndsAt
		if req.Body.StartsAt != nil {
			d.StartsAt = *req.Body.StartsAt
		}
		if err := fault.InvalidFields("the silence", d.CheckStart()); err != nil {
			return nil, err
		}
		for _, w := range d.Windows(now, silencePreviewWindows) {
			answer.Windows = append(answer.Windows, SilenceWindow{From: w.From.UTC(), Until: w.Until.UTC()})
		}
	}
	return answer, nil
}

func silenceAnswer(r *SilenceRecord) Silence {
	return Silence{
		ID: r.ID, Version: r.Version, Name: r.Name, Reason: r.Reason, Match: r.Match, StartsAt: r.StartsAt.UTC(), EndsAt: utc(r.EndsAt),
		Recurrence: r.Recurrence, State: r.Status.State, From: instantOf(r.Status.From), Until: instantOf(r.Status.Until),
		Digest: r.Digest, Suppressed: r.Suppressed, Digests: r.Digests, Problem: optional(r.Problem), CreatedAt: r.CreatedAt.UTC(), CreatedBy: r.CreatedBy,
		UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy, EndedAt: utc(r.EndedAt), EndedBy: optional(r.EndedBy),
	}
}
