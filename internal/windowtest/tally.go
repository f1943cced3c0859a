package windowtest

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// TallyLaw holds that a source tallies what insert has given it: an exchange with rows of two kinds counts in both, and its
// tenant is inexact; one that is stored twice counts once; an answer with more tallies than its limit is an error.
func TallyLaw(t *testing.T, counted counting.Source, insert func(list ...rules.Exchange)) {
	t.Helper()
	const end = Watermark - 5*Second
	row := func(tenant, id, route, region string) rules.Exchange {
		ended := end
		return rules.Exchange{
			TenantID: tenant, ExecutionID: id, Application: "orders", Route: route, Status: rules.Failed, Attributes: map[string]string{"region": region},
			StartTimeNS: end - Second, EndTimeNS: &ended, DurationNS: Second,
		}
	}
	insert(row("tenant-a", "1", "erp", "eu"), row("tenant-a", "1", "crm", "eu"), row("tenant-a", "2", "erp", "us"), row("tenant-b", "3", "erp", "eu"), row("tenant-b", "3", "erp", "eu"))
	type kind struct {
		tenant, route, group string
		observed             int64
	}
	for name, test := range map[string]struct {
		change  func(q *counting.TallyQuery)
		want    []kind
		inexact []string
		tooMany bool
	}{
		"by tenant": {
			func(*counting.TallyQuery) {}, []kind{{"tenant-a", "", "", 2}, {"tenant-b", "", "", 1}}, nil, false,
		},
		"by route": {
			func(q *counting.TallyQuery) { q.Route = true },
			[]kind{{"tenant-a", "crm", "", 1}, {"tenant-a", "erp", "", 2}, {"tenant-b", "erp", "", 1}},
			[]string{"tenant-a"},
			false,
		},
		"by attribute": {
			func(q *counting.TallyQuery) { q.Attributes = []string{"region"} },
			[]kind{{"tenant-a", "", "eu", 1}, {"tenant-a", "", "us", 1}, {"tenant-b", "", "eu", 1}},
			nil, false,
		},
		"of one tenant": {
			func(q *counting.TallyQuery) { q.Route, q.Tenants.Names = true, []string{"tenant-b"} }, []kind{{"tenant-b", "erp", "", 1}}, nil, false,
		},
		"more than the limit": {func(q *counting.TallyQuery) { q.Route, q.Limit = true, 1 }, nil, nil, true},
		"nothing":             {func(q *counting.TallyQuery) { q.FromNS, q.StartFromNS, q.Limit = []int64{q.ToNS}, q.ToNS, 1 }, nil, nil, false},
	} {
		q := counting.TallyQuery{
			Tenants: source.Tenants{Names: []string{"tenant-a", "tenant-b"}}, StartFromNS: Watermark - 7200*Second,
			FromNS: []int64{Watermark - 60*Second}, ToNS: Watermark, Statuses: []rules.Status{rules.Failed}, Limit: 100,
		}
		test.change(&q)
		answer, err := counted.Tally(t.Context(), q)
		if test.tooMany || err != nil {
			if !errors.Is(err, source.ErrTooMuch) || !test.tooMany {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var got []kind
		for _, y := range answer.Tallies {
			got = append(got, kind{y.TenantID, y.Route, y.Group, y.Observed})
		}
		slices.SortFunc(got, func(a, b kind) int {
			return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.route, b.route), cmp.Compare(a.group, b.group))
		})
		for i := range test.want {
			if len(test.want[i].group) > 0 {
				test.want[i].group = rules.AttributeGroup(test.want[i].group)
			}
		}
		if !slices.Equal(got, test.want) || !slices.Equal(answer.Inexact, test.inexact) {
			t.Errorf("%s: %v, inexact %v, want %v and %v", name, got, answer.Inexact, test.want, test.inexact)
		}
	}
}
