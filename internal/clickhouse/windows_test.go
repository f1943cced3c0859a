package clickhouse_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// watchedSource is a source that records how rules were counted.
type watchedSource struct {
	mu sync.Mutex // guards the numbers of tallies, of which several are asked at once
	*clickhouse.Source
	// untallied makes each tally inexact.
	untallied bool
	// tallies and batches count queries, exact and inexact tallied tenants, and durations and
	// attributes those that were tallied exactly by their durations or attributes.
	tallies, batches, exact, inexact, durations, attributes int
}

func (s *watchedSource) Tally(ctx context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	if s.untallied {
		return counting.Tallies{Inexact: q.Tenants.Names}, nil
	}
	answer, err := s.Source.Tally(ctx, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallies++
	s.inexact += len(answer.Inexact)
	s.exact += len(q.Tenants.Names) - len(answer.Inexact)
	if len(q.LeastNS) > 0 {
		s.durations += len(q.Tenants.Names) - len(answer.Inexact)
	}
	if len(q.Attributes) > 0 {
		s.attributes += len(q.Tenants.Names) - len(answer.Inexact)
	}
	return answer, err
}

func (s *watchedSource) CountWindows(ctx context.Context, windows []counting.Query) (counting.Counted, error) {
	s.batches++
	return s.Source.CountWindows(ctx, windows)
}

// noTexts returns empty texts.
type noTexts struct{}

func (noTexts) Texts(*rules.Rule, *rules.Exchange) (a, b string, _ error) { return "", "", nil }

func (noTexts) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (a, b string, _ error) {
	return "", "", nil
}

// seen is a group as an alert shows it.
type seen struct {
	Observed, Volume             int64
	ShortObserved, ShortVolume   int64
	DurationNS                   int64
	NewestEndedNS, NewestStartNS int64
	NewestID                     string
}

// place returns a name from a small set, so that rules and rows match.
func place() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "a", "a", "a", "b", "ab", "", "\x00\xff", "é*"})
}

func fewNames() *rapid.Generator[[]string] {
	return rapid.SampledFrom([][]string{nil, nil, nil, nil, nil, nil, nil, nil, {"a"}, {"a"}, {"a", "b"}, {"b", "ab"}, {"a*"}, {"*b"}, {"*"}, {"é*", "nowhere"}})
}

// offsets returns offsets at the given seconds before the watermark, and a nanosecond before and
// after each.
func offsets(seconds ...int64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		return -1e9*rapid.SampledFrom(seconds).Draw(t, "seconds") + rapid.Int64Range(-1, 1).Draw(t, "beside")
	})
}

// ends returns offsets at which windows begin and end.
func ends() *rapid.Generator[int64] { return offsets(0, 10, 11, 20, 30, 39, 61, 300) }

// starts are offsets at which reading begins, for windows up to a minute and up to five.
func starts() *rapid.Generator[int64] {
	return offsets(0, 10, 11, 20, 30, 39, 300, 1000, 3660, 3660, 3900, 3900, 4000)
}

// groupings are all groupings of rules; keys of attributes may be any text.
func groupings() []rules.Grouping {
	return []rules.Grouping{
		{},
		{By: rules.GroupByRoute},
		{By: rules.GroupByApplication},
		{By: rules.GroupByEnvironment},
		{By: rules.GroupByErrorType},
		{By: rules.GroupByAttribute, Attribute: "k"},
		{By: rules.GroupByAttribute, Attribute: "it's\n\x00{k}"},
	}
}

// value returns values of an attribute: among them hostile texts, and some that are replaced by
// their SHA-256.
func value() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"a", "a", "a", "b", "", "two\nlines", "\x00\xff", "hex:61", strings.Repeat("é", rules.MaxGroupBytes/2), strings.Repeat("a", rules.MaxGroupBytes) + "b",
		strings.Repeat("10 kB", 2000),
	})
}

