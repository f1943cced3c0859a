package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

func isStale(err error) bool { return errors.Is(err, evaluator.ErrStale) }

// TestStaleCommitsWriteNothing commits a page with another state of the checkpoint than the stored
// one.
func TestStaleCommitsWriteNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*evaluator.Batch){
		"another partition":      func(b *evaluator.Batch) { b.Partition = 1 },
		"no such partition":      func(b *evaluator.Batch) { b.Partition = 999 },
		"another token":          func(b *evaluator.Batch) { b.Token++ },
		"a former revision":      func(b *evaluator.Batch) { b.Revision-- },
		"a later revision":       func(b *evaluator.Batch) { b.Revision++ },
		"a former rules version": func(b *evaluator.Batch) { b.RulesRevision-- },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPersist(t)
			p.commit(t, p.page())
			was := one[string](t, p.conn, `select c::text from checkpoint c where partition = 0`)
			page := p.page()
			page.Backfills = []ruleset.Backfill{{RuleID: p.rule, At: p.at}}
			page.Health = map[uuid.UUID]ruleset.Health{p.rule: {Problem: "no", Failed: true}}
			change(&page)
			if _, err := p.store.Commit(t.Context(), page); !isStale(err) {
				t.Errorf("Commit = %v", err)
			}
			if got := one[string](t, p.conn, `select c::text from checkpoint c where partition = 0`); got != was {
				t.Errorf("the checkpoint changed from %s to %s", was, got)
			}
			if n := one[int](t, p.conn, `select (select count(*) from alert)::int + (select count(*) from rule_backfill)::int + (select count(*) from rule_failing)::int`); n != pageOf {
				t.Errorf("%d rows were written, want %d", n, pageOf)
			}
		})
	}
}

// TestLeaseThatExpiredStillCommits checks that an expired lease suffices if no other replica has
// taken the partition.
func TestLeaseThatExpiredStillCommits(t *testing.T) {
	p := newPersist(t)
	p.exec(t, `update checkpoint set lease_until = now() - interval '1 min' where partition = 0`)
	p.commit(t, p.page())
	if !one[bool](t, p.conn, `select lease_until > now() and committed_at is not null from checkpoint where partition = 0`) {
		t.Error("the commit did not renew the lease")
	}
}

