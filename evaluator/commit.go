package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// commit writes what a group found and drops those whose claims were stale.
// Where the database refuses the whole, parts are tried alone, and so on, so that
// only those rules fail which are at fault.
func (t *tick) commit(ctx context.Context, g *group, found findings, release bool) error {
	batch := t.batch(g.advances(found, release))
	batch.Cohorts = g.cohortAdvances(found, release)
	batch.Instances, batch.Notifications = found.instances, found.notifications
	done, err := t.Store.Commit(ctx, batch)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return err
		case len(g.judges) == 1 && len(g.cohorts) == 0:
			return t.failAll(ctx, g, err)
		case len(g.judges) == 0 && len(g.cohorts) == 1:
			return t.commitAlone(ctx, g, found, release, err)
		}
		return t.commitParts(ctx, g, found, release)
	}
	t.result.Alerts += len(done.Inserted)
	t.result.Late += t.learn(found, done.Inserted)
	t.result.Notifications += done.Notifications
	t.result.HandedOver += done.HandedOver
	for id, n := range done.Waiting {
		t.result.Waiting[id] += n
	}
	t.result.Stale += done.Strayed
	t.settle(g, batch.Advances, NewIDs(done.Advanced))
	t.settleCohorts(g, batch.Cohorts, NewIDs(done.Cohorts))
	for id, j := range found.finders {
		if j.id != id {
			j.problem = "" // a member, whose judge outlives the tick
		}
	}
	if release && !g.behindhand {
		for _, j := range g.judges {
			if j.problem == "" && j.at == t.horizon {
				t.drained = append(t.drained, j)
			}
		}
	}
	return nil
}

// settle moves the cursors that a commit moved, and drops the judges whose claims
// were stale.
func (t *tick) settle(g *group, advances []Advance, standing IDs) {
	stale := make(IDs)
	for _, a := range advances {
		stale[a.RuleID] = !standing[a.RuleID]
	}
	g.keep(func(j *judge) bool {
		id := j.claim.Rule.ID
		if stale[id] {
			t.result.Stale++
			return false
		}
		if standing[id] {
			at := j.at
			j.from = &at
			if !j.unjudged {
				delete(t.told, id)
			}
		}
		return true
	})
}

// settleCohorts does the same for cohorts.
func (t *tick) settleCohorts(g *group, advances []CohortAdvance, standing IDs) {
	stale := make(IDs)
	for _, a := range advances {
		stale[a.ID] = !standing[a.ID]
	}
	g.cohorts = slices.DeleteFunc(g.cohorts, func(c *cohort) bool {
		if stale[c.id] {
			t.result.Stale += len(c.judges)
			return true
		}
		if standing[c.id] {
			at := c.at
			c.from = &at
		}
		return false
	})
}

// commitParts commits each cohort and the rules that are alone apart from each
// other, or else each half of the rules.
func (t *tick) commitParts(ctx context.Context, g *group, found findings, release bool) error {
	var parts []group
	for _, c := range g.cohorts {
		parts = append(parts, c.part(g))
	}
	alone := [][]*judge{g.judges}
	if middle := len(g.judges) / 2; len(parts) == 0 {
		alone = [][]*judge{g.judges[:middle:middle], g.judges[middle:]}
	}
	for _, some := range alone {
		if len(some) > 0 {
			parts = append(parts, group{tenantID: g.tenantID, judges: slices.Clone(some), behindhand: g.behindhand})
		}
	}
	var left group
	for i := range parts {
		part := &parts[i]
		own := found.of(part)
		if release || len(own.instances) > 0 {
			if err := t.commit(ctx, part, own, release); err != nil {
				return err
			}
		}
		left.judges, left.cohorts = append(left.judges, part.judges...), append(left.cohorts, part.cohorts...)
	}
	g.judges, g.cohorts, g.index = left.judges, left.cohorts, nil
	return nil
}

// learn remembers the alerts that were written, and returns how many of them the
// look-back found.
func (t *tick) learn(f findings, inserted []uuid.UUID) (late int) {
	written := NewIDs(inserted)
	for i := range f.instances {
		a := &f.instances[i]
		if !written[a.ID] {
			continue
		}
		t.known.add(a.RuleID, a.Exchange.ExecutionID, f.finders[a.RuleID].at)
		if a.Late {
			late++
		}
	}
	return late
}

// idsOf returns the ids of some judges' rules.
func idsOf(judges []*judge) IDs {
	set := make(IDs, len(judges))
	for _, j := range judges {
		set[j.claim.Rule.ID] = true
	}
	return set
}

// of returns the findings of a group's rules.
func (f findings) of(g *group) findings {
	stands := map[*stand]bool{}
	for s := range g.stands {
		stands[s] = true
	}
	own := findings{finders: map[uuid.UUID]*judge{}}
	wanted := make(IDs)
	for id, j := range f.finders {
		if stands[j.stand] {
			wanted[id], own.finders[id] = true, j
		}
	}
	for _, i := range f.instances {
		if wanted[i.RuleID] {
			own.instances = append(own.instances, i)
		}
	}
	for _, n := range f.notifications {
		if wanted[n.RuleID] {
			own.notifications = append(own.notifications, n)
		}
	}
	return own
}

// fail records a problem on rules, releases them, and tells the operators. It
// returns an error only where even that is not possible, or where the tick was
// told to stop.
func (t *tick) fail(ctx context.Context, judges []*judge, problem error) error {
	if ctx.Err() != nil {
		return problem
	}
	t.result.Failed += len(judges)
	text := rules.CleanText(problem.Error(), maxProblemBytes)
	claims := make([]Claim, len(judges))
	byID := make(map[uuid.UUID]*judge, len(judges))
	for i, j := range judges {
		claims[i] = j.claim
		id := j.claim.Rule.ID
		byID[id] = j
		if t.told[id] != text {
			t.told[id] = text
			t.Logger.WarnContext(ctx, "rule not evaluated", slog.String("rule_id", id.String()), slog.String("error", text))
		}
	}
	failed, err := t.Store.Fail(ctx, claims, text)
	if err != nil {
		return errors.Join(problem, fmt.Errorf("record problem: %w", err))
	}
	failing := make([]alerts.Instance, len(failed))
	for i, id := range failed {
		failing[i] = t.failing(&byID[id].claim.Rule, text)
	}
	t.announce(ctx, failing)
	return nil
}

// announce tells that rules fail. What cannot be told is told with the next failure.
func (t *tick) announce(ctx context.Context, failing []alerts.Instance) {
	told, err := t.Store.Announce(ctx, failing)
	t.result.Notifications += told
	if err != nil {
		t.Logger.WarnContext(ctx, "failing rules not announced", slog.Any("error", err))
	}
}

// failing makes the alert about a rule that cannot be evaluated.
func (t *tick) failing(rule *rules.Rule, problem string) alerts.Instance {
	return alerts.Instance{
		ID: t.NewID(), TenantID: rule.TenantID, RuleID: rule.ID, RuleVersion: rule.Version, RuleName: rule.Name,
		Severity: rules.Warning, State: alerts.Firing, Health: true,
		Title: "Rule " + rule.Name + " cannot be evaluated", Message: problem,
	}
}

// maxProblemBytes bounds what is kept of a problem's text.
const maxProblemBytes = 2000
