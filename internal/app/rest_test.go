package app_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/internal/apitest"
	"tocsin/internal/app"
)

// asDescribed fails the test if a response of the API does not match its description.
func asDescribed(tb testing.TB, method, path string, answer *httptest.ResponseRecorder) {
	tb.Helper()
	apitest.Hold(tb, httptest.NewRequestWithContext(context.Background(), method, "/api/v1"+path, nil), answer)
}

// rest is the API of a replica that neither evaluates nor delivers.
type rest struct {
	t    testing.TB
	base string
}

func (w *world) rest() *rest {
	w.t.Helper()
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	return &rest{w.t, base}
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
	asDescribed(r.t, method, path, answer)
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
