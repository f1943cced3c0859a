//go:build unix

package torture

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// jira replaces Jira: a project of issues, which are found by their labels, commented and
// transitioned. A write may succeed although its response is lost: then it must not be repeated.
type jira struct {
	receiver *receiver

	mu     sync.Mutex
	issues []*issue
}

// issue is an issue about an alert.
type issue struct {
	key, alertID string
	done         bool
	comments     []string
}

// about returns copies of the issues about an alert.
func (j *jira) about(alertID string) (out []issue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range j.issues {
		if i.alertID == alertID {
			out = append(out, *i)
		}
	}
	return out
}

// ServeHTTP responds to a call as Jira does, or as the seed decides. An attempt consists of several
// calls. Those that write the issue or a comment are recorded as requests, because they are what
// people see.
func (j *jira) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r, id, at := j.receiver, req.Header.Get("webhook-id"), time.Now()
	r.mu.Lock()
	r.came["call "+id]++
	misdeed := r.misdeed(req.Method+id, jiraIssues, r.came["call "+id])
	r.mu.Unlock()
	switch misdeed {
	case errs:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case throttles:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case hangsUp, readsAndHangsUp, dawdles, behaves:
	}
	status, said, written := j.do(req, body)
	if written != nil {
		r.note(func() {
			r.log = append(r.log, &request{at: at, hook: jiraIssues, webhookID: id, arrival: *written, read: true, accepted: true, misdeed: misdeed})
		})
	}
	if misdeed == readsAndHangsUp {
		hangUp(w)
		return
	}
	if misdeed == dawdles {
		pause(r.ended, webhookTimeout)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(said)
	}
}

var (
	jiraLabel       = regexp.MustCompile(`^project = "` + jiraProject + `" AND labels = "tocsin-(` + anID + `)"`)
	jiraCorrelation = regexp.MustCompile(`(?m)^Correlation: (\S+)$`)
)

// do performs a call, and returns what it wrote.
func (j *jira) do(req *http.Request, body []byte) (status int, said any, written *arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	call := req.Method + " " + strings.TrimPrefix(req.URL.Path, "/"+jiraIssues+"/rest/api/2")
	switch call {
	case "GET /search/jql":
		label := jiraLabel.FindStringSubmatch(req.URL.Query().Get("jql"))
		if label == nil {
			return http.StatusBadRequest, nil, nil
		}
		found := []any{}
		for _, i := range j.issues {
			if i.alertID == label[1] {
				found = append(found, map[string]any{"key": i.key})
			}
		}
		return http.StatusOK, map[string]any{"issues": found}, nil
	case "POST /issue":
		return j.create(body)
	}
	for _, i := range j.issues {
		if _, what, found := strings.Cut(call, " /issue/"+i.key); found && (what == "" || what[0] == '/') {
			return i.do(req.Method+" "+strings.TrimPrefix(what, "/"), body)
		}
	}
	return http.StatusNotFound, nil, nil
}

func (j *jira) create(body []byte) (status int, said any, written *arrival) {
	var made struct {
		Fields struct {
			Project              struct{ Key string }
			Labels               []string
			Summary, Description string
		}
	}
	if readJSON(body, &made) != nil || made.Fields.Project.Key != jiraProject || len(made.Fields.Labels) != 1 || made.Fields.Summary == "" {
		return http.StatusBadRequest, nil, nil
	}
	i := &issue{key: fmt.Sprintf("%s-%d", jiraProject, len(j.issues)+1), alertID: strings.TrimPrefix(made.Fields.Labels[0], "tocsin-")}
	j.issues = append(j.issues, i)
	written = &arrival{alertID: i.alertID, event: aRaising}
	if found := jiraCorrelation.FindStringSubmatch(made.Fields.Description); found != nil {
		written.correlation = found[1]
	}
	return http.StatusCreated, map[string]any{"id": i.key, "key": i.key}, written
}

// do performs a call about an issue.
func (i *issue) do(call string, body []byte) (status int, said any, written *arrival) {
	category := func(done bool) any {
		return map[string]any{"statusCategory": map[string]any{"key": map[bool]string{true: "done", false: "new"}[done]}}
	}
	switch call {
	case "GET ":
		return http.StatusOK, map[string]any{"key": i.key, "fields": map[string]any{"status": category(i.done)}}, nil
	case "GET comment":
		comments := []any{}
		for _, c := range i.comments {
			comments = append(comments, map[string]any{"body": c})
		}
		return http.StatusOK, map[string]any{"comments": comments}, nil
	case "POST comment":
		var comment struct{ Body string }
		if readJSON(body, &comment) != nil || comment.Body == "" {
			return http.StatusBadRequest, nil, nil
		}
		i.comments = append(i.comments, comment.Body)
		said := strings.TrimPrefix(strings.Replace(comment.Body, " at ", ": ", 1), "Tocsin: ")
		return http.StatusCreated, map[string]any{"id": "1"}, &arrival{alertID: i.alertID, event: eventOf(said)}
	case "GET transitions":
		return http.StatusOK, map[string]any{"transitions": []any{map[string]any{"id": "1", "name": "Move on", "to": category(!i.done)}}}, nil
	case "POST transitions":
		i.done = !i.done
		return http.StatusNoContent, nil, nil
	}
	return http.StatusMethodNotAllowed, nil, nil
}

func readJSON(body []byte, into any) error { return json.Unmarshal(body, into) }
