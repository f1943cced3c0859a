package simulate

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/rules"
)

// endQuiet is a pass that ends quiet hours.
func (p *process) endQuiet() {
	waiting, err := transact(p.ctx, p, "quiet waiting", "", func() ([]uuid.UUID, error) { return p.w.db.QuietWaiting(), nil })
	if err != nil {
		return
	}
	for _, webhook := range waiting {
		_, _ = transact(p.ctx, p, "quiet move", short(webhook), func() (struct{}, error) { return struct{}{}, p.w.db.MoveQuiet(webhook) })
		over, err := transact(p.ctx, p, "quiet over", short(webhook), func() ([]model.Quiet, error) { return p.w.db.QuietOver(webhook), nil })
		if err != nil || len(over) == 0 || p.release(over) == nil || len(over) == 1 {
			continue
		}
		for i := range over {
			_ = p.release(over[i : i+1])
		}
	}
	if !p.w.conf.digests {
		return
	}
	for _, webhook := range waiting {
		n, _ := transact(p.ctx, p, "quiet digests", short(webhook), func() (int, error) { return p.w.db.ReleaseQuietDigests(webhook) })
		if n > 0 {
			p.wake(map[uuid.UUID]int{webhook: n})
		}
	}
}

// release releases what is over about some alerts in one transaction.
func (p *process) release(over []model.Quiet) error {
	webhook := over[0].Webhook
	n, err := transact(p.ctx, p, "quiet release", fmt.Sprint(short(webhook), short(over[0].Alert)), func() (int, error) {
		n, err := p.w.db.ReleaseQuiet(over)
		p.w.note("%s: ends quiet hours of webhook %s about %d alerts: %d messages", p.name, short(webhook), len(over), n)
		return n, err
	})
	if n > 0 {
		p.wake(map[uuid.UUID]int{webhook: n})
	}
	return err
}

// span is a part of every day in UTC, in minutes; one that ends before it begins ends on the next day.
type span struct{ from, to int }

const dayMinutes = 24 * 60

// hoursTruth are the quiet hours of a webhook since a version of it.
type hoursTruth struct {
	version int64
	spans   []span
}

// quietHours draws quiet hours around the present: those that the product gets, and the checker's account.
func (w *world) quietHours() (hours notify.QuietHours, spans []span) {
	now := w.pgNow().UTC()
	at := now.Hour()*60 + now.Minute() - w.rand.IntN(3)
	for range 1 + w.rand.IntN(4) {
		lasts := 1 + w.rand.IntN(8)
		if w.rand.IntN(10) == 0 {
			lasts = 60 + w.rand.IntN(120)
		}
		s := span{(at + dayMinutes) % dayMinutes, (at + lasts + dayMinutes) % dayMinutes}
		zone, ahead := "UTC", 0
		if w.rand.IntN(3) == 0 {
			zone, ahead = "Asia/Kolkata", 5*60+30
		}
		day := func(minutes int) string {
			minutes = (minutes + ahead) % dayMinutes
			return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
		}
		hours = append(hours, rules.Calendar{TimeZone: zone, Weekdays: rules.Weekdays(), From: day(s.from), To: day(s.to)})
		spans = append(spans, s)
		at += lasts + w.rand.IntN(6) // without a gap, it goes on
	}
	return hours, spans
}

// editQuietHours has a person edit the quiet hours of a webhook, or delete them.
func (w *world) editQuietHours(id uuid.UUID, none bool) {
	var hours notify.QuietHours
	var spans []span
	if !none {
		hours, spans = w.quietHours()
	}
	if w.db.EditQuietHours(id, hours) != nil {
		return
	}
	t := &w.truth
	t.hooks[id] = w.Now()
	t.hours[id] = append(t.hours[id], hoursTruth{w.db.Webhook(id).Version, spans})
	w.note("a person has webhook %s be quiet at %v, in minutes of the day", short(id), spans)
}

// quietUntil is the checker's account of when the quiet hours of a webhook end that contain an instant: the
// instant itself if none do.
func (t *truth) quietUntil(webhook uuid.UUID, at time.Time) time.Time {
	list := t.hours[webhook]
	if len(list) == 0 {
		return at
	}
	spans := list[len(list)-1].spans
	for moved := true; moved; {
		moved = false
		for _, s := range spans {
			minute := at.UTC().Hour()*60 + at.UTC().Minute()
			into, lasts := (minute-s.from+dayMinutes)%dayMinutes, (s.to-s.from+dayMinutes)%dayMinutes
			if into < lasts {
				at, moved = at.Truncate(time.Minute).Add(time.Duration(lasts-into)*time.Minute), true
			}
		}
	}
	return at
}
