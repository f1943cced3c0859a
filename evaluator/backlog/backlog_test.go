package backlog

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/source"
)

// Three days with alerts in every second, and a look-back of two days: what is remembered does not
// exceed an hour of seconds and two days of minutes.
func TestBacklogIsBounded(t *testing.T) {
	const (
		lookBack = 2 * 24 * time.Hour
		seconds  = int(fineNS/secondNS) + 60
		minutes  = int(lookBack/time.Minute) + 60
	)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	b := New(begin, 0, nil)
	for now := begin; now < begin+3*24*hourNS; now += minuteNS {
		b.fromNS = max(begin, now-lookBack.Nanoseconds())
		b.Advance(now)
		r := cursor.Range{FromNS: now - minuteNS, ToNS: now}
		var prints []source.Fingerprint
		for at := r.FromNS; at < r.ToNS; at += secondNS {
			prints = append(prints, source.Fingerprint{FromNS: at, Count: 10, Checksum: uint64(at)})
			b.Raised(uuid.New(), at)
		}
		b.compare("", prints, r, now)
		// Every tenth minute is not concluded: it stays in the backlog.
		if now/minuteNS%10 != 0 {
			b.Conclude(r, "")
		}
		for _, l := range b.Looks(now-recentNS, now) {
			b.Looked(l, "", 0, 0)
		}
	}
	for name, c := range map[string]struct{ got, most int }{
		"judged":   {len(b.judged), seconds + minutes},
		"backlog":  {len(b.left), seconds},
		"looks":    {len(b.looks), int(lookBack/time.Hour) + 3},
		"raised":   {len(b.raised), 60 * (int(2*recentNS/minuteNS) + 1)},
		"unlooked": {len(b.unlooked), minutes/10 + 10},
	} {
		if c.got > c.most {
			t.Errorf("%s: %d entries, at most %d expected", name, c.got, c.most)
		}
		if c.got == 0 {
			t.Errorf("%s: nothing is remembered", name)
		}
	}
}

// TestLengthCountsWhatOverlapsOnce has ranges that were not looked at and ranges that were skipped, some of which overlap.
func TestLengthCountsWhatOverlapsOnce(t *testing.T) {
	b := &Backlog{
		unlooked: []cursor.Range{{FromNS: 10, ToNS: 20}, {FromNS: 40, ToNS: 50}},
		skipped:  []cursor.Range{{FromNS: 15, ToNS: 30}, {FromNS: 12, ToNS: 14}, {FromNS: 15, ToNS: 45}},
	}
	if got := b.LengthNS(); got != 40 {
		t.Errorf("the length is %d, want 40", got)
	}
}

// A rule raises alerts and is disabled. Nobody mentions them any more, and they are forgotten all the same, as soon
// as their exchanges are no longer recent.
func TestAlertsOfADisabledRuleAreForgotten(t *testing.T) {
	b := New(0, hourNS, nil)
	now := 24 * hourNS
	b.Advance(now)
	old, recent := uuid.UUID{1}, uuid.UUID{2}
	b.Raised(old, now-recentNS)
	b.Raised(recent, now)
	b.Advance(now + recentNS)
	if !b.HasRaised(old) || !b.HasRaised(recent) {
		t.Error("alerts about recent exchanges are forgotten")
	}
	b.Advance(now + recentNS + secondNS)
	if b.HasRaised(old) || !b.HasRaised(recent) {
		t.Error("an alert is known for longer than its exchange is recent, or for less")
	}
	if b.Advance(now + hourNS); len(b.raised) > 0 {
		t.Errorf("%d alerts are remembered after an hour", len(b.raised))
	}
}
