package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
	"tocsin/internal/pgtest"
	"tocsin/rules"
)

// brisk are heartbeat settings that detect dead replicas soon, while leases hardly ever expire by
// themselves: what is taken over was released.
func brisk() []string {
	return []string{
		"TOCSIN_HEARTBEAT_INTERVAL=200ms", "TOCSIN_DEAD_AFTER=2500ms", "TOCSIN_DEAD_CHECK_INTERVAL=300ms",
		"TOCSIN_PARTITION_LEASE=10m", "TOCSIN_LEASE=10m",
	}
}

// Queries for what replicas did. Alerts about rules themselves are excluded.
const (
	raised          = `select execution_id from alert where execution_id is not null order by execution_id`
	attemptVerdicts = `select attempt || ' ' || coalesce(verdict, 'unknown') from attempt_history order by notification_id, attempt`
	settlements     = `select status || ' ' || count(*) from settlement group by status`
	leasedBy        = `select distinct owner from checkpoint where owner is not null
		union all select claimed_by from outbox where claimed_by is not null`
	leftBehind = `select owner from (` + leasedBy + `) c where owner not in (select replica_id from replica)`
)

// pauseInside makes statements wait at a trigger until goOn is called.
func (w *world) pauseInside(trigger string) (goOn func()) {
	w.t.Helper()
	w.exec(`create function pause() returns trigger language plpgsql as $$
		begin
			perform set_config('lock_timeout', '0', true); -- a commit waits for at most five seconds
			perform pg_advisory_xact_lock_shared(4711);
			return coalesce(new, old);
		end $$`)
	w.exec(trigger)
	holder := pgtest.Conn(w.t, w.pgURL)
	if _, err := holder.Exec(w.t.Context(), `select pg_advisory_lock(4711)`); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if _, err := holder.Exec(w.t.Context(), `select pg_advisory_unlock(4711)`); err != nil {
			w.t.Fatal(err)
		}
	}
}

// untilInside waits until a replica waits at the trigger.
func (w *world) untilInside() {
	w.t.Helper()
	w.until("the replica is inside the statement", w.isInside)
}

// isInside reports whether a replica waits at the trigger.
func (w *world) isInside() bool {
	w.t.Helper()
	return len(w.column(`select pid::text from pg_stat_activity
		where wait_event = 'advisory' and datname = current_database() and application_name = 'tocsin'`)) > 0
}

// stop pauses the process, and waits until it is paused.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process is not paused: %v, %v", status, err)
	}
}

// goOn resumes it.
func (p *process) goOn(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// terminate ends it in an orderly way; exited is closed when it has ended.
func (p *process) terminate(t *testing.T) (exited chan struct{}) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	exited = make(chan struct{})
	go func() {
		defer close(exited)
		<-p.over
		if err := p.Wait(); err != nil {
			t.Errorf("after SIGTERM: %v; log: %s", err, p.logged.String())
		}
	}()
	return exited
}

// id returns the replica's id, from its log.
func (p *process) id(tb testing.TB) string {
	tb.Helper()
	_, after, found := strings.Cut(p.logged.String(), "replica=")
	if !found {
		tb.Fatalf("the log names no replica: %s", p.logged.String())
	}
	return strings.Fields(after)[0]
}

// wait waits for a channel.
func (w *world) wait(what string, happened <-chan struct{}) {
	w.t.Helper()
	w.until(what, func() bool {
		select {
		case <-happened:
			return true
		default:
			return false
		}
	})
}

func (w *world) untilLogged(p *process, texts ...string) {
	w.t.Helper()
	w.until("the paused replica logs "+strings.Join(texts, " or "), func() bool {
		return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(p.logged.String(), s) })
	})
}

func (w *world) untilDelivered(n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d messages are delivered", n), func() bool {
		return slices.Equal(w.column(settlements), []string{fmt.Sprintf("DELIVERED %d", n)})
	})
}

// closableProxy is a proxy to ClickHouse that can be closed.
type closableProxy struct {
	url     string
	mu      sync.Mutex
	opened  chan struct{}
	waiting chan struct{}
}

func (w *world) closableProxy() *closableProxy {
	w.t.Helper()
	target, err := url.Parse(w.ch.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	server := *target
	server.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(&server)
	g := &closableProxy{waiting: make(chan struct{}, 100)}
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport = transport
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened != nil {
			g.waiting <- struct{}{}
			<-opened
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(front.Close)
	own, err := url.Parse(front.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	own.User, own.Path, own.RawQuery = target.User, target.Path, target.RawQuery
	g.url = own.String()
	return g
}

// shut makes requests wait from now on until open is called.
func (g *closableProxy) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.opened = opened
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.opened = nil
		close(opened)
	})
}

