package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// Rules is the API's store of rules.
type Rules struct{ db *DB }

// Rules returns the API's store of rules.
func (db *DB) Rules() *Rules { return &Rules{db} }

// List returns a page of rules by (name, id).
func (s *Rules) List(ctx context.Context, tenant string, page api.NamePage) ([]rules.Rule, error) {
	p := pgq.RuleListParams{TenantID: tenant, Most: int32(page.Limit)}
	if page.After != nil {
		p.AfterName, p.AfterID = &page.After.Name, page.After.ID
	}
	rows, err := s.db.queries.RuleList(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return listed(rows), nil
}

// listed returns rules, including those that cannot be read.
func listed(rows []pgq.RuleListRow) []rules.Rule {
	list := make([]rules.Rule, len(rows))
	for i, row := range rows {
		var err error
		if list[i], err = ruleOf(row.Rule, row.ArmedSinceNs, row.WebhookIds); err != nil {
			list[i].Unreadable = err.Error()
		}
	}
	return list
}

// Get returns one rule. For a rule that cannot be read, it returns the readable part and a fault.
func (s *Rules) Get(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error) {
	return getRule(ctx, s.db.queries, tenant, id)
}

func getRule(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (rules.Rule, error) {
	row, err := q.RuleGet(ctx, pgq.RuleGetParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return rules.Rule{}, notFound(err, "rule")
	}
	rule, err := ruleOf(row.Rule, row.ArmedSinceNs, row.WebhookIds)
	if err != nil {
		rule.Unreadable = err.Error()
		return rule, rule.Readable()
	}
	return rule, nil
}

// Create stores a rule, armed from now on.
func (s *Rules) Create(ctx context.Context, tenant string, d rules.Definition) (rules.Rule, error) {
	var rule rules.Rule
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		id, err := change.create(ctx, q, tenant, d)
		if err != nil {
			return err
		}
		rule, err = getRule(ctx, q, tenant, id)
		return err
	})
	if err != nil {
		return rules.Rule{}, fmt.Errorf("create rule: %w", err)
	}
	return rule, nil
}

func (c ruleChange) create(ctx context.Context, q *pgq.Queries, tenant string, d rules.Definition) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	columns, err := columnsOf(d)
	if err != nil {
		return id, err
	}
	err = q.RuleInsert(ctx, pgq.RuleInsertParams{
		RuleID: id, TenantID: tenant, Name: columns.Name, Enabled: columns.Enabled, FireMode: columns.FireMode,
		Severity: columns.Severity, Scope: columns.Scope, Filter: columns.Filter, TitleTemplate: columns.TitleTemplate,
		MessageTemplate: columns.MessageTemplate, Targets: columns.Targets, IntervalSeconds: columns.IntervalSeconds,
		LookBackSeconds: columns.LookBackSeconds, ReNotifyMinutes: columns.ReNotifyMinutes,
		ForDurationSeconds: columns.ForDurationSeconds, Threshold: columns.Threshold, WindowSeconds: columns.WindowSeconds,
		Measure: columns.Measure, Absence: columns.Absence, GroupBy: columns.GroupBy, GroupAttribute: columns.GroupAttribute, NotifyOnResolve: columns.NotifyOnResolve, About: columns.About,
		UseRoutingPolicy: columns.UseRoutingPolicy, Resolution: columns.Resolution,
	})
	if err != nil {
		return id, nameTaken(err, d.Name)
	}
	if err := q.RuleStateInsert(ctx, pgq.RuleStateInsertParams{RuleID: id, ArmedSinceNs: c.NowNs}); err != nil {
		return id, err
	}
	if err := c.arm(ctx, q, id, &d); err != nil {
		return id, err
	}
	if err := bind(ctx, q, tenant, id, d.WebhookIDs); err != nil {
		return id, err
	}
	return id, c.of(ctx, q, id)
}

// Update replaces a definition:
//
//   - Enabling a rule, or giving it another fire mode, arms it again.
//   - A new scope or filter applies to exchanges that end after the edit; the former one applies to
//     those that ended before.
//   - Any other edit leaves the progress of the rule unchanged.
//   - Alerts about groups that the rule does not count any more are resolved.
//
// The commit of a pass that used the previous version is refused.
func (s *Rules) Update(ctx context.Context, tenant string, edit api.RuleEdit) (rules.Rule, error) {
	var rule rules.Rule
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		if err := change.update(ctx, q, tenant, edit); err != nil {
			return err
		}
		rule, err = getRule(ctx, q, tenant, edit.ID)
		return err
	})
	if err != nil {
		return rules.Rule{}, fmt.Errorf("update rule: %w", err)
	}
	return rule, nil
}

