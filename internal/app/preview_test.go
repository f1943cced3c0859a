package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/source"
	"tocsin/internal/clickhouse"
	"tocsin/notify/template"
	"tocsin/rules"
)

// history writes n exchanges that ended within a period, some of them twice.
func (w *world) history(random *rand.Rand, n int, from, to time.Time) {
	w.t.Helper()
	span := to.Sub(from).Nanoseconds()
	list := make([]rules.Exchange, 0, n+n/20)
	for i := range n {
		end := from.UnixNano() + random.Int64N(span)/1000*1000
		duration := random.Int64N(int64(3 * time.Minute))
		e := rules.Exchange{
			TenantID: tenant, ExecutionID: fmt.Sprintf("e-%d", i), StartTimeNS: end - duration, EndTimeNS: &end, DurationNS: duration,
			Environment: "production", Application: fmt.Sprintf("app-%d", random.IntN(4)), Route: fmt.Sprintf("route-%d", random.IntN(6)),
			Status: rules.Failed, ErrorType: []string{"Timeout", "Refused", ""}[random.IntN(3)], ErrorMessage: fmt.Sprintf("order %d", i),
			Attributes: map[string]string{"order": fmt.Sprint(i)},
		}
		if random.IntN(3) == 0 {
			e.Status, e.ErrorType, e.ErrorMessage = rules.Completed, "", ""
		}
		list = append(list, e)
		if i%20 == 0 {
			list = append(list, e)
		}
	}
	w.ch.Insert(w.t, list...)
}

func (w *world) previewer(change func(*preview.Previewer)) *preview.Previewer {
	w.t.Helper()
	source, err := clickhouse.Open(clickhouse.Options{URL: w.ch.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = source.Close() })
	texts, err := template.NewTexts()
	if err != nil {
		w.t.Fatal(err)
	}
	// The usual budget may be too little for a complete preview on a busy machine.
	p := &preview.Previewer{Source: source, Texts: texts, Clock: time.Now, Budget: time.Minute}
	if change != nil {
		change(p)
	}
	return p
}

// arm arms a rule as of the instant that a preview assumed.
func (w *world) arm(rule rules.Rule, ns int64) {
	w.t.Helper()
	from := cursor.Position{StartTimeNS: ns - int64(rule.LookBackSeconds)*int64(time.Second)}
	w.exec(`update rule_state set armed_since_ns = $1 where rule_id = $2`, ns, rule.ID)
	w.exec(`update rule_backfill set position = $1 where rule_id = $2`, from.String(), rule.ID)
	w.exec(`update checkpoint set rules_revision = rules_revision + 1`)
}

// judgedInTheEnd ticks until no rule has a backfill.
func (w *world) judgedInTheEnd() {
	w.t.Helper()
	e := w.newEvaluator(evaluator.Options{})
	for range 1000 {
		if _, err := w.tickWith(e); err != nil {
			w.t.Fatal(err)
		}
		if len(w.column(`select rule_id::text from rule_backfill`)) == 0 {
			return
		}
	}
	w.t.Fatal("after 1000 ticks some of the backfill is left")
}

