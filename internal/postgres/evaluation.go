package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// Evaluation is the evaluator's store. It is safe for concurrent use.
type Evaluation struct {
	db *DB
	mu sync.Mutex
	// known holds the rules claimed before, so that a claim reads only how far a
	// rule has come, and what it says only after an edit.
	known map[uuid.UUID]known
	doubt doubt
}

// known is a rule as it was read, or why it could not be.
type known struct {
	rule rules.Rule
	err  error
}

// maxKnown bounds the rules kept in memory, beyond which they are read again.
const maxKnown = 50_000

// Evaluation returns the evaluator's store.
func (db *DB) Evaluation() *Evaluation {
	return &Evaluation{db: db, known: map[uuid.UUID]known{}}
}

// Load claims due rules and cohorts, or says how long there are none. What cannot be
// read is returned with its error.
func (s *Evaluation) Load(ctx context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	rows, err := s.db.queries.RuleClaim(ctx, pgq.RuleClaimParams{
		Most: int32(request.Most), Replica: request.Replica, ClaimFor: request.For, Grace: request.Grace, Rest: request.Rest,
	})
	if err != nil {
		return evaluator.Loaded{}, fmt.Errorf("claim rules: %w", err)
	}
	if len(rows) == 1 && rows[0].ClaimToken == 0 {
		return evaluator.Loaded{Idle: time.Duration(rows[0].IdleUs) * time.Microsecond}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.learn(ctx, rows); err != nil {
		return evaluator.Loaded{}, err
	}
	claims := make([]evaluator.Claim, 0, len(rows))
	for i := range rows {
		if claim, ok := s.claimOf(&rows[i]); ok {
			claims = append(claims, claim)
		}
	}
	return evaluator.Loaded{Claims: claims}, s.addOpen(ctx, claims)
}

// Clock returns the present by Postgres's clock.
func (s *Evaluation) Clock(ctx context.Context) (time.Time, error) {
	at, err := s.db.queries.Clock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", err)
	}
	return at, nil
}

// claimOf returns a claim that was made; nothing where the rule is deleted since.
func (s *Evaluation) claimOf(row *pgq.RuleClaimRow) (evaluator.Claim, bool) {
	claim := evaluator.Claim{Token: row.ClaimToken, Now: row.ClaimedAt}
	if row.Cohort {
		claim.Cohort = &evaluator.CohortClaim{
			ID: row.ID, TenantID: row.TenantID, Revision: row.Version,
			IntervalSeconds: int(row.IntervalSeconds), LookBackSeconds: int(row.LookBackSeconds),
		}
	} else {
		k, ok := s.known[row.ID]
		if !ok {
			return claim, false
		}
		claim.Rule, claim.Err = k.rule, k.err
	}
	if row.Cursor != nil {
		from, err := cursor.Decode(*row.Cursor)
		if err != nil {
			claim.Err = fmt.Errorf("the stored cursor cannot be read, and the rule stands still: %w", err)
		} else {
			claim.From, claim.OwedFromNS = &from, row.OwedFromNs
		}
	}
	return claim, true
}

