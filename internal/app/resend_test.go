package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/pgtest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/resend"
	"tocsin/notify/webhook"
)

// alertmanagerWorld is a world whose only webhook is for an Alertmanager.
type alertmanagerWorld struct {
	*world

	service  *presettest.Receiver
	resender *resend.Resender
	hook     notify.Webhook
	// beforeAnswer is called before the next message is answered that the service has accepted.
	beforeAnswer atomic.Pointer[func()]
}

func newAlertmanagerWorld(t *testing.T) *alertmanagerWorld {
	t.Helper()
	w := &alertmanagerWorld{world: newWorld(t)}
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback(), Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	w.dispatcher = w.newDispatcher(dispatch.Options{Sender: sender, Renderer: renderer})
	w.service = presettest.New(set.Get("alertmanager"))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		w.service.ServeHTTP(answer, r)
		if r.Method == http.MethodPost {
			if before := w.beforeAnswer.Swap(nil); before != nil {
				(*before)()
			}
		}
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	w.hook, err = w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
		Name: "alertmanager", Kind: notify.KindGeneric, Preset: "alertmanager", Inputs: map[string]string{"server": server.URL}, Enabled: true,
		Timeout: time.Minute, MaxConcurrent: 4, Events: set.Get("alertmanager").Takes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.resender, err = resend.New(resend.Options{
		Store: w.db.Outbox(), Receivers: sender, Presets: set.Speaking(preset.ProtocolAlertmanager),
		Due: func(context.Context, uuid.UUID, int) {}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.resender.Tick(t.Context())
	w.armed(w.rule(w.hook.ID), w.ch.Now(t)-int64(time.Minute))
	return w
}

// wantStates checks what the service knows of alerts.
func (w *alertmanagerWorld) wantStates(what string, raised []uuid.UUID, want ...string) {
	w.t.Helper()
	for i, alert := range raised {
		if got := w.service.State(alert.String()); got != want[i] {
			w.t.Errorf("%s: alert %d is %q, want %q", what, i, got, want[i])
		}
	}
	if refusals := w.service.Refusals(); len(refusals) > 0 {
		w.t.Errorf("%s: refused %v", what, refusals)
	}
}

// TestOpenAlertsAreSentAgainAfterARestart restarts an Alertmanager, which forgets what was open.
// Open alerts come back, resolved ones do not, and an end that comes meanwhile is not undone.
func TestOpenAlertsAreSentAgainAfterARestart(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a", "b", "c")
	w.deliverAll()
	w.doTo(raised[2], alerts.Resolve)
	w.deliverAll()
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("before", raised, "open", "open", "closed")
	if n := len(w.service.Messages()); n != 4 {
		t.Fatalf("%d messages before a restart, want 4", n)
	}

	w.service.Restart()
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("after a restart", raised, "open", "open", "")
	w.wantColumn("who sent again", `select retried_by || ' ' || count(*) from retry group by retried_by`, "Tocsin 2")
	w.resender.Tick(t.Context())
	w.deliverAll()
	if n := len(w.service.Messages()); n != 6 {
		t.Errorf("%d messages after a restart, want 6: two are sent again, once", n)
	}

	// The end of an alert is written while its message waits to be sent again: it comes after it.
	w.service.Restart()
	w.resender.Tick(t.Context())
	w.doTo(raised[0], alerts.Resolve)
	w.deliverAll()
	w.wantStates("resolved after it was due again", raised, "closed", "open", "")

	// What counts is when the attempt began: its outcome may be stored long after the restart.
	w.exec(`update settlement set settled_at = now() + interval '1 hour'`)
	w.service.Restart()
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("settled after the restart", raised, "", "open", "")
}

// TestSendingAgainStopsAnywhere interrupts it after the restart was stored, and lets two replicas
// do it at once: each alert is sent again once.
func TestSendingAgainStopsAnywhere(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a", "b")
	w.deliverAll()
	w.service.Restart()
	hook := w.hook.ID
	if restarted, err := w.db.Outbox().Answered(t.Context(), hook, "a process that answered just before this one died"); err != nil || !restarted {
		t.Fatalf("stored %v, %v", restarted, err)
	}
	var replicas sync.WaitGroup
	for range 2 {
		replicas.Go(func() { w.resender.Tick(t.Context()) })
	}
	replicas.Wait()
	w.resender.Tick(t.Context())
	w.wantColumn("generations", `select generation::text from retry order by 1`, "1", "1")
	w.deliverAll()
	w.wantStates("after it", raised, "open", "open")

	// Processes that take turns behind one address are no restarts.
	for i := range 40 {
		restarted, err := w.db.Outbox().Answered(t.Context(), hook, strconv.Itoa(i%3))
		if err != nil || restarted != (i < 3) {
			t.Fatalf("answer %d: restarted %v, %v", i, restarted, err)
		}
	}
}

// TestALockedRowDelaysNoOtherThatIsSentAgain has somebody keep a row locked, as an open transaction in psql does.
// What needs another row is sent again meanwhile, and the rest when the row is free.
func TestALockedRowDelaysNoOtherThatIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock  string
		while []string
	}{
		"an alert":             {`select from alert where execution_id = 'a' for update`, []string{"", "open"}},
		"the webhook":          {`select from webhook for update`, []string{"", ""}},
		"state of the webhook": {`select from webhook_state for update`, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAlertmanagerWorld(t)
			raised := w.raise("a", "b")
			w.deliverAll()
			w.service.Restart()
			tx, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tag, err := tx.Exec(t.Context(), c.lock); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if w.resender.Tick(ctx); ctx.Err() != nil {
				t.Error("the resender waits for the row")
			}
			w.deliverAll()
			w.wantStates("while the row is locked", raised, c.while...)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.resender.Tick(t.Context())
			w.deliverAll()
			w.wantStates("when it is free", raised, "open", "open")
		})
	}
}

