package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tocsin/internal/access"
)

// TestEveryOperationAnswersAsDescribed makes each operation succeed and fail once on a real
// replica. The responses are checked against the description; this test also checks that everything
// described occurs.
func TestEveryOperationAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tries := s.tries()
	stranger := newCaller(t, s.base)
	for _, op := range operations(t) {
		if op.ID == "setUp" { // which TestTheFirstAdministratorIsMadeOnce does
			continue
		}
		call := s.success(op, tries)
		if got := call.by.do(op.method, call.path, call.body, call.header...); got.status >= http.StatusMultipleChoices {
			t.Errorf("%s does not succeed: %d %v", op.ID, got.status, got.body)
		}
		got := stranger.do(op.method, strings.ReplaceAll(op.path, "{id}", s.newID().String())+"?no-such-parameter=1", "no JSON")
		if got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s does not fail as described: %d %v", op.ID, got.status, got.body)
		}
	}
}

// issue returns the parameters that identify the issue of the stage's alert.
func (s *stage) issue() string {
	s.t.Helper()
	alert := s.admin.must(http.StatusOK, http.MethodGet, "/alerts/"+s.ids["alerts"], nil)
	exchange, _ := alert.body["exchange"].(map[string]any)
	named := url.Values{"signature": {alert.text("signature")}}
	for _, part := range []string{"application", "route"} {
		value, _ := exchange[part].(string)
		named.Set(part, value)
	}
	return "?" + named.Encode()
}

// exchange returns the parameter that identifies the exchange of the stage's alert.
func (s *stage) exchange() string {
	s.t.Helper()
	alert := s.admin.must(http.StatusOK, http.MethodGet, "/alerts/"+s.ids["alerts"], nil)
	exchange, _ := alert.body["exchange"].(map[string]any)
	id, _ := exchange["executionId"].(string)
	return "?" + url.Values{"executionId": {id}}.Encode()
}

// success returns a successful call of an operation.
func (s *stage) success(op operation, tries map[string]func() try) try {
	s.t.Helper()
	var call try
	if prepare, changes := tries[op.ID]; changes {
		call = prepare()
	} else {
		collection, _, _ := strings.Cut(op.path, "{id}")
		call.path = strings.ReplaceAll(op.path, "{id}", s.ids[strings.Trim(collection, "/")]) + map[string]string{
			"groupAlerts": "?by=rule", "listExchangeFacets": "?field=route", "getIssue": s.issue(), "listIssueNotes": s.issue(), "explainExchange": s.exchange(),
		}[op.ID]
	}
	if call.by == nil {
		call.by = s.admin
	}
	if op.Role == access.Anyone && op.method == http.MethodGet {
		call.by = newCaller(s.t, s.base)
	}
	return call
}
