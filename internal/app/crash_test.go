package app_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tocsin/internal/programtest"
	"tocsin/notify/dispatch"
)

// process is a replica as an operating-system process.
type process struct {
	*exec.Cmd
	// ready is closed once it runs, at address; over when it has written its last line.
	ready, over chan struct{}
	address     string
	logged      log
}

// serve starts a replica on the world's databases, with additional settings, and waits until it
// runs.
func (w *world) serve(settings ...string) *process {
	w.t.Helper()
	p := w.start(settings...)
	select {
	case <-p.ready:
	case <-p.over:
		w.t.Fatalf("the replica did not start: %s", p.logged.String())
	}
	return p
}

// everyRole is a setting of a replica that also serves the API.
const everyRole = "TOCSIN_ROLES=api,evaluate,dispatch"

// start starts a replica. It evaluates and delivers, and serves no API unless the settings say otherwise.
func (w *world) start(settings ...string) *process {
	w.t.Helper()
	w.giveUp()
	path, err := programtest.Tocsin()
	if err != nil {
		w.t.Fatalf("build tocsin: %v", err)
	}
	p := &process{
		Cmd:   exec.CommandContext(context.Background(), path, "serve"),
		ready: make(chan struct{}), over: make(chan struct{}),
	}
	p.Env = append(os.Environ(),
		"TOCSIN_POSTGRES_URL="+w.pgURL, "TOCSIN_CLICKHOUSE_URL="+w.ch.URL, "TOCSIN_ENCRYPTION_KEY="+key,
		"TOCSIN_LISTEN=127.0.0.1:0", "TOCSIN_ACCESS=open", "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8", "TOCSIN_SETTLE=0s",
		"TOCSIN_TICK_INTERVAL=500ms", "TOCSIN_POLL_INTERVAL=500ms", "TOCSIN_PARTITION_LEASE=4s", "TOCSIN_LEASE=4s",
		"TOCSIN_HEARTBEAT_INTERVAL=500ms", "TOCSIN_DEAD_AFTER=6s", "TOCSIN_ROLES=evaluate,dispatch")
	p.Env = append(p.Env, settings...)
	stderr, err := p.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() {
			w.t.Logf("the last lines of a replica:\n%s", last(p.logged.String(), 4000))
		}
	})
	go func() {
		defer close(p.over)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			_, _ = p.logged.Write([]byte(lines.Text() + "\n"))
			if _, after, found := strings.Cut(lines.Text(), "address="); found && strings.Contains(lines.Text(), "msg=running") {
				p.address, _, _ = strings.Cut(after, " ")
				close(p.ready)
			}
		}
	}()
	return p
}

// last returns the last part of a text.
func last(text string, bytes int) string { return text[max(0, len(text)-bytes):] }

// kill ends the process as kill -9 does.
func (p *process) kill() {
	if p.ProcessState == nil {
		_ = p.Process.Signal(syscall.SIGKILL)
		_ = p.Wait()
	}
}

// waitLimit limits every wait. What is waited for usually takes a moment; a busy machine may take
// long.
const waitLimit = 3 * time.Minute

// The pauses between looks at what is waited for: the first one and the last ones.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = 200 * time.Millisecond
)

// until waits for a condition.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitLimit)
	defer cancel()
	// A long wait looks less often: the queries of all tests that wait are a load on the databases.
	pause := shortestPause
	for !holds() {
		select {
		case <-ctx.Done():
			w.t.Fatalf("gave up waiting until %s", what)
		case <-time.After(pause):
			pause = min(pause*5/4, longestPause)
		}
	}
}

// await waits for a value, or until a channel is closed. A bare receive would hang until the time of the whole package is
// over.
func await[T any](tb testing.TB, what string, from <-chan T) (received T) {
	tb.Helper()
	select {
	case received = <-from:
	case <-time.After(waitLimit):
		tb.Fatalf("gave up waiting until %s", what)
	}
	return received
}

// underWay makes passes of a dispatcher until a call is under way, and returns what the last one ends with. A pass makes
// no call if the machine is so busy that half a lease is over by then.
func (w *world) underWay(d *dispatch.Dispatcher, called <-chan struct{}) (ended <-chan error) {
	w.t.Helper()
	last := make(chan error, 1)
	go func() {
		for {
			_, err := d.Tick(w.t.Context())
			select {
			case <-called:
				last <- err
				return
			case <-w.t.Context().Done():
				return
			case <-time.After(shortestPause):
			}
		}
	}()
	await(w.t, "a call is under way", called)
	return last
}

