package app_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestEqualStartTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	at := rule.ArmedSinceNS + 1000
	w.fail(at, "b", "a")
	if got := w.tick().Alerts; got != 2 {
		t.Errorf("the first tick raised %d alerts, want 2", got)
	}
	if got := w.tick().Alerts; got != 0 {
		t.Errorf("the second tick raised %d alerts, want none", got)
	}
	w.wantColumn("alerts", alertIDs, "a", "b")
	w.fail(at, "c")
	if got := w.tick().Alerts; got != 1 {
		t.Errorf("the third tick raised %d alerts, want 1", got)
	}
	w.wantColumn("alerts", alertIDs, "a", "b", "c")
}

// TestFaultInTheCommitLeavesNothing lets the database fail in the middle of a commit, with a
// transient error and with one that repeats.
func TestFaultInTheCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"passes": "40001", "repeats": "23514"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			w.rule(w.webhook("ops"))
			w.tick()
			w.exec(`
				create sequence fault;
				create function fault() returns trigger language plpgsql as $$
				begin
					if nextval('fault') % 3 = 2 then raise exception 'the second notification fails' using errcode = '` + code + `'; end if;
					return new;
				end $$;
				create trigger fault before insert on notification for each row when (new.reason = 'FIRED') execute function fault()`)
			w.fail(w.ch.Now(t), "a", "b", "c")
			before := w.column(cursors)
			result, err := w.evaluator.Tick(t.Context())
			w.wantColumn("alerts", alertIDs)
			if name == "passes" {
				if err == nil || result.Failed+result.Alerts+result.Notifications > 0 {
					t.Errorf("Tick = %+v, %v; want an error, and nothing else", result, err)
				}
				w.wantColumn("notifications", statuses)
				w.wantColumn("cursors", cursors, before...)
				w.wantColumn("problems", problems, "")
			} else {
				if err != nil || result.Failed != 1 || result.Alerts > 0 {
					t.Errorf("Tick = %+v, %v; want one failed rule", result, err)
				}
				w.wantColumn("announced", announced, "RULE_FAILING 1")
				if got := w.column(problems); !strings.Contains(got[0], "the second notification fails") {
					t.Errorf("the rule's problem is %q", got)
				}
			}
			w.exec(`drop trigger fault on notification`)
			w.later(time.Minute)
			if result, err = w.evaluator.Tick(t.Context()); err != nil || result.Alerts != 3 {
				t.Fatalf("Tick = %+v, %v; want three alerts", result, err)
			}
			w.wantColumn("alerts in the end", alertIDs, "a", "b", "c")
			w.wantColumn("notifications in the end", `select reason || ' ' || count(*) from notification where reason = 'FIRED' group by reason`, "FIRED 3")
			w.wantColumn("problem in the end", problems, "")
			if after := w.column(cursors); slices.Equal(after, before) {
				t.Errorf("the cursor stayed at %q", after)
			}
		})
	}
}

func TestThreeAndTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a", "b", "c")
	w.tick()
	w.fail(w.ch.Now(t), "d", "e")
	w.tick()
	w.wantColumn("alerts", alertStates, "FIRING 5")
	w.wantColumn("notifications", statuses, "PENDING 5")
	if got := w.tick().Alerts; got != 0 {
		t.Errorf("the third tick raised %d alerts", got)
	}
	firing := w.firing()
	if len(firing) != 5 {
		t.Fatalf("%d alerts fire, want 5", len(firing))
	}
	act := api.AlertAction{AlertID: firing[2].ID, Action: alerts.Acknowledge, Actor: "anna"}
	acknowledged, err := w.db.Inbox().Act(t.Context(), tenant, act)
	if err != nil || acknowledged.State != alerts.Acknowledged || acknowledged.AcknowledgedBy != "anna" {
		t.Fatalf("Act = %+v, %v", acknowledged, err)
	}
	w.tick()
	w.wantColumn("alerts", alertStates, "ACKNOWLEDGED 1", "FIRING 4")
	w.wantColumn("notifications", statuses, "PENDING 5")
}

