package deploy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTheSelfTestFollowsAnExchange runs the self-test with a receiver that accepts the message and
// one that rejects it, during a silence, and without a server. It leaves no rule behind.
func TestTheSelfTestFollowsAnExchange(t *testing.T) {
	postgres, clickhouse := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, postgres.String(), nil, "migrate"))
	var received, refuses atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() > 0 {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		received.Add(1)
	}))
	t.Cleanup(receiver.Close)
	r := startReplica(t)
	base := "http://" + r.address
	name := "self-test " + freeAddress(t)
	hook, err := post(t.Context(), base+"/api/v1/webhooks", fmt.Appendf(nil, `{"name": %q, "kind": "generic", "url": %q}`, name, receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	settings := []string{"TOCSIN_URL=" + base, "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8"}
	test := func(succeeds bool, text string, more ...string) {
		t.Helper()
		says(t, succeeds, text, tocsin(t, postgres.String(), settings, append([]string{"doctor", "--self-test", "--webhook", hook["id"].(string)}, more...)...))
	}
	ctx, stop := context.WithCancel(t.Context())
	var inserting sync.WaitGroup
	inserting.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := insertFailure(ctx, clickhouse, name); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			<-tick.C
		}
	})
	test(true, "✓ self-test      alerted after")
	if received.Load() != 1 {
		t.Errorf("the receiver got %d messages, want 1", received.Load())
	}
	// Conditions of a silence on exchanges do not apply to the alert of the test, which matches any
	// exchange.
	for match, suppresses := range map[string]bool{`{"scope": {"applications": ["*"]}}`: false, `{"severities": ["INFO"]}`: true} {
		before := received.Load()
		silence, err := post(t.Context(), base+"/api/v1/silences", fmt.Appendf(nil, `{"name": "Move %s", "match": %s, "endsAt": %q}`, name, match, time.Now().Add(time.Hour).Format(time.RFC3339)))
		if err != nil {
			t.Fatal(err)
		}
		if suppresses {
			test(false, fmt.Sprintf("but the silence %q, created by ", silence["name"]))
		} else {
			test(true, "✓ self-test      alerted after")
		}
		if (received.Load() == before) != suppresses {
			t.Errorf("under the silence %s the receiver got %d messages more", match, received.Load()-before)
		}
		if _, err := post(t.Context(), fmt.Sprintf("%s/api/v1/silences/%s/end", base, silence["id"]), nil); err != nil {
			t.Fatal(err)
		}
	}
	// All days but one that is far off.
	days := []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	far := (int(time.Now().UTC().Weekday()) + 3) % len(days)
	quiet, err := post(t.Context(), base+"/api/v1/webhooks", fmt.Appendf(nil, `{"name": "quiet %s", "kind": "generic", "url": %q, "quietHours": [{"timeZone": "UTC", "weekdays": ["%s"], "from": "00:00", "to": "24:00"}]}`,
		name, receiver.URL, strings.Join(append(slices.Clone(days[:far]), days[far+1:]...), `", "`)))
	if err != nil {
		t.Fatal(err)
	}
	test(false, "but the quiet hours of the webhook hold the message until ", "--webhook", quiet["id"].(string))
	refuses.Store(1)
	test(false, "the receiver did not accept the message")
	stop()
	inserting.Wait()
	says(t, false, "--self-test needs --webhook", tocsin(t, postgres.String(), settings, "doctor", "--self-test"))
	settings[0] = "TOCSIN_URL=http://" + freeAddress(t)
	test(false, "connection refused")

	rules, err := get(t.Context(), base+"/api/v1/rules")
	if err != nil || strings.Contains(fmt.Sprint(rules), "Self-test") || rules["items"] == nil {
		t.Errorf("rules after the tests: %v, %v", rules, err)
	}
	firing, err := get(t.Context(), base+"/api/v1/alerts?state=FIRING")
	if err != nil || strings.Contains(fmt.Sprint(firing), "Self-test") || firing["items"] == nil {
		t.Errorf("alerts after the tests: %v, %v", firing, err)
	}
	r.stop(t)
}
