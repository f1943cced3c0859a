package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestApplyIsNotTakenInByAnotherServer holds that files are not said to be applied by what is not Tocsin, and that nothing is said to be unchanged where the
// answer was lost.
func TestApplyIsNotTakenInByAnotherServer(t *testing.T) {
	const (
		rule    = "rules: [{name: r, severity: INFO, fireMode: PER_EXCHANGE}]\n"
		webhook = "webhooks: [{name: w, kind: generic, url: \"https://example.com/\"}]\n"
		user    = "users: [{email: a@example.com, name: a, role: viewer, disabled: true}]\n"
	)
	reply := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}
	}
	// Takes what is to be made, and dies.
	dies := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			reply("application/json", `{"items":[]}`)(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}
	// Makes what is to be made, and sends an answer that ends too early or is none.
	garbles := func(length, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				reply("application/json", `{"items":[]}`)(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", length)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		files  string
		server http.HandlerFunc
		says   string
		not    string
	}{
		"a page, rules":         {rule, reply("text/html", "<html>Sign in</html>"), "the response is not from Tocsin's API", "created"},
		"another API, rules":    {rule, reply("application/json", `{"ok":true}`), "the response is not from Tocsin's API", "created"},
		"a page, webhooks":      {webhook, reply("text/html", "<html>Sign in</html>"), "the response is not from Tocsin's API", "created"},
		"another API, webhooks": {webhook, reply("application/json", `{"ok":true}`), "the response is not from Tocsin's API", "created"},
		"a lost answer":         {webhook, dies, "it may have been changed all the same", "nothing was changed"},
		"a cut answer":          {webhook, garbles("99", `{"id":`), "it may have been changed all the same", "nothing was changed"},
		"a garbled answer":      {webhook, garbles("2", `}{`), "it may have been changed all the same", "nothing was changed"},
		"a page as an answer": {webhook, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				reply("application/json", `{"items":[]}`)(w, r)
				return
			}
			reply("text/html", "<html>Sign in</html>")(w, r)
		}, "it may have been changed all the same", "nothing was changed"},
		"half of a step": {user, func(w http.ResponseWriter, r *http.Request) {
			switch r.Method {
			case http.MethodGet:
				reply("application/json", `{"items":[]}`)(w, r)
			case http.MethodPost:
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"id":"6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a11","version":1}`)
			default:
				w.WriteHeader(http.StatusForbidden)
			}
		}, "the user was created, but not disabled", "nothing was changed"},
		"a refusal of what is made": {webhook, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				reply("application/json", `{"items":[]}`)(w, r)
				return
			}
			w.WriteHeader(http.StatusForbidden)
		}, "nothing was changed", "all the same"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.server)
			t.Cleanup(server.Close)
			file := filepath.Join(t.TempDir(), "tocsin.yaml")
			if err := os.WriteFile(file, []byte(c.files), 0o600); err != nil {
				t.Fatal(err)
			}
			a := filesApply{serverFlags: serverFlags{URL: server.URL, Token: "tcn_x"}, filesFlags: filesFlags{File: []string{file}}}
			var out strings.Builder
			err := a.Run(t.Context(), &out)
			if err == nil {
				t.Fatalf("it is said to be done:\n%s", out.String())
			}
			if !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
				t.Errorf("%v: want %q, not %q", err, c.says, c.not)
			}
		})
	}
}

// TestAnEmptyPlaceOfASecretRemovesNone has a webhook with a signing secret, and a file whose place for it is empty, as variables
// of a pipeline without access to its secrets are. An empty text in the file itself removes the secret.
func TestAnEmptyPlaceOfASecretRemovesNone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("PIPELINE_SECRET", "")
	for place, removes := range map[string]bool{"{env: PIPELINE_SECRET}": false, "{file: " + write("empty", "\n") + "}": false, `""`: true} {
		removed := false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			removed = removed || r.Method == http.MethodPut
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"items":[{"id":"6f2c3c1e-5d0c-4c39-9a7e-0d6d4f6b2a11","name":"w","kind":"generic","urlHost":"example.com",
				"hasSigningSecret":true,"enabled":true,"timeoutSeconds":10,"maxConcurrent":8,"eventMaxAgeSeconds":86400,"version":1}]}`)
		}))
		t.Cleanup(server.Close)
		a := filesApply{
			serverFlags: serverFlags{URL: server.URL, Token: "tcn_x"},
			filesFlags:  filesFlags{File: []string{write("tocsin.yaml", "webhooks: [{name: w, kind: generic, signingSecret: "+place+"}]\n")}},
		}
		if err := a.Run(t.Context(), io.Discard); (err == nil) != removes || removed != removes {
			t.Errorf("%s: error %v, written: %v", place, err, removed)
		}
	}
}
