package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"tocsin/cursor"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// Exchanges reads exchanges. Slices may be nil if they are empty.
type Exchanges interface {
	// Search returns exchanges, newest first.
	Search(ctx context.Context, q rules.ExchangeQuery) ([]rules.Exchange, error)
	// Facet returns the most frequent values of a field, the most frequent first.
	Facet(ctx context.Context, q rules.FacetQuery) ([]rules.FacetValue, error)
	// Durations returns how long the newest completed exchanges took.
	Durations(ctx context.Context, q rules.DurationQuery) (rules.Durations, error)
	// Exchange returns the exchange at a position, and whether it exists.
	Exchange(ctx context.Context, tenant string, at cursor.Position) (rules.Exchange, bool, error)
}

const (
	maxSearchRange = 31 * 24 * time.Hour
	maxScopeBytes  = 800
	maxTypeBytes   = 2000
)

// SearchExchanges answers GET /exchanges.
func (s *server) SearchExchanges(ctx context.Context, req SearchExchangesRequestObject) (SearchExchangesResponseObject, error) {
	q, err := s.exchangeQuery(ctx, &req.Params)
	if err != nil {
		return nil, err
	}
	found, err := s.Exchanges.Search(ctx, q)
	if err != nil {
		return nil, fromSource("search exchanges", err)
	}
	answer := SearchExchanges200JSONResponse{Items: make([]Exchange, len(found))}
	for i := range found {
		clean := found[i].Clean()
		answer.Items[i] = exchangeOf(&clean)
		answer.Items[i].ErrorStack = nil
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listExchanges, At: time.Unix(0, last.StartTimeNS).UTC(), Name: idPrefix + hex.EncodeToString([]byte(last.ExecutionID))}
	})
	return answer, err
}

// fromSource turns an error of the source into a 503 answer, with the reason in the log. Without
// its source, Tocsin continues to work, except for requests that read the source directly.
func fromSource(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if fault.KindOf(err) != fault.Internal || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return echo.NewHTTPError(http.StatusServiceUnavailable, "The exchanges cannot be read now; the log shows the reason").SetInternal(err)
}

// idPrefix precedes an execution id in a cursor, because the id may contain any bytes.
const idPrefix = "x"

func (s *server) exchangeQuery(ctx context.Context, p *SearchExchangesParams) (q rules.ExchangeQuery, err error) {
	q = rules.ExchangeQuery{
		TenantID: tenantOf(ctx),
		Scope:    rules.Scope{Environments: deref(p.Environment), Applications: deref(p.Application), Routes: deref(p.Route)},
		Filter:   rules.Filter{ErrorTypes: deref(p.ErrorType), ErrorMessageContains: deref(p.Q)},
	}
	if q.Limit, err = limitOf(p.Limit); err != nil {
		return q, err
	}
	for _, status := range deref(p.Status) {
		q.Filter.Statuses = append(q.Filter.Statuses, rules.Status(status))
	}
	if len(q.Filter.Statuses) == 0 {
		q.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return q, fmt.Errorf("search exchanges: %w", err)
	}
	if q.FromNS, q.ToNS, err = searchRange(now, p.From, p.To); err != nil {
		return q, err
	}
	if q.Before, err = exchangeMark(p.Cursor); err != nil {
		return q, err
	}
	_, statusErr := oneOf("status", &q.Filter.Statuses, rules.Completed, rules.Failed)
	return q, cmp.Or(statusErr, scopeFault(&q.Scope), texts("errorType", q.Filter.ErrorTypes, maxTypeBytes), texts("q", []string{deref(p.Q)}, maxTextBytes))
}

func scopeFault(s *rules.Scope) error {
	return cmp.Or(patterns("environment", s.Environments), patterns("application", s.Applications), patterns("route", s.Routes))
}

// patterns refuses names with wildcards that ClickHouse cannot compare.
func patterns(parameter string, names []string) error {
	for _, name := range names {
		if strings.Count(name, "*") > rules.MaxWildcards {
			return invalidField(parameter, "out_of_range", fmt.Sprintf("Must have at most %d wildcards", rules.MaxWildcards))
		}
	}
	return texts(parameter, names, maxScopeBytes)
}

// searchRange returns the range of start times of a search. It ends now by default.
func searchRange(now time.Time, from, to *time.Time) (fromNS, toNS int64, err error) {
	end := now
	if to != nil {
		end = *to
	}
	begin := end.Add(-defaultHours * time.Hour)
	if from != nil {
		begin = *from
	}
	switch {
	case end.Before(begin):
		return 0, 0, invalidField("to", "range", "Must not be before from")
	case end.Sub(begin) > maxSearchRange:
		return 0, 0, invalidField("from", "range", fmt.Sprintf("Must be at most %d days before to", int(maxSearchRange.Hours()/24)))
	case begin.Year() < 1970 || end.Year() > 2200:
		return 0, 0, invalidField("from", "range", "Must lie between the years 1970 and 2200")
	}
	return begin.UnixNano(), end.UnixNano(), nil
}

