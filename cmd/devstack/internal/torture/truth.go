//go:build unix

package torture

import (
	"slices"
	"sync"
)

// span is an uncertain instant: it lies between two others, both in nanoseconds since the Unix epoch.
type span struct{ fromNS, toNS int64 }

// period is a stretch in which a rule was armed with one condition.
type period struct {
	condition condition
	began     span
	// ended is nil while the period lasts.
	ended *span
	// forgotten says that the rule was disabled or removed at the end, and sealedNS, that what was visible by then was
	// waited for.
	forgotten bool
	sealedNS  int64
}

// life is what happened to a rule.
type life struct {
	rule    rule
	id      string
	version int64
	enabled bool
	periods []period
	// touched holds when the rule was edited, enabled or disabled.
	touched []span
	// replayed is the replay that a person began; nil for none.
	replayed *replayed
	// bound holds the webhooks from each version on that changed them, in order.
	bound []binding
}

type binding struct {
	version int64
	hooks   []string
}

// hooksAt returns the names of the webhooks that a version of the rule was bound to.
func (l *life) hooksAt(version int64) []string {
	var hooks []string
	for _, b := range l.bound {
		if b.version <= version {
			hooks = b.hooks
		}
	}
	return hooks
}

// expectation says how many alerts a rule may have for one exchange.
type expectation int

const (
	none expectation = iota
	perhaps
	one
)

// truth is what the run noted. It is safe for several goroutines.
type truth struct {
	exchanges []exchange

	mu sync.Mutex
	// seen holds when each exchange became visible: zero when it has not yet.
	seen  []span
	lives []*life
	// handled holds what a person did to alerts, in order, by their ids.
	handled map[string][]string
	// acknowledged is when a person acknowledged alerts of the rule that escalates, by their ids.
	acknowledged map[string]span
	// quiet are the quiet hours, in order.
	quiet []hours
	// silence is when the silence was in force.
	silence hours
	// losses are what failovers took away.
	losses []loss
}

// noteSeen notes that exchanges became visible between two instants. The first time counts.
func (t *truth) noteSeen(numbers []int, when span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range numbers {
		if t.seen[n] == (span{}) {
			t.seen[n] = when
		}
	}
}

// expected decides how many alerts a rule may have for an exchange.
func (t *truth) expected(l *life, e *exchange, seen span) expectation {
	return max(t.expectedByItself(l, e, seen), l.replays(e, seen))
}

// expectedByItself leaves out what a replay may raise.
func (t *truth) expectedByItself(l *life, e *exchange, seen span) expectation {
	verdict := none
	if seen == (span{}) || l.rule.counts() {
		return verdict
	}
	lookBackNS := int64(l.rule.lookBackSeconds) * 1e9
	for i := range l.periods {
		p := &l.periods[i]
		if !p.condition.holds(e) || e.endNS < p.began.fromNS {
			continue
		}
		certain := e.endNS > p.began.toNS && seen.toNS-e.startNS <= lookBackNS
		switch {
		case p.ended == nil:
		case p.forgotten:
			if seen.fromNS > p.ended.toNS {
				continue
			}
			certain = certain && max(seen.toNS, e.startNS, e.endNS) <= p.sealedNS
		default:
			if e.endNS > p.ended.toNS {
				continue
			}
			certain = certain && e.endNS < p.ended.fromNS
		}
		if certain {
			return one
		}
		verdict = perhaps
	}
	return verdict
}

// visibleMust returns the correlations of what the rule must alert and was visible before an instant, were its last
// period sealed then.
func (t *truth) visibleMust(l *life, beforeNS int64) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	trial := *l
	trial.periods = slices.Clone(l.periods)
	last := &trial.periods[len(trial.periods)-1]
	last.ended, last.forgotten, last.sealedNS = &span{1<<63 - 1, 1<<63 - 1}, true, beforeNS
	var must []string
	for i := range t.exchanges {
		e := &t.exchanges[i]
		if t.seen[i].toNS <= beforeNS && t.expected(&trial, e, t.seen[i]) == one {
			must = append(must, e.correlation())
		}
	}
	return must
}

// find returns the life of the rule of a name.
func (t *truth) find(name string) *life {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lives {
		if l.rule.name == name {
			return l
		}
	}
	return nil
}
