package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/slack"
)

// digesting stores a webhook of the world's receiver, with digests.
func (w *world) digesting(kind notify.WebhookKind, above int, rate float64) uuid.UUID {
	w.t.Helper()
	hook, err := w.db.Webhooks().Create(w.t.Context(), tenant, notify.Webhook{
		Name: uuid.NewString(), Kind: kind, URL: w.receiver.url, Enabled: true, DigestAbove: above, RatePerSecond: rate,
		Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return hook.ID
}

// storm queues n notifications of alerts that a rule raised, all at once.
func (w *world) storm(webhook uuid.UUID, n int) {
	w.t.Helper()
	rule := w.rule(webhook)
	w.fill(`
		with raised as (
			insert into alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, execution_id,
			                   start_time_ns, application, route, exchange)
			select gen_random_uuid(), $1, $2, 1, 'CRITICAL', 'FIRING', 'failed', 'ERP refused order ' || i, $4 || i,
			       1795244520000000000 + i, 'orders', 'route-' || i % 12, jsonb_build_object(
			           'tenantId', $1::text, 'executionId', $4 || i, 'startTimeNs', 1795244520000000000 + i, 'application', 'orders',
			           'route', 'route-' || i % 12, 'status', 'FAILED', 'errorType', 'ConnectException',
			           'errorMessage', 'ERP refused order ' || i, 'errorStack', repeat('at com.example.Erp.post(Erp.java:57)', 20))
			from generate_series(1, $5::int) i
			returning alert_id
		), written as (
			insert into notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			select gen_random_uuid(), $1, alert_id, $2, $3, 'FIRED' from raised
			returning notification_id, webhook_id
		)
		insert into outbox (notification_id, webhook_id) select notification_id, webhook_id from written`,
		tenant, rule.ID, webhook, rule.ID.String()+"-", n)
}

// counted are the messages of each kind that the receiver got: their number, and how many
// notifications they contain by their own account.
type counted struct{ singles, digests, notifications int }

// judging makes the receiver one that accepts what Slack would, and counts.
func (w *world) judging() func() counted {
	var mu sync.Mutex
	var got counted
	w.receiver.tap = func(body []byte) {
		mu.Lock()
		defer mu.Unlock()
		if err := slack.Valid(body); err != nil {
			w.t.Errorf("Slack would refuse a message: %v", err)
		}
		before, found := strings.CutSuffix(between(string(body), "`  ·  ", " in one message"), " notifications")
		if !found {
			got.singles++
			got.notifications++
			return
		}
		n, err := strconv.Atoi(strings.ReplaceAll(before, ",", ""))
		if err != nil {
			w.t.Errorf("a digest says %q", before)
		}
		got.digests++
		got.notifications += n
	}
	return func() counted {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// Queries for notifications and their messages. A notification is in exactly one message: its own
// or its digest's.
const (
	digestSizes = `select size::text from digest order by size desc`
	// loose are notifications that are in no message, or in two.
	loose = `select n.notification_id::text from notification n
		where n.reason <> 'DIGEST' and 1 <> (select count(*) from digest_member m where m.notification_id = n.notification_id)
			+ (select count(*) from (select notification_id from outbox union all select notification_id from settlement) own
			   where own.notification_id = n.notification_id)`
	wrongSizes = `select notification_id::text from digest d
		where size <> (select count(*) from digest_member m where m.digest_id = d.notification_id)`
)

// wantWhole checks that each notification is in exactly one message.
func (w *world) wantWhole() {
	w.t.Helper()
	w.wantColumn("notifications in no message or two", loose)
	w.wantColumn("digests of another size than they say", wrongSizes)
}

func TestTheBoundOfDigests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		above, waiting int
		digests        []string
		messages       int
	}{
		"one below":              {20, 19, nil, 19},
		"at":                     {20, 20, nil, 20},
		"one above":              {20, 21, []string{"21"}, 1},
		"never":                  {0, 60, nil, 60},
		"more than one digest":   {20, notify.DigestSize + 30, []string{strconv.Itoa(notify.DigestSize), "30"}, 2},
		"a rest below the bound": {20, notify.DigestSize + 3, []string{strconv.Itoa(notify.DigestSize)}, 4},
		"a high bound":           {notify.DigestSize + 10, notify.DigestSize + 11, []string{strconv.Itoa(notify.DigestSize + 11)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.storm(w.digesting(notify.KindGeneric, c.above, 0), c.waiting)
			for range c.waiting {
				if result, err := w.dispatcher.Tick(t.Context()); err != nil || result.Claimed == 0 {
					break
				}
			}
			w.wantColumn("digests", digestSizes, c.digests...)
			w.wantColumn("open", unsettledOutbox)
			w.wantWhole()
			if got := len(w.receiver.webhookIDs()); got != c.messages {
				t.Errorf("%d messages, want %d", got, c.messages)
			}
		})
	}
}

func TestWhatWasAttemptedIsNotGathered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.digesting(notify.KindGeneric, 20, 0)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.storm(hook, 5)
	w.deliver()
	w.exec(`update outbox set due_at = now(), ready_at = now() where attempts > 0`)
	w.forgive()
	w.storm(hook, 21)
	w.receiver.respond(nil)
	w.deliver()
	w.wantColumn("digests", digestSizes, "21")
	w.wantColumn("statuses", statuses, "DELIVERED 27")
	w.wantWhole()
}

func TestMembersHaveTheStatusOfTheirDigest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   []string
	}{
		"delivered": {http.StatusOK, []string{"DELIVERED 31"}},
		"refused":   {http.StatusBadRequest, []string{"FAILED 31"}},
		"retrying":  {http.StatusBadGateway, []string{"RETRYING 31"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(c.status) })
			w.storm(w.digesting(notify.KindGeneric, 20, 0), 30)
			w.deliver()
			w.wantColumn("statuses", statuses, c.want...)
			w.wantWhole()
		})
	}
}

func TestExhaustedDigestLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.storm(w.digesting(notify.KindGeneric, 20, 0), 30)
	for range 6 {
		w.deliver()
		w.exec(`update outbox set due_at = now(), ready_at = now()`)
		w.forgive()
	}
	w.wantColumn("statuses", statuses, "EXHAUSTED 31")
	ids := w.receiver.webhookIDs()
	if len(ids) != 6 || len(slices.Compact(ids)) != 1 {
		t.Errorf("%q: want six attempts under one id", ids)
	}
}

func TestManyGatherAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.storm(w.digesting(notify.KindGeneric, 20, 0), 2*notify.DigestSize+500)
	const dispatchers = 6
	ended := make(chan error, dispatchers)
	for i := range dispatchers {
		d := w.newDispatcher(dispatch.Options{Replica: fmt.Sprint("replica ", i)})
		go func() {
			for {
				result, err := d.Tick(t.Context())
				if err != nil || result.Claimed == 0 {
					ended <- err
					return
				}
			}
		}()
	}
	for range dispatchers {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.deliver()
	w.wantColumn("open", unsettledOutbox)
	w.wantWhole()
	w.wantColumn("statuses of the open ones", `select distinct status from notification_status`, "DELIVERED")
}

func TestDigestPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var body []byte
	w.receiver.tap = func(b []byte) { body = b }
	w.storm(w.digesting(notify.KindGeneric, 1, 0), 30)
	w.deliver()
	var got struct {
		Type string
		Data struct {
			Digest struct {
				ID      string
				Size    int
				Reasons map[string]int
				Places  int
			}
			Rules  []struct{ Count int }
			Places []struct{ Count int }
			Errors []struct {
				ErrorType, ErrorMessage string
				Count                   int
			}
			First, Last struct {
				Exchange struct{ ExecutionID, StartTime string }
			}
			Alerts []string
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	d := got.Data
	if got.Type != "digest" || d.Digest.Size != 30 || d.Digest.Reasons["FIRED"] != 30 || d.Digest.Places != 12 ||
		len(d.Rules) != 1 || d.Rules[0].Count != 30 || len(d.Places) != notify.DigestTop || d.Places[0].Count != 3 {
		t.Errorf("%s", body)
	}
	// Errors that differ by a number count as one.
	if len(d.Errors) != 1 || d.Errors[0].Count != 30 || d.Errors[0].ErrorType != "ConnectException" {
		t.Errorf("errors %+v", d.Errors)
	}
	if !strings.HasSuffix(d.First.Exchange.ExecutionID, "-1") || !strings.HasSuffix(d.Last.Exchange.ExecutionID, "-30") {
		t.Errorf("first %+v, last %+v", d.First, d.Last)
	}
	w.wantColumn("the digest", `select notification_id::text from digest`, d.Digest.ID)
	slices.Sort(d.Alerts)
	w.wantColumn("alerts", `select alert_id::text from alert order by alert_id`, d.Alerts...)
}

// stillOpen returns a row while anything is queued.
const stillOpen = `select 'yes' where exists (select from outbox)`

// TestStormBecomesDigests sends more than a channel can take, kills a replica in the middle, lets
// two more continue, and checks that each notification is in exactly one message.
func TestStormBecomesDigests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.judging()
	const n = 2*notify.DigestSize + 2000
	w.storm(w.digesting(notify.KindSlack, notify.SlackDigestAbove, 4), n)
	// A claim ends with its lease, and one of that many takes long on a busy machine.
	settings := []string{"TOCSIN_ROLES=dispatch", "TOCSIN_LEASE=1m"}
	first := w.serve(settings...)
	w.until("a digest is on its way", func() bool { return got().digests > 0 })
	first.kill()
	w.serve(settings...)
	w.serve(settings...)
	w.until("nothing is open", func() bool { return len(w.column(stillOpen)) == 0 })
	w.wantColumn("statuses", `select distinct status from notification_status`, "DELIVERED")
	w.wantWhole()
	// The one message that may be repeated after the kill has an attempt of unknown outcome.
	repeats := w.column(`select d.size::text from attempt_history join digest d using (notification_id) where verdict is null`)
	want := n
	for _, size := range repeats {
		again, _ := strconv.Atoi(size)
		want += again
	}
	if sum := got(); sum.notifications > want || sum.notifications < n {
		t.Errorf("%d notifications sent of %d, with repeats at most %d", sum.notifications, n, want)
	}
}

