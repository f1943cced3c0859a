package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
)

// handled is a world in which users handle an alert in Slack.
type handled struct {
	*slackWorld

	test              *testing.T
	target, alert, ts string
}

// newHandled posts an alert. Ann and Bo are operators, Vi is a viewer, Gone is disabled, Other
// belongs to another tenant; U6 is a member of the workspace without a user in Tocsin, U7 a guest,
// and U9 does not exist.
func newHandled(t *testing.T) *handled {
	t.Helper()
	w := newSlackWorld(t)
	w.slack.people = map[string]string{
		"U1": "Ann@example.com", "U2": "bo@example.com", "U3": "vi@example.com", "U4": "gone@example.com", "U5": "other@example.com",
		"U6": "new@example.com", "U7": "",
	}
	w.exec(`insert into account (account_id, tenant_id, email, name, role, disabled) values
		(gen_random_uuid(), $1, 'ann@example.com', '', 'operator', false), (gen_random_uuid(), $1, 'bo@example.com', '', 'admin', false),
		(gen_random_uuid(), $1, 'vi@example.com', '', 'viewer', false), (gen_random_uuid(), $1, 'gone@example.com', '', 'operator', true),
		(gen_random_uuid(), 'other', 'other@example.com', '', 'operator', false)`, tenant)
	base, _ := w.guarded(func(o *app.Options) {
		o.Roles, o.SlackAPIURL, o.PollInterval = []app.Role{app.RoleAPI, app.RoleDispatch}, w.slack.url, 50*time.Millisecond
	})
	w.raiseFor(w.hook, "a")
	w.until("the message is posted", func() bool { return len(w.slack.shown()) == 1 && len(w.column(unsettledOutbox)) == 0 })
	return &handled{w, t, base + "/slack/interactions/" + w.hook.String(), w.firing()[0].ID.String(), w.slack.shown()[0].TS}
}

// choice is what a Slack user chooses or presses.
type choice struct {
	user, action, value string
	at                  time.Time
}

// press presses a button as a Slack user, and returns the status and the text that only they see.
func (h *handled) press(c choice) (status int, shown string) {
	h.t.Helper()
	pressed := map[string]any{"action_id": "tocsin_" + c.action, "value": c.value}
	if c.action == "snooze" {
		pressed = map[string]any{
			"action_id": "tocsin_snooze", "selected_option": map[string]any{"value": c.value},
			"action_ts": fmt.Sprintf("%d.%06d", c.at.Unix(), c.at.Nanosecond()/1000),
		}
	}
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "user": map[string]any{"id": c.user, "username": "name-of-" + c.user}, "team": map[string]any{"id": "T1"},
		"container": map[string]any{"channel_id": "C0123456", "message_ts": h.ts}, "actions": []any{pressed},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	status, _ = answer(h.test, signed(h.test, h.target, url.Values{"payload": {string(payload)}}.Encode(), signingSecret, time.Now()))
	return status, h.slack.lastShown()
}

// wantReply presses, and checks the text that only the user sees; "" is none.
func (h *handled) wantReply(c choice, want string) {
	h.t.Helper()
	status, shown := h.press(c)
	if want != "" {
		want = c.user + ": " + want
	}
	if status != http.StatusOK || shown != want {
		h.t.Errorf("%s by %s: %d, shown %q, want %q", c.action, c.user, status, shown, want)
	}
}

const (
	assignments = `select assignee || ' by ' || assigned_by || ' ' || assigned_at from alert_assignment`
	snoozes     = `select until || ' by ' || snoozed_by || ' ' || snoozed_at from alert_snooze`
	handlings   = `select state || ' ' || acknowledged_by || ' ' || coalesce((select assignee from alert_assignment), '-') || ' '
		|| (select count(*) from alert_snooze) from alert`
	fromSlack = `select actor || ' ' || coalesce(after->>'assignee', after->>'snoozedUntil', after->>'state', '-') from audit where via = 'slack' and action = 'update' order by audit_id`
)

