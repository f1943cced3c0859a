package presettest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"tocsin/notify/preset"
)

// Issue is an issue in a [Jira].
type Issue struct {
	Key, Label, Summary, Description string
	// Status is To Do, In Progress or Done.
	Status   string
	Comments []string
}

// Jira is a look-alike of Jira, Cloud or Data Center, with one project whose workflow leads from
// To Do to Done and back. It is safe for concurrent use.
type Jira struct {
	preset *preset.Preset
	// Project is the key of its project, Edition "cloud" or "datacenter".
	Project, Edition string
	// Transitions lists, for a status, the transitions to other ones, by name.
	Transitions map[string]map[string]string
	// Behind is how many of the newest issues the search does not find, because the index does not
	// contain them yet.
	Behind int
	// Answer returns an answer to use instead of the normal one, or nil.
	Answer func(r *http.Request) *Answer

	mu sync.Mutex
	// lost is how many of the next writes lose their connection.
	lost     int
	issues   []*Issue
	calls    []string
	refusals []string
}

// NewJira returns a look-alike of Jira's Cloud.
func NewJira(p *preset.Preset) *Jira {
	return &Jira{
		preset: p, Project: "OPS", Edition: "cloud",
		Transitions: map[string]map[string]string{"To Do": {"Start": "In Progress", "Finish": "Done"}, "In Progress": {"Finish": "Done"}, "Done": {"Back to work": "To Do"}},
	}
}

// Lose makes the next writes happen, and closes their connections before the answers.
func (j *Jira) Lose(writes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost = writes
}

// Issues returns all issues.
func (j *Jira) Issues() (list []Issue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range j.issues {
		list = append(list, *i)
	}
	return list
}

// Delete deletes an issue, as a person might.
func (j *Jira) Delete(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for n, i := range j.issues {
		if i.Key == key {
			j.issues = append(j.issues[:n], j.issues[n+1:]...)
			return
		}
	}
}

// Calls returns method and path of the calls since the last time.
func (j *Jira) Calls() (calls []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	calls, j.calls = j.calls, nil
	return calls
}

// Refusals returns why calls were refused.
func (j *Jira) Refusals() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.refusals...)
}

// ServeHTTP answers as Jira does.
func (j *Jira) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The client gave up before it had sent the whole request.
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	path, versioned := strings.CutPrefix(r.URL.Path, "/rest/api/2")
	j.calls = append(j.calls, r.Method+" "+path)
	if j.Answer != nil {
		if answer := j.Answer(r); answer != nil {
			for name, value := range answer.Header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(answer.Status)
			_, _ = io.WriteString(w, answer.Body)
			return
		}
	}
	status, answer := http.StatusNotFound, any(map[string]any{"errorMessages": []string{"dead link"}})
	switch {
	case r.Header.Get("Authorization") == "":
		status = http.StatusUnauthorized
	case versioned:
		status, answer = j.answer(r, path, body)
	}
	if status == http.StatusBadRequest {
		j.refusals = append(j.refusals, fmt.Sprint(r.Method, " ", path, ": ", answer))
	}
	if r.Method == http.MethodPost && status < http.StatusMultipleChoices && j.lost > 0 {
		j.lost--
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (j *Jira) answer(r *http.Request, path string, body []byte) (int, any) {
	refused := func(format string, args ...any) (int, any) {
		return http.StatusBadRequest, map[string]any{"errorMessages": []string{fmt.Sprintf(format, args...)}}
	}
	search := "/search/jql"
	if j.Edition == "datacenter" {
		search = "/search"
	}
	if path == search && r.Method == http.MethodGet {
		return j.search(r.URL.Query().Get("jql"))
	}
	if r.Method == http.MethodPost && !strings.HasSuffix(path, "/transitions") {
		if err := j.preset.Valid(body); err != nil {
			return refused("%v", err)
		}
	}
	var root map[string]any
	if len(body) > 0 && json.Unmarshal(body, &root) != nil {
		return refused("no JSON")
	}
	if err := within(j.preset.ID, root, len(body)); err != nil {
		return refused("%v", err)
	}
	if path == "/issue" && r.Method == http.MethodPost {
		if strings.ContainsAny(one(root, "/fields/summary"), "\r\n") {
			return refused("The summary is invalid because it contains newline characters.")
		}
		if label := one(root, "/fields/labels/*"); label == "" || strings.ContainsAny(label, " \t\r\n") {
			return refused("The label %q contains spaces which is invalid.", label)
		}
		if project := one(root, "/fields/project/key"); project != j.Project {
			return refused("valid project is required, not %s", project)
		}
		i := &Issue{Key: j.Project + "-" + strconv.Itoa(len(j.calls)+len(j.issues)), Label: one(root, "/fields/labels/*"), Summary: one(root, "/fields/summary"), Description: one(root, "/fields/description"), Status: "To Do"}
		j.issues = append(j.issues, i)
		return http.StatusCreated, map[string]any{"id": "10000", "key": i.Key, "self": "https://jira.example.com"}
	}
	key, rest, _ := strings.Cut(strings.TrimPrefix(path, "/issue/"), "/")
	for _, i := range j.issues {
		if i.Key == key {
			return j.about(i, r.Method, rest, root)
		}
	}
	return http.StatusNotFound, map[string]any{"errorMessages": []string{"Issue does not exist or you do not have permission to see it."}}
}

// search answers the only query that is used.
func (j *Jira) search(jql string) (int, any) {
	rest, found := strings.CutPrefix(jql, `project = "`+j.Project+`" AND labels = "`)
	if !found {
		return http.StatusBadRequest, map[string]any{"errorMessages": []string{"The value does not exist for the field 'project'."}}
	}
	label, _, _ := strings.Cut(rest, `"`)
	list := []any{}
	for _, i := range j.issues[:max(len(j.issues)-j.Behind, 0)] {
		if i.Label == label {
			list = append(list, map[string]any{"key": i.Key})
		}
	}
	return http.StatusOK, map[string]any{"issues": list}
}

// about answers a call about an issue.
func (j *Jira) about(i *Issue, method, what string, root map[string]any) (int, any) {
	category := func(status string) map[string]any {
		return map[string]any{"statusCategory": map[string]any{"key": map[string]string{"To Do": "new", "In Progress": "indeterminate", "Done": "done"}[status]}}
	}
	switch method + " " + what {
	case "GET ":
		return http.StatusOK, map[string]any{"key": i.Key, "fields": map[string]any{"status": category(i.Status)}}
	case "GET comment":
		list := []any{}
		for _, c := range i.Comments {
			// Cloud escapes the markup again when it returns what it has stored.
			list = append(list, map[string]any{"body": strings.ReplaceAll(c, "-", `\-`)})
		}
		return http.StatusOK, map[string]any{"comments": list}
	case "POST comment":
		i.Comments = append(i.Comments, one(root, "/body"))
		return http.StatusCreated, map[string]any{"id": "1"}
	case "GET transitions":
		list := []any{}
		for name, to := range j.Transitions[i.Status] {
			list = append(list, map[string]any{"id": "t-" + name, "name": name, "to": category(to)})
		}
		return http.StatusOK, map[string]any{"transitions": list}
	case "POST transitions":
		to, there := j.Transitions[i.Status][strings.TrimPrefix(one(root, "/transition/id"), "t-")]
		if !there {
			return http.StatusBadRequest, map[string]any{"errorMessages": []string{"It seems that you have tried to perform a workflow operation that is not valid"}}
		}
		i.Status = to
		return http.StatusNoContent, nil
	}
	return http.StatusMethodNotAllowed, nil
}
