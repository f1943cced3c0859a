package postgres

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// placeFor is how long claims go on behind one another before one begins at the
// head of the queue again.
const placeFor = time.Second

// workFor is how long a claim, an attempt or a renewal tells that its replica is at work.
const workFor = time.Second

// places are where claims go on in the queues of webhooks: behind the last row that
// was claimed. What is leased stands at the head of a queue, and a claim that began
// there would pass over all that every replica has leased, which is a thousand rows
// and more where several drain a backlog.
//
// Before a place something may be due all the same: a claim that was given back or
// has lapsed. It waits for no longer than placeFor, and no time at all where there is
// room for it: a claim that finds too little behind its place looks before it. Like a
// bound, a place is never truth: losing it costs one longer claim. All instants are
// Postgres's.
type places struct {
	mu sync.Mutex
	of map[uuid.UUID]place
	// last is how long a place is used.
	last time.Duration
}

// place is the last row that was claimed, in the order of the queue, and when the
// claim was that began at the head.
type place struct {
	at    time.Time
	id    uuid.UUID
	since time.Time
}

// known adds what a look is to know.
func (l *places) known(p *pgq.OutboxBacklogParams) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.of)
	p.PlacedIds, p.PlacedAt, p.PlacedAfter = make([]uuid.UUID, 0, n), make([]time.Time, 0, n), make([]uuid.UUID, 0, n)
	for id, at := range l.of {
		p.PlacedIds, p.PlacedAt, p.PlacedAfter = append(p.PlacedIds, id), append(p.PlacedAt, at.at), append(p.PlacedAfter, at.id)
	}
}

// start returns where the claims of what a look has found begin, and forgets all
// other places.
func (l *places) start(due map[uuid.UUID]*pgq.OutboxBacklogRow) map[uuid.UUID]place {
	l.mu.Lock()
	defer l.mu.Unlock()
	starts, kept := make(map[uuid.UUID]place, len(due)), make(map[uuid.UUID]place, len(l.of))
	for id, b := range due {
		at, placed := l.of[id]
		if age := b.At.Sub(at.since); placed && age >= 0 && age < l.last {
			starts[id], kept[id] = at, at
		} else {
			starts[id] = headOf(b)
		}
	}
	l.of = kept
	return starts
}

// headOf returns where a claim begins that passes nothing over.
func headOf(b *pgq.OutboxBacklogRow) place { return place{at: b.FirstAt, since: b.At} }

// note keeps a place, which is none where a claim took less than it had room for.
func (l *places) note(webhook uuid.UUID, at place, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if more {
		l.of[webhook] = at
	} else {
		delete(l.of, webhook)
	}
}

// leave forgets places in the queues that are left to others, whose heads move on.
func (l *places) leave(due map[uuid.UUID]*pgq.OutboxBacklogRow, rooms []notify.Slots, replica string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, b := range due {
		left := b.Worker != "" && b.Worker != replica
		if left && !slices.ContainsFunc(rooms, func(room notify.Slots) bool { return room.WebhookID == id }) {
			delete(l.of, id)
		}
	}
}

// forget has the next claims begin at the head.
func (l *places) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.of)
}

// placed tells whether a claim that begins here may pass something over.
func (p place) placed() bool { return p.id != uuid.Nil }

// behind returns the later one of a place and a row.
func (p place) behind(row *pgq.NotificationClaimRow) place {
	if row.ReadyAt.After(p.at) || row.ReadyAt.Equal(p.at) && bytes.Compare(row.NotificationID[:], p.id[:]) > 0 {
		p.at, p.id = row.ReadyAt, row.NotificationID
	}
	return p
}
