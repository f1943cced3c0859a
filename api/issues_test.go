package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/rules"
)

func (m *bulkMemory) Issue(_ context.Context, _ string, key api.IssueKey) (api.IssueRecord, error) {
	m.issue = key
	if key.Application == "nothing" {
		return api.IssueRecord{}, fault.New(fault.NotFound, "no such issue")
	}
	rule, alert := uuid.UUID{15: 1}, uuid.UUID{15: 2}
	record := api.IssueRecord{
		Severity: rules.Critical, Counts: alerts.Counts{Firing: 3, Acknowledged: 2, Resolved: 1},
		FirstAt: instant().Add(-time.Hour), NewestAt: instant(),
		Rules:           []api.IssueRule{{ID: rule, Name: "orders", Alerts: 6}},
		Places:          []api.IssuePlace{{Application: "orders", Route: "import", Alerts: 6, Firing: 3, NewestAt: instant()}},
		PlaceCount:      7,
		LastResolution:  &api.IssueResolution{AlertID: alert, At: instant(), By: "ada"},
		Regressions:     []api.IssueRegression{{AlertID: alert, At: instant(), ResolvedAt: instant().Add(-time.Minute)}},
		RegressionCount: 4,
	}
	record.Hours[alerts.TrendHours-1], record.Days[api.IssueDays-1] = 1, 6
	return record, nil
}

func TestAnIssueIsToldAsAWhole(t *testing.T) {
	b := newBench(t)
	got := into[api.Issue](b.do("GET", "/api/v1/alerts/issue?application=orders&route=import&signature=T%3A+refused", "").want(200))
	if want := (api.IssueKey{Application: "orders", Route: "import", Signature: "T: refused"}); b.bulk.issue != want {
		t.Errorf("asked for %+v, want %+v", b.bulk.issue, want)
	}
	by := "ada"
	want := api.Issue{
		Application: "orders", Route: "import", Signature: "T: refused", Severity: rules.Critical,
		Count: 6, Firing: 3, Acknowledged: 2, Resolved: 1, FirstAt: instant().Add(-time.Hour), NewestAt: instant(),
		Trend: make([]int64, alerts.TrendHours), Days: make([]int64, api.IssueDays),
		Rules:           []api.IssueRuleCount{{RuleID: uuid.UUID{15: 1}, RuleName: "orders", Count: 6}},
		Places:          []api.IssuePlaceCount{{Application: "orders", Route: "import", Count: 6, Firing: 3, NewestAt: instant()}},
		PlaceCount:      7,
		LastResolution:  &api.Resolution{AlertID: uuid.UUID{15: 2}, At: instant(), By: &by},
		Regressions:     []api.Regression{{AlertID: uuid.UUID{15: 2}, At: instant(), ResolvedAt: instant().Add(-time.Minute)}},
		RegressionCount: 4,
	}
	want.Trend[alerts.TrendHours-1], want.Days[api.IssueDays-1] = 1, 6
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// Alerts without an error have an empty signature, which is one nevertheless.
	b.do("GET", "/api/v1/alerts/issue?application=orders&route=import&signature=", "").want(200)
	if b.bulk.issue.Signature != "" {
		t.Errorf("asked for %+v", b.bulk.issue)
	}
	b.do("GET", "/api/v1/alerts/issue?application=nothing&route=import&signature=T", "").problem(404, "not_found")
	b.do("GET", "/api/v1/alerts/issue?application=orders&route=import", "").problem(400, "invalid")
}
