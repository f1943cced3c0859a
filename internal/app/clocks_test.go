package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/internal/clickhouse"
	"tocsin/internal/postgres"
	"tocsin/rules"
)

// hasty is a source whose clock is ahead.
type hasty struct {
	*clickhouse.Source

	ahead time.Duration
}

func (h *hasty) Now(ctx context.Context) (int64, error) {
	now, err := h.Source.Now(ctx)
	return now + h.ahead.Nanoseconds(), err
}

// TestAClockThatIsAheadPassesOverNothing puts ClickHouse's clock ahead for two ticks:
// rules that are alone, that share a cursor, and that count fail meanwhile, and go on
// from where they stood. A clock that is ahead by less changes nothing.
func TestAClockThatIsAheadPassesOverNothing(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"each alone": -1, "in a cohort": 2} {
		for _, ahead := range []time.Duration{2 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.operators()
				w.namedRules("a", "b")
				source := &hasty{Source: w.countedSource().Source.(*clickhouse.Source), ahead: 50 * time.Second}
				e := w.cohortEvaluator(evaluator.Options{Source: source, CohortLeast: least})
				tick := func(failed int) {
					t.Helper()
					if result, err := w.tickWith(e); err != nil || result.Failed != failed {
						t.Fatalf("Tick = %+v, %v; want %d failed rules", result, err, failed)
					}
				}
				tick(0)
				source.ahead = 0
				if least > 0 {
					w.drained(e, "a", "b")
				}
				count := rules.Definition{
					Name: "c", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Critical, Threshold: 1, WindowSeconds: 600,
					IntervalSeconds: 1, NotifyOnResolve: true,
				}
				if _, err := w.db.Rules().Create(t.Context(), tenant, count); err != nil {
					t.Fatal(err)
				}
				w.fail(w.ch.Now(t), "old")
				tick(0)
				const cursors = `select cursor from rule_progress order by rule_id`
				before := w.column(cursors)
				source.ahead = ahead
				tick(3)
				w.fail(w.ch.Now(t), "new")
				tick(3)
				w.wantColumn("cursors", cursors, before...)
				problem := fmt.Sprintf("ClickHouse's clock is %v ahead of Postgres's: the rule stands still, or it would pass over what begins meanwhile; "+
					"set the clock that is wrong, and the rule goes on from where it stands", ahead)
				w.wantColumn("problems", problems, problem, problem, problem)
				w.wantColumn("told", toldOfRules, "RULE_FAILING 3")
				w.wantColumn("counts", `select state from alert where group_key is not null`, "FIRING")
				source.ahead = 0
				tick(0)
				w.wantColumn("alerts", alertsOf, "a new", "a old", "b new", "b old")
				w.wantColumn("problems in the end", problems, "", "", "")
				w.wantColumn("told in the end", toldOfRules, "RULE_FAILING 3", "RULE_RECOVERED 3")
				w.wantColumn("counts in the end", `select state from alert where group_key is not null`, "FIRING")
			})
		}
	}
}

// toldOfRules counts what operators were told.
const toldOfRules = `select reason || ' ' || count(*) from notification where reason like 'RULE%' group by reason order by reason`

// stood is a store whose claims were made long before the rest of the tick.
type stood struct{ *postgres.Evaluation }

func (s stood) Load(ctx context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	loaded, err := s.Evaluation.Load(ctx, request)
	for i := range loaded.Claims {
		loaded.Claims[i].Now = loaded.Claims[i].Now.Add(-time.Hour)
	}
	return loaded, err
}

// TestATickThatStoodStillFindsNoFaultInTheClock has an hour lie between a claim and
// the look at ClickHouse's clock, which is right.
func TestATickThatStoodStillFindsNoFaultInTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	w.fail(w.ch.Now(t), "new")
	e := w.newEvaluator(evaluator.Options{Store: stood{w.db.Evaluation()}})
	if result, err := w.tickWith(e); err != nil || result.Failed != 0 || result.Alerts != 1 {
		t.Errorf("Tick = %+v, %v; want an alert", result, err)
	}
}

// aheadBy puts all cursors ahead.
func (w *world) aheadBy(interval string) {
	w.t.Helper()
	at := `to_char(now() at time zone 'utc' + interval '` + interval + `', 'YYYY-MM-DD"T"HH24:MI:SS') || '.000000000Z|'`
	w.exec(`update rule_state set cursor = ` + at + ` where cohort_id is null`)
	w.exec(`update cohort set cursor = ` + at)
}

