package notify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tocsin/rules"
)

// QuietHours are the hours in which a webhook is only notified of critical alerts: the hours of
// each calendar. Other messages within these hours are held until they end.
//
// If a webhook was not notified of an alert before the hours began, it is notified once when they
// end, if the alert still fires and nobody looks after it; see [AfterQuiet]. Messages about Tocsin
// itself are never held, nor are those of replays, because a person has requested them.
type QuietHours []rules.Calendar

// Bounds of quiet hours.
const (
	MaxQuietHours = 10
	quietDays     = 8
)

// Check returns an error if the quiet hours make no sense.
func (q QuietHours) Check() error {
	if len(q) > MaxQuietHours {
		return fmt.Errorf("at most %d entries", MaxQuietHours)
	}
	for i := range q {
		if len(q[i].Weekdays) == 0 {
			return fmt.Errorf("entry %d has no weekday", i+1)
		}
		for j, day := range q[i].Weekdays {
			if slices.Contains(q[i].Weekdays[:j], day) {
				return fmt.Errorf("entry %d has the weekday %s twice", i+1, day)
			}
		}
	}
	// In this week no clocks change.
	at := time.Date(2026, time.January, 12, 0, 0, 0, 0, time.UTC)
	for i := range q {
		if _, err := rules.Until(at, quietDays, q[i:i+1]); err != nil {
			return fmt.Errorf("entry %d: %s", i+1, strings.TrimPrefix(err.Error(), "calendar: "))
		}
	}
	until, err := rules.Until(at, quietDays, q)
	if err != nil {
		return err
	}
	if until.Equal(at.AddDate(0, 0, quietDays)) {
		return errors.New("the quiet hours would never end; shorten them")
	}
	return nil
}

// Until returns when the quiet hours that contain an instant end. It returns the instant itself if
// no quiet hours contain it, or if the hours cannot be used; then nothing is held.
func (q QuietHours) Until(at time.Time) time.Time {
	if len(q) == 0 {
		return at
	}
	until, err := rules.Until(at, quietDays, q)
	if err != nil {
		return at
	}
	return until
}

// NeedlessAfterQuiet is why a message ends as DISCARDED that quiet hours held.
const NeedlessAfterQuiet = "Not sent: the quiet hours of the webhook held the message, and it was no longer useful when they ended, " +
	"because the alert had been acknowledged, resolved or snoozed, or another message about it was waiting"

// QuietMessage is a message about an alert that quiet hours have held.
type QuietMessage struct {
	Reason Reason
	// Handled says that somebody looks after the alert by now, as far as it counts for the message: a person who
	// acknowledged the alert and snoozed it wants the message at the end of the snooze.
	Handled bool
}

// AfterQuiet decides what is sent of the messages about one alert that the quiet hours of a webhook have
// held, in the order in which they were written. Of those that tell that the alert fires, the first one that is
// not handled is sent. What else happened to the alert is sent where
// the webhook was notified of the alert before, or is by that message: a webhook that was not notified of an alert is not
// notified of its end, and a receiver that opens an incident for it can close that.
func AfterQuiet(notified bool, held []QuietMessage) []bool {
	send, fires := make([]bool, len(held)), false
	for i, m := range held {
		if m.Reason.fires() {
			send[i] = !m.Handled && !fires
			fires = fires || send[i]
			notified = notified || send[i]
		} else {
			send[i] = notified
		}
	}
	return send
}

// fires reports whether a message says that an alert fires.
func (r Reason) fires() bool {
	switch r {
	case ReasonFired, ReasonReminder, ReasonSnoozeEnded, ReasonEscalated:
		return true
	case ReasonResolved, ReasonAcknowledged, ReasonReopened, ReasonRuleFailing, ReasonRuleRecovered, ReasonSourceFailing, ReasonSourceRecovered,
		ReasonWebhookOff, ReasonWebhookFailing, ReasonUndelivered, ReasonDigest:
	}
	return false
}
