package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Inbox is the API's store of alerts.
type Inbox struct {
	db *DB
	// Notified, if set, is called after an action that wrote messages, with their number for each
	// webhook.
	Notified func(ctx context.Context, byWebhook map[uuid.UUID]int)
	// Suppressed, if set, is called with the number of messages that silences suppressed.
	Suppressed func(messages int)
}

func (s *Inbox) notified(ctx context.Context, w written) {
	if s.Notified != nil && len(w.due) > 0 {
		s.Notified(ctx, w.due)
	}
	if s.Suppressed != nil && w.suppressed > 0 {
		s.Suppressed(w.suppressed)
	}
}

// Inbox returns the API's store of alerts.
func (db *DB) Inbox() *Inbox { return &Inbox{db: db} }

// newestFirst has a placeholder for conditions. The alerts of each state are read in the order of
// the index, and only as many as the page needs. If the index holds everything that the conditions
// ask for, the rows of the alerts are not read.
const newestFirst = `
select i.* from unnest(@states::text[]) s (state) cross join lateral (
    select a.fired_at, a.alert_id from alert a
    where a.state = s.state and %s
    order by a.fired_at desc, a.alert_id desc
    limit @limit
) i
order by i.fired_at desc, i.alert_id desc
limit @limit`

// listAlerts has a placeholder for the selection of alerts. It leaves out stack and attributes, and
// the rule's note, because lists do not show them.
const listAlerts = `
select a.alert_id, a.tenant_id, a.rule_id, a.rule_version, a.severity, a.state, a.title, a.message, a.execution_id,
       a.start_time_ns, a.application, a.route, a.exchange::jsonb - 'errorStack' - 'attributes' as exchange, a.fired_at,
       a.acknowledged_at, a.acknowledged_by, a.resolved_at, a.resolved_by, a.change, a.count, a.health, a.late, a.late_by_ns, a.webhook_id, r.name, r.about - 'note',
       h.assignee, h.assigned_by, h.assigned_at, z.until, z.snoozed_by, z.snoozed_at
from (%s) i join alert a using (alert_id) join rule r using (rule_id) left join alert_assignment h using (alert_id)
left join alert_snooze z on z.alert_id = a.alert_id and z.until > now()
order by a.fired_at desc, a.alert_id desc`

// maxWalk is how many alerts a page reads for conditions that no index answers, such as a text.
const maxWalk = 10_000

// List returns a page of alerts.
func (s *Inbox) List(ctx context.Context, tenant string, q alerts.Query) (alerts.Page, error) {
	page, err := s.page(ctx, tenant, q)
	if err != nil {
		return alerts.Page{}, fmt.Errorf("list alerts: %w", err)
	}
	return page, nil
}

func (s *Inbox) page(ctx context.Context, tenant string, q alerts.Query) (alerts.Page, error) {
	var end *alerts.Mark
	if walks(&q.Filter) {
		var err error
		if end, err = s.walkTo(ctx, tenant, q); err != nil {
			return alerts.Page{}, err
		}
	}
	sql, args, err := s.listing(ctx, tenant, q, end)
	if err != nil {
		return alerts.Page{}, err
	}
	rows, err := s.db.pool.Query(ctx, sql, args)
	if err != nil {
		return alerts.Page{}, err
	}
	list, err := pgx.CollectRows(rows, listedAlert)
	if err != nil {
		return alerts.Page{}, err
	}
	page := alerts.Page{Alerts: list, Next: end}
	if len(list) == q.Limit {
		last := &list[len(list)-1]
		page.Next = &alerts.Mark{FiredAt: last.FiredAt, ID: last.ID}
	}
	return page, nil
}

// listing returns the statement of a page. The page ends at end, if that is known.
func (s *Inbox) listing(ctx context.Context, tenant string, q alerts.Query, end *alerts.Mark) (string, pgx.NamedArgs, error) {
	c, err := s.selectsInState(ctx, tenant, q.Filter)
	if err != nil {
		return "", nil, err
	}
	if end != nil {
		c.also("(a.fired_at, a.alert_id) >= (@end_at, @end_id)", "end_at", end.FiredAt)
		c.args["end_id"] = end.ID
	}
	return fmt.Sprintf(listAlerts, c.newest(q)), c.args, nil
}

// walkTo returns the last alert that a page reads; nil if the page reads all remaining alerts.
func (s *Inbox) walkTo(ctx context.Context, tenant string, q alerts.Query) (*alerts.Mark, error) {
	sql, args, err := s.walking(ctx, tenant, q)
	if err != nil {
		return nil, err
	}
	var end alerts.Mark
	err = s.db.pool.QueryRow(ctx, sql, args).Scan(&end.FiredAt, &end.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is no such alert
	}
	if err != nil {
		return nil, err
	}
	return &end, nil
}

// walking returns the statement that finds where a page ends after reading maxWalk alerts.
func (s *Inbox) walking(ctx context.Context, tenant string, q alerts.Query) (string, pgx.NamedArgs, error) {
	q.Filter, q.Limit = withoutWalk(q.Filter), maxWalk
	c, err := s.selectsInState(ctx, tenant, q.Filter)
	if err != nil {
		return "", nil, err
	}
	c.args["skipped"] = maxWalk - 1
	return c.newest(q) + "\noffset @skipped", c.args, nil
}

