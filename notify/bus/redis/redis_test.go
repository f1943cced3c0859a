package redis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"tocsin/internal/bustest"
	"tocsin/internal/redistest"
	"tocsin/notify/bus"
	"tocsin/notify/bus/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stream = "tocsin-wake-ups"

func open(t *testing.T, o redis.Options) *redis.Driver {
	t.Helper()
	o.Stream = stream
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

// raw returns a client of the server that a driver uses.
func raw(t *testing.T, url string) *client.Client {
	t.Helper()
	o, err := client.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTheStreamIsCut(t *testing.T) {
	server := redistest.New(t)
	driver := open(t, redis.Options{URL: server.URL(), Consumer: "a", Length: 100})
	for range 1000 {
		if err := driver.Publish(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	// Redis trims whole nodes, of 100 messages by default.
	if n, err := raw(t, server.URL()).XLen(t.Context(), stream).Result(); err != nil || n > 300 {
		t.Errorf("the stream holds %d messages (%v), want about 100", n, err)
	}
}

// Consumers of dead replicas are removed when they have nothing pending, and a replica that ends
// removes its own.
func TestDeadConsumersAreRemoved(t *testing.T) {
	server := redistest.New(t)
	consumers := func() []client.XInfoConsumer {
		list, err := raw(t, server.URL()).XInfoConsumers(t.Context(), stream, "dispatchers").Result()
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	names := func() (all []string) {
		for _, c := range consumers() {
			all = append(all, c.Name)
		}
		return all
	}
	read := func(o redis.Options) bus.Subscription {
		driver := open(t, o)
		subscription, err := driver.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := driver.Publish(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		batch, err := subscription.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.Kept.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		return subscription
	}
	dead := read(redis.Options{URL: server.URL(), Consumer: "dead"})
	ended := read(redis.Options{URL: server.URL(), Consumer: "ended"})
	ended.Close(t.Context())
	if got := names(); !slices.Equal(got, []string{"dead"}) {
		t.Errorf("consumers %q, want the one that did not end", got)
	}
	// Redis reports the idle time of a consumer in whole milliseconds.
	for slices.ContainsFunc(consumers(), func(c client.XInfoConsumer) bool { return c.Idle == 0 }) {
	}
	read(redis.Options{URL: server.URL(), Consumer: "alive", ForgetAfter: time.Nanosecond}).Close(t.Context())
	if got := names(); len(got) != 0 {
		t.Errorf("consumers %q, want none", got)
	}
	dead.Close(t.Context())
}

// A message without the field is malformed, not fatal.
func TestAStrangersMessageIsMalformed(t *testing.T) {
	server := redistest.New(t)
	driver := open(t, redis.Options{URL: server.URL(), Consumer: "a"})
	subscription, err := driver.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close(t.Context())
	if err := raw(t, server.URL()).XAdd(t.Context(), &client.XAddArgs{Stream: stream, Values: []any{"hello", "world"}}).Err(); err != nil {
		t.Fatal(err)
	}
	batch, err := subscription.Next(t.Context())
	if err != nil || len(batch.Payloads) != 1 || len(batch.Payloads[0]) != 0 {
		t.Errorf("Next = %q, %v; want one empty payload", batch.Payloads, err)
	}
}

func TestErrorsNameNoPassword(t *testing.T) {
	const secret = "hunter2"
	if _, err := redis.New(redis.Options{URL: "redis://u:" + secret + "@host:port/x"}); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("New = %v", err)
	}
	driver := open(t, redis.Options{URL: "redis://u:" + secret + "@127.0.0.1:1/0"})
	if err := driver.Publish(t.Context(), nil); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("Publish = %v", err)
	}
}
