package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/rules"
)

func (m *bulkMemory) Issue(_ context.Context, _ string, key api.IssueKey) (api.IssueRecord, error) {
	m.issue = key
	if key.Application == "nothing" {
		return api.IssueRecord{}, fault.New(fault.NotFound, "no such issue")
	}
	rule, alert := uuid.UUID{15: 1}, uuid.UUID{15: 2}
	record := api.IssueRecord{
		Severity: rules.Critical, Counts: alerts.Counts{Firing: 3, Acknowledged: 2, Resolved: 1},
		FirstAt: instant().Add(-time.Hour), NewestAt: instant(),
		Rules:           []api.IssueRule{{ID: rule, Name: "orders", Alerts: 6}},
		Places:          []api.IssuePlace{{Application: "orders", Route: "import", Alerts: 6, Firing: 3, NewestAt: instant()}},
		PlaceCount:      7,
		LastResolution:  &api.IssueResolution{AlertID: alert, At: instant(), By: "ada"},
		Regressions:     []api.IssueRegression{{AlertID: alert, At: instant(), ResolvedAt: instant().Add(-time.Minute)}},
		RegressionCount: 4,
	}
	record.Hours[alerts.TrendHours-1], record.Days[api.IssueDays-1] = 1, 6
	return record, nil
}

func TestIssueIsShownAsAWhole(t *testing.T) {
	b := newBench(t)
	got := into[api.Issue](b.do("GET", "/api/v1/alerts/issue?application=orders&route=import&signature=T%3A+refused", "").want(200))
	if want := (api.IssueKey{Application: "orders", Route: "import", Signature: "T: refused"}); b.bulk.issue != want {
		t.Errorf("asked for %+v, want %+v", b.bulk.issue, want)
	}
	by := "ada"
	want := api.Issue{
		Application: "orders", Route: "import", Signature: "T: refused", Severity: rules.Critical,
		Count: 6, Firing: 3, Acknowledged: 2, Resolved: 1, FirstAt: instant().Add(-time.Hour), NewestAt: instant(),
		Trend: make([]int64, alerts.TrendHours), Days: make([]int64, api.IssueDays),
		Rules:           []api.IssueRuleCount{{RuleID: uuid.UUID{15: 1}, RuleName: "orders", Count: 6}},
		Places:          []api.IssuePlaceCount{{Application: "orders", Route: "import", Count: 6, Firing: 3, NewestAt: instant()}},
		PlaceCount:      7,
		LastResolution:  &api.Resolution{AlertID: uuid.UUID{15: 2}, At: instant(), By: &by},
		Regressions:     []api.Regression{{AlertID: uuid.UUID{15: 2}, At: instant(), ResolvedAt: instant().Add(-time.Minute)}},
		RegressionCount: 4,
	}
	want.Trend[alerts.TrendHours-1], want.Days[api.IssueDays-1] = 1, 6
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// Alerts without an error have an empty signature, which counts as one.
	b.do("GET", "/api/v1/alerts/issue?application=orders&route=import&signature=", "").want(200)
	if b.bulk.issue.Signature != "" {
		t.Errorf("asked for %+v", b.bulk.issue)
	}
	b.do("GET", "/api/v1/alerts/issue?application=nothing&route=import&signature=T", "").problem(404, "not_found")
	b.do("GET", "/api/v1/alerts/issue?application=orders&route=import", "").problem(400, "invalid")
}

func (m *bulkMemory) WriteNote(_ context.Context, _ string, on api.NoteSubject, note api.NoteRecord) (api.NoteRecord, error) {
	if on.Issue.Application == "nothing" {
		return note, fault.New(fault.NotFound, "no such issue")
	}
	m.noted, note.At = on, instant()
	m.notes = append(m.notes, note)
	return note, nil
}

func (m *bulkMemory) Notes(_ context.Context, _ string, on api.NoteSubject, page api.NotePage) ([]api.NoteRecord, error) {
	m.noted = on
	found := slices.Clone(m.notes)
	slices.Reverse(found)
	if b := page.Before; b != nil {
		found = found[1+slices.IndexFunc(found, func(n api.NoteRecord) bool { return n.ID == b.ID }):]
	}
	return found[:min(len(found), page.Limit)], nil
}