// TestCommitStoresProgress reads what a commit wrote, as its next holder does.
func TestCommitStoresProgress(t *testing.T) {
	p := newPersist(t)
	at := cursor.Position{StartTimeNS: 1_795_244_520_123_456_789, ExecutionID: "a|b\x00\xffé"}
	until := cursor.Position{StartTimeNS: 1_795_244_520_123_456_790}
	other := p.another(t)
	batch := p.batch()
	batch.Cursor, batch.Backfill, batch.ClockOffset = &at, &backlog.Mark{FromNS: -5, CursorNS: 7}, -3*time.Second
	batch.Backfills = []ruleset.Backfill{{RuleID: p.rule, At: at, Until: &until}, {RuleID: other, At: until, Failing: true}}
	p.write(t, batch)
	holding, err := p.store.Hold(t.Context(), evaluator.HoldRequest{Replica: "replica", LeaseFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	wantCheckpoint(t, holding.Checkpoints[0], at, &backlog.Mark{FromNS: -5, CursorNS: 7})
	if c := holding.Checkpoints[0]; c.ClockOffset != -3*time.Second || c.Revision != p.revision || c.Token != 1 || c.Of != 8 || c.RulesRevision != 1 {
		t.Errorf("checkpoint %+v", c)
	}
	if offset := one[int64](t, p.conn, `select clock_offset_ns from checkpoint where partition = 0`); offset != -3_000_000_000 {
		t.Errorf("clock offset %d", offset)
	}
	p.exec(t, `insert into partition_rule (partition, rule_id, changed) select 0, rule_id, 1 from rule`)
	set, err := p.store.Rules(t.Context(), 0, 0)
	if err != nil || len(set.Backfills) != 2 || len(set.Rules) != 2 {
		t.Fatalf("Rules = %+v, %v", set, err)
	}
	for _, b := range set.Backfills {
		if b.RuleID == p.rule && (b.At != at || b.Until == nil || *b.Until != until || b.Failing) || b.RuleID == other && (b.At != until || b.Until != nil || !b.Failing) {
			t.Errorf("backfill %+v", b)
		}
	}
	batch = p.batch()
	batch.Cursor, batch.Backfills = nil, []ruleset.Backfill{{RuleID: p.rule, At: until, Until: &until}, {RuleID: other, At: until, Until: &at}}
	p.write(t, batch)
	if !one[bool](t, p.conn, `select cursor is null and backfill_from_ns is null and not exists (select from rule_backfill) from checkpoint where partition = 0`) {
		t.Error("progress was not given up")
	}
}

// TestRefusedCommits checks that permanent errors of the database are distinguished from transient
// ones.
func TestRefusedCommits(t *testing.T) {
	t.Parallel()
	const tooLong = "a statement that takes too long for the role"
	for name, c := range map[string]struct {
		before  string
		poison  func(*alerts.Instance)
		refused bool
	}{
		"a text that cannot be stored": {"", func(a *alerts.Instance) { a.Title = "a\x00b" }, true},
		"a constraint":                 {"", func(a *alerts.Instance) { a.Severity = "LOUD" }, true},
		"a key that is too long":       {"", func(a *alerts.Instance) { a.Exchange.ExecutionID = uniqueText(9000) }, true},
		"a trigger": {`create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
			create trigger no before insert on alert for each row execute function no()`, func(*alerts.Instance) {}, true},
		"a deadlock": {`create function no() returns trigger language plpgsql as $$ begin raise deadlock_detected; end $$;
			create trigger no before insert on alert for each row execute function no()`, func(*alerts.Instance) {}, false},
		"a full disk": {`create function no() returns trigger language plpgsql as $$ begin raise disk_full; end $$;
			create trigger no before insert on alert for each row execute function no()`, func(*alerts.Instance) {}, false},
		tooLong: {`create function no() returns trigger language plpgsql as $$ begin raise query_canceled; end $$;
			create trigger no before insert on alert for each row execute function no()`, func(*alerts.Instance) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPersist(t)
			if c.before != "" {
				p.exec(t, c.before)
			}
			page := p.page()
			c.poison(&page.Instances[7])
			_, err := p.store.Commit(t.Context(), page)
			if err == nil || errors.Is(err, evaluator.ErrRefused) != c.refused {
				t.Errorf("Commit = %v, refused %t", err, c.refused)
			}
			if errors.Is(err, context.DeadlineExceeded) != (name == tooLong) {
				t.Errorf("Commit = %v: a smaller batch is of use %t", err, name == tooLong)
			}
			if n := one[int](t, p.conn, `select count(*)::int + (select revision from checkpoint where partition = 0)::int from alert`); n != 0 {
				t.Errorf("%d rows were written", n)
			}
		})
	}
}

// uniqueText returns a text of random ids, which does not compress.
func uniqueText(n int) string {
	var text strings.Builder
	for text.Len() < n {
		text.WriteString(uuid.NewString())
	}
	return text.String()
}

// another stores a second rule.
func (p *persist) another(tb testing.TB) uuid.UUID {
	tb.Helper()
	return p.others(tb, 1)[0]
}

// others stores more rules.
func (p *persist) others(tb testing.TB, n int) []uuid.UUID {
	tb.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.New()
	}
	p.exec(tb, `
		insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
		                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
		select id, 'default', id, true, 'PER_EXCHANGE', 'INFO', '{}', '{}', '', '', '[]', 1, 3600, 0, 0 from unnest($1::uuid[]) id`, ids)
	p.exec(tb, `insert into rule_state (rule_id, armed_since_ns) select id, 1 from unnest($1::uuid[]) id`, ids)
	return ids
}

// operators makes the webhook receive notifications about Tocsin itself.
func (p *persist) operators(tb testing.TB) {
	tb.Helper()
	p.exec(tb, `update webhook set operators = true`)
}

