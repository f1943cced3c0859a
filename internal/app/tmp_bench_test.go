package app_test

import (
	"testing"
	"time"
	"fmt"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

func BenchmarkSteps(b *testing.B) {
	w := newWorld(b)
	hook := w.webhook("ops")
	w.oweMany(hook, 60*256)
	o := w.db.Outbox()
	renderer, _ := webhook.NewRenderer(webhook.RendererOptions{})
	sender, _ := webhook.New(webhook.Options{Version: "test", Now: time.Now, AllowedNetworks: loopback()})
	best := map[string]time.Duration{}
	note := func(what string, d time.Duration) {
		if was, ok := best[what]; !ok || d < was {
			best[what] = d
		}
	}
	for range 60 {
		t0 := time.Now()
		claimed, err := o.Claim(b.Context(), notify.ClaimRequest{Replica: "x", Lease: time.Minute, Room: func(due []notify.Limits) []notify.Slots {
			note("backlog", time.Since(t0))
			t0 = time.Now()
			return []notify.Slots{{WebhookID: hook, Slots: 256}}
		}})
		if err != nil {
			b.Fatal(err)
		}
		note("claim", time.Since(t0))
		t0 = time.Now()
		var begins []notify.Begin
		for i := range claimed.Deliveries {
			d := &claimed.Deliveries[i]
			body, _ := renderer.Render(d)
			d.Body = &body
			d.At = time.Now()
			begins = append(begins, notify.Begin{NotificationID: d.NotificationID, Token: d.Token, Attempt: 1, Replica: "x", Lease: time.Minute, Fresh: &body})
		}
		note("render", time.Since(t0))
		t0 = time.Now()
		for i := range claimed.Deliveries {
			begins[i].Request = sender.Describe(b.Context(), &claimed.Deliveries[i])
		}
		note("describe", time.Since(t0))
		t0 = time.Now()
		if _, err := o.Begin(b.Context(), begins); err != nil {
			b.Fatal(err)
		}
		note("begin", time.Since(t0))
		var ss []notify.Settlement
		for i := range claimed.Deliveries {
			s := settlement(&claimed.Deliveries[i], notify.VerdictDelivered, notify.Delivered)
			s.Outcome.Head = &notify.ResponseHead{StatusLine: "HTTP/1.1 200 OK", Headers: []notify.HeaderField{{Name: "Content-Length", Value: "0"}, {Name: "Date", Value: "Sat"}}}
			ss = append(ss, s)
		}
		t0 = time.Now()
		if _, err := o.Settle(b.Context(), ss); err != nil {
			b.Fatal(err)
		}
		note("settle", time.Since(t0))
	}
	for k, v := range best {
		fmt.Println(k, v, v/256)
	}
}
