package postgres

import (
	"context"
	"fmt"

	"tocsin/alerts"
	"tocsin/evaluator/explain"
	"tocsin/internal/postgres/pgq"
)

// RuleStates returns what is stored about each rule of a tenant, with its alert about the exchange
// of a key, by name.
func (s *Rules) RuleStates(ctx context.Context, tenant, key string) ([]explain.RuleState, error) {
	rows, err := s.db.queries.RulesExplained(ctx, pgq.RulesExplainedParams{TenantID: tenant, ExecutionKey: key})
	if err != nil {
		return nil, fmt.Errorf("read states of rules: %w", err)
	}
	list := make([]explain.RuleState, len(rows))
	for i := range rows {
		list[i] = ruleStateOf(&rows[i])
	}
	return list, nil
}

func ruleStateOf(row *pgq.RulesExplainedRow) explain.RuleState {
	s := explain.RuleState{Failing: row.Failing || row.Announced}
	if row.Problem != nil {
		s.Problem = *row.Problem
	}
	if row.AlertID != nil && row.State != nil {
		s.Alert = &explain.Alert{ID: *row.AlertID, State: alerts.State(*row.State), Messages: int(row.Messages), Suppressed: int(row.Suppressed)}
	}
	if s.Rule, s.Err = ruleOf(row.Rule, row.ArmedSinceNs, nil); s.Err != nil {
		return s
	}
	s.Rule.RetentionFloorNS = row.SweptBeforeNs
	if s.Rule.Former, s.Err = erasOf(row.Former); s.Err != nil {
		return s
	}
	p := progress{row.Cursor, row.BackfillFromNs, row.BackfillCursorNs, row.Position, row.Until, row.Failing, row.ArmedSinceNs, row.Rule.LookBackSeconds}
	r, err := p.read()
	if err != nil {
		s.Err = err
		return s
	}
	if r.at == nil {
		return s
	}
	s.CursorNS, s.JudgedNS = &r.at.StartTimeNS, &r.at.StartTimeNS
	if r.backfillNS != nil {
		s.JudgedNS = new(min(*r.backfillNS, *s.JudgedNS))
	}
	return s
}

// AlertedStart returns when the exchange of a key began, in nanoseconds since the Unix epoch, if a
// rule of the tenant has an alert about it.
func (s *Rules) AlertedStart(ctx context.Context, tenant, key string) (startNS int64, found bool, err error) {
	starts, err := s.db.queries.AlertedStart(ctx, pgq.AlertedStartParams{TenantID: tenant, ExecutionKey: key})
	if err != nil {
		return 0, false, fmt.Errorf("look for alerts of exchange: %w", err)
	}
	if len(starts) == 0 {
		return 0, false, nil
	}
	return starts[0], true, nil
}
