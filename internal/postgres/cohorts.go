package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
)

// Cohorts are locked before the states of their members, and rules before both:
// an edit holds the rule, has it leave, and then holds its state; a commit holds
// the cohort, then the states of those that found something. A rule that joins
// is held last and without waiting.

// Members returns the rules of a cohort by id.
func (s *Evaluation) Members(ctx context.Context, cohort uuid.UUID) ([]evaluator.Member, error) {
	return members(ctx, s.db.queries, cohort)
}

func members(ctx context.Context, q *pgq.Queries, cohort uuid.UUID) ([]evaluator.Member, error) {
	rows, err := q.CohortMembers(ctx, &cohort)
	if err != nil {
		return nil, fmt.Errorf("read members: %w", err)
	}
	list := make([]evaluator.Member, len(rows))
	for i, row := range rows {
		list[i] = evaluator.Member{RuleID: row.RuleID, Version: row.Version, ArmedSinceNS: row.ArmedSinceNs}
	}
	return list, nil
}

// Leave has members of a claimed cohort go on alone.
func (s *Evaluation) Leave(ctx context.Context, leaving evaluator.Leaving) (left []uuid.UUID, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		ids := leaving.Rules
		if ids == nil {
			all, err := members(ctx, q, leaving.Cohort)
			if err != nil {
				return err
			}
			for _, m := range all {
				ids = append(ids, m.RuleID)
			}
		}
		problems := make([]string, len(ids))
		for i := range problems {
			problems[i] = leaving.Problem
		}
		var err error
		left, err = q.CohortLeave(ctx, pgq.CohortLeaveParams{CohortID: leaving.Cohort, Token: &leaving.Token, RuleIds: ids, Problems: problems})
		if err != nil {
			return err
		}
		return q.CohortEnd(ctx, pgq.CohortEndParams{CohortID: leaving.Cohort, Token: leaving.Token})
	})
	if err != nil {
		return nil, fmt.Errorf("leave cohort: %w", err)
	}
	return left, nil
}

// errTooFew takes back a cohort that too few rules joined.
var errTooFew = errors.New("too few rules joined")

// manyJoined is how many rules change what the planner knows of them, when they
// join a cohort at once.
const manyJoined = 1000

// Join has rules join a cohort, or make one.
func (s *Evaluation) Join(ctx context.Context, joining evaluator.Joining) (joined int, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		joined = 0
		at, err := holdCohort(ctx, q, joining)
		if err != nil || at == nil {
			return err
		}
		p := pgq.CohortJoinParams{CohortID: &joining.Cohort.ID, Cursor: *at}
		for _, m := range joining.Rules {
			p.RuleIds, p.Versions = append(p.RuleIds, m.RuleID), append(p.Versions, m.Version)
		}
		n, err := q.CohortJoin(ctx, p)
		if err == nil && joining.New && int(n) < joining.Least {
			return errTooFew
		}
		if joined = int(n); err != nil || joined < manyJoined {
			return err
		}
		return q.CohortJoined(ctx)
	})
	if errors.Is(err, errTooFew) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("join cohort: %w", err)
	}
	// The evaluator keeps the rules of a cohort itself.
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range joining.Rules {
		delete(s.known, m.RuleID)
	}
	return joined, nil
}