func exchangeMark(text *string) (*cursor.Position, error) {
	m, err := decodeMark(listExchanges, text)
	if err != nil || m == nil {
		return nil, err
	}
	id, err := hex.DecodeString(strings.TrimPrefix(m.Name, idPrefix))
	if err != nil {
		return nil, invalidField("cursor", "malformed", "Must be a cursor of this list; begin without a cursor")
	}
	return &cursor.Position{StartTimeNS: m.At.UnixNano(), ExecutionID: string(id)}, nil
}

// ListExchangeFacets answers GET /exchanges/facets.
func (s *server) ListExchangeFacets(ctx context.Context, req ListExchangeFacetsRequestObject) (ListExchangeFacetsResponseObject, error) {
	p := &req.Params
	field, err := oneOf("field", &[]rules.Facet{rules.Facet(p.Field)},
		rules.FacetEnvironment, rules.FacetApplication, rules.FacetRoute, rules.FacetErrorType, rules.FacetAttribute)
	if err != nil {
		return nil, err
	}
	last, err := hoursOf(p.Hours)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(p.Limit)
	if err != nil {
		return nil, err
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, fmt.Errorf("list values: %w", err)
	}
	q := rules.FacetQuery{
		TenantID: tenantOf(ctx), Field: field[0], FromNS: now.Add(-last).UnixNano(), ToNS: now.UnixNano(), Prefix: deref(p.Prefix), Limit: limit,
		Scope: rules.Scope{Environments: deref(p.Environment), Applications: deref(p.Application)},
	}
	if err := cmp.Or(scopeFault(&q.Scope), texts("prefix", []string{q.Prefix}, maxScopeBytes)); err != nil {
		return nil, err
	}
	found, err := s.Exchanges.Facet(ctx, q)
	if err != nil {
		return nil, fromSource("list values", err)
	}
	answer := ListExchangeFacets200JSONResponse{Items: make([]FacetValue, len(found))}
	for i, v := range found {
		answer.Items[i] = FacetValue{Value: rules.CleanText(v.Value, maxNameBytes), Count: v.Count}
	}
	return answer, nil
}

// exchange reads the exchange that a request names.
func (s *server) exchange(ctx context.Context, ref *ExchangeRef) (rules.Exchange, error) {
	// Outside these years, nanoseconds do not fit into an int64.
	if y := ref.StartTime.Year(); y < 1970 || ref.StartTime.After(time.Unix(0, math.MaxInt64)) {
		return rules.Exchange{}, invalidField("exchange.startTime", "range", "Must lie between the years 1970 and 2200")
	}
	e, there, err := s.Exchanges.Exchange(ctx, tenantOf(ctx), cursor.Position{StartTimeNS: ref.StartTime.UnixNano(), ExecutionID: ref.ExecutionID})
	if err != nil {
		return e, fromSource("read exchange", err)
	}
	if !there {
		return e, fault.New(fault.NotFound, "no such exchange; check its ID and its start time")
	}
	return e, nil
}

const (
	// usualWithin is the time before an exchange whose exchanges show what is usual for its route.
	// The newest mostUsual of them are used, if there are at least leastUsual.
	usualWithin = 24 * time.Hour
	mostUsual   = 10_000
	leastUsual  = 20
	// usualTimeout bounds the query, because the answer is not worth a long wait.
	usualTimeout = 3 * time.Second
)

// GetUsualDuration answers GET /alerts/{id}/usual-duration.
func (s *server) GetUsualDuration(ctx context.Context, req GetUsualDurationRequestObject) (GetUsualDurationResponseObject, error) {
	a, err := s.Inbox.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get alert: %w", err)
	}
	answer := GetUsualDuration200JSONResponse{}
	e := &a.Exchange
	if exchangeAnswer(&a) == nil || e.Route == "" {
		return answer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, usualTimeout)
	defer cancel()
	found, err := s.Exchanges.Durations(ctx, rules.DurationQuery{
		TenantID: tenantOf(ctx), FromNS: e.StartTimeNS - usualWithin.Nanoseconds(), ToNS: e.StartTimeNS,
		Application: e.Application, Route: e.Route, Environment: e.Environment, Limit: mostUsual,
	})
	if err != nil {
		return nil, fromSource("read usual duration", err)
	}
	answer.Exchanges = found.Exchanges
	if found.Exchanges >= leastUsual {
		median, p95 := strconv.FormatInt(found.MedianNS, 10), strconv.FormatInt(found.P95NS, 10)
		answer.MedianNs, answer.P95Ns = &median, &p95
	}
	return answer, nil
}