// TestManyLockedAlertsDelayNoOtherThatIsSentAgain has somebody keep the first alerts locked that are to be sent again.
func TestManyLockedAlertsDelayNoOtherThatIsSentAgain(t *testing.T) {
	t.Parallel()
	const all, locked = 20, 15
	w := newAlertmanagerWorld(t)
	w.raise(ids(all)...)
	w.deliverAll()
	if restarted, err := w.db.Outbox().Answered(t.Context(), w.hook.ID, "another process"); err != nil || !restarted {
		t.Fatalf("stored %v, %v", restarted, err)
	}
	tx, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(t.Context(), `select from alert where alert_id in (select alert_id from alert order by alert_id limit $1) for update`, locked); err != nil || tag.RowsAffected() != locked {
		t.Fatal(tag, err)
	}
	atOnce, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if resent, err := w.db.Outbox().Resend(atOnce, w.hook.ID); err != nil || resent != all-locked {
		t.Errorf("sent %d again, want %d; %v", resent, all-locked, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if resent, err := w.db.Outbox().Resend(t.Context(), w.hook.ID); err != nil || resent != locked {
		t.Errorf("sent %d again when they are free, want %d; %v", resent, locked, err)
	}
	if resent, err := w.db.Outbox().Resend(t.Context(), w.hook.ID); err != nil || resent != 0 {
		t.Errorf("sent %d again after that, want none; %v", resent, err)
	}
}

// TestReceiverThatCannotBeAsked checks that what was found before is still sent, and that the
// receiver is complained of once.
func TestReceiverThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a")
	w.deliverAll()
	hook := w.hook.ID
	if _, err := w.db.Outbox().Answered(t.Context(), hook, "another process"); err != nil {
		t.Fatal(err)
	}
	// What is delivered after the restart is known to the new process, and is not sent again.
	raised = append(raised, w.raise("later")...)
	w.deliverAll()
	var logged log
	w.resender.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	w.service.Script(presettest.Answer{Status: http.StatusForbidden}, presettest.Answer{Status: http.StatusForbidden})
	w.resender.Tick(t.Context())
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("after it", raised, "open", "open")
	w.wantColumn("sent again", `select count(*)::text from retry`, "1")
	if got := strings.Count(logged.String(), "allow Tocsin to read it"); got != 1 {
		t.Errorf("complained %d times: %s", got, logged.String())
	}
}

// TestSendingAgainMeetsWhatPeopleDo resolves an alert while its message is about to be sent again: it
// is not. Of an alert with several messages that say that it is open, the last one is sent again, once.
func TestSendingAgainMeetsWhatPeopleDo(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a", "b")
	w.deliverAll()
	w.undone(alerts.Resolve, raised[1])
	w.deliverAll()
	w.service.Restart()
	hook := w.hook.ID
	if _, err := w.db.Outbox().Answered(t.Context(), hook, "another process"); err != nil {
		t.Fatal(err)
	}
	// The list of messages is old when the turn of an alert comes: it was resolved meanwhile.
	if resent := w.resendWhile(`update alert set state = 'RESOLVED', resolved_at = now() where alert_id = $1`, raised[0]); resent != 1 {
		t.Errorf("sent %d again, want 1", resent)
	}
	// Another process does the same again, because this one died before it could say that all is done.
	w.exec(`update webhook_state set restarted_at = now()`)
	if resent, err := w.db.Outbox().Resend(t.Context(), hook); err != nil || resent > 0 {
		t.Errorf("sent %d again, %v", resent, err)
	}
	w.wantColumn("sent again", `select n.reason || ' ' || y.generation from retry y join notification n using (notification_id)`, "REOPENED 1")
	w.deliverAll()
	w.wantStates("after it", raised, "", "open")

	// Another process has sent it again and delivered it meanwhile.
	w.exec(`update webhook_state set restarted_at = now()`)
	resent := w.resendWhile(`update settlement set started_at = now() + interval '1 minute'
		where notification_id in (select notification_id from notification where alert_id = $1)`, raised[1])
	if resent != 0 {
		t.Errorf("sent %d again that another process had sent again, want none", resent)
	}
}

// resendWhile sends open alerts again, and changes something after the messages were chosen and
// before the alerts are locked. It returns how many are sent again.
func (w *alertmanagerWorld) resendWhile(change string, alert uuid.UUID) int {
	w.t.Helper()
	tx, err := w.conn.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), `select from webhook for update`); err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), change, alert); err != nil {
		w.t.Fatal(err)
	}
	sent, failed := make(chan int, 1), make(chan error, 1)
	go func() {
		resent, err := w.db.Outbox().Resend(w.t.Context(), w.hook.ID)
		failed <- err
		sent <- resent
	}()
	var waits int
	for waits == 0 {
		if err := tx.QueryRow(w.t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waits); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if err := await(w.t, "it has failed", failed); err != nil {
		w.t.Fatal(err)
	}
	return <-sent
}

