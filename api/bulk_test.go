package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// bulkMemory records its calls, and returns the same each time.
type bulkMemory struct {
	act    api.BulkAction
	assign api.BulkAssignment
	undo   api.Undo
	mark   api.ReadMark
	groups api.GroupQuery
	issue  api.IssueKey
	notes  []api.NoteRecord
	noted  api.NoteSubject
	found  []alerts.Group
}

func (m *bulkMemory) ActOnMany(_ context.Context, _ string, act api.BulkAction) (api.BulkCounts, error) {
	m.act = act
	return api.BulkCounts{Changed: 3, Already: 2, Refused: 1, Unknown: 4, UndoableUntil: instant().Add(10 * time.Minute)}, nil
}

func (m *bulkMemory) AssignMany(_ context.Context, _ string, of api.BulkAssignment) (api.BulkCounts, error) {
	m.assign = of
	return api.BulkCounts{Changed: 3, Already: 2, Refused: 1, Unknown: 4, UndoableUntil: instant().Add(10 * time.Minute)}, nil
}

func (m *bulkMemory) Undo(_ context.Context, _ string, u api.Undo) (api.UndoCounts, error) {
	if u.ActionID == uuid.Max {
		return api.UndoCounts{}, fault.New(fault.Conflict, "too late")
	}
	m.undo = u
	return api.UndoCounts{Restored: 2, Skipped: 1}, nil
}

func (m *bulkMemory) AsOf(context.Context) (time.Time, error) { return instant(), nil }

func (m *bulkMemory) Annotate(_ context.Context, _ string, _ api.Reader, ids []uuid.UUID) (map[uuid.UUID]api.Annotation, error) {
	next := instant().Add(time.Minute)
	notes := map[uuid.UUID]api.Annotation{}
	for _, id := range ids {
		notes[id] = api.Annotation{Unread: true, Mine: true, Delivery: api.DeliveryCounts{Total: 3, Delivered: 1, Retrying: 1, Failed: 1, NextAttemptAt: &next}}
	}
	return notes, nil
}

func (m *bulkMemory) MarkRead(_ context.Context, _ string, mark api.ReadMark) (int64, error) {
	m.mark = mark
	return 5, nil
}

func (m *bulkMemory) Unread(context.Context, string, string) (int64, error) { return 6, nil }

func (m *bulkMemory) Groups(_ context.Context, _ string, q api.GroupQuery) ([]alerts.Group, error) {
	m.groups = q
	if q.After != nil {
		return nil, nil
	}
	return m.found, nil
}

func (*bulkMemory) Deliveries(_ context.Context, _ string, q api.GroupQuery, groups []alerts.Group) (map[string]api.GroupDeliveries, error) {
	next := instant().Add(time.Minute)
	return map[string]api.GroupDeliveries{groups[0].Key: {
		DeliveryCounts: api.DeliveryCounts{Total: 8, Delivered: 4, Retrying: 1, Failed: 3, NextAttemptAt: &next}, Alerts: int64(q.Limit),
	}}, nil
}

func TestManyAlertsAreActedUpon(t *testing.T) {
	b := newBench(t)
	a, action := uuid.New(), uuid.New()
	got := into[api.BulkResult](b.do("POST", "/api/v1/alerts/acknowledge", `{"ids":["`+a.String()+`"],"actionId":"`+action.String()+`"}`).want(200))
	if got.ActionID != action || got.Changed != 3 || got.Already != 2 || got.Refused != 1 || got.Unknown != 4 {
		t.Errorf("answer %+v", got)
	}
	want := api.BulkAction{ID: action, Action: alerts.Acknowledge, Actor: "ada", Filter: alerts.Filter{IDs: []uuid.UUID{a}}}
	if diff := cmp.Diff(want, b.bulk.act); diff != "" {
		t.Error(diff)
	}

	body := `{"filter":{"severity":["CRITICAL"],"signature":[""],"mine":true,"unread":true},"upTo":"` + instant().Format(time.RFC3339Nano) + `"}`
	got = into[api.BulkResult](b.do("POST", "/api/v1/alerts/resolve", body).want(200))
	upTo := instant()
	want = api.BulkAction{ID: got.ActionID, Action: alerts.Resolve, Actor: "ada", Filter: alerts.Filter{
		States:     []alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved},
		Severities: []rules.Severity{rules.Critical}, Signatures: []string{""}, UpTo: &upTo, UnreadBy: "ada",
		MineOf: []rules.Target{{Kind: rules.TargetUser, Name: "ada"}, {Kind: rules.TargetRole, Name: "admin"}},
	}}
	if diff := cmp.Diff(want, b.bulk.act); diff != "" || got.ActionID == uuid.Nil {
		t.Error(diff)
	}

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	b.do("POST", "/api/v1/alerts/resolve", `{"ids":["`+a.String()+`"],"holdUntil":"`+until.Format(time.RFC3339)+`"}`).want(200)
	if got := b.bulk.act.HoldUntil; got == nil || !got.Equal(until) {
		t.Errorf("held until %v, want %v", got, until)
	}
	for _, wrong := range []time.Time{time.Now().Add(-time.Minute), time.Now().Add(31 * 24 * time.Hour)} {
		p := b.do("POST", "/api/v1/alerts/resolve", `{"ids":["`+a.String()+`"],"holdUntil":"`+wrong.Format(time.RFC3339)+`"}`).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != "holdUntil" {
			t.Errorf("errors %+v", p.Errors)
		}
	}
	b.do("POST", "/api/v1/alerts/acknowledge", `{"ids":["`+a.String()+`"],"holdUntil":"`+until.Format(time.RFC3339)+`"}`).problem(400, "invalid")

	undone := into[api.UndoResult](b.do("POST", "/api/v1/alerts/actions/"+action.String()+"/undo", "").want(200))
	if undone.Restored != 2 || undone.Skipped != 1 || b.bulk.undo != (api.Undo{ActionID: action, Actor: "ada"}) {
		t.Errorf("undone %+v, asked %+v", undone, b.bulk.undo)
	}
	b.do("POST", "/api/v1/alerts/actions/"+uuid.Max.String()+"/undo", "").problem(409, "conflict")
}

