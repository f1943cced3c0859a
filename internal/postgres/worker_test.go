package postgres_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"tocsin/internal/postgres"
	"tocsin/notify"
)

// worker returns who is told to be at work, to a replica that claims nothing.
func (r *readable) worker(o *postgres.Outbox) (worker string) {
	r.tb.Helper()
	due := false
	_, err := o.Claim(r.tb.Context(), notify.ClaimRequest{
		Replica: "looks", Lease: time.Minute,
		Room: func(limits []notify.Limits) []notify.Slots {
			due, worker = true, limits[0].Worker
			return nil
		},
	})
	if err != nil || !due {
		r.tb.Fatalf("nothing is due, or %v", err)
	}
	return worker
}

// TestWhoWorksOnABacklogIsTold looks at a backlog of which 10 may be called at once and
// another replica has taken some. Whether it did so of late is up to its leases.
func TestWhoWorksOnABacklogIsTold(t *testing.T) {
	t.Parallel()
	const first15 = `where notification_id in (select notification_id from outbox order by ready_at, notification_id limit 15)`
	for name, c := range map[string]struct {
		takes int
		// after is done behind the claim.
		after string
		want  string
	}{
		"nothing is taken":                         {},
		"as much as may be called":                 {takes: 10},
		"more":                                     {takes: 11, want: "replica"},
		"much more":                                {takes: 30, want: "replica"},
		"and some is settled":                      {30, `delete from outbox where claim_token % 2 = 0`, "replica"},
		"and much is settled":                      {30, `delete from outbox where claim_token % 3 > 0`, ""},
		"some of it was taken long ago":            {30, `update outbox set due_at = now() + interval '1 s' ` + first15, "replica"},
		"all was taken long ago":                   {30, `update outbox set due_at = now() + interval '1 s' where claim_token is not null`, ""},
		"a renewal is as good as a claim":          {30, `update outbox set due_at = now() + interval '1 min' where claim_token is not null`, "replica"},
		"it was given back":                        {30, `update outbox set due_at = now(), claimed_by = null, claim_token = null`, ""},
		"the first of it has lapsed":               {30, `update outbox set due_at = now() where notification_id = (select min(notification_id::text)::uuid from outbox)`, ""},
		"its leases are of another length":         {30, `update outbox set due_at = now() + interval '2 min' where claim_token is not null`, ""},
		"it waits for its time, and is not leased": {30, `update outbox set claimed_by = null, claim_token = null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReadable(t)
			o := r.open().Outbox()
			// Nothing that is as old as that is recent: it would take a minute without a lease.
			o.KeepRecent(50 * time.Second)
			r.owe(40)
			if c.takes > 0 {
				r.claim(r.open().Outbox(), c.takes)
			}
			if c.after != "" {
				r.exec(c.after)
			}
			if got := r.worker(o); got != c.want {
				t.Errorf("%q is told to be at work, want %q", got, c.want)
			}
		})
	}
}

// TestWhoWorksIsToldBehindAPlace has the one who looks go on behind its own last claim.
func TestWhoWorksIsToldBehindAPlace(t *testing.T) {
	r := newReadable(t)
	mine, other := r.open().Outbox(), r.open().Outbox()
	for _, o := range []*postgres.Outbox{mine, other} {
		o.KeepPlaces(time.Hour)
		o.KeepRecent(50 * time.Second)
	}
	r.owe(100)
	take := func(o *postgres.Outbox, replica string) {
		_, err := o.Claim(t.Context(), notify.ClaimRequest{
			Replica: replica, Lease: time.Minute,
			Room: func([]notify.Limits) []notify.Slots { return []notify.Slots{{WebhookID: r.hook, Slots: 20}} },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		by   *postgres.Outbox
		name string
	}{{mine, "mine"}, {other, "other"}, {mine, "mine"}} {
		take(step.by, step.name)
		if got := r.worker(mine); got != step.name {
			t.Errorf("%q is told to be at work, want %q, which claimed last", got, step.name)
		}
	}
}

// TestWhoLeavesABacklogLooksAtItsHead has a replica claim, find another at work, and then
// something become due before its own last claim.
func TestWhoLeavesABacklogLooksAtItsHead(t *testing.T) {
	r := newReadable(t)
	mine := r.open().Outbox()
	mine.KeepPlaces(time.Hour)
	mine.KeepRecent(50 * time.Second)
	r.owe(60)
	r.claim(mine, 10)
	r.claim(r.open().Outbox(), 30)
	if got := r.worker(mine); got != "replica" {
		t.Errorf("%q is told to be at work, want the other", got)
	}
	r.exec(`update outbox set due_at = now() where notification_id = (select min(notification_id::text)::uuid from outbox)`)
	if got := r.worker(mine); got != "" {
		t.Errorf("%q is told to be at work in front of the first that is due", got)
	}
}

// plain delivers at once what it is given.
type plain struct{}

func (plain) Render(*notify.Delivery) (notify.Body, error) {
	return notify.Body{Content: []byte("{}")}, nil
}
func (plain) Prepare(*notify.Delivery) notify.Request { return plain{} }
func (plain) Head() notify.RequestHead                { return notify.RequestHead{Method: "POST"} }
func (plain) Send(context.Context) notify.Outcome {
	return notify.Outcome{Verdict: notify.VerdictDelivered}
}

// TestABacklogIsLeftToWhoWorksOnIt has one dispatcher find another at work on a webhook
// whose receiver it knows to be quick.
func TestABacklogIsLeftToWhoWorksOnIt(t *testing.T) {
	t.Parallel()
	const lease = time.Hour
	stood := time.Now()
	for name, c := range map[string]struct {
		replica string
		// after is done behind the other's claim of 30.
		after func(r *readable, other *postgres.Outbox, held []notify.Held)
		takes bool
	}{
		"it works":                      {replica: "z"},
		"both do, this one by its name": {replica: "a", takes: true},
		"it gives its claims back": {
			replica: "z", takes: true, after: func(r *readable, other *postgres.Outbox, held []notify.Held) {
				if err := other.Release(r.tb.Context(), held); err != nil {
					r.tb.Fatal(err)
				}
			},
		},
		"nothing is heard of it": {
			replica: "z", takes: true, after: func(r *readable, _ *postgres.Outbox, _ []notify.Held) {
				r.exec(`update outbox set due_at = due_at - interval '50 min' where claim_token is not null`)
			},
		},
		"its claims lapse": {
			replica: "z", takes: true, after: func(r *readable, _ *postgres.Outbox, _ []notify.Held) {
				r.exec(`update outbox set due_at = now() where claim_token is not null`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReadable(t)
			mine, other := r.open().Outbox(), r.open().Outbox()
			mine.KeepRecent(lease * 3 / 4)
			d, err := notify.NewDispatcher(notify.Options{
				Store: mine, Renderer: plain{}, Sender: plain{}, Logger: slog.New(slog.DiscardHandler), Replica: c.replica, Lease: lease,
				// No call takes any time.
				Clock: func() time.Time { return stood },
			})
			if err != nil {
				t.Fatal(err)
			}
			r.owe(1)
			if result, err := d.Tick(t.Context()); err != nil || result.Claimed != 1 {
				t.Fatalf("%d claimed of one: %v", result.Claimed, err)
			}
			r.owe(100)
			claimed, err := other.Claim(t.Context(), notify.ClaimRequest{
				Replica: "m", Lease: lease, Room: func([]notify.Limits) []notify.Slots { return []notify.Slots{{WebhookID: r.hook, Slots: 30}} },
			})
			if err != nil || len(claimed.Deliveries) != 30 {
				t.Fatalf("the other claimed %d of 30: %v", len(claimed.Deliveries), err)
			}
			if c.after != nil {
				held := make([]notify.Held, len(claimed.Deliveries))
				for i := range claimed.Deliveries {
					held[i] = notify.Held{NotificationID: claimed.Deliveries[i].NotificationID, Token: claimed.Deliveries[i].Token}
				}
				c.after(r, other, held)
			}
			result, err := d.Tick(t.Context())
			if err != nil || (result.Claimed > 0) != c.takes {
				t.Fatalf("%d were claimed, want some: %v; %v", result.Claimed, c.takes, err)
			}
			if !c.takes && (!result.Left || result.Next <= 0 || result.Next > time.Second) {
				t.Errorf("%+v, want a look a second later, and somebody else to be told", result)
			}
		})
	}
}
