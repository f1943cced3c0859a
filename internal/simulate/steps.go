package simulate

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/notify"
)

// step is one step of a storm.
func (w *world) step() {
	if w.conf.routed && w.rand.IntN(8) == 0 {
		w.lookAfter()
		w.check()
		return
	}
	if w.conf.quiet && w.rand.IntN(12) == 0 {
		w.editQuietHours(w.people.webhooks[w.rand.IntN(len(w.people.webhooks))], w.rand.IntN(4) == 0)
		w.check()
		return
	}
	if w.conf.resolves && w.rand.IntN(8) == 0 {
		w.mend()
		w.check()
		return
	}
	if w.conf.tallyLeast > 0 && w.rand.IntN(16) == 0 {
		w.miscount()
		w.check()
		return
	}
	if w.steadily() {
		return
	}
	switch n := w.rand.IntN(100); {
	case n < 14:
		for range 1 + w.rand.IntN(6) {
			w.row(-int64(10*time.Second), int64(time.Second)/2, w.rand.IntN(2) == 0)
		}
	case n < 17:
		for range 1 + w.rand.IntN(4) {
			w.row(-int64(5*time.Minute), -int64(time.Minute), w.rand.IntN(2) == 0)
		}
	case n < 20:
		// At the edge of a look-back.
		back := int64(w.conf.lookBacks[w.rand.IntN(len(w.conf.lookBacks))]) * int64(time.Second)
		for range 1 + w.rand.IntN(3) {
			w.row(-back, -back+int64(20*time.Second), true)
		}
	case n < 44:
		w.run(time.Duration(w.rand.IntN(4000)) * time.Millisecond)
	case n < 48:
		w.run(time.Duration(5+w.rand.IntN(60)) * time.Second)
	case n < 63:
		w.piecemeal()
	case n < 72:
		w.faulty()
	case n < 80:
		w.act()
	case n < 84:
		w.pauseOrResume()
	case n < 87:
		w.restart()
	case n < 90:
		w.failover()
	case n < 93:
		w.misbehave()
	case n < 95:
		w.clocks()
	case n < 97:
		w.outage()
	default:
		w.aged()
	}
}

// piecemeal lets some calls happen, in any order, and a little time pass between them.
func (w *world) piecemeal() {
	for range 1 + w.rand.IntN(40) {
		if w.violation != nil {
			return
		}
		switch w.rand.IntN(60) {
		case 0, 1, 2:
			w.act()
		case 3:
			w.failover()
		case 4:
			w.row(-int64(10*time.Second), int64(time.Second)/2, true)
		}
		if list := w.ready(); len(list) > 0 && w.rand.IntN(8) > 0 {
			w.release(list[w.rand.IntN(len(list))], noFault)
			continue
		}
		w.Sleep(time.Duration(1+w.rand.IntN(400)) * time.Millisecond)
		w.tick()
	}
}

// faulty has one of the next calls go wrong.
func (w *world) faulty() {
	kind := w.target()
	for range 60 {
		w.tick()
		list := w.ready()
		if len(list) == 0 {
			w.Sleep(time.Duration(1+w.rand.IntN(500)) * time.Millisecond)
			w.Wait()
			continue
		}
		c := list[w.rand.IntN(len(list))]
		if kind != "" && c.kind != kind {
			w.release(c, noFault)
			continue
		}
		f := fault(1 + w.rand.IntN(4))
		w.release(c, f)
		if f == crashBefore || f == crashAfter {
			if w.rand.IntN(2) == 0 || !w.anyAlive() {
				w.start()
			}
		}
		return
	}
}

// target is the kind of call that goes wrong; "" is the next one.
func (w *world) target() string {
	kinds := []string{"", "commit", "commit", "claim", "settle", "renew", "send", "answer", "scan", "observe", "rules", "hold"}
	if w.conf.routed {
		kinds = append(kinds, "escalate", "remind", "steps due")
	}
	if w.conf.quiet {
		kinds = append(kinds, "quiet release", "quiet over")
	}
	if w.conf.resolves {
		kinds = append(kinds, "resolve aged", "resolve proven", "mark searched", "evidence")
	}
	return kinds[w.rand.IntN(len(kinds))]
}

func (w *world) someProcess(f func(p *process) bool) *process {
	var list []*process
	for _, p := range w.processes {
		if f(p) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rand.IntN(len(list))]
}

// pauseOrResume stops a process as SIGSTOP does, or lets it go on.
func (w *world) pauseOrResume() {
	if p := w.someProcess(func(p *process) bool { return !p.dead && p.paused }); p != nil {
		w.resume(p)
		return
	}
	if p := w.someProcess((*process).alive); p != nil {
		w.note("%s is paused", p.name)
		p.paused = true
		p.disturb(w.Now())
	}
}

func (w *world) resume(p *process) {
	if p.paused {
		w.note("%s goes on", p.name)
		p.paused = false
		p.disturb(w.Now())
	}
}

// restart kills a process wherever it is, and starts another one.
func (w *world) restart() {
	if p := w.someProcess(func(p *process) bool { return !p.dead }); p != nil {
		if p.alive() && w.rand.IntN(3) == 0 {
			p.leave()
		}
		w.kill(p)
	}
	w.start()
}

