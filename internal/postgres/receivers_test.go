package postgres_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// TestWhatAReceiverKeepsOpenIsEndedHoweverLate acknowledges and resolves an alert while its
// messages wait for two days. A chat is only notified of the alert; a receiver that has opened an
// incident for it is notified of all that happened, in order, even if older messages that raise an
// alert are not sent to it any more.
func TestWhatAReceiverKeepsOpenIsEndedHoweverLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own      notify.Schedule
		notified bool
		want     []notify.Reason
		ended    []string
	}{
		"a chat":           {notify.Schedule{}, false, []notify.Reason{notify.ReasonFired}, []string{"DELIVERED FIRED", "DISCARDED ACKNOWLEDGED", "DISCARDED REMINDER", "DISCARDED RESOLVED"}},
		"a keyed receiver": {notify.Schedule{KeepsState: true}, false, []notify.Reason{notify.ReasonFired, notify.ReasonAcknowledged, notify.ReasonResolved}, []string{"DELIVERED ACKNOWLEDGED", "DELIVERED FIRED", "DELIVERED RESOLVED", "DISCARDED REMINDER"}},
		"a keyed receiver with a maximum age": {
			notify.Schedule{KeepsState: true, MaxAge: time.Hour},
			true,
			[]notify.Reason{notify.ReasonFired, notify.ReasonAcknowledged, notify.ReasonResolved},
			[]string{"DELIVERED ACKNOWLEDGED", "DELIVERED FIRED", "DELIVERED RESOLVED", "DISCARDED REMINDER"},
		},
		"a keyed receiver that was not notified": {
			notify.Schedule{KeepsState: true, MaxAge: time.Hour},
			false, nil,
			[]string{"DISCARDED ACKNOWLEDGED", "DISCARDED REMINDER", "DISCARDED RESOLVED", "EXHAUSTED FIRED"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNapped(t, notify.Webhook{Name: "receiver", Events: notify.Events()})
			var sent []notify.Reason
			send := func() {
				for _, d := range n.claimed(c.own) {
					sent = append(sent, d.Reason)
					n.settled(d, notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200})
				}
			}
			if c.notified {
				send()
			}
			n.act(alerts.Acknowledge)
			n.act(alerts.Resolve)
			n.exec(t, `insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
				select gen_random_uuid(), tenant_id, alert_id, rule_id, webhook_id, 'REMINDER' from notification where reason = 'FIRED'`)
			n.exec(t, `insert into outbox (notification_id, webhook_id, ready_at, due_at, expires_at)
				select notification_id, webhook_id, now(), now(), now() + interval '1 h' from notification where reason = 'REMINDER'`)
			advance(t.Context(), t, n.conn, 48*time.Hour)
			for range 5 {
				send()
			}
			if !slices.Equal(sent, c.want) {
				t.Errorf("sent %v, want %v", sent, c.want)
			}
			if ended := column(t, n.conn, `select status || ' ' || reason from notification_status order by 1`); !slices.Equal(ended, c.ended) {
				t.Errorf("ended as %v, want %v", ended, c.ended)
			}
		})
	}
}

// newNapped returns an alert of which a webhook is notified that can be claimed for.
func newNapped(t *testing.T, w notify.Webhook) *napping {
	t.Helper()
	p := newPersist(t)
	n := &napping{persist: p, t: t, db: p.opened(t)}
	w.Kind, w.URL, w.Enabled, w.Timeout, w.MaxConcurrent = notify.KindGeneric, "https://example.com", true, time.Second, 10
	w, err := n.db.Webhooks().Create(t.Context(), tenant, w)
	if err != nil {
		t.Fatal(err)
	}
	p.webhook = w.ID
	b := p.page()
	b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
	p.write(t, b)
	n.alert = b.Instances[0].ID
	return n
}

// claimed claims what is due.
func (n *napping) claimed(own notify.Schedule) []notify.Delivery {
	n.t.Helper()
	return n.claimedOf(10, own)
}

