package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// A cohort is rules that share a cursor, a claim and a next run, so that a tick
// costs one row for all of them. They have in common the tenant, the interval and
// the look-back; what one of them finds is committed as if it were alone.
//
//		rule alone ── drained, nothing wrong ──▶ member ── edited, disabled, deleted, retried, failing ──▶ rule alone
//
//	  - A rule joins only while nobody holds a claim on the cohort. So who holds one
//	    knows every member: meanwhile rules can only leave.
//	  - A rule leaves with the cursor that the cohort has at that moment, under the
//	    lock that a commit takes first. What was judged for it and not yet committed
//	    is dropped, and judged again from there, by what the rule says then.
//	  - A rule changes only while it is alone; the database refuses it otherwise. So
//	    a member is judged by the definition that it joined with.
//	  - A rule joins a cohort that stands at or before its own cursor: what it judges
//	    again has its alert.
//	  - A rule joins at the replica that evaluates the cohort and has just evaluated
//	    the rule: the ledger of that process has seen for both what came late.
//
// Where the database refuses what members found, these members leave, and are
// committed alone. Where the cohort cannot be evaluated, all leave with the problem.
type cohort struct {
	*stand
	kind     kind
	token    int64
	revision int64
	judges   []*judge
	// members is how many rules there are, as far as this process knows.
	members int
	// index, statuses and applications are those of the judges, as a group has them.
	index        *rules.Index
	statuses     []rules.Status
	applications []string
	// sinceNS is the instant before which nothing ended that any of the judges wants.
	sinceNS int64
	used    time.Time
	// refused says that the database refused the bare cursor in this tick.
	refused bool
}

// kind is what the members of a cohort have in common.
type kind struct {
	tenantID                         string
	intervalSeconds, lookBackSeconds int
}

// Cohorts keeps the rules that advance together.
type Cohorts interface {
	// Members returns the rules of a cohort in a fixed order.
	Members(ctx context.Context, cohort uuid.UUID) ([]Member, error)
	// Definitions reads rules, each with the error that keeps it from being
	// evaluated; what is deleted is left out.
	Definitions(ctx context.Context, ids []uuid.UUID) ([]Claim, error)
	// Leave has members go on alone from where the cohort stands, due at once, and
	// returns those that did; none where the claim no longer stands. A cohort
	// without members is deleted.
	Leave(ctx context.Context, leaving Leaving) ([]uuid.UUID, error)
	// Join has rules join a cohort, and returns how many did. It leaves out what is
	// edited or evaluated at that moment.
	Join(ctx context.Context, joining Joining) (joined int, err error)
}

// Member is a rule of a cohort, in the version that is judged.
type Member struct {
	RuleID                uuid.UUID
	Version, ArmedSinceNS int64
}

// CohortClaim is a cohort that this replica may evaluate.
type CohortClaim struct {
	ID                               uuid.UUID
	TenantID                         string
	IntervalSeconds, LookBackSeconds int
	// Revision is another one whenever the members are others.
	Revision int64
}

// CohortAdvance moves the cursor of a claimed cohort.
type CohortAdvance struct {
	ID       uuid.UUID
	Token    int64
	From, To cursor.Position
	// OwedFromNS, Release and AtOnce are as in [Advance].
	OwedFromNS      *int64
	Release, AtOnce bool
	// Finders are the members that found something. What was found for those that
	// are members no more is left out.
	Finders []Member
	// Problems are recorded on finders, which leave with them.
	Problems map[uuid.UUID]string
}

// Leaving says who leaves a claimed cohort.
type Leaving struct {
	Cohort uuid.UUID
	Token  int64
	// Rules leave; nil is all.
	Rules []uuid.UUID
	// Problem is recorded on them; empty is none.
	Problem string
}

// Joining says who joins a cohort.
type Joining struct {
	Cohort CohortClaim
	// New makes the cohort, at To, if at least Least rules join it. An old one is
	// joined where the replica was the last to evaluate it and it stands between
	// NotBefore and To.
	New           bool
	Least         int
	Replica       string
	NotBefore, To cursor.Position
	Rules         []Member
}

