package notify

import (
	"errors"
	"fmt"
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
			return fmt.Errorf("entry %d names no weekday", i+1)
		}
	}
	// In this week no clocks change.
	at := time.Date(2026, time.January, 12, 0, 0, 0, 0, time.UTC)
	until, err := rules.Until(at, quietDays, q)
	if err != nil {
		return err
	}
	if until.Equal(at.AddDate(0, 0, quietDays)) {
		return errors.New("they would never end")
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

// NeedlessAfterQuiet is why a message that quiet hours held ends as DISCARDED.
const NeedlessAfterQuiet = "Not sent: held by the quiet hours of the webhook, and of no use when they were over, " +
	"because the alert was acknowledged, resolved or snoozed before, or another message about it had waited as well"

// AfterQuiet decides which messages about one alert, held by the quiet hours of a webhook, are sent
// when the hours end. held are their reasons in the order in which they were written. Of the
// messages that say that the alert fires, only the first one is sent, and only if nobody looks
// after the alert (handled). The other events are sent only if the webhook was notified of the
// alert before: a webhook that was not notified of an alert is not notified of its end.
func AfterQuiet(handled, notified bool, held []Reason) []bool {
	send, fires := make([]bool, len(held)), false
	for i, reason := range held {
		if reason.fires() {
			send[i], fires = !handled && !fires, true
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