func TestOnlyWhatFailsAfterArming(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fail(w.ch.Now(t)-2_000_000_000, "two seconds before")
	w.fail(w.ch.Now(t), "just before")
	rule := w.rule()
	w.fail(rule.ArmedSinceNS+1000, "after")
	w.tick()
	w.wantColumn("alerts", alertIDs, "after")
}

func TestDisabledTimeIsNotAlerted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.fail(rule.ArmedSinceNS+1000, "armed")
	w.tick()
	set := func(enabled bool) rules.Rule {
		t.Helper()
		r, err := w.db.Rules().SetEnabled(t.Context(), tenant, rule.ID, enabled)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	set(false)
	w.fail(w.ch.Now(t), "disabled")
	w.tick()
	again := set(true)
	w.fail(again.ArmedSinceNS+1000, "armed again")
	w.tick()
	w.wantColumn("alerts", alertIDs, "armed", "armed again")
}

func TestLateArrivalsAreFoundOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.tick()
	now := w.ch.Now(t)
	// Began before the rule was armed, failed afterwards; became visible late.
	began := rule.ArmedSinceNS - 30_000_000_000
	w.ch.Insert(t,
		rules.Exchange{TenantID: tenant, StartTimeNS: began, EndTimeNS: &now, ExecutionID: "long", Status: rules.Failed},
		rules.Exchange{TenantID: tenant, StartTimeNS: began, EndTimeNS: &began, ExecutionID: "history", Status: rules.Failed},
		rules.Exchange{TenantID: tenant, StartTimeNS: began, ExecutionID: "running", Status: rules.Running})
	if got := w.tick().Alerts; got != 1 {
		t.Errorf("raised %d alerts, want 1", got)
	}
	// The row of its end replaces the row of its start, and one row is written twice.
	w.ch.Insert(t,
		rules.Exchange{TenantID: tenant, StartTimeNS: began, EndTimeNS: &now, ExecutionID: "running", Status: rules.Failed},
		rules.Exchange{TenantID: tenant, StartTimeNS: began, EndTimeNS: &now, ExecutionID: "long", Status: rules.Failed})
	w.tick()
	w.tick()
	w.wantColumn("alerts", alertIDs, "long", "running")
	// Another process remembers nothing, and raises nothing twice.
	other := w.newEvaluator(evaluator.Options{Replica: "other"})
	result, err := w.tickWith(other)
	if err != nil || result.Alerts != 0 || result.Scanned < 3 {
		t.Errorf("Tick of another process = %+v, %v", result, err)
	}
	if result, err = w.tickWith(other); err != nil || result.Scanned > 0 {
		t.Errorf("an idle tick = %+v, %v; want nothing scanned", result, err)
	}
}

func TestEditingTextsKeepsTheCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.tick()
	const progress = `select cursor || armed_since_ns from rule_progress`
	before := w.column(progress)
	definition := rule.Definition
	definition.TitleTemplate = "{{exchange.route}} broke"
	if _, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition}); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("cursor and arming", progress, before...)
	w.fail(w.ch.Now(t), "a")
	w.tick()
	w.wantColumn("titles", `select title from alert`, "order-to-erp broke")
}

func TestEachConditionDecidesOnItsOwnTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.ruleOf(rules.Definition{Name: "edited", Filter: rules.Filter{ErrorTypes: []string{"Old"}}})
	w.tick()
	failed := func(id, errorType string, ended int64) rules.Exchange {
		return rules.Exchange{
			TenantID: tenant, StartTimeNS: rule.ArmedSinceNS - 1000, EndTimeNS: &ended, ExecutionID: id,
			Status: rules.Failed, ErrorType: errorType,
		}
	}
	definition := rule.Definition
	definition.Filter = rules.Filter{ErrorTypes: []string{"New"}}
	edited, err := w.db.Rules().Update(t.Context(), tenant, api.RuleEdit{ID: rule.ID, Version: 1, Definition: definition})
	if err != nil {
		t.Fatal(err)
	}
	after := edited.ArmedSinceNS
	before := after - 1
	w.ch.Insert(t,
		failed("old before", "Old", before), failed("new before", "New", before),
		failed("old after", "Old", after), failed("new after", "New", after),
		failed("old before arming", "Old", rule.ArmedSinceNS-1))
	w.tick()
	w.wantColumn("alerts", alertIDs, "new after", "old before")
}

