package notify_test

import (
	"testing"

	"github.com/google/uuid"

	"tocsin/notify"
)

func TestIDIsDerived(t *testing.T) {
	alert := uuid.MustParse("019aaf00-1234-8abc-9def-0123456789ab")
	webhook := uuid.MustParse("019aaf00-0000-7000-8000-000000000001")
	id := notify.ID(alert, webhook, notify.ReasonFired, 0)
	if got := notify.ID(alert, webhook, notify.ReasonFired, 0); got != id {
		t.Errorf("derived again: %s, want %s", got, id)
	}
	// What is stored has ids that were derived in this way, and must be found by them.
	if want := "019aaf00-1234-8122-aefb-14c0390687d3"; id.String() != want {
		t.Errorf("got %s, want %s", id, want)
	}
	if id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		t.Errorf("version %d, variant %s; want 8 and RFC4122", id.Version(), id.Variant())
	}
	if [6]byte(id[:6]) != [6]byte(alert[:6]) {
		t.Errorf("the instant is %x, want that of the alert: %x", id[:6], alert[:6])
	}
}

func TestIDsDistinguishNotifications(t *testing.T) {
	alert, webhook := uuid.New(), uuid.New()
	otherAlert := alert
	otherAlert[15]++
	ids := map[uuid.UUID]string{}
	for name, id := range map[string]uuid.UUID{
		"first":            notify.ID(alert, webhook, notify.ReasonFired, 0),
		"other alert":      notify.ID(otherAlert, webhook, notify.ReasonFired, 0),
		"other webhook":    notify.ID(alert, uuid.New(), notify.ReasonFired, 0),
		"other reason":     notify.ID(alert, webhook, notify.ReasonReminder, 0),
		"next":             notify.ID(alert, webhook, notify.ReasonReminder, 1),
		"alert as webhook": notify.ID(webhook, alert, notify.ReasonFired, 0),
	} {
		if other, taken := ids[id]; taken {
			t.Errorf("%q and %q have one id: %s", name, other, id)
		}
		ids[id] = name
	}
}
