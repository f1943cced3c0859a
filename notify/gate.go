package notify

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// patience is how long a call keeps its slot. One that takes longer gives the slot
// back and goes on without.
const patience = time.Second

// gate shares the slots of a dispatcher out over webhooks: each gets one in
// turn until nothing is free, so that a long backlog keeps no other waiting.
//
// Nor do slow receivers, however many there are. A call has a slot for a second;
// then it is a straggler, and its webhook is slow until one of its calls ends in
// time and no straggler is left. What waits for a call to such a webhook is a
// straggler after a second, too; how long Postgres takes tells nothing of a receiver. Slow webhooks together have at
// most half as many attempts under way as there are slots, and with those that
// have not answered yet never more than half of the slots themselves. The other
// half is for webhooks known to be quick, and when many of these stop answering
// at once, they hold the slots for a second. Stragglers are bounded, too: with
// them, at most four times as many attempts are under way as there are slots,
// and at most three times as many for the sake of webhooks not known. An attempt
// that was answered has no slot any more and counts towards that bound until its
// outcome is stored, so that a slow database makes the claims wait.
type gate struct {
	mu    sync.Mutex
	slots int
	// turns counts the attempts begun, underWay those not yet stored, and promised
	// the slots dealt to a claim that has not returned.
	turns, underWay, promised int
	lanes                     map[uuid.UUID]*lane
	// owed are the webhooks for which something was due when the outbox was looked at
	// last, or which have become worth a look since.
	owed map[uuid.UUID]*lane
	// freed counts the slots given back.
	freed int
	// young holds those that may have a slot.
	young []*ticket
}

// pace is what is known of a receiver.
type pace int

const (
	untried pace = iota
	quick
	slow
)

// lane is one webhook's share.
type lane struct {
	pace pace
	// busy counts the attempts that have not been answered, stragglers those of them
	// without a slot.
	busy, stragglers int
	// turn is that of its last attempt, and began when that was begun.
	turn  int
	began time.Time
	// behind says that more was due than could be claimed, failing that the last
	// outcome was no delivery.
	behind, failing bool
	// brisk says that the last call took less than that.
	brisk bool
	// most is how many calls may be under way; 0 is not known.
	most int
	// left says that what is due is left to another replica, and since that others
	// have been at work on it at each look; zero when they were not.
	left  bool
	since time.Time
	// probe says that what was due last was for a probe only, paced that a rate holds
	// some of it back.
	probe, paced bool
	// calls counts those under way; next are those for which there are too many.
	calls int
	next  []*call
}

// call is what an attempt is begun for, when fewer than most calls are under way.
type call struct {
	ticket *ticket
	most   int
	make   func()
}

// A webhook that answers in time may have ahead attempts under way for each call, so
// that the next are begun while the receiver answers. Calls are bounded all the same.
// Of a brisk one, two are begun for each call, many by one statement, and stock more
// may be claimed and wait in the process, so that a claim is for many: at its pace
// that is work for a third of a second, in which a webhook that somebody edits or
// switches off still gets what it got before.
const (
	ahead = 2
	stock = 4
	brisk = 50 * time.Millisecond
)

// ticket is an attempt under way.
type ticket struct {
	lane *lane
	// began is when it got its slot, called when its call began, zero before that.
	began, called time.Time
	straggler     bool
	answered      bool
}

func newGate(slots int) *gate {
	return &gate{slots: slots, lanes: map[uuid.UUID]*lane{}, owed: map[uuid.UUID]*lane{}}
}

// rooms is what a claim may take.
type rooms struct {
	slots []Slots
	// again is the time after which there is room for one of those held back, by
	// its rate or because the slots were taken; 0 when only the end of an attempt
	// can make some.
	again time.Duration
	// paced tells whether a rate holds anything back.
	paced bool
}

func (r *rooms) sooner(wait time.Duration) {
	if wait = max(wait, time.Millisecond); r.again == 0 || wait < r.again {
		r.again = wait
	}
}

// room shares the free slots out.
func (g *gate) room(due []Limits, now time.Time) rooms {
	g.mu.Lock()
	defer g.mu.Unlock()
	var r rooms
	load := g.load(now)
	free := make([]int, len(due))
	lanes := make([]*lane, len(due))
	for i, limits := range due {
		lanes[i] = g.lane(limits.WebhookID)
		lanes[i].most, lanes[i].probe, lanes[i].paced = limits.MaxConcurrent, limits.Probe, false
		free[i] = lanes[i].free()
		if limits.Probe {
			free[i] = min(free[i], 1)
		}
		if allowed := math.Floor(limits.Tokens); limits.RatePerSecond > 0 && allowed < float64(free[i]) {
			free[i] = int(max(allowed, 0))
			r.paced, lanes[i].paced = true, true
			r.sooner(time.Duration((allowed + 1 - limits.Tokens) / limits.RatePerSecond * float64(time.Second)))
		}
	}
	dealt, short := load.deal(lanes, free)
	for i, n := range dealt {
		if n > 0 {
			r.slots = append(r.slots, Slots{WebhookID: due[i].WebhookID, Slots: n})
		}
	}
	if short && !load.oldest.IsZero() {
		r.sooner(patience - now.Sub(load.oldest))
	}
	return r
}

