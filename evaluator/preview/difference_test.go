package preview_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/source"
	"tocsin/internal/fault"
	"tocsin/rules"
)

func previewer(h *history) *preview.Previewer {
	return &preview.Previewer{Source: h, Texts: h, Clock: func() time.Time { return h.clock }}
}

func version(d rules.Definition) preview.Request {
	d.Enabled, d.IntervalSeconds = true, 1
	return preview.Request{TenantID: "acme", Definition: d, Last: time.Hour}
}

func ids(list []alerts.Instance) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].Exchange.ExecutionID)
	}
	return out
}

// TestDifferenceNamesWhatAnEditChanges edits the scope of a rule, its kind, and the threshold of
// a window.
func TestDifferenceNamesWhatAnEditChanges(t *testing.T) {
	row := func(id, application string, ago int64) rules.Exchange {
		at := now - ago*second
		return rules.Exchange{TenantID: "acme", ExecutionID: id, Application: application, Status: rules.Failed, StartTimeNS: at, EndTimeNS: &at}
	}
	h := newHistory(row("o1", "orders", 600), row("o2", "orders", 500), row("b1", "billing", 400), row("s1", "shop", 300), row("b2", "billing", 200), row("old", "billing", 4000))
	each := func(s rules.Scope) rules.Definition { return rules.Definition{FireMode: rules.PerExchange, Scope: s} }
	count := func(threshold int, s rules.Scope) rules.Definition {
		return rules.Definition{FireMode: rules.CountInWindow, Threshold: threshold, WindowSeconds: 60, GroupBy: rules.GroupByApplication, Scope: s}
	}
	for name, c := range map[string]struct {
		before, after  rules.Definition
		added, removed string
	}{
		"nothing":        {each(rules.Scope{}), each(rules.Scope{}), "[]", "[]"},
		"another scope":  {each(rules.Scope{Applications: []string{"orders", "shop"}}), each(rules.Scope{NotApplications: []string{"orders"}}), "[b2 b1]", "[o2 o1]"},
		"another kind":   {each(rules.Scope{Applications: []string{"shop"}}), count(1, rules.Scope{Applications: []string{"shop"}}), "[s1]", "[s1]"},
		"the same count": {count(1, rules.Scope{}), count(1, rules.Scope{}), "[]", "[]"},
		"a higher count": {count(1, rules.Scope{}), count(2, rules.Scope{}), "[]", "[b2 s1 b1 o2 o1]"},
		"other groups":   {count(1, rules.Scope{}), count(1, rules.Scope{NotApplications: []string{"b*"}}), "[]", "[b2 b1]"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := previewer(h).Difference(t.Context(), version(c.before), version(c.after))
			if err != nil {
				t.Fatal(err)
			}
			if added, removed := fmt.Sprint(ids(d.Added.Newest)), fmt.Sprint(ids(d.Removed.Newest)); added != c.added || removed != c.removed {
				t.Errorf("added %s, removed %s, want %s and %s", added, removed, c.added, c.removed)
			}
			if d.Truncated || d.CoveredFromNS != d.FromNS || d.Before-d.Removed.Alerts+d.Added.Alerts != d.After {
				t.Errorf("%+v", d)
			}
		})
	}
}

// refusing is a history that refuses the conditions of one application.
type refusing struct {
	*history

	application string
}

func (r refusing) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	if slices.Contains(q.Narrow.Scope.Applications, r.application) {
		return source.Page{}, fault.InvalidFields("the rule", []fault.Field{{Field: "scope", Code: "query_too_long", Message: "Is too long"}})
	}
	return r.history.Scan(ctx, q)
}

// TestDifferenceToARefusedVersion has a source that refuses the condition of one of the two versions.
func TestDifferenceToARefusedVersion(t *testing.T) {
	h := newHistory()
	p := previewer(h)
	p.Source = refusing{h, "long"}
	long, short := rules.Definition{Scope: rules.Scope{Applications: []string{"long"}}}, rules.Definition{}
	for _, c := range []struct {
		before, after rules.Definition
		want          fault.Kind
	}{{long, short, fault.Conflict}, {short, long, fault.Invalid}} {
		c.before.FireMode, c.after.FireMode = rules.PerExchange, rules.PerExchange
		if _, err := p.Difference(t.Context(), version(c.before), version(c.after)); fault.KindOf(err) != c.want {
			t.Errorf("%v to %v: %v", c.before.Scope, c.after.Scope, err)
		}
	}
}

// TestDifferenceAgreesWithPreviews checks that the difference of an edit equals the difference of
// its two previews, and that the reverse edit has the reverse difference.
func TestDifferenceAgreesWithPreviews(t *testing.T) {
	applications := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		var rows []rules.Exchange
		for i := range rapid.IntRange(0, 30).Draw(rt, "rows") {
			at := now - rapid.Int64Range(0, 4000).Draw(rt, "ago")*second
			rows = append(rows, rules.Exchange{
				TenantID: "acme", ExecutionID: fmt.Sprint(i), Application: applications.Draw(rt, "application"), Status: rules.Failed, StartTimeNS: at, EndTimeNS: &at,
			})
		}
		h := newHistory(rows...)
		mode := rapid.SampledFrom([]rules.FireMode{rules.PerExchange, rules.CountInWindow}).Draw(rt, "mode")
		draw := func(label string) preview.Request {
			d := rules.Definition{FireMode: mode, Scope: rules.Scope{NotApplications: rapid.SliceOfN(applications, 0, 2).Draw(rt, label)}}
			if mode == rules.CountInWindow {
				d.Threshold, d.WindowSeconds = rapid.IntRange(1, 3).Draw(rt, label+" threshold"), 60
			}
			return version(d)
		}
		before, after := draw("before"), draw("after")
		there, err := previewer(h).Difference(rt.Context(), before, after)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := previewer(h).Difference(rt.Context(), after, before)
		if err != nil {
			rt.Fatal(err)
		}
		if fmt.Sprint(ids(there.Added.Newest), ids(there.Removed.Newest)) != fmt.Sprint(ids(back.Removed.Newest), ids(back.Added.Newest)) {
			rt.Fatalf("there %+v, back %+v", there, back)
		}
		for _, c := range []struct {
			request preview.Request
			alerts  int64
		}{{before, there.Before}, {after, there.After}} {
			p, err := previewer(h).Preview(rt.Context(), c.request)
			if err != nil || p.Alerts != c.alerts {
				rt.Fatalf("%d alerts in the preview, %d in the difference, %v", p.Alerts, c.alerts, err)
			}
		}
		if there.Before-there.Removed.Alerts+there.Added.Alerts != there.After {
			rt.Fatalf("%+v", there)
		}
	})
}

// TestDifferenceOfAPart compares only what was read for both versions.
func TestDifferenceOfAPart(t *testing.T) {
	var rows []rules.Exchange
	for i := range 100 {
		at := now - int64(i+1)*30*second
		rows = append(rows, rules.Exchange{TenantID: "acme", ExecutionID: fmt.Sprint(i), Application: "a", Status: rules.Failed, StartTimeNS: at, EndTimeNS: &at})
	}
	h := newHistory(rows...)
	h.took = 500 * time.Millisecond
	d, err := previewer(h).Difference(t.Context(), version(rules.Definition{FireMode: rules.PerExchange}), version(rules.Definition{FireMode: rules.PerExchange}))
	if err != nil {
		t.Fatal(err)
	}
	if !d.Truncated || d.CoveredFromNS <= d.FromNS || d.Added.Alerts+d.Removed.Alerts != 0 || d.Before == 0 || d.Before != d.After {
		t.Errorf("%+v", d)
	}
}
