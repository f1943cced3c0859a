package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/notify"
)

func TestRetryNotification(t *testing.T) {
	b := newBench(t)
	id := b.records.records[0].ID.String()
	got := into[api.Notification](b.do("POST", "/api/v1/notifications/"+id+"/retry", "").want(200))
	if len(got.Retries) != 1 || got.Retries[0].By == "" || got.Attempts == nil {
		t.Errorf("%+v", got)
	}
	b.do("POST", "/api/v1/notifications/"+uuid.NewString()+"/retry", "").problem(404, "not_found")
	b.records.records[0].Status = notify.Delivered
	b.do("POST", "/api/v1/notifications/"+id+"/retry", "").problem(409, "conflict")
}

func TestRetryNotifications(t *testing.T) {
	b := newBench(t)
	id := uuid.NewString()
	for body, field := range map[string]string{
		`{}`:                                 "",
		`{"ids":["` + id + `"],"filter":{}}`: "",
		`{"ids":[]}`:                         "ids",
		`{"ids":["` + strings.Repeat(id+`","`, 1000) + id + `"]}`:              "ids",
		`{"filter":{"status":["DELIVERED"]}}`:                                  "filter.status",
		`{"filter":{"status":["PENDING"]}}`:                                    "filter.status",
		`{"filter":{"reason":["WHATEVER"]}}`:                                   "filter.reason",
		`{"filter":{"ruleId":["` + strings.Repeat(id+`","`, 100) + id + `"]}}`: "filter.ruleId",
		`{"filter":{"rule":"x"}}`:                                              "filter.rule",
	} {
		p := b.do("POST", "/api/v1/notifications/retry", body).problem(400, "invalid")
		if field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != field) {
			t.Errorf("%.60s: %+v", body, p.Errors)
		}
	}
	if len(b.records.orders) > 0 {
		t.Fatalf("orders %+v", b.records.orders)
	}
	got := into[api.RetriedAnswer](b.do("POST", "/api/v1/notifications/retry", `{"filter":{"webhookId":["`+id+`"],"from":"2026-03-01T00:00:00Z"}}`).want(200))
	if got != (api.RetriedAnswer{Retried: 3, Skipped: 1}) {
		t.Errorf("%+v", got)
	}
	order := b.records.orders[0]
	if order.Actor == "" || order.IDs != nil || len(order.Filter.Statuses) != 2 || order.Filter.Webhooks[0].String() != id ||
		!order.Filter.From.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("order %+v", order)
	}
	b.do("POST", "/api/v1/notifications/retry", `{"ids":["`+id+`"]}`).want(200)
	if order := b.records.orders[1]; len(order.IDs) != 1 || order.Filter.Statuses != nil {
		t.Errorf("order %+v", order)
	}
}

func TestDiscardNotification(t *testing.T) {
	b := newBench(t)
	id := b.records.records[0].ID.String()
	if got := into[api.Notification](b.do("POST", "/api/v1/notifications/"+id+"/discard", "").want(200)); got.Status != notify.Discarded {
		t.Errorf("%+v", got)
	}
	if list := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?status=DISCARDED", "").want(200)); len(list.Items) != 1 {
		t.Errorf("%+v", list.Items)
	}
	b.do("POST", "/api/v1/notifications/"+uuid.NewString()+"/discard", "").problem(404, "not_found")
	b.records.records[0].Status = notify.Delivered
	b.do("POST", "/api/v1/notifications/"+id+"/discard", "").problem(409, "conflict")
}

func TestDiscardNotifications(t *testing.T) {
	b := newBench(t)
	id := uuid.NewString()
	for _, body := range []string{`{}`, `{"ids":[]}`, `{"filter":{"status":["DELIVERED"]}}`, `{"filter":{"status":["DISCARDED"]}}`} {
		b.do("POST", "/api/v1/notifications/discard", body).problem(400, "invalid")
	}
	got := into[api.DiscardedAnswer](b.do("POST", "/api/v1/notifications/discard", `{"filter":{"webhookId":["`+id+`"],"status":["PENDING","EXHAUSTED"]}}`).want(200))
	if got != (api.DiscardedAnswer{Discarded: 2, Skipped: 1}) {
		t.Errorf("%+v", got)
	}
	if order := b.records.orders[0]; order.Actor == "" || len(order.Filter.Statuses) != 2 || order.Filter.Webhooks[0].String() != id {
		t.Errorf("order %+v", order)
	}
}

func TestDigestsInTheRecord(t *testing.T) {
	b := newBench(t)
	digest := uuid.New()
	b.records.records[0].DigestID, b.records.records[0].DigestSize = &digest, 250
	b.records.records = append(b.records.records, api.NotificationRecord{Notification: notify.Notification{
		ID: digest, TenantID: "acme", WebhookID: uuid.New(), Reason: notify.ReasonDigest, Status: notify.Retrying,
		CreatedAt: instant(), DigestSize: 250,
	}})
	list := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?reason=FIRED&reason=DIGEST&onlyMessages=false", "").want(200))
	if len(list.Items) != 2 || *list.Items[0].DigestID != digest || *list.Items[0].DigestSize != 250 ||
		list.Items[1].AlertID != nil || list.Items[1].RuleID != nil || list.Items[1].DigestID != nil {
		t.Errorf("%+v", list.Items)
	}
	for query, want := range map[string]int{
		"reason=DIGEST": 1,
		"ruleId=" + b.records.records[0].RuleID.String(): 1,
		"from=2030-01-01T00:00:00Z":                      0,
		"to=2020-01-01T00:00:00Z":                        0,
	} {
		if got := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?"+query, "").want(200)); len(got.Items) != want {
			t.Errorf("%s: %d", query, len(got.Items))
		}
	}
	b.do("GET", "/api/v1/notifications?reason=NONE", "").problem(400, "invalid")
}
