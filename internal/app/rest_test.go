package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"tocsin/api"
	"tocsin/internal/app"
)

// contract checks the API's responses against its description.
type contract struct{ routes routers.Router }

func newContract(tb testing.TB) *contract {
	tb.Helper()
	routes, err := describedRoutes()
	if err != nil {
		tb.Fatal(err)
	}
	return &contract{routes}
}

// describedRoutes reads the description once: with the race detector that takes longer than most tests.
var describedRoutes = sync.OnceValues(func() (routers.Router, error) { //nolint:gochecknoglobals // The tests of one process share it.
	description, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(description)
})

// hold fails the test if a response does not match the description.
func (c *contract) hold(tb testing.TB, method, path string, answer *httptest.ResponseRecorder) {
	tb.Helper()
	req := httptest.NewRequestWithContext(context.Background(), method, "/api/v1"+path, nil)
	route, parameters, err := c.routes.FindRoute(req)
	if err != nil {
		return // not an operation
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: parameters},
		Status:                 answer.Code, Header: answer.Header(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		tb.Errorf("%s %s: the answer is not as described: %v\n%s", method, path, err, answer.Body)
	}
}

// rest is the API of a replica that neither evaluates nor delivers.
type rest struct {
	t        testing.TB
	base     string
	contract *contract
}

func (w *world) rest() *rest {
	w.t.Helper()
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	return &rest{w.t, base, newContract(w.t)}
}

// do makes a request with a JSON body, if any, and checks the status. Header contains alternating
// names and values.
func (r *rest) do(status int, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	answer := recorded(r.t, got)
	if answer.Code != status {
		r.t.Fatalf("%s %s: status %d, want %d: %s", method, path, answer.Code, status, answer.Body)
	}
	r.contract.hold(r.t, method, path, answer)
	return answer
}

// recorded reads a response completely.
func recorded(tb testing.TB, r *http.Response) *httptest.ResponseRecorder {
	tb.Helper()
	defer r.Body.Close() //nolint:errcheck // read to its end below
	answer := httptest.NewRecorder()
	maps.Copy(answer.Header(), r.Header)
	answer.WriteHeader(r.StatusCode)
	if _, err := io.Copy(answer, r.Body); err != nil {
		tb.Fatal(err)
	}
	return answer
}

// answerOf decodes a body.
func answerOf[T any](tb testing.TB, w *httptest.ResponseRecorder) T {
	tb.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		tb.Fatalf("%v: %s", err, w.Body)
	}
	return v
}
