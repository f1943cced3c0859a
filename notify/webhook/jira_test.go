package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

// jira is a Jira on this machine, and a webhook for it.
type jira struct {
	*testing.T
	*presettest.Jira

	sender   *webhook.Sender
	renderer *webhook.Renderer
	webhook  notify.Webhook
}

func newJira(t *testing.T, change ...func(map[string]string)) *jira {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	j := &jira{T: t, Jira: presettest.NewJira(set.Get("jira")), sender: newSender(t, func(o *webhook.Options) { o.Presets = set })}
	server := httptest.NewServer(j.Jira)
	t.Cleanup(server.Close)
	if j.renderer, err = webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example.com", Presets: set}); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{"site": server.URL, "user": "tocsin@example.com", "token": secretToken, "project": "OPS"}
	for _, f := range change {
		f(inputs)
	}
	j.webhook = notify.Webhook{ID: uuid.UUID{2}, Kind: notify.KindGeneric, Preset: "jira", Inputs: inputs, Timeout: time.Minute}
	if fields := webhook.CheckPreset(set, &j.webhook); len(fields) > 0 {
		t.Fatal(fields)
	}
	return j
}

// message renders a message about an alert.
func (j *jira) message(reason notify.Reason, a alerts.Instance, reference string) *notify.Delivery {
	j.Helper()
	d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: reason, Attempt: 1, Alert: a, Webhook: j.webhook, Reference: reference}
	if reason.IsEvent() {
		d.Event = &notify.Event{At: instant(), By: "Kim"}
	}
	body, problem := j.renderer.Render(d)
	if problem != nil {
		j.Fatal(problem)
	}
	d.Body = &body
	return d
}

// tells sends a message, which has to be delivered, and returns what is then known of the issue.
func (j *jira) tells(reason notify.Reason, a alerts.Instance, reference string) string {
	j.Helper()
	d := j.message(reason, a, reference)
	o := j.sender.Send(j.Context(), d)
	if o.Verdict != notify.VerdictDelivered {
		j.Fatalf("%s: %+v, %v", reason, o, j.Refusals())
	}
	if r := notify.ReferenceOf(d, o); r != nil {
		return r.ID
	}
	return reference
}

// only returns the single issue that has to exist.
func (j *jira) only() presettest.Issue {
	j.Helper()
	list := j.Issues()
	if len(list) != 1 {
		j.Fatalf("%d issues, want 1: %+v", len(list), list)
	}
	return list[0]
}

// TestJiraLeadsAnIssueThroughItsLife takes an issue through its states, in either edition, with its
// key known or searched for.
func TestJiraLeadsAnIssueThroughItsLife(t *testing.T) {
	t.Parallel()
	for _, edition := range []string{"cloud", "datacenter"} {
		for _, forgets := range []bool{false, true} {
			for n, sample := range template.Samples() {
				j := newJira(t, func(inputs map[string]string) { inputs["edition"] = edition })
				j.Edition = edition
				key := ""
				for _, step := range []struct {
					reason   notify.Reason
					status   string
					comments int
				}{
					{notify.ReasonFired, "To Do", 0}, {notify.ReasonReminder, "To Do", 1}, {notify.ReasonAcknowledged, "To Do", 2}, {notify.ReasonResolved, "Done", 3}, {notify.ReasonReopened, "To Do", 4},
				} {
					key = j.tells(step.reason, sample, key)
					if i := j.only(); i.Status != step.status || len(i.Comments) != step.comments || i.Label != "tocsin-"+sample.ID.String() || key != i.Key {
						t.Fatalf("sample %d: after %s, known as %q: %+v", n, step.reason, key, i)
					}
					if forgets {
						key = ""
					}
				}
			}
		}
	}
}

