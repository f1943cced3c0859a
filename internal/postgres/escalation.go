package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/teams"
	"tocsin/evaluator/window"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// An alert escalates as the routing policy said when it fired, whatever that says by now. Its next
// step is a row beside it, which is written in the commit that has it fire.
//
// When a step is due, one transaction locks the alert, writes the messages and moves the row to the
// following step. So each step is taken once, whatever dies and however many replicas look. A
// person who acknowledges, resolves or snoozes the alert locks it too, so either the step or the
// person comes first.
//
// A step that is due while somebody looks after the alert, or while it is snoozed, is skipped, and the
// next step waits for its own time. The row stores which steps were skipped and when. If the
// acknowledgement was an error and is undone, the first step that was skipped because of it is taken after all.
// All instants are compared with Postgres's clock only.
//
// The id of a step's message follows from the alert, the webhook and the step's minutes, because the
// routing is stored with the alert and has one step for each number of minutes. So a step that is
// taken again after a failover has the id that it had, and no other step has it.
//
// Replays start no escalation, because they raise alerts about the past.

// escalatingInstances returns the new alerts whose routing has escalation steps.
func escalatingInstances(instances []alerts.Instance, inserted []uuid.UUID) []uuid.UUID {
	var ids []uuid.UUID
	is := setOf(inserted)
	for i := range instances {
		if a := &instances[i]; a.Routing.Escalates() && is[a.ID] {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// escalatingChanges returns the window alerts that begin to fire and may escalate. For those that
// were pending, the stored routing decides.
func escalatingChanges(changes []window.Change, made []uuid.UUID) []uuid.UUID {
	var ids []uuid.UUID
	is := setOf(made)
	for i := range changes {
		if c := &changes[i]; (c.Step == alerts.Fire || c.Step == alerts.Raise && c.Instance.Routing.Escalates()) && is[c.Instance.ID] {
			ids = append(ids, c.Instance.ID)
		}
	}
	return ids
}

// startEscalations starts the escalation of alerts that began to fire, if their routing has steps.
func startEscalations(ctx context.Context, q *pgq.Queries, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := q.EscalationStart(ctx, ids); err != nil {
		return fmt.Errorf("start escalation: %w", err)
	}
	return nil
}

// resumeEscalations makes alerts that fire again take the first step that was skipped since an
// instant, after what was done at that instant is undone.
func resumeEscalations(ctx context.Context, q *pgq.Queries, ids []uuid.UUID, since time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	if err := q.EscalationResume(ctx, pgq.EscalationResumeParams{AlertIds: ids, Since: since}); err != nil {
		return fmt.Errorf("resume escalation: %w", err)
	}
	return nil
}

// Bounds of one search, and of what one transaction writes.
const (
	mostEscalations = 1000
	escalatedAtOnce = 100
)

// Escalation is the result of the steps that were due.
type Escalation struct {
	// Due is the number of messages for each webhook; Suppressed is how many are suppressed by
	// silences.
	Due        map[uuid.UUID]int
	Suppressed int
	// Empty are steps that notified nobody: their teams have no webhooks any more, or their teams
	// and webhooks are gone.
	Empty []EmptyStep
}

// EmptyStep is a step of an alert that notified nobody.
type EmptyStep struct {
	AlertID      uuid.UUID
	Tenant       string
	AfterMinutes int
}

func (e *Escalation) add(o *Escalation) {
	addUp(e.Due, o.Due)
	e.Suppressed, e.Empty = e.Suppressed+o.Suppressed, append(e.Empty, o.Empty...)
}

// Escalate takes the steps that are due at now; nil is Postgres's clock. A failure for one alert
// does not hold up the others.
func (s *Outbox) Escalate(ctx context.Context, now *time.Time) (Escalation, error) {
	all := Escalation{Due: map[uuid.UUID]int{}}
	after := pgq.EscalationDueRow{} // comes before all
	p := s.newPass()
	for {
		rows, err := s.alone().EscalationDue(ctx, pgq.EscalationDueParams{Now: now, AfterDueAt: after.DueAt, AfterID: after.AlertID, Most: mostEscalations})
		if err != nil {
			p.fail(fmt.Errorf("find alerts that escalate: %w", err))
			return all, p.failed()
		}
		ids := make([]uuid.UUID, len(rows))
		for i := range rows {
			ids[i] = rows[i].AlertID
		}
		for some := range slices.Chunk(ids, escalatedAtOnce) {
			done := p.escalateApart(ctx, some, now)
			all.add(&done)
		}
		if len(rows) < mostEscalations {
			return all, p.failed()
		}
		after = rows[len(rows)-1]
	}
}

// escalateApart takes the due steps of some alerts in one transaction. If that fails, it uses a
// transaction for each alert.
func (p *pass) escalateApart(ctx context.Context, ids []uuid.UUID, now *time.Time) (all Escalation) {
	if all, err := p.escalate(ctx, ids, now); err == nil {
		return all
	}
	all.Due = map[uuid.UUID]int{}
	for _, id := range ids {
		done, err := p.escalate(ctx, []uuid.UUID{id}, now)
		if err != nil {
			p.fail(fmt.Errorf("escalate alert %s: %w", id, err))
			continue
		}
		all.add(&done)
	}
	return all
}

// escalate takes the due steps of some alerts.
func (p *pass) escalate(ctx context.Context, ids []uuid.UUID, now *time.Time) (done Escalation, err error) {
	err = p.onAlerts(ctx, ids, func(q *pgq.Queries, ids []uuid.UUID) error {
		done = Escalation{}
		rows, err := q.EscalationSteps(ctx, pgq.EscalationStepsParams{AlertIds: ids, Now: now})
		if err != nil {
			return err
		}
		steps, err := moveEscalations(ctx, q, rows, now)
		if err != nil {
			return err
		}
		list, err := escalating(ctx, q, steps)
		if err != nil {
			return err
		}
		sent, err := writeFollowing(ctx, q, "", list)
		if err != nil {
			return err
		}
		done = Escalation{Due: sent.due, Suppressed: sent.suppressed, Empty: emptyOf(steps, list)}
		if len(list) == 0 {
			return nil
		}
		return q.AlertMessaged(ctx, pgq.AlertMessagedParams{AlertIds: alertsOf(list), UndoWithin: undoWithin})
	})
	if err != nil {
		return Escalation{}, err
	}
	return done, nil
}

// escalated is a step that is being taken.
type escalated struct {
	alert  uuid.UUID
	tenant string
	step   alerts.EscalationStep
}

// moveEscalations moves alerts to the steps after those that are due, and returns the due steps of
// alerts that nobody looks after. If quiet hours hold messages about an alert, its step waits for
// their end, and its minutes count from there. An alert without a further step, or whose routing
// cannot be read, stops escalating.
func moveEscalations(ctx context.Context, q *pgq.Queries, rows []pgq.EscalationStepsRow, now *time.Time) (take []escalated, err error) {
	move := pgq.EscalationMoveParams{Now: now}
	var ended, wait []uuid.UUID
	for i := range rows {
		row := &rows[i]
		nobody := alerts.State(row.State).Escalates() && !row.Skipped
		if nobody && row.Waits {
			wait = append(wait, row.AlertID)
			continue
		}
		var r alerts.Routing
		if json.Unmarshal(row.Routing, &r) != nil {
			r = alerts.Routing{}
		}
		next, skipped := 0, false
		for _, step := range r.Escalation() {
			switch {
			case step.AfterMinutes == int(row.AfterMinutes) && nobody:
				take = append(take, escalated{row.AlertID, row.TenantID, step})
			case step.AfterMinutes == int(row.AfterMinutes):
				skipped = true
			case step.AfterMinutes > int(row.AfterMinutes) && next == 0:
				next = step.AfterMinutes
			}
		}
		if next == 0 && !skipped {
			ended = append(ended, row.AlertID)
		} else {
			move.AlertIds, move.AfterMinutes, move.Skipped = append(move.AlertIds, row.AlertID), append(move.AfterMinutes, int32(next)), append(move.Skipped, skipped)
		}
	}
	if len(wait) > 0 {
		if err := q.EscalationWait(ctx, pgq.EscalationWaitParams{AlertIds: wait, Now: now}); err != nil {
			return nil, fmt.Errorf("postpone escalation: %w", err)
		}
	}
	if len(move.AlertIds) > 0 {
		if err := q.EscalationMove(ctx, move); err != nil {
			return nil, fmt.Errorf("advance escalation: %w", err)
		}
	}
	if len(ended) > 0 {
		if err := q.EscalationEnd(ctx, ended); err != nil {
			return nil, fmt.Errorf("end escalation: %w", err)
		}
	}
	return take, nil
}

// escalating returns whom steps notify: the webhooks of a step, and the webhooks that its teams
// have now.
func escalating(ctx context.Context, q *pgq.Queries, steps []escalated) ([]following, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var tenants []string
	for i := range steps {
		if len(steps[i].step.Teams) > 0 {
			tenants = append(tenants, steps[i].tenant)
		}
	}
	ofTenant := map[string]*teams.List{}
	if len(tenants) > 0 {
		rows, err := q.EscalationTeams(ctx, tenants)
		if err != nil {
			return nil, fmt.Errorf("read teams: %w", err)
		}
		for _, row := range rows {
			// If the teams cannot be read, only the webhooks that the step itself names are
			// notified.
			var list teams.List
			if json.Unmarshal(row.Teams, &list) == nil {
				ofTenant[row.TenantID] = &list
			}
		}
	}
	var list []following
	var named []uuid.UUID
	for i := range steps {
		s := &steps[i]
		ids := slices.Clone(s.step.WebhookIDs)
		if l := ofTenant[s.tenant]; l != nil {
			ids = append(ids, l.WebhookIDs(s.step.Teams)...)
		}
		for _, id := range inOrder(ids) {
			list = append(list, following{alert: s.alert, webhook: id, reason: notify.ReasonEscalated, step: s.step.AfterMinutes})
			named = append(named, id)
		}
	}
	held, err := q.EscalationWebhooks(ctx, named)
	if err != nil {
		return nil, fmt.Errorf("hold webhooks: %w", err)
	}
	there := setOf(held)
	return slices.DeleteFunc(list, func(f following) bool { return !there[f.webhook] }), nil
}

// emptyOf returns the steps that notify nobody.
func emptyOf(steps []escalated, list []following) (empty []EmptyStep) {
	notified := setOf(alertsOf(list))
	for i := range steps {
		if s := &steps[i]; !notified[s.alert] {
			empty = append(empty, EmptyStep{AlertID: s.alert, Tenant: s.tenant, AfterMinutes: s.step.AfterMinutes})
		}
	}
	return empty
}

// inOrder returns ids sorted and without repetition, so that every transaction writes rows in the
// same order.
func inOrder(ids []uuid.UUID) []uuid.UUID {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

func alertsOf(list []following) []uuid.UUID {
	ids := make([]uuid.UUID, len(list))
	for i := range list {
		ids[i] = list[i].alert
	}
	return ids
}
