package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tocsin/notify"
	"tocsin/notify/preset"
)

// jiraTimeout is the least timeout of an attempt at Jira, because it makes several calls.
const jiraTimeout = 30 * time.Second

// jira makes one attempt at a message to Jira. In addition to the preset's request, which creates
// or comments, it first checks whether that was already done, because an attempt whose answer was
// lost may have done it. It also moves an issue through its workflow:
//
//	fired             search by label ─ none ─▶ create
//	                                  └ found ─▶ nothing to do
//	reminder          find the issue, comment unless that comment is there; so does an
//	                  escalation where the issue was known when its message was made
//	acknowledged
//	resolved          the same, and a transition to done unless it is done
//	reopened          the same, and a transition out of done unless it is not
//
// The issue is the one whose key is stored. If no key is stored, it is searched for by its label. A
// key whose issue is gone is forgotten, and the next attempt searches. If there is no issue, there
// is nothing to do except for creating it. The search index lags by some seconds, so a repeat waits
// longer.
//
// Before each call, and once more when what is to be written leaves, it asks whether the claim is still valid: the process that has it by
// now may create the issue. A connection may be made between the two, and the process may have been paused.
func (s *Sender) jira(parent context.Context, t *target, p *preset.Preset, d *notify.Delivery, at time.Time) (o notify.Outcome) {
	began := s.now()
	defer func() {
		o.Duration = max(s.now().Sub(began), 0)
		// The errors name issues and transitions as the answers do.
		o.Error, o.Response, o.Reference = t.secrets.line(o.Error, maxError), t.secrets.line(o.Response, maxResponse), t.secrets.reference(o.Reference)
	}()
	known := *d
	known.Webhook.Timeout = max(timeoutOf(&d.Webhook), jiraTimeout)
	ctx, cancel := context.WithTimeout(parent, known.Webhook.Timeout)
	defer cancel()
	created, err := p.Target(preset.Fired, preset.AboutOf(d), d.Webhook.Inputs)
	if err != nil {
		return refused(t, err)
	}
	event := p.EventOf(d)
	if !p.Sends(event) {
		return refused(t, fmt.Errorf("%s is not notified of %s; remove that event from the webhook", p.Name, event))
	}
	j := jiraAttempt{s, t, &known, strings.TrimSuffix(created.URL.String(), "/issue"), created.Header, p.Completed(d.Webhook.Inputs), at, false, 0}
	found := d.Reference
	if found == "" {
		if found, o = j.search(ctx); o.Verdict != notify.VerdictDelivered {
			return o
		}
	}
	switch {
	case found == "" && event == preset.Fired:
		o = j.post(ctx)
		o.NothingSent = o.NothingSent && !j.sent
		return o
	case found == "":
		return notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: o.StatusCode, Response: "There is no issue for the alert"}
	case event == preset.Fired:
		return notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: o.StatusCode, Response: "The issue " + found + " exists already", Reference: &found}
	}
	known.Reference = found
	if o = j.comment(ctx); o.Verdict == notify.VerdictDelivered && (event == preset.Resolved || event == preset.Reopened) {
		o = j.move(ctx, event == preset.Resolved)
	}
	o.NothingSent = o.NothingSent && !j.sent
	switch {
	case o.StatusCode == http.StatusNotFound:
		o.Verdict, o.Reference, o.Error = notify.VerdictRetry, new(string), "The issue "+found+" no longer exists; the next attempt searches for another one"
	case o.Verdict == notify.VerdictDelivered && d.Reference == "":
		o.Reference = &found
	}
	return o
}

// jiraAttempt is one attempt, of several calls.
type jiraAttempt struct {
	s      *Sender
	target *target
	d      *notify.Delivery
	base   string
	header http.Header
	inputs map[string]string
	at     time.Time
	// sent says that an earlier call has reached the network. written is the status of Jira's
	// answer to the last call that changed something; 0 if there was none.
	sent    bool
	written int
}

// stopped is the outcome of an attempt whose claim expired before a call. The next attempt finds
// what it has written.
func (j *jiraAttempt) stopped(err error) notify.Outcome {
	if j.written == 0 {
		return stopped(err)
	}
	return notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: j.written, Error: "Stopped halfway: " + err.Error() + "; the next attempt continues from there"}
}

// exchange makes a call, unless the claim may have expired.
func (j *jiraAttempt) exchange(ctx context.Context, r *http.Request) (o notify.Outcome, body []byte) {
	if err := j.d.CheckClaim(); err != nil {
		return j.stopped(err), nil
	}
	content := &lastCheck{ReadCloser: r.Body, check: j.d.CheckClaim}
	if r.ContentLength > 0 {
		r.Body = content
	}
	o, body = j.s.exchange(ctx, j.target, &j.d.Webhook, r, j.at)
	if err := content.refused(); err != nil {
		return j.stopped(err), nil
	}
	if o.Verdict == notify.VerdictNotMade {
		o = j.stopped(context.Cause(ctx))
	}
	j.sent = j.sent || !o.NothingSent
	if r.Method != http.MethodGet && o.Verdict == notify.VerdictDelivered {
		j.written = o.StatusCode
	}
	return o, body
}

// lastCheck is the body of a request, of which nothing is read, and so nothing sent, if the claim may be over. A head that has been
// sent already is no request by itself.
type lastCheck struct {
	io.ReadCloser

	check func() error
	asked sync.Once
	over  atomic.Pointer[error]
}