func windowRows(tenants []string, watermark int64) *rapid.Generator[[]rules.Exchange] {
	return rapid.Custom(func(t *rapid.T) []rules.Exchange {
		repeats := rapid.Bool().Draw(t, "an exchange may have two rows")
		rows := make([]rules.Exchange, rapid.IntRange(20, 80).Draw(t, "rows"))
		type key struct {
			tenant, environment, application, route, id string
			start                                       int64
		}
		seen := map[key]bool{}
		for i := range rows {
			id := fmt.Sprint(i)
			if repeats {
				id = rapid.SampledFrom([]string{"x", "y", "\x00\xff", id}).Draw(t, "id")
			}
			rows[i] = rules.Exchange{
				TenantID: rapid.SampledFrom(tenants).Draw(t, "tenant"), ExecutionID: id, StartTimeNS: watermark + starts().Draw(t, "start"),
				Environment: place().Draw(t, "environment"), Application: place().Draw(t, "application"), Route: place().Draw(t, "route"),
				Status:    rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
				ErrorType: place().Draw(t, "error type"), ErrorMessage: place().Draw(t, "message"), DurationNS: rapid.Int64Range(0, 3e6).Draw(t, "duration"),
			}
			for _, by := range groupings() {
				if by.By == rules.GroupByAttribute && rapid.IntRange(0, 3).Draw(t, "it has the attribute") > 0 {
					if rows[i].Attributes == nil {
						rows[i].Attributes = map[string]string{}
					}
					rows[i].Attributes[by.Attribute] = value().Draw(t, "attribute")
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "it tells its end") > 0 {
				rows[i].EndTimeNS = new(watermark + ends().Draw(t, "end"))
			}
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "row again") == 0 {
				rows[i] = rows[i-1]
				if rows[i].Status == rules.Running {
					rows[i].Status = rules.Failed
				}
				continue
			}
			e := &rows[i]
			k := key{e.TenantID, e.Environment, e.Application, e.Route, e.ExecutionID, e.StartTimeNS}
			if seen[k] {
				// On insertion, ClickHouse keeps one of several rows with the same sort key.
				e.ExecutionID = fmt.Sprint("row ", i)
			}
			seen[k] = true
		}
		return rows
	})
}

func windowModes() []rules.FireMode {
	return []rules.FireMode{rules.CountInWindow, rules.RatioInWindow, rules.DurationInWindow, rules.AbsentInWindow}
}

func windowRule(tenants []string, watermark int64, usual rules.FireMode, usualBy rules.Grouping) *rapid.Generator[counting.Compiled] {
	return rapid.Custom(func(t *rapid.T) counting.Compiled {
		d := rules.Definition{
			Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Warning, IntervalSeconds: 1, Threshold: 1,
			WindowSeconds: rapid.SampledFrom([]int{10, 11, 20, 30, 39, 39, 39, 61, 300}).Draw(t, "window"),
			Scope:         rules.Scope{Environments: fewNames().Draw(t, "environments"), Applications: fewNames().Draw(t, "applications"), Routes: fewNames().Draw(t, "routes")},
			Filter: rules.Filter{
				Statuses:   rapid.SampledFrom([][]rules.Status{nil, nil, nil, nil, nil, {rules.Failed}, {rules.Completed}, {rules.Completed, rules.Failed}}).Draw(t, "statuses"),
				ErrorTypes: fewNames().Draw(t, "error types"),
			},
		}
		by := usualBy
		if rapid.IntRange(0, 7).Draw(t, "another grouping") == 0 || usualBy == (rules.Grouping{}) {
			by = rapid.SampledFrom(groupings()).Draw(t, "group by")
		}
		d.GroupBy, d.GroupByAttribute = by.By, by.Attribute
		if rapid.IntRange(0, 3).Draw(t, "excludes") == 0 {
			except := rapid.SampledFrom([][]string{nil, {"a"}, {"b", "ab"}, {"*b"}})
			d.Scope.NotEnvironments, d.Scope.NotApplications = except.Draw(t, "not environments"), except.Draw(t, "not applications")
			d.Scope.NotRoutes, d.Filter.NotErrorTypes = except.Draw(t, "not routes"), except.Draw(t, "not error types")
		}
		mode := usual
		if rapid.IntRange(0, 3).Draw(t, "another mode") == 0 {
			mode = rapid.SampledFrom(windowModes()).Draw(t, "mode")
		}
		switch mode { //nolint:exhaustive // counts are there already
		case rules.RatioInWindow:
			d.FireMode, d.Threshold, d.MinVolume = rules.RatioInWindow, 0, rapid.IntRange(1, 3).Draw(t, "volume")
			d.Percent = rapid.SampledFrom([]float64{0.001, 20, 33.334, 50, 100}).Draw(t, "percent")
			d.ShortWindowSeconds = min(d.WindowSeconds-1, rapid.SampledFrom([]int{0, 0, 10, 20, 30}).Draw(t, "short window"))
		case rules.DurationInWindow:
			d.FireMode, d.Threshold, d.MinVolume = rules.DurationInWindow, 0, rapid.IntRange(1, 3).Draw(t, "volume")
			d.Percentile, d.DurationMS = rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile"), rapid.Int64Range(1, 2).Draw(t, "duration")
			d.Filter.Statuses = rapid.SampledFrom([][]rules.Status{{rules.Failed}, {rules.Completed, rules.Failed}, {rules.Completed, rules.Failed}, {rules.Completed, rules.Failed}}).Draw(t, "measured statuses")
		}
		if mode == rules.AbsentInWindow {
			d.FireMode, d.Threshold = rules.AbsentInWindow, rapid.IntRange(1, 3).Draw(t, "expected")
			switch d.GroupBy { //nolint:exhaustive // the others are names
			case rules.GroupByNothing:
			case rules.GroupByAttribute:
				d.Expected = rapid.SliceOfNDistinct(value(), 1, 4, rapid.ID).Draw(t, "expected values")
			default:
				d.Expected = rapid.SliceOfNDistinct(place(), 1, 4, rapid.ID).Draw(t, "expected groups")
			}
		}
		switch rapid.IntRange(0, 19).Draw(t, "part") {
		case 3:
			d.Filter.ErrorMessageNotContains = []string{"b"}
		case 4:
			d.Filter.ErrorMessageNotMatches = []string{"^a"}
		case 5:
			d.Filter.Attributes = []rules.AttributeMatch{{Key: "k", Not: true, Op: rules.AttributeExists}}
		case 0:
			d.Filter.ErrorMessageContains = "a"
		case 1:
			d.Filter.ErrorMessageMatches = "^[a-z]*$"
		case 2:
			d.Filter.MinDurationMS = new(int64(1))
		}
		armed := watermark - 3600e9
		if rapid.IntRange(0, 9).Draw(t, "armed of late") == 0 {
			armed = watermark + ends().Draw(t, "armed")
		}
		rule := &rules.Rule{Definition: d, ID: uuid.New(), TenantID: rapid.SampledFrom(tenants).Draw(t, "tenant"), Version: 1, ArmedSinceNS: armed}
		judge, err := rules.NewJudge(rule)
		if err != nil {
			t.Fatal(err)
		}
		return counting.Compiled{Rule: rule, Judge: judge}
	})
}