// cohortGrace is how late a cohort may be until a replica takes it that does not
// know its members.
const cohortGrace = 5 * time.Second

// definitionsAtOnce bounds how many rules are read in one query.
const definitionsAtOnce = 5000

// enter makes a claimed cohort ready to be judged; nil where there is none to judge.
func (t *tick) enter(ctx context.Context, claim *Claim) (*cohort, error) {
	said := claim.Cohort
	c := t.cohorts[said.ID]
	if c == nil {
		c = &cohort{stand: &stand{id: said.ID}}
	}
	c.kind = kind{said.TenantID, said.IntervalSeconds, said.LookBackSeconds}
	c.token, c.used, c.refused = claim.Token, t.Clock(), false
	c.tenantID, c.lookBackSeconds = said.TenantID, said.LookBackSeconds
	if claim.Err != nil || claim.ahead() || t.CohortLeast < 0 {
		// What is wrong with the cursor is found out for each rule.
		return nil, t.dissolve(ctx, c)
	}
	if c.revision != said.Revision {
		if err := t.muster(ctx, c); err != nil {
			return nil, err
		}
		c.revision = said.Revision
	}
	if len(c.judges) == 0 || len(c.judges) < t.CohortLeast/2 {
		return nil, t.dissolve(ctx, c)
	}
	at := *claim.From
	c.from, c.at, c.start = &at, at, at
	c.owedFromNS, c.unreachedNS = owedIn(claim), owesNothing
	t.cohorts[c.id] = c
	return c, nil
}

// dissolve has all members of a cohort go on alone.
func (t *tick) dissolve(ctx context.Context, c *cohort) error {
	delete(t.cohorts, c.id)
	if _, err := t.Cohorts.Leave(ctx, Leaving{Cohort: c.id, Token: c.token}); err != nil {
		return fmt.Errorf("dissolve cohort: %w", err)
	}
	return nil
}

// muster reads the members that a cohort has. Those that cannot be judged leave,
// and fail alone.
func (t *tick) muster(ctx context.Context, c *cohort) error {
	members, err := t.Cohorts.Members(ctx, c.id)
	if err != nil {
		return fmt.Errorf("read cohort: %w", err)
	}
	known := make(map[uuid.UUID]*judge, len(c.judges))
	for _, j := range c.judges {
		known[j.claim.Rule.ID] = j
	}
	judges := make([]*judge, 0, len(members))
	var unknown []uuid.UUID
	for _, m := range members {
		j := known[m.RuleID]
		if j == nil || j.claim.Rule.Version != m.Version || j.claim.Rule.ArmedSinceNS != m.ArmedSinceNS {
			unknown = append(unknown, m.RuleID)
			continue
		}
		judges = append(judges, j)
	}
	var unfit []uuid.UUID
	for some := range slices.Chunk(unknown, definitionsAtOnce) {
		claims, err := t.Cohorts.Definitions(ctx, some)
		if err != nil {
			return fmt.Errorf("read cohort: %w", err)
		}
		for i := range claims {
			j, err := t.admit(c, &claims[i])
			if err != nil {
				unfit = append(unfit, claims[i].Rule.ID)
				continue
			}
			judges = append(judges, j)
		}
	}
	if len(unfit) > 0 {
		if _, err := t.Cohorts.Leave(ctx, Leaving{Cohort: c.id, Token: c.token, Rules: unfit}); err != nil {
			return fmt.Errorf("leave cohort: %w", err)
		}
	}
	c.hold(judges)
	return nil
}

// admit makes the judge of a member.
func (t *tick) admit(c *cohort, claim *Claim) (*judge, error) {
	if claim.Err != nil {
		return nil, claim.Err
	}
	compiled, err := t.cache.compile(&claim.Rule, t.Clock())
	if err != nil {
		return nil, err
	}
	return &judge{claim: *claim, Judge: compiled, stand: c.stand}, nil
}

