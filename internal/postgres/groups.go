package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
)

// foldAlerts has placeholders for the key of a group, its rank, who acknowledged it, and
// conditions. The newest alert of a group is looked up by its instant, which is known at that
// point.
const foldAlerts = `
with folded as (
    select %[1]s as key, %[4]s::bigint as rank, max(a.fired_at) as newest_at, min(a.fired_at) as first_at,
           count(*) filter (where a.state = 'PENDING') as pending,
           count(*) filter (where a.state = 'FIRING') as firing,
           count(*) filter (where a.state = 'ACKNOWLEDGED') as acknowledged,
           count(*) filter (where a.state = 'RESOLVED') as resolved,
           count(*) filter (where not coalesce(x.read, a.fired_at <= @fold_mark)) as unread,
           %[5]s
    from alert a
    left join alert_read x on x.tenant_id = @tenant and x.actor = @fold_reader and x.alert_id = a.alert_id
    where %[2]s
    group by 1
), page as (
    select * from folded f
    where %[3]s
    order by f.rank desc, f.newest_at desc, f.key::text collate "C"
    limit @limit
)
select f.key::text, f.rank, f.newest_at, f.first_at, f.pending, f.firing, f.acknowledged, f.resolved, f.unread,
       f.acknowledged_by, f.acknowledged_at, n.alert_id
from page f
cross join lateral (
    select a.alert_id
    from alert a
    where a.fired_at = f.newest_at and %[1]s = f.key and %[2]s
    order by a.alert_id desc
    limit 1
) n
order by f.rank desc, f.newest_at desc, f.key::text collate "C"`

// foldTrends counts the alerts of some issues by hour since they fired. It has placeholders for the
// key of a group and for conditions.
const foldTrends = `
select %[1]s as key, floor(extract(epoch from now() - a.fired_at) / 3600)::integer as hours, count(*)
from alert a
where a.fired_at > now() - @trend_hours * interval '1 hour' and a.fired_at <= now() and %[1]s = any(@keys) and %[2]s
group by 1, 2`

// mostDelivered bounds the alerts whose messages are counted for a page of groups. Each costs some
// 20 µs.
const mostDelivered = 5000

// foldDeliveries counts the messages of the newest alerts of some groups. It has placeholders for
// the key of a group and for conditions.
const foldDeliveries = `
with picked as materialized (
    select p.key, p.alert_id
    from (
        select (%[1]s)::text as key, a.alert_id,
               row_number() over (partition by (%[1]s)::text collate "C" order by a.fired_at desc, a.alert_id desc) as place
        from alert a
        where (%[1]s)::text = any(@keys) and %[2]s
    ) p
    where p.place <= @most
)
select p.key, count(*), sum(d.total)::bigint, sum(d.delivered)::bigint, sum(d.retrying)::bigint, sum(d.failed)::bigint,
       sum(d.suppressed)::bigint, sum(d.discarded)::bigint, min(d.next_attempt_at), min(d.quiet_until)
from picked p
cross join lateral (
    select count(*) as total,
           count(*) filter (where s.status = 'DELIVERED') as delivered,
           count(*) filter (where s.status = 'RETRYING') as retrying,
           count(*) filter (where s.status in ('FAILED', 'EXHAUSTED')) as failed,
           count(*) filter (where s.status = 'SUPPRESSED') as suppressed,
           count(*) filter (where s.status = 'DISCARDED') as discarded,
           min(s.next_attempt_at) as next_attempt_at, min(s.quiet_until) as quiet_until
    from notification_status s where s.alert_id = p.alert_id
) d
group by p.key`

// Groups returns the groups of the matching alerts, newest first.
func (s *Inbox) Groups(ctx context.Context, tenant string, q api.GroupQuery) ([]alerts.Group, error) {
	sql, args, err := s.folding(ctx, tenant, q)
	if err != nil {
		return nil, fmt.Errorf("group alerts: %w", err)
	}
	rows, err := s.db.pool.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("group alerts: %w", err)
	}
	defer rows.Close()
	var groups []alerts.Group
	var newest []uuid.UUID
	for rows.Next() {
		var g alerts.Group
		var issue alerts.Issue
		var at time.Time
		var id uuid.UUID
		if err := rows.Scan(&g.Key, &g.Rank, &at, &g.FirstAt, &g.Counts.Pending, &g.Counts.Firing, &g.Counts.Acknowledged,
			&g.Counts.Resolved, &g.Unread, &issue.AcknowledgedBy, &issue.AcknowledgedAt, &id); err != nil {
			return nil, fmt.Errorf("group alerts: %w", err)
		}
		if q.By == alerts.ByIssue {
			issue.Severity = severityOf(g.Rank)
			g.Issue = &issue
		}
		groups, newest = append(groups, g), append(newest, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("group alerts: %w", err)
	}
	if groups, err = s.withNewest(ctx, tenant, groups, newest); err != nil || q.By != alerts.ByIssue {
		return groups, err
	}
	return groups, s.trends(ctx, tenant, q.Filter, groups)
}

