package preview_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/source"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

const (
	second = int64(1e9)
	now    = 1_795_244_520 * second
)

// longValue is a value that is long enough to be replaced by its SHA-256.
func longValue() string { return strings.Repeat("v", rules.MaxGroupBytes+1) }

// history is a source that holds rows in memory.
type history struct {
	rows []rules.Exchange
	// atOnceMost is the largest number of exchanges that a scan returns at once; more are an error.
	atOnceMost int
	scans      []source.Scan
	clock      time.Time
	// took is how long a scan takes.
	took time.Duration
}

func newHistory(rows ...rules.Exchange) *history {
	slices.SortStableFunc(rows, func(a, b rules.Exchange) int { return a.Position().Compare(b.Position()) })
	return &history{rows: rows, clock: time.Unix(0, now)}
}

func (h *history) Observe(_ context.Context, q source.ObserveQuery) (source.Observation, error) {
	if q.FromNS != q.ToNS || q.ToNS == 0 {
		return source.Observation{}, errors.New("the range is not empty")
	}
	return source.Observation{NowNS: now}, nil
}

func (h *history) Scan(_ context.Context, q source.Scan) (source.Page, error) {
	h.scans = append(h.scans, q)
	h.clock = h.clock.Add(h.took)
	if h.atOnceMost > 0 && q.Limit > h.atOnceMost {
		return source.Page{}, source.ErrTooMuch
	}
	matcher, err := rules.Compile(q.Narrow.Scope, q.Narrow.Filter)
	if err != nil {
		return source.Page{}, err
	}
	var page source.Page
	for i := range h.rows {
		e := &h.rows[i]
		if !slices.Contains(q.Tenants.Names, e.TenantID) || !e.Position().After(q.After) || e.StartTimeNS >= q.BeforeNS || e.EndedNS() < q.EndedSinceNS || !matcher.Match(e) {
			continue
		}
		if n := len(page.Exchanges); n >= q.Limit && page.Exchanges[n-1].Position() != e.Position() {
			page.More = true
			break
		}
		page.Exchanges = append(page.Exchanges, *e)
	}
	return page, nil
}

func (h *history) Tally(_ context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	return counting.Tallies{Inexact: q.Tenants.Names}, nil
}

// Arrivals has the history seen as it is.
func (h *history) Arrivals(context.Context, watch.ArrivalsQuery) (watch.Arrivals, error) {
	return watch.Arrivals{}, nil
}

func (h *history) CountWindows(_ context.Context, windows []counting.Query) (counting.Counted, error) {
	all := make([][]counting.Group, len(windows))
	for i := range windows {
		groups, err := h.countWindow(&windows[i])
		if err != nil {
			return counting.Counted{}, err
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			all[i] = append(all[i], *groups[name])
		}
		slices.SortStableFunc(all[i], func(a, b counting.Group) int { return cmp.Compare(b.Observed, a.Observed) })
	}
	return counting.Counted{Groups: all}, nil
}

func (h *history) countWindow(w *counting.Query) (map[string]*counting.Group, error) {
	filter := w.Filter
	if w.Mode == rules.RatioInWindow {
		filter = rules.Filter{Statuses: w.Statuses()}
	}
	counts, err := rules.Compile(w.Scope, filter)
	if err != nil {
		return nil, err
	}
	matches, err := rules.Compile(w.Scope, w.Filter)
	if err != nil {
		return nil, err
	}
	groups, ids := map[string]*counting.Group{}, map[string]bool{}
	for n := range h.rows {
		e := &h.rows[n]
		ended, name := e.EndedNS(), w.Grouping.Of(e)
		if !counts.Match(e) || ended < w.FromNS || ended >= w.ToNS || e.StartTimeNS < w.StartFromNS || e.StartTimeNS >= w.ToNS {
			continue
		}
		g := groups[name]
		if g == nil {
			g = &counting.Group{Group: name}
			groups[name] = g
		}
		once := func(what string, count *int64) {
			if !ids[what+name+"|"+e.ExecutionID] {
				*count++
			}
			ids[what+name+"|"+e.ExecutionID] = true
		}
		observed, short := matches.Match(e) && e.DurationNS >= w.LeastNS, w.ShortFromNS != 0 && ended >= w.ShortFromNS
		if w.Mode != rules.CountInWindow {
			once("volume ", &g.Volume)
		}
		if w.Mode == rules.RatioInWindow && short {
			once("short volume ", &g.ShortVolume)
		}
		if observed {
			once("", &g.Observed)
			g.NewestEndedNS, g.NewestStartNS = max(g.NewestEndedNS, ended), 0
		}
		if observed && short {
			once("short ", &g.ShortObserved)
		}
	}
	return groups, nil
}

