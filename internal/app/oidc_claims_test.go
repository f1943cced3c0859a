package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tocsin/internal/access"
	"tocsin/internal/app"
)

// TestPeopleHaveNamesThatCanBeStored signs in people whose names the provider gives in forms that cannot be.
func TestPeopleHaveNamesThatCanBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{DefaultRole: access.Viewer})
	for i, name := range []any{"a\x00b", " ", "two\nlines", strings.Repeat("é", 101), 7, nil} {
		email := fmt.Sprintf("%d@example.com", i)
		p.next(map[string]any{"sub": email, "email": email, "name": name}, nil)
		c := newCaller(t, base)
		if end := c.comeIn("/inbox"); end.RawQuery != "" {
			t.Errorf("%q: ended up at %s", name, end)
		}
		if got := c.must(http.StatusOK, http.MethodGet, "/me", nil).text("name"); got != email {
			t.Errorf("%q: called %q", name, got)
		}
	}
}

// TestAttemptFitsIntoACookie begins on pages with long addresses. Browsers drop a cookie of more than 4096 bytes.
func TestAttemptFitsIntoACookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	p.next(map[string]any{"sub": "grace", "email": "grace@example.com"}, nil)
	base := w.elsewhere(p, app.OIDCOptions{DefaultRole: access.Viewer})
	filters := "/inbox?q=1" + strings.Repeat("&a=b", 490)
	for from, want := range map[string]string{filters: filters, "/inbox?q=" + strings.Repeat(`"`, 1900): "/"} {
		longest := 0
		c := newCaller(t, base)
		c.http.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
			for _, cookie := range req.Response.Cookies() {
				longest = max(longest, len(cookie.Name)+len(cookie.Value))
			}
			return nil
		}
		if end := c.comeIn(from); end.RequestURI() != want || longest == 0 || longest > 4096 {
			t.Errorf("ended up at %.40s; the longest cookie has %d bytes", end.RequestURI(), longest)
		}
	}
}
