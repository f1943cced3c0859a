package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestExplainListsEachRule checks the request, and what is printed of the response.
func TestExplainListsEachRule(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		if r.URL.Query().Get("executionId") == "gone" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"title":"Not Found","type":"about:blank","code":"not_found","requestId":"r","detail":"no exchange with this id"}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"exchange":{"executionId":"a/b","application":"orders","route":"in","environment":"live","status":"FAILED","startTime":"2026-11-21T07:02:00.123456789Z"},
			"rules":[{"ruleName":"Orders","verdict":"ALERTED","detail":"It has an alert.","alertId":"6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a00"},
				{"ruleName":"Late","verdict":"BEYOND_LOOK_BACK","detail":"Too late."},
				{"ruleName":"Invoices","verdict":"NOT_ARMED","detail":"Not armed.","unmet":[]},
				{"ruleName":"Stock","verdict":"NOT_ARMED","detail":"Not armed.","unmet":["scope.routes"]},
				{"ruleName":"Billing","verdict":"NOT_MATCHED","detail":"No.","unmet":["scope.applications","filter.attributes[0]"]}],
			"counts":[{"verdict":"ALERTED","rules":1},{"verdict":"BEYOND_LOOK_BACK","rules":1},{"verdict":"NOT_ARMED","rules":2},{"verdict":"NOT_MATCHED","rules":4}]}`))
	}))
	t.Cleanup(server.Close)
	start := time.Date(2026, 11, 21, 7, 2, 0, 123456789, time.UTC)
	command := explainExchange{serverFlags: serverFlags{URL: server.URL}, ExecutionID: "a/b", Hours: 48, StartTime: &start}
	var out strings.Builder
	if err := command.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if asked != "/api/v1/exchanges/explain?executionId=a%2Fb&startTime=2026-11-21T07%3A02%3A00.123456789Z&hours=48" {
		t.Errorf("asked %s", asked)
	}
	for _, part := range []string{"a/b: orders · in in live, FAILED", "Orders    ALERTED           It has an alert. Alert 6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a00.", "Too late.", "2026-11-21T07:02:00.123456789Z", "Invoices  NOT_ARMED", "conditions of 5 other rules; --all"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("missing: %q in\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "Billing") || strings.Contains(out.String(), "Stock") {
		t.Errorf("a rule without a match is listed:\n%s", out.String())
	}
	out.Reset()
	command.All = true
	if err := command.Run(t.Context(), &out); err != nil || !strings.Contains(out.String(), "Not met: scope.applications, filter.attributes[0].") || strings.Contains(out.String(), "--all") {
		t.Errorf("%v, all:\n%s", err, out.String())
	}
	command.ExecutionID = "gone"
	if err := command.Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "no exchange") || strings.Contains(err.Error(), "TOCSIN_URL") {
		t.Errorf("gone: %v", err)
	}
}

// TestExplainWithoutARuleToList explains an exchange whose conditions no rule meets, and one
// without any rules: there is no table then.
func TestExplainWithoutARuleToList(t *testing.T) {
	for counts, want := range map[string]string{
		`{"verdict":"NOT_MATCHED","rules":1}`: "It does not meet the conditions of 1 rule; --all lists it.",
		`{"verdict":"NOT_MATCHED","rules":2}`: "It does not meet the conditions of 2 rules; --all lists them.",
		``:                                    "There are no rules.",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"exchange":{"executionId":"a","application":"orders","route":"in","environment":"","status":"FAILED","startTime":"2026-11-21T07:02:00Z"},
				"rules":[],"counts":[` + counts + `]}`))
		}))
		t.Cleanup(server.Close)
		command := explainExchange{serverFlags: serverFlags{URL: server.URL}, ExecutionID: "a", Hours: 24}
		var out strings.Builder
		if err := command.Run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if got, whole := out.String(), "a: orders · in, FAILED, started 2026-11-21T07:02:00Z\n\n"+want+"\n"; got != whole {
			t.Errorf("%q, want %q", got, whole)
		}
	}
}
