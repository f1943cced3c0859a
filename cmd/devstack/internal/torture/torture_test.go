//go:build unix

package torture

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/internal/programtest"
)

// programs are built once for all tests: devstack, which serves ClickHouse, the product and its variant.
type programs struct {
	dir, devstack string
	Programs
}

var buildOnce = sync.OnceValues(func() (built programs, err error) { //nolint:gochecknoglobals // The tests of one process share what is built.
	if built.dir, err = os.MkdirTemp("", "torture-test-"); err != nil {
		return built, err
	}
	atExit = func() { _ = os.RemoveAll(built.dir) }
	root, err := filepath.Abs("../../../..")
	if err != nil {
		return built, err
	}
	if built.devstack, err = programtest.Devstack(); err != nil {
		return built, err
	}
	if built.Tocsin, err = programtest.Tocsin(); err != nil {
		return built, err
	}
	built.Receivers = presetsOf(root)
	built.Jumping, err = buildJumping(context.Background(), root, built.dir)
	return built, err
})

// atExit removes what was built, if anything was.
var atExit = func() {} //nolint:gochecknoglobals // The tests of one process share what is built.

func TestMain(m *testing.M) {
	programtest.Parallel(3) // each mostly waits for rest
	code := m.Run()
	atExit()
	programtest.Remove()
	os.Exit(code)
}

// start brings up a world, which ends with the test. Logs of a failed test are shown.
func start(t *testing.T, o Options) *world {
	t.Helper()
	built, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]*string{"TOCSIN_DEVSTACK_CHDB": &o.ClickHouse, "TOCSIN_DEVSTACK_POSTGRES_BIN": &o.PostgresBin} {
		if *into = os.Getenv(name); *into == "" {
			t.Fatalf("%s is not set: run the tests with `make test`, or `bin/devstack run -- go test ./…`", name)
		}
	}
	if o.Dir, err = pgserver.Folder(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(o.Dir) })
	o.Programs, o.Devstack, o.Log = built.Programs, built.devstack, t.Output()
	w, err := newWorld(t.Context(), o)
	t.Cleanup(func() {
		if err := w.close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// report lets everything happen and asks the checker.
func (w *world) report(t *testing.T) *Report {
	t.Helper()
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report *Report
	err := w.postgres.query(t.Context(), func(conn *pgx.Conn) (err error) {
		report, err = w.check(t.Context(), conn)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	return report
}

func TestNothingMissedNothingTwice(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Seed: 1, Form: Plain, Exchanges: 4000, Length: 15 * time.Second})
	report := w.report(t)
	if !report.OK() {
		t.Fatal("to repeat it: make torture ARGS='--seed 1 --exchanges 4000 --length 15s -v'")
	}
	if report.Alerts < 500 || report.Must < report.Perhaps*5 {
		t.Errorf("%d alerts, %d of them certain: too few to mean something", report.Alerts, report.Must)
	}
	if report.Digests == 0 || report.Gathered <= report.Digests {
		t.Errorf("%d notifications in %d digests: too few to mean something", report.Gathered, report.Digests)
	}
	if report.Held < 20 || report.Passed == 0 {
		t.Errorf("quiet hours held %d messages, and %d passed: too few to mean something", report.Held, report.Passed)
	}
	if report.RoutedSuppressed < 5 || report.RoutedHeld < 1 {
		t.Errorf("of the messages of routed alerts, the silence suppressed %d and quiet hours held %d: too few to mean something", report.RoutedSuppressed, report.RoutedHeld)
	}
	if report.Suppressed < 20 || report.Listed < 20 || report.Routed < 20 {
		t.Errorf("a silence suppressed %d messages, its digests listed %d, and %d alerts were routed: too few to mean something", report.Suppressed, report.Listed, report.Routed)
	}
	if report.Proven < 30 || report.Replayed < 60 {
		t.Errorf("evidence resolved %d alerts, and replayed rules raised %d: too few to mean something", report.Proven, report.Replayed)
	}
	w.bites(t)
}

// TestForms runs forms that need nothing but the engines, small. Of the two with a standby, the asynchronous one is the
// harder: what holds when commits are lost also holds when none are.
func TestForms(t *testing.T) {
	t.Parallel()
	// The seed of the first strikes nothing else before the failover, which else waits until the
	// standby has caught up: then there may be nothing left to lose.
	for form, seed := range map[Form]uint64{AsynchronousStandby: 7, LaggingReplica: 3, Receivers: 3} {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			w := start(t, Options{Seed: seed, Form: form, Exchanges: 1500, Length: 8 * time.Second})
			report := w.report(t)
			if !report.OK() || report.Alerts < 200 {
				t.Errorf("to repeat it: make torture ARGS='--form %s --seed %d --exchanges 1500 --length 8s -v'", form, seed)
			}
			if form.hasStandby() && report.Failovers == 0 || form == AsynchronousStandby && report.Lost == 0 {
				t.Errorf("%d failovers, which lost %d alerts: too few to mean something", report.Failovers, report.Lost)
			}
			for service, alerts := range report.Through {
				if alerts < 50 {
					t.Errorf("%s had to know of %d alerts: too few to mean something", service, alerts)
				}
			}
		})
	}
}

