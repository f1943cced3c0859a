package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

const (
	memberNames = `select r.name from rule r join rule_state s using (rule_id) where s.cohort_id is not null order by r.name`
	alertsOf    = `select r.name || ' ' || a.execution_id from alert a join rule r using (rule_id) where a.execution_id is not null order by 1`
	// untrue holds where a cohort is not what its members make of it.
	untrue = `select c.cohort_id::text from cohort c where c.members <> (select count(*) from rule_state s where s.cohort_id = c.cohort_id)`
)

// cohortEvaluator makes cohorts of few rules.
func (w *world) cohortEvaluator(o evaluator.Options) *evaluator.Evaluator {
	o.CohortLeast = orElse(o.CohortLeast, 2)
	return w.newEvaluator(o)
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// namedRules stores rules that match every failed exchange.
func (w *world) namedRules(names ...string) map[string]rules.Rule {
	w.t.Helper()
	hook := w.webhook("ops")
	made := map[string]rules.Rule{}
	for _, name := range names {
		made[name] = w.ruleOf(rules.Definition{Name: name, WebhookIDs: []uuid.UUID{hook}})
	}
	return made
}

// drained ticks until every rule shares a cursor.
func (w *world) drained(e *evaluator.Evaluator, members ...string) {
	w.t.Helper()
	w.until("the rules share a cursor", func() bool {
		if _, err := w.tickWith(e); err != nil {
			w.t.Fatal(err)
		}
		return slices.Equal(w.column(memberNames), members)
	})
}

// TestDrainedRulesShareACursor holds a tick of a cohort to one row, and what is
// told of its members to the truth.
func TestDrainedRulesShareACursor(t *testing.T) {
	w := newWorld(t)
	made := w.namedRules("a", "b", "c")
	e := w.cohortEvaluator(evaluator.Options{CohortLeast: 3})
	w.drained(e, "a", "b", "c")
	rows := w.column(`select xmin::text from rule_state order by rule_id`)
	w.fail(w.ch.Now(t), "x")
	if result, err := w.tickWith(e); err != nil || result.Rules != 3 || result.Alerts != 3 || result.Notifications != 3 {
		t.Errorf("Tick = %+v, %v, want three alerts", result, err)
	}
	w.wantColumn("alerts", alertsOf, "a x", "b x", "c x")
	w.wantColumn("rows of rules, which no tick wrote", `select xmin::text from rule_state order by rule_id`, rows...)
	ids := []uuid.UUID{made["a"].ID, made["b"].ID, made["c"].ID}
	health, err := w.db.Rules().Health(t.Context(), tenant, ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if h := health[id]; h.Cursor == nil || h.Lag == nil || *h.Lag > time.Minute || h.LastRunAt == nil || h.NextRunAt == nil || h.NextRunAt.Before(*h.LastRunAt) {
			t.Errorf("health of a member = %+v", h)
		}
	}
	w.wantColumn("cohorts that are untrue", untrue)
	w.wantColumn("claims", claimedBy)
}

// TestPeopleTakeRulesFromACohortInTheMidstOfATick does to one of two members what
// people do, after the cohort was read and before it is committed.
func TestPeopleTakeRulesFromACohortInTheMidstOfATick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(ctx context.Context, w *world, rule rules.Rule) error
		want []string
	}{
		"edits the texts": {func(ctx context.Context, w *world, rule rules.Rule) error {
			rule.TitleTemplate = "it broke"
			_, err := w.db.Rules().Update(ctx, tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: rule.Definition})
			return err
		}, []string{"a x", "a y", "b x", "b y"}},
		"edits the scope": {func(ctx context.Context, w *world, rule rules.Rule) error {
			rule.Scope.Applications = []string{"elsewhere"}
			_, err := w.db.Rules().Update(ctx, tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: rule.Definition})
			return err
		}, []string{"a x", "b x", "b y"}},
		"retries": {func(ctx context.Context, w *world, rule rules.Rule) error {
			_, err := w.db.Rules().Retry(ctx, tenant, rule.ID)
			return err
		}, []string{"a x", "a y", "b x", "b y"}},
		"disables": {func(ctx context.Context, w *world, rule rules.Rule) error {
			_, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, false)
			return err
		}, []string{"b x", "b y"}},
		"disables and enables": {func(ctx context.Context, w *world, rule rules.Rule) error {
			if _, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, false); err != nil {
				return err
			}
			_, err := w.db.Rules().SetEnabled(ctx, tenant, rule.ID, true)
			return err
		}, []string{"a y", "b x", "b y"}},
		"deletes": {func(ctx context.Context, w *world, rule rules.Rule) error {
			return w.db.Rules().Delete(ctx, tenant, rule.ID)
		}, []string{"b x", "b y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			made := w.namedRules("a", "b")
			source := &interrupted{Source: w.countedSource().Source.(*clickhouse.Source)}
			e := w.cohortEvaluator(evaluator.Options{Source: source})
			w.drained(e, "a", "b")
			w.fail(w.ch.Now(t), "x")
			source.meanwhile = func() {
				source.meanwhile = nil
				if err := c.does(t.Context(), w, made["a"]); err != nil {
					t.Error(err)
				}
			}
			if result, err := w.tickWith(e); err != nil || result.Alerts != 1 || result.Stale != 1 {
				t.Errorf("Tick = %+v, %v, want the other's alert alone", result, err)
			}
			w.wantColumn("alerts at first", alertsOf, "b x")
			if _, err := w.tickWith(e); err != nil {
				t.Fatal(err)
			}
			w.fail(w.ch.Now(t), "y")
			for range 3 {
				if _, err := w.tickWith(e); err != nil {
					t.Fatal(err)
				}
			}
			w.wantColumn("alerts", alertsOf, c.want...)
			w.wantColumn("cohorts that are untrue", untrue)
		})
	}
}