// measured are the durations of one group's exchanges: of those that are observed, of those that
// they are compared with, and the same within the short window.
type measured struct {
	observed, volume, shortObserved, shortVolume map[string]int64
	newest                                       rules.Exchange
}

func newMeasured() *measured {
	return &measured{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, rules.Exchange{}}
}

// add adds a row to the exchanges that are observed or compared with.
func add(to map[string]int64, e *rules.Exchange) {
	to[e.ExecutionID] = max(to[e.ExecutionID], e.DurationNS)
}

func (m *measured) observe(e *rules.Exchange, short bool) {
	if former := &m.newest; len(m.observed) == 0 ||
		cmp.Or(cmp.Compare(e.EndedNS(), former.EndedNS()), cmp.Compare(e.StartTimeNS, former.StartTimeNS), cmp.Compare(e.ExecutionID, former.ExecutionID)) > 0 {
		m.newest = *e
	}
	add(m.observed, e)
	if short {
		add(m.shortObserved, e)
	}
}

func (m *measured) compare(e *rules.Exchange, short bool) {
	add(m.volume, e)
	if short {
		add(m.shortVolume, e)
	}
}

// percentile returns the shortest duration that at least p percent of the exchanges do not exceed.
func (m *measured) percentile(p int) int64 {
	durations := slices.Sorted(maps.Values(m.volume))
	for i, d := range durations {
		if 100*(i+1) >= p*len(durations) {
			return d
		}
	}
	return 0
}

// reached reports whether a rule fires.
func (m *measured) reached(d *rules.Definition) bool {
	share := func(part, whole map[string]int64) bool {
		return len(part) > 0 && 100*float64(len(part))/float64(len(whole)) >= d.Percent-1e-9
	}
	switch d.FireMode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return len(m.volume) >= d.MinVolume && share(m.observed, m.volume) && (d.ShortWindowSeconds == 0 || share(m.shortObserved, m.shortVolume))
	case rules.DurationInWindow:
		return len(m.volume) >= d.MinVolume && m.percentile(d.Percentile) >= d.DurationMS*1e6
	default:
		return len(m.observed) >= d.Threshold
	}
}

