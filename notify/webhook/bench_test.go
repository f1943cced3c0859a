package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

// BenchmarkSend compares an attempt with the same request by a plain client.
func BenchmarkSend(b *testing.B) {
	server := httptest.NewServer(answer(http.StatusOK, nil, "ok"))
	b.Cleanup(server.Close)
	d := delivery(server.URL + "/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx")
	b.Run("sender", func(b *testing.B) {
		s, err := webhook.New(webhook.Options{Now: time.Now, AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			if o := s.Send(b.Context(), d); o.Verdict != notify.VerdictDelivered {
				b.Fatal(o)
			}
		}
	})
	b.Run("client", func(b *testing.B) {
		client := server.Client()
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, d.Webhook.URL, bytes.NewReader(d.Body.Content))
			if err != nil {
				b.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

func BenchmarkRender(b *testing.B) {
	r, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example"})
	if err != nil {
		b.Fatal(err)
	}
	for name, change := range map[string]func(*notify.Delivery){
		"slack":   slackKind,
		"generic": func(*notify.Delivery) {},
		"custom": func(d *notify.Delivery) {
			d.Webhook.BodyTemplate = `{"id": "{{alert.id}}", "text": "{{exchange.errorMessage}}"}`
		},
	} {
		b.Run(name, func(b *testing.B) {
			d := delivery("", change)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Render(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
