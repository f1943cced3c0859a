package notify

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// maxHanded bounds the notifications that wait in the process, of all webhooks; of
// one, handed over, it is maxQueue times what may be called at once.
const (
	maxHanded = 4096
	maxQueue  = 32
)

// holdBack is how long a commit may wait for room.
const holdBack = 250 * time.Millisecond

// desk holds claimed notifications until there is a slot for them: what was handed
// over, and what claims took for more than there were slots. Its claims are renewed.
//
// Only a receiver that answers in time has anything waiting here: for a slow or a
// failing one nothing is taken that has no slot, and what waits goes back into the
// outbox. Nothing is handed over while something older waits there, where limits,
// breaker and digests are judged.
//
// In a burst exchanges are judged faster than any receiver takes messages. What is
// written then for want of room here has to be claimed, and read, once more, for a
// sixth of all that it costs, and what follows it has to wait for its turn behind it.
// So the commit waits for room, as long as the receiver is so quick that there soon is
// some, and no longer than holdBack. What it then has to write without is older than
// all that follows: nothing more is handed over until the outbox was looked at.
//
// Nobody waits for Postgres under the lock of the desk: commits and all webhooks wait
// for that.
type desk struct {
	lease   time.Duration
	gate    *gate
	keeper  *keeper
	logger  *slog.Logger
	release func(ctx context.Context, held []Held) error
	// came holds a signal after something was handed over, freed one after claims were
	// given back.
	came, freed chan struct{}
	// spawn has something done that is waited for before the dispatcher ends.
	spawn func(func())

	// reservations counts those that are not ended yet; none is added once the desk is closed.
	reservations sync.WaitGroup

	mu   sync.Mutex
	open bool
	// lines are by webhook what there is room kept for, and what waits.
	lines   map[uuid.UUID]*line
	total   int
	waiting []*Delivery
	// moved is closed when there is more room; nil while nobody waits for that.
	moved chan struct{}
}

// line is what a webhook has at the desk.
type line struct {
	// most is how many calls it may have under way.
	most int
	// reserved counts what there is room kept for, and what waits.
	reserved, waiting int
}

// room returns how many more notifications of a webhook may wait here, at most.
func (k *desk) room(line *line, most int) int { return min(most-line.reserved, maxHanded-k.total) }

// handed returns how many more may be handed over.
func (k *desk) handed(line *line) int { return k.room(line, maxQueue*line.most) }

// line returns what a webhook has here.
func (k *desk) line(webhook uuid.UUID, most int) *line {
	l := k.lines[webhook]
	if l == nil {
		l = &line{}
		k.lines[webhook] = l
	}
	l.most = most
	return l
}

// stock returns how many notifications a claim may take of a webhook to wait here:
// none before half of them are gone.
func (k *desk) stock(limits *Limits) int {
	if !k.gate.stocks(limits) {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open {
		return 0
	}
	l := k.line(limits.WebhookID, limits.MaxConcurrent)
	if l.waiting > stock*l.most/2 {
		return 0
	}
	return max(0, k.room(l, stock*l.most))
}

// hungry tells whether a claim could bring more: for a webhook for which something may
// be due and there is room, and of which less than half of what may waits here.
func (k *desk) hungry() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.gate.hungry(), func(id uuid.UUID) bool {
		l := k.lines[id]
		return l == nil || l.waiting <= stock*l.most/2
	})
}

// begin accepts from now on.
func (k *desk) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = true
}