// countNaively measures what a rule has to see.
func countNaively(t *rapid.T, rule counting.Compiled, rows []rules.Exchange, watermark int64, groups map[string]seen) {
	inScope, err := rules.Compile(rule.Scope, rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}})
	if err != nil {
		t.Fatal(err)
	}
	if rule.FireMode == rules.AbsentInWindow {
		watermark -= lateNaively(rows, watermark)
	}
	all := map[string]*measured{}
	of := func(group string) *measured {
		if all[group] == nil {
			all[group] = newMeasured()
		}
		return all[group]
	}
	whole, ratio := newMeasured(), rule.FireMode == rules.RatioInWindow
	for i := range rows {
		e := &rows[i]
		ended := e.EndedNS()
		if e.TenantID != rule.TenantID || e.Status == rules.Running ||
			ended < max(rule.ArmedSinceNS, watermark-int64(rule.WindowSeconds)*1e9) || ended >= watermark ||
			e.StartTimeNS < counting.StartFromNS(rule.WindowSeconds, watermark) || e.StartTimeNS >= watermark {
			continue
		}
		short := rule.ShortWindowSeconds > 0 && ended >= watermark-int64(rule.ShortWindowSeconds)*1e9
		if rule.Matches(e) && (rule.FireMode != rules.DurationInWindow || e.DurationNS >= rule.DurationMS*1e6) {
			of(rule.Grouping().Of(e)).observe(e, short)
		}
		if ratio && inScope.Match(e) {
			whole.compare(e, short)
		}
		if ratio && inScope.Match(e) && rule.GroupBy != rules.GroupByErrorType || rule.FireMode == rules.DurationInWindow && rule.Matches(e) {
			of(rule.Grouping().Of(e)).compare(e, short)
		}
	}
	if rule.FireMode == rules.AbsentInWindow {
		members := rule.ExpectedGroups()
		if rule.GroupBy == rules.GroupByNothing {
			members = []string{""}
		}
		for _, group := range members {
			if n := len(of(group).observed); n < rule.Threshold && rule.ArmedSinceNS <= watermark-int64(rule.WindowSeconds)*1e9 {
				groups[fmt.Sprint(rule.ID, cursor.Key(group))] = seen{Observed: int64(n)}
			}
		}
		return
	}
	for group, m := range all {
		if ratio && rule.GroupBy == rules.GroupByErrorType {
			m.volume, m.shortVolume = whole.volume, whole.shortVolume
		}
		if !m.reached(&rule.Definition) {
			continue
		}
		s := seen{
			int64(len(m.observed)), int64(len(m.volume)), int64(len(m.shortObserved)), int64(len(m.shortVolume)), 0,
			m.newest.EndedNS(), m.newest.StartTimeNS, m.newest.Key(),
		}
		if rule.FireMode == rules.DurationInWindow {
			s.DurationNS = m.percentile(rule.Percentile)
		}
		groups[fmt.Sprint(rule.ID, cursor.Key(group))] = s
	}
}

// lateNaively returns the lateness of exchanges as measured by a watch at a watermark that also
// looked ten seconds before: ten seconds at least. An exchange whose begin is after its end counts
// from its begin on, so its lateness includes the difference. One that lasted longer than an hour does not count.
func lateNaively(rows []rules.Exchange, watermark int64) (late int64) {
	const tenSeconds = 10e9
	shown := func(at int64) map[int64]map[string]bool {
		ids := map[int64]map[string]bool{}
		for i := range rows {
			e := &rows[i]
			bucket := e.EndedNS() / tenSeconds * tenSeconds
			if e.Status == rules.Running || e.EndedNS() >= watermark-tenSeconds || e.StartTimeNS >= at || e.EndedNS()-e.StartTimeNS > 3600e9 {
				continue
			}
			if ids[bucket] == nil {
				ids[bucket] = map[string]bool{}
			}
			ids[bucket][e.ExecutionID] = true
		}
		return ids
	}
	late = tenSeconds
	before := shown(watermark - tenSeconds)
	for bucket, ids := range shown(watermark) {
		if len(ids) > len(before[bucket]) {
			late = max(late, watermark-bucket)
		}
	}
	return min(late, 900e9)
}

