package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

func TestStatusDecides(t *testing.T) {
	const (
		delivered = notify.VerdictDelivered
		retry     = notify.VerdictRetry
		throttled = notify.VerdictThrottled
		refused   = notify.VerdictRefused
		gone      = notify.VerdictGone
	)
	after := func(value string) map[string]string { return map[string]string{"Retry-After": value} }
	date := func(d time.Duration) map[string]string { return after(instant().Add(d).Format(http.TimeFormat)) }
	for _, c := range []struct {
		name    string
		slack   bool
		status  int
		header  map[string]string
		body    string
		verdict notify.Verdict
		wait    time.Duration
		error   string
	}{
		{name: "200", status: 200, body: "ok", verdict: delivered},
		{name: "204", status: 204, verdict: delivered},
		{name: "299", status: 299, verdict: delivered},
		{name: "200, ok false, but not Slack", status: 200, body: `{"ok":false}`, verdict: delivered},
		{name: "301", status: 301, header: map[string]string{"Location": "https://new.example/secret"}, verdict: refused, error: "redirects are not followed; enter the URL that it leads to, at https://new.example"},
		{name: "304", status: 304, verdict: refused, error: "304 Not Modified"},
		{name: "308 within the host", status: 308, header: map[string]string{"Location": "/elsewhere"}, verdict: refused, error: "308 Permanent Redirect"},
		{name: "400", status: 400, body: "bad", verdict: refused, error: "400 Bad Request"},
		{name: "401", status: 401, verdict: retry, error: "401"},
		{name: "404", status: 404, verdict: retry, error: "404"},
		{name: "408", status: 408, verdict: retry, error: "408"},
		{name: "410", status: 410, verdict: gone, error: "410 Gone"},
		{name: "413", status: 413, verdict: refused, error: "413"},
		{name: "425", status: 425, verdict: retry, error: "425"},
		{name: "429", status: 429, verdict: throttled, error: "429"},
		{name: "429 for seconds", status: 429, header: after("7"), verdict: throttled, wait: 7 * time.Second, error: "429"},
		{name: "429 for part of a second", status: 429, header: after("0.2"), verdict: throttled, wait: time.Second, error: "429"},
		{name: "429 until a date", status: 429, header: date(90 * time.Second), verdict: throttled, wait: 89*time.Second + time.Millisecond, error: "429"},
		{name: "429 until a date that is over", status: 429, header: date(-time.Hour), verdict: throttled, error: "429"},
		{name: "429 with nonsense", status: 429, header: after("soon"), verdict: throttled, error: "429"},
		{name: "429 for ever", status: 429, header: after("1e300"), verdict: throttled, wait: 24 * time.Hour, error: "429"},
		{name: "429 negative", status: 429, header: after("-5"), verdict: throttled, error: "429"},
		{name: "429 NaN", status: 429, header: after("NaN"), verdict: throttled, error: "429"},
		{name: "500", status: 500, verdict: retry, error: "500 Internal Server Error"},
		{name: "500 with a wait", status: 500, header: after("7"), verdict: retry, wait: 7 * time.Second, error: "500"},
		{name: "502", status: 502, verdict: retry, error: "502"},
		{name: "503", status: 503, verdict: retry, error: "503"},
		{name: "503 with a wait", status: 503, header: after("7"), verdict: throttled, wait: 7 * time.Second, error: "503"},
		{name: "503 with nonsense", status: 503, header: after("soon"), verdict: retry, error: "503"},
		{name: "599", status: 599, verdict: retry, error: "answered 599"},
		{name: "201", status: 201, body: "made", verdict: delivered},
		{name: "202", status: 202, verdict: delivered},
		{name: "206 cut off", status: 206, header: map[string]string{"Content-Range": "bytes 0-1/9"}, body: "ok", verdict: delivered},
		{name: "300", status: 300, verdict: refused, error: "redirects are not followed"},
		{name: "302", status: 302, verdict: refused, error: "redirects are not followed"},
		{name: "303", status: 303, verdict: refused, error: "redirects are not followed"},
		{name: "307", status: 307, verdict: refused, error: "redirects are not followed"},
		{name: "399", status: 399, verdict: refused, error: "redirects are not followed"},
		{name: "402", status: 402, verdict: refused, error: "402"},
		{name: "403", status: 403, verdict: retry, error: "403"},
		{name: "405", status: 405, verdict: refused, error: "405"},
		{name: "407", status: 407, verdict: refused, error: "407"},
		{name: "409", status: 409, verdict: refused, error: "409"},
		{name: "410 with a wait", status: 410, header: after("7"), verdict: gone, wait: 7 * time.Second, error: "410"},
		{name: "421", status: 421, verdict: refused, error: "421"},
		{name: "422", status: 422, verdict: refused, error: "422"},
		{name: "451", status: 451, verdict: refused, error: "451"},
		{name: "499", status: 499, verdict: refused, error: "answered 499"},
		{name: "501", status: 501, verdict: retry, error: "501"},
		{name: "504", status: 504, verdict: retry, error: "504"},
		{name: "507", status: 507, verdict: retry, error: "507"},
		{name: "511", status: 511, verdict: retry, error: "511"},
		{name: "600", status: 600, verdict: retry, error: "answered 600"},
		{name: "999", status: 999, verdict: retry, error: "answered 999"},
		{name: "Slack: JSON that is cut off", slack: true, status: 200, body: `{"ok":fal`, verdict: delivered},
		{name: "Slack: JSON without a word", slack: true, status: 200, body: `{"ok":false}`, verdict: retry, error: "unknown_error"},
		{name: "Slack: JSON gone", slack: true, status: 200, body: `{"ok":false,"error":"team_disabled"}`, verdict: gone, error: "team_disabled"},
		{name: "Slack: 302", slack: true, status: 302, body: "", verdict: refused, error: "redirects are not followed"},
		{name: "Slack: a page instead of a word", slack: true, status: 403, body: "<html>no_service</html>", verdict: refused, error: "403"},
		{name: "Slack: ok", slack: true, status: 200, body: "ok", verdict: delivered},
		{name: "Slack: JSON ok", slack: true, status: 200, body: `{"ok":true}`, verdict: delivered},
		{name: "Slack: other success", slack: true, status: 200, body: "1", verdict: delivered},
		{name: "Slack: a word of success", slack: true, status: 200, body: "no_service", verdict: delivered},
		{name: "Slack: JSON refusal", slack: true, status: 200, body: `{"ok":false,"error":"invalid_blocks"}`, verdict: refused, error: "200 OK: invalid_blocks"},
		{name: "Slack: JSON rate limit", slack: true, status: 200, body: `{"ok":false,"error":"ratelimited"}`, header: after("3"), verdict: throttled, wait: 3 * time.Second, error: "ratelimited"},
		{name: "Slack: JSON unknown", slack: true, status: 200, body: `{"ok":false,"error":"brand_new"}`, verdict: retry, error: "brand_new"},
		{name: "Slack: payload", slack: true, status: 400, body: "invalid_payload", verdict: refused, error: "invalid_payload"},
		{name: "Slack: no service", slack: true, status: 404, body: "no_service", verdict: gone, error: "404 Not Found: no_service"},
		{name: "Slack: token", slack: true, status: 403, body: "invalid_token", verdict: gone, error: "invalid_token"},
		{name: "Slack: archived", slack: true, status: 410, body: "channel_is_archived", verdict: gone, error: "channel_is_archived"},
		{name: "Slack: unknown 4xx", slack: true, status: 404, body: "brand_new", verdict: refused, error: "brand_new"},
		{name: "Slack: rollup", slack: true, status: 400, body: "rollup_error", verdict: retry, error: "rollup_error"},
		{name: "Slack: 5xx beats words", slack: true, status: 500, body: "no_service", verdict: retry, error: "500"},
		{name: "Slack: 429 beats words", slack: true, status: 429, body: "invalid_token", verdict: throttled, error: "429"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := receiver(t, answer(c.status, c.header, c.body))
			d := delivery(server.URL)
			if c.slack {
				slackKind(d)
			}
			o := send(t, newSender(t, func(o *webhook.Options) { o.Now = instant }), d)
			if o.Verdict != c.verdict || o.StatusCode != c.status || o.NothingSent {
				t.Errorf("outcome %+v, want %v with status %d", o, c.verdict, c.status)
			}
			if o.RetryAfter.Truncate(time.Second) != c.wait.Truncate(time.Second) {
				t.Errorf("RetryAfter %v, want %v", o.RetryAfter, c.wait)
			}
			if (o.Error == "") != (c.verdict == delivered) || !strings.Contains(o.Error, c.error) {
				t.Errorf("error %q, want …%s…", o.Error, c.error)
			}
			if c.status != 204 && c.status != 304 && o.Response != c.body {
				t.Errorf("response %q, want %q", o.Response, c.body)
			}
		})
	}
}