// free returns how many more attempts may be under way, as far as the webhook goes.
func (l *lane) free() int {
	free := l.most - l.busy
	if l.pace == quick && !l.failing {
		free += (ahead - 1) * l.most
		if l.brisk {
			free += l.most
		}
	}
	return free
}

// enter begins an attempt. The caller calls leave when it has ended.
func (g *gate) enter(webhook uuid.UUID, now time.Time) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begin(webhook, now)
}

// enterNow begins an attempt of a webhook of which fewer than most are under way, if
// there is a slot for it, and returns nil otherwise. The caller calls leave when it
// has ended, or giveBack when it is not made.
func (g *gate) enterNow(webhook uuid.UUID, most int, now time.Time) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, load := g.lane(webhook), g.load(now)
	if admitted, _ := load.admits(l.pace); !admitted || l.busy >= most {
		return nil
	}
	return g.begin(webhook, now)
}

func (g *gate) begin(webhook uuid.UUID, now time.Time) *ticket {
	t := &ticket{lane: g.lane(webhook), began: now}
	t.lane.busy++
	g.turns++
	t.lane.turn, t.lane.began = g.turns, now
	g.underWay++
	g.young = append(g.young, t)
	return t
}

// call begins the call of an attempt unless most calls of its webhook are under way,
// and reports whether it did. What is not begun becomes the next of a call that ends.
// The caller makes a call that is begun, and calls hungUp when it has ended.
func (g *gate) call(c *call, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dial(c, now) {
		c.ticket.lane.next = append(c.ticket.lane.next, c)
		return false
	}
	return true
}

func (g *gate) dial(c *call, now time.Time) bool {
	l := c.ticket.lane
	if l.calls >= max(c.most, 1) {
		return false
	}
	l.calls++
	c.ticket.called = now
	return true
}

// hungUp ends a call, and returns the next one, which is begun; nil when there is none.
func (g *gate) hungUp(t *ticket, now time.Time) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := t.lane
	l.calls--
	if len(l.next) == 0 || !g.dial(l.next[0], now) {
		return nil
	}
	next := l.next[0]
	l.next = slices.Delete(l.next, 0, 1)
	return next
}

// answered gives the slot back, and tells how quick the receiver is.
func (g *gate) answered(t *ticket, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer(t, now)
}

func (g *gate) answer(t *ticket, now time.Time) {
	if t.answered {
		return
	}
	t.answered = true
	t.lane.busy--
	g.freed++
	if t.straggler {
		t.lane.stragglers--
	}
	t.lane.brisk = !t.called.IsZero() && now.Sub(t.called) < brisk
	switch {
	case t.called.IsZero():
	case now.Sub(t.called) >= patience:
		t.lane.pace = slow
	case t.lane.stragglers == 0:
		t.lane.pace = quick
	}
}

// trusts tells whether a webhook's notifications may wait in the process for their
// slots: its receiver answers in time.
func (g *gate) trusts(webhook uuid.UUID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(webhook)
	return l.pace != slow && !l.failing
}

// stocks tells whether claims for a webhook may be for more than there are slots.
func (g *gate) stocks(limits *Limits) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lane(limits.WebhookID).stocks(limits)
}

// stocks tells whether many may be taken at once: the receiver is quick, and nothing
// is to be judged when a slot is free, because there are neither rate nor digests.
func (l *lane) stocks(limits *Limits) bool {
	return l.prompt() && limits.RatePerSecond == 0 && !limits.Digests && !limits.Probe
}

// prompt tells whether the receiver takes messages, and answers at once.
func (l *lane) prompt() bool { return l.pace == quick && l.brisk && !l.failing }

// waits tells whether the free slots of a webhook are left until there are more of
// them, so that more attempts are begun together: enough are begun for its calls.
func (g *gate) waits(webhook uuid.UUID, most, free int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(webhook)
	return l.brisk && free < most && l.busy > most
}

// promise counts slots as taken that are dealt to a claim, until they are given
// back: -n.
func (g *gate) promise(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.promised += n
}

// welcomes tells whether a webhook's notifications may be handed over as they are
// written: nothing older waits, and its receiver answers in time. Most is how many
// calls it may have under way.
func (g *gate) welcomes(webhook uuid.UUID, most int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(webhook)
	l.most = most
	return l.pace != slow && !l.behind && !l.failing
}

// hurries tells whether what is handed over for a webhook is soon sent: nothing older
// waits in the outbox, and its receiver answers at once.
func (g *gate) hurries(webhook uuid.UUID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(webhook)
	return l.prompt() && !l.behind
}

// fallsBehind notes that what is about to be written for a webhook has to be claimed,
// before anything that follows it.
func (g *gate) fallsBehind(webhook uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(webhook)
	l.behind, g.owed[webhook] = true, l
}

// ended takes note of an outcome.
func (g *gate) ended(t *ticket, o *Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.lane.failing = o.Verdict != VerdictDelivered && o.Verdict != VerdictRefused
}

// giveBack ends an attempt that is not made, which tells nothing of its receiver.
func (g *gate) giveBack(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.answered = true
	t.lane.busy--
	g.freed++
	if t.straggler {
		t.lane.stragglers--
	}
	g.underWay--
}

// leave ends an attempt.
func (g *gate) leave(t *ticket, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer(t, now)
	g.underWay--
}

func (g *gate) lane(webhook uuid.UUID) *lane {
	l := g.lanes[webhook]
	if l == nil {
		l = &lane{}
		g.lanes[webhook] = l
	}
	return l
}