func (c ruleChange) update(ctx context.Context, q *pgq.Queries, tenant string, edit api.RuleEdit) error {
	columns, err := columnsOf(edit.Definition)
	if err != nil {
		return err
	}
	columns.RuleID = edit.ID
	was, err := lockRule(ctx, q, tenant, edit.ID)
	if err != nil {
		return err
	}
	if was.Version != edit.Version {
		return fault.New(fault.Stale, "the rule was changed to version %d since version %d was read; read it again and repeat the edit", was.Version, edit.Version)
	}
	if err := q.RuleUpdate(ctx, columns); err != nil {
		return nameTaken(err, edit.Definition.Name)
	}
	if err := forgetFailing(ctx, q, edit.ID); err != nil {
		return err
	}
	if err := q.RuleWebhookDelete(ctx, pgq.RuleWebhookDeleteParams{RuleID: edit.ID, Keep: edit.Definition.WebhookIDs}); err != nil {
		return err
	}
	if err := bind(ctx, q, tenant, edit.ID, edit.Definition.WebhookIDs); err != nil {
		return err
	}
	if err := c.of(ctx, q, edit.ID); err != nil {
		return err
	}
	if err := endUncounted(ctx, q, tenant, edit); err != nil {
		return err
	}
	// What ended under the other fire mode was evaluated under it and is not evaluated again. The same
	// holds for what ended under a condition that cannot be read any more.
	former, unreadable := erasBefore(was)
	if was.Enabled != edit.Definition.Enabled || was.FireMode != columns.FireMode || unreadable != nil {
		if err := q.AlertDropPending(ctx, edit.ID); err != nil {
			return err
		}
		if err := stopReplay(ctx, q, edit.ID, "The rule was disabled, or its mode was changed."); err != nil {
			return err
		}
		return c.arm(ctx, q, edit.ID, &edit.Definition)
	}
	if err := c.lengthen(ctx, q, edit, was); err != nil {
		return err
	}
	return c.beginEra(ctx, q, edit, was, former)
}

// SetEnabled enables or disables a rule.
func (s *Rules) SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (rules.Rule, error) {
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
		if was.Enabled != enabled {
			if err := q.RuleSetEnabled(ctx, pgq.RuleSetEnabledParams{Enabled: enabled, RuleID: id}); err != nil {
				return err
			}
		}
		// A rule that cannot be read can be disabled, but not enabled.
		read := func() error {
			rule, err = getRule(ctx, q, tenant, id)
			if !enabled && rule.Unreadable != "" {
				return nil
			}
			return err
		}
		if err := read(); err != nil || was.Enabled == enabled {
			return err
		}
		if err := change.restart(ctx, q, &rule); err != nil {
			return err
		}
		return read()
	})
	if err != nil {
		return rules.Rule{}, fmt.Errorf("enable or disable rule: %w", err)
	}
	return rule, nil
}

// Delete removes a rule. Its alerts remain.
func (s *Rules) Delete(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		return change.delete(ctx, q, tenant, id)
	})
	if err != nil {
		return fmt.Errorf("delete rule: %w", err)
	}
	return nil
}

func (c ruleChange) delete(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) error {
	deleted, err := q.RuleDelete(ctx, pgq.RuleDeleteParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return err
	}
	if deleted == 0 {
		return noSuch("rule")
	}
	if err := q.RuleStateDelete(ctx, id); err != nil {
		return err
	}
	if err := q.BackfillDelete(ctx, []uuid.UUID{id}); err != nil {
		return err
	}
	if err := forgetFailing(ctx, q, id); err != nil {
		return err
	}
	if err := stopReplay(ctx, q, id, "The rule was deleted."); err != nil {
		return err
	}
	if err := c.of(ctx, q, id); err != nil {
		return err
	}
	if err := q.AlertDropPending(ctx, id); err != nil {
		return err
	}
	return q.RuleWebhookDelete(ctx, pgq.RuleWebhookDeleteParams{RuleID: id})
}

// restart makes a rule start again that was enabled or disabled.
func (c ruleChange) restart(ctx context.Context, q *pgq.Queries, rule *rules.Rule) error {
	if err := q.AlertDropPending(ctx, rule.ID); err != nil {
		return err
	}
	if err := forgetFailing(ctx, q, rule.ID); err != nil {
		return err
	}
	if err := stopReplay(ctx, q, rule.ID, "The rule was disabled."); err != nil {
		return err
	}
	if err := c.arm(ctx, q, rule.ID, &rule.Definition); err != nil {
		return err
	}
	return c.of(ctx, q, rule.ID)
}

// bind writes the webhooks of a rule and locks them, so that they cannot be deleted meanwhile.
func bind(ctx context.Context, q *pgq.Queries, tenant string, rule uuid.UUID, webhooks []uuid.UUID) error {
	if len(webhooks) == 0 {
		return nil
	}
	if err := holdWebhooks(ctx, q, tenant, webhooks); err != nil {
		return err
	}
	return q.RuleWebhookInsert(ctx, pgq.RuleWebhookInsertParams{RuleID: rule, WebhookIds: webhooks})
}

// holdWebhooks locks webhooks that are about to be referenced, so that they cannot be deleted
// meanwhile.
func holdWebhooks(ctx context.Context, q *pgq.Queries, tenant string, webhooks []uuid.UUID) error {
	held, err := q.WebhookShare(ctx, pgq.WebhookShareParams{TenantID: tenant, WebhookIds: webhooks})
	if err != nil {
		return err
	}
	there := setOf(held)
	for _, id := range webhooks {
		if !there[id] {
			return fault.New(fault.Conflict, "webhook %s no longer exists; choose another one", id)
		}
	}
	return nil
}