// bites changes what came out and holds the checker to noticing.
func (w *world) bites(t *testing.T) {
	t.Helper()
	const someAlert = `(SELECT alert_id FROM alert JOIN notification USING (alert_id) WHERE execution_id IS NOT NULL
		AND alert.rule_id NOT IN (SELECT rule_id FROM rule WHERE resolution <> '{}')
		AND NOT EXISTS (SELECT FROM settlement s WHERE s.notification_id = notification.notification_id AND s.status = 'SUPPRESSED') GROUP BY alert_id ORDER BY count(*) DESC, alert_id LIMIT 1)`
	const someNotification = `(SELECT notification_id FROM notification JOIN alert USING (alert_id) WHERE execution_id IS NOT NULL
		AND NOT EXISTS (SELECT FROM digest_member m WHERE m.notification_id = notification.notification_id)
		AND NOT EXISTS (SELECT FROM settlement s WHERE s.notification_id = notification.notification_id AND s.status = 'SUPPRESSED') ORDER BY notification_id LIMIT 1)`
	for name, corruption := range map[string]struct {
		sql  string
		want []finding
	}{
		"an alert is lost": {`DELETE FROM alert WHERE alert_id = ` + someAlert, []finding{missed, wrongMessage}},
		"an alert is there twice": {`ALTER TABLE alert DROP CONSTRAINT alert_once;
			INSERT INTO alert SELECT (jsonb_populate_record(a, jsonb_build_object('alert_id', gen_random_uuid()))).* FROM alert a
			WHERE alert_id = ` + someAlert, []finding{duplicated, notificationMissing}},
		"an alert of another exchange": {
			`UPDATE alert SET exchange = (exchange::jsonb || '{"correlationId": "x-none"}')::json WHERE alert_id = ` + someAlert,
			[]finding{missed, unexpected, wrongMessage},
		},
		"an alert resolves itself": {`UPDATE alert SET state = 'RESOLVED' WHERE alert_id = ` + someAlert, []finding{altered}},
		"a notification is lost":   {`DELETE FROM notification WHERE notification_id = ` + someNotification, []finding{notificationMissing, wrongMessage}},
		"a notification is there twice": {`DROP INDEX notification_once;
			INSERT INTO notification SELECT (jsonb_populate_record(n, jsonb_build_object('notification_id', gen_random_uuid()))).*
			FROM notification n WHERE notification_id = ` + someNotification, []finding{notificationTwice, undelivered, neverReceived}},
		"a notification to another webhook": {`UPDATE notification n SET webhook_id = (SELECT webhook_id FROM webhook w WHERE NOT operators AND NOT EXISTS
			(SELECT FROM notification o WHERE o.alert_id = n.alert_id AND o.webhook_id = w.webhook_id) LIMIT 1)
			WHERE notification_id = (SELECT max(notification_id::text)::uuid FROM notification JOIN (SELECT alert_id FROM notification JOIN alert USING (alert_id)
			WHERE execution_id IS NOT NULL GROUP BY alert_id HAVING count(*) = 1) single USING (alert_id)
			WHERE NOT EXISTS (SELECT FROM digest_member m WHERE m.notification_id = notification.notification_id))`, []finding{notificationMissing, notificationStray, wrongMessage}},
		"a count is open twice": {`INSERT INTO alert SELECT (jsonb_populate_record(a, jsonb_build_object('alert_id', gen_random_uuid()))).*
			FROM alert a WHERE group_key = 'production'`, []finding{overlapping, duplicated, notificationMissing}},
		"a count never fired":    {`DELETE FROM alert WHERE group_key = 'production'`, []finding{missed, wrongMessage}},
		"a share never fired":    {`DELETE FROM alert WHERE group_key = 'hex:657500'`, []finding{missed, wrongMessage}},
		"a duration never fired": {`DELETE FROM alert WHERE group_key = 'Lager/Süd'`, []finding{missed, wrongMessage}},
		"an absence never fired": {`DELETE FROM alert WHERE group_key = 'nowhere'`, []finding{missed, wrongMessage}},
		"an absence resolves":    {`UPDATE alert SET state = 'RESOLVED' WHERE group_key = 'nowhere'`, []finding{altered, notificationMissing}},
		"an absence before there was a rule": {
			`UPDATE alert SET fired_at = (SELECT min(fired_at) - interval '10 minutes' FROM alert WHERE group_key = 'nowhere') WHERE group_key = 'order.sync'`,
			[]finding{miscounted},
		},
		"a count is too high": {`UPDATE alert SET title = (title::int + 1000)::text WHERE group_key = 'production'`, []finding{miscounted}},
		"a share of too many": {`UPDATE alert SET title = split_part(title, ' ', 1) || ' of ' || (split_part(title, ' ', 3)::int + 1000) WHERE group_key = 'us'`, []finding{miscounted}},
		"too many took as long": {
			`UPDATE alert SET title = (split_part(title, ' ', 1)::int + 1000) || ' of ' || (split_part(title, ' ', 3)::int + 1000) WHERE group_key = 'billing'`,
			[]finding{miscounted},
		},
		"a count resolves too high": {`UPDATE alert SET count = count || '{"observed": 1000000}' WHERE group_key = 'production'`, []finding{miscounted}},
		"a rule still fails": {`INSERT INTO alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health,
			start_time_ns, application, route, exchange) SELECT gen_random_uuid(), tenant_id, rule_id, 1, severity, 'FIRING', '', '', true,
			0, '', '', '{}' FROM rule WHERE name = 'all failures'`, []finding{altered, notificationMissing}},
		"a notification is given up": {`UPDATE settlement SET status = 'EXHAUSTED' WHERE notification_id = ` + someNotification, []finding{undelivered}},
		"an attempt after the delivery": {
			`WITH another AS (INSERT INTO attempt (notification_id, attempt, claim_token, replica)
				SELECT notification_id, max(attempt) + 1, 1, 'another' FROM attempt_history WHERE notification_id = ` + someNotification + ` GROUP BY 1
				RETURNING notification_id, attempt)
			INSERT INTO torture.claim SELECT notification_id, attempt, true FROM another`,
			[]finding{repeatedOutside},
		},
		"a digest lost one": {
			`DELETE FROM digest_member WHERE notification_id = (SELECT min(notification_id::text)::uuid FROM digest_member)`,
			[]finding{undelivered, neverReceived, wrongMessage},
		},
		"a digest of another one": {
			`UPDATE digest_member SET digest_id = (SELECT max(digest_id::text)::uuid FROM digest_member)
			WHERE notification_id = (SELECT min(notification_id::text)::uuid FROM digest_member
				WHERE digest_id <> (SELECT max(digest_id::text)::uuid FROM digest_member))`,
			[]finding{wrongMessage},
		},
		"one in a digest is sent by itself, too": {
			`INSERT INTO outbox (notification_id, webhook_id) SELECT notification_id, webhook_id FROM notification JOIN digest_member USING (notification_id) LIMIT 1`,
			[]finding{notificationTwice},
		},
		"a request without an attempt": {
			`WITH ended AS (UPDATE settlement SET attempt = NULL, claim_token = NULL, replica = NULL, started_at = NULL, error = NULL, response = NULL,
				duration_us = NULL WHERE notification_id = ` + someNotification + `)
			DELETE FROM attempt WHERE notification_id = ` + someNotification, []finding{repeatedOutside},
		},
		"a silence suppressed nothing":         {`UPDATE settlement SET status = 'DELIVERED', silence_id = NULL WHERE status = 'SUPPRESSED'`, []finding{notSuppressed, neverReceived, wrongDigest}},
		"a digest of a silence leaves one out": {`DELETE FROM digest_listing WHERE notification_id = (SELECT min(notification_id::text)::uuid FROM digest_listing)`, []finding{wrongDigest}},
		"a digest of a silence is lost": {
			`DELETE FROM notification WHERE notification_id = (SELECT notification_id FROM digest WHERE silence_id IS NOT NULL ORDER BY size DESC LIMIT 1)`, []finding{wrongDigest, wrongMessage},
		},
		"a silence suppressed another one": {
			`UPDATE settlement SET status = 'SUPPRESSED', silence_id = (SELECT silence_id FROM silence) WHERE notification_id = (
				SELECT notification_id FROM notification n JOIN rule USING (rule_id) JOIN settlement s USING (notification_id)
				WHERE rule.name = 'all failures' AND s.status = 'DELIVERED' LIMIT 1)`, []finding{wronglySuppressed, wrongDigest},
		},
		"the policy led elsewhere": {
			`UPDATE notification n SET webhook_id = (SELECT webhook_id FROM webhook WHERE name = 'operators') WHERE notification_id = (
				SELECT notification_id FROM notification JOIN settlement s USING (notification_id) JOIN rule ON rule.rule_id = notification.rule_id WHERE rule.name = 'routed' AND reason = 'FIRED' AND s.status = 'DELIVERED'
				AND NOT EXISTS (SELECT FROM digest_member m WHERE m.notification_id = notification.notification_id) LIMIT 1)`,
			[]finding{notificationMissing, notificationStray, wrongMessage},
		},
		"evidence resolves nothing": {`UPDATE alert SET state = 'FIRING', resolved_at = NULL, resolution = NULL WHERE resolution->>'reason' = 'EVIDENCE'`, []finding{altered, notificationStray}},
		"an alert is resolved without evidence": {
			`UPDATE alert SET resolution = '{"reason": "EVIDENCE", "executionId": "x", "startTimeNs": 1}' WHERE alert_id = (SELECT alert_id FROM alert WHERE resolution->>'reason' = 'EVIDENCE' LIMIT 1)`,
			[]finding{altered},
		},
		"an alert is resolved too young": {
			`UPDATE alert SET state = 'RESOLVED', resolved_at = fired_at + interval '59 s', resolution = '{"reason": "AGE"}' WHERE alert_id = (SELECT alert_id FROM alert JOIN rule USING (rule_id) WHERE rule.name = 'aged' LIMIT 1)`,
			[]finding{altered},
		},
		"nobody is notified of an end": {
			`DELETE FROM notification WHERE notification_id = (SELECT n.notification_id FROM notification n JOIN rule USING (rule_id) WHERE rule.name = 'mended' AND n.reason = 'RESOLVED'
				AND NOT EXISTS (SELECT FROM digest_member m WHERE m.notification_id = n.notification_id) LIMIT 1)`, []finding{notificationMissing, wrongMessage},
		},
		"a replay raises nothing": {
			`DELETE FROM alert WHERE rule_id = (SELECT rule_id FROM rule WHERE name = 'replayed EACH') AND fired_at < (SELECT ended_at FROM replay JOIN rule USING (rule_id) WHERE rule.name = 'replayed EACH')`,
			[]finding{missed, wrongMessage},
		},
		"a replay without messages sends one": {
			`INSERT INTO notification (notification_id, tenant_id, alert_id, rule_id, webhook_id, reason)
			SELECT gen_random_uuid(), a.tenant_id, a.alert_id, a.rule_id, w.webhook_id, 'FIRED' FROM alert a JOIN rule r USING (rule_id) JOIN webhook w ON w.name = 'c'
			WHERE r.name = 'replayed NONE' AND NOT EXISTS (SELECT FROM notification n WHERE n.alert_id = a.alert_id) ORDER BY a.fired_at LIMIT 1`,
			[]finding{notificationStray, undelivered, neverReceived},
		},
		"quiet hours held nothing": {`UPDATE alert SET severity = 'WARNING'`, []finding{notHeld}},
		"a source still fails": {`INSERT INTO alert (alert_id, tenant_id, rule_id, rule_version, severity, state, title, message, health, source,
			start_time_ns, application, route, exchange) SELECT gen_random_uuid(), tenant_id, rule_id, 1, severity, 'FIRING', '', '', true, 'source',
			0, '', '', '{}' FROM rule WHERE name = 'all failures'`, []finding{altered, notificationMissing}},
	} {
		// One after the other: each changes tables until it is rolled back.
		if err := w.corrupt(t, name, corruption.sql, corruption.want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// corrupt changes what came out, asks the checker, and changes it back.
func (w *world) corrupt(t *testing.T, name, sql string, want []finding) error {
	t.Helper()
	return w.postgres.query(t.Context(), func(conn *pgx.Conn) error {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			return err
		}
		changed, err := tx.Exec(t.Context(), sql)
		if err != nil {
			return err
		}
		report, err := w.check(t.Context(), tx)
		if err != nil {
			return err
		}
		if changed.RowsAffected() == 0 && report.Unevaluated > 0 && strings.Contains(sql, "group_key = ") {
			t.Logf("%s: on this busy machine no pass evaluated the group while it was above the threshold", name)
			return tx.Rollback(t.Context())
		}
		for _, f := range findings() {
			// A busy machine may not have evaluated the group whose alert is gone while exchanges came, or only later: then nothing
			// proves that one is missing, or there while exchanges came a second time.
			if (f == missed || f == duplicated) && report.Unevaluated > 0 && strings.Contains(sql, "group_key = ") && report.found[f] == 0 {
				t.Logf("%s: no passes prove that the group was evaluated above the threshold", name)
				continue
			}
			if wanted := slices.Contains(want, f); wanted != (report.found[f] > 0) {
				t.Errorf("%s: the checker finds %d times %q, want that: %v; %v", name, report.found[f], f, wanted, report)
			}
		}
		return tx.Rollback(t.Context())
	})
}

func TestWithoutLookBackIsMissed(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Seed: 2, Exchanges: 600, Length: 5 * time.Second, Timeout: 4 * time.Second, Calm: true, LookBackOff: true})
	if report := w.report(t); report.found[missed] == 0 {
		t.Error("the checker found nothing missed")
	}
}

