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

// commit writes what a group found and drops the judges whose claims were
// stale. Where the database refuses the whole, each half is tried alone, and so
// on, so that only those rules fail which are at fault.
func (t *tick) commit(ctx context.Context, g *group, found findings, release bool) error {
	advances := g.advances(found, release)
	batch := t.batch(advances)
	batch.Instances, batch.Notifications = found.instances, found.notifications
	done, err := t.Store.Commit(ctx, batch)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		if len(g.judges) == 1 {
			return t.failAll(ctx, g, err)
		}
		return t.commitHalves(ctx, g, found, release)
	}
	t.result.Alerts += len(done.Inserted)
	t.result.Late += found.late(done.Inserted)
	t.result.Notifications += done.Notifications
	t.result.HandedOver += done.HandedOver
	standing := NewIDs(done.Advanced)
	stale := make(map[uuid.UUID]bool)
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
			delete(t.told, id)
		}
		return true
	})
	return nil
}

func (t *tick) commitHalves(ctx context.Context, g *group, found findings, release bool) error {
	var left []*judge
	middle := len(g.judges) / 2
	for _, half := range [][]*judge{g.judges[:middle:middle], g.judges[middle:]} {
		part := group{tenantID: g.tenantID, judges: slices.Clone(half), behindhand: g.behindhand}
		own := found.of(half)
		if release || len(own.instances) > 0 {
			if err := t.commit(ctx, &part, own, release); err != nil {
				return err
			}
		}
		left = append(left, part.judges...)
	}
	g.judges, g.index = left, nil
	return nil
}

// late returns how many of the alerts the look-back found.
func (f findings) late(inserted []uuid.UUID) int {
	found := NewIDs(inserted)
	count := 0
	for i := range f.instances {
		if f.instances[i].Late && found[f.instances[i].ID] {
			count++
		}
	}
	return count
}

// idsOf returns the ids of some judges' rules.
func idsOf(judges []*judge) IDs {
	set := make(IDs, len(judges))
	for _, j := range judges {
		set[j.claim.Rule.ID] = true
	}
	return set
}

// of returns the findings of some judges' rules.
func (f findings) of(judges []*judge) findings {
	wanted := idsOf(judges)
	var own findings
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
// told to stop. What cannot be told now is told with the next failure.
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
	told, err := t.Store.Announce(ctx, failing)
	t.result.Notifications += told
	if err != nil {
		t.Logger.WarnContext(ctx, "failing rules not announced", slog.Any("error", err))
	}
	return nil
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
