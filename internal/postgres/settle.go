package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// Settle stores outcomes and their consequences. What they say about the webhooks is stored
// separately and afterwards, see [Outbox.applyOutcomes].
func (s *Outbox) Settle(ctx context.Context, settlements []dispatch.Settlement) ([]dispatch.Settled, error) {
	st := settling{settlements: settlements}
	if done, err := s.settlePlain(ctx, &st); err != nil || done {
		return st.results, err
	}
	err := s.db.begun(ctx, beginSettling, func(tx pgx.Tx) error { return st.store(ctx, s.db.queries.WithTx(tx)) })
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	s.applyOutcomes(ctx, &st)
	return st.results, nil
}

// settlePlain stores deliveries without further consequences. It uses one statement, which commits
// when it succeeds, whatever happens to this process. It reports whether nothing is left for the
// other steps.
func (s *Outbox) settlePlain(ctx context.Context, st *settling) (done bool, err error) {
	if slices.ContainsFunc(st.settlements, func(t dispatch.Settlement) bool {
		return t.Decision.Status != notify.Delivered || t.Message != nil || t.Reference != nil
	}) {
		return false, nil
	}
	rows := st.choose(func(*dispatch.Settlement) bool { return true })
	ended, err := s.alone().SettleEnded(ctx, rows.ended())
	if err != nil {
		return false, fmt.Errorf("settle: %w", err)
	}
	valid := make(map[claim]bool, len(ended))
	for _, row := range ended {
		valid[claim{row.NotificationID, row.ClaimToken}] = true
	}
	st.note(valid)
	if len(ended) < len(st.settlements) {
		err = s.db.begun(ctx, beginSettling, func(tx pgx.Tx) error { return st.storeFenced(ctx, s.db.queries.WithTx(tx), valid) })
		if err != nil {
			return false, fmt.Errorf("settle: %w", err)
		}
	}
	s.applyOutcomes(ctx, st)
	return true, nil
}

// note stores whose claims were still valid.
func (st *settling) note(valid map[claim]bool) {
	st.results = make([]dispatch.Settled, len(st.settlements))
	for i := range st.settlements {
		st.results[i].Fenced = !valid[claimOf(&st.settlements[i])]
	}
}

// settling is the storing of some outcomes.
type settling struct {
	settlements []dispatch.Settlement
	results     []dispatch.Settled
}

// beginSettling leaves hash joins on, as [working] does.
const beginSettling = beginBatch + planOnce + `; set local enable_hashjoin = on`

// store stores outcomes under their claims: messages that end, and attempts to be repeated. The
// outcome of a lost claim is stored with its attempt, and a success ends its message.
func (st *settling) store(ctx context.Context, q *pgq.Queries) error {
	if err := st.holdAlerts(ctx, q); err != nil {
		return err
	}
	valid := make(map[claim]bool, len(st.settlements))
	if rows := st.choose(func(s *dispatch.Settlement) bool { return s.Decision.Status != notify.Retrying }); rows != nil {
		ended, err := q.SettleEnded(ctx, rows.ended())
		if err != nil {
			return fmt.Errorf("end messages: %w", err)
		}
		for _, row := range ended {
			valid[claim{row.NotificationID, row.ClaimToken}] = true
		}
	}
	if rows := st.choose(func(s *dispatch.Settlement) bool { return s.Decision.Status == notify.Retrying }); rows != nil {
		again, err := q.SettleAgain(ctx, rows.again())
		if err != nil {
			return fmt.Errorf("repeat messages: %w", err)
		}
		for _, row := range again {
			valid[claim{row.NotificationID, row.ClaimToken}] = true
		}
	}
	st.note(valid)
	if err := st.storeFenced(ctx, q, valid); err != nil {
		return err
	}
	return st.followUp(ctx, q)
}

