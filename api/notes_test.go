package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/rules"
)

func TestAnAlertHasTheNotesOfWhatItIsAbout(t *testing.T) {
	b := newBench(t)
	single := anAlert(instant())
	single.Signature = new("T: refused")
	grouped := anAlert(instant())
	grouped.Count = &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: "import"}
	whole := anAlert(instant())
	whole.Exchange, whole.Count = rules.Exchange{}, &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 600}
	for name, of := range map[string]struct {
		alert alerts.Instance
		on    api.NoteSubject
	}{
		"one exchange":          {single, api.NoteSubject{Issue: api.IssueKey{Application: "orders", Route: "order-to-erp", Signature: "T: refused"}}},
		"a group":               {grouped, api.NoteSubject{RuleID: grouped.RuleID, Group: "import"}},
		"a rule without groups": {whole, api.NoteSubject{RuleID: whole.RuleID}},
	} {
		b.inbox.add(of.alert)
		path := "/api/v1/alerts/" + of.alert.ID.String() + "/notes"
		b.bulk.noted, b.bulk.notes = api.NoteSubject{}, nil
		note := into[api.IssueNote](b.do("POST", path, `{"text":" Ask the ERP team. ","noteId":"0192f0c1-0000-7000-8000-000000000001"}`).want(201))
		if note.Text != "Ask the ERP team." || note.ID != uuid.MustParse("0192f0c1-0000-7000-8000-000000000001") || b.bulk.noted != of.on {
			t.Errorf("%s: written %+v on %+v, want %+v", name, note, b.bulk.noted, of.on)
		}
		second := into[api.IssueNote](b.do("POST", path, `{"text":"Ask again."}`).want(201))
		b.bulk.noted = api.NoteSubject{}
		page := into[api.IssueNotePage](b.do("GET", path+"?limit=1", "").want(200))
		if len(page.Items) != 1 || page.Items[0].ID != second.ID || page.NextCursor == nil || b.bulk.noted != of.on {
			t.Fatalf("%s: %+v of %+v", name, page, b.bulk.noted)
		}
		page = into[api.IssueNotePage](b.do("GET", path+"?limit=1&cursor="+*page.NextCursor, "").want(200))
		if len(page.Items) != 1 || page.Items[0].ID != note.ID {
			t.Errorf("%s: second page %+v", name, page)
		}
	}
}

func TestANoteOfAnAlertNeedsTextAndASubject(t *testing.T) {
	b := newBench(t)
	grouped, health := anAlert(instant()), anAlert(instant())
	grouped.Count = &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 600}
	health.Health, health.Exchange = true, rules.Exchange{}
	b.inbox.add(grouped)
	b.inbox.add(health)
	path := "/api/v1/alerts/" + grouped.ID.String() + "/notes"
	for name, body := range map[string]string{
		"blank":         `{"text":" "}`,
		"too long":      `{"text":"` + strings.Repeat("ä", 4001) + `"}`,
		"no text":       `{}`,
		"unknown field": `{"text":"x","author":"eve"}`,
		"a zero byte":   `{"text":"\u0000"}`,
	} {
		t.Run(name, func(*testing.T) { b.do("POST", path, body).problem(400, "invalid") })
	}
	b.do("GET", path+"?cursor=x", "").problem(400, "invalid")
	b.do("GET", path+"?limit=201", "").problem(400, "invalid")
	unknown := "/api/v1/alerts/" + uuid.NewString() + "/notes"
	b.do("GET", unknown, "").problem(404, "not_found")
	b.do("POST", unknown, `{"text":"x"}`).problem(404, "not_found")
	// An alert about Tocsin itself is neither of an issue nor of a group.
	path = "/api/v1/alerts/" + health.ID.String() + "/notes"
	b.do("POST", path, `{"text":"x"}`).problem(409, "conflict")
	if page := into[api.IssueNotePage](b.do("GET", path, "").want(200)); len(page.Items) != 0 || page.NextCursor != nil {
		t.Errorf("%+v", page)
	}
	if len(b.bulk.notes) != 0 || b.bulk.noted != (api.NoteSubject{}) {
		t.Errorf("written: %+v on %+v", b.bulk.notes, b.bulk.noted)
	}
}

func TestViewersReadTheNotesOfAnAlert(t *testing.T) {
	b := newBench(t, func(o *api.Options) {
		o.Identify = func(*http.Request) (api.Identity, error) {
			return api.Identity{Tenant: "acme", Actor: "eve", Role: access.Viewer}, nil
		}
	})
	alert := anAlert(instant())
	b.inbox.add(alert)
	path := "/api/v1/alerts/" + alert.ID.String() + "/notes"
	b.do("GET", path, "").want(200)
	b.do("POST", path, `{"text":"x"}`).problem(403, "forbidden")
}
