package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/client"
)

func TestTheTokenGoesNowhereElse(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked, with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tcn_x" || r.URL.Path != "/api/v1/alerts" {
			t.Errorf("%s was asked, with %q", r.URL, r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL+"/", "tcn_x")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.ListAlertsWithResponse(t.Context(), &client.ListAlertsParams{})
	if err := client.Check(answer, err); err == nil {
		t.Error("a redirect is no error")
	}
}

// answered asks a server that always gives one answer for alerts.
func answered(t *testing.T, status int, contentType, body string) (*client.ListAlertsResponse, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		w.Header().Set("Location", "/")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	caller, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return caller.ListAlertsWithResponse(t.Context(), &client.ListAlertsParams{})
}

// TestWhatIsNotTocsinsIsAnError: the answer of another server is an error, so that a checked answer has its fields.
func TestWhatIsNotTocsinsIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		status            int
		contentType, body string
		is                bool
	}{
		"a page":               {http.StatusOK, "text/html; charset=utf-8", "<html>Sign in</html>", false},
		"nothing":              {http.StatusOK, "", "", false},
		"a permanent redirect": {http.StatusMovedPermanently, "text/html", "", false},
		"another redirect":     {http.StatusPermanentRedirect, "application/json", "{}", false},
		"alerts":               {http.StatusOK, "application/json", `{"items":[]}`, true},
	} {
		answer, err := answered(t, c.status, c.contentType, c.body)
		if err := client.Check(answer, err); (err == nil) != c.is {
			t.Errorf("%s: %v", name, err)
		} else if c.is != (answer.JSON200 != nil) {
			t.Errorf("%s: is there something to read? %v", name, answer.JSON200)
		}
	}
}

func TestARefusalIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		body, says string
	}{
		"a problem":          {`{"code":"invalid","title":"Bad Request","detail":"The rule is invalid","errors":[{"field":"name","code":"required","message":"must be given"}]}`, "400: The rule is invalid; name: must be given"},
		"a proxy's own form": {`<html>`, "400: Bad Request"},
	} {
		contentType := "application/problem+json"
		if !strings.HasPrefix(c.body, "{") {
			contentType = "text/html"
		}
		answer, err := answered(t, http.StatusBadRequest, contentType, c.body)
		err = client.Check(answer, err)
		if problem, ok := errors.AsType[*client.Problem](err); !ok || problem.Status != http.StatusBadRequest || err.Error() != c.says {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
}

func TestTheAddressIsExplained(t *testing.T) {
	for _, address := range []string{"", "tocsin.example.com", "ftp://tocsin.example.com", "https://ada:s3cret@tocsin.example.com"} {
		if _, err := client.New(address, ""); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
