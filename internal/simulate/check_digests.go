package simulate

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
	"tocsin/notify"
)

// digestSilences is a pass that writes the digests of silences that are due.
func (p *process) digestSilences() {
	found, err := transact(p.ctx, p, "digests due", "", func() ([]uuid.UUID, error) { return p.w.db.SilencesToDigest(), nil })
	if err != nil {
		return
	}
	for _, id := range found {
		due, _ := transact(p.ctx, p, "digest silence", fmt.Sprint(short(id)), func() (map[uuid.UUID]int, error) {
			due, err := p.w.db.DigestSilence(id)
			p.w.note("%s: writes the digests of silence %s: %d to be sent", p.name, short(id), len(due))
			return due, err
		})
		p.wake(due)
	}
}

// digestTruth is the checker's account of the digests of a silence.
type digestTruth struct {
	on bool
	// fromNS is since when what the silence suppresses belongs to the next digests.
	fromNS int64
	// ends are those at which digests became due.
	ends []endTruth
}

// endTruth is an end of a silence, or of one of its windows, whose digests list what was suppressed
// from an instant on and before the end.
type endTruth struct{ fromNS, atNS int64 }

// suppressedTruth is a message that a silence suppressed.
type suppressedTruth struct {
	silence, webhook uuid.UUID
	atNS             int64
	// listed is the digest that lists it.
	listed uuid.UUID
	// unsure says that Postgres's clock had been put back when the message was written.
	unsure bool
}

const minuteNS, dayNS = int64(time.Minute), 24 * 60 * int64(time.Minute)

// window returns the window of a silence that ends first after an instant; no window is left if it
// ends at 0.
func (s *silenceTruth) window(afterNS int64) (fromNS, toNS int64) {
	if s.lasts == 0 {
		if s.toNS > afterNS && s.toNS > s.fromNS {
			return s.fromNS, s.toNS
		}
		return 0, 0
	}
	first := max(afterNS, s.fromNS)
	for from := first - first%dayNS + s.minute*minuteNS - dayNS; from < s.toNS; from += dayNS {
		begins, ends := max(from, s.fromNS), min(from+s.lasts*minuteNS, s.toNS)
		if ends > afterNS && ends > begins {
			return begins, ends
		}
	}
	return 0, 0
}

// at returns the window in force at an instant, if there is one.
func (s *silenceTruth) at(nowNS int64) (fromNS int64, active bool) {
	from, to := s.window(nowNS)
	return from, to != 0 && from <= nowNS
}

// endSilences notes the ends of silences that have come.
func (t *truth) endSilences() {
	now := t.w.pgNow()
	if now.After(t.latest) {
		t.latest = now
	}
	for id, d := range t.digests {
		s := t.silences[id]
		d.end(&s, now.UnixNano())
	}
}

func (d *digestTruth) end(s *silenceTruth, nowNS int64) {
	for d.on {
		_, to := s.window(d.fromNS)
		if to == 0 || to > nowNS {
			return
		}
		d.endAt(to)
	}
}

func (d *digestTruth) endAt(atNS int64) {
	d.ends = append(d.ends, endTruth{d.fromNS, atNS})
	d.fromNS = max(d.fromNS, atNS)
}

// planDigests notes a silence that was changed now, or what a failover has left of it.
func (t *truth) planDigests(id uuid.UUID, is *silenceTruth) {
	now := t.w.pgNow().Truncate(time.Microsecond).UnixNano()
	d := t.digests[id]
	if d == nil {
		t.digests[id] = &digestTruth{on: is.digest, fromNS: is.fromNS}
		return
	}
	if t.inFailover {
		// What was open before is as before; what is open now is in the store.
		plan := t.w.db.SilencePlan(id)
		for n := len(d.ends); n > 0 && d.ends[n-1].atNS > plan.From.UnixNano(); n-- {
			d.ends = d.ends[:n-1]
		}
		if d.on = is.digest; !plan.From.IsZero() {
			d.fromNS = plan.From.UnixNano()
		}
		if _, to := is.window(d.fromNS); plan.At != nil && plan.At.UnixNano() != to {
			d.endAt(plan.At.UnixNano()) // an edit ended a window that the silence has no longer
		}
		return
	}
	was := t.silences[id]
	d.end(&was, now)
	began, before := was.at(now)
	_, active := is.at(now)
	if is.digest && !d.on {
		from := now
		if before {
			from = began
		}
		d.fromNS = max(d.fromNS, from)
	}
	_, left := is.window(now)
	if is.digest && (before && !active || d.on && left == 0) {
		d.endAt(now)
	}
	d.on = is.digest && left != 0
}

// checkListed holds that the digest of a silence lists what that silence suppressed for its webhook
// up to one of its ends, and keeps it.
func (w *world) checkListed(m *model.Message, fresh bool) {
	t := &w.truth
	if fresh {
		delete(t.suppressed, m.ID) // a failover may have taken it away, and it is written again
	}
	if by := m.SuppressedBy(); fresh && by != uuid.Nil {
		at := m.Settlement.SettledAt
		t.suppressed[m.ID] = &suppressedTruth{silence: by, webhook: m.WebhookID, atNS: at.UnixNano(), unsure: at.Before(t.latest.Truncate(time.Microsecond))}
	}
	s, digest := t.suppressed[m.ID], w.db.ListedIn(m.ID)
	switch {
	case s == nil && digest != uuid.Nil && !t.inFailover:
		w.violate("P3", "message %s is listed in digest %s, and no silence suppressed it", short(m.ID), short(digest))
	case s == nil:
	case t.inFailover:
		s.listed = digest
	case s.listed != uuid.Nil && digest != s.listed:
		w.violate("P3", "message %s is listed in digest %s, and was in %s", short(m.ID), short(digest), short(s.listed))
	case s.listed == uuid.Nil && digest != uuid.Nil:
		s.listed = digest
		w.stats.Listed++
		if want := t.digestFor(s); digest != want && !s.unsure {
			w.violate("P3", "message %s, which silence %s suppressed at %s, is listed in digest %s, want %s", short(m.ID), short(s.silence), w.instant(s.atNS), short(digest), short(want))
		}
	}
}

// digestFor returns the digest that lists a suppressed message, or [uuid.Nil] while none does.
func (t *truth) digestFor(s *suppressedTruth) uuid.UUID {
	d := t.digests[s.silence]
	if d == nil {
		return uuid.Nil
	}
	for _, e := range d.ends {
		if e.fromNS <= s.atNS && s.atNS < e.atNS {
			return notify.ID(s.silence, s.webhook, notify.ReasonDigest, int(e.atNS/int64(time.Microsecond)))
		}
	}
	return uuid.Nil
}

// checkDigests holds, when everything is at rest, that each suppressed message is listed in the digest
// in which it belongs, and in none if its silence sends none.
func (w *world) checkDigests() {
	for id, s := range w.truth.suppressed {
		m, there := w.db.Message(id)
		if !there || s.unsure || m.SuppressedBy() == uuid.Nil {
			continue // a person has sent it
		}
		if want, is := w.truth.digestFor(s), w.db.ListedIn(id); is != want {
			w.violate("P2", "message %s, which silence %s suppressed at %s, is listed in digest %s, want %s", short(id), short(s.silence), w.instant(s.atNS), short(is), short(want))
		}
	}
}
