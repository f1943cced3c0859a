package slack_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	slackgo "github.com/slack-go/slack"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
)

const secret = "0123456789abcdef0123456789abcdef"

// TestSignAgreesWithSlacksClient lets another implementation verify the result of Sign.
func TestSignAgreesWithSlacksClient(t *testing.T) {
	stamp, body := strconv.FormatInt(time.Now().Unix(), 10), "payload=%7B%7D"
	header := http.Header{}
	header.Set(slack.HeaderTimestamp, stamp)
	header.Set(slack.HeaderSignature, slack.Sign(secret, stamp, []byte(body)))
	verifier, err := slackgo.NewSecretsVerifier(header, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := verifier.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestVerify(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	stamp := "1795244520"
	body := []byte("payload=x")
	good := slack.Proof{Timestamp: stamp, Signature: slack.Sign(secret, stamp, body)}
	for name, c := range map[string]struct {
		secret string
		proof  slack.Proof
		body   string
		at     time.Time
		want   bool
	}{
		"as signed":        {secret, good, "payload=x", now, true},
		"late":             {secret, good, "payload=x", now.Add(slack.SignatureWindow), true},
		"too late":         {secret, good, "payload=x", now.Add(slack.SignatureWindow + time.Second), false},
		"early":            {secret, good, "payload=x", now.Add(-slack.SignatureWindow), true},
		"too early":        {secret, good, "payload=x", now.Add(-slack.SignatureWindow - time.Second), false},
		"another body":     {secret, good, "payload=y", now, false},
		"another secret":   {strings.Repeat("f", 32), good, "payload=x", now, false},
		"no secret":        {"", slack.Proof{Timestamp: stamp, Signature: slack.Sign("", stamp, body)}, "payload=x", now, false},
		"no signature":     {secret, slack.Proof{Timestamp: stamp}, "payload=x", now, false},
		"no timestamp":     {secret, slack.Proof{Signature: slack.Sign(secret, "", body)}, "payload=x", now, false},
		"another stamp":    {secret, slack.Proof{Timestamp: "1795244521", Signature: good.Signature}, "payload=x", now, false},
		"out of int range": {secret, slack.Proof{Timestamp: "9223372036854775808", Signature: good.Signature}, "payload=x", now, false},
		"far in the past":  {secret, slack.Proof{Timestamp: "-9223372036854775808", Signature: slack.Sign(secret, "-9223372036854775808", body)}, "payload=x", now, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := slack.Verify(c.secret, c.proof, []byte(c.body), c.at); (err == nil) != c.want {
				t.Errorf("err = %v, want proven = %v", err, c.want)
			}
		})
	}
}

func TestReadPress(t *testing.T) {
	const id = "0199a1b2-0000-7000-8000-000000000001"
	alert := uuid.MustParse(id)
	read := func(payload string) (slack.Press, bool, error) {
		return slack.ReadPress([]byte(url.Values{"payload": {payload}}.Encode()))
	}
	action := func(fields string) string {
		return `{"type":"block_actions","user":{"id":"U1","username":"ann\n<!channel>"},"team":{"id":"T1"},"channel":{"id":"C9"},"message":{"ts":"9.9"},
			"container":{"channel_id":"C1","message_ts":"1.2","thread_ts":"1.1"},"actions":[{"action_id":"x"},{` + fields + `}]}`
	}
	chosen := func(value, at string) string {
		return action(`"action_id":"tocsin_snooze","selected_option":{"value":"` + value + `"},"action_ts":"` + at + `"`)
	}
	ann := slack.User{ID: "U1", Team: "T1", Name: "slack:ann <!channel>"}
	here := func(p slack.Press) slack.Press {
		p.AlertID, p.User, p.Message, p.Thread = alert, ann, notify.Posted{Channel: "C1", TS: "1.2"}, "1.1"
		return p
	}
	for payload, want := range map[string]slack.Press{
		action(`"action_id":"tocsin_acknowledge","value":"` + id + `"`):      {Action: slack.ActionAcknowledge},
		action(`"action_id":"tocsin_resolve","value":"` + id + `"`):          {Action: slack.ActionResolve},
		action(`"action_id":"tocsin_assign","value":"` + id + `"`):           {Action: slack.ActionAssign},
		action(`"action_id":"tocsin_assign","value":"` + id + ` bo@x.test"`): {Action: slack.ActionAssign, Was: "bo@x.test"},
		chosen(id+" 4h", "1795244520.25"):                                    {Action: slack.ActionSnooze, For: 4 * time.Hour, At: time.Unix(1795244520, 250_000_000).UTC()},
		chosen(id+" end", ""):                                                {Action: slack.ActionUnsnooze},
	} {
		if got, found, err := read(payload); err != nil || !found || got != here(want) {
			t.Errorf("%s: %+v, %v, %v", payload, got, found, err)
		}
	}
	for name, payload := range map[string]string{
		"no id": action(`"action_id":"tocsin_assign","value":"me"`), "no time": chosen(id, "1.2"), "a time of one's own": chosen(id+" soon", "1.2"),
		"backwards": chosen(id+" -1h", "1.2"), "no instant": chosen(id+" 1h", "now"), "before all": chosen(id+" 1h", "-5.0"), "nothing chosen": chosen("", "1.2"),
	} {
		if got, found, err := read(payload); err == nil || found {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got, found, err := read(`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C9"},"message":{"ts":"9.9","thread_ts":"9.1"},"actions":[{"action_id":"tocsin_resolve","value":"` + id + `"}]}`)
	if err != nil || !found || got.User.Name != "slack:U1" || got.Thread != "9.1" || got.Message != (notify.Posted{Channel: "C9", TS: "9.9"}) {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	if got, _, err = read(`{"user":{"username":"` + strings.Repeat("é", 5000) + `"},"type":"block_actions"}`); err != nil || len(got.User.Name) > 250 {
		t.Errorf("a long name gave %d bytes, %v", len(got.User.Name), err)
	}
}

// TestOnlyMembersHaveAnAddress checks what is read from Slack's data about users.
func TestOnlyMembersHaveAnAddress(t *testing.T) {
	user := func(fields string) string {
		return `{"ok":true,"user":{"id":"U1","team_id":"T1","profile":{"email":"ann@x.test"}` + fields + `}}`
	}
	for answer, want := range map[string]slack.Member{
		user(``):                               {Email: "ann@x.test", Team: "T1"},
		user(`,"is_email_confirmed":true`):     {Email: "ann@x.test", Team: "T1"},
		user(`,"is_email_confirmed":false`):    {Team: "T1"},
		user(`,"deleted":true`):                {Team: "T1"},
		user(`,"is_bot":true`):                 {Team: "T1"},
		user(`,"is_restricted":true`):          {Team: "T1"},
		user(`,"is_ultra_restricted":true`):    {Team: "T1"},
		user(`,"is_stranger":true`):            {Team: "T1"},
		`{"ok":true,"user":{"team_id":"T1"}}`:  {Team: "T1"},
		`{"ok":false,"error":"missing_scope"}`: {},
	} {
		if got, err := slack.ReadMember([]byte(answer)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
	for _, answer := range []string{`{"ok":false,"error":"user_not_found"}`, `{"ok":false,"error":"fatal_error"}`, `<html>`, `{"ok":tr`, ``} {
		if got, err := slack.ReadMember([]byte(answer)); err == nil {
			t.Errorf("%q: %+v", answer, got)
		}
	}
}

// TestHandlingIsShown checks that a message shows the assignee, and offers to take over and to end
// the snooze.
func TestHandlingIsShown(t *testing.T) {
	a := usual()
	a.Buttons = true
	before, err := slack.Message(&a)
	if err != nil || strings.Contains(string(before), "tocsin_handling") || strings.Contains(string(before), " end\"") {
		t.Errorf("nobody's: %v, %s", err, before)
	}
	a.Assignee, a.SnoozedUntil, a.SnoozedBy = "bo <!here>@x.test", time.Unix(1_795_248_120, 0), "slack:ann"
	got, err := slack.Message(&a)
	if err != nil || slack.Valid(got) != nil {
		t.Fatal(err, slack.Valid(got))
	}
	for _, want := range []string{
		`Assigned to *bo \u0026lt;!here\u0026gt;@x.test*`, `Snoozed until \u003c!date^1795248120^{date_short_pretty} {time_secs}|2026-11-21 08:02:00 UTC\u003e by *ann*`,
		`"value":"` + a.ID + ` bo \u003c!here\u003e@x.test"`, `"value":"` + a.ID + ` end"`, `"value":"` + a.ID + ` 24h"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	a.State = alerts.Resolved
	if got, err = slack.Message(&a); err != nil || strings.Contains(string(got), "tocsin_assign") || strings.Contains(string(got), "tocsin_snooze") {
		t.Errorf("resolved: %v, %s", err, got)
	}
}

func TestStateOfABodyOfOnesOwn(t *testing.T) {
	a := usual()
	a.Buttons, a.State, a.ChangedBy = true, alerts.Acknowledged, "ann"
	own := `{"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"x"}}],"text":"x","metadata":{"n":1}}`
	got := string(slack.WithState([]byte(own), &a))
	if err := slack.Valid([]byte(got)); err != nil || !strings.Contains(got, "Acknowledged by *ann*") ||
		!strings.Contains(got, `"tocsin_resolve"`) || !strings.Contains(got, `"metadata":{"n":1}`) {
		t.Errorf("%v: %s", err, got)
	}
	for _, body := range []string{
		`{"text":"x"}`, `[]`,
		`{"text":"x","blocks":[` + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, 50), ",") + `]}`,
	} {
		if got := string(slack.WithState([]byte(body), &a)); got != body {
			t.Errorf("%s became %s", body, got)
		}
	}
	a.Buttons, a.State = false, alerts.Firing
	if got := string(slack.WithState([]byte(own), &a)); got != own {
		t.Errorf("nothing to add gave %s", got)
	}
}