// BenchmarkStorm measures how long 100,000 notifications take to drain at one
// message a second, and in how many messages.
func BenchmarkStorm(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		got := w.judging()
		w.storm(w.digesting(notify.KindSlack, notify.SlackDigestAbove, notify.SlackRatePerSecond), n)
		b.StartTimer()
		w.serve("TOCSIN_ROLES=dispatch")
		w.until("nothing is open", func() bool { return len(w.column(stillOpen)) == 0 })
		b.StopTimer()
		w.wantWhole()
		sum := got()
		if sum.notifications != n {
			b.Errorf("%d notifications sent of %d", sum.notifications, n)
		}
		b.ReportMetric(float64(sum.digests+sum.singles), "messages")
		b.StartTimer()
	}
}

// TestKilledWhileGathering blocks a replica inside the statement, kills it there, and lets another
// one continue.
func TestKilledWhileGathering(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"naming the members":  `create trigger pause before insert on digest_member for each statement execute function pause()`,
		"taking their rows":   `create trigger pause before delete on outbox for each statement execute function pause()`,
		"committing":          `create constraint trigger pause after insert on digest deferrable initially deferred for each row execute function pause()`,
		"claiming the digest": `create trigger pause before update on outbox for each row execute function pause()`,
		"freezing its body":   `create trigger pause before insert on notification_body for each statement execute function pause()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.storm(w.digesting(notify.KindGeneric, 20, 0), 300)
			m := w.mortal()
			m.killedInside(trigger, m.deliver)()
			w.goesOn(w.delivers, "nothing is open", stillOpen)
			w.wantColumn("digests", digestSizes, "300")
			w.wantColumn("statuses", statuses, "DELIVERED 301")
			w.wantWhole()
			if got := len(w.receiver.webhookIDs()); got != 1 {
				t.Errorf("%d messages, want one", got)
			}
		})
	}
}

// TestOutageNotifiesOperatorsOnce lets many rules fail at once.
func TestOutageNotifiesOperatorsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.judging()
	_, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
		Name: "operators", Kind: notify.KindSlack, URL: w.receiver.url, Enabled: true, Operators: true,
		DigestAbove: notify.SlackDigestAbove, Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
	})
	if err != nil {
		t.Fatal(err)
	}
	const rules = 80
	for range rules {
		w.rule()
	}
	tick := func(what string, tick func() error) {
		t.Helper()
		if err := tick(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w.deliver()
	}
	w.refuse(`new.rule_id is not null`)
	w.fail(w.ch.Now(t), "refused")
	tick("outage", func() error {
		result, err := w.tickWith(w.evaluator)
		if err == nil && result.Failed != rules {
			err = errors.New("not every rule failed")
		}
		return err
	})
	if sum := got(); sum != (counted{digests: 1, notifications: rules}) {
		t.Errorf("after the outage: %+v, want one message about all", sum)
	}
	w.accept()
	tick("end", func() error {
		w.until("every rule has recovered", func() bool {
			w.later(time.Minute)
			w.tick()
			return len(w.column(`select rule_id::text from rule_failing`)) == 0
		})
		return nil
	})
	if sum := got(); sum != (counted{digests: 2, notifications: 2 * rules}) {
		t.Errorf("after its end: %+v, want one more", sum)
	}
	w.wantWhole()
}

// TestDigestOfAWebhookThatWentOff keeps what is queued.
func TestDigestOfAWebhookThatWentOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.digesting(notify.KindGeneric, 20, 0)
	w.storm(hook, 30)
	w.exec(`update webhook set enabled = false where webhook_id = $1`, hook)
	w.deliver()
	w.wantColumn("digests", digestSizes)
	w.exec(`update webhook set enabled = true where webhook_id = $1`, hook)
	w.receiver.respond(func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		rw.WriteHeader(http.StatusGone)
	})
	w.deliver()
	w.wantColumn("statuses", statuses, "RETRYING 31")
	w.wantColumn("webhook", `select enabled::text from webhook`, "false")
}

// TestDigestOfWebhooksThatWentOff notifies operators how many webhooks were disabled, and why.
func TestDigestOfWebhooksThatWentOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operators()
	w.exec(`update webhook set kind = 'slack', digest_above = 2`)
	for i := range 3 {
		w.raiseFor(w.webhook(fmt.Sprint("ops-", i)), strconv.Itoa(i))
	}
	w.status(http.StatusGone)
	w.deliver()
	var body []byte
	w.receiver.tap = func(b []byte) { body = b }
	w.receiver.respond(nil)
	w.deliver()
	var got struct {
		Text string
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const want = "🔴 CRITICAL 3 webhooks are disabled\nIt was disabled: The receiver answered 410 Gone"
	if !strings.HasPrefix(got.Text, want) {
		t.Errorf("text %q, want it to begin with %q", got.Text, want)
	}
}

// TestADigestThatIsRepeatedHoldsUpNoOther has a digest whose repetition is due, and messages that became ready before that:
// these are combined as well, and not sent one by one.
func TestADigestThatIsRepeatedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.judging()
	hook := w.digesting(notify.KindSlack, notify.SlackDigestAbove, notify.SlackRatePerSecond)
	w.storm(hook, 30)
	first := w.claim()
	if len(first) != 1 || first[0].Reason != notify.ReasonDigest {
		t.Fatalf("claimed %+v, want a digest", first)
	}
	w.storm(hook, 25)
	if err := w.settle(settlement(&first[0], notify.VerdictNotMade, notify.Retrying)); err != nil {
		t.Fatal(err)
	}
	w.until("nothing is open", func() bool {
		w.deliver()
		return len(w.column(stillOpen)) == 0
	})
	w.wantColumn("digests", digestSizes, "30", "25")
	if sum := got(); sum != (counted{digests: 2, notifications: 55}) {
		t.Errorf("received %+v, want two digests of 55 notifications", sum)
	}
	w.wantWhole()
}
