package postgres

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// All returns every rule by name.
func (s *Rules) All(ctx context.Context, tenant string) ([]rules.Rule, error) {
	return allRules(ctx, s.db.queries, tenant)
}

func allRules(ctx context.Context, q *pgq.Queries, tenant string) ([]rules.Rule, error) {
	rows, err := q.RuleList(ctx, pgq.RuleListParams{TenantID: tenant, Most: math.MaxInt32})
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return listed(rows), nil
}

// Apply changes the tenant's rules to match a set. Edits work as in [Rules.Update], creations as in
// [Rules.Create].
func (s *Rules) Apply(ctx context.Context, tenant string, set api.RuleSet) (done api.RulesDone, err error) {
	if set.DryRun {
		stored, err := s.All(ctx, tenant)
		if err != nil {
			return api.RulesDone{}, err
		}
		plan, err := planOf(stored, set)
		return plan.done, err
	}
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		// No other change of rules and no commit takes place meanwhile.
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		stored, err := allRules(ctx, q, tenant)
		if err != nil {
			return err
		}
		plan, err := planOf(stored, set)
		if err != nil {
			return err
		}
		for i := range plan.steps {
			if err := plan.run(ctx, q, tenant, change, i); err != nil {
				return fmt.Errorf("rule %q: %w", plan.done.Rules[i].Name, err)
			}
		}
		done = plan.done
		return nil
	})
	if err != nil {
		return api.RulesDone{}, fmt.Errorf("apply rules: %w", err)
	}
	return done, nil
}

// plan is what Apply does, rule by rule, with a step for each entry of done.
type plan struct {
	steps []api.RuleEdit
	done  api.RulesDone
}

func (p *plan) add(action api.RuleAppliedAction, edit api.RuleEdit, before *rules.Definition) {
	p.steps = append(p.steps, edit)
	p.done.Rules = append(p.done.Rules, api.RuleDone{ID: edit.ID, Name: edit.Definition.Name, Action: action, Before: before})
}

// planOf compares the stored rules with a set.
func planOf(stored []rules.Rule, set api.RuleSet) (plan, error) {
	p := plan{}
	named := make(map[string]*rules.Rule, len(stored))
	for i := range stored {
		named[stored[i].Name] = &stored[i]
	}
	for _, d := range set.Definitions {
		was, found := named[d.Name]
		if !found {
			p.add(api.RuleAppliedActionCreated, api.RuleEdit{Definition: d}, nil)
			continue
		}
		delete(named, d.Name)
		edit := api.RuleEdit{ID: was.ID, Version: was.Version, Definition: d}
		if was.Unreadable != "" {
			p.add(api.RuleAppliedActionUpdated, edit, nil)
			p.done.Rules[len(p.done.Rules)-1].Unreadable = was.Unreadable
			continue
		}
		same, err := sameStored(was.Definition, d)
		switch {
		case err != nil:
			return p, err
		case same:
			p.add(api.RuleAppliedActionUnchanged, edit, nil)
		default:
			p.add(api.RuleAppliedActionUpdated, edit, &was.Definition)
		}
	}
	if !set.Prune {
		p.done.LeftAlone = len(named)
		return p, nil
	}
	for i := range stored {
		was := named[stored[i].Name]
		switch {
		case was == nil:
		case !rules.NameMatches(set.PruneNames, was.Name) || !hasAll(was.Labels, set.PruneLabels):
			p.done.LeftAlone++
		default:
			p.add(api.RuleAppliedActionDeleted, api.RuleEdit{ID: was.ID, Definition: was.Definition}, nil)
		}
	}
	return p, nil
}

// hasAll reports whether a rule's labels include all wanted ones.
func hasAll(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if has, there := labels[key]; !there || has != value {
			return false
		}
	}
	return true
}

// sameStored reports whether two definitions have the same stored form.
func sameStored(a, b rules.Definition) (bool, error) {
	one, err := columnsOf(a)
	if err != nil {
		return false, err
	}
	other, err := columnsOf(b)
	if err != nil {
		return false, err
	}
	return reflect.DeepEqual(one, other) && slices.Equal(a.WebhookIDs, b.WebhookIDs), nil
}

func (p *plan) run(ctx context.Context, q *pgq.Queries, tenant string, change ruleChange, i int) (err error) {
	switch done, edit := &p.done.Rules[i], p.steps[i]; done.Action {
	case api.RuleAppliedActionCreated:
		done.ID, err = change.create(ctx, q, tenant, edit.Definition)
	case api.RuleAppliedActionUpdated:
		err = change.update(ctx, q, tenant, edit)
	case api.RuleAppliedActionDeleted:
		err = change.delete(ctx, q, tenant, edit.ID)
	case api.RuleAppliedActionUnchanged:
	}
	return err
}