// holdCohort makes a cohort or holds it, and returns its cursor; nil where it cannot
// be joined just now.
func holdCohort(ctx context.Context, q *pgq.Queries, joining evaluator.Joining) (at *string, err error) {
	c, to := joining.Cohort, joining.To.String()
	if joining.New {
		return &to, q.CohortInsert(ctx, pgq.CohortInsertParams{
			CohortID: c.ID, TenantID: c.TenantID, IntervalSeconds: int32(c.IntervalSeconds), LookBackSeconds: int32(c.LookBackSeconds),
			Cursor: &to, Replica: joining.Replica,
		})
	}
	at, err = q.CohortHold(ctx, pgq.CohortHoldParams{
		CohortID: c.ID, Replica: joining.Replica, NotAfter: to, NotBefore: joining.NotBefore.String(),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nothing to join is no error
	}
	return at, err
}

// advanceCohorts moves the cursors of cohorts, and adds the watermarks of those
// finders that are still members.
func advanceCohorts(ctx context.Context, q *pgq.Queries, batch evaluator.Batch, done *evaluator.Committed, watermarks map[uuid.UUID]int64) error {
	if len(batch.Cohorts) == 0 {
		return nil
	}
	p := pgq.CohortAdvanceParams{ClaimFor: batch.ClaimFor, LeastDueAt: leastDueAt(&batch)}
	var f pgq.CohortFindersParams
	for i := range batch.Cohorts {
		c := &batch.Cohorts[i]
		p.CohortIds = append(p.CohortIds, c.ID)
		p.Tokens = append(p.Tokens, c.Token)
		p.FromCursors = append(p.FromCursors, c.From.String())
		p.ToCursors = append(p.ToCursors, c.To.String())
		p.OwedFromNs = append(p.OwedFromNs, owedParam(c.OwedFromNS))
		p.Releases = append(p.Releases, c.Release)
		p.AtOnce = append(p.AtOnce, c.AtOnce)
		for _, m := range c.Finders {
			f.RuleIds, f.Versions, f.CohortIds = append(f.RuleIds, m.RuleID), append(f.Versions, m.Version), append(f.CohortIds, c.ID)
		}
	}
	var err error
	if done.Cohorts, err = q.CohortAdvance(ctx, p); err != nil {
		return fmt.Errorf("advance cohorts: %w", err)
	}
	if len(f.RuleIds) == 0 || len(done.Cohorts) == 0 {
		return nil
	}
	f.Advanced = done.Cohorts
	rows, err := q.CohortFinders(ctx, f)
	if err != nil {
		return fmt.Errorf("hold members: %w", err)
	}
	for _, row := range rows {
		watermarks[row.RuleID] = row.SweptBeforeNs
	}
	advanced := evaluator.NewIDs(done.Cohorts)
	for _, id := range f.CohortIds {
		if advanced[id] {
			done.Strayed++
		}
	}
	done.Strayed -= len(rows)
	return nil
}

// partWithProblems has the finders with a problem leave the cohorts that advanced.
func partWithProblems(ctx context.Context, q *pgq.Queries, batch evaluator.Batch, advanced []uuid.UUID) error {
	standing := evaluator.NewIDs(advanced)
	for i := range batch.Cohorts {
		c := &batch.Cohorts[i]
		if len(c.Problems) == 0 || !standing[c.ID] {
			continue
		}
		p := pgq.CohortLeaveParams{CohortID: c.ID}
		for id, problem := range c.Problems {
			p.RuleIds, p.Problems = append(p.RuleIds, id), append(p.Problems, problem)
		}
		if _, err := q.CohortLeave(ctx, p); err != nil {
			return fmt.Errorf("leave cohort: %w", err)
		}
	}
	return nil
}

// lockRule holds a rule and its state for an edit. A member leaves its cohort.
func lockRule(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (pgq.RuleLockRow, error) {
	if err := partRule(ctx, q, tenant, id); err != nil {
		return pgq.RuleLockRow{}, err
	}
	was, err := q.RuleLock(ctx, pgq.RuleLockParams{TenantID: tenant, RuleID: id})
	if err != nil {
		return was, notFound(err, "rule")
	}
	return was, nil
}

// partRule holds a rule, so that it cannot join a cohort, and has it leave the one
// that it is in.
func partRule(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) error {
	if _, err := q.RuleHold(ctx, pgq.RuleHoldParams{TenantID: tenant, RuleID: id}); err != nil {
		return notFound(err, "rule")
	}
	cohort, err := q.RuleCohort(ctx, id)
	if err != nil || cohort == nil {
		return err
	}
	_, err = q.CohortLeave(ctx, pgq.CohortLeaveParams{CohortID: *cohort, RuleIds: []uuid.UUID{id}, Problems: []string{""}})
	return err
}
