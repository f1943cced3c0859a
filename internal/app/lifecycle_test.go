package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// received is what a receiver was sent about an event.
type received struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		By    string `json:"by"`
		Alert struct {
			ID    string `json:"id"`
			State string `json:"state"`
		} `json:"alert"`
	} `json:"data"`
}

// listener is a receiver that records the events in order, by path and alert.
type listener struct {
	url string

	mu   sync.Mutex
	got  map[string][]received
	down func(path string, t received) bool
}

func newListener(tb testing.TB) *listener {
	tb.Helper()
	l := &listener{got: map[string][]received{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var t received
		if err != nil || json.Unmarshal(body, &t) != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down != nil && l.down(r.URL.Path, t) {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		l.got[r.URL.Path] = append(l.got[r.URL.Path], t)
	}))
	tb.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *listener) fails(down func(path string, t received) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// types returns the types of the events that were sent to a path.
func (l *listener) types(path string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var types []string
	for _, t := range l.got[path] {
		types = append(types, strings.TrimPrefix(t.Type, "alert."))
	}
	return types
}

// chooses stores a webhook of a listener with its chosen events.
func (w *world) chooses(l *listener, name string, change func(*notify.Webhook), events ...notify.Reason) uuid.UUID {
	w.t.Helper()
	hook := notify.Webhook{
		Name: name, Kind: notify.KindGeneric, URL: l.url + "/" + name, Enabled: true,
		Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent, Events: events,
	}
	if change != nil {
		change(&hook)
	}
	stored, err := w.db.Webhooks().Create(w.t.Context(), tenant, hook)
	if err != nil {
		w.t.Fatal(err)
	}
	return stored.ID
}

// raise raises an alert for each id.
func (w *world) raise(ids ...string) []uuid.UUID {
	w.t.Helper()
	w.fail(w.ch.Now(w.t), ids...)
	w.later(5 * time.Second)
	w.tick()
	var raised []uuid.UUID
	for _, id := range w.column(`select alert_id::text from alert where execution_id = any($1) order by execution_id`, ids) {
		raised = append(raised, uuid.MustParse(id))
	}
	if len(raised) != len(ids) {
		w.t.Fatalf("raised %d alerts, want %d", len(raised), len(ids))
	}
	return raised
}

func (w *world) doTo(alert uuid.UUID, action alerts.Action) {
	w.t.Helper()
	if _, err := w.db.Inbox().Act(w.t.Context(), tenant, api.AlertAction{AlertID: alert, Action: action, Actor: "ada"}); err != nil {
		w.t.Fatal(err)
	}
}

// undone performs an action and undoes it.
func (w *world) undone(action alerts.Action, alert uuid.UUID) {
	w.t.Helper()
	id, _ := w.act(action, alerts.Filter{IDs: []uuid.UUID{alert}})
	w.undo(id)
}

// deliverAll makes passes until nothing is due any more.
func (w *world) deliverAll() {
	w.t.Helper()
	// A process that writes messages wakes dispatchers; they may also find them later by
	// themselves.
	for {
		w.dispatcher.Wake(w.hooks())
		result, err := w.dispatcher.Tick(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if result.Claimed == 0 {
			return
		}
	}
}

// hasten makes messages that wait for their next attempt due.
func (w *world) hasten() {
	w.t.Helper()
	w.exec(`update outbox set due_at = now(), ready_at = now() where after_id is null`)
}

const waiting = `select n.reason from outbox o join notification n using (notification_id) where o.after_id is not null order by n.created_at`

func TestEventsReachThoseWhoChoseThem(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	all := w.chooses(l, "all", nil, notify.Events()...)
	rule := w.rule(all, w.chooses(l, "one", nil, notify.ReasonResolved), w.chooses(l, "none", nil))
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	w.deliverAll()
	w.undone(alerts.Acknowledge, alert)
	w.doTo(alert, alerts.Acknowledge)
	w.doTo(alert, alerts.Acknowledge) // changes nothing
	w.doTo(alert, alerts.Resolve)
	w.deliverAll()
	for path, want := range map[string][]string{
		"/all": {"fired", "acknowledged", "reopened", "acknowledged", "resolved"}, "/one": {"fired", "resolved"}, "/none": {"fired"},
	} {
		if got := l.types(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	var states []string
	for _, e := range l.got["/all"][1:] {
		states = append(states, e.Data.Alert.State+" by "+e.Data.By)
	}
	if want := []string{"ACKNOWLEDGED by ada", "FIRING by ada", "ACKNOWLEDGED by ada", "RESOLVED by ada"}; !slices.Equal(states, want) {
		t.Errorf("sent as %q, want %q", states, want)
	}
	var derived []string
	for _, of := range []struct {
		reason     notify.Reason
		generation int
	}{{notify.ReasonFired, 0}, {notify.ReasonAcknowledged, 0}, {notify.ReasonReopened, 0}, {notify.ReasonAcknowledged, 1}, {notify.ReasonResolved, 0}} {
		derived = append(derived, notify.ID(alert, all, of.reason, of.generation).String())
	}
	if got := w.column(`select notification_id::text from notification where webhook_id = $1 order by created_at`, all); !slices.Equal(got, derived) {
		t.Errorf("ids %q, want the derived ones %q", got, derived)
	}
	w.wantColumn("left", unsettledOutbox)
}

// The end of a snooze is one message to each webhook that was notified of the alert, whatever
// events it chose.
func TestASnoozeEndsInAMessage(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	w.armed(w.rule(w.chooses(l, "none", nil), w.chooses(l, "all", nil, notify.Events()...)), w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	w.deliverAll()
	remind := func() {
		t.Helper()
		snooze := api.Snooze{AlertID: alert, Until: new(time.Now().Add(time.Hour)), Actor: "ada"}
		if _, err := w.db.Inbox().Snooze(t.Context(), tenant, snooze); err != nil && fault.KindOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		for range 2 {
			if _, _, err := w.db.Outbox().Remind(t.Context(), new(time.Now().Add(3*time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		w.deliverAll()
	}
	remind()
	w.doTo(alert, alerts.Resolve)
	remind()
	for path, want := range map[string][]string{
		"/none": {"fired", "snooze_ended"}, "/all": {"fired", "snooze_ended", "resolved"},
	} {
		if got := l.types(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	w.wantColumn("left", unsettledOutbox)
}

// A webhook that was assigned later was not notified of the alert, and is not notified of this.
func TestEventsGoToThoseWhoWereNotified(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	rule := w.rule(w.chooses(l, "first", nil, notify.Events()...))
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	later := w.chooses(l, "later", nil, notify.Events()...)
	w.exec(`insert into rule_webhook (rule_id, webhook_id, position) values ($1, $2, 1)`, rule.ID, later)
	w.doTo(alert, alerts.Resolve)
	w.deliverAll()
	if got := l.types("/later"); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
	if got, want := l.types("/first"), []string{"fired", "resolved"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEventsWaitForEarlierMessages(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	hook := w.chooses(l, "all", nil, notify.Events()...)
	w.armed(w.rule(hook), w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	l.fails(func(string, received) bool { return true })
	w.deliverAll()
	w.doTo(alert, alerts.Acknowledge)
	w.doTo(alert, alerts.Resolve)
	w.wantColumn("waiting", waiting, "ACKNOWLEDGED", "RESOLVED")
	w.deliverAll()
	w.wantColumn("not due", statuses, "PENDING 2", "RETRYING 1")
	w.wantColumn("next attempts", `select reason || ' ' || (next_attempt_at is not null) from notification_status order by created_at`,
		"FIRED true", "ACKNOWLEDGED false", "RESOLVED false")
	_, err := w.db.Record(nil).Retry(t.Context(), tenant, notify.ID(alert, hook, notify.ReasonResolved, 0), "ada")
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("retried what waits: %v", err)
	}
	l.fails(func(_ string, t received) bool { return t.Type == "alert.acknowledged" })
	w.hasten()
	w.deliverAll()
	w.wantColumn("the second fails", waiting, "RESOLVED")
	l.fails(nil)
	w.hasten()
	w.deliverAll()
	if got, want := l.types("/all"), []string{"fired", "acknowledged", "resolved"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A message that leaves the outbox in any other way also releases the next one.
func TestEventsFollowWhateverEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, first, second uuid.UUID){
		"discarded": func(w *world, first, _ uuid.UUID) {
			if err := w.db.Record(nil).Discard(w.t.Context(), tenant, first, "ada"); err != nil {
				w.t.Fatal(err)
			}
		},
		"the one between is discarded": func(w *world, _, second uuid.UUID) {
			if err := w.db.Record(nil).Discard(w.t.Context(), tenant, second, "ada"); err != nil {
				w.t.Fatal(err)
			}
			w.deliverAll()
			w.wantColumn("it waits for the first now", waiting, "RESOLVED")
			w.hasten()
		},
		"nothing tells": func(w *world, first, _ uuid.UUID) {
			w.exec(`alter table outbox disable trigger outbox_next`)
			w.exec(`delete from outbox where notification_id = $1`, first)
			w.deliverAll()
			w.wantColumn("they wait", waiting, "ACKNOWLEDGED", "RESOLVED")
			w.exec(`alter table outbox enable trigger outbox_next`)
			if freed, err := w.db.Outbox().FreeFollowing(w.t.Context()); err != nil || len(freed) != 1 {
				w.t.Errorf("freed %v, %v; want one", freed, err)
			} else {
				w.dispatcher.Wake(freed)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newWorld(t), newListener(t)
			hook := w.chooses(l, "all", nil, notify.Events()...)
			w.armed(w.rule(hook), w.ch.Now(t)-int64(time.Minute))
			alert := w.raise("a")[0]
			l.fails(func(string, received) bool { return true })
			w.deliverAll()
			w.doTo(alert, alerts.Acknowledge)
			w.doTo(alert, alerts.Resolve)
			l.fails(nil)
			end(w, notify.ID(alert, hook, notify.ReasonFired, 0), notify.ID(alert, hook, notify.ReasonAcknowledged, 0))
			w.deliverAll()
			if got := l.types("/all"); len(got) == 0 || got[len(got)-1] != "resolved" {
				t.Errorf("got %q, want the last to be resolved", got)
			}
			w.wantColumn("waiting", waiting)
		})
	}
}

// An event waits for the digest that contains the message before it, and is not sent if that was
// too long ago.
func TestEventsWaitForDigestsAndGrowOld(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	hook := w.chooses(l, "all", func(h *notify.Webhook) { h.DigestAbove, h.EventMaxAge = 1, time.Hour }, notify.Events()...)
	w.armed(w.rule(hook), w.ch.Now(t)-int64(time.Minute))
	raised := w.raise("a", "b", "c")
	for _, alert := range raised[:2] {
		w.doTo(alert, alerts.Acknowledge)
	}
	l.fails(func(string, received) bool { return true })
	w.deliverAll()
	w.wantColumn("two wait for the digest", `select n.reason from outbox o join notification n on n.notification_id = o.after_id`, "DIGEST", "DIGEST")
	w.doTo(raised[2], alerts.Resolve)
	w.wantColumn("and one more", waiting, "ACKNOWLEDGED", "ACKNOWLEDGED", "RESOLVED")
	w.exec(`update outbox set expires_at = now() - interval '1 s' where after_id is not null`)
	l.fails(nil)
	w.hasten()
	w.deliverAll()
	if got, want := l.types("/all"), []string{"digest"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.wantColumn("ended", `select status || ' by ' || coalesce(discarded_by, '') || ' ' || coalesce(verdict, '') || ' ' || count(*) from settlement group by status, discarded_by, verdict order by 1`,
		"DELIVERED by  DELIVERED 1", "DISCARDED by Tocsin NOT_MADE 3")
	w.wantColumn("nobody is bothered", `select reason from notification where reason = 'UNDELIVERED'`)
	// A message that a user has requested is sent all the same.
	id := notify.ID(raised[2], hook, notify.ReasonResolved, 0)
	if _, err := w.db.Record(nil).Retry(t.Context(), tenant, id, "ada"); err != nil {
		t.Fatal(err)
	}
	w.deliverAll()
	if got, want := l.types("/all"), []string{"digest", "resolved"}; !slices.Equal(got, want) {
		t.Errorf("after a retry got %q, want %q", got, want)
	}
}

// A window alert that resolves by itself notifies the webhooks of the rule that chose the event,
// once each, also if a user had resolved it before and undone that.
func TestEventsOfWindows(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	w.counting(rules.Definition{NotifyOnResolve: true, WebhookIDs: webhooks(w.chooses(l, "all", nil, notify.Events()...), w.chooses(l, "none", nil))})
	w.failIn("r", "a", "b", "c")
	w.pass()
	alert := w.firing()[0].ID
	w.undone(alerts.Resolve, alert)
	w.empty()
	w.pass()
	w.deliverAll()
	for path, want := range map[string][]string{"/all": {"fired", "resolved", "reopened", "resolved"}, "/none": {"fired", "resolved"}} {
		if got := l.types(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	w.wantColumn("who", `select reason || ' ' || generation || ' ' || actor from notification n join webhook w using (webhook_id)
		where w.name = 'all' order by n.created_at`, "FIRED 0 ", "RESOLVED 0 ada", "REOPENED 0 ada", "RESOLVED 1 ")
}

// The state and its message are written together or not at all.
func TestEventsAreWrittenWithTheState(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	w.armed(w.rule(w.chooses(l, "all", nil, notify.Events()...)), w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
		create trigger refuse before insert on outbox for each row execute function refuse()`)
	if _, err := w.db.Inbox().Act(t.Context(), tenant, api.AlertAction{AlertID: alert, Action: alerts.Acknowledge, Actor: "ada"}); err == nil {
		t.Error("acknowledged, although its message cannot be written")
	}
	w.wantColumn("state", alertStates, "FIRING 1")
	w.exec(`drop trigger refuse on outbox`)
	w.doTo(alert, alerts.Acknowledge)
	w.wantColumn("messages", `select reason from notification order by created_at`, "FIRED", "ACKNOWLEDGED")
}

// A user's change to an alert waits for the lock on its open message while the holder of that lock
// waits for the alert. Postgres ends the first transaction, which is repeated and succeeds.
func TestActionThatEndsInADeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	w.armed(w.rule(w.chooses(l, "all", nil, notify.Events()...)), w.ch.Now(t)-int64(time.Minute))
	alert := w.raise("a")[0]
	held, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `set local deadlock_timeout = '1h'`); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), `select from outbox for update`); err != nil {
		t.Fatal(err)
	}
	acted := make(chan error, 1)
	go func() {
		_, err := w.db.Inbox().Act(t.Context(), tenant, api.AlertAction{AlertID: alert, Action: alerts.Resolve, Actor: "ada"})
		acted <- err
	}()
	w.until("the action waits for the message", func() bool {
		return len(w.column(`select 'waits' from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)) > 0
	})
	if _, err := held.Exec(t.Context(), `select from alert for update`); err != nil {
		t.Fatal(err)
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the action has ended", acted); err != nil {
		t.Errorf("resolve: %v", err)
	}
	w.wantColumn("state", alertStates, "RESOLVED 1")
	w.wantColumn("messages", `select reason from notification order by created_at`, "FIRED", "RESOLVED")
}

// Many users change many alerts while dispatchers deliver to a receiver that fails from time to
// time: the messages of each alert arrive in the order of the changes, and none remains.
func TestEventsArriveInOrderUnderRetries(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	hook := w.chooses(l, "all", func(h *notify.Webhook) { h.MaxConcurrent = 64 }, notify.Events()...)
	w.armed(w.rule(hook), w.ch.Now(t)-int64(time.Minute))
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = fmt.Sprintf("x%02d", i)
	}
	raised := w.raise(ids...)
	failed := map[string]int{}
	l.fails(func(_ string, t received) bool {
		failed[t.Data.Alert.ID+t.Type]++
		return failed[t.Data.Alert.ID+t.Type]%2 == 1
	})
	ctx, stop := context.WithCancel(t.Context())
	var running, people sync.WaitGroup
	policy := notify.DefaultPolicy()
	policy.Schedule = slices.Repeat([]time.Duration{time.Millisecond}, 50)
	policy.Breaker.Threshold = 1 << 20
	for i := range 3 {
		d := w.newDispatcher(dispatch.Options{Replica: fmt.Sprint("d", i), Policy: policy, Poll: 20 * time.Millisecond})
		running.Go(func() { d.Run(ctx) })
	}
	inbox := w.db.Inbox()
	for i, alert := range raised {
		people.Go(func() {
			for _, action := range []alerts.Action{alerts.Acknowledge, alerts.Resolve} {
				act := api.BulkAction{ID: w.newID(), Action: action, Actor: "ada", Filter: alerts.Filter{IDs: []uuid.UUID{alert, raised[(i+1)%len(raised)]}}}
				if _, err := inbox.ActOnMany(ctx, tenant, act); err != nil {
					t.Errorf("%s: %v", action, err)
				}
				if _, err := inbox.Undo(ctx, tenant, api.Undo{ActionID: act.ID, Actor: "ada"}); err != nil {
					t.Errorf("undo: %v", err)
				}
			}
			if _, err := inbox.Act(ctx, tenant, api.AlertAction{AlertID: alert, Action: alerts.Resolve, Actor: "ada"}); err != nil {
				t.Errorf("resolve: %v", err)
			}
		})
	}
	people.Wait()
	for deadline := time.Now().Add(time.Minute); len(w.column(unsettledOutbox)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("left after a minute: %q waiting %q", w.column(unsettledOutbox), w.column(waiting))
		}
	}
	stop()
	running.Wait()
	arrived := map[string][]string{}
	for _, e := range l.got["/all"] {
		arrived[e.Data.Alert.ID] = append(arrived[e.Data.Alert.ID], strings.ToUpper(strings.TrimPrefix(e.Type, "alert.")))
	}
	total := 0
	for _, alert := range raised {
		want := w.column(`select reason from notification where alert_id = $1 order by created_at`, alert)
		total += len(want)
		if got := arrived[alert.String()]; !slices.Equal(got, want) {
			t.Errorf("alert %s: arrived %q, written %q", alert, got, want)
		}
	}
	if total < 3*len(raised) || len(slices.Collect(maps.Keys(arrived))) != len(raised) {
		t.Errorf("%d messages of %d alerts: too few to prove anything", total, len(arrived))
	}
}

// The database derives ids in the same way as Go.
func TestDerivedIDsAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(r *rapid.T) {
		id := func(name string) uuid.UUID { return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, name)) }
		alert, hook, generation := id("alert"), id("webhook"), rapid.IntRange(0, 1<<40).Draw(r, "generation")
		reason := rapid.SampledFrom(notify.Events()).Draw(r, "reason")
		got := w.column(`select notification_id($1, $2, $3, $4)::text`, alert, hook, string(reason), generation)
		if want := notify.ID(alert, hook, reason, generation).String(); got[0] != want {
			r.Fatalf("got %s, want %s", got[0], want)
		}
	})
}

// The end of a problem that operators were notified of is an event, too.
func TestEventsOfAlertsAboutWebhooks(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), newListener(t)
	w.chooses(l, "operators", func(h *notify.Webhook) { h.Operators = true }, notify.ReasonResolved)
	hook := w.webhook("ops")
	w.status(http.StatusGone)
	w.raiseFor(hook, "a")
	w.deliverAll()
	w.receiver.respond(nil)
	if _, err := w.db.Webhooks().SetEnabled(t.Context(), tenant, hook, true); err != nil {
		t.Fatal(err)
	}
	w.deliverAll()
	if got, want := l.types("/operators"), []string{"webhook.off", "resolved"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
