package product

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestProxyCutsOffAndLetsThrough(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	upstream, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Engines: &Engines{clickHouse: upstream}}
	proxy, err := w.NewProxy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	through, err := url.Parse(w.Through(proxy)[len("TOCSIN_CLICKHOUSE_URL="):])
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
		t.Fatalf("before the cut: %v", err)
	}
	held, err := new(net.Dialer).DialContext(t.Context(), "tcp", through.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // a test's connection
	proxy.Cut()
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived the cut")
	}
	if err := ask(); err == nil {
		t.Error("a request came through after the cut")
	}
	proxy.Restore()
	if err := ask(); err != nil {
		t.Errorf("after the restoration: %v", err)
	}
}