// evaluate returns what each rule raises, by rule and group.
func evaluate(t *rapid.T, ch window.Source, tenants []string, list []counting.Compiled) map[string]seen {
	engine := window.New(window.Options{Source: ch, Texts: noTexts{}, Logger: slog.New(slog.DiscardHandler)})
	// Absence is concluded from the second watch on.
	first := engine.Evaluate(t.Context(), window.Request{
		Request: counting.Request{Tenants: source.Tenants{Names: tenants}, WatermarkNS: base - 10e9, Now: time.Unix(0, base), Over: func() bool { return false }},
		Watches: true,
		Watch:   watch.State{SinceNS: base - 3600e9, UntilNS: base - 20e9},
	})
	if first.SourceErr != nil || first.Watch.UntilNS != base-10e9 {
		t.Fatalf("the first watch fails: %+v, %v", first.Watch, first.SourceErr)
	}
	outcome := engine.Evaluate(t.Context(), window.Request{
		Request: counting.Request{Tenants: source.Tenants{Names: tenants}, WatermarkNS: base, Now: time.Unix(0, base), Over: func() bool { return false }},
		Rules:   list,
		Watches: true,
		Watch:   watch.State{SinceNS: base - 3600e9, UntilNS: base - 10e9},
	})
	if outcome.SourceErr != nil || len(outcome.Failed) > 0 || len(outcome.Evaluated) != len(list) {
		t.Fatalf("%d of %d rules evaluated, %v, %v", len(outcome.Evaluated), len(list), outcome.SourceErr, outcome.Failed)
	}
	t.Logf("the watch came to %+v, and before to %+v", outcome.Watch, first.Watch)
	groups := map[string]seen{}
	for i := range outcome.Changes {
		a := &outcome.Changes[i].Instance
		c := a.Count
		groups[fmt.Sprint(a.RuleID, c.Group)] = seen{
			c.Observed, c.Volume, c.ShortObserved, c.ShortVolume, c.DurationNS, a.Exchange.EndedNS(), a.Exchange.StartTimeNS, a.Exchange.ExecutionID,
		}
	}
	return groups
}

// TestWindowsAgree evaluates random rules of several tenants over random rows, both by tallies and
// by single conditions, and compares both with a count in Go.
func TestWindowsAgree(t *testing.T) {
	t.Parallel()
	db := chtest.New(t)
	// A merge between two counts would remove rows that only one of them saw.
	db.KeepRows(t)
	tallying, asking := &watchedSource{Source: open(t, db)}, &watchedSource{Source: open(t, db), untallied: true}
	tenants := []string{"o'hara", "tenant-1", "tenant-2"}
	byK := rules.Grouping{By: rules.GroupByAttribute, Attribute: "k"}
	draws, compared, partial, long := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		draws++
		rows := windowRows(tenants, base).Draw(rt, "rows")
		if err := db.Conn.Exec(t.Context(), "TRUNCATE TABLE exchanges"); err != nil {
			rt.Fatal(err)
		}
		// In two parts, as the insert would otherwise merge its duplicates.
		for half := range [2]int{} {
			var part []rules.Exchange
			for i := half; i < len(rows); i += 2 {
				part = append(part, rows[i])
			}
			db.Insert(t, part...)
		}
		list := rapid.SliceOfN(windowRule(tenants, base, rapid.SampledFrom(append(windowModes(), rules.DurationInWindow, rules.DurationInWindow)).Draw(rt, "usual mode"), rapid.SampledFrom([]rules.Grouping{{}, {}, byK, byK, {By: rules.GroupByErrorType}}).Draw(rt, "usual grouping")), 24, 24).Draw(rt, "rules")
		want := map[string]seen{}
		for _, rule := range list {
			countNaively(rt, rule, rows, base, want)
			if rule.ArmedSinceNS > base-int64(rule.WindowSeconds)*1e9 {
				partial++
			}
		}
		for _, g := range want {
			if g.NewestEndedNS-g.NewestStartNS > 300e9 {
				long++
			}
		}
		compared += len(want)
		if diff := gocmp.Diff(want, evaluate(rt, tallying, tenants, list)); diff != "" {
			rt.Fatalf("the naive count (-) and tallies (+) differ, exchanges being %v late:\n%s", time.Duration(lateNaively(rows, base)), diff)
		}
		if rapid.IntRange(0, 3).Draw(rt, "by conditions alone as well") > 0 {
			return // the one with tallies sends some conditions, too
		}
		if diff := gocmp.Diff(want, evaluate(rt, asking, tenants, list)); diff != "" {
			rt.Fatalf("the naive count (-) and conditions (+) differ:\n%s", diff)
		}
	})
	t.Logf("%d draws, %d groups, %d partial windows, %d groups newer than their window; %d tenants tallied, %d by duration, %d by attribute, %d not exactly, %d batches",
		draws, compared, partial, long, tallying.exact, tallying.durations, tallying.attributes, tallying.inexact, tallying.batches)
	// Far below the usual numbers: 40 draws vary, and some have none by duration, or only exact
	// ones.
	if tallying.exact < draws/20 || tallying.durations+tallying.attributes+tallying.inexact < draws/20 || asking.batches < draws/20 || compared < draws || partial < draws || long < draws/20 {
		t.Error("the draws hardly tell")
	}
}

