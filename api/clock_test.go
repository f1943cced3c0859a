package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"tocsin/api"
)

// TestTimesAreJudgedByTheClockOfTheStore has a replica whose clock is an hour behind.
func TestTimesAreJudgedByTheClockOfTheStore(t *testing.T) {
	now := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	b := newBench(t, func(o *api.Options) {
		o.Clock = func(context.Context) (time.Time, error) { return now, nil }
	})
	b.do(http.MethodGet, "/api/v1/exchanges", "").want(http.StatusOK)
	if got := b.past.search.ToNS; got != now.UnixNano() {
		t.Errorf("a search ends %v before the present", time.Duration(now.UnixNano()-got))
	}
	b.do(http.MethodGet, "/api/v1/exchanges/facets?field=route", "").want(http.StatusOK)
	if got := b.past.facet.ToNS; got != now.UnixNano() {
		t.Errorf("values end %v before the present", time.Duration(now.UnixNano()-got))
	}
	b.do(http.MethodGet, "/api/v1/exchanges/explain?executionId=gone", "").problem(http.StatusNotFound, "not_found")
	if got := b.past.search.ToNS; got != now.UnixNano() {
		t.Errorf("an exchange to be explained is searched until %v before the present", time.Duration(now.UnixNano()-got))
	}
	p := b.do(http.MethodPost, "/api/v1/tokens", `{"name":"n","role":"viewer","expiresAt":"`+now.Add(-time.Minute).UTC().Format(time.RFC3339)+`"}`).problem(http.StatusBadRequest, "invalid")
	if len(p.Errors) != 1 || p.Errors[0].Field != "expiresAt" {
		t.Errorf("a token that has expired: %+v", p.Errors)
	}
}
