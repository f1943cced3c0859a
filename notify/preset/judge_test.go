package preset_test

import (
	"net/http"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/preset"
)

// TestAnswers checks the meaning of services' responses beyond that of their status.
func TestAnswers(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_795_244_522, 0)
	for _, test := range []struct {
		preset, what string
		status       int
		header       map[string]string
		body         string
		byStatus     notify.Verdict
		want         notify.Verdict
		wait         time.Duration
	}{
		{"pagerduty", "an unknown key", 400, nil, `{"status":"invalid event","errors":["'routing_key' is invalid"]}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"pagerduty", "a key of the right form that it does not know", 400, nil, `{"status":"invalid key","message":"Invalid routing key"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"pagerduty", "a body that it does not take", 400, nil, `{"status":"invalid event","errors":["Length of 'summary' is too long"]}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"pagerduty", "too many", 429, nil, ``, notify.VerdictThrottled, notify.VerdictThrottled, 30 * time.Second},
		{"jsm", "a dead key", 403, nil, `{"message":"You are not authorized"}`, notify.VerdictRetry, notify.VerdictGone, 0},
		{"jsm", "a key of another form", 422, nil, `{"message":"Key format is not valid!","took":0.0,"requestId":"a574eb09"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"jsm", "a body that it does not take", 422, nil, `{"message":"Request body is not processable. Please check the errors."}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"teams", "a workflow that is turned off or deleted", 400, nil, `{"error":{"code":"WorkflowTriggerIsNotEnabled","message":"Could not execute workflow 'x' trigger 'manual' with state 'Disabled': trigger is not enabled."}}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"teams", "a body that it does not take", 400, nil, `{"error":{"code":"TriggerInputSchemaMismatch"}}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"teams", "an error under success", 200, nil, `Webhook message delivery failed with error: 429`, notify.VerdictDelivered, notify.VerdictRetry, 0},
		{"teams", "accepted", 202, nil, ``, notify.VerdictDelivered, notify.VerdictDelivered, 0},
		{"discord", "too many, in decimals", 429, nil, `{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, notify.VerdictThrottled, notify.VerdictThrottled, 65 * time.Second},
		{"discord", "too many, by header", 429, map[string]string{"X-RateLimit-Reset-After": "1.2"}, ``, notify.VerdictThrottled, notify.VerdictThrottled, 2 * time.Second},
		{"discord", "deleted", 404, nil, `{"message":"Unknown Webhook","code":10015}`, notify.VerdictRetry, notify.VerdictGone, 0},
		{"discord", "a forum channel", 400, nil, `{"message":"Webhooks posted to forum channels must have a thread_name or thread_id","code":220001}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"discord", "a body that it does not take", 400, nil, `{"embeds":["0"]}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"mattermost", "deleted", 400, nil, `{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook."}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"mattermost", "another 400", 400, nil, `{"id":"web.incoming_webhook.text.app_error"}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"mattermost", "its creator left the private channel", 403, nil, `{"id":"web.incoming_webhook.permissions.app_error","message":"Inappropriate channel permissions.","status_code":403}`, notify.VerdictRetry, notify.VerdictGone, 0},
		{"mattermost", "its creator was deleted", 403, nil, `{"id":"web.incoming_webhook.user.app_error","status_code":403}`, notify.VerdictRetry, notify.VerdictGone, 0},
		{"mattermost", "its channel was deleted", 404, nil, `{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel.","status_code":404}`, notify.VerdictRetry, notify.VerdictGone, 0},
		{"mattermost", "a proxy before it", 403, nil, `<html>Forbidden</html>`, notify.VerdictRetry, notify.VerdictRetry, 0},
		{"mattermost", "disabled", 501, nil, ``, notify.VerdictRetry, notify.VerdictGone, 0},
		{"telegram", "too many", 429, nil, `{"ok":false,"parameters":{"retry_after":14}}`, notify.VerdictThrottled, notify.VerdictThrottled, 14 * time.Second},
		{"telegram", "no chat", 400, nil, `{"ok":false,"description":"Bad Request: chat not found"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "no topic", 400, nil, `{"ok":false,"description":"Bad Request: message thread not found"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "a closed topic", 400, nil, `{"ok":false,"description":"Bad Request: TOPIC_CLOSED"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "no right to write", 400, nil, `{"ok":false,"description":"Bad Request: not enough rights to send text messages to the chat"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "no right to post in a channel", 400, nil, `{"ok":false,"description":"Bad Request: need administrator rights in the channel chat"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "restricted in a group", 400, nil, `{"ok":false,"description":"Bad Request: have no rights to send a message"}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"telegram", "a body that it does not take", 400, nil, `{"ok":false,"description":"Bad Request: message is too long"}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"telegram", "another id", 400, nil, `{"ok":false,"description":"Bad Request: group chat was upgraded","parameters":{"migrate_to_chat_id":-1001}}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"ntfy", "the day's quota", 429, nil, `{"code":42908,"http":429}`, notify.VerdictThrottled, notify.VerdictThrottled, time.Hour},
		{"ntfy", "too many", 429, nil, `{"code":42901,"http":429}`, notify.VerdictThrottled, notify.VerdictThrottled, time.Minute},
		{"goalert", "too many open alerts", 409, nil, ``, notify.VerdictRefused, notify.VerdictRetry, 0},
		{"grafana-irm", "too many, as text", 429, nil, `Ratelimit`, notify.VerdictThrottled, notify.VerdictThrottled, time.Minute},
		{"pushover", "a bad token", 400, nil, `{"token":"invalid","errors":["application token is invalid"],"status":0}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "no sender", 400, nil, `{"code":21603,"message":"A 'From' phone number is required.","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a sender of somebody else", 400, nil, `{"code":21606,"message":"The From phone number +15551234567 is not a valid, SMS-capable inbound phone number or short code for your account.","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a sender that is no number", 400, nil, `{"code":21212,"message":"The 'From' number is not a valid phone number","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a recipient that is no number", 400, nil, `{"code":21211,"message":"The 'To' number +15557654321 is not a valid phone number","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a recipient without SMS", 400, nil, `{"code":21614,"message":"'To' number is not a valid mobile number","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a recipient that answered STOP", 400, nil, `{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}`, notify.VerdictRefused, notify.VerdictGone, 0},
		{"twilio", "a full queue", 400, nil, `{"code":21611,"message":"This 'From' number has exceeded the maximum number of queued messages","status":400}`, notify.VerdictRefused, notify.VerdictThrottled, 10 * time.Minute},
		{"twilio", "a body that it does not take", 400, nil, `{"code":21617,"message":"The concatenated message body exceeds the 1600 character limit.","status":400}`, notify.VerdictRefused, notify.VerdictRefused, 0},
		{"jira", "an issue that is being moved", 409, nil, `{"errorMessages":["The issue is being transitioned"]}`, notify.VerdictRefused, notify.VerdictRetry, 0},
		{"splunk-on-call", "a wrong key", 404, nil, ``, notify.VerdictRetry, notify.VerdictGone, 0},
	} {
		header := http.Header{}
		for name, value := range test.header {
			header.Set(name, value)
		}
		got := set.Get(test.preset).Judge(test.status, header, []byte(test.body), preset.Judgement{Verdict: test.byStatus}, now)
		if got.Verdict != test.want || got.Wait != test.wait {
			t.Errorf("%s, %s: %s after %v; want %s after %v", test.preset, test.what, got.Verdict, got.Wait, test.want, test.wait)
		}
		if got.Verdict == notify.VerdictGone && got.Remedy == "" {
			t.Errorf("%s, %s: the outcome does not say what to do", test.preset, test.what)
		}
	}
}

// TestEveryFormOfRetryAfter reads pauses as services write them.
func TestEveryFormOfRetryAfter(t *testing.T) {
	t.Parallel()
	p := parse(t, minimal+`
retryAfter:
  - {header: Retry-After, unit: date}
  - {header: X-Reset, unit: epoch}
  - {pointer: /wait/ms, unit: milliseconds}
  - {pointer: /errors/*/after, unit: seconds}
`)
	now := time.Unix(1_795_244_522, 0)
	for _, test := range []struct {
		name, value, body string
		want              time.Duration
	}{
		{"Retry-After", now.Add(90 * time.Second).UTC().Format(http.TimeFormat), "", 90 * time.Second},
		{"X-Reset", "1795244530.5", "", 9 * time.Second},
		{"X-Reset", "17952445300000", "", 24 * time.Hour},
		{"X-Reset", "-5", "", 0},
		{"X", "", `{"wait":{"ms":1500}}`, 2 * time.Second},
		{"X", "", `{"errors":[{"code":1},{"after":"7"}]}`, 7 * time.Second},
		{"X", "", `{"wait":{"ms":"NaN"}}`, 0},
		{"X", "", `no JSON`, 0},
	} {
		header := http.Header{}
		header.Set(test.name, test.value)
		if got := p.Judge(429, header, []byte(test.body), preset.Judgement{Verdict: notify.VerdictThrottled}, now); got.Wait != test.want {
			t.Errorf("%s: %s %s: waits %v, want %v", test.name, test.value, test.body, got.Wait, test.want)
		}
	}
}