// TestArrivalsBeforeTheCutAreThoseOfTheLastWatch stores exchanges with two ends in one bucket, on
// both sides of the cut. What ended before the cut must be what was counted when the cut was the end.
func TestArrivalsBeforeTheCutAreThoseOfTheLastWatch(t *testing.T) {
	t.Parallel()
	db := chtest.New(t)
	db.KeepRows(t)
	ch := open(t, db)
	const bucket = base / 10e9 * 10e9
	row := func(id string, ended int64) rules.Exchange {
		return rules.Exchange{TenantID: "default", ExecutionID: id, StartTimeNS: bucket - 60e9, EndTimeNS: &ended, Status: rules.Failed}
	}
	db.Insert(t, row("twice", bucket+1e9), row("once", bucket+2e9), row("before", bucket-1))
	db.Insert(t, row("twice", bucket+6e9), row("after", bucket+7e9))
	arrivals := func(cut, to int64) watch.Arrivals {
		t.Helper()
		got, err := ch.Arrivals(t.Context(), watch.ArrivalsQuery{
			Tenants: source.Tenants{Names: []string{"default"}}, FromNS: bucket - 100e9, CutNS: cut, ToNS: to, StartFromNS: bucket - 100e9, LongestNS: 3600e9, WidthNS: 10e9,
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	last, now := arrivals(bucket+1e9+1, bucket+5e9), arrivals(bucket+5e9, bucket+10e9)
	if diff := gocmp.Diff(map[int64]int64{bucket - 10e9: 1, bucket: 2}, last.Counts); diff != "" {
		t.Errorf("the last watch:\n%s", diff)
	}
	if diff := gocmp.Diff(last.Counts, now.Before); diff != "" {
		t.Errorf("before the cut:\n%s", diff)
	}
	if diff := gocmp.Diff(map[int64]int64{bucket - 10e9: 1, bucket: 3}, now.Counts); diff != "" {
		t.Errorf("in all:\n%s", diff)
	}
}

// TestLargestGroupsOfWindows has more groups than a window may return.
func TestLargestGroupsOfWindows(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	var rows []rules.Exchange
	for route, n := range map[string]int{"a": 3, "b": 1, "c": 2, "d": 2} {
		for i := range n {
			rows = append(rows, rules.Exchange{
				TenantID: "default", ExecutionID: fmt.Sprint(route, i), StartTimeNS: base - 5e9 + int64(i), EndTimeNS: new(base - 1e9), Route: route, Status: rules.Failed,
			})
		}
	}
	db.Insert(t, rows...)
	w := counting.Query{
		TenantID: "default", FromNS: base - 10e9, ToNS: base, StartFromNS: counting.StartFromNS(10, base), Grouping: rules.Grouping{By: rules.GroupByRoute}, Limit: 2,
	}
	for n := 1; n < 3; n++ {
		got, err := ch.CountWindows(t.Context(), slices.Repeat([]counting.Query{w}, n))
		if err != nil {
			t.Fatal(err)
		}
		for _, groups := range got.Groups {
			want := []counting.Group{
				{Group: "a", Observed: 3, NewestEndedNS: base - 1e9, NewestStartNS: base - 5e9 + 2},
				{Group: "c", Observed: 2, NewestEndedNS: base - 1e9, NewestStartNS: base - 5e9 + 1},
			}
			if diff := gocmp.Diff(want, groups); diff != "" {
				t.Errorf("of %d windows:\n%s", n, diff)
			}
		}
	}
	if _, err := ch.Tally(t.Context(), counting.TallyQuery{
		Tenants: source.Tenants{Names: []string{"default"}}, StartFromNS: w.StartFromNS, FromNS: []int64{w.FromNS}, ToNS: base,
		Statuses: []rules.Status{rules.Failed}, Route: true, Limit: 3,
	}); err == nil {
		t.Error("a tally of more kinds than it may return is no error")
	}
}

// TestSharesAmongManyGroups has more groups with several failures than a rule may have alerts, of which
// none fails often enough, and a group with one failure that does. An open alert ends with the values
// of its group. The rules are counted by a tally, and by their conditions.
func TestSharesAmongManyGroups(t *testing.T) {
	t.Parallel()
	db := chtest.New(t)
	var rows []rules.Exchange
	add := func(route string, failed, completed int) {
		for i := range failed + completed {
			status := rules.Failed
			if i >= failed {
				status = rules.Completed
			}
			rows = append(rows, rules.Exchange{
				TenantID: "default", ExecutionID: fmt.Sprint(route, i), StartTimeNS: base - 5e9 + int64(i), EndTimeNS: new(base - 1e9), Route: route, Status: status, DurationNS: int64(i) * 1e6,
			})
		}
	}
	for i := range 1001 {
		add(fmt.Sprint("r", i), 2, 3)
	}
	long := strings.Repeat("long", 200)
	add("worst", 1, 0)
	for _, route := range []string{"was", "\x00\xff", long} {
		add(route, 1, 3)
	}
	db.Insert(t, rows...)
	shares := func(d *rules.Definition) { d.FireMode, d.Percent, d.MinVolume = rules.RatioInWindow, 50, 1 }
	percentiles := func(d *rules.Definition) {
		// Of the many, two of five last for three milliseconds or more.
		d.FireMode, d.Percentile, d.DurationMS, d.MinVolume = rules.DurationInWindow, 50, 3, 1
		d.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
	}
	for name, c := range map[string]struct {
		mode func(*rules.Definition)
		want []string
	}{
		"shares":      {shares, []string{"clear " + cursor.Key(long) + " 1 of 4", "clear hex:00ff 1 of 4", "clear was 1 of 4", "raise worst 1 of 1"}},
		"percentiles": {percentiles, []string{"clear " + cursor.Key(long) + " 1 of 4", "clear hex:00ff 1 of 4", "clear was 1 of 4"}},
	} {
		for _, untallied := range []bool{false, true} {
			ch := &watchedSource{Source: open(t, db), untallied: untallied}
			r := window.Request{Request: counting.Request{Tenants: source.Tenants{Names: []string{"default"}}, WatermarkNS: base, Now: time.Unix(0, base), Over: func() bool { return false }}}
			for range 8 {
				d := rules.Definition{Enabled: true, Severity: rules.Warning, IntervalSeconds: 1, WindowSeconds: 60, GroupBy: rules.GroupByRoute}
				c.mode(&d)
				rule := &rules.Rule{Definition: d, ID: uuid.New(), TenantID: "default", Version: 1, ArmedSinceNS: base - 3600e9}
				judge, err := rules.NewJudge(rule)
				if err != nil {
					t.Fatal(err)
				}
				r.Rules = append(r.Rules, counting.Compiled{Rule: rule, Judge: judge})
				for _, route := range []string{"was", "\x00\xff", long} {
					r.Open = append(r.Open, alerts.OpenAlert{ID: uuid.New(), RuleID: rule.ID, Group: cursor.Key(route), Open: alerts.Open{State: alerts.Firing, Since: time.Unix(0, base-60e9)}})
				}
			}
			outcome := window.New(window.Options{Source: ch, Texts: noTexts{}, Logger: slog.New(slog.DiscardHandler)}).Evaluate(t.Context(), r)
			if len(outcome.Evaluated) != 8 || len(outcome.Problems) > 0 || outcome.SourceErr != nil {
				t.Fatalf("%s: %d rules evaluated, %v, %v, %v", name, len(outcome.Evaluated), outcome.Problems, outcome.Failed, outcome.SourceErr)
			}
			made := map[uuid.UUID][]string{}
			for _, change := range outcome.Changes {
				n := change.Instance.Count
				made[change.Instance.RuleID] = append(made[change.Instance.RuleID], fmt.Sprintf("%v %s %d of %d", change.Step, n.Group, n.Observed, n.Volume))
			}
			for _, rule := range r.Rules {
				slices.Sort(made[rule.ID])
				slices.Sort(c.want)
				if diff := gocmp.Diff(c.want, made[rule.ID]); diff != "" {
					t.Fatalf("%s, without a tally %v:\n%s", name, untallied, diff)
				}
			}
		}
	}
}

// TestWindowStatementsGolden shows the statements for windows as they are sent.
func TestWindowStatementsGolden(t *testing.T) {
	minimum := int64(100)
	windows := []counting.NewestQuery{
		{
			Query: counting.Query{
				TenantID: "acme", FromNS: base - 60e9, ToNS: base, StartFromNS: counting.StartFromNS(60, base), Grouping: rules.Grouping{By: rules.GroupByRoute}, Limit: 1001,
				Scope: rules.Scope{Applications: []string{"orders", "bill*"}}, Filter: rules.Filter{ErrorMessageMatches: `(?i)refused.*\d$`},
			},
			Groups: []counting.Group{{Group: "it's", Observed: 3, NewestEndedNS: base - 1, NewestStartNS: base - 5}},
		},
		{
			Query: counting.Query{
				TenantID: "o'hara", FromNS: base - 300e9, ToNS: base, StartFromNS: counting.StartFromNS(300, base), Limit: 1001,
				Scope:  rules.Scope{Applications: []string{"shop"}},
				Filter: rules.Filter{Statuses: []rules.Status{rules.Completed}, MinDurationMS: &minimum},
			},
			Groups: []counting.Group{{Observed: 7, NewestEndedNS: base - 2, NewestStartNS: base - 9}},
		},
	}
	ratio := windows[0].Query
	ratio.Mode, ratio.ShortFromNS = rules.RatioInWindow, base-10e9
	duration := windows[1].Query
	duration.Mode, duration.Percentile, duration.LeastNS = rules.DurationInWindow, 95, 2e9
	absent := windows[0].Query
	absent.Mode = rules.AbsentInWindow
	byAttribute := windows[1].Query
	byAttribute.Grouping = rules.Grouping{By: rules.GroupByAttribute, Attribute: "it's"}
	bounded, boundedRatio, boundedDuration := windows[0].Query, ratio, duration
	bounded.Bound, bounded.Open = &alerts.Window{Threshold: 3}, []string{"it's", "hex:00ff", cursor.Key(strings.Repeat("long", 200))}
	boundedRatio.Bound = &alerts.Window{Mode: rules.RatioInWindow, Measure: rules.Measure{Percent: 12.5, MinVolume: 20, ShortWindowSeconds: 10}}
	boundedDuration.Bound = &alerts.Window{Mode: rules.DurationInWindow, Measure: rules.Measure{Percentile: 95, MinVolume: 20}}
	further := [][]counting.Query{{ratio}, {duration}, {absent}, {windows[0].Query, byAttribute}, {bounded, byAttribute}, {boundedRatio, boundedRatio}, {boundedDuration}}
	arrivals := watch.ArrivalsQuery{
		Tenants: source.Tenants{Names: []string{"acme", "o'hara"}, Index: 3, Of: 8}, StartFromNS: counting.StartFromNS(900, base),
		FromNS: base - 900e9, ToNS: base, CutNS: base - 10e9, LongestNS: 3600e9, WidthNS: 10e9,
	}
	tally := counting.TallyQuery{
		Tenants: source.Tenants{Names: []string{"acme", "o'hara"}, Index: 3, Of: 8}, StartFromNS: counting.StartFromNS(60, base),
		FromNS: []int64{base - 60e9, base - 30e9}, ToNS: base, Statuses: []rules.Status{rules.Failed}, Application: true, ErrorType: true, LeastNS: []int64{1e9, 2e9}, Limit: 100_000,
	}
	tallyByAttributes := tally
	tallyByAttributes.Attributes, tallyByAttributes.LeastNS, tallyByAttributes.ErrorType = []string{"customer", "it's"}, nil, false
	for name, m := range map[string]clickhouse.Mapping{"exchanges": clickhouse.Exchanges(), "otel_traces": clickhouse.OtelTraces()} {
		t.Run(name, func(t *testing.T) {
			text, err := clickhouse.WindowStatements(m, []counting.TallyQuery{tally, tallyByAttributes}, windows, further, arrivals)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "windows_"+name+".sql", text)
		})
	}
}

// TestWhatIsComparedIsCountedInOneStatement: two servers may answer two statements, and one of them may lag.
func TestWhatIsComparedIsCountedInOneStatement(t *testing.T) {
	groups, whole, alone := counting.Query{}, counting.Query{Whole: true}, counting.Query{}
	for _, c := range []struct {
		windows []counting.Query
		want    int
	}{
		{[]counting.Query{alone}, 0},
		{[]counting.Query{alone, alone}, 1},
		{[]counting.Query{groups, whole}, 0},
		{[]counting.Query{alone, groups, whole}, 1},
		{[]counting.Query{groups, whole, alone}, 2},
		{[]counting.Query{groups, whole, groups, whole}, 2},
		{[]counting.Query{groups, whole, groups, whole, groups, whole}, 4},
	} {
		if got := clickhouse.MiddleOf(c.windows); got != c.want {
			t.Errorf("%d windows are split at %d, want %d", len(c.windows), got, c.want)
		}
	}
}
