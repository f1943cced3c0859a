package redis_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/bustest"
	"tocsin/internal/redistest"
	"tocsin/notify/bus"
	"tocsin/notify/bus/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o redis.Options) *redis.Driver {
	t.Helper()
	o.Stream = "tocsin-wake-ups"
	if o.Length == 0 {
		o.Length = 10_000
	}
	driver, err := redis.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	return driver
}

func TestLaws(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bustest.Server {
		t.Helper()
		server := redistest.New(t)
		return bustest.Server{
			Nature: bustest.Nature{Keeps: true},
			Driver: func(t *testing.T, replica string, unacked time.Duration) bus.Driver {
				t.Helper()
				return open(t, redis.Options{URL: server.URL(), Consumer: replica, ClaimAfter: unacked})
			},
			Stop: server.Stop, Start: server.Start,
		}
	})
}
