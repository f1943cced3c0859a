package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/clickhouse"
	"tocsin/internal/postgres"
	"tocsin/internal/programtest"
	"tocsin/rules"
)

// reconcile compares the last day of a rule.
func (w *world) reconcile(rule rules.Rule) reconcile.Reconciliation {
	w.t.Helper()
	return w.reconcileLast(rule, 24*time.Hour)
}

func (w *world) reconcileLast(rule rules.Rule, last time.Duration) reconcile.Reconciliation {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	r := &reconcile.Reconciler{Source: source, Alerts: w.db.Reconciliation()}
	result, err := r.Rule(w.t.Context(), tenant, rule.ID, last)
	if err != nil {
		w.t.Fatal(err)
	}
	result.RuleID, result.RuleName, result.TenantID, result.FromNS, result.ToNS, result.LateDroppedByHour, result.Comparison = rule.ID, "", "", 0, 0, nil, nil
	return result
}

// command runs the program on the world's databases.
func (w *world) command(args ...string) (output string, code int) {
	w.t.Helper()
	path, err := programtest.Tocsin()
	if err != nil {
		w.t.Fatalf("build tocsin: %v", err)
	}
	run := exec.CommandContext(context.Background(), path, args...)
	run.Env = append(os.Environ(), "TOCSIN_POSTGRES_URL="+w.pgURL, "TOCSIN_CLICKHOUSE_URL="+w.ch.URL)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err != nil && run.ProcessState == nil {
		w.t.Fatal(err)
	}
	return out.String(), run.ProcessState.ExitCode()
}

// catchUp makes passes until nothing of the look-back is left to be evaluated: what is left is not compared.
func (w *world) catchUp(engine *evaluator.Evaluator) {
	w.t.Helper()
	w.until("the look-back is evaluated", func() bool {
		if _, err := w.tickWith(engine); err != nil {
			w.t.Fatal(err)
		}
		return w.column(`select count(*)::text from rule_progress where backfill_from_ns is not null`)[0] == "0"
	})
}

// TestReconciliationFindsWhatIsMissing deletes alerts and exchanges and checks that comparing both
// databases reports them.
func TestReconciliationFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "orders", Filter: rules.Filter{ErrorTypes: []string{"Old"}}})
	now := w.ch.Now(t)
	minute := time.Minute.Nanoseconds()
	hour := 60 * minute
	w.armed(rule, now-5*hour)
	ended := func(id, errorType string, start, end int64) rules.Exchange {
		return rules.Exchange{
			TenantID: tenant, StartTimeNS: start, EndTimeNS: &end, ExecutionID: id, Status: rules.Failed, ErrorType: errorType,
		}
	}
	if got := w.reconcile(rule); got.Matching != 0 {
		t.Errorf("before the first run: %+v", got)
	}
	if out, code := w.command("reconcile"); code != 0 || !strings.Contains(out, "Nothing was compared") {
		t.Errorf("before the first run: exit %d, %s", code, out)
	}
	w.ch.Insert(t,
		ended("a", "Old", now-50*minute, now-40*minute), ended("a", "Old", now-50*minute, now-40*minute),
		ended("b", "Old", now-50*minute, now-40*minute), ended("\x00\xff", "Old", now-45*minute, now-45*minute),
		ended("other", "New", now-50*minute, now-40*minute), ended("just now", "Old", now-minute/60, now-minute/60))
	w.tick()
	// Another condition applies to what ends from ten minutes ago on.
	definition := rule.Definition
	definition.Filter = rules.Filter{ErrorTypes: []string{"New"}}
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	w.exec(`update rule_state set armed_since_ns = $1, former = jsonb_set(former, '{0,toNs}', to_jsonb($1::bigint))`, now-10*minute)
	w.ch.Insert(t,
		ended("new", "New", now-6*minute, now-5*minute), ended("old, too late", "Old", now-6*minute, now-5*minute),
		// Took longer than the look-back of the rule.
		ended("long", "Old", now-90*minute, now-20*minute))
	w.catchUp(w.newEvaluator(evaluator.Options{}))
	all := reconcile.Reconciliation{RuleID: rule.ID, Matching: 5, Alerted: 4, LateDropped: 1}
	if diff := cmp.Diff(all, w.reconcile(rule)); diff != "" {
		t.Errorf("when all is well: %s", diff)
	}
	if out, code := w.command("reconcile"); code != 0 || !slices.Contains(strings.Fields(out), "orders") ||
		!slices.Contains(strings.Fields(out), tenant) || !strings.Contains(out, "newer ones may still be found") {
		t.Errorf("exit %d, %s", code, out)
	}

	w.exec(`delete from alert where execution_id in ('a', 'new')`)
	missing := all
	missing.Alerted, missing.Missing, missing.MissingSample = 2, 2, []string{"a", "new"}
	if diff := cmp.Diff(missing, w.reconcile(rule)); diff != "" {
		t.Errorf("two alerts deleted: %s", diff)
	}
	out, code := w.command("reconcile", "--confirm=0s", "--rule="+rule.ID.String())
	if code != 1 || !strings.Contains(out, "missing for orders: a, new") || !strings.Contains(out, "have no alert: 2") {
		t.Errorf("exit %d, %s", code, out)
	}

	if err := w.ch.Conn.Exec(t.Context(), "DELETE FROM exchanges WHERE execution_id = 'b'"); err != nil {
		t.Fatal(err)
	}
	unexpected := missing
	unexpected.Matching, unexpected.Alerted, unexpected.Unexpected = 4, 1, 1
	if diff := cmp.Diff(unexpected, w.reconcile(rule)); diff != "" {
		t.Errorf("an exchange deleted: %s", diff)
	}
}