// hold takes over judges, and what they have in common.
func (c *cohort) hold(judges []*judge) {
	slices.SortFunc(judges, func(a, b *judge) int {
		return slices.Compare(a.claim.Rule.ID[:], b.claim.Rule.ID[:])
	})
	all := group{judges: judges}
	c.judges, c.members, c.index = judges, len(judges), nil
	c.statuses, c.applications = all.statuses(), all.applications()
	c.sinceNS = wantsSince(judges)
}

// part is a group of this cohort alone.
func (c *cohort) part(g *group) group {
	return group{tenantID: g.tenantID, cohorts: []*cohort{c}, behindhand: g.behindhand}
}

// advance returns what a commit says about the cohort.
func (c *cohort) advance(found findings, release, atOnce bool) CohortAdvance {
	a := CohortAdvance{ID: c.id, Token: c.token, From: *c.from, To: c.at, OwedFromNS: c.owed(), Release: release, AtOnce: atOnce}
	for _, j := range found.finders {
		if j.stand != c.stand {
			continue
		}
		a.Finders = append(a.Finders, Member{RuleID: j.claim.Rule.ID, Version: j.claim.Rule.Version})
		if j.problem != "" {
			if a.Problems == nil {
				a.Problems = map[uuid.UUID]string{}
			}
			a.Problems[j.claim.Rule.ID] = j.problem
		}
	}
	return a
}

// commitAlone writes what one cohort found after the database refused it: the
// finders leave, to be judged alone, and the cohort goes on without them. One that
// is refused twice without any finding cannot be evaluated.
func (t *tick) commitAlone(ctx context.Context, g *group, found findings, release bool, refused error) error {
	c := g.cohorts[0]
	var finders []uuid.UUID
	for id := range found.finders {
		finders = append(finders, id)
	}
	if len(finders) == 0 {
		if c.refused {
			return t.failAll(ctx, g, refused)
		}
		c.refused = true // what passes costs nobody anything
		return t.commit(ctx, g, findings{}, release)
	}
	t.Logger.WarnContext(ctx, "rules leave their cohort, which could not be committed with what they found",
		slog.Int("rules", len(finders)), slog.Any("error", refused))
	left, err := t.Cohorts.Leave(ctx, Leaving{Cohort: c.id, Token: c.token, Rules: finders})
	if err != nil {
		return errors.Join(refused, err)
	}
	gone := NewIDs(left)
	c.hold(slices.DeleteFunc(slices.Clone(c.judges), func(j *judge) bool { return gone[j.claim.Rule.ID] }))
	c.revision = 0
	if len(c.judges) == 0 {
		g.cohorts = nil
		return t.dissolve(ctx, c)
	}
	return t.commit(ctx, g, findings{}, release)
}

// failCohort records a problem on all members, which go on alone, and tells the
// operators.
func (t *tick) failCohort(ctx context.Context, c *cohort, problem error) error {
	if ctx.Err() != nil {
		return problem
	}
	delete(t.cohorts, c.id)
	text := rules.CleanText(problem.Error(), maxProblemBytes)
	t.Logger.WarnContext(ctx, "cohort not evaluated", slog.Int("rules", len(c.judges)), slog.String("error", text))
	left, err := t.Cohorts.Leave(ctx, Leaving{Cohort: c.id, Token: c.token, Problem: text})
	if err != nil {
		return errors.Join(problem, fmt.Errorf("record problem: %w", err))
	}
	t.result.Failed += len(left)
	gone := NewIDs(left)
	var failing []alerts.Instance
	for _, j := range c.judges {
		if id := j.claim.Rule.ID; gone[id] {
			t.told[id] = text
			failing = append(failing, t.failing(&j.claim.Rule, text))
		}
	}
	t.announce(ctx, failing)
	return nil
}

// sweepCohorts forgets the cohorts that another replica evaluates.
func (e *Evaluator) sweepCohorts(now time.Time) {
	for id, c := range e.cohorts {
		if now.Sub(c.used) > compiledFor {
			delete(e.cohorts, id)
		}
	}
}