// TestUnreadableCheckpointHoldsUpNoOtherPartition stores a cursor that cannot be read: the
// partition is not evaluated, rather than evaluated from an arbitrary beginning.
func TestUnreadableCheckpointHoldsUpNoOtherPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule()
	_, err := w.db.Rules().Create(t.Context(), "other", rules.Definition{
		Name: "other", Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1, LookBackSeconds: 3600,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Partitions().Isolate(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	w.tick()
	w.exec(`update checkpoint set cursor = 'nonsense' where partition = (select partition from tenant_partition where tenant_id = 'other')`)
	w.fail(w.ch.Now(t), "a")
	if result, err := w.tickWith(w.evaluator); err == nil || !strings.Contains(err.Error(), "cannot be read") || result.Alerts != 1 {
		t.Errorf("Tick = %+v, %v; want an alert, and the partition named", result, err)
	}
	w.wantColumn("the cursor", `select cursor from checkpoint where cursor = 'nonsense'`, "nonsense")
}

func TestNanosecondsSurviveTheWholeWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	at := rule.ArmedSinceNS + 123
	w.fail(at, "a")
	w.fail(at+1, "b")
	w.tick()
	w.wantColumn("start times", `select (start_time_ns - $$`+itoa(at)+`$$::bigint)::text from alert order by 1`, "0", "1")
	if _, err := w.dispatcher.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("in the message", `select count(*)::text from notification_body
		where position('`+cursor.Position{StartTimeNS: at + 1}.StartTime().Format("05.000000000Z")+`' in convert_from(content, 'UTF8')) > 0`, "1")
}

func TestPoisonIsKeptApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.rule()
	bad := w.rule()
	unreadable := w.rule()
	w.exec(`update rule set filter = '{"errorMessageMatches": "("}' where rule_id = $1`, bad.ID)
	w.exec(`update rule_backfill set position = 'nonsense' where rule_id = $1`, unreadable.ID)
	// Bytes that Postgres does not accept in text, and an id too long for an index.
	at := unreadable.ArmedSinceNS + 1000
	w.ch.Insert(t,
		rules.Exchange{TenantID: tenant, StartTimeNS: at, EndTimeNS: &at, ExecutionID: "\x00\xff", Status: rules.Failed, Application: "a\x00", ErrorMessage: "\xff\x00"},
		rules.Exchange{TenantID: tenant, StartTimeNS: at, EndTimeNS: &at, ExecutionID: strings.Repeat("x", 5000), Status: rules.Failed, ErrorStack: strings.Repeat("\x00", 100_000), Attributes: map[string]string{"\x00": "\xff"}})
	result := w.tick()
	if result.Failed != 2 || result.Alerts != 2 {
		t.Errorf("Tick = %+v; want two failed rules and two alerts", result)
	}
	w.wantColumn("alerts by rule", `select rule_id || ' ' || count(*) from alert where not health group by rule_id`, good.ID.String()+" 2")
	got := w.column(`select problem from rule_state where problem is not null order by problem`)
	if len(got) != 2 || !strings.Contains(got[0], "errorMessageMatches") || !strings.Contains(got[1], "malformed cursor") {
		t.Errorf("problems: %q", got)
	}
	w.wantColumn("the unreadable position", `select position from rule_backfill where rule_id = '`+unreadable.ID.String()+`'`, "nonsense")
}
