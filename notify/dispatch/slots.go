package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

const (
	// slowAfter is how long a call holds a slot. A slower call goes on without a slot, so that
	// receivers that hang do not delay the others.
	slowAfter = time.Second
	// overcommit is the bound on attempts under way, including slow calls and outcomes that are
	// being stored, in multiples of the slots. So claims wait if the database is slow.
	overcommit = 4
	// maxShares is how many webhooks without a call are remembered.
	maxShares = 4096
)

// slots distributes the calls of a dispatcher over webhooks. A webhook is slow after a slow call,
// until a call ends in time and no slow call is left. All slow webhooks together may use half of
// the slots. A webhook that has not answered in time yet may not use the last part of the
// overcommitment, which is left to those that have.
type slots struct {
	mu     sync.Mutex
	most   int
	random func() float64
	// total counts the attempts under way until they are stored. young holds the calls that have a
	// slot, oldest first.
	total int
	young []*call
	// slow counts the calls of webhooks that are slow.
	slow int
	// begun counts the calls begun.
	begun  int
	shares map[uuid.UUID]*share
	// short says that the last claim found too few slots for all webhooks.
	short bool
}

// share is the share of a webhook in the slots.
type share struct {
	// calls counts the calls under way. troubled counts the outcomes other than a delivery that are
	// not stored yet; until then it is unknown whether the webhook accepts messages.
	calls, troubled int
	// stopped counts the troubled outcomes after which the receiver accepts no message for some time.
	stopped int
	// slowCalls counts the calls that are slow. quick says that the last call ended in time.
	slowCalls   int
	slow, quick bool
	// lastBegun is the number of its last call.
	lastBegun int
	// most is how many calls the webhook may have; 0 before that is known. probe says that one
	// message goes first.
	most  int
	probe bool
	// waits says that more messages may be due than the webhook had room for.
	waits bool
}

// call is an attempt under way.
type call struct {
	share *share
	began time.Time
	// answered says that the call does not hold a slot any more; slow says that it lost the slot
	// because it took too long.
	answered, slow bool
	// troubled says that its outcome was not a delivery, stopped that its receiver has asked for a
	// pause or is gone, and probe that other messages wait for it.
	troubled, stopped, probe bool
}

func newSlots(most int, random func() float64) *slots {
	return &slots{most: most, random: random, shares: map[uuid.UUID]*share{}}
}

func (s *slots) share(webhook uuid.UUID) *share {
	h := s.shares[webhook]
	if h == nil {
		h = &share{}
		s.shares[webhook] = h
	}
	return h
}

// room is what a claim may take.
type room struct {
	slots []Slots
	// again is the time until there is more room; 0 if there is more only when a call ends.
	again time.Duration
	// due are the webhooks for which something was due.
	due []uuid.UUID
}

// deal distributes the free slots one by one. Webhooks with the fewest calls under way come first;
// of these, the webhook whose last call began the longest ago.
func (s *slots) deal(due []Due, now time.Time) room {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r room
	free := s.free(now)
	if len(s.shares) > maxShares {
		maps.DeleteFunc(s.shares, func(_ uuid.UUID, h *share) bool { return h.calls == 0 && h.troubled == 0 })
	}
	dealt, most := make([]int, len(due)), make([]int, len(due))
	order := s.shuffled(len(due))
	for i := range due {
		var again time.Duration
		most[i], again = s.may(&due[i])
		r.sooner(again)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := s.share(due[i].WebhookID), s.share(due[j].WebhookID)
		return cmp.Or(cmp.Compare(a.calls, b.calls), cmp.Compare(a.lastBegun, b.lastBegun))
	})
	// The room for slow webhooks, and for those that are not known to be quick.
	slow, untried := max(1, s.most/2)-s.slow, (overcommit-1)*s.most-s.total
	s.short = false
	for gave := true; gave && !s.short; {
		gave = false
		for _, i := range order {
			h := s.share(due[i].WebhookID)
			if dealt[i] >= most[i] || h.slow && slow <= 0 || !h.quick && untried <= 0 {
				continue
			}
			if s.short = free == 0; s.short {
				break
			}
			if h.slow {
				slow--
			}
			if !h.quick {
				untried--
			}
			dealt[i]++
			free--
			gave = true
		}
	}
	for i := range due {
		if dealt[i] > 0 {
			r.slots = append(r.slots, Slots{due[i].WebhookID, dealt[i]})
		}
		r.due = append(r.due, due[i].WebhookID)
		// A webhook with a rate gets more room as time passes, not when a call ends.
		s.share(due[i].WebhookID).waits = due[i].RatePerSecond == 0
	}
	if s.short && len(s.young) > 0 {
		r.sooner(s.young[0].began.Add(slowAfter).Sub(now))
	}
	return r
}

