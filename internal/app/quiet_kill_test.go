package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/rules"
)

const heldMessages = `select notification_id::text from outbox where quiet_until is not null`

// quietRule makes a rule of which the alerts are not critical, for a webhook with two hours of quiet to come.
func (w *world) quietRule() rules.Rule {
	w.t.Helper()
	hook := w.webhook("ops")
	now := time.Now().UTC()
	hours, err := json.Marshal([]rules.Calendar{{
		TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-time.Hour).Format("15:04"), To: now.Add(2 * time.Hour).Format("15:04"),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`update webhook set quiet_hours = $2, version = version + 1 where webhook_id = $1`, hook, hours)
	rule := w.rule(hook)
	w.exec(`update rule set severity = 'WARNING'`)
	return rule
}

// TestKilledAroundQuietHours kills a replica while it writes what quiet hours hold, while it moves their end, and while
// it releases or ends what they have held, and lets another one go on.
func TestKilledAroundQuietHours(t *testing.T) {
	t.Parallel()
	const leaves = `when (old.quiet_until is not null and new.quiet_until is null)`
	for name, c := range map[string]struct {
		trigger string
		// written says that it is killed as soon as there is an alert, handled that somebody looks after the alert.
		written, handled bool
	}{
		"writing":                    {trigger: `create trigger pause before insert on outbox for each row when (new.quiet_until is not null) execute function pause()`, written: true},
		"committing what is held":    {trigger: `create constraint trigger pause after insert on outbox deferrable initially deferred for each row when (new.quiet_until is not null) execute function pause()`, written: true},
		"moving the end":             {trigger: `create trigger pause before update on outbox for each row when (old.quiet_until <> new.quiet_until) execute function pause()`},
		"releasing":                  {trigger: `create trigger pause before update on outbox for each row ` + leaves + ` execute function pause()`},
		"committing what is sent":    {trigger: `create constraint trigger pause after update on outbox deferrable initially deferred for each row ` + leaves + ` execute function pause()`},
		"committing what is no more": {trigger: `create constraint trigger pause after insert on settlement deferrable initially deferred for each row when (new.status = 'DISCARDED') execute function pause()`, handled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			rule := w.quietRule()
			w.fail(rule.ArmedSinceNS+1000, "a")
			m := w.mortal()
			end := func() {
				w.goesOn(w.works, "it is held", `select count(*)::text from (`+heldMessages+`) held`, "1")
				if got := w.receiver.received(); len(got) > 0 {
					t.Fatalf("within the quiet hours the receiver got %q", got)
				}
				if c.handled {
					w.exec(`update alert set state = 'ACKNOWLEDGED', acknowledged_at = now() - interval '11 minutes'`)
				}
				w.exec(`update webhook set quiet_hours = null, version = version + 1`)
			}
			if c.written {
				m.killedInside(c.trigger, m.evaluate)()
				end()
			} else {
				end()
				m.killedInside(c.trigger, func(ctx context.Context) error {
					_, err := m.db.Outbox().EndQuiet(ctx, nil)
					return err
				})()
			}
			want := map[bool]string{false: "DELIVERED 1", true: "DISCARDED 1"}[c.handled]
			w.until("the quiet hours have ended", func() bool {
				if _, err := w.db.Outbox().EndQuiet(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				return len(w.column(heldMessages)) == 0
			})
			w.goesOn(w.works, "the message is "+want, statuses, want)
			w.wantColumn("alerts", alertIDs, "a")
			w.wantColumn("outbox", unsettledOutbox)
			if got := strings.Join(w.receiver.received(), ""); got != map[bool]string{false: "a"}[c.handled] {
				t.Errorf("the receiver got %q", got)
			}
		})
	}
}

// TestReplicasEndQuietHoursTogether has two processes that deliver look at the same time for what is over, of which somebody
// looks after a part.
func TestReplicasEndQuietHoursTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.quietRule()
	const all, handled = 40, 10
	var names []string
	for n := range all {
		names = append(names, fmt.Sprintf("e%02d", n))
	}
	w.fail(rule.ArmedSinceNS+1000, names...)
	w.tick()
	if held := len(w.column(heldMessages)); held != all {
		t.Fatalf("%d are held", held)
	}
	w.exec(`update alert set state = 'ACKNOWLEDGED', acknowledged_at = now() - interval '11 minutes' where execution_id < $1`, names[handled])
	w.exec(`update outbox set quiet_until = now()`)
	// They begin together, and so look together.
	one, two := w.start("TOCSIN_ROLES=dispatch"), w.start("TOCSIN_ROLES=dispatch")
	w.wait("one runs", one.ready)
	w.wait("the other one runs", two.ready)
	w.until("everything is settled", func() bool { return len(w.column(unsettledOutbox)) == 0 })
	w.wantColumn("notifications", statuses, fmt.Sprint("DELIVERED ", all-handled), fmt.Sprint("DISCARDED ", handled))
	got := w.receiver.received()
	slices.Sort(got)
	if !slices.Equal(got, names[handled:]) {
		t.Errorf("the receiver got %q", got)
	}
	if n := w.column(`select count(*)::text from notification n join attempt_history h using (notification_id) where h.verdict = 'DELIVERED'`); !slices.Equal(n, []string{fmt.Sprint(all - handled)}) {
		t.Errorf("%v attempts have arrived", n)
	}
}
