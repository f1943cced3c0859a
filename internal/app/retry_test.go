package app_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/app"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

const actor = "ada"

// answers makes the receiver respond with a status.
func (w *world) answers(status int) {
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) })
}

// one returns the first value that a query returns.
func (w *world) one(sql string, args ...any) uuid.UUID {
	w.t.Helper()
	values := w.column(sql, args...)
	if len(values) == 0 {
		w.t.Fatalf("%s: no row", sql)
	}
	return uuid.MustParse(values[0])
}

const (
	anyNotification = `select notification_id::text from notification where reason <> 'DIGEST' order by notification_id limit 1`
	theDigest       = `select notification_id::text from digest`
)

func (w *world) retry(id uuid.UUID) error {
	_, err := w.db.Record(nil).Retry(w.t.Context(), tenant, id, actor)
	return err
}

func (w *world) retryAll(order api.RetryOrder) api.Retried {
	w.t.Helper()
	order.Actor = actor
	done, _, err := w.db.Record(nil).RetryAll(w.t.Context(), tenant, order)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func TestRetryOfWhatIsSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		was    string
	}{
		"refused":   {http.StatusBadRequest, "FAILED 1"},
		"delivered": {http.StatusOK, "DELIVERED 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.answers(c.status)
			w.raiseFor(w.webhook("ops"), "a")
			w.deliver()
			w.wantColumn("before", statuses, c.was)
			id := w.one(anyNotification)
			const first = `select a::text from attempt_history a where attempt = 1 and finished_at is not null`
			recorded := w.column(first)
			if len(recorded) != 1 {
				t.Fatalf("recorded %q", recorded)
			}
			w.answers(http.StatusOK)
			for range 2 { // for the second it is already done
				if err := w.retry(id); err != nil {
					t.Fatal(err)
				}
			}
			w.wantColumn("after the retry", statuses, "RETRYING 1")
			w.wantColumn("its first attempt", first, recorded...)
			w.deliver()
			w.wantColumn("its first attempt, with the second", first, recorded...)
			w.wantColumn("after the delivery", statuses, "DELIVERED 1")
			w.wantColumn("attempts", `select attempt::text from attempt_history order by attempt`, "1", "2")
			if ids := w.receiver.webhookIDs(); !slices.Equal(ids, []string{id.String(), id.String() + "-r1"}) {
				t.Errorf("webhook-ids %q", ids)
			}
			record, err := w.db.Record(nil).Get(t.Context(), tenant, id)
			if err != nil || len(record.Retries) != 1 || record.Retries[0].By != actor || len(record.History) != 2 {
				t.Errorf("record %+v, %v", record, err)
			}
			if err := w.retry(id); err != nil {
				t.Fatal(err)
			}
			w.deliver()
			if ids := w.receiver.webhookIDs(); ids[len(ids)-1] != id.String()+"-r2" {
				t.Errorf("webhook-ids %q", ids)
			}
		})
	}
}

func TestRetryRestartsTheSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadGateway)
	w.raiseFor(w.webhook("ops"), "a")
	id := w.one(anyNotification)
	exhaust := func(from int) {
		t.Helper()
		for range 6 - from {
			w.deliver()
			w.exec(`update outbox set due_at = now(), ready_at = now()`)
			w.forgive()
		}
	}
	for range 3 {
		w.deliver()
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.forgive()
	}
	w.exec(`update outbox set due_at = now() + interval '1 day', ready_at = now() + interval '1 day'`)
	if err := w.retry(id); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("due now, nothing counted", `select (due_at <= now())::text || counted || generation from outbox`, "true01")
	exhaust(0)
	w.wantColumn("exhausted once more", statuses, "EXHAUSTED 1")
	w.wantColumn("attempts", `select count(*)::text from attempt_history`, "9")
	if done := w.retryAll(api.RetryOrder{Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Exhausted}}}); done != (api.Retried{Retried: 1}) {
		t.Errorf("%+v", done)
	}
	w.wantColumn("bodies", `select count(*)::text from notification_body`, "1")
	exhaust(0)
	w.wantColumn("attempts", `select count(*)::text from attempt_history`, "15")
}

