//go:build unix

package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// In the plain form a person makes three rules while exchanges come, and replays each over what came before: with a
// message for each alert, with digests, and with none.

func (f Form) replays() bool { return f == Plain }

// The ways in which a replay notifies.
const (
	replayEach   = "EACH"
	replayDigest = "DIGEST"
	replayNone   = "NONE"
)

// replayed is a replay of a rule: the range of start times, when it was begun for sure at the latest and ended.
type replayed struct {
	messages     string
	fromNS, toNS int64
	began, ended span
}

func replayedRules() []rule {
	of := func(messages, hook string, applications ...string) rule {
		return rule{
			name: "replayed " + messages, hooks: []string{hook}, lookBackSeconds: hour, intervalSeconds: 1, replay: messages,
			condition: condition{applications: applications},
		}
	}
	return []rule{of(replayEach, "a", "billing"), of(replayDigest, "b", "crm"), of(replayNone, "c", "payments")}
}

// replayAll makes the rules, replays them, and waits until that is done.
func (o *operator) replayAll(ctx context.Context) error {
	if !pause(ctx.Done(), o.w.options.Length/2-o.w.elapsed()) {
		return ctx.Err()
	}
	for _, r := range replayedRules() {
		if err := o.create(ctx, r); err != nil {
			return fmt.Errorf("create rule %s: %w", r.name, err)
		}
		if err := o.replay(ctx, o.w.truth.find(r.name)); err != nil {
			return fmt.Errorf("replay rule %s: %w", r.name, err)
		}
	}
	for _, r := range replayedRules() {
		l := o.w.truth.find(r.name)
		if err := o.awaitReplay(ctx, l); err != nil {
			return fmt.Errorf("replay of rule %s: %w", r.name, err)
		}
		o.w.logf("operator: replay of %q is done", r.name)
	}
	return nil
}

// replay begins a replay of all that can have started until a second ago. A replica whose clock is behind may take that
// for the future; then another one is asked.
func (o *operator) replay(ctx context.Context, l *life) error {
	from := time.Now()
	p := replayed{messages: l.rule.replay, fromNS: from.Add(-time.Hour).Truncate(time.Second).UnixNano(), toNS: from.Add(-time.Second).Truncate(time.Millisecond).UnixNano()}
	body, err := json.Marshal(map[string]any{
		"from": time.Unix(0, p.fromNS).UTC().Format(time.RFC3339Nano), "to": time.Unix(0, p.toNS).UTC().Format(time.RFC3339Nano), "messages": p.messages,
	})
	if err != nil {
		return err
	}
	for nth := 0; ; nth++ {
		replica := o.w.replicas[nth%len(o.w.replicas)]
		if _, err = o.once(ctx, http.MethodPost, replica.url()+"/rules/"+l.id+"/replays", "", body); err == nil {
			break
		}
		// Nobody else replays: an attempt whose answer was lost has begun it.
		var begun int
		err := o.w.persist(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT count(*) FROM replay WHERE rule_id = $1::text::uuid", l.id).Scan(&begun)
		})
		if err != nil {
			return err
		}
		if begun > 0 {
			break
		}
		pause(ctx.Done(), 50*time.Millisecond)
	}
	p.began = span{from.UnixNano(), time.Now().UnixNano()}
	o.w.logf("operator: replay of %q", l.rule.name)
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	l.replayed = &p
	return nil
}

// awaitReplay waits until a replay has ended.
func (o *operator) awaitReplay(ctx context.Context, l *life) error {
	bounded, cancel := context.WithTimeout(ctx, o.w.options.Timeout)
	defer cancel()
	var state string
	ended := o.w.until(bounded, func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		err := conn.QueryRow(ctx, "SELECT state FROM replay WHERE rule_id = $1::text::uuid ORDER BY created_at DESC LIMIT 1", l.id).Scan(&state)
		return state != "RUNNING", err
	})
	if !ended || state != "DONE" {
		return fmt.Errorf("it is %s", state)
	}
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	l.replayed.ended = span{0, time.Now().UnixNano()}
	return nil
}

// replays decides how many alerts the replay of a rule may raise for an exchange.
func (l *life) replays(e *exchange, seen span) expectation {
	p := l.replayed
	switch {
	case p == nil || seen == (span{}) || e.startNS < p.fromNS || e.startNS >= p.toNS || !l.rule.condition.holds(e):
		return none
	case p.ended != (span{}) && seen.toNS < p.began.fromNS:
		return one
	case p.ended == (span{}) || seen.fromNS <= p.ended.toNS:
		return perhaps
	default:
		return none
	}
}

// silently reports whether an alert may have no messages, and whether it can have none: a replay without messages raised
// it, unless the rule may raise it by itself.
func (t *truth) silently(l *life, a *alert) (may, must bool) {
	e := t.exchangeOf(a)
	if e == nil || l.replayed == nil || l.replayed.messages != replayNone {
		return false, false
	}
	byItself := t.expectedByItself(l, e, t.seen[e.number])
	return byItself != one, byItself == none
}
