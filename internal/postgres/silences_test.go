package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/internal/fault"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/notify"
	"tocsin/rules"
)

func silence(name string, m match.Match) silences.Definition {
	ends := time.Now().Add(time.Hour)
	return silences.Definition{Name: name, Match: m, EndsAt: &ends}
}

func severities(list ...rules.Severity) match.Match { return match.Match{Severities: list} }

// opened opens the database once more, with a pool of its own.
func (p *persist) opened(t *testing.T) *postgres.DB {
	t.Helper()
	box, err := seal.New(strings.Repeat("A", 43) + "=")
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), p.url, box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// waits returns as soon as a session waits for a lock.
func (p *persist) waits(t *testing.T) {
	t.Helper()
	conn := pgtest.Conn(t, p.url)
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if one[bool](t, conn, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("nobody waits")
}

// TestACommitAndAChangeOfSilencesFollowEachOther starts each of the two while the other one is
// under way: it waits, and then sees what the other did.
func TestACommitAndAChangeOfSilencesFollowEachOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPersist(t)
	db := p.opened(t)
	few := func() evaluator.Batch {
		b := p.page()
		b.Instances, b.Notifications = b.Instances[:3], b.Notifications[:3]
		return b
	}

	// A silence is written, but not committed yet: a later commit takes it into account.
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select from checkpoint where partition = 0 for no key update`,
		`insert into silence (silence_id, tenant_id, name, match, starts_at, ends_at)
		 values ('00000000-0000-7000-8000-000000000001', 'default', 's', '{"severities": ["CRITICAL"]}', clock_timestamp(), clock_timestamp() + interval '1 hour')`,
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	batch := few()
	done := make(chan evaluator.Committed, 1)
	go func() {
		committed, err := p.store.Commit(ctx, batch)
		if err != nil {
			t.Error(err)
		}
		done <- committed
	}()
	p.waits(t)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	committed := <-done
	if len(committed.Inserted) != 3 || committed.Suppressed != 3 || len(committed.Notifications) != 0 {
		t.Errorf("a commit that waited for a silence: %d alerts, %d suppressed, %v to be sent", len(committed.Inserted), committed.Suppressed, committed.Notifications)
	}
	p.revision = committed.Revision

	// A commit is under way: the silence ends after it, and what is committed later is sent.
	tx, err = p.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `update checkpoint set revision = revision where partition = 0`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan time.Time, 1)
	go func() {
		r, err := db.Silences().End(ctx, "default", "ada", uuid.MustParse("00000000-0000-7000-8000-000000000001"))
		if err != nil || r.EndedAt == nil {
			t.Errorf("%+v, %v", r, err)
			ended <- time.Time{}
			return
		}
		ended <- *r.EndedAt
	}()
	p.waits(t)
	before := one[time.Time](t, pgtest.Conn(t, p.url), `select clock_timestamp()`)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if at := <-ended; at.Before(before) {
		t.Errorf("it ended at %s, while a commit was under way until %s", at, before)
	}
	if got := p.write(t, few()); got.Suppressed != 0 || got.Notifications[p.webhook] != 3 {
		t.Errorf("after the end %d are suppressed, %v to be sent", got.Suppressed, got.Notifications)
	}
}

// TestWhatCannotBeReadSuppressesNothing has unusable silences in the database.
func TestWhatCannotBeReadSuppressesNothing(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	db := p.opened(t)
	for name, broken := range map[string]string{
		"a condition that is not known": `match = '{"severities": ["CRITICAL"], "weather": "bad"}'`,
		"an expression":                 `match = '{"filter": {"errorMessageMatches": "("}}'`,
		"no condition":                  `match = '{}'`,
		"no object":                     `match = '[]'`,
		"a time zone":                   `recurrence = '{"timeZone": "Nowhere/Never", "weekdays": ["MONDAY"], "from": "00:00", "durationMinutes": 10080}'`,
		"a weekday":                     `recurrence = '{"timeZone": "UTC", "weekdays": ["MONDAY", "WORKDAY"], "from": "00:00", "durationMinutes": 10080}'`,
		"a time of day":                 `recurrence = '{"timeZone": "UTC", "weekdays": ["MONDAY"], "from": "25:00", "durationMinutes": 10080}'`,
	} {
		made, err := db.Silences().Create(t.Context(), "default", "ada", silence(name, severities(rules.Critical)))
		if err != nil {
			t.Fatal(err)
		}
		b := p.page()
		b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
		if got := p.write(t, b); got.Suppressed != 1 {
			t.Fatalf("%s: %d suppressed before", name, got.Suppressed)
		}
		p.exec(t, `update silence set `+broken+` where silence_id = $1`, made.ID)
		b = p.page()
		b.Instances, b.Notifications = b.Instances[:1], b.Notifications[:1]
		if got := p.write(t, b); got.Suppressed != 0 || got.Notifications[p.webhook] != 1 {
			t.Errorf("%s: %d suppressed, %v to be sent", name, got.Suppressed, got.Notifications)
		}
		shown, err := db.Silences().Get(t.Context(), "default", made.ID)
		if err != nil || shown.Problem == "" || shown.Suppressed != 1 {
			t.Errorf("%s: shown as %+v, %v", name, shown, err)
		}
		if _, err := db.Silences().End(t.Context(), "default", "ada", made.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWeekdaysAreStoredAsEarlierPrograms reads and writes recurrences by full names of weekdays.
func TestWeekdaysAreStoredAsEarlierPrograms(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	db := p.opened(t)
	d := silence("weekend", severities(rules.Critical))
	d.Recurrence = &silences.Recurrence{TimeZone: "UTC", Weekdays: []rules.Weekday{"SAT", "SUN"}, From: "00:00", DurationMinutes: 60}
	made, err := db.Silences().Create(t.Context(), "default", "ada", d)
	if err != nil || !slices.Equal(made.Recurrence.Weekdays, d.Recurrence.Weekdays) {
		t.Fatalf("made %+v, %v", made.Recurrence, err)
	}
	if got := one[string](t, p.conn, `select (recurrence->'weekdays')::text from silence`); got != `["SATURDAY", "SUNDAY"]` {
		t.Errorf("stored as %s", got)
	}
}

const suppressedReasons = `select n.reason || ' ' || n.generation || case when s.silence_id is null then ' sent' else ' suppressed' end
	from notification n left join settlement s using (notification_id) order by n.created_at, n.notification_id`

// TestWindowAlertsAreSilenced suppresses steps of the alert of a window rule, and what follows.
func TestWindowAlertsAreSilenced(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	about := func(route string) match.Match { return match.Match{Scope: rules.Scope{Routes: []string{route}}} }
	grouped := func(step alerts.Step, id uuid.UUID, group string, reason notify.Reason) window.Change {
		c := w.change(step, id, group, reason)
		c.Instance.Count.GroupBy = rules.GroupByRoute
		return c
	}
	made, err := w.db.Silences().Create(t.Context(), tenant, "ada", silence("one", about("a")))
	if err != nil {
		t.Fatal(err)
	}
	want := func(name string, reasons ...string) {
		t.Helper()
		if diff := cmp.Diff(reasons, column(t, w.conn, suppressedReasons)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	a := w.apply(1, 0, 0, grouped(alerts.Raise, uuid.Nil, "a", notify.ReasonFired))[0].Instance.ID
	w.apply(1, 0, 1, grouped(alerts.Raise, uuid.Nil, "b", notify.ReasonFired))
	w.apply(0, 1, 0, grouped(alerts.Remind, a, "a", notify.ReasonReminder))
	want("in force", "FIRED 0 suppressed", "FIRED 0 sent", "REMINDER 0 suppressed")
	if _, err := w.db.Silences().End(t.Context(), tenant, "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	// No notification of it was sent, so none of its end is; the end names the silence, too.
	w.apply(0, 1, 0, grouped(alerts.Clear, a, "a", notify.ReasonResolved))
	want("its end", "FIRED 0 suppressed", "FIRED 0 sent", "REMINDER 0 suppressed", "RESOLVED 0 suppressed")
	if n := one[int](t, w.conn, `select count(*)::int from settlement where silence_id = $1`, made.ID); n != 3 {
		t.Errorf("%d messages name the silence, want 3", n)
	}
	// An alert that still fires when the silence is over has a reminder, and a notification of its
	// end.
	made, err = w.db.Silences().Create(t.Context(), tenant, "ada", silence("two", about("c")))
	if err != nil {
		t.Fatal(err)
	}
	c := w.apply(1, 0, 0, grouped(alerts.Raise, uuid.Nil, "c", notify.ReasonFired))[0].Instance.ID
	if _, err := w.db.Silences().End(t.Context(), tenant, "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	w.apply(0, 1, 1, grouped(alerts.Remind, c, "c", notify.ReasonReminder))
	w.apply(0, 1, 1, grouped(alerts.Clear, c, "c", notify.ReasonResolved))
	// A condition on a field by which the rule does not group cannot be decided.
	if _, err := w.db.Silences().Create(t.Context(), tenant, "ada", silence("three", match.Match{Scope: rules.Scope{Applications: []string{"*"}}})); err != nil {
		t.Fatal(err)
	}
	w.apply(1, 0, 1, grouped(alerts.Raise, uuid.Nil, "d", notify.ReasonFired))
}

// TestSilencesAreKept checks what the store rejects, and what it returns.
func TestSilencesAreKept(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	ctx, s := t.Context(), w.db.Silences()
	made, err := s.Create(ctx, tenant, "ada", silence("one", severities(rules.Info)))
	if err != nil || made.Version != 1 || made.CreatedBy != "ada" || made.Status.State != silences.Active {
		t.Fatalf("%+v, %v", made, err)
	}
	past := time.Now().Add(-time.Hour)
	late := silence("late", severities(rules.Info))
	late.EndsAt = &past
	refused := func(what string, kind fault.Kind, err error) {
		t.Helper()
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %s", what, err, kind)
		}
	}
	_, err = s.Create(ctx, tenant, "ada", late)
	refused("an end in the past", fault.Invalid, err)
	_, err = s.Create(ctx, tenant, "ada", silence("one", severities(rules.Info)))
	refused("a name that is taken", fault.Conflict, err)
	if _, err := s.Create(ctx, "elsewhere", "bob", silence("one", severities(rules.Info))); err != nil {
		t.Errorf("the name in another tenant: %v", err)
	}
	edit := api.SilenceEdit{ID: made.ID, Version: 1, Definition: silence("another", severities(rules.Warning))}
	edit.Definition.StartsAt = time.Now().Add(30 * time.Minute)
	edited, err := s.Update(ctx, tenant, "bob", edit)
	if err != nil || edited.Version != 2 || edited.UpdatedBy != "bob" || !edited.StartsAt.Equal(made.StartsAt) {
		t.Errorf("%+v, %v; it has begun, and keeps %s", edited, err, made.StartsAt)
	}
	_, err = s.Update(ctx, tenant, "bob", edit)
	refused("an edit of an older version", fault.Stale, err)
	_, err = s.Update(ctx, "elsewhere", "bob", edit)
	refused("an edit of another tenant's", fault.NotFound, err)
	longest := edited.StartsAt.Add(silences.MaxLength)
	edit.Version, edit.Definition.EndsAt = 2, new(longest.Add(time.Microsecond))
	_, err = s.Update(ctx, tenant, "bob", edit)
	refused("an edit that prolongs it beyond 366 days after its start", fault.Invalid, err)
	edit.Definition.EndsAt = &longest
	if edited, err = s.Update(ctx, tenant, "bob", edit); err != nil || !edited.EndsAt.Equal(longest) {
		t.Errorf("prolonged to 366 days: %+v, %v", edited, err)
	}
	_, err = s.End(ctx, "elsewhere", "bob", made.ID)
	refused("the end of another tenant's", fault.NotFound, err)
	ended, err := s.End(ctx, tenant, "eve", made.ID)
	if err != nil || ended.EndedBy != "eve" || ended.Status.State != silences.Past {
		t.Errorf("%+v, %v", ended, err)
	}
	again, err := s.End(ctx, tenant, "bob", made.ID)
	if err != nil || again.EndedBy != "eve" || again.Version != ended.Version {
		t.Errorf("ended again: %+v, %v", again, err)
	}
	edit.Version = ended.Version
	_, err = s.Update(ctx, tenant, "bob", edit)
	refused("an edit of one that is over", fault.Conflict, err)
	if _, err := s.Create(ctx, tenant, "ada", silence("another", severities(rules.Info))); err != nil {
		t.Errorf("the name of one that is over: %v", err)
	}
	open, err := s.Open(ctx, tenant)
	if err != nil || len(open) != 1 {
		t.Errorf("%d open, %v", len(open), err)
	}
	over, err := s.Past(ctx, tenant, nil, 10)
	if err != nil || len(over) != 1 || over[0].ID != made.ID {
		t.Errorf("past: %+v, %v", over, err)
	}
	if over, err = s.Past(ctx, tenant, &made.ID, 10); err != nil || len(over) != 0 {
		t.Errorf("past before the first: %+v, %v", over, err)
	}
}

// TestPreviewShowsWhatASilenceWouldHaveDone counts alerts of the last day.
func TestPreviewShowsWhatASilenceWouldHaveDone(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	for _, group := range []string{"a", "b", "a2"} {
		c := w.change(alerts.Raise, uuid.Nil, group, notify.ReasonFired)
		c.Instance.Count.GroupBy = rules.GroupByRoute
		w.apply(1, 0, 1, c)
	}
	if _, err := w.conn.Exec(t.Context(), `update alert set fired_at = fired_at - interval '25 hours' where group_key = 'a2'`); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	elsewhen := &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(3 * time.Hour).Format("15:04"), DurationMinutes: 30}
	always := &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: "00:00", DurationMinutes: 24 * 60}
	for name, c := range map[string]struct {
		recurrence *silences.Recurrence
		suppressed int64
	}{"once": {nil, 1}, "at another time": {elsewhen, 0}, "always": {always, 1}} {
		d := silence("p", match.Match{Scope: rules.Scope{Routes: []string{"a*"}}})
		d.Recurrence = c.recurrence
		got, err := w.db.Silences().Preview(t.Context(), tenant, d)
		if err != nil || got.Alerts != 2 || got.Messages != 2 || got.Matched != 1 || got.MatchedMessages != 1 ||
			got.Suppressed != c.suppressed || got.SuppressedMessages != c.suppressed || got.Partial || len(got.Newest) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := w.db.Silences().Preview(t.Context(), "elsewhere", silence("p", severities(rules.Warning))); err != nil || got.Alerts != 0 {
		t.Errorf("of another tenant: %+v, %v", got, err)
	}
}
