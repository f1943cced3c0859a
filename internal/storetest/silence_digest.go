package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/silences"
	"tocsin/internal/retention"
	"tocsin/notify"
	"tocsin/rules"
)

// digesting returns the definition of a silence of an hour that asks for a digest.
func (l *law) digesting(name string) silences.Definition {
	l.Helper()
	l.hold("a")
	ends := l.now.Add(time.Hour)
	return silences.Definition{Name: name, Match: orders(), StartsAt: l.now, EndsAt: &ends, Digest: true}
}

func (l *law) createSilence(d silences.Definition) uuid.UUID {
	l.Helper()
	id, err := l.CreateSilence(d)
	l.must(err)
	return id
}

// digests writes the digests that are due, and checks how many are to be sent to the webhook.
func (l *law) digests(what string, want int) {
	l.Helper()
	due, err := l.DigestSilences()
	l.must(err)
	l.equal(what+": digests to be sent", due[l.webhook], want)
	l.equal(what+": digests to be sent to others", len(due), min(want, 1))
}

// lists claims a digest, and checks that it lists these messages, which keep their own answer. It
// returns the digest.
func (l *law) lists(silence uuid.UUID, messages ...uuid.UUID) *notify.Digest {
	l.Helper()
	d := l.one("a")
	l.equal("reason", d.Reason, notify.ReasonDigest)
	if d.Digest == nil || d.Digest.Size != len(messages) || d.Digest.Silence == nil || d.Digest.Silence.ID != silence {
		l.Fatalf("the digest is %+v, want %d messages of silence %s", d.Digest, len(messages), silence)
	}
	l.settle("a", d, delivered())
	l.is(d.NotificationID, notify.Delivered, "DELIVERED")
	for _, id := range messages {
		l.equal("listed in", l.ListedIn(id), d.NotificationID)
		l.equal("suppressed by", l.SuppressedBy(id), silence)
		l.is(id, notify.Suppressed)
	}
	l.digests("afterwards", 0)
	l.equal("claimed afterwards", len(l.claim("a", 8)), 0)
	return d.Digest
}

func silenceDigest(l *law) {
	id := l.createSilence(l.digesting("one"))
	first := l.suppressed(id)
	l.Advance(30 * time.Minute)
	second := l.suppressed(id)
	l.digests("in force", 0)
	l.Advance(31 * time.Minute)
	after := l.suppressed(uuid.Nil)
	l.digests("over", 1)
	l.settle("a", l.one("a"), delivered())
	l.equal("listed after the end", l.ListedIn(after), uuid.Nil)
	l.lists(id, first, second)

	l.createSilence(l.digesting("of nothing"))
	l.Advance(61 * time.Minute)
	l.digests("nothing was suppressed", 0)
}

func silenceDigestEnded(l *law) {
	id := l.createSilence(l.digesting("one"))
	first := l.suppressed(id)
	l.must(l.EndSilence(id))
	l.digests("ended", 1)
	l.lists(id, first)

	// The end is moved, then a window of a recurrence is put out of force, and comes back.
	d := l.digesting("two")
	id = l.createSilence(d)
	first = l.suppressed(id)
	l.hold("a")
	ends := l.now.Add(2 * time.Hour)
	d.EndsAt = &ends
	l.must(l.UpdateSilence(id, d))
	l.Advance(61 * time.Minute)
	l.digests("its end was moved", 0)
	l.hold("a")
	now := l.now.UTC()
	d.EndsAt = new(now.Add(48 * time.Hour))
	elsewhen := &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(3 * time.Hour).Format("15:04"), DurationMinutes: 30}
	d.Recurrence = elsewhen
	l.must(l.UpdateSilence(id, d))
	l.suppressed(uuid.Nil)
	d.Recurrence = &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(-time.Hour).Format("15:04"), DurationMinutes: 180}
	l.must(l.UpdateSilence(id, d))
	second := l.suppressed(id)
	l.settle("a", l.one("a"), delivered()) // the message that was written in between
	l.lists(id, first)
	l.must(l.EndSilence(id))
	l.digests("ended again", 1)
	l.lists(id, second)
}

