package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// StartReplay starts a replay of a range of the past by a rule. Its partition commits nothing
// meanwhile, and the evaluator sees the replay like an edit of the rule.
func (s *Rules) StartReplay(ctx context.Context, tenant, actor string, r api.ReplayRequest) (api.Replay, error) {
	var started api.Replay
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		was, err := lockRule(ctx, q, tenant, r.RuleID)
		if err != nil {
			return err
		}
		if err := mayReplay(&was, &r, change.NowNs); err != nil {
			return err
		}
		id := uuid.Must(uuid.NewV7())
		err = q.ReplayInsert(ctx, pgq.ReplayInsertParams{
			ReplayID: id, RuleID: r.RuleID, FromNs: r.FromNS, ToNs: r.ToNS, Messages: string(r.Messages), Actor: actor,
			Position: cursor.Position{StartTimeNS: r.FromNS}.String(),
		})
		if isUnique(err, "replay_once") {
			return fault.New(fault.Conflict, "a replay of the rule is running; wait until it has finished, or cancel it")
		}
		if err != nil {
			return fmt.Errorf("insert replay: %w", err)
		}
		if err := change.of(ctx, q, r.RuleID); err != nil {
			return err
		}
		started, err = getReplay(ctx, q, tenant, id)
		return err
	})
	if err != nil {
		return api.Replay{}, fmt.Errorf("start replay: %w", err)
	}
	return started, nil
}

// mayReplay refuses rules and ranges that cannot be replayed.
func mayReplay(was *pgq.RuleLockRow, r *api.ReplayRequest, nowNS int64) error {
	switch {
	case rules.FireMode(was.FireMode) != rules.PerExchange:
		return fault.New(fault.Conflict, "only a rule that raises an alert for each exchange can be replayed")
	case !was.Enabled:
		return fault.New(fault.Conflict, "the rule is disabled; enable it, then start the replay")
	case r.ToNS > nowNS+time.Minute.Nanoseconds():
		return fault.InvalidFields("the replay", []fault.Field{{Field: "to", Code: "out_of_range", Message: "Must not be in the future"}})
	case r.FromNS < was.SweptBeforeNs:
		return api.BelowFloor(*startOf(&was.SweptBeforeNs))
	}
	return nil
}

// ReplayFloor returns the start time before which a rule raises nothing any more; nil if it may
// raise anything.
func (s *Rules) ReplayFloor(ctx context.Context, tenant string, rule uuid.UUID) (*time.Time, error) {
	row, err := s.db.queries.RuleReconcilable(ctx, pgq.RuleReconcilableParams{TenantID: tenant, RuleID: rule})
	if err != nil {
		return nil, notFound(err, "rule")
	}
	if row.SweptBeforeNs <= 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return startOf(&row.SweptBeforeNs), nil
}

// CancelReplay ends a replay that is under way. A replay that has ended stays as it is.
func (s *Rules) CancelReplay(ctx context.Context, tenant, actor string, id uuid.UUID) (api.Replay, error) {
	var cancelled api.Replay
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		row, err := q.ReplayGet(ctx, pgq.ReplayGetParams{TenantID: tenant, ReplayID: id})
		if err != nil {
			return notFound(err, "replay")
		}
		if cancelled = replayOf(&row); cancelled.EndedAt != nil {
			return nil
		}
		if _, err := q.ReplayEnd(ctx, pgq.ReplayEndParams{RuleID: row.RuleID, State: string(api.ReplayCancelled), Actor: actor}); err != nil {
			return fmt.Errorf("end replay: %w", err)
		}
		if err := change.of(ctx, q, row.RuleID); err != nil {
			return err
		}
		cancelled, err = getReplay(ctx, q, tenant, id)
		return err
	})
	if err != nil {
		return api.Replay{}, fmt.Errorf("cancel replay: %w", err)
	}
	return cancelled, nil
}

// stopReplay ends the replay of a rule because an edit changed what the rule matches.
func stopReplay(ctx context.Context, q *pgq.Queries, rule uuid.UUID, why string) error {
	if _, err := q.ReplayEnd(ctx, pgq.ReplayEndParams{RuleID: rule, State: string(api.ReplayStopped), Problem: why}); err != nil {
		return fmt.Errorf("stop replay: %w", err)
	}
	return nil
}

// Replays returns the newest replays of a rule.
func (s *Rules) Replays(ctx context.Context, tenant string, rule uuid.UUID, most int) ([]api.Replay, error) {
	if _, err := s.Get(ctx, tenant, rule); fault.KindOf(err) == fault.NotFound {
		return nil, err
	}
	rows, err := s.db.queries.ReplayList(ctx, pgq.ReplayListParams{TenantID: tenant, RuleID: rule, Most: int32(most)})
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	list := make([]api.Replay, len(rows))
	for i := range rows {
		list[i] = replayOf(&rows[i])
	}
	return list, nil
}

// Unalerted returns those of some keys of exchanges that have no alert of a rule, in their order.
func (s *Rules) Unalerted(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error) {
	without, err := s.db.queries.KeysWithoutAlert(ctx, pgq.KeysWithoutAlertParams{RuleID: rule, Keys: keys})
	if err != nil {
		return nil, fmt.Errorf("look for alerts: %w", err)
	}
	return without, nil
}

