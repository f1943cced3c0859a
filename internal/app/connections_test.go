package app_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tocsin/internal/app"
)

// TestSlowSearchesDoNotHoldUpEvaluation has more people search for exchanges than there are connections, and
// ClickHouse answers none of them. New exchanges raise alerts all the same.
func TestSlowSearchesDoNotHoldUpEvaluation(t *testing.T) {
	t.Parallel()
	const searches, held = 30, 10
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	target, err := url.Parse(w.ch.URL)
	if err != nil {
		t.Fatal(err)
	}
	sought, waiting, release := hex.EncodeToString([]byte("held up")), make(chan struct{}, searches), make(chan struct{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, sought) {
			waiting <- struct{}{}
			<-release
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	through := *target
	through.Host = front.Listener.Addr().String()
	base, _ := w.replica(func(o *app.Options) { o.ClickHouseURL = through.String() })

	ctx, cancel := context.WithCancel(t.Context())
	var ended atomic.Int64
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range searches {
		all.Go(func() {
			defer ended.Add(1)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/exchanges?q="+url.QueryEscape("held up"), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := client.Do(request); err == nil {
				_ = answer.Body.Close()
			}
		})
	}
	defer all.Wait()
	defer close(release)
	defer cancel()
	for range held {
		w.wait("people search", waiting)
	}
	w.fail(w.ch.Now(t), "a")
	w.untilDelivered(1)
	if n := ended.Load(); n > 0 {
		t.Errorf("the exchange raised its alert when %d searches had ended", n)
	}
}
