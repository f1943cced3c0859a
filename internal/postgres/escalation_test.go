package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/rules"
)

// escalatingAlert has one alert, of which its webhook was notified, and which escalates to two
// others: after 5 minutes to one, after 15 minutes to the team of the other.
type escalatingAlert struct {
	*napping
	pager, boss uuid.UUID
	first       evaluator.Batch
}

func newEscalating(t *testing.T) *escalatingAlert {
	t.Helper()
	p := newPersist(t)
	e := &escalatingAlert{napping: &napping{persist: p, t: t, db: p.opened(t)}, pager: p.hook(t, "pager"), boss: p.hook(t, "boss")}
	e.team(1, e.boss)
	e.first = e.routed()
	p.write(t, e.first)
	e.alert = e.first.Instances[0].ID
	return e
}

// hook creates a webhook.
func (p *persist) hook(t *testing.T, name string) uuid.UUID {
	t.Helper()
	id := uuid.New()
	p.exec(t, `insert into webhook (webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		values ($1, $2, $3, 'generic', '', 'localhost', false, true, 1000, 10, 0)`, id, tenant, name)
	return id
}

// team sets the webhooks of the team.
func (e *escalatingAlert) team(version int64, hooks ...uuid.UUID) {
	e.t.Helper()
	if _, err := e.db.Teams().Replace(e.t.Context(), tenant, "ada", version, teams.List{Teams: []teams.Team{{Name: "bosses", WebhookIDs: hooks}}}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *escalatingAlert) steps() []alerts.EscalationStep {
	return []alerts.EscalationStep{
		{AfterMinutes: 5, WebhookIDs: []uuid.UUID{e.pager}}, {AfterMinutes: 15, WebhookIDs: []uuid.UUID{e.pager}, Teams: []string{"bosses"}},
	}
}

// routed is a batch with one alert that escalates.
func (e *escalatingAlert) routed() evaluator.Batch {
	b := e.page()
	b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
	b.Instances[0].Routing = &alerts.Routing{Version: 2, Routes: []alerts.RouteTaken{{Name: "all", WebhookIDs: []uuid.UUID{e.webhook}, Escalation: e.steps()}}}
	return b
}

// escalate takes the steps that are due some minutes after the alert fired, and returns how many
// messages are sent to the pager and to the boss, and how many are suppressed.
func (e *escalatingAlert) escalate(minutes int) (pager, boss, suppressed int) {
	e.t.Helper()
	due, suppressed, err := e.at(minutes)
	if err != nil {
		e.t.Fatal(err)
	}
	for hook := range due {
		if hook != e.pager && hook != e.boss {
			e.t.Errorf("webhook %s is notified", hook)
		}
	}
	return due[e.pager], due[e.boss], suppressed
}

func (e *escalatingAlert) minutesOn(minutes int) *time.Time {
	// The clocks of Postgres and of this process may differ a little.
	return new(time.Now().Add(time.Duration(minutes)*time.Minute + 30*time.Second))
}

func (e *escalatingAlert) at(minutes int) (map[uuid.UUID]int, int, error) {
	done, err := e.db.Outbox().Escalate(e.t.Context(), e.minutesOn(minutes))
	return done.Due, done.Suppressed, err
}

func (e *escalatingAlert) want(what string, minutes, pager, boss, suppressed int) {
	e.t.Helper()
	if p, b, s := e.escalate(minutes); p != pager || b != boss || s != suppressed {
		e.t.Errorf("%s, after %d min: %d to the pager, %d to the boss, %d suppressed; want %d, %d, %d", what, minutes, p, b, s, pager, boss, suppressed)
	}
}

const escalations = `select w.name || ' ' || n.generation from notification n join webhook w using (webhook_id)
	where n.reason = 'ESCALATED' order by n.generation, w.name`

func TestAnAlertEscalatesStepByStep(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	if done, err := e.db.Outbox().Escalate(t.Context(), nil); err != nil || len(done.Due) != 0 {
		t.Errorf("by Postgres's clock: %v, %v", done, err)
	}
	e.want("too early", 3, 0, 0, 0)

	// Many replicas look at once.
	var wait sync.WaitGroup
	sent := make([]int, 6)
	for i := range sent {
		wait.Go(func() { sent[i], _, _ = e.escalate(6) })
	}
	wait.Wait()
	slices.Sort(sent)
	if want := []int{0, 0, 0, 0, 0, 1}; !slices.Equal(sent, want) {
		t.Errorf("the replicas have escalated %v times", sent)
	}
	e.want("between two steps", 10, 0, 0, 0)
	e.want("the last step", 16, 1, 1, 0)
	e.want("after the last one", 10_000, 0, 0, 0)
	if got := column(t, e.conn, escalations); !slices.Equal(got, []string{"pager 5", "boss 15", "pager 15"}) {
		t.Errorf("stored: %v", got)
	}
	id := notify.ID(e.alert, e.pager, notify.ReasonEscalated, 15)
	if !one[bool](t, e.conn, `select exists (select from notification where notification_id = $1)`, id) {
		t.Errorf("the id %s of the second step is not derived", id)
	}
	// A queued message is ordered behind earlier messages to the same webhook, and is retried like
	// them.
	if got := column(t, e.conn, `select w.name || ' ' || m.generation || case when o.after_id is null then ' due' else ' waits' end || (o.expires_at is null)
		from outbox o join notification m using (notification_id) join webhook w on w.webhook_id = o.webhook_id where m.reason = 'ESCALATED' order by 1`); !slices.Equal(got,
		[]string{"boss 15 duetrue", "pager 15 waitstrue", "pager 5 duetrue"}) {
		t.Errorf("the outbox holds %v", got)
	}
	if n := one[int](t, e.conn, `select count(*) from alert_escalation`); n != 0 {
		t.Errorf("%d escalations are left", n)
	}
	// A webhook that was notified by an escalation is notified of the end, if it chose that event.
	e.exec(t, `update webhook set events = '{RESOLVED}' where name in ('pager', 'boss')`)
	e.act(alerts.Resolve)
	if got := column(t, e.conn, `select w.name from notification n join webhook w using (webhook_id) where n.reason = 'RESOLVED' order by 1`); !slices.Equal(got, []string{"boss", "pager"}) {
		t.Errorf("%v are notified of the end", got)
	}
}

func TestAStepIsSkippedWhereSomebodyLooksAfterTheAlert(t *testing.T) {
	t.Parallel()
	type sum struct{ pager, boss, suppressed int }
	one, both := sum{pager: 1}, sum{pager: 1, boss: 1}
	for name, c := range map[string]struct {
		meanwhile     func(e *escalatingAlert)
		first, second sum
	}{
		"nothing":      {func(*escalatingAlert) {}, one, both},
		"acknowledged": {func(e *escalatingAlert) { e.act(alerts.Acknowledge) }, sum{}, sum{}},
		"resolved":     {func(e *escalatingAlert) { e.act(alerts.Resolve) }, sum{}, sum{}},
		"resolved by the engine": {func(e *escalatingAlert) {
			e.exec(e.t, `update alert set state = 'RESOLVED', resolved_at = now() where alert_id = $1`, e.alert)
		}, sum{}, sum{}},
		"snoozed":                   {func(e *escalatingAlert) { e.snoozed() }, sum{}, sum{}},
		"snoozed for the first one": {func(e *escalatingAlert) { _, _ = e.snooze(8 * time.Minute) }, sum{}, both},
		"acknowledged and undone": {func(e *escalatingAlert) {
			id := uuid.New()
			act := api.BulkAction{ID: id, Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{e.alert}}}
			if _, err := e.db.Inbox().ActOnMany(e.t.Context(), tenant, act); err != nil {
				e.t.Error(err)
			}
			e.want("while it is acknowledged", 6, 0, 0, 0)
			if _, err := e.db.Inbox().Undo(e.t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
				e.t.Error(err)
			}
		}, one, both},
		"silenced": {func(e *escalatingAlert) {
			if _, err := e.db.Silences().Create(e.t.Context(), tenant, "ada", silence("s", severities(rules.Critical))); err != nil {
				e.t.Error(err)
			}
		}, sum{suppressed: 1}, sum{suppressed: 2}},
		"the webhook is deleted": {func(e *escalatingAlert) {
			e.exec(e.t, `update webhook set deleted_at = now(), enabled = false where webhook_id = $1`, e.pager)
		}, sum{}, sum{boss: 1}},
		"the webhook is disabled": {func(e *escalatingAlert) {
			e.exec(e.t, `update webhook set enabled = false where webhook_id = $1`, e.pager)
		}, one, both},
		"the team has another":      {func(e *escalatingAlert) { e.team(2, e.pager) }, one, one},
		"the teams cannot be read":  {func(e *escalatingAlert) { e.exec(e.t, `update team_list set teams = '[]'`) }, one, one},
		"the policy is edited":      {func(e *escalatingAlert) { e.policy(1, routing.Policy{}) }, one, both},
		"its routing is unreadable": {func(e *escalatingAlert) { e.exec(e.t, `update alert set routing = '"x"'`) }, sum{}, sum{}},
		"retention":                 {func(e *escalatingAlert) { e.exec(e.t, `delete from alert where alert_id = $1`, e.alert) }, sum{}, sum{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEscalating(t)
			c.meanwhile(e)
			e.want("the first step", 6, c.first.pager, c.first.boss, c.first.suppressed)
			e.want("once more", 6, 0, 0, 0)
			e.want("the second step", 16, c.second.pager, c.second.boss, c.second.suppressed)
			if n := countOf(t, e); n != 0 {
				t.Errorf("%d escalations are left", n)
			}
		})
	}
}