// TestPausedWhileJudging pauses a process between its lease and its commit. The commit that it
// makes afterwards is rejected because of its token.
func TestPausedWhileJudging(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	proxy := w.closableProxy()
	first := w.serve(append(brisk(), "TOCSIN_CLICKHOUSE_URL="+proxy.url)...)
	w.until("it evaluates", func() bool { return len(w.column(cursors)) == 1 })
	open := proxy.shut()
	defer open()
	w.wait("ClickHouse is asked", proxy.waiting)
	w.wantColumn("leases", leasedBy, first.id(t))
	w.fail(w.ch.Now(t), "a")
	first.stop(t)
	w.serve(brisk()...)
	w.untilDelivered(1)
	first.goOn(t)
	open()
	w.until("its commit is fenced", func() bool { return first.metrics(t)["tocsin_fenced_total"] == "1" })
	w.fail(w.ch.Now(t), "b")
	w.untilDelivered(2)
	w.wantColumn("alerts", raised, "a", "b")
	w.wantColumn("attempts", attemptVerdicts, "1 DELIVERED", "1 DELIVERED")
	if got := strings.Join(w.receiver.received(), ""); got != "ab" {
		t.Errorf("the receiver got %q, want each once", got)
	}
}

// TestPausedInsideATransaction pauses a process between two statements of a transaction. Postgres
// ends the transaction, so that its locks do not block others, and nothing of it is written.
func TestPausedInsideATransaction(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"advancing the cursor": `create trigger pause before update on checkpoint for each row when (old.revision <> new.revision and new.cursor is not null) execute function pause()`,
		"claiming a message":   `create trigger pause before update on outbox for each row when (new.begun_at is not null) execute function pause()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.rule(w.webhook("ops"))
			w.fail(rule.ArmedSinceNS+1000, "a")
			goOn := w.pauseInside(trigger)
			first := w.serve(brisk()...)
			w.untilInside()
			first.stop(t)
			goOn()
			w.serve(brisk()...)
			w.untilDelivered(1)
			first.goOn(t)
			w.untilLogged(first, "pass failed", "claim failed")
			w.fail(w.ch.Now(t), "b")
			w.untilDelivered(2)
			w.wantColumn("alerts", raised, "a", "b")
			w.wantColumn("attempts", attemptVerdicts, "1 DELIVERED", "1 DELIVERED")
			if got := strings.Join(w.receiver.received(), ""); got != "ab" {
				t.Errorf("the receiver got %q, want each once", got)
			}
		})
	}
}

// TestPausedWhileCommitting pauses a process before it learns that its commit succeeded: the work
// is done, and not repeated. Nothing is sent after such a pause for what a claim has begun.
func TestPausedWhileCommitting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger, logged string
		attempts        []string
	}{
		"alerts":  {`after insert on outbox`, `msg="pass done"`, []string{"1 DELIVERED", "1 DELIVERED"}},
		"a claim": {`after update on outbox`, `msg="outcome not settled, because the lease of the message was lost;`, []string{"1 NOT_MADE", "2 DELIVERED", "1 DELIVERED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.rule(w.webhook("ops"))
			w.fail(rule.ArmedSinceNS+1000, "a")
			goOn := w.pauseInside(`create constraint trigger pause ` + c.trigger + ` deferrable initially deferred for each row execute function pause()`)
			first := w.serve(brisk()...)
			w.untilInside()
			first.stop(t)
			goOn()
			w.serve(brisk()...)
			w.untilDelivered(1)
			first.goOn(t)
			w.untilLogged(first, c.logged)
			w.fail(w.ch.Now(t), "b")
			w.untilDelivered(2)
			w.wantColumn("alerts", raised, "a", "b")
			w.wantColumn("attempts", attemptVerdicts, c.attempts...)
			if got := strings.Join(w.receiver.received(), ""); got != "ab" {
				t.Errorf("the receiver got %q, want each once", got)
			}
		})
	}
}

