//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// The reasons of messages about an alert, as stored.
const (
	aRaising        = "FIRED"
	anAcknowledging = "ACKNOWLEDGED"
	aResolution     = "RESOLVED"
)

// handle lets a user acknowledge and resolve the newest alerts while exchanges arrive, mostly
// before all their messages are delivered: either of the two, or both in turn.
func (o *operator) handle(ctx context.Context) error {
	ways := [][]string{{anAcknowledging, aResolution}, {aResolution}, {anAcknowledging}}
	for nth := 0; o.w.elapsed() < o.w.options.Length; nth++ {
		if !pause(ctx.Done(), 300*time.Millisecond) {
			return ctx.Err()
		}
		var id string
		err := o.w.persist(ctx, func(conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, `SELECT alert_id::text FROM alert WHERE execution_id IS NOT NULL AND state = 'FIRING' ORDER BY fired_at DESC LIMIT 1`).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		for _, event := range ways[nth%len(ways)] {
			act := map[string]string{anAcknowledging: "acknowledge", aResolution: "resolve"}[event]
			if _, err := o.call(ctx, http.MethodPost, "/alerts/"+id+"/"+act, "", nil); err != nil {
				return fmt.Errorf("%s alert %s: %w", act, id, err)
			}
			o.w.truth.mu.Lock()
			o.w.truth.handled[id] = append(o.w.truth.handled[id], event)
			o.w.truth.mu.Unlock()
		}
	}
	return nil
}

// state returns the state in which an alert of an exchange must be: as the user left it.
func (t *truth) state(alertID string) string {
	events := t.handled[alertID]
	if len(events) == 0 {
		return "FIRING"
	}
	return events[len(events)-1]
}

// messages returns the messages that an alert must have: those of its rule, and for the services
// one for each action of the user.
func (w *world) messages(l *life, a *alert) []message {
	out := l.messages(a)
	if a.About != anExchange {
		return out
	}
	if may, must := w.truth.silently(l, a); must {
		return nil
	} else if may {
		for i := range out {
			out[i].perhaps = true
		}
	}
	if e := w.truth.exchangeOf(a); l.rule.routed && e != nil {
		for _, hook := range routedTo(e) {
			out = append(out, message{hook, aRaising, false})
		}
		out = append(out, w.escalated(a, e)...)
	}
	for _, hook := range l.hooksAt(a.RuleVersion) {
		for _, event := range w.truth.handled[a.ID] {
			if isService(hook) {
				out = append(out, message{hook, event, false})
			}
		}
	}
	return out
}