// TestAttemptUnderWayAtARestart restarts the receiver after it accepted a message and before its
// answer is known: the new process gets the message, too.
func TestAttemptUnderWayAtARestart(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	restarts := func() {
		w.service.Restart()
		w.resender.Tick(t.Context())
	}
	w.beforeAnswer.Store(&restarts)
	raised := w.raise("a")
	w.deliverAll()
	w.wantStates("delivered to the former process", raised, "")
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("after the next question", raised, "open")
	w.wantColumn("what is left", `select count(*)::text from webhook_state where restarted_at is not null`, "0")
}

// TestAttemptThatEndsWhileOthersAreSentAgain restarts the receiver after it accepted a message, and stores the outcome
// after the messages to be sent again were chosen and before these are due: the new process gets the message, too.
func TestAttemptThatEndsWhileOthersAreSentAgain(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a")
	w.deliverAll()
	tx, err := w.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 1)
	restarts := func() {
		w.service.Restart()
		if _, err := tx.Exec(t.Context(), `select from settlement where notification_id = (select notification_id from notification where alert_id = $1) for update`, raised[0]); err != nil {
			t.Error(err)
		}
		go func() {
			w.resender.Tick(t.Context())
			ended <- struct{}{}
		}()
		for waits := 0; waits == 0 && err == nil; {
			err = tx.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waits)
		}
	}
	w.beforeAnswer.Store(&restarts)
	raised = append(raised, w.raise("b")...)
	w.deliverAll()
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "it has ended", ended)
	w.deliverAll()
	w.wantStates("after the others were sent again", raised, "open", "")
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("after the next question", raised, "open", "open")
	w.wantColumn("what is left", `select count(*)::text from webhook_state where restarted_at is not null`, "0")
}

