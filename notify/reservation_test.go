package notify_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// beginning asks for a commit's attempts at deliveries, and returns how many it begins.
func beginning(t *testing.T, r *notify.Reservation, list []notify.Delivery) int {
	t.Helper()
	n := 0
	for i := range list {
		if begin := r.Begin(t.Context(), &list[i]); begin != nil {
			if begin.NotificationID != list[i].NotificationID || begin.Attempt != 1 || string(begin.Fresh.Content) != "x" || begin.Request.Method != http.MethodPost {
				t.Errorf("begins %+v", begin)
			}
			n++
		}
	}
	return n
}

// written are deliveries that a commit is about to write: they have no tokens yet.
func written(n int, webhook uuid.UUID) []notify.Delivery {
	list := deliveries(n, webhook, time.Minute)
	for i := range list {
		list[i].Token = 0
	}
	return list
}

func reserve(t *testing.T, d *notify.Dispatcher, webhook uuid.UUID, count int) notify.Reservation {
	t.Helper()
	return d.Reserve(t.Context(), []notify.Wanted{{WebhookID: webhook, MaxConcurrent: 4, Count: count}})
}

// TestACommitBeginsWhatCanBeCalledAtOnce sends nothing before the commit, and then
// begins with a statement of its own only what had to wait.
func TestACommitBeginsWhatCanBeCalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o, c := &outbox{}, &calls{takes: 100 * time.Millisecond}
		d := dispatcher(t, o, c, func(o *notify.Options) { o.Poll = time.Hour })
		running(t, d, func() {
			r, list := reserve(t, d, id, 10), written(10, id)
			if n := beginning(t, &r, list); n != 4 {
				t.Fatalf("%d begun, want as many as may be called at once", n)
			}
			pass(time.Second)
			if len(c.at) != 0 {
				t.Fatal("called before the commit")
			}
			for i := range list {
				list[i].Token = int64(100 + i)
			}
			r.HandOver(t.Context(), list)
			synctest.Wait()
			c.mu.Lock()
			if c.now != 4 {
				t.Errorf("%d calls under way after the commit, want 4", c.now)
			}
			c.mu.Unlock()
			pass(10 * time.Second)
			o.mu.Lock()
			defer o.mu.Unlock()
			if len(o.begun) != 6 || len(o.settled) != 10 || c.most != 4 {
				t.Errorf("%d begun by themselves, %d settled, %d calls at once; want 6, 10 and 4", len(o.begun), len(o.settled), c.most)
			}
			tokens := map[uuid.UUID]int64{}
			for _, s := range o.settled {
				tokens[s.NotificationID] = s.Token
			}
			for i := range list {
				if got := tokens[list[i].NotificationID]; got != list[i].Token {
					t.Errorf("settled under token %d, want %d", got, list[i].Token)
				}
			}
		})
	})
}

// TestACommitThatFailsSendsNothing gives the slots back, also where it was made twice.
func TestACommitThatFailsSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o, c := &outbox{}, &calls{}
		d := dispatcher(t, o, c, func(o *notify.Options) { o.Poll = time.Hour })
		running(t, d, func() {
			for range 3 {
				r, list := reserve(t, d, id, 6), written(6, id)
				for range 2 {
					if n := beginning(t, &r, list); n != 4 {
						t.Fatalf("%d begun, want 4", n)
					}
				}
				other := reserve(t, d, id, 6)
				if n := beginning(t, &other, written(1, id)); n != 0 {
					t.Error("begun without a slot")
				}
				other.HandOver(t.Context(), nil)
				r.HandOver(t.Context(), nil)
				r.HandOver(t.Context(), list) // it has ended
			}
			pass(time.Minute)
			if len(c.at)+len(o.begun)+len(o.settled)+len(o.released) != 0 {
				t.Errorf("%d calls, %d begun, %d settled, %d given back; want nothing", len(c.at), len(o.begun), len(o.settled), len(o.released))
			}
		})
	})
}

// TestACommitBeginsNothingBeforeWhatWaits keeps the order of a webhook's messages.
func TestACommitBeginsNothingBeforeWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		d := dispatcher(t, &outbox{}, &calls{takes: 100 * time.Millisecond}, func(o *notify.Options) { o.Poll = time.Hour })
		running(t, d, func() {
			first := reserve(t, d, id, 20)
			first.HandOver(t.Context(), deliveries(20, id, time.Minute))
			synctest.Wait()
			r := reserve(t, d, id, 1)
			if n := beginning(t, &r, written(1, id)); n != 0 {
				t.Error("begun although others wait")
			}
			r.HandOver(t.Context(), nil)
			pass(time.Minute)
			again := reserve(t, d, id, 1)
			if n := beginning(t, &again, written(1, id)); n != 1 {
				t.Error("not begun although nothing waits")
			}
			again.HandOver(t.Context(), nil)
		})
	})
}

// TestACommitLeavesSlotsToOthers has no more than a quarter of all slots, however many
// webhooks it owes something: it may take long.
func TestACommitLeavesSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(t, &outbox{}, &calls{}, func(o *notify.Options) { o.Poll, o.Slots = time.Hour, 32 })
		running(t, d, func() {
			var wanted []notify.Wanted
			var list []notify.Delivery
			for range 10 {
				id := uuid.New()
				wanted = append(wanted, notify.Wanted{WebhookID: id, MaxConcurrent: 4, Count: 3})
				list = append(list, written(3, id)...)
			}
			r := d.Reserve(t.Context(), wanted)
			if n := beginning(t, &r, list); n != 8 {
				t.Errorf("%d begun, want a quarter of 32", n)
			}
			r.HandOver(t.Context(), nil)
		})
	})
}

// slowly takes long to render.
type slowly struct{ *outbox }

func (s slowly) Render(d *notify.Delivery) (notify.Body, error) {
	pass(6 * time.Millisecond)
	return s.outbox.Render(d)
}

// TestACommitWaitsForNoSlowBodies leaves bodies that take long to the dispatcher.
func TestACommitWaitsForNoSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{}
		d := dispatcher(t, o, &calls{}, func(options *notify.Options) { options.Poll, options.Renderer = time.Hour, slowly{o} })
		running(t, d, func() {
			r, list := reserve(t, d, id, 4), written(4, id)
			if n := beginning(t, &r, list); n != 2 {
				t.Errorf("%d begun, want those of 12 ms", n)
			}
			for i := range list {
				list[i].Token = 1
			}
			r.HandOver(t.Context(), list)
			pass(time.Second)
			o.mu.Lock()
			defer o.mu.Unlock()
			settled := map[uuid.UUID]bool{}
			for i := range o.settled {
				settled[o.settled[i].NotificationID] = true
			}
			if len(settled) != len(list) || len(o.begun) != 2 {
				t.Errorf("%d settled, %d begun by themselves; want all, and the other two", len(settled), len(o.begun))
			}
		})
	})
}