func TestPreviewIsWhatEvaluationRaises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	now := time.Now()
	w.history(random, 3000, now.Add(-90*time.Minute), now.Add(-2*time.Second))
	hook := w.webhook("hook")
	longest := int64(60_000)
	var list []rules.Rule
	var previews []preview.Result
	for i, d := range []rules.Definition{
		{},
		{Scope: rules.Scope{Applications: []string{"app-1"}, Routes: []string{"route-*"}}},
		{Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}, MinDurationMS: &longest}},
		{Filter: rules.Filter{ErrorTypes: []string{"Timeout"}, ErrorMessageMatches: "7$"}},
		{Filter: rules.Filter{Attributes: []rules.AttributeMatch{{Key: "order", Op: rules.AttributeMatches, Value: "^1.$"}}}},
		{TitleTemplate: "{{exchange.route}} {{exchange.executionId}}", Scope: rules.Scope{Routes: []string{"route-3"}}},
	} {
		d.Name, d.WebhookIDs = fmt.Sprint("rule ", i), append(d.WebhookIDs, hook)
		rule := w.ruleOf(d)
		got, err := w.previewer(func(p *preview.Previewer) { p.PageSize = 100 + random.IntN(900) }).Preview(t.Context(), preview.Request{
			TenantID: tenant, Definition: rule.Definition, RuleID: rule.ID, Version: rule.Version, Last: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.arm(rule, got.FromNS)
		list, previews = append(list, rule), append(previews, got)
	}
	w.judgedInTheEnd()
	for i, rule := range list {
		got := previews[i]
		raised, _ := strconv.Atoi(w.column(`select count(*)::text from alert where rule_id = $1`, rule.ID)[0])
		if got.Truncated || int64(raised) != got.Alerts || got.Notifications != got.Alerts {
			t.Errorf("rule %d: the preview shows %d alerts (%d notifications, truncated %v), evaluation raised %d", i, got.Alerts, got.Notifications, got.Truncated, raised)
		}
		var sum int64
		for _, n := range got.Buckets {
			sum += n
		}
		if sum != got.Alerts {
			t.Errorf("rule %d: the buckets hold %d of %d alerts", i, sum, got.Alerts)
		}
		var shown []string
		for _, a := range got.Newest {
			shown = append(shown, a.Exchange.ExecutionID+" "+a.Title+" "+a.Message)
		}
		stored := w.column(`select execution_id || ' ' || title || ' ' || message from alert where rule_id = $1
			order by coalesce((exchange->>'endTimeNs')::bigint, start_time_ns) desc limit 20`, rule.ID)
		slices.Sort(shown)
		slices.Sort(stored)
		if !slices.Equal(shown, stored) {
			t.Errorf("rule %d: the newest are\n%s\nnot\n%s", i, strings.Join(shown, "\n"), strings.Join(stored, "\n"))
		}
	}
}

// clock is a source whose time is set by the test.
type clock struct {
	*clickhouse.Source

	ns int64
}

func (c *clock) Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error) {
	seen, err := c.Source.Observe(ctx, q)
	seen.NowNS = c.ns
	return seen, err
}

