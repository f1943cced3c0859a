package notify

import (
	"time"

	"github.com/google/uuid"
)

// look begins a look at the outbox, and returns how many slots were given back until
// now. What becomes worth a look from now on is for the next one.
func (g *gate) look() (freed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.owed)
	for _, l := range g.lanes {
		l.left = false
	}
	return g.freed
}

// looked takes note of a claim: of each webhook that was due, the slots dealt and
// not used. Of one with none left over, more is thought to be due. It reports whether
// slots were given back since so many were.
func (g *gate) looked(freed int, left map[uuid.UUID]int) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, l := range g.lanes {
		unused, due := left[id]
		l.behind = l.left || due && unused <= 0
		if due {
			// What a rate holds back is looked at in its time.
			if !l.paced {
				g.owed[id] = l
			}
		} else if !l.left {
			l.since = time.Time{}
		}
	}
	return g.freed != freed
}

// hungry returns the webhooks for which something may be due, and which may have more
// attempts under way.
func (g *gate) hungry() []uuid.UUID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []uuid.UUID
	for id, l := range g.owed {
		if l.most == 0 || l.free() > 0 {
			list = append(list, id)
		}
	}
	return list
}

// full tells whether none of some webhooks may have more attempts under way, and notes
// that they are worth a look once one may. What is left to another replica is looked
// at again in its time.
func (g *gate) full(webhooks []uuid.UUID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range webhooks {
		if l := g.lanes[id]; l == nil || l.most == 0 || l.free() > 0 && !l.left {
			return false
		}
	}
	for _, id := range webhooks {
		if l := g.lanes[id]; !l.left {
			g.owed[id] = l
		}
	}
	return len(webhooks) > 0
}

// owes notes that the outbox is worth a look for a webhook when there is room: a claim
// was given back, an attempt is to be made again, or others may be after a probe.
func (g *gate) owes(webhook uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owed[webhook] = g.lane(webhook)
}

// settled notes an outcome that was stored.
func (g *gate) settled(webhook uuid.UUID, delivered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lane(webhook); !delivered || l.probe {
		g.owed[webhook] = l
	}
}