// TestACursorThatIsAheadIsTold puts cursors ahead, as a clock did before it was
// checked. A rule whose look-back reaches what has begun goes on with that and says so;
// one whose look-back does not fails, until it is enabled anew.
func TestACursorThatIsAheadIsTold(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"each alone": -1, "in a cohort": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			made := w.namedRules("a", "b")
			w.exec(`update rule_state set armed_since_ns = armed_since_ns - 7200 * 1000000000::bigint`)
			e := w.cohortEvaluator(evaluator.Options{CohortLeast: least})
			tick := func(failed int) {
				t.Helper()
				// What leaves a cohort is judged by the second one.
				for range 2 {
					if result, err := w.tickWith(e); err != nil || (result.Failed != failed && result.Rules > 0) {
						t.Fatalf("Tick = %+v, %v; want %d failed rules", result, err, failed)
					}
				}
			}
			tick(0)
			if least > 0 {
				w.drained(e, "a", "b")
			}
			wantTold := func(what string) {
				t.Helper()
				health, err := w.db.Rules().Health(t.Context(), tenant, []uuid.UUID{made["a"].ID, made["b"].ID})
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range health {
					if !strings.Contains(h.LastError, "which is yet to come by Postgres's clock") {
						t.Errorf("%s: health tells %q", what, h.LastError)
					}
				}
			}
			w.aheadBy("30 minutes")
			w.fail(w.ch.Now(t), "within")
			tick(0)
			wantTold("within the look-back")
			w.wantColumn("alerts", alertsOf, "a within", "b within")
			w.wantColumn("told", toldOfRules)

			w.aheadBy("2 hours")
			w.fail(w.ch.Now(t)-10*time.Minute.Nanoseconds(), "missed")
			tick(2)
			wantTold("beyond the look-back")
			w.wantColumn("alerts beyond", alertsOf, "a within", "b within")
			w.wantColumn("told beyond", toldOfRules, "RULE_FAILING 2")
			if got := w.reconcileLast(made["a"], time.Hour); got.Missing != 1 || !slices.Equal(got.MissingSample, []string{"missed"}) {
				t.Errorf("reconciled: %+v, want one missing", got)
			}

			for _, enabled := range []bool{false, true} {
				for _, rule := range made {
					if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, enabled); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.fail(w.ch.Now(t), "new")
			tick(0)
			w.wantColumn("alerts in the end", alertsOf, "a new", "a within", "b new", "b within")
			w.wantColumn("problems in the end", problems, "", "")
		})
	}
}

// TestARuleThatDoesNotLookBackFailsWhereItsCursorIsAhead has nothing to judge, though
// its cursor is ahead by less than most look-backs; one that counts has its windows.
func TestARuleThatDoesNotLookBackFailsWhereItsCursorIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule()
	w.exec(`update rule set look_back_seconds = 0`)
	count := rules.Definition{
		Name: "c", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Critical, Threshold: 1, WindowSeconds: 600, IntervalSeconds: 1,
	}
	if _, err := w.db.Rules().Create(t.Context(), tenant, count); err != nil {
		t.Fatal(err)
	}
	w.tick()
	w.aheadBy("50 seconds")
	if result := w.tick(); result.Rules != 2 || result.Failed != 0 {
		t.Errorf("Tick = %+v; want clocks to differ a little", result)
	}
	w.aheadBy("5 minutes")
	w.fail(w.ch.Now(t), "new")
	if result := w.tick(); result.Rules != 2 || result.Failed != 1 || result.Alerts != 1 {
		t.Errorf("Tick = %+v; want one rule to fail, and the other to count", result)
	}
}

// TestNoWatermarkFollowsACursorThatIsAhead sweeps while a cursor is ahead, and puts it
// right after that: what begins from then on is raised.
func TestNoWatermarkFollowsACursorThatIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.oldRule("a")
	w.exec(resolvedLongAgo)
	w.aheadBy("40 days")
	if got := w.sweep(); got.Alerts != 1 {
		t.Errorf("swept %+v, want what was resolved long ago", got)
	}
	for _, enabled := range []bool{false, true} {
		if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, enabled); err != nil {
			t.Fatal(err)
		}
	}
	w.fail(w.ch.Now(t), "new")
	w.tick()
	w.wantColumn("alerts", alertIDs, "new")
	w.wantColumn("watermarks in the future", `select rule_id::text from rule_state where swept_before_ns > extract(epoch from now()) * 1e9`)
}