// claimedOf claims what is due, a number of messages at most.
func (n *napping) claimedOf(most int, own notify.Schedule) []notify.Delivery {
	n.t.Helper()
	claimed, err := wholeLooks{n.db.Outbox()}.Claim(n.t.Context(), dispatch.ClaimRequest{
		Replica: "a", Lease: time.Minute, Schedule: func(*notify.Webhook) notify.Schedule { return own },
		Deal: func(due []dispatch.Due) (dealt []dispatch.Slots) {
			for _, d := range due {
				dealt = append(dealt, dispatch.Slots{WebhookID: d.WebhookID, Slots: most})
			}
			return dealt
		},
		Render: func(d *notify.Delivery) (notify.Body, string, error) {
			return notify.Body{ContentType: "text/plain", Content: []byte("to " + d.Webhook.Inputs["chat"])}, "", nil
		},
	})
	if err != nil || claimed.Unchecked != nil {
		n.t.Fatal(err, claimed.Unchecked)
	}
	return claimed.Deliveries
}

// settled stores the outcome of an attempt.
func (n *napping) settled(d notify.Delivery, o notify.Outcome) {
	n.t.Helper()
	policy := notify.DefaultPolicy()
	if _, err := n.db.Outbox().Settle(n.t.Context(), []dispatch.Settlement{{
		TenantID: tenant, NotificationID: d.NotificationID, WebhookID: d.Webhook.ID, WebhookVersion: d.Webhook.Version, Token: d.Token,
		Attempt: d.Attempt, Replica: "a", Outcome: o, Decision: policy.Decide(o, &d, 0), Reference: notify.ReferenceOf(&d, o),
	}}); err != nil {
		n.t.Fatal(err)
	}
}

// TestAnotherReceiverIsNotSentTheIdsOfTheFormerOne: to another receiver they mean something else.
// Any other edit keeps them.
func TestAnotherReceiverIsNotSentTheIdsOfTheFormerOne(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver", Preset: "telegram", Inputs: map[string]string{"chat": "1"}, Events: notify.Events()})
	all := notify.Schedule{KeepsState: true}
	answered := notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200, Reference: new("17")}
	edit := func(change func(*notify.Webhook)) {
		t.Helper()
		w, err := n.db.Webhooks().Get(t.Context(), tenant, n.webhook)
		if err != nil {
			t.Fatal(err)
		}
		change(&w)
		if _, err := n.db.Webhooks().Update(t.Context(), tenant, w); err != nil {
			t.Fatal(err)
		}
	}
	known := func(what, want string) {
		t.Helper()
		d := n.claimed(all)[0]
		if d.Reference != want {
			t.Errorf("%s the alert is known by %q, want %q", what, d.Reference, want)
		}
		n.settled(d, answered)
	}
	fired := n.claimed(all)[0]
	edit(func(w *notify.Webhook) { w.Inputs = map[string]string{"chat": "2"} })
	n.settled(fired, answered)
	n.act(alerts.Acknowledge)
	known("after an answer of the former chat", "")
	edit(func(w *notify.Webhook) { w.Name = "renamed" })
	n.act(alerts.Resolve)
	known("after another name", "17")
	edit(func(w *notify.Webhook) { w.Inputs = map[string]string{"chat": "3"} })
	if left := column(t, n.conn, `select reference from receiver_reference`); len(left) != 0 {
		t.Errorf("after another chat the alert is known by %v", left)
	}
}