// TestJiraRepeatsNothing: an attempt whose response was lost has done its work, and the next one
// detects that.
func TestJiraRepeatsNothing(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	j := newJira(t)
	for _, step := range []struct {
		reason   notify.Reason
		status   string
		comments int
	}{
		{notify.ReasonFired, "To Do", 0}, {notify.ReasonAcknowledged, "To Do", 1}, {notify.ReasonResolved, "Done", 2}, {notify.ReasonReopened, "To Do", 3},
	} {
		d := j.message(step.reason, a, "")
		verdicts := ""
		for range 3 {
			j.Lose(1)
			verdicts += j.sender.Send(t.Context(), d).Verdict.String() + " "
		}
		j.Lose(0)
		if !strings.HasPrefix(verdicts, "RETRY ") || !strings.HasSuffix(verdicts, "DELIVERED ") {
			t.Errorf("%s: %s", step.reason, verdicts)
		}
		if i := j.only(); i.Status != step.status || len(i.Comments) != step.comments {
			t.Errorf("after %s: %+v", step.reason, i)
		}
	}
	// A known key is not searched for.
	j.Calls()
	j.tells(notify.ReasonAcknowledged, a, j.only().Key)
	if calls := j.Calls(); len(calls) != 1 || !strings.HasPrefix(calls[0], "GET /issue/") {
		t.Errorf("calls %v", calls)
	}
}

// TestJiraForgetsWhatIsGone: a user has deleted the issue.
func TestJiraForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	j := newJira(t)
	key := j.tells(notify.ReasonFired, a, "")
	j.Delete(key)
	d := j.message(notify.ReasonResolved, a, key)
	o := j.sender.Send(t.Context(), d)
	if r := notify.ReferenceOf(d, o); o.Verdict != notify.VerdictRetry || r == nil || r.ID != "" || r.Gone != key {
		t.Fatalf("%+v, forgets %+v", o, r)
	}
	if j.tells(notify.ReasonResolved, a, ""); len(j.Issues()) != 0 {
		t.Errorf("an end without an issue makes %+v", j.Issues())
	}
	if key = j.tells(notify.ReasonFired, a, ""); j.only().Key != key {
		t.Errorf("sent again: %q, %+v", key, j.Issues())
	}
}

// TestJiraMovesByName moves an issue by a transition's name, and leaves it where it is if its
// workflow has no such transition.
func TestJiraMovesByName(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	for _, test := range []struct{ name, from, want string }{
		{"finish", "To Do", "Done"}, {"Close", "To Do", "To Do"}, {"", "Done", "Done"}, {"Start", "To Do", "In Progress"},
	} {
		j := newJira(t, func(inputs map[string]string) { inputs["done"] = test.name })
		key := j.tells(notify.ReasonFired, a, "")
		if test.from == "Done" {
			// A user was faster: nothing is left to transition.
			j.Transitions["To Do"] = map[string]string{"": "Done"}
			j.tells(notify.ReasonResolved, a, key)
			j.Transitions = nil
			j.tells(notify.ReasonResolved, a, key)
		} else {
			j.tells(notify.ReasonResolved, a, key)
		}
		if i := j.only(); i.Status != test.want {
			t.Errorf("%q from %s: %+v", test.name, test.from, i)
		}
	}
}

// TestJiraMovesAnIssueThatSomethingElseIsMoving: Jira refuses the second of two transitions at once
// with 409. The end of the alert is tried again, and its comment is not repeated.
func TestJiraMovesAnIssueThatSomethingElseIsMoving(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	j := newJira(t)
	key := j.tells(notify.ReasonFired, a, "")
	busy := true
	j.Answer = func(r *http.Request) *presettest.Answer {
		if !busy || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/transitions") {
			return nil
		}
		busy = false
		return &presettest.Answer{Status: http.StatusConflict, Body: `{"errorMessages":["The issue is being transitioned."]}`}
	}
	if o := j.sender.Send(t.Context(), j.message(notify.ReasonResolved, a, key)); o.Verdict != notify.VerdictRetry || !strings.Contains(o.Error, "409") {
		t.Errorf("while it is being moved: %+v", o)
	}
	j.tells(notify.ReasonResolved, a, key)
	if i := j.only(); i.Status != "Done" || len(i.Comments) != 1 {
		t.Errorf("afterwards: %+v", i)
	}
}