func TestPreviewOfACountIsWhatEvaluationRaises(t *testing.T) {
	t.Parallel()
	const interval = 20
	w := newWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	// Exchanges that take no time, in bursts: all are visible from their start.
	begin := time.Now().Add(-18 * time.Minute)
	var list []rules.Exchange
	for i := range 160 {
		ns := begin.Add(time.Duration(random.IntN(4)) * 4 * time.Minute).Add(time.Duration(random.IntN(120_000)) * time.Millisecond).UnixNano()
		list = append(list, rules.Exchange{
			TenantID: tenant, ExecutionID: fmt.Sprint("c-", i), StartTimeNS: ns, EndTimeNS: &ns, Environment: "production",
			Application: "orders", Route: fmt.Sprintf("route-%d", random.IntN(3)), Status: rules.Failed, ErrorType: "T", ErrorMessage: "m",
		})
	}
	w.ch.Insert(t, append(list, list[:20]...)...)
	hook := w.webhook("hook")
	// All previews end at one instant, so that each tick evaluates all rules.
	now := &clock{Source: w.source(), ns: time.Now().UnixNano()}
	previewer := w.previewer(func(p *preview.Previewer) { p.Source = now })
	var made []rules.Rule
	var previews []preview.Result
	for i, d := range []rules.Definition{
		{Threshold: 8, WindowSeconds: 60},
		{Threshold: 4, WindowSeconds: 45, GroupBy: rules.GroupByRoute, NotifyOnResolve: true},
		{Threshold: 1, WindowSeconds: 10, GroupBy: rules.GroupByApplication},
	} {
		d.Name, d.Enabled, d.FireMode, d.Severity, d.IntervalSeconds = fmt.Sprint("count ", i), true, rules.CountInWindow, rules.Critical, interval
		d.WebhookIDs = append(d.WebhookIDs, hook)
		rule, err := w.db.Rules().Create(t.Context(), tenant, d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := previewer.Preview(t.Context(), preview.Request{TenantID: tenant, Definition: d, RuleID: rule.ID, Version: 1, Last: 20 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		w.arm(rule, got.FromNS)
		made, previews = append(made, rule), append(previews, got)
	}
	e := w.newEvaluator(evaluator.Options{Source: now})
	from, to := previews[0].FromNS, previews[0].ToNS
	for now.ns = from; now.ns < to; now.ns += interval * int64(time.Second) {
		if _, err := w.tickWith(e); err != nil {
			t.Fatal(err)
		}
	}
	for i, rule := range made {
		got := previews[i]
		if got.FromNS != from || got.ToNS != to {
			t.Fatalf("rule %d: the preview is of another range than that of rule 0", i)
		}
		var raised, notified int64
		err := w.conn.QueryRow(t.Context(), `select count(distinct a.alert_id), count(n.notification_id) from alert a left join notification n using (alert_id) where a.rule_id = $1`, rule.ID).Scan(&raised, &notified)
		if err != nil {
			t.Fatal(err)
		}
		if got.Truncated || raised != got.Alerts || notified != got.Notifications || raised == 0 {
			t.Errorf("rule %d: the preview shows %d alerts and %d notifications (truncated %v), evaluation raised %d and %d", i, got.Alerts, got.Notifications, got.Truncated, raised, notified)
		}
		var shown []string
		for _, a := range got.Newest {
			shown = append(shown, fmt.Sprint(a.Count.Group, " ", a.Count.Observed, " ", a.Exchange.ExecutionID, " ", a.Title, " ", a.Message))
		}
		// The title and the message are those at the time when the alert fired.
		stored := w.column(`select group_key || ' ' || title || ' ' || message from alert where rule_id = $1`, rule.ID)
		for _, s := range shown {
			parts := strings.SplitN(s, " ", 4)
			if !slices.Contains(stored, cursor.Key(parts[0])+" "+parts[3]) {
				t.Errorf("rule %d: %q is shown, but not among %q", i, s, stored)
			}
		}
	}
}

func TestPreviewIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.history(rand.New(rand.NewPCG(1, 1)), 5000, now.Add(-50*time.Minute), now.Add(-2*time.Second))
	d := rules.Definition{Name: "n", FireMode: rules.PerExchange, Severity: rules.Critical, IntervalSeconds: 1, LookBackSeconds: 600}
	r := preview.Request{TenantID: tenant, Definition: d, Last: time.Hour}
	got, err := w.previewer(func(p *preview.Previewer) { p.MaxRows, p.PageSize = 1000, 100 }).Preview(t.Context(), r)
	if err != nil || !got.Truncated || got.Scanned > 1100 || got.CoveredFromNS <= got.FromNS || got.Alerts == 0 {
		t.Errorf("bounded by rows: %d scanned, truncated %v, %v", got.Scanned, got.Truncated, err)
	}
	got, err = w.previewer(func(p *preview.Previewer) { p.Budget = time.Nanosecond }).Preview(t.Context(), r)
	if err != nil || !got.Truncated || got.Scanned != 0 {
		t.Errorf("bounded by time: %d scanned, truncated %v, %v", got.Scanned, got.Truncated, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.previewer(nil).Preview(ctx, r); err == nil {
		t.Error("a preview that was cancelled succeeded")
	}
	r.TenantID = "other"
	if got, err := w.previewer(nil).Preview(t.Context(), r); err != nil || got.Scanned != 0 {
		t.Errorf("another tenant sees %d exchanges, %v", got.Scanned, err)
	}
}

// TestPreviewOfADay completes a preview of 24 hours, and logs its cost.
func TestPreviewOfADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.ch.Conn.Exec(t.Context(), fmt.Sprintf(`
insert into exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, error_type, error_message)
select 'default', fromUnixTimestamp64Nano(toInt64(%d + number * 864000000), 'UTC') as s, 'production', concat('app-', toString(number %% 50)),
       concat('route-', toString(number %% 200)), concat('x-', toString(number)), s, 0, if(number %% 100 < 2, 'FAILED', 'COMPLETED'), 'T', 'm'
from numbers(100000)`, time.Now().Add(-24*time.Hour).UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]rules.Definition{
		"every failure":   {FireMode: rules.PerExchange, LookBackSeconds: 3600},
		"one application": {FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: rules.Scope{Applications: []string{"app-0"}}},
		"count by route":  {FireMode: rules.CountInWindow, Threshold: 3, WindowSeconds: 600, GroupBy: rules.GroupByRoute},
	} {
		d.Name, d.Severity, d.IntervalSeconds = name, rules.Critical, 1
		begin := time.Now()
		got, err := w.previewer(nil).Preview(t.Context(), preview.Request{TenantID: tenant, Definition: d, Last: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v, %d scanned, %d alerts, truncated %v", name, time.Since(begin).Round(time.Millisecond), got.Scanned, got.Alerts, got.Truncated)
		if got.Truncated || got.Alerts == 0 {
			t.Errorf("%s: %d alerts, truncated %v", name, got.Alerts, got.Truncated)
		}
	}
}

func TestExchangesAreSearchedAndCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.rest()
	now := time.Now()
	w.history(rand.New(rand.NewPCG(3, 1)), 300, now.Add(-time.Hour), now.Add(-2*time.Second))
	other := now.Add(-time.Minute).UnixNano()
	w.ch.Insert(t, rules.Exchange{TenantID: "other", ExecutionID: "o", StartTimeNS: other, EndTimeNS: &other, Application: "secret", Status: rules.Failed})
	seen := map[string]bool{}
	var last time.Time
	for path := "/exchanges?limit=37&environment=prod*"; path != ""; {
		page := answerOf[api.ExchangePage](t, r.do(200, "GET", path, ""))
		for _, e := range page.Items {
			if seen[e.ExecutionID] || e.Application == "secret" || !last.IsZero() && e.StartTime.After(last) {
				t.Errorf("%s of %s at %v comes twice, in disorder or from elsewhere", e.ExecutionID, e.Application, e.StartTime)
			}
			seen[e.ExecutionID], last = true, e.StartTime
		}
		path = ""
		if page.NextCursor != nil {
			path = "/exchanges?limit=37&environment=prod*&cursor=" + *page.NextCursor
		}
	}
	if len(seen) != 300 {
		t.Errorf("the pages hold %d of 300 exchanges", len(seen))
	}
	page := answerOf[api.ExchangePage](t, r.do(200, "GET", "/exchanges?status=FAILED&errorType=Timeout&application=app-1&q=order", ""))
	for _, e := range page.Items {
		if e.Application != "app-1" || e.ErrorType != "Timeout" || e.Status != rules.Failed {
			t.Errorf("found %+v", e)
		}
	}
	if len(page.Items) == 0 {
		t.Error("nothing found")
	}
	for field, want := range map[string]string{"environment": "production", "application": "app-", "route": "route-", "errorType": "Timeout", "attribute": "order"} {
		list := answerOf[api.FacetList](t, r.do(200, "GET", "/exchanges/facets?field="+field+"&prefix="+strings.ToUpper(want), ""))
		if len(list.Items) == 0 || !strings.HasPrefix(list.Items[0].Value, want) || list.Items[0].Count == 0 {
			t.Errorf("%s: %+v", field, list.Items)
		}
		for _, v := range list.Items {
			if v.Value == "secret" || v.Value == "" {
				t.Errorf("%s: %+v", field, list.Items)
			}
		}
	}
	if list := answerOf[api.FacetList](t, r.do(200, "GET", "/exchanges/facets?field=application&prefix=%27%29%20OR%201%3D1", "")); len(list.Items) != 0 {
		t.Errorf("values %+v", list.Items)
	}

	// A real exchange, to the nanosecond, in templates and tests.
	e := page.Items[0]
	ref := fmt.Sprintf(`{"executionId":%q,"startTime":%q}`, e.ExecutionID, e.StartTime.Format(time.RFC3339Nano))
	shown := answerOf[api.TemplatePreview](t, r.do(200, "POST", "/templates/preview", `{"titleTemplate":"{{exchange.executionId}}","exchange":`+ref+`}`))
	if shown.Title != e.ExecutionID {
		t.Errorf("title %q, want %q", shown.Title, e.ExecutionID)
	}
	hook := w.webhook("hook")
	rule := w.rule(hook)
	results := answerOf[api.TestResultList](t, r.do(200, "POST", "/rules/"+rule.ID.String()+"/test", `{"exchange":`+ref+`}`))
	if results.Items[0].Verdict != "DELIVERED" || !slices.Equal(w.receiver.received(), []string{e.ExecutionID}) {
		t.Errorf("results %+v, received %q", results, w.receiver.received())
	}
	w.wantColumn("what the test left", `select count(*)::text from alert`, "0")
	first := answerOf[api.Rule](t, r.do(201, "POST", "/rules/"+rule.ID.String()+"/duplicate", ""))
	second := answerOf[api.Rule](t, r.do(201, "POST", "/rules/"+rule.ID.String()+"/duplicate", ""))
	if first.Enabled || second.Name != first.Name+" (2)" || len(second.WebhookIds) != 1 {
		t.Errorf("copies %+v and %+v", first, second)
	}
}
