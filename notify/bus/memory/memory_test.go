package memory_test

import (
	"testing"

	"tocsin/notify"
	"tocsin/notify/bus/memory"
)

func TestOneWakeUpStandsForMany(t *testing.T) {
	bus := memory.New()
	for range 3 {
		if err := bus.Publish(t.Context(), notify.WakeUp{Notifications: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-bus.WakeUps(); got.WakeUp.Notifications != 1 {
		t.Errorf("got %+v", got)
	}
	select {
	case got := <-bus.WakeUps():
		t.Errorf("a second wake-up: %+v", got)
	default:
	}
}
