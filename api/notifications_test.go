package api_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/notify"
)

func TestMessagesAreCountedByStatus(t *testing.T) {
	b := newBench(t)
	hook := uuid.New()
	got := into[api.NotificationCounts](b.do("GET", "/api/v1/notifications/counts?status=FAILED&webhookId="+hook.String()+"&from=2026-03-01T00:00:00Z", "").want(200))
	if got != (api.NotificationCounts{Retrying: 1, Delivered: 10_000}) {
		t.Errorf("%+v", got)
	}
	if f := b.records.counted; len(f.Statuses) != 1 || f.Statuses[0] != notify.Failed || len(f.Webhooks) != 1 || f.Webhooks[0] != hook || f.From == nil || f.To != nil {
		t.Errorf("asked for %+v", f)
	}
	if all := into[api.NotificationCounts](b.do("GET", "/api/v1/notifications/counts", "").want(200)); !all.Complete {
		t.Errorf("%+v", all)
	}
}

func TestASearchForMessagesGoesOnWhereItFoundNothing(t *testing.T) {
	b := newBench(t)
	b.records.searched = &api.NotificationMark{CreatedAt: instant(), ID: uuid.New()}
	page := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?q=order", "").want(200))
	if len(page.Items) != 0 || page.NextCursor == nil || page.SearchedTo == nil || !page.SearchedTo.Equal(instant()) {
		t.Fatalf("%+v", page)
	}
	b.records.searched = nil
	last := into[api.NotificationPage](b.do("GET", "/api/v1/notifications?q=order&cursor="+*page.NextCursor, "").want(200))
	if last.NextCursor != nil || last.SearchedTo != nil {
		t.Errorf("%+v", last)
	}
}

func TestListShowsTheLastResponse(t *testing.T) {
	b := newBench(t)
	item := into[api.NotificationPage](b.do("GET", "/api/v1/notifications", "").want(200)).Items[0]
	if item.LastStatusCode == nil || *item.LastStatusCode != 503 || item.LastDurationMs == nil || *item.LastDurationMs != 12 {
		t.Errorf("%+v", item)
	}
}

func TestABodyIsShownAsFarAsItIsStored(t *testing.T) {
	b := newBench(t)
	path := "/api/v1/notifications/" + b.records.records[0].ID.String()
	if n := into[api.Notification](b.do("GET", path, "").want(200)); n.Body != nil {
		t.Errorf("a body %+v that is not stored", n.Body)
	}
	b.records.records[0].Body = &notify.Body{ContentType: "text/plain", Content: []byte("a\xffb" + strings.Repeat("x", 1<<16))}
	n := into[api.Notification](b.do("GET", path, "").want(200))
	if n.Body == nil || n.Body.ContentType != "text/plain" || !n.Body.Truncated || !strings.HasPrefix(n.Body.Text, "a\uFFFDbx") {
		t.Errorf("%+v", n.Body)
	}
}

func TestTheActivityOfAWebhook(t *testing.T) {
	b := newBench(t)
	path, _ := b.aWebhook()
	got := into[api.WebhookActivity](b.do("GET", path+"/activity", "").want(200))
	if len(got.Buckets) != api.FlowHours || got.BucketSeconds != 3600 || !got.Complete || got.LastSuccessAt == nil {
		t.Fatalf("%+v", got)
	}
	first, second := got.Buckets[0], got.Buckets[1]
	if first.Delivered != 7 || first.Failed != 1 || *first.MedianMs != 12 || *first.P95Ms != 250 || second.MedianMs != nil {
		t.Errorf("%+v, %+v", first, second)
	}
	b.do("GET", "/api/v1/webhooks/"+uuid.NewString()+"/activity", "").problem(404, "not_found")
}
