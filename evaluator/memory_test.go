package evaluator

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// Three days of alerts in every second, with a look-back of two days: what is remembered
// stays within an hour of seconds and two days of minutes.
func TestMemoryIsBounded(t *testing.T) {
	const (
		lookBack = 2 * 24 * time.Hour
		seconds  = int(fineNS/secondNS) + 60
		minutes  = int(lookBack/time.Minute) + 60
	)
	m := newMemory([]rules.Status{rules.Failed})
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for now := begin; now < begin+3*24*hourNS; now += minuteNS {
		m.fromNS = max(begin, now-lookBack.Nanoseconds())
		m.advance(now)
		r := Range{now - minuteNS, now}
		var o Observation
		for at := r.FromNS; at < r.ToNS; at += secondNS {
			o.Fingerprints = append(o.Fingerprints, Fingerprint{at, 10, uint64(at)})
			m.raised[uuid.New()] = at
		}
		m.compare(o, r, now)
		// Every tenth minute is not concluded: it stays in the backlog.
		if now/minuteNS%10 != 0 {
			m.concluded(r, o.Server)
		}
		for _, l := range m.planLooks(now-recentNS, now) {
			m.looks[l.key] = look{of: l.Range}
		}
	}
	for name, c := range map[string]struct{ got, most int }{
		"judged":   {len(m.judged), seconds + minutes},
		"backlog":  {len(m.backlog), seconds},
		"looks":    {len(m.looks), int(lookBack/time.Hour) + 3},
		"raised":   {len(m.raised), 60 * (int(2*recentNS/minuteNS) + 1)},
		"unlooked": {len(m.unlooked), minutes/10 + 10},
	} {
		if c.got > c.most {
			t.Errorf("%s: %d entries, at most %d expected", name, c.got, c.most)
		}
		if c.got == 0 {
			t.Errorf("%s: nothing is remembered", name)
		}
	}
}
