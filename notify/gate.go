package notify

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// gate counts the slots of a dispatcher and shares them out over webhooks:
// each gets one in turn until nothing is free, so that a webhook with a long
// backlog or a slow receiver keeps no other waiting.
type gate struct {
	mu       sync.Mutex
	slots    int
	busy     int
	webhooks map[uuid.UUID]*lane
}

// lane is one webhook's share.
type lane struct {
	busy    int
	limiter *rate.Limiter
}

func newGate(slots int) *gate {
	return &gate{slots: slots, webhooks: map[uuid.UUID]*lane{}}
}

// room shares the free slots out. Again is the time after which the first of
// the webhooks held back by its rate may send; 0 when there is none.
func (g *gate) room(due []Limits, now time.Time) (rooms []Slots, again time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	free := make([]int, len(due))
	for i, limits := range due {
		l := g.lane(limits)
		free[i] = limits.MaxConcurrent - l.busy
		if limits.RatePerSecond <= 0 {
			continue
		}
		if tokens := l.limiter.TokensAt(now); tokens < float64(free[i]) {
			free[i] = int(math.Floor(tokens))
			if free[i] < 1 {
				wait := max(time.Duration((1-tokens)/limits.RatePerSecond*float64(time.Second)), time.Millisecond)
				if again == 0 || wait < again {
					again = wait
				}
			}
		}
	}
	return share(due, free, g.slots-g.busy), again
}

// share deals slots one by one, beginning at a random webhook.
func share(due []Limits, free []int, slots int) []Slots {
	dealt := make([]int, len(due))
	order := rand.Perm(len(due))
	for gave := true; gave && slots > 0; {
		gave = false
		for _, i := range order {
			if slots > 0 && dealt[i] < free[i] {
				dealt[i]++
				slots--
				gave = true
			}
		}
	}
	var rooms []Slots
	for i, n := range dealt {
		if n > 0 {
			rooms = append(rooms, Slots{WebhookID: due[i].WebhookID, Slots: n})
		}
	}
	return rooms
}

// enter takes a slot, and a token of the webhook's rate.
func (g *gate) enter(webhook uuid.UUID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
	l := g.webhooks[webhook]
	l.busy++
	l.limiter.ReserveN(now, 1)
}

// leave gives the slot back.
func (g *gate) leave(webhook uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.webhooks[webhook].busy--
}

// lane returns a webhook's share, with its present rate.
func (g *gate) lane(limits Limits) *lane {
	limit := rate.Inf
	if limits.RatePerSecond > 0 {
		limit = rate.Limit(limits.RatePerSecond)
	}
	burst := max(1, int(math.Ceil(limits.RatePerSecond)))
	l := g.webhooks[limits.WebhookID]
	if l == nil {
		l = &lane{limiter: rate.NewLimiter(limit, burst)}
		g.webhooks[limits.WebhookID] = l
	}
	if l.limiter.Limit() != limit {
		l.limiter.SetLimit(limit)
		l.limiter.SetBurst(burst)
	}
	return l
}