// shuffled returns the numbers below n in random order.
func (s *slots) shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		at := int(s.random() * float64(i+1))
		order[i], order[at] = order[at], i
	}
	return order
}

func (r *room) sooner(again time.Duration) {
	if again > 0 && (r.again == 0 || again < r.again) {
		r.again = again
	}
}

// free returns how many calls may begin.
func (s *slots) free(now time.Time) int {
	s.young = slices.DeleteFunc(s.young, func(c *call) bool { return c.answered })
	for len(s.young) > 0 && now.Sub(s.young[0].began) >= slowAfter {
		c := s.young[0]
		c.slow = true
		c.share.slowCalls++
		s.pace(c.share, false)
		s.young = s.young[1:]
	}
	return max(0, min(s.most-len(s.young), overcommit*s.most-s.total))
}

// may returns how many calls of a webhook may begin, and the time until its rate allows more.
func (s *slots) may(due *Due) (most int, again time.Duration) {
	h := s.share(due.WebhookID)
	h.most, h.probe = max(due.MaxConcurrent, 1), due.Probe
	if h.troubled > 0 {
		return 0, 0
	}
	most = h.most - h.calls
	if due.Probe {
		most = min(most, 1)
	}
	if due.RatePerSecond > 0 {
		most = min(most, int(due.Tokens))
		missing := float64(int(due.Tokens)+1) - due.Tokens
		again = time.Duration(missing / due.RatePerSecond * float64(time.Second))
	}
	return max(0, most), again
}

// claimed notes the result of a claim. A webhook that got more slots than it had messages does not
// wait. claimed reports whether another webhook may wait.
func (s *slots) claimed(dealt room, got map[uuid.UUID]int) (left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range dealt.slots {
		if got[d.WebhookID] < d.Slots {
			s.share(d.WebhookID).waits = false
		}
	}
	return slices.ContainsFunc(dealt.due, func(id uuid.UUID) bool { return s.share(id).waits })
}

// begin takes a slot for a call.
func (s *slots) begin(webhook uuid.UUID, now time.Time) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.share(webhook)
	s.begun++
	s.total++
	h.lastBegun = s.begun
	if h.calls++; h.slow {
		s.slow++
	}
	c := &call{share: h, began: now, probe: h.probe}
	s.young = append(s.young, c)
	return c
}

// answered releases a slot, and reports whether a look at the outbox is worthwhile. If the message
// was not delivered, no call begins at its webhook before the outcome is stored.
func (s *slots) answered(c *call, verdict notify.Verdict) (look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.answered = true
	s.end(c)
	if c.stopped = verdict == notify.VerdictThrottled || verdict == notify.VerdictGone; c.stopped {
		c.share.stopped++
	}
	if c.troubled = verdict != notify.VerdictDelivered; c.troubled {
		c.share.troubled++
		return s.short
	}
	return s.short || c.share.waits
}

// end ends a call.
func (s *slots) end(c *call) {
	h := c.share
	if h.slow {
		s.slow--
	}
	h.calls--
	if c.slow {
		h.slowCalls--
	} else if h.slowCalls == 0 {
		s.pace(h, true)
	}
}

// pace stores whether a webhook answers quickly.
func (s *slots) pace(h *share, quick bool) {
	switch {
	case !quick && !h.slow:
		s.slow += h.calls
	case quick && h.slow:
		s.slow -= h.calls
	}
	h.slow, h.quick = !quick, quick
}

// stored ends an attempt, and reports whether a look at the outbox is worthwhile.
func (s *slots) stored(c *call) (look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if c.stopped {
		c.share.stopped--
	}
	if c.troubled {
		c.share.troubled--
		return true
	}
	return c.probe || s.total == overcommit*s.most-1
}

// stopped reports whether the receiver of a webhook has asked for a pause, or is gone, and the store
// does not know it yet.
func (s *slots) stopped(webhook uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.share(webhook).stopped > 0
}

// full reports whether none of some webhooks may have more calls. They are then looked at when a
// call ends.
func (s *slots) full(webhooks []uuid.UUID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(webhooks) == 0 {
		return false
	}
	none := s.free(now) == 0
	for _, id := range webhooks {
		if h := s.share(id); !none && (h.most == 0 || h.calls < h.most) {
			return false
		}
	}
	for _, id := range webhooks {
		s.share(id).waits = true
	}
	s.short = s.short || none
	return true
}
