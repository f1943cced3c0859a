package product

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestGateCutsOffAndLetsThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	upstream, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Engines: &Engines{clickHouse: upstream}}
	gate, err := w.NewGate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	through, err := url.Parse(w.Through(gate)[len("TOCSIN_CLICKHOUSE_URL="):])
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+through.Host, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return got.Body.Close()
	}
	if err := ask(); err != nil {
		t.Fatalf("an open gate: %v", err)
	}
	held, err := new(net.Dialer).DialContext(t.Context(), "tcp", through.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // a test's connection
	gate.Shut()
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived the cut")
	}
	if err := ask(); err == nil {
		t.Error("a shut gate let a request through")
	}
	gate.Open()
	if err := ask(); err != nil {
		t.Errorf("a gate that was opened again: %v", err)
	}
}
