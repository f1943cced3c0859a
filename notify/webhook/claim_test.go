package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/internal/mailtest"
	"tocsin/notify"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/template"
)

// lapsing returns a context that goes on, a claim of a delivery, and what ends that: a process that has stood still knows
// it before anybody else tells.
func lapsing(t *testing.T) (ctx context.Context, claim func() error, lose func()) {
	t.Helper()
	var lost atomic.Bool
	return t.Context(), func() error {
		if lost.Load() {
			return notify.ErrFenced
		}
		return nil
	}, func() { lost.Store(true) }
}

// losing returns a context and a claim of a delivery, and what ends both.
func losing(t *testing.T) (ctx context.Context, claim func() error, lose func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() error { return context.Cause(ctx) }, func() { cancel(notify.ErrFenced) }
}

// TestJiraStopsWithItsClaim before each of the calls of each kind of message. Nothing is called from then on,
// and the next attempt does what is left.
func TestJiraStopsWithItsClaim(t *testing.T) {
	t.Parallel()
	for _, reason := range []notify.Reason{notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved} {
		for after := 0; ; after++ {
			j := newJira(t)
			if reason != notify.ReasonFired {
				j.tells(notify.ReasonFired, template.Samples()[0], "")
			}
			j.Calls()
			d := j.message(reason, template.Samples()[0], "")
			ctx, claim, lose := losing(t)
			if d.Claim = claim; after == 0 {
				lose()
			}
			calls := 0
			j.Answer = func(*http.Request) *presettest.Answer {
				if calls++; calls == after {
					lose()
				}
				return nil
			}
			o := j.sender.Send(ctx, d)
			made := j.Calls()
			wrote := slices.ContainsFunc(made, func(call string) bool { return strings.HasPrefix(call, http.MethodPost) })
			if len(made) != after {
				t.Fatalf("%s: %d calls though the claim was lost in call %d: %q, %+v", reason, len(made), after, made, o)
			}
			if o.Verdict == notify.VerdictDelivered {
				break // all calls were made
			}
			if want := map[bool]notify.Verdict{false: notify.VerdictNotMade, true: notify.VerdictRetry}[wrote]; o.Verdict != want || !strings.Contains(o.Error, notify.ErrFenced.Error()) || o.Unanswered() {
				t.Errorf("%s, after %q: %+v, want %v", reason, made, o, want)
			}
			j.Answer = nil
			j.tells(reason, template.Samples()[0], "")
			i := j.only()
			if want := map[notify.Reason]int{notify.ReasonReminder: 1, notify.ReasonResolved: 1}[reason]; len(i.Comments) != want || (i.Status == "Done") != (reason == notify.ReasonResolved) {
				t.Errorf("%s, after %q and another attempt: %+v", reason, made, i)
			}
		}
	}
}

// TestNoIssueIsMadeByWhoStoodStill between the check before the call and the call itself, as while a connection was made.
func TestNoIssueIsMadeByWhoStoodStill(t *testing.T) {
	t.Parallel()
	j := newJira(t)
	d := j.message(notify.ReasonFired, template.Samples()[0], "")
	asked := 0
	d.Claim = func() error {
		// Before the search, before the issue is made, and when what makes it leaves.
		if asked++; asked < 3 {
			return nil
		}
		return notify.ErrFenced
	}
	o := j.sender.Send(t.Context(), d)
	if made := j.Calls(); len(made) != 1 || asked != 3 || o.Verdict != notify.VerdictNotMade {
		t.Errorf("calls %q, asked %d times, %+v; want the search only", made, asked, o)
	}
	d.Claim = nil
	if o := j.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Errorf("the next attempt: %+v", o)
	}
	j.only()
}

// TestWhatHasLeftIsWaitedFor though its claim is lost: the answer tells more than that there was none.
func TestWhatHasLeftIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx, claim, lose := losing(t)
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		lose()
		<-time.After(200 * time.Millisecond)
		w.WriteHeader(http.StatusCreated)
	})
	o := newSender(t).Send(ctx, delivery(server.URL, func(d *notify.Delivery) { d.Claim = claim }))
	if o.Verdict != notify.VerdictDelivered || o.StatusCode != http.StatusCreated {
		t.Errorf("outcome %+v, want what was answered", o)
	}
	// But not for longer than otherwise.
	ctx, claim, lose = losing(t)
	released := make(chan struct{})
	hanging := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		lose()
		<-released
	})
	t.Cleanup(func() { close(released) })
	if o := newSender(t).Send(ctx, delivery(hanging.URL, within(300*time.Millisecond), func(d *notify.Delivery) { d.Claim = claim })); o.Verdict != notify.VerdictUnknown || o.NothingSent {
		t.Errorf("outcome without an answer %+v, want unknown", o)
	}
}

// TestNothingLeavesWithoutAClaim that was lost before, or while a connection is made.
func TestNothingLeavesWithoutAClaim(t *testing.T) {
	t.Parallel()
	var called atomic.Int32
	server := receiver(t, func(http.ResponseWriter, *http.Request) { called.Add(1) })
	for _, end := range []func(*testing.T) (context.Context, func() error, func()){losing, lapsing} {
		ctx, claim, lose := end(t)
		lose()
		o := newSender(t).Send(ctx, delivery(server.URL, func(d *notify.Delivery) { d.Claim = claim }))
		if o.Verdict != notify.VerdictNotMade || called.Load() != 0 {
			t.Errorf("lost before: %+v, %d calls", o, called.Load())
		}
	}
	// A server that takes connections, and never shakes hands.
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx, claim, lose := losing(t)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // a test's
		_, _ = conn.Read(make([]byte, 1))
		lose()
		_, _ = io.Copy(io.Discard, conn)
	}()
	began := time.Now()
	o := newSender(t).Send(ctx, delivery(fmt.Sprintf("https://%s/", listener.Addr()), within(time.Minute), func(d *notify.Delivery) { d.Claim = claim }))
	if o.Verdict == notify.VerdictDelivered || time.Since(began) > 30*time.Second {
		t.Errorf("lost while a connection is made: %+v after %v", o, time.Since(began))
	}
}

// TestAnEmailStopsWithItsClaim at each step before the message is handed over, and is waited for afterwards.
func TestAnEmailStopsWithItsClaim(t *testing.T) {
	t.Parallel()
	for i, step := range []string{"before", mailtest.Recipient + "ann@example.com", mailtest.Data, "before", mailtest.Recipient + "ann@example.com", mailtest.Data} {
		p := newPost(t)
		end := losing
		if i > 2 {
			end = lapsing
		}
		ctx, claim, lose := end(t)
		d := p.write(t, notify.ReasonFired, func(d *notify.Delivery) { d.Claim = claim })
		if step == "before" {
			lose()
		} else {
			p.server.When(step, lose)
		}
		o := p.sender.Send(ctx, d)
		if step == mailtest.Data {
			if o.Verdict != notify.VerdictDelivered || len(p.server.Messages()) != 1 {
				t.Errorf("%s: %+v, %d messages; want it waited for", step, o, len(p.server.Messages()))
			}
			continue
		}
		if o.Verdict != notify.VerdictNotMade || len(p.server.Messages()) != 0 {
			t.Errorf("%s: %+v, %d messages; want none", step, o, len(p.server.Messages()))
		}
	}
}
