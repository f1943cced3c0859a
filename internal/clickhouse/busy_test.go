package clickhouse_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
)

// TestMappingIsNotBlamedForABusyServer checks a valid mapping on a server that begins to refuse queries meanwhile. A
// replica does not start with a mapping that is broken.
func TestMappingIsNotBlamedForABusyServer(t *testing.T) {
	db := chtest.New(t)
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: u.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("DESCRIBE (SELECT")) {
			w.Header().Set("X-ClickHouse-Exception-Code", "202")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "Code: 202. DB::Exception: Too many simultaneous queries. Maximum: 100. (TOO_MANY_SIMULTANEOUS_QUERIES) (version 26.7.2.1)")
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	u.Host = front.Listener.Addr().String()
	ch, err := clickhouse.Open(clickhouse.Options{URL: u.String(), Mapping: clickhouse.Exchanges(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	report, err := ch.CheckMapping(t.Context())
	if refused, ok := errors.AsType[*clickhouse.RefusedError](err); !ok || refused.Code != 202 || report.Err() != nil {
		t.Errorf("CheckMapping = %v; the mapping: %v", err, report.Err())
	}
}
