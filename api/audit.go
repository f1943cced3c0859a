package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tocsin/internal/access"
)

// AuditReader reads the audit log.
type AuditReader interface {
	// List returns entries, newest first.
	List(ctx context.Context, tenant string, q AuditQuery) ([]AuditRecord, error)
}

// AuditQuery selects entries of the audit log. Zero values do not restrict.
type AuditQuery struct {
	// Actor is an e-mail address, or a token by its name or in the form of [Identity].
	Actor                string
	ObjectKind, ObjectID string
	// From is inclusive, To exclusive.
	From, To *time.Time
	// Before is the entry after which the page begins, newest first; 0 starts the list.
	Before int64
	Limit  int
}

// AuditRecord is one entry of the audit log.
type AuditRecord struct {
	ID         int64
	At         time.Time
	Actor      access.Actor
	Action     string
	ObjectName string
	// Before and After are JSON objects, or nil.
	Before, After json.RawMessage
}

// ListAudit answers GET /audit.
func (s *server) ListAudit(ctx context.Context, req ListAuditRequestObject) (ListAuditResponseObject, error) {
	p := req.Params
	q := AuditQuery{Actor: deref(p.Actor), ObjectKind: deref(p.ObjectKind), ObjectID: deref(p.ObjectID), From: p.From, To: p.To}
	for name, value := range map[string]string{"actor": q.Actor, "objectKind": q.ObjectKind, "objectId": q.ObjectID} {
		if err := texts(name, []string{value}, maxNameBytes); err != nil {
			return nil, err
		}
	}
	var err error
	if q.Limit, err = limitOf(p.Limit); err != nil {
		return nil, err
	}
	m, err := decodeMark(listAuditLog, p.Cursor)
	if err != nil {
		return nil, err
	}
	if m != nil {
		q.Before = m.Number
	}
	found, err := s.Audit.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	answer := ListAudit200JSONResponse{Items: make([]AuditEntry, len(found))}
	for i := range found {
		answer.Items[i] = auditAnswer(&found[i])
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		return mark{List: listAuditLog, Number: found[len(found)-1].ID}
	})
	return answer, err
}

func auditAnswer(r *AuditRecord) AuditEntry {
	a := &r.Actor
	return AuditEntry{
		ID: r.ID, At: r.At.UTC(), ActorKind: a.Kind, ActorID: optional(a.ID), Actor: a.Name, Via: a.Via, ViaID: optional(a.ViaID),
		Address: optional(a.Address), RequestID: optional(a.RequestID), Operation: optional(a.Operation), Action: r.Action,
		ObjectKind: a.ObjectKind, ObjectID: optional(a.ObjectID), ObjectName: optional(r.ObjectName), Before: r.Before, After: r.After,
	}
}