// failover has Postgres lose its last commits.
func (w *world) failover() {
	w.truth.inFailover = true
	n := w.db.Failover(1 + w.rand.IntN(12))
	w.stats.Failovers++
	w.note("Postgres fails over to a standby, and %d transactions are lost", n)
	w.truth.failedOver()
	for _, p := range w.processes {
		p.disturb(w.Now())
	}
	w.check()
	w.truth.inFailover = false
	// Nothing else happens at the same instant.
	w.Sleep(time.Millisecond)
	w.Wait()
}

// misbehave changes how receivers answer.
func (w *world) misbehave() {
	m := manner(w.rand.IntN(int(manners)))
	if w.receiver.manner != answers {
		m = answers
	}
	w.receiver.manner, w.receiver.oneIn = m, w.conf.oneIn
	w.note("from now on, of %d requests the receiver %s one", w.receiver.oneIn, m)
}

// jump changes a clock that everybody compares.
func (w *world) jump(f func()) {
	before := w.chSkew
	f()
	if w.chSkew < before {
		w.truth.setBackNS = max(w.truth.setBackNS, w.Now().Add(before).UnixNano())
	}
	w.truth.clockJumped, w.truth.skewMost = w.Now(), max(w.truth.skewMost, w.chSkew.Abs())
	for _, p := range w.processes {
		p.disturb(w.Now())
	}
	w.note("clocks: Postgres %v, ClickHouse %v ahead", w.pgSkew, w.chSkew)
}

// clocks has a clock jump.
func (w *world) clocks() {
	by := []time.Duration{-2 * time.Second, time.Second, 20 * time.Second, -time.Minute, 2 * time.Minute}[w.rand.IntN(5)]
	switch w.rand.IntN(3) {
	case 0:
		w.jump(func() { w.chSkew += by })
	case 1:
		w.jump(func() { w.pgSkew += by })
	default:
		if p := w.someProcess((*process).alive); p != nil {
			p.skew.Add(by.Nanoseconds())
			p.skewedAt = w.Now()
			p.disturb(w.Now())
			w.note("the clock of %s is %v ahead", p.name, time.Duration(p.skew.Load()))
		}
	}
}

var errUnreadable = errors.New("the source cannot be read")

// outage has something be away for a while.
func (w *world) outage() {
	switch w.rand.IntN(4) {
	case 0:
		w.ch.MostRows = 1 + w.rand.IntN(3)
		w.note("ClickHouse would truncate answers of more than %d rows, and refuses them", w.ch.MostRows)
		w.run(time.Duration(5+w.rand.IntN(30)) * time.Second)
		w.ch.MostRows = 0
	case 1:
		w.note("ClickHouse is away")
		w.sourceFails = true
		w.run(time.Duration(5+w.rand.IntN(90)) * time.Second)
		w.sourceFails = false
		w.note("ClickHouse is back")
	case 2:
		id, _ := w.someRule()
		for range 6 {
			w.row(-int64(10*time.Second), int64(time.Second)/2, true)
		}
		if id[15]%2 == 0 {
			w.note("the database refuses the alerts of rule %s", short(id))
			w.db.Refuses = func(a *alerts.Instance) bool { return a.RuleID == id }
		} else {
			w.note("rule %s panics over what it wants", short(id))
			w.panics = id
		}
		w.run(time.Duration(5+w.rand.IntN(90)) * time.Second)
		w.db.Refuses, w.panics = nil, uuid.Nil
		w.note("the alerts of rule %s are taken again", short(id))
	default:
		w.skip([]time.Duration{2 * time.Minute, 20 * time.Minute, 3 * time.Hour}[w.rand.IntN(3)])
	}
}

// skip lets time pass in which nothing that anybody asks for happens.
func (w *world) skip(d time.Duration) {
	w.note("nothing happens for %v", d)
	for _, p := range w.processes {
		p.disturb(w.Now().Add(d))
	}
	w.Sleep(d)
	w.Wait()
}

// aged makes alerts old enough for retention, which then makes a pass.
func (w *world) aged() {
	if w.rand.IntN(2) == 0 {
		for _, id := range w.db.AlertIDs() {
			if w.rand.IntN(3) > 0 && w.db.Resolve(id) == nil {
				w.expectEvent(id, notify.ReasonResolved)
				w.truth.alerts[id].state = string(alerts.Resolved)
			}
		}
		w.check()
		for _, p := range w.processes {
			w.kill(p) // nothing happens for a day
		}
		for range 3 { // what nobody evaluates until then
			w.row(-int64(time.Minute), 0, true)
		}
		w.skip(w.conf.keep + time.Duration(w.rand.IntN(3*3600))*time.Second)
		w.start()
		if w.rand.IntN(2) == 0 {
			w.run(time.Minute)
		}
	}
	w.Wait()
	if p := w.someProcess(func(p *process) bool { return p.alive() && !p.deleting.Load() }); p != nil {
		w.note("%s deletes what is old", p.name)
		p.deleteOld()
		w.run(2 * time.Second)
	}
}