// TestPausedSenderIsFenced stops a replica after it sent a message, which the receiver drops, until another one sends it
// again, and lets it go on in the midst of that. Its outcome must not disturb the other.
func TestPausedSenderIsFenced(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Seed: 4, Exchanges: 1, Length: 50 * time.Millisecond, Timeout: time.Minute, WebhookTimeout: time.Minute, Calm: true})
	w.plan.edits = nil
	w.truth.exchanges[0].failed = true
	p := &pausing{w: w, third: make(chan struct{}), within: 2 * time.Second}
	w.receiver.script = p.misdeed
	report := w.report(t)
	if p.err != nil {
		t.Fatal(p.err)
	}
	if report.found[repeatedOutside] > 0 || report.Alerts == 0 {
		t.Errorf("%d alerts, %d repeats outside the window", report.Alerts, report.found[repeatedOutside])
	}
}

// pausing is the script of a receiver: of the first message to the webhook a. Its second attempt is held until the third
// begins, for which the paused replica must have stored its outcome; at most for so long.
type pausing struct {
	w      *world
	third  chan struct{}
	within time.Duration

	mu     sync.Mutex
	victim string
	paused *replica
	since  time.Time
	err    error
}

func (p *pausing) misdeed(hook, webhookID string, nth int) misdeed {
	switch p.pauseOnce(hook, webhookID, nth) {
	case 1:
		return readsAndHangsUp
	case 2:
		timer := time.NewTimer(p.within)
		defer timer.Stop()
		select {
		case <-p.third:
		case <-timer.C:
		case <-p.w.receiver.ended:
		}
	case 3:
		close(p.third)
	}
	return behaves
}

