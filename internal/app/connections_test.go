package app_test

import (
	"context"
	"encoding/hex"
	"fmt"
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

// holdingFront is a ClickHouse that answers no query with a text among its parameters, until it releases them.
type holdingFront struct {
	url     string
	held    chan struct{}
	release func()
	// waiting is how many of these queries wait at present.
	waiting atomic.Int64
}

func (w *world) holding(sought string) *holdingFront {
	w.t.Helper()
	target, err := url.Parse(w.ch.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	released := make(chan struct{})
	front := &holdingFront{held: make(chan struct{}, 1000), release: sync.OnceFunc(func() { close(released) })}
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, hex.EncodeToString([]byte(sought))) {
			front.waiting.Add(1)
			front.held <- struct{}{}
			select {
			case <-released:
			case <-r.Context().Done():
			}
			front.waiting.Add(-1)
		}
		proxy.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	w.t.Cleanup(front.release)
	through := *target
	through.Host = server.Listener.Addr().String()
	front.url = through.String()
	return front
}

// TestSlowSearchesDoNotHoldUpEvaluation has more people search for exchanges than there are connections, and
// ClickHouse answers none of them. New exchanges raise alerts all the same.
func TestSlowSearchesDoNotHoldUpEvaluation(t *testing.T) {
	t.Parallel()
	const searches, held = 30, 10
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	front := w.holding("held up")
	base, _ := w.replica(func(o *app.Options) { o.ClickHouseURL = front.url })

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
	defer front.release()
	defer cancel()
	for range held {
		w.wait("people search", front.held)
	}
	w.fail(w.ch.Now(t), "a")
	w.untilDelivered(1)
	if n := ended.Load(); n > 0 {
		t.Errorf("the exchange raised its alert when %d searches had ended", n)
	}
}

// TestSlowPartitionsDoNotHoldUpOthers has ClickHouse answer nothing about the tenants of twelve partitions, which is more than
// a driver has connections by default. The partition of another tenant is evaluated all the same.
func TestSlowPartitionsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	const slow = 12
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	for i := range slow {
		name := fmt.Sprintf("slow %02d", i)
		w.ruleIn(name, "every failure")
		if _, err := w.db.Partitions().Isolate(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	front := w.holding("slow ")
	defer front.release()
	w.replica(func(o *app.Options) {
		o.Roles, o.ClickHouseURL, o.Workers = []app.Role{app.RoleEvaluate, app.RoleDispatch}, front.url, 2*slow
	})
	w.until("all of them wait for ClickHouse at once", func() bool { return front.waiting.Load() == slow })
	w.fail(w.ch.Now(t), "a")
	w.untilDelivered(1)
}
