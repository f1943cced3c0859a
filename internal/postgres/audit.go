package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/postgres/pgq"
)

// audited runs f in a transaction on behalf of actor. Triggers record what changed; if they
// recorded nothing, the request itself is recorded.
func audited(ctx context.Context, q *pgq.Queries, actor access.Actor, f func() error) error {
	name, err := json.Marshal(actor)
	if err != nil {
		return fmt.Errorf("encode actor: %w", err)
	}
	if err := q.AuditActor(ctx, string(name)); err != nil {
		return fmt.Errorf("set actor: %w", err)
	}
	if err := f(); err != nil {
		return err
	}
	if err := q.AuditOperation(ctx); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// Audit is the API's view of the audit log.
type Audit struct{ db *DB }

// Audit returns the API's view of the audit log.
func (db *DB) Audit() *Audit { return &Audit{db} }

// listAudit has a place for the conditions of a query.
const listAudit = `
select audit_id, tenant_id, at, actor_kind, actor_id, actor, via, via_id, address, request_id, operation, action,
       object_kind, object_id, object_name, before, after
from audit
where %s
order by audit_id desc
limit @limit`

// List returns entries, newest first.
func (s *Audit) List(ctx context.Context, tenant string, q api.AuditQuery) ([]api.AuditRecord, error) {
	where := []string{"tenant_id = @tenant"}
	args := pgx.NamedArgs{"tenant": tenant, "limit": q.Limit}
	also := func(condition, name string, value any) {
		where, args[name] = append(where, condition), value
	}
	if q.Actor != "" {
		also("actor in (@actor, 'token ' || @actor)", "actor", q.Actor)
	}
	if q.ObjectKind != "" {
		also("object_kind = @kind", "kind", q.ObjectKind)
	}
	if q.ObjectID != "" {
		also("object_id = @object", "object", q.ObjectID)
	}
	if q.From != nil {
		also("at >= @from", "from", *q.From)
	}
	if q.To != nil {
		also("at < @to", "to", *q.To)
	}
	if q.Before != 0 {
		also("audit_id < @before", "before", q.Before)
	}
	rows, err := s.db.pool.Query(ctx, fmt.Sprintf(listAudit, strings.Join(where, " and ")), args)
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (api.AuditRecord, error) {
		var r api.AuditRecord
		a := &r.Actor
		err := row.Scan(&r.ID, &a.Tenant, &r.At, &a.Kind, &a.ID, &a.Name, &a.Via, &a.ViaID, &a.Address, &a.RequestID, &a.Operation,
			&r.Action, &a.ObjectKind, &a.ObjectID, &r.ObjectName, &r.Before, &r.After)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list audit log: %w", err)
	}
	return list, nil
}