// TestWhatIsUndoneEndsNoStep handles an alert by mistake, because of which the last step is skipped. The step
// is taken at once when that is undone; what was sent before is not sent again.
func TestWhatIsUndoneEndsNoStep(t *testing.T) {
	t.Parallel()
	act := func(action alerts.Action) func(*escalatingAlert) func() error {
		return func(e *escalatingAlert) func() error {
			id := uuid.New()
			act := api.BulkAction{ID: id, Action: action, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{e.alert}}}
			if _, err := e.db.Inbox().ActOnMany(e.t.Context(), tenant, act); err != nil {
				e.t.Error(err)
			}
			return func() error {
				_, err := e.db.Inbox().Undo(e.t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"})
				return err
			}
		}
	}
	snooze := func(e *escalatingAlert) func() error {
		if _, err := e.snooze(time.Hour); err != nil {
			e.t.Error(err)
		}
		return func() error {
			_, err := e.db.Inbox().Snooze(e.t.Context(), tenant, api.Snooze{AlertID: e.alert, Actor: "ada@x"})
			return err
		}
	}
	for name, c := range map[string]struct {
		do func(*escalatingAlert) func() error
		// meanwhile is what else happens before the undo.
		meanwhile   string
		pager, boss int
	}{
		"acknowledged":            {act(alerts.Acknowledge), ``, 1, 1},
		"resolved":                {act(alerts.Resolve), ``, 1, 1},
		"snoozed":                 {snooze, ``, 1, 1},
		"snoozed for long":        {snooze, `update alert_snooze set snoozed_since = now() - interval '11 minutes'`, 0, 0},
		"and resolved by another": {act(alerts.Acknowledge), `update alert set state = 'RESOLVED', resolved_at = now(), change = nextval('alert_change')`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEscalating(t)
			// Its first step was sent in time.
			e.exec(t, `update alert set fired_at = now() - interval '12 minutes'`)
			e.exec(t, `update alert_escalation set due_at = now()`)
			e.want("the first step", 0, 1, 0, 0)
			e.exec(t, `update notification set created_at = now() - interval '7 minutes' where reason = 'ESCALATED'`)
			undo := c.do(e)
			// Five minutes pass.
			e.exec(t, `update alert set fired_at = fired_at - interval '5 minutes'`)
			e.exec(t, `update alert_action set at = at - interval '5 minutes'`)
			e.exec(t, `update alert_snooze set snoozed_since = snoozed_since - interval '5 minutes'`)
			e.exec(t, `update alert_escalation set due_at = now()`)
			e.want("the second step", 0, 0, 0, 0)
			if n := countOf(t, e); n != 0 {
				t.Errorf("%d escalations wait after the last step", n)
			}
			if c.meanwhile != "" {
				e.exec(t, c.meanwhile)
			}
			if err := undo(); err != nil {
				t.Error(err)
			}
			e.want("when it is undone", 0, c.pager, c.boss, 0)
			e.want("once more", 1000, 0, 0, 0)
			if c.pager > 0 {
				if n := one[int](t, e.conn, `select count(*) from alert_escalation`); n != 0 {
					t.Errorf("%d escalations are left", n)
				}
			}
		})
	}
}

