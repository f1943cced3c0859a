//go:build unix

package torture

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

const oneAlert = "0199a1b2-0000-7000-8000-000000000001"

// TestServicesReadMessages checks by which key the simulated services distinguish alerts.
func TestServicesReadMessages(t *testing.T) {
	t.Parallel()
	raised := arrival{alertID: oneAlert, correlation: "x-7", event: aRaising}
	event := func(is string) arrival { return arrival{alertID: oneAlert, event: is} }
	pager := func(action, more string) string {
		return `{"routing_key": "` + routingKey + `", "dedup_key": "` + oneAlert + `", "event_action": "` + action + `"` + more + `}`
	}
	const payload = `, "payload": {"summary": "s", "source": "crm", "severity": "critical", "custom_details": {"correlation_id": "x-7"}}`
	slackWith := func(text, fields string) string {
		return `{"text": "` + text + `: title", "blocks": [{"type": "section", "fields": [` + fields + `]}, {"type": "context", "elements":
			[{"text": "Execution ` + "`1`  ·  Correlation `x-7`  ·  Alert `" + oneAlert + "`" + `"}]}, {"type": "actions", "elements": [{"text": {"text": "Open"}}]}]}`
	}
	key := map[string][]string{"Authorization": {"GenieKey " + genieKey}}
	for name, test := range map[string]struct {
		hook, url string
		header    map[string][]string
		body      string
		want      arrival
	}{
		"PagerDuty, raised":       {hook: pagerDuty, url: "/pagerduty/v2/enqueue", body: pager("trigger", payload), want: raised},
		"PagerDuty, acknowledged": {hook: pagerDuty, url: "/pagerduty/v2/enqueue", body: pager("acknowledge", ""), want: event(anAcknowledging)},
		"PagerDuty, resolved":     {hook: pagerDuty, url: "/pagerduty/v2/enqueue", body: pager("resolve", ""), want: event(aResolution)},
		"PagerDuty, no payload":   {hook: pagerDuty, url: "/pagerduty/v2/enqueue", body: pager("trigger", "")},
		"PagerDuty, no action":    {hook: pagerDuty, url: "/pagerduty/v2/enqueue", body: pager("", payload)},
		"PagerDuty, elsewhere":    {hook: pagerDuty, url: "/pagerduty/v1", body: pager("trigger", payload)},
		"JSM, raised": {
			hook: jiraService, url: "/jsm/v2/alerts", header: key, body: `{"message": "m", "alias": "` + oneAlert + `", "details": {"correlationId": "x-7"}}`, want: raised,
		},
		"JSM, resolved":     {hook: jiraService, url: "/jsm/v2/alerts/" + oneAlert + "/close?identifierType=alias", header: key, body: `{"note": "n"}`, want: event(aResolution)},
		"JSM, by id":        {hook: jiraService, url: "/jsm/v2/alerts/" + oneAlert + "/close", header: key, body: `{"note": "n"}`},
		"JSM, without key":  {hook: jiraService, url: "/jsm/v2/alerts", body: `{"message": "m", "alias": "` + oneAlert + `"}`},
		"Slack, raised":     {hook: slackIncoming, url: "/slack", body: slackWith("🔴 CRITICAL", "1"), want: arrival{alertID: oneAlert, correlation: "x-7", event: aRaising, whole: true}},
		"Slack, resolved":   {hook: slackIncoming, url: "/slack", body: slackWith("🟢 Resolved", ""), want: arrival{alertID: oneAlert, correlation: "x-7", event: aResolution}},
		"Slack, without id": {hook: slackIncoming, url: "/slack", body: `{"text": "Resolved: title", "blocks": []}`},
	} {
		to, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readArrival(test.hook, to, test.header, []byte(test.body))
		if (err == nil) != (test.want.alertID != "") || err == nil && !equalArrivals(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	mailed := "From: a@example.com\r\nMessage-ID: <message@example.com>\r\nReferences: <" + oneAlert + "@example.com>\r\n" +
		"Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		"Resolved: t=C3=BCr\r\nCorrelation: x-7\r\n--b--\r\n"
	id, got, err := readMail([]byte(mailed))
	if want := (arrival{alertID: oneAlert, correlation: "x-7", event: aResolution}); err != nil || id != "message" || !equalArrivals(got, want) {
		t.Errorf("mailed: %s, %+v, %v", id, got, err)
	}
}

func equalArrivals(a, b arrival) bool {
	return a.alertID == b.alertID && a.correlation == b.correlation && a.event == b.event && a.whole == b.whole
}

// TestServicesAreHeldToAlerts changes what the services received, and checks that the checker
// notices.
func TestServicesAreHeldToAlerts(t *testing.T) {
	t.Parallel()
	all := []string{aRaising, anAcknowledging, aResolution}
	of := func(hook, alertID string, events ...string) (out []request) {
		for _, e := range events {
			out = append(out, request{hook: hook, webhookID: alertID + e, arrival: arrival{alertID: alertID, event: e}, read: true, accepted: true})
		}
		return out
	}
	tried := func(verdict string) []attempt {
		at := time.Unix(10, 0)
		return []attempt{{StartedAt: at, Verdict: verdict, StoredAt: at.Add(time.Second)}, {StartedAt: at.Add(2 * time.Second), Verdict: "DELIVERED"}}
	}
	done := issue{key: "OPS-1", alertID: oneAlert, done: true}
	for name, test := range map[string]struct {
		change func([]request) []request
		issues []issue
		// verdict is the verdict of an attempt before another one.
		verdict string
		want    finding
	}{
		"all is well":  {},
		"repeated":     {change: func(r []request) []request { return append(of(pagerDuty, oneAlert, aRaising), r...) }},
		"one missing":  {change: func(r []request) []request { return slices.Delete(r, 0, 3) }, want: neverReceived},
		"not closed":   {change: func(r []request) []request { return slices.Delete(r, 2, 3) }, want: neverReceived},
		"not accepted": {change: func(r []request) []request { r[0].accepted = false; return r }, want: neverReceived},
		"closed first": {change: func(r []request) []request { r[0], r[2] = r[2], r[0]; return r }, want: wrongMessage},
		"opened again": {
			change: func(r []request) []request { return append(r, of(pagerDuty, oneAlert, aRaising)...) }, verdict: "RETRY", want: repeatedOutside,
		},
		"opened again by who was stopped": {change: func(r []request) []request { return append(r, of(pagerDuty, oneAlert, aRaising)...) }},
		"an alert that there is not":      {change: func(r []request) []request { return append(r, of(eMail, "other", aRaising)...) }, want: wrongMessage},
		"an issue that is open":           {issues: []issue{{alertID: oneAlert}}, want: wrongMessage},
		"no issue":                        {issues: []issue{}, want: wrongMessage},
		"two issues":                      {issues: []issue{done, done}, verdict: "RETRY", want: repeatedOutside},
		"two issues by who was stopped":   {issues: []issue{done, done}},
	} {
		w := &world{options: Options{Form: Receivers}, truth: &truth{handled: map[string][]string{oneAlert: {anAcknowledging, aResolution}}}}
		w.truth.lives = []*life{{id: "rule", rule: rule{}, bound: []binding{{1, append([]string{"a"}, services()...)}}}}
		w.receiver = &receiver{jira: &jira{}}
		if test.issues == nil {
			test.issues = []issue{done}
		}
		for _, i := range test.issues {
			w.receiver.jira.issues = append(w.receiver.jira.issues, &i)
		}
		var came []request
		found := &tables{
			alerts:   []alert{{ID: oneAlert, RuleID: "rule", RuleVersion: 1, About: anExchange, State: aResolution}},
			attempts: map[string][]attempt{oneAlert + aRaising: tried(test.verdict)},
		}
		for _, hook := range services() {
			came = append(came, of(hook, oneAlert, all...)...)
			for _, e := range all {
				found.notifications = append(found.notifications, notification{ID: oneAlert + e, AlertID: oneAlert, Hook: hook, Reason: e})
			}
		}
		if test.change != nil {
			came = test.change(came)
		}
		for _, r := range came {
			w.receiver.log = append(w.receiver.log, &r)
		}
		var report Report
		w.checkServices(&report, found)
		if report.OK() != (test.want == "") || test.want != "" && (report.found[test.want] != 1 || len(report.found) != 1) {
			t.Errorf("%s: %v", name, &report)
		}
		if !strings.Contains(report.String(), "alerts at pagerduty 1, jsm 1, slack 1, email 1, jira 1") {
			t.Errorf("%s: %v", name, &report)
		}
	}
}