// trends fills in the trends of issues.
func (s *Inbox) trends(ctx context.Context, tenant string, f alerts.Filter, groups []alerts.Group) error {
	c, err := s.selects(ctx, tenant, f)
	if err != nil {
		return err
	}
	byKey := make(map[string]*alerts.Issue, len(groups))
	keys := make([]string, len(groups))
	for i := range groups {
		keys[i], byKey[groups[i].Key] = groups[i].Key, groups[i].Issue
	}
	c.args["keys"], c.args["trend_hours"] = keys, alerts.TrendHours
	rows, err := s.db.pool.Query(ctx, fmt.Sprintf(foldTrends, keyOf(alerts.ByIssue), c.where()), c.args)
	if err != nil {
		return fmt.Errorf("count trends: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		var hours int
		var n int64
		if err := rows.Scan(&key, &hours, &n); err != nil {
			return fmt.Errorf("count trends: %w", err)
		}
		if hours < alerts.TrendHours {
			byKey[key].Trend[alerts.TrendHours-1-hours] = n
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("count trends: %w", err)
	}
	return nil
}

// Deliveries counts the messages of groups, see [api.Folder].
func (s *Inbox) Deliveries(ctx context.Context, tenant string, q api.GroupQuery, groups []alerts.Group) (map[string]api.GroupDeliveries, error) {
	c, err := s.selects(ctx, tenant, q.Filter)
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	keys, sizes := make([]string, len(groups)), make([]int64, len(groups))
	for i := range groups {
		n := groups[i].Counts
		keys[i], sizes[i] = groups[i].Key, n.Pending+n.Firing+n.Acknowledged+n.Resolved
	}
	c.args["keys"], c.args["most"] = keys, share(sizes, mostDelivered)
	rows, err := s.db.pool.Query(ctx, fmt.Sprintf(foldDeliveries, keyOf(q.By), c.where()), c.args)
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	defer rows.Close()
	counts := make(map[string]api.GroupDeliveries, len(groups))
	for rows.Next() {
		var key string
		var d api.GroupDeliveries
		if err := rows.Scan(&key, &d.Alerts, &d.Total, &d.Delivered, &d.Retrying, &d.Failed, &d.Suppressed, &d.Discarded, &d.NextAttemptAt, &d.QuietUntil); err != nil {
			return nil, fmt.Errorf("count deliveries: %w", err)
		}
		counts[key] = d
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	return counts, nil
}

// share returns the largest number such that taking at most so many from each group takes at most
// total altogether, and at least 1. What small groups leave is for the large ones.
func share(sizes []int64, total int64) int64 {
	slices.Sort(sizes)
	for i, size := range sizes {
		even := total / int64(len(sizes)-i)
		if size > even {
			return max(1, even)
		}
		total -= size
	}
	return math.MaxInt64
}

// folding returns the statement that reads a page of groups.
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
		after = `(f.rank < @after_rank or f.rank = @after_rank and
      (f.newest_at < @after_at or f.newest_at = @after_at and f.key::text collate "C" > @after_key))`
		c.args["after_rank"], c.args["after_at"], c.args["after_key"] = q.After.Rank, q.After.NewestAt, q.After.Key
	}
	c.args["fold_mark"], c.args["fold_reader"], c.args["limit"] = mark, q.Actor, q.Limit
	rank, acknowledged := "0", "null::text[] as acknowledged_by, null::timestamptz as acknowledged_at"
	if q.By == alerts.ByIssue {
		rank, acknowledged = rankOfIssue, acknowledgedOfIssue
	}
	return fmt.Sprintf(foldAlerts, keyOf(q.By), c.where(), after, rank, acknowledged), c.args, nil
}

// withNewest fills in the newest alert of each group. It leaves out a group whose alert was deleted
// in the meantime.
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
			if g.Issue != nil {
				g.Issue.Application, g.Issue.Route = a.Exchange.Application, a.Exchange.Route
				if parts := strings.SplitN(g.Key, " ", 3); len(parts) == 3 {
					g.Issue.Signature = parts[2]
				}
			}
			kept = append(kept, g)
		}
	}
	return kept, nil
}

const (
	// issueKey uses hashes of names that may be long; requests that act on an issue give the full
	// names.
	issueKey = `case when a.execution_id is null then a.alert_id::text
                else hashtext(a.application) || ' ' || hashtext(a.route) || ' ' || a.signature end`
	rankOfIssue         = `max(case a.severity when 'CRITICAL' then 2 when 'WARNING' then 1 else 0 end)`
	acknowledgedOfIssue = `array_agg(distinct a.acknowledged_by) filter (where a.state = 'ACKNOWLEDGED' and a.acknowledged_by <> '') as acknowledged_by,
           max(a.acknowledged_at) filter (where a.state = 'ACKNOWLEDGED') as acknowledged_at`
)

// keyOf returns the expression of the key of a fold.
func keyOf(by alerts.Fold) string {
	switch by {
	case alerts.ByRule:
		return "a.rule_id"
	case alerts.ByIssue:
		return issueKey
	case alerts.BySignature:
	}
	return "a.signature"
}