func silenceDigestRecurs(l *law) {
	const day = 24 * time.Hour
	d := l.digesting("every day")
	began := l.now.UTC().Add(-10 * time.Minute).Truncate(time.Minute)
	ends := l.now.Add(10 * day)
	d.EndsAt = &ends
	d.Recurrence = &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: began.Format("15:04"), DurationMinutes: 60}
	id := l.createSilence(d)
	first := l.suppressed(id)
	l.digests("within the first window", 0)
	l.Advance(day)
	second := l.suppressed(id) // in the next window, before the digest of the first
	l.digests("within the second window", 1)
	l.equal("listed", l.ListedIn(second), uuid.Nil)
	l.lists(id, first)
	l.Advance(2 * day) // by another time than before, because the ids of digests follow from their ends
	l.digests("within the fourth window", 1)
	about := l.lists(id, second).Silence
	l.equal("in force for", about.Until.Sub(about.From), time.Hour) // not since the end of the window before
	l.Advance(day)
	l.digests("within the fifth window", 0)

	// Within the window, an edit moves its beginning, and another one puts the silence out of force.
	third := l.suppressed(id)
	l.hold("a")
	elsewhen := func(after time.Duration) {
		r := *d.Recurrence
		r.From = l.now.UTC().Add(after).Format("15:04")
		d.Recurrence = &r
		l.must(l.UpdateSilence(id, d))
	}
	elsewhen(-2 * time.Minute)
	fourth := l.suppressed(id)
	l.hold("a")
	elsewhen(3 * time.Hour)
	l.digests("put out of force within the fifth window", 1)
	l.equal("in force since", l.lists(id, third, fourth).Silence.From.UTC(), began.Add(l.now.Sub(began).Truncate(day)))
}

func silenceDigestSwitched(l *law) {
	d := l.digesting("one")
	id := l.createSilence(d)
	first := l.suppressed(id)
	d.Digest = false
	l.must(l.UpdateSilence(id, d))
	sentAnyway := l.suppressed(id)
	d.Digest = true
	l.must(l.UpdateSilence(id, d))
	second := l.suppressed(id)
	l.must(l.Retry(sentAnyway))
	l.settle("a", l.one("a"), delivered())
	l.must(l.EndSilence(id))
	l.digests("enabled again", 1)
	l.lists(id, first, second)
	l.equal("listed, though it was sent", l.ListedIn(sentAnyway), uuid.Nil)

	d = l.digesting("two")
	id = l.createSilence(d)
	l.suppressed(id)
	d.Digest = false
	l.must(l.UpdateSilence(id, d))
	l.must(l.EndSilence(id))
	l.digests("disabled", 0)
}

func silenceDigestWaits(l *law) {
	id := l.createSilence(l.digesting("one"))
	first := l.suppressed(id)
	l.must(l.EnableWebhook(l.webhook, false))
	l.must(l.EndSilence(id))
	l.digests("the webhook is disabled", 1)
	l.equal("claimed for a disabled webhook", len(l.claim("a", 8)), 0)
	l.must(l.EnableWebhook(l.webhook, true))
	l.lists(id, first)

	l.must(l.EditQuietHours(l.webhook, l.quietFor(time.Hour)))
	id = l.createSilence(l.digesting("two"))
	first = l.suppressed(id)
	l.must(l.EndSilence(id))
	l.digests("within quiet hours", 0)
	l.endQuiet("within quiet hours", 0)
	l.equal("claimed within quiet hours", len(l.claim("a", 8)), 0)
	l.Advance(61 * time.Minute)
	l.must(l.EditQuietHours(l.webhook, nil))
	l.endQuiet("after quiet hours", 1)
	l.lists(id, first)

	l.must(l.EditQuietHours(l.webhook, l.quietFor(time.Hour)))
	l.rule.Severity = rules.Critical
	var err error
	l.rule, err = l.UpdateRule(l.rule)
	l.must(err)
	id = l.createSilence(l.digesting("three"))
	first = l.suppressed(id)
	l.must(l.EndSilence(id))
	l.digests("of a critical alert within quiet hours", 1)
	l.lists(id, first)
}

func silenceDigestKept(l *law) {
	const day = 24 * time.Hour
	id := l.createSilence(l.digesting("one"))
	b := l.batch()
	alert := l.add(&b, &l.rule, 1, l.now.Add(-10*day).UnixNano())
	b.Backfills = l.caughtUp()
	l.commit(b)
	l.equal("suppressed by", l.SuppressedBy(b.Notifications[0].ID), id)
	l.must(l.EndSilence(id))
	l.digests("ended", 1)
	l.must(l.Resolve(alert))
	l.Advance(2 * day)
	l.hold("a")
	remove := func() int {
		result, err := l.Retention.Alerts(l.Context(), retention.Batch{Keep: day, Most: 100})
		l.must(err)
		return result.Deleted
	}
	l.equal("deleted while the digest is open", remove(), 0)
	d := l.one("a")
	if d.Digest == nil || d.Digest.Size != 1 {
		l.Fatalf("digest %+v, want one of 1", d.Digest)
	}
	l.settle("a", d, delivered())
	l.equal("deleted after the delivery", remove(), 1)
}
