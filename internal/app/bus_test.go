package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
	"tocsin/internal/natstest"
	"tocsin/internal/redistest"
	"tocsin/notify"
	"tocsin/rules"
)

// busServer is the server of a wake-up bus that can be stopped and started again.
type busServer struct {
	options     app.BusOptions
	stop, start func()
}

// buses returns a server for each provider that has one.
func (w *world) buses(provider app.BusProvider) busServer {
	w.t.Helper()
	switch provider {
	case app.BusRedis:
		s := redistest.New(w.t)
		return busServer{
			options: app.BusOptions{Provider: provider, URL: s.URL()}, stop: func() { s.Stop(w.t) }, start: func() { s.Start(w.t) },
		}
	case app.BusNATS:
		s := natstest.New(w.t)
		return busServer{
			options: app.BusOptions{Provider: provider, URL: s.URL()}, stop: func() { s.Stop(w.t) }, start: func() { s.Start(w.t) },
		}
	case app.BusPostgres:
		// The listener's connection is cut; the database itself stays up.
		c := newCable(w)
		return busServer{options: app.BusOptions{Provider: provider, URL: c.url}, stop: c.stop, start: c.start}
	case app.BusMemory:
	}
	return busServer{options: app.BusOptions{Provider: provider}}
}

// cable is a connection to Postgres that can be cut.
type cable struct {
	w        *world
	url      string
	target   string
	address  string
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	conns    []net.Conn
	relays   sync.WaitGroup
}

func newCable(w *world) *cable {
	w.t.Helper()
	u, err := url.Parse(w.pgURL)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &cable{w: w, target: u.Host, address: "127.0.0.1:0"}
	c.start()
	u.Host = c.address
	c.url = u.String()
	w.t.Cleanup(c.stop)
	return c
}

func (c *cable) start() {
	listener, err := net.Listen("tcp", c.address) //nolint:noctx // local
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.listener, c.address = listener, listener.Addr().String()
	c.mu.Lock()
	c.cut = false
	c.mu.Unlock()
	c.relays.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", c.target) //nolint:noctx // local
			if err != nil {
				_ = near.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			if c.cut { // while this connection was made
				_, _ = near.Close(), far.Close()
			}
			c.mu.Unlock()
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				c.relays.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				})
			}
		}
	})
}

func (c *cable) stop() {
	_ = c.listener.Close()
	c.mu.Lock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
	c.mu.Unlock()
	c.relays.Wait()
}

// claimedAfter returns how long after their commit began messages were claimed and their attempts
// written, in the order of the commits, by Postgres's clock.
func (w *world) claimedAfter() []time.Duration {
	w.t.Helper()
	var all []time.Duration
	for _, us := range w.column(`
		select (extract(epoch from a.started_at - n.created_at) * 1000000)::bigint::text
		from notification n join attempt_history a using (notification_id) where a.attempt = 1 order by n.created_at`) {
		n, err := strconv.ParseInt(us, 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, time.Duration(n)*time.Microsecond)
	}
	return all
}

// parted runs one replica that evaluates and one that delivers, or a single one for both if the bus
// only reaches its own process. It returns the log of the last one.
func (w *world) parted(o app.BusOptions, poll time.Duration) *log {
	w.t.Helper()
	roles := [][]app.Role{{app.RoleEvaluate}, {app.RoleDispatch}}
	if o.Provider == app.BusMemory {
		roles = [][]app.Role{{app.RoleEvaluate, app.RoleDispatch}}
	}
	var logged *log
	for _, r := range roles {
		_, logged = w.replica(func(options *app.Options) {
			options.Bus, options.Roles, options.PollInterval = o, r, poll
			options.TickInterval, options.Settle = 100*time.Millisecond, 10*time.Millisecond
		})
	}
	return logged
}

