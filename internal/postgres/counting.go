package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator/window"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// OpenAlerts returns the alerts of window rules that are open or held.
func (s *Evaluation) OpenAlerts(ctx context.Context, ruleIDs []uuid.UUID) ([]alerts.OpenAlert, error) {
	rows, err := s.db.queries.AlertOpen(ctx, ruleIDs)
	if err != nil {
		return nil, fmt.Errorf("read open alerts: %w", err)
	}
	open := make([]alerts.OpenAlert, len(rows))
	for i, row := range rows {
		o := alerts.Open{State: alerts.State(row.State), Since: row.FiredAt, Reminders: int(row.Reminders), Held: row.Held, Snoozed: row.Snoozed}
		if row.Held && row.ResolvedAt != nil {
			o.Since = *row.ResolvedAt
		}
		if row.HeldUntil != nil {
			o.HeldUntil = *row.HeldUntil
		}
		if row.NotifiedAt != nil {
			o.NotifiedAt = *row.NotifiedAt
		}
		open[i] = alerts.OpenAlert{
			ID: row.AlertID, RuleID: row.RuleID, Group: row.GroupKey,
			NewestEndedNS: row.EndedNs, NewestStartNS: row.StartTimeNs, LeastNS: row.DurationMs * 1e6, Open: o,
		}
		if row.Routing != nil {
			open[i].Routing = new(alerts.Routing)
			if json.Unmarshal(row.Routing, open[i].Routing) != nil {
				open[i].Routing = nil // routing that cannot be read is decided by the policy now in force
			}
		}
	}
	return open, s.withoutGone(ctx, open)
}

// withoutGone removes deleted webhooks from the routing of alerts. No webhook can be deleted
// between this read and the commit made from it: a deletion makes that commit stale.
func (s *Evaluation) withoutGone(ctx context.Context, open []alerts.OpenAlert) error {
	named := map[uuid.UUID]bool{}
	for i := range open {
		if r := open[i].Routing; r != nil {
			maps.Copy(named, setOf(r.WebhookIDs()))
		}
	}
	if len(named) == 0 {
		return nil
	}
	list, err := s.db.queries.WebhooksGone(ctx, slices.Collect(maps.Keys(named)))
	if err != nil {
		return fmt.Errorf("find deleted webhooks: %w", err)
	}
	gone := setOf(list)
	for i := range open {
		r := open[i].Routing
		if r == nil {
			continue
		}
		r.DefaultWebhookIDs = slices.DeleteFunc(r.DefaultWebhookIDs, func(id uuid.UUID) bool { return gone[id] })
		for n := range r.Routes {
			r.Routes[n].WebhookIDs = slices.DeleteFunc(r.Routes[n].WebhookIDs, func(id uuid.UUID) bool { return gone[id] })
		}
	}
	return nil
}

// applyChanges applies steps of window alerts, in one statement for each kind of step. It leaves
// out a step, with its notifications, if the alert is no longer in the state that the step starts
// from, or if somebody has locked it at the moment: the partition must not wait. The next evaluation decides again.
func applyChanges(ctx context.Context, q *pgq.Queries, changes []window.Change) (s stepped, err error) {
	if changes, s.locked, err = lockChanged(ctx, q, changes); err != nil {
		return s, err
	}
	var steps stepRows
	for i := range changes {
		if err := steps.add(&changes[i]); err != nil {
			return s, err
		}
	}
	if s.inserted, s.changed, err = steps.apply(ctx, q); err != nil {
		return s, err
	}
	if err := startEscalations(ctx, q, escalatingChanges(changes, slices.Concat(s.inserted, s.changed))); err != nil {
		return s, err
	}
	s.notified, err = notifySteps(ctx, q, changes, slices.Concat(s.inserted, s.changed))
	return s, err
}

// stepped is the result of steps: the alerts that are new, those that took a step, and those that took none because
// somebody else had locked them; and the notifications about the first two.
type stepped struct {
	inserted, changed, locked []uuid.UUID
	notified                  written
}

