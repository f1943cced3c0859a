package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/notify"
	"tocsin/rules"
)

// countingSource is a source whose clock stands still, and which notes how
// rules were counted.
type countingSource struct {
	*clickhouse.Source
	now                        int64
	tallied, inexact, together int
}

func (s *countingSource) Now(context.Context) (int64, error) { return s.now, nil }

func (s *countingSource) Tally(ctx context.Context, q evaluator.TallyQuery) ([]evaluator.Tally, bool, error) {
	tallies, exact, err := s.Source.Tally(ctx, q)
	if exact {
		s.tallied++
	} else {
		s.inexact++
	}
	return tallies, exact, err
}

func (s *countingSource) CountWindows(ctx context.Context, windows []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	if len(windows) > 1 {
		s.together++
	}
	return s.Source.CountWindows(ctx, windows)
}

// raised is a store of counting rules, none of which has an open alert. It
// keeps what they raise.
type raised struct {
	claims []evaluator.Claim
	counts map[string]evaluator.GroupCount
}

func (r *raised) Load(context.Context, evaluator.ClaimRequest) (evaluator.Loaded, error) {
	return evaluator.Loaded{Claims: r.claims}, nil
}

func (r *raised) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	var done evaluator.Committed
	for _, a := range b.Advances {
		done.Advanced = append(done.Advanced, a.RuleID)
	}
	for i := range b.Changes {
		a := &b.Changes[i].Instance
		r.counts[fmt.Sprint(a.RuleID, a.Count.Group)] = evaluator.GroupCount{Group: a.Count.Group, Observed: a.Count.Observed, NewestNS: a.Exchange.StartTimeNS}
		done.Inserted = append(done.Inserted, a.ID)
	}
	return done, nil
}

func (r *raised) Fail(_ context.Context, claims []evaluator.Claim, problem string) ([]uuid.UUID, error) {
	return nil, fmt.Errorf("%d rules failed: %s", len(claims), problem)
}

func (r *raised) Announce(context.Context, []alerts.Instance) (int, error)  { return 0, nil }
func (r *raised) Clock(context.Context) (time.Time, error)                  { return time.Time{}, nil }
func (r *raised) Publish(context.Context, notify.WakeUp) error              { return nil }
func (r *raised) Texts(*rules.Rule, *rules.Exchange) (a, b string, _ error) { return "", "", nil }

func (r *raised) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (a, b string, _ error) {
	return "", "", nil
}

// place returns names of which there are few, so that rules and rows meet.
func place() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "a", "a", "b", "ab", "", "\x00\xff", "é*"})
}

func fewNames() *rapid.Generator[[]string] {
	return rapid.SampledFrom([][]string{nil, nil, nil, nil, {"a"}, {"a", "b"}, {"b", "ab"}, {"a*"}, {"*b"}, {"*"}, {"é*", "nowhere"}})
}

// offsets are where windows begin and end, and a nanosecond beside.
func offsets() *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		return -1e9*rapid.SampledFrom([]int64{0, 10, 11, 20, 30, 39}).Draw(t, "seconds") + rapid.Int64Range(-1, 1).Draw(t, "beside")
	})
}

func countedRows(tenant string, horizon int64) *rapid.Generator[[]rules.Exchange] {
	return rapid.Custom(func(t *rapid.T) []rules.Exchange {
		repeats := rapid.Bool().Draw(t, "an exchange may have two rows")
		rows := make([]rules.Exchange, rapid.IntRange(5, 40).Draw(t, "rows"))
		for i := range rows {
			id := fmt.Sprint(i)
			if repeats {
				id = rapid.SampledFrom([]string{"x", "y", "\x00\xff", id}).Draw(t, "id")
			}
			rows[i] = rules.Exchange{
				TenantID: tenant, ExecutionID: id, StartTimeNS: horizon + offsets().Draw(t, "start"),
				Environment: place().Draw(t, "environment"), Application: place().Draw(t, "application"), Route: place().Draw(t, "route"),
				Status:    rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
				ErrorType: place().Draw(t, "error type"), ErrorMessage: place().Draw(t, "message"), DurationNS: rapid.Int64Range(0, 3e6).Draw(t, "duration"),
			}
			if rapid.Bool().Draw(t, "it tells its end") {
				rows[i].EndTimeNS = new(horizon + offsets().Draw(t, "end"))
			}
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "row again") == 0 {
				rows[i] = rows[i-1]
				if rows[i].Status == rules.Running {
					rows[i].Status = rules.Failed
				}
			}
		}
		return rows
	})
}

