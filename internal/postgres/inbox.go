package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// Inbox is the API's store of alerts.
type Inbox struct{ db *DB }

// Inbox returns the API's store of alerts.
func (db *DB) Inbox() *Inbox { return &Inbox{db} }

// listAlerts has a place for the conditions of a query. Stack and attributes
// are left out, because a list does not show them.
const listAlerts = `
select a.alert_id, a.tenant_id, a.rule_id, a.rule_version, a.severity, a.state, a.title, a.message, a.execution_id,
       a.start_time_ns, a.application, a.route, a.exchange - 'errorStack' - 'attributes' as exchange, a.fired_at,
       a.acknowledged_at, a.acknowledged_by, a.resolved_at, a.resolved_by, a.change, a.count, a.health, a.late, a.late_by_ns, a.webhook_id, r.name
from alert a join rule r using (rule_id)
where %s
order by a.fired_at desc, a.alert_id desc
limit @limit`

// List returns alerts, newest first.
func (s *Inbox) List(ctx context.Context, tenant string, q alerts.Query) ([]alerts.Instance, error) {
	c, err := s.selects(ctx, tenant, q.Filter)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	c.args["limit"] = q.Limit
	if q.Before != nil {
		c.also("(a.fired_at, a.alert_id) < (@before_at, @before_id)", "before_at", q.Before.FiredAt)
		c.args["before_id"] = q.Before.ID
	}
	rows, err := s.db.pool.Query(ctx, fmt.Sprintf(listAlerts, c.where()), c.args)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (alerts.Instance, error) {
		var a pgq.Alert
		var ruleName string
		err := row.Scan(&a.AlertID, &a.TenantID, &a.RuleID, &a.RuleVersion, &a.Severity, &a.State, &a.Title, &a.Message,
			&a.ExecutionID, &a.StartTimeNs, &a.Application, &a.Route, &a.Exchange, &a.FiredAt,
			&a.AcknowledgedAt, &a.AcknowledgedBy, &a.ResolvedAt, &a.ResolvedBy, &a.Change, &a.Count, &a.Health, &a.Late, &a.LateByNs, &a.WebhookID, &ruleName)
		if err != nil {
			return alerts.Instance{}, err
		}
		return alertOf(a, ruleName)
	})
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return list, nil
}

// Counts returns the number of alerts in each state.
func (s *Inbox) Counts(ctx context.Context, tenant string) (alerts.Counts, error) {
	row, err := s.db.queries.AlertCounts(ctx, tenant)
	if err != nil {
		return alerts.Counts{}, fmt.Errorf("count alerts: %w", err)
	}
	return alerts.Counts{Pending: row.Pending, Firing: row.Firing, Acknowledged: row.Acknowledged, Resolved: row.Resolved}, nil
}

// Get returns one alert, whole.
func (s *Inbox) Get(ctx context.Context, tenant string, id uuid.UUID) (alerts.Instance, error) {
	return getAlert(ctx, s.db.queries, tenant, id)
}

func getAlert(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (alerts.Instance, error) {
	row, err := q.AlertGet(ctx, pgq.AlertGetParams{TenantID: tenant, AlertID: id})
	if err != nil {
		return alerts.Instance{}, notFound(err, "alert")
	}
	return alertOf(row.Alert, row.RuleName)
}

// Act moves an alert as the action says. Of two who do the same at once, the
// first is kept as who did it.
func (s *Inbox) Act(ctx context.Context, tenant string, deed api.Deed) (alerts.Instance, error) {
	var alert alerts.Instance
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		state, err := q.AlertLock(ctx, pgq.AlertLockParams{TenantID: tenant, AlertID: deed.AlertID})
		if err != nil {
			return notFound(err, "alert")
		}
		from := alerts.State(state)
		to, err := from.After(deed.Action)
		if err != nil {
			return err
		}
		if to != from {
			switch to {
			case alerts.Acknowledged:
				err = q.AlertAcknowledge(ctx, pgq.AlertAcknowledgeParams{Actor: deed.Actor, AlertID: deed.AlertID})
			case alerts.Resolved:
				err = q.AlertResolve(ctx, pgq.AlertResolveParams{Actor: deed.Actor, AlertID: deed.AlertID})
			case alerts.Firing, alerts.Pending:
				err = fault.New(fault.Conflict, "no action leads back to %s", to)
			}
			if err != nil {
				return err
			}
		}
		alert, err = getAlert(ctx, q, tenant, deed.AlertID)
		return err
	})
	if err != nil {
		return alerts.Instance{}, fmt.Errorf("%s alert: %w", deed.Action, err)
	}
	return alert, nil
}

// ChangedSince counts the alerts whose last change came after the one that a
// fingerprint begins with.
func (s *Inbox) ChangedSince(ctx context.Context, tenant, fingerprint string, limit int64) (n int64, known bool, err error) {
	newest, _, _ := strings.Cut(fingerprint, "-")
	change, err := strconv.ParseInt(newest, 10, 64)
	if err != nil || change < 0 {
		return 0, false, nil //nolint:nilerr // what a client sends is no fault of ours
	}
	n, err = s.db.queries.AlertsChangedSince(ctx, pgq.AlertsChangedSinceParams{TenantID: tenant, Since: change, Most: limit})
	if err != nil {
		return 0, false, fmt.Errorf("count changed alerts: %w", err)
	}
	return n, true, nil
}

// Pulse returns a fingerprint of the inbox and its counts. The newest change
// alone would not do: a transaction may commit after one that began later.
func (s *Inbox) Pulse(ctx context.Context, tenant string) (string, alerts.Counts, error) {
	counts, err := s.Counts(ctx, tenant)
	if err != nil {
		return "", alerts.Counts{}, err
	}
	newest, err := s.db.queries.AlertNewestChange(ctx, tenant)
	if err != nil {
		return "", alerts.Counts{}, fmt.Errorf("read newest change: %w", err)
	}
	return fmt.Sprintf("%d-%d-%d-%d-%d", newest, counts.Pending, counts.Firing, counts.Acknowledged, counts.Resolved), counts, nil
}
