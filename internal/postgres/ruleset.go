package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// Rules returns what changed in the rules of a partition after a revision. If the database does not
// have that revision yet, a failover has lost changes, and Rules returns all rules.
func (s *Evaluation) Rules(ctx context.Context, partition int, after int64) (ruleset.Changed, error) {
	number := int32(partition)
	// The revision is read first: the next call returns again what changes after it.
	revision, err := s.db.queries.RulesRevision(ctx, number)
	if errors.Is(err, pgx.ErrNoRows) {
		return ruleset.Changed{}, evaluator.ErrStale
	}
	if err != nil {
		return ruleset.Changed{}, fmt.Errorf("read revision of rules: %w", err)
	}
	set := ruleset.Changed{Revision: revision}
	if after > revision {
		after = math.MinInt64
	}
	changed, err := s.db.queries.RulesChanged(ctx, pgq.RulesChangedParams{Partition: number, After: after})
	if err != nil {
		return set, fmt.Errorf("read rules: %w", err)
	}
	for _, row := range changed {
		rule := ruleset.Stored{}
		if rule.Rule, rule.Err = ruleOf(row.Rule, row.ArmedSinceNs, row.WebhookIds); rule.Err == nil {
			rule.Rule.Former, rule.Err = erasOf(row.Former)
		}
		if row.Problem != nil {
			rule.Problem = *row.Problem
		}
		set.Rules = append(set.Rules, rule)
	}
	if err := s.addRouters(ctx, &set); err != nil {
		return set, err
	}
	if after != 0 {
		if set.Removed, err = s.db.queries.RulesRemoved(ctx, pgq.RulesRemovedParams{Partition: number, After: after}); err != nil {
			return set, fmt.Errorf("read removed rules: %w", err)
		}
	}
	if err := s.addBackfills(ctx, number, &set); err != nil {
		return set, err
	}
	set.Replays, err = s.replays(ctx, number)
	return set, err
}

// addRouters reads the policies of the tenants whose rules use one.
func (s *Evaluation) addRouters(ctx context.Context, set *ruleset.Changed) error {
	routed := map[string]bool{}
	for i := range set.Rules {
		if r := &set.Rules[i]; r.Rule.UseRoutingPolicy {
			routed[r.Rule.TenantID] = true
		}
	}
	if len(routed) == 0 {
		return nil
	}
	routers, unreadable, err := routersOf(ctx, s.db.queries, slices.Collect(maps.Keys(routed)))
	if err != nil {
		return err
	}
	for i := range set.Rules {
		if r := &set.Rules[i]; r.Rule.UseRoutingPolicy {
			r.Router = routers[r.Rule.TenantID]
			r.Err = cmp.Or(r.Err, unreadable[r.Rule.TenantID])
		}
	}
	return nil
}

// addBackfills reads the progress of the rules that have a backfill of their own.
func (s *Evaluation) addBackfills(ctx context.Context, partition int32, set *ruleset.Changed) error {
	rows, err := s.db.queries.RuleBackfills(ctx, partition)
	if err != nil {
		return fmt.Errorf("read backfills: %w", err)
	}
	for _, row := range rows {
		backfill := ruleset.Backfill{RuleID: row.RuleID, Failing: row.Failing}
		at, err := positionOf(&row.Position)
		if err == nil {
			backfill.At = *at
			backfill.Until, err = positionOf(row.Until)
		}
		if row.RefusedFromNs != nil && row.RefusedToNs != nil {
			backfill.Refused = &cursor.Range{FromNS: *row.RefusedFromNs, ToNS: *row.RefusedToNs}
		}
		if err != nil {
			backfill.Err = fmt.Errorf("the stored position of the rule cannot be read: %w; disable and enable the rule", err)
		}
		set.Backfills = append(set.Backfills, backfill)
	}
	return nil
}

// ruleOf decodes a stored rule. With an error, the rule has its name but is not complete.
func ruleOf(row pgq.Rule, armedSinceNS int64, webhooks []uuid.UUID) (rules.Rule, error) {
	rule := rules.Rule{
		Definition: rules.Definition{
			Name: row.Name, Enabled: row.Enabled, FireMode: rules.FireMode(row.FireMode), Severity: rules.Severity(row.Severity),
			TitleTemplate: row.TitleTemplate, MessageTemplate: row.MessageTemplate, WebhookIDs: webhooks,
			IntervalSeconds: int(row.IntervalSeconds), LookBackSeconds: int(row.LookBackSeconds),
			ReNotifyMinutes: int(row.ReNotifyMinutes), ForDurationSeconds: int(row.ForDurationSeconds),
			Threshold: int(row.Threshold), WindowSeconds: int(row.WindowSeconds),
			GroupBy: rules.GroupBy(row.GroupBy), GroupByAttribute: row.GroupAttribute, NotifyOnResolve: row.NotifyOnResolve, UseRoutingPolicy: row.UseRoutingPolicy,
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
	if string(row.Measure) != "{}" {
		var measure rules.Measure
		if err := json.Unmarshal(row.Measure, &measure); err != nil {
			return rule, fmt.Errorf("the stored measure cannot be read: %w", err)
		}
		rule.SetMeasure(measure)
	}
	if string(row.Absence) != "{}" {
		var absence rules.Absence
		if err := json.Unmarshal(row.Absence, &absence); err != nil {
			return rule, fmt.Errorf("what is stored about absence cannot be read: %w", err)
		}
		rule.SetAbsence(absence)
	}
	if string(row.Resolution) != "{}" {
		rule.Resolution = new(rules.Resolution)
		if err := json.Unmarshal(row.Resolution, rule.Resolution); err != nil {
			return rule, fmt.Errorf("what is stored about resolution cannot be read: %w", err)
		}
	}
	about, err := aboutOf(row.About)
	rule.SetAbout(about)
	return rule, err
}

// aboutOf decodes what a rule says about itself.
func aboutOf(text []byte) (a rules.About, err error) {
	if string(text) == "{}" {
		return a, nil
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("what is stored about the rule cannot be read: %w", err)
	}
	return a, nil
}

// erasOf decodes the former conditions of a rule.
func erasOf(text []byte) ([]rules.Era, error) {
	var eras []rules.Era
	if err := json.Unmarshal(text, &eras); err != nil {
		return nil, fmt.Errorf("the stored former conditions cannot be read: %w", err)
	}
	return eras, nil
}
