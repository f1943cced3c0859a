package app_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/evaluator/resolution"
	"tocsin/internal/clickhouse"
	"tocsin/notify"
	"tocsin/rules"
)

// resolver returns a resolver whose rules are due at every pass.
func (w *world) resolver() *resolution.Resolver {
	w.t.Helper()
	return &resolution.Resolver{Store: w.db.Resolution(), Source: w.source(), Interval: 1, Logger: slog.New(slog.DiscardHandler)}
}

// resolve makes a pass over the rules, each once.
func (w *world) resolve(r *resolution.Resolver) resolution.Result {
	w.t.Helper()
	// A rule that was just added is due once the time of this pass has passed.
	r.Interval = time.Hour
	w.exec(`update rule_resolution set at = at - interval '1 hour'`)
	result, err := r.Tick(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// resolving stores a rule that resolves its alerts, armed an hour ago.
func (w *world) resolving(r rules.Resolution, tell bool, webhooks ...uuid.UUID) rules.Rule {
	w.t.Helper()
	rule := w.ruleOf(rules.Definition{Name: uuid.NewString(), WebhookIDs: webhooks, Resolution: &r, NotifyOnResolve: tell})
	w.armed(rule, w.ch.Now(w.t)-time.Hour.Nanoseconds())
	return rule
}

// order is an exchange of an order that lasts a second.
func order(id string, status rules.Status, start int64, correlation string) rules.Exchange {
	end := start + time.Second.Nanoseconds()
	return rules.Exchange{
		TenantID: tenant, StartTimeNS: start, EndTimeNS: &end, ExecutionID: id, Environment: "production", Application: "orders",
		Route: "order-to-erp", Status: status, CorrelationID: correlation, Attributes: map[string]string{"customer": "c-" + correlation},
	}
}

const resolutions = `select execution_id || ' ' || state || ' ' || coalesce(resolution->>'reason', '-') || ' ' || coalesce(resolution->>'executionId', '-') from alert order by execution_id`

// TestAlertsResolveByAge lets alerts grow old, one of which was acknowledged.
func TestAlertsResolveByAge(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	plain, chose := w.chooses(l, "plain", nil), w.chooses(l, "chose", nil, notify.ReasonResolved)
	rule := w.resolving(rules.Resolution{AfterSeconds: 3600}, true, plain, chose)
	other := w.rule(plain) // which says nothing about resolution
	w.armed(other, w.ch.Now(t)-time.Hour.Nanoseconds())
	w.fail(w.ch.Now(t)-time.Minute.Nanoseconds(), "acknowledged", "by hand", "open", "young")
	w.tick()
	r := w.resolver()
	if got := w.resolve(r); got != (resolution.Result{Rules: 1}) {
		t.Errorf("while they are young: %+v", got)
	}
	of := func(id string) uuid.UUID {
		return uuid.MustParse(w.column(`select alert_id::text from alert where rule_id = $1 and execution_id = $2`, rule.ID, id)[0])
	}
	w.doTo(of("acknowledged"), alerts.Acknowledge)
	w.doTo(of("by hand"), alerts.Resolve)
	w.exec(`update alert set fired_at = fired_at - interval '1 hour' where execution_id <> 'young'`)
	if got := w.resolve(r); got != (resolution.Result{Rules: 1, Aged: 2}) {
		t.Errorf("an hour later: %+v", got)
	}
	if got := w.resolve(r); got.Aged != 0 {
		t.Errorf("again: %+v", got)
	}
	want := []string{"acknowledged RESOLVED AGE -", "by hand RESOLVED - -", "open RESOLVED AGE -", "young FIRING - -"}
	got := w.column(`select execution_id || ' ' || state || ' ' || coalesce(resolution->>'reason', '-') || ' -' from alert where rule_id = $1 order by execution_id`, rule.ID)
	if !slices.Equal(got, want) {
		t.Errorf("alerts are %q, want %q", got, want)
	}
	w.wantColumn("of the other rule", `select distinct a.state from alert a join rule r using (rule_id) where r.resolution = '{}'`, "FIRING")
	// Both are notified of the alerts that Tocsin resolved; of the one resolved by a user, those
	// that chose that event.
	w.deliverAll()
	for path, want := range map[string]int{"/plain": 2, "/chose": 3} {
		if n := count(l.types(path), "resolved"); n != want {
			t.Errorf("%s was notified %d times that one is resolved, want %d", path, n, want)
		}
	}
	shown, err := w.db.Inbox().Get(t.Context(), tenant, of("open"))
	if err != nil || shown.Resolution == nil || shown.Resolution.Reason != alerts.ByAge || shown.ResolvedBy != "" || shown.ResolvedAt == nil {
		t.Errorf("shown as %+v, %v", shown, err)
	}
	// The next exchange raises an alert of its own, which is new.
	w.fail(w.ch.Now(t)-time.Second.Nanoseconds(), "next")
	w.later(5 * time.Second)
	w.tick()
	w.resolve(r)
	w.wantColumn("the next one", `select state from alert where execution_id = 'next' and rule_id = (select rule_id from rule where resolution <> '{}')`, "FIRING")
}

func count(list []string, of string) (n int) {
	for _, s := range list {
		if s == of {
			n++
		}
	}
	return n
}

// TestAlertsResolveByEvidence has exchanges that complete after the failure, before its end, or on
// another route.
func TestAlertsResolveByEvidence(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	for name, by := range map[string]rules.Resolution{
		"correlation id": {Evidence: rules.EvidenceCorrelation},
		"attribute":      {Evidence: rules.EvidenceAttribute, Attribute: "customer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newWorld(t), newListener(t)
			w.resolving(by, false, w.chooses(l, "chose", nil, notify.ReasonResolved))
			at := w.ch.Now(t) - 10*60*second
			elsewhere := order("done elsewhere", rules.Completed, at+5*second, "3")
			elsewhere.Route = "order-to-crm"
			runs := order("runs", rules.Running, at+5*second, "5")
			runs.EndTimeNS = nil
			unnamed, done := order("unnamed", rules.Failed, at, ""), order("done unnamed", rules.Completed, at+5*second, "")
			unnamed.Attributes, done.Attributes = nil, nil
			w.ch.Insert(t,
				order("done", rules.Failed, at, "1"), order("done again", rules.Completed, at+2*second, "1"),
				order("beside", rules.Failed, at, "2"), order("done beside", rules.Completed, at+second/2, "2"),
				order("elsewhere", rules.Failed, at, "3"), elsewhere,
				order("failed again", rules.Failed, at, "4"), order("younger", rules.Failed, at+8*second, "4"), order("done between", rules.Completed, at-5*second, "4"),
				order("runs", rules.Failed, at, "5"), runs, order("nothing", rules.Failed, at, "6"), unnamed, done)
			w.tick()
			r := w.resolver()
			first := w.resolve(r)
			w.wantColumn("alerts", resolutions, "beside FIRING - -", "done RESOLVED EVIDENCE done again", "elsewhere FIRING - -", "failed again FIRING - -",
				"nothing FIRING - -", "runs FIRING - -", "unnamed FIRING - -", "younger FIRING - -")
			if first != (resolution.Result{Rules: 1, Proven: 1}) {
				t.Errorf("the first pass: %+v", first)
			}
			// What becomes visible later, within the look-back, is found by the next pass.
			w.ch.Insert(t, order("done late", rules.Completed, at+10*second, "4"))
			if got := w.resolve(r); got.Proven != 2 {
				t.Errorf("the second pass: %+v", got)
			}
			w.wantColumn("late evidence", `select execution_id from alert where resolution->>'executionId' = 'done late' order by 1`, "failed again", "younger")
			// The rule does not request messages, whatever its webhook chose.
			w.deliverAll()
			if n := count(l.types("/chose"), "resolved"); n != 0 {
				t.Errorf("%d messages", n)
			}
			// An exchange that fails again has an alert of its own.
			w.ch.Insert(t, order("fails again", rules.Failed, w.ch.Now(t)-2*second, "1"))
			w.later(5 * time.Second)
			w.tick()
			w.resolve(r)
			w.wantColumn("again", `select state from alert where execution_id = 'fails again'`, "FIRING")
			w.wantColumn("before", `select state from alert where execution_id = 'done'`, "RESOLVED")
		})
	}
}

// TestEvidenceThatCannotBeReadResolvesNothing makes passes while ClickHouse cannot be reached, and
// while a server does not have the rows yet.
func TestEvidenceThatCannotBeReadResolvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resolving(rules.Resolution{Evidence: rules.EvidenceCorrelation, AfterSeconds: 3600}, false)
	at := w.ch.Now(t) - 10*time.Minute.Nanoseconds()
	w.ch.Insert(t, order("open", rules.Failed, at, "1"), order("old", rules.Failed, at, "2"))
	w.tick()
	w.exec(`update alert set fired_at = fired_at - interval '1 hour' where execution_id = 'old'`)
	w.ch.Insert(t, order("done", rules.Completed, at+int64(2*time.Second), "1"))
	gone, err := clickhouse.Open(clickhouse.Options{URL: "http://127.0.0.1:1/default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gone.Close() })
	r := w.resolver()
	there := r.Source
	r.Source = gone
	// Resolving by age needs no source.
	if got := w.resolve(r); got != (resolution.Result{Rules: 1, Aged: 1, Failed: 1}) {
		t.Errorf("during an outage: %+v", got)
	}
	w.wantColumn("marks", `select coalesce(searched_to_ns, 0)::text from rule_resolution`, "0")
	w.wantColumn("alerts", resolutions, "old RESOLVED AGE -", "open FIRING - -")
	r.Source = there
	if got := w.resolve(r); got.Proven != 1 || got.Failed != 0 {
		t.Errorf("after it: %+v", got)
	}
}

// TestAlertsAreResolvedOnce lets two replicas and a user resolve the same alerts, and a process die
// between the steps of a pass.
func TestAlertsAreResolvedOnce(t *testing.T) {
	t.Parallel()
	const alertsOfTwo = 40
	w, l := newWorld(t), newListener(t)
	w.resolving(rules.Resolution{Evidence: rules.EvidenceCorrelation, AfterSeconds: 3600}, true, w.chooses(l, "ops", nil))
	at := w.ch.Now(t) - 10*time.Minute.Nanoseconds()
	var rows []rules.Exchange
	for i := range alertsOfTwo {
		id := string(rune('A' + i))
		rows = append(rows, order(id, rules.Failed, at, id), order("done "+id, rules.Completed, at+int64(5*time.Second), id))
	}
	w.ch.Insert(t, rows...)
	w.tick()
	w.exec(`update alert set fired_at = fired_at - interval '1 hour' where ascii(execution_id) % 2 = 0`)

	w.dieWithin(`insert on notification for each row when (new.reason = 'RESOLVED')`)
	w.wantColumn("after a process died within the transaction", alertStates, "FIRING 40")
	w.wantColumn("messages", `select count(*)::text from notification where reason = 'RESOLVED'`, "0")
	dead := w.resolver()
	dead.Store = &dyingResolver{w.db.Resolution(), 5}
	if got := w.resolve(dead); got.Proven != 5 || got.Failed != 1 {
		t.Errorf("a process that dies before it marks what it searched: %+v", got)
	}
	byHand := w.column(`select alert_id::text from alert where state = 'FIRING' order by alert_id limit 3`)
	var all sync.WaitGroup
	for range 2 {
		r := w.resolver()
		rule, err := r.Store.Take(t.Context(), 0)
		if err != nil || rule == nil {
			t.Fatalf("taken %+v, %v", rule, err)
		}
		r.Store = &again{r.Store, rule}
		all.Go(func() {
			if _, err := r.Tick(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		for _, id := range byHand {
			act := api.AlertAction{AlertID: uuid.MustParse(id), Action: alerts.Resolve, Actor: "ada"}
			if _, err := w.db.Inbox().Act(t.Context(), tenant, act); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	w.wantColumn("states", alertStates, "RESOLVED 40")
	w.wantColumn("resolved by a person or by Tocsin, never both", `select count(*)::text from alert where (resolution is null) = (resolved_by = '')`, "0")
	w.deliverAll()
	w.wantColumn("notified more than once", `select count(*)::text from (select alert_id from notification where reason = 'RESOLVED' group by alert_id having count(*) > 1) t`, "0")
	w.wantColumn("not notified", `select count(*)::text from alert a where resolution is not null and not exists (select from notification n where n.alert_id = a.alert_id and reason = 'RESOLVED')`, "0")
	w.wantColumn("left", unsettledOutbox)
}

// dieWithin lets a pass begin a statement of its transactions, and the process die there, as
// Postgres sees it: the connection is closed.
func (w *world) dieWithin(statement string) {
	w.t.Helper()
	const lock = 4711
	w.exec(`create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return new; end $$;
		create trigger hold before ` + statement + ` execute function hold()`)
	w.exec(`select pg_advisory_lock($1)`, lock)
	done := make(chan resolution.Result)
	r := w.resolver()
	r.Interval = time.Hour
	go func() {
		defer close(done)
		result, err := r.Tick(w.t.Context())
		if err != nil {
			w.t.Error(err)
		}
		done <- result
	}()
	killed := 0
	for result, over := (resolution.Result{}), false; !over; {
		w.until("a transaction is held, or the pass is over", func() bool {
			select {
			case result = <-done:
				over = true
				return true
			default:
				return w.column(`select count(pg_terminate_backend(pid))::text from pg_locks where locktype = 'advisory' and objid = $1 and not granted
					and database = (select oid from pg_database where datname = current_database())`, lock)[0] != "0"
			}
		})
		if !over {
			killed++
		} else if result.Failed != 1 || result.Aged+result.Proven > 0 {
			w.t.Errorf("the pass of a process that dies: %+v", result)
		}
	}
	if killed == 0 {
		w.t.Error("nothing was held")
	}
	w.exec(`select pg_advisory_unlock($1)`, lock)
	w.exec(`drop trigger hold on notification; drop function hold`)
}

// dyingResolver resolves a few alerts by evidence and then dies.
type dyingResolver struct {
	resolution.Store
	most int
}

func (s *dyingResolver) ResolveProven(ctx context.Context, r *resolution.Rule, proofs []resolution.Proof) (int, error) {
	return s.Store.ResolveProven(ctx, r, proofs[:min(len(proofs), s.most)])
}

func (s *dyingResolver) MarkSearched(context.Context, *resolution.Rule, resolution.Searched) error {
	return errors.New("dead")
}

// again hands out, once, a rule that others have.
type again struct {
	resolution.Store
	rule *resolution.Rule
}

func (s *again) Take(context.Context, time.Duration) (*resolution.Rule, error) {
	rule := s.rule
	s.rule = nil
	return rule, nil
}

// TestAnEditVoidsWhatWasFound edits the rule between the search and the step, so that other
// evidence is required.
func TestAnEditVoidsWhatWasFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.resolving(rules.Resolution{Evidence: rules.EvidenceCorrelation}, false)
	at := w.ch.Now(t) - 10*time.Minute.Nanoseconds()
	w.ch.Insert(t, order("open", rules.Failed, at, "1"))
	w.tick()
	r := w.resolver()
	w.resolve(r)
	w.wantColumn("searched", `select (searched_to_ns is not null)::text from rule_resolution`, "true")
	w.exec(`update rule_resolution set at = at - interval '1 hour'`)
	taken, err := w.db.Resolution().Take(t.Context(), time.Minute)
	if err != nil || taken == nil || taken.Searched == nil || taken.LookBack != time.Hour {
		t.Fatalf("taken %+v, %v", taken, err)
	}
	if other, err := w.db.Resolution().Take(t.Context(), time.Minute); err != nil || other != nil {
		t.Errorf("taken twice: %+v, %v", other, err)
	}
	d := rule.Definition
	d.Resolution = &rules.Resolution{Evidence: rules.EvidenceAttribute, Attribute: "customer"}
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: d}); err != nil {
		t.Fatal(err)
	}
	id := uuid.MustParse(w.column(`select alert_id::text from alert`)[0])
	if n, err := w.db.Resolution().ResolveProven(t.Context(), taken, []resolution.Proof{{AlertID: id, Evidence: alerts.Resolution{Reason: alerts.ByEvidence}}}); err != nil || n != 0 {
		t.Errorf("%d alerts resolved by evidence that is none any more, %v", n, err)
	}
	w.exec(`update rule_resolution set at = at - interval '1 hour'`)
	if taken, err = w.db.Resolution().Take(t.Context(), time.Minute); err != nil || taken == nil || taken.Searched != nil {
		t.Errorf("other evidence starts again: %+v, %v", taken, err)
	}
	d.Resolution = nil
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 2, Definition: d}); err != nil {
		t.Fatal(err)
	}
	if got := w.resolve(r); got.Rules != 0 {
		t.Errorf("a rule that leaves it to people: %+v", got)
	}
}
