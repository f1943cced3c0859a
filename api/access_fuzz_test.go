package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/internal/access"
)

// FuzzRolesHold sends a viewer's requests of every form. Whatever their content, none changes
// anything.
func FuzzRolesHold(f *testing.F) {
	for _, seed := range []struct{ method, target, body, header string }{
		{"POST", "/api/v1/rules", ruleBody, ""},
		{"post", "/api/v1/rules", ruleBody, "Bearer tcn_x"},
		{"POST", "/api/v1//rules", ruleBody, ""},
		{"POST", "/api/v1/rules/", ruleBody, ""},
		{"POST", "/api/v1/RULES", ruleBody, ""},
		{"POST", "/api/v1/alerts/../rules", ruleBody, ""},
		{"POST", "/api/v1/alerts/%2e%2e/rules", ruleBody, ""},
		{"POST", "/API/v1/rules", ruleBody, ""},
		{"DELETE", "/api/v1/users/00000000-0000-0000-0000-000000000000", "", ""},
		{"GET", "/api/v1/users", "", ""},
		{"GET", "/api/v1/audit?limit=1", "", ""},
		{"PUT", "/api/v1/users/x/password", `{"password":"a long enough one"}`, ""},
		{"POST", "/api/v1/tokens;x=1", `{"name":"x","role":"admin"}`, ""},
		{"GET", "/api/v1/rules", "", ""},
		{"POST", "/api/v1/alerts/00000000-0000-0000-0000-000000000000/resolve", "", ""},
		{"POST", "/", "", ""},
	} {
		f.Add(seed.method, seed.target, seed.body, seed.header)
	}
	f.Fuzz(func(t *testing.T, method, target, body, header string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.Contains(u.Path, "/session") || strings.Contains(u.Path, "/setup") || strings.Contains(u.Path, "/me") ||
			strings.Contains(u.Path, "/events") || strings.Contains(u.Path, "/interactions") || u.Path == "/panic" {
			return // which need no role, or another setup
		}
		b := newBench(t, func(o *api.Options) {
			o.Identify = api.Everybody(api.Identity{Tenant: "acme", Actor: "eve", Role: access.Viewer})
		})
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Host, r.RequestURI = "localhost:8080", target
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%q %q: %d %s", method, target, w.Code, w.Body)
		}
		if len(b.rules.rows) > 0 || len(b.webhooks.rows) > 0 {
			t.Errorf("%q %q %q changed something", method, target, body)
		}
	})
}
