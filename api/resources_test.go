package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

func TestRuleLife(t *testing.T) {
	b := newBench(t)
	created := b.do("POST", "/api/v1/rules", ruleBody).want(201)
	rule := into[api.Rule](created)
	path := "/api/v1/rules/" + rule.ID.String()
	if created.Header().Get("Location") != path || created.Header().Get("ETag") != `"1"` {
		t.Errorf("headers %v", created.Header())
	}
	if !rule.Enabled || rule.IntervalSeconds != 1 || rule.LookBackSeconds != 3600 || rule.WebhookIds == nil || rule.Targets == nil {
		t.Errorf("defaults are not filled: %+v", rule)
	}
	if !rule.ArmedSince.Equal(instant()) {
		t.Errorf("armed since %v, want %v to the nanosecond", rule.ArmedSince, instant())
	}

	read := into[api.Rule](b.do("GET", path, "").want(200))
	if want := "2026-03-01T12:00:00.123456789Z|e|1"; read.Health == nil || *read.Health.Cursor != want || *read.Health.LagSeconds != 1.5 {
		t.Errorf("health %+v, want cursor %s", read.Health, want)
	}

	edited := strings.Replace(ruleBody, "CRITICAL", "INFO", 1)
	b.do("PUT", path, edited).problem(428, "precondition_required")
	b.do("PUT", path, edited, "If-Match", `"2"`).problem(412, "stale")
	b.do("PUT", path, edited, "If-Match", `"other"`).problem(412, "stale")
	b.do("PUT", path, edited, "If-Match", `1`).problem(400, "invalid")
	b.do("PUT", path, edited, "If-Match", `"1", "2"`).problem(400, "invalid")
	if tag := b.do("PUT", path, edited, "If-Match", `"1"`).want(200).Header().Get("ETag"); tag != `"2"` {
		t.Errorf("ETag %s after the edit", tag)
	}
	b.do("PUT", path, edited, "If-Match", `W/"2"`).want(200)

	if off := into[api.Rule](b.do("POST", path+"/disable", "").want(200)); off.Enabled || off.Version != 4 {
		t.Errorf("disabled: %+v", off)
	}
	b.do("POST", path+"/retry", "").want(409)
	if on := b.do("POST", path+"/enable", "").want(200); !into[api.Rule](on).Enabled || on.Header().Get("ETag") != `"5"` {
		t.Errorf("enabled: %s", on.Body)
	}
	b.do("DELETE", path, "").want(204)
	b.do("GET", path, "").problem(404, "not_found")
	b.do("DELETE", path, "").problem(404, "not_found")
	p := b.do("GET", "/api/v1/rules/abc", "").problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "id" {
		t.Errorf("errors %+v", p.Errors)
	}
}