// TestAStepThatWasLateIsResumed has no replica that looks when the first step is due, and a user
// who acknowledges the alert by mistake afterwards: the step was due before that, and is skipped because of it
// all the same.
func TestAStepThatWasLateIsResumed(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]bool{"found skipped": true, "undone before anybody looks": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEscalating(t)
			e.exec(t, `update alert set fired_at = now() - interval '8 minutes'`)
			e.exec(t, `update alert_escalation set due_at = now() - interval '3 minutes'`)
			id := uuid.New()
			act := api.BulkAction{ID: id, Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{e.alert}}}
			if _, err := e.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
				t.Fatal(err)
			}
			if look {
				e.want("while it is acknowledged", 0, 0, 0, 0)
			}
			if _, err := e.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
				t.Fatal(err)
			}
			e.want("when it is undone", 0, 1, 0, 0)
			e.want("the second step", 10, 1, 1, 0)
		})
	}
}

// TestAStepSkippedSinceALookBeganIsResumed acknowledges an alert by mistake while a replica that looks for due steps waits for
// it: the step is skipped because of the acknowledgement although the replica's transaction began before, and its undo resumes it.
func TestAStepSkippedSinceALookBeganIsResumed(t *testing.T) {
	t.Parallel()
	ctx, e := t.Context(), newEscalating(t)
	e.exec(t, `update alert set fired_at = now() - interval '8 minutes'`)
	e.exec(t, `update alert_escalation set due_at = now() - interval '3 minutes'`)
	tx, err := e.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The table, because a locked alert is skipped.
	if _, err := tx.Exec(ctx, `lock table alert in exclusive mode`); err != nil {
		t.Fatal(err)
	}
	looked := make(chan error, 1)
	go func() {
		_, err := e.db.Outbox().Escalate(ctx, nil)
		looked <- err
	}()
	e.waits(t)
	id := uuid.New()
	if _, err := tx.Exec(ctx, `with acted as (
			insert into alert_action (tenant_id, action_id, actor, action, change, at) values ($1, $2, 'ada@x', 'acknowledge', nextval('alert_change'), clock_timestamp())
			returning change, at)
		update alert set state = 'ACKNOWLEDGED', acknowledged_at = acted.at, acknowledged_by = 'ada@x', change = acted.change from acted`, tenant, id); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if _, err := e.db.Inbox().Undo(ctx, tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	e.want("when it is undone", 0, 1, 0, 0)
}

// TestAnUndoResumesWhatWasSkipped has one step skipped because of a snooze that ends by itself, and the next
// one by an acknowledgement: undoing that resumes only the second step.
func TestAnUndoResumesWhatWasSkipped(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	e.snoozed()
	e.want("while it is snoozed", 6, 0, 0, 0)
	e.exec(t, `delete from alert_snooze`)
	e.exec(t, `update alert_escalation set void_at = array[now() - interval '1 minute']`)
	id := uuid.New()
	act := api.BulkAction{ID: id, Action: alerts.Acknowledge, Actor: "ada@x", Filter: alerts.Filter{IDs: []uuid.UUID{e.alert}}}
	if _, err := e.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
		t.Fatal(err)
	}
	e.want("while it is acknowledged", 16, 0, 0, 0)
	if _, err := e.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada@x"}); err != nil {
		t.Fatal(err)
	}
	if got := one[int](t, e.conn, `select after_minutes from alert_escalation where due_at <= now()`); got != 15 {
		t.Errorf("the step after %d minutes is resumed", got)
	}
	e.want("when it is undone", 0, 1, 1, 0)
}

