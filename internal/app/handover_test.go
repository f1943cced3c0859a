package app_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/notify"
)

// clerk is a desk that has room for everything and keeps what it gets.
type clerk struct {
	*notify.Dispatcher
	reserved int
}

func (c *clerk) Reserve(ctx context.Context, wanted []notify.Wanted) notify.Reservation {
	r := c.Dispatcher.Reserve(ctx, wanted)
	for _, n := range r.Room {
		c.reserved += n
	}
	return r
}

// room returns how many notifications there is room for.
func (c *clerk) room(webhook uuid.UUID, count int) int {
	r := c.Dispatcher.Reserve(context.Background(), []notify.Wanted{{WebhookID: webhook, MaxConcurrent: 8, Count: count}})
	defer r.HandOver(context.Background(), nil)
	return r.Room[webhook]
}

// together runs a dispatcher, and returns an evaluator that hands over to it.
func (w *world) together(o notify.Options) (*evaluator.Evaluator, *clerk) {
	w.t.Helper()
	desk := &clerk{Dispatcher: w.newDispatcher(o)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { desk.Run(ctx) })
	w.t.Cleanup(func() { cancel(); running.Wait() })
	w.until("the dispatcher takes over", func() bool {
		return desk.room(uuid.New(), 1) == 1
	})
	return w.newEvaluator(evaluator.Options{Store: w.db.Evaluation(desk)}), desk
}

// rendered keeps the deliveries that were rendered.
type rendered struct {
	notify.Renderer
	mu   sync.Mutex
	seen []notify.Delivery
}

func (r *rendered) Render(d *notify.Delivery) (notify.Body, error) {
	r.mu.Lock()
	r.seen = append(r.seen, *d)
	r.mu.Unlock()
	return r.Renderer.Render(d)
}

// TestHandedOver delivers what a commit hands over without a claim, and holds
// what the dispatcher is given to what a claim would have read.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	called, release := w.receiver.hang()
	t.Cleanup(release)
	hook := w.webhook("ops")
	look := &rendered{Renderer: w.dispatcher.Renderer}
	e, _ := w.together(notify.Options{Renderer: look, Poll: time.Hour})
	rule := w.rule(hook)
	w.fail(rule.ArmedSinceNS+1000, "a")
	result, err := w.tickWith(e)
	if err != nil || result.Notifications != 1 || result.HandedOver != 1 {
		t.Fatalf("tick: %+v, %v; want one handed over", result, err)
	}
	<-called
	w.wantColumn("claimed from birth", `select claimed_by || ' ' || attempts || (due_at > now()) from outbox`, "test 1true")
	// The lease lapses, and somebody else reads it from the database.
	w.exec(`update outbox set due_at = now(), ready_at = now(); delete from notification_body`)
	other := w.claim()
	if len(other) != 1 {
		t.Fatalf("%d claimed", len(other))
	}
	want := other[0]
	if !want.AfterUnknown {
		t.Error("whoever takes over does not know of the attempt before")
	}
	want.Token, want.Attempt, want.AfterUnknown = look.seen[0].Token, 1, false
	same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(want, look.seen[0], same); diff != "" {
		t.Errorf("read (-) and handed over (+) differ:\n%s", diff)
	}
	release()
	w.until("the message that arrived ends it", func() bool { return slices.Equal(w.column(statuses), []string{"DELIVERED 1"}) })
}

// TestWhatIsNotHandedOver leaves what must be judged by a claim to a claim.
func TestWhatIsNotHandedOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"a rate":             `update webhook set version = version + 1, rate_per_second = 5`,
		"digests":            `update webhook set version = version + 1, digest_above = 5`,
		"off":                `update webhook set enabled = false`,
		"held":               `update webhook set held_until = now() + interval '1 h'`,
		"open breaker":       `update webhook_state set failures = 5, openings = 1, opened_at = now(), open_until = now() + interval '1 h'`,
		"edited by somebody": `update webhook set version = version + 1, max_concurrent = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e, _ := w.together(notify.Options{Poll: time.Hour})
			rule := w.rule(w.webhook("ops"))
			w.fail(rule.ArmedSinceNS+1000, "a")
			if result, err := w.tickWith(e); err != nil || result.HandedOver != 1 {
				t.Fatalf("tick: %+v, %v; want one handed over before the change", result, err)
			}
			w.untilDelivered(1)
			w.exec(change)
			w.exec(`create table born (claimed_by text);
				create function note() returns trigger language plpgsql as $$ begin insert into born values (new.claimed_by); return null; end $$;
				create trigger note after insert on outbox for each row execute function note()`)
			w.fail(rule.ArmedSinceNS+2000, "b")
			result, err := w.tickWith(e)
			if err != nil || result.Notifications != 1 || result.HandedOver != 0 {
				t.Errorf("tick: %+v, %v; want one owed", result, err)
			}
			w.wantColumn("unclaimed", `select coalesce(claimed_by, 'nobody') from born`, "nobody")
			if name != "edited by somebody" {
				return
			}
			// The room is given back, and the webhook is known anew.
			w.fail(rule.ArmedSinceNS+3000, "c")
			if result, err := w.tickWith(e); err != nil || result.HandedOver != 1 {
				t.Errorf("tick: %+v, %v; want it handed over", result, err)
			}
		})
	}
}

// TestHandedOverOnlyWhatIsCommitted lets the commit fail after the claims were
// written: nothing is sent, nothing is left, and the room is given back.
func TestHandedOverOnlyWhatIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, desk := w.together(notify.Options{Poll: time.Hour})
	rule := w.rule(w.webhook("ops"))
	w.exec(`create function fault() returns trigger language plpgsql as $$ begin raise 'fault'; end $$;
		create constraint trigger fault after insert on outbox deferrable initially deferred for each row execute function fault()`)
	w.fail(rule.ArmedSinceNS+1000, "a")
	if result, err := w.tickWith(e); err != nil || result.Failed != 1 {
		t.Fatalf("tick: %+v, %v; want the rule to have failed", result, err)
	}
	if desk.reserved == 0 {
		t.Error("nothing was reserved: the test tells nothing")
	}
	w.exec(`drop trigger fault on outbox`)
	w.wantColumn("owed", `select reason from notification join outbox using (notification_id) where reason = 'FIRED'`)
	if result, err := w.tickWith(e); err != nil || result.HandedOver != 1 {
		t.Errorf("tick: %+v, %v; want it handed over", result, err)
	}
	w.until("it arrives", func() bool { return slices.Equal(w.receiver.received(), []string{"a"}) })
	w.until("nothing is owed", func() bool { return len(w.column(unsettledOutbox)) == 0 })
	if room := desk.room(rule.WebhookIDs[0], 1000); room != 256 {
		t.Errorf("room for %d, want all of it back", room)
	}
}

// TestWhatABudgetLeavesIsDueAtOnce spends the budget of a tick on one page: the
// rest does not wait for the interval of the rule.
func TestWhatABudgetLeavesIsDueAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.exec(`update rule set interval_seconds = 3600`)
	w.fail(rule.ArmedSinceNS+1000, "a", "b", "c")
	e := w.newEvaluator(evaluator.Options{PageSize: 1, Budget: time.Nanosecond})
	if _, err := w.tickWith(e); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("alerts of one page", alertIDs, "a")
	for range 4 {
		if _, err := e.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.wantColumn("alerts", alertIDs, "a", "b", "c")
	w.wantColumn("drained, it waits for its interval", `select (next_run_at > now())::text from rule_state`, "true")
}
