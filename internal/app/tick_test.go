package app_test

import (
	"testing"
	"time"

	"tocsin/evaluator"
)

// TestTheLeastIntervalIsEveryTick lets an evaluator tick four times a second: a
// rule of the least interval is due at the next tick, also if that comes a little
// early, and not before half of a tick; one of a longer interval keeps to it.
func TestTheLeastIntervalIsEveryTick(t *testing.T) {
	for tick, bounds := range map[time.Duration][2]string{
		250 * time.Millisecond: {"125 ms", "225 ms"},
		time.Second:            {"500 ms", "900 ms"},
		5 * time.Second:        {"500 ms", "900 ms"},
	} {
		t.Run(tick.String(), func(t *testing.T) {
			w := newWorld(t)
			hook := w.webhook("ops")
			w.rule(hook)
			slow := w.rule(hook)
			w.exec(`update rule set interval_seconds = 3600 where rule_id = $1`, slow.ID)
			// The claim lapses so long after it was made.
			w.exec(`create table claimed as select rule_id, claimed_until as at from rule_state`)
			w.exec(`
				create function note() returns trigger language plpgsql as $$
				begin update claimed set at = new.claimed_until - interval '30 s' where rule_id = new.rule_id; return new; end $$;
				create trigger note after update on rule_state for each row when (new.claimed_until is not null) execute function note()`)
			e := w.newEvaluator(evaluator.Options{Interval: tick, ClaimFor: 30 * time.Second})
			if result, err := w.tickWith(e); err != nil || result.Rules != 2 {
				t.Fatalf("Tick = %+v, %v", result, err)
			}
			w.wantColumn("rules that are due again within bounds", `select rule_id::text from rule_state join claimed using (rule_id)
				where next_run_at between at + interval '`+bounds[0]+`' and at + interval '`+bounds[1]+`' and rule_id <> '`+slow.ID.String()+`'`,
				w.column(`select rule_id::text from rule where interval_seconds = 1`)...)
			w.wantColumn("the slow rule is due at a full hour", `select (next_run_at = date_bin('1 hour', next_run_at, 'epoch'))::text from rule_state where rule_id = '`+slow.ID.String()+`'`, "true")
		})
	}
}