// learn reads the claimed rules that are not known in their present version and
// arming.
//
// A rule may be edited after it was claimed. Then it is judged by what it says
// now, under the version that goes with that; where the edit took the claim
// away, the commit is stale.
func (s *Evaluation) learn(ctx context.Context, claimed []pgq.RuleClaimRow) error {
	if len(s.known) > maxKnown {
		clear(s.known)
	}
	var unknown []uuid.UUID
	for _, row := range claimed {
		if row.Cohort {
			continue
		}
		k, ok := s.known[row.ID]
		if !ok || k.err != nil || k.rule.Version != row.Version || k.rule.ArmedSinceNS != row.ArmedSinceNs {
			delete(s.known, row.ID)
			unknown = append(unknown, row.ID)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	read, err := s.Definitions(ctx, unknown)
	for i := range read {
		s.known[read[i].Rule.ID] = known{read[i].Rule, read[i].Err}
	}
	return err
}

// Definitions reads rules; what is deleted is left out.
func (s *Evaluation) Definitions(ctx context.Context, ids []uuid.UUID) ([]evaluator.Claim, error) {
	rows, err := s.db.queries.RuleDefinitions(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	read := make([]evaluator.Claim, len(rows))
	for i, row := range rows {
		rule, err := ruleOf(row.Rule, row.ArmedSinceNs, row.WebhookIds)
		if err == nil {
			rule.Former, err = erasOf(row.Former)
		}
		read[i] = evaluator.Claim{Rule: rule, Err: err}
	}
	return read, nil
}

// addOpen fills in the open alerts of the counting rules.
func (s *Evaluation) addOpen(ctx context.Context, claims []evaluator.Claim) error {
	counting := make(map[uuid.UUID]*evaluator.Claim)
	var ids []uuid.UUID
	for i := range claims {
		if claims[i].Rule.FireMode == rules.CountInWindow {
			counting[claims[i].Rule.ID] = &claims[i]
			ids = append(ids, claims[i].Rule.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.db.queries.AlertOpen(ctx, ids)
	if err != nil {
		return fmt.Errorf("read open alerts: %w", err)
	}
	for _, row := range rows {
		open := evaluator.OpenAlert{ID: row.AlertID, Group: row.GroupKey}
		open.State, open.Since = alerts.State(row.State), row.FiredAt
		if row.NotifiedAt != nil {
			open.NotifiedAt = *row.NotifiedAt
		}
		claim := counting[row.RuleID]
		claim.Open = append(claim.Open, open)
	}
	return nil
}

// Commit advances cursors, inserts the alerts that are new, and what is owed
// for them, in one transaction.
func (s *Evaluation) Commit(ctx context.Context, batch evaluator.Batch) (done evaluator.Committed, err error) {
	rows, err := alertRows(batch.Instances)
	if err != nil {
		return done, fmt.Errorf("commit: %w", err)
	}
	err = s.doubt.settle(batch.Instances, func(someExist bool) (err error) {
		rows.someExist = someExist
		done, err = s.commit(ctx, batch, rows)
		return err
	})
	return done, err
}

// fewWritten is up to how many alerts or rules a commit is planned once for each
// connection. A plan that is made for the arguments costs as much as the commit of a
// few, and is worth it for a page of them, whose ids it has looked up in a hash.
const fewWritten = 100

func beginCommit(batch *evaluator.Batch) string {
	if len(batch.Instances) <= fewWritten && len(batch.Advances) <= fewWritten {
		return begin + planOnce
	}
	return begin
}

// commit is the transaction.
func (s *Evaluation) commit(ctx context.Context, batch evaluator.Batch, rows *alertBatch) (done evaluator.Committed, err error) {
	err = s.db.begun(ctx, beginCommit(&batch), func(tx pgx.Tx) error {
		q := s.db.queries.WithTx(tx)
		done = evaluator.Committed{}
		watermarks, failing, err := advance(ctx, q, batch, &done)
		if err != nil {
			return err
		}
		if done.Inserted, err = rows.insert(ctx, q, watermarks); err != nil {
			return err
		}
		if done.Notifications, done.Waiting, err = insertNotifications(ctx, q, batch, evaluator.NewIDs(done.Inserted)); err != nil {
			return err
		}
		if err := applyChanges(ctx, q, batch, &done); err != nil {
			return err
		}
		if err := partWithProblems(ctx, q, batch, done.Cohorts); err != nil {
			return err
		}
		told, err := tellRecovered(ctx, q, failing)
		done.Notifications += told
		return err
	})
	if err != nil {
		return evaluator.Committed{}, fmt.Errorf("commit: %w", err)
	}
	return done, nil
}

// advance moves the cursors of cohorts and of rules that are alone. It returns the
// watermarks of those rules of which alerts may be written, and which of the rules
// that are alone were told as failing: a member never is, since whoever fails is
// alone. Whoever leaves a cohort holds it before the rule's state, and so does this.
func advance(ctx context.Context, q *pgq.Queries, batch evaluator.Batch, done *evaluator.Committed) (watermarks map[uuid.UUID]int64, failing []uuid.UUID, err error) {
	watermarks = make(map[uuid.UUID]int64, len(batch.Advances))
	if err := advanceCohorts(ctx, q, batch, done, watermarks); err != nil {
		return nil, nil, err
	}
	if len(batch.Advances) == 0 {
		return watermarks, nil, nil
	}
	rows, err := q.CursorAdvance(ctx, advanceParams(batch))
	if err != nil {
		return nil, nil, fmt.Errorf("advance cursors: %w", err)
	}
	for _, row := range rows {
		done.Advanced = append(done.Advanced, row.RuleID)
		watermarks[row.RuleID] = row.SweptBeforeNs
		if row.Told {
			failing = append(failing, row.RuleID)
		}
	}
	return watermarks, failing, nil
}

// errNoWebhook refuses what would be owed to nobody.
var errNoWebhook = errors.New("a webhook of the rule does not exist")

func advanceParams(batch evaluator.Batch) pgq.CursorAdvanceParams {
	p := pgq.CursorAdvanceParams{ClaimFor: batch.ClaimFor, LeastDueAt: leastDueAt(&batch)}
	for _, a := range batch.Advances {
		from := ""
		if a.From != nil {
			from = a.From.String()
		}
		p.RuleIds = append(p.RuleIds, a.RuleID)
		p.Tokens = append(p.Tokens, a.Token)
		p.Versions = append(p.Versions, a.Version)
		p.FromCursors = append(p.FromCursors, from)
		p.ToCursors = append(p.ToCursors, a.To.String())
		p.OwedFromNs = append(p.OwedFromNs, owedParam(a.OwedFromNS))
		p.Releases = append(p.Releases, a.Release)
		p.AtOnce = append(p.AtOnce, a.AtOnce)
		p.Unjudged = append(p.Unjudged, a.Unjudged)
		p.Problems = append(p.Problems, a.Problem)
	}
	return p
}

// owedParam returns what is owed as statements take it, which have no null in a list.
func owedParam(fromNS *int64) int64 {
	if fromNS == nil {
		return math.MaxInt64
	}
	return *fromNS
}

// leastDueAt returns nil where the batch does not say it.
func leastDueAt(batch *evaluator.Batch) *time.Time {
	if batch.LeastDueAt.IsZero() {
		return nil
	}
	return &batch.LeastDueAt
}

// insertNotifications writes what is owed for the alerts that are new, in the
// record and in the outbox, and returns how many, in all and by webhook.
func insertNotifications(
	ctx context.Context, q *pgq.Queries, batch evaluator.Batch, inserted evaluator.IDs,
) (count int, byWebhook map[uuid.UUID]int, err error) {
	byWebhook = make(map[uuid.UUID]int)
	room := len(inserted)
	p := pgq.NotificationInsertParams{
		NotificationIds: make([]uuid.UUID, 0, room), TenantIds: make([]string, 0, room), AlertIds: make([]uuid.UUID, 0, room),
		RuleIds: make([]uuid.UUID, 0, room), WebhookIds: make([]uuid.UUID, 0, room), Reasons: make([]string, 0, room),
	}
	for i := range batch.Notifications {
		n := &batch.Notifications[i]
		if !inserted[n.AlertID] {
			continue
		}
		p.NotificationIds = append(p.NotificationIds, n.ID)
		p.TenantIds = append(p.TenantIds, n.TenantID)
		p.AlertIds = append(p.AlertIds, n.AlertID)
		p.RuleIds = append(p.RuleIds, n.RuleID)
		p.WebhookIds = append(p.WebhookIds, n.WebhookID)
		p.Reasons = append(p.Reasons, string(n.Reason))
		byWebhook[n.WebhookID]++
	}
	if len(p.NotificationIds) == 0 {
		return 0, byWebhook, nil
	}
	for id := range evaluator.NewIDs(p.WebhookIds) {
		p.HeldIds = append(p.HeldIds, id)
	}
	recorded, err := q.NotificationInsert(ctx, p)
	if err == nil && int(recorded.Recorded) != len(p.NotificationIds) {
		err = errNoWebhook
	}
	if err != nil {
		return 0, nil, fmt.Errorf("insert notifications: %w", err)
	}
	err = q.OutboxInsert(ctx, pgq.OutboxInsertParams{NotificationIds: p.NotificationIds, WebhookIds: p.WebhookIds})
	if err != nil {
		return 0, nil, fmt.Errorf("insert outbox: %w", err)
	}
	return len(p.NotificationIds), byWebhook, nil
}

// ruleOf reads a stored rule. With an error, the rule is named but not complete.
func ruleOf(row pgq.Rule, armedSinceNS int64, webhooks []uuid.UUID) (rules.Rule, error) {
	rule := rules.Rule{
		Definition: rules.Definition{
			Name: row.Name, Enabled: row.Enabled, FireMode: rules.FireMode(row.FireMode), Severity: rules.Severity(row.Severity),
			TitleTemplate: row.TitleTemplate, MessageTemplate: row.MessageTemplate, WebhookIDs: webhooks,
			IntervalSeconds: int(row.IntervalSeconds), LookBackSeconds: int(row.LookBackSeconds),
			ReNotifyMinutes: int(row.ReNotifyMinutes), ForDurationSeconds: int(row.ForDurationSeconds),
			Threshold: int(row.Threshold), WindowSeconds: int(row.WindowSeconds),
			GroupBy: rules.GroupBy(row.GroupBy), NotifyOnResolve: row.NotifyOnResolve,
		},
		ID: row.RuleID, TenantID: row.TenantID, Version: row.Version, ArmedSinceNS: armedSinceNS,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
	for _, part := range []struct {
		name string
		text []byte
		into any
	}{{"scope", row.Scope, &rule.Scope}, {"filter", row.Filter, &rule.Filter}, {"targets", row.Targets, &rule.Targets}} {
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return rule, fmt.Errorf("the stored %s cannot be read: %w", part.name, err)
		}
	}
	return rule, nil
}

// erasOf reads the former conditions of a rule.
func erasOf(text []byte) ([]rules.Era, error) {
	var eras []rules.Era
	if err := json.Unmarshal(text, &eras); err != nil {
		return nil, fmt.Errorf("the stored former conditions cannot be read: %w", err)
	}
	return eras, nil
}