// TestFallbackIsRenderedAgain lets a user send again what waits with a fallback for its body: the
// next body is a new one, with an instant of its own, and retention deletes it when it is old
// itself.
func TestFallbackIsRenderedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadGateway)
	w.raiseFor(w.webhook("ops"), "a")
	w.deliver()
	w.exec(`update notification_body set problem = 'a fallback', written_at = written_at - interval '1 min'`)
	w.exec(`update outbox set body_at = body_at - interval '1 min', due_at = now() + interval '1 h'`)
	if err := w.retry(w.one(anyNotification)); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("the fallback", `select problem from notification_body`)
	w.answers(http.StatusOK)
	w.deliver()
	w.wantColumn("written with its attempt", `select (b.written_at = s.started_at)::text from notification_body b join settlement s using (notification_id)`, "true")
}

func TestRefusedBodyIsRenderedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bodies []string
	w.receiver.tap = func(b []byte) { bodies = append(bodies, string(b)) }
	hook := w.webhook("ops")
	w.answers(http.StatusBadRequest)
	w.raiseFor(hook, "a")
	w.deliver()
	w.exec(`update webhook set version = version + 1, body_template = '{"own": "{{alert.id}}"}'`)
	if err := w.retry(w.one(anyNotification)); err != nil {
		t.Fatal(err)
	}
	w.answers(http.StatusOK)
	w.deliver()
	// The body of the failed attempt has been deleted: it is not derived from another body.
	head := func(d *notify.Delivery) notify.RequestHead { return notify.RequestHead{BodyBytes: len(d.Body.Content)} }
	record, err := w.db.Record(head).Get(t.Context(), tenant, w.one(anyNotification))
	if err != nil || len(record.History) != 2 || record.History[0].Request != nil || record.History[1].Request == nil ||
		record.History[1].Request.BodyBytes != len(bodies[1]) {
		t.Errorf("history %+v, %v", record.History, err)
	}
	w.exec(`update webhook set version = version + 1, body_template = ''`)
	if err := w.retry(w.one(anyNotification)); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if len(bodies) != 3 || !strings.HasPrefix(bodies[1], `{"own"`) || bodies[0] == bodies[1] {
		t.Fatalf("bodies %q", bodies)
	}
	// The failed attempt is kept, but a body that was delivered since is not rendered again for it.
	if bodies[2] != bodies[1] {
		t.Errorf("the body changed: %q", bodies)
	}
}

func TestRetryToAWebhookThatTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.answers(http.StatusGone)
	w.raiseFor(hook, "a")
	w.deliver()
	id := w.one(anyNotification)
	if err := w.retry(id); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "enable it") {
		t.Errorf("off: %v", err)
	}
	if done := w.retryAll(api.RetryOrder{IDs: []uuid.UUID{id}}); done != (api.Retried{Skipped: 1}) {
		t.Errorf("off, in bulk: %+v", done)
	}
	w.exec(`update webhook set deleted_at = now()`)
	if err := w.retry(id); fault.KindOf(err) != fault.Conflict {
		t.Errorf("deleted: %v", err)
	}
	if err := w.retry(w.newID()); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown: %v", err)
	}
	if _, err := w.db.Record(nil).Retry(t.Context(), "another", id, actor); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of another tenant: %v", err)
	}
	w.wantColumn("statuses", statuses, "RETRYING 1")
}

func TestTwoPeopleRetryAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadRequest)
	hook := w.digesting(notify.KindGeneric, 5, 0)
	w.storm(hook, 5)
	w.deliver()
	w.storm(hook, 6)
	w.deliver()
	w.wantColumn("before", statuses, "FAILED 12")
	alone := w.one(`select notification_id::text from notification where reason <> 'DIGEST'
		and notification_id not in (select notification_id from digest_member) limit 1`)
	member := w.one(`select notification_id::text from digest_member limit 1`)
	everything := api.RetryOrder{Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Failed}}, Actor: actor}
	const people = 6
	ended := make(chan error, 3*people)
	for range people {
		go func() { ended <- w.retry(alone) }()
		go func() { ended <- w.retry(member) }()
		go func() {
			_, _, err := w.db.Record(nil).RetryAll(t.Context(), tenant, everything)
			ended <- err
		}()
	}
	for range 3 * people {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("each once", `select distinct generation::text from outbox`, "1")
	w.wantColumn("retries", `select distinct generation::text from retry`, "1")
	w.wantColumn("in no message or two", loose)
	w.wantColumn("nothing is settled", `select notification_id::text from settlement`)
}

func TestRetryRacesWithASettlement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	claimed := w.claim()[0]
	id := claimed.NotificationID
	if err := w.retry(id); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "being made") {
		t.Errorf("while an attempt is under way: %v", err)
	}
	if done := w.retryAll(api.RetryOrder{IDs: []uuid.UUID{id}}); done != (api.Retried{Skipped: 1}) {
		t.Errorf("the same in bulk: %+v", done)
	}
	// The claiming replica is slow, its lease expires, and a user does not wait for it.
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	if err := w.retry(id); err != nil {
		t.Fatal(err)
	}
	for _, s := range []dispatch.Settlement{
		settlement(&claimed, notify.VerdictRetry, notify.Retrying), settlement(&claimed, notify.VerdictRefused, notify.Failed),
		settlement(&claimed, notify.VerdictDelivered, notify.Delivered),
	} {
		if err := w.settle(s); !errors.Is(err, notify.ErrFenced) {
			t.Errorf("settlement of the former generation: %v", err)
		}
	}
	w.wantColumn("still open", `select generation::text from outbox`, "1")
	again := w.claim()[0]
	if again.Generation != 1 || again.Attempt != 2 || again.CountedAttempts != 0 || again.MessageID() != id.String()+"-r1" {
		t.Errorf("claimed %+v", again)
	}
	// A late success of this generation ends it.
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	_ = w.claim()
	if err := w.settle(settlement(&again, notify.VerdictDelivered, notify.Delivered)); !errors.Is(err, notify.ErrFenced) {
		t.Errorf("late success: %v", err)
	}
	w.wantColumn("ended", statuses, "DELIVERED 1")
}