// TestNothingIsSentAgainToAWebhookThatIsOff switches a webhook off, or deletes it, after its receiver
// was asked: nothing waits for it. Once it is on again, alerts are sent again.
func TestNothingIsSentAgainToAWebhookThatIsOff(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a")
	w.deliverAll()
	w.service.Restart()
	if _, err := w.db.Outbox().Answered(t.Context(), w.hook.ID, "another process"); err != nil {
		t.Fatal(err)
	}
	for _, off := range []string{`update webhook set enabled = false`, `update webhook set deleted_at = now()`} {
		w.exec(off)
		if resent, err := w.db.Outbox().Resend(t.Context(), w.hook.ID); err != nil || resent > 0 {
			t.Errorf("%s: sent %d again, %v", off, resent, err)
		}
		w.wantColumn(off, unsettledOutbox)
		w.exec(`update webhook set enabled = true, deleted_at = null`)
	}
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("on again", raised, "open")
}

// TestAnotherReceiverAndBack moves a webhook to another Alertmanager and back again: each time, the
// server gets what was raised meanwhile.
func TestAnotherReceiverAndBack(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a")
	w.deliverAll()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	other := presettest.New(set.Get("alertmanager"))
	server := httptest.NewServer(other)
	t.Cleanup(server.Close)
	former := w.hook.Inputs
	move := func(inputs map[string]string) {
		t.Helper()
		w.hook.Inputs = inputs
		if w.hook, err = w.db.Webhooks().Update(t.Context(), tenant, w.hook); err != nil {
			t.Fatal(err)
		}
		w.resender.Tick(t.Context())
		w.deliverAll()
	}
	move(map[string]string{"server": server.URL})
	if got := other.State(raised[0].String()); got != "open" {
		t.Errorf("at the other one it is %q, want open", got)
	}
	raised = append(raised, w.raise("later")...)
	w.deliverAll()
	move(former)
	w.wantStates("at the former one", raised, "open", "open")
}

// TestSendingAgainRestoresWhatWasKnown checks that an alert comes back whatever else waits, and that
// one does not which the receiver believed to be over.
func TestSendingAgainRestoresWhatWasKnown(t *testing.T) {
	t.Parallel()
	w := newAlertmanagerWorld(t)
	raised := w.raise("a", "b")
	w.deliverAll()
	// A reminder waits for the end of quiet hours.
	w.exec(`insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
		select gen_random_uuid(), tenant_id, alert_id, rule_id, webhook_id, 'REMINDER' from notification where alert_id = $1`, raised[0])
	w.exec(`insert into outbox (notification_id, webhook_id, ready_at, due_at, quiet_until)
		select notification_id, webhook_id, null, null, now() + interval '1 hour' from notification where reason = 'REMINDER'`)
	// Its end was sent, and it was opened again without a message.
	resolved, _ := w.act(alerts.Resolve, alerts.Filter{IDs: raised[1:]})
	w.deliverAll()
	w.exec(`update webhook set events = '{RESOLVED}'`)
	w.undo(resolved)
	w.deliverAll()
	w.wantStates("before", raised, "open", "closed")
	w.service.Restart()
	w.resender.Tick(t.Context())
	w.deliverAll()
	w.wantStates("after a restart", raised, "open", "")
	w.wantColumn("held", `select reason from outbox join notification using (notification_id)`, "REMINDER")
}