// await waits until there is room for what is wanted, where that is soon.
func (k *desk) await(ctx context.Context, wanted []Wanted) {
	var over <-chan time.Time
	for {
		moved := k.moves(wanted)
		if moved == nil {
			return
		}
		if over == nil {
			over = time.After(holdBack)
		}
		select {
		case <-moved:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// moves returns what is closed when there is more room, nil where there is enough, or
// where there would not be enough soon.
func (k *desk) moves(wanted []Wanted) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open || !slices.ContainsFunc(wanted, k.lacks) {
		return nil
	}
	if k.moved == nil {
		k.moved = make(chan struct{})
	}
	return k.moved
}

// lacks tells whether there is not enough room for what is wanted, though there soon is.
func (k *desk) lacks(w Wanted) bool {
	return w.Count <= maxQueue*w.MaxConcurrent && k.gate.hurries(w.WebhookID) && k.handed(k.line(w.WebhookID, w.MaxConcurrent)) < w.Count
}

// move tells those who wait for room that there is more, or that nobody is served any more.
func (k *desk) move() {
	if k.moved != nil {
		close(k.moved)
		k.moved = nil
	}
}

// reserve keeps room for what is wanted, as far as there is any, which accept ends. It
// reports whether there is less than wanted of a webhook to which something may be
// handed over, and whether the desk is open; if not there is nothing to end.
func (k *desk) reserve(wanted []Wanted) (room map[uuid.UUID]int, short, open bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open {
		return nil, false, false
	}
	k.reservations.Add(1)
	room = map[uuid.UUID]int{}
	for _, w := range wanted {
		if !k.gate.welcomes(w.WebhookID, w.MaxConcurrent) {
			continue
		}
		l := k.line(w.WebhookID, w.MaxConcurrent)
		n := min(w.Count, k.handed(l))
		if n < w.Count {
			short = true
			k.gate.fallsBehind(w.WebhookID)
		}
		if n <= 0 {
			continue
		}
		room[w.WebhookID] = n
		l.reserved += n
		k.total += n
	}
	return room, short, true
}

// accept takes over what was written for a reservation, and ends it.
func (k *desk) accept(ctx context.Context, room map[uuid.UUID]int, committed []*Delivery) {
	defer k.reservations.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	for webhook, n := range room {
		k.lines[webhook].reserved -= n
		k.total -= n
	}
	k.move()
	k.add(ctx, committed)
}

// queue returns how many notifications of a webhook wait here.
func (k *desk) queue(webhook uuid.UUID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.lines[webhook]; l != nil {
		return l.waiting
	}
	return 0
}

// keep has claimed notifications wait here.
func (k *desk) keep(ctx context.Context, claimed []*Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(ctx, claimed)
}

func (k *desk) add(ctx context.Context, came []*Delivery) {
	if len(came) == 0 {
		return
	}
	for _, d := range came {
		k.keeper.keep(ctx, d.held())
		l := k.line(d.Webhook.ID, d.Webhook.MaxConcurrent)
		l.reserved++
		l.waiting++
	}
	k.total += len(came)
	k.waiting = append(k.waiting, came...)
	if !k.open {
		k.empty(ctx)
		return
	}
	signal(k.came)
}

// left notes that a notification waits no more.
func (k *desk) left(d *Delivery) {
	l := k.lines[d.Webhook.ID]
	l.reserved--
	l.waiting--
	k.total--
}

// take returns what there are slots for, oldest first, and whether some is left.
// What waits for a receiver that does not answer any more goes back into the
// outbox. With fewer than enough it returns nothing, and all is left.
func (k *desk) take(ctx context.Context, enough int, now time.Time) (ready []*Delivery, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slots := k.slots(now)
	count := 0
	for id, n := range slots {
		count += min(n, k.lines[id].waiting)
	}
	distrusted := k.distrusted()
	if count < enough && len(distrusted) == 0 {
		return nil, len(k.waiting) > 0
	}
	var back []*Delivery
	rest := k.waiting[:0]
	for _, d := range k.waiting {
		switch id := d.Webhook.ID; {
		case distrusted[id]:
			back = append(back, d)
			k.left(d)
		case slots[id] > 0 && count >= enough:
			slots[id]--
			ready = append(ready, d)
			k.left(d)
		default:
			rest = append(rest, d)
		}
	}
	clear(k.waiting[len(rest):])
	k.waiting = rest
	k.move()
	k.giveBackBeside(ctx, back)
	return ready, len(rest) > 0
}

// distrusted returns the webhooks for which nothing may wait any more.
func (k *desk) distrusted() map[uuid.UUID]bool {
	var list map[uuid.UUID]bool
	for id, l := range k.lines {
		if l.waiting > 0 && !k.gate.trusts(id) {
			if list == nil {
				list = make(map[uuid.UUID]bool)
			}
			list[id] = true
		}
	}
	return list
}

// slots shares the free slots out over what waits.
func (k *desk) slots(now time.Time) map[uuid.UUID]int {
	var due []Limits
	for webhook, l := range k.lines {
		if l.waiting > 0 {
			due = append(due, Limits{WebhookID: webhook, MaxConcurrent: l.most})
		} else if l.reserved == 0 {
			delete(k.lines, webhook)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slots := make(map[uuid.UUID]int, len(due))
	for _, s := range k.gate.room(due, now).slots {
		l := k.lines[s.WebhookID]
		if s.Slots < l.waiting && k.gate.waits(s.WebhookID, l.most, s.Slots) {
			continue
		}
		slots[s.WebhookID] = s.Slots
	}
	return slots
}

// close refuses everything from now on, gives back what waits, and returns when every
// reservation has ended.
func (k *desk) close(ctx context.Context) {
	k.shut(ctx)
	k.reservations.Wait()
}

func (k *desk) shut(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = false
	k.move()
	k.empty(ctx)
}

// empty gives back all that waits.
func (k *desk) empty(ctx context.Context) {
	for _, d := range k.waiting {
		k.left(d)
	}
	k.giveBackBeside(ctx, k.waiting)
	k.waiting = nil
}

// giveBackBeside does so beside its caller, who may hold the lock.
func (k *desk) giveBackBeside(ctx context.Context, deliveries []*Delivery) {
	if len(deliveries) == 0 {
		return
	}
	k.spawn(func() {
		k.giveBack(ctx, deliveries)
		signal(k.freed)
	})
}

// giveBack ends claims on what was not begun. Where that fails, they lapse.
func (k *desk) giveBack(ctx context.Context, deliveries []*Delivery) {
	if len(deliveries) == 0 {
		return
	}
	held := make([]Held, len(deliveries))
	for i, d := range deliveries {
		held[i] = d.held()
		k.keeper.drop(held[i])
		defer k.gate.owes(d.Webhook.ID)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.lease/3)
	defer cancel()
	if err := k.release(ctx, held); err != nil {
		k.logger.WarnContext(ctx, "claims not given back; they lapse", slog.Int("claims", len(held)), slog.Any("error", err))
	}
}

// held returns the claim of a delivery.
func (d *Delivery) held() Held { return Held{d.NotificationID, d.Token} }