// lockChanged locks the alerts that take steps. It returns the alerts that somebody else has locked, and the steps of the
// others. The steps of alerts that do not exist any more are left out of both.
func lockChanged(ctx context.Context, q *pgq.Queries, changes []window.Change) (others []window.Change, locked []uuid.UUID, err error) {
	exists := func(c window.Change) bool { return c.Step != alerts.Wait && c.Step != alerts.Raise }
	var ids []uuid.UUID
	for i := range changes {
		if exists(changes[i]) {
			ids = append(ids, changes[i].Instance.ID)
		}
	}
	if len(ids) == 0 {
		return changes, nil, nil
	}
	free, err := q.AlertLockFree(ctx, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("lock alerts: %w", err)
	}
	held := setOf(free)
	if locked = slices.DeleteFunc(ids, func(id uuid.UUID) bool { return held[id] }); len(locked) > 0 {
		if locked, err = q.AlertsThere(ctx, locked); err != nil {
			return nil, nil, fmt.Errorf("find locked alerts: %w", err)
		}
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c window.Change) bool { return exists(c) && !held[c.Instance.ID] }), locked, nil
}

// stepRows is steps in stored form.
type stepRows struct {
	raise         pgq.AlertRaiseParams
	fire          pgq.AlertFireParams
	clear         pgq.AlertClearParams
	drop, release []uuid.UUID
}

func (s *stepRows) add(c *window.Change) error {
	a := &c.Instance
	count, err := json.Marshal(a.Count)
	if err != nil {
		return fmt.Errorf("encode count: %w", err)
	}
	exchange, err := json.Marshal(a.Exchange)
	if err != nil {
		return fmt.Errorf("encode exchange: %w", err)
	}
	routing, err := routingColumn(a.Routing)
	if err != nil {
		return err
	}
	switch c.Step {
	case alerts.Wait, alerts.Raise:
		state := alerts.Firing
		if c.Step == alerts.Wait {
			state = alerts.Pending
		}
		p := &s.raise
		p.AlertIds, p.TenantIds, p.RuleIds = append(p.AlertIds, a.ID), append(p.TenantIds, a.TenantID), append(p.RuleIds, a.RuleID)
		p.RuleVersions, p.Severities, p.States = append(p.RuleVersions, a.RuleVersion), append(p.Severities, string(a.Severity)), append(p.States, string(state))
		p.Titles, p.Messages, p.GroupKeys = append(p.Titles, a.Title), append(p.Messages, a.Message), append(p.GroupKeys, a.Count.Group)
		p.Counts, p.StartTimesNs, p.Exchanges = append(p.Counts, count), append(p.StartTimesNs, a.Exchange.StartTimeNS), append(p.Exchanges, exchange)
		p.Applications, p.Routes, p.Routings = append(p.Applications, a.Exchange.Application), append(p.Routes, a.Exchange.Route), append(p.Routings, routing)
	case alerts.Fire, alerts.Remind:
		p := &s.fire
		p.AlertIds, p.Reminds = append(p.AlertIds, a.ID), append(p.Reminds, c.Step == alerts.Remind)
		p.Titles, p.Messages, p.Counts = append(p.Titles, a.Title), append(p.Messages, a.Message), append(p.Counts, count)
		p.StartTimesNs, p.Exchanges = append(p.StartTimesNs, a.Exchange.StartTimeNS), append(p.Exchanges, exchange)
		p.Applications, p.Routes, p.Routings = append(p.Applications, a.Exchange.Application), append(p.Routes, a.Exchange.Route), append(p.Routings, routing)
	case alerts.Clear:
		s.clear.AlertIds, s.clear.Counts = append(s.clear.AlertIds, a.ID), append(s.clear.Counts, count)
	case alerts.Drop:
		s.drop = append(s.drop, a.ID)
	case alerts.Release:
		s.release = append(s.release, a.ID)
	case alerts.Stay:
	}
	return nil
}