// columnsOf returns a definition in stored form.
func columnsOf(d rules.Definition) (pgq.RuleUpdateParams, error) {
	p := pgq.RuleUpdateParams{
		Name: d.Name, Enabled: d.Enabled, FireMode: string(d.FireMode), Severity: string(d.Severity),
		TitleTemplate: d.TitleTemplate, MessageTemplate: d.MessageTemplate,
		IntervalSeconds: int32(d.IntervalSeconds), LookBackSeconds: int32(d.LookBackSeconds),
		ReNotifyMinutes: int32(d.ReNotifyMinutes), ForDurationSeconds: int32(d.ForDurationSeconds),
		Threshold: int32(d.Threshold), WindowSeconds: int32(d.WindowSeconds), GroupBy: string(d.GroupBy), GroupAttribute: d.GroupByAttribute, NotifyOnResolve: d.NotifyOnResolve,
		UseRoutingPolicy: d.UseRoutingPolicy,
	}
	var resolution rules.Resolution
	if d.Resolution != nil {
		resolution = *d.Resolution
	}
	if d.Targets == nil {
		d.Targets = []rules.Target{}
	}
	for _, part := range []struct {
		from any
		into *[]byte
	}{{d.Scope, &p.Scope}, {d.Filter, &p.Filter}, {d.Targets, &p.Targets}, {d.Measure(), &p.Measure}, {d.Absence(), &p.Absence}, {d.About(), &p.About}, {resolution, &p.Resolution}} {
		text, err := json.Marshal(part.from)
		if err != nil {
			return p, fmt.Errorf("encode rule: %w", err)
		}
		*part.into = text
	}
	return p, nil
}

// formerMost is how many former conditions are kept for look-backs longer than the present one.
const formerMost = 100

// erasBefore returns the conditions of a rule, oldest first. The last one is the present condition.
func erasBefore(was pgq.RuleLockRow) ([]rules.Era, error) {
	current := rules.Era{FromNS: was.ArmedSinceNs}
	eras, err := erasOf(was.Former)
	if err := errors.Join(err, json.Unmarshal(was.Scope, &current.Scope), json.Unmarshal(was.Filter, &current.Filter)); err != nil {
		return nil, err
	}
	return append(eras, current), nil
}

// beginEra begins an era if an edit changes the condition. Exchanges that ended before are evaluated by
// the former condition, which is kept as long as it may be needed.
func (c ruleChange) beginEra(ctx context.Context, q *pgq.Queries, edit api.RuleEdit, was pgq.RuleLockRow, eras []rules.Era) error {
	ended := &eras[len(eras)-1]
	before, beforeErr := json.Marshal([]any{ended.Scope, ended.Filter})
	after, afterErr := json.Marshal([]any{edit.Definition.Scope, edit.Definition.Filter})
	if err := errors.Join(beforeErr, afterErr); err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	if !was.Enabled || bytes.Equal(before, after) {
		return q.RuleClearProblem(ctx, edit.ID)
	}
	if err := stopReplay(ctx, q, edit.ID, "The scope or filter of the rule was changed."); err != nil {
		return err
	}
	ended.ToNS = max(c.NowNs, ended.FromNS)
	former, err := json.Marshal(needed(eras, c.reachedNS(was.Position), edit.Definition.LookBackSeconds))
	if err != nil {
		return fmt.Errorf("encode former conditions: %w", err)
	}
	return q.RuleTurn(ctx, pgq.RuleTurnParams{RuleID: edit.ID, ArmedSinceNs: ended.ToNS, Former: former})
}

// needed drops the eras that no look-back reaches any more. eras are oldest first, and the last one
// has just ended. The limit is the longest possible look-back, because a later edit may ask for it;
// if that leaves too many eras, it is the present look-back. reached is how far the rule has come,
// nil if unknown.
func needed(eras []rules.Era, reached *int64, lookBackSeconds int) []rules.Era {
	if reached == nil {
		return eras
	}
	at := min(eras[len(eras)-1].ToNS, *reached)
	reach := func(seconds int) int64 {
		// One more hour: by then the look-back has found what it waited for.
		return at - int64(seconds)*int64(time.Second) - int64(time.Hour)
	}
	longest, present := reach(rules.MaxLookBackSeconds), reach(lookBackSeconds)
	for len(eras) > 0 && (eras[0].ToNS < longest || len(eras) > formerMost && eras[0].ToNS < present) {
		eras = eras[1:]
	}
	return eras
}

// lockRule locks a rule and its state until the transaction ends.
func lockRule(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (pgq.RuleLockRow, error) {
	was, err := q.RuleLock(ctx, pgq.RuleLockParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return was, notFound(err, "rule")
	}
	return was, nil
}

func nameTaken(err error, name string) error {
	if isUnique(err, "rule_name_once") || isUnique(err, "webhook_name_once") {
		return fault.New(fault.Conflict, "the name %q is taken; choose another one", name)
	}
	return err
}