// TestBusWakesTheDispatcher checks that each message is claimed at once, on every bus, although the
// dispatcher polls only once an hour.
func TestBusWakesTheDispatcher(t *testing.T) {
	t.Parallel()
	for _, provider := range app.BusProviders() {
		t.Run(string(provider), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rule(w.webhook("ops"))
			w.parted(w.buses(provider).options, time.Hour)
			const messages = 12
			for i := range messages {
				w.fail(w.ch.Now(t), strconv.Itoa(i))
				w.untilDelivered(i + 1)
			}
			took := w.claimedAfter()
			slices.Sort(took)
			t.Logf("%s: from the beginning of the commit to the attempt: median %v, longest %v", provider, took[messages/2], took[messages-1])
		})
	}
}

// TestBusIsAwayAndComesBack stops the server of the bus: messages are delivered by polling, and at
// once when it is back. The laws of buses stop that of each provider.
func TestBusIsAwayAndComesBack(t *testing.T) {
	t.Parallel()
	for _, provider := range []app.BusProvider{app.BusPostgres, app.BusRedis} {
		t.Run(string(provider), func(t *testing.T) {
			t.Parallel()
			// Most of the messages that come with the bus must be delivered without waiting for the
			// poll.
			const poll, back = 6 * time.Second, 4
			w := newWorld(t)
			w.rule(w.webhook("ops"))
			server := w.buses(provider)
			dispatcher := w.parted(server.options, poll)
			w.fail(w.ch.Now(t), "before")
			w.untilDelivered(1)
			server.stop()
			w.until("the outage is logged", func() bool { return strings.Contains(dispatcher.String(), "the wake-up bus does not work") })
			w.fail(w.ch.Now(t), "without")
			w.untilDelivered(2)
			server.start()
			w.until("it listens again", func() bool { return strings.Contains(dispatcher.String(), "listening for wake-ups again") })
			// Publishing is tried again within its longest pause, and the last poll must not
			// contribute.
			w.fail(w.ch.Now(t), "warm")
			w.untilDelivered(3)
			want := []string{"before", "warm", "without"}
			for i := range back {
				want = append(want, "after "+strconv.Itoa(i))
				w.fail(w.ch.Now(t), want[len(want)-1])
				w.untilDelivered(len(want))
			}
			took := w.claimedAfter()
			t.Logf("%s: before %v, without %v, back %v, after %v", provider, took[0], took[1], took[2], took[3:])
			// A message that a poll finds waits for a whole poll interval, as it is written right
			// after the one before.
			if slices.Min(took[3:]) > poll/2 {
				t.Errorf("messages were claimed after %v, want them at once where the bus is back, and not by the poll of %v", took, poll)
			}
			slices.Sort(want)
			if got := w.receiver.received(); !slices.Equal(got, want) {
				t.Errorf("received %q, want %q", got, want)
			}
		})
	}
}

// TestAProcessWakesItself stops the bus of a replica that evaluates and delivers: its messages are
// delivered without waiting for a poll.
func TestAProcessWakesItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	server := w.buses(app.BusPostgres)
	_, logged := w.replica(func(o *app.Options) {
		o.Bus, o.PollInterval = server.options, time.Hour
		o.TickInterval, o.Settle = 20*time.Millisecond, 10*time.Millisecond
	})
	w.fail(w.ch.Now(t), "before")
	w.untilDelivered(1)
	server.stop()
	w.until("the outage is logged", func() bool { return strings.Contains(logged.String(), "the wake-up bus does not work") })
	w.fail(w.ch.Now(t), "without")
	w.untilDelivered(2)
}