// TestJirasHostileExchanges takes alerts through their states: whatever an exchange contains, each
// alert has one issue, the issue follows the alert's state, and its texts mention no user.
func TestJirasHostileExchanges(t *testing.T) {
	t.Parallel()
	j := newJira(t)
	piece := rapid.SampledFrom([]string{
		"order 4711 ", "\r\n", "\n", "\r", "[~admin]", "[~accountid:5b10]", "\\[~admin]", "\\", "[x|http://e]", "{code}", "{noformat}", "{color:red}", "!http://e/x.png!", "*", "_", "||", "{{alert.title}}",
		"{{", "}}", "\"", "\x00", "\x1b", "\u202e", "\u2028", "\u200b", "ü", "😀", "漢", "\xff", strings.Repeat("long ", 400), strings.Repeat("😀", 9000), strings.Repeat("[", 20_000), "tocsin-", "null", "Tocsin: ",
	})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "") })
	mention := regexp.MustCompile(`(^|[^\\])\[~`)
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		made++
		a := template.Samples()[0]
		a.ID = uuid.UUID{14: byte(made >> 8), 15: byte(made)}
		a.Title, a.Message, a.RuleName, a.About.Owner = text.Draw(rt, "title"), text.Draw(rt, "message"), text.Draw(rt, "rule"), text.Draw(rt, "owner")
		a.Exchange.Route, a.Exchange.ErrorStack, a.Exchange.ExecutionID = text.Draw(rt, "route"), text.Draw(rt, "stack"), text.Draw(rt, "execution")
		by, key := text.Draw(rt, "by"), ""
		for n, step := range []struct {
			reason notify.Reason
			status string
		}{
			{notify.ReasonFired, "To Do"}, {notify.ReasonReminder, "To Do"}, {notify.ReasonAcknowledged, "To Do"}, {notify.ReasonResolved, "Done"}, {notify.ReasonReopened, "To Do"},
		} {
			d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: step.reason, Attempt: 1, Alert: a, Webhook: j.webhook, Reference: key}
			if step.reason.IsEvent() {
				d.Event = &notify.Event{At: instant().Add(time.Duration(n) * time.Minute), By: by}
			}
			body, problem := j.renderer.Render(d)
			if problem != nil {
				rt.Fatal(problem)
			}
			d.Body = &body
			o := j.sender.Send(t.Context(), d)
			if o.Verdict != notify.VerdictDelivered {
				rt.Fatalf("%s: %+v, %v", step.reason, o, j.Refusals())
			}
			if r := notify.ReferenceOf(d, o); r != nil {
				key = r.ID
			}
			issues := j.Issues()
			i := issues[len(issues)-1]
			if len(issues) != made || i.Key != key || i.Status != step.status || i.Label != "tocsin-"+a.ID.String() || len(i.Comments) != n {
				rt.Fatalf("after %s there are %d issues, known as %q: %+v", step.reason, len(issues), key, i)
			}
			for _, text := range append(i.Comments, i.Description) {
				if mention.MatchString(text) {
					rt.Fatalf("%s mentions somebody: %q", step.reason, text)
				}
			}
		}
	})
}

// TestAnswersOfJira checks that the meaning of a response depends on its call.
func TestAnswersOfJira(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	for _, test := range []struct {
		what, call string
		answer     presettest.Answer
		want       notify.Verdict
		remedy     string
	}{
		{"a token that is not accepted", "/search/jql", presettest.Answer{Status: 401, Body: secretToken}, notify.VerdictGone, "The user or the token is not accepted"},
		{"a project that is not there", "/search/jql", presettest.Answer{Status: 400}, notify.VerdictGone, "project key"},
		{"another edition", "/search/jql", presettest.Answer{Status: 404}, notify.VerdictGone, "edition"},
		{"a page that is no Jira", "/search/jql", presettest.Answer{Status: 200, Body: "<html>"}, notify.VerdictRetry, "not from Jira"},
		{"a burst", "/search/jql", presettest.Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}}, notify.VerdictThrottled, ""},
		{"a burst of writes", "/issue", presettest.Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}}, notify.VerdictThrottled, ""},
		{"a field that is missing", "/issue", presettest.Answer{Status: 400, Body: `{"errors":{"labels":"Field 'labels' cannot be set."}}`}, notify.VerdictRefused, "put Labels on the screen"},
		{"a failure", "/issue", presettest.Answer{Status: 503}, notify.VerdictRetry, ""},
	} {
		j := newJira(t)
		j.Answer = func(r *http.Request) *presettest.Answer {
			if strings.TrimPrefix(r.URL.Path, "/rest/api/2") == test.call {
				return &test.answer
			}
			return nil
		}
		o := j.sender.Send(t.Context(), j.message(notify.ReasonFired, a, ""))
		if o.Verdict != test.want || !strings.Contains(o.Error, test.remedy) || o.NothingSent {
			t.Errorf("%s: %+v", test.what, o)
		}
		if test.want == notify.VerdictThrottled && o.RetryAfter != 7*time.Second {
			t.Errorf("%s: waits %v", test.what, o.RetryAfter)
		}
		if strings.Contains(o.Error+o.Response, secretToken) {
			t.Errorf("%s shows the token: %+v", test.what, o)
		}
	}
	j := newJira(t)
	j.webhook.Inputs["site"] = "http://127.0.0.1:1"
	if o := j.sender.Send(t.Context(), j.message(notify.ReasonFired, a, "")); o.Verdict != notify.VerdictRetry || !o.NothingSent {
		t.Errorf("nobody listens: %+v", o)
	}
}