// TestManyRulesFailAndRecoverBySets has 10,000 rules that fail and recover, each announced once.
func TestManyRulesFailAndRecoverBySets(t *testing.T) {
	p := newPersist(t)
	p.operators(t)
	const many = 10_000
	ids := p.others(t, many)
	p.exec(t, `create table statements (what text)`)
	p.exec(t, `create function noted() returns trigger language plpgsql as $$ begin insert into statements values (tg_op || tg_table_name); return null; end $$`)
	for _, table := range []string{"alert", "notification", "outbox", "rule_failing", "rule_backfill", "rule_state", "checkpoint"} {
		p.exec(t, `create trigger noted after insert or update or delete on `+table+` for each statement execute function noted()`)
	}
	announced := func(reason string) int {
		t.Helper()
		return one[int](t, p.conn, `select count(*)::int from notification join outbox using (notification_id) where reason = $1`, reason)
	}
	fail := p.batch()
	fail.Health = map[uuid.UUID]ruleset.Health{}
	for i, id := range ids {
		fail.Health[id] = ruleset.Health{Problem: fmt.Sprint("the database refuses it: ", i), Failed: true}
		fail.Backfills = append(fail.Backfills, ruleset.Backfill{RuleID: id, At: cursor.Position{StartTimeNS: p.at.StartTimeNS - 1}, Failing: true})
	}
	if done := p.write(t, fail); done.Notifications[p.webhook] != many {
		t.Errorf("%v notifications", done.Notifications)
	}
	if n := one[int](t, p.conn, `select count(*)::int from rule_backfill b join rule_failing using (rule_id) join rule_state s using (rule_id)
		where b.failing and b.until is null and s.problem is not null and b.position < (select cursor from checkpoint where partition = 0)`); n != many {
		t.Errorf("%d rules are recorded as failing", n)
	}
	if n := one[int](t, p.conn, `select count(*)::int from alert where health and state = 'FIRING' and title like 'Rule % cannot be evaluated'`); n != many || announced("RULE_FAILING") != many {
		t.Errorf("%d alerts, %d notifications", n, announced("RULE_FAILING"))
	}
	fail.Revision = p.revision
	if done := p.write(t, fail); len(done.Notifications) != 0 {
		t.Errorf("announced again: %v", done.Notifications)
	}
	// A rule that recovers with a fallback for a text, and one that was never announced.
	recovered := p.batch()
	recovered.Health = map[uuid.UUID]ruleset.Health{ids[0]: {Problem: "a text is a fallback"}, p.rule: {}}
	for _, id := range ids[1:] {
		recovered.Health[id] = ruleset.Health{}
	}
	for _, id := range ids {
		recovered.Backfills = append(recovered.Backfills, ruleset.Backfill{RuleID: id, At: p.at, Until: &p.at})
	}
	began := time.Now()
	if done := p.write(t, recovered); done.Notifications[p.webhook] != many {
		t.Errorf("%v notifications", done.Notifications)
	}
	t.Logf("%d rules recovered in %v", many, time.Since(began))
	if n := one[int](t, p.conn, `select (select count(*) from rule_failing)::int + (select count(*) from rule_backfill where failing)::int
		+ (select count(*) from alert where state <> 'RESOLVED')::int`); n != 0 || announced("RULE_RECOVERED") != many {
		t.Errorf("%d rows are left, %d notifications", n, announced("RULE_RECOVERED"))
	}
	// Once for each of three commits, and what is common to all of them.
	if n := one[int](t, p.conn, `select count(*)::int from statements`); n > 25 {
		t.Errorf("%d rules took %d statements", many, n)
	}
	if problem := one[string](t, p.conn, `select string_agg(problem, ',') from rule_state`); problem != "a text is a fallback" {
		t.Errorf("problems %q", problem)
	}
}

// TestOpenAlertsOfWindowRules raises alerts, and reads the open ones.
func TestOpenAlertsOfWindowRules(t *testing.T) {
	p := newPersist(t)
	p.exec(t, `update rule set fire_mode = 'COUNT_IN_WINDOW', threshold = 1, window_seconds = 60`)
	batch := p.batch()
	batch.Evaluated = []uuid.UUID{p.rule}
	a := alerts.Instance{
		ID: uuid.New(), TenantID: "default", RuleID: p.rule, RuleVersion: 1, Severity: rules.Info, State: alerts.Firing,
		Count: &alerts.Count{Observed: 3, Threshold: 1, WindowSeconds: 60, Group: "orders"},
	}
	batch.Changes = []window.Change{{Step: alerts.Raise, Instance: a}}
	if done := p.write(t, batch); len(done.Inserted) != 1 {
		t.Errorf("Commit = %+v", done)
	}
	open, err := p.store.OpenAlerts(t.Context(), []uuid.UUID{p.rule})
	if err != nil || len(open) != 1 || open[0].ID != a.ID || open[0].Group != "orders" || open[0].State != alerts.Firing {
		t.Errorf("OpenAlerts = %+v, %v", open, err)
	}
	if !one[bool](t, p.conn, `select last_run_at is not null from rule_state`) {
		t.Error("the evaluation is not recorded")
	}
}
