package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestFindingsArePrintedWhenTheSelfTestCannotBegin has a server that refuses the token, and databases that are away.
func TestFindingsArePrintedWhenTheSelfTestCannotBegin(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":401,"title":"Unauthorized"}`)
	}))
	t.Cleanup(server.Close)
	var c cli
	_, err := newParser(&c).Parse([]string{
		"doctor", "--json", "--self-test", "--webhook", uuid.NewString(), "--url", server.URL, "--token", "tcn_x",
		"--postgres-url", "postgres://tocsin@127.0.0.1:1/x", "--clickhouse-url", "http://127.0.0.1:1", "--outgoing-proxy", "http://127.0.0.1:1",
		"--encryption-key", base64.StdEncoding.EncodeToString(make([]byte, 32)),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.Doctor.Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "role editor") {
		t.Errorf("Run = %v, want what is wrong with the token", err)
	}
	var said struct {
		Healthy  bool `json:"healthy"`
		Findings []struct{ About, Verdict, Text string }
	}
	if err := json.Unmarshal([]byte(out.String()), &said); err != nil || said.Healthy || len(said.Findings) < 3 {
		t.Errorf("%v: printed %q", err, out.String())
	}
}
