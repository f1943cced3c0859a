package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/silences"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/outage"
	"tocsin/internal/access"
	"tocsin/internal/app"
	"tocsin/rules"
)

// TestClockThatIsAheadPassesOverNothing sets ClickHouse's clock ahead: nothing is evaluated meanwhile,
// no cursor moves, and everything is found when the clock is right again. A clock that is ahead by
// less than a minute changes nothing.
func TestClockThatIsAheadPassesOverNothing(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{2 * time.Minute, 2 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			w.namedRules("a", "b")
			count := rules.Definition{
				Name: "c", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Critical, Threshold: 1, WindowSeconds: 600,
				IntervalSeconds: 1, NotifyOnResolve: true,
			}
			if _, err := w.db.Rules().Create(t.Context(), tenant, count); err != nil {
				t.Fatal(err)
			}
			source := w.watched()
			e := w.newEvaluator(evaluator.Options{Source: source})
			tick := func(fails bool) {
				t.Helper()
				result, err := w.tickWith(e)
				if result.Failed > 0 || (err != nil) != fails {
					t.Fatalf("Tick = %+v, %v; want an error: %v", result, err, fails)
				}
				if fails && !strings.Contains(err.Error(), "ahead of Postgres's") {
					t.Errorf("the error is %v", err)
				}
			}
			tick(false)
			source.ahead = 50 * time.Second
			w.fail(w.ch.Now(t), "old")
			tick(false)
			source.ahead = 0
			w.fail(w.ch.Now(t), "behind the cursor")
			tick(false)
			before := w.column(cursors)
			source.ahead = ahead
			tick(true)
			w.fail(w.ch.Now(t), "new")
			w.later(outage.Grace)
			tick(true)
			w.wantColumn("cursors", cursors, before...)
			w.wantColumn("announced", announced, "SOURCE_FAILING 1")
			w.wantColumn("counts", `select state from alert where group_key is not null`, "FIRING")
			source.ahead = 0
			tick(false)
			w.wantColumn("alerts", alertsOf, "a behind the cursor", "a new", "a old", "b behind the cursor", "b new", "b old")
			w.wantColumn("announced in the end", announced, "SOURCE_FAILING 1", "SOURCE_RECOVERED 1")
			w.wantColumn("counts in the end", `select state from alert where group_key is not null`, "FIRING")
		})
	}
}

// TestProcessThatStoodStillFindsNoFaultInTheClock has an hour between a lease and the check of
// ClickHouse's clock, which is right.
func TestProcessThatStoodStillFindsNoFaultInTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	w.fail(w.ch.Now(t), "new")
	source := w.watched()
	var once sync.Once
	source.before = func(string) error {
		once.Do(func() {
			w.later(time.Hour)
			source.ahead = time.Hour
		})
		return nil
	}
	e := w.newEvaluator(evaluator.Options{Source: source})
	if result, err := w.tickWith(e); err != nil || result.Failed != 0 {
		t.Errorf("Tick = %+v, %v; want no error", result, err)
	}
	source.ahead = 0
	if result, err := w.tickWith(e); err != nil || result.Alerts != 1 {
		t.Errorf("the next Tick = %+v, %v; want an alert", result, err)
	}
}

// aheadBy moves all cursors ahead, as a clock that was ahead would have.
func (w *world) aheadBy(d time.Duration) {
	w.t.Helper()
	w.exec(`update checkpoint set cursor = $1 where cursor is not null`, cursor.Position{StartTimeNS: w.ch.Now(w.t) + d.Nanoseconds()}.String())
}

// TestCursorThatIsAheadGoesBack stores a cursor in the future: the partition evaluates from the
// present on, with its look-back.
func TestCursorThatIsAheadGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.armed(rule, rule.ArmedSinceNS-2*time.Hour.Nanoseconds())
	w.tick()
	w.aheadBy(2 * time.Hour)
	w.fail(w.ch.Now(t), "new")
	w.fail(w.ch.Now(t)-10*time.Minute.Nanoseconds(), "late")
	w.until("the look-back is evaluated", func() bool {
		if result := w.tick(); result.Failed > 0 {
			t.Fatalf("Tick = %+v", result)
		}
		return len(w.column(`select partition::text from checkpoint where backfill_from_ns is not null`)) == 0
	})
	w.wantColumn("alerts", alertIDs, "late", "new")
	w.wantColumn("cursors that are ahead", `select cursor from checkpoint where cursor > to_char(now() at time zone 'utc' + interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS')`)
	health, err := w.db.Rules().Health(t.Context(), tenant, []uuid.UUID{rule.ID})
	if err != nil || health[rule.ID].LastError != "" || health[rule.ID].Lag == nil || *health[rule.ID].Lag > time.Minute {
		t.Errorf("health = %+v, %v", health, err)
	}
}

// TestNoWatermarkFollowsACursorThatIsAhead makes a pass of retention while a cursor is ahead, and corrects the cursor
// afterwards: what begins from then on is raised.
func TestNoWatermarkFollowsACursorThatIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.oldRule("a")
	w.exec(resolvedLongAgo)
	w.aheadBy(40 * 24 * time.Hour)
	if got := w.expire(); got.Alerts != 1 {
		t.Errorf("deleted %+v, want what was resolved long ago", got)
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

// TestPostgresClockDecidesAboutTimesOfPeople sets the clocks of two replicas a minute ahead and a minute
// behind: what people choose is neither refused nor accepted by them.
func TestPostgresClockDecidesAboutTimesOfPeople(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base, _ := w.guarded(func(o *app.Options) { o.Clock = func() time.Time { return time.Now().Add(off) } })
			operator := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("operator", access.Operator)
			status := operator.must(http.StatusOK, http.MethodGet, "/status", nil)
			if now, err := time.Parse(time.RFC3339, status.text("now")); err != nil || time.Since(now).Abs() > 30*time.Second {
				t.Errorf("the clock is %s, %v", status.text("now"), err)
			}
			in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
			silence := func(ends time.Duration) map[string]any {
				return map[string]any{"name": ends.String(), "match": map[string]any{"severities": []string{"INFO"}}, "endsAt": in(ends)}
			}
			operator.must(http.StatusCreated, http.MethodPost, "/silences", silence(30*time.Second))
			tested := operator.must(http.StatusOK, http.MethodPost, "/routing/test", map[string]any{"severity": "INFO"})
			if tested.body["suppressedBy"] == nil {
				t.Error("the test of the routing policy does not know the silence that is in force")
			}
			operator.must(http.StatusCreated, http.MethodPost, "/silences", silence(silences.MaxLength-30*time.Second))
			operator.must(http.StatusBadRequest, http.MethodPost, "/silences", silence(silences.MaxLength+30*time.Second))
			made := operator.must(http.StatusCreated, http.MethodPost, "/silences", silence(time.Hour))
			w.exec(`update silence set starts_at = starts_at - interval '1 hour'`)
			operator.must(http.StatusBadRequest, http.MethodPut, "/silences/"+made.text("id"), silence(-30*time.Second), "If-Match", `"1"`)
		})
	}
}