func TestAlertsAreAssignedInSlack(t *testing.T) {
	t.Parallel()
	h := newHandled(t)
	h.wantReply(choice{user: "U1", action: "assign", value: h.alert}, "")
	before := h.column(assignments)
	if len(before) != 1 || !strings.HasPrefix(before[0], "ann@example.com by ann@example.com ") {
		t.Fatalf("assigned: %q", before)
	}
	h.until("the message says so", func() bool { return strings.Contains(h.slack.shown()[0].says(), "Assigned to *ann@example.com*") })

	// Twice is once. Who has not seen whose it is learns that, and takes it over as soon as the message shows it.
	h.wantReply(choice{user: "U1", action: "assign", value: h.alert}, "The alert is already assigned to you.")
	h.wantReply(choice{user: "U2", action: "assign", value: h.alert}, "The alert is assigned to ann@example.com; try again if this should change.")
	h.wantColumn("assignment", assignments, before...)
	h.wantReply(choice{user: "U2", action: "assign", value: h.alert + " ann@example.com"}, "")
	h.wantColumn("who acted", fromSlack, "ann@example.com ann@example.com", "bo@example.com bo@example.com")
	h.until("the message names the other one", func() bool { return strings.Contains(h.slack.shown()[0].says(), "Assigned to *bo@example.com*") })

	h.wantReply(choice{user: "U1", action: "resolve", value: h.alert}, "")
	h.wantReply(choice{user: "U2", action: "resolve", value: h.alert}, "The alert was already resolved by ann@example.com.")
	h.wantReply(choice{user: "U1", action: "assign", value: h.alert + " bo@example.com"}, "The alert is resolved; a resolved alert cannot be assigned.")
	h.wantReply(choice{user: "U1", action: "snooze", value: h.alert + " 1h", at: time.Now()}, "The alert is resolved; a resolved alert cannot be snoozed.")
}

func TestOfManyWhoTakeAnAlertInSlackOneGetsIt(t *testing.T) {
	t.Parallel()
	h := newHandled(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			// On a busy machine, not every press is answered before Slack gives up. People press again then.
			for range 5 {
				status, _ := h.press(choice{user: []string{"U1", "U2"}[i%2], action: "assign", value: h.alert})
				if status == http.StatusOK {
					return
				}
				t.Logf("press %d: %d", i, status)
			}
			t.Errorf("press %d is never answered in time", i)
		})
	}
	all.Wait()
	if got := h.column(fromSlack); len(got) != 1 {
		t.Errorf("changes: %q", got)
	}
}

func TestAlertsAreSnoozedInSlack(t *testing.T) {
	t.Parallel()
	h := newHandled(t)
	at := time.Now().Add(-2 * time.Second).Truncate(time.Microsecond)
	snooze := choice{user: "U2", action: "snooze", value: h.alert + " 4h", at: at}
	h.wantReply(snooze, "")
	before := h.column(snoozes)
	until := h.column(`select (until = $1::timestamptz)::text || ' ' || snoozed_by from alert_snooze`, at.Add(4*time.Hour))
	if !slices.Equal(until, []string{"true bo@example.com"}) {
		t.Errorf("snoozed: %q", until)
	}
	h.until("the message says so", func() bool {
		return strings.Contains(h.slack.shown()[0].says(), fmt.Sprintf("Snoozed until <!date^%d^", at.Add(4*time.Hour).Unix()))
	})
	// The same choice again is the same snooze.
	h.wantReply(snooze, "")
	h.wantColumn("snooze", snoozes, before...)
	if got := h.column(fromSlack); len(got) != 1 {
		t.Errorf("changes: %q", got)
	}

	h.wantReply(choice{user: "U6", action: "snooze", value: h.alert + " end"}, "")
	h.wantReply(choice{user: "U6", action: "snooze", value: h.alert + " end"}, "The alert is no longer snoozed.")
	h.until("the message shows no snooze", func() bool { return !strings.Contains(h.slack.shown()[0].says(), "Snoozed") })
	for name, wrong := range map[string]choice{
		"long ago": {value: h.alert + " 1h", at: at.Add(-6 * time.Minute)}, "from the future": {value: h.alert + " 1h", at: at.Add(6 * time.Minute)},
		"no time": {value: h.alert, at: at}, "no alert": {value: "x 1h", at: at},
	} {
		wrong.user, wrong.action = "U1", "snooze"
		if status, shown := h.press(wrong); status != http.StatusBadRequest || shown != "" {
			t.Errorf("%s: %d, shown %q", name, status, shown)
		}
	}
	h.wantReply(choice{user: "U1", action: "snooze", value: h.alert + " 2000h", at: at}, "The snooze is not valid: until: Must be in the future, at most 30 days from now.")
	h.wantColumn("snoozes", snoozes)
}