// TestAMemberIsNotChanged refuses what goes past the way out of a cohort.
func TestAMemberIsNotChanged(t *testing.T) {
	w := newWorld(t)
	w.namedRules("a", "b")
	w.drained(w.cohortEvaluator(evaluator.Options{}), "a", "b")
	if _, err := w.conn.Exec(t.Context(), `update rule set version = version + 1 where name = 'a'`); err == nil || !strings.Contains(err.Error(), "shares a cursor") {
		t.Errorf("changing a member: %v, want it refused", err)
	}
}

// TestOneRefusedMemberFailsAlone lets the database refuse what one member wants
// to write, and then the source be out of reach.
func TestOneRefusedMemberFailsAlone(t *testing.T) {
	w := newWorld(t)
	made := w.namedRules("a", "b", "c")
	e := w.cohortEvaluator(evaluator.Options{})
	w.drained(e, "a", "b", "c")
	w.exec(`
		create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
		create trigger refuse before insert on alert for each row when (new.rule_id = '` + made["b"].ID.String() + `') execute function refuse()`)
	w.fail(w.ch.Now(t), "x")
	for range 3 {
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
	}
	w.wantColumn("alerts", alertsOf, "a x", "c x")
	const failing = `select r.name from rule r join rule_state s using (rule_id) where s.problem is not null order by 1`
	w.wantColumn("rules with a problem", failing, "b")
	w.exec(`drop trigger refuse on alert; delete from alert where health`)
	w.drained(e, "a", "b", "c")
	w.wantColumn("alerts", alertsOf, "a x", "b x", "c x")

	source := w.countedSource().Source.(*clickhouse.Source)
	broken := w.cohortEvaluator(evaluator.Options{Source: source})
	_ = source.Close()
	if result, err := w.tickWith(broken); err != nil || result.Failed != 3 {
		t.Errorf("Tick without a source = %+v, %v, want every member to fail", result, err)
	}
	w.wantColumn("rules with a problem", failing, "a", "b", "c")
	w.wantColumn("told as failing", `select count(*)::text from alert where health`, "3")
	w.fail(w.ch.Now(t), "y")
	w.drained(e, "a", "b", "c")
	w.wantColumn("rules with a problem", failing)
	w.wantColumn("alerts", alertsOf, "a x", "a y", "b x", "b y", "c x", "c y")
}