// TestOneWakeUpDrainsByAllReplicas queues more than one replica has slots for: the replicas that
// the wake-up does not reach are woken by those whose slots are full. Redis delivers each wake-up to one replica, as NATS
// does; the laws of buses hold each provider to passing it on.
func TestOneWakeUpDrainsByAllReplicas(t *testing.T) {
	t.Parallel()
	const messages, replicas, slots = 40, 3, 8
	w := newWorld(t)
	var hooks []uuid.UUID
	for i := range 4 {
		hook, err := w.db.Webhooks().Create(t.Context(), tenant, notify.Webhook{
			Name: fmt.Sprint(i), Kind: notify.KindGeneric, URL: w.receiver.url, Enabled: true, Timeout: time.Minute, MaxConcurrent: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, hook.ID)
	}
	rule := w.ruleOf(rules.Definition{WebhookIDs: hooks})
	// No request is answered until every replica has claimed some: none of them gets free
	// slots for the rest, and none polls.
	together := make(chan struct{})
	w.receiver.respond(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-together:
		case <-r.Context().Done():
		}
	})
	bus := w.buses(app.BusRedis).options
	for range replicas {
		w.replica(func(o *app.Options) {
			o.Bus, o.Roles, o.PollInterval, o.DispatchSlots = bus, []app.Role{app.RoleDispatch}, time.Hour, slots
		})
	}
	w.fail(rule.ArmedSinceNS+1000, ids(messages/len(hooks))...)
	_, evaluator := w.replica(func(o *app.Options) {
		o.Bus, o.Roles, o.TickInterval = bus, []app.Role{app.RoleEvaluate}, 100*time.Millisecond
	})
	w.until("every replica delivers", func() bool {
		return slices.Equal(w.column(`select count(distinct replica)::text from attempt_history`), []string{strconv.Itoa(replicas)})
	})
	close(together)
	w.untilDelivered(messages)
	t.Log(w.column(`select count(*)::text from attempt_history group by replica`))
	if got := len(w.receiver.received()); got != messages {
		t.Errorf("the receiver got %d messages, want %d; %s", got, messages, evaluator)
	}
}

func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	return list
}

func TestNewRefusesABusThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bus  app.BusOptions
		want string
	}{
		"unknown":             {app.BusOptions{Provider: "carrier pigeon"}, `unknown provider "carrier pigeon"`},
		"Redis without a URL": {app.BusOptions{Provider: app.BusRedis}, "TOCSIN_BUS_URL is not set"},
		"NATS without a URL":  {app.BusOptions{Provider: app.BusNATS}, "TOCSIN_BUS_URL is not set"},
		"memory with a URL":   {app.BusOptions{Provider: app.BusMemory, URL: "redis://u:hunter2@h"}, "TOCSIN_BUS=memory has no server"},
		"a name with spaces":  {app.BusOptions{Name: "a b"}, "TOCSIN_BUS_NAME"},
		"a length below 1":    {app.BusOptions{Length: -1}, "TOCSIN_BUS_LENGTH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := app.New(t.Context(), app.Options{Bus: c.bus})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("err = %v, want %q", err, c.want)
			}
		})
	}
}

// What becomes due by a user's action is also sent at once.
func TestAPersonsWorkWakesTheDispatcher(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule(w.webhook("ops"))
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadRequest) })
	w.parted(app.BusOptions{}, time.Hour)
	base, _ := w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleAPI} })
	w.fail(w.ch.Now(t), "a")
	w.until("the receiver refuses", func() bool { return slices.Equal(w.column(settlements), []string{"FAILED 1"}) })
	w.receiver.respond(nil)
	id := w.column(`select notification_id::text from notification`)[0]
	if status, answer := call(t, http.MethodPost, base+"/api/v1/notifications/"+id+"/retry", nil); status != http.StatusOK {
		t.Fatalf("retry: %d %v", status, answer)
	}
	w.untilDelivered(1)

	hook := base + "/api/v1/webhooks/" + w.column(`select webhook_id::text from webhook`)[0]
	if status, answer := call(t, http.MethodPost, hook+"/disable", nil); status != http.StatusOK {
		t.Fatalf("disable: %d %v", status, answer)
	}
	w.fail(w.ch.Now(t), "b")
	w.until("it is open", func() bool { return len(w.column(`select notification_id::text from outbox`)) == 1 })
	if status, answer := call(t, http.MethodPost, hook+"/enable", nil); status != http.StatusOK {
		t.Fatalf("enable: %d %v", status, answer)
	}
	w.untilDelivered(2)
}