// TestSlackUsersWithoutPermissionAreInformed presses every button as users without permission.
func TestSlackUsersWithoutPermissionAreInformed(t *testing.T) {
	t.Parallel()
	h := newHandled(t)
	everything := []choice{
		{action: "acknowledge", value: h.alert},
		{action: "resolve", value: h.alert},
		{action: "assign", value: h.alert},
		{action: "snooze", value: h.alert + " 1h", at: time.Now()},
		{action: "snooze", value: h.alert + " end"},
	}
	for user, want := range map[string]string{
		"U3": "In Tocsin, vi@example.com has the role viewer, but acting on alerts needs the role operator, so nothing was done. Ask an administrator of Tocsin for that role.",
		"U4": "Your user gone@example.com is disabled in Tocsin, so nothing was done. Ask an administrator of Tocsin to enable your user.",
		"U9": "Slack did not tell Tocsin who you are, so nothing was done. Press again, or use Tocsin.",
	} {
		for _, c := range everything {
			c.user = user
			h.wantReply(c, want)
		}
	}
	for user, want := range map[string]string{
		"U5": "Tocsin has no user with your e-mail address, other@example.com, so the alert cannot be assigned to you. Ask an administrator of Tocsin to add you.",
		"U6": "Tocsin has no user with your e-mail address, new@example.com, so the alert cannot be assigned to you. Ask an administrator of Tocsin to add you.",
		"U7": "Tocsin does not know which user you are, because the Slack app does not see your e-mail address. Nothing was done. Assign the alert in Tocsin. " +
			"Here it works with the scopes users:read and users:read.email of the app, if you are a full member of the workspace.",
	} {
		h.wantReply(choice{user: user, action: "assign", value: h.alert}, want)
	}
	// If no text can be shown to the user, Slack marks the press as failed.
	h.slack.misbehave(refuses("chat.postEphemeral", "fatal_error"))
	if status, _ := h.press(choice{user: "U3", action: "resolve", value: h.alert}); status != http.StatusInternalServerError {
		t.Errorf("a refusal that nobody sees: %d", status)
	}
	h.slack.misbehave(nil)
	h.wantColumn("the alert", handlings, "FIRING  - 0")
	if got := h.column(fromSlack); len(got) != 0 {
		t.Errorf("changes: %q", got)
	}
	// A Slack user that Tocsin does not know acts under the name in Slack, with the rights of
	// everybody in the channel.
	h.wantReply(choice{user: "U6", action: "acknowledge", value: h.alert}, "")
	h.wantColumn("the alert", handlings, "ACKNOWLEDGED slack:name-of-U6 - 0")
	h.wantReply(choice{user: "U1", action: "assign", value: uuid.NewString()}, "This alert no longer exists in Tocsin. There is nothing left to do.")
}

// TestHandlingIsShownByMessagesThatArePostedLater assigns an alert while its message is on the way.
func TestHandlingIsShownByMessagesThatArePostedLater(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t)
	w.raiseFor(w.hook, "a")
	var once sync.Once
	w.slack.misbehave(func(string, http.ResponseWriter, *http.Request) bool {
		once.Do(func() {
			w.exec(`insert into alert_assignment (alert_id, tenant_id, assignee, assigned_by) select alert_id, tenant_id, 'ann@example.com', 'bo' from alert`)
		})
		return false
	})
	w.deliver()
	if got := w.slack.shown()[0].says(); strings.Contains(got, "Assigned") {
		t.Fatalf("shown %q", got)
	}
	w.update()
	if got := w.slack.shown()[0].says(); !strings.Contains(got, "Assigned to *ann@example.com*") {
		t.Errorf("shown %q", got)
	}
	w.exec(`insert into alert_snooze (alert_id, tenant_id, until, snoozed_by) select alert_id, tenant_id, now() + interval '1 hour', 'bo' from alert`)
	w.exec(`delete from alert_assignment`)
	w.update()
	if got := w.slack.shown()[0].says(); !strings.Contains(got, "Snoozed until") || strings.Contains(got, "Assigned") {
		t.Errorf("shown %q", got)
	}
	w.wantColumn("updates", openUpdates)
}