// pauseOnce pauses a replica, lets it go on, and returns which attempt of the message this is; 0 is that of another one.
func (p *pausing) pauseOnce(hook, webhookID string, nth int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.victim == "" && hook == "a" {
		p.victim = webhookID
	}
	switch {
	case webhookID != p.victim:
		return 0
	case nth == 1:
		p.err = p.pause()
	case nth == 2:
		p.paused.signal(syscall.SIGCONT)
		p.w.disturbed.note(p.paused.number, p.since)
	}
	return nth
}

// pause stops the replica that makes the attempt.
func (p *pausing) pause() error {
	var name string
	err := p.w.postgres.query(context.Background(), func(conn *pgx.Conn) error {
		return conn.QueryRow(context.Background(), `SELECT replica FROM attempt_history WHERE notification_id = $1::text::uuid`, p.victim).Scan(&name)
	})
	if err != nil {
		return err
	}
	number := p.w.replicaOf(name)
	if number == everyone {
		return fmt.Errorf("no replica is called %q", name)
	}
	p.paused, p.since = p.w.replicas[number], time.Now()
	p.paused.signal(syscall.SIGSTOP)
	return nil
}

func TestSeedsRepeat(t *testing.T) {
	t.Parallel()
	o := Options{Seed: 7, Form: AsynchronousStandby, Exchanges: 500, Length: time.Minute}
	one, two := fmt.Sprintf("%+v", describePlan(newPlan(&o))), fmt.Sprintf("%+v", describePlan(newPlan(&o)))
	if one != two {
		t.Error("the same seed made two plans")
	}
	o.Seed++
	if other := fmt.Sprintf("%+v", describePlan(newPlan(&o))); other == one {
		t.Error("two seeds made the same plan")
	}
}

