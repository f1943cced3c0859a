// Package apitest checks responses of the API against its description.
//
// The schema of a body is compiled once for a process. With the race detector, compiling it takes longer than most requests.
package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"tocsin/api"
)

// Hold fails the test if the response to a request is not as described. It ignores requests that are no operation.
func Hold(tb testing.TB, r *http.Request, answer *httptest.ResponseRecorder) {
	tb.Helper()
	d, err := described()
	if err != nil {
		tb.Fatal(err)
	}
	if err := d.check(r, answer); err != nil {
		tb.Errorf("%s %s: the answer is not as described: %v\n%s", r.Method, r.URL, err, answer.Body)
	}
}

// description is the API's description.
type description struct {
	routes routers.Router

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// resource is what the description is called within the compiler.
const resource = "api.json"

var described = sync.OnceValues(func() (*description, error) { //nolint:gochecknoglobals // The tests of one process share it.
	specification, err := api.GetSpec()
	if err != nil {
		return nil, err
	}
	routes, err := legacy.NewRouter(specification)
	if err != nil {
		return nil, err
	}
	text, err := api.GetSpecJSON()
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(resource, document); err != nil {
		return nil, err
	}
	return &description{routes: routes, compiler: compiler, schemas: map[string]*jsonschema.Schema{}}, nil
})

func (d *description) check(r *http.Request, answer *httptest.ResponseRecorder) error {
	route, parameters, err := d.routes.FindRoute(r)
	if err != nil {
		return nil //nolint:nilerr // not an operation
	}
	// Status and headers. A body without a described schema is checked here as well.
	location, isJSON := schemaOf(route, answer)
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: parameters},
		Status:                 answer.Code, Header: answer.Header(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: isJSON},
	})
	if err != nil || !isJSON {
		return err
	}
	schema, err := d.schema(location)
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer.Body.Bytes()))
	if err != nil {
		return fmt.Errorf("decode the body: %w", err)
	}
	return schema.Validate(body)
}

// schemaOf returns where the description has the schema of a JSON body, if it has one.
func schemaOf(route *routers.Route, answer *httptest.ResponseRecorder) (location string, ok bool) {
	kind := answer.Header().Get("Content-Type")
	status := strconv.Itoa(answer.Code)
	response := route.Operation.Responses.Value(status)
	if response == nil {
		status, response = "default", route.Operation.Responses.Default()
	}
	if response == nil || response.Value == nil || response.Value.Content[kind] == nil || response.Value.Content[kind].Schema == nil || !strings.HasSuffix(kind, "json") {
		return "", false
	}
	location = response.Ref
	if location == "" {
		location = pointer("paths", route.Path, strings.ToLower(route.Method), "responses", status)
	}
	return location + strings.TrimPrefix(pointer("content", kind, "schema"), "#"), true
}

// pointer returns the fragment of a URL that leads to a value of the description.
func pointer(names ...string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return "#/" + strings.Join(escaped, "/")
}

func (d *description) schema(location string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if schema := d.schemas[location]; schema != nil {
		return schema, nil
	}
	schema, err := d.compiler.Compile(resource + location)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compile the schema at %s", location), err)
	}
	d.schemas[location] = schema
	return schema, nil
}