func (h *history) Newest(_ context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	for i, w := range windows {
		newest[i] = make([]rules.Exchange, len(w.Groups))
	}
	return newest, nil
}

func (h *history) Texts(_ *rules.Rule, e *rules.Exchange) (a, b string, _ error) {
	return "title of " + e.ExecutionID, "", nil
}

func (h *history) CountTexts(_ *rules.Rule, c *alerts.Count, e *rules.Exchange) (a, b string, _ error) {
	return fmt.Sprintf("%d in %q", c.Observed, c.Group), e.ExecutionID, nil
}

func (h *history) previewer() *preview.Previewer {
	return &preview.Previewer{Source: h, Texts: h, Clock: func() time.Time { return h.clock }}
}

// failed returns a failure of tenant t that began and ended the given number of seconds ago.
func failed(id string, startAgo, endAgo int64) rules.Exchange {
	return rules.Exchange{
		TenantID: "t", ExecutionID: id, StartTimeNS: now - startAgo*second, EndTimeNS: new(now - endAgo*second), Status: rules.Failed, Application: "a", Route: "r",
	}
}

func perExchange() rules.Definition {
	return rules.Definition{FireMode: rules.PerExchange, Severity: rules.Warning, LookBackSeconds: 60, WebhookIDs: []uuid.UUID{{1}}}
}