func countOf(t *testing.T, e *escalatingAlert) int {
	t.Helper()
	return one[int](t, e.conn, `select count(*) from alert_escalation where due_at is not null`)
}

func (e *escalatingAlert) policy(version int64, p routing.Policy) {
	e.t.Helper()
	if _, err := e.db.Routing().Replace(e.t.Context(), tenant, "ada", version, p); err != nil {
		e.t.Error(err)
	}
}

// TestActionBeforeTheStepPreventsIt lets a replica wait for a user who acts at the instant at
// which the step is due, and another one die while it waits.
func TestActionBeforeTheStepPreventsIt(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]string{
		"acknowledged":     `update alert set state = 'ACKNOWLEDGED', acknowledged_at = now()`,
		"resolved":         `update alert set state = 'RESOLVED', resolved_at = now()`,
		"snoozed":          `insert into alert_snooze (alert_id, tenant_id, until, snoozed_by) select alert_id, tenant_id, now() + interval '1 day', 'ada' from alert`,
		"the process dies": ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, e := t.Context(), newEscalating(t)
			tx, err := e.conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			// The table, because a locked alert is skipped.
			if _, err := tx.Exec(ctx, `lock table alert in exclusive mode`); err != nil {
				t.Fatal(err)
			}
			escalated := make(chan error, 1)
			go func() {
				due, _, err := e.at(6)
				if len(due) != 0 {
					t.Errorf("it escalates to %v", due)
				}
				escalated <- err
			}()
			e.waits(t)
			want := 0
			if meanwhile == "" {
				want = 1
				if _, err := pgtest.Conn(t, e.url).Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`); err != nil {
					t.Fatal(err)
				}
				if err := <-escalated; err == nil {
					t.Error("the process that died has no error")
				}
			} else if _, err := tx.Exec(ctx, meanwhile); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if meanwhile != "" {
				if err := <-escalated; err != nil {
					t.Error(err)
				}
			}
			e.want("the next one", 6, want, 0, 0)
		})
	}
}

// TestStepThatNotifiesNobodyIsReported deletes the webhook of the first step and the team of the last.
func TestStepThatNotifiesNobodyIsReported(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	want := func(minutes int, empty ...postgres.EmptyStep) {
		t.Helper()
		done, err := e.db.Outbox().Escalate(t.Context(), e.minutesOn(minutes))
		if err != nil || !slices.Equal(done.Empty, empty) {
			t.Errorf("after %d min: %+v, want %+v: %v", minutes, done, empty, err)
		}
	}
	e.exec(t, `update webhook set deleted_at = now(), enabled = false where webhook_id = $1`, e.pager)
	want(6, postgres.EmptyStep{AlertID: e.alert, Tenant: tenant, AfterMinutes: 5})
	e.exec(t, `update team_list set teams = '{"teams": []}'`)
	want(16, postgres.EmptyStep{AlertID: e.alert, Tenant: tenant, AfterMinutes: 15})

	// A skipped step does not count as one that notifies nobody.
	e = newEscalating(t)
	e.exec(t, `update webhook set deleted_at = now(), enabled = false where webhook_id = $1`, e.pager)
	e.act(alerts.Acknowledge)
	want(6)
	e.act(alerts.Resolve)
	want(16)
}

// TestWhatBeginsToEscalate checks which commits start escalations: not those of replays, nor of
// alerts without steps or that do not fire.
func TestWhatBeginsToEscalate(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	if n := countOf(t, e); n != 1 {
		t.Fatalf("%d escalations of the first commit", n)
	}
	// The same exchange again is no new alert.
	again := e.first
	again.Revision, again.Instances[0].Late = e.revision, true
	e.exec(t, `delete from alert_escalation`)
	e.write(t, again)
	if n := countOf(t, e); n != 0 {
		t.Errorf("%d escalations of an alert that was there", n)
	}
	now := time.Now().UnixNano()
	r, err := e.db.Rules().StartReplay(t.Context(), tenant, "ada", api.ReplayRequest{
		RuleID: e.rule, FromNS: now - time.Hour.Nanoseconds(), ToNS: now, Messages: ruleset.ReplayEach,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := e.routed()
	b.Instances[0].Exchange.ExecutionID, b.RulesRevision = "replayed", one[int64](t, e.conn, `select rules_revision from checkpoint where partition = 0`)
	b.Replay = &ruleset.ReplayStep{Replay: ruleset.Replay{ID: r.ID, RuleID: e.rule, At: cursor.Position{StartTimeNS: r.FromNS + 1}, ToNS: r.ToNS, Messages: r.Messages}}
	if done := e.write(t, b); len(done.Inserted) != 1 || countOf(t, e) != 0 {
		t.Errorf("%d alerts of a replay, %d escalations", len(done.Inserted), countOf(t, e))
	}
}

// A pending window alert escalates from when it fires on, as it was routed when it was raised.
func TestAWindowAlertEscalatesFromWhenItFires(t *testing.T) {
	w := newWindowAlerts(t)
	steps := []alerts.EscalationStep{{AfterMinutes: 5, WebhookIDs: []uuid.UUID{w.webhook}}}
	waits := w.change(alerts.Wait, uuid.Nil, "a", "")
	waits.Instance.Routing = &alerts.Routing{Version: 2, DefaultWebhookIDs: []uuid.UUID{w.webhook}, DefaultEscalation: steps}
	a := w.apply(1, 0, 0, waits)[0].Instance.ID
	count := func() int { return one[int](t, w.conn, `select count(*) from alert_escalation`) }
	if n := count(); n != 0 {
		t.Errorf("%d escalations of an alert that waits", n)
	}
	w.apply(0, 1, 1, w.change(alerts.Fire, a, "a", notify.ReasonFired))
	if n := count(); n != 1 {
		t.Fatalf("%d escalations of an alert that fires", n)
	}
	w.apply(0, 1, 1, w.change(alerts.Remind, a, "a", notify.ReasonReminder))
	done, err := w.db.Outbox().Escalate(t.Context(), new(time.Now().Add(6*time.Minute)))
	if err != nil || done.Due[w.webhook] != 1 || len(done.Empty) != 0 || count() != 0 {
		t.Errorf("%v, %v, %d left", done, err, count())
	}
}

// TestManyEscalateAtOnce has more alerts due than are handled at once, one of which cannot be
// written: it blocks no other.
func TestManyEscalateAtOnce(t *testing.T) {
	t.Parallel()
	e := newEscalating(t)
	const all = 1101
	b := e.routed()
	another := b.Instances[0]
	b.Instances, b.Notifications = nil, nil
	for i := range all - 1 {
		a := another
		a.ID, a.Exchange.ExecutionID = uuid.New(), fmt.Sprintf("more-%04d", i)
		b.Instances = append(b.Instances, a)
	}
	e.write(t, b)
	e.exec(t, `update alert set fired_at = (select min(fired_at) from alert)`)
	e.exec(t, `update alert_escalation set due_at = (select min(due_at) from alert_escalation)`)
	if due, _, err := e.at(6); err != nil || due[e.pager] != all {
		t.Errorf("%d messages, %v", due[e.pager], err)
	}

	poisonous := one[uuid.UUID](t, e.conn, `select min(alert_id::text)::uuid from alert`)
	e.exec(t, fmt.Sprintf(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
		create trigger refuse before insert on notification for each row when (new.alert_id = '%s') execute function refuse()`, poisonous))
	for _, want := range []int{all - 1, 0} {
		if due, _, err := e.at(16); err == nil || due[e.pager] != want {
			t.Errorf("%d messages, want %d: %v", due[e.pager], want, err)
		}
	}
	e.exec(t, `drop trigger refuse on notification`)
	if due, _, err := e.at(16); err != nil || due[e.pager] != 1 || countOf(t, e) != 0 {
		t.Errorf("afterwards %v, %v", due, err)
	}
	if n := one[int](t, e.conn, `select count(*) from notification where reason = 'ESCALATED'`); n != 3*all {
		t.Errorf("%d messages are stored", n)
	}
}

