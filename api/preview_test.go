package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator/explain"
	"tocsin/evaluator/preview"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// pastMemory records the queries about the past.
type pastMemory struct {
	preview preview.Request
	search  rules.ExchangeQuery
	facet   rules.FacetQuery
	asked   rules.DurationQuery
	usual   rules.Durations
	found   []rules.Exchange
	// states and alertedNS are the answers for explanations; key is what states were
	// requested for.
	states    []explain.RuleState
	alertedNS *int64
	key       string
	compared  [2]preview.Request
	// within is the time that a preview of a replay had.
	within time.Duration
	err    error
}

func (m *pastMemory) Difference(_ context.Context, before, after preview.Request) (preview.Difference, error) {
	m.compared = [2]preview.Request{before, after}
	a := alerts.Instance{
		ID: uuid.New(), Title: "orders", State: alerts.Firing, Severity: rules.Critical,
		Exchange: rules.Exchange{ExecutionID: "x", Status: rules.Failed, ErrorStack: "long"},
	}
	return preview.Difference{
		ToNS: 2, Before: 7, After: 8, Added: preview.Changed{Alerts: 3, Newest: []alerts.Instance{a}}, Removed: preview.Changed{Alerts: 2},
	}, m.err
}

func (m *pastMemory) Replay(ctx context.Context, r preview.ReplayRequest) (preview.Replayed, error) {
	m.compared[0] = r.Request
	if until, bounded := ctx.Deadline(); bounded {
		m.within = time.Until(until)
	}
	without, err := r.Unalerted(ctx, []string{"a", "b", "c"})
	return preview.Replayed{
		Result:   preview.Result{FromNS: r.FromNS, ToNS: r.ToNS, CoveredFromNS: r.FromNS, Alerts: 3},
		Existing: int64(3 - len(without)),
	}, errors.Join(m.err, err)
}

func (m *pastMemory) RuleStates(_ context.Context, _, key string) ([]explain.RuleState, error) {
	m.key = key
	return m.states, m.err
}

func (m *pastMemory) AlertedStart(context.Context, string, string) (startNS int64, found bool, err error) {
	if m.alertedNS == nil {
		return 0, false, nil
	}
	return *m.alertedNS, true, nil
}

func (m *pastMemory) Preview(_ context.Context, r preview.Request) (preview.Result, error) {
	m.preview = r
	if m.err != nil {
		return preview.Result{}, m.err
	}
	a := anAlert(instant())
	return preview.Result{
		FromNS: instant().Add(-r.Last).UnixNano(), ToNS: instant().UnixNano(), CoveredFromNS: instant().Add(-r.Last).UnixNano(),
		Scanned: 7, Alerts: 130, WidthNS: r.Last.Nanoseconds() / 48, Buckets: make([]int64, 48),
		Shares: []preview.Share{{Application: "orders", Route: "order-to-erp", Alerts: 130}}, Newest: []alerts.Instance{a},
		Notifications: 130, BusiestMinute: 61,
	}, nil
}

func (m *pastMemory) Search(_ context.Context, q rules.ExchangeQuery) ([]rules.Exchange, error) {
	m.search = q
	return m.found, m.err
}

func (m *pastMemory) Facet(_ context.Context, q rules.FacetQuery) ([]rules.FacetValue, error) {
	m.facet = q
	return []rules.FacetValue{{Value: "orders", Count: 3}}, nil
}

func (m *pastMemory) Durations(_ context.Context, q rules.DurationQuery) (rules.Durations, error) {
	m.asked = q
	return m.usual, m.err
}

func (m *pastMemory) Exchange(_ context.Context, _ string, at cursor.Position) (rules.Exchange, bool, error) {
	for _, e := range m.found {
		if e.Position() == at {
			return e, true, nil
		}
	}
	return rules.Exchange{}, false, nil
}