// TestAlertsOfLongExchangesAreNotUnexpected has an alert about an exchange that ran for six hours, which its rule
// raised when it looked back for a day. The comparison of the last hour does not look for such an exchange.
func TestAlertsOfLongExchangesAreNotUnexpected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "orders"})
	lookBack := func(version int64, seconds int) {
		definition := rule.Definition
		definition.LookBackSeconds = seconds
		if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: version, Definition: definition}); err != nil {
			t.Fatal(err)
		}
	}
	now, minute := w.ch.Now(t), time.Minute.Nanoseconds()
	w.armed(rule, now-600*minute)
	lookBack(1, 86_400)
	w.ch.Insert(t,
		rules.Exchange{TenantID: tenant, StartTimeNS: now - 380*minute, EndTimeNS: new(now - 20*minute), ExecutionID: "long", Status: rules.Failed},
		rules.Exchange{TenantID: tenant, StartTimeNS: now - 21*minute, EndTimeNS: new(now - 20*minute), ExecutionID: "short", Status: rules.Failed})
	engine := w.newEvaluator(evaluator.Options{})
	w.until("both have alerts", func() bool {
		if _, err := w.tickWith(engine); err != nil {
			t.Fatal(err)
		}
		return w.column(`select count(*)::text from alert`)[0] == "2"
	})
	lookBack(2, 3600)
	w.catchUp(engine)
	if diff := cmp.Diff(reconcile.Reconciliation{RuleID: rule.ID, Matching: 1, Alerted: 1}, w.reconcileLast(rule, time.Hour)); diff != "" {
		t.Error(diff)
	}
	if err := w.ch.Conn.Exec(t.Context(), "DELETE FROM exchanges WHERE execution_id = 'short'"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reconcile.Reconciliation{RuleID: rule.ID, Unexpected: 1}, w.reconcileLast(rule, time.Hour)); diff != "" {
		t.Error(diff)
	}
}

// TestReconciliationNamesWhatItDidNotCompare compares one rule that has been evaluated among twelve
// that have not, and refuses more hours than there are.
func TestReconciliationNamesWhatItDidNotCompare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "orders"})
	now := w.ch.Now(t)
	w.armed(rule, now-time.Hour.Nanoseconds())
	w.fail(now-30*time.Minute.Nanoseconds(), "a")
	w.tick()
	w.exec(`delete from alert`)
	for i := range 12 {
		w.ruleOf(rules.Definition{Name: fmt.Sprintf("new %02d", i)})
	}
	out, code := w.command("reconcile", "--confirm=0s")
	if code != 1 || !strings.Contains(out, "Exchanges that ended until") || !strings.Contains(out, "missing for orders: a") ||
		!strings.Contains(out, "not compared: 12 (new 00, ") || !strings.Contains(out, "new 09 and 2 more)") {
		t.Errorf("exit %d, %s", code, out)
	}
	if out, _ := w.command("reconcile", "--confirm=0s", "--rule="+rule.ID.String()); strings.Contains(out, "not compared") {
		t.Errorf("of a rule that has evaluated: %s", out)
	}
	if out, code := w.command("reconcile", "--hours=3000000"); code == 0 || !strings.Contains(out, "--hours must be from 1 to 87600") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// TestReconciliationConfirms has an alert that is written while it waits, and compares more
