package evaluator

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"tocsin/cursor"
)

// join has the rules that this tick drained join a cohort of their kind, or make
// one where they are enough. What does not work out stays as it is.
func (t *tick) join(ctx context.Context) {
	if t.CohortLeast < 0 {
		return
	}
	kinds := map[kind][]*judge{}
	for _, j := range t.drained {
		r := &j.claim.Rule
		k := kind{r.TenantID, r.IntervalSeconds, r.LookBackSeconds}
		kinds[k] = append(kinds[k], j)
	}
	for k, judges := range kinds {
		if err := t.joinKind(ctx, k, judges); err != nil {
			t.Logger.WarnContext(ctx, "rules did not join a cohort", slog.Int("rules", len(judges)), slog.Any("error", err))
		}
	}
}

func (t *tick) joinKind(ctx context.Context, k kind, judges []*judge) error {
	for _, c := range t.withRoom(k) {
		fit := slices.DeleteFunc(slices.Clone(judges), func(j *judge) bool { return !t.ledger.covers(c.stand, j.stand) })
		fit = fit[:min(len(fit), t.CohortMost-c.members)]
		if len(fit) == 0 {
			continue
		}
		joined, err := t.Cohorts.Join(ctx, t.joining(c.id, k, fit))
		if err != nil {
			return err
		}
		if c.members += joined; joined > 0 {
			return nil
		}
	}
	for some := range slices.Chunk(judges, t.CohortMost) {
		if len(some) < t.CohortLeast {
			return nil
		}
		made := t.joining(t.NewID(), k, some)
		made.New = true
		joined, err := t.Cohorts.Join(ctx, made)
		if err != nil {
			return err
		}
		if joined > 0 {
			t.ledger.merge(made.Cohort.ID, some)
		}
	}
	return nil
}

// withRoom returns the cohorts of a kind that more rules may join, the fullest first.
func (t *tick) withRoom(k kind) []*cohort {
	var found []*cohort
	for _, c := range t.cohorts {
		if c.kind == k && c.members < t.CohortMost {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *cohort) int {
		return cmp.Or(cmp.Compare(b.members, a.members), slices.Compare(a.id[:], b.id[:]))
	})
	return found
}

func (t *tick) joining(id uuid.UUID, k kind, judges []*judge) Joining {
	joining := Joining{
		Replica: t.Replica, Least: t.CohortLeast, To: t.horizon,
		Cohort:    CohortClaim{ID: id, TenantID: k.tenantID, IntervalSeconds: k.intervalSeconds, LookBackSeconds: k.lookBackSeconds},
		NotBefore: cursor.Position{StartTimeNS: t.horizon.StartTimeNS - spreadNS - int64(k.intervalSeconds)*secondNS},
	}
	for _, j := range judges {
		r := &j.claim.Rule
		joining.Rules = append(joining.Rules, Member{RuleID: r.ID, Version: r.Version, ArmedSinceNS: r.ArmedSinceNS})
	}
	return joining
}
