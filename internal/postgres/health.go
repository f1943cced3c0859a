package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/rules"
)

// writeHealth stores the health of the rules in a batch, and announces the rules that began to fail
// or have recovered. Its number of statements does not depend on the number of rules. It returns
// the notifications written, by webhook.
func writeHealth(ctx context.Context, q *pgq.Queries, batch *evaluator.Batch) (map[uuid.UUID]int, error) {
	if len(batch.Evaluated) > 0 {
		if err := q.RulesEvaluated(ctx, batch.Evaluated); err != nil {
			return nil, fmt.Errorf("record evaluation: %w", err)
		}
	}
	if err := recordProblems(ctx, q, batch.Health); err != nil {
		return nil, err
	}
	var failed, recovered []uuid.UUID
	for id, h := range batch.Health {
		if h.Failed {
			failed = append(failed, id)
		} else {
			recovered = append(recovered, id)
		}
	}
	notified, err := announceFailing(ctx, q, batch.Health, failed)
	if err != nil {
		return nil, err
	}
	more, err := announceRecovered(ctx, q, recovered)
	if err != nil {
		return nil, err
	}
	addUp(notified, more)
	return notified, nil
}

// maxProblemBytes bounds the stored text of a problem.
const maxProblemBytes = 2000

func recordProblems(ctx context.Context, q *pgq.Queries, health map[uuid.UUID]ruleset.Health) error {
	if len(health) == 0 {
		return nil
	}
	p := pgq.RuleProblemsParams{}
	for id, h := range health {
		p.RuleIds, p.Problems = append(p.RuleIds, id), append(p.Problems, rules.CleanText(h.Problem, maxProblemBytes))
	}
	if err := q.RuleProblems(ctx, p); err != nil {
		return fmt.Errorf("record problems: %w", err)
	}
	return nil
}

// announceFailing raises the alerts of failing rules whose announcement it could claim, and
// notifies operators.
func announceFailing(ctx context.Context, q *pgq.Queries, health map[uuid.UUID]ruleset.Health, failed []uuid.UUID) (map[uuid.UUID]int, error) {
	if len(failed) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	claimed, err := q.RuleFailingClaim(ctx, failed)
	if err != nil {
		return nil, fmt.Errorf("claim announcements: %w", err)
	}
	var raise healthAlerts
	for _, row := range claimed {
		raise.add(pgq.SourceFailingClaimRow{TenantID: row.TenantID, RuleID: row.RuleID, Version: row.Version, AlertID: row.AlertID},
			"Rule "+row.Name+" cannot be evaluated", health[row.RuleID].Problem)
	}
	return raise.write(ctx, q, "", notify.ReasonRuleFailing)
}

// announceRecovered ends the failure of rules, and notifies operators of those whose failure was
// announced.
func announceRecovered(ctx context.Context, q *pgq.Queries, ids []uuid.UUID) (map[uuid.UUID]int, error) {
	if len(ids) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	ended, err := q.RuleFailingEnd(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("end failing: %w", err)
	}
	about := make([]healthAlert, len(ended))
	for i, row := range ended {
		about[i] = healthAlert{row.TenantID, row.RuleID, row.AlertID}
	}
	return notifyOperators(ctx, q, about, notify.ReasonRuleRecovered)
}

// forgetFailing ends the failure of a rule silently, because a person has taken care of it. The
// next failure is announced again.
func forgetFailing(ctx context.Context, q *pgq.Queries, id uuid.UUID) error {
	if err := q.BackfillRecover(ctx, id); err != nil {
		return fmt.Errorf("mark rule as recovered: %w", err)
	}
	if _, err := q.RuleFailingEnd(ctx, []uuid.UUID{id}); err != nil {
		return fmt.Errorf("end failing: %w", err)
	}
	return nil
}

// healthAlert names an alert about health.
type healthAlert struct {
	tenant      string
	rule, alert uuid.UUID
}

// healthAlerts are alerts about health to raise.
type healthAlerts struct {
	rows  pgq.AlertRaiseHealthParams
	about []healthAlert
}

func (h *healthAlerts) add(of pgq.SourceFailingClaimRow, title, message string) {
	p := &h.rows
	p.AlertIds, p.TenantIds = append(p.AlertIds, of.AlertID), append(p.TenantIds, of.TenantID)
	p.RuleIds, p.RuleVersions = append(p.RuleIds, of.RuleID), append(p.RuleVersions, of.Version)
	p.Titles, p.Messages = append(p.Titles, title), append(p.Messages, rules.CleanText(message, maxProblemBytes))
	h.about = append(h.about, healthAlert{of.TenantID, of.RuleID, of.AlertID})
}

// write raises the alerts and notifies operators.
func (h *healthAlerts) write(ctx context.Context, q *pgq.Queries, source string, reason notify.Reason) (map[uuid.UUID]int, error) {
	if len(h.about) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	h.rows.Source = source
	if err := q.AlertRaiseHealth(ctx, h.rows); err != nil {
		return nil, fmt.Errorf("raise alerts: %w", err)
	}
	return notifyOperators(ctx, q, h.about, reason)
}

