package nats_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/bustest"
	"tocsin/internal/natstest"
	"tocsin/notify/bus"
	"tocsin/notify/bus/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o nats.Options) *nats.Driver {
	t.Helper()
	o.Stream = "tocsin-wake-ups"
	if o.Length == 0 {
		o.Length = 10_000
	}
	driver, err := nats.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestLaws(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bustest.Server {
		t.Helper()
		server := natstest.New(t)
		return bustest.Server{
			Nature: bustest.Nature{Keeps: true},
			Driver: func(t *testing.T, replica string, unacked time.Duration) bus.Driver {
				t.Helper()
				return open(t, nats.Options{URL: server.URL(), Replica: replica, AckWait: unacked})
			},
			Stop: server.Stop, Start: server.Start,
		}
	})
}

func TestErrorsNameNoPassword(t *testing.T) {
	const secret = "hunter2"
	if _, err := nats.New(nats.Options{URL: "nats://u:" + secret + "@host:port"}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("New = %v", err)
	}
	driver := open(t, nats.Options{URL: "nats://u:" + secret + "@127.0.0.1:1"})
	if err := driver.Publish(t.Context(), nil); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("Publish = %v", err)
	}
}
