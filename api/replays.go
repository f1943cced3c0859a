package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Replayer makes rules evaluate ranges of the past again.
type Replayer interface {
	// StartReplay begins a replay. If nothing can be replayed now, it returns a fault of kind
	// Conflict; if the range cannot be replayed, a fault of kind Invalid.
	StartReplay(ctx context.Context, tenant, actor string, r ReplayRequest) (Replay, error)
	// CancelReplay ends a replay. A replay that has ended stays as it is.
	CancelReplay(ctx context.Context, tenant, actor string, id uuid.UUID) (Replay, error)
	// Replays returns the newest replays of a rule, newest first.
	Replays(ctx context.Context, tenant string, rule uuid.UUID, most int) ([]Replay, error)
	// ReplayFloor returns the instant before which no replay begins; nil if there is none.
	ReplayFloor(ctx context.Context, tenant string, rule uuid.UUID) (*time.Time, error)
	// Unalerted returns those of some keys of exchanges that have no alert of a rule.
	Unalerted(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error)
}

// ReplayRequest asks for a replay of the exchanges that began from FromNS, inclusive, to ToNS,
// exclusive, in nanoseconds since the Unix epoch.
type ReplayRequest struct {
	RuleID       uuid.UUID
	FromNS, ToNS int64
	Messages     ruleset.ReplayMessages
}

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay.
const (
	ReplayRunning   ReplayState = "RUNNING"
	ReplayDone      ReplayState = "DONE"
	ReplayCancelled ReplayState = "CANCELLED"
	// ReplayStopped means that the rule was disabled, deleted, or given another condition.
	ReplayStopped ReplayState = "STOPPED"
	// ReplayFailed means that the database refused the alerts.
	ReplayFailed ReplayState = "FAILED"
)

// Replay is a replay as people see it.
type Replay struct {
	ID    uuid.UUID
	State ReplayState
	// AtNS is the start time before which everything is evaluated.
	FromNS, ToNS, AtNS int64
	Messages           ruleset.ReplayMessages
	// Matched is how many exchanges matched, Alerts how many alerts were raised about them.
	Matched, Alerts int64
	Problem         string
	CreatedAt       time.Time
	CreatedBy       string
	EndedAt         *time.Time
	EndedBy         string
}

const (
	maxReplays = 20
	// maxReplaySpan bounds the range of a replay.
	maxReplaySpan = 366 * 24 * time.Hour
)

// ListReplays answers GET /rules/{id}/replays.
func (s *server) ListReplays(ctx context.Context, req ListReplaysRequestObject) (ListReplaysResponseObject, error) {
	list, err := s.Rules.Replays(ctx, tenantOf(ctx), req.ID, maxReplays)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	floor, err := s.Rules.ReplayFloor(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	answer := ListReplays200JSONResponse{Items: make([]RuleReplay, len(list)), Floor: floor}
	for i := range list {
		answer.Items[i] = replayAnswer(&list[i])
	}
	return answer, nil
}

// StartReplay answers POST /rules/{id}/replays.
func (s *server) StartReplay(ctx context.Context, req StartReplayRequestObject) (StartReplayResponseObject, error) {
	b := req.Body
	if _, err := oneOf("messages", &[]ruleset.ReplayMessages{b.Messages}, ruleset.ReplayNone, ruleset.ReplayDigest, ruleset.ReplayEach); err != nil {
		return nil, err
	}
	from, to, err := s.replayRange(ctx, b.From, b.To)
	if err != nil {
		return nil, err
	}
	if b.Messages == ruleset.ReplayDigest {
		if err := s.takesDigests(ctx, req.ID); err != nil {
			return nil, err
		}
	}
	started, err := s.Rules.StartReplay(ctx, tenantOf(ctx), identityOf(ctx).Actor, ReplayRequest{RuleID: req.ID, FromNS: from, ToNS: to, Messages: b.Messages})
	if err != nil {
		return nil, fmt.Errorf("start replay: %w", err)
	}
	return StartReplay201JSONResponse(replayAnswer(&started)), nil
}

// takesDigests refuses the digests of a replay if a receiver identifies alerts by a key and belongs
// to a webhook of the rule, or to one that the routing policy may choose: a digest would open
// nothing there.
func (s *server) takesDigests(ctx context.Context, rule uuid.UUID) error {
	r, err := s.Rules.Get(ctx, tenantOf(ctx), rule)
	if err != nil {
		return fmt.Errorf("start replay: %w", err)
	}
	ids := r.WebhookIDs
	if r.UseRoutingPolicy {
		policy, err := s.Routing.Get(ctx, tenantOf(ctx))
		if err != nil {
			return fmt.Errorf("start replay: %w", err)
		}
		// Escalations are sent one by one.
		ids = slices.Clone(policy.DefaultWebhookIDs)
		for i := range policy.Routes {
			ids = append(ids, policy.Routes[i].WebhookIDs...)
		}
	}
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if p := s.Receivers.Get(hooks.presets[id]); p != nil && p.Keyed {
			return fault.New(fault.Conflict, "the webhook %s gets no digests, because %s knows each alert by a key; choose a message for each alert, or none", hooks.names[id], p.Name)
		}
	}
	return nil
}