// notifyOperators writes a notification about each alert for each webhook of its tenant's
// operators, and returns how many, by webhook.
func notifyOperators(ctx context.Context, q *pgq.Queries, about []healthAlert, reason notify.Reason) (map[uuid.UUID]int, error) {
	if len(about) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	tenants := make([]string, len(about))
	for i := range about {
		tenants[i] = about[i].tenant
	}
	slices.Sort(tenants)
	rows, err := q.OperatorWebhooks(ctx, slices.Compact(tenants))
	if err != nil {
		return nil, fmt.Errorf("find operators' webhooks: %w", err)
	}
	webhooks := map[string][]uuid.UUID{}
	for _, row := range rows {
		webhooks[row.TenantID] = append(webhooks[row.TenantID], row.WebhookID)
	}
	var list []notify.Notification
	var behind []following
	for _, a := range about {
		for _, webhook := range webhooks[a.tenant] {
			list = append(list, notify.Notification{
				ID: notify.ID(a.alert, webhook, reason, 0), TenantID: a.tenant, AlertID: a.alert, RuleID: a.rule, WebhookID: webhook, Reason: reason,
			})
			behind = append(behind, following{alert: a.alert, webhook: webhook, reason: reason})
		}
	}
	if reason == notify.ReasonRuleRecovered || reason == notify.ReasonSourceRecovered {
		done, err := writeFollowing(ctx, q, "", behind)
		return done.due, err
	}
	return insertNotifications(ctx, q, list)
}

// sourceName is the source that alerts about it name.
const sourceName = "source"

// SourceFailed announces to the tenants of a partition with enabled rules that the source cannot be read, unless that has
// been announced to them.
func (s *Evaluation) SourceFailed(ctx context.Context, replica string, partition int, problem string) (notifications int, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		notifications = 0
		tenants, err := q.SourceFailingClaim(ctx, pgq.SourceFailingClaimParams{Partition: int32(partition), Source: sourceName, Replica: replica})
		if err != nil {
			return fmt.Errorf("claim announcements: %w", err)
		}
		var raise healthAlerts
		for _, tenant := range tenants {
			raise.add(tenant, "Exchanges cannot be read",
				"Rules of this tenant are not evaluated until exchanges can be read again. Single exchanges of that time are evaluated then; "+
					"window rules may raise nothing for it. Run tocsin doctor for the remedy. "+problem)
		}
		notified, err := raise.write(ctx, q, sourceName, notify.ReasonSourceFailing)
		notifications = total(notified)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("announce that the source fails: %w", err)
	}
	return notifications, nil
}

// SourceRecovered ends the announcements to the tenants of a partition.
func (s *Evaluation) SourceRecovered(ctx context.Context, partition int) (notifications int, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		notifications = 0
		rows, err := q.SourceFailingEnd(ctx, pgq.SourceFailingEndParams{Partition: int32(partition), Source: sourceName})
		if err != nil {
			return fmt.Errorf("end announcements: %w", err)
		}
		about := make([]healthAlert, len(rows))
		for i, row := range rows {
			about[i] = healthAlert{row.TenantID, row.RuleID, row.AlertID}
		}
		notified, err := notifyOperators(ctx, q, about, notify.ReasonSourceRecovered)
		notifications = total(notified)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("announce that the source has recovered: %w", err)
	}
	return notifications, nil
}

// total adds up notifications.
func total(byWebhook map[uuid.UUID]int) (sum int) {
	for _, n := range byWebhook {
		sum += n
	}
	return sum
}

// operatorNotice is a notification of operators.
type operatorNotice struct {
	tenant      string
	rule, alert uuid.UUID
	reason      notify.Reason
	// except is a webhook that is left out.
	except uuid.UUID
}

// notifyOperatorsOf writes a notification for each operator webhook of the tenant, and returns how
// many for each.
func notifyOperatorsOf(ctx context.Context, q *pgq.Queries, o operatorNotice) (written map[uuid.UUID]int, err error) {
	webhooks, err := q.OperatorWebhooks(ctx, []string{o.tenant})
	if err != nil {
		return nil, fmt.Errorf("find operators' webhooks: %w", err)
	}
	var list []notify.Notification
	for _, row := range webhooks {
		if row.WebhookID != o.except {
			list = append(list, notify.Notification{
				ID: notify.ID(o.alert, row.WebhookID, o.reason, 0), TenantID: o.tenant, AlertID: o.alert, RuleID: o.rule,
				WebhookID: row.WebhookID, Reason: o.reason,
			})
		}
	}
	return insertNotifications(ctx, q, list)
}

// Retry forgets the problem of a rule, so that the next pass evaluates it.
func (s *Rules) Retry(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error) {
	var rule rules.Rule
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		was, err := lockRule(ctx, q, tenant, id)
		if err != nil {
			return err
		}
		if !was.Enabled {
			return fault.New(fault.Conflict, "the rule is disabled; enable it instead")
		}
		if err := q.RuleClearProblem(ctx, id); err != nil {
			return err
		}
		if err := forgetFailing(ctx, q, id); err != nil {
			return err
		}
		if err := change.of(ctx, q, id); err != nil {
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
