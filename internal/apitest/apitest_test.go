package apitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/internal/apitest"
)

// recorder is a test that notes its failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// TestWhatIsNotAsDescribedFails needs a failure that says want, or none.
func TestWhatIsNotAsDescribedFails(t *testing.T) {
	t.Parallel()
	const (
		note  = `{"id": "0198b3f0-0000-7000-8000-000000000000", "text": "t", "author": "ada", "writtenAt": "2026-01-02T03:04:05Z"}`
		views = "/api/v1/views"
		notes = "/api/v1/alerts/0198b3f0-0000-7000-8000-000000000000/notes"
	)
	for name, each := range map[string]struct {
		method, path, kind string
		status             int
		header             http.Header
		body, want         string
	}{
		"as described":         {method: http.MethodGet, path: views, status: http.StatusOK, body: `{"items": []}`},
		"no operation":         {method: http.MethodGet, path: "/api/v1/nowhere", status: http.StatusOK, body: `1`},
		"a field is missing":   {method: http.MethodGet, path: views, status: http.StatusOK, body: `{}`, want: "missing property 'items'"},
		"a note":               {method: http.MethodPost, path: notes, status: http.StatusCreated, body: note},
		"another type":         {method: http.MethodGet, path: views, status: http.StatusOK, body: `{"items": 1}`, want: "want array"},
		"no JSON":              {method: http.MethodGet, path: views, status: http.StatusOK, body: `{`, want: "decode the body"},
		"another content type": {method: http.MethodGet, path: views, status: http.StatusOK, kind: "text/plain", body: `{"items": []}`, want: "Content-Type"},
		"a problem":            {method: http.MethodGet, path: views, status: http.StatusForbidden, kind: "application/problem+json", body: `{}`, want: "missing propert"},
		"a header is missing":  {method: http.MethodGet, path: "/api/v1/routing", status: http.StatusOK, body: `{}`, want: "ETag"},
		"no such date":         {method: http.MethodPost, path: notes, status: http.StatusCreated, body: strings.Replace(note, "03:04", "3:04", 1), want: "date-time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := httptest.NewRecorder()
			if each.kind == "" {
				each.kind = "application/json"
			}
			answer.Header().Set("Content-Type", each.kind)
			answer.WriteHeader(each.status)
			_, _ = answer.WriteString(each.body)
			r := &recorder{TB: t}
			apitest.Hold(r, httptest.NewRequestWithContext(t.Context(), each.method, each.path, nil), answer)
			if said := strings.Join(r.failures, "\n"); (said == "") != (each.want == "") || !strings.Contains(said, each.want) {
				t.Errorf("said %q, want %q in it", said, each.want)
			}
		})
	}
}