// CancelReplay answers POST /replays/{id}/cancel.
func (s *server) CancelReplay(ctx context.Context, req CancelReplayRequestObject) (CancelReplayResponseObject, error) {
	cancelled, err := s.Rules.CancelReplay(ctx, tenantOf(ctx), identityOf(ctx).Actor, req.ID)
	if err != nil {
		return nil, fmt.Errorf("cancel replay: %w", err)
	}
	return CancelReplay200JSONResponse(replayAnswer(&cancelled)), nil
}

// PreviewReplay answers POST /rules/{id}/replays/preview.
func (s *server) PreviewReplay(ctx context.Context, req PreviewReplayRequestObject) (PreviewReplayResponseObject, error) {
	from, to, err := s.replayRange(ctx, req.Body.From, req.Body.To)
	if err != nil {
		return nil, err
	}
	r, err := s.Rules.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("preview replay: %w", err)
	}
	if r.FireMode != rules.PerExchange {
		return nil, fault.New(fault.Conflict, "only a rule that raises an alert for each exchange can be replayed")
	}
	floor, err := s.Rules.ReplayFloor(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("preview replay: %w", err)
	}
	if floor != nil && from < floor.UnixNano() {
		return nil, BelowFloor(*floor)
	}
	leave, err := s.enterPreview(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var stored error // is no fault of the source
	found, err := s.Previewer.Replay(ctx, preview.ReplayRequest{
		Request: preview.Request{TenantID: tenantOf(ctx), Definition: r.Definition, RuleID: r.ID, Version: r.Version},
		FromNS:  from, ToNS: to,
		Unalerted: func(ctx context.Context, keys []string) (without []string, err error) {
			without, stored = s.Rules.Unalerted(ctx, r.ID, keys)
			return without, stored
		},
	})
	if stored != nil {
		return nil, fmt.Errorf("preview replay: %w", stored)
	}
	if err != nil {
		return nil, fromSource("preview replay", err)
	}
	return PreviewReplay200JSONResponse{Preview: previewAnswer(&found.Result), Existing: found.Existing}, nil
}

// BelowFloor refuses a replay that begins before the retention floor of its rule.
func BelowFloor(floor time.Time) error {
	return fault.InvalidFields("the replay", []fault.Field{{
		Field: "from", Code: "out_of_range",
		Message: "Must not be before " + floor.Format(time.RFC3339Nano) + ": retention may have deleted alerts of the time before, and a replay would raise them again",
	}})
}

// replayRange checks a range of start times. The store decides whether it begins late enough.
func (s *server) replayRange(ctx context.Context, from, to time.Time) (fromNS, toNS int64, err error) {
	least, most := time.Unix(0, cursor.MinStartTimeNS), time.Unix(0, cursor.MaxStartTimeNS)
	switch {
	case from.Before(least) || from.After(most):
		return 0, 0, invalidField("from", "out_of_range", "Must be a time in this century")
	case !to.After(from):
		return 0, 0, invalidField("to", "out_of_range", "Must be after the start")
	case to.Sub(from) > maxReplaySpan:
		return 0, 0, invalidField("to", "out_of_range", "Must be at most 366 days after the start; replay a longer range in parts")
	}
	now, err := s.Clock(ctx)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("check range: %w", err)
	case to.After(now.Add(time.Minute)):
		return 0, 0, invalidField("to", "out_of_range", "Must not be in the future")
	}
	return from.UnixNano(), to.UnixNano(), nil
}

func replayAnswer(r *Replay) RuleReplay {
	instant := func(ns int64) time.Time { return time.Unix(0, ns).UTC() }
	return RuleReplay{
		ID: r.ID, State: RuleReplayState(r.State), From: instant(r.FromNS), To: instant(r.ToNS), At: instant(r.AtNS), Messages: r.Messages,
		Matched: r.Matched, Alerts: r.Alerts, Problem: optional(r.Problem), CreatedAt: r.CreatedAt.UTC(), CreatedBy: r.CreatedBy,
		EndedAt: utc(r.EndedAt), EndedBy: optional(r.EndedBy),
	}
}