func TestPerExchange(t *testing.T) {
	other := failed("of another tenant", 10, 9)
	other.TenantID = "u"
	completed := failed("completed", 10, 9)
	completed.Status = rules.Completed
	h := newHistory(other, completed, failed("ended before", 3700, 3650), failed("began before", 3640, 3590), failed("too long", 3000, 2900),
		failed("x", 20, 15), failed("x", 20, 15), failed("ends in the future", 1, -1))
	got, err := h.previewer().Preview(t.Context(), preview.Request{TenantID: "t", Definition: perExchange(), RuleID: uuid.UUID{7}, Version: 3, Last: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got.Alerts != 2 || got.Notifications != 2 || got.BusiestMinute != 1 || got.Truncated || got.FromNS != now-3600*second || got.CoveredFromNS != got.FromNS {
		t.Errorf("%+v", got)
	}
	if diff := gocmp.Diff([]preview.Share{{Application: "a", Route: "r", Alerts: 2}}, got.Shares); diff != "" {
		t.Error(diff)
	}
	x := failed("x", 20, 15)
	if a := got.Newest[0]; len(got.Newest) != 2 || a.Title != "title of x" || a.RuleVersion != 3 || a.ID != alerts.ID(uuid.UUID{7}, &x) || !a.FiredAt.Equal(time.Unix(0, now-15*second)) {
		t.Errorf("newest %+v", got.Newest)
	}
}

// TestPagesAndBounds reads in small pages, and no more than is allowed.
func TestPagesAndBounds(t *testing.T) {
	var rows []rules.Exchange
	for i := range 300 {
		rows = append(rows, failed(fmt.Sprint(i), int64(i)*10+5, int64(i)*10+5))
	}
	h := newHistory(rows...)
	p := h.previewer()
	request := preview.Request{TenantID: "t", Definition: perExchange(), Last: time.Hour}
	p.PageSize, h.atOnceMost = 100, 7
	if got, err := p.Preview(t.Context(), request); err != nil || got.Alerts != 300 || got.Scanned != 300 || len(got.Newest) != 20 || got.Truncated {
		t.Errorf("%d alerts of %d, %v, %v", got.Alerts, got.Scanned, got.Truncated, err)
	}
	p.MaxRows = 100
	got, err := p.Preview(t.Context(), request)
	if err != nil || !got.Truncated || got.Scanned < 100 || got.Scanned > 120 || got.CoveredFromNS <= got.FromNS || got.Newest[0].Exchange.ExecutionID != "0" {
		t.Errorf("%+v, %v", got, err)
	}
	p.MaxRows, h.took = 0, 3*time.Second
	if got, err := p.Preview(t.Context(), request); err != nil || !got.Truncated {
		t.Errorf("out of time: %+v, %v", got, err)
	}
	request.Definition.Filter.ErrorMessageMatches = "("
	if _, err := p.Preview(t.Context(), request); err == nil {
		t.Error("a condition that cannot be used is no error")
	}
}

// rehearsed is what a window rule did.
type rehearsed struct{ alerts, notifications int64 }

// rehearse evaluates a rule over a period at its interval.
func rehearse(t *rapid.T, h *history, rule *rules.Rule, fromNS, toNS int64) rehearsed {
	judge, err := rules.NewJudge(rule)
	if err != nil {
		t.Fatal(err)
	}
	e := window.New(window.Options{Source: h, Texts: h, Logger: slog.New(slog.DiscardHandler)})
	open := map[string]alerts.OpenAlert{}
	var did rehearsed
	for at := fromNS; at < toNS; at += int64(rule.IntervalSeconds) * second {
		request := window.Request{
			Request: counting.Request{Tenants: source.Tenants{Names: []string{rule.TenantID}}, WatermarkNS: at, Now: time.Unix(0, at), Over: func() bool { return false }},
			Rules:   []counting.Compiled{{Rule: rule, Judge: judge}},
		}
		if rule.FireMode == rules.AbsentInWindow {
			// The lateness of rows is at least ten seconds, and the source was watched before.
			before := request
			before.Rules, before.Watches, before.Watch = nil, true, watch.State{SinceNS: fromNS - 3600*second, UntilNS: at - 10*second}
			e.Evaluate(t.Context(), before)
			request.WatermarkNS += 10 * second
			request.Watches, request.Watch = true, watch.State{SinceNS: fromNS - 3600*second, UntilNS: at}
		}
		for _, o := range open {
			request.Open = append(request.Open, o)
		}
		outcome := e.Evaluate(t.Context(), request)
		if len(outcome.Evaluated) != 1 {
			t.Fatalf("%+v", outcome)
		}
		for i := range outcome.Changes {
			c := &outcome.Changes[i]
			did.notifications += int64(len(c.Notifications))
			group := c.Instance.Count.Group
			o := open[group]
			o.ID, o.RuleID, o.Group = c.Instance.ID, rule.ID, group
			switch c.Step {
			case alerts.Wait:
				o.State, o.Since = alerts.Pending, request.Now
			case alerts.Raise, alerts.Fire:
				did.alerts++
				o.State, o.Since, o.NotifiedAt = alerts.Firing, request.Now, request.Now
			case alerts.Remind:
				o.NotifiedAt = request.Now
			case alerts.Clear, alerts.Drop:
				if c.Step == alerts.Clear && rule.NotifyOnResolve {
					did.notifications += int64(len(rule.WebhookIDs)) // the store notifies those that were notified of the alert
				}
				delete(open, group)
				continue
			case alerts.Stay, alerts.Release:
			}
			open[group] = o
		}
	}
	return did
}

// TestWindowsAreAsEvaluated compares the preview of random window rules over random rows with what
// the evaluator does at each interval.
func TestWindowsAreAsEvaluated(t *testing.T) {
	raised := map[rules.FireMode]int64{}
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]rules.Exchange, rapid.IntRange(10, 60).Draw(t, "rows"))
		for i := range rows {
			end := rapid.Int64Range(-2, 250).Draw(t, "ended ago")
			rows[i] = failed(fmt.Sprint(i), end+rapid.SampledFrom([]int64{0, 0, 1, 5, 30, 100, 3600, 3660, 3700, -1}).Draw(t, "took"), end)
			rows[i].Route = rapid.SampledFrom([]string{"a", "b", "\x00"}).Draw(t, "route")
			if rapid.IntRange(0, 4).Draw(t, "no end") == 0 {
				rows[i].EndTimeNS = nil
			}
			if value := rapid.SampledFrom([]string{"a", "b", "", "absent", longValue()}).Draw(t, "attribute"); value != "absent" {
				rows[i].Attributes = map[string]string{"k": value}
			}
			rows[i].Status = rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed}).Draw(t, "status")
			rows[i].ErrorType = rapid.SampledFrom([]string{"", "x"}).Draw(t, "error type")
			rows[i].DurationNS = rapid.SampledFrom([]int64{0, 1e6, 2e6 - 1, 2e6, 3e6}).Draw(t, "duration")
			if i > 0 && rapid.IntRange(0, 4).Draw(t, "row again") == 0 {
				rows[i] = rows[i-1]
			}
		}
		h := newHistory(rows...)
		d := rules.Definition{
			FireMode: rules.CountInWindow, Severity: rules.Warning, WebhookIDs: []uuid.UUID{{1}},
			Threshold:          rapid.IntRange(1, 3).Draw(t, "threshold"),
			WindowSeconds:      rapid.SampledFrom([]int{10, 11, 30, 60}).Draw(t, "window"),
			IntervalSeconds:    rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "interval"),
			GroupBy:            rapid.SampledFrom([]rules.GroupBy{"", rules.GroupByRoute, rules.GroupByErrorType, rules.GroupByAttribute}).Draw(t, "group by"),
			ForDurationSeconds: rapid.SampledFrom([]int{0, 0, 5, 20}).Draw(t, "for"),
			ReNotifyMinutes:    rapid.SampledFrom([]int{0, 1}).Draw(t, "reminders"),
			NotifyOnResolve:    rapid.Bool().Draw(t, "notify on resolve"),
		}
		if d.GroupBy == rules.GroupByAttribute {
			d.GroupByAttribute = "k"
		}
		switch rapid.SampledFrom([]int{0, 1, 2, 2, 3}).Draw(t, "mode") {
		case 3:
			d.FireMode, d.Filter.Statuses = rules.AbsentInWindow, []rules.Status{rules.Completed, rules.Failed}
			switch d.GroupBy { //nolint:exhaustive // of all together nothing is listed
			case rules.GroupByAttribute:
				d.Expected = rapid.SampledFrom([][]string{{"a"}, {"a", "b", "c"}, {longValue()}}).Draw(t, "expected values")
			case rules.GroupByRoute, rules.GroupByErrorType:
				d.GroupBy, d.Expected = rules.GroupByRoute, rapid.SampledFrom([][]string{{"a"}, {"a", "b", "c"}, {"\x00"}}).Draw(t, "expected")
			}
			if rapid.Bool().Draw(t, "calendar") {
				clock := func(ago int) string {
					return time.Unix(0, now).UTC().Add(-time.Duration(ago) * time.Second).Format("15:04")
				}
				d.Calendar = &rules.Calendar{
					TimeZone: "UTC", Weekdays: []rules.Weekday{rules.Weekdays()[time.Unix(0, now).UTC().Weekday()]},
					From: clock(rapid.IntRange(200, 400).Draw(t, "opens ago")), To: clock(rapid.IntRange(-100, 100).Draw(t, "closes ago")),
				}
			}
		case 1:
			d.FireMode, d.Threshold, d.MinVolume = rules.RatioInWindow, 0, rapid.IntRange(1, 3).Draw(t, "volume")
			d.Percent = rapid.SampledFrom([]float64{0.001, 34, 50, 67, 100}).Draw(t, "percent")
			d.ShortWindowSeconds = min(d.WindowSeconds-1, rapid.SampledFrom([]int{0, 10, 20}).Draw(t, "short window"))
		case 2:
			d.FireMode, d.Threshold, d.MinVolume = rules.DurationInWindow, 0, rapid.IntRange(1, 3).Draw(t, "volume")
			d.Percentile, d.DurationMS = rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile"), rapid.Int64Range(1, 2).Draw(t, "at least")
			d.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
		}
		got, err := h.previewer().Preview(t.Context(), preview.Request{TenantID: "t", Definition: d, Last: 200 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		rule := &rules.Rule{Definition: d, TenantID: "t", ArmedSinceNS: got.FromNS}
		if did := rehearse(t, h, rule, got.FromNS, got.ToNS); did.alerts != got.Alerts || did.notifications != got.Notifications {
			t.Fatalf("the evaluator raises %d and notifies %d times, the preview tells %d and %d", did.alerts, did.notifications, got.Alerts, got.Notifications)
		}
		raised[d.FireMode] += got.Alerts
		for _, a := range got.Newest {
			if c := a.Count; d.FireMode == rules.DurationInWindow && c.DurationNS < d.DurationMS*1e6 || d.FireMode == rules.RatioInWindow && c.Value() < d.Percent {
				t.Fatalf("%+v does not reach %+v", c, d)
			}
			if want := fmt.Sprintf("%d in %q", a.Count.Observed, a.Count.Group); a.Title != want || a.Message == "" && d.FireMode != rules.AbsentInWindow || a.Exchange.EndedNS() >= a.FiredAt.UnixNano() || d.FireMode == rules.AbsentInWindow && (a.Count.Observed >= int64(d.Threshold) || a.Exchange.ExecutionID != "") {
				t.Fatalf("%+v", a)
			}
		}
	})
	for _, mode := range []rules.FireMode{rules.CountInWindow, rules.RatioInWindow, rules.DurationInWindow, rules.AbsentInWindow} {
		if raised[mode] < 2 {
			t.Errorf("%d alerts of %s: the draws hardly tell", raised[mode], mode)
		}
	}
}
