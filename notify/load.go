package notify

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// load is how the slots are used.
type load struct {
	slots int
	// total counts the attempts under way, young those that hold a slot, guests
	// those of the young whose webhook is not known to be quick, and slow all of
	// slow webhooks.
	total, young, guests, slow int
	// oldest is the beginning of the oldest call that holds a slot, zero without one.
	oldest time.Time
}

// load takes the slots of stragglers away and counts.
func (g *gate) load(now time.Time) load {
	l := load{slots: g.slots, total: g.underWay + g.promised, young: g.promised}
	for _, t := range g.young {
		if !t.answered && t.late(now) {
			t.straggler = true
			t.lane.stragglers++
			t.lane.pace = slow
		}
	}
	g.young = slices.DeleteFunc(g.young, func(t *ticket) bool { return t.answered || t.straggler })
	for _, t := range g.young {
		if !t.called.IsZero() && (l.oldest.IsZero() || t.called.Before(l.oldest)) {
			l.oldest = t.called
		}
	}
	for _, lane := range g.lanes {
		young := lane.busy - lane.stragglers
		l.young += young
		if lane.pace != quick {
			l.guests += young
		}
		if lane.pace == slow {
			l.slow += lane.busy
		}
	}
	return l
}

// late tells whether an attempt has had its slot for long enough.
func (t *ticket) late(now time.Time) bool {
	if t.called.IsZero() {
		return t.lane.pace == slow && now.Sub(t.began) >= patience
	}
	return now.Sub(t.called) >= patience
}

// admits tells whether one more attempt of a webhook may begin, and if not,
// whether it is for want of a slot.
func (l *load) admits(p pace) (admitted, short bool) {
	half := max(1, l.slots/2)
	switch {
	case l.total >= 4*l.slots, p == slow && l.slow >= half, p == untried && l.total >= 3*l.slots:
		return false, false
	case l.young >= l.slots, p != quick && l.guests >= half:
		return false, true
	}
	return true, false
}

// take counts one more attempt.
func (l *load) take(p pace) {
	l.total++
	l.young++
	if p != quick {
		l.guests++
	}
	if p == slow {
		l.slow++
	}
}

// deal gives slots one by one, first to the webhook whose last turn is longest
// ago. Short tells whether somebody went without for want of a slot.
func (l *load) deal(lanes []*lane, free []int) (dealt []int, short bool) {
	dealt = make([]int, len(lanes))
	order := rand.Perm(len(lanes))
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lanes[i].turn, lanes[j].turn) })
	for gave := true; gave; {
		gave = false
		for _, i := range order {
			if dealt[i] >= free[i] {
				continue
			}
			admitted, full := l.admits(lanes[i].pace)
			if !admitted {
				short = short || full
				continue
			}
			l.take(lanes[i].pace)
			dealt[i]++
			gave = true
		}
	}
	return dealt, short
}
