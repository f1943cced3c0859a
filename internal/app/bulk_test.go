package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/app"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// plenty raises n alerts of a rule, one second apart, the newest now. Every tenth is resolved.
func (w *world) plenty(rule rules.Rule, n int) {
	w.t.Helper()
	w.plentyApart(rule, n, time.Second)
}

// plentyApart is plenty with another time between two alerts.
func (w *world) plentyApart(rule rules.Rule, n int, apart time.Duration) {
	w.t.Helper()
	w.fill(`
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns,
                   application, route, exchange, signature, fired_at, resolved_at)
select uuidv7(), $1, $2, 1, 'CRITICAL', case when i % 10 = 0 then 'RESOLVED' else 'FIRING' end, 'title ' || i, 'message',
       $3 || i, i, 'app-' || i % 7, 'route', '{"errorType": "T"}', 'T: refused by #' || i % 50, now() - ($4::int - i) * $5::interval,
       case when i % 10 = 0 then now() end
from generate_series(1, $4::int) i`, tenant, rule.ID, rule.ID.String()+"-", n, apart)
	w.exec(`analyze alert`)
}

func open() alerts.Filter {
	return alerts.Filter{States: []alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved}}
}

func (w *world) act(a alerts.Action, f alerts.Filter) (uuid.UUID, api.BulkCounts) {
	w.t.Helper()
	id := w.newID()
	done, err := w.db.Inbox().ActOnMany(w.t.Context(), tenant, api.BulkAction{ID: id, Action: a, Actor: "ada", Filter: f})
	if err != nil {
		w.t.Fatal(err)
	}
	return id, done
}

func (w *world) undo(id uuid.UUID) (restored, skipped int64) {
	w.t.Helper()
	done, err := w.db.Inbox().Undo(w.t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada"})
	if err != nil {
		w.t.Fatal(err)
	}
	return done.Restored, done.Skipped
}

// wantCounts compares the numbers of changed, unchanged, rejected and unknown alerts.
func wantCounts(t *testing.T, got api.BulkCounts, changed, already, refused, unknown int64) {
	t.Helper()
	if want := (api.BulkCounts{Changed: changed, Already: already, Refused: refused, Unknown: unknown, UndoableUntil: got.UndoableUntil}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestThousandsOfAlertsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 20_000
	w.plenty(w.rule(), n)
	inbox := w.db.Inbox()
	took := map[string]time.Duration{}
	measure := func(what string, do func()) {
		begin := time.Now()
		do()
		took[what] = time.Since(begin).Round(time.Millisecond)
	}
	var first, second, third api.BulkCounts
	var id uuid.UUID
	asOf, err := inbox.AsOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	measure("unread of all", func() {
		if unread, err := inbox.Unread(t.Context(), tenant, "ada"); err != nil || unread != n*9/10 {
			t.Errorf("%d unread, %v", unread, err)
		}
	})
	measure("acknowledge", func() { id, first = w.act(alerts.Acknowledge, open()) })
	wantCounts(t, first, n*9/10, 0, n/10, 0)
	measure("acknowledge again", func() { _, second = w.act(alerts.Acknowledge, open()) })
	wantCounts(t, second, 0, n*9/10, n/10, 0)
	measure("undo", func() {
		if restored, skipped := w.undo(id); restored != n*9/10 || skipped != 0 {
			t.Errorf("restored %d, skipped %d", restored, skipped)
		}
	})
	measure("resolve", func() { _, third = w.act(alerts.Resolve, open()) })
	wantCounts(t, third, n*9/10, n/10, 0, 0)
	measure("groups", func() {
		groups, err := inbox.Groups(t.Context(), tenant, api.GroupQuery{By: alerts.BySignature, Filter: open(), Limit: 50, Actor: "ada"})
		if err != nil || len(groups) != 50 {
			t.Errorf("%d groups, %v", len(groups), err)
		}
	})
	measure("read one application", func() {
		changed, err := inbox.MarkRead(t.Context(), tenant, api.ReadMark{Actor: "ada", Read: true, Filter: alerts.Filter{Applications: []string{"app-1"}}})
		if err != nil || changed < n/8 {
			t.Errorf("marked %d, %v", changed, err)
		}
	})
	measure("read everything", func() {
		f := open()
		f.UpTo = &asOf
		if _, err := inbox.MarkRead(t.Context(), tenant, api.ReadMark{Actor: "ada", Read: true, Everything: true, Filter: f}); err != nil {
			t.Error(err)
		}
	})
	measure("unread of none", func() {
		list, err := inbox.List(t.Context(), tenant, alerts.Query{Filter: alerts.Filter{UnreadBy: "ada"}, Limit: 50})
		if err != nil || len(list.Alerts) > 1 {
			t.Errorf("%d unread, %v", len(list.Alerts), err)
		}
	})
	t.Logf("%d alerts: %v", n, took)
	for what, d := range took {
		if d > 30*time.Second {
			t.Errorf("%s took %v", what, d)
		}
	}
}

func TestWhatCameLaterIsNotTakenAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule()
	w.fail(time.Now().Add(time.Second).UnixNano(), "before")
	w.tickUntil(1)
	// A transaction that began before the look and commits after it.
	pending, err := w.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Exec(t.Context(), `
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
select gen_random_uuid(), tenant_id, rule_id, 1, 'CRITICAL', 'FIRING', 't', 'm', 'meanwhile', 1, 'a', 'r', '{}' from rule`); err != nil {
		t.Fatal(err)
	}
	asOf, err := w.db.Inbox().AsOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pending.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := open()
	f.UpTo = &asOf
	_, done := w.act(alerts.Resolve, f)
	wantCounts(t, done, 1, 0, 0, 0)
	w.wantColumn("states", `select execution_id || ' ' || state from alert order by 1`, "before RESOLVED", "meanwhile FIRING")
}

// tickUntil ticks until n alerts fire.
func (w *world) tickUntil(n int) {
	w.t.Helper()
	deadline := time.Now().Add(waitLimit)
	for len(w.firing()) < n {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d alerts fire, want %d", len(w.firing()), n)
		}
		w.tick()
	}
}

func TestActionThatIsRepeatedIsDoneOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 1000)
	act := api.BulkAction{ID: w.newID(), Action: alerts.Acknowledge, Actor: "ada", Filter: open()}
	var all sync.WaitGroup
	answers := make([]api.BulkCounts, 8)
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = w.db.Inbox().ActOnMany(t.Context(), tenant, act); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != answers[0] || a.Changed != 900 {
			t.Errorf("answers %+v", answers)
		}
	}
	w.wantColumn("changes", `select count(distinct change)::text from alert where state = 'ACKNOWLEDGED'`, "1")
	act.Action = alerts.Resolve
	if _, err := w.db.Inbox().ActOnMany(t.Context(), tenant, act); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another act under the same id: %v", err)
	}
}

func TestManyAtOnceFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 5000)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			f := open()
			if i%2 == 0 {
				f.Applications = []string{"app-1", "app-2", "app-3"}
			}
			action := []alerts.Action{alerts.Acknowledge, alerts.Resolve}[i/3]
			if _, err := w.db.Inbox().ActOnMany(t.Context(), tenant, api.BulkAction{ID: uuid.New(), Action: action, Actor: "ada", Filter: f}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.wantColumn("states", alertStates, "RESOLVED 5000")
}

func TestUndoPutsBackWhatNobodyChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 20)
	_, done := w.act(alerts.Acknowledge, alerts.Filter{Applications: []string{"app-1"}})
	acknowledged := done.Changed
	id, done := w.act(alerts.Resolve, open())
	wantCounts(t, done, 18, 2, 0, 0)

	var touched uuid.UUID
	if err := w.conn.QueryRow(t.Context(), `update alert set change = nextval('alert_change') where title = 'title 3' returning alert_id`).Scan(&touched); err != nil {
		t.Fatal(err)
	}
	if restored, skipped := w.undo(id); restored != 17 || skipped != 1 {
		t.Errorf("restored %d, skipped %d", restored, skipped)
	}
	if restored, skipped := w.undo(id); restored != 17 || skipped != 1 {
		t.Errorf("the second time, restored %d, skipped %d", restored, skipped)
	}
	w.wantColumn("states", alertStates, fmt.Sprint("ACKNOWLEDGED ", acknowledged), fmt.Sprint("FIRING ", 17-acknowledged), "RESOLVED 3")
	w.wantColumn("leftovers", `select count(*)::text from alert where state <> 'RESOLVED' and (resolved_at is not null or resolved_by <> '')`, "0")

	id, _ = w.act(alerts.Acknowledge, open())
	if _, err := w.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "bob"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("undone by another: %v", err)
	}
	if _, err := w.db.Inbox().Undo(t.Context(), "other", api.Undo{ActionID: id, Actor: "ada"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("undone by another tenant: %v", err)
	}
	w.exec(`update alert_action set at = now() - interval '11 minutes'`)
	if _, err := w.db.Inbox().Undo(t.Context(), tenant, api.Undo{ActionID: id, Actor: "ada"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("undone too late: %v", err)
	}
}

// reopenable returns how a reader can reopen an alert.
func (w *world) reopenable(actor string, alert uuid.UUID) *api.Reopenable {
	w.t.Helper()
	notes, err := w.db.Inbox().Annotate(w.t.Context(), tenant, api.Reader{Actor: actor}, []uuid.UUID{alert})
	if err != nil || len(notes) != 1 {
		w.t.Fatalf("annotations %+v, %v", notes, err)
	}
	return notes[alert].Reopenable
}

func TestListsSayWhatCanBeReopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 3)
	var alert uuid.UUID
	if err := w.conn.QueryRow(t.Context(), `select alert_id from alert where title = 'title 1'`).Scan(&alert); err != nil {
		t.Fatal(err)
	}
	want := func(what string, action uuid.UUID, n int64) {
		t.Helper()
		got := w.reopenable("ada", alert)
		if action == uuid.Nil {
			if got != nil {
				t.Errorf("%s: %+v", what, got)
			}
			return
		}
		if got == nil || got.ActionID != action || got.Alerts != n || time.Until(got.Until) < 9*time.Minute {
			t.Errorf("%s: %+v, want %d alerts of %s", what, got, n, action)
		}
	}
	one := alerts.Filter{IDs: []uuid.UUID{alert}}
	want("a new one", uuid.Nil, 0)
	acknowledged, _ := w.act(alerts.Acknowledge, open())
	want("acknowledged with others", acknowledged, 3)
	if got := w.reopenable("bob", alert); got != nil {
		t.Errorf("by another: %+v", got)
	}
	resolved, _ := w.act(alerts.Resolve, one)
	want("resolved", resolved, 1)
	if restored, skipped := w.undo(resolved); restored != 1 || skipped != 0 {
		t.Errorf("restored %d, skipped %d", restored, skipped)
	}
	want("reopened", uuid.Nil, 0)
	_, err := w.db.Inbox().AssignMany(t.Context(), tenant, api.BulkAssignment{ID: w.newID(), Actor: "ada", Filter: one, Assignee: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	want("assigned", uuid.Nil, 0)
	resolved, _ = w.act(alerts.Resolve, one)
	want("resolved again", resolved, 1)
	w.exec(`update alert_action set at = now() - interval '11 minutes'`)
	want("resolved long ago", uuid.Nil, 0)
}

func TestUndoLeavesWhatCannotBeOpenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	counted := func(state string) {
		w.exec(`
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, group_key, count, start_time_ns, application, route, exchange)
values (gen_random_uuid(), $1, $2, 1, 'CRITICAL', $3, 't', 'm', 'g', '{}', 0, '', '', '{}')`, tenant, rule.ID, state)
	}
	counted("FIRING")
	w.exec(`
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, start_time_ns, application, route, exchange)
values (gen_random_uuid(), $1, $2, 1, 'WARNING', 'FIRING', 't', 'm', true, 0, '', '', '{}')`, tenant, rule.ID)
	id, done := w.act(alerts.Resolve, open())
	wantCounts(t, done, 2, 0, 0, 0)
	// Its value was below the threshold once, and is above it again.
	w.exec(`update alert set held = false`)
	counted("FIRING")
	if restored, skipped := w.undo(id); restored != 0 || skipped != 2 {
		t.Errorf("restored %d, skipped %d", restored, skipped)
	}
	w.wantColumn("states", `select state from alert order by state`, "FIRING", "RESOLVED", "RESOLVED")
}

func TestUndoPutsBackThatAWebhookIsOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(w *world, hook uuid.UUID)
		restored  int64
		inbox     []string
	}{
		"it still is":           {func(*world, uuid.UUID) {}, 1, []string{"FIRING"}},
		"it was enabled":        {(*world).enable, 0, []string{"RESOLVED"}},
		"it is disabled since":  {func(w *world, hook uuid.UUID) { w.enable(hook); w.disable(hook) }, 0, []string{"RESOLVED"}},
		"it went off once more": {func(w *world, hook uuid.UUID) { w.enable(hook); w.raiseFor(hook, "b"); w.deliver() }, 0, []string{"RESOLVED", "FIRING"}},
		"it is deleted": {func(w *world, hook uuid.UUID) {
			w.exec(`update webhook set deleted_at = now() where webhook_id = $1`, hook)
		}, 0, []string{"RESOLVED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			hook := w.webhook("ops")
			w.status(http.StatusGone)
			w.raiseFor(hook, "a")
			w.deliver()
			w.wantColumn("inbox", healthAlerts, "FIRING")
			id, done := w.act(alerts.Resolve, open())
			wantCounts(t, done, 2, 0, 0, 0)
			c.meanwhile(w, hook)
			if restored, skipped := w.undo(id); restored != 1+c.restored || skipped != 1-c.restored {
				t.Errorf("restored %d, skipped %d", restored, skipped)
			}
			w.wantColumn("inbox", healthAlerts, c.inbox...)
		})
	}
}

func TestUndoWaitsForWhoEnablesAWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.status(http.StatusGone)
	w.raiseFor(hook, "a")
	w.deliver()
	id, _ := w.act(alerts.Resolve, open())
	w.exec(`begin`)
	w.exec(`update webhook set enabled = true, disabled_reason = '' where webhook_id = $1`, hook)
	undone := make(chan int64, 1)
	go func() { restored, _ := w.undo(id); undone <- restored }()
	other := pgtest.Conn(t, w.pgURL)
	w.until("the undoing waits", func() bool {
		var waits bool
		err := other.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
	w.exec(`commit`)
	if restored := await(t, "the alerts are restored", undone); restored != 1 {
		t.Errorf("restored %d", restored)
	}
	w.wantColumn("inbox", healthAlerts, "RESOLVED")
}

func (w *world) enable(hook uuid.UUID)  { w.setEnabled(hook, true) }
func (w *world) disable(hook uuid.UUID) { w.setEnabled(hook, false) }

func (w *world) setEnabled(hook uuid.UUID, enabled bool) {
	w.t.Helper()
	if _, err := w.db.Webhooks().SetEnabled(w.t.Context(), tenant, hook, enabled); err != nil {
		w.t.Fatal(err)
	}
}

func TestIDsThatAreUnknownOrAnothersAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 3)
	ids := []uuid.UUID{uuid.New(), uuid.New()}
	for _, text := range w.column(`select alert_id::text from alert`) {
		ids = append(ids, uuid.MustParse(text), uuid.MustParse(text))
	}
	w.exec(`update alert set tenant_id = 'other' where title = 'title 1'`)
	w.exec(`update alert set state = 'PENDING', execution_id = null, group_key = 'g', count = '{}' where title = 'title 2'`)
	_, done := w.act(alerts.Resolve, alerts.Filter{IDs: ids})
	wantCounts(t, done, 1, 0, 1, 3)
}

func TestAnActionIDIsOfOneSelection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 9)
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	c := newCaller(t, base)
	ids := w.column(`select alert_id::text from alert order by 1`)
	ask := func(status int, more map[string]any, selection string) {
		t.Helper()
		body := map[string]any{"actionId": "0192f0c1-0000-7000-8000-" + selection}
		maps.Copy(body, more)
		c.must(status, http.MethodPost, "/alerts/resolve", body)
	}
	now, byIDs, byFilter := time.Now(), "000000000001", "000000000002"
	ask(http.StatusOK, map[string]any{"ids": ids[:2]}, byIDs)
	ask(http.StatusOK, map[string]any{"ids": []string{ids[1], ids[0], ids[1]}}, byIDs)
	ask(http.StatusConflict, map[string]any{"ids": ids[2:3]}, byIDs)
	ask(http.StatusConflict, map[string]any{"filter": map[string]any{}}, byIDs)

	filter := func(f map[string]any, upTo time.Time) map[string]any {
		return map[string]any{"filter": f, "upTo": upTo}
	}
	ask(http.StatusOK, filter(map[string]any{"application": []string{"app-3", "app-4"}}, now), byFilter)
	ask(http.StatusOK, filter(map[string]any{"application": []string{"app-4", "app-3"}}, now.UTC()), byFilter)
	ask(http.StatusConflict, filter(map[string]any{"application": []string{"app-4", "app-3"}}, now.Add(time.Second)), byFilter)
	ask(http.StatusConflict, filter(map[string]any{"route": []string{"app-3", "app-4"}}, now), byFilter)
	ask(http.StatusConflict, filter(map[string]any{"application": []string{"app-3", "app-4"}, "mine": true}, now), byFilter)
	w.wantColumn("resolved", `select count(*)::text from alert where state = 'RESOLVED'`, "4")

	// One that an older replica has written.
	w.exec(`update alert_action set selection = null`)
	ask(http.StatusOK, map[string]any{"ids": ids[2:3]}, byIDs)
}

func TestReadingIsEveryonesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 20)
	inbox := w.db.Inbox()
	mark := func(actor string, read bool, f alerts.Filter, everything bool) int64 {
		t.Helper()
		changed, err := inbox.MarkRead(t.Context(), tenant, api.ReadMark{Actor: actor, Read: read, Filter: f, Everything: everything})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	unread := func(actor string) (titles []string) {
		t.Helper()
		page, err := inbox.List(t.Context(), tenant, alerts.Query{Filter: alerts.Filter{UnreadBy: actor}, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Alerts {
			titles = append(titles, strings.TrimPrefix(a.Title, "title "))
		}
		return titles
	}
	if got := unread("ada"); len(got) != 20 {
		t.Fatalf("at first, unread are %v", got)
	}
	var middle time.Time
	if err := w.conn.QueryRow(t.Context(), `select fired_at + interval '500 ms' from alert where title = 'title 15'`).Scan(&middle); err != nil {
		t.Fatal(err)
	}
	f := open()
	f.UpTo = &middle
	if n := mark("ada", true, f, true); n != 15 {
		t.Errorf("marked %d as read", n)
	}
	if got := unread("ada"); !slices.Equal(got, []string{"20", "19", "18", "17", "16"}) {
		t.Errorf("unread are %v", got)
	}
	var ids []uuid.UUID
	for _, text := range w.column(`select alert_id::text from alert where title in ('title 2', 'title 18')`) {
		ids = append(ids, uuid.MustParse(text))
	}
	if n := mark("ada", true, alerts.Filter{IDs: ids}, false); n != 1 {
		t.Errorf("marked %d as read", n)
	}
	if n := mark("ada", false, alerts.Filter{IDs: ids}, false); n != 2 {
		t.Errorf("marked %d as unread", n)
	}
	if got := unread("ada"); !slices.Equal(got, []string{"20", "19", "18", "17", "16", "2"}) {
		t.Errorf("unread are %v", got)
	}
	notes, err := inbox.Annotate(t.Context(), tenant, api.Reader{Actor: "ada"}, ids)
	if err != nil || len(notes) != 2 || !notes[ids[0]].Unread || !notes[ids[1]].Unread {
		t.Errorf("annotations %+v, %v", notes, err)
	}
	now := time.Now()
	f.UpTo = &now
	if n := mark("ada", true, f, true); n != 6 {
		t.Errorf("marked %d as read", n)
	}
	if got := unread("ada"); len(got) != 0 {
		t.Errorf("unread are %v", got)
	}
	w.wantColumn("rows kept", `select count(*)::text from alert_read`, "0")
	if got := unread("bob"); len(got) != 20 {
		t.Errorf("another has read %d", 20-len(got))
	}
}

func TestMineIsByTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := rules.Target{Kind: rules.TargetUser, Name: "ada"}
	mine := w.ruleOf(rules.Definition{Name: "mine", Targets: []rules.Target{{Kind: rules.TargetTeam, Name: "ops"}, ada}})
	other := w.ruleOf(rules.Definition{Name: "other", Targets: []rules.Target{{Kind: rules.TargetTeam, Name: "ada"}}})
	w.plenty(mine, 3)
	w.plenty(other, 3)
	list, err := w.db.Inbox().List(t.Context(), tenant, alerts.Query{Filter: alerts.Filter{MineOf: []rules.Target{ada}}, Limit: 10})
	if err != nil || len(list.Alerts) != 3 || list.Alerts[0].RuleID != mine.ID {
		t.Errorf("mine are %d, %v", len(list.Alerts), err)
	}
	list, err = w.db.Inbox().List(t.Context(), tenant, alerts.Query{Filter: alerts.Filter{MineOf: []rules.Target{}}, Limit: 10})
	if err != nil || len(list.Alerts) != 0 {
		t.Errorf("nobody's are %d, %v", len(list.Alerts), err)
	}
}

func TestGroupsArePagedWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.rule(), w.rule()
	w.plenty(first, 100)
	w.plenty(second, 30)
	// Several groups with the same newest instant.
	w.exec(`update alert set fired_at = date_trunc('minute', fired_at) - interval '1 minute'`)
	w.exec(`update alert set signature = 'T' where rule_id = $1 and title = 'title 7'`, first.ID)
	for by, want := range map[alerts.Fold]int{alerts.ByRule: 2, alerts.BySignature: 51} {
		seen := map[string]int64{}
		var after *alerts.GroupMark
		for {
			page, err := w.db.Inbox().Groups(t.Context(), tenant, api.GroupQuery{By: by, Filter: open(), Limit: 7, Actor: "ada", After: after})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range page {
				if _, twice := seen[g.Key]; twice {
					t.Errorf("group %q comes twice", g.Key)
				}
				seen[g.Key] = g.Counts.Firing + g.Counts.Resolved
				after = &alerts.GroupMark{NewestAt: g.Newest.FiredAt, Key: g.Key}
			}
			if len(page) < 7 {
				break
			}
		}
		var sum int64
		for _, n := range seen {
			sum += n
		}
		if len(seen) != want || sum != 130 {
			t.Errorf("by %s: %d groups of %d alerts", by, len(seen), sum)
		}
		if by == alerts.BySignature && seen["T"] != 1 {
			t.Errorf("the alert of its own signature is in group %v", seen)
		}
	}
	list, err := w.db.Inbox().List(t.Context(), tenant, alerts.Query{Filter: alerts.Filter{Signatures: []string{"T"}}, Limit: 10})
	if err != nil || len(list.Alerts) != 1 {
		t.Errorf("the group opens to %d alerts, %v", len(list.Alerts), err)
	}
}

func TestDeliveriesAreSummedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("a"), w.webhook("b"))
	w.fail(time.Now().Add(time.Second).UnixNano(), "x")
	w.tickUntil(1)
	w.exec(`insert into settlement (notification_id, tenant_id, status)
select n.notification_id, n.tenant_id, 'DELIVERED' from notification n join webhook w using (webhook_id) where w.name = 'a'`)
	w.exec(`delete from outbox o using settlement s where s.notification_id = o.notification_id`)
	w.exec(`update outbox set attempts = 2`)
	a := w.firing()[0]
	notes, err := w.db.Inbox().Annotate(t.Context(), tenant, api.Reader{Actor: "ada"}, []uuid.UUID{a.ID})
	if err != nil {
		t.Fatal(err)
	}
	d := notes[a.ID].Delivery
	if d.Total != 2 || d.Delivered != 1 || d.Retrying != 1 || d.Failed != 0 || d.NextAttemptAt == nil {
		t.Errorf("summary %+v", d)
	}
	w.wantColumn("signature", `select signature from alert`, "ConnectException: ERP refused")
}

func TestListsAreStableWhileAlertsArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.plenty(rule, 500)
	seen := map[uuid.UUID]bool{}
	var before *alerts.Mark
	for {
		page, err := w.db.Inbox().List(t.Context(), tenant, alerts.Query{Before: before, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Alerts {
			if seen[a.ID] {
				t.Errorf("%s comes twice", a.Title)
			}
			seen[a.ID] = true
		}
		if before = page.Next; before == nil {
			break
		}
		w.exec(`
insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id, start_time_ns, application, route, exchange)
select gen_random_uuid(), $1, $2, 1, 'CRITICAL', 'FIRING', 'new', 'm', gen_random_uuid(), 1, 'a', 'r', '{}' from generate_series(1, 5)`, tenant, rule.ID)
	}
	if len(seen) != 500 {
		t.Errorf("the pages hold %d of 500 alerts", len(seen))
	}
}

func TestWhatChangedSinceAnEventIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plenty(w.rule(), 10)
	inbox := w.db.Inbox()
	states := func() string {
		t.Helper()
		state, err := w.db.InboxStates(time.Now).InboxState(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return state.Fingerprint
	}
	want := func(since string, n int64, known bool) {
		t.Helper()
		if got, ok, err := inbox.ChangedSince(t.Context(), tenant, since, 7); err != nil || got != n || ok != known {
			t.Errorf("since %q: %d, %v, %v, want %d, %v", since, got, ok, err, n, known)
		}
	}
	seen := states()
	want(seen, 0, true)
	w.act(alerts.Acknowledge, alerts.Filter{Applications: []string{"app-1"}})
	want(seen, 2, true)
	w.act(alerts.Resolve, open())
	want(seen, 7, true)
	want(states(), 0, true)
	for _, odd := range []string{"", "x", "-1", "99999999999999999999-0", "1;select"} {
		want(odd, 0, false)
	}
	if n, _, err := inbox.ChangedSince(t.Context(), "other", "0-0", 7); err != nil || n != 0 {
		t.Errorf("another tenant sees %d, %v", n, err)
	}
}
