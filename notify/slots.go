package notify

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// slowAfter is how long a call holds a slot. A slower one goes on without, so that
	// receivers that hang keep nobody else waiting.
	slowAfter = time.Second
	// overcommit is how many times as many attempts as there are slots may be under way,
	// with slow calls and outcomes that are being stored: a slow database makes claims wait.
	overcommit = 4
	// maxShares is how many webhooks are remembered that have no call.
	maxShares = 4096
)

// slots shares the calls of a dispatcher out over webhooks. A webhook is slow from a slow
// call on until one ends in time and no slow one is left: all slow webhooks together may
// have half as many calls as there are slots. One that has not answered in time yet
// leaves some of the overcommitment to those that have.
type slots struct {
	mu     sync.Mutex
	most   int
	random func() float64
	// total counts the attempts under way, until they are stored; young holds the calls
	// that have a slot, oldest first.
	total int
	young []*call
	// slow counts the calls of webhooks that are slow.
	slow int
	// turns counts the calls begun.
	turns  int
	shares map[uuid.UUID]*share
	// short says that the last claim found too few slots for all webhooks.
	short bool
}

// share is what a webhook has of the slots.
type share struct {
	// calls counts those under way; troubled the outcomes other than a delivery that are
	// not stored yet, until which nobody knows whether the webhook takes messages.
	calls, troubled int
	// slowCalls counts the calls that are slow; quick says that one has ended in time.
	slowCalls   int
	slow, quick bool
	// turn is that of its last call.
	turn int
	// most is how many calls it may have, 0 before that is known; probe says that one
	// message goes first.
	most  int
	probe bool
	// waits says that more may be due than it had room for.
	waits bool
}

// call is an attempt under way.
type call struct {
	share *share
	began time.Time
	// answered says that it holds no slot any more, slow that it lost it by time.
	answered, slow bool
	// troubled says that its outcome was no delivery, probe that others wait for it.
	troubled, probe bool
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
	// again is the time after which there is more, 0 when only the end of a call tells.
	again time.Duration
	// due are the webhooks for which something was due.
	due []uuid.UUID
}

// deal shares the free slots out, one by one, first to those with the fewest calls
// under way, of these to the one whose last turn is longest ago.
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
		return cmp.Or(cmp.Compare(a.calls, b.calls), cmp.Compare(a.turn, b.turn))
	})
	// What is left for webhooks that are slow, and for those not known to be quick.
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
		// Time, and not the end of a call, gives one with a rate more room.
		s.share(due[i].WebhookID).waits = due[i].RatePerSecond == 0
	}
	if s.short && len(s.young) > 0 {
		r.sooner(s.young[0].began.Add(slowAfter).Sub(now))
	}
	return r
}

// shuffled returns the numbers below n in any order.
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

// may returns how many calls of a webhook may begin, and when a rate allows more.
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

// claimed takes note of a claim: a webhook that got more slots than it had messages
// waits for none. It reports whether any other webhook may.
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
	s.turns++
	s.total++
	h.turn = s.turns
	if h.calls++; h.slow {
		s.slow++
	}
	c := &call{share: h, began: now, probe: h.probe}
	s.young = append(s.young, c)
	return c
}

// answered gives a slot back, and reports whether the outbox is worth a look. Of a
// webhook whose message was not delivered nothing begins before the outcome is stored.
func (s *slots) answered(c *call, delivered bool) (look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.answered = true
	s.end(c)
	if c.troubled = !delivered; c.troubled {
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

// pace notes how a webhook answers.
func (s *slots) pace(h *share, quick bool) {
	switch {
	case !quick && !h.slow:
		s.slow += h.calls
	case quick && h.slow:
		s.slow -= h.calls
	}
	h.slow, h.quick = !quick, quick
}

// stored ends an attempt, and reports whether the outbox is worth a look.
func (s *slots) stored(c *call) (look bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if c.troubled {
		c.share.troubled--
		return true
	}
	return c.probe || s.total == overcommit*s.most-1
}

// full tells whether none of some webhooks may have more calls, which are then looked
// at when one of them ends.
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
