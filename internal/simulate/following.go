package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
)

// followEvery is how often a process looks for snoozes that are over and steps that are due.
const followEvery = 15 * time.Second

// follow begins a pass that ends snoozes, escalates, ends quiet hours and writes the digests of silences.
func (p *process) follow() {
	p.following.Store(true)
	p.nextFollow = p.w.Now().Add(followEvery)
	go func() {
		if p.w.conf.routed {
			p.remind()
			p.escalate()
		}
		if p.w.conf.quiet {
			p.endQuiet()
		}
		if p.w.conf.digests {
			p.digestSilences()
		}
		p.following.Store(false)
	}()
}

// remind ends the snoozes that are over, each in a transaction.
func (p *process) remind() {
	over, err := transact(p.ctx, p, "snoozes over", "", func() ([]uuid.UUID, error) { return p.w.db.SnoozesOver(), nil })
	if err != nil {
		return
	}
	for _, id := range over {
		due, _ := transact(p.ctx, p, "remind", short(id), func() (map[uuid.UUID]int, error) {
			due, err := p.w.db.Remind(id)
			p.w.note("%s: ends the snooze of alert %s: %d messages", p.name, short(id), len(due))
			return due, err
		})
		p.wake(due)
	}
}

// escalate takes the steps that are due in one transaction or, where that fails, each in its own.
func (p *process) escalate() {
	found, err := transact(p.ctx, p, "steps due", "", func() ([]model.DueStep, error) { return p.w.db.EscalationsDue(), nil })
	if err != nil || len(found) == 0 {
		return
	}
	if p.take(found) == nil || len(found) == 1 {
		return
	}
	for i := range found {
		_ = p.take(found[i : i+1])
	}
}

func (p *process) take(found []model.DueStep) error {
	due, err := transact(p.ctx, p, "escalate", fmt.Sprint(len(found), short(found[0].Alert)), func() (map[uuid.UUID]int, error) {
		due, err := p.w.db.Escalate(found)
		p.w.note("%s: takes the steps of %d alerts: messages for %d webhooks", p.name, len(found), len(due))
		return due, err
	})
	p.wake(due)
	return err
}

func (p *process) wake(due map[uuid.UUID]int) {
	if len(due) > 0 {
		_ = p.Publish(p.ctx, notify.WakeUp{Webhooks: slices.SortedFunc(maps.Keys(due), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })})
	}
}

// deedTruth is something that a person did with alerts, and in which states these were before.
type deedTruth struct {
	id     uuid.UUID
	before map[uuid.UUID]string
}

// lookAfter has a person act on alerts, snooze one, or take that back.
func (w *world) lookAfter() {
	ids := slices.DeleteFunc(w.db.AlertIDs(), func(id uuid.UUID) bool {
		a, _ := w.db.Alert(id)
		return a.Health
	})
	if len(ids) == 0 {
		return
	}
	id := ids[w.rand.IntN(len(ids))]
	if w.rand.IntN(3) > 0 { // one that escalates
		if some := slices.DeleteFunc(slices.Clone(ids), func(id uuid.UUID) bool { e, _ := w.db.Escalation(id); return e.Next() == 0 }); len(some) > 0 {
			id = some[w.rand.IntN(len(some))]
		}
	}
	soon := time.Duration(20+w.rand.IntN(300)) * time.Second
	switch w.rand.IntN(9) {
	case 0, 1:
		w.actOn(alerts.Acknowledged, id, ids[w.rand.IntN(len(ids))])
	case 2:
		w.actOn(alerts.Resolved, id)
	case 3, 4:
		w.snooze(id, soon)
	case 5:
		w.cancelSnooze(id)
	case 6:
		w.undo(3)
	case 7: // in error, which is seen later
		w.actOn(alerts.Acknowledged, id)
		w.check()
		w.run(soon)
		w.undo(1)
	default:
		w.snooze(id, time.Hour)
		w.check()
		w.run(soon)
		w.cancelSnooze(id)
	}
}

func (w *world) actOn(to alerts.State, ids ...uuid.UUID) {
	w.people.acted++
	d := deedTruth{id: uuid.UUID{5, 14: byte(w.people.acted >> 8), 15: byte(w.people.acted)}, before: map[uuid.UUID]string{}}
	for _, id := range ids {
		if known := w.truth.alerts[id]; known != nil {
			d.before[id] = known.state
		}
	}
	changed, err := w.db.Act(d.id, to, ids...)
	if err != nil {
		return
	}
	for _, id := range changed {
		w.truth.alerts[id].state = string(to)
		w.expectEvent(id, eventOf(to))
		w.note("a person makes alert %s %s, as %s", short(id), to, short(d.id))
	}
	w.truth.acts = append(w.truth.acts, d)
}

// undo takes one of the last acts back, of so many.
func (w *world) undo(last int) {
	n := len(w.truth.acts)
	if n == 0 {
		return
	}
	d := w.truth.acts[n-1-w.rand.IntN(min(n, last))]
	done, _ := w.db.Action(d.id)
	restored, err := w.db.Undo(d.id)
	if err != nil {
		return
	}
	for _, id := range restored {
		known := w.truth.alerts[id]
		if known == nil {
			continue
		}
		known.state = d.before[id]
		known.resumedSince = done.At
		w.expectEvent(id, notify.ReasonReopened)
		w.note("a person takes %s back: alert %s is %s again", short(d.id), short(id), known.state)
	}
}

func (w *world) snooze(id uuid.UUID, d time.Duration) {
	now := w.pgNow()
	until := now.Add(d)
	if w.db.Snooze(id, until) != nil {
		return
	}
	row, _ := w.db.Snoozed(id)
	known := w.truth.alerts[id]
	// The checker's own record, whatever the store says.
	if row.SnoozedSince = now; known.snooze != nil && known.snooze.Until.After(now) {
		row.SnoozedSince = known.snooze.SnoozedSince
	}
	known.snooze = &row
	w.note("a person snoozes alert %s until %s", short(id), w.instant(until.UnixNano()))
}

func (w *world) cancelSnooze(id uuid.UUID) {
	was, there := w.db.CancelSnooze(id)
	if !there {
		return
	}
	known := w.truth.alerts[id]
	if known.snooze != nil {
		was.SnoozedSince = known.snooze.SnoozedSince
	}
	known.snooze = nil
	if w.pgNow().Sub(was.SnoozedSince) < undoable {
		known.resumedSince = was.SnoozedSince
	}
	w.note("a person cancels the snooze of alert %s", short(id))
}

// undoable is for how long what a person did can be undone.
const undoable = 10 * time.Minute

// checkNeeded holds that what waited about an alert that somebody has looked after for longer than that
// can be undone does not go out.
func (w *world) checkNeeded(d *notify.Delivery) {
	w.checkAge(d)
	if d.Reason != notify.ReasonEscalated || d.Generation > 0 {
		return
	}
	a, _ := w.db.Alert(d.Alert.ID)
	if since, is := a.LookedAfter(); is && w.pgNow().Sub(since) > undoable+time.Minute+time.Millisecond {
		w.violate("P2", "message %s escalates alert %s, which has been %s for %v", short(d.NotificationID), short(a.ID), a.State, w.pgNow().Sub(since))
	}
}
