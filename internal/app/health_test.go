package app_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/evaluator/outage"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/rules"
)

// operators stores a webhook that is notified about Tocsin itself.
func (w *world) operators() {
	w.t.Helper()
	_, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: "operators", Kind: notify.KindGeneric, URL: w.receiver.url, Enabled: true, Operators: true,
		Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// blind returns an evaluator whose ClickHouse cannot be reached.
func (w *world) blind(replica string) *evaluator.Evaluator {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: "http://127.0.0.1:1/default"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	return w.newEvaluator(evaluator.Options{Replica: replica, Source: source})
}

// partitionOf returns the partition of a tenant.
func (w *world) partitionOf(tenant string) int {
	w.t.Helper()
	n, err := strconv.Atoi(w.column(`select partition::text from tenant_partition where tenant_id = $1`, tenant)[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

const healthAlerts = `select state from alert where health order by fired_at, alert_id`

// TestSourceThatIsAwayIsAnnouncedOnce has two replicas that cannot reach ClickHouse, with rules of
// several tenants and partitions: each tenant's operators get one message about the source when it
// has failed for a while, and one when it is back.
func TestSourceThatIsAwayIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 3)
	w.operators()
	w.webhook("ops")
	for range 3 {
		w.rule()
	}
	w.counting(rules.Definition{})
	for i := range 5 {
		_, err := w.db.Rules().Create(t.Context(), fmt.Sprint("tenant ", i), rules.Definition{
			Name: "r", Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1, LookBackSeconds: 3600,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	one, two := w.blind("one"), w.blind("two")
	blind := func() {
		t.Helper()
		for _, e := range []*evaluator.Evaluator{one, two} {
			if result, err := w.tickWith(e); err == nil || result.Failed > 0 {
				t.Fatalf("Tick = %+v, %v; want an error, and no rule to fail", result, err)
			}
		}
	}
	blind()
	w.later(outage.Grace / 2)
	w.tick() // a failure that is over in time
	blind()
	w.wantColumn("announced at first", announced)
	w.tick()
	w.wantColumn("announced of a short failure", announced)
	one, two = w.blind("one"), w.blind("two")
	blind()
	w.later(outage.Grace)
	blind()
	blind()
	w.wantColumn("announced", announced, "SOURCE_FAILING 1")
	w.wantColumn("inboxes", `select tenant_id || ' ' || state from alert where health order by 1`,
		"default FIRING", "tenant 0 FIRING", "tenant 1 FIRING", "tenant 2 FIRING", "tenant 3 FIRING", "tenant 4 FIRING")
	w.wantColumn("problems of rules", `select problem from rule_state where problem is not null`)
	w.fail(w.ch.Now(t), "meanwhile")
	w.tick()
	w.tick()
	w.wantColumn("announced in the end", announced, "SOURCE_FAILING 1", "SOURCE_RECOVERED 1")
	w.wantColumn("alerts about health that are open", `select alert_id::text from alert where health and state <> 'RESOLVED'`)
	w.wantColumn("alerts", `select execution_id || ' ' || count(*) from alert where not health group by execution_id`, "meanwhile 3")
	blind()
	w.later(outage.Grace)
	blind()
	w.wantColumn("announced again", announced, "SOURCE_FAILING 2", "SOURCE_RECOVERED 1")
}

// TestPartitionThatFailsAffectsItsTenants corrupts the stored cursor of one partition, and later has ClickHouse away for
// all: only the tenants of partitions that fail are notified, each once.
func TestPartitionThatFailsAffectsItsTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.rule()
	w.ruleIn("isolated", "every failure")
	if _, err := w.db.Partitions().Isolate(t.Context(), "isolated"); err != nil {
		t.Fatal(err)
	}
	source := w.watched()
	e := w.newEvaluator(evaluator.Options{Source: source})
	tick := func(fails bool) {
		t.Helper()
		if _, err := w.tickWith(e); (err != nil) != fails {
			t.Fatalf("Tick: %v", err)
		}
	}
	inboxes := `select tenant_id || ' ' || state from alert where health order by fired_at, tenant_id`
	tick(false)
	cursor := w.column(`select cursor from checkpoint c join tenant_partition using (partition) where tenant_id = 'isolated'`)[0]
	setCursor := func(to string) {
		w.exec(`update checkpoint c set cursor = $1 from tenant_partition t where t.partition = c.partition and t.tenant_id = 'isolated'`, to)
	}
	setCursor("nonsense")
	tick(true)
	w.later(outage.Grace)
	tick(true)
	tick(true)
	w.wantColumn("one partition fails", inboxes, "isolated FIRING")
	source.before = func(string) error { return errors.New("away") }
	tick(true)
	w.later(outage.Grace)
	tick(true)
	tick(true)
	w.wantColumn("all fail", inboxes, "isolated FIRING", "default FIRING")
	w.wantColumn("announced", announced, "SOURCE_FAILING 1")
	w.wantColumn("rules that are evaluated", `select message from alert where health and message like 'No rule is evaluated%'`)
	source.before = nil
	tick(true)
	w.wantColumn("the source is back", inboxes, "isolated FIRING", "default RESOLVED")
	w.wantColumn("announced in the end", announced, "SOURCE_FAILING 1", "SOURCE_RECOVERED 1")
	w.wantColumn("what is announced", `select subject from announcement`, "source of isolated")
	setCursor(cursor)
	tick(false)
	w.wantColumn("the cursor is correct", inboxes, "isolated RESOLVED", "default RESOLVED")
	w.wantColumn("what is announced in the end", `select subject from announcement`)
}

// TestRecoveryOfManyRulesIsAHandfulOfStatements has 2,000 rules that fail and recover with their
// source: the number of statements does not depend on that of the rules.
func TestRecoveryOfManyRulesIsAHandfulOfStatements(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, usualPartitions)
	w.operators()
	w.manyRules(2000, 1)
	tap := newWiretap(t, w.pgURL)
	db, err := postgres.Open(t.Context(), tap.url, w.box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	source := w.watched()
	e := w.newEvaluator(evaluator.Options{Source: source, Store: db.Evaluation(time.Minute)})
	tick := func(fails bool) int {
		t.Helper()
		before := sum(tap.counts())
		if result, err := w.tickWith(e); (err != nil) != fails || result.Failed > 0 {
			t.Fatalf("Tick = %+v, %v", result, err)
		}
		return sum(tap.counts()) - before
	}
	w.until("the rules have caught up", func() bool {
		tick(false)
		return len(w.column(`select rule_id::text from rule_backfill limit 1`)) == 0
	})
	source.before = func(string) error { return errors.New("away") }
	tick(true)
	w.later(outage.Grace)
	failing := tick(true)
	source.before = nil
	recovered := tick(false)
	t.Logf("statements of the tick that announces: %d, of the recovery: %d", failing, recovered)
	if failing > 60 || recovered > 60 {
		t.Errorf("%d statements to announce, and %d to recover", failing, recovered)
	}
	w.wantColumn("announced", announced, "SOURCE_FAILING 1", "SOURCE_RECOVERED 1")
}

func TestReplicasAnnounceAtOnceAndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.rule()
	const replicas = 8
	partition := w.partitionOf(tenant)
	ended := make(chan error, replicas)
	for i := range replicas {
		go func() {
			_, err := w.db.Evaluation(time.Minute).SourceFailed(t.Context(), fmt.Sprint("replica ", i), partition, "away")
			ended <- err
		}()
	}
	for range replicas {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("announced", announced, "SOURCE_FAILING 1")
	w.wantColumn("inbox", healthAlerts, "FIRING")
}

// An operators' webhook that is deleted meanwhile gets no announcement.
func TestAnnouncingWhileTheWebhookIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.rule()
	hook := uuid.MustParse(w.column(`select webhook_id::text from webhook`)[0])
	partition := w.partitionOf(tenant)
	// Both wait for the webhook's lock, and get it in this order.
	held, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `select from webhook for update`); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) func() bool {
		return func() bool {
			return len(w.column(`select 'waits' from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)) == n
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- w.db.Webhooks().Delete(t.Context(), tenant, hook) }()
	w.until("the deletion waits", waiting(1))
	go func() {
		_, err := w.db.Evaluation(time.Minute).SourceFailed(t.Context(), "test", partition, "away")
		ended <- err
	}()
	w.until("the announcement waits, too", waiting(2))
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("outbox", unsettledOutbox)
	w.wantColumn("inbox", healthAlerts, "FIRING")
}

// TestRefusedRuleFailsAlone makes the database reject what one of many rules writes: the rule is
// announced once, left out, and recovers without losing anything.
func TestRefusedRuleFailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	var refused, last rules.Rule
	for i := range 20 {
		if last = w.rule(w.webhook(fmt.Sprint("ops-", i))); i == 13 {
			refused = last
		}
	}
	w.refuse(`new.rule_id = '` + refused.ID.String() + `'`)
	w.tick()
	w.fail(w.ch.Now(t), "a", "b")
	if result := w.tick(); result.Failed != 1 || result.Alerts != 38 {
		t.Errorf("Tick = %+v, want one failed rule and two alerts of each other", result)
	}
	w.later(time.Minute)
	w.fail(w.ch.Now(t), "c")
	if result := w.tick(); result.Failed != 0 || result.Alerts != 19 {
		t.Errorf("Tick = %+v, want an alert of each other rule", result)
	}
	w.wantColumn("rules with a problem", `select rule_id::text from rule_state where problem is not null`, refused.ID.String())
	w.wantColumn("announced", announced, "RULE_FAILING 1")
	health, err := w.db.Rules().Health(t.Context(), tenant, []uuid.UUID{refused.ID, last.ID})
	if err != nil || !health[refused.ID].Failing || health[last.ID].Failing || !strings.Contains(health[refused.ID].LastError, "refused") {
		t.Errorf("health = %+v, %v", health, err)
	}
	w.accept()
	w.later(10 * time.Minute)
	if result := w.tick(); result.Failed != 0 || result.Alerts != 3 {
		t.Errorf("Tick = %+v, want the three alerts that were refused", result)
	}
	w.wantColumn("rules with a problem", `select rule_id::text from rule_state where problem is not null`)
	w.wantColumn("announced in the end", announced, "RULE_FAILING 1", "RULE_RECOVERED 1")
	w.wantColumn("alerts", `select execution_id || ' ' || count(*) from alert where not health group by execution_id order by 1`, "a 20", "b 20", "c 20")
	w.wantColumn("notifications", `select count(*)::text from notification where reason = 'FIRED'`, "60")
	w.fail(w.ch.Now(t), "d")
	if result := w.tick(); result.Alerts != 20 {
		t.Errorf("Tick = %+v, want an alert of every rule", result)
	}
	w.wantColumn("backfills", `select rule_id::text from rule_backfill`)
}

// TestRefusedExchangeIsLeftOut does what the runbook says about an alert that Postgres refuses for good. An edit of the filter
// does not help by itself, because the former condition decides about the exchange.
func TestRefusedExchangeIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.refuse(`new.execution_id = 'refused'`)
	w.tick()
	began := w.ch.Now(t)
	w.fail(began, "before")
	w.incomplete(began, "refused")
	if result := w.tick(); result.Failed != 1 || result.Alerts != 0 {
		t.Errorf("Tick = %+v, want one failed rule", result)
	}
	w.wantColumn("where it is", `select count(*)::text from rule_backfill where refused_to_ns - refused_from_ns < 1000000000`, "1")
	edited := rule.Definition
	edited.Filter.NotErrorTypes = []string{"Refused"}
	rule, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: rule.Version, Definition: edited})
	if err != nil {
		t.Fatal(err)
	}
	failing := `select problem from rule_state where problem is not null`
	w.later(10 * time.Minute)
	w.tick()
	if got := w.column(failing); len(got) != 1 {
		t.Errorf("problems after an edit: %q", got)
	}
	for _, enabled := range []bool{false, true} {
		if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, enabled); err != nil {
			t.Fatal(err)
		}
	}
	w.tick()
	w.wantColumn("problems after it is enabled", failing)
	w.replay(api.ReplayRequest{RuleID: rule.ID, FromNS: began, ToNS: began + 1, Messages: ruleset.ReplayNone})
	if got := w.replayedInTheEnd(w.evaluator, rule.ID); got.Problem != "" {
		t.Errorf("replay = %+v", got)
	}
	w.wantColumn("alerts", `select execution_id from alert where not health`, "before")
	w.wantColumn("problems in the end", failing)
}

func TestEditAndRetryForgetTheFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	rule := w.rule()
	w.refuse(`true`)
	w.fail(rule.ArmedSinceNS+1000, "a")
	w.tick()
	if _, err := w.db.Rules().Retry(t.Context(), tenant, rule.ID); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("after the retry", healthAlerts, "RESOLVED")
	w.wantColumn("problem", problems, "")
	w.tick()
	definition := rule.Definition
	definition.Name = "another name"
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	w.tick()
	w.wantColumn("announced each time", announced, "RULE_FAILING 3")
	w.wantColumn("inbox", healthAlerts, "RESOLVED", "RESOLVED", "FIRING")
	w.accept()
	w.later(time.Minute)
	w.tick()
	w.wantColumn("announced in the end", announced, "RULE_FAILING 3", "RULE_RECOVERED 1")
	w.wantColumn("alerts", alertIDs, "a")
}