func (b *lastCheck) Read(p []byte) (int, error) {
	b.asked.Do(func() {
		if err := b.check(); err != nil {
			b.over.Store(&err)
		}
	})
	if err := b.refused(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// refused returns why nothing was read, nil if it was not refused.
func (b *lastCheck) refused() error {
	if over := b.over.Load(); over != nil {
		return *over
	}
	return nil
}

// call makes a call beside the preset's request, and reads its answer into one, unless nil.
func (j *jiraAttempt) call(ctx context.Context, method, path string, query url.Values, content any, into any) (o notify.Outcome, body []byte) {
	address, err := parseURL(j.base + path)
	if err != nil {
		return refused(j.target, err), nil
	}
	address.RawQuery = query.Encode()
	r := post(address, j.header.Clone(), nil)
	r.Method, r.Body = method, http.NoBody
	if content != nil {
		sent, err := json.Marshal(content)
		if err != nil {
			return refused(j.target, err), nil
		}
		r = post(address, j.header.Clone(), sent)
	}
	j.s.common(r.Header, j.d, j.at)
	if o, body = j.exchange(ctx, r); o.Verdict == notify.VerdictDelivered && into != nil && json.Unmarshal(body, into) != nil {
		o = notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: o.StatusCode, Head: o.Head, Response: o.Response, Error: "The response is not from Jira; enter Jira's URL as the site"}
	}
	return o, body
}

// post makes the preset's request.
func (j *jiraAttempt) post(ctx context.Context) notify.Outcome {
	r, err := j.s.request(j.d, j.target, j.at)
	if err != nil {
		return refused(j.target, err)
	}
	o, _ := j.exchange(ctx, r)
	return o
}

// search returns the key of the alert's issue; empty if there is none. If Jira refuses the search,
// it does not know the project, or does not show it to the user.
func (j *jiraAttempt) search(ctx context.Context) (key string, o notify.Outcome) {
	path := "/search/jql"
	if j.inputs["edition"] == "datacenter" {
		path = "/search"
	}
	var found struct{ Issues []struct{ Key string } }
	o, _ = j.call(ctx, http.MethodGet, path, url.Values{
		"jql":    {`project = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(j.inputs["project"]) + `" AND labels = "tocsin-` + preset.Key(j.d) + `" ORDER BY created`},
		"fields": {"status"}, "maxResults": {"1"},
	}, nil, &found)
	if o.StatusCode == http.StatusBadRequest || o.StatusCode == http.StatusNotFound {
		o.Verdict = notify.VerdictGone
		o.Error += ": the project cannot be searched; check site, edition and project key, and that the user may browse the project"
	}
	if len(found.Issues) > 0 {
		key = found.Issues[0].Key
		if !preset.IsReference(key) {
			o.Verdict, o.Error = notify.VerdictRetry, "The response names an issue that cannot be from Jira; check the site"
			return "", o
		}
	}
	return key, o
}

// comment writes the comment of the message, unless it exists.
func (j *jiraAttempt) comment(ctx context.Context) notify.Outcome {
	var body struct{ Body string }
	_ = json.Unmarshal(j.d.Body.Content, &body) // a comment without a first line is not found
	line, _, _ := strings.Cut(body.Body, "\n")
	o, comments := j.call(ctx, http.MethodGet, "/issue/"+url.PathEscape(j.d.Reference)+"/comment", url.Values{"orderBy": {"-created"}, "maxResults": {"50"}}, nil, nil)
	// Jira may return markup in another form than it was sent.
	plain := bytes.ReplaceAll(comments, []byte(`\`), nil)
	if o.Verdict != notify.VerdictDelivered || line != "" && bytes.Contains(plain, []byte(line)) {
		return o
	}
	return j.post(ctx)
}

// jiraDone is the category of statuses in which nothing is left to do.
const jiraDone = "done"

// move moves an issue into a status that is done, or out of one. If its workflow has no such
// transition, the issue stays where it is.
func (j *jiraAttempt) move(ctx context.Context, done bool) notify.Outcome {
	type status struct {
		StatusCategory struct{ Key string }
	}
	path := "/issue/" + url.PathEscape(j.d.Reference)
	var issue struct{ Fields struct{ Status status } }
	o, _ := j.call(ctx, http.MethodGet, path, url.Values{"fields": {"status"}}, nil, &issue)
	if o.Verdict != notify.VerdictDelivered || (issue.Fields.Status.StatusCategory.Key == jiraDone) == done {
		return o
	}
	var way struct {
		Transitions []struct {
			ID, Name string
			To       status
		}
	}
	if o, _ = j.call(ctx, http.MethodGet, path+"/transitions", nil, nil, &way); o.Verdict != notify.VerdictDelivered {
		return o
	}
	name := j.inputs["reopen"]
	if done {
		name = j.inputs["done"]
	}
	for _, t := range way.Transitions {
		if name != "" && !strings.EqualFold(t.Name, name) || name == "" && (t.To.StatusCategory.Key == jiraDone) != done {
			continue
		}
		o, _ = j.call(ctx, http.MethodPost, path+"/transitions", nil, map[string]any{"transition": map[string]string{"id": t.ID}}, nil)
		if o.Verdict == notify.VerdictRefused {
			o.Error += ": the transition " + t.Name + " is refused; choose one that needs no fields"
		}
		return o
	}
	o.Response = "The issue " + j.d.Reference + " stays where it is: its workflow offers no transition " + cmp.Or(name, "to another category")
	return o
}