// TestPausedDuringACall pauses a process while the receiver has its message. Another replica sends
// it again, with the same webhook-id, by which a receiver can recognise the repetition. However the
// first call ends, before or after the second one, its outcome is kept with its attempt, and a
// failure changes nothing else.
func TestPausedDuringACall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		verdict string
		// during is set if the second call has not ended by then.
		during bool
	}{
		"accepted after": {http.StatusOK, "DELIVERED", false},
		"refused during": {http.StatusBadRequest, "REFUSED", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.rule(w.webhook("ops"))
			w.exec(`update webhook set timeout_ms = 60000`)
			w.fail(rule.ArmedSinceNS+1000, "a")
			calls := make(chan chan int, 2)
			w.receiver.respond(func(answer http.ResponseWriter, _ *http.Request) {
				status := make(chan int, 1)
				calls <- status
				answer.WriteHeader(<-status)
			})
			first := w.serve(brisk()...)
			firstCall := w.call(calls)
			first.stop(t)
			second := w.serve(brisk()...)
			secondCall := w.call(calls)
			if !c.during {
				secondCall <- http.StatusOK
				w.untilDelivered(1)
			}
			firstCall <- c.status
			first.goOn(t)
			w.untilLogged(first, `msg="outcome not settled, because the lease of the message was lost;`)
			if c.during {
				if c.verdict != "DELIVERED" {
					w.wantColumn("the claim", `select claimed_by from outbox where attempts = 2 and counted = 0 and due_at > now() + interval '9 min'`, second.id(t))
				}
				secondCall <- http.StatusOK
				w.until("the second call is settled", func() bool {
					return len(w.column(`select verdict from attempt_history where attempt = 2 and verdict is not null`)) == 1
				})
			}
			w.wantColumn("attempts", attemptVerdicts, "1 "+c.verdict, "2 DELIVERED")
			w.wantColumn("settlements", settlements, "DELIVERED 1")
			w.wantColumn("outbox", unsettledOutbox)
			w.wantColumn("alerts", raised, "a")
			if ids := w.receiver.webhookIDs(); len(ids) != 2 || ids[0] != ids[1] {
				t.Errorf("webhook-ids %q, want the same one twice", ids)
			}
		})
	}
}

// call waits for the next call to the receiver.
func (w *world) call(calls <-chan chan int) (answer chan<- int) {
	w.t.Helper()
	w.until("the receiver is called", func() bool {
		select {
		case status := <-calls:
			answer = status
			return true
		default:
			return false
		}
	})
	// The call ends whenever the test does.
	w.t.Cleanup(func() {
		select {
		case answer <- http.StatusOK:
		default:
		}
	})
	return answer
}

// TestLeasesOfTheDeadAreReleasedInTime kills a replica that holds partitions and a
// notification for ten minutes.
func TestLeasesOfTheDeadAreReleasedInTime(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2)
	w.rule(w.webhook("ops"))
	// How long after its replica's last heartbeat each lease ends.
	w.exec(`create table released (what text, after_seconds double precision)`)
	w.exec(`create function released() returns trigger language plpgsql as $$ begin
		insert into released select tg_table_name, extract(epoch from clock_timestamp() - beat_at) from replica
		where replica_id = coalesce(to_jsonb(old)->>'owner', to_jsonb(old)->>'claimed_by');
		return new; end $$`)
	for table, owner := range map[string]string{"checkpoint": "owner", "outbox": "claimed_by"} {
		w.exec(`create trigger released after update on ` + table + ` for each row
			when (old.` + owner + ` is not null and new.` + owner + ` is null) execute function released()`)
	}
	// On a busy machine the call would be over before its replica is killed.
	w.exec(`update webhook set timeout_ms = 60000`)
	called, release := w.receiver.hang()
	defer release()
	first := w.serve(brisk()...)
	w.fail(w.ch.Now(t), "a")
	w.wait("the receiver is called", called)
	goOn := w.pauseInside(`create trigger pause before insert on alert for each statement execute function pause()`)
	w.fail(w.ch.Now(t), "b")
	w.untilInside()
	dead := first.id(t)
	w.wantColumn("leases", leasedBy, dead, dead)
	w.wantColumn("leases that expire soon", `select owner from checkpoint where lease_until < now() + interval '5 min'
		union all select claimed_by from outbox where due_at < now() + interval '9 min'`)
	second := w.serve(append(brisk(), "TOCSIN_ROLES=api")...)
	w.until("the second replica beats", func() bool { return len(w.column(`select replica_id from replica`)) == 2 })
	w.exec(`delete from released`)
	first.kill()
	goOn()
	w.receiver.respond(nil)
	w.until("all leases are released", func() bool { return len(w.column(`select what from released`)) == 3 })
	w.wantColumn("what was released", `select what || ' ' || count(*) from released group by what order by what`, "checkpoint 2", "outbox 1")
	for _, text := range w.column(`select after_seconds::text from released`) {
		// Dead after 2.5 s, checked every 0.3 s; the rest is due to the machine. The leases last
		// for ten minutes.
		if after, err := strconv.ParseFloat(text, 64); err != nil || after < 2.5 || after > waitLimit.Seconds() {
			t.Errorf("released %s s after the last beat, want between 2.5 and 2.8", text)
		}
	}
	w.until("it is logged", func() bool {
		return strings.Contains(second.logged.String(), `msg="leases of a dead replica released"`) &&
			strings.Contains(second.logged.String(), "dead="+dead)
	})
	w.serve(brisk()...)
	w.untilDelivered(2)
	w.wantColumn("alerts", raised, "a", "b")
	w.wantColumn("attempts", `select attempt || ' ' || coalesce(verdict, 'unknown') from attempt_history order by 1`,
		"1 DELIVERED", "1 unknown", "2 DELIVERED")
}