// TestRetriesAmongDeliveries retries continuously while dispatchers work, and checks that nothing
// is lost or queued twice.
func TestRetriesAmongDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	nth := 0
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if nth++; nth%3 != 0 {
			rw.WriteHeader([]int{http.StatusBadRequest, http.StatusBadGateway}[nth%2])
		}
	})
	hook := w.digesting(notify.KindGeneric, 20, 0)
	w.storm(hook, 18)
	w.deliver()
	w.storm(hook, 50)
	order := api.RetryOrder{Actor: actor, Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Failed, notify.Exhausted, notify.Retrying}}}
	ended := make(chan error, 4)
	for range 2 {
		d := w.newDispatcher(dispatch.Options{})
		go func() {
			for range 40 {
				if _, err := d.Tick(t.Context()); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		go func() {
			for range 40 {
				if _, _, err := w.db.Record(nil).RetryAll(t.Context(), tenant, order); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range 4 {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	w.wantColumn("in no message or two", loose)
	w.wantColumn("generations", `select o.notification_id::text from outbox o
		where generation <> coalesce((select max(y.generation) from retry y where y.notification_id = o.notification_id), 0)`)
	w.answers(http.StatusOK)
	w.retryAll(order)
	w.until("all is delivered", func() bool {
		w.deliver()
		return len(w.column(stillOpen)) == 0
	})
	w.wantColumn("statuses", `select distinct status from notification_status`, "DELIVERED")
}

func TestRetryOfDigests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bodies []string
	w.receiver.tap = func(b []byte) { bodies = append(bodies, string(b)) }
	w.answers(http.StatusBadRequest)
	w.storm(w.digesting(notify.KindGeneric, 20, 0), 30)
	w.deliver()
	member, digest := w.one(`select notification_id::text from digest_member limit 1`), w.one(theDigest)
	alert := w.column(`select alert_id::text from notification where notification_id = $1`, member)[0]

	// Retried by itself, a member leaves the digest: it has a status of its own.
	if err := w.retry(member); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("statuses", statuses, "FAILED 30", "PENDING 1")
	w.answers(http.StatusOK)
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 1", "FAILED 30")
	if !strings.Contains(bodies[1], `"alert.fired"`) || !strings.Contains(bodies[1], alert) {
		t.Errorf("the member was sent as %s", bodies[1])
	}

	// Retried as a whole after a failure, the digest is rendered again, without the member that
	// left.
	if done := w.retryAll(api.RetryOrder{Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Failed}}}); done != (api.Retried{Retried: 1}) {
		t.Errorf("%+v, want the digest as one message", done)
	}
	// While it is queued, retrying a member makes its digest due, and the member does not leave.
	w.wantColumn("statuses", statuses, "DELIVERED 1", "RETRYING 30")
	if err := w.retry(w.one(`select notification_id::text from digest_member limit 1`)); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	w.wantColumn("statuses", statuses, "DELIVERED 31")
	if len(bodies) != 3 || strings.Contains(bodies[2], alert) || !strings.Contains(bodies[2], `"size":29`) {
		t.Errorf("the digest was sent as %.300s", bodies[len(bodies)-1])
	}
	if ids := w.receiver.webhookIDs(); !slices.Equal(ids, []string{digest.String(), member.String() + "-r1", digest.String() + "-r1"}) {
		t.Errorf("webhook-ids %q", ids)
	}
	w.wantColumn("in no message or two", loose)
	got, err := w.db.Record(nil).OfAlert(t.Context(), tenant, uuid.MustParse(alert))
	if err != nil || len(got) != 1 || got[0].DigestID != nil || got[0].Attempts != 1 || got[0].AlertTitle == "" {
		t.Errorf("record of the one that left %+v, %v", got, err)
	}
}

// TestManyRetriesAreGathered checks that a retry of everything does not cause a storm either, and
// that a single retry by a user is sent as a message of its own.
func TestManyRetriesAreGathered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.digesting(notify.KindGeneric, 0, 0)
	w.answers(http.StatusBadRequest)
	w.storm(hook, 40)
	w.until("all is refused", func() bool {
		w.deliver()
		return len(w.column(stillOpen)) == 0
	})
	w.exec(`update webhook set digest_above = 20`)
	if err := w.retry(w.one(anyNotification)); err != nil {
		t.Fatal(err)
	}
	failed := api.RetryOrder{Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Failed}}}
	if done := w.retryAll(failed); done != (api.Retried{Retried: 39}) {
		t.Errorf("%+v", done)
	}
	if done := w.retryAll(failed); done != (api.Retried{}) {
		t.Errorf("once more: %+v", done)
	}
	w.answers(http.StatusOK)
	w.deliver()
	w.wantColumn("digests", digestSizes, "39")
	w.wantColumn("statuses", statuses, "DELIVERED 41")
	w.wantWhole()
	timeline, _, err := w.db.Record(nil).List(t.Context(), tenant, api.NotificationQuery{
		NotificationFilter: api.NotificationFilter{Digests: []uuid.UUID{w.one(theDigest)}}, Limit: 200,
	})
	if err != nil || len(timeline) != 39 || timeline[0].Attempts != 2 || timeline[0].DigestSize != 39 {
		t.Errorf("%d members, %v", len(timeline), err)
	}
}

func TestRetryAllByFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadRequest)
	one, two := w.digesting(notify.KindGeneric, 0, 0), w.digesting(notify.KindGeneric, 0, 0)
	w.storm(one, 3)
	w.storm(two, 4)
	w.until("all is refused", func() bool {
		w.deliver()
		return len(w.column(stillOpen)) == 0
	})
	rule := w.one(`select rule_id::text from rule_webhook where webhook_id = $1`, one)
	failed := []notify.Status{notify.Failed}
	future := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		filter api.NotificationFilter
		want   int
	}{
		"another time":    {api.NotificationFilter{Statuses: failed, From: &future}, 0},
		"another status":  {api.NotificationFilter{Statuses: []notify.Status{notify.Exhausted}}, 0},
		"another reason":  {api.NotificationFilter{Statuses: failed, Reasons: []notify.Reason{notify.ReasonResolved}}, 0},
		"another webhook": {api.NotificationFilter{Statuses: failed, Webhooks: []uuid.UUID{w.newID()}}, 0},
		"both":            {api.NotificationFilter{Statuses: failed, Rules: []uuid.UUID{rule}, Webhooks: []uuid.UUID{one}, To: &future}, 3},
	} {
		if got := w.retryAll(api.RetryOrder{Filter: c.filter}); got.Retried != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
	w.wantColumn("statuses", statuses, "FAILED 4", "RETRYING 3")
}

func TestRetryOfManyIsOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 20_000
	w.storm(w.digesting(notify.KindGeneric, 0, 0), n)
	w.exec(`with gone as (delete from outbox returning notification_id)
		insert into settlement (notification_id, tenant_id, status) select notification_id, $1, 'EXHAUSTED' from gone`, tenant)
	began := time.Now()
	if done := w.retryAll(api.RetryOrder{Filter: api.NotificationFilter{Statuses: []notify.Status{notify.Exhausted}}}); done != (api.Retried{Retried: n}) {
		t.Errorf("%+v", done)
	}
	t.Logf("%d within %v", n, time.Since(began).Round(time.Millisecond))
	w.wantColumn("one instant", `select count(distinct retried_at)::text from retry`, "1")
}

// TestRetryWakesTheDispatcher has a replica that polls its outbox once an hour.
func TestRetryWakesTheDispatcher(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadRequest)
	w.raiseFor(w.webhook("ops"), "a")
	w.deliver()
	w.answers(http.StatusOK)
	base, _ := w.replica(func(o *app.Options) { o.Roles, o.PollInterval = []app.Role{app.RoleAPI, app.RoleDispatch}, time.Hour })
	id := w.one(anyNotification)
	for i, order := range []struct {
		path string
		body any
	}{{"/" + id.String() + "/retry", nil}, {"/retry", map[string]any{"filter": map[string]any{"status": []string{"FAILED"}}}}} {
		if status, answer := call(t, http.MethodPost, base+"/api/v1/notifications"+order.path, order.body); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		w.until("it is delivered", func() bool { return len(w.receiver.webhookIDs()) == i+2 })
		w.until("it is settled", func() bool { return len(w.column(stillOpen)) == 0 })
		w.exec(`update settlement set status = 'FAILED'`)
	}
}