// TestWhatWaitsGoesWhereAPersonHasCorrectedIt: a body names the chat that it is for. Once that is another one, what waits is not
// sent to the former, whose answer would disable the webhook again. Any other edit keeps the body.
func TestWhatWaitsGoesWhereAPersonHasCorrectedIt(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]notify.Outcome{
		"gone":           {Verdict: notify.VerdictGone, StatusCode: 403, Error: "gone"},
		"to be repeated": {Verdict: notify.VerdictRetry, StatusCode: 503, Error: "later"},
	} {
		for _, during := range []bool{false, true} {
			n := newNapped(t, notify.Webhook{Name: "receiver", Preset: "telegram", Inputs: map[string]string{"chat": "1"}, Events: notify.Events()})
			sent := func(want string) notify.Delivery {
				t.Helper()
				advance(t.Context(), t, n.conn, time.Hour)
				claimed := n.claimed(notify.Schedule{KeepsState: true})
				if len(claimed) != 1 || string(claimed[0].Body.Content) != want {
					t.Fatalf("%s, edited during the attempt: %v: sent %+v, want %q", what, during, claimed, want)
				}
				return claimed[0]
			}
			edit := func(change func(*notify.Webhook)) {
				t.Helper()
				w, err := n.db.Webhooks().Get(t.Context(), tenant, n.webhook)
				if err != nil {
					t.Fatal(err)
				}
				w.Enabled = true
				change(&w)
				if _, err := n.db.Webhooks().Update(t.Context(), tenant, w); err != nil {
					t.Fatal(err)
				}
			}
			correct := func() { edit(func(w *notify.Webhook) { w.Inputs = map[string]string{"chat": "2"} }) }
			first := sent("to 1")
			if during {
				correct()
			}
			n.settled(first, answer)
			if !during {
				correct()
			}
			n.settled(sent("to 2"), notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 503})
			edit(func(w *notify.Webhook) { w.Name = "renamed" })
			if again := sent("to 2"); again.Fresh {
				t.Errorf("%s: after another name the body is made again", what)
			}
		}
	}
}

// TestAnEditDuringAClaimHasItsMessagesRenderedAgain has a person correct the chat while a message is being claimed, whose body
// already names the former: the attempt is not made, and the next one goes to the corrected chat.
func TestAnEditDuringAClaimHasItsMessagesRenderedAgain(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver", Preset: "telegram", Inputs: map[string]string{"chat": "1"}})
	claimed, err := wholeLooks{n.db.Outbox()}.Claim(t.Context(), dispatch.ClaimRequest{
		Replica: "a", Lease: time.Minute,
		Deal: func(due []dispatch.Due) []dispatch.Slots {
			return []dispatch.Slots{{WebhookID: due[0].WebhookID, Slots: 1}}
		},
		Render: func(d *notify.Delivery) (notify.Body, string, error) {
			w, err := n.db.Webhooks().Get(t.Context(), tenant, n.webhook)
			if err != nil {
				return notify.Body{}, "", err
			}
			w.Inputs = map[string]string{"chat": "2"}
			_, err = n.db.Webhooks().Update(t.Context(), tenant, w)
			return notify.Body{ContentType: "text/plain", Content: []byte("to " + d.Webhook.Inputs["chat"])}, "", err
		},
	})
	if err != nil || len(claimed.Deliveries) != 1 || !slices.Equal(claimed.Unwanted, []uuid.UUID{n.webhook}) {
		t.Fatalf("%+v, %v", claimed, err)
	}
	n.settled(claimed.Deliveries[0], notify.NotMade("Not sent: the webhook was edited"))
	advance(t.Context(), t, n.conn, time.Minute)
	again := n.claimed(notify.Schedule{})
	if len(again) != 1 || string(again[0].Body.Content) != "to 2" {
		t.Fatalf("sent %+v", again)
	}
	if got := one[int](t, n.conn, `select count(*) from notification_body`); got != 1 {
		t.Errorf("%d bodies are stored", got)
	}
}