// What a policy and teams refer to cannot be deleted, whichever of the two is written first.
func TestWhatEscalationsNameStays(t *testing.T) {
	t.Parallel()
	ctx, e := context.Background(), newEscalating(t)
	refused := func(what string, err error) {
		t.Helper()
		if fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := e.db.Routing().Replace(ctx, tenant, "ada", 1, routing.Policy{DefaultEscalation: []alerts.EscalationStep{{AfterMinutes: 5, Teams: []string{"nobody"}}}})
	refused("a team that is not there", err)
	e.team(2)
	_, err = e.db.Routing().Replace(ctx, tenant, "ada", 1, routing.Policy{DefaultEscalation: e.steps()})
	refused("a team that has no webhook", err)
	e.team(3, e.boss)
	e.policy(1, routing.Policy{DefaultEscalation: e.steps()})
	_, err = e.db.Teams().Replace(ctx, tenant, "ada", 4, teams.List{})
	refused("the end of a team that a policy names", err)
	_, err = e.db.Teams().Replace(ctx, tenant, "ada", 4, teams.List{Teams: []teams.Team{{Name: "bosses"}}})
	refused("the end of its last webhook", err)
	if err == nil || !strings.Contains(err.Error(), `the team "bosses" needs a webhook, because it is used by the escalation of the default`) {
		t.Errorf("it is not said what leads to the team: %v", err)
	}
	_, err = e.db.Teams().Replace(ctx, tenant, "ada", 4, teams.List{Teams: []teams.Team{{Name: "bosses", WebhookIDs: []uuid.UUID{uuid.New()}}}})
	refused("a team with an unknown webhook", err)
	refused("the webhook of a step", e.db.Webhooks().Delete(ctx, tenant, e.pager))
	refused("the webhook of a team", e.db.Webhooks().Delete(ctx, tenant, e.boss))
	// If a policy refers to teams that have no webhooks or do not exist, other teams can still be
	// edited.
	e.exec(t, `update team_list set teams = '{"teams": [{"name": "bosses"}]}'`)
	e.exec(t, `update routing_policy set policy = jsonb_set(policy, '{defaultEscalation,0,teams}', '["gone"]')`)
	if _, err := e.db.Teams().Replace(ctx, tenant, "ada", 4, teams.List{Teams: []teams.Team{{Name: "bosses"}, {Name: "others"}}}); err != nil {
		t.Errorf("an edit of another team: %v", err)
	}
	e.exec(t, `update routing_policy set policy = policy #- '{defaultEscalation,0,teams}'`)
	e.team(5, e.webhook)
	if err := e.db.Webhooks().Delete(ctx, tenant, e.boss); err != nil {
		t.Errorf("a webhook that nothing names any more: %v", err)
	}
}