func (m *bulkMemory) NoteAuthor(_ context.Context, _ string, id uuid.UUID) (string, error) {
	for _, note := range m.notes {
		if note.ID == id {
			return note.Author, nil
		}
	}
	return "", fault.New(fault.NotFound, "no such note")
}

func (m *bulkMemory) DeleteNote(_ context.Context, _ string, id uuid.UUID) error {
	m.notes = slices.DeleteFunc(m.notes, func(n api.NoteRecord) bool { return n.ID == id })
	return nil
}

const noteBody = `{"application":"orders","route":"import","signature":"T: refused","text":" Ask the ERP team. "}`

func TestNotesAreWrittenListedAndDeleted(t *testing.T) {
	var who api.Identity
	b := newBench(t, func(o *api.Options) { o.Identify = func(*http.Request) (api.Identity, error) { return who, nil } })
	as := func(actor string, role access.Role) { who = api.Identity{Tenant: "acme", Actor: actor, Role: role} }

	as("ada", access.Operator)
	note := into[api.IssueNote](b.do("POST", "/api/v1/alerts/issue/notes", noteBody).want(201))
	if note.Author != "ada" || note.Text != "Ask the ERP team." || !note.WrittenAt.Equal(instant()) || note.ID == uuid.Nil {
		t.Errorf("%+v", note)
	}
	if want := (api.IssueKey{Application: "orders", Route: "import", Signature: "T: refused"}); b.bulk.noted != (api.NoteSubject{Issue: want}) {
		t.Errorf("written on %+v, want %+v", b.bulk.noted, want)
	}
	as("bo", access.Operator)
	second := into[api.IssueNote](b.do("POST", "/api/v1/alerts/issue/notes", noteBody).want(201))
	as("eve", access.Viewer)
	const list = "/api/v1/alerts/issue/notes?application=orders&route=import&signature=T&limit=1"
	page := into[api.IssueNotePage](b.do("GET", list, "").want(200))
	if len(page.Items) != 1 || page.Items[0].ID != second.ID || page.NextCursor == nil {
		t.Fatalf("%+v", page)
	}
	page = into[api.IssueNotePage](b.do("GET", list+"&cursor="+*page.NextCursor, "").want(200))
	if len(page.Items) != 1 || page.Items[0].ID != note.ID {
		t.Errorf("%+v", page)
	}

	path := "/api/v1/alerts/issue/notes/" + note.ID.String()
	b.do("DELETE", path, "").problem(403, "forbidden")
	b.do("POST", "/api/v1/alerts/issue/notes", noteBody).problem(403, "forbidden")
	as("bo", access.Editor)
	b.do("DELETE", path, "").problem(403, "forbidden")
	as("ada", access.Operator)
	b.do("DELETE", path, "").want(204)
	b.do("DELETE", path, "").problem(404, "not_found")
	as("root", access.Admin)
	b.do("DELETE", "/api/v1/alerts/issue/notes/"+second.ID.String(), "").want(204)
}

func TestANoteNeedsTextAndAnIssue(t *testing.T) {
	b := newBench(t)
	for name, body := range map[string]string{
		"blank":         strings.Replace(noteBody, " Ask the ERP team. ", " ", 1),
		"too long":      strings.Replace(noteBody, "Ask", strings.Repeat("ä", 4001), 1),
		"no text":       `{"application":"orders","route":"import","signature":"T"}`,
		"unknown field": strings.Replace(noteBody, "{", `{"author":"eve",`, 1),
		"a zero byte":   strings.Replace(noteBody, "Ask", `\u0000`, 1),
	} {
		t.Run(name, func(*testing.T) { b.do("POST", "/api/v1/alerts/issue/notes", body).problem(400, "invalid") })
	}
	b.do("POST", "/api/v1/alerts/issue/notes", strings.Replace(noteBody, "orders", "nothing", 1)).problem(404, "not_found")
	b.do("GET", "/api/v1/alerts/issue/notes?application=orders&route=import&signature=T&cursor=x", "").problem(400, "invalid")
	if len(b.bulk.notes) != 0 {
		t.Errorf("written: %+v", b.bulk.notes)
	}
}