// TestRollingRestart replaces three replicas one after the other while exchanges fail. Leases
// hardly ever expire here, and no replica can be found dead in time: work continues because it was
// handed over.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 3)
	hook := w.webhook("ops")
	for i := range 4 {
		w.ruleOf(rules.Definition{Name: strconv.Itoa(i), WebhookIDs: []uuid.UUID{hook}})
	}
	// On a busy machine a replica may be silent, or take to end, for longer than usual. Its messages would then be sent again.
	settings := []string{"TOCSIN_PARTITION_LEASE=10m", "TOCSIN_LEASE=10m", "TOCSIN_DEAD_AFTER=10m", "TOCSIN_SHUTDOWN_TIMEOUT=3m"}
	// Each call takes so long that some are under way whenever a replica ends.
	w.receiver.respond(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	var ids []string
	traffic := func(until <-chan struct{}) {
		enough := time.After(waitLimit)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-until:
				return
			case <-enough:
				t.Fatal("a replica neither ends nor starts")
			case <-ticker.C:
				ids = append(ids, fmt.Sprintf("%05d", len(ids)))
				w.fail(w.ch.Now(t), ids[len(ids)-1])
			}
		}
	}
	var replicas []*process
	for range 3 {
		replicas = append(replicas, w.serve(settings...))
	}
	for _, old := range replicas {
		enough := make(chan struct{})
		time.AfterFunc(600*time.Millisecond, func() { close(enough) })
		traffic(enough)
		traffic(old.terminate(t))
		// Before the next start, which in a test ends the leases of those that have left.
		w.wantColumn("leases of replicas that have left", leftBehind)
		fresh := w.start(settings...)
		traffic(fresh.ready)
	}
	w.untilDelivered(4 * len(ids))
	if len(ids) < 10 {
		t.Errorf("only %d exchanges failed meanwhile", len(ids))
	}
	w.wantColumn("alerts of each exchange", `select distinct n::text from (select count(*) n from alert group by execution_id) x`, "4")
	w.wantColumn("exchanges", `select count(distinct execution_id)::text from alert`, strconv.Itoa(len(ids)))
	w.wantColumn("attempts", `select verdict || ' ' || count(*) from attempt_history group by verdict`, fmt.Sprintf("DELIVERED %d", 4*len(ids)))
	if got := len(w.receiver.received()); got != 4*len(ids) {
		t.Errorf("the receiver got %d messages, want %d", got, 4*len(ids))
	}
	// There is a pass every 0.25 s; a hand-over may add a tick, but far less than a lease. The rest
	// is due to the machine.
	for _, text := range w.column(`select max(extract(epoch from fired_at) - start_time_ns / 1e9)::text from alert`) {
		longest, err := strconv.ParseFloat(text, 64)
		if err != nil || longest > waitLimit.Seconds() {
			t.Errorf("the longest time from failure to alert is %s s", text)
		}
		t.Logf("%d exchanges, 4 rules each; the longest time from failure to alert is %.2f s", len(ids), longest)
	}
	w.wantColumn("leases of replicas that have left", leftBehind)
}

