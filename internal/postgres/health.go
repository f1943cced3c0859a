package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// Fail records a problem and releases the claims that still stand.
func (s *Evaluation) Fail(ctx context.Context, claims []evaluator.Claim, problem string) ([]uuid.UUID, error) {
	p := pgq.RuleProblemParams{Problem: problem}
	for i := range claims {
		p.RuleIds = append(p.RuleIds, claims[i].Rule.ID)
		p.Tokens = append(p.Tokens, claims[i].Token)
	}
	failed, err := s.db.queries.RuleProblem(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("record problem: %w", err)
	}
	return failed, nil
}

// Announce raises the alerts of those rules whose telling it could claim.
func (s *Evaluation) Announce(ctx context.Context, failing []alerts.Instance) (notifications int, err error) {
	if len(failing) == 0 {
		return 0, nil
	}
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		notifications = 0
		var p pgq.RuleFailingClaimParams
		byRule := make(map[uuid.UUID]*alerts.Instance, len(failing))
		for i := range failing {
			p.RuleIds = append(p.RuleIds, failing[i].RuleID)
			p.AlertIds = append(p.AlertIds, failing[i].ID)
			byRule[failing[i].RuleID] = &failing[i]
		}
		claimed, err := q.RuleFailingClaim(ctx, p)
		if err != nil {
			return fmt.Errorf("claim telling: %w", err)
		}
		for _, id := range claimed {
			a := byRule[id]
			err := q.AlertRaiseHealth(ctx, pgq.AlertRaiseHealthParams{
				AlertID: a.ID, TenantID: a.TenantID, RuleID: a.RuleID, RuleVersion: a.RuleVersion,
				Severity: string(a.Severity), Title: a.Title, Message: a.Message,
			})
			if err != nil {
				return fmt.Errorf("raise alert: %w", err)
			}
			told, err := tellOperators(ctx, q, telling{tenant: a.TenantID, rule: a.RuleID, alert: a.ID, reason: notify.ReasonRuleFailing})
			if err != nil {
				return err
			}
			notifications += told
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("announce failing rules: %w", err)
	}
	return notifications, nil
}

// tellRecovered resolves the alerts of rules that were told as failing and are
// committed again, and tells so. It returns the number of notifications written.
func tellRecovered(ctx context.Context, q *pgq.Queries, ids []uuid.UUID) (notifications int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	ended, err := q.RuleFailingEnd(ctx, ids)
	if err != nil {
		return 0, fmt.Errorf("end failing: %w", err)
	}
	for _, row := range ended {
		tenant, err := q.AlertRecover(ctx, row.AlertID)
		if err != nil {
			return 0, fmt.Errorf("resolve alert: %w", err)
		}
		told, err := tellOperators(ctx, q, telling{tenant: tenant, rule: row.RuleID, alert: row.AlertID, reason: notify.ReasonRuleRecovered})
		if err != nil {
			return 0, err
		}
		notifications += told
	}
	return notifications, nil
}

// forgetFailing ends the failing of a rule without a word: a person has seen
// to it, and the next failure is told anew.
func forgetFailing(ctx context.Context, q *pgq.Queries, id uuid.UUID) error {
	ended, err := q.RuleFailingEnd(ctx, []uuid.UUID{id})
	if err != nil {
		return fmt.Errorf("end failing: %w", err)
	}
	for _, row := range ended {
		if _, err := q.AlertRecover(ctx, row.AlertID); err != nil {
			return fmt.Errorf("resolve alert: %w", err)
		}
	}
	return nil
}

// telling is what operators are told.
type telling struct {
	tenant      string
	rule, alert uuid.UUID
	reason      notify.Reason
	// except is a webhook that is not told.
	except uuid.UUID
}

// tellOperators owes a notification to each webhook of the tenant's operators, and
// returns how many.
func tellOperators(ctx context.Context, q *pgq.Queries, t telling) (notifications int, err error) {
	webhooks, err := q.OperatorWebhooks(ctx, t.tenant)
	if err != nil {
		return 0, fmt.Errorf("find operators' webhooks: %w", err)
	}
	for _, webhook := range webhooks {
		if webhook == t.except {
			continue
		}
		err := owe(ctx, q, pgq.NotificationOweParams{
			NotificationID: uuid.Must(uuid.NewV7()), TenantID: t.tenant, AlertID: t.alert, RuleID: t.rule,
			WebhookID: webhook, Reason: string(t.reason),
		})
		if err != nil {
			return 0, err
		}
		notifications++
	}
	return notifications, nil
}

// Retry makes a rule due at once and forgets what went wrong.
func (s *Rules) Retry(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error) {
	var rule rules.Rule
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		was, err := lockRule(ctx, q, tenant, id)
		if err != nil {
			return err
		}
		if !was.Enabled {
			return fault.New(fault.Conflict, "the rule is disabled; enable it instead")
		}
		if err := q.RuleRetry(ctx, id); err != nil {
			return err
		}
		if err := forgetFailing(ctx, q, id); err != nil {
			return err
		}
		rule, err = getRule(ctx, q, tenant, id)
		return err
	})
	if err != nil {
		return rules.Rule{}, fmt.Errorf("retry rule: %w", err)
	}
	return rule, nil
}