// holdAlerts locks the alerts of messages that are to be entered, before it locks the outbox. A
// change of an alert takes its locks in the same order.
func (st *settling) holdAlerts(ctx context.Context, q *pgq.Queries) error {
	var ids []uuid.UUID
	for i := range st.settlements {
		if m := st.settlements[i].Message; m != nil {
			ids = append(ids, m.AlertID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := q.SlackMessageAlerts(ctx, ids); err != nil {
		return fmt.Errorf("hold alerts of messages: %w", err)
	}
	return nil
}

// claim names a claim.
type claim struct {
	id    uuid.UUID
	token int64
}

func claimOf(s *dispatch.Settlement) claim { return claim{s.NotificationID, s.Token} }

func (st *settling) storeFenced(ctx context.Context, q *pgq.Queries, valid map[claim]bool) error {
	fenced := st.choose(func(s *dispatch.Settlement) bool { return !valid[claimOf(s)] })
	if fenced == nil {
		return nil
	}
	if late := st.choose(func(s *dispatch.Settlement) bool {
		return !valid[claimOf(s)] && s.Decision.Status == notify.Delivered
	}); late != nil {
		if err := q.SettleLate(ctx, pgq.SettleLateParams{Ids: late.ids, Numbers: late.numbers}); err != nil {
			return fmt.Errorf("end messages that arrived late: %w", err)
		}
	}
	if err := q.SettleFenced(ctx, fenced.fenced()); err != nil {
		return fmt.Errorf("keep outcomes of lost claims: %w", err)
	}
	return nil
}

// followUp writes the consequences of outcomes beyond the outbox.
func (st *settling) followUp(ctx context.Context, q *pgq.Queries) error {
	var undelivered []uuid.UUID
	for i := range st.settlements {
		t := &st.settlements[i]
		if err := enterMessage(ctx, q, *t); err != nil {
			return err
		}
		if err := keepReference(ctx, q, t); err != nil {
			return err
		}
		if st.results[i].Fenced {
			continue
		}
		if t.Decision.Disable {
			if err := disableWebhook(ctx, q, t); err != nil {
				return err
			}
		}
		if t.Decision.Status == notify.Failed || t.Decision.Status == notify.Exhausted {
			undelivered = append(undelivered, t.NotificationID)
		}
	}
	if err := beginThreads(ctx, q, st.settlements); err != nil {
		return err
	}
	_, err := notifyUndelivered(ctx, q, undelivered)
	return err
}

// keepReference stores the name by which the receiver knows an alert. It does so for a fenced
// claimant as well, because what its message opened exists at the receiver.
func keepReference(ctx context.Context, q *pgq.Queries, t *dispatch.Settlement) (err error) {
	r := t.Reference
	switch {
	case r == nil:
	case r.ID != "":
		err = q.ReferenceKeep(ctx, pgq.ReferenceKeepParams{AlertID: r.AlertID, WebhookID: t.WebhookID, Version: t.WebhookVersion, Reference: r.ID})
	case r.Thread:
		err = q.SlackThreadEnd(ctx, pgq.SlackThreadEndParams{WebhookID: t.WebhookID, Ts: r.Gone})
	default:
		err = q.ReferenceForget(ctx, pgq.ReferenceForgetParams{AlertID: r.AlertID, WebhookID: t.WebhookID, Reference: r.Gone})
	}
	if err != nil {
		return fmt.Errorf("keep reference: %w", err)
	}
	return nil
}

// choose returns the outcomes for which f holds, as columns; nil if there are none.
func (st *settling) choose(f func(s *dispatch.Settlement) bool) *outcomes {
	var c outcomes
	for i := range st.settlements {
		if s := &st.settlements[i]; f(s) {
			c.add(s)
		}
	}
	if len(c.ids) == 0 {
		return nil
	}
	return &c
}

// outcomes are columns of outcomes.
type outcomes struct {
	replica                     string
	ids                         []uuid.UUID
	tokens, waits, durations    []int64
	numbers, counts, codes      []int32
	tenants, statuses, verdicts []string
	errors, responses, reached  []string
	heads                       [][]byte
}

func (c *outcomes) add(s *dispatch.Settlement) {
	o := &s.Outcome
	count, verdict, head := int32(0), "", []byte(nil)
	if s.Decision.Counts {
		count = 1
	}
	if o.Verdict != notify.VerdictUnknown {
		verdict = o.Verdict.String()
	}
	if o.Head != nil {
		head, _ = json.Marshal(o.Head) // cannot fail for texts
	}
	c.replica = s.Replica
	c.ids, c.tokens, c.numbers = append(c.ids, s.NotificationID), append(c.tokens, s.Token), append(c.numbers, int32(s.Attempt))
	c.tenants, c.statuses = append(c.tenants, s.TenantID), append(c.statuses, string(s.Decision.Status))
	c.waits, c.counts = append(c.waits, s.Decision.Wait.Microseconds()), append(c.counts, count)
	c.verdicts, c.codes = append(c.verdicts, verdict), append(c.codes, int32(o.StatusCode))
	c.errors, c.responses = append(c.errors, rules.CleanText(o.Error, 2000)), append(c.responses, rules.CleanText(o.Response, 4096))
	c.heads, c.durations = append(c.heads, head), append(c.durations, o.Duration.Microseconds())
	c.reached = append(c.reached, strings.Join(o.Reached, "\n"))
}

func (c *outcomes) ended() pgq.SettleEndedParams {
	return pgq.SettleEndedParams{
		Replica: c.replica, Ids: c.ids, Tokens: c.tokens, Numbers: c.numbers, Tenants: c.tenants, Statuses: c.statuses, Verdicts: c.verdicts,
		Codes: c.codes, Errors: c.errors, Responses: c.responses, Heads: c.heads, Durations: c.durations,
	}
}

func (c *outcomes) again() pgq.SettleAgainParams {
	return pgq.SettleAgainParams{
		Replica: c.replica, Ids: c.ids, Tokens: c.tokens, Numbers: c.numbers, Waits: c.waits, Counts: c.counts, Verdicts: c.verdicts,
		Codes: c.codes, Errors: c.errors, Responses: c.responses, Heads: c.heads, Durations: c.durations, Reached: c.reached,
	}
}

func (c *outcomes) fenced() pgq.SettleFencedParams {
	return pgq.SettleFencedParams{
		Replica: c.replica, Ids: c.ids, Tokens: c.tokens, Numbers: c.numbers, Verdicts: c.verdicts,
		Codes: c.codes, Errors: c.errors, Responses: c.responses, Heads: c.heads, Durations: c.durations,
	}
}

// webhooksFor returns the webhooks of settlements for which f holds, each once.
func (st *settling) webhooksFor(f func(i int) bool) []uuid.UUID {
	var ids []uuid.UUID
	for i := range st.settlements {
		if id := st.settlements[i].WebhookID; f(i) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
