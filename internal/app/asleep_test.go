package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/evaluator"
	"tocsin/internal/app"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// A claim that takes nothing tells how long there is nothing to take, by Postgres's clock.
func TestClaimTellsHowLongNothingIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.db.Evaluation()
	want := func(what string, claims int, idle time.Duration) {
		t.Helper()
		got, err := store.Load(t.Context(), evaluator.ClaimRequest{
			Replica: "self", Most: 10, For: time.Minute, Grace: 20 * time.Minute, Rest: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Claims) != claims {
			t.Errorf("%s: claimed %d, want %d", what, len(got.Claims), claims)
		}
		if got.Idle > idle || got.Idle < idle-5*time.Minute || (idle > 0) != (got.Idle > 0) {
			t.Errorf("%s: nothing is due for %v, want %v", what, got.Idle, idle)
		}
	}
	want("there is no rule", 0, time.Hour)
	w.rule()
	first := w.rule()
	want("both are due", 2, 0)
	want("both are claimed, and due", 0, 0)
	w.exec(`update rule_state set claimed_by = 'another'`)
	want("another holds what is due", 0, 0)
	w.exec(`update rule_state set claim_token = null, claimed_by = null, claimed_until = null`)

	editing := pgtest.Conn(t, w.pgURL)
	tx, err := editing.BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from rule_state for update`); err != nil {
		t.Fatal(err)
	}
	want("somebody edits what is due", 0, 0)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	w.dueIn("30 min")
	w.exec(`update rule_state set next_run_at = now() + interval '10 min' where rule_id = $1`, first.ID)
	want("they are due later", 0, 10*time.Minute)
	w.dueIn("2 h")
	want("they are due much later", 0, time.Hour)
	w.exec(`update rule_state set next_run_at = null`)
	want("they are disabled", 0, time.Hour)

	w.exec(`insert into cohort (cohort_id, tenant_id, interval_seconds, look_back_seconds, cursor, next_run_at, last_run_at, home, members)
		values (gen_random_uuid(), 'default', 1, 0, '', now() + interval '10 min', now(), 'self', 0)`)
	want("a cohort of its own is due later", 0, 10*time.Minute)
	w.exec(`update cohort set home = null`)
	want("a cohort of nobody is due later", 0, 10*time.Minute)
	w.exec(`update cohort set home = 'another'`)
	want("a cohort of another one is late later still", 0, 30*time.Minute)
	w.exec(`update cohort set next_run_at = now() - interval '1 min', claim_token = 1, claimed_by = 'another', claimed_until = now() + interval '1 min'`)
	want("another one holds its cohort", 0, 19*time.Minute)
	w.exec(`update cohort set claimed_until = now() + interval '40 min'`)
	want("another one holds its cohort for longer", 0, 40*time.Minute)
	w.exec(`update cohort set next_run_at = now() - interval '1 h', claimed_until = now() - interval '1 s'`)
	want("a claim on a late cohort has lapsed", 1, 0)
}

// TestChangedRulesRouseEvaluators changes rules on one replica while another one
// evaluates that would sleep for an hour, on every bus.
func TestChangedRulesRouseEvaluators(t *testing.T) {
	t.Parallel()
	for _, provider := range app.BusProviders() {
		t.Run(string(provider), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bus := w.buses(provider).options
			evaluate := func(o *app.Options) {
				o.Bus, o.Rest, o.TickInterval, o.ClaimFor = bus, time.Hour, 50*time.Millisecond, time.Minute
			}
			parts := []app.Role{app.RoleEvaluate}
			var base string
			if provider == app.BusMemory {
				base, _ = w.replica(evaluate)
			} else {
				w.replica(evaluate, func(o *app.Options) { o.Roles = parts })
				base, _ = w.replica(func(o *app.Options) { o.Bus, o.Roles = bus, []app.Role{app.RoleAPI} })
			}
			ran := func() bool {
				return len(w.column(`select rule_id::text from rule_progress where last_run_at is null or next_run_at <= now()`)) == 0
			}
			body := map[string]any{"name": "orders", "enabled": true, "fireMode": "PER_EXCHANGE", "severity": "CRITICAL", "intervalSeconds": 3600}
			status, made := call(t, http.MethodPost, base+"/api/v1/rules", body)
			if status != http.StatusCreated {
				t.Fatalf("create: %d %v", status, made)
			}
			w.until("a rule that was made is evaluated", ran)
			rule := base + "/api/v1/rules/" + made["id"].(string)
			for _, change := range []string{"/disable", "/enable", "/retry"} {
				if status, said := call(t, http.MethodPost, rule+change, nil); status >= 300 {
					t.Fatalf("%s: %d %v", change, status, said)
				}
				w.until("after "+change+" it is evaluated", ran)
			}
		})
	}
}

// TestUnannouncedRulesAreFound makes a rule past everybody who could announce it,
// and makes one due by hand.
func TestUnannouncedRulesAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replica(func(o *app.Options) { o.Roles, o.Rest = []app.Role{app.RoleEvaluate}, time.Second })
	w.until("it is up", func() bool { return len(w.column(`select replica_id from replica`)) == 1 })
	rule, err := w.db.Rules().Create(t.Context(), tenant, rules.Definition{
		Name: "unannounced", Enabled: true, FireMode: rules.PerExchange, Severity: rules.Critical, IntervalSeconds: 3600,
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := func() bool {
		return len(w.column(`select rule_id::text from rule_state where last_run_at is not null and next_run_at > now()`)) == 1
	}
	w.until("it is evaluated", ran)
	w.exec(`update rule_state set next_run_at = now(), last_run_at = null where rule_id = $1`, rule.ID)
	w.until("it is evaluated again", ran)
}