// exchanges than fit on a page.
func TestReconciliationConfirms(t *testing.T) {
	t.Parallel()
	const exchanges = 450
	w := newWorld(t)
	rule := w.rule()
	now := w.ch.Now(t)
	begin := now - 30*time.Minute.Nanoseconds()
	w.armed(rule, begin)
	w.tick()
	// Ten exchanges in each nanosecond, so that pages end between exchanges with equal times.
	err := w.ch.Conn.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status)
		SELECT '%s', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(intDiv(number, 10)), 'UTC') AS s, 'production', 'orders', 'r', toString(number), s, 1, 'FAILED'
		FROM numbers(%d)`, tenant, begin+1, exchanges))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.reconcile(rule); got.Matching != exchanges || got.Missing != exchanges || len(got.MissingSample) != 10 {
		t.Fatalf("before they are found: %+v", got)
	}
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	engine := w.newEvaluator(evaluator.Options{})
	late := &lateAlerts{AlertSet: w.db.Reconciliation(), after: 3, then: func() {
		w.until("everything is alerted", func() bool {
			if _, err := w.tickWith(engine); err != nil {
				t.Fatal(err)
			}
			return w.column(`select count(*)::text from alert`)[0] == fmt.Sprint(exchanges)
		})
	}}
	r := &reconcile.Reconciler{Source: source, Alerts: late, Confirm: time.Millisecond, PageSize: 205}
	got, err := r.Rule(t.Context(), tenant, rule.ID, time.Hour)
	if err != nil || got.Matching != exchanges || got.Alerted != exchanges || got.Missing != 0 || got.Unexpected != 0 {
		t.Errorf("when they are found meanwhile: %+v, %v", got, err)
	}
}

// lateAlerts calls then after the given number of look-ups.
type lateAlerts struct {
	reconcile.AlertSet
	after int
	then  func()
}

func (l *lateAlerts) WithoutAlert(ctx context.Context, rule uuid.UUID, keys []string) ([]string, error) {
	without, err := l.AlertSet.WithoutAlert(ctx, rule, keys)
	if l.after--; l.after == 0 {
		l.then()
	}
	return without, err
}

// TestRoundsOfTheReconciliation has rounds over all rules that take several passes.
func TestRoundsOfTheReconciliation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.db.Reconciliation()
	next := uuid.New()
	var since float64
	for i, c := range []struct {
		pass           postgres.ReconcilePass
		missing, rules int64
		whole          bool
	}{
		{postgres.ReconcilePass{Rules: 3}, 0, 3, true},
		{postgres.ReconcilePass{Rules: 2, Missing: 1, Next: next}, 1, 3, false},
		{postgres.ReconcilePass{Rules: 2}, 1, 4, true},
		{postgres.ReconcilePass{Rules: 2, Next: next}, 1, 4, false},
		{postgres.ReconcilePass{Rules: 1}, 0, 3, true},
	} {
		ran, err := store.Pass(t.Context(), 0, func(context.Context, uuid.UUID) (postgres.ReconcilePass, error) { return c.pass, nil })
		if err != nil || !ran {
			t.Fatalf("pass %d: %v, %v", i, ran, err)
		}
		got, err := store.Gauges(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got.Missing != c.missing || got.ReconciledRules != c.rules || (got.ReconciledSince > since) != c.whole {
			t.Errorf("after pass %d: %+v, formerly since %v", i, got, since)
		}
		status, err := w.db.Record(nil).Status(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		if completeness := status.Completeness; completeness == nil || completeness.Missing != c.missing || completeness.Rules != c.rules || completeness.WholeSince == nil {
			t.Errorf("after pass %d the status says %+v", i, completeness)
		}
		since = got.ReconciledSince
	}
}