func TestManyAlertsAreAssigned(t *testing.T) {
	b := newBench(t)
	a, action := uuid.New(), uuid.New()
	body := `{"ids":["` + a.String() + `"],"actionId":"` + action.String() + `","assignee":"bo@acme","reassign":true}`
	got := into[api.BulkResult](b.do("POST", "/api/v1/alerts/assign", body).want(200))
	if got.ActionID != action || got.Changed != 3 || got.Already != 2 || got.Refused != 1 || got.Unknown != 4 {
		t.Errorf("answer %+v", got)
	}
	want := api.BulkAssignment{ID: action, Actor: "ada", Filter: alerts.Filter{IDs: []uuid.UUID{a}}, Assignee: "bo@acme", Reassign: true}
	if diff := cmp.Diff(want, b.bulk.assign); diff != "" {
		t.Error(diff)
	}
	got = into[api.BulkResult](b.do("POST", "/api/v1/alerts/assign", `{"filter":{"state":["FIRING"],"assignee":[""]}}`).want(200))
	want = api.BulkAssignment{ID: got.ActionID, Actor: "ada", Filter: alerts.Filter{States: []alerts.State{alerts.Firing}, Assignees: []string{""}}}
	if diff := cmp.Diff(want, b.bulk.assign); diff != "" || got.ActionID == uuid.Nil {
		t.Error(diff)
	}
	for _, wrong := range []string{
		`{"assignee":"bo@acme"}`, `{"ids":[],"assignee":"bo@acme"}`, `{"ids":["` + a.String() + `"],"assignee":"` + strings.Repeat("x", 1025) + `"}`,
		`{"ids":["` + a.String() + `"],"holdUntil":"2026-11-24T09:00:00Z"}`,
	} {
		b.do("POST", "/api/v1/alerts/assign", wrong).want(400)
	}
}

func TestSelectionsThatCannotBeMeant(t *testing.T) {
	b := newBench(t)
	id := `"` + uuid.NewString() + `"`
	for body, field := range map[string]string{
		`{}`:                               "",
		`{"ids":[]}`:                       "",
		`{"ids":[` + id + `],"filter":{}}`: "",
		`{"ids":[` + strings.Repeat(id+",", 1000) + id + `]}`:              "ids",
		`{"ids":[` + id + `],"upTo":"2026-03-01T12:00:00Z"}`:               "upTo",
		`{"filter":{"state":["GONE"]}}`:                                    "filter.state",
		`{"filter":{"application":["a\u0000"]}}`:                           "filter.application",
		`{"filter":{"severities":["CRITICAL"]}}`:                           "filter.severities",
		`{"filter":{"ruleId":[` + strings.Repeat(id+",", 100) + id + `]}}`: "filter.ruleId",
	} {
		for _, path := range []string{"acknowledge", "resolve", "read"} {
			p := b.do("POST", "/api/v1/alerts/"+path, body).problem(400, "invalid")
			if field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != field) || field == "" && len(p.Errors) != 0 {
				t.Errorf("%s %.60s: errors %+v, want one for %q", path, body, p.Errors, field)
			}
		}
	}
}

