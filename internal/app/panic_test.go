package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/webhook"
	"tocsin/rules"
)

// faulty is a sender and a renderer with bugs. Where something is nil, it has none.
type faulty struct {
	notify.Sender
	notify.Renderer

	send, render func(d *notify.Delivery)
}

func (f faulty) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	o := f.Sender.Send(ctx, d)
	if f.send != nil {
		f.send(d)
	}
	return o
}

func (f faulty) Render(d *notify.Delivery) (notify.Body, error) {
	if f.render != nil {
		f.render(d)
	}
	return f.Renderer.Render(d)
}

// TestAPanicHarmsOnlyItsMessage has bugs in all that a message passes through. The others are sent. A message of a call that
// panicked may have arrived, and is sent again by the schedule. One that cannot be made or read ends with a reason, and
// the receiver is not blamed.
func TestAPanicHarmsOnlyItsMessage(t *testing.T) {
	t.Parallel()
	onB := func(d *notify.Delivery) {
		if d.Alert.Exchange.ExecutionID == "b" && d.Reason == notify.ReasonFired {
			panic("poison")
		}
	}
	onPoisoned := func(w *notify.Webhook) notify.Schedule {
		if w.Name == "poisoned" {
			panic("poison")
		}
		return notify.Schedule{}
	}
	for name, c := range map[string]struct {
		faulty   faulty
		schedule func(*notify.Webhook) notify.Schedule
		attempt  string
		// again says that the message is sent again; otherwise it has failed.
		again bool
	}{
		"in the sender":   {faulty: faulty{send: onB}, attempt: "RETRY panic: poison", again: true},
		"in the renderer": {faulty: faulty{render: onB}, attempt: "NOT_MADE Not sent: the message cannot be rendered: panic: poison"},
		"in the claim":    {schedule: onPoisoned, attempt: "NOT_MADE Not sent: panic: poison"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			logged := w.bugs(c.faulty, c.schedule)
			w.operators()
			ops := w.webhook("ops")
			w.raiseFor(ops, "a")
			if c.schedule != nil || c.again {
				ops = w.webhook("poisoned")
			}
			w.raiseFor(ops, "b")
			w.raiseFor(w.webhook("others"), "c")
			for range 3 {
				w.dispatcher.Wake(w.hooks())
				if _, err := w.dispatcher.Tick(t.Context()); err != nil {
					slog.New(slog.NewTextHandler(logged, nil)).Error("what a loop logs", fault.Stack(err))
				}
			}
			status, failures, reports := "FAILED b", "0", []string{"operators 1"}
			if c.again {
				status, failures, reports = "RETRYING b", "1", nil
			}
			w.wantColumn("statuses", `select s.status || ' ' || coalesce(a.execution_id, '') from notification_status s join alert a using (alert_id)
				where s.reason = 'FIRED' order by 1`, "DELIVERED a", "DELIVERED c", status)
			w.wantColumn("the attempt", `select coalesce(verdict, 'unknown') || ' ' || error from attempt_history where verdict is distinct from 'DELIVERED'`,
				c.attempt+"; this is a bug in Tocsin, please report it")
			w.wantColumn("breakers", `select max(failures)::text from webhook_state`, failures)
			w.wantColumn("operators", reportsOfMessages, reports...)
			if stacks := strings.Count(logged.String(), "stack="); stacks != 1 {
				t.Errorf("%d stacks are logged:\n%s", stacks, logged)
			}
		})
	}
}

// bugs gives the world's dispatcher bugs, and returns its log.
func (w *world) bugs(f faulty, schedule func(*notify.Webhook) notify.Schedule) *bytes.Buffer {
	w.t.Helper()
	sender, err := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(sender.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	f.Sender, f.Renderer = sender, renderer
	logged := new(bytes.Buffer)
	w.dispatcher = w.newDispatcher(dispatch.Options{Sender: f, Renderer: f, Schedule: schedule, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	return logged
}

// TestAMessageThatArrivedBeforeAPanicIsDelivered has a bug in what follows from the answer of the receiver.
func TestAMessageThatArrivedBeforeAPanicIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sent atomic.Bool
	w.bugs(faulty{send: func(*notify.Delivery) { sent.Store(true) }}, func(*notify.Webhook) notify.Schedule {
		if sent.Load() {
			panic("poison")
		}
		return notify.Schedule{}
	})
	w.raiseFor(w.webhook("ops"), "a")
	w.deliver()
	w.wantColumn("attempts", attempts, "1 DELIVERED")
	w.wantColumn("statuses", statuses, "DELIVERED 1")
	if got := w.receiver.received(); len(got) != 1 {
		t.Errorf("received %q", got)
	}
}

// TestAPanicOverABreakerKeepsTheOutcome has a bug in what an outcome means for the circuit breaker.
func TestAPanicOverABreakerKeepsTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	s := settlement(&w.claim()[0], notify.VerdictRefused, notify.Failed)
	s.Breaker = func(notify.Breaker, bool, time.Time) notify.Breaker { panic("poison") }
	settled, err := w.db.Outbox().Settle(t.Context(), []dispatch.Settlement{s})
	if err != nil || settled[0].Unapplied == nil || !strings.Contains(settled[0].Unapplied.Error(), "panic: poison") {
		t.Errorf("settled %+v, %v", settled, err)
	}
	w.wantColumn("statuses", statuses, "FAILED 1")
}

// TestALoopThatPanicsStartsAgain has bugs, once each, in a pass and in a loop of a replica: its messages are sent, and it
// ends as usual.
func TestALoopThatPanicsStartsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bugs sync.Map
	for _, place := range []string{"(*Dispatcher).claim", "(*Refresher).pass"} {
		bugs.Store(place, true)
	}
	_, logged := w.replica(func(o *app.Options) {
		o.Roles = []app.Role{app.RoleEvaluate, app.RoleDispatch}
		o.Clock = func() time.Time {
			caller, _, _, _ := runtime.Caller(1)
			name := runtime.FuncForPC(caller).Name()
			if _, first := bugs.LoadAndDelete(name[strings.LastIndex(name, ".(")+1:]); first {
				panic("poison")
			}
			return time.Now()
		}
	})
	for _, logs := range []string{`msg="claim failed;`, `msg="loop panicked`} {
		w.until(logs+" is logged", func() bool { return strings.Contains(logged.String(), logs) })
	}
	if n := strings.Count(logged.String(), `error="panic: poison`) + strings.Count(logged.String(), `error="claim notifications: panic: poison`); n != 2 {
		t.Errorf("%d panics are logged:\n%s", n, logged)
	}
	if fault.Panics() < 2 {
		t.Errorf("%d panics are counted, want 2 or more", fault.Panics())
	}
	hook := w.webhook("ops")
	w.ruleOf(rules.Definition{Name: "failures", WebhookIDs: []uuid.UUID{hook}})
	w.fail(w.ch.Now(t), "a")
	w.until("its message is sent", func() bool { return len(w.receiver.received()) == 1 })
}