// TestKilledInTheCommit blocks the replica inside a statement by a trigger that waits for a lock,
// kills it there, and lets another one continue. internal/simulate covers kills before and after
// each call.
func TestKilledInTheCommit(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"advancing the cursor":     `create trigger pause before update on checkpoint for each row when (old.revision <> new.revision and new.cursor is not null) execute function pause()`,
		"after the last statement": `create trigger pause after insert on outbox for each statement execute function pause()`,
		"committing":               `create constraint trigger pause after insert on outbox deferrable initially deferred for each row execute function pause()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.rule(w.webhook("ops"))
			w.fail(rule.ArmedSinceNS+1000, "a", "b", "c")
			goOn := w.pauseInside(trigger)
			first := w.serve()
			w.untilInside()
			first.kill()
			goOn()
			w.serve()
			w.until("everything is delivered", func() bool {
				return len(w.column(`select status from notification_status where status = 'DELIVERED'`)) == 3
			})
			w.wantColumn("alerts", alertIDs, "a", "b", "c")
			w.wantColumn("notifications", statuses, "DELIVERED 3")
			w.wantColumn("outbox", unsettledOutbox)
			if got := w.receiver.received(); strings.Join(got, "") != "abc" {
				t.Errorf("the receiver got %q, want each once", got)
			}
		})
	}
}

// TestKilledDuringTheCall covers the only point at which a crash may send a message twice, and
// checks that this is visible.
func TestKilledDuringTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a")
	called, release := w.receiver.hang()
	first := w.serve(everyRole)
	await(t, "a call is under way", called)
	id := w.column(`select notification_id::text from notification`)[0]
	if got := get(t, first.address, "/api/v1/notifications/"+id); !strings.Contains(got, `"UNDER_WAY"`) || !strings.Contains(got, `"bodySha256"`) {
		t.Errorf("while the receiver is called, the notification reads %s", got)
	}
	first.kill()
	second := w.serve("TOCSIN_ROLES=api")
	w.until("the attempt is known to be of unknown outcome", func() bool {
		return strings.Contains(get(t, second.address, "/api/v1/notifications/"+id), `"UNKNOWN"`)
	})
	release()
	third := w.serve()
	w.until("everything is delivered", func() bool {
		return len(w.column(`select status from notification_status where status = 'DELIVERED'`)) == 1
	})
	w.wantColumn("attempts", `select attempt || ' ' || coalesce(verdict, 'unknown') from attempt_history order by attempt`, "1 unknown", "2 DELIVERED")
	if got := get(t, third.address, "/metrics"); !strings.Contains(got, "tocsin_attempts_unknown_total 1\n") {
		t.Errorf("the unknown outcome is not counted in %s", got)
	}
	ids := w.receiver.webhookIDs()
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("webhook-ids %q, want the same one twice", ids)
	}
}

// TestStoppedAndStartedAgain stops a replica with all roles by a signal and starts it again.
func TestStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.fail(rule.ArmedSinceNS+1000, "a", "b")
	first := w.serve(everyRole)
	w.until("two messages arrive", func() bool { return len(w.receiver.received()) == 2 })
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	w.wantColumn("leases", `select partition::text from checkpoint where owner is not null`)
	w.fail(w.ch.Now(t), "c")
	w.serve(everyRole)
	w.until("the third message arrives", func() bool { return len(w.receiver.received()) == 3 })
	w.wantColumn("alerts", alertIDs, "a", "b", "c")
}

func TestRetryScheduleIsASetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"))
	w.receiver.respond(func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusInternalServerError) })
	w.fail(rule.ArmedSinceNS+1000, "a")
	w.serve("TOCSIN_RETRY_SCHEDULE=50ms,100ms")
	w.until("the message is given up", func() bool {
		return len(w.column(`select status from notification_status where status = 'EXHAUSTED'`)) == 1
	})
	if ids := w.receiver.webhookIDs(); len(ids) != 3 {
		t.Errorf("%d attempts, want one and one after each pause", len(ids))
	}
}
