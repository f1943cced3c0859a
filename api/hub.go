package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
)

const (
	// streamBuffer is how many events a page may be behind before it is cut off.
	streamBuffer = 16
	// inboxTimeout bounds one look at an inbox.
	inboxTimeout = 5 * time.Second
)

var (
	errHubClosed = errors.New("the server is shutting down")
	errHubFull   = errors.New("too many streams are open")
)

// event is the state of an inbox.
type event struct {
	id     string
	counts alerts.Counts
	// changed are the alerts that changed since the previous event; nil if any may have changed.
	changed []uuid.UUID
}

// hub notifies pages when an inbox has changed. It has one poller for each tenant that has
// listeners; the poller ends with its last listener.
type hub struct {
	states   InboxStates
	log      *slog.Logger
	interval time.Duration
	limit    int

	mu     sync.Mutex
	topics map[string]*topic
	open   int
	closed bool
	// pollers counts the pollers that have not ended.
	pollers sync.WaitGroup
}

// topic is one tenant's listeners and their poller.
type topic struct {
	tenant    string
	listeners map[*listener]struct{}
	// last is the last state that the poller saw. Its id is empty before the first one.
	last   event
	wake   chan struct{}
	cancel context.CancelFunc
}

// listener is one open stream. The hub closes events when the stream must end.
type listener struct {
	events chan event
	topic  *topic
}

func newHub(states InboxStates, log *slog.Logger, interval time.Duration, limit int) *hub {
	return &hub{states: states, log: log, interval: interval, limit: limit, topics: map[string]*topic{}}
}

// listen returns a new listener to a tenant's inbox. It first gets the known state. The caller
// must call leave. The poller uses the values of ctx, but does not end with it.
func (h *hub) listen(ctx context.Context, tenant string) (*listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errHubClosed
	case h.open >= h.limit:
		return nil, errHubFull
	}
	t := h.topics[tenant]
	if t == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		t = &topic{tenant: tenant, listeners: map[*listener]struct{}{}, wake: make(chan struct{}, 1), cancel: cancel}
		h.topics[tenant] = t
		h.pollers.Go(func() { h.poll(ctx, t) })
	}
	l := &listener{events: make(chan event, streamBuffer), topic: t}
	if t.last.id != "" {
		l.events <- t.last
	}
	t.listeners[l] = struct{}{}
	h.open++
	return l, nil
}

// leave ends listening. It may be called after the hub has cut l off.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(l)
}

// remove cuts l off, and ends the poller with its last listener. It needs mu.
func (h *hub) remove(l *listener) {
	t := l.topic
	if _, listening := t.listeners[l]; !listening {
		return
	}
	delete(t.listeners, l)
	close(l.events)
	h.open--
	if len(t.listeners) == 0 {
		t.cancel()
		delete(h.topics, t.tenant)
	}
}

// nudge makes the poller look at a tenant's inbox now instead of at the next interval.
func (h *hub) nudge(tenant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[tenant]; t != nil {
		select {
		case t.wake <- struct{}{}:
		default: // a look is already due
		}
	}
}

// poll looks at t's inbox until ctx ends.
func (h *hub) poll(ctx context.Context, t *topic) {
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	failing := false
	for {
		state, err := h.look(ctx, t.tenant)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			h.log.LogAttrs(ctx, slog.LevelWarn, "inbox cannot be watched; it is retried: run tocsin doctor if this lasts", slog.String("tenant", t.tenant), slog.Any("error", err))
		case err == nil && failing:
			h.log.LogAttrs(ctx, slog.LevelInfo, "inbox can be watched again", slog.String("tenant", t.tenant))
		}
		if failing = err != nil; !failing {
			h.publish(ctx, t, event{id: state.Fingerprint, counts: state.Counts, changed: state.Changed})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-t.wake:
		}
	}
}

func (h *hub) look(ctx context.Context, tenant string) (InboxState, error) {
	ctx, cancel := context.WithTimeout(ctx, inboxTimeout)
	defer cancel()
	return h.states.InboxState(ctx, tenant)
}

// publish sends ev, if it is new, to every listener of t, and cuts off listeners whose buffers are
// full.
func (h *hub) publish(ctx context.Context, t *topic, ev event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ev.id == t.last.id {
		return
	}
	t.last = ev
	for l := range maps.Clone(t.listeners) {
		select {
		case l.events <- ev:
		default:
			h.log.LogAttrs(ctx, slog.LevelWarn, "slow stream closed; its page connects again", slog.String("tenant", t.tenant))
			h.remove(l)
		}
	}
}

// shutdown cuts off every listener and waits for the pollers until ctx ends.
func (h *hub) shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	for _, t := range maps.Clone(h.topics) {
		for l := range maps.Clone(t.listeners) {
			h.remove(l)
		}
	}
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		h.pollers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