func TestAlertsAreMarkedAsRead(t *testing.T) {
	b := newBench(t)
	if got := into[api.ReadResult](b.do("POST", "/api/v1/alerts/read", `{"filter":{},"upTo":"2026-03-01T12:00:00Z"}`).want(200)); got.Changed != 5 {
		t.Errorf("answer %+v", got)
	}
	if m := b.bulk.mark; !m.Everything || !m.Read || m.Actor != "ada" {
		t.Errorf("marked %+v", m)
	}
	b.do("POST", "/api/v1/alerts/read", `{"filter":{"q":"erp"},"unread":true}`).want(200)
	if m := b.bulk.mark; m.Everything || m.Read || m.Filter.Text != "erp" {
		t.Errorf("marked %+v", m)
	}
	if got := into[api.AlertCounts](b.do("GET", "/api/v1/alerts/counts", "").want(200)); got.Unread == nil || *got.Unread != 6 {
		t.Errorf("counts %+v", got)
	}
	b.inbox.add(anAlert(instant()))
	page := into[api.AlertPage](b.do("GET", "/api/v1/alerts?mine=true&unread=true", "").want(200))
	if d := page.Items[0].Delivery; !page.AsOf.Equal(instant()) || !*page.Items[0].Unread || !*page.Items[0].Mine || d.Total != 3 || d.Failed != 1 || d.NextAttemptAt == nil {
		t.Errorf("page %+v", page)
	}
	if f := b.inbox.asked.Filter; f.UnreadBy != "ada" || len(f.MineOf) != 2 {
		t.Errorf("asked for %+v", f)
	}
}

func TestAlertsAreFolded(t *testing.T) {
	b := newBench(t)
	newest := anAlert(instant())
	b.bulk.found = []alerts.Group{{Key: "T: refused", Counts: alerts.Counts{Firing: 3, Resolved: 1}, Unread: 2, Newest: newest}}
	page := into[api.AlertGroupPage](b.do("GET", "/api/v1/alerts/groups?by=signature&limit=1&application=orders", "").want(200))
	g := page.Items[0]
	if *g.Signature != "T: refused" || g.RuleID != nil || g.Count != 4 || g.Unread != 2 || g.Newest.ID != newest.ID || g.Newest.Exchange.ErrorStack != nil {
		t.Errorf("group %+v", g)
	}
	if g.Delivery != nil || g.DeliveryAlerts != nil {
		t.Errorf("deliveries were counted unasked: %+v", g.Delivery)
	}
	if got := b.bulk.groups; got.By != alerts.BySignature || got.Limit != 1 || got.Actor != "ada" || got.Filter.Applications[0] != "orders" {
		t.Errorf("asked for %+v", got)
	}
	b.do("GET", "/api/v1/alerts/groups?by=signature&cursor="+*page.NextCursor, "").want(200)
	if after := b.bulk.groups.After; after == nil || after.Key != "T: refused" || !after.NewestAt.Equal(instant()) {
		t.Errorf("continued after %+v", after)
	}
	b.do("GET", "/api/v1/alerts/groups?by=rule&cursor="+*page.NextCursor, "").problem(400, "invalid")
	for i := range b.bulk.found {
		b.bulk.found[i].Issue = &alerts.Issue{Severity: rules.Critical, Signature: "Refused", Application: "orders", Route: "import", AcknowledgedBy: []string{"ada"}}
	}
	issue := into[api.AlertGroupPage](b.do("GET", "/api/v1/alerts/groups?by=issue&attribute=region%3Deu", "").want(200)).Items[0]
	if *issue.Severity != rules.Critical || *issue.Application != "orders" || *issue.Route != "import" || *issue.Signature != "Refused" || len(*issue.Trend) != alerts.TrendHours || len(*issue.AcknowledgedBy) != 1 {
		t.Errorf("issue %+v", issue)
	}
	if diff := cmp.Diff(map[string]string{"region": "eu"}, b.bulk.groups.Filter.Attributes); diff != "" {
		t.Error(diff)
	}
	for query, field := range map[string]string{
		"attribute=region": "attribute",
		"attribute=%3Deu":  "attribute",
		"attribute=region%3Deu&attribute=region%3Dus":       "attribute",
		"from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z": "to",
		"executionId=" + strings.Repeat("a", 1025):          "executionId",
		"environment=a%00b":                                 "environment",
	} {
		for _, list := range []string{"", "/groups"} {
			p := b.do("GET", "/api/v1/alerts"+list+"?by=issue&"+query, "").problem(400, "invalid")
			if list != "" && (len(p.Errors) != 1 || p.Errors[0].Field != field) {
				t.Errorf("%s: %+v", query, p.Errors)
			}
		}
	}
	g = into[api.AlertGroupPage](b.do("GET", "/api/v1/alerts/groups?by=signature&limit=3&deliveries=true", "").want(200)).Items[0]
	if d := g.Delivery; d.Total != 8 || d.Delivered != 4 || d.Retrying != 1 || d.Failed != 3 || d.NextAttemptAt == nil || *g.DeliveryAlerts != 3 {
		t.Errorf("deliveries %+v of %d alerts", d, *g.DeliveryAlerts)
	}
	b.do("GET", "/api/v1/alerts/groups?by=colour", "").problem(400, "invalid")
	b.do("GET", "/api/v1/alerts/groups", "").problem(400, "invalid")
	g = into[api.AlertGroupPage](b.do("GET", "/api/v1/alerts/groups?by=rule", "").want(200)).Items[0]
	if *g.RuleID != newest.RuleID || *g.RuleName != newest.RuleName || g.Signature != nil {
		t.Errorf("group %+v", g)
	}
}
