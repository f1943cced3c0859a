package alerts_test

import (
	"testing"
	"time"

	"tocsin/alerts"
	"tocsin/rules"
)

// A pending alert that is older than the arming of its rule waited for another condition, so its
// wait does not count for the new one.
func TestPendingAlertOlderThanTheArmingDoesNotFire(t *testing.T) {
	w := alerts.Window{Mode: rules.AbsentInWindow, Threshold: 1, For: 10 * time.Minute}
	began := time.Unix(1_800_000_000, 0)
	open := &alerts.Open{State: alerts.Pending, Since: began}
	value := alerts.Value{ArmedAt: began.Add(time.Minute)}
	if got := w.Next(open, value, began.Add(11*time.Minute)); got != alerts.Drop {
		t.Errorf("an alert that waited for another condition takes the step %v, want %v", got, alerts.Drop)
	}
}