// TestAnEditKeepsAPauseThatBeganMeanwhile: a receiver asks for a pause while a person edits its webhook.
func TestAnEditKeepsAPauseThatBeganMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver"})
	d := n.claimed(notify.Schedule{})[0]
	w, err := n.db.Webhooks().Get(t.Context(), tenant, n.webhook)
	if err != nil {
		t.Fatal(err)
	}
	policy, o := notify.DefaultPolicy(), notify.Outcome{Verdict: notify.VerdictThrottled, StatusCode: 429, RetryAfter: time.Hour}
	decision := policy.Decide(o, &d, 0)
	if _, err := n.db.Outbox().Settle(t.Context(), []dispatch.Settlement{{
		TenantID: tenant, NotificationID: d.NotificationID, WebhookID: d.Webhook.ID, WebhookVersion: d.Webhook.Version, Token: d.Token,
		Attempt: d.Attempt, Replica: "a", Outcome: o, Decision: decision,
		Breaker: func(was notify.Breaker, probe bool, now time.Time) notify.Breaker {
			return policy.Breaker.Next(was, notify.Evidence{Outcome: o, Hold: decision.Hold, Probe: probe, Now: now})
		},
	}}); err != nil {
		t.Fatal(err)
	}
	if held, err := n.db.Webhooks().Get(t.Context(), tenant, n.webhook); err != nil || held.HeldUntil.IsZero() {
		t.Fatalf("there is no pause, %v", err)
	}
	w.Name = "renamed"
	edited, err := n.db.Webhooks().Update(t.Context(), tenant, w)
	if err != nil || edited.Name != "renamed" || edited.HeldUntil.IsZero() {
		t.Errorf("%s is held until %v, %v", edited.Name, edited.HeldUntil, err)
	}
}

// TestThreadsBegunAtOnce: two dispatchers store what they have posted about the same issues, in opposite
// orders, and neither hinders the other. Of one issue one thread begins.
func TestThreadsBegunAtOnce(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	db := p.opened(t)
	p.exec(t, `update webhook set slack_channel = '#ops', slack_threads = true`)
	b := p.page()
	for i := range b.Instances {
		b.Instances[i].Exchange.Application = strconv.Itoa(i / 2)
	}
	p.write(t, b)
	var wait sync.WaitGroup
	failed := make([]error, 2)
	for replica := range failed {
		var posted []dispatch.Settlement
		for i := range b.Instances {
			n := &b.Notifications[i]
			posted = append(posted, dispatch.Settlement{
				TenantID: n.TenantID, NotificationID: n.ID, WebhookID: n.WebhookID, Token: 1, Attempt: replica + 1, Replica: "a",
				Outcome: notify.Outcome{Verdict: notify.VerdictThrottled}, Decision: notify.Decision{Status: notify.Retrying},
				Message: &notify.Message{
					Posted:  notify.Posted{Channel: "C1", TS: strconv.Itoa(replica) + "." + strconv.Itoa(i)},
					AlertID: n.AlertID, Reason: n.Reason, Begins: true,
				},
			})
		}
		if replica == 1 {
			slices.Reverse(posted)
		}
		wait.Go(func() { _, failed[replica] = db.Outbox().Settle(t.Context(), posted) })
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	if got := one[int](t, p.conn, `select count(*) from slack_thread`); got != pageOf/2 {
		t.Errorf("%d threads of %d issues", got, pageOf/2)
	}
}

// TestWhatASilenceSuppressedIsNotDiscarded checks that discarding it is rejected, with the reason.
func TestWhatASilenceSuppressedIsNotDiscarded(t *testing.T) {
	t.Parallel()
	n := newNapped(t, notify.Webhook{Name: "receiver"})
	d := n.claimed(notify.Schedule{})[0]
	n.settled(d, notify.Outcome{Verdict: notify.VerdictRefused, StatusCode: 400})
	n.exec(t, `update settlement set status = 'SUPPRESSED', silence_id = gen_random_uuid()`)
	if err := n.db.Record(nil).Discard(t.Context(), tenant, d.NotificationID, "ada@x"); err == nil || !strings.Contains(err.Error(), "a silence suppressed the message") {
		t.Errorf("discarded: %v", err)
	}
}
