package api_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/routing"
	"tocsin/api"
)

// policyOfTenant is a store that has one policy.
type policyOfTenant struct {
	api.RoutingStore

	policy *routing.Policy
}

func (p policyOfTenant) Get(context.Context, string) (api.RoutingRecord, error) {
	return api.RoutingRecord{Policy: *p.policy, Version: 1}, nil
}

// TestNoDigestOfAReplayGoesToAKeyedReceiver checks that such a digest is refused, with the reason:
// the receiver would open nothing.
func TestNoDigestOfAReplayGoesToAKeyedReceiver(t *testing.T) {
	t.Parallel()
	var policy routing.Policy
	b := newReceiversBench(t, func(o *api.Options) { o.Routing = policyOfTenant{policy: &policy} })
	pager := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"pager","kind":"generic","preset":{"id":"pagerduty","inputs":{"routingKey":"`+routingKey+`"}}}`).want(201))
	chat := into[api.Webhook](b.do("POST", "/api/v1/webhooks", `{"name":"chat","kind":"generic","url":"https://chat.example/hook"}`).want(201))
	n := 0
	start := func(rule, messages string) answer {
		n++
		body := strings.Replace(ruleBody, "Failed orders", "rule "+strconv.Itoa(n), 1)
		made := into[api.Rule](b.do("POST", "/api/v1/rules", strings.Replace(body, "{", "{"+rule, 1)).want(201))
		return b.do("POST", "/api/v1/rules/"+made.ID.String()+"/replays", `{"from":"2026-02-01T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"`+messages+`"}`)
	}
	bound := `"webhookIds":["` + chat.ID.String() + `","` + pager.ID.String() + `"],`
	if got := start(bound, "DIGEST").problem(409, "conflict"); got.Detail == nil || !strings.Contains(*got.Detail, "The webhook pager gets no digests, because PagerDuty") {
		t.Errorf("refused with %+v", got)
	}
	start(bound, "EACH").want(201)
	start(bound, "NONE").want(201)
	start(`"webhookIds":["`+chat.ID.String()+`"],`, "DIGEST").want(201)
	routed := `"useRoutingPolicy":true,`
	start(routed, "DIGEST").want(201)
	policy.DefaultWebhookIDs = []uuid.UUID{pager.ID}
	start(routed, "DIGEST").problem(409, "conflict")
	policy = routing.Policy{Routes: []routing.Route{{WebhookIDs: []uuid.UUID{pager.ID}}}}
	start(routed, "DIGEST").problem(409, "conflict")
	start(routed, "EACH").want(201)
}

// TestReplays checks what is requested from the store, and what the API returns of its answer.
func TestReplays(t *testing.T) {
	b := newBench(t)
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	path := "/api/v1/rules/" + rule.ID.String() + "/replays"
	const span = `"from":"2026-02-01T00:00:00.000000001Z","to":"2026-02-02T00:00:00Z"`
	previewed := into[api.RuleReplayPreview](b.do("POST", path+"/preview", "{"+span+"}").want(200))
	if previewed.Existing != 1 || previewed.Preview.Alerts != 3 || previewed.Preview.From.Nanosecond() != 1 || b.past.compared[0].RuleID != rule.ID {
		t.Errorf("preview %+v of %+v", previewed, b.past.compared[0])
	}
	// A call has 15 s. This one reads many days, and then looks each exchange up.
	if b.past.within <= 15*time.Second || b.past.within > time.Minute {
		t.Errorf("the preview of a replay has %v", b.past.within)
	}
	below := b.do("POST", path+"/preview", `{"from":"2026-01-01T12:00:00Z","to":"2026-02-02T00:00:00Z"}`).problem(400, "invalid")
	if len(below.Errors) != 1 || below.Errors[0].Field != "from" || !strings.Contains(below.Errors[0].Message, "before 2026-01-01T12:00:00.123456789Z") {
		t.Errorf("below the floor: %+v", below.Errors)
	}
	begun := into[api.RuleReplay](b.do("POST", path, `{`+span+`,"messages":"DIGEST"}`).want(201))
	if begun.State != "RUNNING" || begun.Messages != "DIGEST" || begun.CreatedBy == "" || begun.EndedAt != nil || !begun.At.Equal(begun.From) {
		t.Errorf("begun %+v", begun)
	}
	list := into[api.RuleReplayList](b.do("GET", path, "").want(200))
	if len(list.Items) != 1 || list.Items[0].ID != begun.ID || list.Floor == nil {
		t.Errorf("list %+v", list)
	}
	over := into[api.RuleReplay](b.do("POST", "/api/v1/replays/"+begun.ID.String()+"/cancel", "").want(200))
	if over.State != "CANCELLED" || over.EndedAt == nil || over.EndedBy == nil {
		t.Errorf("cancelled %+v", over)
	}
	b.do("POST", "/api/v1/replays/"+rule.ID.String()+"/cancel", "").want(404)
	b.do("POST", "/api/v1/rules/"+begun.ID.String()+"/replays", `{`+span+`,"messages":"EACH"}`).want(404)
	b.do("POST", "/api/v1/rules/"+begun.ID.String()+"/replays/preview", "{"+span+"}").want(404)
	b.do("GET", "/api/v1/rules/"+begun.ID.String()+"/replays", "").want(404)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for body, field := range map[string]string{
		`{` + span + `,"messages":"SOME"}`:                                              "messages",
		`{"from":"2026-02-02T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "to",
		`{"from":"2020-02-02T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "to",
		`{"from":"0001-01-01T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "from",
		`{"from":"2026-02-02T00:00:00Z","to":"` + later + `","messages":"NONE"}`:        "to",
	} {
		if got := b.do("POST", path, body).problem(400, "invalid"); len(got.Errors) != 1 || got.Errors[0].Field != field {
			t.Errorf("%s: %+v, want something about %s", body, got, field)
		}
	}
	if got := b.do("POST", path, `{`+span+`,"messages":"SOME"}`).problem(400, "invalid"); got.Errors[0].Message != "Must be one of NONE, DIGEST, EACH" {
		t.Errorf("%+v", got.Errors)
	}
	counts := strings.Replace(ruleBody, "PER_EXCHANGE", "COUNT_IN_WINDOW", 1)
	counts = strings.Replace(counts, "{", `{"threshold":1,"windowSeconds":60,`, 1)
	counts = strings.Replace(counts, "Failed orders", "counts", 1)
	windowed := into[api.Rule](b.do("POST", "/api/v1/rules", counts).want(201))
	b.do("POST", "/api/v1/rules/"+windowed.ID.String()+"/replays/preview", "{"+span+"}").problem(409, "conflict")
}
