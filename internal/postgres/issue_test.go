package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/rules"
)

func TestIssueShowsStatesOfItsAlerts(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: 50 * time.Hour},
		raised{id: "2", severity: "CRITICAL", application: "orders", route: "import", error: "Refused", ago: 49 * time.Hour},
		raised{id: "3", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: 30 * time.Hour},
		raised{id: "4", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: 5*time.Hour + time.Minute},
		raised{id: "5", severity: "WARNING", application: "orders", route: "import", error: "Refused", ago: time.Minute},
		raised{id: "6", severity: "CRITICAL", application: "billing", route: "import", error: "Refused", ago: time.Minute},
		raised{id: "7", severity: "CRITICAL", application: "orders", route: "import", error: "Timeout", ago: time.Hour},
		raised{id: "8", severity: "CRITICAL", application: "orders", route: "export", error: "Refused", ago: time.Hour},
	)
	// The first is resolved only after the third fired, so the third is no regression, but the
	// fourth is one. The fourth is not resolved, so the fifth is none.
	for id, ago := range map[string]string{"1": "20 hours", "2": "48 hours", "3": "10 hours"} {
		if _, err := conn.Exec(t.Context(), `update alert set state = 'RESOLVED', resolved_at = now() - $2::interval, resolved_by = 'ada' where alert_id = $1`,
			alertID(id), ago); err != nil {
			t.Fatal(err)
		}
	}
	inbox := db.Inbox()
	key := api.IssueKey{Application: "orders", Route: "import", Signature: "Refused"}
	got, err := inbox.Issue(t.Context(), tenant, key)
	if err != nil {
		t.Fatal(err)
	}
	if got.Severity != rules.Critical || got.Counts != (alerts.Counts{Firing: 2, Resolved: 3}) {
		t.Errorf("%s, %+v", got.Severity, got.Counts)
	}
	if first, newest := time.Since(got.FirstAt), time.Since(got.NewestAt); first < 50*time.Hour || first > 51*time.Hour || newest > time.Hour {
		t.Errorf("first %s ago, newest %s ago", first, newest)
	}
	if got.Hours[alerts.TrendHours-1] != 1 || got.Hours[alerts.TrendHours-6] != 1 {
		t.Errorf("hours %v", got.Hours)
	}
	if days := got.Days; days[api.IssueDays-1] != 2 || days[api.IssueDays-2] != 1 || days[api.IssueDays-3] != 2 {
		t.Errorf("days %v", days)
	}
	if len(got.Rules) != 1 || got.Rules[0].Alerts != 5 || got.Rules[0].Name != "rule" {
		t.Errorf("rules %+v", got.Rules)
	}
	if got.RegressionCount != 1 || len(got.Regressions) != 1 || got.Regressions[0].AlertID != alertID("4") {
		t.Errorf("%d regressions: %+v", got.RegressionCount, got.Regressions)
	} else if after := got.Regressions[0].At.Sub(got.Regressions[0].ResolvedAt); after < 4*time.Hour || after > 6*time.Hour {
		t.Errorf("seen again %s after it was resolved", after)
	}
	if last := got.LastResolution; last == nil || last.AlertID != alertID("3") || last.By != "ada" {
		t.Errorf("last resolution %+v", last)
	}
	if got.PlaceCount != 3 || got.Places[0].Application != "orders" || got.Places[0].Route != "import" || got.Places[0].Alerts != 5 || got.Places[0].Firing != 2 {
		t.Errorf("places %+v", got.Places)
	}

	for name, key := range map[string]api.IssueKey{
		"signature": {Application: "orders", Route: "import", Signature: "refused"},
		"route":     {Application: "orders", Route: "imports", Signature: "Refused"},
	} {
		if _, err := inbox.Issue(t.Context(), tenant, key); fault.KindOf(err) != fault.NotFound {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := inbox.Issue(t.Context(), "another", key); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of another tenant: %v", err)
	}
}

func TestAnIssueWithoutAnErrorHasNoOtherPlaces(t *testing.T) {
	db, conn := inboxOf(t)
	insert(t, conn,
		raised{id: "1", severity: "INFO", application: "orders", route: "import"},
		raised{id: "2", severity: "INFO", application: "billing", route: "import"},
	)
	got, err := db.Inbox().Issue(t.Context(), tenant, api.IssueKey{Application: "orders", Route: "import"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Counts.Firing != 1 || got.Places != nil || got.LastResolution != nil || got.Regressions != nil || got.Rules[0].ID == (uuid.UUID{}) {
		t.Errorf("%+v", got)
	}
}
