package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/internal/bustest"
	"tocsin/notify/bus"
	"tocsin/notify/bus/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLaws(t *testing.T) {
	bustest.Run(t, func(*testing.T) bustest.Server {
		driver := memory.New()
		return bustest.Server{Driver: func(*testing.T, string, time.Duration) bus.Driver { return driver }}
	})
}

func TestDigestStandsForItsMessages(t *testing.T) {
	driver := memory.New()
	for _, payload := range []string{"1", "2", "3"} {
		if err := driver.Publish(t.Context(), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	subscription, err := driver.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := subscription.Next(t.Context()); err != nil || string(got.Payloads[0]) != "1" {
		t.Errorf("Next = %q, %v", got.Payloads, err)
	}
	if err := driver.Publish(t.Context(), []byte("4")); err != nil {
		t.Fatal(err)
	}
	if got, err := subscription.Next(t.Context()); err != nil || string(got.Payloads[0]) != "4" {
		t.Errorf("Next = %q, %v", got.Payloads, err)
	}
}
