package product

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPassesAreReadFromTheHistogram(t *testing.T) {
	const text = `# TYPE tocsin_pass_duration_seconds histogram
tocsin_pass_duration_seconds_bucket{partition="1",le="0.001"} 2
tocsin_pass_duration_seconds_sum{partition="1"} 0.25
tocsin_pass_duration_seconds_count{partition="1"} 5
tocsin_pass_duration_seconds_sum{partition="4"} 1.5
tocsin_pass_duration_seconds_count{partition="4"} 7
tocsin_commit_duration_seconds_sum 9
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	replica := &Replica{Address: strings.TrimPrefix(server.URL, "http://")}
	got, err := replica.Passes(t.Context())
	if want := (Passes{Count: 12, Took: 1750 * time.Millisecond}); err != nil || got != want {
		t.Fatalf("Passes = %+v, %v; want %+v", got, err, want)
	}
	if since := got.Since(Passes{Count: 11, Took: 1700 * time.Millisecond}); since != (Passes{Count: 1, Took: 50 * time.Millisecond}) {
		t.Errorf("Since = %+v, want one pass of 50 ms", since)
	}
}