// apply makes the steps. Steps that end alerts come first, so that a group may be raised again.
func (s *stepRows) apply(ctx context.Context, q *pgq.Queries) (inserted, changed []uuid.UUID, err error) {
	for _, kind := range []struct {
		step alerts.Step
		of   int
		make func() ([]uuid.UUID, error)
	}{
		{alerts.Drop, len(s.drop), func() ([]uuid.UUID, error) { return q.AlertDrop(ctx, s.drop) }},
		{alerts.Release, len(s.release), func() ([]uuid.UUID, error) { return q.AlertRelease(ctx, s.release) }},
		{alerts.Clear, len(s.clear.AlertIds), func() ([]uuid.UUID, error) { return q.AlertClear(ctx, s.clear) }},
		{alerts.Fire, len(s.fire.AlertIds), func() ([]uuid.UUID, error) { return q.AlertFire(ctx, s.fire) }},
		{alerts.Raise, len(s.raise.AlertIds), func() ([]uuid.UUID, error) { return q.AlertRaise(ctx, s.raise) }},
	} {
		if kind.of == 0 {
			continue
		}
		ids, err := kind.make()
		if err != nil {
			return nil, nil, fmt.Errorf("%s alerts: %w", kind.step, err)
		}
		if kind.step == alerts.Raise {
			inserted = ids
		} else {
			changed = append(changed, ids...)
		}
	}
	return inserted, changed, nil
}

// notifySteps writes the notifications of the steps that were made. A webhook that was notified of an alert is notified of its end
// if the rule says so, also when the rule names others by now, or if the webhook chose that event.
func notifySteps(ctx context.Context, q *pgq.Queries, changes []window.Change, made []uuid.UUID) (written, error) {
	stepped := setOf(made)
	var list []following
	var tenants []string
	var cleared []uuid.UUID
	for i := range changes {
		c := &changes[i]
		if !stepped[c.Instance.ID] {
			continue
		}
		for _, n := range c.Notifications {
			list = append(list, following{alert: n.AlertID, webhook: n.WebhookID, reason: n.Reason})
		}
		if c.Step == alerts.Clear {
			tenants, cleared = append(tenants, c.Instance.TenantID), append(cleared, c.Instance.ID)
		}
	}
	if len(cleared) > 0 {
		chosen, err := events(ctx, q, notify.ReasonResolved, slices.Compact(slices.Sorted(slices.Values(tenants))), cleared)
		if err != nil {
			return written{}, err
		}
		over, err := ends(ctx, q, cleared, chosen)
		if err != nil {
			return written{}, err
		}
		list = append(list, over...)
	}
	return writeFollowing(ctx, q, "", list)
}

// endUncounted ends the alerts about groups that the rule does not count after an edit, because
// nothing would end them later. Webhooks that were notified of them are notified if the rule says
// so or if they chose that event. The rule commits nothing meanwhile.
func endUncounted(ctx context.Context, q *pgq.Queries, tenant string, edit api.RuleEdit) error {
	rows, err := q.AlertUncounted(ctx, pgq.AlertUncountedParams{
		RuleID: edit.ID, Counts: edit.Definition.FireMode.Windowed(),
		GroupBy: string(edit.Definition.GroupBy), Attribute: edit.Definition.GroupByAttribute,
	})
	if err != nil {
		return fmt.Errorf("find alerts that are not counted any more: %w", err)
	}
	var pending, ended, resolved []uuid.UUID
	for _, row := range rows {
		switch alerts.State(row.State) {
		case alerts.Pending:
			pending = append(pending, row.AlertID)
			continue
		case alerts.Firing, alerts.Acknowledged:
			resolved = append(resolved, row.AlertID)
		case alerts.Resolved:
		}
		ended = append(ended, row.AlertID)
	}
	if len(pending) > 0 {
		if _, err := q.AlertDrop(ctx, pending); err != nil {
			return fmt.Errorf("drop pending alerts: %w", err)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	if err := q.AlertEndUncounted(ctx, ended); err != nil {
		return fmt.Errorf("resolve alerts: %w", err)
	}
	chosen, err := events(ctx, q, notify.ReasonResolved, []string{tenant}, resolved)
	if err != nil {
		return err
	}
	list, err := ends(ctx, q, resolved, chosen)
	if err != nil {
		return err
	}
	_, err = writeFollowing(ctx, q, "", list)
	return err
}