// TestLeavingInOrder stops a replica that has leases without knowing, as after a lost answer.
func TestLeavingInOrder(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a")
	w.tick()
	only := w.serve(append(brisk(), "TOCSIN_ROLES=api")...)
	w.until("it beats", func() bool { return len(w.column(`select replica_id from replica`)) == 1 })
	w.exec(`update checkpoint set token = 1, owner = $1, lease_until = now() + interval '1 h'`, only.id(t))
	w.exec(`update outbox set claim_token = nextval('claim_token'), claimed_by = $1, due_at = now() + interval '1 h'`, only.id(t))
	w.wait("it has ended", only.terminate(t))
	w.wantColumn("leases", leasedBy)
	w.wantColumn("tokens", `select token::text from checkpoint where token is not null
		union all select claim_token::text from outbox where claim_token is not null`)
	w.wantColumn("what is due later", `select webhook_id::text from outbox where due_at > now()`)
	w.wantColumn("replicas", `select replica_id from replica`)
	if !strings.Contains(only.logged.String(), `msg="leases of this replica released"`) {
		t.Errorf("it does not say what it released: %s", only.logged.String())
	}
}

// TestClocksOfReplicas runs one replica whose clock is ahead and one whose clock is behind, until
// both have done some of the work.
func TestClocksOfReplicas(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2)
	hook := w.webhook("ops")
	for i := range 3 {
		w.ruleOf(rules.Definition{Name: strconv.Itoa(i), WebhookIDs: []uuid.UUID{hook}})
	}
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		w.replica(func(o *app.Options) {
			o.Clock = func() time.Time { return time.Now().Add(off) }
			o.Roles, o.TickInterval, o.PollInterval = []app.Role{app.RoleEvaluate, app.RoleDispatch}, 100*time.Millisecond, 50*time.Millisecond
		})
	}
	n := 0
	w.until("both have delivered", func() bool {
		n++
		w.fail(w.ch.Now(t), strconv.Itoa(n))
		return len(w.column(`select replica from attempt_history group by replica`)) == 2
	})
	w.untilDelivered(3 * n)
	w.wantColumn("alerts of each exchange", `select distinct n::text from (select count(*) n from alert group by execution_id) x`, "3")
	w.wantColumn("exchanges", `select count(distinct execution_id)::text from alert`, strconv.Itoa(n))
	if got := len(w.receiver.received()); got != 3*n {
		t.Errorf("the receiver got %d messages, want %d", got, 3*n)
	}
	w.wantColumn("beats that are not of Postgres's clock", `select replica_id from replica where abs(extract(epoch from now() - beat_at)) > 60`)
}

func TestReplicasAreListed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a")
	called, release := w.receiver.hang()
	defer release()
	base, _ := w.replica(func(o *app.Options) { o.Version = "1.2.3" })
	w.exec(`insert into replica values ('gone', 'elsewhere', 7, '1.2.2', '{api}', now() - interval '2 min', now() - interval '61 s')`)
	w.wait("the receiver is called", called)
	var items []any
	w.until("both are listed", func() bool {
		status, list := call(t, http.MethodGet, base+"/api/v1/replicas", nil)
		items, _ = list["items"].([]any)
		return status == http.StatusOK && len(items) == 2
	})
	gone, _ := items[0].(map[string]any)
	own, _ := items[1].(map[string]any)
	for field, want := range map[string]any{
		"id": "gone", "host": "elsewhere", "pid": 7., "version": "1.2.2", "alive": false, "claimedRules": 0., "claimedNotifications": 0.,
	} {
		if gone[field] != want {
			t.Errorf("the dead replica's %s is %v, want %v", field, gone[field], want)
		}
	}
	if age, _ := gone["lastBeatAgeSeconds"].(float64); age < 61 || age > 120 {
		t.Errorf("the dead replica's last beat is %v s old", age)
	}
	if held, _ := own["partitions"].([]any); len(held) != 2 || own["claimedRules"] != 1. {
		t.Errorf("it holds partitions %v with %v rules", own["partitions"], own["claimedRules"])
	}
	if own["version"] != "1.2.3" || own["alive"] != true || own["claimedNotifications"] != 1. || fmt.Sprint(own["roles"]) != "[api evaluate dispatch]" {
		t.Errorf("the replica shows itself as %v", own)
	}
	if age, _ := own["lastBeatAgeSeconds"].(float64); age > 20 {
		t.Errorf("its last beat is %v s old", age)
	}
	release()
}

func TestNewRefusesHeartbeatsThatCannotBe(t *testing.T) {
	t.Parallel()
	_, err := app.New(t.Context(), app.Options{HeartbeatInterval: 30 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "TOCSIN_HEARTBEAT_INTERVAL") || !strings.Contains(err.Error(), "three times") {
		t.Errorf("err = %v, want it to name the settings and the bound", err)
	}
}
