package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheAddressOfAServerIsExplained(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "tocsin.example", "ftp://tocsin.example", "https://", "https://ada@tocsin.example"} {
		_, err := (&serverFlags{URL: address}).open()
		if err == nil || !strings.Contains(err.Error(), "TOCSIN_URL") || !strings.Contains(err.Error(), "http://127.0.0.1:8080") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestARefusalSaysWhatToDo checks that the error about a missing or rejected address or token names
// the variable that sets it.
func TestARefusalSaysWhatToDo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/rules/export":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Authorization") == "Bearer tcn_gone":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"title":"Not Found","detail":"No such rule"}`))
		case r.Header.Get("Authorization") == "Bearer tcn_broken":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"status":500,"title":"Internal Server Error","requestId":"r-7"}`))
		case r.Header.Get("Authorization") == "Bearer tcn_late":
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = w.Write([]byte(`{"status":412,"title":"Precondition Failed","detail":"The rule was changed; read it again"}`))
		default:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"status":401,"title":"Unauthorized","detail":"Sign in first"}`))
		}
	}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		flags serverFlags
		says  []string
		not   string
	}{
		"a path too much": {serverFlags{URL: server.URL + "/api/v1"}, []string{"404", "TOCSIN_URL", "without /api/v1"}, "TOCSIN_TOKEN"},
		"no token":        {serverFlags{URL: server.URL}, []string{"401", "the token is missing", "TOCSIN_TOKEN"}, "TOCSIN_URL"},
		"a wrong token":   {serverFlags{URL: server.URL, Token: "tcn_x"}, []string{"401", "the token is missing, was revoked or has expired; give a valid one"}, "TOCSIN_URL"},
		"nothing there":   {serverFlags{URL: server.URL, Token: "tcn_gone"}, []string{"404", "No such rule"}, "TOCSIN_URL"},
		"an edit":         {serverFlags{URL: server.URL, Token: "tcn_late"}, []string{"412: The rule was changed; run the command again"}, "read it again"},
		"a failure":       {serverFlags{URL: server.URL, Token: "tcn_broken"}, []string{"500", "request_id=r-7"}, "TOCSIN_URL"},
		"nobody there":    {serverFlags{URL: "http://127.0.0.1:1"}, []string{"cannot be reached", "TOCSIN_URL"}, "TOCSIN_TOKEN"},
	} {
		client, err := c.flags.open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = exportedRules(t.Context(), client)
		if err == nil || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
}