// describePlan leaves out what cannot be compared.
func describePlan(p *plan) []any {
	var edits []string
	for _, e := range p.edits {
		edits = append(edits, fmt.Sprint(e.atNS, e.rule, e.act))
	}
	return []any{p.exchanges, p.writes, edits, p.faults}
}

func TestTrafficHasWhatMakesItHard(t *testing.T) {
	t.Parallel()
	o := Options{Seed: 1, Exchanges: 4000, Length: 15 * time.Second}
	p := newPlan(&o)
	starts, milliseconds := map[int64]int{}, map[int64]int{}
	counts := map[string]int{}
	for i := range p.exchanges {
		e := &p.exchanges[i]
		starts[e.startNS]++
		milliseconds[e.startNS/1e6]++
		if e.startNS > e.endNS {
			t.Errorf("%+v ends before it begins", e)
		}
		if e.durationNS() > 10e9 {
			counts["long"]++
		}
		if strings.ToValidUTF8(e.id, "") != e.id || strings.Contains(e.id, "\x00") {
			counts["odd id"]++
		}
	}
	for _, n := range starts {
		counts["equal start"] += n - 1
	}
	for _, n := range milliseconds {
		counts["equal millisecond"] += n - 1
	}
	times := map[int]int{}
	for _, each := range p.writes {
		if each.running {
			counts["running first"]++
		} else if times[each.exchange]++; times[each.exchange] == 2 {
			counts["repeated"]++
		}
		if e := &p.exchanges[each.exchange]; !each.running && each.atNS < e.endNS && each.atNS > 0 {
			counts["in the future"]++
		}
	}
	for _, what := range []string{"long", "odd id", "equal start", "equal millisecond", "running first", "repeated", "in the future"} {
		if counts[what] < 10 {
			t.Errorf("%s: %d, want at least 10", what, counts[what])
		}
	}
}