func TestEditsArePreviewed(t *testing.T) {
	b := newBench(t)
	r := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	path := "/api/v1/rules/" + r.ID.String() + "/preview/difference"
	edited := `{"definition":{"name":"n","fireMode":"PER_EXCHANGE","severity":"INFO","scope":{"notRoutes":["health"]}},"hours":2}`
	got := into[api.RuleDifference](b.do("POST", path, edited).want(200))
	if got.Before != 7 || got.After != 8 || got.Added.Alerts != 3 || got.Removed.Alerts != 2 || len(got.Removed.Newest) != 0 ||
		len(got.Added.Newest) != 1 || got.Added.Newest[0].Title != "orders" || got.Added.Newest[0].Exchange.ErrorStack != nil {
		t.Errorf("difference %+v", got)
	}
	before, after := b.past.compared[0], b.past.compared[1]
	if before.RuleID != r.ID || before.Definition.Name != r.Name || before.Last != 2*time.Hour || before.TenantID != "acme" ||
		after.RuleID != r.ID || after.Version != r.Version+1 || len(after.Definition.Scope.NotRoutes) != 1 || after.Last != before.Last {
		t.Errorf("compared %+v with %+v", before, after)
	}
	wrong := strings.Replace(edited, `"health"`, `""`, 1)
	if p := b.do("POST", path, wrong).problem(400, "invalid"); len(p.Errors) != 1 || p.Errors[0].Field != "definition.scope.notRoutes[0]" {
		t.Errorf("a definition that cannot be used: %+v", p.Errors)
	}
	b.do("POST", "/api/v1/rules/"+uuid.NewString()+"/preview/difference", edited).problem(404, "not_found")
}