// TestWakeUpsNameTheirWebhooks checks that the wake-ups after a person's retries, and after the leases of a dead replica are
// released, name the webhook. Without that, a dispatcher whose looks at the whole queue are slow finds the message only by
// its next one, which may be minutes later.
func TestWakeUpsNameTheirWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answers(http.StatusBadRequest)
	hook := w.webhook("ops")
	w.raiseFor(hook, "a")
	w.deliver()
	base, _ := w.replica(func(o *app.Options) {
		o.Roles, o.Bus.Name = []app.Role{app.RoleAPI}, "heard"
		// A replica declares none dead before its own heartbeats have succeeded for as long.
		o.HeartbeatInterval, o.DeadAfter, o.DeadCheckInterval = 200*time.Millisecond, 3*time.Second, 100*time.Millisecond
	})
	wakeUp := w.listen("heard")
	retry := func(path string, body any) func() {
		return func() {
			if status, answer := call(t, http.MethodPost, base+"/api/v1/notifications"+path, body); status != http.StatusOK {
				t.Errorf("%d %v", status, answer)
			}
		}
	}
	all := map[string]any{"filter": map[string]any{"status": []string{"FAILED"}}}
	for _, c := range []struct {
		after string
		do    func()
	}{
		{"a retry", retry("/"+w.one(anyNotification).String()+"/retry", nil)},
		{"a retry of all", retry("/retry", all)},
		{"the death of a replica", func() {
			w.exec(`update outbox set claimed_by = 'dead', claim_token = 7, due_at = now() + interval '1 h'`)
			w.exec(`insert into replica (replica_id, host, pid, version, roles, beat_at) values ('dead', '', 1, '', '{}', now() - interval '1 h')`)
		}},
	} {
		c.do()
		if text := wakeUp(); !strings.Contains(text, hook.String()) {
			t.Errorf("after %s, the wake-up %s does not name the webhook %s", c.after, text, hook)
		}
		if c.after == "a retry" {
			w.exec(`with gone as (delete from outbox returning notification_id)
				insert into settlement (notification_id, tenant_id, status) select notification_id, $1, 'FAILED' from gone`, tenant)
		}
	}
	w.exec(`update outbox set claimed_by = 'leaving', claim_token = 7, due_at = now() + interval '1 h'`)
	released, err := w.db.Replicas().Leave(t.Context(), "leaving")
	if err != nil || released.Notifications != 1 || !slices.Equal(released.Webhooks, []uuid.UUID{hook}) {
		t.Errorf("a replica that leaves releases %+v, %v", released, err)
	}
}

// TestTasksNameTheWebhooksOfOperators does the same for the tasks that notify operators.
func TestTasksNameTheWebhooksOfOperators(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]string{
		"open breaker": `update webhook_state set failures = 9, openings = 1, opened_at = now() - interval '11 min', open_until = now() + interval '1 h' where webhook_id = $1`,
		"held messages": `with state as (update webhook_state set holds = 1, held_since = now() - interval '30 days' where webhook_id = $1),
			old as (update outbox set since = now() - interval '30 days', due_at = now() + interval '1 h', ready_at = now() + interval '1 h' where webhook_id = $1)
			update webhook set held_until = now() + interval '1 h' where webhook_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			hook := w.webhook("ops")
			w.answers(http.StatusServiceUnavailable)
			w.raiseFor(hook, "a")
			w.deliver()
			w.exec(trouble, hook)
			wakeUp := w.listen("heard")
			w.replica(func(o *app.Options) { o.Roles, o.Bus.Name = []app.Role{app.RoleDispatch}, "heard" })
			operators := w.one(`select webhook_id::text from webhook where operators`)
			if text := wakeUp(); !strings.Contains(text, operators.String()) {
				t.Errorf("the wake-up %s does not name the webhook %s", text, operators)
			}
		})
	}
}

// listen returns a function that waits for the next wake-up of a bus over Postgres.
func (w *world) listen(bus string) func() string {
	w.t.Helper()
	conn := pgtest.Conn(w.t, w.pgURL)
	if _, err := conn.Exec(w.t.Context(), `listen "`+bus+`"`); err != nil {
		w.t.Fatal(err)
	}
	return func() string {
		w.t.Helper()
		ctx, cancel := context.WithTimeout(w.t.Context(), waitLimit)
		defer cancel()
		for {
			heard, err := conn.WaitForNotification(ctx)
			if err != nil {
				w.t.Fatal(err)
			}
			if !strings.Contains(heard.Payload, `"probe"`) {
				return heard.Payload
			}
		}
	}
}
