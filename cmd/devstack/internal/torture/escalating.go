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

// In a run of the plain form that lasts long enough, one route of the routing policy escalates: after a minute, the
// least that there is, the person on call is notified of an alert that nobody has acknowledged. A person acknowledges
// some of them before, some in the meantime.

const (
	anEscalation  = "ESCALATED"
	escalateAfter = time.Minute
	// enoughToEscalate is the least length of a run in which a route escalates.
	enoughToEscalate = 45 * time.Second
)

func (o *Options) escalates() bool { return o.Form.hasPolicy() && o.Length >= enoughToEscalate }

// escalation returns the steps of the route that escalates, for the webhook b.
func (o *operator) escalation() []any {
	if !o.w.options.escalates() {
		return nil
	}
	return []any{map[string]any{"afterMinutes": int(escalateAfter.Minutes()), "webhookIds": []string{o.hooks["b"]}}}
}

// lookAfter acknowledges alerts of the rule whose route escalates: the newest one and, in turn, the oldest one.
func (o *operator) lookAfter(ctx context.Context) error {
	for nth := 0; o.w.elapsed() < o.w.options.Length+escalateAfter/2; nth++ {
		if !pause(ctx.Done(), 300*time.Millisecond) {
			return ctx.Err()
		}
		order := []string{"DESC", "ASC"}[nth%2]
		var id string
		err := o.w.persist(ctx, func(conn *pgx.Conn) error {
			err := conn.QueryRow(ctx, `SELECT alert_id::text FROM alert JOIN rule USING (rule_id)
				WHERE execution_id IS NOT NULL AND state = 'FIRING' AND rule.name = $1 ORDER BY fired_at `+order+` LIMIT 1`, ruleRouted).Scan(&id)
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
		from := time.Now().UnixNano()
		if _, err := o.call(ctx, http.MethodPost, "/alerts/"+id+"/acknowledge", "", nil); err != nil {
			return fmt.Errorf("acknowledge alert %s: %w", id, err)
		}
		o.w.truth.mu.Lock()
		o.w.truth.handled[id] = append(o.w.truth.handled[id], anAcknowledging)
		o.w.truth.acknowledged[id] = span{from, time.Now().UnixNano()}
		o.w.truth.mu.Unlock()
	}
	return nil
}

// escalated returns the message of the step of an alert, if there must or may be one.
func (w *world) escalated(a *alert, e *exchange) []message {
	if !w.options.escalates() || !like("order*", e.route) {
		return nil
	}
	due := a.FiredAt.Add(escalateAfter).UnixNano()
	switch at, is := w.truth.acknowledged[a.ID]; {
	case !is:
		return []message{{"b", anEscalation, false}}
	case at.toNS < due:
		return nil
	default:
		return []message{{"b", anEscalation, true}}
	}
}