func TestRulesArePreviewed(t *testing.T) {
	b := newBench(t)
	slack := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"#ops","kind":"slack","url":"https://hooks.slack.com/services/x"}`).want(201))
	body := `{"definition":{"name":"","fireMode":"PER_EXCHANGE","severity":"CRITICAL","webhookIds":["` + slack.ID.String() + `"]},"hours":2}`
	got := into[api.RulePreview](b.do("POST", "/api/v1/rules/preview", body).want(200))
	if got.Alerts != 130 || got.Truncated || len(got.Buckets) != 48 || got.BucketSeconds != 150 || got.Shares[0].Route != "order-to-erp" || got.Newest[0].Title == "" {
		t.Errorf("preview %+v", got)
	}
	if w := got.Webhooks[0]; w.WebhookID != slack.ID || !w.ExceedsRate || w.BusiestMinute != 61 || w.RatePerSecond != 1 {
		t.Errorf("load %+v", w)
	}
	if p := b.past.preview; p.TenantID != "acme" || p.Last != 2*time.Hour || p.Definition.LookBackSeconds != rules.DefaultLookBackSeconds {
		t.Errorf("asked for %+v", p)
	}
	r := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	b.do("POST", "/api/v1/rules/"+r.ID.String()+"/preview?hours=168", "").want(200)
	if p := b.past.preview; p.RuleID != r.ID || p.Last != 168*time.Hour {
		t.Errorf("asked for %+v", p)
	}
	b.do("POST", "/api/v1/rules/"+uuid.NewString()+"/preview", "").problem(404, "not_found")
	b.do("POST", "/api/v1/rules/"+r.ID.String()+"/preview?hours=169", "").problem(400, "invalid")
	p := b.do("POST", "/api/v1/rules/preview", `{"definition":{"name":"n","fireMode":"PER_EXCHANGE","severity":"CRITICAL","threshold":1}}`).problem(400, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "definition.threshold" {
		t.Errorf("errors %+v", p.Errors)
	}
}

func TestRulesAreDuplicated(t *testing.T) {
	b := newBench(t)
	r := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	path := "/api/v1/rules/" + r.ID.String() + "/duplicate"
	answer := b.do("POST", path, "").want(201)
	made := into[api.Rule](answer)
	if made.Name != "Copy of Failed orders" || made.Enabled || made.ID == r.ID || made.Version != 1 || answer.Header().Get("Location") != "/api/v1/rules/"+made.ID.String() {
		t.Errorf("copy %+v", made)
	}
	if diff := cmp.Diff(r.Scope, made.Scope); diff != "" {
		t.Error(diff)
	}
	b.do("POST", "/api/v1/rules/"+uuid.NewString()+"/duplicate", "").problem(404, "not_found")
}

func TestRulesAreTested(t *testing.T) {
	b := newBench(t)
	_, hook := b.aWebhook()
	r := into[api.Rule](b.do("POST", "/api/v1/rules", strings.Replace(ruleBody, `{"name"`, `{"titleTemplate":"{{exchange.route}} is broken","webhookIds":["`+hook.String()+`"],"name"`, 1)).want(201))
	b.sender.outcome = notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200}
	path := "/api/v1/rules/" + r.ID.String() + "/test"
	got := into[api.TestResultList](b.do("POST", path, `{}`).want(200))
	if len(got.Items) != 1 || got.Items[0].Verdict != "DELIVERED" || got.Items[0].WebhookID != hook {
		t.Errorf("results %+v", got)
	}
	e := anAlert(instant()).Exchange
	e.Route = "billing"
	b.past.found = []rules.Exchange{e}
	ref := `{"exchange":{"executionId":"exec-1","startTime":"` + instant().Format(time.RFC3339Nano) + `"}}`
	b.do("POST", path, ref).want(200)
	if a := b.sender.sent[1].Alert; a.Title != "[Test] billing is broken" || a.RuleID != r.ID || !b.sender.sent[1].Test {
		t.Errorf("sent %+v", a)
	}
	b.do("POST", path, strings.Replace(ref, "exec-1", "exec-2", 1)).problem(404, "not_found")
	bare := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	b.do("POST", "/api/v1/rules/"+bare.ID.String()+"/test", `{}`).problem(409, "conflict")
}

func TestTemplatesArePreviewed(t *testing.T) {
	b := newBench(t)
	_, hook := b.aWebhook()
	got := into[api.TemplatePreview](b.do("POST", "/api/v1/templates/preview",
		`{"titleTemplate":"{{exchange.route}} of {{rule.name}}","ruleName":"R","kind":"slack"}`).want(200))
	if !strings.HasSuffix(got.Title, " of R") || !strings.Contains(got.Request.Body, `"blocks"`) || got.Request.Host != "" || got.Problem != nil {
		t.Errorf("preview %+v", got)
	}
	got = into[api.TemplatePreview](b.do("POST", "/api/v1/templates/preview",
		`{"webhookId":"`+hook.String()+`","bodyTemplate":"{\"text\":\"{{alert.title}} {{alert.id}}\"}"}`).want(200))
	if got.Request.Host != "example.com" || !strings.Contains(got.Request.Body, got.Title) || got.Request.ContentType != "application/json" || !got.Request.Headers[1].Masked || got.Request.Headers[1].Value != nil {
		t.Errorf("preview %+v", got)
	}
	count := into[api.TemplatePreview](b.do("POST", "/api/v1/templates/preview", `{"fireMode":"COUNT_IN_WINDOW"}`).want(200))
	if !strings.Contains(count.Request.Body, `"count"`) {
		t.Errorf("preview %+v", count)
	}
	ours := into[api.TemplatePreview](b.do("POST", "/api/v1/templates/preview",
		`{"fireMode":"COUNT_IN_WINDOW","threshold":40,"windowSeconds":300,"titleTemplate":"{{count.observed}} of {{count.threshold}} in {{count.window}}"}`).want(200))
	if ours.Title != "42 of 40 in 5 min" {
		t.Errorf("the count of the rule's own numbers is shown as %q", ours.Title)
	}
	longest := into[api.TemplatePreview](b.do("POST", "/api/v1/templates/preview",
		`{"fireMode":"DURATION_IN_WINDOW","percentile":95,"durationMs":9000000000000,"titleTemplate":"{{count.value}} of {{count.threshold}}"}`).want(200))
	if strings.HasPrefix(longest.Title, "-") || !strings.HasSuffix(longest.Title, " of 2500000 h") {
		t.Errorf("the duration above the longest threshold is shown as %q", longest.Title)
	}
	if len(b.sender.sent) != 0 {
		t.Error("a preview was sent")
	}
	for body, field := range map[string]string{
		`{"titleTemplate":"{{nothing.such}}"}`:                                "titleTemplate",
		`{"messageTemplate":"{{#open}}"}`:                                     "messageTemplate",
		`{"kind":"slack","bodyTemplate":"{\"a\":1}"}`:                         "bodyTemplate",
		`{"kind":"fax"}`:                                                      "kind",
		`{"fireMode":"COUNT_IN_WINDOW","threshold":-1}`:                       "threshold",
		`{"fireMode":"COUNT_IN_WINDOW","windowSeconds":86401}`:                "windowSeconds",
		`{"fireMode":"COUNT_IN_WINDOW","groupBy":"DAY"}`:                      "groupBy",
		`{"fireMode":"NEVER"}`:                                                "fireMode",
		`{"exchange":{"executionId":"x","startTime":"1000-01-01T00:00:00Z"}}`: "exchange.startTime",
	} {
		p := b.do("POST", "/api/v1/templates/preview", body).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: errors %+v", body, p.Errors)
		}
	}
}

func TestExchangesAreSearched(t *testing.T) {
	b := newBench(t)
	e := anAlert(instant()).Exchange
	e.ExecutionID = "id \xff|2"
	b.past.found = []rules.Exchange{e}
	query := url.Values{"application": {"ord*"}, "status": {"FAILED"}, "errorType": {"T"}, "q": {"refused"}, "limit": {"1"}, "from": {"2026-03-01T11:00:00Z"}, "to": {"2026-03-01T12:30:00.000000001Z"}}
	page := into[api.ExchangePage](b.do("GET", "/api/v1/exchanges?"+query.Encode(), "").want(200))
	if got := page.Items[0]; got.StartTime.UnixNano() != instant().UnixNano() || got.ErrorStack != nil || got.Attributes["order"] != "4711" {
		t.Errorf("exchange %+v", got)
	}
	want := rules.ExchangeQuery{
		TenantID: "acme", FromNS: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC).UnixNano(), ToNS: time.Date(2026, 3, 1, 12, 30, 0, 1, time.UTC).UnixNano(), Limit: 1,
		Scope:  rules.Scope{Applications: []string{"ord*"}},
		Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}, ErrorTypes: []string{"T"}, ErrorMessageContains: "refused"},
	}
	if diff := cmp.Diff(want, b.past.search); diff != "" {
		t.Error(diff)
	}
	b.do("GET", "/api/v1/exchanges?cursor="+*page.NextCursor, "").want(200)
	if before := b.past.search.Before; before == nil || *before != e.Position() {
		t.Errorf("continued before %+v", before)
	}
	b.do("GET", "/api/v1/alerts?cursor="+*page.NextCursor, "").problem(400, "invalid")
	for query, field := range map[string]string{
		"status=RUNNING": "status",
		"from=2026-03-01T11:00:00Z&to=2026-02-01T11:00:00Z": "to",
		"from=2026-03-01T11:00:00Z&to=2026-05-01T11:00:00Z": "from",
		"from=1969-03-01T11:00:00Z&to=1969-03-01T12:00:00Z": "from",
		"application=%00": "application",
		"route=" + strings.Repeat("*a", rules.MaxWildcards+1): "route",
		"q=%ff":   "q",
		"limit=0": "limit",
	} {
		p := b.do("GET", "/api/v1/exchanges?"+query, "").problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: errors %+v", query, p.Errors)
		}
	}
}

func TestFacetsAreListed(t *testing.T) {
	b := newBench(t)
	got := into[api.FacetList](b.do("GET", "/api/v1/exchanges/facets?field=route&prefix=Ord&application=orders&hours=3&limit=5", "").want(200))
	if len(got.Items) != 1 || got.Items[0].Value != "orders" || got.Items[0].Count != 3 {
		t.Errorf("values %+v", got)
	}
	if f := b.past.facet; f.Field != rules.FacetRoute || f.Prefix != "Ord" || f.Limit != 5 || f.ToNS-f.FromNS != int64(3*time.Hour) || f.Scope.Applications[0] != "orders" || f.TenantID != "acme" {
		t.Errorf("asked for %+v", f)
	}
	b.do("GET", "/api/v1/exchanges/facets?field=password", "").problem(400, "invalid")
	b.do("GET", "/api/v1/exchanges/facets?field=route&hours=0", "").problem(400, "invalid")
	b.do("GET", "/api/v1/exchanges/facets", "").problem(400, "invalid")
}

func TestSourceThatDoesNotAnswerIsReported(t *testing.T) {
	b := newBench(t)
	b.past.err = errors.New("clickhouse: no route to secret-host")
	for _, p := range []api.Problem{
		b.do("GET", "/api/v1/exchanges", "").problem(503, "unavailable"),
		b.do("POST", "/api/v1/rules/preview", `{"definition":`+ruleBody+`}`).problem(503, "unavailable"),
	} {
		if strings.Contains(*p.Detail, "secret-host") {
			t.Errorf("detail %q", *p.Detail)
		}
	}
	if !strings.Contains(b.log.String(), "secret-host") {
		t.Error("the log does not say why")
	}
}

func TestUsualDurationIsOfTheSameRouteBefore(t *testing.T) {
	b := newBench(t)
	a := anAlert(instant())
	b.inbox.add(a)
	path := "/api/v1/alerts/" + a.ID.String() + "/usual-duration"
	b.past.usual = rules.Durations{Exchanges: 19, MedianNS: 5, P95NS: 9}
	if got := into[api.UsualDuration](b.do("GET", path, "").want(200)); got.Exchanges != 19 || got.MedianNs != nil || got.P95Ns != nil {
		t.Errorf("few exchanges make %+v", got)
	}
	b.past.usual.Exchanges = 20
	got := into[api.UsualDuration](b.do("GET", path, "").want(200))
	if got.MedianNs == nil || *got.MedianNs != "5" || *got.P95Ns != "9" {
		t.Errorf("usual is %+v", got)
	}
	q := b.past.asked
	if q.TenantID != "acme" || q.ToNS != a.Exchange.StartTimeNS || q.ToNS-q.FromNS != int64(24*time.Hour) || q.Limit != 10_000 ||
		q.Route != a.Exchange.Route || q.Application != a.Exchange.Application || q.Environment != a.Exchange.Environment {
		t.Errorf("asked for %+v", q)
	}
	b.past.err = errors.New("clickhouse is away")
	b.do("GET", path, "").want(503)
	b.do("GET", "/api/v1/alerts/"+uuid.NewString()+"/usual-duration", "").problem(404, "not_found")
}

// TestARuleThatIsTooLongForTheSourceIsAnInvalidField has a source that refuses the condition of a rule.
func TestARuleThatIsTooLongForTheSourceIsAnInvalidField(t *testing.T) {
	b := newBench(t)
	stored := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	path := "/api/v1/rules/" + stored.ID.String()
	b.past.err = fmt.Errorf("preview: %w", fault.InvalidFields("the rule", []fault.Field{{Field: "scope", Code: "query_too_long", Message: "Is too long"}}))
	hour := fmt.Sprintf(`{"from":%q,"to":%q}`, instant().Add(-2*time.Hour).Format(time.RFC3339), instant().Add(-time.Hour).Format(time.RFC3339))
	for _, c := range []struct{ path, body, field string }{
		{"/api/v1/rules/preview", `{"definition":` + ruleBody + `}`, "definition.scope"},
		{path + "/preview", "", "scope"},
		{path + "/preview/difference", `{"definition":` + ruleBody + `}`, "definition.scope"},
		{path + "/replays/preview", hour, "scope"},
	} {
		p := b.do("POST", c.path, c.body).problem(400, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != c.field || p.Errors[0].Code != "query_too_long" {
			t.Errorf("%s: errors %+v", c.path, p.Errors)
		}
	}
}