func countingRule(tenant string, horizon int64) *rapid.Generator[rules.Rule] {
	return rapid.Custom(func(t *rapid.T) rules.Rule {
		d := rules.Definition{
			Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Warning, IntervalSeconds: 1, Threshold: 1,
			WindowSeconds: rapid.SampledFrom([]int{10, 11, 20, 30, 39, 39, 39, 40}).Draw(t, "window"),
			GroupBy:       rapid.SampledFrom([]rules.GroupBy{"", rules.GroupByRoute, rules.GroupByApplication, rules.GroupByEnvironment}).Draw(t, "group by"),
			Scope:         rules.Scope{Environments: fewNames().Draw(t, "environments"), Applications: fewNames().Draw(t, "applications"), Routes: fewNames().Draw(t, "routes")},
			Filter: rules.Filter{
				Statuses:   rapid.SampledFrom([][]rules.Status{nil, nil, nil, nil, nil, {rules.Failed}, {rules.Completed}, {rules.Completed, rules.Failed}}).Draw(t, "statuses"),
				ErrorTypes: fewNames().Draw(t, "error types"),
			},
		}
		switch rapid.IntRange(0, 9).Draw(t, "part") {
		case 0:
			d.Filter.ErrorMessageContains = "a"
		case 1:
			d.Filter.ErrorMessageMatches = "^[a-z]*$"
		case 2:
			d.Filter.MinDurationMS = new(int64(1))
		}
		armed := horizon - 3600e9
		if rapid.IntRange(0, 9).Draw(t, "armed of late") == 0 {
			armed = horizon + offsets().Draw(t, "armed")
		}
		return rules.Rule{Definition: d, ID: uuid.New(), TenantID: tenant, Version: 1, ArmedSinceNS: armed}
	})
}

// TestSharedCountsEqualSingleOnes lets random rules be counted together, over
// random rows, and holds each count to what a query of its own says.
func TestSharedCountsEqualSingleOnes(t *testing.T) {
	db := chtest.New(t)
	// A merge between the two counts would drop rows that only one of them saw.
	db.KeepRows(t)
	source := &countingSource{Source: open(t, db), now: base}
	set, compared := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		set++
		tenant := fmt.Sprintf("tenant-%d", set)
		rows := countedRows(tenant, base).Draw(rt, "rows")
		if err := db.Conn.Exec(t.Context(), "TRUNCATE TABLE exchanges"); err != nil {
			rt.Fatal(err)
		}
		// In two parts, or the insert would merge its duplicates.
		for half := range [2]int{} {
			var part []rules.Exchange
			for i := half; i < len(rows); i += 2 {
				part = append(part, rows[i])
			}
			db.Insert(t, part...)
		}
		store := &raised{counts: map[string]evaluator.GroupCount{}}
		want := map[string]evaluator.GroupCount{}
		list := rapid.SliceOfN(countingRule(tenant, base), 20, 20).Draw(rt, "rules")
		var windows []evaluator.WindowQuery
		var largest [][]evaluator.GroupCount
		for _, rule := range list {
			store.claims = append(store.claims, evaluator.Claim{Rule: rule, Token: 1, From: &cursor.Position{StartTimeNS: base - 1}})
			w := evaluator.WindowQuery{
				TenantID: tenant, FromNS: base - int64(rule.WindowSeconds)*1e9, ToNS: base, EndedSinceNS: rule.ArmedSinceNS,
				GroupBy: rule.GroupBy, Scope: rule.Scope, Filter: rule.Filter, Limit: 1000,
			}
			alone, err := source.Source.CountWindows(t.Context(), []evaluator.WindowQuery{w})
			if err != nil {
				rt.Fatal(err)
			}
			largest = append(largest, alone[0][:min(len(alone[0]), 2)])
			w.Limit = 2
			windows = append(windows, w)
			for _, g := range alone[0] {
				key := cursor.Key(g.Group)
				want[fmt.Sprint(rule.ID, key)] = evaluator.GroupCount{Group: key, Observed: g.Observed, NewestNS: g.NewestNS}
			}
		}
		engine, err := evaluator.New(evaluator.Options{
			Source: source, Store: store, Publisher: store, Texts: store, Logger: slog.New(slog.DiscardHandler),
			Clock: time.Now, Replica: "r", ClaimFor: time.Hour, Budget: time.Minute,
		})
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := engine.Tick(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, store.counts); diff != "" {
			rt.Fatalf("alone (-) and together (+) differ:\n%s", diff)
		}
		compared += len(want)
		// The largest groups of each.
		together, err := source.Source.CountWindows(t.Context(), windows)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(largest, together, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("the largest groups, alone (-) and together (+), differ:\n%s", diff)
		}
	})
	t.Logf("%d groups; %d sets tallied, %d not exactly, %d asked together", compared, source.tallied, source.inexact, source.together)
	if source.tallied < set/4 || source.inexact < set/10 || source.together < set || compared < set {
		t.Errorf("the test hardly tells: %d sets of rules", set)
	}
}
