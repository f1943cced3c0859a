package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/explain"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Explainer reads what is stored about rules and exchanges.
type Explainer interface {
	// RuleStates returns what is stored about each rule of a tenant, with its alert about the
	// exchange of a key, by name.
	RuleStates(ctx context.Context, tenant, key string) ([]explain.RuleState, error)
	// AlertedStart returns when the exchange of a key began, in nanoseconds since the Unix epoch,
	// if a rule of the tenant has an alert about it.
	AlertedStart(ctx context.Context, tenant, key string) (startNS int64, found bool, err error)
}

// maxExplained is how many rules an explanation contains.
const maxExplained = 1000

// ExplainExchange answers GET /exchanges/explain.
func (s *server) ExplainExchange(ctx context.Context, req ExplainExchangeRequestObject) (ExplainExchangeResponseObject, error) {
	p := &req.Params
	last, err := hoursOf(p.Hours)
	if err != nil {
		return nil, err
	}
	if err := texts("executionId", []string{p.ExecutionID}, maxNameBytes); err != nil {
		return nil, err
	}
	if p.ExecutionID == "" {
		return nil, invalidField("executionId", "required", "Must not be empty")
	}
	e, err := s.explained(ctx, p, last)
	if err != nil {
		return nil, err
	}
	states, err := s.Explainer.RuleStates(ctx, tenantOf(ctx), e.Key())
	if err != nil {
		return nil, fmt.Errorf("explain exchange: %w", err)
	}
	clean := e.Clean()
	answer := ExplainExchange200JSONResponse{Exchange: exchangeOf(&clean), Rules: []RuleExplanation{}, Counts: []ExplainCount{}}
	list := make([]explain.Explanation, len(states))
	for i := range states {
		list[i] = explain.Explain(&e, &states[i])
	}
	place := func(v explain.Verdict) int { return slices.Index(explain.Verdicts(), v) }
	slices.SortStableFunc(list, func(a, b explain.Explanation) int { return cmp.Compare(place(a.Verdict), place(b.Verdict)) })
	for i := range list {
		if n := len(answer.Counts); n > 0 && answer.Counts[n-1].Verdict == list[i].Verdict {
			answer.Counts[n-1].Rules++
		} else {
			answer.Counts = append(answer.Counts, ExplainCount{Verdict: list[i].Verdict, Rules: 1})
		}
		if i < maxExplained {
			answer.Rules = append(answer.Rules, explanationAnswer(&list[i]))
		}
	}
	return answer, nil
}

func explanationAnswer(x *explain.Explanation) RuleExplanation {
	answer := RuleExplanation{
		RuleID: x.RuleID, RuleName: x.RuleName, Verdict: x.Verdict, Detail: rules.CleanText(x.Detail, maxDetailBytes), Unmet: x.Unmet,
	}
	if x.Alert != nil {
		answer.AlertID, answer.AlertState = &x.Alert.ID, &x.Alert.State
	}
	return answer
}

// maxDetailBytes bounds a detail, which may quote the problem of a rule.
const maxDetailBytes = 4 << 10

// explained reads the exchange to be explained.
func (s *server) explained(ctx context.Context, p *ExplainExchangeParams, last time.Duration) (rules.Exchange, error) {
	if p.StartTime != nil {
		return s.exchange(ctx, &ExchangeRef{ExecutionID: p.ExecutionID, StartTime: *p.StartTime})
	}
	startNS, alerted, err := s.Explainer.AlertedStart(ctx, tenantOf(ctx), cursor.Key(p.ExecutionID))
	if err != nil {
		return rules.Exchange{}, fmt.Errorf("explain exchange: %w", err)
	}
	if alerted {
		e, there, err := s.Exchanges.Exchange(ctx, tenantOf(ctx), cursor.Position{StartTimeNS: startNS, ExecutionID: p.ExecutionID})
		if err != nil {
			return e, fromSource("read exchange", err)
		}
		if there {
			return e, nil
		}
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return rules.Exchange{}, fmt.Errorf("explain exchange: %w", err)
	}
	found, err := s.Exchanges.Search(ctx, rules.ExchangeQuery{
		TenantID: tenantOf(ctx), FromNS: now.Add(-last).UnixNano(), ToNS: now.UnixNano(), ExecutionID: p.ExecutionID, Limit: 1,
		Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}},
	})
	if err != nil {
		return rules.Exchange{}, fromSource("read exchange", err)
	}
	if len(found) == 0 {
		return rules.Exchange{}, fault.New(fault.NotFound, "no exchange with this ID started within the last %d hours and has ended; search further back, or give its start time. "+
			"Rows that the condition terminal of the mapping leaves out are not exchanges", int(last.Hours()))
	}
	return found[0], nil
}