// selectsInState returns the conditions of a filter without those on the state. [newestFirst] asks
// for each state of the filter separately.
func (s *Inbox) selectsInState(ctx context.Context, tenant string, f alerts.Filter) (*conditions, error) {
	states := f.States
	if len(states) == 0 {
		states = alerts.States()
	}
	f.States = nil
	c, err := s.selects(ctx, tenant, f)
	if err != nil {
		return nil, err
	}
	c.args["states"] = states
	return c, nil
}

// newest returns the query for the ids that a query selects, newest first.
func (c *conditions) newest(q alerts.Query) string {
	if q.Before != nil {
		c.also("(a.fired_at, a.alert_id) < (@before_at, @before_id)", "before_at", q.Before.FiredAt)
		c.args["before_id"] = q.Before.ID
	}
	c.args["limit"] = q.Limit
	return fmt.Sprintf(newestFirst, c.where())
}

func listedAlert(row pgx.CollectableRow) (alerts.Instance, error) {
	var a pgq.Alert
	var ruleName string
	var about []byte
	var h handling
	err := row.Scan(&a.AlertID, &a.TenantID, &a.RuleID, &a.RuleVersion, &a.Severity, &a.State, &a.Title, &a.Message,
		&a.ExecutionID, &a.StartTimeNs, &a.Application, &a.Route, &a.Exchange, &a.FiredAt,
		&a.AcknowledgedAt, &a.AcknowledgedBy, &a.ResolvedAt, &a.ResolvedBy, &a.Change, &a.Count, &a.Health, &a.Late, &a.LateByNs, &a.WebhookID, &ruleName, &about,
		&h.assignee, &h.assignedBy, &h.assignedAt, &h.snoozedUntil, &h.snoozedBy, &h.snoozedAt)
	if err != nil {
		return alerts.Instance{}, err
	}
	alert, err := alertOf(a, ruleName, about)
	h.on(&alert)
	return alert, err
}

// Counts returns the number of alerts in each state.
func (s *Inbox) Counts(ctx context.Context, tenant string) (alerts.Counts, error) {
	row, err := s.db.queries.AlertCounts(ctx, tenant)
	if err != nil {
		return alerts.Counts{}, fmt.Errorf("count alerts: %w", err)
	}
	return alerts.Counts{Pending: row.Pending, Firing: row.Firing, Acknowledged: row.Acknowledged, Resolved: row.Resolved}, nil
}

// Get returns one complete alert.
func (s *Inbox) Get(ctx context.Context, tenant string, id uuid.UUID) (alerts.Instance, error) {
	return getAlert(ctx, s.db.queries, tenant, id)
}

func getAlert(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (alerts.Instance, error) {
	row, err := q.AlertGet(ctx, pgq.AlertGetParams{TenantID: tenant, AlertID: id})
	if err != nil {
		return alerts.Instance{}, notFound(err, "alert")
	}
	alert, err := alertOf(row.Alert, row.RuleName, row.RuleAbout)
	if row.Alert.ExecutionID != nil {
		alert.Signature = &row.Alert.Signature
	}
	handling{row.Assignee, row.AssignedBy, row.AssignedAt, row.SnoozedUntil, row.SnoozedBy, row.SnoozedAt}.on(&alert)
	return alert, err
}

// Act changes the state of an alert. If two people do the same at once, the alert names the first
// one.
func (s *Inbox) Act(ctx context.Context, tenant string, act api.AlertAction) (alerts.Instance, error) {
	var alert alerts.Instance
	var notified written
	err := s.db.repeatedly(ctx, func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		notified = written{}
		state, err := q.AlertLock(ctx, pgq.AlertLockParams{TenantID: tenant, AlertID: act.AlertID})
		if err != nil {
			return notFound(err, "alert")
		}
		from := alerts.State(state)
		to, err := from.After(act.Action)
		if err != nil {
			return err
		}
		if to != from {
			switch to {
			case alerts.Acknowledged:
				err = q.AlertAcknowledge(ctx, pgq.AlertAcknowledgeParams{Actor: act.Actor, AlertID: act.AlertID})
			case alerts.Resolved:
				err = q.AlertResolve(ctx, pgq.AlertResolveParams{Actor: act.Actor, AlertID: act.AlertID})
			case alerts.Firing, alerts.Pending:
				err = fault.New(fault.Conflict, "an alert cannot return to the state %s", to)
			}
			if err != nil {
				return err
			}
			notified, err = notifyEvent(ctx, q, changed{tenant, act.Actor, eventOf(to), []uuid.UUID{act.AlertID}})
			if err != nil {
				return err
			}
		}
		alert, err = getAlert(ctx, q, tenant, act.AlertID)
		return err
	})
	if err != nil {
		return alerts.Instance{}, fmt.Errorf("%s alert: %w", act.Action, err)
	}
	s.notified(ctx, notified)
	return alert, nil
}

// eventOf returns the event of an alert that a person brings to a state.
func eventOf(to alerts.State) notify.Reason {
	if to == alerts.Acknowledged {
		return notify.ReasonAcknowledged
	}
	return notify.ReasonResolved
}

// ChangedSince counts the alerts that changed after the change number with which a fingerprint
// begins.
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
