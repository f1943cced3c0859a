package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/postgres/pgq"
)

// deedAssign is the stored name of assigning many alerts.
const deedAssign = "assign"

// holdMany locks alerts in the order of their ids, as every bulk action does. The statement after
// it reads who handles them, so that a transaction that waited for another assignment sees its
// result.
const holdMany = `
select a.alert_id from alert a
where %s and a.state = any(@from_states)
order by a.alert_id
for update of a`

// assignMany assigns the locked alerts that still match: those that nobody or the actor handles,
// and those that others handle if the actor wants that. It stores who handled each before.
const assignMany = `
with candidate as materialized (
    select a.alert_id, h.assignee, h.assigned_by, h.assigned_at
    from alert a left join alert_assignment h using (alert_id)
    where %s and a.alert_id = any(@held::uuid[])
      and coalesce(h.assignee, '') <> @assignee::text
      and (@reassign::boolean or coalesce(h.assignee, '') in ('', @actor::text))
), kept as (
    insert into alert_assignment_before (tenant_id, action_id, alert_id, change, assignee, assigned_by, assigned_at)
    select @tenant::text, @action::uuid, c.alert_id, @change::bigint, c.assignee, c.assigned_by, c.assigned_at from candidate c
), assigned as (
    insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by)
    select c.alert_id, @tenant::text, @assignee::text, @actor::text from candidate c where @assignee::text <> ''
    on conflict (alert_id) do update set assignee = excluded.assignee, assigned_by = excluded.assigned_by, assigned_at = now()
), ended as (
    delete from alert_assignment h using candidate c where h.alert_id = c.alert_id and @assignee::text = ''
)
update alert a set change = @change from candidate c where a.alert_id = c.alert_id
returning a.alert_id`

// countUnassigned counts the alerts that an assignment leaves unchanged.
const countUnassigned = `
select count(*) filter (where a.change <> @change and a.state = any(@from_states) and coalesce(h.assignee, '') = @assignee),
       count(*) filter (where a.change <> @change and not (a.state = any(@from_states) and coalesce(h.assignee, '') = @assignee)),
       count(*)
from alert a left join alert_assignment h using (alert_id)
where %s`

// AssignMany assigns the alerts of a filter to somebody, in one transaction. If the assignment was
// done before, by its id, it returns the same answer and does nothing. It notifies no webhook.
func (s *Inbox) AssignMany(ctx context.Context, tenant string, of api.BulkAssignment) (api.BulkCounts, error) {
	c, err := s.selects(ctx, tenant, of.Filter)
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("assign alerts: %w", err)
	}
	selection, err := digestOf(of.Filter, chosen{Assignee: &of.Assignee, Reassign: of.Reassign})
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("assign alerts: %w", err)
	}
	c.args["from_states"] = []alerts.State{alerts.Firing, alerts.Acknowledged}
	c.args["actor"], c.args["reassign"], c.args["action"] = of.Actor, of.Reassign, of.ID
	under := action{tenant: tenant, id: of.ID, actor: of.Actor, act: deedAssign, selection: selection}
	done, err := s.once(ctx, under, func(tx pgx.Tx, q *pgq.Queries, _ int64) (others pgq.ActionDoneParams, err error) {
		to, err := assigneeOf(ctx, q, tenant, api.Assignment{Assignee: of.Assignee, Actor: of.Actor})
		if err != nil {
			return others, err
		}
		c.args["assignee"] = to
		// This is not the number of the action: a program of a version that does not know these
		// actions must not undo any by it.
		if c.args["change"], err = q.AlertChangeNext(ctx); err != nil {
			return others, err
		}
		if c.args["held"], err = changedBy(ctx, tx, fmt.Sprintf(holdMany, c.where()), c.args); err != nil {
			return others, err
		}
		assigned, err := changedBy(ctx, tx, fmt.Sprintf(assignMany, c.where()), c.args)
		if err != nil {
			return others, err
		}
		others, err = c.others(ctx, tx, countUnassigned, of.Filter.IDs)
		others.Changed = int64(len(assigned))
		return others, err
	})
	if err != nil {
		return api.BulkCounts{}, fmt.Errorf("assign alerts: %w", err)
	}
	return done, nil
}