func getReplay(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (api.Replay, error) {
	row, err := q.ReplayGet(ctx, pgq.ReplayGetParams{TenantID: tenant, ReplayID: id})
	if err != nil {
		return api.Replay{}, notFound(err, "replay")
	}
	return replayOf(&row), nil
}

func replayOf(row *pgq.Replay) api.Replay {
	r := api.Replay{
		ID: row.ReplayID, State: api.ReplayState(row.State), Matched: row.Matched, Alerts: row.Alerts, Problem: row.Problem,
		FromNS: row.FromNs, ToNS: row.ToNs, AtNS: row.FromNs, Messages: ruleset.ReplayMessages(row.Messages),
		CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, EndedAt: row.EndedAt, EndedBy: row.EndedBy,
	}
	if at, err := positionOf(&row.Position); err == nil {
		r.AtNS = min(at.StartTimeNS, row.ToNs)
	}
	return r
}

// replays returns the replays under way in a partition. A replay whose position cannot be read does
// not move: it shows no progress, and can be cancelled.
func (s *Evaluation) replays(ctx context.Context, partition int32) ([]ruleset.Replay, error) {
	rows, err := s.db.queries.RuleReplays(ctx, partition)
	if err != nil {
		return nil, fmt.Errorf("read replays: %w", err)
	}
	var list []ruleset.Replay
	for i := range rows {
		at, err := positionOf(&rows[i].Position)
		if err != nil {
			continue
		}
		list = append(list, ruleset.Replay{
			ID: rows[i].ReplayID, RuleID: rows[i].RuleID, At: *at, ToNS: rows[i].ToNs, Messages: ruleset.ReplayMessages(rows[i].Messages),
		})
	}
	return list, nil
}

// insertFired writes the notifications of new alerts: as usual, or into the digests of a replay. It
// returns how many are to be sent, by webhook.
func insertFired(ctx context.Context, q *pgq.Queries, replay *ruleset.ReplayStep, list []notify.Notification) (map[uuid.UUID]int, error) {
	if replay == nil || replay.Messages != ruleset.ReplayDigest {
		return insertNotifications(ctx, q, list)
	}
	if len(list) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	raised, err := q.ReplayAlerts(ctx, replay.ID)
	if err != nil {
		return nil, fmt.Errorf("read replay: %w", err)
	}
	// The next digest begins when one holds as much as any other digest may, because summing it up
	// is part of a claim.
	generation := int(raised / notify.DigestSize)
	p := pgq.NotificationReplayParams{ReplayID: replay.ID}
	held := map[uuid.UUID]bool{}
	for i := range list {
		n := &list[i]
		p.NotificationIds, p.TenantIds, p.AlertIds = append(p.NotificationIds, n.ID), append(p.TenantIds, n.TenantID), append(p.AlertIds, n.AlertID)
		p.RuleIds, p.WebhookIds, p.Reasons = append(p.RuleIds, n.RuleID), append(p.WebhookIds, n.WebhookID), append(p.Reasons, string(n.Reason))
		p.DigestIds = append(p.DigestIds, notify.ID(replay.ID, n.WebhookID, notify.ReasonDigest, generation))
		if !held[n.WebhookID] {
			held[n.WebhookID], p.HeldIds = true, append(p.HeldIds, n.WebhookID)
		}
	}
	written, err := q.NotificationReplay(ctx, p)
	if err == nil && int(written) != len(list) {
		err = errNoWebhook
	}
	if err != nil {
		return nil, fmt.Errorf("gather notifications of a replay: %w", err)
	}
	return map[uuid.UUID]int{}, nil
}

// writeReplay stores how far a batch takes a replay, and ends the replay if it is complete or
// failed.
func writeReplay(ctx context.Context, q *pgq.Queries, step *ruleset.ReplayStep, done *evaluator.Committed) error {
	if step == nil {
		return nil
	}
	advanced, err := q.ReplayAdvance(ctx, pgq.ReplayAdvanceParams{
		ReplayID: step.ID, Position: step.At.String(), Matched: int64(step.Matched), Alerts: int64(len(done.Inserted)),
		Problem: rules.CleanText(step.Problem, maxProblemBytes),
	})
	if err == nil && advanced == 0 {
		return evaluator.ErrStale
	}
	if err != nil {
		return fmt.Errorf("advance replay: %w", err)
	}
	if !step.Failed && !step.Done() {
		return nil
	}
	end := pgq.ReplayEndParams{RuleID: step.RuleID, State: string(api.ReplayDone)}
	if step.Failed {
		end.State, end.Problem = string(api.ReplayFailed), rules.CleanText(step.Problem, maxProblemBytes)
	}
	due, err := q.ReplayEnd(ctx, end)
	if err != nil {
		return fmt.Errorf("end replay: %w", err)
	}
	for _, webhook := range due {
		if webhook != nil {
			done.Notifications[*webhook]++
		}
	}
	return nil
}
