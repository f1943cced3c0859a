package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHealthcheckReportsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		live   bool
		path   string
		status int
		body   string
		says   string
		fails  bool
	}{
		"ready":     {path: "/readyz", status: 200, body: `{"status":"ready","missing":[]}`, says: "ready"},
		"reduced":   {path: "/readyz", status: 200, body: `{"status":"ready","missing":["clickhouse"]}`, says: "ready: clickhouse: Cannot be reached"},
		"alive":     {live: true, path: "/healthz", status: 200, body: `{"status":"ok"}`, says: "ok"},
		"not ready": {path: "/readyz", status: 503, body: `{"status":"not ready","missing":["postgres","clickhouse"]}`, says: "not ready: postgres: Cannot be reached; clickhouse: Cannot be reached", fails: true},
		"read-only": {path: "/readyz", status: 503, body: `{"status":"not ready","missing":["postgres"],"reasons":{"postgres":"Accepts no writes: it is a standby, or read-only"}}`, says: "not ready: postgres: Accepts no writes: it is a standby", fails: true},
		"stopping":  {path: "/readyz", status: 503, body: `{"status":"stopping","missing":[]}`, says: "stopping", fails: true},
		"another":   {path: "/readyz", status: 200, body: `<html>`, says: "is not Tocsin", fails: true},
		"too late":  {path: "/readyz", status: 0, says: "no replica can be reached", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				if c.status == 0 {
					<-r.Context().Done()
					return
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)
			timeout := 5 * time.Second
			if c.status == 0 {
				timeout = 50 * time.Millisecond
			}
			var out strings.Builder
			err := (&healthcheck{Listen: strings.TrimPrefix(server.URL, "http://"), Live: c.live, Timeout: timeout}).Run(t.Context(), &out)
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if (err != nil) != c.fails || !strings.Contains(said, c.says) || <-asked != c.path {
				t.Errorf("%q, %v, want %q", out.String(), err, c.says)
			}
		})
	}
}

func TestTheAddressOfTheReplicaIsFound(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", ":80": "127.0.0.1:80", "[::]:80": "[::1]:80", "10.1.2.3:80": "10.1.2.3:80",
		"localhost:80": "localhost:80", "8080": "", "127.0.0.1:0": "",
	} {
		got, err := reachable(listen)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", listen, got, err, want)
		}
	}
}