// TestCohortsEndWhereNoneAreWanted is the way back to a version without them.
func TestCohortsEndWhereNoneAreWanted(t *testing.T) {
	w := newWorld(t)
	w.namedRules("a", "b")
	w.drained(w.cohortEvaluator(evaluator.Options{}), "a", "b")
	w.fail(w.ch.Now(t), "x")
	e := w.cohortEvaluator(evaluator.Options{CohortLeast: -1})
	for range 2 {
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
	}
	w.wantColumn("members", memberNames)
	w.wantColumn("cohorts", `select cohort_id::text from cohort`)
	w.wantColumn("alerts", alertsOf, "a x", "b x")
}

// TestAnotherReplicaTakesALateCohort leaves a cohort to its replica, unless that
// is late, or has left.
func TestAnotherReplicaTakesALateCohort(t *testing.T) {
	w := newWorld(t)
	w.namedRules("a", "b")
	w.drained(w.cohortEvaluator(evaluator.Options{Replica: "home"}), "a", "b")
	other := w.cohortEvaluator(evaluator.Options{Replica: "other"})
	if result, err := w.tickWith(other); err != nil || result.Rules != 0 {
		t.Errorf("Tick of another = %+v, %v, want nothing", result, err)
	}
	w.exec(`update cohort set next_run_at = now() - interval '10 s'`)
	if result, err := other.Tick(t.Context()); err != nil || result.Rules != 2 {
		t.Errorf("Tick of another when it is late = %+v, %v, want the cohort", result, err)
	}
	if _, err := w.db.Replicas().Leave(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if result, err := w.tickWith(w.cohortEvaluator(evaluator.Options{Replica: "third"})); err != nil || result.Rules != 2 {
		t.Errorf("Tick of a third when its replica has left = %+v, %v, want the cohort", result, err)
	}
}

// TestCohortsUnderFire has three replicas tick, people edit, retry, disable and
// enable rules, and exchanges fail, all at once. Nobody is refused, and in the end
// each rule that stood throughout has told of each exchange once.
func TestCohortsUnderFire(t *testing.T) {
	w := newWorld(t)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("%02d", i))
	}
	made := w.namedRules(names...)
	began := w.ch.Now(t)
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	var work sync.WaitGroup
	during := func(f func(random *rand.Rand) error) {
		random := rand.New(rand.NewPCG(rand.Uint64(), 1))
		work.Go(func() {
			for ctx.Err() == nil {
				if err := f(random); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 3 {
		e := w.cohortEvaluator(evaluator.Options{
			Replica: fmt.Sprint("replica-", i), Interval: 4 * time.Millisecond, PageSize: 3, CohortMost: 5, ClaimFor: 200 * time.Millisecond, Budget: 20 * time.Millisecond,
		})
		during(func(*rand.Rand) error {
			// On a busy machine a tick may outlive its claim.
			if _, err := e.Tick(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		})
	}
	conn := pgtest.Conn(t, w.pgURL)
	during(func(random *rand.Rand) error {
		// Any replica may come to a cohort, and claims may be lost.
		_, err := conn.Exec(ctx, `update cohort set home = null, claim_token = case when $1 then null else claim_token end,
			claimed_by = case when $1 then null else claimed_by end, claimed_until = case when $1 then null else claimed_until end
			where random() < 0.2`, random.IntN(10) == 0)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
		return err
	})
	db := w.db.Rules()
	for part := range 2 {
		during(func(random *rand.Rand) error {
			rule := made[names[2*random.IntN(5)+part]]
			if random.IntN(3) == 0 {
				_, err := db.Retry(ctx, tenant, rule.ID)
				return err
			}
			now, err := db.Get(ctx, tenant, rule.ID)
			if err != nil {
				return err
			}
			now.TitleTemplate = fmt.Sprint("broken ", random.IntN(1000))
			// The scope matches the same, and is another one.
			now.Scope.Environments = [][]string{nil, {"production"}, {"production", "test"}}[random.IntN(3)]
			_, err = db.Update(ctx, tenant, api.RuleEdit{ID: rule.ID, Version: now.Version, Definition: now.Definition})
			return err
		})
	}
	during(func(random *rand.Rand) error {
		_, err := db.SetEnabled(ctx, tenant, made["10"].ID, random.IntN(2) == 0)
		return err
	})
	var failed []string
	during(func(random *rand.Rand) error {
		id := fmt.Sprintf("x%05d", len(failed))
		failed = append(failed, id)
		w.fail(max(began, w.ch.Now(t)-random.Int64N(3)*int64(time.Second)/2), id)
		return nil
	})
	work.Wait()
	if len(failed) < 10 {
		t.Errorf("only %d exchanges failed meanwhile", len(failed))
	}
	w.wantColumn("cohorts that are untrue", untrue)
	w.exec(`update cohort set home = null, claim_token = null, claimed_by = null, claimed_until = null`)
	w.exec(`update rule_state set claim_token = null, claimed_by = null, claimed_until = null`)
	e := w.cohortEvaluator(evaluator.Options{Replica: "last"})
	for range 5 {
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, name := range names[:10] {
		for _, id := range failed {
			want = append(want, name+" "+id)
		}
	}
	if got := w.column(`select r.name || ' ' || a.execution_id from alert a join rule r using (rule_id)
		where a.execution_id is not null and r.name < '10' order by 1`); !slices.Equal(got, want) {
		t.Errorf("%d alerts of the rules that stood throughout, want %d: missing %v", len(got), len(want), without(want, got))
	}
	w.wantColumn("notifications that are not one for each alert", `select alert_id::text from alert a left join notification n using (alert_id) group by alert_id having count(n.alert_id) <> 1`)
}

// without returns what of a is not in b, at most ten.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) && len(out) < 10 {
			out = append(out, s)
		}
	}
	return out
}

// TestKilledAtEveryStatementOfACohort holds a replica inside a statement, kills
// it there or lets it stand still, and has another one go on.
func TestKilledAtEveryStatementOfACohort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger string
		// forming is set where the statement makes the cohort, and not its commit.
		forming bool
	}{
		"making the cohort":      {`create trigger pause before insert on cohort for each row execute function pause()`, true},
		"joining":                {`create trigger pause before update on rule_state for each row when (old.cohort_id is null and new.cohort_id is not null) execute function pause()`, true},
		"counting members":       {`create trigger pause before update on cohort for each row when (old.members <> new.members) execute function pause()`, true},
		"claiming the cohort":    {`create trigger pause before update on cohort for each row when (new.claim_token is distinct from old.claim_token and new.claim_token is not null) execute function pause()`, false},
		"advancing its cursor":   {`create trigger pause before update on cohort for each row when (old.cursor <> new.cursor) execute function pause()`, false},
		"inserting alerts":       {`create trigger pause before insert on alert for each statement execute function pause()`, false},
		"committing":             {`create constraint trigger pause after insert on outbox deferrable initially deferred for each row execute function pause()`, false},
		"leaving with a problem": {`create trigger pause before update on rule_state for each row when (old.cohort_id is not null and new.cohort_id is null) execute function pause()`, false},
	} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", stands still ", paused), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				settings := append(brisk(), "TOCSIN_COHORT_LEAST=2")
				w.namedRules("a", "b")
				if name == "leaving with a problem" {
					w.exec(`update rule set title_template = '{{#exchange}}' where name = 'a'`)
				}
				var goOn func()
				if c.forming {
					goOn = w.pauseInside(c.trigger)
				}
				first := w.serve(settings...)
				if !c.forming {
					w.until("the rules share a cursor", func() bool { return len(w.column(memberNames)) == 2 })
					goOn = w.pauseInside(c.trigger)
				}
				w.fail(w.ch.Now(t), "x")
				w.untilInside()
				if paused {
					first.stop(t)
				} else {
					first.kill()
				}
				goOn()
				w.serve(settings...)
				w.untilDelivered(2)
				if paused {
					first.goOn(t)
				}
				w.fail(w.ch.Now(t), "y")
				w.untilDelivered(4)
				w.wantColumn("alerts", alertsOf, "a x", "a y", "b x", "b y")
				w.wantColumn("cohorts that are untrue", untrue)
				// A dispatcher that is killed may have sent a message already.
				ids := w.receiver.webhookIDs()
				slices.Sort(ids)
				if got := len(slices.Compact(ids)); got != 4 {
					t.Errorf("the receiver got %d messages, want 4", got)
				}
			})
		}
	}
}
