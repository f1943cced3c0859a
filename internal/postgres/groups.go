package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
)

// foldAlerts has places for the key of a group and, twice, for conditions. The
// newest alert of a group is looked up by the instant that is known by then.
const foldAlerts = `
with folded as (
    select %[1]s as key, max(a.fired_at) as newest_at,
           count(*) filter (where a.state = 'PENDING') as pending,
           count(*) filter (where a.state = 'FIRING') as firing,
           count(*) filter (where a.state = 'ACKNOWLEDGED') as acknowledged,
           count(*) filter (where a.state = 'RESOLVED') as resolved,
           count(*) filter (where not coalesce(x.read, a.fired_at <= @fold_mark)) as unread
    from alert a
    left join alert_read x on x.tenant_id = @tenant and x.actor = @fold_reader and x.alert_id = a.alert_id
    where %[2]s
    group by 1
), page as (
    select * from folded f
    where %[3]s
    order by f.newest_at desc, f.key::text collate "C"
    limit @limit
)
select f.key::text, f.newest_at, f.pending, f.firing, f.acknowledged, f.resolved, f.unread, n.alert_id
from page f
cross join lateral (
    select a.alert_id
    from alert a
    where a.fired_at = f.newest_at and %[1]s = f.key and %[2]s
    order by a.alert_id desc
    limit 1
) n
order by f.newest_at desc, f.key::text collate "C"`

// Groups returns the groups of the alerts that match, the newest first.
func (s *Inbox) Groups(ctx context.Context, tenant string, q api.GroupQuery) ([]alerts.Group, error) {
	sql, args, err := s.folding(ctx, tenant, q)
	if err != nil {
		return nil, fmt.Errorf("fold alerts: %w", err)
	}
	rows, err := s.db.pool.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("fold alerts: %w", err)
	}
	defer rows.Close()
	var groups []alerts.Group
	var newest []uuid.UUID
	for rows.Next() {
		var g alerts.Group
		var at time.Time
		var id uuid.UUID
		if err := rows.Scan(&g.Key, &at, &g.Counts.Pending, &g.Counts.Firing, &g.Counts.Acknowledged, &g.Counts.Resolved, &g.Unread, &id); err != nil {
			return nil, fmt.Errorf("fold alerts: %w", err)
		}
		groups, newest = append(groups, g), append(newest, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("fold alerts: %w", err)
	}
	return s.withNewest(ctx, tenant, groups, newest)
}

// folding returns the statement of a page of groups.
func (s *Inbox) folding(ctx context.Context, tenant string, q api.GroupQuery) (string, pgx.NamedArgs, error) {
	c, err := s.selects(ctx, tenant, q.Filter)
	if err != nil {
		return "", nil, err
	}
	mark, err := readUpTo(ctx, s.db.queries, tenant, q.Actor)
	if err != nil {
		return "", nil, err
	}
	after := "true"
	if q.After != nil {
		after = `(f.newest_at < @after_at or f.newest_at = @after_at and f.key::text collate "C" > @after_key)`
		c.args["after_at"], c.args["after_key"] = q.After.NewestAt, q.After.Key
	}
	c.args["fold_mark"], c.args["fold_reader"], c.args["limit"] = mark, q.Actor, q.Limit
	return fmt.Sprintf(foldAlerts, keyOf(q.By), c.where(), after), c.args, nil
}

// withNewest fills in the newest alert of each group; a group whose alert is
// gone meanwhile is left out.
func (s *Inbox) withNewest(ctx context.Context, tenant string, groups []alerts.Group, newest []uuid.UUID) ([]alerts.Group, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	page, err := s.List(ctx, tenant, alerts.Query{Filter: alerts.Filter{IDs: newest}, Limit: len(newest)})
	if err != nil {
		return nil, err
	}
	byID := make(map[uuid.UUID]alerts.Instance, len(page.Alerts))
	for _, a := range page.Alerts {
		byID[a.ID] = a
	}
	kept := groups[:0]
	for i, g := range groups {
		if a, there := byID[newest[i]]; there {
			g.Newest = a
			kept = append(kept, g)
		}
	}
	return kept, nil
}

// keyOf returns the expression of a fold's key.
func keyOf(by alerts.Fold) string {
	switch by {
	case alerts.ByRule:
		return "a.rule_id"
	case alerts.BySignature:
	}
	return "a.signature"
}