// TestEachExclusionLeavesSomethingOut drops each exclusion of a rule, and then more exchanges match.
func TestEachExclusionLeavesSomethingOut(t *testing.T) {
	t.Parallel()
	p := newPlan(&Options{Seed: 1, Exchanges: 8000, Length: 15 * time.Second})
	rule := p.rules[slices.IndexFunc(p.rules, func(r rule) bool { return r.name == ruleExcept })]
	matching := func(change func(*condition)) (n int) {
		c := rule.condition
		change(&c)
		for i := range p.exchanges {
			if c.holds(&p.exchanges[i]) {
				n++
			}
		}
		return n
	}
	all := matching(func(*condition) {})
	if all < 20 {
		t.Errorf("only %d exchanges match", all)
	}
	without := map[string]func(*condition){
		"environment": func(c *condition) { c.notEnvironments = nil }, "application": func(c *condition) { c.notApplications = nil },
		"route": func(c *condition) { c.notRoutes = nil }, "error type": func(c *condition) { c.notErrorTypes = nil },
		"text": func(c *condition) { c.notContains = nil }, "expression": func(c *condition) { c.notMatches = nil },
	}
	for i, a := range rule.condition.attributes {
		without[fmt.Sprint("attribute ", a)] = func(c *condition) { c.attributes = slices.Delete(slices.Clone(c.attributes), i, i+1) }
	}
	for name, drop := range without {
		if n := matching(drop); n <= all {
			t.Errorf("without the condition on the %s %d exchanges match, with it %d", name, n, all)
		}
	}
}

func TestLike(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"a*", "a", true},
		{"a*b", "ab", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"*a*", "banana", true},
		{"a*a", "a", false},
		{"ü*", "über", true},
	} {
		if got := like(test.pattern, test.name); got != test.want {
			t.Errorf("like(%q, %q) = %v", test.pattern, test.name, got)
		}
	}
}

// TestTheClockIsReplaced starts the variant without the variable that its clock needs.
func TestTheClockIsReplaced(t *testing.T) {
	t.Parallel()
	built, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), built.Jumping, "serve", "--postgres-url=postgres://127.0.0.1:1/none",
		"--clickhouse-url=http://127.0.0.1:1", "--encryption-key="+encryptionKey)
	said, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "main.jumpingClock") {
		t.Errorf("%v: %s", err, said)
	}
}