func TestAnotherTenantsRowsDoNotExist(t *testing.T) {
	b := newBench(t)
	foreign, err := b.rules.Create(t.Context(), "other", rules.Definition{Name: "Theirs"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/rules/" + foreign.ID.String()
	b.do("GET", path, "").problem(404, "not_found")
	b.do("PUT", path, ruleBody, "If-Match", `"1"`).problem(404, "not_found")
	b.do("DELETE", path, "").problem(404, "not_found")
	if page := into[api.RulePage](b.do("GET", "/api/v1/rules", "").want(200)); len(page.Items) != 0 {
		t.Errorf("listed %+v", page.Items)
	}
}

func TestListsArePaged(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"c", "a", "b", "a", "d"} {
		b.do("POST", "/api/v1/rules", strings.Replace(ruleBody, "Failed orders", name, 1)).want(201)
	}
	var names []string
	for cursor := ""; ; {
		page := into[api.RulePage](b.do("GET", "/api/v1/rules?limit=2&cursor="+cursor, "").want(200))
		for _, r := range page.Items {
			names = append(names, r.Name)
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if got := strings.Join(names, ""); got != "aabcd" {
		t.Errorf("pages hold %s", got)
	}

	for i := range 5 {
		b.inbox.add(anAlert(instant().Add(time.Duration(i))))
	}
	page := into[api.AlertPage](b.do("GET", "/api/v1/alerts?limit=3", "").want(200))
	if len(page.Items) != 3 || page.NextCursor == nil {
		t.Fatalf("page %+v", page)
	}
	rest := into[api.AlertPage](b.do("GET", "/api/v1/alerts?limit=3&cursor="+*page.NextCursor, "").want(200))
	if len(rest.Items) != 2 || rest.NextCursor != nil || !b.inbox.asked.Before.FiredAt.Equal(page.Items[2].FiredAt) {
		t.Errorf("second page %+v", rest)
	}
	b.do("GET", "/api/v1/rules?cursor="+*page.NextCursor, "").problem(400, "invalid")
}

func TestParametersThatCannotBeMeant(t *testing.T) {
	b := newBench(t)
	mark := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	id := uuid.NewString()
	for target, field := range map[string]string{
		"/alerts?cursor=%21":                                    "cursor",
		"/alerts?cursor=" + mark(`{}`):                          "cursor",
		"/alerts?cursor=" + mark(`{"l":"alerts","i":"`+id+`"}`): "cursor",
		"/alerts?cursor=" + mark(`{"l":"alerts","i":"`+id+`","t":"2026-01-01T00:00:00Z","x":1}`): "cursor",
		"/rules?cursor=" + mark(`{"l":"rules","i":"`+id+`","n":"\u0000"}`):                       "cursor",
		"/alerts?limit=0":                "limit",
		"/alerts?limit=201":              "limit",
		"/alerts?limit=x":                "limit",
		"/alerts?state=OPEN":             "state",
		"/alerts?severity=critical":      "severity",
		"/alerts?ruleId=1":               "ruleId",
		"/alerts?q=%00":                  "q",
		"/alerts?application=%ff":        "application",
		"/alerts?sate=FIRING":            "sate",
		"/notifications?status=PENDNG":   "status",
		"/notifications?state=DELIVERED": "state",
	} {
		p := b.do("GET", "/api/v1"+target, "").problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field || p.Errors[0].Message == "" {
			t.Errorf("%s: errors %+v, want one for %s", target, p.Errors, field)
		}
	}
}

// TestEveryDescribedValueIsTaken makes a request with every value that a parameter or a field of a
// filter may have.
func TestEveryDescribedValueIsTaken(t *testing.T) {
	b := newBench(t)
	description, err := api.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	// values returns the possible values of a schema, or of the entries of its list.
	values := func(schema *openapi3.SchemaRef) []any {
		if schema.Value.Items != nil {
			schema = schema.Value.Items
		}
		return schema.Value.Enum
	}
	tried := map[string]int{}
	for path, item := range description.Paths.Map() {
		for method, op := range item.Operations() {
			required := url.Values{}
			for _, p := range op.Parameters {
				if p.Value.In == "query" && p.Value.Required && len(values(p.Value.Schema)) > 0 {
					required.Set(p.Value.Name, fmt.Sprint(values(p.Value.Schema)[0]))
				}
			}
			for _, p := range op.Parameters {
				for _, value := range values(p.Value.Schema) {
					query := maps.Clone(required)
					query.Set(p.Value.Name, fmt.Sprint(value))
					b.do(method, "/api/v1"+path+"?"+query.Encode(), "").want(200)
					tried[p.Value.Name]++
				}
			}
			if op.RequestBody == nil || op.RequestBody.Value.Content.Get("application/json") == nil {
				continue
			}
			body := op.RequestBody.Value.Content.Get("application/json").Schema.Value
			filter := body.Properties["filter"]
			if filter == nil || len(body.Required) > 0 {
				continue // not a parameter that selects rows
			}
			for name, field := range filter.Value.Properties {
				for _, value := range values(field) {
					b.do(method, "/api/v1"+path, fmt.Sprintf(`{"filter":{%q:[%q]}}`, name, value)).want(200)
					tried["filter."+name]++
				}
			}
		}
	}
	for _, name := range []string{"by", "field", "state", "status", "reason", "filter.state", "filter.status", "filter.reason"} {
		if tried[name] < 2 {
			t.Errorf("no value of %s was tried", name)
		}
	}
}

func TestAlertsAreFoundAndActedUpon(t *testing.T) {
	b := newBench(t)
	a := anAlert(instant())
	b.inbox.add(a)
	path := "/api/v1/alerts/" + a.ID.String()

	query := url.Values{"state": {"FIRING", "ACKNOWLEDGED"}, "severity": {"CRITICAL"}, "ruleId": {a.RuleID.String()}, "application": {"a,b"}, "q": {"erp"}}
	page := into[api.AlertPage](b.do("GET", "/api/v1/alerts?"+query.Encode(), "").want(200))
	want := alerts.Query{Filter: alerts.Filter{
		States: []alerts.State{alerts.Firing, alerts.Acknowledged}, Severities: []rules.Severity{rules.Critical},
		Rules: []uuid.UUID{a.RuleID}, Applications: []string{"a,b"}, Text: "erp",
	}, Limit: 50}
	if diff := cmp.Diff(want, b.inbox.asked); diff != "" {
		t.Error(diff)
	}
	if e := page.Items[0].Exchange; e.ErrorStack != nil || e.Attributes != nil {
		t.Error("a list shows stack and attributes")
	}

	one := into[api.Alert](b.do("GET", path, "").want(200))
	if e := one.Exchange; e.StartTime.UnixNano() != instant().UnixNano() || e.DurationNs != "9007199254740993" || *e.ErrorStack == "" || e.Attributes["order"] != "4711" {
		t.Errorf("exchange %+v", e)
	}
	if got := into[api.AlertCounts](b.do("GET", "/api/v1/alerts/counts", "").want(200)); got.Firing != 3 || got.Resolved != 1 {
		t.Errorf("counts %+v", got)
	}
	if got := into[api.Alert](b.do("POST", path+"/acknowledge", "").want(200)); got.State != alerts.Acknowledged || *got.AcknowledgedBy != "ada" {
		t.Errorf("acknowledged %+v", got)
	}
	if got := into[api.Alert](b.do("POST", path+"/resolve", "").want(200)); got.State != alerts.Resolved || *got.ResolvedBy != "ada" {
		t.Errorf("resolved %+v", got)
	}
	b.do("POST", path+"/acknowledge", "").problem(409, "conflict")
	b.do("POST", "/api/v1/alerts/"+uuid.NewString()+"/resolve", "").problem(404, "not_found")
}

func TestAlertsAreAssigned(t *testing.T) {
	b := newBench(t)
	a := anAlert(instant())
	b.inbox.add(a)
	path := "/api/v1/alerts/" + a.ID.String()
	got := into[api.Alert](b.do("POST", path+"/assign", `{"assignee":"ada"}`).want(200))
	if *got.Assignee != "ada" || *got.AssignedBy != "ada" || !got.AssignedAt.Equal(instant()) || got.State != alerts.Firing {
		t.Errorf("assigned %+v", got)
	}
	b.do("POST", path+"/assign", `{"assignee":"bo@acme"}`).problem(409, "conflict")
	if got = into[api.Alert](b.do("POST", path+"/assign", `{"assignee":"bo@acme","was":"ada"}`).want(200)); *got.Assignee != "bo@acme" {
		t.Errorf("passed on %+v", got)
	}
	if got = into[api.Alert](b.do("POST", path+"/assign", `{"was":"bo@acme"}`).want(200)); got.Assignee != nil {
		t.Errorf("given back %+v", got)
	}
	b.do("POST", path+"/assign", `{"assignee":"`+strings.Repeat("x", 1025)+`"}`).problem(400, "invalid")
	b.do("POST", "/api/v1/alerts/"+uuid.NewString()+"/assign", `{"assignee":"ada"}`).problem(404, "not_found")
	if list := into[api.AssigneeList](b.do("GET", "/api/v1/alerts/assignees", "").want(200)); !slices.Equal(list.Items, []string{"ada@acme", "bo@acme"}) {
		t.Errorf("assignees %v", list.Items)
	}

	b.do("GET", "/api/v1/alerts?mine=true&assignee=&assignee=bo", "").want(200)
	want := alerts.Filter{
		States: []alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved}, Assignees: []string{"", "bo"},
		MineOf: []rules.Target{{Kind: rules.TargetUser, Name: "ada"}, {Kind: rules.TargetRole, Name: "admin"}},
	}
	if diff := cmp.Diff(want, b.inbox.asked.Filter); diff != "" {
		t.Error(diff)
	}
}

func TestAlertsAreSnoozed(t *testing.T) {
	b := newBench(t)
	a := anAlert(instant())
	b.inbox.add(a)
	path := "/api/v1/alerts/" + a.ID.String()
	got := into[api.Alert](b.do("POST", path+"/snooze", `{"until":"2026-03-01T15:00:00+01:00"}`).want(200))
	if !got.SnoozedUntil.Equal(instant().Truncate(time.Hour).Add(2*time.Hour)) || *got.SnoozedBy != "ada" || got.State != alerts.Firing {
		t.Errorf("snoozed %+v", got)
	}
	if got = into[api.Alert](b.do("POST", path+"/unsnooze", "").want(200)); got.SnoozedUntil != nil {
		t.Errorf("woken %+v", got)
	}
	b.do("POST", path+"/snooze", `{}`).problem(400, "invalid")
	b.do("POST", path+"/snooze", `{"until":"tomorrow"}`).problem(400, "invalid")
	b.do("POST", "/api/v1/alerts/"+uuid.NewString()+"/unsnooze", "").problem(404, "not_found")
	for text, want := range map[string]*bool{"": nil, "?snoozed=true": new(true), "?snoozed=false": new(false)} {
		b.do("GET", "/api/v1/alerts"+text, "").want(200)
		if diff := cmp.Diff(want, b.inbox.asked.Snoozed); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestTeamsAreReplacedAndMakeAlertsMine(t *testing.T) {
	b := newBench(t)
	got := into[api.TeamList](b.do("GET", "/api/v1/teams", "").want(200))
	if got.Version != 1 || len(got.Teams) != 0 || got.UpdatedAt != nil {
		t.Errorf("at first %+v", got)
	}
	hook := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"pager","kind":"generic","url":"http://10.0.0.1:9/x"}`).want(201)).ID.String()
	body := `{"teams":[{"name":"integration","members":["ADA"]},{"name":"sre","groups":["sre"],"webhookIds":["` + hook + `"]},{"name":"other"}]}`
	b.do("PUT", "/api/v1/teams", body).problem(428, "precondition_required")
	got = into[api.TeamList](b.do("PUT", "/api/v1/teams", body, "If-Match", `"1"`).want(200))
	if got.Version != 2 || len(got.Teams) != 3 || *got.UpdatedBy != "ada" {
		t.Errorf("then %+v", got)
	}
	b.do("PUT", "/api/v1/teams", body, "If-Match", `"1"`).problem(412, "stale")
	for _, wrong := range []string{
		`{"teams":[{"name":""}]}`, `{"teams":[{"name":"a"},{"name":"a"}]}`, `{"teams":[{"name":"a","members":[""]}]}`, `{"team":[]}`,
	} {
		b.do("PUT", "/api/v1/teams", wrong, "If-Match", `"2"`).problem(400, "invalid")
	}

	for body, field := range map[string]string{
		`{"teams":[{"name":"a","webhookIds":["01920000-0000-7000-8000-000000000099"]}]}`: "teams[0].webhookIds[0]",
	} {
		if p := b.do("PUT", "/api/v1/teams", body, "If-Match", `"2"`).problem(400, "invalid"); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for body, field := range map[string]string{
		`{"routes":[{"name":"a","escalation":[{"afterMinutes":5,"teams":["sre","nobody"]}]}]}`:                      "routes[0].escalation[0].teams[1]",
		`{"defaultEscalation":[{"afterMinutes":5,"teams":["other"]}]}`:                                              "defaultEscalation[0].teams[0]",
		`{"defaultEscalation":[{"afterMinutes":5,"webhookIds":["01920000-0000-7000-8000-000000000099"]}]}`:          "defaultEscalation[0].webhookIds[0]",
		`{"defaultEscalation":[{"afterMinutes":5,"teams":["sre"]},{"afterMinutes":4,"teams":["sre"]}],"routes":[]}`: "defaultEscalation[1].afterMinutes",
	} {
		if p := b.do("PUT", "/api/v1/routing", body, "If-Match", `"1"`).problem(400, "invalid"); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}

	b.do("GET", "/api/v1/alerts?mine=true", "").want(200)
	want := []rules.Target{
		{Kind: rules.TargetUser, Name: "ada"},
		{Kind: rules.TargetRole, Name: "admin"},
		{Kind: rules.TargetTeam, Name: "integration"},
		{Kind: rules.TargetTeam, Name: "sre"},
	}
	if diff := cmp.Diff(want, b.inbox.asked.MineOf); diff != "" {
		t.Error(diff)
	}
}

// Viewers may read which teams there are, but not their members.
func TestViewersDoNotReadWhoIsInTeams(t *testing.T) {
	for role, hidden := range map[access.Role]bool{access.Viewer: true, access.Operator: false, access.Editor: false, access.Admin: false} {
		b := newBench(t, func(o *api.Options) {
			o.Identify = api.Everybody(api.Identity{Tenant: "acme", Actor: "ada", Role: role})
			o.Teams = &teamMemory{api.TeamRecord{Version: 2, List: teams.List{Teams: []teams.Team{{Name: "sre", Members: []string{"ada@x"}, Groups: []string{"sre"}}}}}}
		})
		got := into[api.TeamList](b.do("GET", "/api/v1/teams", "").want(200))
		team := got.Teams[0]
		if team.Name != "sre" || (got.MembersHidden != nil) != hidden || (len(team.Members) == 0) != hidden || (len(team.Groups) == 0) != hidden {
			t.Errorf("%s reads %+v", role, got)
		}
	}
}

func TestATokenHandlesNoAlerts(t *testing.T) {
	b := newBench(t, func(o *api.Options) {
		o.Identify = api.Everybody(api.Identity{Tenant: "acme", Actor: "token ci", Kind: "token"})
	})
	a := anAlert(instant())
	b.inbox.add(a)
	path := "/api/v1/alerts/" + a.ID.String() + "/assign"
	b.do("POST", path, `{"assignee":"token ci"}`).problem(400, "invalid")
	b.do("POST", path, `{"assignee":"bo"}`).want(200)
}

func TestCountingRuleLife(t *testing.T) {
	b := newBench(t)
	body := `{"name":"Failing orders","fireMode":"COUNT_IN_WINDOW","severity":"WARNING","threshold":5,"windowSeconds":600,
		"groupBy":"ROUTE","forDurationSeconds":60,"reNotifyMinutes":30,"notifyOnResolve":true}`
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", body).want(201))
	path := "/api/v1/rules/" + rule.ID.String()
	rule = into[api.Rule](b.do("GET", path, "").want(200))
	if rule.Threshold != 5 || rule.WindowSeconds != 600 || rule.GroupBy != rules.GroupByRoute || rule.ForDurationSeconds != 60 ||
		rule.ReNotifyMinutes != 30 || !rule.NotifyOnResolve || rule.LookBackSeconds != 0 || rule.IntervalSeconds != 1 {
		t.Errorf("rule %+v", rule)
	}
	rule = into[api.Rule](b.do("PUT", path, ruleBody, "If-Match", `"1"`).want(200))
	if rule.Threshold != 0 || rule.GroupBy != "" || rule.NotifyOnResolve || rule.LookBackSeconds != 3600 {
		t.Errorf("rule that counts no more %+v", rule)
	}
}

func TestMeasuringRuleLife(t *testing.T) {
	b := newBench(t)
	ratio := into[api.Rule](b.do("POST", "/api/v1/rules", `{"name":"Ratio","fireMode":"RATIO_IN_WINDOW","severity":"WARNING","percent":0.125,"minVolume":20,
		"windowSeconds":600,"shortWindowSeconds":60,"groupBy":"ERROR_TYPE"}`).want(201))
	ratio = into[api.Rule](b.do("GET", "/api/v1/rules/"+ratio.ID.String(), "").want(200))
	if ratio.Percent != 0.125 || ratio.MinVolume != 20 || ratio.ShortWindowSeconds != 60 || ratio.LookBackSeconds != 0 || len(ratio.Filter.Statuses) != 0 {
		t.Errorf("rule %+v", ratio)
	}
	slow := into[api.Rule](b.do("POST", "/api/v1/rules", `{"name":"Slow","fireMode":"DURATION_IN_WINDOW","severity":"WARNING","percentile":99,"durationMs":2000,
		"minVolume":20,"windowSeconds":600}`).want(201))
	slow = into[api.Rule](b.do("GET", "/api/v1/rules/"+slow.ID.String(), "").want(200))
	if slow.Percentile != 99 || slow.DurationMS != 2000 || slow.MinVolume != 20 || len(slow.Filter.Statuses) != 2 {
		t.Errorf("rule %+v", slow)
	}
}

// TestWeekdaysByAnyName sends weekdays by short and full names wherever a body may have some. Answers have short ones.
func TestWeekdaysByAnyName(t *testing.T) {
	b := newBench(t)
	const days, want = `"timeZone":"UTC","weekdays":["monday","Tue","WEDNESDAY"],"from":"08:00"`, `"weekdays":["MON","TUE","WED"]`
	for path, body := range map[string]string{
		"/api/v1/rules":    `{"name":"Silent","fireMode":"ABSENT_IN_WINDOW","severity":"WARNING","threshold":1,"windowSeconds":600,"calendar":{` + days + `,"to":"18:00"}}`,
		"/api/v1/webhooks": `{"name":"nights","kind":"generic","url":"https://hooks.example/x","quietHours":[{` + days + `,"to":"18:00"}]}`,
	} {
		made := b.do("POST", path, body).want(201)
		if !strings.Contains(made.Body.String(), want) {
			t.Errorf("%s answers %s", path, made.Body)
		}
		if again := b.do("GET", made.Header().Get("Location"), "").want(200); !strings.Contains(again.Body.String(), want) {
			t.Errorf("%s reads %s", path, again.Body)
		}
		for _, wrong := range []string{`"MON","Monday"`, `"WORKDAY"`, `5`} {
			refused := strings.Replace(body, `"monday","Tue","WEDNESDAY"`, wrong, 1)
			if got := b.do("POST", path, refused).want(400); !strings.Contains(got.Body.String(), "eekday") {
				t.Errorf("%s with %s: %s", path, wrong, got.Body)
			}
		}
	}
}

func TestAbsenceRuleLife(t *testing.T) {
	b := newBench(t)
	body := `{"name":"Silent","fireMode":"ABSENT_IN_WINDOW","severity":"WARNING","threshold":1,"windowSeconds":600,"groupBy":"ROUTE","expected":["a","b"],
		"calendar":{"timeZone":"Europe/Berlin","weekdays":["MON"],"from":"08:00","to":"18:00"}}`
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", body).want(201))
	path := "/api/v1/rules/" + rule.ID.String()
	rule = into[api.Rule](b.do("GET", path, "").want(200))
	if rule.IntervalSeconds != 10 || rule.LookBackSeconds != 0 || len(rule.Filter.Statuses) != 2 || !slices.Equal(rule.Expected, []string{"a", "b"}) ||
		rule.Calendar == nil || rule.Calendar.TimeZone != "Europe/Berlin" || rule.Calendar.To != "18:00" {
		t.Errorf("rule %+v", rule)
	}
	rule = into[api.Rule](b.do("PUT", path, `{"name":"Silent","fireMode":"ABSENT_IN_WINDOW","severity":"WARNING","threshold":1,"windowSeconds":600,"groupBy":"ROUTE","learnDays":7}`,
		"If-Match", `"1"`).want(200))
	if rule.LearnDays != 7 || rule.Calendar != nil || len(rule.Expected) != 0 {
		t.Errorf("rule that learns %+v", rule)
	}
	absent := anAlert(instant())
	absent.Exchange = rules.Exchange{Route: "a"}
	absent.Count = &alerts.Count{Mode: rules.AbsentInWindow, Threshold: 1, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: "a"}
	b.inbox.add(absent)
	page := into[api.AlertPage](b.do("GET", "/api/v1/alerts", "").want(200))
	group := "a"
	want := &api.WindowCount{Threshold: 1, WindowSeconds: 600, FireMode: rules.AbsentInWindow, GroupBy: rules.GroupByRoute, Group: &group}
	if diff := cmp.Diff(want, page.Items[0].Count); diff != "" || page.Items[0].Exchange != nil {
		t.Errorf("%+v\n%s", page.Items[0].Exchange, diff)
	}
}

func TestAlertsOfCounts(t *testing.T) {
	b := newBench(t)
	grouped := anAlert(instant())
	grouped.Count = &alerts.Count{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: "order-to-erp"}
	bare := anAlert(instant().Add(time.Second))
	bare.Exchange, bare.State = rules.Exchange{}, alerts.Pending
	bare.Count = &alerts.Count{Observed: 9, Threshold: 5, WindowSeconds: 60}
	b.inbox.add(grouped)
	b.inbox.add(bare)
	ratio, duration := anAlert(instant().Add(2*time.Second)), anAlert(instant().Add(3*time.Second))
	ratio.Count = &alerts.Count{
		Mode: rules.RatioInWindow, Observed: 15, Volume: 120, ShortObserved: 1, ShortVolume: 5, WindowSeconds: 600,
		Measure: rules.Measure{Percent: 12.5, MinVolume: 50, ShortWindowSeconds: 60},
	}
	duration.Count = &alerts.Count{
		Mode: rules.DurationInWindow, Observed: 9, Volume: 120, DurationNS: 2_412_500_000, WindowSeconds: 600, Measure: rules.Measure{Percentile: 95, DurationMS: 2000, MinVolume: 50},
	}
	b.inbox.add(ratio)
	b.inbox.add(duration)

	page := into[api.AlertPage](b.do("GET", "/api/v1/alerts", "").want(200))
	group := "order-to-erp"
	want := []*api.WindowCount{
		{
			Observed: 9, Threshold: 2000, WindowSeconds: 600, FireMode: rules.DurationInWindow, Value: new(2412.5), Volume: new(int64(120)), MinVolume: new(50), Percentile: new(95),
		},
		{
			Observed: 15, Threshold: 12.5, WindowSeconds: 600, FireMode: rules.RatioInWindow, Value: new(12.5), Volume: new(int64(120)), MinVolume: new(50),
			ShortWindowSeconds: new(60), ShortValue: new(20.0),
		},
		{Observed: 9, Threshold: 5, WindowSeconds: 60},
		{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: &group},
	}
	if diff := cmp.Diff(want, []*api.WindowCount{page.Items[0].Count, page.Items[1].Count, page.Items[2].Count, page.Items[3].Count}); diff != "" {
		t.Error(diff)
	}
	if page.Items[2].Exchange != nil || page.Items[3].Exchange == nil {
		t.Errorf("examples %+v, %+v", page.Items[2].Exchange, page.Items[3].Exchange)
	}
	if diff := cmp.Diff([]alerts.State{alerts.Firing, alerts.Acknowledged, alerts.Resolved}, b.inbox.asked.States); diff != "" {
		t.Errorf("states of a list that names none (-want +got)\n%s", diff)
	}
	b.do("GET", "/api/v1/alerts?state=PENDING", "").want(200)
	if diff := cmp.Diff([]alerts.State{alerts.Pending}, b.inbox.asked.States); diff != "" {
		t.Errorf("states of a list that names one (-want +got)\n%s", diff)
	}
	b.do("POST", "/api/v1/alerts/"+bare.ID.String()+"/acknowledge", "").problem(409, "conflict")
}

func TestActivityByRuleAndInTotal(t *testing.T) {
	b := newBench(t)
	got := into[api.AlertActivity](b.do("GET", "/api/v1/alerts/activity", "").want(200))
	if len(got.Buckets) != 60 || got.Buckets[0] != 1 || got.Buckets[1] != 0 || got.Buckets[59] != 42 || !got.Complete || got.BucketSeconds != 60 {
		t.Errorf("together %+v", got)
	}
	if len(got.Rules) != 2 || got.Rules[0].RuleID != (uuid.UUID{1}) || got.Rules[1].Buckets[59] != 40 {
		t.Errorf("by rule %+v", got.Rules)
	}
}

func TestListShowsLatestVerdicts(t *testing.T) {
	b := newBench(t)
	n := &b.records.records[0]
	n.History = nil
	for i := range 25 {
		n.History = append(n.History, api.AttemptRecord{Number: i + 1, Outcome: notify.Outcome{Verdict: notify.VerdictRetry}})
	}
	n.History[24].UnderWay = true
	list := into[api.NotificationPage](b.do("GET", "/api/v1/notifications", "").want(200))
	if got := list.Items[0].Verdicts; len(got) != 20 || got[0] != "RETRY" || got[19] != "UNDER_WAY" {
		t.Errorf("verdicts %v", got)
	}
}

func TestNotificationsShowTheirAttempts(t *testing.T) {
	b := newBench(t)
	id := b.records.records[0].ID.String()
	list := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?status=RETRYING", "").want(200))
	if len(list.Items) != 1 || list.Items[0].Attempts != nil || *list.Items[0].AlertTitle != "orders failed" {
		t.Errorf("list %+v", list)
	}
	if diff := cmp.Diff([]api.AttemptVerdict{"RETRY", "UNKNOWN"}, list.Items[0].Verdicts); diff != "" {
		t.Error(diff)
	}
	one := into[api.Notification](b.do("GET", "/api/v1/notifications/"+id, "").want(200))
	if one.Verdicts != nil {
		t.Errorf("verdicts %v beside the attempts", one.Verdicts)
	}
	if len(*one.Attempts) != 2 || (*one.Attempts)[0].Verdict != "RETRY" || (*one.Attempts)[1].Verdict != "UNKNOWN" || (*one.Attempts)[1].FinishedAt != nil {
		t.Errorf("attempts %+v", *one.Attempts)
	}
	timeline := into[api.NotificationTimeline](b.do("GET", "/api/v1/alerts/"+uuid.NewString()+"/notifications", "").want(200))
	if len(timeline.Items) != 1 || timeline.Items[0].Attempts == nil {
		t.Errorf("timeline %+v", timeline)
	}
	b.do("GET", "/api/v1/notifications/"+uuid.NewString(), "").problem(404, "not_found")
}

func TestWebhookSecretsAreNeverAnswered(t *testing.T) {
	b := newBench(t)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	created := b.do("POST", "/api/v1/webhooks", `{"name":"#ops","kind":"slack","url":"https://hooks.slack.com/services/T0/B0/topsecret",
		"headers":{"Authorization":"Bearer topsecret"},"signingSecret":"`+secret+`"}`).want(201)
	w := into[api.Webhook](created)
	if w.URLHost != "hooks.slack.com" || !w.HasSigningSecret || w.RatePerSecond != 1 || w.TimeoutSeconds != 10 || w.MaxConcurrent != 8 || !w.Enabled {
		t.Errorf("webhook %+v", w)
	}
	if diff := cmp.Diff([]string{"Authorization"}, w.HeaderNames); diff != "" {
		t.Error(diff)
	}
	read := b.do("GET", "/api/v1/webhooks/"+w.ID.String(), "").want(200)
	list := b.do("GET", "/api/v1/webhooks", "").want(200)
	for _, text := range []string{created.Body.String(), read.Body.String(), list.Body.String(), b.log.String()} {
		if strings.Contains(text, "topsecret") || strings.Contains(text, secret) {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	generic := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"bound","kind":"generic","url":"http://10.0.0.1:9/x","enabled":false}`).want(201))
	if generic.RatePerSecond != 0 || generic.Enabled || generic.URLHost != "10.0.0.1:9" {
		t.Errorf("webhook %+v", generic)
	}
	p := b.do("DELETE", "/api/v1/webhooks/"+generic.ID.String(), "").problem(409, "conflict")
	if !strings.Contains(*p.Detail, "Failed orders and Failed invoices") {
		t.Errorf("detail %q", *p.Detail)
	}
	b.do("DELETE", "/api/v1/webhooks/"+w.ID.String(), "").want(204)

	bound := into[api.Rule](b.do("POST", "/api/v1/rules", strings.Replace(ruleBody, "{", `{"webhookIds":["`+generic.ID.String()+`"],`, 1)).want(201))
	if len(bound.Warnings) != 1 || bound.Warnings[0].Field != "webhookIds[0]" || bound.Warnings[0].Code != "disabled" {
		t.Errorf("warnings %+v", bound.Warnings)
	}
	p = b.do("POST", "/api/v1/rules", strings.Replace(ruleBody, "{", `{"webhookIds":["`+generic.ID.String()+`","`+w.ID.String()+`"],`, 1)).problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "webhookIds[1]" || p.Errors[0].Code != "not_found" {
		t.Errorf("errors %+v", p.Errors)
	}
}

func TestWebhooksThatCannotBeMeant(t *testing.T) {
	b := newBench(t)
	for body, fields := range map[string][]string{
		`{}`: {"name", "kind", "url"},
		`{"name":"x","kind":"slack","url":"ftp://host/"}`:                                                            {"url"},
		`{"name":"x","kind":"generic","url":"https://h/","timeoutSeconds":0.5,"maxConcurrent":0,"ratePerSecond":-1}`: {"timeoutSeconds", "maxConcurrent", "ratePerSecond"},
		`{"name":"x","kind":"generic","url":"https://h/","digestAbove":100001}`:                                      {"digestAbove"},
		`{"name":"x","kind":"generic","url":"https://h/","events":["RESOLVED","FIRED"],"eventMaxAgeSeconds":59}`:     {"events[1]", "eventMaxAgeSeconds"},
		`{"name":"x","kind":"generic","url":"https://h/","timeoutSeconds":1e300}`:                                    {"timeoutSeconds"},
		`{"name":"x","kind":"generic","url":"https://h/","headers":{"Host":"other"}}`:                                {"headers.Host"},
		`{"name":"x","kind":"generic","url":"https://h/","headers":{"A":1}}`:                                         {"headers.A"},
		`{"name":"x","kind":"generic","url":"https://h/","signingSecret":"short"}`:                                   {"signingSecret"},
		`{"name":"\u0000","kind":"generic","url":"https://h/","urlHost":"h"}`:                                        {"urlHost"},
	} {
		p := b.do("POST", "/api/v1/webhooks", body).problem(400, "invalid")
		var got []string
		for _, f := range p.Errors {
			got = append(got, f.Field)
		}
		if diff := cmp.Diff(map[string]bool{}, difference(got, fields)); diff != "" {
			t.Errorf("%s: errors for %v, want %v", body, got, fields)
		}
	}
}

// difference returns the elements that only one of the lists contains.
func difference(a, b []string) map[string]bool {
	d := map[string]bool{}
	for _, s := range a {
		d[s] = true
	}
	for _, s := range b {
		if d[s] {
			delete(d, s)
		} else {
			d[s] = true
		}
	}
	return d
}

// TestRuleCases runs the shared table of rules against the API: which rules it accepts and, word
// for word, why it rejects the others.
func TestRuleCases(t *testing.T) {
	data, err := os.ReadFile("../testdata/rule_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Rule   json.RawMessage
		Errors []fault.Field
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			b := newBench(t)
			got := b.do("POST", "/api/v1/rules", string(c.Rule))
			if len(c.Errors) == 0 {
				got.want(201)
				return
			}
			if diff := cmp.Diff(c.Errors, got.problem(400, "invalid").Errors); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