// TestJiraIsNotifiedOfEscalations checks that an escalation is a comment on the existing issue, or
// a new issue.
func TestJiraIsNotifiedOfEscalations(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	j := newJira(t)
	key := j.tells(notify.ReasonEscalated, a, "")
	if i := j.only(); i.Key != key || len(i.Comments) != 0 {
		t.Errorf("the first that is heard of the alert made %+v, known as %q", i, key)
	}
	j.tells(notify.ReasonEscalated, a, key)
	if i := j.only(); len(i.Comments) != 1 || !strings.HasPrefix(i.Comments[0], "Tocsin: Escalated at ") || i.Status != "To Do" {
		t.Errorf("%+v", i)
	}
	// A message that was rendered while the issue was unknown creates no second one.
	if o := j.sender.Send(t.Context(), j.message(notify.ReasonEscalated, a, "")); o.Verdict != notify.VerdictDelivered {
		t.Errorf("%+v", o)
	}
	// A message that was rendered for an issue that is unknown since remains a comment.
	d := j.message(notify.ReasonEscalated, a, key)
	d.Reference, d.At = "", instant()
	if o := j.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Errorf("%+v", o)
	}
	j.only()
}

// TestNoAnswerOfJiraShowsASecret uses secrets as names of issues and transitions in responses: none
// is shown, or kept as an issue's key.
func TestNoAnswerOfJiraShowsASecret(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	for name, c := range map[string]struct {
		answers   map[string]string
		reason    notify.Reason
		reference string
	}{
		"found":   {map[string]string{"GET /rest/api/2/search/jql": `{"issues":[{"key":"` + secretToken + `"}]}`}, notify.ReasonFired, ""},
		"created": {map[string]string{"GET /rest/api/2/search/jql": `{"issues":[]}`, "POST /rest/api/2/issue": `{"key":"` + secretToken + `"}`}, notify.ReasonFired, ""},
		"moved": {map[string]string{
			"GET /rest/api/2/issue/OPS-1/comment": `{"comments":[]}`, "POST /rest/api/2/issue/OPS-1/comment": `{}`, "GET /rest/api/2/issue/OPS-1": `{}`,
			"GET /rest/api/2/issue/OPS-1/transitions": `{"transitions":[{"id":"1","name":"` + secretToken + `","to":{"statusCategory":{"key":"done"}}}]}`,
		}, notify.ReasonResolved, "OPS-1"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, known := c.answers[r.Method+" "+r.URL.Path]
			if !known {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(server.Close)
		j := newJira(t, func(inputs map[string]string) { inputs["site"] = server.URL })
		o := j.sender.Send(t.Context(), j.message(c.reason, a, c.reference))
		if strings.Contains(o.Error+o.Response, secretToken) || o.Reference != nil && strings.Contains(*o.Reference, secretToken) || !strings.Contains(o.Error+o.Response, "[redacted]") {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestJiraTakesNoDigest: a digest would open nothing, and counts as not delivered.
func TestJiraTakesNoDigest(t *testing.T) {
	t.Parallel()
	j := newJira(t)
	d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: notify.ReasonDigest, Attempt: 1, Webhook: j.webhook, Digest: &notify.Digest{Size: 2}}
	body, problem := j.renderer.Render(d)
	if d.Body = &body; problem == nil {
		t.Error("a digest was rendered")
	}
	if o := j.sender.Send(t.Context(), d); o.Verdict != notify.VerdictRefused || len(j.Issues()) != 0 {
		t.Errorf("%+v, issues %+v", o, j.Issues())
	}
}
