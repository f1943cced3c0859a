package api_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"tocsin/api"
	"tocsin/internal/access"
)

func TestAStreamEndsWhenItsCallerMayNoMore(t *testing.T) {
	for name, end := range map[string]func() (api.Identity, error){
		"the session is over":      func() (api.Identity, error) { return api.Identity{}, echo.NewHTTPError(http.StatusUnauthorized) },
		"the role is gone":         func() (api.Identity, error) { return api.Identity{Tenant: "acme"}, nil },
		"the database has a break": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var asked, over atomic.Int64
			b := newBench(t, func(o *api.Options) {
				o.Heartbeat = 5 * time.Millisecond
				o.Identify = func(*http.Request) (api.Identity, error) {
					asked.Add(1)
					switch {
					case over.Load() == 0:
						return api.Identity{Tenant: "acme", Actor: "ada", Role: access.Viewer}, nil
					case end == nil:
						return api.Identity{}, echo.NewHTTPError(http.StatusServiceUnavailable)
					}
					return end()
				}
			})
			p := b.open(b.serve(), "")
			for range 3 {
				p.next()
			}
			over.Store(1)
			from := asked.Load()
			for p.lines.Scan() {
				if end == nil && asked.Load() > from+5 {
					return // it goes on
				}
			}
			if end == nil {
				t.Error("the stream ended, although nobody said that the caller may not")
			}
		})
	}
}
